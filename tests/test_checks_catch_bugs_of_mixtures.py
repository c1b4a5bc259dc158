"""Each identity of models with latent variables fails on a model with a bug that it is there for."""

from dataclasses import replace

import numpy as np
import pytest

import bayeszoo as bz
from bayeszoo.contract.case import Case
from bayeszoo.contract.check import IDENTITIES, run_identity
from bayeszoo.inference.engine.ascent import AscentError

GAUSSIAN, UNIGRAMS = bz.find("gaussian_mixture"), bz.find("multinomial_mixture")
DOCUMENTS = bz.read(UNIGRAMS, {"counts": [[3, 1, 0], [4, 0, 1], [0, 2, 5], [1, 1, 6], [2, 2, 2]], "word": list("abc")})
ROWS = bz.read(GAUSSIAN, {"Y": np.array([-2.0, -1.5, 0.3, 1.2, 2.2])[:, None], "column": ["y"]})
FACTORS = bz.find("ppca")
MEASURED = bz.read(FACTORS, {"Y": np.random.default_rng(0).normal(size=(9, 4)), "column": list("abcd")})
DATA = {GAUSSIAN: ROWS, UNIGRAMS: DOCUMENTS, FACTORS: MEASURED}


def bug(family, **methods):
    return type(family.__name__, (family,), {**methods, "name": family.name})


def off(method, by):
    return lambda self, *arguments: method(self, *arguments) + by(*arguments)


BUGS = {
    "em_objective": bug(UNIGRAMS, log_prior=off(UNIGRAMS.log_prior, lambda params, data: 1e-6)),
    "em_map_is_stationary": bug(
        GAUSSIAN, m_step=lambda self, stats, flat=False: GAUSSIAN.m_step(replace(self, kappa0=2.0), stats, flat)
    ),
    "em_mle_is_stationary": bug(GAUSSIAN, m_step=lambda self, stats, flat=False: GAUSSIAN.m_step(self, stats, False)),
    "compiled_density": bug(UNIGRAMS, compiled=lambda self, data: UNIGRAMS.compiled(replace(self, eta=2.0), data)),
    "compiled_gradient": bug(UNIGRAMS, compiled=lambda self, data: UNIGRAMS.compiled(replace(self, eta=2.0), data)),
    "statistics_density": bug(FACTORS, compressed=lambda self, stats: FACTORS.compressed(replace(self, w0=1.1), stats)),
    "statistics_gradient": bug(
        FACTORS, compressed=lambda self, stats: FACTORS.compressed(replace(self, w0=1.1), stats)
    ),
    "likelihood_of_rows": bug(
        UNIGRAMS,
        likelihood=lambda self, params, data: UNIGRAMS.likelihood(
            self, {**params, "weights": params["weights"][..., ::-1]}, data
        ),
    ),
    "labels_mean_nothing": bug(
        UNIGRAMS, log_prior=off(UNIGRAMS.log_prior, lambda params, data: params["weights"][..., 0])
    ),
    "bound": bug(UNIGRAMS, divergence=lambda self, q: UNIGRAMS.divergence(self, q) / 4),
    "one_component": bug(UNIGRAMS, divergence=lambda self, q: UNIGRAMS.divergence(self, q) + 1e-6),
    "enumerated_candidate": bug(UNIGRAMS, log_joint=off(UNIGRAMS.log_joint, lambda z, data: 1e-6)),
    "enumerated_row_order": bug(
        UNIGRAMS, log_joint=off(UNIGRAMS.log_joint, lambda z, data: 1e-3 * data["counts"][0, 0])
    ),
    "enumerated_units": bug(GAUSSIAN, log_joint=off(GAUSSIAN.log_joint, lambda z, data: 1e-3 * data["Y"].sum())),
    "simulation_based": bug(
        UNIGRAMS, simulate=lambda self, rng, size=20: UNIGRAMS.simulate(UNIGRAMS(alpha=500.0, eta=500.0), rng, size)
    ),
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


def test_every_identity_of_latent_variables_has_a_seeded_bug():
    assert {one.function for one in IDENTITIES if "EM" in one.needs} == BUGS.keys()
