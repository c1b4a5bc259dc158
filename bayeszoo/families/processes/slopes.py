"""Derivatives of kernels in the places: covariances of a function with its derivative along a feature.

A Gaussian process and its derivative are jointly Gaussian: cov(f(x), f'(z)) = dk(x, z) / dz, and cov(f'(x), f'(z)) =
d^2 k(x, z) / dx dz. They are computed as dual numbers: a kernel with its derivatives in either place and in both.
Rasmussen and Williams 2006, section 9.4; Solak et al. 2003.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple, Protocol

import numpy as np

from bayeszoo.errors import InputError
from bayeszoo.families.processes.kernels import KERNELS, SMALLEST, Expression, Shape

FLAT = 1e-2
"""Angle below which a difference of sine and cosine is computed from its series."""


class Jet(NamedTuple):
    """A function of pairs of places, and its derivatives along a feature in the first, in the second and in both."""

    value: np.ndarray
    x: np.ndarray
    z: np.ndarray
    xz: np.ndarray

    def through(self, value: np.ndarray, first: np.ndarray, second: np.ndarray) -> Jet:
        """Return the jet of a function of this one, from the function's value and first and second derivative."""
        return Jet(value, first * self.x, first * self.z, second * self.x * self.z + first * self.xz)

    def times(self, other: Jet) -> Jet:
        """Return the product."""
        a, b = self, other
        xz = a.xz * b.value + a.x * b.z + a.z * b.x + a.value * b.xz
        return Jet(a.value * b.value, a.x * b.value + a.value * b.x, a.z * b.value + a.value * b.z, xz)

    def plus(self, other: Jet) -> Jet:
        """Return the sum."""
        return Jet(*(a + b for a, b in zip(self, other, strict=True)))

    def over(self, number: float) -> Jet:
        """Return the jet divided by a number."""
        return Jet(*(values / number for values in self))


def _of_gaussian(t: np.ndarray, shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    return -np.exp(-t / 2) / 2, np.exp(-t / 2) / 4


def _of_matern32(t: np.ndarray, shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    r = math.sqrt(3) * np.sqrt(np.maximum(t, SMALLEST))
    return -1.5 * np.exp(-r), 2.25 * np.exp(-r) / r  # infinite at 0, but multiplied by a squared difference


def _of_matern52(t: np.ndarray, shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    r = math.sqrt(5) * np.sqrt(t)
    return -5 / 6 * (1 + r) * np.exp(-r), 25 / 12 * np.exp(-r)


def _of_rational_quadratic(t: np.ndarray, shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    alpha, log = shape.alpha, np.log1p(t / (2 * shape.alpha))
    return -np.exp(-(alpha + 1) * log) / 2, (alpha + 1) / (4 * alpha) * np.exp(-(alpha + 2) * log)


def _of_itself(t: np.ndarray, shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    return np.ones_like(t), np.zeros_like(t)


CURVES: dict[str, Callable[[np.ndarray, Shape], tuple[np.ndarray, np.ndarray]]] = {
    "rbf": _of_gaussian,
    "matern32": _of_matern32,
    "matern52": _of_matern52,
    "rational_quadratic": _of_rational_quadratic,
    "periodic": _of_gaussian,
    "linear": _of_itself,
}
"""First and second derivatives of the curves of kernels whose functions are differentiable."""


def _distances(name: str, x: np.ndarray, z: np.ndarray, feature: int, shape: Shape) -> Jet:
    """Return a kernel's distances of pairs of places (..., F), and their derivatives along a feature."""
    if name == "linear":
        products = np.sum(x * z, axis=-1)
        ones = np.ones_like(products)
        return Jet(products, z[..., feature] * ones, x[..., feature] * ones, ones)
    difference = x - z
    squares, along = np.sum(np.square(difference), axis=-1), difference[..., feature]
    jet = Jet(squares, 2 * along, -2 * along, np.full_like(squares, -2.0))
    return jet.through(*_chords(squares, shape)) if name == "periodic" else jet


def _chords(squares: np.ndarray, shape: Shape) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return squared chords from squared distances, and their first and second derivatives in the latter."""
    turn = 2 * math.pi / shape.period
    angle = turn * np.sqrt(squares)
    large = np.maximum(angle, FLAT)
    exact = (large * np.cos(large) - np.sin(large)) / (2 * large**3)
    second = np.where(angle < FLAT, -1 / 6 + np.square(angle) / 60, exact)
    return np.square(2 * np.sin(angle / 2)), turn**2 * np.sinc(angle / math.pi), turn**4 * second


def jet_of(kernel: Expression, x: np.ndarray, z: np.ndarray, feature: int, length: float) -> Jet:
    """Return a kernel at pairs of places (..., F), and its derivatives along a feature.

    Raises `InputError` if its functions have no derivative.
    """

    def factor(name: str) -> Jet:
        if name not in CURVES:
            hint = f"take one of {', '.join(CURVES)}, as matern32"
            raise InputError(f"functions of the kernel {name} have no derivative", "no_capability", hint=hint)
        t = _distances(name, x, z, feature, kernel.shape).over(length * length)
        return t.through(KERNELS[name].curve(t.value, np, kernel.shape), *CURVES[name](t.value, kernel.shape))

    return reduce(Jet.plus, (reduce(Jet.times, map(factor, term)) for term in kernel.terms))


class AtPlaces(Protocol):
    """Values or derivatives of a process at places (m, F), with covariances in units of amplitude^2."""

    has_mean: bool
    """Whether the mean is that of the process, and not 0."""

    def cross(self, rows: np.ndarray, length: float) -> np.ndarray:
        """Return the covariances (n, m) with the function at rows."""

    def covariances(self, length: float) -> np.ndarray:
        """Return the covariances (m, m)."""

    def variances(self, length: float) -> np.ndarray:
        """Return the variances (m,)."""


@dataclass(frozen=True, eq=False)
class Values:
    """The function at places."""

    kernel: Expression
    places: np.ndarray
    has_mean = True

    def cross(self, rows: np.ndarray, length: float) -> np.ndarray:
        """Return the kernel (n, m) of rows and places."""
        return np.asarray(self.kernel.correlations(self.kernel.tables(rows, self.places), length))

    def covariances(self, length: float) -> np.ndarray:
        """Return the kernel (m, m) of the places."""
        return np.asarray(self.kernel.correlations(self.kernel.tables(self.places, self.places), length))

    def variances(self, length: float) -> np.ndarray:
        """Return the kernel of each place with itself."""
        return self.kernel.diagonal(self.places, length)


@dataclass(frozen=True, eq=False)
class Slopes:
    """The derivative of the function along a feature at places, per ``unit`` of the feature."""

    kernel: Expression
    places: np.ndarray
    feature: int
    unit: float
    has_mean = False

    def _jet(self, x: np.ndarray, z: np.ndarray, length: float) -> Jet:
        return jet_of(self.kernel, x, z, self.feature, length)

    def cross(self, rows: np.ndarray, length: float) -> np.ndarray:
        """Return the derivatives of the kernel (n, m) in the places."""
        return self._jet(rows[:, None], self.places[None], length).z / self.unit

    def covariances(self, length: float) -> np.ndarray:
        """Return the derivatives of the kernel (m, m) in both places."""
        return self._jet(self.places[:, None], self.places[None], length).xz / self.unit**2

    def variances(self, length: float) -> np.ndarray:
        """Return the derivatives of the kernel of each place with itself, (m,)."""
        return self._jet(self.places, self.places, length).xz / self.unit**2
