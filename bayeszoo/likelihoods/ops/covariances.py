"""Densities in covariance matrices, and these matrices from packed Cholesky factors, as PyTensor operations.

PyTensor's own Cholesky factor, triangular solve and matrix product give the same numbers, but numba compiles them and
their gradients for minutes; loops over small matrices compile in seconds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.link.numba.dispatch import basic as numba_basic

from bayeszoo.likelihoods.loops import vectors
from bayeszoo.likelihoods.loops.vectors import inverse_factor
from bayeszoo.likelihoods.ops.operation import LogDensity, Operation


def _by_loops(sigma: Any, scatter: Any, n: Any) -> Any:
    """Return values, and with P the inverse of Sigma the gradients (P S P - n P) / 2 and -P / 2."""
    size = sigma.shape[1]
    if scatter.shape != sigma.shape:
        raise ValueError("covariances and scatter matrices differ in K or D")
    values, of_sigma, of_scatter = np.empty(len(sigma)), np.empty(sigma.shape), np.empty(sigma.shape)
    for k in range(len(sigma)):
        factor, inverse = np.zeros((size, size)), np.zeros((size, size))
        log_det = 2 * inverse_factor(sigma[k], factor, inverse)
        P = inverse.T @ inverse + (0.0 if log_det == log_det else np.nan)
        both = P @ np.ascontiguousarray(scatter[k])
        values[k] = -0.5 * (n[0] * log_det + np.trace(both))
        of_sigma[k], of_scatter[k] = 0.5 * (both @ P - n[0] * P), -0.5 * P
    return values, of_sigma, of_scatter


def _by_numpy(sigma: Any, scatter: Any, n: Any) -> list[np.ndarray]:
    if not np.all(np.linalg.eigvalsh(sigma) > 0):
        return [np.full(len(sigma), np.nan), np.full_like(sigma, np.nan), np.full_like(sigma, np.nan)]
    P = np.linalg.inv(sigma)
    values = -(n[0] * np.linalg.slogdet(sigma)[1] + np.trace(P @ scatter, axis1=1, axis2=2)) / 2
    return [values, (P @ scatter @ P - n[0] * P) / 2, -P / 2]


class GaussianTerms(LogDensity):
    """Sigma and S, both (K, D, D), and n (1,) to -(n log|Sigma| + tr(Sigma^-1 S)) / 2 of each, and its two gradients.

    Of n Gaussian rows with scatter S about the mean it is the log density but for a constant, and so it is of Sigma
    under an inverse-Wishart distribution with scale matrix S and n - D - 1 degrees of freedom.
    """

    parameters = (3, 3)
    data = ((1, "float64"),)
    value_ndim = 1
    sources = (vectors,)
    loops, by_numpy = staticmethod(_by_loops), staticmethod(_by_numpy)


def _factors(packed: Any) -> Any:
    """Unpack each L, whose rows are one after the other, with the logs of the diagonal."""
    size = int(np.sqrt(2.0 * packed.shape[1]))  # of D (D + 1) / 2 entries
    factors = np.zeros((len(packed), size, size))
    for k in range(len(packed)):
        at = 0
        for i in range(size):
            for j in range(i + 1):
                factors[k, i, j] = np.exp(packed[k, at]) if i == j else packed[k, at]
                at += 1
    return factors


_compiled_factors = numba_basic.numba_njit(_factors)


def _products(packed: Any) -> Any:
    factors = _compiled_factors(packed)
    covariances = np.empty(factors.shape)
    for k in range(len(packed)):
        covariances[k] = factors[k] @ factors[k].T
    return covariances


def _pulled_back(packed: Any, given: Any) -> Any:
    """Return the lower triangle of (G + G') L, times L_ii on the diagonal."""
    factors, derivatives = _compiled_factors(packed), np.zeros(packed.shape)
    for k in range(len(packed)):
        whole, at = (given[k] + given[k].T) @ factors[k], 0
        for i in range(len(whole)):
            for j in range(i + 1):
                derivatives[k, at] = whole[i, j] * (factors[k, i, i] if i == j else 1.0)
                at += 1
    return derivatives


def _products_by_numpy(packed: Any) -> list[np.ndarray]:
    factors = _factors(packed)
    return [factors @ factors.mT]


def _pulled_back_by_numpy(packed: Any, given: Any) -> list[np.ndarray]:
    factors = _factors(packed)
    rows, columns = np.tril_indices(factors.shape[1])
    whole = (given + given.mT) @ factors
    return [np.where(rows == columns, factors[:, rows, columns], 1.0) * whole[:, rows, columns]]


class CovariancesOfFactors(Operation):
    """Packed factors L, (K, D (D + 1) / 2), to L L', (K, D, D)."""

    __props__ = ("size",)
    sources = (_factors,)
    loops, by_numpy = staticmethod(_products), staticmethod(_products_by_numpy)

    def __init__(self, size: int) -> None:
        self.size = size

    def make_node(self, packed: Any) -> Apply:
        """Take rows of packed factors."""
        packed = pt.as_tensor_variable(packed, ndim=2, dtype="float64")
        return Apply(self, [packed], [pt.TensorType("float64", (packed.type.shape[0], self.size, self.size))()])

    def infer_shape(self, node: Apply, input_shapes: Any) -> Any:
        """Return (K, D, D)."""
        return [(input_shapes[0][0], np.int64(self.size), np.int64(self.size))]

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> Any:
        """Return the derivative, an operation of its own."""
        return [_PullBack()(inputs[0], cotangents[0])]


class _PullBack(Operation):
    """Packed factors and the derivative in the covariances to the derivative in the factors."""

    __props__ = ()
    sources = (_factors,)
    loops, by_numpy = staticmethod(_pulled_back), staticmethod(_pulled_back_by_numpy)

    def make_node(self, packed: Any, given: Any) -> Apply:
        return Apply(self, [packed, pt.as_tensor_variable(given, ndim=3, dtype="float64")], [packed.type()])

    def infer_shape(self, node: Apply, input_shapes: Any) -> Any:
        return [input_shapes[0]]
