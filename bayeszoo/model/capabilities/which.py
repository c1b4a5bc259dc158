"""Which capabilities a model has, and how its exact answers are computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeGuard

from bayeszoo.model.base import Model
from bayeszoo.model.capabilities.closed import ClosedForm, Conjugate, PointEstimates, Predictive, Sufficient
from bayeszoo.model.capabilities.conditional import MOST_OUTER, Conditional, LogConcave
from bayeszoo.model.capabilities.function import OfFunction
from bayeszoo.model.capabilities.latent import (
    EM,
    Additive,
    Collapsed,
    Enumerable,
    Gibbs,
    PointMasses,
    Stochastic,
    Symmetric,
    Variational,
)
from bayeszoo.model.capabilities.observable import Classifies, Latent, Observable, row_axes
from bayeszoo.model.capabilities.sequential import Sequential


def has_step(step: str) -> Callable[[type[Model]], bool]:
    """Say whether a class has an optional step of every model, instead of its default."""
    return lambda model: any(step in vars(base) for base in model.__mro__ if base is not Model)


def _named(*kinds: type[Model]) -> dict[str, Callable[[type[Model]], bool]]:
    return {kind.__name__: partial(lambda kind, model: issubclass(model, kind), kind) for kind in kinds}


CAPABILITIES: Mapping[str, Callable[[type[Model]], bool]] = {
    **_named(Sufficient, ClosedForm, Predictive, Conjugate, PointEstimates, Observable, Classifies),
    "Derived": has_step("derived"),
    "Compiled": has_step("compiled"),
    **_named(LogConcave, EM, Variational, Stochastic, Latent, Enumerable, Sequential, Gibbs, Collapsed),
    **_named(Conditional, OfFunction, Symmetric, PointMasses, Additive),
}
"""Whether a class has each optional capability, in the order in which ``bayeszoo list`` prints them."""


def is_integrated(model: type[Model]) -> bool:
    """Say whether the exact posterior and evidence of a class come from quadrature."""
    if issubclass(model, LogConcave):
        return model.integrated
    return issubclass(model, Conditional) and len(model.quadrature or model.outer) <= MOST_OUTER


def has_vectors(model: type[Model]) -> bool:
    """Say whether a class has outer vectors, which have exact answers only if their entries are few."""
    return issubclass(model, Conditional) and bool(model().outer_shapes())


def has_few_outer(model: type[Model]) -> bool:
    """Say whether a class has a small version with few outer numbers."""
    return issubclass(model, Conditional) and model.few_outer is not Conditional.few_outer


def predicts_by_points(model: type[Model]) -> bool:
    """Say whether an exact fit predicts rows by its quadrature: rows have a law given each point."""
    return is_integrated(model) and (not issubclass(model, Conditional) or model.has_law_given_outer())


def is_log_concave(model: Model) -> TypeGuard[LogConcave]:
    """Say whether the log joint density is concave in all parameters, with none ``profiled``."""
    return isinstance(model, LogConcave) and not model.profiled


def is_exact(model: type[Model]) -> bool:
    """Say whether a class has an exact posterior and evidence: in closed form, or by quadrature.

    A class with exact answers for some data only raises `NumericalError` for the others.
    """
    return issubclass(model, ClosedForm) or is_integrated(model)


simulates = has_step("simulate")
"""Whether a class draws data from its prior."""


def capabilities(model: type[Model]) -> tuple[str, ...]:
    """Name the optional capabilities that a model class has."""
    return tuple(name for name, has in CAPABILITIES.items() if has(model))


def exchangeable_axis(model: Model) -> str | None:
    """Return the axis whose labels are exchangeable; None if there is none."""
    return model.exchangeable_axis() if isinstance(model, Symmetric) else None


def rows_have_parameters(model: Model) -> bool:
    """Say whether single rows have parameters, such as a document's proportions: rows cannot be left out then."""
    return bool(row_axes(model))
