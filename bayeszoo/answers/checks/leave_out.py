"""Log likelihood at a point, and predictive scores: leave-one-out and K-fold, integrated or plugged in."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

from bayeszoo.answers.averages import Average, LeftOut, all_others, averaging, by_points, given_the_others, log_means
from bayeszoo.data.read import Data
from bayeszoo.errors import NoRowLaw, NumericalError
from bayeszoo.fit import fit as run
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.blocks import AT_ONCE, blocks
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.foundation.process.threads import one_thread
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import ClosedForm, Observable, PointEstimates, Predictive, Sufficient
from bayeszoo.model.capabilities.sequential import Sequential
from bayeszoo.model.density import log_density
from bayeszoo.model.draws import shape_of
from bayeszoo.model.outer.integration import posterior_points
from bayeszoo.model.parts.accumulated import Accumulated
from bayeszoo.model.parts.others import all_but_one, statistics_of
from bayeszoo.results.stored import Fit

MOST_REFITS = 50
"""Largest number of refits without a row: each takes as long as the fit itself."""
MAX_DISTINCT = 2000
"""Leave-one-out visits every distinct observation; above this many it is withheld rather than slow."""
MAX_SINGLE = 5_000_000
"""K-fold deals out single observations; above this many it is withheld rather than slow."""


class Score(NamedTuple):
    """The mean log predictive density of an observation given others, in nats, and its errors.

    ``se`` is its standard error over observations, ``mcse`` its Monte Carlo error, 0 for a closed form. ``terms`` and
    ``weights``, shape (M,), are the log predictive density of each distinct observation, in the order of
    ``inputs.observations``, and how often it occurs; for K-fold those of each fold. ``k_hat`` is the largest Pareto
    shape of the importance weights; NaN for a closed form. ``refitted`` is the number of observations that were left
    out by refitting.
    """

    mean: float
    se: float
    mcse: float
    terms: np.ndarray
    weights: np.ndarray
    k_hat: float = math.nan
    refitted: int = 0

    @property
    def total(self) -> float:
        """The number of observations."""
        return float(self.weights.sum())


class NoScore(ValueError):
    """There is no predictive score, for the reason ``code``; ``k_hat`` is the Pareto shape if it is too large."""

    def __init__(self, message: str, code: str = "no_score", k_hat: float = math.nan) -> None:
        self.code, self.k_hat = code, k_hat
        super().__init__(message)


def of_fit(fit: Fit, *, refit: bool = False) -> Score:
    """Return the leave-one-out score of a fit: integrated in closed form, by quadrature or over draws, or plugged in.

    With ``refit`` a sampled fit is refitted without each row that importance weights cannot leave out. Raises
    `NoScore` with the reason if there is no score.
    """
    if fit.method == "exact" and isinstance(fit.model, Predictive):
        return closed_form(fit.model, fit.observed)
    if fit.kind == "point estimate":
        return plugged_in(fit.model, fit.observed, fit.method)
    _rows_of(fit.observed)
    average, params = averaging(fit)
    if not (refit and fit.kind == "sampled"):
        return averaged(fit.model, fit.data, average, params)
    rows, weights = _observations(fit.model, fit.data)
    parts = _left_out(fit.model, rows, weights, average, params)
    return _over_draws(weights, parts, average, partial(_log_predictive, fit, rows, weights))


def plugged_in(model: Model, data: Arrays | Accumulated, estimate: str) -> Score:
    """Leave-one-out score of the point estimate, "map", "mle" or "mean", refitted without the observation."""
    if estimate == "mean" and isinstance(model, ClosedForm) and isinstance(model, Observable):
        return _leave_one_out(model, data, lambda stats, row: model.likelihood(_means(model, stats), row))
    if not (isinstance(model, PointEstimates) and isinstance(model, Observable) and estimate in ("map", "mle")):
        raise NoScore("the estimate is not refitted without each observation")
    refit = model.map if estimate == "map" else model.mle
    return _leave_one_out(model, data, lambda stats, row: model.likelihood(refit(stats), row))


def _means(model: ClosedForm[Any], stats: object) -> dict[str, np.ndarray]:
    """Return the posterior mean of each parameter."""
    return {name: np.asarray(marginal.mean()) for name, marginal in model.posterior(stats).items()}


def closed_form(model: Model, data: Arrays | Accumulated) -> Score:
    """Leave-one-out score with the parameters integrated out in closed form."""
    if not isinstance(model, Predictive):
        raise NoScore("no closed form", "no_closed_form")
    return _leave_one_out(model, data, lambda stats, row: model.predictive(stats, row))


def by_quadrature(model: Model, data: Arrays | Accumulated) -> Score:
    """Leave-one-out score of a model whose few outer parameters are integrated over by quadrature."""
    return averaged(model, data, *by_points(*posterior_points(model, _rows_of(data))))


def psis(model: Model, data: Arrays | Accumulated, draws: Params) -> Score:
    """Leave-one-out score integrated over draws (chain, draw, ...), by `averaged`."""
    return averaged(model, data, Average("sampled", draws=draws), draws)


def averaged(model: Model, data: Arrays | Accumulated, average: Average, params: Params) -> Score:
    """Leave-one-out score integrated over draws, by Pareto-smoothed importance sampling, or by a quadrature.

    Parameters have shape (chain, draw, ...). Raises `NoScore` if a Pareto shape of importance weights exceeds
    `k_hat_limit`, the model has no distribution of a row given the others, or there are too many distinct observations.
    """
    rows, weights = _observations(model, data)
    parts = _left_out(model, rows, weights, average, params)
    return _over_draws(weights, parts, average) if average.mass is None else _over_points(model, rows, weights, parts)


Parts = Iterator[tuple[np.ndarray, np.ndarray, LeftOut]]
"""Blocks of rows, their log densities given all others (chain, draw, rows), and how means without each are taken."""


def _left_out(model: Model, rows: Arrays, weights: np.ndarray, average: Average, params: Params) -> Parts:
    all_rows, first = _repeated(model, rows, weights)
    occurring = np.flatnonzero(weights)
    for block in (occurring[part] for part in blocks(len(occurring), math.prod(shape_of(params)), AT_ONCE)):
        try:
            law = model.held_out(params, all_rows, first[block])
        except NoRowLaw as error:
            raise NoScore(error.message) from None
        log_p = log_density(law, model.inputs.outcome(model.inputs.reordered(rows, block)))
        yield block, log_p, average.without(log_p)


def _repeated(model: Model, rows: Arrays, weights: np.ndarray) -> tuple[Arrays, np.ndarray]:
    """Return the observations, equal ones repeated if a row depends on the others, and the first index of each."""
    if isinstance(model, Observable) or np.all(weights <= 1):
        return rows, np.arange(len(weights))
    if weights.sum() > MAX_SINGLE:
        raise NoScore(f"more than {MAX_SINGLE} observations", "too_large")
    counts = weights.astype(np.int64)
    return model.inputs.reordered(rows, np.repeat(np.arange(len(counts)), counts)), np.cumsum(counts) - counts


def _over_draws(weights: np.ndarray, parts: Parts, average: Average, refit: Refit | None = None) -> Score:
    terms, k_hat, influence = np.zeros(len(weights)), np.full(len(weights), -np.inf), np.zeros((1, 1))
    for block, log_p, left_out in parts:
        terms[block], k_hat[block] = left_out.log_mean(log_p), left_out.k_hat
        counted = weights[block] * left_out.is_known  # other rows are refused, or refitted
        with np.errstate(over="ignore", invalid="ignore"):
            relative = np.where(counted > 0, 1 - np.exp(terms[block] - log_p), 0.0)
        influence = influence + np.sum(counted * relative, axis=-1)
    limit = average.k_hat_limit(influence.size)
    failed = np.flatnonzero(~(k_hat <= limit) & (weights > 0))  # NaN fails too
    if len(failed) and refit is None:
        largest = float(np.max(k_hat[failed]))
        raise NoScore(f"k-hat {largest:.3g} of {len(failed)} rows (must be <= {limit:.3g})", "pareto_shape", largest)
    errors = _refit_rows(terms, weights, failed, refit)
    largest = float(np.max(np.delete(k_hat, failed), initial=-np.inf))
    # leaving one out is -log mean(1 / p): to first order each draw moves the sum of all terms by its influence
    error = average.inflation(np.array(largest)) * diagnostics.mcse(average.shares() * influence)
    scored = _weighted(terms, weights, float(np.hypot(error, errors) / weights.sum()), largest)
    return scored._replace(refitted=len(failed))


Refit = Callable[[int], tuple[float, float]]
"""The log density of an observation given all others by a fit of these, and its Monte Carlo error."""


def _refit_rows(terms: np.ndarray, weights: np.ndarray, failed: np.ndarray, refit: Refit | None) -> float:
    """Fill in the terms of rows by fits without them, and return the Monte Carlo error of their sum."""
    if len(failed) > MOST_REFITS:
        raise NoScore(f"{len(failed)} rows need a refit without them, more than {MOST_REFITS}", "too_large")
    total = 0.0
    for i in failed.tolist():
        assert refit is not None  # without it failed rows were refused
        try:
            terms[i], error = refit(i)
        except NumericalError as reason:
            raise NoScore(str(reason), reason.code) from reason
        total += float(weights[i] * error) ** 2
    return math.sqrt(total)


def _over_points(model: Model, rows: Arrays, weights: np.ndarray, parts: Parts) -> Score:
    """Score by a quadrature; its error is what halving the grid changes."""
    terms, errors = np.zeros(len(weights)), np.zeros(len(weights))
    for block, log_p, left_out in parts:
        terms[block] = left_out.log_mean(log_p)
        errors[block] = np.abs(terms[block] - left_out.log_mean_of_half(log_p))
    for i in np.flatnonzero(np.isnan(terms) & (weights > 0)).tolist():
        (average, points), others = given_the_others(model, rows, weights, i)
        row = model.inputs.reordered(rows, np.array([i]))
        is_series = isinstance(model, Sequential)
        law = model.held_out(points, rows, np.array([i])) if is_series else model.law(points, others, row)
        log_p = log_density(law, model.inputs.outcome(row))
        value, error = average.log_means(log_p, np.ones(1, dtype=bool))
        terms[i], errors[i] = value[0], error[0]
    return _weighted(terms, weights, mcse=float(np.mean(errors[weights > 0])))


def _leave_one_out(
    model: Sufficient[Any], data: Arrays | Accumulated, predictive: Callable[[object, Arrays], object]
) -> Score:
    rows, weights = _observations(model, data)
    terms, nothing = np.zeros(len(weights)), model.inputs.split(rows, 0)[0]
    if np.all(weights == 1):
        singles = [np.array([i]) for i in range(len(weights))]
        stats_without = all_but_one(model, rows, singles, model.statistics(nothing))
    else:
        total = model.statistics(cast(Arrays, data))
        stats_without = ((int(i), total - statistics_of(model, rows, np.array([i]))) for i in np.flatnonzero(weights))
    with one_thread():
        for i, stats in stats_without:
            row = model.inputs.reordered(rows, np.array([i]))
            try:
                distribution = predictive(stats, row)
            except NumericalError as error:  # no estimate without this observation
                raise NoScore(str(error)) from error
            terms[i] = log_density(distribution, model.inputs.outcome(row)).item()
    return _weighted(terms, weights)


def k_fold(
    model: Model,
    data: Arrays,
    folds: int,
    seed: int,
    predictive: Callable[[object, Arrays], object] | None,
) -> Score:
    """Log predictive densities of the observations of each fold given those of the others, in closed form.

    A row of a table of counts is N single observations, which may fall into different folds; each is predicted
    by itself. The folds depend on the seed and on the number of observations, not on the model.
    ``predictive(stats, rows)`` is the distribution of rows given the statistics of others; if None, the model's
    (Hastie, Tibshirani and Friedman 2009, section 7.10; Vehtari, Gelman and Gabry 2017, section 2.3). Raises `NoScore`
    when there is no closed form, or the observations are fewer than the folds or more than `MAX_SINGLE`.
    """
    if predictive is None and isinstance(model, Predictive):
        predictive = model.predictive
    if predictive is None or not isinstance(model, Sufficient):
        raise NoScore("no closed form", "no_closed_form")
    rows, weights = model.inputs.observations(_rows_of(data))
    weights = weights.astype(np.int64)
    held_out = dealt(weights, folds, seed)
    terms = np.zeros(held_out.shape)
    for k in range(folds):
        indices = np.flatnonzero(held_out[:, k])
        fold = model.inputs.reordered(rows, indices)
        training = model.inputs.reordered(rows, np.repeat(np.arange(len(weights)), weights - held_out[:, k]))
        try:
            # statistics are computed anew: subtraction would lose digits
            distribution = predictive(model.statistics(training), fold)
        except NumericalError as error:
            raise NoScore(str(error)) from error
        terms[indices, k] = log_density(distribution, model.inputs.outcome(fold))
    return _weighted(terms.ravel(), held_out.ravel())


def dealt(weights: np.ndarray, folds: int, seed: int) -> np.ndarray:
    """Deal observations, which occur ``weights`` (M,) times, out to folds whose sizes differ by at most one.

    Returns the count of each observation in each fold, shape (M, folds).
    """
    total = int(weights.sum())
    if total < folds:
        raise NoScore(f"{total} observation{'s' * (total != 1)}, fewer than {folds} folds", "too_few_rows")
    if total > MAX_SINGLE:
        raise NoScore(f"more than {MAX_SINGLE} observations", "too_large")
    fold = np.random.default_rng(seed).permutation(total) % folds
    cell = np.repeat(np.arange(len(weights)), weights) * folds + fold
    return np.bincount(cell, minlength=len(weights) * folds).reshape(len(weights), folds)


def _rows_of(data: object) -> Arrays:
    if isinstance(data, Accumulated):
        raise NoScore(f"this needs the {data.rows} rows, and {data.why_no_rows}", "needs_rows")
    return cast(Arrays, data)


def _observations(model: Model, data: Arrays | Accumulated) -> tuple[Arrays, np.ndarray]:
    rows, weights = model.inputs.observations(_rows_of(data))
    if len(weights) > MAX_DISTINCT:
        raise NoScore(f"more than {MAX_DISTINCT} distinct observations", "too_large")
    return rows, weights


def _weighted(terms: np.ndarray, weights: np.ndarray, mcse: float = 0.0, k_hat: float = math.nan) -> Score:
    occurs, total = weights > 0, float(weights.sum())
    mean = float(np.sum(terms[occurs] * weights[occurs]) / total)
    se = math.nan
    if math.isfinite(mean) and total >= 2:
        se = math.sqrt(float(np.sum(weights[occurs] * np.square(terms[occurs] - mean))) / total / total)
    return Score(mean, se, mcse, terms, weights, k_hat)


def difference(first: Score, second: Score) -> Score:
    """Return the score of the first less that of the second, paired over observations, which must be the same.

    Its ``mcse`` takes the two Monte Carlo errors to be independent.
    """
    return _weighted(first.terms - second.terms, first.weights, math.hypot(first.mcse, second.mcse))


def _log_predictive(fit: Fit, rows: Arrays, weights: np.ndarray, i: int) -> tuple[float, float]:
    """Return the log density of an observation by a fit to all others, and its Monte Carlo error.

    Observations occur ``weights`` (M,) times. Raises `NumericalError` if the fit fails its gate.
    """
    model, attrs = fit.model, fit.tree.attrs
    others, row = all_others(model, rows, weights, i), model.inputs.reordered(rows, np.array([i]))
    data = Data(others, checked_for=(model.inputs, False))
    tree = run(model, data, fit.method, seed=attrs["seed"], groups=(), **json.loads(attrs["options"]))
    if tree.attrs["status"] != "ok":
        raise NumericalError(f"the fit without row {i + 1} is not ok ({tree.attrs['status']})", "not_ok")
    refitted = Fit(tree)
    log_p = log_density(model.law(refitted.draws(), others, row), model.inputs.outcome(row))
    value, error = (float(values[0]) for values in log_means(log_p, independent=refitted.has_independent_draws))
    if np.isnan(value):
        raise NumericalError(f"few draws of the fit without row {i + 1} carry its density", "no_score")
    return value, error
