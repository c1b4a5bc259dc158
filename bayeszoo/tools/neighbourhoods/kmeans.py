"""K-means, by scikit-learn or row by row: hard assignments, a baseline for mixtures of Gaussians.

K-means is the limit of EM for components with covariance s^2 I as s goes to 0. There is no density, hence no evidence
and no score: only the squared distances of the rows from their centres, and the rows of each cluster.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import lazy_loader
import numpy as np
import scipy

from bayeszoo.data.read import Data
from bayeszoo.data.table.table import shown
from bayeszoo.errors import InputError
from bayeszoo.tools.neighbourhoods.density import read_numbers

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = lazy_loader.load("pandas")

sklearn = lazy_loader.load("sklearn")

STARTS = 20
"""Random starts of scikit-learn, which keeps the best."""


@dataclass(frozen=True, eq=False)
class Clusters:
    """Rows assigned to clusters.

    Attributes
    ----------
    centres : ndarray
        Centres of the clusters, shape (K, columns); the largest cluster first.
    labels : ndarray
        Cluster of each row, from 0.
    objective : float
        Sum of the squared distances of the rows from their centres.
    seed : int
        Source of the starts.
    data : Data
        The rows.
    """

    centres: np.ndarray
    labels: np.ndarray
    objective: float
    seed: int
    data: Data

    @property
    def summary(self) -> pd.DataFrame:
        """A row for each cluster: its number of rows, and the centre in each column."""
        names = list(map(str, self.data["column"])) if "column" in self.data else ["centre"]
        frame = pd.DataFrame(self.centres, columns=names)
        frame.insert(0, "rows", np.bincount(self.labels, minlength=len(self.centres)))
        return frame.set_index(pd.Index(np.arange(1, len(frame) + 1), name="cluster"))

    def apart(self, assigned: pd.DataFrame) -> int:
        """Return the number of rows that a fit assigns to another cluster, in the numbering that agrees best.

        ``assigned`` is the result of `assign` for a fit of the same rows. Rows whose assignment is withheld, where
        ``component`` is NaN, do not count.
        """
        if len(assigned) != len(self.labels):
            raise InputError("the fit is of other rows", "not_comparable", hint="fit the table that was clustered")
        is_shown = assigned["component"].notna().to_numpy()
        components = assigned["component"].to_numpy()[is_shown].astype(np.int64) - 1
        size = max(len(self.centres), int(components.max(initial=0)) + 1)
        table = np.zeros((size, size), dtype=np.int64)
        np.add.at(table, (self.labels[is_shown], components), 1)
        return len(components) - int(table[scipy.optimize.linear_sum_assignment(table, maximize=True)].sum())


def kmeans(data: Any, K: int = 2, *, sequential: bool = False, seed: int | None = None, **options: Any) -> Clusters:
    """Assign rows to K clusters with the smallest squared distances.

    Parameters
    ----------
    data : anything that `read` takes
        Columns of real numbers: all columns of a table, or those that ``column`` or ``columns`` names.
    K : int
        Number of clusters, at most the number of different rows.
    sequential : bool
        Whether to assign each row once, in the order of the table: it joins the nearest cluster, whose centre becomes
        the mean of its rows so far (MacQueen 1967). The first K different rows are the first centres.
    seed : int, optional
        Source of the starts; one is drawn without it.
    **options
        Options of `read`: ``column`` or ``columns``, and the format of the file.

    Returns
    -------
    Clusters
        Labels, centres and the objective, and ``apart(bz.assign(tree))`` for comparison with a mixture.

    Raises
    ------
    InputError
        When there are fewer different rows than clusters.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> answer = bz.kmeans([1.0, 2.0, 3.0, 10.0, 11.0], K=2, seed=1)
    >>> answer.summary["centre"].tolist(), answer.objective
    ([2.0, 10.5], 2.5)
    """
    rows = read_numbers(data, **options)
    values = rows["Y"] if "Y" in rows else rows["y"][:, None]
    if not 1 <= K <= len(np.unique(values, axis=0)):
        problem = f"K must be from 1 to the number of different rows, got {shown(K)}"
        raise InputError(problem, "out_of_range", hint="ask for fewer clusters")
    seed = secrets.randbelow(2**31 - 1) if seed is None else seed
    if sequential:
        centres, labels = _row_by_row(values, K)
    else:
        machine = sklearn.cluster.KMeans(K, n_init=STARTS, tol=0.0, random_state=seed % 2**32).fit(values)
        centres, labels = machine.cluster_centers_, machine.labels_
    order = np.argsort(-np.bincount(labels, minlength=K), kind="stable")
    labels = np.argsort(order)[labels]
    objective = float(np.square(values - centres[order][labels]).sum())
    return Clusters(centres[order], labels, objective, seed, rows)


def _row_by_row(values: np.ndarray, K: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the centres after one pass, and the cluster that each row joined."""
    first = np.sort(np.unique(values, axis=0, return_index=True)[1])[:K]
    centres, counts, labels = values[first].copy(), np.zeros(K), np.zeros(len(values), dtype=np.int64)
    for i, row in enumerate(values):
        k = int(np.argmin(np.square(centres - row).sum(axis=1)))
        labels[i] = k
        counts[k] += 1
        centres[k] += (row - centres[k]) / counts[k]
    return centres, labels
