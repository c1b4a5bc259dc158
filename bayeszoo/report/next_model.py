"""Sentences on predictive checks, and which model to try next if one does not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayeszoo.answers.checks.replicated_statistics import DISPERSION
from bayeszoo.data.inputs import (
    Binary,
    BinaryRegression,
    CountRegression,
    Counts,
    GroupedCounts,
    Inputs,
    Real,
    Regression,
)
from bayeszoo.report.checks import unlike
from bayeszoo.report.text.numbers import number

if TYPE_CHECKING:
    import pandas as pd

_SPREAD = (DISPERSION, "standard deviation", "share of zeros", "maximum")
"""Statistics that are larger than in replicates where counts vary more than the model says."""
_TAILS = ("largest absolute standardized residual", "minimum", "maximum")
_ORDER = ("lag-1 autocorrelation of residuals", "changes", "longest run")
_WITHIN = "whose groups (--group COLUMN) have intercepts of their own"
_STEPS: tuple[tuple[type[Inputs], tuple[str, ...], str], ...] = (
    (CountRegression, _SPREAD, "negative_binomial_regression, whose counts vary more"),
    (CountRegression, _SPREAD, f"poisson_intercepts, {_WITHIN}"),
    (GroupedCounts, _SPREAD, "negative_binomial_regression, whose counts vary more within groups too"),
    (BinaryRegression, _SPREAD, f"logistic_intercepts, {_WITHIN}"),
    (CountRegression, _ORDER, "a feature of time, as neighbouring rows are alike"),
    (Counts, _SPREAD, "gamma_poisson_groups for rates of groups, or negative_binomial_regression"),
    (Counts, _ORDER, "hmm_poisson, whose rate changes over time"),
    (Regression, _TAILS, "robust_regression, whose errors have heavy tails"),
    (Regression, ("skewness",), "the logarithm of the outcome, if it is positive"),
    (Regression, _ORDER, "structural_series, whose level moves over time"),
    (Real, _TAILS, "student_t, whose tails are heavy"),
    (Real, ("skewness",), "the logarithm of the column, if it is positive"),
    (Real, _ORDER, "local_level, whose level moves over time"),
    (Binary, _SPREAD, "beta_binomial, whose groups have probabilities of their own"),
    (Binary, _ORDER, "markov_chain, where a symbol depends on the one before"),
)
"""Suggestions by the kind of data and the statistics that each answers, in order of preference."""


def conclusion(checks: pd.DataFrame, inputs: Inputs, model: str) -> list[str]:
    """Return sentences on whether the model generates data like those observed, and what to try if not.

    Parameters
    ----------
    checks : pandas.DataFrame
        What `predictive_check` returned.
    inputs : Inputs
        The inputs of the model.
    model : str
        The name of the model, which is not suggested.
    """
    compared = checks[checks["p_value"].notna()]
    if compared.empty:
        return ["The model was not checked: no statistic can be compared."]
    never, rarely = unlike(compared)
    names = [*map(str, never.index), *map(str, rarely.index)]
    about = _about_dispersion(compared, names)
    if not names:
        return [f"The model fits: replicates have all {len(compared)} statistics of the data.", *about]
    how = "no" if len(never) else "hardly any"
    lines = [f"The model does not fit: {how} replicate has the data's {', '.join(names)}.", *about]
    extreme = {*compared.index[(compared["p_value"] < 0.5) == (compared.index != "minimum")]} & {*names}
    suggestions = [
        text
        for kind, statistics, text in _STEPS
        if type(inputs) is kind
        and {*statistics} & (extreme if statistics in (_SPREAD, _TAILS) else {*names})
        and not text.startswith(model)
    ]
    return [*lines, f"Next, try {'; or '.join(suggestions)}."] if suggestions else lines


def _about_dispersion(compared: pd.DataFrame, names: list[str]) -> list[str]:
    """Return a sentence on how much more the outcomes vary than the model says; none of other outcomes."""
    if DISPERSION not in compared.index:
        return []
    (row,) = compared.loc[[DISPERSION]].to_dict("records")
    how = "as" if DISPERSION not in names else "more than" if row["p_value"] < 0.5 else "less than"
    value, low, high = (number(row[name], 3) for name in ("observed", "q025", "q975"))
    line = f"Counts vary {how} the model says: dispersion {value}, and {low} to {high} in replicates"
    return [f"{line} (Pearson's chi-square over rows)."]
