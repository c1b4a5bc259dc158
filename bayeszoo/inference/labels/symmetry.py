"""Models with exchangeable labels: diagnostics of their draws, and the labels of the numbers shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

import numpy as np

from bayeszoo.foundation.gate import MIXING, Check, check_draws, failures
from bayeszoo.inference.labels import factors as align_factors
from bayeszoo.inference.labels.align import align, match, permute, responsibilities_of_some
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import Latent, Symmetric, exchangeable_axis, rows_have_parameters
from bayeszoo.model.many_files.rows import of_each
from bayeszoo.model.parts.accumulated import like_of

FEW = 100  # draws of each chain used to match components
MOST = 200  # most entries of a parameter that are diagnosed; topics may have thousands of words
MIN_STABILITY = 0.5  # halfway between chance and perfect agreement of draws about a component


@dataclass(frozen=True, eq=False)
class Labelled:
    """Relabelled draws: the same numbers, bit for bit, with consistent labels."""

    draws: Mapping[str, np.ndarray]  # shape (chain, draw, *parameter shape)
    permutations: np.ndarray  # shape (chain, draw, K): entry k is the sampler's component that became component k
    stability: np.ndarray | None = None  # of `Alignment`, shape (K,); None for an approximation
    withheld: str = ""  # why the parameters of single components are withheld; empty if they are shown
    checks: tuple[Check, ...] = ()  # failed checks of these parameters, when they are shown with a warning
    signs: np.ndarray | None = None  # shape (chain, draw, K): 1 or -1, multiplied each factor


def is_symmetric(model: Model) -> TypeGuard[Symmetric]:
    """Say whether the model has exchangeable labels."""
    return exchangeable_axis(model) is not None


def label_free(model: Model, draws: Mapping[str, np.ndarray], data: object) -> dict[str, np.ndarray] | None:
    """Return the quantities (chain, draw, ...) that do not depend on the labels.

    None when labels are not exchangeable: every parameter may then be diagnosed.
    """
    if not is_symmetric(model):
        return None
    return {name: _moving(np.asarray(values)) for name, values in model.invariants(draws, data).items()}


def _moving(values: np.ndarray) -> np.ndarray:
    """Return the entries that vary between draws, of shape (chain, draw, entries).

    The probability that two distant rows share a component is 0 or 1 to rounding in every draw, and has no diagnostics.
    A stuck chain shows in the log likelihood, a single entry, which is always kept.
    """
    flat = values.reshape(*values.shape[:2], -1)
    still = flat.std(axis=(0, 1)) <= 1e-9 * np.maximum(1.0, np.abs(flat.mean(axis=(0, 1))))
    return flat if flat.shape[2] == 1 else flat[..., ~still]


def labelled(model: Model, draws: Mapping[str, np.ndarray], data: Any, kind: str) -> Labelled | None:
    """Relabel draws consistently, by decreasing weight; None when labels are not exchangeable.

    Sampled and exact draws are aligned one by one; the draws of an approximation already have consistent labels.
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
    if rows_have_parameters(model):  # these parameters tell the component of each row
        occupancies = _occupancies(model, draws, like_of(data))
    else:
        occupancies = sum(of_each(_occupancies, model, draws, data))
    order = np.argsort(-occupancies, kind="stable")
    permutations = np.broadcast_to(order, (*np.shape(next(iter(draws.values())))[:2], len(order)))
    return Labelled(permute(model, draws, permutations), permutations)


def _unlabelled(model: Symmetric, draws: Mapping[str, np.ndarray], kind: str) -> Labelled:
    """Keep the sampler's labels, when nothing tells the component of a row; chains may have exchanged them."""
    name, position = next(
        (n, axes.index(axis)) for n, axes in model.dims.items() if (axis := model.exchangeable_axis()) in axes
    )
    shape = np.shape(draws[name])
    orders = np.broadcast_to(np.arange(shape[2 + position]), (*shape[:2], shape[2 + position]))
    are_sampled = kind in ("sampled", "exact")
    why = model.unread or f"{model.name} does not say which component a row is of"
    return Labelled(draws, orders, None, why * (are_sampled or model.prior_orders_labels))


def _labelled_factors(model: Symmetric, draws: Mapping[str, np.ndarray], kind: str) -> Labelled:
    """Reorder the factors and change their signs consistently."""
    are_sampled, loadings = kind in ("sampled", "exact"), draws[model.signed[0]]
    alignment = (align_factors.align if are_sampled else align_factors.in_one_order)(loadings)
    turned = align_factors.turned(model, draws, alignment.permutations, alignment.signs)
    if not are_sampled:
        return Labelled(turned, alignment.permutations, signs=alignment.signs)
    withheld, checks = _judged(model, turned, alignment.stability, kind)
    return Labelled(turned, alignment.permutations, alignment.stability, withheld, checks, alignment.signs)


def pattern_of(model: Symmetric, draws: Mapping[str, np.ndarray], data: Any) -> np.ndarray | None:
    """Return the pattern that identifies components of aligned draws: responsibilities (rows, K) or loadings (D, q).

    Both are means over the draws. None when nothing tells the component of a row, or no component is shown.
    """
    if model.unread:
        return None
    if model.signed:
        return np.asarray(draws[model.signed[0]].mean(axis=(0, 1)))
    return responsibilities_of_some(model, _first_draws(draws), data) if isinstance(model, Latent) else None


def numbered_as(
    model: Symmetric, draws: Mapping[str, np.ndarray], pattern: np.ndarray, data: Any
) -> tuple[dict[str, Any], np.ndarray]:
    """Renumber the components of aligned draws to match this pattern; return also their order, (K,)."""
    shape = np.shape(next(iter(draws.values())))[:2]
    if not model.signed and isinstance(model, Latent):
        order = match(model, _first_draws(draws), pattern, data)
        return permute(model, draws, np.broadcast_to(order, (*shape, len(order)))), order
    orders, signs = align_factors.nearest(draws[model.signed[0]].mean(axis=(0, 1))[None], pattern)
    size = (*shape, pattern.shape[1])
    turned = align_factors.turned(model, draws, np.broadcast_to(orders, size), np.broadcast_to(signs, size))
    return turned, orders[0]


def _first_draws(draws: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: values[:, :FEW] for name, values in draws.items()}


def mean_responsibilities(model: Latent, draws: Mapping[str, np.ndarray], data: Any) -> np.ndarray:
    """Return responsibilities of the rows, shape (rows, K), averaged over the first draws of each chain."""
    return np.asarray(model.component_probabilities(_first_draws(draws), data).mean(axis=(0, 1)))


def _occupancies(model: Latent, draws: Mapping[str, np.ndarray], data: object) -> np.ndarray:
    """Return the expected number of rows of each component, (K,)."""
    return np.asarray(mean_responsibilities(model, draws, data).sum(axis=0))


def _judged(
    model: Symmetric, aligned: Mapping[str, np.ndarray], stability: np.ndarray, kind: str
) -> tuple[str, tuple[Check, ...]]:
    """Return the reason to withhold single components: draws disagree about them, or have not mixed.

    If they may be shown with a warning, return the checks that failed, for the gate of the fit.
    """
    if not np.min(stability) >= MIN_STABILITY:
        k, is_factor = int(np.argmin(stability)) + 1, bool(model.signed)
        reason = f"what factor {k} is" if is_factor else f"which rows are of component {k}"
        return f"draws do not agree {reason}", ()
    if kind == "exact":
        return "", ()
    entries = {name: some_entries(values) for name, values in aligned.items()}
    checks = [check for check in check_draws(entries) if check.name in MIXING and not check.passed]
    if any(check.verdict == "failed" for check in checks):
        return failures(checks), ()
    return "", tuple(replace(check, name=f"components: {check.name}") for check in checks)


def some_entries(values: np.ndarray) -> np.ndarray:
    """Return the entries to diagnose, (chain, draw, entries): of many the largest, and an even selection of others."""
    flat = values.reshape(*values.shape[:2], -1)
    if flat.shape[2] <= MOST:
        return flat
    order, half = np.argsort(-flat.mean(axis=(0, 1)), kind="stable"), MOST // 2
    evenly = np.linspace(half, len(order) - 1, half).astype(int)
    return flat[..., np.sort(order[np.concatenate([np.arange(half), evenly])])]
