"""Effects of features by a regression: the mean outcome as one feature varies, and of interactions two."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import lazy_loader
import numpy as np

from bayeszoo.answers.columns import error_of_mean
from bayeszoo.answers.judged import FAR, agreeing_draws, answering
from bayeszoo.answers.law import points_of_groups
from bayeszoo.data.inputs.features.levels import products
from bayeszoo.data.inputs.groups.lines import CODE
from bayeszoo.data.inputs.groups.rows import GROUP
from bayeszoo.data.read import Data
from bayeszoo.data.table.table import quoted
from bayeszoo.distributions.posterior import INTERVAL
from bayeszoo.errors import InputError
from bayeszoo.foundation.blocks import AT_ONCE
from bayeszoo.foundation.named import Arrays
from bayeszoo.model.capabilities.linear_predictor import Feature, LinearPredictor, has_slopes
from bayeszoo.model.draws import every, flat
from bayeszoo.model.incomplete import Incomplete
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
else:
    pd = lazy_loader.load("pandas")

FEW = 5
"""Most values of a feature for which the effect is shown at each, and not as a line."""
MOST_LINES = 6
"""Most levels of the second feature of an interaction with lines: those with the most rows."""
_POINTS = 41
_AT = {"10%": 0.1, "50%": 0.5, "90%": 0.9}
"""Quantiles of a numeric feature at which the effect of another is shown."""


class Curve(NamedTuple):
    """An effect of a feature, with a second feature at one value, or no second feature."""

    feature: str
    by: str
    at: str
    x: list[Any]
    rows: np.ndarray


def feature_effects(tree: xr.DataTree, *, group: str | None = None) -> pd.DataFrame:
    """Return the mean outcome as each feature of a regression varies, the others at their means.

    Parameters
    ----------
    tree : xarray.DataTree
        What `fit` returned for a regression with a weight for each term.
    group : str, optional
        Where groups have intercepts, as in ``logistic_intercepts``: the group whose effects are returned, interactions
        aside; by default one whose intercept is 0.

    Returns
    -------
    pandas.DataFrame
        One row for each ``feature`` and its ``value``, or level: at each of few values, else at 41 from the least to
        the greatest. ``mean`` is the probability of success, the rate at an exposure of 1, or the mean outcome;
        ``q025`` and ``q975`` are quantiles of its posterior, and ``mcse_mean`` its Monte Carlo error; a point estimate
        has only ``mean``. With interactions, a feature of one has a curve for each value ``at`` of the feature ``by``:
        each level (the six with the most rows), or the 10, 50 and 90% quantiles. Cells that were empty in a fit of
        completed tables count in no range and no mean. Numbers of an approximation that draws of the posterior
        contradict are NaN.

    Raises
    ------
    InputError
        When the model is no regression or its rows were not kept, no feature varies alone, or the group does not exist.
    Untrustworthy
        When the fit failed its gate, or no number agrees with draws of the posterior.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> table = {"y": [1.0, 2.0, 4.0, 3.0, 7.0, 8.0], "x": [0.0, 1.0, 2.0, 0.0, 1.0, 2.0], "g": list("aaabbb")}
    >>> M = bz.find("linear_regression")
    >>> data = bz.read(M, table, formula="y ~ x * g")
    >>> frame = bz.feature_effects(bz.fit(M.weak(data), data, "mle", seed=1))
    >>> frame.loc[frame["feature"] == "x", ["at", "value", "mean"]].round(2).values.tolist()[:3]
    [['a', 0.0, 0.83], ['a', 1.0, 2.33], ['a', 2.0, 3.83]]
    """
    fit = Fit(tree)
    model = regression_of(fit, "effects")
    crossed = [] if group is not None else [*_crossed(fit, model)]
    two = {curve.feature for curve in crossed}
    curves = [*(curve for curve in _alone(fit, model) if curve.feature not in two), *crossed]
    frame = _table(fit, model, curves, group)
    return frame if crossed else frame.drop(columns=["by", "at"])


def effects(fit: Fit, group: str | None = None) -> pd.DataFrame:
    """Return the effect of each feature alone, others at their means, also of features of interactions.

    The index has ``feature`` and ``value``; columns and errors are those of `feature_effects`.
    """
    model = regression_of(fit, "effects")
    frame = _table(fit, model, _alone(fit, model), group)
    return frame.drop(columns=["by", "at"]).set_index(["feature", "value"])


def regression_of(fit: Fit, answer: str) -> LinearPredictor:
    """Return the model of a fit that may answer; raise `InputError` unless it is a regression with slopes."""
    answering(fit, f"{answer} by it")
    if not has_slopes(fit.model):
        problem = f"{answer} need a regression with a weight for each term, and {fit.model.name} is none"
        raise InputError(problem, "not_a_regression", hint="`predict` gives the outcome at rows that you choose")
    return fit.model


def seen_rows(fit: Fit) -> Data:
    """Return the rows of a fit; of one of completed tables, with NaN in the cells that were empty."""
    return fit.observed.holed if isinstance(fit.observed, Incomplete) else fit.data


def seen_terms(model: LinearPredictor, data: Data) -> np.ndarray:
    """Return the terms of the rows in the user's units, shape (n, T), with NaN where a term needs an empty cell."""
    X = data["X"]
    if not (empty := np.isnan(X)).any():
        return model.design(data)
    filled = [model.design({**data, "X": np.where(empty, value, X)}) for value in (0.0, 1.0)]
    return np.where(filled[0] == filled[1], filled[0], np.nan)


def _table(fit: Fit, model: LinearPredictor, curves: list[Curve], group: str | None) -> pd.DataFrame:
    """Return mean, interval and Monte Carlo error of the mean outcome along curves."""
    if not curves:
        raise InputError(
            "no feature of the formula varies alone", "unknown_name", hint="bz.predict takes rows of your own"
        )
    rows = np.concatenate([curve.rows for curve in curves])
    places = {"X": rows, "feature": seen_rows(fit)["feature"]}
    drawn = agreeing_draws(fit, "effects by it", lambda of: _means(of, model, places, group))
    band, errors = np.full((2, len(rows)), np.nan), np.full(len(rows), np.nan)
    if fit.kind != "point estimate":
        band = np.quantile(drawn, [*INTERVAL.values()], axis=0)
        errors = error_of_mean(drawn.reshape(len(fit.draws()["w"]), -1, len(rows)), fit.kind)
    named = [(curve.feature, x, curve.by, curve.at) for curve in curves for x in curve.x]
    frame = pd.DataFrame(named, columns=["feature", "value", "by", "at"])
    numbers = {"mean": drawn.mean(axis=0), **dict(zip(INTERVAL, band, strict=True)), "mcse_mean": errors}
    frame = frame.assign(**numbers)
    if far := int(np.isnan(numbers["mean"]).sum()):
        frame.attrs["withheld"] = [f"{far} of {len(frame)} means: {FAR}"]
    return frame


def _alone(fit: Fit, model: LinearPredictor) -> list[Curve]:
    X = seen_rows(fit)["X"]
    means = np.nanmean(X, axis=0)
    return [Curve(name, "", "", *_along(X, feature, means)) for name, feature in _features(fit, model).items()]


def _features(fit: Fit, model: LinearPredictor) -> dict[str, Feature]:
    return model.separate_features(seen_rows(fit))


def _crossed(fit: Fit, model: LinearPredictor) -> Iterator[Curve]:
    """Yield the curves of each feature of an interaction at values of each other feature of it."""
    data, features = seen_rows(fit), _features(fit, model)
    X, means = data["X"], np.nanmean(data["X"], axis=0)
    for name, by in _interacting(model, data, features):
        for at, baseline in _fixed_values(X, features[by], means):
            yield Curve(name, by, at, *_along(X, features[name], baseline))


def _interacting(model: LinearPredictor, data: Data, features: dict[str, Feature]) -> list[tuple[str, str]]:
    """Return the ordered pairs of features that are factors of one product among the terms."""
    of_column = {j: name for name, feature in features.items() for j in feature.places}
    used, pairs = {*model.coords(data)["term"].tolist()}, set[tuple[str, str]]()
    for i, factors in products(data["feature"]).items():
        if str(data["feature"][i]) in used:
            names = dict.fromkeys(of_column[j] for j in factors if j in of_column)
            pairs |= {(first, second) for first in names for second in names if first != second}
    places = list(features)
    return sorted(pairs, key=lambda pair: (places.index(pair[0]), places.index(pair[1])))


def _fixed_values(X: np.ndarray, feature: Feature, means: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the values at which a feature is held, and rows with it there and the others at their means."""
    if feature.levels:
        codes = (X[:, feature.places] * np.arange(1, len(feature.levels))).sum(axis=1).astype(int)
        counts = np.bincount(codes, minlength=len(feature.levels))
        for i in sorted(np.argsort(-counts, kind="stable")[:MOST_LINES]):
            yield feature.levels[i], feature.rows(means)[i]
        return
    (j,) = feature.places
    values = np.unique(X[~np.isnan(X[:, j]), j])
    named = {f"{value:.4g}": value for value in values.tolist()}
    if len(values) > FEW:
        at = np.nanquantile(X[:, j], [*_AT.values()])
        named = {f"{value:.3g} ({level})": value for level, value in zip(_AT, at.tolist(), strict=True)}
    for name, value in named.items():
        yield name, np.where(np.arange(len(means)) == j, value, means)


def _along(X: np.ndarray, feature: Feature, baseline: np.ndarray) -> tuple[list[Any], np.ndarray]:
    """Return values of a feature, and rows with these values and the other features as in a baseline."""
    if feature.levels:
        return feature.levels, feature.rows(baseline)
    (j,) = feature.places
    x = np.unique(X[~np.isnan(X[:, j]), j])
    values = x if len(x) <= FEW else np.linspace(x[0], x[-1], _POINTS)
    rows = np.tile(baseline, (len(values), 1))
    rows[:, j] = values
    return values.tolist(), rows


def _means(fit: Fit, model: LinearPredictor, rows: Arrays, group: str | None) -> np.ndarray:
    """Return the mean outcome of rows at a selection of draws, (draws, rows), in the named group if any."""
    draws = fit.draws()
    selection = flat(every(draws, -(-draws["w"].size * len(rows["X"]) // AT_ONCE)))
    if group is None:
        return model.mean(selection, rows)
    labels = list(map(str, fit.data[GROUP].tolist())) if GROUP in fit.data else []
    if labels and group not in labels:
        raise InputError(f"there is no group {group!r}", "unknown_name", hint=f"there are {quoted(labels)}")
    code = np.full(len(rows["X"]), labels.index(group) if labels else 0)
    group_points = points_of_groups(fit, fit.data)
    mean = model.mean_in_groups(selection if group_points is None else group_points.params, {**rows, CODE: code})
    if mean is None:
        raise InputError(f"{model.name} has no intercepts of groups", "no_groups", hint="leave groups out")
    return mean if group_points is None else group_points.weights[:, code[:1]].T @ mean
