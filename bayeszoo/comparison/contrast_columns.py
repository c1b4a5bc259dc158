"""Contrasts of pairs of groups: their columns, which pairs are compared, and by draws."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from bayeszoo.answers.quantiles import Quantiles
from bayeszoo.distributions.posterior import QUANTILES
from bayeszoo.errors import InputError
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.tails import moments

MOST_PAIRS = 10
"""Pairs of groups up to which all are compared; beyond, each with one of them."""
COLUMNS = (
    *("p_greater", "p_greater_mcse", "difference", "difference_mcse"),
    *("difference_q025", "difference_q025_mcse", "difference_q975", "difference_q975_mcse"),
    *("ratio", "ratio_mcse", "ratio_q025", "ratio_q025_mcse", "ratio_q975", "ratio_q975_mcse"),
    *("loss_group", "loss_group_mcse", "loss_against", "loss_against_mcse"),
)
OF_ROPE = ("p_above", "p_above_mcse", "p_below", "p_below_mcse")
"""Columns that there are where a threshold of the difference is named."""
SPREAD = ("difference_mean", "difference_sd", "difference_median")
"""Statistics of the draws of the difference by which contrasts are judged."""


def columns_of(rope: float | None) -> tuple[str, ...]:
    """Return the columns of a contrast; refuse a threshold that is negative or no number."""
    if rope is not None and not (np.isfinite(rope) and rope >= 0):
        raise InputError(f"rope must be >= 0, got {rope}", "out_of_range", hint="the least difference that matters")
    return COLUMNS if rope is None else (*COLUMNS, *OF_ROPE)


def pairs_of(labels: Sequence[str], against: str | None, usual: str) -> list[tuple[str, str]]:
    """Return each group with the one that it is compared with: of many groups, where none is said, the usual one."""
    if against is not None and against not in labels:
        raise InputError(f"there is no group {against!r}", "unknown_name", hint=f"the groups are {', '.join(labels)}")
    pairs = [(group, first) for first, group in itertools.combinations(labels, 2)]
    if against is not None or len(pairs) > MOST_PAIRS:
        reference = usual if against is None else against
        pairs = [(label, reference) for label in labels if label != reference]
    return pairs


def by_draws(first: np.ndarray, second: np.ndarray, rope: float | None = None) -> dict[str, np.ndarray]:
    """Compare draws (chain, draw, ...), one of each group at a time."""
    chains, length = (min(a, b) for a, b in zip(first.shape[:2], second.shape[:2], strict=True))
    first, second = first[:chains, :length], second[:chains, :length]
    difference = second - first
    both = (first > 0).all((0, 1)) & (second > 0).all((0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(both, second / first, np.nan)
    known = _probability("p_greater", difference > 0, difference)
    if rope is not None:
        known |= _probability("p_above", difference > rope, difference)
        known |= _probability("p_below", difference < -rope, difference)
    for name, loss in (("loss_group", np.maximum(-difference, 0)), ("loss_against", np.maximum(difference, 0))):
        told = moments(loss)
        known |= {name: told.mean, f"{name}_mcse": told.mcse_mean}
    known |= quantiles_named("difference", Quantiles.of_draws(difference))
    known |= quantiles_named("ratio", Quantiles.of_draws(ratio))
    told = moments(difference)
    known["difference_mcse"] = told.mcse_mean  # NaN where the tails are too heavy for an error
    return known | dict(zip(SPREAD, (told.mean, told.sd, known["difference"]), strict=True))


def _probability(name: str, is_true: np.ndarray, difference: np.ndarray) -> dict[str, np.ndarray]:
    """Return how often something is true of draws, with its error: where all agree, as of one draw that does not."""
    true = is_true.astype(np.float64)
    agree = true.min((0, 1)) == true.max((0, 1))
    mcse = np.where(agree, 1 / diagnostics.ess(difference, "bulk"), diagnostics.mcse(true))
    return {name: true.mean((0, 1)), f"{name}_mcse": mcse}


def of_points(first: np.ndarray, second: np.ndarray) -> dict[str, np.ndarray]:
    """Compare point estimates: without their uncertainty there are no probabilities, no intervals and no losses."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where((first > 0) & (second > 0), second / first, np.nan)
    return dict.fromkeys((*COLUMNS, *OF_ROPE, *SPREAD), np.full(np.shape(first), np.nan)) | {"ratio": ratio}


def quantiles_named(name: str, quantiles: Quantiles) -> dict[str, np.ndarray]:
    """Name the median by itself, and the other quantiles by their levels too; errors have the suffix ``_mcse``."""
    names = {level: name if level == "median" else f"{name}_{level}" for level in QUANTILES}
    values = {own: quantiles.values[level] for level, own in names.items()}
    return values | {f"{own}_mcse": quantiles.errors[level] for level, own in names.items()}
