"""Links: the log density of one row as a function of its linear predictor eta, with two derivatives.

Each row has an outcome and a size: the number of trials if the outcome counts successes, or the exposure of a count.
Trials are ordered, so that binomial coefficients are left out; for counts every constant is kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np
import scipy

from bayeszoo.distributions.special import log_poisson


class Terms(NamedTuple):
    """Log densities of rows at their eta, the first derivatives, and minus the second ones, which are >= 0."""

    value: np.ndarray
    slope: np.ndarray
    curvature: np.ndarray


class Link(ABC):
    """The log density of a row given eta: concave, so that Newton's method finds the one mode."""

    code: ClassVar[int]
    """Number of the link in the compiled likelihood."""
    apart: ClassVar[str]
    """Verb phrase of the message when a combination of features leaves the likelihood without a maximum."""
    alike: ClassVar[str]
    """Message when the intercept alone leaves the likelihood without a maximum."""

    @abstractmethod
    def mean(self, eta: np.ndarray) -> np.ndarray:
        """Return the inverse link: the mean outcome of one trial, or of an exposure of 1."""

    @abstractmethod
    def terms(self, eta: np.ndarray, outcome: np.ndarray, size: np.ndarray) -> Terms:
        """Return the log density of each row and its derivatives in eta."""

    @abstractmethod
    def log_density(self, eta: np.ndarray, outcome: np.ndarray, size: np.ndarray) -> np.ndarray:
        """Return the log density of each row, of shape (..., rows) as eta."""

    @abstractmethod
    def start(self, outcome: np.ndarray, size: np.ndarray) -> np.ndarray:
        """Return a finite eta for each row, estimated from its outcome alone."""

    @abstractmethod
    def recedes(self, outcome: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mark rows whose log density does not fall as eta goes to infinity, and as it goes to minus infinity."""


class Logit(Link):
    """Successes of trials, of probability 1 / (1 + exp(-eta))."""

    code = 0
    apart = "separates the outcomes"
    alike = "all outcomes are alike, and the intercept runs to infinity"

    def mean(self, eta: np.ndarray) -> np.ndarray:
        """Return the probability of success."""
        return np.asarray(scipy.special.expit(eta))

    def terms(self, eta: np.ndarray, outcome: np.ndarray, size: np.ndarray) -> Terms:
        """Return y eta - n log(1 + exp(eta)), y - n p and n p (1 - p)."""
        p, q = scipy.special.expit(eta), scipy.special.expit(-eta)
        # the slope has two equivalent forms; take the one without cancellation
        slope = np.where(eta < 0, outcome - size * p, size * q - (size - outcome))
        return Terms(self.log_density(eta, outcome, size), slope, size * p * q)

    def log_density(self, eta: np.ndarray, outcome: np.ndarray, size: np.ndarray) -> np.ndarray:
        """Return the sum of the logs of the probabilities of the successes and of the failures, in their order."""
        far = np.abs(eta)
        unlikely = np.where(eta < 0, outcome, size - outcome)  # trials with the less probable outcome
        return np.asarray(-unlikely * far - size * np.log1p(np.exp(-far)))

    def start(self, outcome: np.ndarray, size: np.ndarray) -> np.ndarray:
        """Return the log odds after adding half a success and half a failure."""
        return np.asarray(np.log((outcome + 0.5) / (size - outcome + 0.5)))

    def recedes(self, outcome: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mark rows without failures, and rows without successes."""
        return outcome == size, outcome == 0


class Log(Link):
    """Counts of mean size exp(eta); a size is an exposure, > 0."""

    code = 1
    apart = "is constant but where all counts are 0"
    alike = "all counts are 0, and the intercept runs to minus infinity"

    def mean(self, eta: np.ndarray) -> np.ndarray:
        """Return the mean count for an exposure of 1; infinity if it overflows."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(eta))

    def terms(self, eta: np.ndarray, outcome: np.ndarray, size: np.ndarray) -> Terms:
        """Return y log m - m - log y!, y - m and m, where m is the mean."""
        mean = size * self.mean(eta)
        return Terms(self.log_density(eta, outcome, size), outcome - mean, mean)

    def log_density(self, eta: np.ndarray, outcome: np.ndarray, size: np.ndarray) -> np.ndarray:
        """Return the log density of each count, from the log of its mean."""
        return log_poisson(outcome, eta + np.log(size))

    def start(self, outcome: np.ndarray, size: np.ndarray) -> np.ndarray:
        """Return the log rate after adding half an event."""
        return np.asarray(np.log((outcome + 0.5) / size))

    def recedes(self, outcome: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mark no row as eta goes to infinity, and rows with a count of 0 as it goes to minus infinity."""
        return np.zeros(len(outcome), dtype=bool), outcome == 0
