"""Gibbs sampling of a function and of the parameters of its covariance: amplitude, lengths, spread.

Given the Polya-Gamma variables, the rows are Gaussian in the function. The covariance parameters are drawn by slice
sampling with the function integrated out, so that they mix as in Gaussian process regression; the function is then
drawn given both. The covariance is never inverted, so that it may be singular (Rasmussen and Williams 2006, section
3.4.3; Polson, Scott and Windle 2013; Neal 2003; the function by the rule of Matheron, as in Wilson et al. 2020).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import lazy_loader
import numpy as np
import scipy

from bayeszoo.errors import InputError
from bayeszoo.families.processes.root import Root
from bayeszoo.foundation.numerics.constants import LOG_2_PI
from bayeszoo.foundation.numerics.slices import sliced

loops = lazy_loader.load("bayeszoo.likelihoods.loops.augmented", suppress_warning=True)

MOST_TRIALS = 1_000_000
"""Most trials over all rows, each of which has a latent variable."""


class Prior(Protocol):
    """The prior of a function at the rows, as a function of coordinates of its parameters."""

    def at(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return mean and covariance (n, n) of the function; raise `InputError` at invalid parameters."""

    def log_density(self, x: np.ndarray) -> float:
        """Return the log prior density of the coordinates."""


@dataclass(frozen=True, eq=False)
class Parabolas:
    """Rows given their latent variables: log densities ``pull f - weight f^2 / 2`` plus a constant.

    f is the function at the rows; ``pull`` and ``weight`` are (n,).
    """

    pull: np.ndarray
    weight: np.ndarray

    def _system(self, mean: float, covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the roots of the weights, the factor of I + sqrt(W) K sqrt(W), and the pull about the mean."""
        root = np.sqrt(self.weight)
        inner = np.eye(len(root)) + root[:, None] * covariance * root
        return root, np.linalg.cholesky(inner), self.pull - self.weight * mean

    def log_density(self, mean: float, covariance: np.ndarray) -> float:
        """Return the log of the integral over the function, up to a constant given the latent variables."""
        root, factor, pull = self._system(mean, covariance)
        moved = covariance @ pull
        explained = scipy.linalg.solve_triangular(factor, root * moved, lower=True, check_finite=False)
        fixed = mean * math.fsum(self.pull) - mean**2 / 2 * math.fsum(self.weight)
        return float(fixed + (pull @ moved - explained @ explained) / 2 - np.sum(np.log(np.diag(factor))))

    def drawn(self, mean: float, covariance: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw the function at the rows: a prior draw, corrected by the residuals of the rows (Matheron's rule)."""
        root, factor, pull = self._system(mean, covariance)
        prior_root = Root.by_size(covariance).factor
        free = prior_root @ rng.standard_normal(prior_root.shape[1])
        seen = np.divide(pull, root, out=np.zeros_like(pull), where=root > 0)
        residual = seen - root * free - rng.standard_normal(len(root))
        solved = scipy.linalg.cho_solve((factor, True), residual, check_finite=False)
        return np.asarray(mean + free + covariance @ (root * solved))


class FunctionChain:
    """Gibbs sampling of latent variables, covariance parameters given these, and the function given both."""

    def __init__(self, prior: Prior, start: np.ndarray, counts: np.ndarray, rng: np.random.Generator) -> None:
        """Begin about coordinates ``start``; ``counts`` (2, n) are successes and trials of the rows."""
        self._outcome, self._size = counts.astype(np.int64)
        if (trials := int(self._size.sum())) > MOST_TRIALS:
            refused = f"Gibbs sampling draws a latent variable for each of {trials:,} trials, more than {MOST_TRIALS:,}"
            raise InputError(refused, "too_large", hint="give the fields their values, and fit by nuts")
        self._prior, self._rng = prior, rng
        self.x = start + rng.normal(0.0, 0.5, len(start))
        self._draw_function(self._size / 4)  # the expected latent variables at a function of 0

    def _draw_function(self, weight: np.ndarray) -> None:
        self._parabolas = Parabolas(self._outcome - self._size / 2, weight)
        self._mean, self._covariance = self._prior.at(self.x)
        self.function = self._parabolas.drawn(self._mean, self._covariance, self._rng)

    def sweep(self, times: int, power: float = 1.0) -> None:
        """Draw latent variables, parameters and function in turn, in N sweeps."""
        for _ in range(times):
            weight = np.empty(len(self.function))
            loops.polya_gamma(self._size, self.function, weight, self._rng)
            self._parabolas = Parabolas(self._outcome - self._size / 2, weight)
            height = self._height(0, self.x[0])
            for i in range(len(self.x)):
                self.x[i], height = sliced(partial(self._height, i), self.x[i], height, self._rng)
            self._draw_function(weight)

    def _height(self, i: int, value: float) -> float:
        """Return the log density of one coordinate given the others and the latent variables."""
        x = self.x.copy()
        x[i] = value
        try:
            height = self._prior.log_density(x) + self._parabolas.log_density(*self._prior.at(x))
        except (InputError, np.linalg.LinAlgError):
            return -math.inf
        return height if math.isfinite(height) else -math.inf

    @property
    def log_joint(self) -> float:
        """Log density of rows, parameters and the function in coordinates that are N(0, 1) a priori."""
        root, n = Root.by_size(self._covariance), len(self.function)
        deviation = self.function[root.taken] - self._mean
        z = scipy.linalg.solve_triangular(root.factor[root.taken], deviation, lower=True)
        free = n - len(z)  # coordinates on which no row depends, whose square is 1 on average
        rows = self._outcome * self.function - self._size * np.logaddexp(0.0, self.function)
        return float(rows.sum() - (z @ z + free + n * LOG_2_PI) / 2 + self._prior.log_density(self.x))
