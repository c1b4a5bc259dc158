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
from bayeszoo.model.sequential import Sequential


def log_density(distribution: Any, values: np.ndarray) -> np.ndarray:
    """Log density or log mass of a frozen SciPy distribution, whichever it has."""
    return cast(np.ndarray, (distribution.logpmf if hasattr(distribution, "logpmf") else distribution.logpdf)(values))


def log_rows(model: Model, params: Params, data: Any) -> np.ndarray | None:
    """Log density of each row (..., rows), given those before it where they depend; None where that is not known."""
    terms = model.log_rows(params, data) if isinstance(model, EM | Sequential) else None
    if terms is not None or not isinstance(model, Observable) or isinstance(model, Sufficient):
        return terms
    return log_density(model.likelihood(params, data), model.inputs.outcome(data))


def log_likelihood(model: Model, params: Params, data: Arrays) -> float | None:
    """Log likelihood of the *ordered* observations at one point, or None when the model is not `Observable`."""
    if not isinstance(model, Observable):
        return None
    if isinstance(model, Conditional):  # whose rows have parameters of their own, and are not taken apart
        terms = log_density(model.likelihood(params, data), model.inputs.outcome(data))
        return math.fsum(np.ravel(terms)) - model.log_coefficient(data)
    rows, weights = model.inputs.observations(data)
    seen = weights > 0  # 0 * -inf would be NaN
    terms = log_density(model.likelihood(params, rows), model.inputs.outcome(rows))
    return math.fsum(np.ravel(terms)[seen] * weights[seen])


def prior(model: ClosedForm[Any], data: Arrays) -> Posterior:
    """Return the prior of a conjugate model: the posterior of none of the rows of ``data``."""
    nothing, _ = model.inputs.split(data, 0)
    return model.posterior(model.statistics(nothing))
