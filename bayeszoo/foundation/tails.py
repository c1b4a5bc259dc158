"""Mean and sd of draws with Monte Carlo errors, withheld where heavy tails make them unreliable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.gate import MAX_K_HAT

LIMITS = {"mean": MAX_K_HAT, "sd": MAX_K_HAT / 2, "mcse_mean": 0.4, "mcse_sd": 0.2}
"""Pareto shape of the heavier tail from which each moment is withheld.

The mean exists below 1, the sd and the error of the mean below 1/2, the error of the sd below 1/4. k-hat from thousands
of draws is off by .1, and a mean of draws is reliable below `MAX_K_HAT` (Vehtari et al. 2024). An sd is the root of
a mean of squares, whose tails have twice the shape: its limits are half those of a mean. tests/test_tails.py measures
how often a kept number is wrong, and how often a right one is withheld.
"""
TOO_LARGE = "larger than 1e300"
NO_MOMENT = "infinite, or undefined: the prior's tails are too heavy where few rows or none are seen"


class Moments(NamedTuple):
    """Mean and sd of each quantity and their Monte Carlo errors, NaN where they are withheld.

    ``withheld`` is text of the same shape: which moments are withheld and why; empty if none.
    """

    mean: np.ndarray
    sd: np.ndarray
    mcse_mean: np.ndarray
    mcse_sd: np.ndarray
    withheld: np.ndarray

    @classmethod
    def exact(cls, mean: np.ndarray, sd: np.ndarray, withheld: np.ndarray | None = None) -> Moments:
        """Return moments without Monte Carlo error."""
        no_error = np.full(mean.shape, np.nan)
        return cls(
            mean, sd, no_error, no_error, np.full(mean.shape, "", dtype=object) if withheld is None else withheld
        )


def moments(means: np.ndarray, variances: np.ndarray | None = None, *, independent: bool = False) -> Moments:
    """Return the moments of quantities with a mean and a variance at each draw, shape (chain, draw, ...).

    Without variances, ``means`` are draws of the quantities. ``independent``: draws are not from Markov chains.
    """
    means, unit = diagnostics.in_units(means)
    with np.errstate(over="ignore", invalid="ignore"):
        variances = None if variances is None else variances / np.square(unit)
        squares = np.square(means) + (0.0 if variances is None else variances)
        is_finite = np.isfinite(squares.sum(axis=(0, 1)))
    means = np.where(is_finite, means, 0.0)
    variances = None if variances is None else np.where(is_finite, variances, 0.0)
    shapes = _shapes(means, variances)
    is_reliable = {name: is_finite & (shape < LIMITS[name]) for name, shape in shapes.items()}
    raw = unjudged(means, variances, independent)
    reliable = {name: np.where(is_reliable[name], unit * values, np.nan) for name, values in raw.items()}
    withheld = np.where(is_finite, reasons(is_reliable, _of_draws), reasons(is_reliable, lambda _: TOO_LARGE))
    return Moments(**reliable, withheld=withheld)


def unjudged(means: np.ndarray, variances: np.ndarray | None, independent: bool) -> dict[str, np.ndarray]:
    """Return mean and sd by the laws of total expectation and variance, and their errors."""
    mean, draws = means.mean(axis=(0, 1)), means.shape[0] * means.shape[1]
    squares = np.square(means - mean)
    squares = squares * (draws / max(draws - 1, 1)) if variances is None else squares + variances
    sd = np.sqrt(squares.mean(axis=(0, 1)))
    mcse = partial(diagnostics.mcse, independent=independent)
    with np.errstate(divide="ignore", invalid="ignore"):  # of constant draws
        return {"mean": mean, "sd": sd, "mcse_mean": mcse(means), "mcse_sd": mcse(squares) / (2 * sd)}


def existing(by_draws: Moments, below: float) -> Moments:
    """Withhold moments that do not exist: orders at or above ``below``, even if draws that miss the tails look fine."""
    orders = {"mean": 1, "sd": 2, "mcse_mean": 2, "mcse_sd": 2}
    missing = [name for name, order in orders.items() if order >= below]
    if not missing:
        return by_draws
    is_kept = {name: np.isfinite(getattr(by_draws, name)) for name in orders if name not in missing}
    of_draws = reasons(is_kept, _of_draws) if is_kept else np.full(by_draws.mean.shape, "", dtype=object)
    reason = f"{', '.join(missing)}: {NO_MOMENT}"
    texts = [f"{reason}; {by_tails}" if by_tails else reason for by_tails in of_draws.ravel()]
    withheld = np.array(texts, dtype=object).reshape(by_draws.mean.shape)
    return by_draws._replace(**{name: np.full(by_draws.mean.shape, np.nan) for name in missing}, withheld=withheld)


def _shapes(means: np.ndarray, variances: np.ndarray | None) -> dict[str, np.ndarray]:
    """Return the Pareto tail shape for each moment; a variance has twice the shape of its square root.

    Shapes are taken of variances, not of roots: the root of an almost constant variance has the same tails.
    """
    of_mean = of_sd = diagnostics.tail_shape(means)
    if variances is not None:
        of_sd = np.maximum(of_mean, diagnostics.tail_shape(variances) / 2)
    return {name: of_sd if name.endswith("sd") else of_mean for name in LIMITS}


def reasons(is_kept_by_name: Mapping[str, np.ndarray], why: Callable[[list[str]], str]) -> np.ndarray:
    """Return for each quantity the moments that are withheld, and why."""
    patterns = np.stack(list(is_kept_by_name.values()), axis=-1)
    texts = np.full(patterns.shape[:-1], "", dtype=object)
    for pattern in np.unique(patterns.reshape(-1, len(is_kept_by_name)), axis=0):
        names = [name for name, is_kept in zip(is_kept_by_name, pattern, strict=True) if not is_kept]
        texts[(patterns == pattern).all(axis=-1)] = f"{', '.join(names)}: {why(names)}" if names else ""
    return texts


def _of_draws(names: Iterable[str]) -> str:
    return f"heavy tails of the draws (Pareto k-hat above {max(LIMITS[name] for name in names):g})"
