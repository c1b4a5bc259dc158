"""Moments by quadrature, against dense grids: tails, narrow modes, covariances, and which exist."""

import math

import numpy as np
import pytest
import scipy
from bayeszoo.models.beta_binomial import BetaBinomial
from bayeszoo.models.gamma_poisson_groups import GammaPoissonGroups
from bayeszoo.models.logistic_regression import LogisticRegression
from bayeszoo.models.normal_means import NormalMeans

import bayeszoo as bz
from bayeszoo.distributions.averages.grid_moments import moments_over
from bayeszoo.distributions.averages.integrated import NOTHING
from bayeszoo.foundation.gate import passed
from bayeszoo.foundation.numerics.grid import Grid
from bayeszoo.foundation.numerics.quadrature import Rule
from bayeszoo.model.outer.integration import integrate
from bayeszoo.results.stored import Fit

SINGLE = {"y": [3.0], "se": [1.0], "group": ["a"]}


def over_log_tau(data, t0, m0=0.0, s0=5.0):
    """Return log tau on a fine grid, the mass at each, and mean and variance of mu given each, by the textbook."""
    y, se = np.asarray(data["y"]), np.asarray(data["se"])
    u = np.linspace(math.log(t0) - 45, max(math.log(t0), math.log(np.max(np.abs(y)))) + 15, 40001)
    tau = np.exp(u)
    variances = tau[:, None] ** 2 + se**2
    precision = np.sum(1 / variances, axis=1) + s0**-2
    mean = (np.sum(y / variances, axis=1) + m0 / s0**2) / precision
    of_rows = -0.5 * np.sum(np.log(variances) + (y - mean[:, None]) ** 2 / variances, axis=1)
    height = of_rows - 0.5 * ((mean - m0) / s0) ** 2 - 0.5 * np.log(precision) - np.log1p((tau / t0) ** 2) + u
    return tau, scipy.special.softmax(height), mean, 1 / precision


@pytest.mark.parametrize("t0", [5.0, 1e-3, 1e-7, 1e-12, 1e-25, 1e-60])
def test_mean_and_sd_of_tau_are_integrated_where_they_live(t0):
    """The half-Cauchy prior is narrow, and its tail reaches up to the standard errors, which decide both."""
    data = bz.example(NormalMeans)
    tau, mass, mean, variance = over_log_tau(data, t0)
    known = integrate(NormalMeans(m0=0, s0=5, t0=t0), data)
    assert passed(known.checks)
    for name, first, second in (("tau", mass @ tau, mass @ tau**2), ("mu", mass @ mean, mass @ (mean**2 + variance))):
        assert float(known.posterior[name].mean()) == pytest.approx(first, rel=1e-8)
        assert float(known.posterior[name].std()) == pytest.approx(math.sqrt(second - first**2), rel=1e-8)


@pytest.mark.parametrize(("t0", "se"), [(1e-19, 0.5), (1e-80, 0.5), (1e-18, 1.0), (1e-25, 1.0), (1e-21, 2.0)])
def test_a_narrow_mode_of_tau_far_from_the_prior_is_not_passed_over(t0, se):
    """With a standard error of 1/2 all mass is there, with 1 a share of 1e-9 or less, which decides mean and sd."""
    rng, J = np.random.default_rng(1), 300
    data = {"y": rng.normal(0, math.hypot(1, se), J), "se": np.full(J, se), "group": np.arange(J).astype(str)}
    tau, mass, *_ = over_log_tau(data, t0)
    known = integrate(NormalMeans(m0=0, s0=5, t0=t0), data)
    assert passed(known.checks)
    first, second = mass @ tau, mass @ tau**2
    assert float(known.posterior["tau"].mean()) == pytest.approx(first, rel=1e-6)
    assert float(known.posterior["tau"].std()) == pytest.approx(math.sqrt(second - first**2), rel=1e-6)


def of_rats(shape, successes, trials, highest):
    """Return mean, size and the mass at each point of a fine grid of logit and log."""
    logit, log_size = np.meshgrid(np.arange(-40, 40, 0.1), np.arange(-40, highest, 0.1), indexing="ij")
    mean, rest, size = scipy.special.expit(logit), scipy.special.expit(-logit), 1 + np.exp(log_size)
    height = np.log(mean) + np.log(rest) - (shape + 1) * np.log(size) + log_size
    for y, n in zip(successes, trials, strict=True):
        height = height + sum(np.log(mean * size + i) for i in range(y)) - sum(np.log(size + i) for i in range(n))
        height = height + sum(np.log(rest * size + i) for i in range(n - y))
    return mean, rest, size, scipy.special.softmax(height)


@pytest.mark.parametrize(
    ("shape", "successes", "highest", "exists"),
    [(3.5, (4, 5, 3), 60, (True, True)), (2.1, (0, 0, 0), 300, (True, True)), (1.5, (4, 5, 3), 80, (True, False))],
)
def test_moments_of_what_is_derived_exist_where_those_of_its_factors_do(shape, successes, highest, exists):
    data = {"successes": np.array(successes), "trials": np.array([4, 5, 3]), "group": np.array(["a", "b", "c"])}
    mean, rest, size, mass = of_rats(shape, successes, (4, 5, 3), highest)
    known = integrate(BetaBinomial(shape=shape), data)
    assert passed(known.checks)
    moments = {"size": (known.posterior["size"].mean(), known.posterior["size"].std())}
    moments |= {name: (each.own_mean, each.own_sd) for name, each in known.derived.items()}
    for name, values in (("size", size), ("alpha", mean * size), ("beta", rest * size)):
        assert tuple(np.isfinite(moments[name])) == exists
        first = np.sum(mass * values)
        assert float(moments[name][0]) == pytest.approx(first, rel=1e-6)
        if exists[1]:
            assert float(moments[name][1]) == pytest.approx(math.sqrt(np.sum(mass * (values - first) ** 2)), rel=1e-5)


def test_groups_that_always_succeed_are_those_that_always_fail_the_other_way_round():
    trials, group = np.array([10, 12, 7]), np.array(["a", "b", "c"])
    always, never = (
        integrate(BetaBinomial(b=b, a=1.5 - b), {"successes": y, "trials": trials, "group": group})
        for y, b in ((trials, 0.5), (0 * trials, 1.0))
    )
    assert passed(always.checks)
    assert always.log_evidence == pytest.approx(never.log_evidence, abs=1e-9)
    assert 1 - float(always.posterior["mean"].mean()) == pytest.approx(float(never.posterior["mean"].mean()), rel=1e-8)
    assert 1 - always.posterior["theta"].mean() == pytest.approx(never.posterior["theta"].mean(), rel=1e-8)
    assert always.posterior["theta"].std() == pytest.approx(never.posterior["theta"].std(), rel=1e-8)
    rows = bz.read(BetaBinomial(), {"successes": trials, "trials": trials, "group": group})
    tree = bz.fit(BetaBinomial(), rows, "exact", seed=1, groups=())
    assert tree.attrs["status"] == "ok"
    assert np.isfinite(tree["posterior"]["theta"].to_numpy()).all()


@pytest.mark.parametrize("kind", [NormalMeans, BetaBinomial, GammaPoissonGroups])
def test_quantiles_of_inner_parameters_are_those_of_the_whole_grid(kind):
    data = bz.example(kind)
    posterior = integrate(kind.weak(data), data).posterior
    inner = next(name for name in posterior if name not in kind.outer)
    for level in (0.025, 0.5, 0.975):
        below = posterior[inner].cdf(posterior[inner].ppf(level))
        assert np.max(np.abs(below - level)) < 1e-11
    assert len(posterior[inner]._weights) > 1.5 * len(posterior[inner]._coarse._weights)
    assert np.min(posterior[inner]._weights) > NOTHING


def test_the_joint_covariance_of_normal_means_is_integrated():
    data = bz.example(NormalMeans)
    tau, mass, mean, variance = over_log_tau(data, 5.0)
    y, se = (np.asarray(data[name])[:2] for name in ("y", "se"))
    shrinkage = se**2 / (se**2 + tau[:, None] ** 2)
    effects = y + shrinkage * (mean[:, None] - y)
    columns = np.column_stack([tau, mean, effects])
    moved = columns - mass @ columns
    within = np.zeros((len(tau), 4, 4))
    slopes = np.column_stack([np.ones(len(tau)), shrinkage])
    within[:, 1:, 1:] = slopes[:, :, None] * slopes[:, None, :] * variance[:, None, None]
    within[:, [2, 3], [2, 3]] += shrinkage * tau[:, None] ** 2
    expected = np.tensordot(mass, within + moved[:, :, None] * moved[:, None, :], 1)
    model = NormalMeans(m0=0, s0=5, t0=5)
    few = bz.joint_covariance(bz.fit(model, data, "exact", seed=1, groups=())).to_numpy()[:4, :4]
    assert few == pytest.approx(expected, rel=1e-7)


def test_the_joint_covariance_of_two_weights_is_integrated():
    x, y = np.array([-2.0, -1.0, 0.5, 1.0, 3.0]), np.array([0, 1, 0, 1, 1])
    model = LogisticRegression(tau=2.0, s0=3.0)
    data = bz.read(model, {"x": x, "y": y}, target="y")
    w0, w1 = np.meshgrid(np.linspace(-30, 30, 1201), np.linspace(-20, 20, 1201), indexing="ij")
    height = -0.5 * (w0 / 3) ** 2 - 0.5 * (w1 / 2) ** 2
    for at, outcome in zip(x, y, strict=True):
        height = height + scipy.special.log_expit((2 * outcome - 1) * (w0 + w1 * at))
    mass = scipy.special.softmax(height).ravel()
    expected = np.cov(np.stack([w0.ravel(), w1.ravel()]), aweights=mass, ddof=0)
    tree = bz.fit(model, data, "exact", seed=1, groups=())
    assert bz.joint_covariance(tree).to_numpy() == pytest.approx(expected, rel=1e-6)
    ratio = bz.results.summary.document(Fit(tree))["derived"]["odds_ratio"]
    first = mass @ np.exp(w1.ravel())
    second = mass @ np.exp(2 * w1.ravel())
    assert ratio["mean"] == pytest.approx([first], rel=1e-6)
    assert ratio["sd"] == pytest.approx([math.sqrt(second - first**2)], rel=1e-5)


def test_a_variance_that_does_not_exist_has_no_covariances():
    tree = bz.fit(NormalMeans(m0=0, s0=5, t0=5), SINGLE, "exact", seed=1, groups=())
    matrix = bz.joint_covariance(tree)
    assert matrix.loc["tau"].isna().all()
    assert np.isfinite(matrix.loc["mu", "theta[a]"])


# The rules themselves


AT = [([0.0, 40.0], [1.0, 1e-3]), ([-5.0, 0.1, 7.0], [0.5, 3.0, 0.01]), ([-48.4, -0.67, -15.9], [1.1, 0.53, 12.8])]


@pytest.mark.parametrize("at", AT)
def test_a_rule_with_several_centres_integrates_all_their_peaks(at):
    centres, scales = (np.array(each) for each in at)
    rule = Rule.between(-200.0, 200.0, centres, scales, 512)
    assert (np.diff(rule.points) > 0).all()
    assert rule.at(rule.t) == pytest.approx(rule.points, abs=1e-12)
    assert np.sum(np.arcsinh((rule.points[:, None] - centres) / scales), axis=1) == pytest.approx(rule.t, abs=1e-9)
    for each in (rule, rule.halved()):
        for centre, scale in zip(centres, scales, strict=True):
            assert each.weights @ scipy.stats.norm.pdf(each.points, centre, scale) == pytest.approx(1, abs=1e-9)


def test_a_moment_that_halving_moves_is_withheld_and_the_others_are_not():
    rule = Rule.between(-30.0, 30.0, 0.0, 1.0, 16)
    grid = Grid([rule], scipy.stats.norm.logpdf(rule.points))
    near, far = rule.points, np.where(np.arange(17) == 3, 1e3, rule.points)
    parts = {name: (values, np.zeros(17)) for name, values in (("near", near), ("far", far), ("none", 0 * near))}
    moments = moments_over(grid, [(slice(None), parts)], {"none": (True, False)})
    assert np.isnan([moments["far"].own_mean, moments["far"].own_sd]).all()
    assert (float(moments["none"].own_mean), math.isnan(moments["none"].own_sd)) == (0.0, True)


@pytest.mark.parametrize("unit", [1e-160, 1e140])
def test_moments_neither_overflow_nor_vanish(unit):
    rule = Rule.between(-12.0, 12.0, 0.0, 1.0, 256)
    grid = Grid([rule], scipy.stats.norm.logpdf(rule.points))
    parts = {"x": (unit * (3 + rule.points), np.full(257, unit))}
    known = moments_over(grid, [(slice(None), parts)], {})["x"]
    assert (known.own_mean / unit, known.own_sd / unit) == pytest.approx((3, math.sqrt(2)), rel=1e-9)


def test_a_quantile_that_rounds_to_an_end_is_one_number_with_many_levels():
    """Of groups that always succeed chances are nearer to 1 than doubles go."""
    data = {"successes": np.array([9, 9]), "trials": np.array([9, 9]), "group": np.array(["a", "b"])}
    known = integrate(BetaBinomial(), data)
    assert passed(known.checks)
    assert np.all(1 - known.posterior["theta"].ppf(0.975) <= 2 * np.finfo(np.float64).epsneg)
