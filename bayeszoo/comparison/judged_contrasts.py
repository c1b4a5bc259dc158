"""Contrasts within one fit; where parameters of an approximation are off, each contrast is judged separately.

Wrong parameters need not give a wrong contrast: two levels with the same error still have the right difference. Right
parameters may give a wrong contrast, if the approximation takes them for independent.
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
    stacked,
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
    """Return the contrasts of a fit; where parameters are off, those that agree with draws of the posterior.

    Parameters
    ----------
    fit : Fit
        A fit whose numbers are shown, or that is judged.
    ask : callable
        Returns the table of contrasts of a fit, with the columns `SPREAD`, which are dropped from the result.

    Returns
    -------
    pandas.DataFrame
        Contrasts that are too far off have no rows; ``attrs["withheld"]`` names them, and single columns that are too
        far off. ``attrs["judged"]`` says how far off the others are.

    Raises
    ------
    Untrustworthy
        When no contrast agrees.
    """
    contrasts, reasons = ask(fit), list[str]()
    if is_judged(fit):
        contrasts, reasons = _kept(fit, contrasts, ask(reference_of(fit)))
    attrs = contrasts.attrs
    contrasts = contrasts.drop(columns=[*SPREAD]).reset_index(drop=True)
    contrasts.attrs = {**attrs, "withheld": reasons}
    return contrasts


def judged_estimates(fit: Fit, ask: Callable[[Fit], pd.DataFrame]) -> pd.DataFrame:
    """Return the estimates that are contrasted; where parameters are off, NaN in rows that posterior draws contradict.

    No row need agree: levels with the same error have right contrasts.

    Parameters
    ----------
    fit : Fit
        A fit whose numbers are shown, or that is judged.
    ask : callable
        Returns the table of estimates of a fit, with mean, sd and quantiles.

    Returns
    -------
    pandas.DataFrame
        The column ``withheld`` says which rows are too far off.
    """
    estimates = ask(fit).rename_axis("row")
    if not is_judged(fit):
        return estimates
    return only_agreeing(estimates, [moments_part(estimates, ask(reference_of(fit)), limits_of(fit))[0]])


def _kept(fit: Fit, contrasts: pd.DataFrame, reference: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    limits = limits_of(fit)
    statistics = stacked(reference, _STATISTICS)
    gaps = gaps_of(stacked(contrasts, _STATISTICS), statistics)
    shown = gaps_agree(gaps, statistics, limits)
    if not shown.any():
        refuse(fit, ANSWER)
    reasons = [f"{_name(row)}: {FAR}" for row in contrasts[~shown].to_dict("records")]
    line = line_of(shown, gaps.mean, gaps.sd, limits, ANSWER)
    for columns, agree in _by_columns(contrasts, reference, limits):
        far = shown & ~agree & contrasts[columns[0]].notna().to_numpy()
        reasons += [f"{', '.join(columns)} of {_name(row)}: {FAR}" for row in contrasts[far].to_dict("records")]
        with_errors = [name for key in columns for name in (key, f"{key}_mcse")]
        contrasts.loc[far, with_errors] = np.nan
    contrasts = contrasts[shown]
    contrasts.attrs["judged"] = line
    return contrasts, reasons


def _by_columns(
    contrasts: pd.DataFrame, reference: pd.DataFrame, limits: Limits
) -> list[tuple[tuple[str, ...], np.ndarray]]:
    """Return sets of columns that can be off where the difference is right, and the rows in which they agree."""
    names = [name for name in _PROBABILITIES if name in contrasts]
    scores = {
        name: [scores_of(*stacked(frame, (name, f"{name}_mcse"))) for frame in (contrasts, reference)] for name in names
    }
    agree = {name: limits.scores_agree(*pair) for name, pair in scores.items()}
    tolerance = limits.mean * reference["difference_sd"].to_numpy()
    losses = [np.abs(contrasts[name].to_numpy() - reference[name].to_numpy()) <= tolerance for name in _LOSSES]
    return [
        (_RATIOS, _ratios_agree(contrasts, reference, limits)),
        *(((name,), rows) for name, rows in agree.items()),
        (_LOSSES, agree["p_greater"] & np.all(losses, axis=0)),
    ]


def _ratios_agree(contrasts: pd.DataFrame, reference: pd.DataFrame, limits: Limits) -> np.ndarray:
    """Compare ratios by their quantiles, as they may have no moments."""
    ratios = [stacked(frame, _RATIOS) for frame in (contrasts, reference)]
    statistics = [np.concatenate([np.full((2, len(contrasts)), np.nan), quantiles]) for quantiles in ratios]
    return gaps_agree(gaps_of(*statistics), statistics[1], limits) & np.isfinite(ratios[1]).all(axis=0)


def _name(row: Mapping[Hashable, object]) -> str:
    return f"{row['quantity']}: {row['group']} - {row['against']}"
