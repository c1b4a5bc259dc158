"""The part of parameter space where exchangeable components have one order, with 1 / K! of the evidence."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.model.base import Model
from bayeszoo.tools.draws.relabel import permuted

if TYPE_CHECKING:
    import xarray as xr

    from bayeszoo.compile.density import Density


@dataclass(frozen=True, eq=False)
class OneOrder:
    """Draws whose components are sorted by the entry that separates them best, and a test of that order."""

    posterior: xr.Dataset
    key: tuple[str, tuple[int, ...]]
    """The variable, and the index of the entry along its axes after the first, which is that of the components."""
    components: int

    @property
    def log_orders(self) -> float:
        """The log of K!, the number of orders, which have equal posterior probability."""
        return math.lgamma(self.components + 1)

    def holds(self, density: Density, points: np.ndarray) -> np.ndarray:
        """Return whether the components are in order at each point (n, D), shape (n,)."""
        name, place = self.key
        return np.array([bool(np.all(np.diff(_entry(density.constrain(x)[name], place)) > 0)) for x in points])


def one_order(model: Model, posterior: xr.Dataset, axis: str) -> OneOrder:
    """Sort the components of each draw by the entry that separates them best.

    Parameters
    ----------
    model : Model
        A model whose labels along ``axis`` are exchangeable.
    posterior : xarray.Dataset
        Its draws along ``chain`` and ``draw``, aligned as in a fit.
    axis : str
        The axis of the components, by its name in ``dims``; ``axis_2`` is the second one of a matrix.
    """
    places = {name: _places(dims, axis) for name, dims in model.dims.items() if name in posterior}
    axes = {name: label_axes for name, label_axes in places.items() if label_axes}
    candidates = {name: posterior[name].to_numpy() for name, label_axes in axes.items() if label_axes == (0,)}
    keys = list(_entries(candidates))
    key = max(keys, key=lambda key: _separation(_entry(candidates[key[0]], key[1])))
    order = np.argsort(_entry(candidates[key[0]], key[1]), axis=-1, kind="stable")
    return OneOrder(posterior.assign(permuted(posterior, axes, order)), key, order.shape[-1])


def _places(dims: tuple[str, ...], axis: str) -> tuple[int, ...]:
    return tuple(i for i, dim in enumerate(dims) if dim in (axis, f"{axis}_2"))


def _entries(candidates: Mapping[str, np.ndarray]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield each entry of a component: a variable, and the index along its axes after that of the components."""
    for name, values in candidates.items():
        for place in np.ndindex(values.shape[3:]):
            yield name, place


def _entry(values: np.ndarray, place: tuple[int, ...]) -> np.ndarray:
    """Return an entry of each component, shape (..., K), from values (..., K, *axes of ``place``)."""
    first = values.ndim - len(place)
    index: tuple[Any, ...] = (*[slice(None)] * first, *place)
    return np.asarray(values[index])


def _separation(values: np.ndarray) -> float:
    """Return the smallest distance of neighbouring means over the sum of their sds, of values (chain, draw, K)."""
    means, sds = values.mean(axis=(0, 1)), values.std(axis=(0, 1))
    order = np.argsort(means)
    return min(float((means[b] - means[a]) / max(sds[a] + sds[b], 1e-300)) for a, b in pairwise(order))
