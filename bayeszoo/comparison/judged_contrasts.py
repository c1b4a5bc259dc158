"""Contrasts within one fit; of an approximation some of whose parameters are off, each is judged by itself.

Wrong parameters need not make a wrong contrast: two levels that are off alike differ by as much as they should. And of
right ones it may be wrong, where they are taken for independent.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from bayeszoo.answers.judged import (
    FAR,
    Limits,
    gaps_agree,
    is_judged,
    limits_of,
    line_of,
    moments_part,
    only_agreeing,
    reference_of,
    refuse,
    scores_of,
)
from bayeszoo.comparison.contrast_columns import SPREAD
from bayeszoo.results.gaps import gaps_of
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import pandas as pd

ANSWER = "contrasts"
_STATISTICS = ("difference_mean", "difference_sd", "difference_q025", "difference_median", "difference_q975")
_RATIOS = ("ratio_q025", "ratio", "ratio_q975")
_PROBABILITIES = ("p_greater", "p_above", "p_below")
_LOSSES = ("loss_group", "loss_against")


def judged_contrasts(fit: Fit, ask: Callable[[Fit], pd.DataFrame]) -> pd.DataFrame:
    """Return contrasts of a fit; where parameters are off, those that draws of the posterior agree on.

    Parameters
    ----------
    fit : Fit
        One whose numbers are shown, or that is judged.
    ask : callable
        A view of a fit to a table of contrasts with the columns `SPREAD`, which are left out.

    Returns
    -------
    pandas.DataFrame
        ``attrs["withheld"]`` names the contrasts that are too far off, which have no rows, and single columns that are;
        ``attrs["judged"]`` says how far off the others are.

    Raises
    ------
    Untrustworthy
        When no contrast agrees.
    """
    own, reasons = ask(fit), list[str]()
    if is_judged(fit):
        own, reasons = _kept(fit, own, ask(reference_of(fit)))
    attrs = own.attrs
    own = own.drop(columns=[*SPREAD]).reset_index(drop=True)
    own.attrs = {**attrs, "withheld": reasons}
    return own


def judged_estimates(fit: Fit, ask: Callable[[Fit], pd.DataFrame]) -> pd.DataFrame:
    """Return what contrasts are between; where parameters are off, NaN in rows that draws of the posterior contradict.

    No row need agree: levels that are off alike have contrasts that are right.

    Parameters
    ----------
    fit : Fit
        One whose numbers are shown, or that is judged.
    ask : callable
        A view of a fit to a table with mean, sd and quantiles.

    Returns
    -------
    pandas.DataFrame
        The column ``withheld`` says which rows are too far off.
    """
    own = ask(fit).rename_axis("row")
    if not is_judged(fit):
        return own
    return only_agreeing(own, [moments_part(own, ask(reference_of(fit)), limits_of(fit))[0]])


def _kept(fit: Fit, own: pd.DataFrame, other: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    limits = limits_of(fit)
    known = _columns(other, _STATISTICS)
    gaps = gaps_of(_columns(own, _STATISTICS), known)
    shown = gaps_agree(gaps, known, limits)
    if not shown.any():
        refuse(fit, ANSWER)
    reasons = [f"{_name(row)}: {FAR}" for row in own[~shown].to_dict("records")]
    line = line_of(shown, gaps.mean, gaps.sd, limits, ANSWER)
    for columns, agree in _by_columns(own, other, limits):
        far = shown & ~agree & own[columns[0]].notna().to_numpy()
        reasons += [f"{', '.join(columns)} of {_name(row)}: {FAR}" for row in own[far].to_dict("records")]
        both = [name for key in columns for name in (key, f"{key}_mcse")]
        own.loc[far, both] = np.nan
    own = own[shown]
    own.attrs["judged"] = line
    return own, reasons


def _by_columns(own: pd.DataFrame, other: pd.DataFrame, limits: Limits) -> list[tuple[tuple[str, ...], np.ndarray]]:
    """Say where columns agree that the difference alone does not tell: tails, and ratios, where both move alike."""
    names = [name for name in _PROBABILITIES if name in own]
    scores = {name: [scores_of(*_columns(frame, (name, f"{name}_mcse"))) for frame in (own, other)] for name in names}
    agree = {name: limits.scores_agree(*both) for name, both in scores.items()}
    near = limits.mean * other["difference_sd"].to_numpy()
    losses = [np.abs(own[name].to_numpy() - other[name].to_numpy()) <= near for name in _LOSSES]
    return [
        (_RATIOS, _ratios_agree(own, other, limits)),
        *(((name,), each) for name, each in agree.items()),
        (_LOSSES, agree["p_greater"] & np.all(losses, axis=0)),
    ]


def _ratios_agree(own: pd.DataFrame, other: pd.DataFrame, limits: Limits) -> np.ndarray:
    """Compare the quantiles of ratios, which may have no moments."""
    ratios = [_columns(frame, _RATIOS) for frame in (own, other)]
    known = [np.concatenate([np.full((2, len(own)), np.nan), each]) for each in ratios]
    return gaps_agree(gaps_of(*known), known[1], limits) & np.isfinite(ratios[1]).all(axis=0)


def _columns(frame: pd.DataFrame, names: tuple[str, ...]) -> np.ndarray:
    return np.stack([frame[name].to_numpy(dtype=np.float64) for name in names])


def _name(row: Mapping[Hashable, object]) -> str:
    return f"{row['quantity']}: {row['group']} - {row['against']}"
