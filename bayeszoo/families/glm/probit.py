"""The probit link: successes of trials, of probability Phi(eta), the standard normal cumulative distribution."""

from __future__ import annotations

import math

import numpy as np
import scipy

from bayeszoo.families.glm.links import Link, Terms

FAR = -100.0
"""Predictor below which the curvature is computed from its series, as the difference would cancel."""


class Probit(Link):
    """Successes of trials, of probability Phi(eta): that eta plus standard normal noise is above 0."""

    code = 2
    apart = "separates the outcomes"
    alike = "all outcomes are alike, and the intercept runs to infinity"

    def mean(self, eta: np.ndarray) -> np.ndarray:
        """Return the probability of success."""
        return np.asarray(scipy.special.ndtr(eta))

    def terms(self, eta: np.ndarray, outcome: np.ndarray, size: np.ndarray) -> Terms:
        """Return y log Phi(eta) + (n - y) log Phi(-eta) and its derivatives, by Mills' ratio on either side."""
        up, down, failures = hazard(eta), hazard(-eta), size - outcome
        curvature = outcome * _curvature(eta, up) + failures * _curvature(-eta, down)
        return Terms(self.log_density(eta, outcome, size), outcome * up - failures * down, curvature)

    def log_density(self, eta: np.ndarray, outcome: np.ndarray, size: np.ndarray) -> np.ndarray:
        """Return the sum of the logs of the probabilities of the successes and of the failures, in their order."""
        return np.asarray(outcome * scipy.special.log_ndtr(eta) + (size - outcome) * scipy.special.log_ndtr(-eta))

    def start(self, outcome: np.ndarray, size: np.ndarray) -> np.ndarray:
        """Return the normal quantile of the share after adding half a success and half a failure."""
        return np.asarray(scipy.special.ndtri((outcome + 0.5) / (size + 1.0)))

    def recedes(self, outcome: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Say which rows have no failure, and no success."""
        return outcome == size, outcome == 0


def hazard(eta: np.ndarray) -> np.ndarray:
    """Return phi(eta) / Phi(eta), the slope of log Phi: the inverse of Mills' ratio at -eta."""
    return np.asarray(math.sqrt(2 / math.pi) / scipy.special.erfcx(-np.asarray(eta) / math.sqrt(2)))


def _curvature(eta: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Return minus the second derivative of log Phi, slope (slope + eta): from 1 far below 0 to 0 far above."""
    inverse = 1 / np.square(np.minimum(eta, FAR))
    series = 1 - inverse * (1 - inverse * (6 - inverse * 50))
    return np.where(eta < FAR, series, slope * (slope + eta))


def log_odds(eta: np.ndarray) -> np.ndarray:
    """Return the log odds of a probability of success Phi(eta), accurate also if it is nearly 0 or 1."""
    return np.asarray(scipy.special.log_ndtr(eta) - scipy.special.log_ndtr(-np.asarray(eta)))
