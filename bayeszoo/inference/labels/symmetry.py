"""Models with exchangeable labels: diagnostics of their draws, and the labels under which numbers are shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

import lazy_loader
import numpy as np

from bayeszoo.foundation.gate import MIXING, Check, check_draws, failures
from bayeszoo.inference.labels import factors as align_factors
from bayeszoo.inference.labels.align import align, match, permute, responsibilities_of_some
from bayeszoo.model.accumulated import like_of
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import Latent, Symmetric, exchangeable_axis, rows_have_parameters
from bayeszoo.model.many_files.rows import of_each

xr = lazy_loader.load("xarray")

FEW = 100  # draws of each chain that say which component is which
MOST = 200  # entries of a parameter that are diagnosed, where it has more, as topics of thousands of words
MIN_STABILITY = 0.5  # below it draws agree less about what a component is than halfway between chance and certainty


@dataclass(frozen=True, eq=False)
class Labelled:
    """Draws whose labels were put in one order: the same numbers, bit for bit, under other labels."""

    draws: Mapping[str, np.ndarray]  # shape (chain, draw, *parameter shape)
    permutations: np.ndarray  # shape (chain, draw, K): entry k is the sampler's component that became k
    stability: np.ndarray | None = None  # as of `Alignment`, shape (K,); None of an approximation
    withheld: str = ""  # why the parameters of single components are not to be shown, if they are not
    checks: tuple[Check, ...] = ()  # of these parameters, where they are shown with a warning
    signs: np.ndarray | None = None  # of factors, shape (chain, draw, K): what each was multiplied by, 1 or -1


def is_symmetric(model: Model) -> TypeGuard[Symmetric]:
    """Say whether there are labels that mean nothing."""
    return exchangeable_axis(model) is not None


def label_free(model: Model, draws: Mapping[str, np.ndarray], data: object) -> Any:
    """Return the quantities that do not depend on the labels, as a data set with axes chain and draw.

    None where labels have a meaning, and every parameter may be diagnosed.
    """
    if not is_symmetric(model):
        return None
    moving = {name: _moving(np.asarray(values)) for name, values in model.invariants(draws, data).items()}
    return xr.Dataset({name: (("chain", "draw", f"{name}_dim"), values) for name, values in moving.items()})


def _moving(values: np.ndarray) -> np.ndarray:
    """Return the entries that move, of shape (chain, draw, entries).

    The probability that two rows far apart are of one component is 0 or 1 to rounding whatever the draw, and says
    nothing. A chain that is stuck shows in the log likelihood, which is one entry and is kept.
    """
    flat = values.reshape(*values.shape[:2], -1)
    still = flat.std(axis=(0, 1)) <= 1e-9 * np.maximum(1.0, np.abs(flat.mean(axis=(0, 1))))
    return flat if flat.shape[2] == 1 else flat[..., ~still]


def labelled(model: Model, draws: Mapping[str, np.ndarray], data: Any, kind: str) -> Labelled | None:
    """Put the labels of draws in one order, by decreasing weight; None where labels have a meaning.

    Sampled and exact draws are aligned one by one; those of an approximation have their labels in one order already.
    """
    if not is_symmetric(model):
        return None
    if model.signed and not model.unread:
        return _labelled_factors(model, draws, kind)
    if model.unread or not isinstance(model, Latent):
        return _unlabelled(model, draws, kind)
    if kind in ("sampled", "exact"):
        alignment = align(model, draws, data)
        aligned = permute(model, draws, alignment.permutations)
        withheld, checks = _judged(model, aligned, alignment.stability, kind)
        return Labelled(aligned, alignment.permutations, alignment.stability, withheld, checks)
    if rows_have_parameters(model):  # which say what each row is of
        occupancies = _occupancies(model, draws, like_of(data))
    else:
        occupancies = sum(of_each(_occupancies, model, draws, data))
    order = np.argsort(-occupancies, kind="stable")
    permutations = np.broadcast_to(order, (*np.shape(next(iter(draws.values())))[:2], len(order)))
    return Labelled(permute(model, draws, permutations), permutations)


def _unlabelled(model: Symmetric, draws: Mapping[str, np.ndarray], kind: str) -> Labelled:
    """Leave the labels as they came, where nothing says which component a row is of; chains may have exchanged them."""
    name, at = next(
        (n, axes.index(axis)) for n, axes in model.dims.items() if (axis := model.exchangeable_axis()) in axes
    )
    shape = np.shape(draws[name])
    orders = np.broadcast_to(np.arange(shape[2 + at]), (*shape[:2], shape[2 + at]))
    are_sampled = kind in ("sampled", "exact")
    why = model.unread or f"{model.name} does not say which component a row is of"
    return Labelled(draws, orders, None, why * (are_sampled or model.prior_orders_labels))


def _labelled_factors(model: Symmetric, draws: Mapping[str, np.ndarray], kind: str) -> Labelled:
    """Put factors in one order with one sign each."""
    are_sampled, loadings = kind in ("sampled", "exact"), draws[model.signed[0]]
    alignment = (align_factors.align if are_sampled else align_factors.in_one_order)(loadings)
    turned = align_factors.turned(model, draws, alignment.permutations, alignment.signs)
    if not are_sampled:
        return Labelled(turned, alignment.permutations, signs=alignment.signs)
    withheld, checks = _judged(model, turned, alignment.stability, kind)
    return Labelled(turned, alignment.permutations, alignment.stability, withheld, checks, alignment.signs)


def pattern_of(model: Symmetric, draws: Mapping[str, np.ndarray], data: Any) -> np.ndarray | None:
    """Return what tells the components of aligned draws apart: mean responsibilities (rows, K), or loadings (D, q).

    None where nothing says which component a row is of, or no component is shown.
    """
    if model.unread:
        return None
    if model.signed:
        return np.asarray(draws[model.signed[0]].mean(axis=(0, 1)))
    return responsibilities_of_some(model, _few(draws), data) if isinstance(model, Latent) else None


def numbered_as(
    model: Symmetric, draws: Mapping[str, np.ndarray], pattern: np.ndarray, data: Any
) -> tuple[dict[str, Any], np.ndarray]:
    """Renumber the components of aligned draws to match this pattern; return also their order, (K,)."""
    shape = np.shape(next(iter(draws.values())))[:2]
    if not model.signed and isinstance(model, Latent):
        order = match(model, _few(draws), pattern, data)
        return permute(model, draws, np.broadcast_to(order, (*shape, len(order)))), order
    orders, signs = align_factors.nearest(draws[model.signed[0]].mean(axis=(0, 1))[None], pattern)
    size = (*shape, pattern.shape[1])
    turned = align_factors.turned(model, draws, np.broadcast_to(orders, size), np.broadcast_to(signs, size))
    return turned, orders[0]


def _few(draws: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: values[:, :FEW] for name, values in draws.items()}


def mean_responsibilities(model: Latent, draws: Mapping[str, np.ndarray], data: Any) -> np.ndarray:
    """Return responsibilities of the rows, shape (rows, K), averaged over the first draws of each chain."""
    return np.asarray(model.component_probabilities(_few(draws), data).mean(axis=(0, 1)))


def _occupancies(model: Latent, draws: Mapping[str, np.ndarray], data: object) -> np.ndarray:
    """Return how many rows each component holds, in expectation."""
    return np.asarray(mean_responsibilities(model, draws, data).sum(axis=0))


def _judged(
    model: Symmetric, aligned: Mapping[str, np.ndarray], stability: np.ndarray, kind: str
) -> tuple[str, tuple[Check, ...]]:
    """Say why single components are not to be shown: their draws do not agree what they are, or have not mixed.

    Where they are to be shown with caution, it is the checks that are returned, for the gate of the fit.
    """
    if not np.min(stability) >= MIN_STABILITY:
        k, is_factor = int(np.argmin(stability)) + 1, bool(model.signed)
        reason = f"what factor {k} is" if is_factor else f"which rows are of component {k}"
        return f"draws do not agree {reason}", ()
    if kind == "exact":
        return "", ()
    arrays = {name: (("chain", "draw", f"{name}_entry"), some_entries(values)) for name, values in aligned.items()}
    checks = [check for check in check_draws(xr.Dataset(arrays)) if check.name in MIXING and not check.passed]
    if any(check.verdict == "failed" for check in checks):
        return failures(checks), ()
    return "", tuple(replace(check, name=f"components: {check.name}") for check in checks)


def some_entries(values: np.ndarray) -> np.ndarray:
    """Return the entries to be diagnosed, of shape (chain, draw, entries): of many the largest, and some others."""
    flat = values.reshape(*values.shape[:2], -1)
    if flat.shape[2] <= MOST:
        return flat
    order, half = np.argsort(-flat.mean(axis=(0, 1)), kind="stable"), MOST // 2
    evenly = np.linspace(half, len(order) - 1, half).astype(int)
    return flat[..., np.sort(order[np.concatenate([np.arange(half), evenly])])]
