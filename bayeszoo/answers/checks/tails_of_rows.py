"""Moments of predictive distributions, and the tail probabilities of outcomes, averaged over draws or points."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from bayeszoo.answers.averages import Average, LeftOut
from bayeszoo.answers.checks.normal_scores import Predicted
from bayeszoo.distributions.averages.averaged import Known, mixed
from bayeszoo.distributions.beta_binomial_tails import log_tails_of_each
from bayeszoo.distributions.discrete import BetaBinomial
from bayeszoo.errors import InputError
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.tails import LIMITS


def mixture(law: Any, y: np.ndarray, average: Average, left: LeftOut | None = None, bounded: bool = False) -> Predicted:
    """Return moments and tails of distributions of shape (points, rows), mixed over draws or points of a quadrature.

    If means are ``bounded`` for all parameters their mean exists, however heavy the tails of the draws look.
    """
    means, variances = np.asarray(law.mean()), np.asarray(law.var())
    if left is None:
        log_weights = np.broadcast_to(average.log_weights(len(means))[:, None], means.shape)
        k_hat, halved = np.full(len(y), np.nan), None if average.halved is None else average.halved[:, None]
    else:
        is_known = left.is_known | (average.mass is None)  # other rows get a quadrature without them
        log_weights, k_hat = np.where(is_known, left.log_weights[0], -np.inf), left.k_hat
        halved = None if left.of_half is None else np.exp(np.where(is_known, left.of_half[0], -np.inf))
    moments = mixed(means, np.broadcast_to(variances, means.shape), np.exp(log_weights), halved, average.mass)
    mean, sd = np.where(moments.has_mean, moments.mean, np.nan), np.where(moments.has_sd, moments.sd, np.nan)
    if average.mass is None:
        mean, sd = _reliable(means, variances, moments, log_weights, bounded)
    log_tails = tails(law, y)
    below, at, above = (np.logaddexp.reduce(log_weights + log_tail, axis=0) for log_tail in log_tails)
    errors = np.full((4, len(y)), np.nan)
    if average.draws is not None and average.kind != "point estimate":
        spread = variances + np.square(means - moments.mean) - np.square(moments.sd)
        middle = np.exp(np.logaddexp(log_tails[0], log_tails[1] - math.log(2)))
        errors = _errors(y - moments.mean, moments.sd, (means - moments.mean, spread, middle), log_weights)
        errors = errors / math.sqrt(average.efficiency) * (1.0 if left is None else left.inflation)
    return Predicted(mean, sd, below, at, above, k_hat, *errors)


def _errors(
    residual: np.ndarray, sd: np.ndarray, terms: tuple[np.ndarray, np.ndarray, np.ndarray], log_weights: np.ndarray
) -> np.ndarray:
    """Return the Monte Carlo errors (4, rows) of mean, sd, standardized outcome and PIT, as if draws were independent.

    ``terms`` (draws, rows) say how far each draw moves the mean, the variance, and the probability below the outcome
    with half its jump, to first order.
    """
    relative_weight = len(log_weights) * np.exp(log_weights)
    mean, variance, below = terms
    with np.errstate(divide="ignore", invalid="ignore"):
        of_sd = variance / (2 * sd)
        of_pit = below - np.mean(relative_weight * below, axis=0)
        influences = (mean, of_sd, (mean + residual / sd * of_sd) / sd, of_pit)
        spread = [np.std(relative_weight * influence, axis=0, ddof=1) for influence in influences]
    return np.array(spread) / math.sqrt(len(relative_weight))


def _reliable(
    means: np.ndarray, variances: np.ndarray, moments: Known, log_weights: np.ndarray, bounded: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and sd, NaN where the terms that they average over draws (draws, rows) have heavy tails."""
    relative_weight, deviation = len(log_weights) * np.exp(log_weights), means - moments.mean
    terms = (relative_weight * deviation, relative_weight * (variances + np.square(deviation)))
    is_light = [diagnostics.tail_shape(values[None]) < LIMITS["mean"] for values in terms]
    return np.where(is_light[0] | bounded, moments.mean, np.nan), np.where(is_light[1], moments.sd, np.nan)


def of_law(law: Any, y: np.ndarray) -> Predicted:
    """Return moments and tails of the distributions of rows."""
    unknown = np.array(np.nan)
    predicted = Predicted(law.mean(), law.std(), *tails(law, y), unknown, unknown, unknown, unknown, unknown)
    return Predicted(*(np.broadcast_to(np.asarray(part, dtype=np.float64), y.shape) for part in predicted))


def joined(parts: Iterator[Predicted], place: Any = slice(None)) -> Predicted:
    """Join the rows of several parts, and return those at the indices ``place``."""
    return Predicted(*(np.concatenate(values)[place] for values in zip(*parts, strict=True)))


def tails(law: object, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the logs of the probabilities of values less than, equal to and more than ``y``, shape (..., rows).

    Raises `InputError` where the distribution does not have SciPy's ``logcdf`` and ``logsf``.
    """
    if isinstance(law, BetaBinomial):
        return log_tails_of_each(y, law.trials, law.a, law.b)
    with np.errstate(divide="ignore"):  # log 0
        if not (hasattr(law, "logcdf") and hasattr(law, "logsf")):
            raise InputError(f"residuals need logcdf and logsf of {type(law).__name__}", "no_distribution_function")
        if not hasattr(law, "logpmf"):
            below = law.logcdf(y)
            return below, np.full(below.shape, -np.inf), law.logsf(y)
        return law.logcdf(y - 1), law.logpmf(y), law.logsf(y)
