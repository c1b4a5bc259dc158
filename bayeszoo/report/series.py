"""What residuals one step ahead say of the model of a series in a sentence, and which model to try next."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping

FALSE_ALARM = 0.05
"""Probability of a false alarm: a right model has a p-value near 0 or 1 at most this often (Bonferroni)."""
_OF_SERIES: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (("local_level",), "ljung_box_p", "structural_series, with seasons or a slope"),
    (("hmm_",), "ljung_box_p", "local_level or structural_series, whose level drifts"),
    (("structural_series",), "ljung_box_p", "another period (--set period=4), or linear_regression --lags"),
    (("linear_gaussian",), "ljung_box_p", "other matrices (--set A, Q), or structural_series"),
    (
        ("local_level", "structural_series"),
        "extreme_p",
        "structural_series --features, a column of which marks the row",
    ),
    (("hmm_",), "extreme_p", "one state more (--set K=3)"),
    (("local_level", "structural_series"), "ks_p", "the logarithm of the column, if it is positive"),
    (("hmm_",), "ks_p", "one state more (--set K=3)"),
)
"""What to try by the model of a series, and the p-value that it answers."""
P_VALUES = {
    "ks_p": "the probabilities of rows one step ahead are not uniform",
    "ljung_box_p": "what is left of a row depends on the rows before",
    "extreme_p": "a row is too far from its prediction",
}


def misfits(facts: Mapping[Hashable, float]) -> list[str]:
    """Return which p-values of `residuals` of a series are too small, of all together one in 20 by chance."""
    return [name for name in P_VALUES if facts[name] < FALSE_ALARM / len(P_VALUES)]


def conclusion_of_series(facts: Mapping[Hashable, float], model: str) -> list[str]:
    """Say in a sentence whether a series is as its model predicts it a step ahead, and what to try where it is not."""
    if all(math.isnan(facts[name]) for name in P_VALUES):
        return ["The model was not checked: not enough rows are predicted."]
    if not (names := misfits(facts)):
        return ["The model fits: rows are where it predicts them one step ahead, and what is left has no memory."]
    line = f"The model does not fit: {'; '.join(f'{P_VALUES[name]} (p {facts[name]:.2g})' for name in names)}."
    fitting = [text for kinds, name, text in _OF_SERIES if name in names and model.startswith(kinds)]
    return [line, f"Next, try {'; or '.join(dict.fromkeys(fitting))}."] if fitting else [line]
