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
"""The group of draws of the posterior, by which answers are judged where parameters are withheld."""
GROUPS = ("posterior", "unaligned", "derived", "prior", "exact", "reference", REFERENCE_DRAWS)
ROUNDING = 1e-9
"""By how much a probability may lie beyond 0 or 1."""

Ends = tuple[float, float]


def check_support(tree: xr.DataTree, model: Model) -> None:
    """Refuse a fit with numbers outside the support that its model declares, as a negative variance."""
    ends = ends_of(model)
    for name, values in _values(tree):
        low, high = ends.get(name, (-math.inf, math.inf))
        inside = _entries(model, name, values)
        if ((inside < low) | (inside > high)).any():
            wrong = inside[(inside < low) | (inside > high)].flat[0]
            words = "between 0 and 1" if name in model.probabilities else f"between {low:g} and {high:g}"
            words = "0 or more" if (low, high) == (0.0, math.inf) else words
            problem = f"a draw of {name} in the fit is {wrong:g}, and {model.name} has it {words}"
            raise InputError(problem, "damaged_fit", hint="fit again, or ask who made the file")


def check_reference_draws(tree: xr.DataTree) -> None:
    """Refuse draws of the posterior, by which answers are judged, of other quantities or that are not all numbers."""
    own = tree["posterior"].data_vars if "posterior" in tree.children else {}
    kept = tree[REFERENCE_DRAWS].data_vars if REFERENCE_DRAWS in tree.children else {}
    for name, values in kept.items():
        is_like = name in own and values.dims == own[name].dims and values.shape[2:] == own[name].shape[2:]
        if not (is_like and values.dtype.kind in "iuf" and np.isfinite(values.to_numpy()).all()):
            problem = f"the group {REFERENCE_DRAWS!r} is not that of the fit"
            raise InputError(problem, "group_differs", hint="fit again, or ask who made the file")


def ends_of(model: Model) -> dict[str, Ends]:
    """Return the least and the largest value of each parameter and derived quantity that may not be any number."""
    outer = model.outer if isinstance(model, Conditional) else {}
    return {
        **{name: (scale.low, scale.high) for name, scale in outer.items()},
        **dict.fromkeys(model.nonnegative, (0.0, math.inf)),
        **dict.fromkeys(model.probabilities, (-ROUNDING, 1.0 + ROUNDING)),
    }


def _values(tree: xr.DataTree) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the draws of each variable, or its mean and quantiles, the axes of its entries last."""
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
    """Return the entries that have ends: of a covariance matrix its diagonal, which holds the variances."""
    axes = model.dims.get(name, ())
    is_covariance = name in model.nonnegative and len(axes) > 1 and axes[-1] == f"{axes[-2]}_2"
    has_axes = values.ndim > 1 and values.shape[-1] == values.shape[-2]
    return np.diagonal(values, axis1=-2, axis2=-1) if is_covariance and has_axes else values
