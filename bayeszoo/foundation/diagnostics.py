"""ArviZ's diagnostics of arrays of draws, shape (chain, draw, ...); loaded when first used."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import numpy as np

_AXES = {"chain_axis": 0, "draw_axis": 1}
_TAILS = (0.05, 0.95)
_FAR = 8
_MIN_DRAWS = 4
"""With fewer ArviZ estimates nothing."""


def mcse(draws: np.ndarray, method: str = "mean", prob: float | None = None) -> np.ndarray:
    """Return the Monte Carlo standard error of the "mean", "sd", "median" or "quantile" ``prob``.

    It is NaN for constant draws, and for fewer than four a chain.
    """
    if draws.shape[1] < _MIN_DRAWS:
        return np.full(draws.shape[2:], np.nan)
    from arviz_stats.base import array_stats

    options = {} if prob is None else {"prob": prob}
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(array_stats.mcse(draws, method=method, **options, **_AXES))


def ess(draws: np.ndarray, method: str = "bulk") -> np.ndarray:
    """Return the effective sample size for "bulk", "tail" (the quantiles 0.05 and 0.95) or "mean"."""
    from arviz_stats.base import array_stats

    options = {"prob": _TAILS} if method == "tail" else {}
    with np.errstate(divide="ignore", invalid="ignore"):  # of constant chains
        return np.asarray(array_stats.ess(draws, method=method, **options, **_AXES))


def r_hat(draws: np.ndarray) -> np.ndarray:
    """Return rank-normalized R-hat, the larger of bulk and folded; NaN for constant chains."""
    from arviz_stats.base import array_stats

    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(array_stats.rhat(draws, method="rank", **_AXES))


def relative_efficiency(draws: Iterable[np.ndarray]) -> float:
    """Return the mean effective sample size of all quantities over the number of draws; 1 of a single chain.

    It is what ArviZ's leave-one-out score takes for the dependence of draws on each other.
    """
    arrays = [array for array in draws if array.size]
    chains, length = arrays[0].shape[:2]
    if chains == 1 or length < 4:
        return 1.0
    sizes = np.concatenate([np.ravel(ess(array, "mean")) for array in arrays])
    return float(np.mean(sizes)) / (chains * length) if np.isfinite(sizes).all() else 1.0


def smoothed_weights(log_likelihood: np.ndarray, efficiency: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Return Pareto-smoothed, normalized log weights proportional to 1 / likelihood, and their Pareto k-hat."""
    from arviz_stats.base import array_stats

    log_weights, k_hat = array_stats.psislw(log_likelihood, r_eff=efficiency)
    return np.asarray(log_weights), np.asarray(k_hat)


def tail_shape(draws: np.ndarray) -> np.ndarray:
    """Return the Pareto shape of the heavier tail of each entry; -inf where no draw is far out, or all of a tail agree.

    Moments of order m exist where it is below 1 / m. Far out is eight interquartile ranges from the median, which tails
    of shape 1/2 and more pass in a thousand draws.
    """
    from arviz_stats.base import array_stats

    first, middle, third = np.quantile(draws, [0.25, 0.5, 0.75], axis=(0, 1))
    shape = np.full(draws.shape[2:], -np.inf)
    for i in np.argwhere(np.max(np.abs(draws - middle), axis=(0, 1)) > _FAR * (third - first)):
        for tail in ("left", "right"):
            with suppress(ValueError):  # ties
                shape[*i] = max(shape[*i], array_stats.pareto_khat(draws[:, :, *i], 0, 1, tail=tail))
    return shape
