"""Fits of the same data whose components are numbered alike, so that they can be shown side by side."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any, cast

import lazy_loader
import numpy as np

from bayeszoo.inference.labels import factors as align_factors
from bayeszoo.inference.labels.align import match, permute
from bayeszoo.inference.labels.symmetry import FEW, is_symmetric, mean_responsibilities
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import Latent, Symmetric
from bayeszoo.results.stored import Fit, dumps
from bayeszoo.results.summary import best_of_components

xr = lazy_loader.load("xarray")

_MARK, _MARKS = "numbered_together", itertools.count(1)
"""The attribute, of trees in memory only, that says in which call of `matched` a fit was numbered."""


def matched(trees: list[Any]) -> list[Any]:
    """Return fits of the same data, their components numbered as in the best of those that show components.

    What is returned carries a mark, and is returned as it is when asked for again, all or some of it.
    """
    marks = {tree.attrs.get(_MARK) for tree in trees}
    if len(trees) < 2 or (len(marks) == 1 and None not in marks):
        return trees
    mark, made = next(_MARKS), list(trees)
    for places in _alike(trees):
        for i, tree in zip(places, _matched([trees[i] for i in places]), strict=True):
            made[i] = tree if tree is not trees[i] else tree.copy()
            made[i].attrs[_MARK] = mark
    return made


def _alike(trees: list[Any]) -> list[list[int]]:
    """Return the places of the fits that have the same components."""
    found: list[tuple[Any, list[int]]] = []
    for i, kind in enumerate(map(_components, trees)):
        places = next((places for other, places in found if other == kind), None)
        if places is None:
            found.append((kind, places := []))
        places.append(i)
    return [places for _, places in found]


def _matched(trees: list[Any]) -> list[Any]:
    first = best_of_components(trees)
    if len(trees) < 2 or not is_symmetric(model := Fit(first).model):
        return trees
    if not model.signed and not isinstance(model, Latent):  # nothing says which component a row is of
        return trees
    turn = _turn_of_factors(model, first) if model.signed else _turn_of_rows(model, first)
    return [tree if tree is first else turn(tree) for tree in trees]


def _turn_of_rows(model: Symmetric, first: Any) -> Callable[[Any], Any]:
    """Return what numbers the components of a fit as those of the first, by the rows that they hold."""
    data = cast(Any, Fit(first).given)
    reference = mean_responsibilities(cast(Latent, model), Fit(first).draws(), data)

    def turn(tree: Any) -> Any:
        draws = Fit(tree).draws()
        order = match(model, {name: values[:, :FEW] for name, values in draws.items()}, reference, data)
        moved = permute(model, draws, np.broadcast_to(order, (*np.shape(next(iter(draws.values())))[:2], len(order))))
        return _with_draws(tree, moved, order, first)

    return turn


def _turn_of_factors(model: Symmetric, first: Any) -> Callable[[Any], Any]:
    """Return what gives the factors of a fit the order and the signs of those of the first."""
    name = model.signed[0]
    reference = Fit(first).draws()[name].mean(axis=(0, 1))

    def turn(tree: Any) -> Any:
        draws = Fit(tree).draws()
        order, signs = align_factors.nearest(draws[name].mean(axis=(0, 1))[None], reference)
        shape = (*draws[name].shape[:2], reference.shape[1])
        moved = align_factors.turned(model, draws, np.broadcast_to(order, shape), np.broadcast_to(signs, shape))
        return _with_draws(tree, moved, order[0], first)

    return turn


def _components(tree: Any) -> tuple[type[Model], dict[str, tuple[str, ...]], int | None]:
    """Return the class of a fit's model, its axes, and how many components there are whose labels mean nothing."""
    model = Fit(tree).model
    axis = model.exchangeable() if isinstance(model, Symmetric) else None
    return type(model), dict(model.dims), None if axis is None else tree["posterior"].sizes[axis]


def _with_draws(tree: Any, draws: Mapping[str, np.ndarray], order: np.ndarray, first: Any) -> Any:
    """Return a copy of the tree with its components in another order, that of the first."""
    made, posterior = tree.copy(), tree["posterior"].to_dataset().transpose("chain", "draw", ...)
    made["posterior"] = xr.DataTree(posterior.assign({name: (posterior[name].dims, draws[name]) for name in draws}))
    facts = Fit(tree).facts
    if "label_stability" in facts and not np.array_equal(order, np.arange(len(order))):
        stability = [facts["label_stability"][k] for k in order]
        made.attrs["facts"] = dumps({**facts, "label_stability": stability, "numbered_as": first.attrs["method"]})
    return made
