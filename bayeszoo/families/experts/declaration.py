"""Pieces of the PyMC declarations of experts: the coordinates of weights that sum to 0."""

from __future__ import annotations

import pytensor.tensor as pt
from pymc.distributions.transforms import ZeroSumTransform

from bayeszoo.families.linear.declaration import GaussianVector, as_data, noise_variance, weighted_sums

__all__ = ["GaussianVector", "ZeroSumInUnits", "as_data", "noise_variance", "weighted_sums"]


class ZeroSumInUnits(ZeroSumTransform):
    """Rows of K numbers that sum to 0, as K - 1 coordinates that are N(0, 1) a priori, free of the terms' units."""

    def __init__(self) -> None:
        super().__init__([-1])

    def forward(self, value: pt.TensorVariable, *inputs: pt.TensorVariable) -> pt.TensorVariable:
        """Map rows to their coordinates."""
        return super().forward(value / inputs[2], *inputs)

    def backward(self, value: pt.TensorVariable, *inputs: pt.TensorVariable) -> pt.TensorVariable:
        """Map coordinates to the rows."""
        return super().backward(value, *inputs) * inputs[2]

    def log_jac_det(self, value: pt.TensorVariable, *inputs: pt.TensorVariable) -> pt.TensorVariable:
        """Return (K - 1) times the log of each row's standard deviation."""
        return pt.sum(pt.log(inputs[2]) + pt.zeros_like(value), axis=-1)
