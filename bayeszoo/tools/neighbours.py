"""Nearest neighbours with the number of neighbours and their weight averaged over: a pseudo-posterior.

Given the others the class of a row has the log probability beta times its share among the k nearest rows, less a
constant. The product of these conditionals is no joint density of the classes: there is no evidence and no simulator,
and the answer is labelled as pseudo. Holmes and Adams 2002.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import lazy_loader
import numpy as np
import scipy

from bayeszoo.data.read import Data, read
from bayeszoo.data.table.table import shown
from bayeszoo.distributions.posterior import QUANTILES
from bayeszoo.errors import InputError
from bayeszoo.tools.density import ClassAndFeatures, probabilities, units

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = lazy_loader.load("pandas")

sklearn = lazy_loader.load("sklearn")

MOST_NEIGHBOURS, MOST_BETA, BETAS = 100, 15.0, 151
"""Priors: k is uniform from 1 to the first, beta uniform from 0 to the second, on a grid of the third."""
PSEUDO = "pseudo-posterior of k and beta: the product of each class given the others is no density of the classes"


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The pseudo-posterior of k nearest neighbours.

    Attributes
    ----------
    data : Data
        The rows.
    weights : ndarray
        Of each number of neighbours, 1, 2, ..., and each beta, shape (K, betas); they sum to 1.
    betas : ndarray
        The values of beta.
    center, scale : ndarray
        What was taken from each feature, and what it was then divided by.
    """

    data: Data
    weights: np.ndarray
    betas: np.ndarray
    center: np.ndarray
    scale: np.ndarray

    @property
    def kind(self) -> str:
        """What the numbers are."""
        return "pseudo-posterior"

    @property
    def classes(self) -> list[str]:
        """The labels of the classes."""
        return list(map(str, self.data["class"]))

    @property
    def summary(self) -> pd.DataFrame:
        """One row each for ``k`` and ``beta``: mean, sd and quantiles of the pseudo-posterior."""
        values = {"k": (np.arange(1.0, len(self.weights) + 1), self.weights.sum(axis=1))}
        values["beta"] = self.betas, self.weights.sum(axis=0)
        return pd.DataFrame([_moments(*each) for each in values.values()], index=pd.Index(values, name="parameter"))

    def classify(self, new: Any, **options: Any) -> pd.DataFrame:
        """Return the probability of each class of new rows, ``p[CLASS]``, and the most probable one, ``decision``."""
        rows = read(ClassAndFeatures, new, new=True, like=self.data, **options)
        places = _nearest(self._scaled(self.data["X"]), self._scaled(rows["X"]), len(self.weights))
        p = np.zeros((len(places), len(self.classes)))
        for k, shares in enumerate(_shares(places, self.data["y"], len(self.classes))):
            for weight, beta in zip(self.weights[k], self.betas, strict=True):
                if weight > 1e-12:
                    p += weight * scipy.special.softmax(beta * shares, axis=1)
        return probabilities(p / p.sum(axis=1, keepdims=True), rows, self.classes)

    def _scaled(self, X: np.ndarray) -> np.ndarray:
        return np.asarray((X - self.center) / self.scale)


def knn(
    data: Any, *, most: int = MOST_NEIGHBOURS, most_beta: float = MOST_BETA, standardize: bool = True, **options: Any
) -> Neighbours:
    """Average k nearest neighbours over k and the weight of a neighbour.

    Parameters
    ----------
    data : anything that `read` takes
        A column of classes and columns of features; at most 3000 rows.
    most : int
        Largest number of neighbours; fewer where there are fewer rows. The prior of k is uniform.
    most_beta : float
        Largest beta, whose prior is uniform from 0.
    standardize : bool
        Whether distances are between features divided by their standard deviations.
    **options
        Of `read`: ``target``, ``features`` and how the file is written.

    Returns
    -------
    Neighbours
        Its ``summary`` has k and beta, ``classify(new)`` the classes of new rows, averaged over both.

    Raises
    ------
    InputError
        When there are too few or too many rows, or a feature is constant.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> rows = {"y": ["a", "a", "a", "b", "b", "b"], "x": [1.0, 2.0, 3.0, 6.0, 7.0, 8.0]}
    >>> answer = bz.knn(rows, target="y", most=3)
    >>> answer.classify({"x": [2.5, 7.5]})["decision"].tolist()
    ['a', 'b']
    """
    if most < 1:
        raise InputError(f"most must be >= 1, got {shown(most)}", "out_of_range")
    if not (0 < most_beta < math.inf):
        raise InputError(f"most_beta must be > 0 and finite, got {shown(most_beta)}", "out_of_range")
    rows = read(ClassAndFeatures, data, **options)
    center, scale = units(rows["X"], standardize)
    betas, codes = np.linspace(0.0, most_beta, BETAS), rows["y"]
    X = (rows["X"] - center) / scale
    places = _nearest(X, X, min(most, len(X) - 1) + 1)
    own = np.arange(len(X))[:, None]
    others = np.array([row[row != i][: places.shape[1] - 1] for i, row in enumerate(places)])
    scores = [
        [float(scipy.special.log_softmax(b * shares, axis=1)[own[:, 0], codes].sum()) for b in betas]
        for shares in _shares(others, codes, len(rows["class"]))
    ]
    weights = scipy.special.softmax(np.array(scores))
    return Neighbours(rows, weights, betas, center, scale)


def _nearest(rows: np.ndarray, points: np.ndarray, count: int) -> np.ndarray:
    """Return the places of the nearest rows of each point, the nearest first, shape (points, count)."""
    machine = sklearn.neighbors.NearestNeighbors(n_neighbors=min(count, len(rows))).fit(rows)
    return np.asarray(machine.kneighbors(points, return_distance=False))


def _shares(places: np.ndarray, codes: np.ndarray, classes: int) -> np.ndarray:
    """Return the shares of the classes among the 1, 2, ... nearest rows, shape (K, points, classes)."""
    counts = np.cumsum(np.eye(classes)[codes[places]], axis=1)
    return np.moveaxis(counts / np.arange(1, places.shape[1] + 1)[:, None], 1, 0)


def _moments(values: np.ndarray, weights: np.ndarray) -> dict[str, float]:
    mean = float(values @ weights)
    below = np.cumsum(weights)
    known = {"mean": mean, "sd": math.sqrt(float((values - mean) ** 2 @ weights))}
    return known | {name: float(values[np.searchsorted(below, level)]) for name, level in QUANTILES.items()}
