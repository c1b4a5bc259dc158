"""The part of the space of parameters where exchangeable components have one order: a K!-th of the evidence."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.model.base import Model
from bayeszoo.tools.relabel import permuted

if TYPE_CHECKING:
    import xarray as xr

    from bayeszoo.compile.density import Density


@dataclass(frozen=True, eq=False)
class OneOrder:
    """Draws whose components ascend by the number that tells them apart best, and where in space they do."""

    posterior: xr.Dataset
    key: tuple[str, tuple[int, ...]]
    """A variable, and the places of its entry along the axes other than that of the components, which comes first."""
    components: int

    @property
    def log_orders(self) -> float:
        """The log of K!, the number of parts of the space that hold as much of the posterior."""
        return math.lgamma(self.components + 1)

    def holds(self, density: Density, points: np.ndarray) -> np.ndarray:
        """Say of each point, shape (n, D), whether its components have the order."""
        name, place = self.key
        return np.array([bool(np.all(np.diff(_each(density.constrain(x)[name], place)) > 0)) for x in points])


def one_order(model: Model, posterior: xr.Dataset, axis: str) -> OneOrder:
    """Put the components of each draw in ascending order of the number that tells them apart best.

    Parameters
    ----------
    model : Model
        Whose labels along ``axis`` can be exchanged.
    posterior : xarray.Dataset
        Its draws along ``chain`` and ``draw``, aligned as those of a fit are.
    axis : str
        The axis of the components, by its name in ``dims``; ``axis_2`` is the second one of a matrix.
    """
    places = {name: _places(dims, axis) for name, dims in model.dims.items() if name in posterior}
    axes = {name: own for name, own in places.items() if own}
    candidates = {name: posterior[name].to_numpy() for name, own in axes.items() if own == (0,)}
    keys = list(_entries(candidates))
    key = max(keys, key=lambda key: _separation(_each(candidates[key[0]], key[1])))
    order = np.argsort(_each(candidates[key[0]], key[1]), axis=-1, kind="stable")
    return OneOrder(posterior.assign(permuted(posterior, axes, order)), key, order.shape[-1])


def _places(dims: tuple[str, ...], axis: str) -> tuple[int, ...]:
    return tuple(i for i, dim in enumerate(dims) if dim in (axis, f"{axis}_2"))


def _entries(candidates: Mapping[str, np.ndarray]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield each entry that every component has: a variable, and places along its last axes."""
    for name, values in candidates.items():
        for place in np.ndindex(values.shape[3:]):
            yield name, place


def _each(values: np.ndarray, place: tuple[int, ...]) -> np.ndarray:
    """Return an entry of each component, (..., K), of values (..., K, and the axes of ``place``)."""
    first = values.ndim - len(place)
    index: tuple[Any, ...] = (*[slice(None)] * first, *place)
    return np.asarray(values[index])


def _separation(values: np.ndarray) -> float:
    """Return the least distance of the means of neighbours, over the sum of their sds; values are (chain, draw, K)."""
    means, sds = values.mean(axis=(0, 1)), values.std(axis=(0, 1))
    order = np.argsort(means)
    return min(float((means[b] - means[a]) / max(sds[a] + sds[b], 1e-300)) for a, b in pairwise(order))
