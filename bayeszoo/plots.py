"""Pictures of fits: thin functions over `arviz_plots`, each returning its `PlotCollection`.

``bz.plots.posterior([nuts, advi, map]).savefig("posterior.png")``. Scalars are named as in the table of estimates, such
as ``beta[age]``, and each has a panel.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import lazy_loader

from bayeszoo import pictures
from bayeszoo.compare import require_same_data
from bayeszoo.errors import InputError, Untrustworthy
from bayeszoo.quantities import draws_of, exact_densities, free_of_labels, labels, modes
from bayeszoo.summary import components_withheld, failures_of

if TYPE_CHECKING:
    import xarray as xr
    from arviz_plots import PlotCollection
else:
    xr = lazy_loader.load("xarray")

MOST = 12
"""Scalars that have a panel, where none are named."""
COLOURS = {
    "nuts": "#1f5a92",
    "gibbs": "#1f5a92",
    "smc": "#2a8f8a",
    "exact": "#8a8f98",
    "enumerate": "#8a8f98",
    "advi": "#d9822b",
    "fullrank_advi": "#b0562f",
    "laplace": "#7a5ea8",
    "vb": "#5b9a3c",
}
"""The colour of each method's draws; grey is what is exact."""
EXACT, MODE = "#16181d", "#c0392b"
"""The colours of the closed form and of the mode."""
_CHAINS = pictures.COLOURS[:4]


def trace(tree: xr.DataTree, quantities: Sequence[str] | None = None, **options: Any) -> PlotCollection:
    """Draw each chain of each quantity in the order of its draws: `arviz_plots.plot_trace`.

    Parameters
    ----------
    tree : xarray.DataTree
        What `fit` returned, by a sampler.
    quantities : sequence of str, optional
        Labels of scalars; by default the first `MOST`, and where labels of components mean nothing the quantities that
        do not depend on them.
    **options
        Of the ArviZ function.

    Raises
    ------
    InputError
        When the fit has no chains, or there is no such quantity.
    """
    visuals = {"trace": {"width": 0.5, "alpha": 0.85}} | options.pop("visuals", {})
    return _arviz().plot_trace(_chains(tree, quantities), color=_CHAINS, visuals=visuals, **_panels(options))


def rank(tree: xr.DataTree, quantities: Sequence[str] | None = None, **options: Any) -> PlotCollection:
    """Draw how the ranks of each chain among all draws are spread, with its envelope: `arviz_plots.plot_rank`.

    Parameters and errors are those of `trace`. Chains that explore the same posterior stay within the envelope.
    """
    return _arviz().plot_rank(_chains(tree, quantities), color=_CHAINS, **_panels(options))


def ess(tree: xr.DataTree, quantities: Sequence[str] | None = None, **options: Any) -> PlotCollection:
    """Draw how the effective sample size grows with the draws: `arviz_plots.plot_ess_evolution`.

    Parameters and errors are those of `trace`.
    """
    return _arviz().plot_ess_evolution(_chains(tree, quantities), **_panels(options))


def energy(tree: xr.DataTree, **options: Any) -> PlotCollection:
    """Draw the energies of Hamiltonian Monte Carlo and their transitions: `arviz_plots.plot_energy`.

    Raises
    ------
    InputError
        When the sampler has no energy.
    """
    if "energy" not in tree.children.get("sample_stats", {}):
        raise InputError(f"{tree.attrs['method']} has no energy", hint="energies are of NUTS")
    return _arviz().plot_energy(tree, **options)


def pair(tree: xr.DataTree, quantities: Sequence[str] | None = None, **options: Any) -> PlotCollection:
    """Draw quantities against each other, divergent transitions marked: `arviz_plots.plot_pair`.

    Parameters and errors are those of `trace`; by default there are at most five quantities.
    """
    chosen = labels(tree, free_of_labels(tree))[:5] if quantities is None else quantities
    visuals = {"divergence": {"color": MODE}, "scatter": {"alpha": 0.15}} | options.pop("visuals", {})
    return _arviz().plot_pair(_chains(tree, chosen), visuals=visuals, **_named(options))


def khat(tree: xr.DataTree, **options: Any) -> PlotCollection:
    """Draw the Pareto k-hat of each observation left out: `arviz_plots.plot_khat`.

    Raises
    ------
    InputError
        When the model does not say how one observation is distributed, or there are no draws.
    """
    import arviz_stats

    from bayeszoo.pointwise import with_log_likelihood

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Estimated shape parameter of Pareto")  # which is what the picture says
        found = arviz_stats.loo(with_log_likelihood(tree), pointwise=True)
    return _arviz().plot_khat(found, **options)


def posterior(
    fits: xr.DataTree | Sequence[xr.DataTree], quantities: Sequence[str] | None = None, **options: Any
) -> PlotCollection:
    """Draw marginal densities of one or several fits, the exact ones and the mode over them: `arviz_plots.plot_dist`.

    Parameters
    ----------
    fits : DataTree or sequence of DataTree
        Fits of one model to the same data. Of point estimates only the mode of the posterior is drawn.
    quantities : sequence of str, optional
        Labels of scalars; by default the first `MOST`.
    **options
        Of the ArviZ function.

    Returns
    -------
    PlotCollection
        Draws are coloured by method; the closed-form density, where the model has one, is a dashed black line; the mode
        of the joint posterior, in the constrained space, is a red dotted one.

    Raises
    ------
    Untrustworthy
        When the estimates of a fit are withheld.
    InputError
        When the fits are of different data, or there is no such quantity.
    """
    from arviz_plots import visuals as marks

    trees = _listed(fits)
    drawn, chosen = _trusted(trees), labels(trees[0])[:MOST] if quantities is None else list(quantities)
    entries: list[tuple[str, dict[str, Any]]] = []
    collection = None
    for tree in drawn:
        look = {"color": COLOURS.get(tree.attrs["method"], _CHAINS[0]), "width": 2.0}
        quiet = {"credible_interval": False, "point_estimate": False, "point_estimate_text": False}
        quiet |= {} if collection is None else {"title": False}
        collection = _arviz().plot_dist(
            draws_of(tree, chosen), visuals={"dist": look, **quiet}, plot_collection=collection, **_panels(options)
        )
        entries.append((_name(tree, drawn), look))
    if collection is None:
        raise InputError("none of the fits has draws", hint="a point estimate has no density")
    exact = exact_densities(trees[0], chosen)
    if exact is not None:
        entries.append(("exact", {"color": EXACT, "linestyle": "--", "width": 1.4}))
        collection.map(marks.line_xy, "exact", data=exact, ignore_aes="all", **entries[-1][1])
    mode = next((found for tree in _by_mode(trees) if (found := modes(tree, chosen)) is not None), None)
    if mode is not None:
        entries.append(("MAP", {"color": MODE, "linestyle": ":", "width": 1.6}))
        collection.map(marks.vline, "mode", data=mode, ignore_aes="all", **entries[-1][1])
    _legend(collection, entries)
    return collection


def overlay(fits: Sequence[xr.DataTree], **options: Any) -> PlotCollection:
    """Draw the first entry of each parameter as `posterior` does, of those fits that may be shown.

    Raises
    ------
    InputError
        When no fit has draws that may be shown.
    """
    shown = drawable(fits)
    if not shown:
        raise InputError("none of the fits has draws that may be shown")
    return posterior([*shown, *at_modes(fits)], one_of_each(shown[0]), **options)


def one_of_each(tree: xr.DataTree, most: int = 3) -> list[str]:
    """Return the first entry of each parameter; of a single parameter its first entries."""
    every = labels(tree)
    firsts = list({label.partition("[")[0]: label for label in reversed(every)}.values())[::-1]
    return (firsts if len(firsts) > 1 else every)[:most]


def drawable(trees: Sequence[xr.DataTree]) -> list[xr.DataTree]:
    """Return the fits that have draws and are not withheld, sampled ones first.

    Independent draws of the exact posterior are left out beside others: they say nothing that its density does not.
    """
    found = [one for one in trees if one.attrs["kind"] != "point estimate" and not withheld(one)]
    if len(found) > 1:
        found = [one for one in found if one.attrs["method"] != "exact"]
    return sorted(found, key=lambda one: one.attrs["kind"] != "sampled")


def at_modes(trees: Sequence[xr.DataTree]) -> list[xr.DataTree]:
    """Return the fits by ``map`` that may be shown."""
    return [one for one in trees if one.attrs["method"] == "map" and not withheld(one)]


def forest(
    fits: xr.DataTree | Sequence[xr.DataTree], quantities: Sequence[str] | None = None, **options: Any
) -> PlotCollection:
    """Draw the intervals of quantities that are measured alike, of one or several fits: `arviz_plots.plot_forest`.

    Parameters and errors are those of `posterior`.
    """
    trees = _trusted(_listed(fits))
    if not trees:
        raise InputError("none of the fits has draws", hint="a point estimate has no interval")
    chosen = labels(trees[0])[: 3 * MOST] if quantities is None else list(quantities)
    return _forest({_name(tree, trees): draws_of(tree, chosen) for tree in trees}, trees, options)


def shrinkage(
    approximation: xr.DataTree, reference: xr.DataTree, quantities: Sequence[str] | None = None, **options: Any
) -> PlotCollection:
    """Draw how much too narrow an approximation is, as ADVI against NUTS: `arviz_plots.plot_forest`.

    Parameters
    ----------
    approximation, reference : xarray.DataTree
        Fits of one model to the same data, such as by ``advi`` and by ``nuts``.
    quantities, **options
        As of `posterior`.

    Returns
    -------
    PlotCollection
        Each quantity less the mean of the reference, over its standard deviation: the reference's intervals are all
        alike, and what is shorter is too sure, what is beside them is off. The labels give the ratio of the standard
        deviations.

    Raises
    ------
    Untrustworthy
        When the estimates of the reference are withheld; those of the approximation are drawn all the same, as what is
        wrong with them is the point.
    """
    _trusted([reference])
    require_same_data([(t.attrs["data_digest"], t.attrs["data_source"]) for t in (approximation, reference)], "fits")
    chosen = labels(reference)[: 2 * MOST] if quantities is None else list(quantities)
    found = {_name(tree, []): draws_of(tree, chosen) for tree in (reference, approximation)}
    first, second = found.values()
    mean, sd = (getattr(first, name)(("chain", "draw")) for name in ("mean", "std"))
    ratios = (second.std(("chain", "draw")) / sd)["value"].to_numpy()
    named = [f"{label}  (sd ratio {ratio:.2f})" for label, ratio in zip(chosen, ratios, strict=True)]
    moved = {name: ((one - mean) / sd).assign_coords(quantity=named) for name, one in found.items()}
    return _forest(moved, [reference, approximation], options)


def _forest(found: dict[str, xr.Dataset], trees: Sequence[xr.DataTree], options: dict[str, Any]) -> PlotCollection:
    colours = [COLOURS.get(tree.attrs["method"], _CHAINS[0]) for tree in trees]
    rows = len(next(iter(found.values()))["quantity"])
    size = {"figsize": (7.5, 0.6 + rows * (0.16 + 0.1 * len(found)))}
    settings = {"combined": True, "figure_kwargs": size, "labels": ["quantity"], "ci_probs": (0.5, 0.95)}
    if len(found) == 1:
        visuals = {name: {"color": colours[0]} for name in ("trunk", "twig")} | options.pop("visuals", {})
        collection = _arviz().plot_forest(next(iter(found.values())), visuals=visuals, **_named(settings | options))
    else:
        collection = _arviz().plot_forest(found, color=colours, **_named(settings | options))
        collection.add_legend("model", title="")
    collection.viz["figure"].item().axes[0].set_axis_off()  # the axis of the labels, which measures nothing
    return collection


# What is drawn


def _arviz() -> Any:
    """Import ArviZ's plots; they take datasets, which their annotations do not say."""
    import arviz_plots

    return arviz_plots


def _listed(fits: Any) -> list[xr.DataTree]:
    return [fits] if hasattr(fits, "children") else list(fits)


def _chains(tree: xr.DataTree, quantities: Sequence[str] | None) -> xr.DataTree:
    """Return the draws of a sampler, with what it says of them."""
    if tree.attrs["kind"] != "sampled":
        raise InputError(f"{tree.attrs['method']} has no chains", hint="draw this of a fit by nuts, gibbs or smc")
    groups = free_of_labels(tree)
    chosen = labels(tree, groups)[:MOST] if quantities is None else quantities
    made = {"posterior": draws_of(tree, chosen, groups)}
    if "diverging" in tree.children.get("sample_stats", {}):
        made["sample_stats"] = tree["sample_stats"].to_dataset()[["diverging"]]
    return xr.DataTree.from_dict(made)


def _trusted(trees: Sequence[xr.DataTree]) -> list[xr.DataTree]:
    """Return the fits that have draws, once all of them may be shown and are of the same data."""
    require_same_data([(tree.attrs["data_digest"], tree.attrs["data_source"]) for tree in trees], "fits")
    for tree in trees:
        if why := withheld(tree):
            raise Untrustworthy(f"{tree.attrs['method']}: {why}")
    return [tree for tree in trees if tree.attrs["kind"] != "point estimate"]


def withheld(tree: xr.DataTree) -> str:
    """Say why no estimate of a fit may be drawn, if none may."""
    if tree.attrs["status"] != "ok":
        return "; ".join(failures_of(tree))
    return components_withheld(tree)


def _by_mode(trees: Sequence[xr.DataTree]) -> list[xr.DataTree]:
    """Put the fits first that were asked for the mode."""
    return sorted(trees, key=lambda tree: tree.attrs["method"] != "map")


def _name(tree: xr.DataTree, others: Sequence[xr.DataTree]) -> str:
    """Name a fit by its method, numbered where several have it."""
    method, same = tree.attrs["method"], [one for one in others if one.attrs["method"] == tree.attrs["method"]]
    place = next((i for i, one in enumerate(same, 1) if one is tree), 1)
    return f"{method} {place}" if len(same) > 1 else str(method)


def _named(options: dict[str, Any]) -> dict[str, Any]:
    """Label panels by the quantity alone."""
    from arviz_base.labels import NoVarLabeller

    return {"labeller": NoVarLabeller(), "backend": "matplotlib"} | options


def _panels(options: dict[str, Any]) -> dict[str, Any]:
    return _named({"col_wrap": 3} | options)


def _legend(collection: PlotCollection, entries: Sequence[tuple[str, dict[str, Any]]]) -> None:
    """Say on the figure which line is what."""
    from arviz_plots.backend.matplotlib import legend

    names, looks = zip(*entries, strict=True)
    across = min(len(names), 5)
    legend(collection, [dict(look) for look in looks], list(names), loc="outside lower center", ncols=across)
