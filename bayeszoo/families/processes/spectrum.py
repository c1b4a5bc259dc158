"""Rows of a Gaussian process with noise: their density and predictions, by eigenvectors of the kernel.

With K the kernel of n rows at a length, K = U diag(e) U', the covariance of the rows is a^2 K + s^2 I = U diag(v) U',
v = a^2 e + s^2, for every amplitude a and noise s. So one decomposition of n^3 operations serves all of them, and each
pair (a, s) then costs n. Rasmussen and Williams 2006, 2.2 and 5.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from bayeszoo.distributions.gaussian import given_all_others
from bayeszoo.families.processes import cholesky
from bayeszoo.families.processes.kernels import Expression
from bayeszoo.families.processes.root import root_of
from bayeszoo.families.processes.slopes import AtPlaces
from bayeszoo.foundation.named import Params
from bayeszoo.foundation.numerics.constants import LOG_2_PI

NAMES = ("amplitude", "length", "sigma")
EPSILON = float(np.finfo(np.float64).eps)
LEAST_SHARE = 1e-10
"""Ratio of the smallest to the largest eigenvalue of the covariance below which its inverse is only rounding."""
SHORTEST = 1e-140
"""Shortest length whose square can be divided by."""
MOST_KEPT = 2**25
"""Most numbers in cached eigenvectors: 256 MB."""

Pair = tuple[np.ndarray, np.ndarray]


class Spectrum(NamedTuple):
    """Eigenvalues (n,) and eigenvectors (n, n) of the kernel of rows at a length, and the centred outcomes along these.

    With a smooth kernel most eigenvalues are 0 up to rounding: the first ``flat``, which all have the variance s^2.
    """

    values: np.ndarray
    vectors: np.ndarray
    outcome: np.ndarray
    flat: int


@dataclass(frozen=True, eq=False)
class Rows:
    """Places (n, F) and outcomes (n,) of rows, the mean of the process, and cached spectra by length."""

    kernel: Expression
    places: np.ndarray
    y: np.ndarray
    mean: float
    tables: list[list[np.ndarray]] = field(init=False)
    _kept: dict[float, Spectrum] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tables", self.kernel.tables(self.places, self.places))

    def at(self, length: float) -> Spectrum:
        """Return the spectrum at a length."""
        if length not in self._kept:
            if (len(self._kept) + 1) * len(self.y) ** 2 > MOST_KEPT:
                self._kept.clear()
            with np.errstate(over="ignore", under="ignore"):  # correlations of distant rows underflow
                kernel = self.kernel.correlations(self.tables, min(max(length, SHORTEST), 1 / SHORTEST))
            values, vectors = np.linalg.eigh(kernel)
            flat = int(np.searchsorted(values, EPSILON * np.max(values, initial=0.0)))
            values[:flat] = 0.0
            self._kept[length] = Spectrum(values, vectors, (self.y - self.mean) @ vectors, flat)
        return self._kept[length]

    def by_length(self, outer: Params, function: Callable[[Spectrum, np.ndarray, np.ndarray, float], Any]) -> Any:
        """Compute a function at points of any shape, grouped by length.

        The arguments of the function are the spectrum, amplitudes^2 and noises^2 (P, 1) and the length; it returns an
        array (P, ...), or a tuple of arrays.
        """
        amplitude, length, sigma = np.broadcast_arrays(*(outer[name] for name in NAMES))
        squares = [np.square(np.ravel(sd).astype(np.float64))[:, None] for sd in (amplitude, sigma)]
        lengths, code = np.unique(np.ravel(length), return_inverse=True)
        order = np.argsort(code, kind="stable")
        parts = []
        for value, group in zip(lengths.tolist(), _groups(code[order]), strict=True):
            spectrum, (a, s) = self.at(value), (square[order[group]] for square in squares)
            parts.append(function(spectrum, a, s, value))
        back = np.argsort(order)

        def joined(arrays: Sequence[np.ndarray]) -> np.ndarray:
            return np.concatenate(arrays)[back].reshape((*amplitude.shape, *arrays[0].shape[1:]))

        if isinstance(parts[0], tuple):
            return tuple(joined(arrays) for arrays in zip(*parts, strict=True))
        return joined(parts)

    def log_density(self, outer: Params) -> Any:
        """Return the log density of the rows; -inf if the covariance is singular up to rounding."""
        if len(self.y) and all(np.ndim(outer[name]) == 0 for name in NAMES):
            return cholesky.log_density(self.kernel, self.tables, self.y - self.mean, _point(outer), LEAST_SHARE)

        def density(spectrum: Spectrum, a: np.ndarray, s: np.ndarray, length: float) -> np.ndarray:
            flat, squares = spectrum.flat, np.square(spectrum.outcome)
            v = a * spectrum.values[flat:] + s
            with np.errstate(all="ignore"):  # the density may be -inf
                terms = np.sum(np.log(v), axis=-1) + (1 / v) @ squares[flat:]
                terms += (flat * np.log(s) + np.sum(squares[:flat]) / s)[:, 0] if flat else 0.0
            heights = -(terms + len(self.y) * LOG_2_PI) / 2
            return np.where(is_safe(s[:, 0] if flat else np.min(v, axis=-1, initial=np.inf), v), heights, -np.inf)

        return self.by_length(outer, density)[()]

    def slopes(self, outer: Params) -> dict[str, float]:
        """Return the derivatives of the log density at one point."""
        point = _point(outer)
        _, slopes = cholesky.with_slopes(self.kernel, self.tables, self.y - self.mean, point, LEAST_SHARE)
        return dict(zip(NAMES, (slopes / point).tolist(), strict=True))

    def function(self, outer: Params, target: AtPlaces) -> tuple[np.ndarray, np.ndarray]:
        """Return means and variances (..., m) of the function at places (m, F), or of its derivative."""

        def moments(spectrum: Spectrum, a: np.ndarray, s: np.ndarray, length: float) -> Pair:
            v = a * spectrum.values + s
            along, prior = spectrum.vectors.T @ target.cross(self.places, length), target.variances(length)
            return a * ((spectrum.outcome / v) @ along), np.maximum(a * (prior - a * ((1 / v) @ np.square(along))), 0.0)

        mean, variance = self.by_length(outer, moments)
        return target.has_mean * self.mean + mean, variance

    def covariance(self, outer: Params, target: AtPlaces) -> np.ndarray:
        """Return the covariance (..., m, m) of the function at places (m, F), or of its derivative."""

        def matrices(spectrum: Spectrum, a: np.ndarray, s: np.ndarray, length: float) -> np.ndarray:
            v = a * spectrum.values + s
            along, prior = spectrum.vectors.T @ target.cross(self.places, length), target.covariances(length)
            explained = np.einsum("pi,ij,ik->pjk", 1 / v, along, along)
            return a[..., None] * (prior - a[..., None] * explained)

        return np.asarray(self.by_length(outer, matrices))

    def prior_variances(self, outer: Params, target: AtPlaces) -> np.ndarray:
        """Return the prior variance at places (m, F) divided by amplitude^2, (..., m)."""

        def variances(spectrum: Spectrum, a: np.ndarray, s: np.ndarray, length: float) -> np.ndarray:
            return np.tile(target.variances(length), (len(a), 1))

        return np.asarray(self.by_length(outer, variances))

    def drawn(self, outer: Params, target: AtPlaces, rng: np.random.Generator) -> np.ndarray:
        """Draw the function at all places (m, F) jointly, or its derivative, one draw per point, (..., m)."""

        def draws(spectrum: Spectrum, a: np.ndarray, s: np.ndarray, length: float) -> np.ndarray:
            v, along = a * spectrum.values + s, spectrum.vectors.T @ target.cross(self.places, length)
            prior = target.covariances(length)
            z = rng.standard_normal((len(a), len(prior)))
            return np.array(
                [
                    amplitude * ((spectrum.outcome / variance) @ along)
                    + root_of(amplitude * (prior - amplitude * (along.T / variance) @ along)) @ noise
                    for amplitude, variance, noise in zip(a[:, 0], v, z, strict=True)
                ]
            )

        return target.has_mean * self.mean + np.asarray(self.by_length(outer, draws))

    def held_out(self, outer: Params, rows: np.ndarray) -> Any:
        """Return the normal distribution of rows, each given all others (5.4.2)."""

        def pulls(spectrum: Spectrum, a: np.ndarray, s: np.ndarray, length: float) -> Pair:
            v = a * spectrum.values + s
            along = spectrum.vectors[rows].T
            return (spectrum.outcome / v) @ along, (1 / v) @ np.square(along)

        return given_all_others(self.y[rows], *self.by_length(outer, pulls))


def _point(outer: Params) -> cholesky.Point:
    amplitude, length, sigma = (float(outer[name]) for name in NAMES)
    return amplitude, min(max(length, SHORTEST), 1 / SHORTEST), sigma


def is_safe(least: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Say whether the least eigenvalue (P,) is large enough, compared with those in ``v`` (P, r), for an inverse."""
    largest = np.max(v, axis=-1, initial=0.0)
    return (least > LEAST_SHARE * largest) & np.isfinite(largest)


def _groups(sorted_codes: np.ndarray) -> Iterator[slice]:
    """Yield the slice of each distinct code in sorted codes."""
    starts = np.flatnonzero(np.diff(sorted_codes, prepend=-1))
    ends = [*starts[1:].tolist(), len(sorted_codes)]
    return (slice(start, end) for start, end in zip(starts.tolist(), ends, strict=True))
