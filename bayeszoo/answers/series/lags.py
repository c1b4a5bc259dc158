"""Forecasts of a regression on its own lags, with intervals, and the probability that the process is stationary.

Given the parameters the rows to come are jointly Gaussian: their means continue from the last rows, and each step adds
noise. These laws are averaged over the draws. Box and Jenkins 1976, chapter 5; Durbin and Koopman 2012.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayeszoo.answers.columns import error_of_mean, moment_columns, with_reasons
from bayeszoo.answers.judged import judged
from bayeszoo.answers.quantiles import Quantiles, summary_over_draws
from bayeszoo.answers.series.tables import frame_of, whole_number
from bayeszoo.data.inputs.sequences.lags import Lags, of_data
from bayeszoo.data.inputs.sequences.times import times_after
from bayeszoo.data.table.table import LARGEST_REAL
from bayeszoo.distributions import frozen
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.foundation.named import Params
from bayeszoo.foundation.streams import stream_of_fit
from bayeszoo.foundation.tails import Moments, existing
from bayeszoo.model.capabilities.linear_predictor import LinearPredictor
from bayeszoo.model.draws import size_of
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import pandas as pd


_ROUNDING = 1e-9
"""Relative difference up to which numbers are equal."""


def has_lags(fit: Fit) -> bool:
    """Return whether a fit is of a regression on lags of its outcome."""
    return of_data(fit.like) is not None


def rows_ahead(fit: Fit, steps: int, paths: int = 0, seed: int | np.random.Generator = 0) -> pd.DataFrame:
    """Predict the rows after the last of each sequence: `bz.forecast` and `bz.predict` for fits with lags."""
    steps, paths = whole_number(steps, 1, "steps"), whole_number(paths, 0, "paths")
    return judged(fit, "predictions from it", lambda _: steps, partial(_ahead, paths, seed))


def _ahead(paths: int, seed: int | np.random.Generator, fit: Fit, steps: int) -> pd.DataFrame:
    lags, params = of_data(fit.like), fit.draws()
    assert lags is not None
    last, process = _last_rows(lags), Affine.of(fit, lags, params)

    def law(draws: Params) -> frozen.Frozen:
        return Affine.of(fit, lags, draws).ahead(last, steps)

    with np.errstate(over="ignore", invalid="ignore"):  # an exploding process is refused
        at_draws = process.ahead(last, steps)
        is_finite = np.all(np.abs(at_draws.mean()) < LARGEST_REAL) and np.all(at_draws.std() < LARGEST_REAL)
    if not is_finite:
        raise NumericalError("rows so far ahead are too large: the process explodes; ask for fewer", "too_large")
    row_moments, quantiles = _averaged(fit, at_draws, law, steps)
    columns = _labels(lags, steps) | moment_columns(row_moments, quantiles)
    if paths:
        rng = stream_of_fit(fit.tree.attrs, seed, "paths of rows to come", str(steps))
        columns |= {f"path[{i}]": path for i, path in enumerate(_drawn(fit, lags, steps, paths, rng), start=1)}
    return with_reasons(frame_of(columns, "step", _stationary(fit, process.phi), steps), row_moments.withheld)


def _stationary(fit: Fit, phi: np.ndarray) -> dict[str, float]:
    """Return the probability that the process is stationary, its error, and the number of draws."""
    radius = np.max(np.abs(np.linalg.eigvals(companion(phi))), axis=-1)
    is_stable = (radius < 1).astype(float)[..., None]
    is_point = fit.kind == "point estimate"
    error = np.full(1, np.nan) if is_point else error_of_mean(is_stable, fit.kind, radius[..., None])
    return {"stationary": float(is_stable.mean()), "mcse_stationary": float(error[0]), "draws": radius.size}


def about_stationary(attrs: Mapping[Any, Any]) -> str:
    """Return a sentence on whether the process is stationary; if all draws agree, with their number."""
    p, error, draws = (attrs[name] for name in ("stationary", "mcse_stationary", "draws"))
    if draws == 1:
        return f"At the estimate the process is {'' if p == 1 else 'not '}stationary."
    if p in (0, 1):
        return f"The process is stationary at {'all' if p else 'none'} of {draws:,} draws."
    return f"The process is stationary with probability {p:.4g} +- {error:.2g}."


def refuse_other_rows(new_data: object) -> None:
    """Refuse to forecast from rows other than those of the fit."""
    if new_data is not None:
        hint = "`bayeszoo predict FIT NEW.csv` predicts each of its rows from those before"
        raise InputError("a fit with lags goes on from its own rows", "new_rows_unknown", hint=hint)


def companion(phi: np.ndarray) -> np.ndarray:
    """Return the companion matrices (..., K, K) of lag weights (..., K), whose eigenvalues tell stability."""
    K = phi.shape[-1]
    matrix = np.zeros((*phi.shape, K))
    matrix[..., 0, :] = phi
    matrix[..., np.arange(1, K), np.arange(K - 1)] = 1.0
    return matrix


class Affine(NamedTuple):
    """Rows that are Gaussian about a constant (...) plus lags with weights (..., K), with an sd (...)."""

    constant: np.ndarray
    phi: np.ndarray
    sd: np.ndarray

    @classmethod
    def of(cls, fit: Fit, lags: Lags, params: Params) -> Affine:
        """Read constant, weights and sd off the laws of rows with simple lags; refuse laws that are not affine."""
        model, last = fit.model, _last_rows(lags)
        if fit.like["feature"].tolist() != lags.names:
            hint = "predict new rows a step ahead, from a table with their outcomes: bayeszoo predict FIT NEW.csv"
            raise InputError("other features of further rows are not known", "new_rows_unknown", hint=hint)
        rows = {"X": np.vstack([np.zeros(lags.order), np.eye(lags.order), last]), "feature": fit.like["feature"]}
        law = model.likelihood(params, rows) if isinstance(model, LinearPredictor) else None
        if isinstance(law, frozen.Frozen) and law.is_of_kind(frozen.norm(0.0, 1.0)):
            means, sds = np.asarray(law.mean()), np.asarray(law.std())
            constant, phi = means[..., 0], means[..., 1 : lags.order + 1] - means[..., :1]
            size = np.abs(constant)[..., None] + np.abs(phi) @ np.abs(last.T)
            error = np.abs(means[..., lags.order + 1 :] - constant[..., None] - phi @ last.T)
            if np.all(error <= _ROUNDING * size) and np.all(np.ptp(sds, axis=-1) <= _ROUNDING * sds[..., 0]):
                return cls(constant, phi, sds[..., 0])
        hint = "fit linear_regression, ridge or bayesian_lasso of degree 1"
        raise InputError(f"rows are not Gaussian about a weighted sum of lags in {model.name}", "not_linear", hint=hint)

    def ahead(self, last: np.ndarray, steps: int) -> frozen.Frozen:
        """Return the normal distributions of the rows to come, (..., sequences * steps), grouped by sequence."""
        shape, K = self.constant.shape, last.shape[1]
        past = np.broadcast_to(last, (*shape, *last.shape))
        response = np.broadcast_to(np.eye(K)[0], (*shape, K))
        squares, means, factors = np.zeros(shape), [], []
        for _ in range(steps):
            mean = self.constant[..., None] + np.sum(self.phi[..., None, :] * past, axis=-1)
            squares = squares + np.square(response[..., 0])
            means.append(mean)
            factors.append(squares)
            past = np.concatenate([mean[..., None], past[..., :-1]], axis=-1)
            response = np.concatenate(
                [np.sum(self.phi * response, axis=-1, keepdims=True), response[..., :-1]], axis=-1
            )
        sd = self.sd[..., None, None] * np.sqrt(np.stack(factors, axis=-1))[..., None, :]
        flat = (*shape, len(last) * steps)
        sd = np.broadcast_to(sd, (*shape, len(last), steps))
        return frozen.norm(np.stack(means, axis=-1).reshape(flat), sd.reshape(flat))

    def drawn(self, last: np.ndarray, steps: int, rng: np.random.Generator) -> np.ndarray:
        """Draw the rows to come jointly, one path per point of the parameters, (points, sequences * steps)."""
        past, rows = np.broadcast_to(last, (len(self.sd), *last.shape)), []
        for _ in range(steps):
            mean = self.constant[:, None] + np.sum(self.phi[:, None, :] * past, axis=-1)
            rows.append(mean + self.sd[:, None] * rng.standard_normal(mean.shape))
            past = np.concatenate([rows[-1][..., None], past[..., :-1]], axis=-1)
        return np.stack(rows, axis=-1).reshape(len(self.sd), -1)


def _last_rows(lags: Lags) -> np.ndarray:
    """Return the last outcomes of each sequence, the latest first, (sequences, K)."""
    for end in lags.ends:
        if None in end.last:
            series = f"sequence {end.name}" if end.name else "the series"
            line = f"{series} lacks an outcome among its last {lags.order}, from which it would go on"
            raise InputError(line, "missing_values", hint="fill it in, or fit local_level with --missing mask")
    return np.array([end.last for end in lags.ends], dtype=np.float64)


def _averaged(fit: Fit, at_draws: frozen.Frozen, law: Any, steps: int) -> tuple[Moments, Quantiles]:
    """Return moments and quantiles of the laws averaged over draws; those of step k exist below 1/k of the order."""
    if fit.kind == "point estimate":
        quantiles = {name: values[0, 0] for name, values in Quantiles.exact(at_draws).values.items()}
        mean, sd = (np.asarray(moment)[0, 0] for moment in (at_draws.mean(), at_draws.std()))
        return Moments.exact(mean, sd), Quantiles.without_error(quantiles)
    by_draws, of_draws = summary_over_draws(law, fit.draws(), independent=fit.has_independent_draws)
    below = fit.model.moments_below(fit.data)
    parts = [
        existing(Moments(*(values[[i]] for values in by_draws)), below / (i % steps + 1))
        for i in range(len(by_draws.mean))
    ]
    return Moments(*(np.concatenate(values) for values in zip(*parts, strict=True))), of_draws


def _labels(lags: Lags, steps: int) -> dict[str, np.ndarray]:
    """Return the times of the steps, if evenly spaced, and the names of the sequences, if there are several."""
    times_ahead = [times_after(end.times, steps) for end in lags.ends]
    is_known = all(len(end_times) == steps for end_times in times_ahead)
    times = {lags.time: np.array([*chain(*times_ahead)], dtype=object)} if is_known else {}
    names = [end.name for end in lags.ends]
    return times | ({"sequence": np.repeat(np.array(names, dtype=object), steps)} if len(names) > 1 else {})


def _drawn(fit: Fit, lags: Lags, steps: int, paths: int, rng: np.random.Generator) -> np.ndarray:
    """Draw paths of the rows to come, each at its own draw of the parameters, (paths, sequences * steps)."""
    draws = fit.pooled()
    indices = rng.integers(0, size_of(draws), paths)
    chosen = {name: values[indices] for name, values in draws.items()}
    return Affine.of(fit, lags, chosen).drawn(_last_rows(lags), steps, rng)
