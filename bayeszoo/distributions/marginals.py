"""Rows of several numbers, each of which has a distribution of SciPy's by itself."""

from __future__ import annotations

from typing import Any

import numpy as np


class ByMarginals:
    """Moments and quantiles of each entry; a subclass has the distributions of the entries in ``_marginals``."""

    _marginals: Any

    def mean(self) -> np.ndarray:
        """Return the mean of each entry, of shape (..., rows, K); without one as SciPy says it."""
        return np.asarray(self._marginals.mean())

    def var(self) -> np.ndarray:
        """Return the variance of each entry, of shape (..., rows, K); without one as SciPy says it."""
        return np.asarray(self._marginals.var())

    def std(self) -> np.ndarray:
        """Return the standard deviation of each entry, of shape (..., rows, K); without one as SciPy says it."""
        return np.asarray(self._marginals.std())

    def ppf(self, q: float) -> np.ndarray:
        """Return the quantile of each entry, of shape (..., rows, K); NaN where it is not known."""
        return np.asarray(self._marginals.ppf(q))
