"""The bugs that a careful reviewer would fear in the linear models, and the identity that must catch each.

That the models themselves pass, on these very cases, is `test_contract`.
"""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pymc as pm
import pytest

from bayeszoo.contract.cases import case_of
from bayeszoo.contract.check import applicable, run_identity
from bayeszoo.families.linear.declaration import Whitened
from bayeszoo.families.linear.least_squares import solve
from bayeszoo.families.statistics.factored import FactoredMoments
from bayeszoo.model.find import find
from tests.quick import one_bug_an_identity

Ridge, LinearRegression, BayesianLasso = (find(n) for n in ("ridge", "linear_regression", "bayesian_lasso"))

BUGS = []


def caught_by(*identities):
    """Seed a bug: each of the identities must fail on it."""

    def seed(bug):
        BUGS.extend((bug, identity) for identity in identities)
        return bug

    return seed


@caught_by("independent_density", "candidate_identity", "compressed_density")
class InterceptForgottenInTheDesign(Ridge):
    def declare(self, data):
        right = super().declare(data)
        rows = right["terms"].get_value()
        right["terms"].set_value(rows * (np.arange(rows.shape[1]) > 0))
        return right


@caught_by("candidate_identity", "chain_rule")
class NoiseForgottenInTheEvidence(Ridge):
    def log_evidence(self, stats):
        return super().log_evidence(stats) + stats.n * math.log(self.sigma)


@caught_by("candidate_identity", "chain_rule")
class DeterminantForgottenInTheEvidence(Ridge):
    def log_evidence(self, stats):
        return super().log_evidence(stats) + self.standardized_weights(stats).log_det / 2


@caught_by("no_data", "candidate_identity")
class TauReadAsVariance(Ridge):
    def posterior(self, stats):
        return Ridge(**{**vars(self), "tau": math.sqrt(self.tau)}).posterior(stats)


@caught_by("candidate_identity")
class WeightsInTheWrongUnits(Ridge):
    def units(self, stats):
        return 1 / super().units(stats)


@caught_by("chain_rule")
class PredictiveWithoutTheNoise(Ridge):
    def predictive(self, stats, data):
        right = super().predictive(stats, data)
        right.kwds["scale"] = right.args[1]
        mean, sd = right.args
        right.args = (mean, np.sqrt(sd**2 - 0.5 * self.sigma**2))
        right.kwds = {}
        return right


@caught_by("compressed_density")
class OneRowLost(Ridge):
    def compressed(self, stats):
        return super().compressed(replace(stats, n=stats.n - 1))


@caught_by("feature_units")
class CentreForgotten(Ridge):
    def _powers(self, data):
        features, scale = super()._powers(data)
        return features + self.entries("center", len(data["feature"])), scale


@caught_by("units")
class OriginForgotten(Ridge):
    def equations(self, stats):
        return stats.equations(self.intercept, 0.0)


@caught_by("label_order")
class ScaleOfTheOtherFeature(Ridge):
    def _powers(self, data):
        features, scale = super()._powers(data)
        return features, np.roll(scale, 1) * np.arange(1, len(scale) + 1)


@caught_by("batches")
class MeansNotPooled(Ridge):
    def statistics(self, data):
        return _NotPooled(**vars(super().statistics(data)))


class _NotPooled(FactoredMoments):
    def __add__(self, other):
        pooled = super().__add__(other)
        return replace(pooled, root=np.vstack([self.root, other.root]))


@caught_by("map_is_the_maximum")
class ModeShrunkTwice(Ridge):
    def map(self, stats):
        return {"w": super().map(stats)["w"] * 0.99}


@caught_by("mle_is_the_maximum")
class MleWithRidge(Ridge):
    def mle(self, stats):
        return self.map(stats)


@caught_by("jacobian")
class WhitenedWithoutItsJacobian(Ridge):
    def declare(self, data):
        stats = self.statistics(data)
        whitened = Whitened(self.in_units(stats, self.standardized_weights(stats)))
        whitened.numbers = (*whitened.numbers[:3], np.float64(0.0))
        units = self.units(stats)
        with pm.Model(coords=self.coords(data)) as model:
            w = pm.Normal("w", self.origin(len(units)), self._prior_sd(len(units)) / units, transform=whitened)
            pm.Normal("y", self.design(data) @ w, self.sigma, observed=data["y"])
        return model


@caught_by("candidate_identity", "chain_rule")
class MisfitOfTheModeAlone(LinearRegression):
    def _learned(self, stats):
        found, shape, _ = super()._learned(stats)
        return found, shape, self.b0 + found.squared_error / 2


@caught_by("candidate_identity", "chain_rule")
class ShapeGrowsByRows(LinearRegression):
    def _learned(self, stats):
        found, shape, scale = super()._learned(stats)
        return found, shape + stats.n / 2, scale


@caught_by("no_data")
class CovarianceReadAsRoot(LinearRegression):
    def _prior(self, stats):
        mean, root = super()._prior(stats)
        return mean, root @ root.T


@caught_by("batches")
class UpdatedForgetsTheMean(LinearRegression):
    def updated(self, stats):
        return replace(super().updated(stats), w0=self.w0)


@caught_by("derived_quantities")
class SigmaIsTheVariance(LinearRegression):
    def derived(self, params):
        return {"sigma": np.asarray(params["sigma2"])}


@caught_by("map_is_the_maximum")
class ModeOfTheMarginal(LinearRegression):
    def map(self, stats):
        found, shape, scale = self._learned(stats)
        return {"w": self.in_units(stats, found).mean, "sigma2": scale / (shape + 1)}


@caught_by("mle_is_the_maximum")
class UnbiasedVariance(LinearRegression):
    def mle(self, stats):
        right = super().mle(stats)
        return {**right, "sigma2": right["sigma2"] * stats.n / (stats.n - len(right["w"]))}


@caught_by("free_parameters")
class NoiseNotCounted(LinearRegression):
    def free_parameters(self, stats):
        return len(self.units(stats))


@caught_by("candidate_identity", "no_data")
class RateReadAsScale(BayesianLasso):
    def prior_scales(self, terms):
        return super().prior_scales(terms) if self._declaring else 1 / super().prior_scales(terms)

    _declaring = False

    def declare(self, data):
        return BayesianLasso(**vars(self)).declare(data)


@caught_by("map_is_the_maximum")
class SoftThresholdOfLeastSquares(BayesianLasso):
    def map(self, stats):
        w = self.mle(stats)["w"]
        return {"w": np.sign(w) * np.maximum(np.abs(w) - 1e-3, 0)}


@caught_by("simulator")
class SimulatedFromAGaussian(BayesianLasso):
    def simulate(self, rng, size=20):
        _, data = super().simulate(rng, size)
        origin, b = self.laplace_prior(self.nothing(data))
        w = rng.normal(origin, math.sqrt(2) * b)
        return {"w": w}, {**data, "y": rng.normal(self.design(data) @ w, self.sigma)}


right_case = cache(case_of)


@cache
def case(bug):
    """The simulated case of the right model, with the bug's class in its place; what is compiled is shared."""
    base = next(c for c in bug.__mro__[1:] if c.__module__.startswith("bayeszoo.models."))
    right = right_case(base)
    made = type(right)(bug(**vars(right.model)), right.data, right.seed)
    for name, method in (("declared", "declare"), ("compressed", "compressed")):
        changed = {method, "units", "_powers", "equations", "_prior", "prior_scales", "statistics"} & vars(bug).keys()
        if not changed:
            vars(made)[name] = getattr(right, name)
    return made


@pytest.mark.parametrize(
    ("bug", "function"), one_bug_an_identity(BUGS), ids=lambda p: p if isinstance(p, str) else p.__name__
)
def test_bug_is_caught(bug, function):
    (identity,) = (one for one in applicable(bug) if one.function == function)
    try:
        check = run_identity(identity, case(bug))
    except (ValueError, AttributeError, IndexError, KeyError) as error:
        pytest.fail(f"the bug raised {error!r}, which says nothing about the identity")
    assert not check.passed, str(check)


def test_normal_equations_would_be_seen():
    # nearly collinear columns: the candidate identity through X'X is off, through singular values it is not
    rng = np.random.default_rng(0)
    first = rng.standard_normal(50)
    design = np.column_stack([first, first + 1e-9 * rng.standard_normal(50)])
    root = np.linalg.qr(design, mode="r")
    tau, outcome = 1e6, np.zeros(2)
    right = solve(root, outcome, np.zeros(2), tau * np.eye(2)).log_det
    wrong = np.linalg.slogdet(np.eye(2) + tau**2 * design.T @ design)[1]
    direct = solve(design, np.zeros(50), np.zeros(2), tau * np.eye(2)).log_det
    assert abs(right - direct) < 1e-6
    assert abs(wrong - direct) > 1e-4
