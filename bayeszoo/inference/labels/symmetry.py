"""Models whose labels mean nothing: what of their draws can be diagnosed, and what is shown under which label."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import lazy_loader
import numpy as np

from bayeszoo.foundation.gate import MIXING, check_draws, failures
from bayeszoo.model.capabilities import Symmetric

xr = lazy_loader.load("xarray")

FEW = 100
"""Draws of each chain that say which component is which."""
MOST = 200
"""Entries of a parameter that are diagnosed, where it has more, as topics of thousands of words."""
MIN_STABILITY = 0.5
"""Below it draws agree less about what a component is than halfway between chance and certainty."""


@dataclass(frozen=True, eq=False)
class Labelled:
    """Draws whose labels were put in one order.

    Attributes
    ----------
    draws : mapping of str to ndarray
        Shape (chain, draw, *parameter shape): the same numbers bit for bit, under other labels.
    permutations : ndarray of int, shape (chain, draw, K)
        Entry k is the sampler's component that became component k; `align.inverse` undoes it.
    stability : ndarray of shape (K,) or None
        As of `align.Alignment`; None of an approximation, whose draws have their labels in one order.
    withheld : str
        Why the parameters of single components are not to be shown, if they are not.
    signs : ndarray of shape (chain, draw, K) or None
        Of factors, what each was multiplied by afterwards, 1 or -1; `align_factors.undone` undoes both.
    """

    draws: Mapping[str, np.ndarray]
    permutations: np.ndarray
    stability: np.ndarray | None = None
    withheld: str = ""
    signs: np.ndarray | None = None


def is_symmetric(model: Any) -> bool:
    """Say whether there are labels that mean nothing."""
    return isinstance(model, Symmetric) and model.exchangeable() is not None


def label_free(model: Any, draws: Mapping[str, np.ndarray], data: Any) -> Any:
    """Return the quantities that do not depend on the labels, as a data set with axes chain and draw.

    None where labels have a meaning, and every parameter may be diagnosed.
    """
    if not is_symmetric(model):
        return None
    moving = {name: _moving(np.asarray(values)) for name, values in model.invariants(draws, data).items()}
    return xr.Dataset({name: (("chain", "draw", f"{name}_dim"), values) for name, values in moving.items()})


def _moving(values: np.ndarray) -> np.ndarray:
    """Return the entries that move, of shape (chain, draw, entries).

    Where components lie far apart, the probability that two rows are of one is 0 or 1 to rounding whatever the draw,
    and says nothing of the chains. One that is stuck is stuck in the log likelihood, which is one entry and is kept.
    """
    flat = values.reshape(*values.shape[:2], -1)
    still = flat.std(axis=(0, 1)) <= 1e-9 * np.maximum(1.0, np.abs(flat.mean(axis=(0, 1))))
    return flat if flat.shape[2] == 1 else flat[..., ~still]


def labelled(model: Any, draws: Mapping[str, np.ndarray], data: Any, kind: str) -> Labelled | None:
    """Put the labels of draws in one order, by decreasing weight; None where labels have a meaning.

    Draws that a sampler or enumeration gave are aligned one by one; an approximation has its labels in one order
    already, and only that is changed.
    """
    from bayeszoo.inference.labels.align import align, permute

    if not is_symmetric(model):
        return None
    if hasattr(model, "signed"):
        return _labelled_factors(model, draws, kind)
    if kind in ("sampled", "exact"):
        found = align(model, draws, data)
        aligned = permute(model, draws, found.permutations)
        withheld = _withheld(model, aligned, found.stability, kind)
        return Labelled(aligned, found.permutations, found.stability, withheld)
    order = np.argsort(-_mean_responsibilities(model, draws, data).sum(axis=0), kind="stable")
    permutations = np.broadcast_to(order, (*np.shape(next(iter(draws.values())))[:2], len(order)))
    return Labelled(permute(model, draws, permutations), permutations)


def _labelled_factors(model: Any, draws: Mapping[str, np.ndarray], kind: str) -> Labelled:
    """Put factors in one order with one sign each."""
    from bayeszoo.inference.labels import factors as align_factors

    are_sampled, loadings = kind in ("sampled", "exact"), draws[model.signed[0]]
    found = (align_factors.align if are_sampled else align_factors.in_one_order)(loadings)
    turned = align_factors.turned(model, draws, found.permutations, found.signs)
    if not are_sampled:
        return Labelled(turned, found.permutations, signs=found.signs)
    withheld = _withheld(model, turned, found.stability, kind)
    return Labelled(turned, found.permutations, found.stability, withheld, found.signs)


def _mean_responsibilities(model: Any, draws: Mapping[str, np.ndarray], data: Any) -> np.ndarray:
    """Return responsibilities of the rows, shape (rows, K), averaged over the first draws of each chain."""
    few = {name: values[:, :FEW] for name, values in draws.items()}
    return np.asarray(model.assign(few, data).mean(axis=(0, 1)))


def matched(trees: list[Any]) -> list[Any]:
    """Return fits of the same data, those with the same components numbered alike.

    They are numbered as in the one to be asked about them, the best of those that show components: its own numbers stay
    as they are. What is returned carries a mark, and is returned as it is when asked for again, all or some of it.
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


_MARK, _MARKS = "numbered_together", itertools.count(1)
"""The attribute, of trees in memory only, that says in which call of `matched` a fit was numbered."""


def _alike(trees: list[Any]) -> list[list[int]]:
    """Return the places of the fits that have the same components."""
    from bayeszoo.results.assemble import model_of

    found: list[tuple[Any, list[int]]] = []
    for i, tree in enumerate(trees):
        places = next((places for model, places in found if _same_components(model, tree)), None)
        if places is None:
            found.append((model_of(tree), places := []))
        places.append(i)
    return [places for _, places in found]


def _matched(trees: list[Any]) -> list[Any]:
    from bayeszoo.results.assemble import model_of
    from bayeszoo.results.summary import best_of_components

    first = best_of_components(trees)
    if len(trees) < 2 or not is_symmetric(model := cast(Any, model_of(first))):
        return trees
    turn = _turn_of_factors(model, first) if hasattr(model, "signed") else _turn_of_rows(model, first)
    return [tree if tree is first else turn(tree) for tree in trees]


def _turn_of_rows(model: Any, first: Any) -> Callable[[Any], Any]:
    """Return what numbers the components of a fit as those of the first, by the rows that they hold."""
    from bayeszoo.inference.labels.align import match, permute
    from bayeszoo.results.assemble import given_of

    data = cast(Any, given_of(first))
    reference = _mean_responsibilities(model, _arrays(first), data)

    def turn(tree: Any) -> Any:
        draws = _arrays(tree)
        order = match(model, {name: values[:, :FEW] for name, values in draws.items()}, reference, data)
        moved = permute(model, draws, np.broadcast_to(order, (*np.shape(next(iter(draws.values())))[:2], len(order))))
        return _with_draws(tree, moved, order, first)

    return turn


def _turn_of_factors(model: Any, first: Any) -> Callable[[Any], Any]:
    """Return what gives the factors of a fit the order and the signs of those of the first."""
    from bayeszoo.inference.labels import factors as align_factors

    name = model.signed[0]
    reference = _arrays(first)[name].mean(axis=(0, 1))

    def turn(tree: Any) -> Any:
        draws = _arrays(tree)
        order, signs = align_factors.nearest(draws[name].mean(axis=(0, 1))[None], reference)
        shape = (*draws[name].shape[:2], reference.shape[1])
        moved = align_factors.turned(model, draws, np.broadcast_to(order, shape), np.broadcast_to(signs, shape))
        return _with_draws(tree, moved, order[0], first)

    return turn


def _same_components(model: Any, tree: Any) -> bool:
    from bayeszoo.results.assemble import model_of

    other, number = cast(Any, model_of(tree)), "K" if hasattr(model, "K") else "q"
    alike = type(other) is type(model) and getattr(other, number, None) == getattr(model, number, None)
    return alike and bool(other.dims == model.dims)


def _arrays(tree: Any) -> dict[str, np.ndarray]:
    posterior = tree["posterior"].to_dataset()
    return {str(name): values.transpose("chain", "draw", ...).to_numpy() for name, values in posterior.items()}


def _with_draws(tree: Any, draws: Mapping[str, np.ndarray], order: np.ndarray, first: Any) -> Any:
    """Return a copy of the tree with its components in another order, that of the first."""
    from bayeszoo.results.assemble import dumps, nested

    made, posterior = tree.copy(), tree["posterior"].to_dataset().transpose("chain", "draw", ...)
    made["posterior"] = xr.DataTree(posterior.assign({name: (posterior[name].dims, draws[name]) for name in draws}))
    facts = nested(tree, "facts")
    if "label_stability" in facts and not np.array_equal(order, np.arange(len(order))):
        facts |= {"label_stability": [facts["label_stability"][k] for k in order], "numbered_as": first.attrs["method"]}
        made.attrs["facts"] = dumps(facts)
    return made


def _withheld(model: Any, aligned: Mapping[str, np.ndarray], stability: np.ndarray, kind: str) -> str:
    """Say why single components are not to be shown: their draws do not agree what they are, or have not mixed."""
    if not np.min(stability) >= MIN_STABILITY:
        k, is_factor = int(np.argmin(stability)) + 1, hasattr(model, "signed")
        return (
            f"draws do not agree {'what factor' if is_factor else 'which rows are of component'} {k}{' is' * is_factor}"
        )
    if kind == "exact":
        return ""
    arrays = {name: (("chain", "draw", f"{name}_entry"), some_entries(values)) for name, values in aligned.items()}
    return failures(check for check in check_draws(xr.Dataset(arrays)) if check.name in MIXING)


def some_entries(values: np.ndarray) -> np.ndarray:
    """Return the entries of a parameter that are diagnosed, of shape (chain, draw, entries): all of them, if few.

    Of many one half are the largest in the mean, and the other is taken evenly from the rest.
    """
    flat = values.reshape(*values.shape[:2], -1)
    if flat.shape[2] <= MOST:
        return flat
    order, half = np.argsort(-flat.mean(axis=(0, 1)), kind="stable"), MOST // 2
    evenly = np.linspace(half, len(order) - 1, half).astype(int)
    return flat[..., np.sort(order[np.concatenate([np.arange(half), evenly])])]
