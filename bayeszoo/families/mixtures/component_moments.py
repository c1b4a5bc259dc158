"""What is known of Gaussian components: expected statistics, and the parameters of conjugate distributions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from bayeszoo.families.mixtures.structures import Structure


@dataclass(frozen=True, eq=False)
class ComponentMoments:
    """Expected counts, means and scatters of K components. Moments of other rows, ``+``, pool as `moments.Moments` do.

    Attributes
    ----------
    n : ndarray of shape (K,)
        Expected number of rows.
    mean : ndarray of shape (K, D)
        Their weighted means; of an empty component any point.
    scatter : ndarray of shape (K, D, D), (K, D) or (K,)
        Weighted scatter about the mean: a matrix, its diagonal, or the trace.
    structure : Structure
        How scatters are written.
    """

    n: np.ndarray
    mean: np.ndarray
    scatter: np.ndarray
    structure: Structure

    def __add__(self, other: Self) -> Self:
        n, shift = self.n + other.n, other.mean - self.mean
        share = other.n / np.where(n > 0, n, 1.0)
        between = along(self.n * share, self.scatter) * self.structure.outer(shift)
        mean = self.mean + share[:, None] * shift
        return type(self)(n, mean, self.scatter + other.scatter + between, self.structure)


@dataclass(frozen=True, eq=False)
class Hyper:
    """Parameters of the distributions of K components: Sigma ~ InvWishart(nu, psi), mu | Sigma ~ N(m, Sigma / kappa).

    Attributes
    ----------
    m, kappa : ndarray of shape (K, D), (K,)
        Centre of each mean, and how many rows it is worth.
    nu, psi : ndarray of shape (K,), (K, D, D)
        Degrees of freedom and scale matrix. Diagonal: psi (K, D), each variance ~ InvGamma(nu / 2, psi / 2).
        Spherical: psi (K,), likewise. Tied: shapes (), (D, D).
    """

    m: np.ndarray
    kappa: np.ndarray
    nu: np.ndarray
    psi: np.ndarray


def along(values: Any, like: np.ndarray) -> np.ndarray:
    """Give an array trailing axes of length 1, so that it broadcasts with ``like``, which it begins."""
    return np.reshape(values, np.shape(values) + (1,) * (np.ndim(like) - np.ndim(values)))
