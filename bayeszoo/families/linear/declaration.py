"""Pieces of the PyMC declarations of linear models: whitened coordinates, priors in them, and squared errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.transforms import Transform

from bayeszoo.families.linear.least_squares import Solution
from bayeszoo.foundation.numerics.constants import LOG_2_PI


class Whitened(Transform):
    """Coordinates of vectors in which the Gaussian of a solution, its factor times ``scale``, is standard normal.

    The sampler is then not affected by the units of the columns and by collinearity. The density does not change, so
    that an approximate solution is enough.
    """

    name = "whitened"

    def __init__(self, solution: Solution, scale: float = 1.0) -> None:
        self.matrix = scale * solution.factor
        log_det = solution.log_det_factor + len(solution.mean) * math.log(scale)
        self._by_inputs = False
        self.numbers = solution.mean, self.matrix, solution.inverse / scale, np.float64(log_det)

    def from_inputs(self) -> Whitened:
        """Return a copy that reads the variable's last four inputs: compiled code then serves all data of one size."""
        transform = copy(self)
        transform._by_inputs = True
        return transform

    def _numbers(self, inputs: Any) -> Any:
        return inputs[-4:] if self._by_inputs else self.numbers

    def forward(self, value: object, *inputs: object) -> pt.TensorVariable:
        """Map vectors, (..., T), to their coordinates."""
        centre, _, inverse, _ = self._numbers(inputs)
        return weighted_sums(inverse, value - centre)

    def backward(self, value: object, *inputs: object) -> pt.TensorVariable:
        """Map coordinates to the vectors."""
        centre, matrix, _, _ = self._numbers(inputs)
        return centre + weighted_sums(matrix, value)

    def log_jac_det(self, value: pt.TensorVariable, *inputs: object) -> pt.TensorVariable:
        """Log determinant of the matrix, for each vector."""
        return self._numbers(inputs)[3] + pt.zeros_like(value[..., 0])


class NonCentred(Transform):
    """Coordinates of Gaussian entries in units of their standard deviation: ``w = mean + sd u``, u ~ N(0, 1) a priori.

    If the standard deviations are parameters, w shrinks with them, and a sampler of w would have to follow it into a
    funnel (Papaspiliopoulos, Roberts and Skold 2007). The density does not change.
    """

    name = "noncentred"

    def forward(self, value: pt.TensorVariable, *inputs: pt.TensorVariable) -> pt.TensorVariable:
        """Map the entries to their units."""
        mean, sd = inputs[-2:]
        return (value - mean) / sd

    def backward(self, value: pt.TensorVariable, *inputs: pt.TensorVariable) -> pt.TensorVariable:
        """Map units to the entries."""
        mean, sd = inputs[-2:]
        return mean + sd * value

    def log_jac_det(self, value: object, *inputs: object) -> pt.TensorVariable:
        """Log of the standard deviations, elementwise."""
        _, sd = inputs[-2:]
        return pt.log(sd) + pt.zeros_like(value)


def weighted_sums(rows: Any, weights: pt.TensorVariable) -> pt.TensorVariable:
    """Return the sums (..., R) of rows (R, T) under weights (..., T), in a form that numba compiles fast.

    A matrix product takes numba minutes.
    """
    return pt.sum(rows * weights[..., None, :], axis=-1)


def as_data(**values: object) -> list[Any]:
    """Declare numbers as data: code compiled for one prior and data set then serves all of the same size."""
    return [pm.Data(name, np.asarray(value, dtype=np.float64)) for name, value in values.items()]


def noise_variance(a0: float, b0: float, shape: tuple[int, ...] = ()) -> pt.TensorVariable:
    """Declare ``sigma2 ~ InvGamma(a0, scale b0)`` of a shape, with a0 and b0 as data."""
    alpha, beta = as_data(a0=a0, b0=b0)
    return pm.InverseGamma("sigma2", alpha=alpha, beta=beta, shape=shape)


def spike_and_slab(
    pi: object, sigma2: object, precision: np.ndarray, origin: np.ndarray, fixed: int, dims: tuple[str, ...]
) -> pt.TensorVariable:
    """Declare indicators ``included``, weights ``slab`` about the origin, and ``w``, which is 0 for excluded terms.

    ``precision`` (T, T) is that of all weights, times ``sigma2``; the first ``fixed`` terms are always included.
    ``dims`` are the names of the axes of all terms, and of the terms that may be excluded. The data do not depend on
    the ``slab`` of excluded terms, whose entries are independent and of the same scale.
    """
    count = len(origin) - fixed
    term, slope = dims or (None, None)
    included = pm.Bernoulli("included", pi, shape=count, dims=slope)
    is_in = pt.concatenate([np.ones(fixed), included])
    mask = is_in[:, None] * is_in + np.eye(len(origin)) * (np.float64(1.0) - is_in)
    weights = pm.MvNormal("slab", np.zeros(len(origin)), tau=precision * mask / sigma2, dims=term)
    return pm.Deterministic("w", origin + is_in * weights, dims=term)


def squared_error(w: object, design: np.ndarray, outcome: np.ndarray) -> pt.TensorVariable:
    """Return the sum of squared errors of ``design @ w``, from the rows of the sufficient statistics."""
    rows, values = as_data(design=design, outcome=outcome)
    return pt.sum(pt.sqr(values - weighted_sums(rows, w)))


def LaplaceVector(name: str, mean: pt.TensorVariable, b: pt.TensorVariable, whitened: Whitened) -> pt.TensorVariable:
    """Declare independent Laplace entries of locations ``mean`` and scales ``b`` (T,), in whitened coordinates."""

    def log_density(value: pt.TensorVariable, mean: pt.TensorVariable, b: pt.TensorVariable) -> pt.TensorVariable:
        return -pt.sum(pt.log(np.float64(2.0) * b) + pt.abs(value - mean) / b)

    def draw(rng: np.random.Generator, size: Any, mean: Any, b: Any) -> np.ndarray:
        return rng.laplace(mean, b, (*size, len(mean)))

    return _vector(name, whitened, "(t),(t)", log_density, draw, mean=mean, b=b)


def GaussianVector(name: str, mean: np.ndarray, root: np.ndarray, sigma2: Any, whitened: Whitened) -> pt.TensorVariable:
    """Declare w ~ N(mean, sigma2 root root') in whitened coordinates; compiles ten times faster than ``pm.MvNormal``.

    ``mean`` (T,) and ``root`` (T, T) are arrays, ``sigma2`` is a variable or a number; a variable (K,) gives K vectors
    (K, T).
    """
    constant = np.float64(-len(mean) * LOG_2_PI / 2 - np.linalg.slogdet(root)[1])

    def log_density(
        value: pt.TensorVariable,
        mean: pt.TensorVariable,
        root: pt.TensorVariable,
        inverse: pt.TensorVariable,
        constant: pt.TensorVariable,
        sigma2: pt.TensorVariable,
    ) -> pt.TensorVariable:
        squares = pt.sum(pt.sqr(weighted_sums(inverse, value - mean)), axis=-1)
        return constant - (value.shape[-1] * pt.log(sigma2) + squares / sigma2) / 2

    def draw(
        rng: np.random.Generator, size: Any, mean: Any, root: Any, inverse: Any, constant: Any, sigma2: Any
    ) -> np.ndarray:
        noise = rng.standard_normal((*(size or np.shape(sigma2)), np.shape(mean)[-1]))
        spread = np.matmul(root, noise[..., None])[..., 0]  # for several vectors, arrays have a leading axis
        return np.asarray(mean + np.sqrt(sigma2)[..., None] * spread)

    inverse = np.linalg.inv(root)
    values = {"mean": mean, "root": root, "inverse": inverse, "constant": constant, "sigma2": sigma2}
    return _vector(name, whitened, "(t),(t,t),(t,t),(),()", log_density, draw, **values)


def _vector(
    name: str,
    whitened: Whitened,
    signature: str,
    log_density: Callable[..., object],
    draw: Callable[..., np.ndarray],
    **values: object,
) -> pt.TensorVariable:
    """Declare a vector, or if the last input is an array one vector for each of its entries.

    The arrays in ``values`` and those of the whitening are inputs of the density.
    """
    data = {f"{name}_{key}": value for key, value in values.items()}
    inputs = [v if isinstance(v, pt.TensorVariable) else as_data(**{key: v})[0] for key, v in data.items()]
    keys = (f"{name}_whitened_{key}" for key in ("centre", "matrix", "inverse", "log_det"))
    coordinates = as_data(**dict(zip(keys, whitened.numbers, strict=True)))
    count = len(inputs)
    zeros = pt.zeros_like(inputs[-1])[..., None] if signature.endswith(",()") else np.float64(0.0)
    return pm.CustomDist(
        name,
        *inputs,
        *coordinates,
        logp=lambda value, *inputs: log_density(value, *inputs[:count]),
        random=lambda *inputs, rng, size=None: draw(rng, size or (), *inputs[:count]),
        signature=f"{signature},(t),(t,t),(t,t),()->(t)",
        transform=whitened.from_inputs(),
        # the start of chains; with an initval all particles of SMC would start there too, not at draws of the prior
        support_point=lambda rv, size, *inputs: inputs[count] + zeros,
    )
