"""Inner parameters that are jointly Gaussian: a moving level, and a Gaussian process, against dense ones."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import scipy
from scipy import stats
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

import bayeszoo as bz
from bayeszoo.answers.averages import by_points
from bayeszoo.distributions.averages.averaged import Averaged
from bayeszoo.distributions.gaussian import Dense, given_all_others
from bayeszoo.foundation.gate import passed
from bayeszoo.model.outer.integration import integrate

AT = {"q": np.array([38.0, 5.0, 200.0]), "r": np.array([120.0, 150.0, 30.0])}


LocalLevel = bz.find("local_level")
NILE = LocalLevel(900.0, 300.0, 100.0, 200.0)


@pytest.fixture(scope="module")
def flow():
    return dict(bz.example(bz.find("hmm_gaussian"), "nile"))


@pytest.fixture(scope="module")
def exact(flow):
    return integrate(NILE, flow)


def dense(model, outer, y, rows, of):
    """Return mean and covariance of the levels at ``of`` given the known observations among ``rows``."""
    i = np.arange(max(len(y), int(np.max(of)) + 1))
    levels = model.s0**2 + outer["q"] ** 2 * np.minimum(i[:, None], i)
    rows = [t for t in rows if not np.isnan(y[t])]
    noisy = levels[np.ix_(rows, rows)] + outer["r"] ** 2 * np.eye(len(rows))
    gain = np.linalg.solve(noisy, levels[np.ix_(rows, of)]).T
    return model.m0 + gain @ (y[rows] - model.m0), levels[np.ix_(of, of)] - gain @ levels[np.ix_(rows, of)]


@pytest.mark.parametrize("p", range(3))
def test_a_chain_is_the_dense_gaussian_also_where_rows_are_unknown(flow, p):
    model, y = LocalLevel(1000.0, 300.0), flow["y"].copy()
    y[[3, 50, 51]] = np.nan
    known, data, outer = ~np.isnan(y), {**flow, "y": y}, {name: values[p] for name, values in AT.items()}
    T, rows = len(y), np.arange(len(y))
    mean, cov = dense(model, outer, y, rows, rows)
    posterior = model.posterior_given(AT, data)
    assert posterior["level"].mean()[p] == pytest.approx(mean, rel=1e-10)
    assert posterior["level"].std()[p] == pytest.approx(np.sqrt(np.diag(cov)), rel=1e-10)
    assert posterior.correlated()["level"]()[p] == pytest.approx(cov, rel=1e-8, abs=1e-7)
    level = posterior.rvs((), np.random.default_rng(0))["level"]
    dense_height = stats.multivariate_normal(mean, cov, allow_singular=True).logpdf(level[p])
    assert posterior.logpdf({"level": level})[p] == pytest.approx(dense_height, abs=1e-6)
    i = rows[known]
    of_rows = model.s0**2 + outer["q"] ** 2 * np.minimum(i[:, None], i) + outer["r"] ** 2 * np.eye(len(i))
    height = stats.multivariate_normal(np.full(len(i), model.m0), of_rows).logpdf(y[known])
    assert model.log_marginal(AT, data)[p] == pytest.approx(height, rel=1e-12)
    ahead, law = np.arange(T, T + 3), model.law(AT, data, model.inputs.unseen(data, 3))
    mean, cov = dense(model, outer, y, rows, ahead)
    assert law.mean()[p] == pytest.approx(mean, rel=1e-10)
    assert law.std()[p] ** 2 == pytest.approx(np.diag(cov) + outer["r"] ** 2, rel=1e-10)
    held = model.held_out(AT, data, places := np.array([0, 2, 3, 10, T - 1]))
    for k, t in enumerate(places):
        (mean,), ((variance,),) = dense(model, outer, y, rows[rows != t], [t])
        expected = (mean, math.sqrt(variance + outer["r"] ** 2)) if known[t] else (math.nan, math.nan)
        assert (held.mean()[p, k], held.std()[p, k]) == pytest.approx(expected, rel=1e-9, nan_ok=True)


def test_draws_of_a_chain_have_its_covariances(flow):
    """And a chain whose gains are of the wrong entries has not: 20,000 draws, z-scores of 100 covariances."""
    at = {"q": np.array([38.0]), "r": np.array([120.0])}
    chain = NILE.levels(at, flow).smoothed()
    cov = chain.covariance()[0]
    worst = []
    for shift in (0, 1):
        x = replace(chain, gain=np.roll(chain.gain, 5 * shift, axis=-1)).rvs((20_000,), np.random.default_rng(1))[:, 0]
        near = np.arange(10)
        errors = np.sqrt((cov[near, near + 1] ** 2 + np.diag(cov)[near] * np.diag(cov)[near + 1]) / 20_000)
        worst.append(np.max(np.abs(np.cov(x.T)[near, near + 1] - cov[near, near + 1]) / errors))
    assert worst[0] < 5 < worst[1]


def test_variances_are_those_published(flow):
    """Durbin and Koopman 2012, 2.10: 15,099 and 1,469.1, with a diffuse first level; digits from a dense density."""
    y = flow["y"]
    model = LocalLevel(float(y.mean()), 1e6)

    def height(logs):
        at = {"q": np.exp(logs[:1]), "r": np.exp(logs[1:])}
        return -float(model.log_marginal(at, flow)[0])

    best = scipy.optimize.minimize(height, np.log([40, 120]), method="Nelder-Mead", options={"xatol": 1e-8})
    assert np.exp(2 * best.x) == pytest.approx([1469.2, 15098.5], rel=1e-4)
    assert -best.fun + math.log(1e6 * math.sqrt(2 * math.pi)) == pytest.approx(-632.5456, abs=2e-4)


def test_two_outer_numbers_are_integrated_over(flow, exact):
    assert passed(exact.checks)
    logs = np.array(np.meshgrid(np.linspace(-6, 6.5, 401), np.linspace(3.9, 5.6, 201), indexing="ij")).reshape(2, -1)
    at = dict(zip(("q", "r"), np.exp(logs), strict=True))
    heights = NILE.log_marginal(at, flow) + NILE.log_outer_prior(at) + logs.sum(axis=0)
    evidence = scipy.special.logsumexp(heights) + math.log(12.5 / 400 * 1.7 / 200)
    beyond = stats.halfnorm(scale=100).cdf(math.exp(-6))  # where q is so small that the evidence is flat
    assert exact.log_evidence == pytest.approx(evidence, abs=2 * beyond + 1e-5)
    mass = np.exp(heights - scipy.special.logsumexp(heights))
    level = NILE.posterior_given(at, flow)["level"]
    assert exact.posterior["level"].mean() == pytest.approx(mass @ level.mean(), abs=0.02)
    apart = level.mean() - mass @ level.mean()
    variance = mass @ np.square(level.std()) + mass @ np.square(apart)
    assert exact.posterior["level"].std() == pytest.approx(np.sqrt(variance), rel=1e-3)


def test_covariances_of_all_entries_are_within_the_points_and_between(flow):
    """Against sums over the points of the quadrature, whose dense Gaussians are solved one by one."""
    few = {name: values[:12] for name, values in flow.items()}
    known = integrate(NILE, few)
    parts = [
        dense(NILE, {k: v[i] for k, v in known.points.items()}, few["y"], range(12), range(12))
        for i in range(len(known.mass))
    ]
    means = np.array([[known.points["q"][i], known.points["r"][i], *mean] for i, (mean, _) in enumerate(parts)])
    between = np.cov(means.T, aweights=known.mass, ddof=0)
    between[2:, 2:] += np.tensordot(known.mass, [cov for _, cov in parts], 1)
    assert known.posterior.covariance()[2:, 2:] == pytest.approx(between[2:, 2:], rel=1e-4)


def test_a_row_left_out_and_the_next_row_are_ratios_of_evidences(flow, exact):
    average, points = by_points(exact)
    at = {name: values[0] for name, values in points.items()}
    rows = np.arange(len(flow["y"]))
    log_p = NILE.held_out(at, flow, rows).logpdf(flow["y"])[None]
    left_out = average.without(log_p).log_mean(log_p)
    for i in (0, 10, 99):
        others = {**flow, "y": np.where(rows == i, np.nan, flow["y"])}
        assert left_out[i] == pytest.approx(exact.log_evidence - integrate(NILE, others).log_evidence, abs=1e-5)
    ahead = Averaged(NILE.law(at, flow, NILE.inputs.unseen(flow, 3)), exact.mass)
    more = {"y": np.append(flow["y"], 800.0), "sequence": np.zeros(101, dtype=int)}
    next_row = NILE.law(at, flow, NILE.inputs.unseen(flow, 1))
    of_next = scipy.special.logsumexp(next_row.logpdf([800.0])[:, 0], b=exact.mass)
    assert of_next == pytest.approx(integrate(NILE, more).log_evidence - exact.log_evidence, abs=1e-5)
    assert np.all(np.diff(ahead.ppf(0.975)) > 0)


def test_a_process_is_scikit_learns():
    """Its function has a dense covariance matrix; each row given all the others is that of a fit without it."""
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(0, 10, 25))
    y = np.sin(x) + 0.3 * rng.normal(size=25)
    kernel = np.exp(-0.5 * np.square((x[:, None] - x) / np.array([1.3, 0.4])[:, None, None]))
    noise = np.square([0.3, 0.5])[:, None, None] * np.eye(25)
    rows = Dense(np.zeros((2, 25)), np.linalg.cholesky(kernel + noise))
    inverse = np.linalg.inv(rows.factor)
    precision = inverse.mT @ inverse
    held = given_all_others(y, precision @ y, np.diagonal(precision, axis1=-2, axis2=-1))
    for p, (length, sigma) in enumerate([(1.3, 0.3), (0.4, 0.5)]):
        process = GaussianProcessRegressor(RBF(length), alpha=sigma**2, optimizer=None).fit(x[:, None], y)
        assert rows.logpdf(y)[p] == pytest.approx(process.log_marginal_likelihood_value_, rel=1e-10)
        for i in (0, 7, 24):
            others = np.arange(25) != i
            mean, sd = process.fit(x[others, None], y[others]).predict(x[i : i + 1, None], return_std=True)
            expected = (mean[0], math.hypot(sd[0], sigma))
            assert (held.mean()[p, i], held.std()[p, i]) == pytest.approx(expected, rel=1e-8)


def test_dense_vectors_are_scipys():
    rng = np.random.default_rng(5)
    factor = np.linalg.cholesky(np.cov(rng.normal(size=(3, 9)))) + 0 * np.eye(3)
    vector = Dense(np.array([1.0, -2.0, 0.5]), factor)
    known = stats.multivariate_normal(vector.mean, factor @ factor.T)
    x = vector.rvs((20_000,), rng)
    assert vector.logpdf(x[:5]) == pytest.approx(known.logpdf(x[:5]), rel=1e-12)
    assert vector.sd == pytest.approx(np.sqrt(np.diag(known.cov)))
    for i, j in itertools.combinations_with_replacement(range(3), 2):
        cov, error = known.cov, math.sqrt((known.cov[i, j] ** 2 + known.cov[i, i] * known.cov[j, j]) / 20_000)
        assert abs(np.cov(x.T)[i, j] - cov[i, j]) < 5 * error
