"""Series of level, slope, seasons and features: filtered and smoothed components, forecasts, and densities of rows.

Leading axes of the parameters are points, or draws; arrays are of shape (..., T). Missing rows are NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import first_rows
from bayeszoo.distributions import frozen
from bayeszoo.distributions.gaussian import given_all_others
from bayeszoo.families.state_space.matrices import Matrices
from bayeszoo.families.state_space.structure import SDS, SIGNAL, Structure
from bayeszoo.foundation.named import Arrays, Params

# the import of numba is slow, and other models do not need it
loops = lazy_loader.load("bayeszoo.likelihoods.loops.structural", suppress_warning=True)
states = lazy_loader.load("bayeszoo.likelihoods.loops.structural_states", suppress_warning=True)
parts_of = lazy_loader.load("bayeszoo.likelihoods.loops.structural_parts", suppress_warning=True)


class Backward(NamedTuple):
    """Log densities, their derivatives in variances, and the distribution of each row given all others.

    ``height`` and ``of_r2`` are (points,), ``of_q2`` (3, points), ``pull`` and ``precision`` (points, rows).
    """

    height: np.ndarray
    of_q2: np.ndarray
    of_r2: np.ndarray
    pull: np.ndarray
    precision: np.ndarray


@dataclass(frozen=True, eq=False)
class Components:
    """Rows y with features X, and standard deviations of the steps of parts (3, P) and of rows (P,) at P points.

    ``shape`` is that of the points. ``sequence`` (T,) numbers the sequences; the first level of each has the mean m0.
    """

    q: np.ndarray
    r: np.ndarray
    shape: tuple[int, ...]
    y: np.ndarray
    X: np.ndarray
    sequence: np.ndarray
    m0: float
    structure: Structure | Matrices

    @classmethod
    def of(cls, params: Params, data: Arrays, m0: float, structure: Structure | Matrices) -> Self:
        """Take standard deviations by name, by default 0, and the canonical arrays of a series."""
        sds = np.broadcast_arrays(*(np.asarray(params.get(name, 0.0), dtype=np.float64) for name in SDS))
        flat = np.array([values.reshape(-1) for values in sds])
        X = np.ascontiguousarray(data["X"], dtype=np.float64)
        return cls(flat[:-1], flat[-1], sds[0].shape, data["y"], X, data["sequence"], float(m0), structure)

    def at(self, params: Mapping[str, object]) -> Components:
        """Return the same rows at another point."""
        return type(self).of(params, {"y": self.y, "X": self.X, "sequence": self.sequence}, self.m0, self.structure)

    @cached_property
    def opens(self) -> np.ndarray:
        """Marks of the first row of each sequence, (T,)."""
        return first_rows(self.sequence)

    @cached_property
    def _inputs(self) -> tuple[Any, ...]:
        """The arguments of all loops."""
        deviations = np.ascontiguousarray(self.y - self.m0, dtype=np.float64)
        with np.errstate(over="ignore"):
            squares = np.square(self.q), np.square(self.r)
        form = states.Form(*self.structure.form)
        return deviations, self.X, self.opens, form, *self.structure.factors, *squares

    @property
    def _asked(self) -> np.ndarray:
        return self.structure.codes

    def _empty(self, rows: int) -> tuple[np.ndarray, np.ndarray]:
        shape = len(self.r), len(self._asked), rows
        return np.empty(shape), np.empty(shape)

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        return values.reshape((*self.shape, *values.shape[1:]))

    def _law(self, mean: np.ndarray, variance: np.ndarray) -> frozen.Frozen:
        """Return the distributions of parts (..., parts * rows), all rows of a part together."""
        has_m0 = np.array([part in ("level", SIGNAL) for part in self.structure.shown])
        mean = mean + np.where(has_m0, self.m0, 0.0)[:, None]
        flat = (self._shaped(values.reshape(len(values), -1)) for values in (mean, np.sqrt(variance)))
        return frozen.norm(*flat)

    def log_marginal(self) -> np.ndarray:
        """Return the log density of all rows, (...)."""
        values = np.empty(len(self.r))
        loops.log_likelihoods(*self._inputs, values)
        return self._shaped(values)[()]

    @cached_property
    def _filtered(self) -> tuple[np.ndarray, ...]:
        shape, moments = (len(self.r), len(self.y)), self._empty(len(self.y))
        filled = *moments, np.empty(shape), np.empty(shape)
        parts_of.filtered(*self._inputs, self._asked, *filled)
        return filled

    @cached_property
    def backward(self) -> Backward:
        """The results of the backward pass."""
        points, rows = len(self.r), len(self.y)
        filled = Backward(
            np.empty(points), np.empty((3, points)), np.empty(points), *(np.empty((points, rows)) for _ in range(2))
        )
        loops.backward(*self._inputs, *filled)
        return filled

    def slopes(self) -> dict[str, float]:
        """Return the derivatives of the log density of all rows in each standard deviation at one point."""
        value, of_q2, of_r2 = loops.derivatives(*self._inputs[:-2], self._inputs[-2][:, 0].copy(), self._inputs[-1][0])
        if not np.isfinite(value):
            return dict.fromkeys(SDS, 0.0)
        slopes = 2 * np.append(self.q[:, 0], self.r) * np.append(of_q2, of_r2)
        return dict(zip(SDS, slopes.tolist(), strict=True))

    def log_rows(self) -> np.ndarray:
        """Return the log density of each row given the rows before, (..., T), 0 for a missing row."""
        seen, (_, _, error, total) = ~np.isnan(self.y), self._filtered
        terms = np.zeros(error.shape)
        terms[:, seen] = frozen.norm(0.0, np.sqrt(total[:, seen])).logpdf(error[:, seen])
        return self._shaped(terms)

    def one_ahead(self, places: np.ndarray) -> frozen.Frozen:
        """Return the normal distribution of rows at ``places``, none missing, each given the rows before."""
        error, total = (self._shaped(values[:, places]) for values in self._filtered[2:])
        return frozen.norm(self.y[places] - error, np.sqrt(total))

    def filtered(self) -> frozen.Frozen:
        """Return the normal distribution of each part given the rows so far, (..., parts * T)."""
        return self._law(*self._filtered[:2])

    def smoothed(self) -> frozen.Frozen:
        """Return the normal distribution of each part given all rows, (..., parts * T)."""
        moments = self._empty(len(self.y))
        parts_of.smoothed(*self._inputs, self._asked, *moments)
        return self._law(*moments)

    def path(self, rng: np.random.Generator) -> np.ndarray:
        """Draw the levels given all rows at one point, (T,)."""
        z = rng.standard_normal((len(self.y), len(self.structure.of_level)))
        parts_of.drawn(*self._inputs, z)
        return np.asarray(self.m0 + z @ self.structure.of_level)

    def ahead(self, steps: int, new: np.ndarray) -> frozen.Frozen:
        """Return the normal distribution of each part after each sequence, (..., parts * sequences * steps).

        ``new`` (steps, p) are the features of the future rows.
        """
        sequences = np.unique(self.sequence)
        pairs = [self._after(k, steps, new)[0] for k in sequences]
        mean, variance = (np.concatenate([pair[i] for pair in pairs], axis=2) for i in (0, 1))
        return self._law(mean, variance)

    def _after(self, sequence: int, steps: int, new: np.ndarray) -> tuple[Any, tuple[np.ndarray, ...]]:
        """Return moments of parts after a sequence, and of the weights.

        Other sequences are informative about the weights alone. Sequences are exchangeable, so that this one may be
        taken as the last.
        """
        within = np.flatnonzero(self.sequence == sequence)
        outside = np.flatnonzero(self.sequence != sequence) if self.structure.tau else within[:0]
        order, p = np.concatenate([outside, within]), len(self.structure.tau)
        y, X, opens, *constants = self._inputs
        weights = np.empty((len(self.r), p)), np.empty((len(self.r), p, p)), np.empty((len(self.r), p))
        moments, new = self._empty(steps), np.ascontiguousarray(new)
        parts_of.ahead(y[order], X[order], opens[order], *constants, new, self._asked, *moments, *weights)
        return moments, weights

    def weights(self) -> tuple[np.ndarray, np.ndarray]:
        """Return means (..., p) and triangular factors (..., p, p) of the covariance matrix of the weights."""
        mean, factor, scale = self._after(int(self.sequence[-1]), 0, np.empty((0, self.X.shape[1])))[1]
        return self._shaped(mean), self._shaped(factor * np.sqrt(scale)[:, None, :])

    def given_others(self, places: np.ndarray) -> frozen.Frozen:
        """Return the normal distribution of rows at ``places``, each given all others; NaN for a missing row."""
        pull, precision = (self._shaped(values[:, places]) for values in (self.backward.pull, self.backward.precision))
        return given_all_others(self.y[places], pull, precision)

    def squares(self) -> tuple[dict[str, int], dict[str, float]]:
        """Return numbers of steps, and expected sums of their squares, by the name of their sd, at one point.

        By Fisher's identity, the derivative in the variance v of n steps is (S / v - n) / (2 v).
        """
        inside, seen = int(np.sum(~self.opens)), int(np.sum(~np.isnan(self.y)))
        counts = {name: seen if name == "r" else inside * self.structure.noises for name in SDS}
        v = np.square(np.append(self.q[:, 0], self.r))
        slopes = np.append(self.backward.of_q2[:, 0], self.backward.of_r2)
        totals = np.maximum(np.array(list(counts.values())) * v + 2 * np.square(v) * slopes, 0.0)
        return counts, dict(zip(SDS, totals.tolist(), strict=True))
