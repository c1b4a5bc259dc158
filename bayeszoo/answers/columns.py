"""Moments and events as columns of a table, their errors, and which are withheld, row by row and in a line each."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from bayeszoo.answers.quantiles import Quantiles
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.tails import Moments

if TYPE_CHECKING:
    import pandas as pd

_MOST_NAMED = 5


def moment_columns(known: Moments, quantiles: Quantiles | None = None) -> dict[str, np.ndarray]:
    """Return mean, sd and quantiles by their names, and their Monte Carlo errors."""
    values, errors = ({}, {}) if quantiles is None else (quantiles.values, quantiles.columns())
    moments = {"mean": known.mean, "sd": known.sd}
    return {**moments, **values, "mcse_mean": known.mcse_mean, "mcse_sd": known.mcse_sd, **errors}


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


def error_of_mean(values: np.ndarray, kind: str, whole: np.ndarray | None = None) -> np.ndarray:
    """Return the Monte Carlo error of the mean of values (chain, draw, ...), independent unless "sampled".

    Events that all draws agree on have that of one over the effective number of the draws, by the quantities ``whole``.
    """
    draws = values.shape[0] * values.shape[1]
    is_sampled = kind == "sampled"
    error = diagnostics.mcse(values) if is_sampled else values.std((0, 1), ddof=1) / math.sqrt(draws)
    if whole is None:
        return error
    agreed = np.ptp(values, (0, 1)) == 0
    sizes = np.full(error.shape, float(draws))
    if is_sampled and agreed.any():
        sizes[agreed] = diagnostics.ess(whole[..., agreed])
    return np.where(agreed, 1 / sizes, error)
