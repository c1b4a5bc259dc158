"""Columns of moments and quantiles, Monte Carlo errors of means, and reasons why numbers are withheld."""

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
FAR_FROM_DRAWS = "too far from the draws, few of which carry the mean"
"""Why the mean of a density, or of a probability given a row, is withheld."""
NOT_UPDATED = "the parameters are those given the rows of the fit: new rows do not update them"


def moment_columns(known: Moments, quantiles: Quantiles | None = None) -> dict[str, np.ndarray]:
    """Return mean, sd and quantiles as named columns, with their Monte Carlo errors."""
    values, errors = ({}, {}) if quantiles is None else (quantiles.values, quantiles.columns())
    moments = {"mean": known.mean, "sd": known.sd}
    return {**moments, **values, "mcse_mean": known.mcse_mean, "mcse_sd": known.mcse_sd, **errors}


def not_updated(frame: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Remark that new rows are averaged over draws given the rows of the fit; a point estimate has no others."""
    if kind != "point estimate":
        frame.attrs["remarks"] = [*frame.attrs.get("remarks", ()), NOT_UPDATED]
    return frame


def with_reasons(frame: pd.DataFrame, withheld: np.ndarray) -> pd.DataFrame:
    """Add the column ``withheld`` to a table if any numbers are withheld: which ones of each row, and why.

    Each reason is once in ``attrs["withheld"]``, with its rows.
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


def p_highest(values: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the probability that each of values (chain, draw, n) is the highest, and its error; ties share it."""
    is_highest = values == values.max(axis=-1, keepdims=True)
    share = is_highest / is_highest.sum(axis=-1, keepdims=True)
    return share.mean((0, 1)), error_of_mean(share, kind, values)


def error_of_mean(values: np.ndarray, kind: str, whole: np.ndarray | None = None) -> np.ndarray:
    """Return the Monte Carlo error of the mean of values (chain, draw, ...), independent unless ``kind`` is "sampled".

    With ``whole``, the quantities behind events, the error of an event on which all draws agree is one over their
    effective sample size.
    """
    draws = values.shape[0] * values.shape[1]
    is_sampled = kind == "sampled"
    error = diagnostics.mcse(values) if is_sampled else values.std((0, 1), ddof=1) / math.sqrt(draws)
    if whole is None:
        return error
    is_constant = np.ptp(values, (0, 1)) == 0
    sizes = np.full(error.shape, float(draws))
    if is_sampled and is_constant.any():
        sizes[is_constant] = diagnostics.ess(whole[..., is_constant])
    return np.where(is_constant, 1 / sizes, error)
