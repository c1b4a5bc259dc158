"""Noise whose density is flat within eps of 0 and falls off exponentially beyond; with eps = 0 it is Laplace noise.

    p(r) = c exp(-rate max(|r| - eps, 0))        c = 1 / (2 (eps + 1 / rate))

Gao, Gunn, Harris and Brown 2002.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from bayeszoo.families.glm.links import Link, Terms
from bayeszoo.foundation.named import RandomState


class Insensitive(Link):
    """Outcomes with this noise about eta. The log density has corners at a distance of eps from eta."""

    def __init__(self, eps: float, rate: float) -> None:
        self.eps, self.rate = eps, rate

    @property
    def log_height(self) -> float:
        """The log density within eps of eta."""
        return -math.log(2 * (self.eps + 1 / self.rate))

    def mean(self, eta: np.ndarray) -> np.ndarray:
        """Return the predictor itself."""
        return np.asarray(eta)

    def terms(self, eta: np.ndarray, outcome: np.ndarray, size: np.ndarray) -> Terms:
        """Return the log densities and their slopes; the curvature between corners is 0."""
        excess = outcome - eta
        slope = self.rate * np.sign(excess) * (np.abs(excess) > self.eps)
        return Terms(self.log_density(eta, outcome, size), slope, np.zeros_like(slope))

    def information(self, outcome: np.ndarray) -> np.ndarray:
        """Return the expected curvature of each row: the mean square of its slope."""
        return np.full(len(outcome), self.rate / (self.eps + 1 / self.rate))

    def log_density(self, eta: np.ndarray, outcome: np.ndarray, size: np.ndarray) -> np.ndarray:
        """Return the log density of each outcome."""
        return self.log_height - self.rate * np.maximum(np.abs(outcome - eta) - self.eps, 0.0)

    def start(self, outcome: np.ndarray, size: np.ndarray) -> np.ndarray:
        """Return the outcome."""
        return outcome

    def recedes(self, outcome: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mark no row: every row's density falls to both sides."""
        return np.zeros(len(outcome), dtype=bool), np.zeros(len(outcome), dtype=bool)


class InsensitiveNoise:
    """The distributions of outcomes about locations ``loc``, of any shape."""

    def __init__(self, loc: npt.ArrayLike, eps: float, rate: float) -> None:
        self._loc, self._eps, self._rate = np.asarray(loc, dtype=np.float64), eps, rate
        self._tail = 1 / (2 * (1 + eps * rate))  # the probability of more than eps above the location

    def logpdf(self, x: npt.ArrayLike) -> np.ndarray:
        """Log density at ``x``."""
        return np.asarray(Insensitive(self._eps, self._rate).log_density(self._loc, np.asarray(x), self._loc))

    def cdf(self, x: npt.ArrayLike) -> np.ndarray:
        """Probability below ``x``."""
        return np.exp(self.logcdf(x))

    def sf(self, x: npt.ArrayLike) -> np.ndarray:
        """Probability above ``x``."""
        return np.exp(self.logsf(x))

    def logcdf(self, x: npt.ArrayLike) -> np.ndarray:
        """Log probability below ``x``, accurate in the tails."""
        return self._log_below(np.asarray(x, dtype=np.float64) - self._loc)

    def logsf(self, x: npt.ArrayLike) -> np.ndarray:
        """Log probability above ``x``."""
        return self._log_below(self._loc - np.asarray(x, dtype=np.float64))

    def _log_below(self, r: np.ndarray) -> np.ndarray:
        """Return the log probability below a residual, from the lower tail, the flat piece or the upper tail."""
        inside = np.clip(r, -self._eps, self._eps)
        beyond = math.log(self._tail) + np.minimum(self._rate * (r + self._eps), 0.0)
        within = np.log(0.5 + self._tail * self._rate * inside)
        above = np.log1p(-self._tail * np.exp(-self._rate * np.maximum(r - self._eps, 0.0)))
        return np.where(r < -self._eps, beyond, np.where(r <= self._eps, within, above))

    def ppf(self, q: npt.ArrayLike) -> np.ndarray:
        """Quantiles; NaN if ``q`` is not between 0 and 1."""
        q = np.asarray(q, dtype=np.float64)
        lower = np.minimum(q, 1 - q)
        with np.errstate(divide="ignore", invalid="ignore"):
            beyond = np.log(np.minimum(lower / self._tail, 1.0)) / self._rate - self._eps
        within = (lower - 0.5) / (self._tail * self._rate)
        r = np.where(lower < self._tail, beyond, within)
        return self._loc + np.where(q <= 0.5, r, -r)

    def mean(self) -> np.ndarray:
        """Return the locations."""
        return self._loc

    def var(self) -> np.ndarray:
        """Return the variance: of the flat piece and of both tails."""
        eps, rate = self._eps, self._rate
        tails = 2 * self._tail * (eps**2 + 2 * eps / rate + 2 / rate**2)
        return np.full(self._loc.shape, tails + 2 * self._tail * rate * eps**3 / 3)

    def std(self) -> np.ndarray:
        """Return the standard deviation."""
        return np.sqrt(self.var())

    def rvs(self, size: Any = None, random_state: RandomState = None) -> np.ndarray:
        """Draw evenly from the flat piece, or an exponential number beyond; ``size`` ends in the shape of ``loc``."""
        rng, size = np.random.default_rng(random_state), self._loc.shape if size is None else size
        beyond = self._eps + rng.exponential(1 / self._rate, size)
        is_beyond, side = rng.random(size) < 2 * self._tail, rng.choice([-1.0, 1.0], size)
        return self._loc + side * np.where(is_beyond, beyond, rng.uniform(0, self._eps, size))
