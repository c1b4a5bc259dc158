"""Rows of text about classes: the confusion table, the calibration table, and the scores."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bayeszoo.data.table.table import listed
from bayeszoo.foundation.named import Document
from bayeszoo.report.text.numbers import estimate, number

if TYPE_CHECKING:
    import pandas as pd

MOST_CLASSES = 30
"""Most classes of a printed table of confusion, calibration or probabilities."""
SMALLEST_ERROR = 1e-6
"""Errors of a quadrature up to this are not printed."""
ABOUT_FITTED = "Scores on the rows of the fit are too optimistic: the same rows fitted the model."
ABOUT_LEFT_OUT = "Each row is classified given all other rows ({basis})."
ABOUT_WITHHELD = (
    "{rows_withheld} of the {rows} rows, and so the means over all rows, are withheld: their importance weights are "
    "unreliable (k-hat). Fit by nuts with more draws, one or two weights by exact, or score rows that were not fitted."
)
ABOUT_UNSETTLED = (
    "{rows_withheld} of the {rows} rows, and so the means over all rows, are withheld: too few draws carry the weight "
    "of their features (k-hat). Fit by exact if the model has it, or by nuts with more draws."
)
ABOUT_UNSCORED = (
    "The log scores of {rows_unscored} of the {rows} rows, and so their mean, are withheld: few draws carry the "
    "probability of the outcome. Fit by exact if the model has it, or by nuts with more draws."
)
ABOUT_IMPOSSIBLE = (
    "{rows_impossible} of the {rows} rows are withheld, as their features are impossible in every class by the "
    "estimate: fit by map or exact, whose prior keeps all levels possible."
)
ABOUT_VETOED = (
    "In {rows_vetoed} of the {rows} rows a class has estimated probability 0, as its training rows lack one of the "
    "levels: with a prior (map, exact) it remains possible."
)
ABOUT_UNLIKE = (
    "Unlike the training rows: {listed}. The density of their features, over all classes, is below that of 99.9% of "
    "the training rows."
)
ABOUT_PLUGGED_IN = "Parameter uncertainty is ignored (point estimate)."


def about_rows(attrs: Document, rows: int) -> list[str]:
    """Return lines on the scored rows, from the attributes ``attrs`` of the table of decisions."""
    unscored = [ABOUT_UNSCORED.format(**{**attrs, "rows": rows})] if attrs.get("rows_unscored") else []
    if attrs["rows_are"] == "left out":
        counts = {"rows_withheld": _not_far(attrs), "rows": rows}
        withheld = [ABOUT_WITHHELD.format(**{**attrs, **counts})] * bool(_not_far(attrs))
        return [ABOUT_LEFT_OUT.format(**attrs), *withheld, *unscored]
    return [*_about_features(attrs, rows), *unscored, *[ABOUT_FITTED] * (attrs["rows_are"] == "fitted")]


def _not_far(attrs: Document) -> int:
    """Return the number of withheld rows where an approximation agrees with the posterior."""
    return int(attrs.get("rows_withheld", 0) - attrs.get("rows_far", 0))


def _about_features(attrs: Document, rows: int) -> list[str]:
    """Return lines on the densities of the features of rows."""
    withheld = _not_far(attrs) - attrs.get("rows_impossible", 0)
    unlike = listed([row - 1 for row in attrs.get("unlike", [])])
    numbers = {**attrs, "rows": rows, "rows_withheld": withheld, "listed": unlike}
    lines = {ABOUT_UNSETTLED: withheld, ABOUT_IMPOSSIBLE: "rows_impossible" in attrs}
    lines |= {ABOUT_VETOED: "rows_vetoed" in attrs, ABOUT_UNLIKE: bool(attrs.get("unlike"))}
    return [line.format(**numbers) for line, applies in lines.items() if applies]


def confusion_rows(table: pd.DataFrame) -> tuple[list[str], list[list[Any]]]:
    """Return the columns, and one row per true class: the number of its trials by decision."""
    rows = [[str(label), *map(int, counts)] for label, counts in zip(table.index, table.to_numpy(), strict=True)]
    return ["truth", *map(str, table.columns)], rows


def calibration_rows(table: pd.DataFrame, digits: int | None) -> tuple[list[str], list[list[Any]]]:
    """Return the columns, and one row per bin: its edges, trials, mean probability, and share with its interval."""
    columns = ["class", "probability", "trials", "mean", "share", "95%"]
    return columns, [_bin(row, digits) for row in table.to_dict("records")]


def _bin(row: Mapping[Any, Any], digits: int | None) -> list[Any]:
    edges, interval = f"{row['low']:.3g} to {row['high']:.3g}", f"{row['q025']:.2f} to {row['q975']:.2f}"
    means = [number(float(row[name]), digits or 3) for name in ("mean_probability", "share")]
    return [str(row["class"]), edges, int(row["trials"]), *means, interval]


def score_rows(attrs: Document, digits: int | None = None) -> tuple[list[str], list[list[Any]]]:
    """Return the columns, and one row per score: its mean over trials with both errors; then ROC areas.

    Below the loss is that of one decision for all rows; with more than two classes the least such loss.
    """
    named = {"loss": "loss_of_one", "log score": "log_score_of_one", "Brier score": "brier_score_of_one"}
    rows: list[list[Any]] = [
        [name, *_with_error(attrs[key], attrs[f"mcse_{key}"], digits, float(attrs[f"se_{key}"]))]
        for name, key in named.items()
    ]
    always = sorted(attrs["loss_of_always"].items(), key=lambda item: item[1])
    always = always if len(attrs["classes"]) == 2 else always[:1]
    rows[1:1] = [[f"loss of always {label}", *_with_error(loss, 0.0, digits)] for label, loss in always]
    areas = [
        [f"area under ROC of {label}", *_with_error(area, attrs["mcse_auc"][label], digits)]
        for label, area in attrs["auc"].items()
    ]
    heads = ["score", f"mean of {attrs['trials']} trials", "standard error", "Monte Carlo error at most"]
    return heads, rows + areas


def _with_error(value: float, error: float, digits: int | None, se: float = math.nan) -> list[str]:
    """Return a score to the digits of its Monte Carlo error, its standard error over trials, and the former error."""
    has_error = error > SMALLEST_ERROR
    text = estimate(float(value), float(error), digits) if has_error else number(float(value), digits or 4)
    return [text, number(se, 2), number(float(error), 2) if has_error else "-"]
