"""ArviZ's pictures of a fit: densities of quantities, intervals, and diagnostics of the sampler."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.comparison.compare import names_of
from bayeszoo.foundation import diagnostics
from bayeszoo.model.capabilities.linear_predictor import has_slopes
from bayeszoo.plots import fits as plots
from bayeszoo.plots.drawable import (
    at_modes,
    drawable,
    lines,
    one_of_each,
    same_model,
    with_draws,
    with_quantities,
    withheld,
)
from bayeszoo.report.blocks import Block, Choice, Folded, Skipped, Words, picture
from bayeszoo.results.quantities import draws_of, finite, free_of_labels, labels, measurable, modes
from bayeszoo.results.stored import Fit
from bayeszoo.results.summary import best, components_withheld, not_listed

if TYPE_CHECKING:
    import xarray as xr

MOST = 8
"""Most quantities whose densities are drawn."""
MOST_CHAINS = 4
"""Most quantities whose chains are drawn."""
MOST_DRAWS = 500
"""Most draws per chain in traces and ranks: more would take megabytes, and look the same."""
_WIDE = (9.4, 3.0)
_HERO = 5.4


def hero(fits: Sequence[Fit]) -> Block:
    """Return the marginal density of each parameter's first entry by fit, or the reason why no fit has draws."""
    shown = drawable(fits)
    if not shown:
        named = zip(names_of(fits), fits, strict=True)
        reasons = [f"{name}: {withheld(fit)}" for name, fit in named if with_draws([fit])]
        return Skipped("densities", "; ".join(reasons))
    chosen = one_of_each(shown[0])
    size = (_HERO, 0.55 + 1.55 * len(chosen))
    make = partial(plots.overlay, [fit.tree for fit in fits], col_wrap=1, figure_kwargs={"figsize": size})
    return picture(make, f"densities of {', '.join(chosen)}", _densities(chosen, shown, fits))


def _densities(chosen: Sequence[str], shown: Sequence[Fit], fits: Sequence[Fit]) -> str:
    """Return the caption of a picture of densities: the quantities it shows and those it leaves out."""
    drawn = with_quantities(shown, chosen)
    sentences = ["Posterior densities.", *_about_fits(drawn, shown, fits)]
    if not same_model(drawn):
        sentences.append("Models or priors differ, and so do their exact densities and MAPs: none is drawn.")
        return " ".join(sentences)
    over, first = lines(fits, drawn), drawn[0]
    closed: Any = first.tree.children.get("exact", {})
    if any(label.partition("[")[0] in closed for label in chosen):
        withheld_exact = "The exact density is withheld with its fit."
        sentences.append("Dashed: the exact density." if over["exact"] else withheld_exact)
    if not over["mode"]:
        sentences.append("The MAP is withheld with its fit.")
    elif at_modes(fits, drawn) or modes(first, chosen) is not None:
        sentences.append("Dotted red: the MAP.")
    return " ".join(sentences)


def _about_fits(drawn: Sequence[Fit], shown: Sequence[Fit], fits: Sequence[Fit]) -> list[str]:
    """Return sentences on the fits drawn, if the page has several models, and on fits without these quantities."""
    names = dict(zip(map(id, fits), names_of(fits), strict=True))
    drawn_ids = {id(fit) for fit in drawn}
    lacking = [names[id(fit)] for fit in shown if id(fit) not in drawn_ids]
    drawn_names = [name for place, name in names.items() if place in drawn_ids]
    about = [f"Fits: {', '.join(drawn_names)}."] if same_model(drawn) and not same_model(fits) else []
    return about + ([f"Without {', '.join(lacking)}, which have other quantities."] if lacking else [])


def section(fits: Sequence[Fit]) -> list[Block]:
    """Draw the densities of quantities, their chains, their intervals, and approximations against a sampler."""
    shown, sampled = drawable(fits), [fit for fit in fits if fit.kind == "sampled"]
    main = best(sampled or shown or fits)
    chosen = _chosen(main, shown)
    densities = _all_densities(chosen, fits, shown)
    densities += _about_number(main) if densities else []
    folded = {"Densities": densities, "Chains": _chains(main, _chosen(main, shown, MOST_CHAINS))}
    if forests := _forests(shown, fits):
        folded["Intervals"] = [Choice("intervals of", {name: [drawn] for name, drawn in forests.items()})]
    if against := _against(fits):
        folded["Approximations against nuts"] = [Choice("against nuts:", against)]
    return [*_remarks(main), *_diverged(main), *(Folded(title, blocks) for title, blocks in folded.items() if blocks)]


def _remarks(main: Fit) -> list[Block]:
    """Return notes on entries that are not drawn one by one, and why."""
    blocks: list[Any] = []
    if not main.is_shown and main.kind == "sampled":
        words = "Estimates are withheld: these pictures show the failure, not the posterior."
        blocks.append(Words(words, "bad"))
    if why := components_withheld(main):
        blocks.append(Skipped("pictures of single components", why))
    large = [f"{name} ({' x '.join(map(str, shape))} numbers)" for name, shape in not_listed(main).items()]
    if large:
        blocks.append(Skipped("pictures of each entry", f"too many to be listed one by one: {', '.join(large)}"))
    return blocks


def _about_number(main: Fit) -> list[Words]:
    total = len(labels(main, free_of_labels(main)))
    which = "those with the largest R-hat" if main.kind == "sampled" else "the first"
    return [Words(f"{MOST} of {total} quantities are drawn, {which}.", "note")] * (total > MOST)


def _chosen(main: Fit, shown: Sequence[Fit], most: int = MOST) -> list[str]:
    """Return the quantities drawn one by one: of many those with the largest R-hat, in the order of the table.

    An entry that is the same in every draw, such as a loading that is 0 by definition, is left out.
    """
    if main.kind != "sampled" and not shown:
        return []
    groups = free_of_labels(main)
    values = draws_of(main, None, groups)["value"].to_numpy()
    names = labels(main, groups)
    varies = np.flatnonzero(np.ptp(values, axis=(0, 1)) > 0)
    if main.kind == "sampled" and len(varies) > most:
        r_hat = diagnostics.r_hat(values[:, :, varies])
        varies = varies[np.sort(np.argsort(-np.nan_to_num(r_hat, nan=np.inf), kind="stable")[:most])]
    return [names[i] for i in varies[:most]]


def _all_densities(chosen: Sequence[str], fits: Sequence[Fit], shown: Sequence[Fit]) -> list[Block]:
    """Draw the densities of the chosen quantities, for the fits that have them."""
    drawn = with_quantities(shown, chosen) if chosen else []
    if not drawn:
        return []
    trees = [fit.tree for fit in (*drawn, *at_modes(fits, drawn))]
    make = partial(plots.posterior, trees, chosen, **lines(fits, drawn), **_sized(chosen))
    return [picture(make, f"densities of {', '.join(chosen)}", _densities(chosen, shown, fits), wide=True)]


def _sized(chosen: Sequence[str]) -> dict[str, Any]:
    across = min(4, len(chosen))
    size = max(4.6, 2.9 * across), 0.4 + 2 * -(-len(chosen) // across)
    return {"col_wrap": across, "figure_kwargs": {"figsize": size}}


def _chains(main: Fit, chosen: Sequence[str]) -> list[Block]:
    """Return the pictures of the chains of a sampler: ranks and traces of each quantity, and energies."""
    if main.kind != "sampled" or not chosen:
        return []
    (thin, about_thinning), names = _thinned(main), ", ".join(chosen)
    ranks = "Ranks of each chain among all draws, less their expectation: near 0 if the chains agree"
    drawn = [
        picture(partial(draw, thin, chosen, **_sized(chosen)), f"{title} of {names}", caption, wide=True)
        for title, draw, caption in (
            ("ranks", plots.rank, f"{ranks}{about_thinning}."),
            ("traces", plots.trace, f"Each chain in the order of its draws{about_thinning}."),
        )
    ]
    caption = "Energies of the chains and of their transitions; they should be alike. Left: E-BFMI, at least 0.3."
    energy = partial(plots.energy, main.tree, figure_kwargs={"figsize": _WIDE})
    return [*drawn, picture(energy, f"energy of {main.method}", caption, wide=True)]


def _thinned(fit: Fit) -> tuple[xr.DataTree, str]:
    """Return the tree of a fit with at most `MOST_DRAWS` draws a chain, evenly spaced, and the words that say so."""
    draws = fit.tree["posterior"].sizes["draw"]
    if draws <= MOST_DRAWS:
        return fit.tree, ""
    indices = np.linspace(0, draws - 1, MOST_DRAWS).round().astype(int)
    thin = fit.tree.filter(lambda group: group.sizes.get("draw") == draws).isel(draw=indices)
    thin.attrs.update(fit.tree.attrs)
    return thin, f"; {MOST_DRAWS} of its {draws} draws, evenly spaced"


def _diverged(main: Fit) -> list[Block]:
    """Draw where transitions diverged, if any did."""
    stats: Any = main.tree.children.get("sample_stats", {})
    count = int(stats["diverging"].sum()) if "diverging" in stats else 0
    caption = f"{count} divergent transitions, in red: the simulated trajectory was inaccurate there."
    return [picture(partial(plots.pair, main.tree), "divergent transitions", caption, wide=True)] if count else []


def _against(fits: Sequence[Fit]) -> dict[str, list[Any]]:
    """Compare each approximation with draws by nuts of the same model and prior, if there are any."""
    named = list(zip(names_of(fits), fits, strict=True))
    sampled = [(name, fit) for name, fit in named if fit.method == "nuts"]
    approximate = [(name, fit) for name, fit in named if fit.kind == "approximate" and sampled]
    return {name: [_shrinkage(name, fit, sampled)] for name, fit in approximate}


def _shrinkage(name: str, fit: Fit, sampled: Sequence[tuple[str, Fit]]) -> Block:
    """Draw an approximation against the first fit by nuts of its model that may be shown."""
    same = [(label, fitted) for label, fitted in sampled if same_model([fit, fitted])]
    against, nuts = next(((label, fitted) for label, fitted in same if not withheld(fitted)), ("nuts", None))
    title = f"{name} against {against}"
    if nuts is None:
        return Skipped(title, "the estimates of nuts are withheld" if same else "no nuts of this model and prior")
    shared = [label for label in labels(nuts) if label in labels(fit)]
    if not shared:
        return Skipped(title, "they share no quantity that is shown")
    drawable_names = finite(fit, measurable(nuts, shared))
    drawn, why = drawable_names[: 2 * plots.MOST], withheld(fit)
    lacking = [label for label in shared if label not in drawable_names]
    etc = f" and {len(lacking) - 6} more" * (len(lacking) > 6)
    sentences = [
        f"{title}, in sd of nuts about its mean: short intervals are overconfident, shifted ones are biased.",
        *([f"The first {len(drawn)} of {len(drawable_names)} quantities."] if len(drawn) < len(drawable_names) else []),
        *([f"Without those whose sd is 0 or not finite: {', '.join(lacking[:6])}{etc}."] if lacking else []),
        *([f"It is withheld ({why})."] if why else []),
    ]
    return picture(partial(plots.shrinkage, fit.tree, nuts.tree, drawn), title, " ".join(sentences))


def _forests(shown: Sequence[Fit], fits: Sequence[Fit]) -> dict[str, Any]:
    """Draw the intervals of each parameter with several entries; the first ones if there are many."""
    pictures = {}
    names = labels(shown[0]) if shown else []
    for name, group in groupby(names, lambda label: label.partition("[")[0]):
        is_drawn_per_sd = name == "w" and has_slopes(model := shown[0].model) and model.has_identity_link
        if len(entries := list(group)) > 1 and not is_drawn_per_sd:
            drawn = entries[: 3 * plots.MOST]
            with_all = with_quantities(shown, drawn)
            sentences = [f"{name}: 50% and 95% intervals.", *_about_fits(with_all, shown, fits)]
            sentences += [f"The first {len(drawn)} of {len(entries)}."] if len(drawn) < len(entries) else []
            make = partial(plots.forest, [fit.tree for fit in with_all], drawn)
            pictures[name] = picture(make, f"intervals of {name}", " ".join(sentences))
    return pictures
