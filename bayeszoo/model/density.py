"""Densities of a model at a point: of its observations, and of its prior."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from bayeszoo.data.inputs import Groups, places_of
from bayeszoo.data.inputs.labels import joined
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.errors import InputError
from bayeszoo.model.base import Model, Values
from bayeszoo.model.capabilities import (
    EM,
    ClosedForm,
    Conditional,
    Observable,
    Sufficient,
    rows_have_parameters,
)


def log_density(distribution: Any, values: np.ndarray) -> np.ndarray:
    """Log density or log mass of a frozen SciPy distribution, whichever it has."""
    return cast(np.ndarray, (distribution.logpmf if hasattr(distribution, "logpmf") else distribution.logpdf)(values))


def log_rows(model: Model, params: Values, data: Any) -> np.ndarray | None:
    """Log density of each row (..., rows), given those before it where they depend; None where that is not known."""
    terms = model.row_terms(params, data) if isinstance(model, EM) else None
    if terms is not None or not isinstance(model, Observable) or isinstance(model, Sufficient):
        return terms
    return log_density(model.likelihood(params, data), model.inputs.outcome(data))


def log_likelihood(model: Model, params: Values, data: Values) -> float | None:
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


def row_likelihood(model: Observable, params: Values, fitted: Values, rows: Values) -> Any:
    """Return the distribution of each row given the parameters that rows share; leading axes are draws.

    Where a row has parameters of its own it is not to be judged by these, which its data have shaped: they are
    integrated out where that is known.
    """
    law = model.row_marginal(params, rows) if isinstance(model, Conditional) else None
    return model.likelihood(at_rows(model, params, fitted, rows), rows) if law is None else law


def law_given(model: Observable, points: Values, fitted: Values, rows: Values) -> Any:
    """Return the distribution of new rows at points of the parameters that an exact fit integrates over by quadrature.

    Of a `Conditional` model inner parameters are integrated out, and groups that the fit does not have are those of the
    population; None where that is not known.
    """
    if not isinstance(model, Conditional):
        return model.likelihood(points, rows)
    inputs, seen = model.inputs, fitted
    if not isinstance(inputs, Groups):
        return None
    axis = str(inputs.row_names)
    if len(new := rows[axis][places_of(rows[axis], fitted[axis]) < 0]):
        seen = {name: np.concatenate([fitted[name], values]) for name, values in inputs.uninformed(new).items()}
    return model.predictive_given(points, seen, places_of(rows[axis], seen[axis]), rows)


def at_rows(
    model: Model, params: Values, fitted: Values, rows: Values, rng: np.random.Generator | None = None
) -> Values:
    """Return parameters for some rows: of those that each row of the fit has its own of, these rows' by their names.

    Those of groups that the fit does not have are drawn by ``rng`` given the outer parameters of each draw; without it,
    or of a model that does not say how, such rows are an `InputError`.
    """
    axis = model.inputs.row_names
    if axis is None or not rows_have_parameters(model):
        return params
    labels, places = fitted[axis], places_of(rows[axis], fitted[axis])
    if (places < 0).any():
        new = rows[axis][places < 0]
        params, labels = _with_new(model, params, new, rng), np.concatenate([labels, new])
        places = places_of(rows[axis], labels)
    return {
        name: np.take(values, places, axis=along) if (along := _along(model, name, axis)) is not None else values
        for name, values in params.items()
    }


def _along(model: Model, name: str, axis: str) -> int | None:
    """Return the place of an axis among those of a parameter, counted from the last; None where it has it not."""
    axes = model.dims.get(name, ())
    return axes.index(axis) - len(axes) if axis in axes else None


def _with_new(model: Model, params: Values, new: np.ndarray, rng: np.random.Generator | None) -> Values:
    """Add to the parameters of each group of a fit those of new groups, of which nothing was observed."""
    inputs, axis = model.inputs, str(model.inputs.row_names)
    if not (isinstance(model, Conditional) and isinstance(inputs, Groups)) or rng is None:
        known = f"the fit has no {axis} {joined(new.tolist())}, and {model.name} has parameters of each"
        raise InputError(known, hint="leave it out")
    outer = {name: params[name] for name in model.outer}
    drawn = model.posterior_given(outer, inputs.uninformed(new)).rvs((), rng)
    return {
        name: np.concatenate([values, drawn[name]], axis=along)
        if (along := _along(model, name, axis)) is not None
        else values
        for name, values in params.items()
    }


def prior(model: ClosedForm[Any], data: Values) -> Posterior:
    """Return the prior of a conjugate model: the posterior of none of the rows of ``data``."""
    nothing, _ = model.inputs.split(data, 0)
    return model.posterior(model.statistics(nothing))
