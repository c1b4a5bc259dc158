"""Draws of any sampler as points of a density, and checks that they are draws of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import scipy

from bayeszoo.errors import InputError
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.gate import Check, at_most

if TYPE_CHECKING:
    import xarray as xr

    from bayeszoo.compile.density import Density

ALARMS, SURE = 1e-3, 1e-6
"""Probabilities that the largest z of correct draws exceeds the limit, and that it exceeds the limit of failure."""


def chains_of(tree: Any) -> xr.Dataset:
    """Return the numeric variables in a tree's group ``posterior``, chain and draw first; refuse a tree without any."""
    if not hasattr(tree, "children") or "posterior" not in tree.children:
        raise InputError("there is no group 'posterior'", "not_a_fit", hint="give an ArviZ tree or a file of one")
    posterior = tree["posterior"].to_dataset()
    if not {"chain", "draw"} <= {*posterior.sizes} or not posterior.data_vars:
        raise InputError("the group 'posterior' has no variable along chain and draw", "not_a_fit")
    kept = {
        name: v for name, v in posterior.data_vars.items() if {"chain", "draw"} <= {*v.dims} and v.dtype.kind in "biuf"
    }
    if not kept:
        raise InputError("the group 'posterior' has no numbers along chain and draw", "not_a_fit")
    return cast("xr.Dataset", posterior[[*kept]].transpose("chain", "draw", ...))


def unconstrained(density: Density, posterior: xr.Dataset) -> np.ndarray:
    """Return draws of a density's parameters as points (chain, draw, D)."""
    names = [variable.name for variable in density.model.free_RVs]
    if missing := [name for name in names if name not in posterior]:
        raise InputError(f"the draws have no {', '.join(missing)}", "unknown_name", hint="give the model of the draws")
    arrays = {name: posterior[name].to_numpy() for name in names}
    shapes = {name: np.shape(density.constrain(density.start)[name]) for name in names}
    for name in names:
        if arrays[name].shape[2:] != shapes[name]:
            line = f"draws of {name} have the shape {arrays[name].shape[2:]}, and the model's {name} has {shapes[name]}"
            raise InputError(line, "wrong_shape")
    chains, length = posterior.sizes["chain"], posterior.sizes["draw"]
    places = np.ndindex(chains, length)
    points = [density.unconstrain({name: values[place] for name, values in arrays.items()}) for place in places]
    return np.reshape(points, (chains, length, density.size))


def check_density(density: Density, points: np.ndarray) -> list[Check]:
    """Check that points (chain, draw, D) are draws of a density, by two means that hold for every density.

    With the gradient g of the log density, the mean of g is 0, and the mean of (x - c) g is -1 for any constant c, by
    integration by parts. Gaps are in Monte Carlo standard errors; limits are for all 2 D means together.
    """
    slopes = np.array([density.joint(x)[1] for x in points.reshape(-1, density.size)]).reshape(points.shape)
    means = {"score_z": slopes, "virial_z": 1 + (points - points.mean(axis=(0, 1))) * slopes}
    return [at_most(name, _largest_z(terms), *limits_of_z(2 * density.size)) for name, terms in means.items()]


def _largest_z(terms: np.ndarray) -> float:
    errors = diagnostics.mcse(terms)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(errors > 0, np.abs(terms.mean(axis=(0, 1))) / errors, 0.0)
    return float(np.max(z)) if np.isfinite(terms).all() else np.inf


def limits_of_z(count: int) -> tuple[float, float]:
    """Return the largest of ``count`` z that passes, and the largest that is shown with a warning."""
    passes, shown = (float(scipy.stats.norm.isf(share / (2 * count))) for share in (ALARMS, SURE))
    return passes, shown
