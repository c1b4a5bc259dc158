"""Gaussian rows in PyMC as the textbook has them, also where numbers are missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm

from bayeszoo.families.statistics.patterns import Patterns


def GaussianRows(name: str, mean: Any, cov: Any, rows: np.ndarray) -> None:
    """Declare that rows are Gaussian, each by the numbers that it has.

    Parameters
    ----------
    name : str
        The observed variable, with the axes ``row`` and ``column``; where numbers are missing, a potential.
    mean, cov : tensor, shape (D,) and (D, D)
        Mean and covariance of a whole row.
    rows : ndarray, shape (N, D)
        The rows; NaN is missing.
    """
    stats = Patterns.of(rows)
    if stats.is_complete:
        given = pm.Data(f"{name}_data", rows, dims=("row", "column"))
        pm.MvNormal(name, mu=mean, cov=cov, observed=given, dims=("row", "column"))
        return
    has, terms = ~np.isnan(rows), []
    for seen in stats.observed[stats.observed.any(axis=1)]:
        at, those = np.flatnonzero(seen), rows[(has == seen).all(axis=1)][:, seen]
        each = pm.MvNormal.dist(mu=mean[at], cov=cov[at][:, at])
        terms.append(pm.math.sum(pm.logp(each, those)))
    pm.Potential(name, pm.math.sum(pm.math.stack(terms)))
