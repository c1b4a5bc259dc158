"""Rows of text about mutual informations and entropies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayeszoo.foundation.named import Document
from bayeszoo.report.text.numbers import estimate, number
from bayeszoo.tools.information import CLASS_ENTROPY

if TYPE_CHECKING:
    import pandas as pd

_HEADS = {"mean": "mean", "sd": "sd", "q025": "2.5%", "median": "median", "q975": "97.5%"}
_FURTHER_HEADS = {"p_highest": "P(highest)", "plug_in": "plug-in", "bias": "bias"}
SPARE = ("sd", "median", "bias", "plug-in")
"""Columns that are hidden first in a narrow terminal."""


def information_rows(frame: pd.DataFrame, digits: int | None) -> tuple[list[str], list[list[str]]]:
    """Return the columns, and one row per quantity, with numbers to the order of their Monte Carlo errors."""
    further = {key: head for key, head in _FURTHER_HEADS.items() if key in frame}
    columns = [str(frame.index.name), *_HEADS.values(), *further.values()]
    return columns, [[str(label), *_cells(row, further, digits)] for label, row in frame.iterrows()]


def _cells(row: pd.Series, further: dict[str, str], digits: int | None) -> list[str]:
    first = [estimate(row[key], row[f"mcse_{key}"], digits) for key in _HEADS]
    last = [
        estimate(row[key], row["mcse_p_highest"]) if key == "p_highest" else number(row[key], digits or 3)
        for key in further
    ]
    return first + last


def about_information(attrs: Document, has_plug_in: bool) -> list[str]:
    """Return lines that explain the columns."""
    unit, lines = attrs["unit"], [f"Unit: {attrs['unit']}."]
    if attrs["kind"] != "point estimate":
        lines = [
            f"Unit: {unit}. Mutual information is not negative: where there is none, its interval is just above 0."
        ]
    if CLASS_ENTROPY in attrs:
        most = number(attrs[CLASS_ENTROPY], 3)
        lines.append(f"Upper bound, the entropy of the class: {most} {unit}.")
        lines.append("Features are taken one by one: two informative features may be redundant.")
    else:
        lines.append("For more than two columns it is their total correlation.")
    if has_plug_in:
        lines.append("plug-in: computed from the observed shares; too large by about the bias.")
    return lines
