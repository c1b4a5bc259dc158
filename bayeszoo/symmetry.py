"""Models whose labels mean nothing: what of their draws can be diagnosed, and what is shown under which label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import lazy_loader
import numpy as np

from bayeszoo.gate import MIXING, check_draws, failures
from bayeszoo.latent import Symmetric

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
    from bayeszoo.align import align, permute

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
    from bayeszoo import align_factors

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
    """Return fits of one model to the same data with their components numbered as in the first of them."""
    from bayeszoo.align import match, permute
    from bayeszoo.tree import given_of, model_of

    if len(trees) < 2 or not is_symmetric(model := cast(Any, model_of(trees[0]))):
        return trees
    if hasattr(model, "signed"):
        return _matched_factors(model, trees)
    data = cast(Any, given_of(trees[0]))
    reference = _mean_responsibilities(model, _arrays(trees[0]), data)
    made = [trees[0]]
    for tree in trees[1:]:
        if not _same_components(model, tree):
            made.append(tree)
            continue
        draws = _arrays(tree)
        order = match(model, {name: values[:, :FEW] for name, values in draws.items()}, reference, data)
        moved = permute(model, draws, np.broadcast_to(order, (*np.shape(next(iter(draws.values())))[:2], len(order))))
        made.append(_with_draws(tree, moved))
    return made


def _same_components(model: Any, tree: Any) -> bool:
    from bayeszoo.tree import model_of

    other, number = cast(Any, model_of(tree)), "K" if hasattr(model, "K") else "q"
    alike = type(other) is type(model) and getattr(other, number) == getattr(model, number)
    return alike and bool(other.dims == model.dims)


def _matched_factors(model: Any, trees: list[Any]) -> list[Any]:
    """Return fits of one factor model with the order and the signs of the factors of the first."""
    from bayeszoo import align_factors

    name = model.signed[0]
    reference, made = _arrays(trees[0])[name].mean(axis=(0, 1)), [trees[0]]
    for tree in trees[1:]:
        if not _same_components(model, tree):
            made.append(tree)
            continue
        draws = _arrays(tree)
        found = align_factors.nearest(draws[name].mean(axis=(0, 1))[None], reference)
        shape = (*draws[name].shape[:2], reference.shape[1])
        made.append(_with_draws(tree, align_factors.turned(model, draws, *(np.broadcast_to(o, shape) for o in found))))
    return made


def _arrays(tree: Any) -> dict[str, np.ndarray]:
    posterior = tree["posterior"].to_dataset()
    return {str(name): values.transpose("chain", "draw", ...).to_numpy() for name, values in posterior.items()}


def _with_draws(tree: Any, draws: Mapping[str, np.ndarray]) -> Any:
    """Return a copy of the tree with other numbers in its posterior."""
    made, posterior = tree.copy(), tree["posterior"].to_dataset().transpose("chain", "draw", ...)
    made["posterior"] = xr.DataTree(posterior.assign({name: (posterior[name].dims, draws[name]) for name in draws}))
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
