"""Pictures of a regression: its slopes on one axis, the effect of each feature, and the explained variance.

Figures are Matplotlib's, made without pyplot: ``figure.savefig("effects.png")``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bayeszoo.answers.effects import FEW, feature_effects, regression_of, seen_rows, seen_terms
from bayeszoo.answers.judged import agreeing_draws, answering
from bayeszoo.comparison.compare import names_of
from bayeszoo.data.inputs.labels import outcomes_of
from bayeszoo.errors import InputError
from bayeszoo.foundation.blocks import AT_ONCE
from bayeszoo.model.capabilities.linear_predictor import has_slopes
from bayeszoo.model.capabilities.observable import Classifies
from bayeszoo.model.draws import size_of
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
_APART = 0.12
"""Distance of marks of different curves, as a share of that of the values."""
_ACROSS = 30
"""Most characters of a feature's name in a line below its panel."""
_QUANTILES = ("q025", "q975")


def slopes(fit: Fit) -> pd.DataFrame:
    """Return the slope for one standard deviation of each term, in units of the outcome, the largest first.

    The slope of a term with two values, such as a level, is the difference between these. With a link, slopes are in
    units of the linear predictor, such as the log odds. Columns are ``mean``, ``q025`` and ``q975``; a point estimate
    has only the mean. Raises `InputError` if the model is no regression or its rows were not kept, `Untrustworthy` if
    the fit failed.
    """
    import pandas as pd

    model, data = regression_of(fit, "slopes"), seen_rows(fit)
    design, summary = seen_terms(model, data), summaries_of(fit, ["w"])["w"]
    least, most = np.nanmin(design, axis=0), np.nanmax(design, axis=0)
    has_two = ((design == least) | (design == most) | np.isnan(design)).all(axis=0)
    step = np.where(has_two, most - least, np.nanstd(design, axis=0))
    columns = {name: step * (np.nan if (v := summary[name]) is None else v) for name in ("mean", *_QUANTILES)}
    terms = pd.Index(model.coords(data)["term"], name="term")
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


def mean_named(fit: Fit) -> str:
    """Return the name of the mean outcome."""
    model = fit.model
    assert has_slopes(model)
    exposed = ", exposure 1" if "exposure" in fit.like else ""
    return f"{'mean' if model.has_identity_link else f'{model.mean_quantity} of'} {_outcome(fit)}{exposed}"


def _outcome(fit: Fit) -> str:
    """Return the column of the outcome, with the class of success if its labels are words."""
    column = fit.columns.get(fit.model.inputs.name, fit.model.inputs.name)
    success = outcomes_of(seen_rows(fit))[1] if isinstance(fit.model, Classifies) else "1"
    return short(column if success == "1" else f"{column} {success}")


def plot_effects(
    tree: xr.DataTree, features: Sequence[str] | None = None, *, groups: Sequence[str] | None = None
) -> Figure:
    """Draw the effects of features on one scale, with 95% intervals: by default those with the greatest, at most 12.

    A feature of an interaction has a panel for each feature that it interacts with, and a curve in an own colour for
    each value of that feature: its levels, or the 10, 50 and 90% quantiles. The numbers are those of `feature_effects`.
    Where groups have intercepts, as in `logistic_intercepts`, ``groups`` names those whose effects are drawn, each in a
    colour, without interactions; by default they are those of a group whose intercept is 0. Raises as `slopes` does,
    and `InputError` where there is no such feature or group.
    """
    fit = Fit(tree)
    frame = _curves(tree, groups)
    ends = frame.groupby(["feature", "by"], sort=False)["mean"].agg(np.ptp)
    reach = ends.sort_values(ascending=False, kind="stable")
    known = list(dict.fromkeys(frame["feature"]))
    if unknown := [name for name in features or () if name not in known]:
        raise InputError(
            f"there is no feature {unknown[0]!r}", "unknown_name", hint=f"there are {', '.join(map(str, known))}"
        )
    shown = list(reach.index[:MOST_EFFECTS])
    if features is not None:
        shown = [panel for name in features for panel in reach.index if panel[0] == name]
    names, lines = wrapped([name for name, _ in shown], _ACROSS)
    size = (2.5, 1.97) if not any(by for _, by in shown) else (3.2, 2.6)
    figure, all_axes = panels(
        len(shown), size[0], size[1] + 0.13 * lines, across=min(4, max(2, len(shown))), sharey=True
    )
    for axes, panel, name in zip(all_axes, shown, names, strict=True):
        of_panel = frame[(frame["feature"] == panel[0]) & (frame["by"] == panel[1])]
        curves = of_panel.groupby("at", sort=False)
        for k, (at, curve) in enumerate(curves):
            apart = (k - (curves.ngroups - 1) / 2) * _APART
            _draw_effect(axes, curve.set_index("value"), COLOURS[k % len(COLOURS)], str(at) or None, apart)
        if panel[1]:
            axes.legend(fontsize="small", title=short(panel[1], _ACROSS // 2), title_fontsize="small")
        axes.set_xlabel(name, parse_math=False)
    if groups:
        all_axes[0].legend(fontsize="small", title="group")
    figure.supylabel(mean_named(fit), fontsize="medium", parse_math=False)
    return figure


def _curves(tree: xr.DataTree, groups: Sequence[str] | None) -> pd.DataFrame:
    """Return the effects, with the second feature of an interaction as ``by``; the curves of groups have none."""
    import pandas as pd

    if groups:
        return pd.concat([feature_effects(tree, group=name).assign(by="", at=name) for name in groups])
    frame = feature_effects(tree)
    return frame if "by" in frame else frame.assign(by="", at="")


def _draw_effect(axes: Axes, effect: pd.DataFrame, colour: str, label: str | None, apart: float) -> None:
    """Draw a curve; marks of few values stand ``apart``, a share of their distance, from those of other curves."""
    names = effect.index.tolist()
    of_levels = isinstance(names[0], str)
    places, is_few = np.arange(len(names)) if of_levels else np.array(names), of_levels or len(names) <= FEW
    x = places + apart * np.diff(places).min(initial=1.0) if is_few else places
    if is_few:
        axes.vlines(x, effect["q025"], effect["q975"], color=colour, lw=2)
        axes.margins(x=0.3)
    else:
        axes.fill_between(x, effect["q025"], effect["q975"], color=colour, alpha=0.2, lw=0)
    axes.plot(x, effect["mean"], "o" if is_few else "-", color=colour, label=label)
    if of_levels:
        turned = 90 if sum(map(len, names)) > _ACROSS else 0
        axes.set_xticks(places, [short(name, _ACROSS // 2) for name in names], rotation=turned, parse_math=False)
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
    size = size_of(draws)
    selection = {name: values[:: -(-size * fit.data.rows // AT_ONCE)] for name, values in draws.items()}
    law = model.likelihood(selection, fit.data)
    of_means, of_noise = np.var(law.mean(), axis=-1, ddof=1), np.mean(law.var() + 0 * law.mean(), axis=-1)
    if not np.isfinite(of_noise).all():
        raise InputError("R2 needs a variance of the noise", "no_r2", hint="with nu > 2 it has one")
    return np.asarray(of_means / (of_means + of_noise))[:, None]
