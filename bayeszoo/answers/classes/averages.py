"""Means over the posterior: over draws or by quadrature, given all rows, or for each row given all the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy

from bayeszoo.answers.law import log_mean
from bayeszoo.answers.leave_out import importance, masses_without
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.gate import k_hat_limit
from bayeszoo.model.capabilities import LogConcave
from bayeszoo.model.integration import integrate
from bayeszoo.results.stored import Fit

_ROUNDING = 1e-14
"""Relative differences of draws that are none."""


@dataclass(frozen=True, eq=False)
class Average:
    """How means over the posterior are taken of values (chain, draw, ...): over draws, or by quadrature.

    The points of a quadrature stand for the draws of one chain, and each has its ``mass``, and one on half the grid.
    """

    kind: str
    mass: np.ndarray | None = None
    halved: np.ndarray | None = None

    def mean(self, values: np.ndarray) -> np.ndarray:
        """Return the mean."""
        return values.mean((0, 1)) if self.mass is None else np.tensordot(self.mass, values[0], 1)

    def error(self, values: np.ndarray) -> np.ndarray:
        """Return the Monte Carlo error of the mean, or what halving the grid changes; NaN of a point estimate."""
        if self.mass is not None and self.halved is not None:
            return np.abs(np.tensordot(self.mass - self.halved, values[0], 1))
        if self.kind == "point estimate":
            return np.full(values.shape[2:], np.nan)
        alike = np.ptp(values, axis=(0, 1)) <= _ROUNDING * np.max(np.abs(values), axis=(0, 1))
        return np.where(alike, 0.0, diagnostics.mcse(values))

    def log_means(self, log_p: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the log of the mean probabilities of the classes that occurred, and its error, shape (rows, K)."""
        value, error, seen = np.full(counts.shape, np.nan), np.full(counts.shape, np.nan), counts > 0
        if self.mass is None:
            value[seen], error[seen] = log_mean(log_p[:, :, seen])
        else:
            each = [scipy.special.logsumexp(log_p[0][:, seen], b=mass, axis=0) for mass in self._masses()]
            value[seen], error[seen] = each[0], np.abs(each[0] - each[1])
        return value, error

    def _masses(self) -> list[np.ndarray]:
        return [mass[:, None] for mass in (self.mass, self.halved) if mass is not None]

    def without(self, log_p: np.ndarray, counts: np.ndarray, efficiency: float) -> LeftOut:
        """Return how means are taken given all rows but each one, of log class probabilities (chain, draw, rows, K).

        A row of several trials is left out as a whole. ``efficiency`` is the effective sample size of the draws over
        their number.
        """
        with np.errstate(invalid="ignore"):  # 0 * -inf, of a class that did not occur
            of_rows = np.sum(np.where(counts > 0, counts * log_p, 0.0), axis=-1)
        if self.mass is not None and self.halved is not None:
            log_weights, of_half = (masses_without(mass, of_rows[0]) for mass in (self.mass, self.halved))
            unknown = np.full(of_rows.shape[-1], np.nan)
            return LeftOut(self.kind, log_weights[None], of_half[None], unknown, np.isfinite(log_weights).any(axis=0))
        flat, k_hat = importance(of_rows.reshape(-1, of_rows.shape[-1]), efficiency)
        return LeftOut(self.kind, flat.reshape(of_rows.shape), None, k_hat, k_hat <= k_hat_limit(len(flat)))


@dataclass(frozen=True, eq=False)
class LeftOut:
    """How means over the posterior given all rows but each one are taken, by log weights (chain, draw, rows).

    ``of_half`` are those of half the grid of a quadrature, ``k_hat`` (rows,) the Pareto shapes of those of draws, and
    ``is_known`` says of which rows the means can be trusted.
    """

    kind: str
    log_weights: np.ndarray
    of_half: np.ndarray | None
    k_hat: np.ndarray
    is_known: np.ndarray

    def mean(self, values: np.ndarray) -> np.ndarray:
        """Return the mean of values (chain, draw, rows, ...)."""
        return np.sum(_beside(np.exp(self.log_weights), values) * values, axis=(0, 1))

    def error(self, values: np.ndarray) -> np.ndarray:
        """Return the Monte Carlo error of the mean, or what halving the grid changes."""
        mean = self.mean(values)
        if self.of_half is not None:
            return np.abs(mean - np.sum(_beside(np.exp(self.of_half), values) * values, axis=(0, 1)))
        size = values.shape[0] * values.shape[1]  # by how much each draw moves the mean, to first order
        influence = size * _beside(np.exp(self.log_weights), values) * (values - mean)
        alike = np.ptp(influence, axis=(0, 1)) <= _ROUNDING * np.max(np.abs(values), axis=(0, 1))
        return np.where(alike, 0.0, diagnostics.mcse(influence))

    def log_means(self, log_p: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the log of the mean probabilities of the classes that occurred, and its error, shape (rows, K)."""
        value = scipy.special.logsumexp(_beside(self.log_weights, log_p) + log_p, axis=(0, 1))
        with np.errstate(invalid="ignore", over="ignore"):
            error = self.error(np.exp(log_p - value))  # of a mean that is 1
        return np.where(counts > 0, value, np.nan), np.where(counts > 0, error, np.nan)


def _beside(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return weights (chain, draw, rows) with as many axes as the values."""
    return np.reshape(weights, (*weights.shape, *[1] * (values.ndim - weights.ndim)))


def averaging(fit: Fit) -> tuple[Average, Mapping[str, np.ndarray]]:
    """Return how means over a fit are taken, and the parameters over which, with axes (chain, draw)."""
    if fit.method == "exact" and isinstance(fit.model, LogConcave):
        known = integrate(fit.model, fit.data)
        points = {name: values[None] for name, values in known.points.items()}
        return Average(fit.kind, known.mass, known.halved), points
    return Average(fit.kind), fit.draws()
