"""Mean and sd of draws with their Monte Carlo errors, and which of these four draws with heavy tails cannot tell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.gate import MAX_K_HAT

LIMITS = {"mean": MAX_K_HAT, "sd": MAX_K_HAT / 2, "mcse_mean": 0.4, "mcse_sd": 0.2}
"""Pareto shape of the heavier tail from which each is withheld.

The mean exists below 1, the sd and the error of the mean below 1/2, the error of the sd below 1/4. k-hat of thousands
of draws is .1 off, and a mean of draws is relied on below `MAX_K_HAT` only (Vehtari et al. 2024). An sd is the root of
a mean of squares, whose tails have twice the shape: its limits are half those of a mean. tests/test_tails.py measures
how often a number that is kept is wrong, and how often a right one is withheld.
"""
TOO_LARGE = "larger than 1e300"
NO_MOMENT = "infinite, or undefined: the prior's tails are too heavy where few rows or none are seen"


class Moments(NamedTuple):
    """Mean and sd of each quantity and their Monte Carlo errors, NaN where they are withheld.

    ``withheld`` is text, of the same shape: which of them are withheld and why, empty where none is.
    """

    mean: np.ndarray
    sd: np.ndarray
    mcse_mean: np.ndarray
    mcse_sd: np.ndarray
    withheld: np.ndarray

    @classmethod
    def exact(cls, mean: np.ndarray, sd: np.ndarray, withheld: np.ndarray | None = None) -> Moments:
        """Take moments that have no Monte Carlo error."""
        none = np.full(mean.shape, np.nan)
        return cls(mean, sd, none, none, np.full(mean.shape, "", dtype=object) if withheld is None else withheld)


def moments(means: np.ndarray, variances: np.ndarray | None = None, *, independent: bool = False) -> Moments:
    """Return the moments of quantities that have a mean and a variance at each draw, shape (chain, draw, ...).

    Without variances the draws are the quantities themselves. ``independent`` draws are not those of chains.
    """
    means, unit = diagnostics.in_units(means)
    with np.errstate(over="ignore", invalid="ignore"):
        variances = None if variances is None else variances / np.square(unit)
        squares = np.square(means) + (0.0 if variances is None else variances)
        is_finite = np.isfinite(squares.sum(axis=(0, 1)))
    means = np.where(is_finite, means, 0.0)
    variances = None if variances is None else np.where(is_finite, variances, 0.0)
    shapes = _shapes(means, variances)
    kept = {name: is_finite & (shape < LIMITS[name]) for name, shape in shapes.items()}
    known = _unjudged(means, variances, independent)
    told = {name: np.where(kept[name], unit * values, np.nan) for name, values in known.items()}
    withheld = np.where(is_finite, reasons(kept, _of_draws), reasons(kept, lambda _: TOO_LARGE))
    return Moments(**told, withheld=withheld)


def existing(known: Moments, below: float) -> Moments:
    """Withhold what does not exist: moments of orders below a limit do, whatever draws that miss the tails say."""
    orders = {"mean": 1, "sd": 2, "mcse_mean": 2, "mcse_sd": 2}
    gone = [name for name, order in orders.items() if order >= below]
    if not gone:
        return known
    left = {name: np.isfinite(getattr(known, name)) for name in orders if name not in gone}
    of_draws = reasons(left, _of_draws) if left else np.full(known.mean.shape, "", dtype=object)
    own = f"{', '.join(gone)}: {NO_MOMENT}"
    texts = [f"{own}; {other}" if other else own for other in of_draws.ravel()]
    withheld = np.array(texts, dtype=object).reshape(known.mean.shape)
    return known._replace(**{name: np.full(known.mean.shape, np.nan) for name in gone}, withheld=withheld)


def _unjudged(means: np.ndarray, variances: np.ndarray | None, independent: bool) -> dict[str, np.ndarray]:
    """Return mean and sd by the laws of total expectation and variance, and their errors."""
    mean, draws = means.mean(axis=(0, 1)), means.shape[0] * means.shape[1]
    squares = np.square(means - mean)
    squares = squares * (draws / max(draws - 1, 1)) if variances is None else squares + variances
    sd = np.sqrt(squares.mean(axis=(0, 1)))
    mcse = diagnostics.mcse_of_independent if independent else diagnostics.mcse
    with np.errstate(divide="ignore", invalid="ignore"):  # of constant draws
        return {"mean": mean, "sd": sd, "mcse_mean": mcse(means), "mcse_sd": mcse(squares) / (2 * sd)}


def _shapes(means: np.ndarray, variances: np.ndarray | None) -> dict[str, np.ndarray]:
    """Return the Pareto tail shape for each moment; the shape for a variance is twice that of its square root.

    Not of the roots: of a variance that hardly varies the root has tails as heavy as its own.
    """
    of_mean = of_sd = diagnostics.tail_shape(means)
    if variances is not None:
        of_sd = np.maximum(of_mean, diagnostics.tail_shape(variances) / 2)
    return {name: of_sd if name.endswith("sd") else of_mean for name in LIMITS}


def reasons(kept: Mapping[str, np.ndarray], why: Callable[[list[str]], str]) -> np.ndarray:
    """Say of each quantity which moments are not kept, and why these are withheld."""
    patterns = np.stack(list(kept.values()), axis=-1)
    texts = np.full(patterns.shape[:-1], "", dtype=object)
    for pattern in np.unique(patterns.reshape(-1, len(kept)), axis=0):
        names = [name for name, is_kept in zip(kept, pattern, strict=True) if not is_kept]
        texts[(patterns == pattern).all(axis=-1)] = f"{', '.join(names)}: {why(names)}" if names else ""
    return texts


def _of_draws(names: Iterable[str]) -> str:
    return f"heavy tails of the draws (Pareto k-hat above {max(LIMITS[name] for name in names):g})"
