"""Pictures of a fitted factor model: eigenvalues, rows and columns along the factors, and relevances.

None depends on the labels or the rotation of the factors of a draw. Figures are Matplotlib's, made without pyplot:
``figure.savefig("scree.png")``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bayeszoo.answers.judged import agreeing_draws, answering, gaps_agree, is_judged, limits_of, reference_of, refuse
from bayeszoo.errors import InputError
from bayeszoo.families.factors import steps
from bayeszoo.families.factors.base import latent_posterior, principal_axes, procrustes
from bayeszoo.foundation.blocks import AT_ONCE
from bayeszoo.foundation.named import Params
from bayeszoo.plots.style import panels
from bayeszoo.results.gaps import gaps_of, statistics_of
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PICTURES, _OF_ROWS = "pictures of it", ("mean", "loadings", "variance")
BAND = (0.025, 0.975)
"""Quantiles over draws at the ends of intervals."""
MOST_DRAWS = 400
"""Most draws used if each costs a pass over the rows; an even selection."""
MOST_HEADS = 100
"""Most draws shown as arrow heads; an even selection."""
MOST_BARS = 300
"""Most rows for which each has bars."""
_DARK, _PALE, _DATA = "#1f4e79", "#9dbbd8", "#b5651d"


class Biplot(NamedTuple):
    """Rows and columns along principal axes of the mean covariance.

    ``scores`` and ``score_sd``, shape (rows, q), are mean and standard deviation of the factors of each row over the
    posterior; ``loadings``, shape (draws, D, q), are those of each draw, rotated to the axes.
    """

    scores: np.ndarray
    score_sd: np.ndarray
    loadings: np.ndarray


def plot_scree(tree: xr.DataTree) -> Figure:
    """Draw the eigenvalues of the covariance of a row, W W' + variance I, and those of the sample.

    Parameters
    ----------
    tree : xarray.DataTree
        A fit of a model with ``loadings`` (D, q) and ``variance``. A point estimate has no intervals.

    Returns
    -------
    matplotlib.figure.Figure
        Posterior medians with 95% intervals; those of an approximation that draws of the posterior do not agree on are
        left out. The sample covariance has divisor N; if numbers are missing, each of its entries is from the rows with
        both columns. The dotted line is the median variance of the noise.

    Raises
    ------
    InputError
        When the fit has no loadings.
    Untrustworthy
        When it failed its gate.
    """
    fit = Fit(tree)
    of_fit, stats = _shown(fit, ("loadings", "variance"), _eigenvalues_and_noise), fit.stats
    of_fit, noise = of_fit[:, :-1], of_fit[:, -1]
    figure, axes = _figure(fit)
    ranks = np.arange(1, of_fit.shape[1] + 1)
    sample = np.linalg.eigvalsh(steps.pairwise_covariance(stats))[::-1]
    axes.plot(ranks + 0.12, sample, "D", color=_DATA, ms=4, mfc="none", label="of the sample")
    _intervals(axes, ranks - 0.12, of_fit, "of the fit")
    axes.axhline(float(np.median(noise)), color="0.5", lw=0.8, ls=":", label="variance of the noise")
    if np.all(sample > 0):
        axes.set_yscale("log")
    axes.set(xlabel="rank", ylabel="eigenvalue of the covariance", xticks=ranks)
    axes.legend(fontsize="small", frameon=False)
    return figure


def _eigenvalues_and_noise(params: Params) -> np.ndarray:
    return np.c_[eigenvalues(params), params["variance"]]


def eigenvalues(params: Params) -> np.ndarray:
    """Return the eigenvalues of W W' + variance I, shape (draws, D), largest first."""
    W, variance = params["loadings"], params["variance"]
    values = np.tile(variance[:, None], (1, W.shape[1]))
    values[:, : W.shape[2]] += np.linalg.svd(W, compute_uv=False) ** 2
    return values


def plot_ard(tree: xr.DataTree) -> Figure:
    """Draw the relevance precisions of Bayesian PCA, the smallest first: large ones switch factors off.

    Parameters
    ----------
    tree : xarray.DataTree
        A fit of a model with ``alpha`` (q,). A point estimate has no intervals.

    Returns
    -------
    matplotlib.figure.Figure
        Alpha is sorted in each draw, as the labels of factors are arbitrary; medians and 95% intervals of the k-th
        smallest, in one over the squared unit of the data. Grey is the prior's median and interval for one factor.

    Raises
    ------
    InputError
        When the fit has no alpha.
    Untrustworthy
        When it failed its gate.
    """
    from scipy.stats import gamma

    fit = Fit(tree)
    alpha, model = _shown(fit, ("alpha",), lambda params: np.sort(params["alpha"], axis=1)), fit.model
    figure, axes = _figure(fit)
    shape, rate = model.prior(len(fit.observed["column"])).relevance  # type: ignore[attr-defined, index]
    low, median, high = gamma(shape, scale=1 / rate).ppf([BAND[0], 0.5, BAND[1]])
    axes.axhspan(low, high, color="0.9", lw=0, label="prior")
    axes.axhline(median, color="0.7", lw=0.8)
    ranks = np.arange(1, alpha.shape[1] + 1)
    _intervals(axes, ranks, alpha, "posterior")
    axes.set(xlabel="rank", ylabel="relevance precision alpha", xticks=ranks, yscale="log")
    axes.legend(fontsize="small", frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def plot_biplot(tree: xr.DataTree, *, axes: tuple[int, int] = (1, 2), groups: Sequence[object] | None = None) -> Figure:
    """Draw rows as points and columns as arrows along two principal axes, with their uncertainty (Gabriel 1971).

    Parameters
    ----------
    tree : xarray.DataTree
        A fit of a model with ``mean``, ``loadings`` (D, q) and ``variance``, and q >= 2.
    axes : tuple of int
        The two axes, numbered from 1, the longest first.
    groups : sequence of shape (rows,), optional
        Labels that determine the colours of points.

    Returns
    -------
    matplotlib.figure.Figure
        The loadings of each draw, and the factors, are rotated to the principal axes of the mean covariance
        (Procrustes). Bars are one standard deviation of a row's factors, for at most 300 rows. Pale points are the
        arrow heads of at most 100 draws. Arrows have their own scale, on the right and top. Rows and columns of an
        approximation that draws of the posterior do not agree on along both axes are left out.

    Raises
    ------
    InputError
        When the axes do not exist, or ``groups`` does not have one entry for each row.
    Untrustworthy
        When the fit failed its gate.
    """
    fit = answering(Fit(tree), _PICTURES)
    q, rows = _named(fit, _OF_ROWS)["loadings"].shape[2], fit.data.rows
    if len(axes) != 2 or axes[0] == axes[1] or not all(isinstance(axis, int) and 1 <= axis <= q for axis in axes):
        raise InputError(
            f"axes must be two different numbers from 1 to {q}, got {axes}",
            "out_of_range",
            hint="a biplot needs q >= 2",
        )
    if groups is not None and len(groups) != rows:
        raise InputError(f"groups has {len(groups)} entries, there are {rows} rows", "wrong_shape")
    chosen = [axis - 1 for axis in axes]
    along_axes = _agreeing_biplot(fit, chosen)
    figure, panel = _figure(fit, 6.4, 6.0)
    _draw_rows(panel, along_axes, chosen, None if groups is None else np.asarray(groups).astype(str))
    _draw_columns(panel, along_axes.loadings[..., chosen], [str(name) for name in fit.data["column"]])
    panel.set(xlabel=f"factor along axis {axes[0]}", ylabel=f"factor along axis {axes[1]}")
    return figure


def biplot(params: Params, Y: np.ndarray, most: int = MOST_DRAWS) -> Biplot:
    """Return scores (rows, q) and loadings at ``most`` draws along the principal axes of the mean covariance."""
    selection = {name: values[:: -(-len(values) // most)] for name, values in params.items()}
    turn = procrustes(selection["loadings"], principal_axes(selection["loadings"]))
    latent = latent_posterior(selection, Y)
    means = latent.mean @ turn
    covariance = turn[:, None].mT @ latent.covariance @ turn[:, None]
    variance = np.diagonal(covariance, axis1=-2, axis2=-1).mean(axis=0) + means.var(axis=0)
    return Biplot(means.mean(axis=0), np.sqrt(variance), selection["loadings"] @ turn)


def _agreeing_biplot(fit: Fit, chosen: list[int]) -> Biplot:
    """Return the biplot of a fit, NaN for rows and columns that draws of the posterior put elsewhere."""
    Y = np.asarray(fit.data["Y"])
    if not is_judged(fit):
        return biplot(_named(fit, _OF_ROWS), Y)
    most = max(MOST_DRAWS, AT_ONCE // Y.size)  # the errors of few draws would pass for those of the approximation
    own, known = (biplot(_named(of, _OF_ROWS), Y, most) for of in (fit, reference_of(fit)))
    limits = limits_of(fit)
    moments = ((of.scores[:, chosen], of.score_sd[:, chosen]) for of in (own, known))
    rows = limits.moments_agree(*moments).all(axis=1, keepdims=True)
    statistics, others = (statistics_of(of.loadings[None][..., chosen]) for of in (own, known))
    columns = gaps_agree(gaps_of(statistics, others), others, limits).all(axis=1, keepdims=True)
    if not (rows.any() or columns.any()):
        refuse(fit, _PICTURES)
    return Biplot(np.where(rows, own.scores, np.nan), own.score_sd, np.where(columns, own.loadings, np.nan))


def _draw_rows(panel: Axes, along_axes: Biplot, chosen: list[int], groups: np.ndarray | None) -> None:
    x, y = along_axes.scores[:, chosen].T
    if len(x) <= MOST_BARS:
        dx, dy = along_axes.score_sd[:, chosen].T
        panel.errorbar(x, y, xerr=dx, yerr=dy, fmt="none", ecolor="0.88", lw=0.6, zorder=1)
    for i, name in enumerate([None] if groups is None else np.unique(groups)):
        rows = slice(None) if name is None else groups == name
        panel.plot(x[rows], y[rows], "o", ms=3, color=f"C{i}" if name else "0.45", label=name, zorder=2)
    if groups is not None:
        panel.legend(fontsize="small", frameon=False)


def _draw_columns(panel: Axes, loadings: np.ndarray, names: list[str]) -> None:
    """Draw arrows of loadings (draws, D, 2) over the points of the panel, with separate axes."""
    from matplotlib.patheffects import withStroke

    mean = loadings.mean(axis=0)
    reach = max(np.abs(panel.get_xlim()).max(), np.abs(panel.get_ylim()).max())
    if np.isnan(mean).all():
        return
    scale = 0.75 * reach / max(float(np.nanmax(np.abs(mean))), np.finfo(float).tiny)
    panel.set(xlim=(-reach, reach), ylim=(-reach, reach))
    if len(loadings) > 1:
        heads = (loadings[:: -(-len(loadings) // MOST_HEADS)] * scale).reshape(-1, 2)
        panel.plot(heads[:, 0], heads[:, 1], ".", color=_PALE, ms=2, alpha=0.5, zorder=3)
    halo = [withStroke(linewidth=2.5, foreground="white")]
    for (x, y), name in zip(mean * scale, names, strict=True):
        if np.isnan(x):
            continue
        panel.annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "->", "color": _DARK, "lw": 1.3}, zorder=4)
        words = panel.text(1.05 * x, 1.05 * y, name, color=_DARK, fontsize="small", parse_math=False, zorder=5)
        words.set(ha="left" if x >= 0 else "right", va="bottom" if y >= 0 else "top", path_effects=halo)
    scaling = (lambda v: v / scale, lambda v: v * scale)
    for side in (panel.secondary_xaxis("top", functions=scaling), panel.secondary_yaxis("right", functions=scaling)):
        side.tick_params(labelsize="small", colors=_DARK)


def _intervals(axes: Axes, places: np.ndarray, draws: np.ndarray, label: str) -> None:
    low, middle, high = np.quantile(draws, [BAND[0], 0.5, BAND[1]], axis=0)
    bars = np.array([middle - low, high - middle]) if len(draws) > 1 else None
    axes.errorbar(places, middle, yerr=bars, fmt="o", color=_DARK, ecolor=_PALE, elinewidth=2.5, ms=4, label=label)


def _figure(fit: Fit, width: float = 5.2, height: float = 3.6) -> tuple[Figure, Axes]:
    figure, (axes,) = panels(1, width, height)
    axes.tick_params(labelsize="small")
    figure.suptitle(f"{fit.tree.attrs['model']}, {fit.method} ({fit.kind})", fontsize="medium")
    return figure, axes


def _shown(fit: Fit, names: tuple[str, ...], quantities: Callable[[Params], np.ndarray]) -> np.ndarray:
    """Return draws (draws, n) of quantities of named parameters; NaN where those of an approximation are withheld."""
    return agreeing_draws(answering(fit, _PICTURES), _PICTURES, lambda view: quantities(_named(view, names)))


def _named(fit: Fit, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Return the draws of named parameters, pooled over chains."""
    draws = fit.pooled()
    if missing := [name for name in names if name not in draws]:
        raise InputError(
            f"{fit.model.name} has no {missing[0]}", "no_capability", hint="give a fit of ppca or bayesian_pca"
        )
    return {name: draws[name] for name in names}
