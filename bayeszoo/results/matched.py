"""Fits of the same data with matching numbers of components, so that they can be shown side by side."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import lazy_loader
import numpy as np

from bayeszoo.inference.labels.symmetry import is_symmetric, numbered_as, pattern_of
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import Latent, Symmetric, exchangeable_axis
from bayeszoo.results.stored import Fit, dumps
from bayeszoo.results.summary import best_of_components

xr = lazy_loader.load("xarray")

_MARK, _MARKS = "numbered_together", itertools.count(1)
"""The attribute of trees in memory that identifies the call of `matched` in which a fit was numbered."""


def matched(fits: list[Fit]) -> list[Fit]:
    """Return fits of the same data with components numbered as in the best fit that shows components.

    Returned fits are marked, and returned unchanged when passed again.
    """
    marks = {fit.tree.attrs.get(_MARK) for fit in fits}
    if len(fits) < 2 or (len(marks) == 1 and None not in marks):
        return fits
    mark, copies = next(_MARKS), list(fits)
    for places in _same_components(fits):
        for i, fit in zip(places, _matched([fits[i] for i in places]), strict=True):
            copies[i] = fit if fit is not fits[i] else Fit(fit.tree.copy())
            copies[i].tree.attrs[_MARK] = mark
    return copies


def _same_components(fits: Sequence[Fit]) -> list[list[int]]:
    """Return groups of places of fits that have the same components."""
    groups: list[tuple[Any, list[int]]] = []
    for i, kind in enumerate(map(_components, fits)):
        places = next((places for other, places in groups if other == kind), None)
        if places is None:
            groups.append((kind, places := []))
        places.append(i)
    return [places for _, places in groups]


def _matched(fits: list[Fit]) -> list[Fit]:
    first = best_of_components(fits)
    model = first.model
    if len(fits) < 2 or not is_symmetric(model):
        return fits
    pattern = pattern_of(model, first.draws(), first.data if isinstance(model, Latent) else None)
    if pattern is None:
        return fits
    return [fit if fit is first else _numbered(model, fit, pattern, first) for fit in fits]


def _numbered(model: Symmetric, fit: Fit, pattern: np.ndarray, first: Fit) -> Fit:
    """Return a copy of the fit with components numbered as in the first, which has the pattern."""
    draws, order = numbered_as(model, fit.draws(), pattern, fit.data if isinstance(model, Latent) else None)
    return _with_draws(fit, draws, order, first)


def _components(fit: Fit) -> tuple[type[Model], dict[str, tuple[str, ...]], int | None]:
    """Return the class of a fit's model, its axes, and the number of exchangeable components."""
    model = fit.model
    axis = exchangeable_axis(model)
    return type(model), dict(model.dims), None if axis is None else fit.tree["posterior"].sizes[axis]


def _with_draws(fit: Fit, draws: Mapping[str, np.ndarray], order: np.ndarray, first: Fit) -> Fit:
    """Return a copy of the fit with its components in the order of the first."""
    copy, posterior = fit.tree.copy(), fit.tree["posterior"].to_dataset().transpose("chain", "draw", ...)
    copy["posterior"] = xr.DataTree(posterior.assign({name: (posterior[name].dims, draws[name]) for name in draws}))
    facts = fit.facts
    if "label_stability" in facts and not np.array_equal(order, np.arange(len(order))):
        stability = [facts["label_stability"][k] for k in order]
        copy.attrs["facts"] = dumps({**facts, "label_stability": stability, "numbered_as": first.method})
    return Fit(copy)
