"""The log density of rows summed over all trees of cuts as a PyTensor operation with its slope."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor.tensor as pt

from bayeszoo.likelihoods.loops import partitions
from bayeszoo.likelihoods.loops.partitions import with_slope
from bayeszoo.likelihoods.ops.operation import LogDensity


def _by_loops(
    sigma2: np.ndarray,
    n: np.ndarray,
    scatter: np.ndarray,
    deviation: np.ndarray,
    spread: np.ndarray,
    *trees: np.ndarray,
) -> tuple[Any, Any]:
    """Return the value and its derivative in the variance, as arrays."""
    rows = partitions.RowsOfBoxes(n, scatter, deviation, spread.item())
    value, slope = with_slope(sigma2.item(), rows, partitions.Trees(*trees))
    return np.asarray(value), np.asarray(slope)


class PartitionLikelihood(LogDensity):
    """Noise variance, moments of rows in boxes, and cuts of boxes to a log likelihood."""

    parameters = (0,)
    data = (
        *((1, "float64"),) * 3,
        (0, "float64"),
        *((1, "int64"),) * 7,
        *((1, "float64"),) * 2,
        *((1, "int64"),) * 2,
        *((1, "float64"),) * 3,
    )
    sources = (partitions,)
    loops = staticmethod(_by_loops)


def partition_log_likelihood(sigma2: pt.TensorVariable, *arrays: pt.TensorVariable) -> pt.TensorVariable:
    """Return the log density of rows about a function that is constant on the leaves of a tree, trees summed out.

    Parameters
    ----------
    sigma2 : scalar variable
        Variance of rows about the function.
    *arrays : variables
        The fields of `RowsOfBoxes`, and those of `Trees`.
    """
    return PartitionLikelihood()(*map(pt.as_tensor_variable, (sigma2, *arrays)))[0]
