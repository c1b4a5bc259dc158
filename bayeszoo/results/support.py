"""Whether the numbers of a loaded fit lie in the support of the model's parameters."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from bayeszoo.errors import InputError
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import Conditional

if TYPE_CHECKING:
    import xarray as xr

REFERENCE_DRAWS = "reference_draws"
"""The group of posterior draws that judge single answers where parameters are withheld."""
GROUPS = ("posterior", "unaligned", "derived", "prior", "exact", "reference", REFERENCE_DRAWS)
ROUNDING = 1e-9
"""Largest distance of a probability beyond 0 or 1."""

Ends = tuple[float, float]


def check_support(tree: xr.DataTree, model: Model) -> None:
    """Refuse a fit with numbers outside the support that its model declares, such as a negative variance."""
    ends = ends_of(model)
    for name, values in _values(tree):
        low, high = ends.get(name, (-math.inf, math.inf))
        entries = _entries(model, name, values)
        if (is_outside := (entries < low) | (entries > high)).any():
            wrong = entries[is_outside].flat[0]
            support = "between 0 and 1" if name in model.probabilities else f"between {low:g} and {high:g}"
            support = "0 or more" if (low, high) == (0.0, math.inf) else support
            problem = f"a draw of {name} in the fit is {wrong:g}, and {model.name} has it {support}"
            raise InputError(problem, "damaged_fit", hint="fit again, or ask who made the file")


def check_reference_draws(tree: xr.DataTree) -> None:
    """Refuse posterior draws that judge answers, if they are of other quantities, other shapes or not finite."""
    variables = tree["posterior"].data_vars if "posterior" in tree.children else {}
    kept = tree[REFERENCE_DRAWS].data_vars if REFERENCE_DRAWS in tree.children else {}
    for name, values in kept.items():
        variable = variables.get(name)
        is_like = variable is not None and values.dims == variable.dims and values.shape[2:] == variable.shape[2:]
        if not (is_like and values.dtype.kind in "iuf" and np.isfinite(values.to_numpy()).all()):
            problem = f"the group {REFERENCE_DRAWS!r} is not that of the fit"
            raise InputError(problem, "group_differs", hint="fit again, or ask who made the file")


def ends_of(model: Model) -> dict[str, Ends]:
    """Return the smallest and the largest value of each parameter and derived quantity with a bounded range."""
    outer = model.outer if isinstance(model, Conditional) else {}
    return {
        **{name: (scale.low, scale.high) for name, scale in outer.items()},
        **dict.fromkeys(model.nonnegative, (0.0, math.inf)),
        **dict.fromkeys(model.probabilities, (-ROUNDING, 1.0 + ROUNDING)),
    }


def _values(tree: xr.DataTree) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the draws of each variable, or its mean and quantiles, with the axes of its entries last."""
    for group in GROUPS:
        for name, values in tree[group].data_vars.items() if group in tree.children else ():
            if values.dtype.kind not in "iuf":
                continue
            if values.dims[:1] == ("statistic",):  # after the mean and the sd come the quantiles
                values = values[np.arange(len(values)) != 1]
            else:
                values = values.transpose(*(dim for dim in ("chain", "draw") if dim in values.dims), ...)
            yield str(name), values.to_numpy()


def _entries(model: Model, name: str, values: np.ndarray) -> np.ndarray:
    """Return the bounded entries: for a covariance matrix its diagonal, the variances."""
    axes = model.dims.get(name, ())
    is_covariance = name in model.nonnegative and len(axes) > 1 and axes[-1] == f"{axes[-2]}_2"
    has_axes = values.ndim > 1 and values.shape[-1] == values.shape[-2]
    return np.diagonal(values, axis1=-2, axis2=-1) if is_covariance and has_axes else values
