"""Two posteriors of posteriordb (stan-dev, BSD-3-Clause) as users' own models: published figures, and cubature."""

import numpy as np
import pytest
import scipy

import bayeszoo as bz
from tests.own_models.dogs import Dogs
from tests.own_models.votes import Votes

INCOMES = np.array([1.0, 2, 3, 4, 5])
FOR_BUSH, ASKED = np.array([30, 69, 144, 196, 38]), np.array([128, 207, 366, 404, 74])
"""National Election Study 1992, nes_logit_data: preferences for Bush or Clinton by the income of the family."""
TRIALS = """
1101010000000000000000000 1111111011111100000000000 1111100100110010100000000 1001100001010100000000000
1111111100000000000000000 1111110000110100000000000 1111101111110000000000000 1111111001100000000000000
1111101010010111000001001 1111011001010000000000000 1111111111000000100000000 1111100000110000000000000
1110010110000000000000000 1111010010000000000000000 1110100100000000000000000 1111111000000000000000000
1010111010000100000000000 1111010100000000000000000 1011110111000000000000000 1111001010010100000000000
1110000010000000000000000 1101010000000000110000000 1111111000000000000000000 1111111100010111001000000
1111110100001010000000000 1101000100100000000000000 1111010000000000000000000 1110101000101000000000000
1111001100010101010000000 1111000000101000000000000
"""
"""Solomon and Wynne 1953, dogs: a shock (1) or none in each of 25 trials of 30 dogs."""


def votes():
    return {"X": INCOMES[:, None], "feature": ["income"], "y": FOR_BUSH, "trials": ASKED}


def dogs():
    y = np.array([[int(trial) for trial in dog] for dog in TRIALS.split()])
    before = np.cumsum(y, axis=1) - y
    counts = np.column_stack([(np.arange(25) - before).ravel(), before.ravel()]).astype(np.float64)
    return {"X": counts, "feature": ["avoided", "shocked"], "y": y.ravel()}


POSTERIORS = {"votes": (Votes, votes, np.inf), "dogs": (Dogs, dogs, 100.0)}


def arrays(table):
    """Return the design with its intercept, successes and trials."""
    n = table.get("trials", np.ones(len(table["y"])))
    return np.column_stack([np.ones(len(n)), table["X"]]), table["y"], n


def moments(table, tau):
    """Return means and standard deviations by cubature of SciPy's densities about the mode, 8 widths each way."""
    X, y, n = arrays(table)

    def heights(beta):
        prior = 0.0 if np.isinf(tau) else scipy.stats.norm.logpdf(beta, 0, tau).sum(axis=-1)
        return scipy.stats.binom.logpmf(y, n, scipy.special.expit(beta @ X.T)).sum(axis=-1) + prior

    peak = scipy.optimize.minimize(lambda beta: -heights(beta[None])[0], np.zeros(X.shape[1]))
    root, top = np.linalg.cholesky(peak.hess_inv), -peak.fun

    def integrand(z):
        beta = peak.x + z @ root.T
        powers = np.concatenate([np.ones((len(z), 1)), beta, beta**2], axis=1)
        return np.exp(heights(beta) - top)[:, None] * powers

    size = X.shape[1]
    result = scipy.integrate.cubature(integrand, -8 * np.ones(size), 8 * np.ones(size), rtol=1e-5, atol=1e-6)
    mass, first, second = np.split(result.estimate, [1, 1 + size])
    return first / mass, np.sqrt(second / mass - (first / mass) ** 2)


def drawn(tree):
    """Return draws (chain, draw, weights)."""
    return np.concatenate([np.atleast_3d(tree.posterior[name].to_numpy()) for name in tree.posterior.data_vars], axis=2)


def agrees(draws, mean, sd):
    """Say whether draws have these moments; of eight of them at least one counts."""
    errors = np.abs(draws.mean(axis=(0, 1)) - mean) / (sd / np.sqrt(draws[..., 0].size / 8))
    return bool(np.all(errors <= 5) and np.all(np.abs(draws.std(axis=(0, 1)) / sd - 1) < 0.1))


def test_votes_are_those_of_gelman_and_hill():
    """Section 5.1: -1.40 (.19) + .33 (.06) income."""
    M = bz.find("logistic_regression")
    w = bz.fit(M(), bz.read(M, votes()), "mle", seed=1).posterior["w"].to_numpy()[0, 0]
    assert w.round(2).tolist() == [-1.40, 0.33]
    assert moments(votes(), np.inf)[1].round(2).tolist() == [0.19, 0.06]


@pytest.mark.slow  # NUTS on two models that nothing else compiles
@pytest.mark.parametrize("name", POSTERIORS)
def test_nuts_of_a_users_model_meets_cubature(name):
    kind, table, tau = POSTERIORS[name]
    tree = bz.fit(kind(), table(), "nuts", seed=1)
    assert tree.attrs["status"] == "ok", tree.attrs["gate"]
    draws = drawn(tree)
    assert agrees(draws, *moments(table(), tau))
    assert not agrees(draws, *moments(table(), 0.5))  # a prior of another width


@pytest.mark.slow  # the same: the compiled likelihood of the zoo on three weights
def test_the_zoos_own_regression_has_the_same_posterior():
    M = bz.find("logistic_regression")
    tree = bz.fit(M(tau=100.0, s0=100.0), bz.read(M, dogs()), "nuts", seed=2)
    assert agrees(tree.posterior["w"].to_numpy(), *moments(dogs(), 100.0))
