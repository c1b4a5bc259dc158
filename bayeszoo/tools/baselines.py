"""Errors of baselines of scikit-learn on rows held out; the baselines have no density to compare.

Support vector machine, perceptron, single trees, boosted trees, forests and nearest neighbours are fitted to the same
rows as a model.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import lazy_loader
import numpy as np

from bayeszoo.data.inputs.mixed.arrays import COUNTS, LEVEL, LEVELS, REALS
from bayeszoo.data.read import Data
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Arrays
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import Classifies

sklearn = lazy_loader.load("sklearn")

LARGEST_SEED = 2**32


@dataclass(frozen=True, eq=False)
class Losses:
    """Losses of rows held out, wrong decisions or squared errors; their ``trials``, and the sum of the log scores.

    Losses and log scores by draws have Monte Carlo errors ``mcse_...`` of their sums, at most.
    """

    losses: np.ndarray
    trials: np.ndarray
    log_score: float = math.nan
    mcse_losses: float = 0.0
    mcse_log_score: float = math.nan


def maker_of(kind: type[Model], name: str) -> Callable[[int], Any]:
    """Return the function that makes a baseline from a seed; refuse a name that this outcome has no baseline for."""
    makers = machines_of_classes() if issubclass(kind, Classifies) else machines_of_real_outcomes()
    if name not in makers:
        raise InputError(
            f"{kind.name} has no baseline {name!r}", "unknown_method", hint=f"take some of {', '.join(makers)}"
        )
    return makers[name]


def machines_of_classes() -> dict[str, Callable[[int], Any]]:
    """Return the functions that make the baselines of classes from a seed."""
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
    """Return the functions that make the baselines of a real outcome from a seed."""
    return {
        "gradient_boosting": lambda seed: sklearn.ensemble.GradientBoostingRegressor(random_state=seed),
        "tree": lambda seed: sklearn.tree.DecisionTreeRegressor(random_state=seed),
        "forest": lambda seed: sklearn.ensemble.RandomForestRegressor(random_state=seed),
        "neighbours": lambda _: sklearn.neighbors.KNeighborsRegressor(),
    }


def features(kind: type[Model], rows: Arrays) -> np.ndarray:
    """Return the features of rows as columns of numbers, a column of 0 and 1 for each level; refuse missing cells."""
    if "X" in rows:
        return rows["X"]
    if REALS not in rows:
        problem = f"{kind.name} has no baselines: its features are no columns of numbers or levels"
        raise InputError(problem, "unknown_method", hint="leave the baselines out")
    matrix = np.hstack([rows[name] for name in (REALS, COUNTS) if name in rows])
    if LEVELS in rows:
        codes = rows[LEVELS][:, :, None]
        matrix = np.hstack([matrix, (codes == np.arange(len(rows[LEVEL]))).any(axis=1)])
        matrix[(codes < 0).any(axis=(1, 2))] = np.nan
    if np.isnan(matrix).any():
        raise InputError("baselines take no missing cells", "missing_values", hint="drop these rows, or leave them out")
    return matrix


def errors_of(kind: type[Model], maker: Callable[[int], Any], seen: Data, new: Data, seed: int) -> Losses:
    """Return the errors of a baseline on new rows; features are scaled by the standard deviations of the rows seen."""
    is_class = issubclass(kind, Classifies)
    (rows, weights), (new_rows, trials) = (kind.inputs.observations(part.arrays) for part in (seen, new))
    scaler = sklearn.preprocessing.StandardScaler().fit(features(kind, seen))
    outcome, expected = kind.inputs.outcome(rows), kind.inputs.outcome(new_rows)
    is_observed = weights > 0
    if is_class and len(np.unique(outcome[is_observed])) < 2:
        raise InputError(
            "the rows that are not held out are of one class", "one_class", hint="hold out fewer, or take another seed"
        )
    machine = _fitted(
        maker(seed % LARGEST_SEED),
        scaler.transform(features(kind, rows))[is_observed],
        outcome[is_observed],
        weights[is_observed],
    )
    predicted = machine.predict(scaler.transform(features(kind, new_rows)))
    losses = trials * (predicted != expected) if is_class else np.square(predicted - expected)
    return Losses(losses.astype(np.float64), np.asarray(trials, dtype=np.float64))


def _fitted(machine: Any, X: np.ndarray, outcome: np.ndarray, weights: np.ndarray) -> Any:
    """Fit a machine to rows that count ``weights`` times; for nearest neighbours the rows are repeated."""
    counts = weights.astype(np.int64)
    if getattr(machine, "n_neighbors", 1) > counts.sum():
        raise InputError("fewer rows than neighbours", "too_few_rows", hint="hold out fewer, or leave neighbours out")
    if np.all(weights == 1):  # passing equal weights would change the draws of a seed
        return machine.fit(X, outcome)
    if sklearn.utils.validation.has_fit_parameter(machine, "sample_weight"):
        return machine.fit(X, outcome, sample_weight=weights)
    return machine.fit(np.repeat(X, counts, axis=0), np.repeat(outcome, counts))
