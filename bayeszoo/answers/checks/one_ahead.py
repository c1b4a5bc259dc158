"""One-step-ahead predictions of the rows of a series, and whether their residuals are autocorrelated.

Harvey 1989, section 5.4; Durbin and Koopman 2012, section 2.12; Frühwirth-Schnatter 1996 for the average over draws.
"""

from __future__ import annotations

import math

import numpy as np
import scipy

from bayeszoo.answers.averages import Average, averaging
from bayeszoo.answers.checks.normal_scores import Predicted
from bayeszoo.answers.checks.tails_of_rows import joined, mixture
from bayeszoo.data.inputs import Series, starts
from bayeszoo.foundation.blocks import blocks
from bayeszoo.foundation.named import Params
from bayeszoo.model.capabilities import Conditional
from bayeszoo.model.capabilities.sequential import Sequential
from bayeszoo.model.draws import every, flat, shape_of, size_of
from bayeszoo.results.stored import Fit

ONE_AHEAD, ONE_AHEAD_PLUG_IN = "one step ahead", "one step ahead, plug-in"
"""Basis of predictions: the rows before, with parameters fitted to all rows."""
MISSING, START = "missing", "start of a sequence"
"""In place of the basis: the row has no outcome, or only the prior predicts it."""
MOST = 2**23
"""Largest number of draws times rows; above it evenly spaced draws are taken."""


def one_ahead(fit: Fit) -> tuple[Predicted, np.ndarray]:
    """Predict each row of a series from those before it, and return the basis of each prediction."""
    model, data = fit.model, fit.data
    assert isinstance(model, Sequential)
    assert isinstance(model.inputs, Series)
    missing = model.inputs.masked(data)
    seen, y = np.flatnonzero(~missing), model.inputs.outcome(data).astype(np.float64)
    average, params = _thinned(fit, len(y))
    points, bounded = flat(params), model.means_are_averages
    parts = (seen[part] for part in blocks(len(seen), size_of(points)))
    laws = ((model.rows_one_ahead(points, data, part), y[part]) for part in parts)
    observed = joined(mixture(law, outcomes, average, None, bounded) for law, outcomes in laws)
    place = np.cumsum(~missing) - 1
    predicted = Predicted(*(np.where(missing, np.nan, values[np.maximum(place, 0)]) for values in observed))
    plug_in = fit.kind == "point estimate"
    basis = np.full(len(y), ONE_AHEAD_PLUG_IN if plug_in else ONE_AHEAD, dtype=object)
    first = _seen_before(missing, data["sequence"]) < model.numbers_at_start(data)
    return predicted, np.where(missing, MISSING, np.where(first, START, basis))


def _thinned(fit: Fit, rows: int) -> tuple[Average, Params]:
    """Return how means are taken, and the points, or evenly spaced draws: at most `MOST` over the number of rows."""
    average, params = averaging(fit)
    step = max(1, math.prod(shape_of(params)) * rows // MOST) if average.mass is None else 1
    return average, every(params, step)


def _seen_before(missing: np.ndarray, sequence: np.ndarray) -> np.ndarray:
    """Return for each row the number of earlier rows of its sequence that are not missing."""
    before, first = np.cumsum(~missing) - ~missing, starts(sequence)
    return np.asarray(before - before[first][sequence])


def autocorrelation(score: np.ndarray, sequence: np.ndarray, model: Sequential) -> dict[str, float]:
    """Return the autocorrelation of the normal scores of rows, its p-value, and that of the largest score.

    Pairs are of rows of one sequence whose scores are both known.
    """
    is_known = np.isfinite(score)
    n, mean = int(is_known.sum()), float(np.mean(score[is_known])) if is_known.any() else math.nan
    lags = min(model.lags_checked, n // 5)
    figures = {"lag_1": math.nan, "ljung_box_p": math.nan, "ljung_box_lags": lags, "extreme_p": math.nan}
    if not lags or np.ptp(score[is_known]) == 0:
        return figures
    residual = np.where(is_known, score - mean, 0.0)
    total = float(np.sum(np.square(residual)))
    pairs = (residual[k:] * residual[:-k] * (sequence[k:] == sequence[:-k]) for k in range(1, lags + 1))
    r = np.array([float(np.sum(products)) for products in pairs]) / total
    Q = n * (n + 2) * float(np.sum(np.square(r) / (n - np.arange(1, lags + 1))))
    scales = len(model.outer) if isinstance(model, Conditional) else 0  # fitted, they reduce the autocorrelation
    freedom = max(1, lags + 1 - max(1, scales))
    largest = float(np.max(np.abs(score[is_known])))
    tail = 2 * scipy.special.ndtr(-largest)
    figures |= {"lag_1": float(r[0]), "ljung_box_p": float(scipy.special.chdtrc(freedom, Q))}
    return figures | {"extreme_p": float(-np.expm1(n * np.log1p(-tail)))}
