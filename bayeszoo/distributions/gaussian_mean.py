"""The mean of Gaussian rows with known covariance, in coordinates in which prior and noise are diagonal.

In these the entries of the mean are independent; no matrix is inverted and no digits cancel. Murphy 2012, 4.6.1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bayeszoo.distributions.gaussian import Dense
from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.distributions.structures import solve_lower
from bayeszoo.foundation.numerics.constants import LOG_2_PI


@dataclass(frozen=True, eq=False)
class KnownCovariance:
    """Rows N(mu, Sigma) with the moments ``stats``, and mu ~ N(m0, S0); S0 and Sigma of shape (D, D)."""

    stats: Moments
    m0: np.ndarray
    S0: np.ndarray
    Sigma: np.ndarray

    @cached_property
    def _noise(self) -> np.ndarray:
        """L, with Sigma = L L'."""
        return np.linalg.cholesky(self.Sigma)

    @cached_property
    def _axes(self) -> tuple[np.ndarray, np.ndarray]:
        """U and the roots of d, with L^-1 S0 L^-T = U diag(d) U'."""
        turn, roots, _ = np.linalg.svd(solve_lower(self._noise, np.linalg.cholesky(self.S0)))
        return turn, roots

    @cached_property
    def _deviation(self) -> np.ndarray:
        """The mean of the rows minus m0, in the coordinates z = U' L^-1 (mu - m0)."""
        return self._axes[0].T @ solve_lower(self._noise, self.stats.less(self.m0)[:, None])[:, 0]

    @cached_property
    def _growth(self) -> np.ndarray:
        """The factor by which the rows raise the precision of each entry of z."""
        return np.asarray(1 + self.stats.n * np.square(self._axes[1]))

    @cached_property
    def posterior(self) -> Dense:
        """The posterior of mu."""
        turn, roots = self._axes
        moved = self.stats.n * np.square(roots) / self._growth * self._deviation
        root = self._noise @ (turn * (roots / np.sqrt(self._growth)))
        upper = np.linalg.qr(root.T, mode="r")
        return Dense(self.m0 + self._noise @ (turn @ moved), (upper * np.sign(np.diag(upper))[:, None]).T)

    @property
    def pull(self) -> np.ndarray:
        """A square root R of the rows' precision of mu: R' R = N Sigma^-1."""
        return math.sqrt(self.stats.n) * solve_lower(self._noise, np.eye(len(self.m0)))

    @property
    def peak(self) -> np.ndarray:
        """The log likelihood at the mean of the rows."""
        half = solve_lower(self._noise, solve_lower(self._noise, np.asarray(self.stats.scatter)).T)
        log_det = 2 * np.log(np.diag(self._noise)).sum()
        return np.asarray(-(self.stats.n * (len(self.m0) * LOG_2_PI + log_det) + np.trace(half)) / 2)

    @property
    def log_evidence(self) -> float:
        """The log density of the ordered rows, mu integrated out."""
        misfit = self.stats.n * np.sum(np.square(self._deviation) / self._growth)
        return float(self.peak - (np.log(self._growth).sum() + misfit) / 2)
