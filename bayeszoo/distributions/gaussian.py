"""Gaussian vectors with correlated entries: a dense covariance matrix, or a Markov chain in time.

Leading axes of all arrays are draws, or points of a quadrature.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from bayeszoo.distributions import frozen


class GaussianVector(Protocol):
    """A vector of T entries that are jointly Gaussian."""

    @property
    def mean(self) -> np.ndarray:
        """The means, (..., T)."""

    @property
    def sd(self) -> np.ndarray:
        """The standard deviations, (..., T)."""

    def covariance(self) -> np.ndarray:
        """Return the covariance matrix, (..., T, T)."""

    def rvs(self, size: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """Draw vectors, (*size, ..., T)."""

    def logpdf(self, x: npt.ArrayLike) -> np.ndarray:
        """Return the joint log density of vectors, (...)."""


@dataclass(frozen=True, eq=False)
class Dense:
    """N(mean, L L') with means (..., T) and lower triangular factors L (..., T, T)."""

    mean: np.ndarray
    factor: np.ndarray

    @cached_property
    def sd(self) -> np.ndarray:
        """The standard deviations, (..., T)."""
        return np.asarray(np.linalg.norm(self.factor, axis=-1))

    def covariance(self) -> np.ndarray:
        """Return L L'."""
        return self.factor @ self.factor.mT

    def rvs(self, size: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """Draw vectors, (*size, ..., T)."""
        z = rng.standard_normal((*size, *self.mean.shape))
        return self.mean + (self.factor @ z[..., None])[..., 0]

    def logpdf(self, x: npt.ArrayLike) -> np.ndarray:
        """Return the joint log density of vectors, (...)."""
        z = np.linalg.solve(self.factor, (x - self.mean)[..., None])[..., 0]
        log_det = np.sum(np.log(np.diagonal(self.factor, axis1=-2, axis2=-1)), axis=-1)
        return np.asarray(frozen.norm(0.0, 1.0).logpdf(z).sum(axis=-1) - log_det)


@dataclass(frozen=True, eq=False)
class Chained:
    """A Gaussian Markov chain, as a filter and smoother return: an entry depends on later ones via the next only.

    Given x_(t+1) the entry x_t ~ N(mean_t + gain_t (x_(t+1) - mean_(t+1)), rest_t^2); the last gain is 0. Rauch, Tung
    and Striebel 1965.

    Parameters
    ----------
    mean, sd : ndarray
        Mean and standard deviation of each entry, (..., T).
    gain, rest : ndarray
        Slope of an entry on the next one, and its standard deviation given the next one, (..., T).
    """

    mean: np.ndarray
    sd: np.ndarray
    gain: np.ndarray
    rest: np.ndarray

    def covariance(self) -> np.ndarray:
        """Return the covariance matrix, (..., T, T): cov(x_t, x_s) = gain_t cov(x_(t+1), x_s) of later s."""
        matrix = np.square(self.sd)[..., None] * np.eye(self.mean.shape[-1])
        for t in range(self.mean.shape[-1] - 2, -1, -1):
            matrix[..., t, t + 1 :] = self.gain[..., t, None] * matrix[..., t + 1, t + 1 :]
            matrix[..., t + 1 :, t] = matrix[..., t, t + 1 :]
        return matrix

    def rvs(self, size: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """Draw vectors, (*size, ..., T)."""
        x = self.rest * rng.standard_normal((*size, *self.mean.shape))
        for t in range(x.shape[-1] - 2, -1, -1):
            x[..., t] += self.gain[..., t] * x[..., t + 1]
        return self.mean + x

    def logpdf(self, x: npt.ArrayLike) -> np.ndarray:
        """Return the joint log density of vectors, (...)."""
        deviation = x - self.mean
        later = np.concatenate([deviation[..., 1:], np.zeros_like(deviation[..., :1])], axis=-1)
        return np.asarray(frozen.norm(self.gain * later, self.rest).logpdf(deviation).sum(axis=-1))


def given_all_others(y: np.ndarray, pull: np.ndarray, precision: np.ndarray) -> frozen.Frozen:
    """Return the normal distribution of each entry of y ~ N(m, C) given all other entries, (..., T).

    ``pull`` is C^-1 (y - m) and ``precision`` the diagonal of C^-1, both (..., T). An entry with precision 0 is
    unknown and gets NaN. Rasmussen and Williams 2006, 5.4.2.
    """
    known_precision = np.where(precision > 0, precision, np.nan)
    return frozen.norm(y - pull / known_precision, known_precision**-0.5)
