"""Each identity of models with latent variables fails on a model with a bug that it is there for."""

from dataclasses import replace

import numpy as np
import pytest

import bayeszoo as bz
from bayeszoo.contract.case import Case, case_of
from bayeszoo.contract.check import IDENTITIES, run_identity
from bayeszoo.contract.latent import parts_add_up
from bayeszoo.inference.engine.ascent import AscentError

GAUSSIAN, UNIGRAMS = bz.find("gaussian_mixture"), bz.find("multinomial_mixture")
DOCUMENTS = bz.read(UNIGRAMS, {"counts": [[3, 1, 0], [4, 0, 1], [0, 2, 5], [1, 1, 6], [2, 2, 2]], "word": list("abc")})
ROWS = bz.read(GAUSSIAN, {"Y": np.array([-2.0, -1.5, 0.3, 1.2, 2.2])[:, None], "column": ["y"]})
FACTORS = bz.find("ppca")
MEASURED = bz.read(FACTORS, {"Y": np.random.default_rng(0).normal(size=(9, 4)), "column": list("abcd")})
DATA = {GAUSSIAN: ROWS, UNIGRAMS: DOCUMENTS, FACTORS: MEASURED}


def bug(family, **methods):
    return type(family.__name__, (family,), {**methods, "name": family.name})


def off(family, name, by):
    """Return a model one of whose steps is off by what a function of the step's arguments returns."""
    right = getattr(family, name)
    return bug(family, **{name: lambda self, *arguments: right(self, *arguments) + by(*arguments)})


def with_fields(family, name, **fields):
    """Return a model one of whose steps is that of other fields."""
    right = getattr(family, name)
    return bug(family, **{name: lambda self, *given, **named: right(replace(self, **fields), *given, **named)})


def of_another_prior(self, stats, flat=False):
    prior = replace(self, kappa0=2.0).prior(DATA[GAUSSIAN])
    return GAUSSIAN.m_step(self, stats._replace(prior=prior), flat)


def reversed_weights(self, params, data):
    return UNIGRAMS.likelihood(self, {**params, "weights": params["weights"][..., ::-1]}, data)


BUGS = {
    "em_objective": off(UNIGRAMS, "log_prior", lambda params, data: 1e-6),
    "em_map_is_stationary": bug(GAUSSIAN, m_step=of_another_prior),
    "em_mle_is_stationary": bug(GAUSSIAN, m_step=lambda self, stats, flat=False: GAUSSIAN.m_step(self, stats, False)),
    "parts_add_up": bug(UNIGRAMS, pooled=lambda self, stats, other: stats),
    "compiled_density": with_fields(UNIGRAMS, "compiled", eta=2.0),
    "compiled_gradient": with_fields(UNIGRAMS, "compiled", eta=2.0),
    "statistics_density": with_fields(FACTORS, "compressed", w0=1.1),
    "statistics_gradient": with_fields(FACTORS, "compressed", w0=1.1),
    "likelihood_of_rows": bug(UNIGRAMS, likelihood=reversed_weights),
    "labels_mean_nothing": off(UNIGRAMS, "log_prior", lambda params, data: params["weights"][..., 0]),
    "bound": bug(UNIGRAMS, divergence=lambda self, q: UNIGRAMS.divergence(self, q) / 4),
    "one_component": off(UNIGRAMS, "divergence", lambda q: 1e-6),
    "enumerated_candidate": off(UNIGRAMS, "log_joint", lambda z, data: 1e-6),
    "enumerated_row_order": off(UNIGRAMS, "log_joint", lambda z, data: 1e-3 * data["counts"][0, 0]),
    "enumerated_units": off(GAUSSIAN, "log_joint", lambda z, data: 1e-3 * data["Y"].sum()),
    "simulation_based": with_fields(UNIGRAMS, "simulate", alpha=500.0, eta=500.0),
}


@pytest.mark.parametrize("function", BUGS)
def test_the_identity_sees_the_bug(function):
    kind = BUGS[function]
    data = next(data for family, data in DATA.items() if issubclass(kind, family))
    identity = next(one for one in IDENTITIES if one.function == function)
    try:
        seen = not run_identity(identity, Case(kind(), data)).passed
    except AscentError:  # the engine saw it first
        seen = True
    assert seen


def test_parts_whose_own_rows_are_out_of_order_do_not_add_up():
    lda = bz.find("lda")
    backwards = bug(lda, pooled=lambda self, stats, other: lda.pooled(self, other, stats))
    shared = bug(lda, of_rows=lambda self, at, change: lda.of_rows(self, at, lambda own: change(own[..., ::-1, :])))
    assert [parts_add_up(case_of(kind)).passed for kind in (lda, backwards, shared)] == [True, False, False]


def test_every_identity_of_latent_variables_has_a_seeded_bug():
    assert {one.function for one in IDENTITIES if {"EM", "Hidden"} & set(one.needs)} == BUGS.keys()
