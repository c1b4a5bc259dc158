"""Pictures of fits: thin functions over `arviz_plots`, each returning its `PlotCollection`.

``bz.plots.posterior([nuts, advi, map]).savefig("posterior.png")``. Scalars are named as in the table of estimates, such
as ``beta[age]``, and each has a panel.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import lazy_loader
import numpy as np

from bayeszoo.comparison.compare import names_of, require_same_data
from bayeszoo.errors import InputError
from bayeszoo.foundation.diagnostics import relative_efficiency
from bayeszoo.foundation.gate import k_hat_limit
from bayeszoo.plots import drawable as choice
from bayeszoo.plots import style as pictures
from bayeszoo.plots.drawable import EXACT, MODE
from bayeszoo.results import quantities as scalars
from bayeszoo.results.arviz_groups import extend
from bayeszoo.results.matched import matched
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import xarray as xr
    from arviz_plots import PlotCollection
    from matplotlib.figure import Figure

    Entry = tuple[str, dict[str, Any]]
else:
    xr = lazy_loader.load("xarray")

MOST = 12
"""Most scalars with a panel, if none are named."""
_CHAINS = pictures.COLOURS[:4]


def trace(tree: xr.DataTree, quantities: Sequence[str] | None = None, **options: Any) -> PlotCollection:
    """Draw each chain of each quantity in the order of draws, by `arviz_plots.plot_trace`.

    Parameters
    ----------
    tree : xarray.DataTree
        A fit by a sampler.
    quantities : sequence of str, optional
        Labels of scalars; by default the first `MOST`, or if components are withheld the quantities that do not depend
        on their labels.
    **options
        Options of the ArviZ function.

    Raises
    ------
    InputError
        When the fit has no chains, or the quantity does not exist.
    """
    visuals = {"trace": {"width": 0.5, "alpha": 0.85}} | options.pop("visuals", {})
    return _arviz().plot_trace(_chains(Fit(tree), quantities), color=_CHAINS, visuals=visuals, **_panels(options))


def rank(tree: xr.DataTree, quantities: Sequence[str] | None = None, **options: object) -> PlotCollection:
    """Draw the distribution of the ranks of each chain among all draws, with its envelope, by `arviz_plots.plot_rank`.

    Parameters and errors are those of `trace`. Chains that explore the same posterior stay within the envelope.
    """
    return _arviz().plot_rank(_chains(Fit(tree), quantities), color=_CHAINS, **_panels(options))


def ess(tree: xr.DataTree, quantities: Sequence[str] | None = None, **options: object) -> PlotCollection:
    """Draw the effective sample size against the number of draws, by `arviz_plots.plot_ess_evolution`.

    Parameters and errors are those of `trace`.
    """
    return _arviz().plot_ess_evolution(_chains(Fit(tree), quantities), **_panels(options))


def energy(tree: xr.DataTree, **options: object) -> PlotCollection:
    """Draw the energies of Hamiltonian Monte Carlo and their transitions, by `arviz_plots.plot_energy`.

    Raises
    ------
    InputError
        When the sampler has no energy.
    """
    if "energy" not in tree.children.get("sample_stats", {}):
        raise InputError(f"{tree.attrs['method']} has no energy", "no_draws", hint="give a fit by nuts")
    from matplotlib.ticker import MaxNLocator

    collection = _arviz().plot_energy(tree, **({"backend": "matplotlib"} | options))
    for axes in collection.viz["figure"].item().axes:
        if axes.get_ylabel() == "Chain":
            axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    return collection


def pair(tree: xr.DataTree, quantities: Sequence[str] | None = None, **options: Any) -> PlotCollection:
    """Draw quantities against each other, with divergent transitions marked, by `arviz_plots.plot_pair`.

    Parameters and errors are those of `trace`; by default there are at most five quantities.
    """
    fit = Fit(tree)
    chosen = scalars.labels(fit, scalars.free_of_labels(fit))[:5] if quantities is None else quantities
    visuals = {"divergence": {"color": MODE}, "scatter": {"alpha": 0.15}} | options.pop("visuals", {})
    return _arviz().plot_pair(_chains(fit, chosen), visuals=visuals, **_named(options))


def khat(tree: xr.DataTree, **options: Any) -> PlotCollection:
    """Draw the Pareto k-hat of leaving out each row, as in `az.loo`, by `arviz_plots.plot_khat`.

    Rows are numbered from 1. Above the line, at 0.7 or lower with few draws, importance weights cannot be used. Rows
    without a finite k-hat are not drawn; the label of the axis has their number.

    Raises
    ------
    InputError
        When the model does not define the distribution of an observation, there are no draws, or no k-hat is finite.
    """
    from bayeszoo.answers.averages import importance

    groups = Fit(extend(tree.copy(), ["log_likelihood"]))
    log_p = next(iter(groups.pooled("log_likelihood").values()))
    k_hats = importance(log_p, relative_efficiency(groups.draws().values()))[1]
    if not np.isfinite(k_hats).any():
        raise InputError("no row has a finite k-hat", "no_quantity")
    infinite = int(np.sum(~np.isfinite(k_hats)))
    axis = "row" + f" ({infinite} of {len(k_hats)} have no finite k-hat)" * (infinite > 0)
    visuals = {"hlines": {"color": MODE, "linestyle": "--"}, "xlabel": {"text": axis}} | options.pop("visuals", {})
    numbers = Fit(tree).data.numbers
    by_row = np.full(1 + numbers.max(), np.nan)  # there is no row 0
    by_row[numbers] = np.where(np.isfinite(k_hats), k_hats, np.nan)
    settings = {"hline_values": [k_hat_limit(len(log_p))], "backend": "matplotlib", "visuals": visuals} | options
    collection = _arviz().plot_khat(SimpleNamespace(pareto_k=xr.DataArray(by_row, dims="row")), **settings)
    _laid_out(collection)
    return collection


def posterior(
    fits: xr.DataTree | Sequence[xr.DataTree],
    quantities: Sequence[str] | None = None,
    *,
    exact: bool = True,
    mode: bool = True,
    **options: Any,
) -> PlotCollection:
    """Draw marginal densities of one or several fits, with exact densities and the mode, by `arviz_plots.plot_dist`.

    Parameters
    ----------
    fits : DataTree or sequence of DataTree
        Fits to the same data. A point estimate is drawn only as the mode of the posterior.
    quantities : sequence of str, optional
        Labels of scalars; by default the first `MOST` that vary between draws.
    exact, mode : bool
        Whether to draw the closed form and the mode, if all fits have the same model and prior; otherwise neither is.
    **options
        Options of the ArviZ function.

    Returns
    -------
    PlotCollection
        Draws are coloured by method; the closed-form density, if the model has one, is a dashed black line; the mode of
        the joint posterior, in the constrained space, is a dotted red line. If models or priors differ, names of fits
        include these. Exchangeable components have matching numbers in all fits.

    Raises
    ------
    Untrustworthy
        When the estimates of a fit are withheld.
    InputError
        When the fits are of different data, or the quantity does not exist.
    """
    together = choice.trusted(choice.listed(fits))
    drawn = choice.with_draws(together)
    if not drawn:
        raise InputError("none of the fits has draws", "no_draws", hint="a point estimate has no density")
    named = dict(zip(map(id, together), names_of(together), strict=True))
    chosen = scalars.varying(drawn[0], scalars.labels(drawn[0]))[:MOST] if quantities is None else list(quantities)
    is_one = choice.same_model(together)
    curves = scalars.exact_densities(drawn[0], chosen) if exact and is_one else None
    entries: list[Entry] = []
    collection: Any = None
    for fit, colour in zip(drawn, choice.colours(drawn), strict=True):
        look = {"color": colour, "width": 2.0}
        quiet = {"credible_interval": False, "point_estimate": False, "point_estimate_text": False}
        quiet |= {} if collection is None else {"title": False}
        looks = {"visuals": {"dist": look, **quiet}, **_panels(options)}
        collection = _arviz().plot_dist(scalars.draws_of(fit, chosen), plot_collection=collection, **looks)
        of_exact = "draws of " * (fit.method == "exact" and curves is not None)
        entries.append((f"{of_exact}{named[id(fit)]}", look))
    _legend(collection, entries + _over(collection, curves, _mode(together, chosen) if mode and is_one else None))
    return collection


def _over(collection: PlotCollection, curves: xr.Dataset | None, mode: xr.Dataset | None) -> list[Entry]:
    """Draw the closed form and the mode over densities; return their entries in the legend."""
    from arviz_plots import visuals as marks

    entries: list[Entry] = []
    if curves is not None:
        entries.append(("exact", {"color": EXACT, "linestyle": "--", "width": 1.4}))
        collection.map(marks.line_xy, "exact", data=curves, ignore_aes="all", **entries[-1][1])
    if mode is not None:
        entries.append(("MAP", {"color": MODE, "linestyle": ":", "width": 1.6}))
        collection.map(marks.vline, "mode", data=mode, ignore_aes="all", **entries[-1][1])
    return entries


def _mode(fits: Sequence[Fit], quantities: Sequence[str]) -> xr.Dataset | None:
    """Return the mode from a fit by ``map``, else from the closed form."""
    map_first = sorted(fits, key=lambda fit: fit.method != "map")
    return next((mode for fit in map_first if (mode := scalars.modes(fit, quantities)) is not None), None)


def overlay(fits: xr.DataTree | Sequence[xr.DataTree], **options: Any) -> PlotCollection:
    """Draw the first entry of each parameter by `posterior`, for fits that have them and may be shown.

    Closed form and mode are not drawn if the fit by ``exact`` or by ``map`` is withheld.

    Raises
    ------
    InputError
        When no fit has draws that may be shown.
    """
    every = choice.listed(fits)
    shown = choice.drawable(every)
    if not shown:
        raise InputError("none of the fits has draws that may be shown", "no_draws")
    chosen = choice.one_of_each(shown[0])
    shown = choice.with_quantities(shown, chosen)
    drawn = [fit.tree for fit in (*shown, *choice.at_modes(every, shown))]
    return posterior(drawn, chosen, **choice.lines(every, shown) | options)


def forest(
    fits: xr.DataTree | Sequence[xr.DataTree], quantities: Sequence[str] | None = None, **options: object
) -> PlotCollection:
    """Draw the intervals of quantities of equal units, for one or several fits, by `arviz_plots.plot_forest`.

    Parameters and errors are those of `posterior`; by default there are at most 36 quantities.
    """
    drawn = choice.with_draws(choice.trusted(choice.listed(fits)))
    if not drawn:
        raise InputError("none of the fits has draws", "no_draws", hint="a point estimate has no interval")
    chosen = scalars.labels(drawn[0])[: 3 * MOST] if quantities is None else list(quantities)
    draws = [scalars.draws_of(fit, chosen) for fit in drawn]
    return _forest(dict(zip(names_of(drawn), draws, strict=True)), drawn, options)


def shrinkage(
    approximation: xr.DataTree, reference: xr.DataTree, quantities: Sequence[str] | None = None, **options: object
) -> PlotCollection:
    """Draw how much an approximation is too narrow, such as ADVI against NUTS, by `arviz_plots.plot_forest`.

    Parameters
    ----------
    approximation, reference : xarray.DataTree
        Fits of one model with one prior to the same data, such as by ``advi`` and by ``nuts``.
    quantities, **options
        As for `posterior`; by default at most 24 quantities. Quantities whose standard deviation is 0 or not finite are
        left out.

    Returns
    -------
    PlotCollection
        Each quantity minus the mean of the reference, divided by its standard deviation, so that all intervals of the
        reference are equal. Short intervals are overconfident, shifted ones are biased. The labels give the ratio of
        the standard deviations.

    Raises
    ------
    Untrustworthy
        When the estimates of the reference are withheld. Those of the approximation are drawn even if withheld, as the
        picture shows their errors, and the legend says so.
    InputError
        When the fits are of different data, models or priors, or no quantity can be compared.
    """
    fits = [Fit(reference), Fit(approximation)]
    choice.trusted(fits[:1])
    require_same_data([(fit.data_digest, fit.data_source) for fit in fits], "fits")
    if not choice.same_model(fits):
        raise InputError(f"{' and '.join(names_of(fits))} are fits of different models or priors", "not_comparable")
    fits = matched(fits)
    wanted = scalars.labels(fits[0]) if quantities is None else quantities
    chosen = scalars.finite(fits[1], scalars.measurable(fits[0], wanted))[: 2 * MOST if quantities is None else None]
    if not chosen:
        raise InputError("no quantity has a standard deviation that is finite and not 0", "no_quantity")
    marks = [" (withheld)" * bool(choice.withheld(fit)) for fit in fits]
    names = [name + mark for name, mark in zip(names_of(fits), marks, strict=True)]
    draws = {name: scalars.draws_of(fit, chosen) for name, fit in zip(names, fits, strict=True)}
    first, second = draws.values()
    mean, sd = first.mean(("chain", "draw")), first.std(("chain", "draw"))
    ratios = (second.std(("chain", "draw")) / sd)["value"].to_numpy()
    rows = [f"{label}  (sd ratio {ratio:.2f})" for label, ratio in zip(chosen, ratios, strict=True)]
    moved = {name: ((values - mean) / sd).assign_coords(quantity=rows) for name, values in draws.items()}
    return _forest(moved, fits, options)


def _forest(draws: dict[str, xr.Dataset], fits: Sequence[Fit], options: dict[str, Any]) -> PlotCollection:
    several, colours = len(draws) > 1, choice.colours(fits)
    together = xr.concat(list(draws.values()), dim="model", join="outer").assign_coords(model=list(draws))
    settings: dict[str, Any] = {
        "combined": True,
        "figure_kwargs": _forest_size(together["quantity"].to_numpy(), len(draws)),
        "labels": ["quantity"],
        "ci_probs": (0.5, 0.95),
        "stats": {name: {"skipna": True} for name in ("trunk", "twig", "point_estimate")},  # shorter fits end in NaN
        **({"color": colours} if several else {}),
    }
    looks = {} if several else {name: {"color": colours[0]} for name in ("trunk", "twig")}
    drawn = together if several else together.isel(model=0, drop=True)
    visuals = looks | options.pop("visuals", {})
    collection = _arviz().plot_forest(drawn, visuals=visuals, **_named(settings | options))
    if several:
        _legend(
            collection, [(name, {"color": colour, "width": 2.0}) for name, colour in zip(draws, colours, strict=True)]
        )
    _laid_out(collection).axes[0].set_axis_off()  # the axis of the labels has no scale
    return collection


def _forest_size(names: np.ndarray, fits: int) -> dict[str, Any]:
    """Return the size of the figure and the widths of its columns, in inches, by the lengths of names."""
    rows = max(3.0, len(names) * (1.6 + fits) / 1.6)
    beside = min(max(2.5, 0.085 * max(len(str(name)) for name in names)), 8.0)
    height = 0.6 + 0.16 * rows + 0.3 * fits * (fits > 1)  # with room for the legend
    return {"figsize": (5 + beside, height), "width_ratios": [beside, 5.0]}


# Drawn quantities


def _arviz() -> Any:
    """Return ArviZ's plots; they accept datasets, but their annotations do not."""
    import arviz_plots

    return arviz_plots


def _chains(fit: Fit, quantities: Sequence[str] | None) -> xr.DataTree:
    """Return the draws of a sampler, with its marks of divergences."""
    if fit.kind != "sampled":
        raise InputError(f"{fit.method} has no chains", "no_draws", hint="give a fit by nuts, gibbs or smc")
    groups = scalars.free_of_labels(fit) if quantities is None else (*scalars.GROUPS, "invariants")
    chosen = scalars.labels(fit, groups)[:MOST] if quantities is None else quantities
    groups_ = {"posterior": scalars.draws_of(fit, chosen, groups)}
    if "diverging" in fit.tree.children.get("sample_stats", {}):
        groups_["sample_stats"] = fit.tree["sample_stats"].to_dataset()[["diverging"]]
    return xr.DataTree.from_dict(groups_)


def _named(options: dict[str, Any]) -> dict[str, Any]:
    """Add options that label panels by the quantity alone."""
    from arviz_base.labels import NoVarLabeller

    return {"labeller": NoVarLabeller(), "backend": "matplotlib"} | options


def _panels(options: dict[str, Any]) -> dict[str, Any]:
    return _named({"col_wrap": 3} | options)


def _legend(collection: PlotCollection, entries: Sequence[Entry]) -> None:
    """Put a legend below the figure, in as many columns as fit."""
    from arviz_plots.backend.matplotlib import legend

    room = int(14 * _laid_out(collection).get_figwidth())  # characters in a line
    names = [textwrap.fill(name, max(20, room - 8)) for name, _ in entries]
    longest = max(len(line) for name in names for line in name.splitlines())
    across = max(1, min(len(names), 5, room // (longest + 6)))
    legend(collection, [dict(look) for _, look in entries], names, loc="outside lower center", ncols=across)


def _laid_out(collection: PlotCollection) -> Figure:
    """Return the figure, with a layout that leaves room for its legend."""
    figure: Figure = collection.viz["figure"].item()
    if figure.get_layout_engine() is None:
        figure.set_layout_engine("constrained")
    return figure
