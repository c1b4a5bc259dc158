"""ArviZ's diagnostics of arrays of draws, shape (chain, draw, ...); ArviZ is loaded on first use."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from typing import Any

import numpy as np
import scipy

from bayeszoo.foundation.process.importing import without_stack

_AXES = {"chain_axis": 0, "draw_axis": 1}
_TAILS = (0.05, 0.95)
_ONE_SD = (0.1586553, 0.8413447)
_FAR = 5
SMALLEST = 1e-70
"""Smallest and, inverted, largest draws whose squares and fourth powers neither underflow nor overflow."""
_MIN_DRAWS = 4
"""Fewest draws of a chain for ArviZ's estimates."""
_MOST_KEPT = 100_000
_KEPT: OrderedDict[tuple[str, bytes], float] = OrderedDict()
"""Cached diagnostics of quantities by a digest of their draws: gate and summary need the same ones."""


@cache
def _arviz() -> Any:
    """Return ArviZ's functions of arrays."""
    with without_stack():
        from arviz_stats.base import array_stats
    return array_stats


def _cached(name: str, draws: np.ndarray, compute: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Compute a diagnostic of each quantity, shape (chain, draw, ...), or take it from the cache."""
    shape = draws.shape[:2]
    entries = np.ascontiguousarray(np.moveaxis(draws.reshape(*shape, -1), 2, 0), dtype=np.float64)
    keys = [(name, blake2b(entry, digest_size=16, key=repr(shape).encode()).digest()) for entry in entries]
    new = [i for i, key in enumerate(keys) if key not in _KEPT]
    if new:
        values = compute(np.moveaxis(entries[new], 0, 2))
        _KEPT.update((keys[i], float(value)) for i, value in zip(new, values, strict=True))
    result = np.array([_KEPT[key] for key in keys]).reshape(draws.shape[2:])
    while len(_KEPT) > _MOST_KEPT:
        _KEPT.popitem(last=False)
    return result


def mcse(
    draws: np.ndarray, method: str = "mean", prob: float | None = None, *, independent: bool = False
) -> np.ndarray:
    """Return the Monte Carlo standard error of the "mean", "sd", "median" or "quantile" ``prob``.

    Of chains, not ``independent``, it is NaN for constant draws and for fewer than four draws a chain.
    """
    scaled, unit = in_units(draws)
    if independent:
        return np.asarray(unit * _of_independent(scaled.reshape(-1, *draws.shape[2:]), method, prob))
    if draws.shape[1] < _MIN_DRAWS:
        return np.full(draws.shape[2:], np.nan)
    options = {} if prob is None else {"prob": prob}
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(unit * _arviz().mcse(scaled, method=method, **options, **_AXES))


def _of_independent(values: np.ndarray, method: str, prob: float | None) -> np.ndarray:
    """Return the error of the "mean", "sd" or "quantile" of independent draws (draw, ...), which are all effective.

    For a quantile: half the distance between the order statistics that enclose it with the probability of 1 sd.
    """
    size = len(values)
    if prob is not None:
        levels = scipy.special.betaincinv(size * prob + 1, size * (1 - prob) + 1, _ONE_SD)
        low, high = max(int(np.floor(size * levels[0])) - 1, 0), min(int(np.ceil(size * levels[1])), size) - 1
        ordered = np.partition(values, (low, high), axis=0)
        return np.asarray(ordered[high] - ordered[low]) / 2
    if method == "mean":
        return np.asarray(values.std(axis=0, ddof=1) / np.sqrt(size))
    squares = np.square(values - values.mean(axis=0))
    with np.errstate(invalid="ignore"):
        return np.asarray(np.sqrt(squares.var(axis=0) / squares.mean(axis=0) / size) / 2)


def in_units(draws: np.ndarray) -> tuple[np.ndarray, Any]:
    """Return draws divided by units whose squares neither overflow nor underflow, and these powers of two.

    Each quantity, along the axes after chain and draw, has its own unit; ordinary numbers have unit 1.
    """
    largest = np.max(np.abs(draws), axis=(0, 1), initial=0.0)
    is_ordinary = (largest == 0) | ~np.isfinite(largest) | ((largest > SMALLEST) & (largest < 1 / SMALLEST))
    if is_ordinary.all():
        return draws, 1.0
    unit = np.where(is_ordinary, 1.0, np.exp2(np.floor(np.log2(np.where(is_ordinary, 1.0, largest)))))
    return draws / unit, unit


def ess(draws: np.ndarray, method: str = "bulk") -> np.ndarray:
    """Return the effective sample size for "bulk", "tail" (the quantiles 0.05 and 0.95) or "mean"."""
    array_stats = _arviz()
    options = {"prob": _TAILS} if method == "tail" else {}
    with np.errstate(divide="ignore", invalid="ignore"):  # constant chains
        return _cached(f"ess {method}", draws, lambda new: array_stats.ess(new, method=method, **options, **_AXES))


def r_hat(draws: np.ndarray) -> np.ndarray:
    """Return rank-normalized R-hat, the larger of bulk and folded; NaN for constant chains."""
    array_stats = _arviz()
    with np.errstate(divide="ignore", invalid="ignore"):
        return _cached("r_hat", draws, lambda new: array_stats.rhat(new, method="rank", **_AXES))


def relative_efficiency(draws: Iterable[np.ndarray]) -> float:
    """Return the mean effective sample size of all quantities over the number of draws; 1 for a single chain.

    ArviZ's leave-one-out score takes it as the effect of autocorrelation.
    """
    arrays = [array for array in draws if array.size]
    chains, length = arrays[0].shape[:2]
    if chains == 1 or length < 4:
        return 1.0
    sizes = np.concatenate([np.ravel(ess(array, "mean")) for array in arrays])
    return float(np.mean(sizes)) / (chains * length) if np.isfinite(sizes).all() else 1.0


def smoothed_weights(log_likelihood: np.ndarray, efficiency: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Return Pareto-smoothed, normalized log weights proportional to 1 / likelihood, and their Pareto k-hat.

    If the largest weights are all equal there is no tail to smooth, and k-hat is -inf.
    """
    try:
        with np.errstate(over="ignore"):  # quantiles of a tail so heavy that k-hat says all there is to say
            log_weights, k_hat = _arviz().psislw(log_likelihood, r_eff=efficiency)
    except ValueError:  # ties
        if np.ndim(log_likelihood) == 1:
            return np.asarray(scipy.special.log_softmax(-log_likelihood)), np.asarray(-np.inf)
        pairs = [smoothed_weights(row, efficiency) for row in log_likelihood]
        log_weights, k_hat = (np.stack([pair[i] for pair in pairs]) for i in (0, 1))
    return np.asarray(log_weights), np.asarray(k_hat)


def tail_shape(draws: np.ndarray) -> np.ndarray:
    """Return the Pareto shape of the heavier tail of each entry; -inf where no draw is far out, or all of a tail agree.

    Moments of order m exist where it is below 1 / m. Far out is five interquartile ranges from the median, which of a
    thousand draws those with tails of shape 1/4 and more pass: a fit to a tail takes milliseconds.
    """
    shape = np.full(draws.shape[2:], -np.inf)
    if not draws.size:
        return shape
    first, middle, third = np.quantile(draws, [0.25, 0.5, 0.75], axis=(0, 1))
    reach = {"left": middle - draws.min(axis=(0, 1)), "right": draws.max(axis=(0, 1)) - middle}
    for tail, far in reach.items():
        for i in np.argwhere(far > _FAR * (third - first)):
            # ties; and weights are normalized, though not asked for, by a sum that may be 0
            with suppress(ValueError), np.errstate(divide="ignore", invalid="ignore"):
                shape[*i] = max(shape[*i], _arviz().pareto_khat(draws[:, :, *i], 0, 1, tail=tail))
    return shape
