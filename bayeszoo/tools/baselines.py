"""Baselines of scikit-learn by their errors on rows that they did not see: they have no density to compare.

Support vector machine, perceptron, trees alone, boosted and in a forest, and nearest neighbours see the rows that a
model sees.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import lazy_loader
import numpy as np

from bayeszoo.data.read import Data
from bayeszoo.errors import InputError
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import Classifies

sklearn = lazy_loader.load("sklearn")

LARGEST_SEED = 2**32


@dataclass(frozen=True, eq=False)
class Losses:
    """What rows held out cost: wrong decisions or squared errors of ``trials``, and the sum of their log scores.

    Of draws the sum of losses, and that of log scores, have Monte Carlo errors of at most ``mcse_...``.
    """

    losses: np.ndarray
    trials: np.ndarray
    log_score: float = math.nan
    mcse_losses: float = 0.0
    mcse_log_score: float = math.nan


def maker_of(kind: type[Model], name: str) -> Callable[[int], Any]:
    """Return what makes a baseline from a seed, or refuse one that is not known, or not for this outcome."""
    known = machines_of_classes() if issubclass(kind, Classifies) else machines_of_real_outcomes()
    if name not in known:
        raise InputError(
            f"{kind.name} has no baseline {name!r}", "unknown_method", hint=f"take some of {', '.join(known)}"
        )
    return known[name]


def machines_of_classes() -> dict[str, Callable[[int], Any]]:
    """Return what makes each baseline of classes from a seed."""
    stump = sklearn.tree.DecisionTreeClassifier
    return {
        "svc": lambda seed: sklearn.svm.SVC(random_state=seed),
        "perceptron": lambda seed: sklearn.linear_model.Perceptron(random_state=seed),
        "boosting": lambda seed: sklearn.ensemble.AdaBoostClassifier(stump(max_depth=1), random_state=seed),
        "gradient_boosting": lambda seed: sklearn.ensemble.GradientBoostingClassifier(random_state=seed),
        "tree": lambda seed: stump(random_state=seed),
        "forest": lambda seed: sklearn.ensemble.RandomForestClassifier(random_state=seed),
        "neighbours": lambda _: sklearn.neighbors.KNeighborsClassifier(),
    }


def machines_of_real_outcomes() -> dict[str, Callable[[int], Any]]:
    """Return what makes each baseline of a real outcome from a seed."""
    return {
        "gradient_boosting": lambda seed: sklearn.ensemble.GradientBoostingRegressor(random_state=seed),
        "tree": lambda seed: sklearn.tree.DecisionTreeRegressor(random_state=seed),
        "forest": lambda seed: sklearn.ensemble.RandomForestRegressor(random_state=seed),
        "neighbours": lambda _: sklearn.neighbors.KNeighborsRegressor(),
    }


def errors_of(kind: type[Model], maker: Callable[[int], Any], seen: Data, new: Data, seed: int) -> Losses:
    """Return the errors of a baseline on new rows; features are in standard deviations of those seen."""
    is_class = issubclass(kind, Classifies)
    (rows, weights), (others, trials) = (kind.inputs.observations(part.arrays) for part in (seen, new))
    scaler = sklearn.preprocessing.StandardScaler().fit(seen["X"])
    outcome, expected = kind.inputs.outcome(rows), kind.inputs.outcome(others)
    known = weights > 0
    if is_class and len(np.unique(outcome[known])) < 2:
        raise InputError(
            "the rows that are not held out are of one class", "one_class", hint="hold out fewer, or take another seed"
        )
    machine = _fitted(maker(seed % LARGEST_SEED), scaler.transform(rows["X"])[known], outcome[known], weights[known])
    predicted = machine.predict(scaler.transform(others["X"]))
    losses = trials * (predicted != expected) if is_class else np.square(predicted - expected)
    return Losses(losses.astype(np.float64), np.asarray(trials, dtype=np.float64))


def _fitted(machine: Any, X: np.ndarray, outcome: np.ndarray, weights: np.ndarray) -> Any:
    """Fit a machine to rows that count ``weights`` times; nearest neighbours take these as equal rows."""
    counts = weights.astype(np.int64)
    if getattr(machine, "n_neighbors", 1) > counts.sum():
        raise InputError("fewer rows than neighbours", "too_few_rows", hint="hold out fewer, or leave neighbours out")
    if np.all(weights == 1):  # equal weights change what a seed draws
        return machine.fit(X, outcome)
    if sklearn.utils.validation.has_fit_parameter(machine, "sample_weight"):
        return machine.fit(X, outcome, sample_weight=weights)
    return machine.fit(np.repeat(X, counts, axis=0), np.repeat(outcome, counts))
