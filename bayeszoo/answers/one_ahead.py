"""Rows of a series, each predicted from those before it, and whether what is left still depends on what came before.

Harvey 1989, section 5.4; Durbin and Koopman 2012, section 2.12; Frühwirth-Schnatter 1996 for the average over draws.
"""

from __future__ import annotations

import math

import numpy as np
import scipy

from bayeszoo.answers.averages import Average, averaging
from bayeszoo.answers.normal_scores import Predicted
from bayeszoo.answers.tails_of_rows import joined, mixture
from bayeszoo.data.inputs import Series, starts
from bayeszoo.foundation.blocks import AT_ONCE
from bayeszoo.foundation.named import Params
from bayeszoo.model.sequential import Sequential
from bayeszoo.results.stored import Fit

ONE_AHEAD, ONE_AHEAD_PLUG_IN = "one step ahead", "one step ahead, plug-in"
"""What predictions rest on: rows before, and parameters that all rows gave."""
MISSING, START = "missing", "start of a sequence"
"""In place of it, of rows without an outcome, and of those that only the prior predicts."""
MOST = 2**23
"""Numbers of a table of draws by rows, of more than which an even selection of draws is taken."""


def one_ahead(fit: Fit) -> tuple[Predicted, np.ndarray]:
    """Predict each row of a series from those before it, and say on what the prediction rests."""
    model, data = fit.model, fit.data
    assert isinstance(model, Sequential)
    assert isinstance(model.inputs, Series)
    missing = model.inputs.masked(data)
    seen, y = np.flatnonzero(~missing), model.inputs.outcome(data).astype(np.float64)
    average, params = _some(fit, len(y))
    flat = {name: values.reshape(-1, *values.shape[2:]) for name, values in params.items()}
    size = len(next(iter(flat.values())))
    step = max(1, AT_ONCE // size)
    parts = [seen[at : at + step] for at in range(0, len(seen), step)]
    bounded = model.means_are_averages
    known = joined(mixture(model.rows_one_ahead(flat, data, some), y[some], average, None, bounded) for some in parts)
    place = np.cumsum(~missing) - 1
    predicted = Predicted(*(np.where(missing, np.nan, values[np.maximum(place, 0)]) for values in known))
    plug_in = fit.kind == "point estimate"
    basis = np.full(len(y), ONE_AHEAD_PLUG_IN if plug_in else ONE_AHEAD, dtype=object)
    first = _seen_before(missing, data["sequence"]) < model.numbers_at_start(data)
    return predicted, np.where(missing, MISSING, np.where(first, START, basis))


def _some(fit: Fit, rows: int) -> tuple[Average, Params]:
    """Return how means are taken, and points or draws, of these at most as many as `MOST` numbers of rows need."""
    average, params = averaging(fit)
    chains, draws = next(iter(params.values())).shape[:2]
    step = max(1, chains * draws * rows // MOST) if average.mass is None else 1
    return average, {name: values[:, ::step] for name, values in params.items()}


def _seen_before(missing: np.ndarray, sequence: np.ndarray) -> np.ndarray:
    """Return how many rows before each in its sequence are not missing."""
    before, first = np.cumsum(~missing) - ~missing, starts(sequence)
    return np.asarray(before - before[first][sequence])


def autocorrelation(score: np.ndarray, sequence: np.ndarray, model: Sequential) -> dict[str, float]:
    """Return whether normal scores of rows next to each other are alike, and whether one is too far out.

    Pairs of rows are of one sequence, and both are known.
    """
    known = np.isfinite(score)
    n, mean = int(known.sum()), float(np.mean(score[known])) if known.any() else math.nan
    lags = min(model.lags_checked, n // 5)
    told = {"lag_1": math.nan, "ljung_box_p": math.nan, "ljung_box_lags": lags, "extreme_p": math.nan}
    if not lags or np.ptp(score[known]) == 0:
        return told
    off = np.where(known, score - mean, 0.0)
    total = float(np.sum(np.square(off)))
    r = np.array([float(np.sum(off[k:] * off[:-k] * (sequence[k:] == sequence[:-k]))) for k in range(1, lags + 1)])
    r = r / total
    Q = n * (n + 2) * float(np.sum(np.square(r) / (n - np.arange(1, lags + 1))))
    freedom = max(1, lags + 1 - max(1, model.scales_fitted))
    largest = float(np.max(np.abs(score[known])))
    tail = 2 * scipy.special.ndtr(-largest)
    told |= {"lag_1": float(r[0]), "ljung_box_p": float(scipy.special.chdtrc(freedom, Q))}
    return told | {"extreme_p": float(-np.expm1(n * np.log1p(-tail)))}
