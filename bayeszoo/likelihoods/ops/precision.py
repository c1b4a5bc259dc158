"""Log determinant and inverse of a covariance matrix as one PyTensor operation.

PyTensor's own Cholesky factor, triangular solve and matrix product give the same numbers, but numba compiles them and
their gradients for minutes; loops over a small matrix compile in seconds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch import basic as numba_basic
from pytensor.link.numba.dispatch.basic import register_funcify_default_op_cache_key


def by_loops(sigma: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return log det and inverse by the Cholesky factor; NaN where the matrix is not positive definite."""
    size = sigma.shape[0]
    factor, inverse = np.zeros((size, size)), np.zeros((size, size))
    log_det = 0.0
    for j in range(size):
        rest = sigma[j, j]
        for k in range(j):
            rest -= factor[j, k] ** 2
        if not rest > 0:
            return np.asarray(np.nan), np.full((size, size), np.nan)
        factor[j, j] = np.sqrt(rest)
        log_det += np.log(rest)
        for i in range(j + 1, size):
            total = sigma[i, j]
            for k in range(j):
                total -= factor[i, k] * factor[j, k]
            factor[i, j] = total / factor[j, j]
    for j in range(size):  # the inverse of the factor, column by column
        for i in range(j, size):
            total = 1.0 if i == j else 0.0
            for k in range(j, i):
                total -= factor[i, k] * inverse[k, j]
            inverse[i, j] = total / factor[i, i]
    precision = np.zeros((size, size))
    for i in range(size):
        for j in range(size):
            for k in range(max(i, j), size):
                precision[i, j] += inverse[k, i] * inverse[k, j]
    return np.asarray(log_det), precision


class LogDetAndInverse(Op):
    """Sigma, of shape (D, D) and positive definite, to log det Sigma and its inverse."""

    __props__ = ()

    def make_node(self, sigma: Any) -> Apply:
        """Take a matrix of float64."""
        sigma = pt.as_tensor_variable(sigma, ndim=2, dtype="float64")
        return Apply(self, [sigma], [pt.dscalar(), sigma.type()])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        """Compute it by LAPACK, for linkers other than numba's."""
        try:
            factor = np.linalg.cholesky(inputs[0])
        except np.linalg.LinAlgError:
            output_storage[0][0], output_storage[1][0] = np.asarray(np.nan), np.full_like(inputs[0], np.nan)
            return
        inverse = np.linalg.inv(factor)
        output_storage[0][0] = np.asarray(2 * np.sum(np.log(np.diag(factor))))
        output_storage[1][0] = inverse.T @ inverse

    def infer_shape(self, node: Apply, input_shapes: Any) -> Any:
        """Return the shapes of a number and of a matrix like the input."""
        return [(), input_shapes[0]]

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> Any:
        """Return the derivative: d log det = tr(P dSigma), dP = -P dSigma P, with P the inverse."""
        of_log_det, of_inverse = cotangents
        precision, given = outputs[1], 0.0
        if of_log_det.type.ndim == 0 and hasattr(of_log_det.type, "dtype"):
            given = of_log_det * precision
        if hasattr(of_inverse.type, "dtype"):
            given = given - product(product(precision, of_inverse), precision)
        return [given]


@register_funcify_default_op_cache_key(LogDetAndInverse)
def _funcify(op: LogDetAndInverse, node: Apply, **kwargs: Any) -> Any:
    kernel = numba_basic.numba_njit(by_loops)  # has no wrapper: calling it from Python would crash

    @numba_basic.numba_njit
    def log_det_and_inverse(sigma: np.ndarray) -> Any:
        return kernel(sigma)

    return log_det_and_inverse, 1


log_det_and_inverse = LogDetAndInverse()


def product(first: Any, second: Any) -> Any:
    """Return the product of two small matrices, as a sum that is compiled with what surrounds it."""
    return pt.sum(first[:, :, None] * second[None, :, :], axis=1)
