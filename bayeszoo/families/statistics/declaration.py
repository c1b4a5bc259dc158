"""PyMC declarations of the density of rows from their sufficient statistics."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayeszoo.distributions.statistics.counts import Counts, Failures
from bayeszoo.distributions.statistics.events import Events
from bayeszoo.distributions.statistics.moments import Moments


def log_likelihood(stats: Counts | Failures | Events | Moments, *params: pt.TensorVariable) -> pt.TensorVariable:
    """Return the log density of ordered rows, given their statistics and the parameters of their law.

    The parameters are probabilities for counts, probabilities of success for failures, rates for events, and means and
    variances for moments, of the same shape as the statistics.
    """
    if isinstance(stats, Counts):
        return _of_counts(stats, *params)
    if isinstance(stats, Failures):
        return _of_failures(stats, *params)
    return _of_events(stats, *params) if isinstance(stats, Events) else _of_moments(stats, *params)


def _of_counts(stats: Counts, p: pt.TensorVariable) -> pt.TensorVariable:
    counts = pm.Data(f"{p.name}_counts", _array(stats.counts))
    # 0 * log(0) would be NaN; a float mask is data, while a boolean mask is a constant, compiled again for other rows
    seen = pm.Data(f"{p.name}_seen", _array(stats.counts > 0))
    return pm.math.sum(counts * pm.math.log(p * seen + (1 - seen)))


def _of_failures(stats: Failures, p: pt.TensorVariable) -> pt.TensorVariable:
    names = ("successes", "failures", "log_orders")
    successes, failures, orders = (pm.Data(f"{p.name}_{name}", _array(getattr(stats, name))) for name in names)
    return pm.math.sum(orders + successes * pm.math.log(p) + failures * pm.math.log1p(-p))


def _of_events(stats: Events, rate: pt.TensorVariable) -> pt.TensorVariable:
    names = ("events", "exposure", "pivot", "log_likelihood")
    events, exposure, pivot, height = (pm.Data(f"{rate.name}_{name}", _array(getattr(stats, name))) for name in names)
    return pm.math.sum(height + events * pm.math.log(rate / pivot) - exposure * (rate - pivot))


def _of_moments(stats: Moments, mean: pt.TensorVariable, variance: pt.TensorVariable) -> pt.TensorVariable:
    names = ("n", "mean", "scatter", "rest")
    n, centre, scatter, rounding = (pm.Data(f"{mean.name}_{name}", _array(getattr(stats, name))) for name in names)
    squares = scatter + n * pm.math.sqr((centre - mean) + rounding)
    return -pm.math.sum(n * pm.math.log(2 * np.pi * variance) + squares / variance) / 2


def _array(values: object) -> np.ndarray:
    return np.asarray(values, dtype=np.float64)
