"""From packed Cholesky factors to covariance matrices, with the derivative, as PyTensor operations in loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch import basic as numba_basic
from pytensor.link.numba.dispatch.basic import register_funcify_default_op_cache_key

from bayeszoo.likelihoods.ops.operation import source_version


def _factor(packed: Any, size: int) -> Any:
    """Unpack L, whose rows are one after the other, with the log of the diagonal."""
    factor, at = np.zeros((size, size)), 0
    for i in range(size):
        for j in range(i + 1):
            factor[i, j] = np.exp(packed[at]) if i == j else packed[at]
            at += 1
    return factor


_compiled_factor = numba_basic.numba_njit(_factor)


def _covariances(packed: Any, size: int) -> Any:
    covariances = np.zeros((len(packed), size, size))
    for k in range(len(packed)):
        factor = _compiled_factor(packed[k], size)
        for i in range(size):
            for j in range(i + 1):
                for m in range(j + 1):
                    covariances[k, i, j] += factor[i, m] * factor[j, m]
                covariances[k, j, i] = covariances[k, i, j]
    return covariances


def _pulled_back(packed: Any, given: Any, size: int) -> Any:
    """Return the lower triangle of (G + G') L, times L_ii on the diagonal."""
    derivatives = np.zeros(packed.shape)
    for k in range(len(packed)):
        factor, at = _compiled_factor(packed[k], size), 0
        for i in range(size):
            for j in range(i + 1):
                for m in range(j, size):
                    derivatives[k, at] += (given[k, i, m] + given[k, m, i]) * factor[m, j]
                if i == j:
                    derivatives[k, at] *= factor[i, i]
                at += 1
    return derivatives


class CovariancesOfFactors(Op):
    """Packed factors L, (K, D (D + 1) / 2), to L L', (K, D, D)."""

    __props__ = ("size",)

    def __init__(self, size: int) -> None:
        self.size = size

    def make_node(self, packed: Any) -> Apply:
        """Take rows of packed factors."""
        packed = pt.as_tensor_variable(packed, ndim=2, dtype="float64")
        return Apply(self, [packed], [pt.TensorType("float64", (packed.type.shape[0], self.size, self.size))()])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        """Compute it by NumPy, for linkers other than numba's."""
        factors = np.stack([_factor(one, self.size) for one in inputs[0]])
        output_storage[0][0] = factors @ factors.mT

    def infer_shape(self, node: Apply, input_shapes: Any) -> Any:
        """Return (K, D, D)."""
        return [(input_shapes[0][0], np.int64(self.size), np.int64(self.size))]

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> Any:
        """Return the derivative, an operation of its own."""
        return [_PullBack(self.size)(inputs[0], cotangents[0])]


class _PullBack(Op):
    """Packed factors and the derivative in the covariances to the derivative in the factors."""

    __props__ = ("size",)

    def __init__(self, size: int) -> None:
        self.size = size

    def make_node(self, packed: Any, given: Any) -> Apply:
        return Apply(self, [packed, pt.as_tensor_variable(given, ndim=3, dtype="float64")], [packed.type()])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        packed, given = inputs
        rows, columns = np.tril_indices(self.size)
        factors = np.stack([_factor(one, self.size) for one in packed])
        whole = (given + given.mT) @ factors
        output_storage[0][0] = np.where(rows == columns, factors[:, rows, columns], 1.0) * whole[:, rows, columns]

    def infer_shape(self, node: Apply, input_shapes: Any) -> Any:
        return [input_shapes[0]]


@register_funcify_default_op_cache_key(CovariancesOfFactors)
def _funcify(op: CovariancesOfFactors, node: Apply, **kwargs: Any) -> Any:
    size, loops = op.size, numba_basic.numba_njit(_covariances)

    @numba_basic.numba_njit
    def covariances(packed: Any) -> Any:
        return loops(packed, size)

    return covariances, source_version(_factor, _covariances)


@register_funcify_default_op_cache_key(_PullBack)
def _funcify_pull_back(op: _PullBack, node: Apply, **kwargs: Any) -> Any:
    size, loops = op.size, numba_basic.numba_njit(_pulled_back)

    @numba_basic.numba_njit
    def pulled_back(packed: Any, given: Any) -> Any:
        return loops(packed, given, size)

    return pulled_back, source_version(_factor, _pulled_back)
