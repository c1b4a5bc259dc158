"""Choice of the fits that are drawn together, their colours, and the lines drawn over them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, cast

import scipy

from bayeszoo.comparison.compare import require_same_data
from bayeszoo.distributions import frozen
from bayeszoo.errors import InputError, Untrustworthy
from bayeszoo.model.base import fields_of
from bayeszoo.model.capabilities import Observable
from bayeszoo.plots import style as pictures
from bayeszoo.results.caveats import failures_of, next_step
from bayeszoo.results.matched import matched
from bayeszoo.results.quantities import labels, varying
from bayeszoo.results.stored import Fit, dumps
from bayeszoo.results.summary import components_withheld

if TYPE_CHECKING:
    import xarray as xr

COLOURS = {"nuts": "#1f5a92", "gibbs": "#1f5a92", "smc": "#2a8f8a", "exact": "#8a8f98", "enumerate": "#8a8f98"}
COLOURS |= {"advi": "#d9822b", "fullrank_advi": "#b0562f", "laplace": "#7a5ea8", "vb": "#5b9a3c"}
"""The preferred colour of each method's draws; grey for exact fits."""
EXACT, MODE = "#16181d", "#c0392b"
"""The colours of the closed form and of the mode."""


def withheld(fit: Fit) -> str:
    """Return why no estimate of a fit may be drawn; empty if some may."""
    if not fit.is_shown:
        return "; ".join(failures_of(fit))
    return "" if labels(fit) else components_withheld(fit)


def listed(fits: xr.DataTree | Iterable[xr.DataTree]) -> list[Fit]:
    """Return one or several fits as a list; refuse other objects."""
    trees = cast("list[xr.DataTree]", [fits] if hasattr(fits, "children") else list(fits))
    if other := [tree for tree in trees if not hasattr(tree, "children")]:  # such as the names in a mapping
        hint = "give a result of bz.fit, or a list of these"
        raise InputError(f"fits are needed, got {type(other[0]).__name__}", "not_a_fit", hint=hint)
    return [Fit(tree) for tree in trees]  # refuses fits by group and other trees


def trusted(fits: Sequence[Fit]) -> list[Fit]:
    """Return fits with matching numbers of components; refuse withheld fits, and fits of different data."""
    require_same_data([(fit.data_digest, fit.data_source) for fit in fits], "fits")
    for fit in fits:
        if why := withheld(fit):
            raise Untrustworthy(f"{fit.method}: {'; '.join(filter(None, (why, next_step(fit))))}", "withheld")
    return matched(list(fits))


def with_draws(fits: Sequence[Fit]) -> list[Fit]:
    """Return the fits that are no point estimates."""
    return [fit for fit in fits if fit.kind != "point estimate"]


def drawable(fits: Sequence[Fit]) -> list[Fit]:
    """Return the fits that have draws and are not withheld, sampled ones first.

    Independent draws of the exact posterior are left out next to other fits of the same model, as its density shows the
    same.
    """
    kept = [fit for fit in with_draws(fits) if not withheld(fit)]
    others = [fit for fit in kept if fit.method != "exact"]
    return sorted(others if others and same_model(kept) else kept, key=lambda fit: fit.kind != "sampled")


def same_model(fits: Sequence[Fit]) -> bool:
    """Say whether fits have the same model and prior, so that a closed form or mode of one holds for all."""
    models = [fit.model for fit in fits]
    priors = [(type(model), json.loads(dumps(fields_of(model)))) for model in models]
    return all(prior == priors[0] for prior in priors)


def with_quantities(fits: Sequence[Fit], quantities: Sequence[str]) -> list[Fit]:
    """Return the fits that have all of the quantities, with the same meaning as in the first of these fits."""
    with_all = [fit for fit in fits if set(quantities) <= set(labels(fit))]
    return [fit for fit in with_all if all(_means_the_same(with_all[0], fit, label) for label in quantities)]


def _means_the_same(first: Fit, second: Fit, label: str) -> bool:
    """Say whether a name has the same meaning in two fits: sigma is the sd of Gaussian noise, but a scale of Student's.

    It has if the models have one class, a base of both declares the parameter, or rows have one kind of distribution.
    """
    kind, other = type(first.model), type(second.model)
    if kind is other:
        return True
    shared = [base for base in kind.__mro__ if base in other.__mro__]
    declared = {name for base in shared for name in vars(base).get("dims", ())}
    return label.partition("[")[0] in declared or _law(first) == _law(second) != ""


def _law(fit: Fit) -> str:
    """Return the kind of distribution of a row given the parameters; empty if the model does not define it."""
    if not isinstance(fit.model, Observable):
        return ""
    law: object = fit.model.likelihood({name: values[0, :1] for name, values in fit.draws().items()}, fit.like)
    if isinstance(law, frozen.Frozen | scipy.stats.distributions.rv_frozen):
        return str(law.dist.name)
    return type(law).__name__


def one_of_each(fit: Fit, most: int = 3) -> list[str]:
    """Return the first entry of each parameter that varies; for a single parameter its first entries."""
    entries = labels(fit)
    firsts = varying(fit, list({label.partition("[")[0]: label for label in reversed(entries)}.values())[::-1])
    return (firsts if len(firsts) > 1 else entries)[:most]


def at_modes(fits: Sequence[Fit], drawn: Sequence[Fit]) -> list[Fit]:
    """Return the ``map`` fits to mark in a figure, if all fits drawn have the same model."""
    points = [fit for fit in fits if fit.method == "map" and not withheld(fit)]
    return [fit for fit in points if same_model([*drawn, fit])]


def lines(fits: Sequence[Fit], drawn: Sequence[Fit]) -> dict[str, bool]:
    """Say whether ``exact`` and ``mode`` may be drawn: not if the fit by ``exact`` or by ``map`` is withheld."""
    withheld_methods = {fit.method for fit in fits if withheld(fit) and same_model([*drawn[:1], fit])}
    return {"exact": "exact" not in withheld_methods, "mode": "map" not in withheld_methods}


def colours(fits: Sequence[Fit]) -> list[str]:
    """Return a colour for each fit, that of its method unless an earlier fit has it."""
    preferred = [COLOURS.get(fit.method, pictures.COLOURS[0]) for fit in fits]
    others = [colour for colour in pictures.COLOURS if colour not in (*preferred, MODE)]
    chosen: list[str] = []
    for colour in preferred:
        chosen.append(others.pop(0) if colour in chosen and others else colour)
    return chosen
