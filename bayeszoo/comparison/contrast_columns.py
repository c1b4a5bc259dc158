"""Contrasts of pairs of groups: which pairs are compared, the columns, and contrasts by draws."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from bayeszoo.answers.quantiles import Quantiles
from bayeszoo.distributions.posterior import QUANTILES
from bayeszoo.errors import InputError
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.tails import moments

MOST_PAIRS = 10
"""Most pairs of groups that are all compared; with more, each group is compared with one reference."""
BEST = "best of the others"
"""The name of the highest of all other groups, in place of a group: of two groups it is the other one."""
LOWEST = "lowest of the others"
"""The name of the lowest of all other groups: if lower is better, numbers are compared with their signs changed."""
OTHERS = (BEST, LOWEST)
COLUMNS = (
    *("p_greater", "p_greater_mcse", "difference", "difference_mcse"),
    *("difference_q025", "difference_q025_mcse", "difference_q975", "difference_q975_mcse"),
    *("ratio", "ratio_mcse", "ratio_q025", "ratio_q025_mcse", "ratio_q975", "ratio_q975_mcse"),
    *("loss_group", "loss_group_mcse", "loss_against", "loss_against_mcse"),
)
OF_ROPE = ("p_above", "p_above_mcse", "p_below", "p_below_mcse")
"""Columns that a threshold of the difference adds."""
SPREAD = ("difference_mean", "difference_sd", "difference_median")
"""Statistics of the draws of the difference by which contrasts are judged."""


def columns_of(rope: float | None) -> tuple[str, ...]:
    """Return the columns of a contrast; refuse a threshold that is negative or not finite."""
    if rope is not None and not (np.isfinite(rope) and rope >= 0):
        raise InputError(f"rope must be >= 0, got {rope}", "out_of_range", hint="the smallest difference that matters")
    return COLUMNS if rope is None else (*COLUMNS, *OF_ROPE)


def pairs_of(labels: Sequence[str], against: str | None, usual: str) -> list[tuple[str, str]]:
    """Return pairs of groups to compare: all, or each with ``against``, or if there are many each with ``usual``."""
    if against not in (None, *OTHERS, *labels):
        raise InputError(f"there is no group {against!r}", "unknown_name", hint=f"the groups are {', '.join(labels)}")
    pairs = [(group, first) for first, group in itertools.combinations(labels, 2)]
    if len(labels) > 1 and (against is not None or len(pairs) > MOST_PAIRS):
        reference = usual if against is None else against
        pairs = [(label, reference) for label in labels if label != reference]
    return pairs


def sides_of(values: np.ndarray, labels: Sequence[str], pairs: Sequence[tuple[str, str]]) -> list[np.ndarray]:
    """Return ``against`` and ``group`` of each pair from the values of all groups, shape (..., groups).

    Against the lowest of the others the signs are changed, so that the difference is how far the group is below it.
    """
    values = -values if any(a == LOWEST for _, a in pairs) else values
    places = {label: i for i, label in enumerate(labels)}
    own, every = [places[group] for group, _ in pairs], np.arange(len(labels))
    others = [every[every != places[group]] if a in OTHERS else every[[places[a]]] for group, a in pairs]
    return [np.stack([values[..., i].max(axis=-1) for i in others], axis=-1), values[..., own]]


def highest(draws: Sequence[np.ndarray]) -> np.ndarray:
    """Return the highest of several groups in each draw, shape (chain, draw, ...)."""
    chains, length = (min(values.shape[axis] for values in draws) for axis in (0, 1))
    return np.asarray(np.max([values[:chains, :length] for values in draws], axis=0))


def with_means(
    columns: Mapping[str, np.ndarray], means: np.ndarray, pairs: Sequence[tuple[str, str]], *, are_exact: bool
) -> dict[str, np.ndarray]:
    """Take the differences of pairs from the means, which may be exact; that with the best is a mean over draws."""
    of_best = np.array([against in OTHERS for _, against in pairs])
    difference = np.where(of_best, columns["difference_mean"], means)
    error = np.where(of_best | (not are_exact), columns["difference_mcse"], 0.0)
    return {**columns, "difference": difference, "difference_mcse": np.where(np.isnan(difference), np.nan, error)}


def by_draws(
    first: np.ndarray, second: np.ndarray, rope: float | None = None, has_ratio: np.ndarray | bool = True
) -> dict[str, np.ndarray]:
    """Compare two groups by their draws, shape (chain, draw, ...), paired draw by draw.

    A ratio needs positive numbers. ``has_ratio`` says whether the draws of the other groups are positive too: a
    quantity that may be negative is positive in all draws of some groups by chance.
    """
    chains, length = (min(a, b) for a, b in zip(first.shape[:2], second.shape[:2], strict=True))
    first, second = first[:chains, :length], second[:chains, :length]
    difference = second - first
    are_positive = (first > 0).all((0, 1)) & (second > 0).all((0, 1)) & has_ratio
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(are_positive, second / first, np.nan)
    columns = _probability("p_greater", difference > 0, difference)
    if rope is not None:
        columns |= _probability("p_above", difference > rope, difference)
        columns |= _probability("p_below", difference < -rope, difference)
    for name, loss in (("loss_group", np.maximum(-difference, 0)), ("loss_against", np.maximum(difference, 0))):
        # of a loss that no draw has the error is as if one effective draw just had it
        expected, seldom = moments(loss), np.abs(difference).min((0, 1)) / diagnostics.ess(difference, "bulk")
        error = np.where(loss.max((0, 1)) == 0, seldom, expected.mcse_mean)
        columns |= {name: expected.mean, f"{name}_mcse": error}
    columns |= quantiles_named("difference", Quantiles.of_draws(difference))
    columns |= quantiles_named("ratio", Quantiles.of_draws(ratio))
    spread = moments(difference)
    columns["difference_mcse"] = spread.mcse_mean  # NaN where the tails are too heavy for an error
    return columns | dict(zip(SPREAD, (spread.mean, spread.sd, columns["difference"]), strict=True))


def _probability(name: str, is_true: np.ndarray, difference: np.ndarray) -> dict[str, np.ndarray]:
    """Return the share of true draws, and its error: where all draws agree, as if one effective draw did not."""
    indicators = is_true.astype(np.float64)
    agree = indicators.min((0, 1)) == indicators.max((0, 1))
    mcse = np.where(agree, 1 / diagnostics.ess(difference, "bulk"), diagnostics.mcse(indicators))
    return {name: indicators.mean((0, 1)), f"{name}_mcse": mcse}


def of_points(first: np.ndarray, second: np.ndarray) -> dict[str, np.ndarray]:
    """Compare point estimates; probabilities, intervals and losses are NaN."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where((first > 0) & (second > 0), second / first, np.nan)
    return dict.fromkeys((*COLUMNS, *OF_ROPE, *SPREAD), np.full(np.shape(first), np.nan)) | {"ratio": ratio}


def quantiles_named(name: str, quantiles: Quantiles) -> dict[str, np.ndarray]:
    """Return quantiles as columns: the median as ``name``, others as ``name_level``, errors with ``_mcse`` added."""
    names = {level: name if level == "median" else f"{name}_{level}" for level in QUANTILES}
    values = {column: quantiles.values[level] for level, column in names.items()}
    return values | {f"{column}_mcse": quantiles.errors[level] for level, column in names.items()}
