"""`bz.facts`, joint covariances against SciPy, and why a number of a summary is None."""

import math

import numpy as np
import pytest
from scipy import stats

import bayeszoo as bz
from tests.refusals import raises

COIN, NORMAL = bz.find("beta_bernoulli"), bz.find("normal_gamma")
FLIPS = [1, 0, 1, 1, 0, 1]


@pytest.fixture(scope="module")
def fits():
    """An exact fit, one by the Laplace approximation, and one that was stopped."""
    exact, laplace = (bz.fit(COIN(), FLIPS, method, seed=1) for method in ("exact", "laplace"))
    stopped = exact.copy()
    stopped.attrs["status"] = "interrupted"
    return exact, laplace, stopped


def posterior(name, data, **fields):
    model = bz.find(name)(**fields)
    return model.posterior(model.statistics(bz.read(model, data)))


def test_covariance_of_a_dirichlet_is_scipy_s_and_rows_of_a_chain_are_uncorrelated():
    found = posterior("dirichlet_multinomial", list("abacab"), alpha=0.7).covariance()
    assert found == pytest.approx(stats.dirichlet([3.7, 2.7, 1.7]).cov(), rel=1e-12)
    own = posterior("markov_chain", list("aabbabaabab"))
    found = own.covariance()
    assert (found[:2, 2:] == 0).all()
    assert np.diag(found) == pytest.approx(np.ravel(own["P"].var()), rel=1e-12)
    assert found[0, 1] == pytest.approx(-own["P"].var()[0, 0], rel=1e-12)


def test_covariance_of_weights_is_the_inverse_of_the_precision():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    table = {"y": y, "a": x[:, 0], "b": x[:, 1]}
    model = bz.find("ridge")(tau=0.8, sigma=1.3, s0=5)
    data = bz.read(model, table, target="y")
    design = np.column_stack([np.ones(20), x])
    precision = design.T @ design / 1.3**2 + np.diag([1 / 25, 1 / 0.64, 1 / 0.64])
    assert model.posterior(model.statistics(data)).covariance() == pytest.approx(np.linalg.inv(precision), rel=1e-9)
    lasting = bz.find("linear_regression")().replaced(a0=3.0, b0=2.0)
    known = lasting.posterior(lasting.statistics(data))
    found = known.covariance()
    assert np.sqrt(np.diag(found)) == pytest.approx(np.append(known["w"].std(), known["sigma2"].std()), rel=1e-9)
    draws = known.rvs(100_000, rng)
    drawn = np.corrcoef(np.column_stack([draws["w"], draws["sigma2"]]), rowvar=False)
    assert np.abs(drawn - found / np.sqrt(np.outer(np.diag(found), np.diag(found)))).max() < 0.03


def test_covariance_of_an_inverse_wishart():
    Psi = np.array([[2.0, 0.3, -0.1], [0.3, 1.5, 0.2], [-0.1, 0.2, 0.8]])
    model = bz.find("normal_inverse_wishart")((0.5, 1.0, 0.0), 0.7, 14.5, tuple(map(tuple, Psi)))
    prior = model.posterior(model.statistics({"Y": np.empty((0, 3)), "column": np.array(["a", "b", "c"])}))
    found, rng = prior.covariance(), np.random.default_rng(2)
    assert found[:3, :3] == pytest.approx(Psi / (14.5 - 4) / 0.7, rel=1e-12)
    assert np.diag(found)[3:] == pytest.approx(np.ravel(prior["Sigma"].var()), rel=1e-12)
    draws = stats.invwishart(14.5, Psi).rvs(200_000, random_state=rng).reshape(-1, 9)
    scale = np.sqrt(np.outer(np.diag(found)[3:], np.diag(found)[3:]))
    assert np.abs((np.cov(draws, rowvar=False) - found[3:, 3:]) / scale).max() < 0.03


def test_an_infinite_variance_has_no_covariances():
    found = posterior("normal_gamma", [1.0, 2.0], mu0=0, kappa0=1, alpha0=0.4, beta0=1).covariance()
    assert found[1, 1] > 0
    assert np.isfinite(found[0, 0])
    wide = NORMAL(mu0=0, kappa0=1, alpha0=0.8, beta0=1)
    of_prior = wide.posterior(wide.statistics({"y": np.array([])})).covariance()
    assert np.isinf(of_prior[0, 0])
    assert np.isnan(of_prior[0, 1])


def test_joint_covariance_of_fits(fits):
    exact, laplace, stopped = fits
    assert bz.joint_covariance(exact).loc["theta", "theta"] == pytest.approx(stats.beta(5, 3).var(), rel=1e-12)
    variance = bz.summarize(laplace)["theta"]["sd"] ** 2
    assert bz.joint_covariance(laplace).loc["theta", "theta"] == pytest.approx(variance)
    with raises(bz.InputError, "no_draws"):
        bz.joint_covariance(bz.fit(COIN(), FLIPS, "map", seed=1))
    with raises(bz.Untrustworthy, "withheld", "withheld", "interrupted"):
        bz.joint_covariance(stopped)
    series = bz.find("linear_gaussian")()
    with raises(bz.NumericalError, "no_closed_form", "nuts"):
        bz.joint_covariance(bz.fit(series, [1.0, 2.0, 2.5, 4.0], "exact", seed=1, groups=()))


def test_facts_have_one_name_each(fits):
    found, approximate, held = map(bz.facts, fits)
    expected = COIN().log_evidence(COIN().statistics(bz.read(COIN, FLIPS)))
    assert (found["log_evidence"], found["log_evidence_error"]) == (pytest.approx(expected), 0)
    assert found["withheld"] == dict.fromkeys(("elbo", "log_likelihood", "log_joint"), "exact does not give it")
    assert abs(approximate["elbo"] - expected) < 0.1
    assert approximate["elbo_error"] > 0
    point = bz.facts(bz.fit(COIN(a=2, b=2), FLIPS, "map", seed=1))
    assert point["log_joint"] > point["log_likelihood"] > -math.inf
    assert point["log_likelihood_error"] == 0
    assert held["log_evidence"] is None
    assert "interrupted" in held["withheld"]["log_evidence"]


def test_a_summary_says_why_a_number_is_none(fits):
    of_point = bz.fit(COIN(a=2, b=2), FLIPS, "map", seed=1)
    exact, laplace, stopped, point = (bz.summarize(tree)["theta"]["withheld"] for tree in (*fits, of_point))
    assert exact["mcse_mean"] == "an exact answer has no Monte Carlo error"
    assert laplace == dict.fromkeys(("ess_bulk", "ess_tail", "r_hat"), "draws of an approximation are independent")
    assert point["sd"] == "a point estimate has no spread"
    assert "mean" not in point
    assert "the run was interrupted" in stopped["mean"]
