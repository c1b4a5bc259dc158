"""Models without a closed form are held to their declaration and their simulator, by checks that see seeded bugs."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import pymc as pm
import pytest
import scipy

from bayeszoo.contract.case import case_of, cases_of
from bayeszoo.contract.check import applicable, check, run_identity
from bayeszoo.data.inputs import Real
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.model import Latent, Observable, Symmetric, positive
from bayeszoo.model.find import find
from tests.bad_models.flat_mean import FlatMean
from tests.bad_models.grouped import Grouped
from tests.bad_models.logit_coin import LogitCoin
from tests.own_models.hmm_example import HMMExample
from tests.quick import named, one_bug_an_identity, right, seed
from tests.refusals import raises

RobustRegression = find("robust_regression")
SLOW = pytest.param(HMMExample, marks=pytest.mark.slow)


@dataclass(frozen=True)
class Twins(Observable, Latent, Symmetric):
    """Two normals of known spread and equal weight, each row from either: whatever a plain model can have."""

    width: float = positive(3.0, "prior sd of a mean", units=1)

    inputs = Real("y")
    dims: ClassVar = {"mu": ("component",)}
    K = 2

    def coords(self, data):
        return {"component": [1, 2]}

    def simulate(self, rng, size=20):
        mu = rng.normal(0, self.width, 2)
        return {"mu": mu}, {"y": rng.normal(mu[rng.integers(2, size=size)], 1)}

    def declare(self, data):
        with pm.Model(coords=self.coords(data)) as model:
            mu = pm.Normal("mu", np.float64(0), self.width, dims="component")
            half, one = np.full(2, 0.5), np.float64(1)
            pm.NormalMixture("y", half, mu, one, observed=pm.Data("y_data", data["y"], dims="row"), dims="row")
        return model

    def compiled(self, data):
        return self.declare(data)

    def likelihood(self, params, data):
        return Halves(np.asarray(params["mu"])[..., None, :] + np.zeros((len(data["y"]), 2)))

    def component_probabilities(self, params, data):
        each = scipy.stats.norm.pdf(data["y"][:, None], np.asarray(params["mu"])[..., None, :], 1)
        return each / each.sum(axis=-1, keepdims=True)

    def derived(self, params):
        return {"gap": np.ptp(params["mu"], axis=-1)}

    def exchangeable_axis(self):
        return "component"

    def invariants(self, params, data):
        return {"gap": np.ptp(params["mu"], axis=-1)}


@dataclass(frozen=True)
class Halves:
    """The mixture of two normals of sd 1 in equal parts, times ``mass``."""

    mu: np.ndarray
    mass: float = 1.0

    def mean(self):
        return self.mu.mean(axis=-1)

    def logpdf(self, y):
        return np.log(self.mass * scipy.stats.norm.pdf(np.asarray(y)[..., None], self.mu, 1).mean(axis=-1))

    def cdf(self, y):
        return scipy.stats.norm.cdf(np.asarray(y)[..., None], self.mu, 1).mean(axis=-1)


BUGS = []
robust, grouped, coin, twins, hmm = (
    partial(seed, BUGS, base) for base in (RobustRegression, Grouped, LogitCoin, Twins, HMMExample)
)


def redrawn(change):
    """Return a `simulate` whose parameters are changed after the data were drawn from them."""

    def simulate(m, rng, size=20):
        params, data = right(m).simulate(rng, size)
        return {name: change(name, values) for name, values in params.items()}, data

    return simulate


def t(scale=1, sign=1):
    def likelihood(m, params, data):
        return scipy.stats.t(m.nu, sign * m.mean(params, data), scale * np.asarray(params["sigma"])[..., None])

    return likelihood


def other_labels(m, rng, size=20):
    data = right(m).simulate(rng, size)[1]
    return right(m).simulate(rng, size)[0], data


def declared_with(add):
    def compiled(m, data):
        model = right(m).declare(data)
        with model:
            pm.Potential("more", add * model["mu"].sum())
        return model

    return compiled


robust("declared_likelihood", "WrongSign", likelihood=t(sign=-1))
robust("declared_likelihood", "OtherUnits", likelihood=t(scale=1000))
robust("declared_likelihood", "WeightsOfTheRowsAreLost", likelihood=lambda m, p, d: t()(m, {**p, "w": 0 * p["w"]}, d))
robust(
    "likelihood_shape", "RowsBeforeDraws", likelihood=lambda m, p, d: scipy.stats.norm(np.zeros((d["y"].size, 1)), 1)
)
robust("simulated_rows", "SimulatedWithTheOppositeWeights", simulate=redrawn(lambda k, v: -v if k == "w" else v))
robust("simulated_rows", "SimulatedWithOtherParameters", simulate=other_labels)
robust("simulated_rows", "SimulatedNoiseTooWide", simulate=redrawn(lambda k, v: v / 1.3 if k == "sigma" else v))
robust("simulated_prior", "PriorSdDoubled", simulate=redrawn(lambda k, v: 2 * v if k == "w" else v))
grouped("simulated_rows", "SdInPlaceOfVariance", simulate=lambda m, rng, size=20: twice_as_wide(m, rng, size))
grouped("simulated_rows", "NextGroup", simulate=redrawn(lambda k, v: np.roll(v, 1)))
grouped("simulated_prior", "PriorVarianceForSd", width=7.0, simulate=lambda m, rng, size=20: of_variance(m, rng, size))
coin("declared_likelihood likelihood_sums_to_one", "TwoTrials", likelihood=lambda m, p, d: of_two_trials(p, d))
unnormalized = lambda m, p, d: Halves(right(m).likelihood(p, d).mu, (2 * np.pi) ** 0.5)  # noqa: E731
twins("declared_likelihood", "ConstantDropped", likelihood=unnormalized)
twins("derived_quantities", "OverTheDraws", derived=lambda m, p: {"gap": np.ptp(p["mu"], axis=0)})
twins("compiled_density compiled_gradient", "CompiledWithAnotherTerm", compiled=declared_with(0.1))
twins(
    "assignments", "NotNormalized", component_probabilities=lambda m, p, d: 0.9 * right(m).component_probabilities(p, d)
)
twins("labels_mean_nothing", "FirstComponentOnly", invariants=lambda m, p, d: {"gap": p["mu"][..., 0]})
twins("names_of_axes", "AxesNotNamed", dims={})
hmm("simulated_rows", "StatesSwapped", simulate=redrawn(lambda k, v: v[::-1] if k == "theta" else v))


def twice_as_wide(m, rng, size):
    params, _ = right(m).simulate(rng, size)
    return params, {"y": rng.normal(params["mu"][np.arange(size) % 3], 2**0.5)}


def of_variance(m, rng, size):
    mu = rng.normal(0, m.width**0.5, 3)
    return {"mu": mu}, {"y": rng.normal(mu[np.arange(size) % 3], 1)}


def of_two_trials(params, data):
    return scipy.stats.binom(np.full(len(next(iter(data.values()))), 2), scipy.special.expit(params["psi"])[..., None])


def identity(kind, function):
    return next(one for one in applicable(kind) if one.function == function)


@pytest.mark.parametrize(("bug", "function", "form"), one_bug_an_identity(BUGS), ids=named)
def test_bug_is_caught(bug, function, form):
    found = run_identity(identity(bug, function), case_of(bug))
    assert not found.passed, str(found)


@pytest.mark.parametrize("kind", [Twins, LogitCoin, FlatMean, RobustRegression, SLOW], ids=named)
def test_right_model_passes(kind):
    case = case_of(kind)
    for one in applicable(kind):
        found = run_identity(one, case)
        assert found.passed, str(found)


def test_a_constant_off_at_every_point_is_named():
    bug = next(bug for bug, _, _ in BUGS if bug.__name__ == "ConstantDropped")
    found = run_identity(identity(bug, "declared_likelihood"), case_of(bug))
    assert f"but for {20 * 0.5 * np.log(2 * np.pi):.6g} nats at every point" in found.name


@pytest.mark.parametrize("error", [NumericalError, NotImplementedError])
def test_check_without_a_prior_to_draw_from_uses_the_examples(error):
    def refused(self, rng, size=20):
        raise error("a flat prior cannot be drawn from")

    kind = type("FlatRobust", (RobustRegression,), {"simulate": refused, "__module__": __name__})
    assert [case.data.source for case in cases_of(kind)] == ["airquality.csv"]
    failed = [found for found in check(kind, sampler=False) if not found.passed]
    assert [found.name for found in failed] == ["simulated_prior", "simulated_rows"]
    assert all("a flat prior cannot be drawn from" in str(found) for found in failed)
    with raises(InputError, "bad_case"):
        cases_of(type("NoExamples", (kind,), {"examples": (), "__module__": __name__}))
