"""Transforms of parameters that PyMC lacks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc.logprob.transforms import Transform

from bayeszoo.precision import product


class Cholesky(Transform):
    """A covariance matrix as its Cholesky factor L with the log of the diagonal, packed by rows.

    Every real vector of length D (D + 1) / 2 is a covariance matrix, so a sampler cannot leave the cone.

    Parameters
    ----------
    size : int
        D.
    """

    name = "cholesky"

    def __init__(self, size: int) -> None:
        self.rows, self.columns = np.tril_indices(size)
        self.diagonal = np.flatnonzero(self.rows == self.columns)
        self.size = size

    def forward(self, value: Any, *inputs: Any) -> Any:
        """Map Sigma, shape (D, D), to the packed factor."""
        packed = pt.linalg.cholesky(value)[self.rows, self.columns]
        return pt.set_subtensor(packed[self.diagonal], pt.log(packed[self.diagonal]))

    def backward(self, value: Any, *inputs: Any) -> Any:
        """Map the packed factor to Sigma = L L'."""
        factor = self.factor(value)
        return product(factor, factor.T)

    def factor(self, value: Any) -> Any:
        """Unpack L."""
        packed = pt.set_subtensor(value[self.diagonal], pt.exp(value[self.diagonal]))
        return pt.zeros((self.size, self.size), dtype="float64")[self.rows, self.columns].set(packed)

    def log_jac_det(self, value: Any, *inputs: Any) -> Any:
        """Log of |d Sigma / d value| = 2^D prod L_ii^(D - i + 2), with i = 1..D.

        The lower triangle of L L' has derivative 2^D prod L_ii^(D - i + 1) in that of L (Muirhead 1982, theorem
        2.1.9), and each L_ii is the exponential of its coordinate.
        """
        powers = np.arange(self.size + 1.0, 1.0, -1.0)
        return np.float64(self.size * np.log(2.0)) + pt.sum(powers * value[self.diagonal])
