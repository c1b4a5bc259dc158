"""Loadings up to rotation, represented by a lower trapezoidal matrix with a positive diagonal.

The likelihood of a factor model depends on the loadings W, D x q, through W W' only. W = L Q with Q orthogonal and L
zero above a positive diagonal; L is unique unless the first q rows of W are dependent. If the entries of W are
independent N(0, scale^2), those of L are independent, too: L_jj is scale times a chi variate of q - j + 1 degrees of
freedom, j = 1..q, and L_ij ~ N(0, scale^2) below it (Bartlett 1933; Muirhead 1982, theorem 3.2.14; Geweke and Zhou 1996
on factor models). So a prior of W is a prior of L, and only the arbitrary rotation of W is left out.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import scipy

from bayeszoo.errors import InputError
from bayeszoo.foundation.numerics.constants import LOG_2_PI


@lru_cache(maxsize=128)
def entries(rows: int, factors: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the row and column indices of the entries on and below the diagonal, row by row.

    Raises `InputError` when there are not more rows than factors: fewer factors already give every D x D covariance.
    """
    if factors >= rows:
        several, most = "s" * (factors > 1), f"at most {rows - 1}" if rows > 1 else "none is possible"
        raise InputError(f"{factors} factor{several} of {rows} column{'s' * (rows > 1)}: {most}", "too_many_factors")
    return np.tril_indices(rows, 0, factors)


def count(rows: int, factors: int) -> int:
    """Return the number of free entries, D q - q (q - 1) / 2."""
    return rows * factors - factors * (factors - 1) // 2


def identified(loadings: npt.ArrayLike) -> np.ndarray:
    """Return the L of W = L Q, shape (..., D, q) as W; leading axes are draws."""
    W = np.asarray(loadings, dtype=np.float64)
    rotation, upper = np.linalg.qr(W[..., : W.shape[-1], :].mT)
    signs = np.where(np.diagonal(upper, axis1=-2, axis2=-1) < 0, -1.0, 1.0)
    return np.tril(W @ (rotation * signs[..., None, :]))


def turned(L: np.ndarray) -> np.ndarray:
    """Return a trapezoidal matrix (D, q) with the signs of columns changed so that no diagonal entry is negative."""
    return np.asarray(L * np.where(np.diagonal(L) < 0, -1.0, 1.0))


def log_density(L: np.ndarray, scale: float) -> np.ndarray:
    """Return the log density of the free entries of L (..., D, q) when W has entries N(0, scale^2), shape (...,).

    A 0 on the diagonal gives -inf, except in the last column: chi with one degree of freedom is half-normal.
    """
    L = np.asarray(L, dtype=np.float64)
    degrees = np.arange(L.shape[-1], 0, -1.0)
    diagonal = np.diagonal(L, axis1=-2, axis2=-1)
    powers = scipy.special.xlogy(degrees - 1, np.where(diagonal >= 0, diagonal, np.nan) / scale)
    free, below = count(*L.shape[-2:]), count(*L.shape[-2:]) - len(degrees)
    constant = np.sum((1 - degrees / 2) * math.log(2) - scipy.special.gammaln(degrees / 2))
    constant -= below * LOG_2_PI / 2 + free * math.log(scale)
    return np.asarray(constant + powers.sum(axis=-1) - np.sum(np.square(L / scale), axis=(-2, -1)) / 2)
