"""Classes as rows of text: the confusion table, the calibration table, and the scores."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bayeszoo.data.table.table import listed
from bayeszoo.foundation.named import Document
from bayeszoo.report.numbers import estimate, number

if TYPE_CHECKING:
    import pandas as pd

MOST_CLASSES = 30
"""Classes of a table of confusion, of calibration or of probabilities that is printed."""
SMALLEST_ERROR = 1e-6
"""Errors of a quadrature up to which they are not printed."""
ABOUT_FITTED = "These are the rows of the fit, which it knows better than new ones: their scores flatter it."
ABOUT_LEFT_OUT = "Each row is judged by what all others say of it ({basis})."
ABOUT_WITHHELD = (
    "{rows_withheld} of the {rows} rows are withheld, as the draws do not say what is known without them (k-hat), and "
    "with them the means over all: fit by nuts with more draws, of one or two weights by exact, or score rows that "
    "were not fitted."
)
ABOUT_UNSETTLED = (
    "{rows_withheld} of the {rows} rows are withheld, as too few draws carry the weight of their features (k-hat), and "
    "with them the means over all: fit by exact where the model has it, or by nuts with more draws."
)
ABOUT_IMPOSSIBLE = (
    "{rows_impossible} of the {rows} rows are withheld, as the estimate gives their features no density in any class: "
    "fit by map or exact, whose prior keeps all levels possible."
)
ABOUT_VETOED = (
    "In {rows_vetoed} of the {rows} rows the estimate gives some class no probability, as its training rows lack "
    "one of the levels: a prior (map, exact) does not rule it out."
)
ABOUT_UNLIKE = (
    "Unlike the training rows: {listed}. The density of their features, whatever the class, is below that of 99.9% of "
    "these."
)
ABOUT_PLUGGED_IN = "Parameter uncertainty is ignored (point estimate)."


def about_rows(whole: Document, rows: int) -> list[str]:
    """Say which rows are scored, from the attributes of the table of decisions and how many it has."""
    if whole["rows_are"] == "left out":
        others = {"rows_withheld": _not_far(whole), "rows": rows}
        said = [ABOUT_WITHHELD.format(**{**whole, **others})] * bool(_not_far(whole))
        return [ABOUT_LEFT_OUT.format(**whole), *said]
    return [*_about_features(whole, rows), *[ABOUT_FITTED] * (whole["rows_are"] == "fitted")]


def _not_far(whole: Document) -> int:
    """Return how many rows are withheld though an approximation agrees with the posterior there."""
    return int(whole.get("rows_withheld", 0) - whole.get("rows_far", 0))


def _about_features(whole: Document, rows: int) -> list[str]:
    """Return lines on the densities of the features of rows."""
    withheld = _not_far(whole) - whole.get("rows_impossible", 0)
    unlike = listed([row - 1 for row in whole.get("unlike", [])])
    known = {**whole, "rows": rows, "rows_withheld": withheld, "listed": unlike}
    lines = {ABOUT_UNSETTLED: withheld, ABOUT_IMPOSSIBLE: "rows_impossible" in whole}
    lines |= {ABOUT_VETOED: "rows_vetoed" in whole, ABOUT_UNLIKE: bool(whole.get("unlike"))}
    return [line.format(**known) for line, is_said in lines.items() if is_said]


def confusion_rows(table: pd.DataFrame) -> tuple[list[str], list[list[Any]]]:
    """Return the columns and a row a true class: how many trials got which decision."""
    rows = [[str(label), *map(int, counts)] for label, counts in zip(table.index, table.to_numpy(), strict=True)]
    return ["truth", *map(str, table.columns)], rows


def calibration_rows(table: pd.DataFrame, digits: int | None = None) -> tuple[list[str], list[list[Any]]]:
    """Return the columns and a row a bin: its edges, how many trials, mean probability, and share with its interval."""
    columns = ["class", "probability", "trials", "mean", "share", "95%"]
    return columns, [_bin(row, digits) for row in table.to_dict("records")]


def _bin(row: Mapping[Any, Any], digits: int | None) -> list[Any]:
    edges, interval = f"{row['low']:.3g} to {row['high']:.3g}", f"{row['q025']:.2f} to {row['q975']:.2f}"
    means = [number(float(row[name]), digits or 3) for name in ("mean_probability", "share")]
    return [str(row["class"]), edges, int(row["trials"]), *means, interval]


def score_rows(whole: Document, digits: int | None = None) -> tuple[list[str], list[list[Any]]]:
    """Return the columns and a row a score: its mean over trials with both errors; then ROC areas.

    Under the loss stands that of one decision for all rows, of many classes the least such loss.
    """
    named = {"loss": "loss_of_one", "log score": "log_score_of_one", "Brier score": "brier_score_of_one"}
    rows: list[list[Any]] = [
        [name, *_with_error(whole[key], whole[f"mcse_{key}"], digits, float(whole[f"se_{key}"]))]
        for name, key in named.items()
    ]
    always = sorted(whole["loss_of_always"].items(), key=lambda item: item[1])
    always = always if len(whole["classes"]) == 2 else always[:1]
    rows[1:1] = [[f"loss of always {label}", *_with_error(loss, 0.0, digits)] for label, loss in always]
    areas = [
        [f"area under ROC of {label}", *_with_error(area, whole["mcse_auc"][label], digits)]
        for label, area in whole["auc"].items()
    ]
    heads = ["score", f"mean of {whole['trials']} trials", "standard error", "Monte Carlo error at most"]
    return heads, rows + areas


def _with_error(value: float, error: float, digits: int | None, se: float = math.nan) -> list[str]:
    """Write a score to the digits of its Monte Carlo error, its standard error over trials, and the former."""
    has_error = error > SMALLEST_ERROR
    text = estimate(float(value), float(error), digits) if has_error else number(float(value), digits or 4)
    return [text, number(se, 2), number(float(error), 2) if has_error else "-"]
