"""Densities of a model at a point: of its observations, and of its prior."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from bayeszoo.distributions.posterior import Posterior
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import (
    EM,
    ClosedForm,
    Conditional,
    Observable,
    Sufficient,
)
from bayeszoo.model.capabilities.sequential import Sequential


def log_density(distribution: Any, values: np.ndarray) -> np.ndarray:
    """Log density or log mass of a frozen SciPy distribution, whichever it has."""
    return cast(np.ndarray, (distribution.logpmf if hasattr(distribution, "logpmf") else distribution.logpdf)(values))


def log_rows(model: Model, params: Params, data: Any) -> np.ndarray | None:
    """Return log densities (..., rows), given earlier rows if rows depend on each other; None where not known."""
    terms = model.log_rows(params, data) if isinstance(model, EM | Sequential) else None
    if terms is not None or not isinstance(model, Observable) or isinstance(model, Sufficient):
        return terms
    return log_density(model.likelihood(params, data), model.inputs.outcome(data))


def log_likelihood(model: Model, params: Params, data: Arrays) -> float | None:
    """Log likelihood of the *ordered* observations at one point, or None when the model is not `Observable`."""
    if not isinstance(model, Observable):
        return None
    if isinstance(model, Conditional):  # rows have their own parameters, so rows of several trials stay whole
        terms = log_density(model.likelihood(params, data), model.inputs.outcome(data))
        return math.fsum(np.ravel(terms)) - model.log_coefficient(data)
    rows, weights = model.inputs.observations(data)
    has_weight = weights > 0  # 0 * -inf would be NaN
    terms = log_density(model.likelihood(params, rows), model.inputs.outcome(rows))
    return math.fsum(np.ravel(terms)[has_weight] * weights[has_weight])


def prior(model: ClosedForm[Any], data: Arrays) -> Posterior:
    """Return the prior of a conjugate model, as its posterior given no rows; ``data`` have the labels."""
    no_rows, _ = model.inputs.split(data, 0)
    return model.posterior(model.statistics(no_rows))
