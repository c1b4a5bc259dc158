"""Pictures of residuals and of posterior predictive checks.

Figures are Matplotlib's, made without pyplot: ``figure.savefig("residuals.png")``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from bayeszoo.answers.checks.predictive_check import Replicates, replicate
from bayeszoo.answers.checks.residuals import residuals
from bayeszoo.errors import InputError
from bayeszoo.plots.style import panels
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_POINTS = 1000
"""Most points that are drawn as vectors; more become one image."""
_DARK, _PALE, _LOUD = "#1f4e79", "#c9d8e6", "#c0392b"


def plot_residuals(source: xr.DataTree | pd.DataFrame, *, seed: int | np.random.Generator = 0) -> Figure:
    """Draw a QQ plot with its band, residuals against predicted means, and a histogram of the PITs.

    Parameters
    ----------
    source : xarray.DataTree or pandas.DataFrame
        A fit, or the result of `residuals` for it.
    seed : int or numpy.random.Generator
        As for `residuals`.

    Returns
    -------
    matplotlib.figure.Figure
        Three axes. If all rows have the same prediction, residuals are drawn against the row number.

    Raises
    ------
    Untrustworthy, InputError
        As for `residuals`; or when the data frame is not from `residuals`.
    """
    import pandas as pd

    frame = source if isinstance(source, pd.DataFrame) else residuals(source, seed=seed)
    if not {"normal_score", "band_lower", "pit"} <= set(frame.columns) or "basis" not in frame.attrs:
        raise InputError(
            "the data frame is not a result of bz.residuals", "not_a_fit", hint="give the whole result, or the fit"
        )
    figure, (qq, scatter, histogram) = panels(3, 4.5, 4.2)
    _draw_qq(qq, frame)
    _draw_scatter(scatter, frame)
    _draw_pits(histogram, frame["pit"].dropna().to_numpy())
    basis = ", ".join(f"{name} ({count} rows)" for name, count in frame.attrs["basis"].items())
    figure.suptitle(f"{frame.attrs['model']}, {frame.attrs['method']}: {basis}", fontsize="medium")
    return figure


def _draw_qq(axes: Axes, frame: pd.DataFrame) -> None:
    rows = frame.dropna(subset=["normal_score"]).sort_values("theoretical")
    if rows["theoretical"].isna().all():  # all scores are withheld, or the band is
        return _say_nothing(axes, "normal scores")
    x, scores, outside = rows["theoretical"], rows["normal_score"], rows["outside"]
    band = f"simultaneous {frame.attrs['band']:.0%} band"
    axes.fill_between(x, rows["band_lower"], rows["band_upper"], color=_PALE, label=band)
    axes.axline((0, 0), slope=1, color="grey", linewidth=0.8)
    finite = rows[["normal_score", "band_lower", "band_upper"]].to_numpy()
    edge = 1.1 * float(np.max(np.abs(finite[np.isfinite(finite)])))  # infinite scores are drawn there
    look: dict[str, Any] = {"markersize": 3, "rasterized": len(rows) > MAX_POINTS}
    axes.plot(x[~outside], scores[~outside].clip(-edge, edge), "o", color=_DARK, **look)
    if outside.any():
        axes.plot(x[outside], scores[outside].clip(-edge, edge), "o", color=_LOUD, label="outside the band", **look)
    infinite = int(np.isinf(scores).sum())
    title = f"{int(outside.sum())} of {len(rows)} rows outside the band"
    title += f"\n{infinite} infinite, at the edge" if infinite else ""
    axes.set(xlabel="expected normal score (Blom)", ylabel="normal score of the PIT", title=title)
    axes.legend(loc="upper left", fontsize="small", frameon=False)


def _draw_scatter(axes: Axes, frame: pd.DataFrame) -> None:
    rows = frame.dropna(subset=["mean", "residual"])
    rows = rows[np.isfinite(rows["residual"])]
    if rows.empty:
        return _say_nothing(axes, "residuals")
    mean = rows["mean"].to_numpy()
    is_constant = np.ptp(mean) <= 1e-9 * np.max(np.abs(mean))
    x, has_many = rows.index.to_numpy() if is_constant else mean, len(rows) > MAX_POINTS
    axes.plot(x, rows["residual"], "o", color=_DARK, markersize=3, alpha=0.1 if has_many else 0.7, rasterized=has_many)
    axes.axhline(0, color="grey", linewidth=0.8)
    axes.set(xlabel="row" if is_constant else "predicted mean", ylabel="residual (observed less predicted mean)")
    axes.set_title("all rows are predicted alike" if is_constant else "residuals")


def _draw_pits(axes: Axes, pits: np.ndarray) -> None:
    if not len(pits):
        return _say_nothing(axes, "PITs")
    bins = int(np.clip(len(pits) // 10, 5, 20))
    counts, edges = np.histogram(pits, bins=bins, range=(0, 1))
    low, high = scipy.stats.binom.ppf([0.025, 0.975], len(pits), 1 / bins)
    axes.axhspan(low, high, color=_PALE, label="95% of each bin (binomial)")
    axes.stairs(counts, edges, color=_DARK, linewidth=1.5)
    axes.axhline(len(pits) / bins, color="grey", linewidth=0.8)
    axes.set(xlabel="probability integral transform", ylabel="rows", title="PITs: flat if the model is right")
    axes.set(xlim=(0, 1), ylim=(0, 1.25 * max(float(np.max(counts)), high)))
    axes.legend(loc="upper right", fontsize="small", frameon=False)


def _say_nothing(axes: Axes, marks: str) -> None:
    axes.text(0.5, 0.5, f"no {marks}: all are withheld", ha="center", va="center", transform=axes.transAxes)
    axes.set_axis_off()


# Posterior predictive checks


def plot_predictive_check(
    tree: xr.DataTree, statistics: object = None, *, replicates: int = 1000, seed: int | np.random.Generator = 0
) -> Figure:
    """Draw each quantity of the replicated data sets and the observed one; `arviz.plot_ppc_dist` draws the outcomes.

    Parameters
    ----------
    tree, statistics, replicates, seed
        As for `predictive_check`; equal arguments give equal numbers.

    Returns
    -------
    matplotlib.figure.Figure
        One axes for each quantity: a histogram of the replicates, and the observed quantity as a line, or as a second
        histogram if it depends on the parameters.

    Raises
    ------
    Untrustworthy, InputError
        As for `predictive_check`.
    """
    figure = draw_replicates(replicate(Fit(tree), statistics, replicates=replicates, seed=seed))
    figure.suptitle(f"{tree.attrs['model']}, {tree.attrs['method']}: posterior predictive checks", fontsize="medium")
    return figure


def draw_replicates(replicates: Replicates) -> Figure:
    """Draw each quantity of replicated data sets and the observed one."""
    figure, all_axes = panels(len(replicates.replicated), 3.6, 3.0, across=4)
    for axes, (name, replicated) in zip(all_axes, replicates.replicated.items(), strict=True):
        _draw_quantity(axes, name, replicates.observed[name], replicated)
    return figure


def _draw_quantity(axes: Axes, name: str, observed: np.ndarray, replicated: np.ndarray) -> None:
    values = np.concatenate([observed, replicated])
    if not np.isfinite(values).all():
        return _say_nothing(axes, name)
    edges = _edges(replicated, values)
    axes.hist(replicated, bins=edges, color=_PALE, label="replicates")
    if np.ptp(observed) == 0:
        axes.axvline(observed[0], color=_LOUD, label="observed")
    else:
        axes.hist(observed, bins=edges, color=_LOUD, histtype="step", label="observed, under the same draws")
    axes.set(xlabel=name, ylabel="replicates")
    axes.locator_params(axis="x", nbins=5)
    axes.set_ylim(0, 1.3 * axes.get_ylim()[1])
    axes.legend(loc="best", fontsize="small", frameon=False)


def _edges(replicated: np.ndarray, values: np.ndarray) -> Any:
    """Return edges of bins over all values, with a width suited to ``values``; each whole number has a bin."""
    low, high = float(values.min()), float(values.max())
    if np.all(values == np.round(values)) and high - low <= 60:
        return np.arange(low - 0.5, high + 1)
    spread = np.quantile(replicated, [0.025, 0.975])
    width = max(float(spread[1] - spread[0]) / 20, (high - low) / 200, 1e-9 * max(abs(low), abs(high), 1e-300))
    return low + width * np.arange(-1, math.ceil((high - low) / width) + 2)
