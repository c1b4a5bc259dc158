"""Log likelihood at a point, and predictive scores: leave-one-out and K-fold, integrated or plugged in."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import scipy

from bayeszoo.errors import NumericalError
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.gate import k_hat_limit
from bayeszoo.foundation.threads import one_thread
from bayeszoo.model.accumulated import Accumulated
from bayeszoo.model.base import Model, Values
from bayeszoo.model.capabilities import LogConcave, Observable, PointEstimates, Predictive, Sufficient
from bayeszoo.model.density import log_density, row_likelihood
from bayeszoo.model.integration import Integrated, integrate
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import xarray as xr

MAX_DISTINCT = 2000
"""Leave-one-out visits every distinct observation; above this many it is withheld rather than slow."""
MOST_CELLS = 2_000_000
"""Draws times rows that are computed at a time."""
MAX_SINGLE = 5_000_000
"""K-fold deals out single observations; above this many it is withheld rather than slow."""

PSIS, QUADRATURE = "leave-one-out, PSIS", "leave-one-out, quadrature"
"""What predictions of rows that are left out rest on."""
_OUTSKIRTS, _MOST_BEYOND = 1e-17, 1e-9
"""Mass of points of a quadrature given all rows that are the last before the grid ends, and how much of the mass given
all rows but one these may have."""


class Score(NamedTuple):
    """Log predictive densities of observations that were left out, in nats: the weighted mean of one, and its errors.

    ``se`` is its standard error over observations, ``mcse`` its Monte Carlo error, 0 for a closed form. ``terms`` and
    ``weights``, shape (M,), are the log predictive density of each distinct observation and how often it occurs, as
    ``inputs.observations`` has them; of K-fold each distinct observation in each fold. ``k_hat`` is the largest Pareto
    shape of the importance weights; NaN for a closed form.
    """

    mean: float
    se: float
    mcse: float
    terms: np.ndarray
    weights: np.ndarray
    k_hat: float = math.nan

    @property
    def total(self) -> float:
        """How many observations there are."""
        return float(self.weights.sum())


class NoScore(ValueError):
    """Why there is no predictive score, with the Pareto shape that is too large where that is the reason."""

    def __init__(self, message: str, k_hat: float = math.nan) -> None:
        self.k_hat = k_hat
        super().__init__(message)


def of_fit(tree: xr.DataTree) -> Score:
    """Return the leave-one-out score of a fit: integrated in closed form or over draws, or of the point estimate.

    Raises `NoScore` with the reason where there is none.
    """
    fit = Fit(tree)
    if fit.method == "exact" and isinstance(fit.model, LogConcave):
        return by_quadrature(fit.model, fit.observed)
    if fit.method == "exact":
        return closed_form(fit.model, fit.observed)
    if fit.kind == "point estimate":
        return plugged_in(fit.model, fit.observed, fit.method)
    return psis(fit.model, fit.observed, fit.draws())


def plugged_in(model: Model, data: Values | Accumulated, estimate: str) -> Score:
    """Leave-one-out score of the point estimate, ``"map"`` or ``"mle"``, refitted without the observation."""
    if not (isinstance(model, PointEstimates) and isinstance(model, Observable) and estimate in ("map", "mle")):
        raise NoScore("the estimate is not refitted without each observation")
    refit = model.map if estimate == "map" else model.mle
    return _leave_one_out(model, data, lambda rest, row: model.likelihood(refit(rest), row))


def closed_form(model: Model, data: Values | Accumulated) -> Score:
    """Leave-one-out score with the parameters integrated out in closed form."""
    if not isinstance(model, Predictive):
        raise NoScore("no closed form")
    return _leave_one_out(model, data, lambda rest, row: model.predictive(rest, row))


def by_quadrature(model: LogConcave, data: Values | Accumulated) -> Score:
    """Leave-one-out score with few parameters integrated out by quadrature, ``mcse`` what halving its grid changes."""
    if not isinstance(model, Observable):
        raise NoScore("the model does not say how one observation is distributed")
    rows, weights = _observations(model, data)
    known = integrate(model, _kept(data))
    terms, of_half = np.zeros(len(weights)), np.zeros(len(weights))
    for at in range(0, len(weights), step := max(1, MOST_CELLS // len(known.mass))):
        some = np.arange(at, min(at + step, len(weights)))
        few = model.inputs.reordered(rows, some)
        log_p = log_density(model.likelihood(known.points, few), model.inputs.outcome(few))
        terms[some], of_half[some] = (
            scipy.special.logsumexp(masses_without(mass, log_p) + log_p, axis=0) for mass in (known.mass, known.halved)
        )
    for i in np.flatnonzero(np.isnan(terms) & (weights > 0)).tolist():
        rest = given_the_others(model, rows, weights, i)
        row = model.inputs.reordered(rows, np.array([i]))
        each = log_density(model.likelihood(rest.points, row), model.inputs.outcome(row))[:, 0]
        terms[i], of_half[i] = (scipy.special.logsumexp(each, b=mass) for mass in (rest.mass, rest.halved))
    return _weighted(terms, weights, mcse=float(np.mean(np.abs(terms - of_half)[weights > 0])))


def given_the_others(model: LogConcave, rows: Values, weights: np.ndarray, i: int) -> Integrated:
    """Integrate over the parameters given observations that occur ``weights`` (M,) times, but for one of the i-th."""
    kept = np.repeat(np.arange(len(weights)), weights - (np.arange(len(weights)) == i))
    return integrate(model, model.inputs.reordered(rows, kept))


def masses_without(mass: np.ndarray, log_p: np.ndarray) -> np.ndarray:
    """Return the log masses of points (P,) of a quadrature given all rows but each one, shape (P, rows).

    ``log_p``, of that shape, are the log densities of the rows. Points far out are left out of the grid: where the
    masses given the other rows have not fallen off before it ends, they are NaN, and `given_the_others` has a grid of
    their own. As the density is log-concave, what lies beyond the last points is about what they have, or less.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log_masses = np.log(mass)[:, None] - log_p
        log_masses = log_masses - scipy.special.logsumexp(log_masses, axis=0)
        beyond = np.sum(np.exp(log_masses[mass < _OUTSKIRTS]), axis=0)
    return np.where(beyond <= _MOST_BEYOND, log_masses, np.nan)


def _leave_one_out(
    model: Sufficient[Any], data: Values | Accumulated, predictive: Callable[[Any, Values], Any]
) -> Score:
    rows, weights = _observations(model, data)
    terms, nothing = np.zeros(len(weights)), model.inputs.split(rows, 0)[0]
    if np.all(weights == 1):
        rests = all_but_one(model, rows, [np.array([i]) for i in range(len(weights))], model.statistics(nothing))
    else:
        whole = model.statistics(cast(Values, data))
        rests = ((int(i), whole - _statistics(model, rows, np.array([i]))) for i in np.flatnonzero(weights))
    with one_thread():
        for i, rest in rests:
            row = model.inputs.reordered(rows, np.array([i]))
            try:
                distribution = predictive(rest, row)
            except NumericalError as error:  # there is no estimate without this observation
                raise NoScore(str(error)) from error
            terms[i] = log_density(distribution, model.inputs.outcome(row)).item()
    return _weighted(terms, weights)


def all_but_one(model: Sufficient[Any], data: Values, groups: list[np.ndarray], rest: Any) -> Iterator[tuple[int, Any]]:
    """Yield a row of each group of equal rows, and the statistics of ``rest`` and of all other rows.

    They are added up, from halves of halves: what is left when an outlier is subtracted has lost its digits.
    """
    if len(groups) == 1:
        yield groups[0][0], rest + _statistics(model, data, groups[0][1:])
        return
    middle = len(groups) // 2
    for part, others in ((groups[:middle], groups[middle:]), (groups[middle:], groups[:middle])):
        yield from all_but_one(model, data, part, rest + _statistics(model, data, np.concatenate(others)))


def _statistics(model: Sufficient[Any], data: Values, rows: np.ndarray) -> Any:
    return model.statistics(model.inputs.reordered(data, rows))


def k_fold(
    model: Model, data: Values, folds: int = 10, seed: int = 0, predictive: Callable[[Any, Values], Any] | None = None
) -> Score:
    """Log predictive densities of the observations of each fold given those of the others, in closed form.

    A row of a table of counts is so many single observations, which may come into different folds; each is predicted
    by itself. The folds depend on the seed and on the number of observations, not on the model.
    ``predictive(stats, rows)`` is the distribution of rows given the statistics of others; by default the model's
    (Hastie, Tibshirani and Friedman 2009, section 7.10; Vehtari, Gelman and Gabry 2017, section 2.3). Raises `NoScore`
    when there is no closed form, or the observations are fewer than the folds or more than `MAX_SINGLE`.
    """
    if predictive is None and isinstance(model, Predictive):
        predictive = model.predictive
    if predictive is None or not isinstance(model, Sufficient):
        raise NoScore("no closed form")
    rows, weights = model.inputs.observations(_kept(data))
    weights = weights.astype(np.int64)
    held = dealt(weights, folds, seed)
    terms = np.zeros(held.shape)
    for k in range(folds):
        seen = np.flatnonzero(held[:, k])
        new = model.inputs.reordered(rows, seen)
        rest = model.inputs.reordered(rows, np.repeat(np.arange(len(weights)), weights - held[:, k]))
        try:
            # refitted: what is left by subtraction has lost digits
            distribution = predictive(model.statistics(rest), new)
        except NumericalError as error:
            raise NoScore(str(error)) from error
        terms[seen, k] = log_density(distribution, model.inputs.outcome(new))
    return _weighted(terms.ravel(), held.ravel())


def dealt(weights: np.ndarray, folds: int, seed: int) -> np.ndarray:
    """Deal observations that occur ``weights``, shape (M,), times out to folds whose sizes differ by at most one.

    Returns how many of each every fold holds, shape (M, folds).
    """
    total = int(weights.sum())
    if total < folds:
        raise NoScore(f"{total} observation{'s' * (total != 1)}, fewer than {folds} folds")
    if total > MAX_SINGLE:
        raise NoScore(f"more than {MAX_SINGLE} observations")
    fold = np.random.default_rng(seed).permutation(total) % folds
    cell = np.repeat(np.arange(len(weights)), weights) * folds + fold
    return np.bincount(cell, minlength=len(weights) * folds).reshape(len(weights), folds)


def _kept(data: Any) -> Values:
    if isinstance(data, Accumulated):
        raise NoScore(f"this needs the {data.rows} rows, and only their statistics were kept")
    return cast(Values, data)


def _observations(model: Model, data: Values | Accumulated) -> tuple[Values, np.ndarray]:
    rows, weights = model.inputs.observations(_kept(data))
    if len(weights) > MAX_DISTINCT:
        raise NoScore(f"more than {MAX_DISTINCT} distinct observations")
    return rows, weights


def _weighted(terms: np.ndarray, weights: np.ndarray, mcse: float = 0.0, k_hat: float = math.nan) -> Score:
    seen, total = weights > 0, float(weights.sum())
    mean = float(np.sum(terms[seen] * weights[seen]) / total)
    se = math.nan
    if math.isfinite(mean) and total >= 2:
        se = math.sqrt(float(np.sum(weights[seen] * np.square(terms[seen] - mean))) / total / total)
    return Score(mean, se, mcse, terms, weights, k_hat)


def difference(first: Score, second: Score) -> Score:
    """Score of the first less that of the second, paired over observations, which must be the same.

    Its ``mcse`` takes the two Monte Carlo errors to be independent.
    """
    return _weighted(first.terms - second.terms, first.weights, math.hypot(first.mcse, second.mcse))


def psis(model: Model, data: Values | Accumulated, draws: Values) -> Score:
    """Leave-one-out score integrated over draws, by Pareto-smoothed importance sampling (Vehtari et al. 2017).

    The draws of each parameter have shape (chain, draw, ...). Raises `NoScore` where an importance weight's Pareto
    shape exceeds `k_hat_limit`, the model is not `Observable`, or the distinct observations are too many.
    """
    if not isinstance(model, Observable):
        raise NoScore("the model does not say how one observation is distributed")
    rows, weights = _observations(model, data)
    efficiency, shape = diagnostics.relative_efficiency(draws.values()), next(iter(draws.values())).shape[:2]
    terms, k_hat, influence = np.zeros(len(weights)), np.full(len(weights), -np.inf), np.zeros(shape)
    step = max(1, MOST_CELLS // math.prod(shape))
    for some in np.split(seen := np.flatnonzero(weights), range(step, len(seen), step)):
        few = model.inputs.reordered(rows, some)
        log_p = log_density(row_likelihood(model, draws, rows, few), model.inputs.outcome(few))
        flat = log_p.reshape(-1, len(some))
        log_weights, k_hat[some] = importance(flat, efficiency)
        with np.errstate(over="ignore", invalid="ignore"):  # of weights that are refused
            terms[some] = np.logaddexp.reduce(log_weights + flat, axis=0)
            influence = influence - np.sum(weights[some] * np.exp(terms[some] - log_p), axis=-1)
    largest, limit = float(np.max(k_hat)), k_hat_limit(math.prod(shape))
    if not largest <= limit:  # NaN is not either
        raise NoScore(f"k-hat {largest:.3g} (must be <= {limit:.3g})", largest)
    # leaving one out is -log mean(1 / p): to first order each draw moves the sum of all terms by its influence
    mcse = diagnostics.mcse(influence)
    return _weighted(terms, weights, float(mcse / weights.sum()), largest)


def importance(log_p: np.ndarray, efficiency: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Return the log weights that take each observation out of the draws, and their k-hat (Vehtari et al. 2017).

    ``log_p``, shape (draws, rows), is the log density of each observation at each draw, and ``efficiency`` the
    effective sample size of the draws over their number. The weights have the same shape and add up to 1 over the
    draws; k-hat, shape (rows,), is inf where an observation cannot be under some draw, which has all the weight, and
    -inf where all weights are equal.
    """
    log_weights = np.full(log_p.shape, -math.log(len(log_p)))
    finite = np.isfinite(log_p).all(axis=0)
    k_hat = np.where(finite, -np.inf, np.inf)
    varies = finite & (np.ptp(np.where(finite, log_p, 0.0), axis=0) >= 1e-9)  # else there is nothing to smooth
    if varies.any():
        smoothed, k_hat[varies] = diagnostics.smoothed_weights(log_p[:, varies].T, efficiency)
        log_weights[:, varies] = smoothed.T
    return log_weights, k_hat
