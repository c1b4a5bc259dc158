"""Moments as columns of a table, and which of them are withheld, row by row and in a line each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.foundation.tails import Moments

if TYPE_CHECKING:
    import pandas as pd

_MOST_NAMED = 5


def moment_columns(known: Moments, quantiles: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return mean, sd, quantiles by their names, and the Monte Carlo errors of mean and sd."""
    first = {"mean": known.mean, "sd": known.sd, **quantiles}
    return first | {"mcse_mean": known.mcse_mean, "mcse_sd": known.mcse_sd}


def with_reasons(frame: pd.DataFrame, withheld: np.ndarray) -> pd.DataFrame:
    """Add to a table which numbers of each row are withheld and why, where any are.

    It is the column ``withheld``; each reason is once in ``attrs["withheld"]``, with the rows that it is of.
    """
    texts = np.ravel(withheld)
    if reasons := list(dict.fromkeys(filter(None, texts.tolist()))):
        frame["withheld"] = texts
        frame.attrs["withheld"] = [_line(text, frame.index[texts == text]) for text in reasons]
    return frame


def _line(text: str, index: pd.Index) -> str:
    names, _, why = text.partition(": ")
    labels = list(dict.fromkeys(map(str, index.get_level_values(0))))
    more = ", ..." if len(labels) > _MOST_NAMED else ""
    return f"{names} of {index.names[0]}{'s' * (len(labels) > 1)} {', '.join(labels[:_MOST_NAMED])}{more}: {why}"
