"""The identities of what methods and answers compute fail where Laplace's evidence or a decoded state is wrong.

Laplace's method is run, which compiles: models of one parameter, whose graphs are small.
"""

import json
import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy import integrate, special, stats

import bayeszoo as bz
from bayeszoo.contract.answered import decoded_states, laplace_evidence
from bayeszoo.contract.case import case_of
from bayeszoo.contract.check import applicable
from bayeszoo.families.hmm import passes, paths
from bayeszoo.inference.engine.approximation import Gaussian
from bayeszoo.inference.methods import mode
from bayeszoo.model.capabilities import PointMasses
from tests.bad_models.logit_coin import LogitCoin

HIDDEN = ("hmm_categorical", "hmm_gaussian", "hmm_poisson")
right_case = cache(lambda name: case_of(bz.find(name)))


def test_both_are_of_every_model_that_they_suit():
    has = {name: {one.function for one in applicable(bz.find(name))} for name in bz.names()}
    assert all(("laplace_evidence" in has[name]) is not issubclass(bz.find(name), PointMasses) for name in has)
    assert all(("decoded_states" in has[name]) is (name in HIDDEN) for name in has)


def another_pi(patch):
    patch.setattr(mode, "LOG_2_PI", np.log(2 * 3.14))


def volume_of_the_precision(patch):
    patch.setattr(Gaussian, "log_volume", property(lambda q: -float(np.sum(np.log(np.diag(q.scale))))))


def another_mode(**changes):
    climb = mode.maximize

    def patched(patch):
        patch.setattr(
            mode, "maximize", lambda *at: replace(there := climb(*at), **{k: f(there) for k, f in changes.items()})
        )

    return patched


LAPLACE = {
    "another_pi": another_pi,
    "volume_of_the_precision": volume_of_the_precision,
    "curvature_of_twice_the_density": another_mode(precision=lambda there: 2 * there.precision),
    "height_off": another_mode(value=lambda there: there.value + 1e-4),
    "mode_of_another_point": another_mode(x=lambda there: there.x + 0.2, value=lambda there: there.value - 0.02),
}


@pytest.mark.parametrize("name", ["gaussian_mean", "beta_bernoulli"])
def test_laplace_s_evidence_is_right(name):
    assert laplace_evidence(right_case(name)).passed


@pytest.mark.parametrize("bug", LAPLACE)
def test_a_wrong_evidence_of_laplace_is_caught(bug, monkeypatch):
    LAPLACE[bug](monkeypatch)
    assert not laplace_evidence(right_case("gaussian_mean")).passed


def test_an_evidence_that_is_not_the_exact_one_of_a_gaussian_is_caught(monkeypatch):
    case = case_of(bz.find("gaussian_mean"))
    case.__dict__["log_evidence"] = case.log_evidence + 1e-5
    assert not laplace_evidence(case).passed


VITERBI = {
    "the_state_of_each_row_alone": (
        "viterbi",
        lambda right: lambda *chain: (np.argmax(chain[2], axis=1), right(*chain)[1]),
    ),
    "backwards": ("viterbi", lambda right: lambda *chain: (right(*chain)[0][::-1], right(*chain)[1])),
    "transposed": (
        "viterbi",
        lambda right: lambda pi, a, *rest: right(pi, a.T / a.T.sum(axis=1, keepdims=True), *rest),
    ),
    "first_row_forgotten": ("viterbi", lambda right: lambda pi, *rest: right(np.full_like(pi, 1 / len(pi)), *rest)),
    "value_off": ("viterbi", lambda right: lambda *chain: (right(*chain)[0], right(*chain)[1] + 1e-6)),
}
PASSES = {
    "predicted_for_filtered": (
        "forward",
        lambda right: lambda *chain: (r := right(*chain))._replace(filtered=r.predicted),
    ),
    "likelihood_off": ("log_likelihood", lambda right: lambda *chain: right(*chain) + 1e-6),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_decoded_states_are_right(name):
    assert decoded_states(right_case(name)).passed


@pytest.mark.parametrize(("owner", "bug"), [*((paths, bug) for bug in VITERBI), *((passes, bug) for bug in PASSES)])
def test_a_wrong_path_or_probability_is_caught(owner, bug, monkeypatch):
    name, wrong = {**VITERBI, **PASSES}[bug]
    monkeypatch.setattr(owner, name, wrong(getattr(owner, name)))
    assert not decoded_states(right_case("hmm_categorical")).passed


def test_wrong_probabilities_of_states_are_caught(monkeypatch):
    model = bz.find("hmm_categorical")
    right = model.component_probabilities
    monkeypatch.setattr(
        model, "component_probabilities", lambda self, params, data: right(self, params, data)[..., ::-1]
    )
    assert not decoded_states(right_case("hmm_categorical")).passed


class CountedCoin(LogitCoin):
    def log_coefficient(self, data):
        return float(np.log(special.comb(data["trials"], data["successes"])).sum()) if "trials" in data else 0.0


GROUPS = bz.find("beta_binomial")(a=2.0, b=2.0)
TRIALS = {"successes": [3, 6, 1, 19], "trials": [10, 12, 8, 30]}


def evidence_of_the_coin():
    def density(psi):
        chance = special.expit(psi)
        return stats.norm.pdf(psi) * chance ** sum(TRIALS["successes"]) * (1 - chance) ** 31

    return math.log(integrate.quad(density, -8, 8, epsabs=0)[0])


def evidence_of_groups():
    tree = bz.fit(GROUPS, {**TRIALS, "group": list("abcd")}, "exact", seed=1, groups=())
    return tree["exact"].attrs["log_evidence"]


@pytest.mark.parametrize(
    ("model", "data", "expected"),
    [
        (CountedCoin(), TRIALS, evidence_of_the_coin),
        (GROUPS, {**TRIALS, "group": list("abcd")}, evidence_of_groups),
    ],
)
def test_evidence_by_a_declaration_of_counts_is_of_the_ordered_trials(model, data, expected):
    """It is so by Laplace's method, the ELBO and SMC alike: they have one density. The coefficient is 35 nats."""
    tree = bz.fit(model, data, "laplace", seed=1, groups=())
    facts = json.loads(tree.attrs["facts"])
    assert facts["log_evidence"] == pytest.approx(expected(), abs=0.5)
    assert facts["elbo"] == pytest.approx(expected(), abs=0.5)
