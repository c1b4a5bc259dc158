"""Lines on what a judged answer withholds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd


def about_judged(frame: pd.DataFrame) -> list[str]:
    """Return lines on the numbers of an answer that are withheld, and on the measured gaps of the others."""
    lines = [f"Withheld: {line}." for line in frame.attrs.get("withheld", [])]
    judged = str(frame.attrs.get("judged", ""))
    return [*lines, *[f"{judged[:1].upper()}{judged[1:]}."] * bool(judged)]


def most_probable(levels: Sequence[str], values: np.ndarray, top: np.ndarray) -> str:
    """Return the top levels, and the number of withheld ones, which may be more probable."""
    shown = ", ".join(levels[j] for j in top if not np.isnan(values[j]))
    withheld = int(np.isnan(values).sum())
    return f"{shown}{f' ({withheld} withheld)' * bool(withheld)}"
