"""Rows of text about groups of a hierarchy: estimates with and without pooling, and ranks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from bayeszoo.report.text.numbers import digits_for, estimate, interval, number, spread

if TYPE_CHECKING:
    import pandas as pd

ABOUT_SHRINKAGE = "Shrinkage: the weight of the population's mean, 0 of no pooling and 1 of full."
ABOUT_RANKS = "Rank 1 is the highest."


def highest_first(frame: pd.DataFrame) -> pd.DataFrame:
    """Sort groups by their partially pooled mean."""
    return frame.sort_values("mean", ascending=False, kind="stable", na_position="last")


def pooling_rows(frame: pd.DataFrame, digits: int | None = None) -> tuple[list[str], list[list[str]]]:
    """Return the columns, and one row per group: its size, raw and partially pooled estimate, and shrinkage."""
    size = str(frame.columns[0])
    columns = ["group", size, "raw", "partially pooled", "sd", "95%", "shrinkage"]
    rows = [[str(label), *_pooling(row, size, digits)] for label, row in frame.iterrows()]
    shown = [i for i, name in enumerate(columns) if name not in ("raw", "shrinkage") or frame[name].notna().any()]
    return [columns[i] for i in shown], [[row[i] for i in shown] for row in rows]


def about_estimates(frame: pd.DataFrame) -> list[str]:
    """Return a line on shrinkage, if it is known."""
    return [ABOUT_SHRINKAGE] if frame["shrinkage"].notna().any() else []


def _pooling(row: pd.Series, size: str, digits: int | None) -> list[str]:
    raw = number(row["raw"], digits or digits_for(row["raw"], row["sd"], 4))
    mean, sd = (_estimate(row[name], row[f"mcse_{name}"], digits, spread(row, name)) for name in ("mean", "sd"))
    shrinkage = _estimate(row["shrinkage"], row["mcse_shrinkage"], digits)
    span = interval(*((row[name], row[f"mcse_{name}"]) for name in ("q025", "q975")))
    return [number(row[size], 6), raw, mean, sd, span, shrinkage]


def rank_rows(frame: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Return the columns, and one row per group: its mean rank with its interval, and P(highest) and P(lowest)."""
    columns = ["group", "mean rank", "95%", "P(highest)", "P(lowest)"]
    return columns, [[str(label), *_ranks(row)] for label, row in frame.iterrows()]


def _ranks(row: pd.Series) -> list[str]:
    rank, highest, lowest = (_with_error(row[name], row[f"mcse_{name}"]) for name in ("rank", "p_highest", "p_lowest"))
    span = interval(*((row[name], 0.0) for name in ("rank_q025", "rank_q975")))
    return [rank, span, highest, lowest]


def _with_error(value: float, error: float) -> str:
    without = math.isnan(error)
    return _estimate(value, error) if without else f"{estimate(value, error)} \u00b1 {number(error, 1)}"


def _estimate(value: float, error: float, digits: int | None = None, sd: float | None = None) -> str:
    return number(value, digits or digits_for(value, sd, 4)) if math.isnan(error) else estimate(value, error, digits)


def fully_pooled(frame: pd.DataFrame, digits: int | None = None) -> str:
    """Return the fully pooled estimate, to the digits of the group with the smallest sd."""
    value = float(frame["pooled"].iloc[0])
    return number(value, digits or digits_for(value, float(frame["sd"].min()), 4))
