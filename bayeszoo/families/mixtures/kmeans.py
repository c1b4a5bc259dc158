"""Clusters to start from, by SciPy's k-means++ (Arthur and Vassilvitskii 2007): around rows far from each other."""

from __future__ import annotations

import warnings

import numpy as np
import scipy

from bayeszoo.families.statistics.moments import Moments


def clusters(Y: np.ndarray, K: int, rng: np.random.Generator) -> np.ndarray:
    """Choose K rows and return which of them each row is nearest to; no cluster is empty.

    Parameters
    ----------
    Y : ndarray of shape (N, D)
        Rows, N >= K. Columns are measured in their standard deviations.
    K : int
        How many clusters.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of int, shape (N,)
    """
    stats = Moments.of(Y)
    with warnings.catch_warnings(), np.errstate(invalid="ignore"):
        warnings.simplefilter("ignore")  # of equal rows some clusters are empty: see below
        _, nearest = scipy.cluster.vq.kmeans2((Y - stats.mean) / stats.sd, K, iter=1, minit="++", rng=rng)
    for k in np.setdiff1d(np.arange(K), nearest):
        largest = np.argmax(np.bincount(nearest))
        nearest[np.flatnonzero(nearest == largest)[-1]] = k
    return nearest
