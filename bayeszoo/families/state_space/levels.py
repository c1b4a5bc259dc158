"""Rows about a level that moves in time: filtered and smoothed levels, forecasts, and densities of rows.

Leading axes of the parameters are points, or draws; arrays are of shape (..., T). Missing rows are NaN.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import first_rows, starts
from bayeszoo.distributions import frozen
from bayeszoo.distributions.gaussian import Chained, given_all_others
from bayeszoo.families.state_space import short
from bayeszoo.foundation.named import Arrays, Params

# the import of numba is slow, and exact answers for short series do not need it
compiled = lazy_loader.load("bayeszoo.likelihoods.loops.kalman", suppress_warning=True)

SHORT = 1000
"""Most rows for which NumPy computes all points at once."""


class Filtered(NamedTuple):
    """The forward pass: arrays (points, T).

    ``ahead`` is the variance of each level given the rows before, ``mean`` and ``rest`` are mean and variance given its
    row as well; ``error`` is the prediction error of the row, and ``total`` its variance.
    """

    ahead: np.ndarray
    mean: np.ndarray
    rest: np.ndarray
    error: np.ndarray
    total: np.ndarray


@dataclass(frozen=True, eq=False)
class Levels:
    """Rows y, and standard deviations q of the steps of their level and r of rows about it, of shape (...).

    The first level of each sequence is N(m0, s0^2); ``sequence`` (T,) numbers the sequences. ``one_by_one`` selects
    compiled loops, which are faster for many single points in turn.
    """

    q: np.ndarray
    r: np.ndarray
    y: np.ndarray
    sequence: np.ndarray
    m0: float
    s0: float
    one_by_one: bool = False

    @classmethod
    def of(cls, params: Params, data: Arrays, m0: float, s0: float) -> Levels:
        """Take parameters q and r by name, and the canonical arrays of `RealSeries`."""
        q, r = np.broadcast_arrays(*(np.asarray(params[name], dtype=np.float64) for name in ("q", "r")))
        return cls(q, r, data["y"], data["sequence"], float(m0), float(s0))

    @cached_property
    def opens(self) -> np.ndarray:
        """Marks of the first row of each sequence, (T,)."""
        return first_rows(self.sequence)

    @cached_property
    def _inputs(self) -> tuple[Any, ...]:
        """The first arguments of the loops: deviations, marks, and variances, with flat points."""
        deviations = np.ascontiguousarray(self.y - self.m0, dtype=np.float64)
        with np.errstate(over="ignore"):
            flat = (np.square(values).reshape(-1) for values in (self.q, self.r))
        return deviations, self.opens, self.s0**2, *flat

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        return values.reshape((*np.shape(self.q), *values.shape[1:]))

    @property
    def _is_short(self) -> bool:
        return len(self.y) <= SHORT and not self.one_by_one

    @property
    def _loops(self) -> Any:
        return short if self._is_short else compiled

    def _empty(self, count: int) -> list[np.ndarray]:
        shape = np.size(self.q), len(self.y)
        return [np.empty(shape[::-1]).T if self._is_short else np.empty(shape) for _ in range(count)]

    @cached_property
    def _filtered(self) -> Filtered:
        forward = Filtered(*self._empty(5))
        self._loops.filtered(*self._inputs, *forward)
        return forward

    def log_marginal(self) -> np.ndarray:
        """Return the log density of all rows, (...)."""
        values = np.empty(np.size(self.q))
        self._loops.log_likelihoods(*self._inputs, values)
        return self._shaped(values)[()]

    def log_rows(self) -> np.ndarray:
        """Return the log density of each row given those before it, (..., T), 0 of a missing one."""
        seen = ~np.isnan(self.y)
        terms = np.zeros((np.size(self.q), len(self.y)))
        of_seen = frozen.norm(0.0, np.sqrt(self._filtered.total[:, seen]))
        terms[:, seen] = of_seen.logpdf(self._filtered.error[:, seen])
        return self._shaped(terms)

    def one_ahead(self, places: np.ndarray) -> frozen.Frozen:
        """Return the normal distribution of rows at ``places``, none missing, each given those before it."""
        error, total = (self._shaped(values[:, places]) for values in (self._filtered.error, self._filtered.total))
        return frozen.norm(self.y[places] - error, np.sqrt(total))

    def filtered(self) -> frozen.Frozen:
        """Return the normal distribution of each level given the rows so far, (..., T)."""
        mean, variance = (self._shaped(values) for values in (self._filtered.mean, self._filtered.rest))
        return frozen.norm(self.m0 + mean, np.sqrt(variance))

    def smoothed(self) -> Chained:
        """Return the joint Gaussian of the levels given all rows, (..., T)."""
        mean, conditional = (values.copy(order="K") for values in (self._filtered.mean, self._filtered.rest))
        gain, variance = self._empty(2)
        self._loops.smoothed(self.opens, self._inputs[3], mean, conditional, gain, variance)
        arrays = self.m0 + mean, np.sqrt(variance), gain, np.sqrt(conditional)
        return Chained(*map(self._shaped, arrays))

    def ahead(self, steps: int) -> frozen.Frozen:
        """Return the normal distribution of the levels after each sequence, (..., sequences * steps)."""
        ends = np.append(starts(self.sequence)[1:], len(self.y)) - 1
        mean, at_end = (self._shaped(values[:, ends]) for values in (self._filtered.mean, self._filtered.rest))
        moved = np.square(self.q)[..., None, None] * np.arange(1, steps + 1)
        variance = (at_end[..., None] + moved).reshape((*mean.shape[:-1], -1))
        return frozen.norm(self.m0 + np.repeat(mean, steps, axis=-1), np.sqrt(variance))

    def given_others(self, places: np.ndarray) -> frozen.Frozen:
        """Return the normal distribution of rows at ``places``, each given all others; NaN of a missing one."""
        pull, precision = self._empty(2)
        ahead, _, _, error, total = self._filtered
        self._loops.disturbances(self.opens, self._inputs[-1], ahead, error, total, pull, precision)
        y = self.y[places]
        pull, precision = (self._shaped(values[:, places]) for values in (pull, precision))
        return given_all_others(y, pull, np.where(np.isnan(y), 0.0, precision))

    def at(self, params: Params) -> Levels:
        """Return the same rows at another point."""
        return replace(self, q=np.asarray(params["q"]), r=np.asarray(params["r"]))

    def squares(self) -> tuple[dict[str, int], dict[str, float]]:
        """Return numbers of steps and rows, and expected sums of their squares, by name of the sd, at one point."""
        steps, deviations = self.sums_of_squares()
        counts = {"q": int(np.sum(~self.opens)), "r": int(np.sum(~np.isnan(self.y)))}
        return counts, {"q": float(steps), "r": float(deviations)}

    def sums_of_squares(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the expected sums of squared steps of the level, and of squared deviations of rows from it, (...)."""
        chain, seen = self.smoothed(), ~np.isnan(self.y)
        variance, inside = np.square(chain.sd), ~self.opens[1:]
        step = np.diff(chain.mean, axis=-1)
        spread = np.square(chain.rest[..., :-1]) + np.square(1 - chain.gain[..., :-1]) * variance[..., 1:]
        steps = np.sum((np.square(step) + spread)[..., inside], axis=-1)
        deviations = np.square(self.y - chain.mean) + variance
        return steps, np.sum(deviations[..., seen], axis=-1)
