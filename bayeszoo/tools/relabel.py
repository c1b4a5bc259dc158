"""Labels of components in draws of any sampler put in one order, reversibly: mixtures, hidden states and factors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayeszoo.errors import InputError, NumericalError
from bayeszoo.foundation import diagnostics
from bayeszoo.inference.labels.align import inverse
from bayeszoo.inference.labels.factors import align
from bayeszoo.tools.points import chains_of, unconstrained

if TYPE_CHECKING:
    import pandas as pd
    import pymc as pm
    import xarray as xr

SIMPLEX = 1e-6
"""By how much the sum of probabilities may differ from 1."""
COMPARED, SAME = 5, 1e-8
"""Draws whose log density is compared, and by how much it may change, relative."""


@dataclass(frozen=True, eq=False)
class Relabelled:
    """Draws whose components have one order."""

    tree: xr.DataTree
    """The tree with its group ``posterior`` in one order; all else is as it was."""
    axes: Mapping[str, tuple[int, ...]]
    """The axes of each variable along which labels lie, counted without chain and draw."""
    permutations: np.ndarray
    """Shape (chain, draw, K): entry k is the draw's own component that becomes component k."""
    signs: np.ndarray
    """Shape (chain, draw, K): what a component is multiplied by then, 1 or -1."""
    r_hat: pd.DataFrame
    """A row for each entry of each of these variables: ``before`` and ``after``."""

    def undone(self) -> xr.DataTree:
        """Return the tree as it came, bit for bit."""
        back = inverse(self.permutations)
        signs = np.take_along_axis(self.signs, back, axis=-1)
        return _replaced(self.tree, _turned(chains_of(self.tree), self.axes, back, signs))


def relabel(
    tree: xr.DataTree,
    axes: Mapping[str, int | tuple[int, ...]] | None = None,
    *,
    signed: bool = False,
    model: pm.Model | None = None,
) -> Relabelled:
    """Put the components of each draw in the order that makes the draws most alike, without rounding any number.

    Each draw gets the permutation, of factors also the signs, that brings its components nearest to their mean in
    least squares, each variable in units of its standard deviation; the mean and the permutations are found in turn.

    Parameters
    ----------
    tree : DataTree
        Draws of any sampler, as ArviZ has them.
    axes : mapping of str to int or tuple of int, optional
        The axis of each variable along which labels lie, counted without chain and draw; both of a transition matrix.
        By default those with the name of the axis of the one vector of probabilities that the tree has, with ``_2``
        the second of a matrix; an axis without a name of its own if no other of the variable is as long.
    signed : bool
        Whether a component may also change its sign, as a factor; all the variables in ``axes`` change it with the
        component.
    model : pymc.Model, optional
        The model of the draws: then its log density must be the same before and after.

    Returns
    -------
    Relabelled

    Raises
    ------
    InputError
        When it cannot be told which axes have the labels (``ambiguous_labels``), or those named differ in length.
    NumericalError
        When the density of the model changes (``not_exchangeable``): its prior tells the labels apart.
    """
    posterior = chains_of(tree)
    labelled = _inferred(posterior) if axes is None else _told(posterior, axes)
    order = align(_features(posterior, labelled, signed), signed)
    after = _turned(posterior, labelled, order.permutations, order.signs)
    if model is not None:
        _require_same_density(model, posterior, posterior.assign(after))
    before = {name: posterior[name] for name in after}
    return Relabelled(_replaced(tree, after), labelled, order.permutations, order.signs, _r_hat(before, after))


def _told(posterior: xr.Dataset, axes: Mapping[str, int | tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    labelled = {name: (own,) if isinstance(own, int) else tuple(own) for name, own in axes.items()}
    if lacking := [name for name in labelled if name not in posterior]:
        raise InputError(f"the draws have no {', '.join(lacking)}", "unknown_name")
    if wrong := [name for name, own in labelled.items() if max(own, default=-1) >= posterior[name].ndim - 2]:
        raise InputError(f"{wrong[0]} has {posterior[wrong[0]].ndim - 2} axes", "wrong_shape", hint="the first is 0")
    lengths = {posterior[name].shape[2 + i] for name, own in labelled.items() for i in own}
    if len(lengths) != 1:
        raise InputError(f"the axes of the labels have the lengths {sorted(lengths)}", "wrong_shape")
    return labelled


def _inferred(posterior: xr.Dataset) -> dict[str, tuple[int, ...]]:
    """Return the axes that are named as that of the vector of probabilities, or the one as long where none has a name.

    Other axes may be as long by chance, as the columns of as many components: what the names do not tell is refused.
    """
    vectors = [v for v in posterior.data_vars.values() if v.ndim == 3 and v.dtype.kind == "f" and _sum_to_one(v)]
    lengths, dims = {v.shape[2] for v in vectors}, {str(v.dims[2]) for v in vectors}
    if len(lengths) != 1:
        line = f"it is not known which axes have labels: vectors of probabilities have the lengths {sorted(lengths)}"
        raise InputError(line, "ambiguous_labels", hint='say axes={"mu": 0}')
    (length,) = lengths
    shapes = {str(name): v.shape[2:] for name, v in posterior.data_vars.items()}
    return {name: _labels_of(posterior[name], length, dims) for name, own in shapes.items() if length in own}


def _sum_to_one(values: xr.DataArray) -> bool:
    """Say whether the entries along the last axis are probabilities."""
    p = values.to_numpy()
    return bool((p >= 0).all() and np.abs(p.sum(axis=-1) - 1).max() < SIMPLEX)


def _labels_of(values: xr.DataArray, length: int, dims: set[str]) -> tuple[int, ...]:
    """Return the axes of labels of one variable, whose names are in ``dims``, the second of a matrix with ``_2``."""
    axes = [i for i, n in enumerate(values.shape[2:]) if n == length]
    names = [str(values.dims[2 + i]) for i in axes]
    told = tuple(i for i, name in zip(axes, names, strict=True) if name.removesuffix("_2") in dims)
    if len(axes) == 1 and (told or names[0].startswith(f"{values.name}_dim_")):
        return tuple(axes)
    if not told or (len(told) < len(axes) and _sum_to_one(values)):  # maybe a matrix of transitions
        line = f"{values.name} has the axes {', '.join(names)} of length {length}: which have labels is not known"
        raise InputError(line, "ambiguous_labels", hint=f'say axes={{"{values.name}": 0}}')
    return told


def _features(posterior: xr.Dataset, labelled: Mapping[str, tuple[int, ...]], signed: bool) -> np.ndarray:
    """Return what is known of each component, (chain, draw, D, K), in standard deviations; of a matrix its diagonal."""
    parts = []
    for name, own in labelled.items():
        values = posterior[name].to_numpy().astype(np.float64)
        if len(own) == 2:
            values = np.diagonal(values, axis1=own[0] + 2, axis2=own[1] + 2)
        else:
            values = np.moveaxis(values, own[0] + 2, -1)
        values = values.reshape(*values.shape[:2], -1, values.shape[-1])
        centred = values if signed else values - values.mean(axis=(0, 1, 3), keepdims=True)
        scale = np.sqrt(np.square(centred).mean(axis=(0, 1, 3), keepdims=True))
        parts.append(np.divide(centred, scale, out=np.zeros_like(centred), where=scale > 0))
    return np.concatenate(parts, axis=2)


def _turned(
    posterior: xr.Dataset, labelled: Mapping[str, tuple[int, ...]], permutations: np.ndarray, signs: np.ndarray
) -> dict[str, xr.DataArray]:
    """Return the variables with labels, permuted along all their axes of labels, then with signs along the first."""
    turned = permuted(posterior, labelled, permutations)
    for name, own in labelled.items():
        values = turned[name].to_numpy()
        turned[name] = turned[name].copy(data=np.where(_along(signs, own[0], values.ndim) < 0, -values, values))
    return turned


def permuted(
    posterior: xr.Dataset, labelled: Mapping[str, tuple[int, ...]], permutations: np.ndarray
) -> dict[str, xr.DataArray]:
    """Return the variables with labels, permuted along their axes of labels, which are counted without chain and draw.

    Entry k of ``permutations`` (chain, draw, K) is the component that becomes component k.
    """
    after = {}
    for name, own in labelled.items():
        values = posterior[name].to_numpy()
        for i in own:
            values = np.take_along_axis(values, _along(permutations, i, values.ndim), axis=i + 2)
        after[name] = posterior[name].copy(data=values)
    return after


def _along(values: np.ndarray, axis: int, ndim: int) -> np.ndarray:
    """Return numbers (chain, draw, K) with K along an axis of a variable."""
    return values.reshape(*values.shape[:2], *[1] * axis, -1, *[1] * (ndim - 3 - axis))


def _replaced(tree: xr.DataTree, variables: Mapping[str, xr.DataArray]) -> xr.DataTree:
    copied = tree.copy()
    copied["posterior"] = type(tree)(tree["posterior"].to_dataset().assign(variables))
    return copied


def _require_same_density(model: pm.Model, before: xr.Dataset, after: xr.Dataset) -> None:
    from bayeszoo.compile.density import Density

    density = Density(model, "FAST_COMPILE")
    some = {"draw": np.linspace(0, before.sizes["draw"] - 1, COMPARED).astype(int)}
    heights = [
        [density.heights(x).joint for x in unconstrained(density, draws.isel(some)).reshape(-1, density.size)]
        for draws in (before, after)
    ]
    gap = float(np.max(np.abs(np.diff(heights, axis=0)) / np.maximum(1.0, np.abs(heights[0]))))
    if not gap <= SAME:
        line = f"the log density changes with the labels, by {gap:.3g} of itself: the prior tells them apart"
        raise NumericalError(line, "not_exchangeable")


def _r_hat(before: Mapping[str, xr.DataArray], after: Mapping[str, xr.DataArray]) -> pd.DataFrame:
    import pandas as pd

    rows = {}
    for name in before:
        pair = [diagnostics.r_hat(np.asarray(draws[name].to_numpy(), dtype=np.float64)) for draws in (before, after)]
        for place in np.ndindex(pair[0].shape):
            rows[f"{name}[{', '.join(map(str, place))}]"] = {"before": pair[0][place], "after": pair[1][place]}
    return pd.DataFrame.from_dict(rows, orient="index")
