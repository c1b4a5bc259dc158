"""Contrasts of exact independent posteriors: a group against another, or against the highest of several others.

The highest of independent numbers has the product of their distribution functions, so one rule serves both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayeszoo.answers.quantiles import Quantiles
from bayeszoo.comparison.contrast_columns import quantiles_named
from bayeszoo.distributions.posterior import QUANTILES, Marginal
from bayeszoo.foundation.numerics.levels import reached

SMALLEST = 1e-9
"""Smallest probability that the quadrature resolves to four digits; a smaller one is set to 0."""
_LEVELS = [math.erfc(-score / math.sqrt(2)) / 2 for score in np.linspace(-8, 8, 51)]
"""Levels of the quantiles of each group between which all distribution functions are smooth."""
_FAR = 1e-6
"""Tail probability of the quantiles between which bisection looks."""
_NODES = 8
"""Nodes between two quantiles, these included."""

_Move = Callable[[np.ndarray], np.ndarray]
"""An increasing function, as adding a difference or multiplying by a ratio."""


def in_closed_form(group: Marginal, others: Sequence[Marginal], rope: float | None) -> dict[str, np.ndarray]:
    """Compare a group with the highest of others, all independent, by integrals of their distribution functions."""
    shape, laws = np.shape(group.mean()), (group, *others)
    own, best = _Highest.of([group]), _Highest.of(others)
    low, high = (np.array([law.ppf(level) for law in laws]) for level in (_FAR, 1 - _FAR))
    least, most = low[1:].max(axis=0), high[1:].max(axis=0)

    def quantiles(below: _Move, start: np.ndarray, end: np.ndarray) -> Quantiles:
        values = {name: reached(below, level, start, end) for name, level in QUANTILES.items()}
        return Quantiles.without_error(values)

    columns = {"p_greater": _resolved(best.is_below(own)), **_losses(own, best)}
    if rope is not None:
        ahead, back = lambda x: x + rope, lambda x: x - rope
        columns |= {"p_above": _resolved(best.is_below(own, back, ahead))}
        columns |= {"p_below": _resolved(own.is_below(best, back, ahead))}
    columns |= {f"{name}_mcse": np.full(shape, np.nan) for name in (*columns, "difference")}
    ratio = Quantiles.without_error(dict.fromkeys(QUANTILES, np.full(shape, np.nan)))
    if not any(np.any(law.cdf(0.0)) for law in laws):
        ratio = quantiles(
            lambda r: own.is_below(best, lambda x: x * r, lambda x: x / r), low[0] / most, high[0] / least
        )
    difference = quantiles(
        lambda d: own.is_below(best, lambda x: x + d, lambda x: x - d), low[0] - most, high[0] - least
    )
    return columns | quantiles_named("difference", difference) | quantiles_named("ratio", ratio)


def _resolved(probability: np.ndarray) -> np.ndarray:
    return np.where(probability < SMALLEST, 0.0, np.minimum(probability, 1.0))


@dataclass(frozen=True)
class Mirrored:
    """The distribution of minus a number."""

    law: Marginal

    def mean(self) -> Any:
        """Return the means."""
        return -self.law.mean()

    def std(self) -> Any:
        """Return the standard deviations."""
        return self.law.std()

    def cdf(self, x: Any, /) -> Any:
        """Return P(-X <= x)."""
        return 1 - self.law.cdf(-x)

    def ppf(self, q: Any, /) -> Any:
        """Return the quantile of a level."""
        return -self.law.ppf(1 - q)


@dataclass(frozen=True)
class _Highest:
    """The highest of independent numbers: their laws, and quantiles of each, shape (quantiles, *shape)."""

    laws: Sequence[Marginal]
    knots: np.ndarray

    @classmethod
    def of(cls, laws: Sequence[Marginal]) -> _Highest:
        return cls(laws, np.array([law.ppf(level) for law in laws for level in _LEVELS]))

    def cdf(self, x: np.ndarray) -> np.ndarray:
        """Return the distribution function, at places of any leading axes."""
        return np.asarray(np.prod([law.cdf(x) for law in self.laws], axis=0))

    def is_below(self, other: _Highest, moved: _Move = np.asarray, back: _Move = np.asarray) -> np.ndarray:
        """Return the probability that this number is below the other one moved: the integral of F(moved(x)) dG(x).

        A sum of positive terms, whose small values do not round away as those of one less a probability do. ``back``
        undoes the move. Both functions are smooth between two of the quantiles of both.
        """
        x, _ = _places(np.concatenate([back(self.knots), other.knots]))
        return np.einsum("ik...,ij,jk...->...", self.cdf(moved(x)), _SLOPES, other.cdf(x))


def _places(knots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes between sorted knots, shape (nodes, intervals, *shape), and half the width of each interval."""
    ends = np.sort(knots, axis=0)
    half = np.diff(ends, axis=0) / 2
    nodes = _LOBATTO.reshape(-1, *(1 for _ in ends.shape))
    return ends[:-1] + half * (1 + nodes), half


def _lobatto() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return nodes, weights and weighted slopes of the Gauss-Lobatto rule, whose nodes include both ends.

    ``f @ slopes @ g`` is the integral of f dg, where g is the polynomial through its values.
    """
    legendre = np.polynomial.Legendre.basis(_NODES - 1)
    nodes = np.concatenate([[-1.0], np.sort(legendre.deriv().roots().real), [1.0]])
    weights = 2 / (_NODES * (_NODES - 1) * legendre(nodes) ** 2)
    powers = np.polynomial.legendre.legvander(nodes, _NODES - 1)
    slopes = np.stack([np.polynomial.Legendre.basis(k).deriv()(nodes) for k in range(_NODES)], axis=-1)
    return nodes, weights, weights[:, None] * (slopes @ np.linalg.inv(powers))


_LOBATTO, _WEIGHTS, _SLOPES = _lobatto()


def _losses(own: _Highest, best: _Highest) -> dict[str, np.ndarray]:
    """Return the expected loss of choosing each side: E max(Y - X, 0) is the integral of F_X (1 - F_Y)."""
    x, half = _places(np.concatenate([own.knots, best.knots]))
    of_own, of_best = own.cdf(x), best.cdf(x)
    integrands = {"loss_group": of_own * (1 - of_best), "loss_against": of_best * (1 - of_own)}
    return {name: np.einsum("i,k...,ik...->...", _WEIGHTS, half, integrand) for name, integrand in integrands.items()}
