"""Pictures of a regression: its slopes on one axis, the effect of each feature, and the explained variance.

Figures are Matplotlib's, made without pyplot: ``figure.savefig("effects.png")``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.answers.judged import agreeing_draws, answering
from bayeszoo.answers.law import points_of_groups
from bayeszoo.comparison.compare import names_of
from bayeszoo.data.inputs.groups.lines import CODE
from bayeszoo.data.inputs.groups.rows import GROUP
from bayeszoo.data.inputs.labels import outcomes_of
from bayeszoo.data.table.table import quoted
from bayeszoo.errors import InputError
from bayeszoo.foundation.blocks import AT_ONCE
from bayeszoo.foundation.named import Arrays
from bayeszoo.model.linear_predictor import Feature, LinearPredictor, has_slopes
from bayeszoo.model.observable import Classifies
from bayeszoo.plots.drawable import colours
from bayeszoo.plots.style import COLOURS, panels, short, wrapped
from bayeszoo.results.stored import Fit
from bayeszoo.results.summary import summaries_of

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_SLOPES, MOST_EFFECTS = 24, 12
"""Most slopes, and most features, drawn: the largest ones."""
FEW = 5
"""Most values of a feature for which the effect is shown at each, and not as a line."""
_POINTS = 41
_ACROSS = 30
"""Most characters of a feature's name in a line below its panel."""
_QUANTILES = ("q025", "q975")


def _regression(fit: Fit, answer: str) -> LinearPredictor:
    answering(fit, f"{answer} by it")
    if not has_slopes(fit.model):
        raise InputError(
            f"{answer} need a regression with a weight for each term, and {fit.model.name} is none", "not_a_regression"
        )
    return fit.model


def slopes(fit: Fit) -> pd.DataFrame:
    """Return the slope for one standard deviation of each term, in units of the outcome, the largest first.

    The slope of a term with two values, such as a level, is the difference between these. With a link, slopes are in
    units of the linear predictor, such as the log odds. Columns are ``mean``, ``q025`` and ``q975``; a point estimate
    has only the mean. Raises `InputError` if the model is no regression or its rows were not kept, `Untrustworthy` if
    the fit failed.
    """
    import pandas as pd

    model = _regression(fit, "slopes")
    design, summary = model.design(fit.data), summaries_of(fit, ["w"])["w"]
    has_two = ((design == design.min(axis=0)) | (design == design.max(axis=0))).all(axis=0)
    step = np.where(has_two, np.ptp(design, axis=0), design.std(axis=0))
    columns = {name: step * (np.nan if (v := summary[name]) is None else v) for name in ("mean", *_QUANTILES)}
    terms = pd.Index(model.coords(fit.data)["term"], name="term")
    frame = pd.DataFrame(columns, index=terms).iloc[int(model.intercept) :]
    return frame.loc[frame["mean"].abs().sort_values(ascending=False, kind="stable").index]


def plot_slopes(trees: Sequence[xr.DataTree]) -> Figure:
    """Draw the largest slopes of regressions on one axis, each for one sd of its term or between its two values."""
    fits = [Fit(tree) for tree in trees]
    frames = [slopes(fit) for fit in fits]
    terms = frames[0].index[:MOST_SLOPES]
    names, lines = wrapped(terms)
    figure, (axes,) = panels(1, 5.6, 0.8 + len(terms) * (0.1 + 0.12 * max(len(trees), lines)))
    axes.axvline(0, color="0.7", lw=0.8, zorder=0)
    for i, (name, frame, colour) in enumerate(zip(names_of(fits), frames, colours(fits), strict=True)):
        rows, places = frame.reindex(terms), np.arange(len(terms)) + 0.6 * ((i + 0.5) / len(trees) - 0.5)
        axes.hlines(places, rows["q025"], rows["q975"], color=colour, lw=2)
        axes.plot(rows["mean"], places, "o", color=colour, ms=5, label=name)
    axes.set_yticks(np.arange(len(terms)), names, parse_math=False)
    axes.set(ylim=(len(terms) - 0.5, -0.5))
    axes.set_xlabel(f"{_predicted(fits)}, for one sd or between two values", parse_math=False)
    if len(trees) > 1:
        figure.legend(loc="outside lower center", ncols=3)
    return figure


def _predicted(fits: Sequence[Fit]) -> str:
    """Return the name of the linear predictor; for linear models that of the outcome."""
    models = [model for fit in fits if has_slopes(model := fit.model)]
    scales = dict.fromkeys(model.predicted_quantity for model in models if not model.has_identity_link)
    return f"{' or '.join(scales)} of {_outcome(fits[0])}" if scales else _outcome(fits[0])


def _mean(fit: Fit) -> str:
    """Return the name of the mean outcome."""
    model = fit.model
    assert has_slopes(model)
    return f"mean {_outcome(fit)}" if model.has_identity_link else f"{model.mean_quantity} of {_outcome(fit)}"


def _outcome(fit: Fit) -> str:
    """Return the column of the outcome, with the class of success if its labels are words."""
    column = fit.columns.get(fit.model.inputs.name, fit.model.inputs.name)
    success = outcomes_of(fit.data)[1] if isinstance(fit.model, Classifies) else "1"
    return short(column if success == "1" else f"{column} {success}")


def effects(fit: Fit, group: str | None = None) -> pd.DataFrame:
    """Return the mean outcome over the range of each feature, the others at their means.

    For trials this is the probability of success, for counts the rate at an exposure of 1. If groups have intercepts,
    it is that of a group with intercept 0, or of the named ``group``; by a point estimate averaged over its intercept.

    The index has ``feature`` and its value ``x``, or its level; columns are ``mean``, and ``q025`` and ``q975`` of its
    posterior, which a point estimate does not have. A feature with few values has only these values. Interactions
    change with their features. Where parameters of an approximation are off, effects that disagree with draws of the
    posterior are NaN. Raises the errors of `slopes`, and `InputError` if the group does not exist.
    """
    import pandas as pd

    model = _regression(fit, "effects")
    X, features = fit.data["X"], model.separate_features(fit.data)
    if not features:
        raise InputError(
            "no feature of the formula varies alone", "unknown_name", hint="bz.predict takes rows of your own"
        )
    varied = {name: _varied(X, feature) for name, feature in features.items()}
    rows = np.concatenate([rows for _, rows in varied.values()])
    places = {"X": rows, "feature": fit.data["feature"]}
    mean = agreeing_draws(fit, "effects by it", lambda of: _means(of, model, places, group))
    band = np.full((2, len(rows)), np.nan)
    if fit.kind != "point estimate":
        band = np.quantile(mean, [0.025, 0.975], axis=0)
    index = pd.MultiIndex.from_tuples(
        [(name, x) for name, (values, _) in varied.items() for x in values], names=["feature", "x"]
    )
    return pd.DataFrame({"mean": mean.mean(axis=0), **dict(zip(_QUANTILES, band, strict=True))}, index=index)


def _means(fit: Fit, model: LinearPredictor, rows: Arrays, group: str | None) -> np.ndarray:
    """Return the mean outcome of rows at a selection of draws, (draws, rows), in the named group if any."""
    draws = fit.pooled()
    selection = {name: values[:: -(-draws["w"].size * len(rows["X"]) // AT_ONCE)] for name, values in draws.items()}
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


def _varied(X: np.ndarray, feature: Feature) -> tuple[list[Any], np.ndarray]:
    """Return values of a feature, and rows with these values and the other features at their means."""
    means = X.mean(axis=0)
    if feature.levels:
        return feature.levels, feature.rows(means)
    (j,) = feature.places
    values = x if len(x := np.unique(X[:, j])) <= FEW else np.linspace(x[0], x[-1], _POINTS)
    rows = np.tile(means, (len(values), 1))
    rows[:, j] = values
    return values.tolist(), rows


def plot_effects(
    tree: xr.DataTree, features: Sequence[str] | None = None, *, groups: Sequence[str] | None = None
) -> Figure:
    """Draw the effects of features on one scale, with 95% intervals: by default those with the greatest, at most 12.

    Where groups have intercepts, as in `logistic_intercepts`, ``groups`` names those whose effects are drawn, each in a
    colour; by default they are those of a group whose intercept is 0. Raises as `slopes` does, and `InputError` where
    there is no such feature or group.
    """
    fit = Fit(tree)
    frames = {name: effects(fit, name) for name in groups or (None,)}
    frame = next(iter(frames.values()))
    reach = frame["mean"].groupby(level="feature", sort=False).agg(np.ptp).sort_values(ascending=False, kind="stable")
    if unknown := [name for name in features or () if name not in reach.index]:
        raise InputError(
            f"there is no feature {unknown[0]!r}", "unknown_name", hint=f"there are {', '.join(map(str, reach.index))}"
        )
    shown = reach.index[:MOST_EFFECTS] if features is None else features
    names, lines = wrapped(shown, _ACROSS)
    figure, all_axes = panels(len(shown), 2.5, 1.97 + 0.13 * lines, across=min(4, max(2, len(shown))), sharey=True)
    for axes, feature, name in zip(all_axes, shown, names, strict=True):
        for k, (group, of_group) in enumerate(frames.items()):
            _draw_effect(axes, of_group.loc[feature], COLOURS[k % len(COLOURS)], group)
        axes.set_xlabel(name, parse_math=False)
    if groups:
        all_axes[0].legend(fontsize="small", title="group")
    figure.supylabel(_mean(fit), fontsize="medium", parse_math=False)
    return figure


def _draw_effect(axes: Axes, effect: pd.DataFrame, colour: str, label: str | None) -> None:
    names = effect.index.tolist()
    of_levels = isinstance(names[0], str)
    x, is_few = np.arange(len(names)) if of_levels else np.array(names), of_levels or len(names) <= FEW
    if is_few:
        axes.vlines(x, effect["q025"], effect["q975"], color=colour, lw=2)
        axes.margins(x=0.3)
    else:
        axes.fill_between(x, effect["q025"], effect["q975"], color=colour, alpha=0.2, lw=0)
    axes.plot(x, effect["mean"], "o" if is_few else "-", color=colour, label=label)
    if of_levels:
        turned = 90 if sum(map(len, names)) > _ACROSS else 0
        axes.set_xticks(x, [short(name, _ACROSS // 2) for name in names], rotation=turned, parse_math=False)
    else:
        axes.locator_params(axis="x", nbins=4)


def explained(fit: Fit) -> dict[str, float]:
    """Return ``mean``, ``q025`` and ``q975`` of the share of the outcome's variance that a linear model explains.

    For each draw R2 is the variance of the predicted means divided by the sum of this variance and the mean variance of
    the noise (Gelman, Goodrich, Gabry and Vehtari 2019). A point estimate has only the mean. Raises the errors of
    `slopes`, and `InputError` if the noise has no variance.
    """
    answering(fit, "R2 by it")
    model = fit.model
    if not (has_slopes(model) and model.has_identity_link):
        raise InputError(f"R2 needs a linear model, and {model.name} is none", "no_r2")
    R2 = agreeing_draws(fit, "R2 by it", _shares_explained)
    interval = np.quantile(R2, [0.025, 0.975]).tolist() if len(R2) > 1 else [np.nan, np.nan]
    return {"mean": float(R2.mean()), **dict(zip(_QUANTILES, interval, strict=True))}


def _shares_explained(fit: Fit) -> np.ndarray:
    """Return R2 at a selection of draws, (draws, 1)."""
    draws, model = fit.pooled(), fit.model
    assert has_slopes(model)
    size = len(next(iter(draws.values())))
    selection = {name: values[:: -(-size * fit.data.rows // AT_ONCE)] for name, values in draws.items()}
    law = model.likelihood(selection, fit.data)
    of_means, of_noise = np.var(law.mean(), axis=-1, ddof=1), np.mean(law.var() + 0 * law.mean(), axis=-1)
    if not np.isfinite(of_noise).all():
        raise InputError("R2 needs a variance of the noise", "no_r2", hint="with nu > 2 it has one")
    return np.asarray(of_means / (of_means + of_noise))[:, None]
