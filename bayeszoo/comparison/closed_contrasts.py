"""Contrasts of exact independent posteriors: a group against another, or against the highest of several others.

The highest of independent numbers has the product of their distribution functions, so one rule serves both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import scipy

from bayeszoo.answers.quantiles import Quantiles
from bayeszoo.comparison.contrast_columns import quantiles_named
from bayeszoo.distributions.posterior import QUANTILES, Marginal
from bayeszoo.foundation.numerics.levels import reached

_SCORES = np.linspace(-8, 8, 401)
"""Standard normal scores over which the trapezoidal rule integrates to rounding."""
_WEIGHTS = np.exp(-(_SCORES**2) / 2) * (_SCORES[1] - _SCORES[0]) / math.sqrt(2 * math.pi)
_FAR = 1e-6
"""Tail probability of the quantiles between which bisection looks."""


def in_closed_form(group: Marginal, others: Sequence[Marginal], rope: float | None) -> dict[str, np.ndarray]:
    """Compare a group with the highest of others, all independent; integrate over the others."""
    shape, laws = np.shape(group.mean()), (group, *others)
    points, weights = _highest(others)
    low, high = (np.array([law.ppf(level) for law in laws]) for level in (_FAR, 1 - _FAR))
    least, most = low[1:].max(axis=0), high[1:].max(axis=0)

    def below(x: np.ndarray) -> np.ndarray:
        """Return the probability that the group is below a function of the points of the others."""
        return np.asarray((weights * group.cdf(x)).sum(axis=0))

    def quantiles(moved: Callable[[np.ndarray], np.ndarray], start: np.ndarray, end: np.ndarray) -> Quantiles:
        values = {name: reached(lambda x: below(moved(x)), level, start, end) for name, level in QUANTILES.items()}
        return Quantiles.without_error(values)

    columns = {"p_greater": 1 - below(points), **_losses(group, others, shape)}
    if rope is not None:
        columns |= {"p_above": 1 - below(points + rope), "p_below": below(points - rope)}
    columns |= {f"{name}_mcse": np.full(shape, np.nan) for name in (*columns, "difference")}
    ratio = Quantiles.without_error(dict.fromkeys(QUANTILES, np.full(shape, np.nan)))
    if not any(np.any(law.cdf(0.0)) for law in laws):
        ratio = quantiles(lambda x: points * x, low[0] / most, high[0] / least)
    difference = quantiles(lambda x: points + x, low[0] - most, high[0] - least)
    return columns | quantiles_named("difference", difference) | quantiles_named("ratio", ratio)


def _highest(laws: Sequence[Marginal]) -> tuple[np.ndarray, np.ndarray]:
    """Return points and weights over which sums are integrals over the highest of independent numbers.

    The trapezoidal rule in the normal scores of each law, weighted by the probability that all others are below.
    """
    points = [np.array([law.ppf(level) for level in scipy.stats.norm.cdf(_SCORES)]) for law in laws]
    weights = _WEIGHTS.reshape(-1, *[1] * (points[0].ndim - 1))
    rest = [[*laws[:i], *laws[i + 1 :]] for i in range(len(laws))]
    shares = [weights * _all_below(below, x) for below, x in zip(rest, points, strict=True)]
    return np.concatenate(points), np.concatenate(shares)


def _all_below(laws: Sequence[Marginal], x: np.ndarray) -> np.ndarray:
    """Return the distribution function of the highest of several numbers, 1 of none."""
    return np.asarray(np.prod([np.ones_like(x), *(law.cdf(x) for law in laws)], axis=0))


def _losses(group: Marginal, others: Sequence[Marginal], shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Return the expected loss of choosing each side: E max(Y - X, 0) is the integral of F_X (1 - F_Y).

    The Gauss-Legendre rule between quantiles of all groups, where the distribution functions are smooth.
    """
    levels = scipy.stats.norm.cdf(_SCORES[::4])
    knots = np.sort(np.concatenate([[law.ppf(level) for level in levels] for law in (group, *others)]), axis=0)
    nodes, weights = np.polynomial.legendre.leggauss(6)
    widths = np.diff(knots, axis=0)[:, None]
    places = nodes.reshape(-1, *(1 for _ in shape))
    x = (knots[:-1, None] + knots[1:, None]) / 2 + widths / 2 * places
    own, best = (_all_below(laws, x.reshape(-1, *shape)).reshape(x.shape) for laws in ([group], others))
    mass = widths / 2 * weights.reshape(places.shape)
    integrands = {"loss_group": own * (1 - best), "loss_against": best * (1 - own)}
    return {name: (mass * integrand).sum(axis=(0, 1)) for name, integrand in integrands.items()}
