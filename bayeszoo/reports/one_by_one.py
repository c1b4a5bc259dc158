"""ArviZ's pictures of a fit: each quantity by itself, intervals together, and what the sampler says of its run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo import plots
from bayeszoo.quantities import draws_of, free_of_labels, labels
from bayeszoo.reports.blocks import Choice, Grid, Section, Skipped, Words, best, picture
from bayeszoo.summary import components_withheld, not_listed

if TYPE_CHECKING:
    import xarray as xr

MOST = 8
"""Quantities that have pictures of their own."""
_SMALL, _WIDE = (4.6, 2.7), (9.4, 3.0)
_HERO = 5.4


def hero(trees: Sequence[xr.DataTree]) -> Any:
    """Return the picture of the first screen: densities of the first entry of each parameter."""
    shown = plots.drawable(trees)
    if not shown:
        reasons = [plots.withheld(one) for one in trees if one.attrs["kind"] != "point estimate"]
        return Skipped("densities", next((why for why in reasons if why), "no fit has draws"))
    chosen = plots.one_of_each(shown[0])
    size = (_HERO, 0.55 + 1.55 * len(chosen))
    make = partial(plots.overlay, trees, col_wrap=1, figure_kwargs={"figsize": size})
    return picture(make, f"densities of {', '.join(chosen)}", _densities(shown))


def _densities(shown: Sequence[xr.DataTree]) -> str:
    exact = "exact" in shown[0].children
    lines = "Dashed: the exact density. Dotted red: the MAP." if exact else "Dotted red: the MAP, where it is known."
    return f"Posterior densities. {lines}"


def section(trees: Sequence[xr.DataTree]) -> Section:
    """Draw each quantity by itself, and all of them together."""
    shown, sampled = plots.drawable(trees), [one for one in trees if one.attrs["kind"] == "sampled"]
    main = best(sampled or shown or trees)
    blocks: list[Any] = [*_remarks(main)]
    chosen = _chosen(main, shown)
    if chosen:
        options = {label: [Grid(_passport(label, main, trees, shown))] for label in chosen}
        blocks.append(Choice("quantity", options))
    blocks += _together(main, trees, shown)
    return Section("pictures", "Pictures", blocks)


def _remarks(main: xr.DataTree) -> list[Any]:
    """Say what is not drawn one by one, and why."""
    made: list[Any] = []
    if main.attrs["status"] != "ok":
        words = "Estimates are withheld: these are pictures of what went wrong, not of the posterior."
        made.append(Words(words, "bad"))
    if why := components_withheld(main):
        made.append(Skipped("pictures of single components", why))
    large = [f"{name} ({' x '.join(map(str, shape))} numbers)" for name, shape in not_listed(main).items()]
    if large:
        made.append(Skipped("pictures of each entry", f"too many to be listed one by one: {', '.join(large)}"))
    total = len(labels(main, free_of_labels(main)))
    if total > MOST:
        how = "those whose chains agree least" if main.attrs["kind"] == "sampled" else "the first"
        made.append(Words(f"{MOST} of {total} quantities have pictures of their own, {how}.", "note"))
    return made


def _chosen(main: xr.DataTree, shown: Sequence[xr.DataTree]) -> list[str]:
    """Return the quantities drawn one by one: of many those whose chains agree least, in the order of the table.

    What is the same in every draw, such as a loading that is 0 by definition, has nothing to be seen.
    """
    if main.attrs["kind"] != "sampled" and not shown:
        return []
    groups = free_of_labels(main)
    values = draws_of(main, None, groups)["value"].to_numpy()
    every = labels(main, groups)
    varies = np.flatnonzero(np.ptp(values, axis=(0, 1)) > 0)
    if main.attrs["kind"] == "sampled" and len(varies) > MOST:
        from arviz_stats.base import array_stats

        with np.errstate(divide="ignore", invalid="ignore"):  # of constant chains
            r_hat = np.asarray(array_stats.rhat(values[:, :, varies], method="rank", chain_axis=0, draw_axis=1))
        varies = varies[np.sort(np.argsort(-np.nan_to_num(r_hat, nan=np.inf), kind="stable")[:MOST])]
    return [every[i] for i in varies[:MOST]]


def _passport(label: str, main: xr.DataTree, trees: Sequence[xr.DataTree], shown: Sequence[xr.DataTree]) -> list[Any]:
    """Return the pictures of one quantity: its density, and of a sampler trace, ranks and effective sample size."""
    size = {"figure_kwargs": {"figsize": _SMALL}}
    made = []
    if shown and label in labels(shown[0]):
        fits = [*(one for one in shown if label in labels(one)), *plots.at_modes(trees)]
        made.append(picture(partial(plots.posterior, fits, [label], **size), f"density of {label}", _densities(shown)))
    if main.attrs["kind"] == "sampled":
        about = {
            "trace": (plots.trace, "Each chain in the order of its draws."),
            "ranks": (
                plots.rank,
                "Ranks of each chain among all draws, less what is expected: near 0 where the chains agree.",
            ),
            "effective sample size": (
                plots.ess,
                "Growth with the draws: blue for a mean, orange for a tail; dashed: the least that is asked for.",
            ),
        }
        for what, (draw, caption) in about.items():
            made.append(picture(partial(draw, main, [label], **size), f"{what} of {label}", caption))
    return made


def _together(main: xr.DataTree, trees: Sequence[xr.DataTree], shown: Sequence[xr.DataTree]) -> list[Any]:
    """Return the pictures of several quantities, and of the sampler."""
    made: list[Any] = []
    if forests := _forests(shown):
        made.append(Choice("intervals of", {name: [drawn] for name, drawn in forests.items()}))
    nuts = next((one for one in trees if one.attrs["method"] == "nuts" and not plots.withheld(one)), None)
    others = [one for one in trees if one.attrs["kind"] == "approximate"]
    if nuts is not None and others:
        made.append(Choice("against nuts:", {one.attrs["method"]: [_shrinkage(one, nuts)] for one in others}))
    if main.attrs["kind"] != "sampled":
        return made
    caption = "Energies of the chains and of their transitions; alike is well. Left: E-BFMI, at least 0.3."
    size = {"figure_kwargs": {"figsize": _WIDE}}
    made.append(picture(partial(plots.energy, main, **size), f"energy of {main.attrs['method']}", caption, wide=True))
    if diverged(main):
        alt = f"{diverged(main)} divergent transitions"
        caption = f"{alt}, in red: where the sampler lost its way."
        made.append(picture(partial(plots.pair, main), alt, caption, wide=True))
    return made


def _shrinkage(tree: xr.DataTree, nuts: xr.DataTree) -> Any:
    what = f"{tree.attrs['method']} against nuts"
    if missing := [label for label in labels(nuts) if label not in labels(tree)]:
        return Skipped(what, f"it has no {missing[0]}")
    caption = (
        f"{what}, in standard deviations of nuts about its mean: what is shorter is too sure, what is beside is off."
    )
    return picture(partial(plots.shrinkage, tree, nuts), what, caption)


def diverged(tree: xr.DataTree) -> int:
    """Count the divergent transitions."""
    stats: Any = tree.children.get("sample_stats", {})
    return int(stats["diverging"].sum()) if "diverging" in stats else 0


def _forests(shown: Sequence[xr.DataTree]) -> dict[str, Any]:
    """Draw the intervals of each parameter that has several entries."""
    if not shown:
        return {}
    families: dict[str, list[str]] = {}
    for label in labels(shown[0]):
        families.setdefault(label.partition("[")[0], []).append(label)
    made = {}
    for name, entries in families.items():
        if 2 <= len(entries) <= 3 * plots.MOST:
            fits = [one for one in shown if set(entries) <= set(labels(one))]
            caption = f"{name}: 50% and 95% intervals."
            made[name] = picture(partial(plots.forest, fits, entries), f"intervals of {name}", caption)
    return made
