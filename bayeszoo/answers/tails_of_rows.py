"""Where outcomes lie in predictive distributions: their tails and moments, averaged over draws or points."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from bayeszoo.answers.averages import Average, LeftOut
from bayeszoo.answers.normal_scores import Predicted
from bayeszoo.distributions.averaged import Known, mixed
from bayeszoo.distributions.beta_binomial_tails import log_tails_of_each
from bayeszoo.distributions.discrete import BetaBinomial
from bayeszoo.errors import InputError
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.tails import LIMITS


def mixture(law: Any, y: np.ndarray, average: Average, left: LeftOut | None = None, bounded: bool = False) -> Predicted:
    """Return moments and tails of distributions of shape (points, rows), mixed over draws or points of a quadrature.

    Means that are ``bounded`` whatever the parameters have a mean, however heavy the tails of the draws look.
    """
    means, variances = np.asarray(law.mean()), np.asarray(law.var())
    if left is None:
        log_weights = np.broadcast_to(average.log_weights(len(means))[:, None], means.shape)
        k_hat, halved = np.full(len(y), np.nan), None if average.halved is None else average.halved[:, None]
    else:
        known = left.is_known | (average.mass is None)  # else the row is predicted anew
        log_weights, k_hat = np.where(known, left.log_weights[0], -np.inf), left.k_hat
        halved = None if left.of_half is None else np.exp(np.where(known, left.of_half[0], -np.inf))
    moments = mixed(means, np.broadcast_to(variances, means.shape), np.exp(log_weights), halved, average.mass)
    mean, sd = np.where(moments.has_mean, moments.mean, np.nan), np.where(moments.has_sd, moments.sd, np.nan)
    if average.mass is None:
        mean, sd = _told(means, variances, moments, log_weights, bounded)
    parts = tails(law, y)
    below, at, above = (np.logaddexp.reduce(log_weights + part, axis=0) for part in parts)
    errors = np.full((4, len(y)), np.nan)
    if average.draws is not None and average.kind != "point estimate":
        spread = variances + np.square(means - moments.mean) - np.square(moments.sd)
        middle = np.exp(np.logaddexp(parts[0], parts[1] - math.log(2)))
        errors = _errors(y - moments.mean, moments.sd, (means - moments.mean, spread, middle), log_weights)
        errors = errors / math.sqrt(average.efficiency) * (1.0 if left is None else left.inflation)
    return Predicted(mean, sd, below, at, above, k_hat, *errors)


def _errors(
    off: np.ndarray, sd: np.ndarray, terms: tuple[np.ndarray, np.ndarray, np.ndarray], log_weights: np.ndarray
) -> np.ndarray:
    """Return the errors (4, rows) that as many independent draws (draws, rows) give to what is made of their means.

    To first order each draw moves the mean by its own less the mean, the variance by its second term, and the
    probability below the outcome, in whose jump the middle stands for all, by the third.
    """
    share = len(log_weights) * np.exp(log_weights)
    mean, variance, below = terms
    with np.errstate(divide="ignore", invalid="ignore"):
        of_sd = variance / (2 * sd)
        moved = (mean, of_sd, (mean + off / sd * of_sd) / sd, below - np.mean(share * below, axis=0))
        return np.array([np.std(share * each, axis=0, ddof=1) for each in moved]) / math.sqrt(len(share))


def _told(
    means: np.ndarray, variances: np.ndarray, moments: Known, log_weights: np.ndarray, bounded: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Withhold the moments that draws (draws, rows) cannot tell: means over them of terms with heavy tails."""
    share, off = len(log_weights) * np.exp(log_weights), means - moments.mean
    terms = (share * off, share * (variances + np.square(off)))
    kept = [diagnostics.tail_shape(each[None]) < LIMITS["mean"] for each in terms]
    return np.where(kept[0] | bounded, moments.mean, np.nan), np.where(kept[1], moments.sd, np.nan)


def of_law(law: Any, y: np.ndarray) -> Predicted:
    """Return moments and tails of the distributions of rows."""
    unknown = np.array(np.nan)
    predicted = Predicted(law.mean(), law.std(), *tails(law, y), unknown, unknown, unknown, unknown, unknown)
    return Predicted(*(np.broadcast_to(np.asarray(part, dtype=np.float64), y.shape) for part in predicted))


def joined(parts: Iterator[Predicted], place: Any = slice(None)) -> Predicted:
    """Join the rows of several parts, and take those at the places."""
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
