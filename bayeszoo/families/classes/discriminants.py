"""Discriminant coordinates of classes that share a covariance: the axes along which their means differ most."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Discriminants(NamedTuple):
    """Axes (..., D, R), a' Sigma a = I, by falling ``ratios`` (..., R) of variance between classes to that within.

    R is the smaller of D and the number of classes minus one; the signs of the axes are arbitrary.
    """

    ratios: np.ndarray
    axes: np.ndarray


def discriminants(shares: npt.ArrayLike, means: npt.ArrayLike, covariance: npt.ArrayLike) -> Discriminants:
    """Return the discriminant coordinates of K classes; leading axes of the parameters are draws.

    Parameters
    ----------
    shares : array of shape (..., K)
        Probabilities of the classes, the weights of their means.
    means : array of shape (..., K, D)
        Means of the features in each class.
    covariance : array of shape (..., D, D)
        Covariance of the features within every class.

    Notes
    -----
    Eigenvectors of Sigma^-1 B, where B is the covariance of the class means (Rao 1948; Hastie, Tibshirani and
    Friedman 2009, section 4.3.3), as singular vectors of the means in units of the factor of Sigma.
    """
    weights, means = np.asarray(shares)[..., None], np.asarray(means)
    factor = np.linalg.cholesky(np.asarray(covariance))
    centred = np.sqrt(weights) * (means - np.sum(weights * means, axis=-2, keepdims=True))
    _, lengths, directions = np.linalg.svd(np.linalg.solve(factor, centred.mT).mT, full_matrices=False)
    axes = np.linalg.solve(factor.mT, directions.mT)
    count = min(means.shape[-1], means.shape[-2] - 1)
    return Discriminants(np.square(lengths[..., :count]), axes[..., :count])
