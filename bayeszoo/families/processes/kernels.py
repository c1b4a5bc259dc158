"""Kernels by name: the correlation of a function's values at two places, at a length scale.

A kernel has a table of distances B of all pairs of places, which does not depend on the length, and a function of
t = B / length^2. Kernels are added and multiplied by ``+`` and ``*``: ``linear + rbf``, ``periodic * rbf``. All share
one length. Rasmussen and Williams 2006, chapter 4; the parametrization is that of `sklearn.gaussian_process.kernels`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import mul
from types import ModuleType
from typing import Any

import numpy as np

from bayeszoo.errors import InputError

SMALLEST = 1e-300
"""Replaces a squared distance of 0, whose root has no derivative."""


@dataclass(frozen=True)
class Shape:
    """Parameters of some kernels other than the length: ``period``, and ``alpha`` of the rational quadratic."""

    period: float = 1.0
    alpha: float = 1.0


Table = Callable[[np.ndarray, np.ndarray, Shape], np.ndarray]
"""Distances (n, m) of places (n, F) and (m, F)."""
Curve = Callable[[Any, Any, Shape], Any]
"""The correlation at t, computed with the functions of a module ``xp``, NumPy or PyTensor."""


@dataclass(frozen=True)
class Kernel:
    """A kernel without its length: distances of places, and the correlation at distances / length^2."""

    distances: Table
    curve: Curve
    slope: Curve
    """t times the derivative of the correlation at t."""
    is_stationary: bool = True
    """Whether it depends on differences of places alone; it is then 1 at a difference of 0."""


def _squared(x: np.ndarray, z: np.ndarray, shape: Shape) -> np.ndarray:
    return np.sum(np.square(x[:, None, :] - z[None, :, :]), axis=-1)


def _chords(x: np.ndarray, z: np.ndarray, shape: Shape) -> np.ndarray:
    """Return squared chords between places on a circle whose circumference is the period."""
    return np.square(2 * np.sin(math.pi / shape.period * np.sqrt(_squared(x, z, shape))))


def _products(x: np.ndarray, z: np.ndarray, shape: Shape) -> np.ndarray:
    return x @ z.T


def _least(x: np.ndarray, z: np.ndarray, shape: Shape) -> np.ndarray:
    """Return the square of the smaller of two times, (n, m)."""
    if x.shape[1] != 1:
        raise InputError(f"the kernel brownian needs one feature, got {x.shape[1]}", "wrong_shape")
    if min(np.min(x, initial=0.0), np.min(z, initial=0.0)) < 0:
        raise InputError(
            "the kernel brownian starts at center, and some rows are before it", "out_of_range", hint="set center"
        )
    return np.square(np.minimum(x, z.T))


def _root(t: Any, xp: Any) -> Any:
    return xp.sqrt(xp.maximum(t, SMALLEST))


def _matern32(t: np.ndarray, xp: Any, shape: Shape) -> np.ndarray:
    r = math.sqrt(3) * _root(t, xp)
    return (1 + r) * xp.exp(-r)


def _matern32_slope(t: np.ndarray, xp: Any, shape: Shape) -> np.ndarray:
    r = math.sqrt(3) * _root(t, xp)
    return -r * r / 2 * xp.exp(-r)


def _matern52_slope(t: np.ndarray, xp: Any, shape: Shape) -> np.ndarray:
    r = math.sqrt(5) * _root(t, xp)
    return -r * r * (1 + r) / 6 * xp.exp(-r)


def _matern52(t: np.ndarray, xp: Any, shape: Shape) -> np.ndarray:
    r = math.sqrt(5) * _root(t, xp)
    return (1 + r + r * r / 3) * xp.exp(-r)


def _rational_quadratic(t: np.ndarray, xp: Any, shape: Shape) -> np.ndarray:
    return xp.exp(-shape.alpha * xp.log1p(t / (2 * shape.alpha)))


def _rational_quadratic_slope(t: np.ndarray, xp: Any, shape: Shape) -> np.ndarray:
    return -t / 2 * xp.exp(-(shape.alpha + 1) * xp.log1p(t / (2 * shape.alpha)))


def _exponential(t: np.ndarray, xp: Any, shape: Shape) -> np.ndarray:
    return xp.exp(-_root(t, xp))


def _exponential_slope(t: np.ndarray, xp: Any, shape: Shape) -> np.ndarray:
    r = _root(t, xp)
    return -r / 2 * xp.exp(-r)


def _gaussian(t: np.ndarray, xp: Any, shape: Shape) -> np.ndarray:
    return xp.exp(-t / 2)


def _gaussian_slope(t: np.ndarray, xp: Any, shape: Shape) -> np.ndarray:
    return -t / 2 * xp.exp(-t / 2)


def _itself(t: object, xp: object, shape: Shape) -> Any:
    return t


def _root_of(t: object, xp: object, shape: Shape) -> Any:
    return _root(t, xp)


def _root_slope(t: object, xp: object, shape: Shape) -> Any:
    return _root(t, xp) / 2


KERNELS: dict[str, Kernel] = {
    "rbf": Kernel(_squared, _gaussian, _gaussian_slope),
    "matern12": Kernel(_squared, _exponential, _exponential_slope),
    "matern32": Kernel(_squared, _matern32, _matern32_slope),
    "matern52": Kernel(_squared, _matern52, _matern52_slope),
    "rational_quadratic": Kernel(_squared, _rational_quadratic, _rational_quadratic_slope),
    "periodic": Kernel(_chords, _gaussian, _gaussian_slope),
    "linear": Kernel(_products, _itself, _itself, is_stationary=False),
    "brownian": Kernel(_least, _root_of, _root_slope, is_stationary=False),
}
"""The kernels by name. ``rbf`` is also called squared exponential; ``matern12`` is exponential."""


@dataclass(frozen=True)
class Expression:
    """A sum of products of kernels, by their names, with one length."""

    terms: tuple[tuple[str, ...], ...]
    shape: Shape

    @classmethod
    def read(cls, text: object, shape: Shape) -> Expression:
        """Parse ``linear + rbf`` or ``periodic * rbf``; raise `InputError` for unknown names."""
        terms = tuple(tuple(name.strip() for name in term.split("*")) for term in str(text).split("+"))
        for name in (name for term in terms for name in term):
            if name not in KERNELS:
                hint = f"known are {', '.join(KERNELS)}, and sums and products of these, as linear + rbf"
                raise InputError(f"{name or text!r} is no kernel", "unknown_name", hint=hint)
        return cls(terms, shape)

    def __str__(self) -> str:
        """Write the expression in the form that `read` parses."""
        return " + ".join(" * ".join(term) for term in self.terms)

    def tables(self, x: np.ndarray, z: np.ndarray) -> list[list[np.ndarray]]:
        """Return the distances (n, m) of places (n, F) and (m, F), by term and factor."""
        return [[KERNELS[name].distances(x, z, self.shape) for name in term] for term in self.terms]

    def correlations(self, tables: list[list[Any]], length: Any, xp: ModuleType = np) -> Any:
        """Return the kernel at a length, of the shape of a table; ``xp`` is NumPy or PyTensor."""
        square, total = length * length, None
        for term, distances in zip(self.terms, tables, strict=True):
            pairs = zip(term, distances, strict=True)
            factors = (KERNELS[name].curve(table / square, xp, self.shape) for name, table in pairs)
            total = reduce(mul, factors) if total is None else total + reduce(mul, factors)
        return total

    def with_slope(self, tables: list[list[np.ndarray]], length: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the kernel at a length, and its derivative in the log of the length."""
        square, total, slope = length * length, np.zeros(()), np.zeros(())
        for term, distances in zip(self.terms, tables, strict=True):
            pairs = [(KERNELS[name], table / square) for name, table in zip(term, distances, strict=True)]
            factors = [kernel.curve(t, np, self.shape) for kernel, t in pairs]
            total = total + reduce(mul, factors)
            for k, (kernel, t) in enumerate(pairs):
                other_factors = factors[:k] + factors[k + 1 :]
                slope = slope + reduce(mul, other_factors, -2 * kernel.slope(t, np, self.shape))
        return total, slope

    def diagonal(self, x: np.ndarray, length: float) -> np.ndarray:
        """Return the kernel of each place with itself, (n,)."""
        tables = [[_own_distances(name, x, self.shape) for name in term] for term in self.terms]
        return np.asarray(self.correlations(tables, length))

    @property
    def is_of_distances(self) -> bool:
        """Whether it depends on distances of places alone, so that features may have different lengths."""
        return all(KERNELS[name].distances is _squared for term in self.terms for name in term)

    @property
    def is_stationary(self) -> bool:
        """Whether it depends on differences of places alone."""
        return all(KERNELS[name].is_stationary for term in self.terms for name in term)


def _own_distances(name: str, x: np.ndarray, shape: Shape) -> np.ndarray:
    if KERNELS[name].is_stationary:
        return np.zeros(len(x))
    return np.sum(np.square(x), axis=1)  # x'x of linear, and the squared time of brownian
