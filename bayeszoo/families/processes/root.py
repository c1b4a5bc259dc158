"""The Cholesky factor of a covariance matrix that may be singular, and of places that it does not have.

Of a smooth kernel most rows follow from a few, but for rounding. The factor takes rows in turn, each time the first
whose variance given those taken is at least half of the largest one, until next to nothing is left: no jitter is added.
Its columns belong to the rows taken. (Taken in the order of the table, rows nearly equal would leave no digits.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

NOTHING = 1e-13
"""Share of the largest variance below which a row follows from those taken."""


@dataclass(frozen=True, eq=False)
class Root:
    """A factor L (n, r) with L L' = K but for rounding, and the places of the r rows taken, in their order."""

    taken: np.ndarray
    factor: np.ndarray
    least: float
    """Variance that counts for nothing."""

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
        """Factor a covariance matrix, each time by the row of the largest variance left: LAPACK does so in little time.

        Which rows are taken, and in which order, hangs on the last digit where rows are alike.
        """
        least = NOTHING * float(np.max(np.diag(covariance), initial=0.0))
        lower, pivots, rank, _ = scipy.linalg.lapack.dpstrf(covariance, tol=least, lower=1)
        taken, factor = pivots - 1, np.empty((len(covariance), rank))
        factor[taken] = np.tril(lower)[:, :rank]
        return cls(taken[:rank].astype(np.int64), factor, least)

    def elsewhere(self, cross: np.ndarray, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows (m, r) of the factor at other places, and the variances (m,) that those taken leave there.

        ``cross`` (r, m) are the covariances of the rows taken with the places, ``own`` (m,) the variances of these.
        """
        lower = self.factor[self.taken]
        rows = scipy.linalg.solve_triangular(lower, cross, lower=True, check_finite=False).T
        left = own - np.sum(np.square(rows), axis=1)
        return rows, np.where(left > self.least, left, 0.0)


def root_of(covariance: np.ndarray) -> np.ndarray:
    """Return a root R, R R' = C, of a covariance matrix that may be singular, by its eigenvectors."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
