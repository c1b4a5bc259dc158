"""Transforms of parameters that PyMC lacks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc.logprob.transforms import Transform

from bayeszoo.likelihoods.ops.cholesky import CovariancesOfFactors


class Cholesky(Transform):
    """A covariance matrix as its Cholesky factor L with the log of the diagonal, packed by rows.

    Every real vector of length D (D + 1) / 2 is a covariance matrix, so a sampler cannot leave the cone. A leading axis
    is that of further matrices.

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
        """Map Sigma, shape (D, D) or (K, D, D), to the packed factor."""
        packed = pt.linalg.cholesky(value)[..., self.rows, self.columns]
        return pt.set_subtensor(packed[..., self.diagonal], pt.log(packed[..., self.diagonal]))

    def backward(self, value: Any, *inputs: Any) -> Any:
        """Map the packed factor to Sigma = L L'."""
        covariances = CovariancesOfFactors(self.size)
        return covariances(value) if value.type.ndim == 2 else covariances(value[None])[0]

    def log_jac_det(self, value: Any, *inputs: Any) -> Any:
        """Log of |d Sigma / d value| = 2^D prod L_ii^(D - i + 2), with i = 1..D, of each matrix.

        The lower triangle of L L' has derivative 2^D prod L_ii^(D - i + 1) in that of L (Muirhead 1982, theorem
        2.1.9), and each L_ii is the exponential of its coordinate.
        """
        powers = np.where(self.rows == self.columns, self.size + 1.0 - self.rows, 0.0)
        return np.float64(self.size * np.log(2.0)) + pt.sum(powers * value, axis=-1)
