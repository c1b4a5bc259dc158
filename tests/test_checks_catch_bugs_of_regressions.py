"""The bugs that a careful reviewer would fear in the linear models, and the identity that must catch each.

That the models themselves pass, on these very cases, is `test_contract`. In the steps of the bugs m is the model, d the
data, s their statistics and p the parameters; ``right(m)`` has the steps without the bug.
"""

import math
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pymc as pm
import pytest

from bayeszoo.contract.case import Case, case_of
from bayeszoo.contract.check import applicable, run_identity
from bayeszoo.families.linear.declaration import Whitened
from bayeszoo.families.statistics.factored import FactoredMoments
from bayeszoo.model.find import find
from tests.quick import base_of, named, off_by, one_bug_an_identity, right, seed

Ridge, LinearRegression, BayesianLasso = (find(n) for n in ("ridge", "linear_regression", "bayesian_lasso"))

BUGS = []
ridge, regression, lasso = (partial(seed, BUGS, model) for model in (Ridge, LinearRegression, BayesianLasso))


def without_intercept(m, d):
    declared = right(m).declare(d)
    rows = declared["terms"].get_value()
    declared["terms"].set_value(rows * (np.arange(rows.shape[1]) > 0))
    return declared


def less_noise(m, s, d):
    predictive = right(m).predictive(s, d)
    mean, sd = predictive.args
    predictive.args = (mean, np.sqrt(sd**2 - 0.5 * m.sigma**2))
    return predictive


def other_powers(change):
    """Return a step that changes the features and their scales."""
    return lambda m, d: change(m, d, *right(m)._powers(d))


class NotPooled(FactoredMoments):
    def __add__(self, other):
        return replace(super().__add__(other), root=np.vstack([self.root, other.root]))


def without_jacobian(m, d):
    stats = m.statistics(d)
    whitened = Whitened(m.in_units(stats, m.standardized_weights(stats)))
    whitened.numbers = (*whitened.numbers[:3], np.float64(0.0))
    units = m.units(stats)
    with pm.Model(coords=m.coords(d)) as model:
        w = pm.Normal("w", m.origin(len(units)), m.term_scales(len(units), m.s0, "tau") / units, transform=whitened)
        pm.Normal("y", m.design(d) @ w, m.sigma, observed=d["y"])
    return model


ridge("independent_density candidate_identity compressed_density", "NoIntercept", declare=without_intercept)
noise = off_by(lambda m, s: s.n * math.log(m.sigma))
ridge("candidate_identity chain_rule", "NoiseForgottenInTheEvidence", log_evidence=noise)
determinant = off_by(lambda m, s: m.standardized_weights(s).log_det / 2)
ridge("candidate_identity chain_rule", "DeterminantForgottenInTheEvidence", log_evidence=determinant)
of_root = {"posterior": lambda m, s: Ridge(**{**vars(m), "tau": tuple(np.sqrt(m.tau))}).posterior(s)}
ridge("no_data candidate_identity", "TauReadAsVariance", **of_root)
ridge("candidate_identity", "WeightsInTheWrongUnits", units=lambda m, s: 1 / right(m).units(s))
ridge("chain_rule", "PredictiveWithoutTheNoise", predictive=less_noise)
ridge("compressed_density", "OneRowLost", compressed=lambda m, s: right(m).compressed(replace(s, n=s.n - 1)))
centred = other_powers(lambda m, d, features, scale: (features + m.entries("center", len(d["feature"])), scale))
ridge("feature_units", "CentreForgotten", _powers=centred)
ridge("units", "OriginForgotten", equations=lambda m, s: s.equations(m.intercept, 0.0))
rolled = other_powers(lambda m, d, features, scale: (features, np.roll(scale, 1) * np.arange(1, len(scale) + 1)))
ridge("label_order", "ScaleOfTheOtherFeature", _powers=rolled)
ridge("batches", "MeansNotPooled", statistics=lambda m, d: NotPooled(**vars(right(m).statistics(d))))
ridge("map_is_the_maximum", "ModeShrunkTwice", map=lambda m, s: {"w": right(m).map(s)["w"] * 0.99})
ridge("mle_is_the_maximum", "MleWithRidge", mle=lambda m, s: m.map(s))
ridge("jacobian", "WhitenedWithoutItsJacobian", declare=without_jacobian)


def learned_otherwise(change):
    """Return a step that changes the least squares, the shape and the scale of what is learned."""
    return lambda m, s: change(m, s, *right(m)._learned(s))


def mode_of_the_marginal(m, s):
    found, shape, scale = m._learned(s)
    return {"w": m.in_units(s, found).mean, "sigma2": scale / (shape + 1)}


def unbiased_variance(m, s):
    mle = right(m).mle(s)
    return {**mle, "sigma2": mle["sigma2"] * s.n / (s.n - len(mle["w"]))}


misfit = learned_otherwise(lambda m, s, found, shape, scale: (found, shape, m.b0 + found.squared_error / 2))
regression("candidate_identity chain_rule", "MisfitOfTheModeAlone", _learned=misfit)
by_rows = learned_otherwise(lambda m, s, found, shape, scale: (found, shape + s.n / 2, scale))
regression("candidate_identity chain_rule", "ShapeGrowsByRows", _learned=by_rows)
squared = lambda m, s: LinearRegression(**{**vars(m), "V0": np.square(m.V0)}).posterior(s)  # noqa: E731
regression("no_data", "CovarianceReadAsRoot", posterior=squared)
regression("batches", "UpdatedForgetsTheMean", updated=lambda m, s: replace(right(m).updated(s), w0=m.w0))
regression("derived_quantities", "SigmaIsTheVariance", derived=lambda m, p: {"sigma": np.asarray(p["sigma2"])})
regression("map_is_the_maximum", "ModeOfTheMarginal", map=mode_of_the_marginal)
regression("mle_is_the_maximum", "UnbiasedVariance", mle=unbiased_variance)
regression("free_parameters", "NoiseNotCounted", free_parameters=lambda m, s: len(m.units(s)))


def soft_threshold(m, s):
    w = m.mle(s)["w"]
    return {"w": np.sign(w) * np.maximum(np.abs(w) - 1e-3, 0)}


def from_a_gaussian(m, rng, size=20):
    _, data = right(m).simulate(rng, size)
    origin, b = m.laplace_prior(m.nothing(data))
    w = rng.normal(origin, math.sqrt(2) * b)
    return {"w": w}, {**data, "y": rng.normal(m.design(data) @ w, m.sigma)}


lasso(
    "candidate_identity no_data",
    "RateReadAsScale",
    prior_scales=lambda m, terms: 1 / right(m).prior_scales(terms),
    declare=lambda m, d: BayesianLasso(**vars(m)).declare(d),
)
lasso("map_is_the_maximum", "SoftThresholdOfLeastSquares", map=soft_threshold)
lasso("simulator", "SimulatedFromAGaussian", simulate=from_a_gaussian)


right_case = cache(case_of)


@cache
def case(bug):
    """The simulated case of the right model, with the bug's class in its place; what is compiled is shared."""
    without = right_case(base_of(bug))
    made = Case(bug(**vars(without.model)), without.data, without.seed)
    for name, method in (("declared", "declare"), ("compressed", "compressed")):
        changed = {method, "units", "_powers", "equations", "_prior", "prior_scales", "statistics"} & vars(bug).keys()
        if not changed:
            vars(made)[name] = getattr(without, name)
    return made


@pytest.mark.parametrize(("bug", "function", "form"), one_bug_an_identity(BUGS), ids=named)
def test_bug_is_caught(bug, function, form):
    (identity,) = (one for one in applicable(bug) if one.function == function)
    try:
        check = run_identity(identity, case(bug))
    except (ValueError, AttributeError, IndexError, KeyError) as error:
        pytest.fail(f"the bug raised {error!r}, which says nothing about the identity")
    assert not check.passed, str(check)
