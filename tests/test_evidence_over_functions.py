"""The evidence of a function with fields that have priors, by importance sampling: against quadrature of few rows."""

from functools import cache

import numpy as np
import pytest
import scipy
from bayeszoo.models.gaussian_process_classification import GaussianProcessClassification
from scipy.special import expit

import bayeszoo as bz
from bayeszoo.comparison.candidates import Candidate
from bayeszoo.comparison.evidence import by_importance
from bayeszoo.comparison.evidence.of_candidates import log_evidence
from bayeszoo.data.read import Data
from bayeszoo.distributions.scale import Scale
from bayeszoo.families.latent_functions import weights
from bayeszoo.results.stored import Fit
from tests.refusals import raises

ROWS = Data(
    {"X": np.array([[0.0], [0.7]]), "y": np.array([1, 4]), "trials": np.array([5, 5]), "feature": np.array(["x"])}
)
BASE = GaussianProcessClassification(m0=0.3, kernel="matern52")
OVER = bz.over(BASE, {"amplitude": "HalfNormal(2)", "length": "InvGamma(3, 2)"})


@cache
def by_quadrature():
    """Sum over a grid of amplitude and length, and by Gauss and Hermite over the function at the two rows."""
    x, w = np.polynomial.hermite_e.hermegauss(40)
    z, mass = np.stack(np.meshgrid(x, x, indexing="ij")).reshape(2, -1), np.outer(w, w).ravel() / (2 * np.pi)
    places, step = np.linspace(-6, 2.5, 35, retstep=True)  # logs of both
    values, prior = np.exp(places), scipy.stats.halfnorm(scale=2)
    total = 0.0
    for length in values:
        far = np.sqrt(5) * 0.7 / length
        correlation = (1 + far + far**2 / 3) * np.exp(-far)
        root = np.linalg.cholesky(np.array([[1, correlation], [correlation, 1]]) + 1e-14 * np.eye(2))
        p = expit(0.3 + values[:, None, None] * (root @ z))
        likelihood = np.prod(scipy.stats.binom.pmf(ROWS["y"][:, None], 5, p), axis=1) @ mass
        total += scipy.stats.invgamma(3, scale=2).pdf(length) * length * np.sum(prior.pdf(values) * values * likelihood)
    return np.log(total * step**2)


def estimate(count=1000):
    rng = np.random.default_rng(1)
    draws = {
        "amplitude": np.abs(rng.normal(0, 2, 400)),
        "length": scipy.stats.invgamma(3, scale=2).rvs(400, random_state=2),
    }
    logs = OVER.weigher(draws, ROWS, rng)(count)
    relative = np.exp(logs - logs.max())
    return np.log(relative.mean()) + logs.max(), relative.std() / relative.mean() / np.sqrt(count)


def gap():
    """Return the difference and its error; weights are of ordered outcomes, and the quadrature of counts."""
    value, error = estimate()
    return abs(value + OVER.log_coefficient(ROWS) - by_quadrature()), error


def test_the_mean_weight_is_the_evidence():
    difference, error = gap()
    assert difference < 4.5 * error < 0.15


def test_a_forgotten_jacobian_is_seen(monkeypatch):
    monkeypatch.setattr(Scale, "log_slope", lambda self, place: 0.0)
    assert gap()[0] > 0.3


def test_any_shares_of_draws_are_right(monkeypatch):
    monkeypatch.setattr(weights, "ABOUT_MODE", 4)
    monkeypatch.setattr(weights, "OF_PRIOR", 12)
    difference, error = gap()
    assert difference < 4.5 * error


@pytest.fixture(scope="module")
def fit():
    """Return a fit of short chains, which are enough for a proposal."""
    return Fit(bz.fit(OVER, ROWS, "gibbs", seed=1, draws=200, tune=100, extend=False))


def test_select_shows_it_with_its_error(fit, monkeypatch):
    """It samples: draws of the fit are the proposal."""
    monkeypatch.setattr(by_importance, "FIRST", 300)
    value, error, how = by_importance.by_importance(OVER, Candidate("", OVER, ROWS, fit, "gibbs", "sampled"))
    assert abs(value + OVER.log_coefficient(ROWS) - by_quadrature()) < 4.5 * error < 0.4
    assert how == "importance sampling"
    assert log_evidence(Candidate("", OVER, ROWS, fit, "gibbs", "sampled")) == (value, error, how)


def test_weights_that_are_too_unequal_are_withheld(fit, monkeypatch):
    for name, value in {"pareto_k": lambda weights: 0.9, "FIRST": 5, "MORE": 5}.items():
        monkeypatch.setattr(by_importance, name, value)
    with raises(bz.NumericalError, "no_evidence", "k-hat"):
        by_importance.by_importance(OVER, Candidate("", OVER, ROWS, fit, "gibbs", "sampled"))
