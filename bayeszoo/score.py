"""Log likelihood at a point, and leave-one-out predictive scores: integrated over the posterior, or plugged in."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

import numpy as np

from bayeszoo.errors import NumericalError
from bayeszoo.gate import k_hat_limit
from bayeszoo.model import Conjugate, Model, Observable, PointEstimates, Values

MAX_DISTINCT = 2000
"""Leave-one-out visits every distinct observation; above this many it is withheld rather than slow."""


class Score(NamedTuple):
    """Mean leave-one-out log predictive density of one observation, in nats.

    ``se`` is its standard error over observations, ``mcse`` its Monte Carlo standard error (0 for a closed form).
    """

    mean: float
    se: float
    mcse: float = 0.0


def log_density(distribution: Any, values: np.ndarray) -> np.ndarray:
    """Log density or log mass of a frozen SciPy distribution, whichever it has."""
    return cast(np.ndarray, (distribution.logpmf if hasattr(distribution, "logpmf") else distribution.logpdf)(values))


def log_likelihood(model: Model, params: Values, data: Values) -> float | None:
    """Log likelihood of the *ordered* observations at one point, or None when the model is not `Observable`."""
    if not isinstance(model, Observable):
        return None
    rows, weights = model.inputs.observations(data)
    seen = weights > 0  # 0 * -inf would be NaN
    terms = log_density(model.likelihood(params, rows), model.inputs.outcome(rows))
    return math.fsum(np.ravel(terms)[seen] * weights[seen])


def prior(model: Conjugate, data: Values) -> Any:
    """Return the prior of a conjugate model: the posterior of none of the rows of ``data``."""
    nothing, _ = cast(Model, model).inputs.split(data, 0)
    return model.posterior(model.statistics(nothing))


def integrated(model: Model, data: Values) -> Score | None:
    """Leave-one-out score with the parameters integrated out in closed form."""
    if not isinstance(model, Conjugate):
        return None
    return _leave_one_out(model, data, lambda rest, row: model.predictive(rest, row))


def plugged_in(model: Model, data: Values, estimate: str) -> Score | None:
    """Leave-one-out score of the point estimate, ``"map"`` or ``"mle"``, refitted without the observation."""
    if not (isinstance(model, PointEstimates) and isinstance(model, Conjugate) and isinstance(model, Observable)):
        return None
    refit = getattr(model, estimate)
    return _leave_one_out(model, data, lambda rest, row: model.likelihood(refit(rest), row))


def _leave_one_out(model: Any, data: Values, predictive: Callable[[Any, Values], Any]) -> Score | None:
    rows, weights = model.inputs.observations(data)
    if len(weights) > MAX_DISTINCT:
        return None
    everything = model.statistics(data)
    terms = []
    for row, weight in zip(_single_rows(rows, len(weights)), weights, strict=True):
        if weight == 0:
            terms.append(0.0)
            continue
        rest = everything - model.statistics(row)
        try:
            distribution = predictive(rest, row)
        except NumericalError:  # there is no estimate without this observation
            return None
        terms.append(log_density(distribution, model.inputs.outcome(row)).item())
    return _weighted(np.array(terms), weights)


def _single_rows(rows: Values, count: int) -> Iterator[dict[str, np.ndarray]]:
    for i in range(count):
        yield {name: values[i : i + 1] for name, values in rows.items()}


def _weighted(terms: np.ndarray, weights: np.ndarray) -> Score:
    seen, total = weights > 0, float(weights.sum())
    terms, weights = terms[seen], weights[seen]
    mean = float(np.sum(terms * weights) / total)
    if not math.isfinite(mean) or total < 2:
        return Score(mean, math.nan)
    return Score(mean, math.sqrt(float(np.sum(weights * np.square(terms - mean))) / total / total))


def from_draws(model: Model, data: Values, posterior: Any) -> Score | None:
    """Leave-one-out score integrated over draws, by Pareto-smoothed importance sampling (Vehtari et al. 2017).

    Withheld (None) when an importance weight's Pareto shape exceeds `k_hat_limit`.
    """
    from arviz_stats.base import array_stats

    rows, weights = model.inputs.observations(data)
    if not isinstance(model, Observable) or len(weights) > MAX_DISTINCT:
        return None
    draws = {str(name): variable.transpose("chain", "draw", ...).to_numpy() for name, variable in posterior.items()}
    terms, influence = np.zeros(len(weights)), np.zeros(())
    for i, row in enumerate(_single_rows(rows, len(weights))):
        log_p = log_density(model.likelihood(draws, row), model.inputs.outcome(row))[..., 0]  # (chain, draw)
        if np.ptp(log_p) < 1e-9:  # the parameters say nothing about this row: no weights to smooth
            terms[i] = log_p.mean()
        else:
            log_weights, k_hat = array_stats.psislw(log_p.ravel())
            if weights[i] > 0 and not k_hat <= k_hat_limit(log_p.size):
                return None
            terms[i] = np.logaddexp.reduce(log_weights + log_p.ravel())
        influence = influence - weights[i] * np.exp(terms[i] - log_p)
    # leaving one out is -log mean(1 / p): to first order each draw moves the sum of all terms by its influence
    mcse = array_stats.mcse(influence, method="mean", chain_axis=0, draw_axis=1)
    return _weighted(terms, weights)._replace(mcse=float(mcse / weights.sum()))
