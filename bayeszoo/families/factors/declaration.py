"""Factor models in PyMC: loadings L of W = L Q, sampled by their free entries, and rows with missing numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.transforms import Transform

from bayeszoo.families.factors import loadings_shape
from bayeszoo.families.statistics.patterns import Patterns
from bayeszoo.foundation.numerics.constants import LOG_2_PI


class Trapezoid(Transform):
    """Coordinates of a D x q matrix, q < D, zero above a positive diagonal: free entries, the diagonal's as logarithms.

    ``fixed`` (D, q) marks the entries that are always 0.
    """

    name = "trapezoid"

    def __init__(self, rows: int, factors: int) -> None:
        self.at = loadings_shape.entries(rows, factors)
        self.is_diagonal = self.at[0] == self.at[1]
        self.fixed = np.triu(np.ones((rows, factors), dtype=bool), 1)
        self._head = factors * (factors + 1) // 2
        self._places = np.zeros((self._head, factors, factors))
        self._places[np.arange(self._head), self.at[0][: self._head], self.at[1][: self._head]] = 1.0

    def forward(self, value: pt.TensorVariable, *inputs: pt.TensorVariable) -> pt.TensorVariable:
        """Map L to its coordinates, shape (D q - q (q - 1) / 2,)."""
        free = value[*self.at]
        return pt.switch(self.is_diagonal, pt.log(pt.switch(self.is_diagonal, free, np.float64(1.0))), free)

    def backward(self, value: pt.TensorVariable, *inputs: pt.TensorVariable) -> pt.TensorVariable:
        """Map coordinates to L, by a sum of products, which numba can fuse with the rest of the density."""
        head, factors = value[: self._head], self._places.shape[1]
        diagonal = self.is_diagonal[: self._head]
        positive = pt.switch(diagonal, pt.exp(pt.switch(diagonal, head, np.float64(0.0))), head)
        top = pt.sum(positive[:, None, None] * self._places, axis=0)
        return pt.concatenate([top, value[self._head :].reshape((self.fixed.shape[0] - factors, factors))], axis=0)

    def log_jac_det(self, value: object, *inputs: object) -> pt.TensorVariable:
        """Log of the product of the diagonal."""
        return pt.sum(pt.switch(self.is_diagonal, value, np.float64(0.0)))


def IdentifiedLoadings(name: str, scale: float, rows: int, factors: int, dims: object = None) -> pt.TensorVariable:
    """Declare the factor L of loadings W = L Q whose entries are independent N(0, scale^2).

    Parameters
    ----------
    name : str
        The variable, of shape (D, q).
    scale : float
        Standard deviation of the entries of W, > 0.
    rows, factors : int
        D and q < D.
    dims : tuple of str, optional
        Names of the two axes.
    """
    scales = pm.Data(f"{name}_scale", np.full((rows, factors), scale))
    return pm.CustomDist(
        name,
        scales,
        logp=lambda value, scales: _log_density(value, scales, rows, factors),
        random=_draw,
        signature="(d,q)->(d,q)",
        class_name="TrapezoidalNormal",
        dims=dims,
        transform=Trapezoid(rows, factors),
        initval=scale * np.tril(np.full((rows, factors), 0.5)),
    )


def _log_density(value: pt.TensorVariable, scales: pt.TensorVariable, rows: int, factors: int) -> pt.TensorVariable:
    """Log density of the free entries: chi variates on the diagonal, and normal ones below."""
    degrees = np.arange(factors, 0, -1.0)
    diagonal, below = np.eye(rows, factors, dtype=bool), np.tril(np.ones((rows, factors)), -1)
    powers = np.where(diagonal, degrees - 1, 0.0)
    per_scale = np.where(diagonal, degrees, below)  # multiples of log(scale) to subtract
    constant = -below.sum() * LOG_2_PI / 2
    constant -= sum((k / 2 - 1) * math.log(2) + math.lgamma(k / 2) for k in degrees)
    logs = pt.log(pt.switch(diagonal, value, np.float64(1.0)))
    terms = powers * logs - per_scale * pt.log(scales) - pt.sqr(value / scales) / 2
    return np.float64(constant) + pt.sum(terms)


def _draw(scales: Any, rng: np.random.Generator, size: Any = None) -> np.ndarray:
    """Draw by Bartlett's decomposition."""
    shape = (*(size or ()), *np.shape(scales)[-2:])
    normal = np.tril(rng.standard_normal(shape), -1)
    diagonal = np.sqrt(rng.chisquare(np.arange(shape[-1], 0, -1.0), (*shape[:-2], shape[-1])))
    return np.asarray(scales) * (normal + np.eye(*shape[-2:]) * diagonal[..., None, :])


def GaussianRows(name: str, mean: pt.TensorVariable, cov: pt.TensorVariable, rows: np.ndarray) -> None:
    """Declare Gaussian rows by the observed numbers of each.

    Parameters
    ----------
    name : str
        The observed variable, with the axes ``row`` and ``column``; a potential if numbers are missing.
    mean, cov : tensor, shape (D,) and (D, D)
        Mean and covariance of a complete row.
    rows : ndarray, shape (N, D)
        The rows; NaN is missing.
    """
    stats = Patterns.of(rows)
    if stats.is_complete:
        shared = pm.Data(f"{name}_data", rows, dims=("row", "column"))
        pm.MvNormal(name, mu=mean, cov=cov, observed=shared, dims=("row", "column"))
        return
    observed, terms = ~np.isnan(rows), []
    for seen in stats.observed[stats.observed.any(axis=1)]:
        columns, numbers = np.flatnonzero(seen), rows[(observed == seen).all(axis=1)][:, seen]
        law = pm.MvNormal.dist(mu=mean[columns], cov=cov[columns][:, columns])
        terms.append(pm.math.sum(pm.logp(law, numbers)))
    pm.Potential(name, pm.math.sum(pm.math.stack(terms)))
