"""ArviZ's pictures of a fit: densities of single quantities, intervals together, and diagnostics of the sampler."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.comparison.compare import names_of
from bayeszoo.foundation import diagnostics
from bayeszoo.model.linear_predictor import has_slopes
from bayeszoo.plots import fits as plots
from bayeszoo.plots.drawable import at_modes, drawable, lines, one_of_each, same_model, that_have, with_draws, withheld
from bayeszoo.report.blocks import Block, Choice, Folded, Skipped, Words, picture
from bayeszoo.results.quantities import draws_of, finite, free_of_labels, labels, measurable, modes
from bayeszoo.results.stored import Fit
from bayeszoo.results.summary import best, components_withheld, not_listed

if TYPE_CHECKING:
    import xarray as xr

MOST = 8
"""Quantities that have pictures of their own."""
MOST_CHAINS = 4
"""Quantities whose chains are drawn."""
MOST_DRAWS = 500
"""Draws of a chain that traces and ranks show: all of a long chain would be megabytes, and look the same."""
_WIDE = (9.4, 3.0)
_HERO = 5.4


def hero(trees: Sequence[xr.DataTree]) -> Block:
    """Return the marginal density of each parameter's first entry by fit, or the reason why no fit has draws."""
    shown = drawable(trees)
    if not shown:
        named = zip(names_of(trees), trees, strict=True)
        reasons = [f"{name}: {withheld(tree)}" for name, tree in named if with_draws([tree])]
        return Skipped("densities", "; ".join(reasons))
    chosen = one_of_each(shown[0])
    size = (_HERO, 0.55 + 1.55 * len(chosen))
    make = partial(plots.overlay, trees, col_wrap=1, figure_kwargs={"figsize": size})
    return picture(make, f"densities of {', '.join(chosen)}", _densities(chosen, shown, trees))


def _densities(chosen: Sequence[str], shown: Sequence[xr.DataTree], trees: Sequence[xr.DataTree]) -> str:
    """Return the caption of a picture of densities: the quantities it shows and those it leaves out."""
    drawn = that_have(shown, chosen)
    said = ["Posterior densities.", *_of_which(drawn, shown, trees)]
    if not same_model(drawn):
        return " ".join([*said, "Models or priors differ: no exact density and no MAP is that of all."])
    over, first = lines(trees, drawn), drawn[0]
    closed: Any = first.children.get("exact", {})
    if any(label.partition("[")[0] in closed for label in chosen):
        said.append("Dashed: the exact density." if over["exact"] else "The exact density is withheld with its fit.")
    if not over["mode"]:
        said.append("The MAP is withheld with its fit.")
    elif at_modes(trees, drawn) or modes(first, chosen) is not None:
        said.append("Dotted red: the MAP.")
    return " ".join(said)


def _of_which(drawn: Sequence[xr.DataTree], shown: Sequence[xr.DataTree], trees: Sequence[xr.DataTree]) -> list[str]:
    """Name the model of the fits drawn, if the page has several models, and the fits without these quantities."""
    names = dict(zip(map(id, trees), names_of(trees), strict=True))
    those = {id(tree) for tree in drawn}
    lacking = [names[id(tree)] for tree in shown if id(tree) not in those]
    of = [name for place, name in names.items() if place in those]
    said = [f"Of {', '.join(of)}."] if same_model(drawn) and not same_model(trees) else []
    return said + ([f"Without {', '.join(lacking)}, which have other quantities."] if lacking else [])


def section(trees: Sequence[xr.DataTree]) -> list[Block]:
    """Draw the densities of quantities, their chains, their intervals, and approximations against a sampler."""
    shown, sampled = drawable(trees), [tree for tree in trees if tree.attrs["kind"] == "sampled"]
    main = best(sampled or shown or trees)
    chosen = _chosen(main, shown)
    densities = _all_densities(chosen, trees, shown)
    densities += _of_how_many(main) if densities else []
    folded = {"Densities": densities, "Chains": _chains(main, _chosen(main, shown, MOST_CHAINS))}
    if forests := _forests(shown, trees):
        folded["Intervals"] = [Choice("intervals of", {name: [drawn] for name, drawn in forests.items()})]
    if against := _against(trees):
        folded["Approximations against nuts"] = [Choice("against nuts:", against)]
    return [*_remarks(main), *_diverged(main), *(Folded(title, blocks) for title, blocks in folded.items() if blocks)]


def _remarks(main: xr.DataTree) -> list[Block]:
    """Name the entries that are not drawn one by one, and say why."""
    blocks: list[Any] = []
    if not Fit(main).is_shown and main.attrs["kind"] == "sampled":
        words = "Estimates are withheld: these pictures show the failure, not the posterior."
        blocks.append(Words(words, "bad"))
    if why := components_withheld(main):
        blocks.append(Skipped("pictures of single components", why))
    large = [f"{name} ({' x '.join(map(str, shape))} numbers)" for name, shape in not_listed(main).items()]
    if large:
        blocks.append(Skipped("pictures of each entry", f"too many to be listed one by one: {', '.join(large)}"))
    return blocks


def _of_how_many(main: xr.DataTree) -> list[Words]:
    total = len(labels(main, free_of_labels(main)))
    how = "those whose chains agree least" if main.attrs["kind"] == "sampled" else "the first"
    return [Words(f"{MOST} of {total} quantities are drawn, {how}.", "note")] * (total > MOST)


def _chosen(main: xr.DataTree, shown: Sequence[xr.DataTree], most: int = MOST) -> list[str]:
    """Return the quantities drawn one by one: of many those whose chains agree least, in the order of the table.

    An entry that is the same in every draw, such as a loading that is 0 by definition, is left out.
    """
    if main.attrs["kind"] != "sampled" and not shown:
        return []
    groups = free_of_labels(main)
    values = draws_of(main, None, groups)["value"].to_numpy()
    every = labels(main, groups)
    varies = np.flatnonzero(np.ptp(values, axis=(0, 1)) > 0)
    if main.attrs["kind"] == "sampled" and len(varies) > most:
        r_hat = diagnostics.r_hat(values[:, :, varies])
        varies = varies[np.sort(np.argsort(-np.nan_to_num(r_hat, nan=np.inf), kind="stable")[:most])]
    return [every[i] for i in varies[:most]]


def _all_densities(chosen: Sequence[str], trees: Sequence[xr.DataTree], shown: Sequence[xr.DataTree]) -> list[Block]:
    """Draw the densities of all quantities chosen, of the fits that have them."""
    fits = that_have(shown, chosen) if chosen else []
    if not fits:
        return []
    make = partial(plots.posterior, [*fits, *at_modes(trees, fits)], chosen, **lines(trees, fits), **_sized(chosen))
    return [picture(make, f"densities of {', '.join(chosen)}", _densities(chosen, shown, trees), wide=True)]


def _sized(chosen: Sequence[str]) -> dict[str, Any]:
    across = min(4, len(chosen))
    size = max(4.6, 2.9 * across), 0.4 + 2 * -(-len(chosen) // across)
    return {"col_wrap": across, "figure_kwargs": {"figsize": size}}


def _chains(main: xr.DataTree, chosen: Sequence[str]) -> list[Block]:
    """Return the pictures of the chains of a sampler: ranks and traces of each quantity, and energies."""
    if main.attrs["kind"] != "sampled" or not chosen:
        return []
    (thin, some), names = _thinned(main), ", ".join(chosen)
    ranks = "Ranks of each chain among all draws, less what is expected: near 0 where the chains agree"
    drawn = [
        picture(partial(draw, thin, chosen, **_sized(chosen)), f"{title} of {names}", caption, wide=True)
        for title, draw, caption in (
            ("ranks", plots.rank, f"{ranks}{some}."),
            ("traces", plots.trace, f"Each chain in the order of its draws{some}."),
        )
    ]
    caption = "Energies of the chains and of their transitions; alike is well. Left: E-BFMI, at least 0.3."
    energy = partial(plots.energy, main, figure_kwargs={"figsize": _WIDE})
    return [*drawn, picture(energy, f"energy of {main.attrs['method']}", caption, wide=True)]


def _thinned(tree: xr.DataTree) -> tuple[xr.DataTree, str]:
    """Return a fit with at most `MOST_DRAWS` draws a chain, evenly spaced, and the words that say so."""
    draws = tree["posterior"].sizes["draw"]
    if draws <= MOST_DRAWS:
        return tree, ""
    kept = np.linspace(0, draws - 1, MOST_DRAWS).round().astype(int)
    thin = tree.filter(lambda group: group.sizes.get("draw") == draws).isel(draw=kept)
    thin.attrs.update(tree.attrs)
    return thin, f"; {MOST_DRAWS} of its {draws} draws, evenly spaced"


def _diverged(main: xr.DataTree) -> list[Block]:
    """Draw where transitions diverged, if any did."""
    stats: Any = main.children.get("sample_stats", {})
    count = int(stats["diverging"].sum()) if "diverging" in stats else 0
    caption = f"{count} divergent transitions, in red: where the sampler lost its way."
    return [picture(partial(plots.pair, main), "divergent transitions", caption, wide=True)] if count else []


def _against(trees: Sequence[xr.DataTree]) -> dict[str, list[Any]]:
    """Compare each approximation with the draws by nuts of the same model and prior, where there are any."""
    named = list(zip(names_of(trees), trees, strict=True))
    sampled = [(name, other) for name, other in named if other.attrs["method"] == "nuts"]
    others = [(name, other) for name, other in named if other.attrs["kind"] == "approximate" and sampled]
    return {name: [_shrinkage(name, tree, sampled)] for name, tree in others}


def _shrinkage(name: str, tree: xr.DataTree, sampled: Sequence[tuple[str, xr.DataTree]]) -> Block:
    """Draw an approximation against the first fit by nuts of its model that may be shown."""
    same = [(other, fitted) for other, fitted in sampled if same_model([tree, fitted])]
    against, nuts = next(((other, fitted) for other, fitted in same if not withheld(fitted)), ("nuts", None))
    title = f"{name} against {against}"
    if nuts is None:
        return Skipped(title, "the estimates of nuts are withheld" if same else "no nuts of this model and prior")
    both = [label for label in labels(nuts) if label in labels(tree)]
    if not both:
        return Skipped(title, "they have no quantity in common that is shown")
    can = finite(tree, measurable(nuts, both))
    drawn, why, lacking = can[: 2 * plots.MOST], withheld(tree), [label for label in both if label not in can]
    etc = f" and {len(lacking) - 6} more" * (len(lacking) > 6)
    said = [
        f"{title}, in sd of nuts about its mean: short intervals are overconfident, shifted ones are biased.",
        *([f"The first {len(drawn)} of {len(can)} quantities."] if len(drawn) < len(can) else []),
        *([f"Without those whose sd is 0 or not finite: {', '.join(lacking[:6])}{etc}."] if lacking else []),
        *([f"It is withheld ({why})."] if why else []),
    ]
    return picture(partial(plots.shrinkage, tree, nuts, drawn), title, " ".join(said))


def _forests(shown: Sequence[xr.DataTree], trees: Sequence[xr.DataTree]) -> dict[str, Any]:
    """Draw the intervals of each parameter that has several entries, of very many the first."""
    pictures = {}
    every = labels(shown[0]) if shown else []
    for name, group in groupby(every, lambda label: label.partition("[")[0]):
        is_drawn_per_sd = name == "w" and has_slopes(model := Fit(shown[0]).model) and model.has_identity_link
        if len(entries := list(group)) > 1 and not is_drawn_per_sd:
            drawn = entries[: 3 * plots.MOST]
            fits = that_have(shown, drawn)
            said = [f"{name}: 50% and 95% intervals.", *_of_which(fits, shown, trees)]
            said += [f"The first {len(drawn)} of {len(entries)}."] if len(drawn) < len(entries) else []
            pictures[name] = picture(partial(plots.forest, fits, drawn), f"intervals of {name}", " ".join(said))
    return pictures
