"""The distribution of maximum entropy with given means of features: an exponential family (Jaynes 1957).

W4400, information theory; CS725, lectures 9 and 14.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from bayeszoo.errors import InputError, NumericalError
from bayeszoo.foundation.gate import failures
from bayeszoo.foundation.numerics.newton import Derivatives, climb

RANK = 1e-10
"""Singular value relative to the largest, below which features count as linearly dependent."""


@dataclass(frozen=True, eq=False)
class MaximumEntropy:
    """Probabilities p_s proportional to base_s exp(multipliers' features_s).

    Attributes
    ----------
    probabilities : ndarray of shape (S,)
        Probabilities of the S states.
    multipliers : ndarray of shape (F,)
        Multipliers of the features; for dependent features, those of the smallest norm.
    log_partition : float
        Log of the sum of base_s exp(multipliers' features_s).
    entropy : float
        Entropy relative to the base measure, -sum p log(p / base), in nats; without a base the entropy.
    """

    probabilities: np.ndarray
    multipliers: np.ndarray
    log_partition: float
    entropy: float


def maximum_entropy(features: npt.ArrayLike, means: npt.ArrayLike, base: npt.ArrayLike | None = None) -> MaximumEntropy:
    """Return the distribution of maximum entropy whose features have the given means.

    Parameters
    ----------
    features : array of shape (S,) or (S, F)
        Features of each of S states.
    means : float or array of shape (F,)
        Means that the features are to have.
    base : array of shape (S,), optional
        Measure of the states, > 0, relative to which the entropy is; by default uniform.

    Returns
    -------
    MaximumEntropy
        The dual, a concave function of the multipliers, is climbed by Newton's method to a slope of 1e-10.

    Raises
    ------
    InputError
        When the shapes do not match, or no distribution has these means: they lie outside the convex hull of the
        features, or on its edge, where states have probability 0 and multipliers are infinite.
    NumericalError
        When the means are so near to the edge that the climb does not converge.

    Examples
    --------
    A die whose throws have mean 4.5 (Jaynes):

    >>> maximum_entropy([1, 2, 3, 4, 5, 6], 4.5).probabilities.round(4).tolist()
    [0.0544, 0.0788, 0.1142, 0.1654, 0.2398, 0.3475]
    """
    table, target, measure = _checked(features, means, base)
    centred = table - target
    scale = np.where((size := np.abs(centred).max(axis=0)) > 0, size, 1.0)
    left, lengths, right = np.linalg.svd(centred / scale, full_matrices=False)
    kept = lengths > RANK * lengths.max(initial=0.0)
    coordinates, log_base = left[:, kept] * lengths[kept], np.log(measure)
    _require_inside(coordinates)

    def dual(x: np.ndarray) -> Derivatives:
        terms = log_base + coordinates @ x
        p = scipy.special.softmax(terms)
        mean = p @ coordinates
        deviations = coordinates - mean
        return Derivatives(-float(scipy.special.logsumexp(terms)), -mean, deviations.T @ (p[:, None] * deviations))

    peak = climb(dual, np.zeros(int(kept.sum())))
    if wrong := failures(peak.certificate()):
        raise NumericalError(f"no maximum was reached, {wrong}: the means are near the edge", "not_converged")
    multipliers = right[kept].T @ peak.x / scale
    terms = log_base + coordinates @ peak.x
    p, log_partition = scipy.special.softmax(terms), float(scipy.special.logsumexp(terms) + multipliers @ target)
    return MaximumEntropy(p, multipliers, log_partition, float(scipy.special.logsumexp(terms)))


def _checked(features: object, means: object, base: object) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return arrays (S, F), (F,) and (S,), or refuse them."""
    table, target = np.asarray(features, dtype=np.float64), np.atleast_1d(np.asarray(means, dtype=np.float64))
    table = table[:, None] if table.ndim == 1 else table
    measure = np.ones(len(table)) if base is None else np.asarray(base, dtype=np.float64)
    if table.ndim != 2 or target.shape != table.shape[1:] or measure.shape != table.shape[:1]:
        shapes = f"features {table.shape}, means {target.shape}, base {measure.shape}"
        raise InputError(f"the shapes of the arrays do not match: {shapes}", "wrong_shape")
    if not len(table):
        raise InputError("there are no states", "no_data")
    if not all(np.isfinite(values).all() for values in (table, target, measure)) or (measure <= 0).any():
        raise InputError("features and means must be finite, and the base > 0", "out_of_range")
    return table, target, measure


def _require_inside(coordinates: np.ndarray) -> None:
    """Require positive weights of the states (S, R) with mean 0: linear programming maximizes the smallest weight."""
    states, rank = coordinates.shape
    equal = np.zeros((rank + 1, states + 1))
    equal[:rank, :states], equal[rank, :states] = coordinates.T, 1.0
    above = np.column_stack([-np.eye(states), np.ones(states)])
    goal = np.append(np.zeros(states), -1.0)
    sides = {"A_ub": above, "b_ub": np.zeros(states), "A_eq": equal, "b_eq": np.append(np.zeros(rank), 1.0)}
    best = scipy.optimize.linprog(goal, **sides, bounds=[(0, 1)] * states + [(None, 1)])
    if best.status != 0 or -best.fun <= 1e-12:
        where = "outside the convex hull of the features" if best.status != 0 else "on the edge of their convex hull"
        raise InputError(f"no distribution in which all states occur has these means: they lie {where}", "out_of_range")
