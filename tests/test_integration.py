"""Models of groups, exact by quadrature: against SciPy's integrals, published figures, and seeded bugs."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
import scipy
from bayeszoo.models.beta_binomial import BetaBinomial
from bayeszoo.models.gamma_poisson_groups import GammaPoissonGroups
from bayeszoo.models.normal_means import NormalMeans
from scipy import stats

import bayeszoo as bz
from bayeszoo.compile.density import Density
from bayeszoo.contract.case import case_of
from bayeszoo.contract.conditional import conditional_candidate, marginalized_density, quadrature
from bayeszoo.distributions import frozen
from bayeszoo.distributions.averages.integrated import InnerMarginal, Moments
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.distributions.scale import Scale
from bayeszoo.foundation.gate import failures, passed, verdict
from bayeszoo.foundation.numerics import grid as rules
from bayeszoo.inference.methods.modes import outer, surface
from bayeszoo.inference.problem import Problem
from bayeszoo.model.outer.integration import integrate
from bayeszoo.results.stored import Fit
from bayeszoo.results.summary import document
from tests.refusals import raises

SCHOOLS = NormalMeans(m0=0, s0=5, t0=5)


@pytest.fixture(scope="module")
def schools():
    return bz.example(NormalMeans)


@pytest.fixture(scope="module")
def schools_exact(schools):
    return integrate(SCHOOLS, schools)


def over_tau(data, function):
    """Integrate a function of tau, times the density of tau and the estimates, by SciPy's quadrature."""
    y, se = data["y"], data["se"]

    def integrand(tau):
        density = stats.multivariate_normal(np.zeros(len(y)), np.diag(tau**2 + se**2) + 25).pdf(y)
        return function(tau) * density * stats.halfcauchy.pdf(tau, scale=5)

    options = {"epsabs": 0, "epsrel": 1e-11, "limit": 400}
    parts = [scipy.integrate.quad(integrand, *ends, **options)[0] for ends in ((0, 10), (10, 100), (100, np.inf))]
    return math.fsum(parts)


def effect_given(data, tau, j):
    """Return mean and sd of an effect given tau: the rule for a joint Gaussian of effect and estimates."""
    cov = np.diag(np.full(len(data["y"]), tau**2)) + 25
    gain = np.linalg.solve(cov + np.diag(data["se"] ** 2), cov[j])
    return gain @ data["y"], math.sqrt(cov[j, j] - gain @ cov[j])


def test_schools_are_those_of_scipys_quadrature(schools, schools_exact):
    evidence = over_tau(schools, lambda tau: 1.0)
    theta, tau = schools_exact.posterior["theta"], schools_exact.posterior["tau"]
    assert schools_exact.log_evidence == pytest.approx(math.log(evidence), abs=1e-9)
    assert float(tau.mean()) == pytest.approx(over_tau(schools, lambda t: t) / evidence, rel=1e-8)
    for j in (0, 5):
        mean = over_tau(schools, lambda t, j=j: effect_given(schools, t, j)[0]) / evidence
        second = over_tau(schools, lambda t, j=j: np.square(effect_given(schools, t, j)).sum()) / evidence
        assert theta.mean()[j] == pytest.approx(mean, rel=1e-8)
        assert theta.std()[j] == pytest.approx(math.sqrt(second - mean**2), rel=1e-8)
        quantile = theta.ppf(0.025)[j]
        below = over_tau(schools, lambda t, j=j, q=quantile: stats.norm.cdf(q, *effect_given(schools, t, j))) / evidence
        assert below == pytest.approx(0.025, abs=1e-5)
    median = float(tau.ppf(0.5))
    assert over_tau(schools, lambda t: float(t < median)) / evidence == pytest.approx(0.5, abs=1e-5)


def test_schools_are_as_published(schools, schools_exact):
    posterior = schools_exact.posterior
    figures = [posterior[name].mean() for name in ("mu", "tau")] + [posterior["theta"].mean()[0]]
    assert np.round(np.array(figures, dtype=float), 4).tolist() == [4.3968, 3.5977, 6.2119]
    wide = integrate(NormalMeans(m0=0, s0=1e4, t0=1e4), schools).posterior["theta"]
    quantiles = [wide.ppf(level)[0] for level in (0.025, 0.25, 0.5, 0.75, 0.975)]
    assert np.round(quantiles, 1).tolist() == [-2.1, 6.0, 10.2, 15.5, 31.6]  # BDA3, table 5.3: -2 7 10 16 31


def brute_force(log_density, low, high, points=600):
    """Return a weight for each point of a fine grid of two coordinates, and the log of the integral."""
    axes = [np.linspace(*ends, points) for ends in zip(low, high, strict=True)]
    heights = log_density(*np.meshgrid(*axes, indexing="ij"))
    log_integral = scipy.special.logsumexp(heights) + math.log(math.prod(axis[1] - axis[0] for axis in axes))
    return axes, scipy.special.softmax(heights), log_integral


def test_rats_are_those_of_a_fine_grid_and_as_published():
    data = bz.example(BetaBinomial)
    y, n = data["successes"], data["trials"]

    def log_density(logit, log_size):
        mean, size = scipy.special.expit(logit), np.exp(log_size)
        slopes = np.log(mean) + np.log1p(-mean) + log_size
        terms = sum(stats.betabinom.logpmf(*row, mean * size, (1 - mean) * size) for row in zip(y, n, strict=True))
        return terms + stats.pareto.logpdf(size, 0.5) + slopes

    (logits, log_sizes), mass, log_integral = brute_force(log_density, (-2.8, 1e-9), (-0.8, 6.0), 200)
    mean, size = scipy.special.expit(logits)[:, None], np.exp(log_sizes)
    exact = integrate(BetaBinomial(), data)
    ordered = log_integral - BetaBinomial().log_coefficient(data)
    assert (exact.log_evidence, round(exact.log_evidence, 5)) == (pytest.approx(ordered, abs=1e-6), -736.00688)
    assert float(exact.posterior["mean"].mean()) == pytest.approx(np.sum(mass * mean), rel=1e-6)
    last = np.sum(mass * (mean * size + 4) / (size + 14))
    assert exact.posterior["theta"].mean()[70] == pytest.approx(last, rel=1e-6)
    assert round(float(exact.posterior["theta"].mean()[70]), 5) == 0.21086
    assert (np.sum(mass * mean * size), np.sum(mass * (1 - mean) * size)) == pytest.approx((2.4027, 14.3202), abs=1e-3)


def test_pumps_are_as_published():
    posterior = integrate(GammaPoissonGroups(), bz.example(GammaPoissonGroups)).posterior
    lam = posterior["lam"]
    shown = [posterior["shape"].mean(), posterior["rate"].mean(), lam.mean()[0], lam.std()[0], lam.mean()[9]]
    assert np.array(shown, dtype=float) == pytest.approx([0.697, 0.925, 0.0598, 0.0252, 1.994], abs=1e-3)


@pytest.mark.parametrize("kind", [NormalMeans, BetaBinomial, GammaPoissonGroups])
def test_draws_are_independent_and_of_the_marginals(kind):
    data, model = bz.example(kind), kind.weak(bz.example(kind))
    posterior = integrate(model, data).posterior
    draws = posterior.rvs(4000, np.random.default_rng(3))
    for name, values in draws.items():
        few = values[: 2500 // values[0].size] if values.ndim > 1 else values
        levels = np.reshape(posterior[name].cdf(few), (len(few), -1))
        assert min(stats.kstest(column, "uniform").pvalue for column in levels.T) > 1e-5
        centred = values - values.mean(axis=0)
        lagged = np.mean(centred[1:] * centred[:-1], axis=0) / np.mean(centred**2, axis=0)
        assert np.max(np.abs(lagged)) < 5 / math.sqrt(len(values))
    # Bayes' theorem at each draw: the joint density less the posterior's is the evidence
    inner = model.posterior_given({name: draws[name] for name in model.outer}, data)
    outer = {name: draws[name] for name in model.outer}
    joint = model.log_outer_prior(outer) + model.log_marginal(outer, data) + inner.logpdf(draws)
    assert joint - posterior.logpdf(draws) == pytest.approx(integrate(model, data).log_evidence, abs=1e-8)


def test_moments_that_do_not_exist_are_withheld():
    single = {"y": [3.0], "se": [1.0], "group": ["a"]}
    tree = bz.fit(SCHOOLS, single, "exact", seed=1, groups=())
    tau = bz.summarize(tree)["tau"]
    assert (tree.attrs["status"], math.isfinite(tau["mean"]), math.isfinite(tau["sd"])) == ("ok", True, False)
    assert math.isfinite(tau["q975"])


def test_moments_of_derived_quantities_that_do_not_exist_are_withheld():
    table = {"successes": [0, 18, 8, 46, 8], "trials": [47, 148, 119, 810, 211], "group": list("abcde")}
    alpha = document(Fit(bz.fit(BetaBinomial(), table, "exact", seed=1, groups=())))["derived"]["alpha"]
    assert np.isnan([alpha["mean"], alpha["sd"]]).all()
    assert 0 < alpha["q025"] < alpha["median"] < alpha["q975"] < math.inf


def test_equal_groups_make_narrow_components_and_a_grid_too_coarse_for_them_is_seen(monkeypatch):
    pair = bz.read(BetaBinomial(), {"successes": [3, 5], "trials": [10, 10], "group": ["a", "b"]})
    assert passed(integrate(BetaBinomial(), pair).checks)
    monkeypatch.setattr(rules, "INTERVALS", {2: (16, 16)})
    assert "inner quantiles" in failures(integrate(BetaBinomial(), pair).checks)


def test_a_grid_that_moves_quantiles_by_little_is_shown_with_a_warning(monkeypatch):
    """They were withheld. Their probabilities are those of a fine grid and SciPy's beta."""
    y, n = np.array([3, 5]), np.array([10, 10])
    pair = bz.read(BetaBinomial(), {"successes": y, "trials": n, "group": ["a", "b"]})
    monkeypatch.setattr(rules, "INTERVALS", {2: (80, 80)})
    coarse = integrate(BetaBinomial(), pair)
    assert verdict(coarse.checks) == "caution"

    def log_density(logit, log_size):
        mean, size = scipy.special.expit(logit), np.exp(log_size)
        rows = sum(stats.betabinom.logpmf(*row, mean * size, (1 - mean) * size) for row in zip(y, n, strict=True))
        return rows + stats.pareto.logpdf(size, 0.5) + np.log(mean) + np.log1p(-mean) + log_size

    (logits, log_sizes), mass, _ = brute_force(log_density, (-14.0, 1e-9), (14.0, 20.0), 700)
    mass[:, 0] /= 2  # the end at a size of 1
    mass /= mass.sum()
    a, b = (scipy.special.expit(s * logits)[:, None] * np.exp(log_sizes) for s in (1, -1))
    for level in (0.025, 0.5, 0.975):
        quantile = coarse.posterior["theta"].ppf(level)[0]
        assert np.sum(mass * stats.beta.cdf(quantile, a + 3, b + 7)) == pytest.approx(level, abs=5e-4)


# Modes


def test_the_mle_of_schools_pools_them(schools):
    tree = bz.fit(SCHOOLS, schools, "mle", seed=1)
    mu, tau, theta = (tree["posterior"][name].to_numpy()[0, 0] for name in ("mu", "tau", "theta"))
    assert (tree.attrs["status"], float(tau)) == ("ok", 0.0)
    pooled = np.average(schools["y"], weights=schools["se"] ** -2.0)
    assert theta == pytest.approx(np.full(8, pooled), rel=1e-6)
    assert float(mu) == pytest.approx(pooled, rel=1e-6)


def test_the_mle_of_scattered_groups_solves_the_likelihood_equations():
    y, se = np.array([1.0, 9.0, -6.0, 4.0, 15.0]), np.array([1.0, 2.0, 1.5, 1.0, 2.0])
    tree = bz.fit(SCHOOLS, {"y": y, "se": se, "group": list("abcde")}, "mle", seed=1)
    tau2 = float(tree["posterior"]["tau"].squeeze()) ** 2
    mu = float(tree["posterior"]["mu"].squeeze())
    weight = 1 / (tau2 + se**2)  # the likelihood equations of Hardy and Thompson 1996
    assert mu == pytest.approx(np.sum(weight * y) / np.sum(weight), rel=1e-6)
    assert tau2 == pytest.approx(np.sum(weight**2 * ((y - mu) ** 2 - se**2)) / np.sum(weight**2), rel=1e-5)


def test_a_likelihood_without_a_maximum_is_refused():
    equal = {"successes": [5, 5, 5], "trials": [10, 10, 10], "group": ["a", "b", "c"]}
    with raises(bz.NumericalError, "no_maximum"):
        bz.fit(BetaBinomial(), equal, "mle", seed=1)


@dataclass(frozen=True)
class HigherFarOut(BetaBinomial):
    """A hill near the guess, and beyond a size of 1000, for another mean, higher ground that goes on for ever."""

    def log_marginal(self, outer, data):
        mean, u = outer["mean"], np.log(outer["size"])
        hill = -5 * (u - 2) ** 2 - 50 * (mean - 0.4) ** 2
        plain = 1 - np.logaddexp(0, 20 * (math.log(1000) - u)) - 50 * (mean - 0.7) ** 2
        return np.logaddexp(hill, plain)


COINS = {"successes": [5, 6, 3], "trials": [10, 10, 10], "group": ["a", "b", "c"]}


def climbed(model, flat):
    """The climb alone: a fit integrates over the posterior too, which takes much longer."""
    return outer.run(Problem(model, bz.read(model, COINS), np.random.default_rng(1)), flat)


def test_a_density_that_is_as_high_far_out_has_no_mode(monkeypatch):
    missed = [check for check in climbed(HigherFarOut(), flat=True).checks if not check.passed]
    assert "no maximum in size: the evidence does not fall as size -> infinity" in failures(missed)
    monkeypatch.setattr(surface, "FURTHER", 2.0)  # a bug: it does not look far
    assert passed(climbed(HigherFarOut(), flat=True).checks)


@dataclass(frozen=True)
class TwoHills(BetaBinomial):
    """A hill near the guess, and a higher one a thousand times as far out, where no climb begins."""

    def log_marginal(self, outer, data):
        mean, u = outer["mean"], np.log(outer["size"])
        hills = -50 * (mean - 0.4) ** 2 - 5 * (u - 2) ** 2, 9 - 50 * (mean - 0.7) ** 2 - 5 * (u - math.log(8e3)) ** 2
        return np.logaddexp(*hills)

    def log_outer_prior(self, outer, data=None):
        return np.zeros(np.shape(outer["size"]))


@pytest.mark.parametrize("flat", [True, False])
def test_a_mode_near_the_start_is_not_taken_for_the_maximum(flat, monkeypatch):
    highest = climbed(TwoHills(), flat)
    assert passed(highest.checks)
    mode = highest.draws["mean"].item(), highest.draws["size"].item()
    assert mode == pytest.approx((0.7, 8e3), rel=1e-4)
    monkeypatch.setattr(surface, "MORE_CLIMBS", 0)  # a bug: it does not climb on from there
    assert not passed(climbed(TwoHills(), flat).checks)
    monkeypatch.setattr(surface, "FURTHER", 2.0)  # nor look far
    assert climbed(TwoHills(), flat).draws["size"].item() == pytest.approx(math.exp(2), rel=1e-3)


def test_centred_and_not_are_one_density(schools):
    centred, not_centred = (
        Density(NormalMeans(m0=0, s0=5, t0=5, centred=c).declare(schools), "FAST_COMPILE") for c in (True, False)
    )
    rng = np.random.default_rng(0)
    for _ in range(5):
        mu, tau, deviation = rng.normal(), rng.gamma(2), rng.normal(size=8)
        at = centred.unconstrain({"mu": mu, "tau": tau, "theta": mu + tau * deviation})
        other = not_centred.unconstrain({"mu": mu, "tau": tau, "deviation": deviation})
        heights = centred.constrained_joint(at)[0], not_centred.constrained_joint(other)[0]
        assert heights[0] + 8 * math.log(tau) == pytest.approx(heights[1], rel=1e-12)


# Seeded bugs


@dataclass(frozen=True)
class TooNarrow(NormalMeans):
    def posterior_given(self, outer, data):
        right = super().posterior_given(outer, data)["theta"]
        return Posterior.of_rows("theta", frozen.norm(right.mean(), 0.999 * right.std()))


@dataclass(frozen=True)
class LacksConstant(NormalMeans):
    def log_marginal(self, outer, data):
        return super().log_marginal(outer, data) + 1e-6


@dataclass(frozen=True)
class OtherPrior(NormalMeans):
    def log_outer_prior(self, outer, data=None):
        return super().log_outer_prior(outer, data) + 1e-6 * np.asarray(outer.get("tau", 0.0))


@dataclass(frozen=True)
class OtherMarginal(NormalMeans):
    def marginalized(self, data):
        return super().marginalized({**data, "se": data["se"] * (1 + 1e-6)})


@pytest.mark.parametrize(
    ("model", "check"),
    [
        (TooNarrow, conditional_candidate),
        (LacksConstant, conditional_candidate),
        (OtherPrior, conditional_candidate),
        (OtherPrior, marginalized_density),
        (OtherMarginal, marginalized_density),
    ],
)
def test_seeded_bugs_are_caught(model, check, schools):
    assert check(case_of(SCHOOLS, schools)).passed
    assert not check(case_of(model(m0=0, s0=5, t0=5), schools)).passed


def test_a_seeded_bug_of_the_grid_is_caught(monkeypatch, schools):
    monkeypatch.setattr(rules, "INTERVALS", {1: (12, 12)})
    assert not quadrature(case_of(SCHOOLS, schools)).passed


@pytest.mark.parametrize("ends", [(-math.inf, math.inf), (1.0, math.inf), (2.0, 5.0), (-3.0, 0.0), (1e-3, 1e3, True)])
def test_coordinates_of_a_number_are_one_to_one_and_their_slope_is_that_of_differences(ends):
    scale, places = Scale(*ends), np.linspace(-4, 4, 9)
    values = scale.value(places)
    assert (values > ends[0]).all()
    assert (values < ends[1]).all()
    np.testing.assert_allclose(scale.place(values), places, atol=1e-12)
    slopes = (scale.value(places + 1e-5) - scale.value(places - 1e-5)) / 2e-5
    np.testing.assert_allclose(scale.log_slope(places), np.log(slopes), atol=1e-8)


@pytest.mark.parametrize(
    "parts",
    [
        stats.norm([-100.0, 100.0], 0.01),
        stats.gamma([50.0, 50.0], scale=[1e-42, 1.0]),
        stats.norm([0.0, 0.0], [1e-6, 1]),
    ],
    ids=["far apart", "positive", "spike"],
)
def test_quantiles_of_a_mixture_are_found_where_newton_s_steps_leave_its_bounds(parts):
    """From the normal guess there is no density to follow; the shares below are SciPy's."""
    weights, law = np.array([0.3, 0.7]), parts
    mean = weights @ law.mean()
    sd = np.sqrt(weights @ (law.var() + (law.mean() - mean) ** 2))
    marginal = InnerMarginal(Moments(*np.array([[mean], [sd], [mean], [sd]]), moved=0.0), Columns(law), weights)
    for q in (0.001, 0.025, 0.2, 0.5, 0.975):
        assert weights @ law.cdf(marginal.ppf(q)[0]) == pytest.approx(q, abs=1e-10)


class Columns:
    """Distributions of shape (P, 1)."""

    def __init__(self, law):
        self._law = law
        self.cdf, self.pdf = (lambda x, of=of: of(x)[:, None] for of in (law.cdf, law.pdf))

    def support(self):
        return self._law.support()
