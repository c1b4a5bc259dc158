"""Independent Dirichlet distributions of several features along one axis, for PyMC, which has none."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import scipy
from pymc.distributions.transforms import Transform, simplex

from bayeszoo.likelihoods.inverse_wishart import as_data

Places = Sequence[Sequence[int]]


def DirichletTables(name: str, alpha: np.ndarray, tables: Places, dims: tuple[str, ...]) -> pt.TensorVariable:
    """Declare independent tables of probabilities, p[..., places] ~ Dirichlet(alpha[..., places]).

    Parameters
    ----------
    name : str
        Name of the variable.
    alpha : ndarray of shape (..., L)
        Concentrations, > 0.
    tables : sequence of sequence of int
        Indices of each table on the last axis; they partition it.
    dims : tuple of str
        Names of the axes.
    """
    constant = np.sum([_log_constant(alpha[..., list(places)]) for places in tables], axis=0)
    start = np.empty(alpha.shape)
    for places in map(list, tables):
        start[..., places] = alpha[..., places] / alpha[..., places].sum(axis=-1, keepdims=True)
    return pm.CustomDist(
        name,
        *as_data(name, alpha=alpha, log_constant=constant),
        logp=_log_density,
        random=partial(_draw, tables),
        signature="(l),()->(l)",
        class_name="DirichletTables",
        dims=dims,
        transform=Simplexes(tables),
        initval=start,
    )


def _log_constant(alpha: np.ndarray) -> np.ndarray:
    return np.asarray(scipy.special.gammaln(alpha.sum(axis=-1)) - scipy.special.gammaln(alpha).sum(axis=-1))


def _log_density(p: pt.TensorVariable, alpha: pt.TensorVariable, constant: pt.TensorVariable) -> pt.TensorVariable:
    safe = pt.switch(pt.eq(alpha, np.float64(1)), np.float64(1), p)  # p**0 is 1, also at 0
    return constant + pt.sum((alpha - 1) * pt.log(safe), axis=-1)


def _draw(
    tables: Places, alpha: Any, constant: Any, rng: np.random.Generator, size: tuple[int, ...] | None = None
) -> np.ndarray:
    alpha = alpha if size is None else np.broadcast_to(alpha, (*size, alpha.shape[-1]))
    drawn = np.empty(alpha.shape)
    for places in map(list, tables):
        drawn[..., places] = np.apply_along_axis(rng.dirichlet, -1, alpha[..., places])
    return drawn


class Simplexes(Transform):
    """PyMC's simplex coordinates of several tables of probabilities on one axis.

    Tables of equal size are transformed together, so that the graph grows with the number of sizes, not of tables.
    """

    name = "simplexes"

    def __init__(self, tables: Places) -> None:
        sizes = sorted({len(places) for places in tables})
        self.groups = [np.array([places for places in tables if len(places) == V], dtype=np.int64) for V in sizes]
        self.log_sizes = float(sum(len(group) * np.log(group.shape[1]) for group in self.groups))
        self.order = np.argsort(np.concatenate([group.ravel() for group in self.groups]))
        self.ends = np.cumsum([0, *(len(group) * (group.shape[1] - 1) for group in self.groups)])

    def forward(self, value: Any, *inputs: Any) -> pt.TensorVariable:
        """Map probabilities (..., L) to coordinates, one fewer for each table."""
        coordinates = [simplex.forward(value[..., group]) for group in self.groups]
        return pt.concatenate([_flat(values) for values in coordinates], axis=-1)

    def _parts(self, value: pt.TensorVariable) -> list[Any]:
        """Return the coordinates of tables by size, (..., tables, levels - 1)."""
        ends = zip(self.groups, self.ends[:-1], self.ends[1:], strict=True)
        return [
            value[..., low:high].reshape((*value.shape[:-1], len(group), group.shape[1] - 1))
            for group, low, high in ends
        ]

    def backward(self, value: pt.TensorVariable, *inputs: Any) -> pt.TensorVariable:
        """Map coordinates to probabilities."""
        probabilities = [_flat(simplex.backward(part)) for part in self._parts(value)]
        return pt.concatenate(probabilities, axis=-1)[..., self.order]

    def log_jac_det(self, value: pt.TensorVariable, *inputs: Any) -> pt.TensorVariable:
        """Return log |dp / d value|, p without the last entry of each table."""
        return sum(pt.sum(simplex.log_jac_det(part), axis=-1) for part in self._parts(value))


def _flat(values: pt.TensorVariable) -> pt.TensorVariable:
    """Join the last two axes."""
    return values.reshape((*values.shape[:-2], values.shape[-2] * values.shape[-1]))
