"""Independent Dirichlet distributions on one axis, as PyMC has none: the levels of several features side by side."""

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
    """Declare probabilities p[..., places] ~ Dirichlet(alpha[..., places]) of each table, independent.

    Parameters
    ----------
    name : str
        The variable.
    alpha : ndarray of shape (..., L)
        Concentrations, > 0.
    tables : sequence of sequence of int
        The places of each table on the last axis: they are disjoint, and together all of it.
    dims : tuple of str
        Names of the axes.
    """
    constant = np.sum([_log_constant(alpha[..., list(at)]) for at in tables], axis=0)
    start = np.empty(alpha.shape)
    for at in map(list, tables):
        start[..., at] = alpha[..., at] / alpha[..., at].sum(axis=-1, keepdims=True)
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
    for at in map(list, tables):
        drawn[..., at] = np.apply_along_axis(rng.dirichlet, -1, alpha[..., at])
    return drawn


class Simplexes(Transform):
    """Probabilities of several tables on one axis, each as PyMC's coordinates of a simplex.

    Tables of as many levels are transformed together, so that the graph grows with their sizes and not their number.
    """

    name = "simplexes"

    def __init__(self, tables: Places) -> None:
        sizes = sorted({len(at) for at in tables})
        self.groups = [np.array([at for at in tables if len(at) == V], dtype=np.int64) for V in sizes]
        self.log_sizes = float(sum(len(group) * np.log(group.shape[1]) for group in self.groups))
        self.order = np.argsort(np.concatenate([group.ravel() for group in self.groups]))
        self.ends = np.cumsum([0, *(len(group) * (group.shape[1] - 1) for group in self.groups)])

    def forward(self, value: Any, *inputs: Any) -> pt.TensorVariable:
        """Map probabilities (..., L) to coordinates, one less for each table."""
        each = [simplex.forward(value[..., group]) for group in self.groups]
        return pt.concatenate([_flat(own) for own in each], axis=-1)

    def _parts(self, value: pt.TensorVariable) -> list[Any]:
        """Return the coordinates of tables of as many levels, (..., tables, levels - 1)."""
        ends = zip(self.groups, self.ends[:-1], self.ends[1:], strict=True)
        return [
            value[..., at:to].reshape((*value.shape[:-1], len(group), group.shape[1] - 1)) for group, at, to in ends
        ]

    def backward(self, value: pt.TensorVariable, *inputs: Any) -> pt.TensorVariable:
        """Map coordinates to probabilities."""
        each = [_flat(simplex.backward(own)) for own in self._parts(value)]
        return pt.concatenate(each, axis=-1)[..., self.order]

    def log_jac_det(self, value: pt.TensorVariable, *inputs: Any) -> pt.TensorVariable:
        """Log of |dp / d value|, p without the last entry of each table: the sum of log p, and log of their sizes."""
        return sum(pt.sum(simplex.log_jac_det(own), axis=-1) for own in self._parts(value))


def _flat(values: pt.TensorVariable) -> pt.TensorVariable:
    """Join the last two axes."""
    return values.reshape((*values.shape[:-2], values.shape[-2] * values.shape[-1]))
