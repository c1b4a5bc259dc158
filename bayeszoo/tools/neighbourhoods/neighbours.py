"""Nearest neighbours, averaged over the number of neighbours and their weight: a pseudo-posterior.

Given the other rows, the log probability of a class of a row is beta times the share of the class among the k nearest
rows, up to a constant. The product of these conditionals is no joint density of the classes: there is no evidence and
no simulator, and the answer is labelled as pseudo. Holmes and Adams 2002.
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
from bayeszoo.tools.neighbourhoods.density import CLASS_AND_FEATURES, probabilities, units

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = lazy_loader.load("pandas")

sklearn = lazy_loader.load("sklearn")

MOST_NEIGHBOURS, MOST_BETA, BETAS = 100, 15.0, 151
"""Priors: k is uniform from 1 to the first number, beta uniform from 0 to the second, on a grid of the third size."""
PSEUDO = "pseudo-posterior of k and beta: the product of each class given the others is no density of the classes"


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The pseudo-posterior of k nearest neighbours.

    Attributes
    ----------
    data : Data
        The rows.
    weights : ndarray
        Pseudo-posterior probabilities of the numbers of neighbours 1, 2, ... and of the betas, shape (K, betas).
    betas : ndarray
        The grid of beta.
    center, scale : ndarray
        The number subtracted from each feature, and the divisor after that.
    """

    data: Data
    weights: np.ndarray
    betas: np.ndarray
    center: np.ndarray
    scale: np.ndarray

    @property
    def kind(self) -> str:
        """How the numbers were computed."""
        return "pseudo-posterior"

    @property
    def classes(self) -> list[str]:
        """The labels of the classes."""
        return list(map(str, self.data["class"]))

    @property
    def summary(self) -> pd.DataFrame:
        """Mean, sd and quantiles of the pseudo-posterior of ``k`` and ``beta``, a row each."""
        marginals = {"k": (np.arange(1.0, len(self.weights) + 1), self.weights.sum(axis=1))}
        marginals["beta"] = self.betas, self.weights.sum(axis=0)
        rows = [_moments(values, weights) for values, weights in marginals.values()]
        return pd.DataFrame(rows, index=pd.Index(marginals, name="parameter"))

    def classify(self, new: Any, **options: Any) -> pd.DataFrame:
        """Return the probability of each class of new rows, ``p[CLASS]``, and the most probable one, ``decision``."""
        rows = read(CLASS_AND_FEATURES, new, new=True, like=self.data, **options)
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
        Largest number of neighbours, at most the number of other rows. The prior of k is uniform.
    most_beta : float
        Largest beta, whose prior is uniform from 0.
    standardize : bool
        Whether to divide features by their standard deviations before distances are taken.
    **options
        Options of `read`: ``target``, ``features`` and the format of the file.

    Returns
    -------
    Neighbours
        ``summary`` has k and beta; ``classify(new)`` returns the classes of new rows, averaged over both.

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
    rows = read(CLASS_AND_FEATURES, data, **options)
    center, scale = units(rows["X"], standardize, rows)
    betas, codes = np.linspace(0.0, most_beta, BETAS), rows["y"]
    X = (rows["X"] - center) / scale
    places = _nearest(X, X, min(most, len(X) - 1) + 1)
    row_numbers = np.arange(len(X))
    others = np.array([row[row != i][: places.shape[1] - 1] for i, row in enumerate(places)])
    scores = [
        [float(scipy.special.log_softmax(b * shares, axis=1)[row_numbers, codes].sum()) for b in betas]
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
    moments = {"mean": mean, "sd": math.sqrt(float((values - mean) ** 2 @ weights))}
    return moments | {name: float(values[np.searchsorted(below, level)]) for name, level in QUANTILES.items()}
