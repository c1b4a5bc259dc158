"""The pivoted Cholesky factor of a covariance matrix that may be singular, extended to new places.

With a smooth kernel most rows follow from a few, up to rounding. The factor takes rows in turn, each time the first
whose variance given the rows taken is at least half of the largest such variance, until almost none is left: no jitter
is added. Its columns belong to the rows taken. (In the order of the table, nearly equal rows would lose all digits.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

NOTHING = 1e-13
"""Share of the largest variance below which a row follows from the rows taken."""


@dataclass(frozen=True, eq=False)
class Root:
    """A factor L (n, r) with L L' = K up to rounding, and the indices of the r rows taken, in order."""

    taken: np.ndarray
    factor: np.ndarray
    least: float
    """Variance below which a row counts as determined."""

    @classmethod
    def of(cls, covariance: np.ndarray) -> Root:
        """Factor a covariance matrix (n, n)."""
        left, taken = np.diag(covariance).copy(), list[int]()
        factor, least = np.zeros_like(covariance), NOTHING * float(np.max(left, initial=0.0))
        while len(taken) < len(left) and (largest := float(np.max(left))) > least:
            i, r = int(np.argmax(left >= largest / 2)), len(taken)
            column = (covariance[:, i] - factor[:, :r] @ factor[i, :r]) / np.sqrt(left[i])
            column[taken] = 0.0
            factor[:, r] = column
            left = np.maximum(left - np.square(column), 0.0)
            left[i] = 0.0
            taken.append(i)
        return cls(np.array(taken, dtype=np.int64), factor[:, : len(taken)].copy(), least)

    @classmethod
    def by_size(cls, covariance: np.ndarray) -> Root:
        """Factor a covariance matrix, each time by the row of the largest remaining variance: fast, as LAPACK does it.

        If rows are alike, the choice and order of the rows taken depend on rounding.
        """
        least = NOTHING * float(np.max(np.diag(covariance), initial=0.0))
        lower, pivots, rank, _ = scipy.linalg.lapack.dpstrf(covariance, tol=least, lower=1)
        taken, factor = pivots - 1, np.empty((len(covariance), rank))
        factor[taken] = np.tril(lower)[:, :rank]
        return cls(taken[:rank].astype(np.int64), factor, least)

    def elsewhere(self, cross: np.ndarray, variances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows (m, r) of the factor at other places, and their variances (m,) given the rows taken.

        ``cross`` (r, m) are the covariances of the rows taken with the places, ``variances`` (m,) those of the places.
        """
        lower = self.factor[self.taken]
        rows = scipy.linalg.solve_triangular(lower, cross, lower=True, check_finite=False).T
        left = variances - np.sum(np.square(rows), axis=1)
        return rows, np.where(left > self.least, left, 0.0)


def root_of(covariance: np.ndarray) -> np.ndarray:
    """Return a root R, R R' = C, of a covariance matrix that may be singular, by its eigenvectors."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
