"""Pieces of the PyMC declarations of regressions with a link: outcomes by their linear predictor, however far out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import scipy


def BinomialByLogOdds(name: str, trials: Any, log_odds: Any, observed: Any) -> Any:
    """Declare successes of trials, one entry a row; ``pm.Binomial`` takes those of sure trials for impossible."""

    def log_mass(value: Any, trials: Any, log_odds: Any) -> Any:
        orders = pt.gammaln(trials + 1.0) - pt.gammaln(value + 1.0) - pt.gammaln(trials - value + 1.0)
        return orders + value * log_odds - trials * pt.softplus(log_odds)

    def draw(trials: Any, log_odds: Any, rng: np.random.Generator, size: Any = None) -> Any:
        return rng.binomial(trials.astype(np.int64), scipy.special.expit(log_odds), size)

    return pm.CustomDist(
        name, trials, log_odds, logp=log_mass, random=draw, observed=observed, dims="row", dtype="int64"
    )


def PoissonByLogMean(name: str, exposure: Any, log_rate: Any, observed: Any) -> Any:
    """Declare counts of an exposure, one entry a row; ``pm.Poisson`` takes those of tiny means for impossible."""

    def log_mass(value: Any, exposure: Any, log_rate: Any) -> Any:
        log_mean = log_rate + pt.log(exposure)
        return value * log_mean - pt.exp(log_mean) - pt.gammaln(value + np.float64(1.0))

    def draw(exposure: Any, log_rate: Any, rng: np.random.Generator, size: Any = None) -> Any:
        return rng.poisson(exposure * np.exp(log_rate), size)

    return pm.CustomDist(
        name, exposure, log_rate, logp=log_mass, random=draw, observed=observed, dims="row", dtype="int64"
    )


def NegativeBinomialByLogMean(name: str, log_mean: Any, phi: Any, observed: Any) -> Any:
    """Declare counts of variance mean + mean^2 / phi, one entry a row, however large or small the means are."""

    def log_mass(value: Any, log_mean: Any, phi: Any) -> Any:
        share = log_mean - pt.log(phi)
        orders = pt.gammaln(value + phi) - pt.gammaln(phi) - pt.gammaln(value + np.float64(1.0))
        return orders - phi * pt.softplus(share) - value * pt.softplus(-share)

    def draw(log_mean: Any, phi: Any, rng: np.random.Generator, size: Any = None) -> Any:
        return rng.poisson(rng.gamma(phi, np.exp(log_mean) / phi, size))

    return pm.CustomDist(name, log_mean, phi, logp=log_mass, random=draw, observed=observed, dims="row", dtype="int64")


def log_odds_of_probit(eta: Any) -> Any:
    """Return the log odds of a success of probability Phi(eta); its gradient is finite however far out eta is."""
    return _log_normal_cdf(eta) - _log_normal_cdf(-eta)


def _log_normal_cdf(eta: Any) -> Any:
    """Return log Phi(eta); each branch sees only what it can take, as PyTensor differentiates both of a switch."""
    below, above = pt.minimum(eta, np.float64(0.0)), pt.maximum(eta, np.float64(0.0))
    root = np.float64(math.sqrt(2))
    low = pt.log(pt.erfcx(-below / root) / np.float64(2.0)) - pt.sqr(below) / np.float64(2.0)
    return pt.switch(pt.lt(eta, 0), low, pt.log1p(-pt.erfc(above / root) / np.float64(2.0)))
