"""Sentences on the residuals of a series one step ahead, and which model to try next."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping

FALSE_ALARM = 0.05
"""Largest probability that a right model is reported as a misfit (Bonferroni)."""
_OF_SERIES: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (("local_level",), "ljung_box_p", "structural_series, with seasons or a slope"),
    (("hmm_",), "ljung_box_p", "local_level or structural_series, whose level drifts"),
    (("structural_series",), "ljung_box_p", "another period (--set period=4), or linear_regression --lags"),
    (("linear_gaussian",), "ljung_box_p", "other matrices (--set A, Q), or structural_series"),
    (
        ("local_level", "structural_series"),
        "extreme_p",
        "structural_series --features, with a column that marks the row",
    ),
    (("hmm_",), "extreme_p", "one state more (--set K=3)"),
    (("local_level", "structural_series"), "ks_p", "the logarithm of the column, if it is positive"),
    (("hmm_",), "ks_p", "one state more (--set K=3)"),
)
"""Suggestions by the model of a series, and the p-value that each answers."""
P_VALUES = {
    "ks_p": "the probabilities of rows one step ahead are not uniform",
    "ljung_box_p": "residuals depend on the rows before",
    "extreme_p": "a row is too far from its prediction",
}


def misfits(facts: Mapping[Hashable, float]) -> list[str]:
    """Return the p-values of `residuals` of a series that are too small: any of them in 1 of 20 by chance."""
    return [name for name in P_VALUES if facts[name] < FALSE_ALARM / len(P_VALUES)]


def conclusion_of_series(facts: Mapping[Hashable, float], model: str) -> list[str]:
    """Return sentences on whether rows agree with predictions one step ahead, and what to try if not."""
    if all(math.isnan(facts[name]) for name in P_VALUES):
        return ["The model was not checked: not enough rows are predicted."]
    if not (names := misfits(facts)):
        return ["The model fits: rows agree with predictions one step ahead, and residuals are not autocorrelated."]
    line = f"The model does not fit: {'; '.join(f'{P_VALUES[name]} (p {facts[name]:.2g})' for name in names)}."
    suggestions = [text for kinds, name, text in _OF_SERIES if name in names and model.startswith(kinds)]
    return [line, f"Next, try {'; or '.join(dict.fromkeys(suggestions))}."] if suggestions else [line]
