"""Sentences on predictive checks, and which model to try next if one does not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayeszoo.data.inputs import Binary, CountRegression, Counts, Inputs, Real, Regression
from bayeszoo.report.checks import unlike

if TYPE_CHECKING:
    import pandas as pd

_SPREAD = ("standard deviation", "share of zeros", "maximum")
_TAILS = ("largest absolute standardized residual", "minimum", "maximum")
_ORDER = ("lag-1 autocorrelation of residuals", "changes", "longest run")
_STEPS: tuple[tuple[type[Inputs], tuple[str, ...], str], ...] = (
    (CountRegression, _SPREAD, "negative_binomial_regression, whose counts vary more"),
    (CountRegression, _ORDER, "a feature of time, as neighbouring rows are alike"),
    (Counts, _SPREAD, "gamma_poisson_groups for rates of groups, or negative_binomial_regression"),
    (Counts, _ORDER, "hmm_poisson, whose rate changes over time"),
    (Regression, _TAILS, "robust_regression, whose errors have heavy tails"),
    (Regression, ("skewness",), "the logarithm of the outcome, if it is positive"),
    (Regression, _ORDER, "structural_series, whose level moves over time"),
    (Real, _TAILS, "student_t, whose tails are heavy"),
    (Real, ("skewness",), "the logarithm of the column, if it is positive"),
    (Real, _ORDER, "local_level, whose level moves over time"),
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
    if not names:
        return [f"The model fits: replicates have all {len(compared)} statistics of the data."]
    how = "no" if len(never) else "hardly any"
    line = f"The model does not fit: {how} replicate has the data's {', '.join(names)}."
    suggestions = [
        text
        for kind, statistics, text in _STEPS
        if type(inputs) is kind and {*statistics} & {*names} and not text.startswith(model)
    ]
    return [line, f"Next, try {'; or '.join(suggestions)}."] if suggestions else [line]
