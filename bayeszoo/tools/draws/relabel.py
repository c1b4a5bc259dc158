"""Components in draws of any sampler, relabelled to one order, reversibly: mixtures, hidden states and factors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayeszoo.errors import InputError, NumericalError
from bayeszoo.foundation import diagnostics
from bayeszoo.inference.labels.align import inverse
from bayeszoo.inference.labels.factors import align
from bayeszoo.tools.draws.points import chains_of, unconstrained

if TYPE_CHECKING:
    import pandas as pd
    import pymc as pm
    import xarray as xr

SIMPLEX = 1e-6
"""Largest difference of the sum of probabilities from 1."""
COMPARED, SAME = 5, 1e-8
"""Number of draws whose log density is compared, and its largest relative change."""


@dataclass(frozen=True, eq=False)
class Relabelled:
    """Draws whose components are in one order."""

    tree: xr.DataTree
    """The tree with relabelled group ``posterior``; other groups are unchanged."""
    axes: Mapping[str, tuple[int, ...]]
    """The axes of labels of each variable, counted without chain and draw."""
    permutations: np.ndarray
    """Shape (chain, draw, K): entry k is the component of the original draw that becomes component k."""
    signs: np.ndarray
    """Shape (chain, draw, K): 1 or -1, by which the new component k is multiplied."""
    r_hat: pd.DataFrame
    """R-hat ``before`` and ``after``, a row for each entry of the variables in ``axes``."""

    def undone(self) -> xr.DataTree:
        """Return the original tree, bit for bit."""
        inverses = inverse(self.permutations)
        signs = np.take_along_axis(self.signs, inverses, axis=-1)
        return _replaced(self.tree, _turned(chains_of(self.tree), self.axes, inverses, signs))


def relabel(
    tree: xr.DataTree,
    axes: Mapping[str, int | tuple[int, ...]] | None = None,
    *,
    signed: bool = False,
    model: pm.Model | None = None,
) -> Relabelled:
    """Permute the components of each draw so that draws are most alike, without rounding any number.

    Each draw gets the permutation, and for factors the signs, that brings its components closest to their mean in
    least squares, with each variable in units of its standard deviation; mean and permutations are updated in turn.

    Parameters
    ----------
    tree : DataTree
        Draws of any sampler, as an ArviZ tree.
    axes : mapping of str to int or tuple of int, optional
        The axis of labels of each variable, counted without chain and draw; both axes of a transition matrix. By
        default axes named as that of the only probability vector in the tree, with ``_2`` for the second axis of a
        matrix; or an axis with ArviZ's default name, if no other axis of the variable has the same length.
    signed : bool
        Whether a component may also change its sign, as a factor may; all variables in ``axes`` then change sign.
    model : pymc.Model, optional
        The model of the draws, whose log density must then be the same before and after.

    Returns
    -------
    Relabelled

    Raises
    ------
    InputError
        When the axes of the labels are ambiguous (``ambiguous_labels``), or the named axes differ in length.
    NumericalError
        When the density of the model changes (``not_exchangeable``): its prior tells the labels apart.
    """
    posterior = chains_of(tree)
    labelled = _inferred(posterior) if axes is None else _checked(posterior, axes)
    order = align(_features(posterior, labelled, signed), signed)
    after = _turned(posterior, labelled, order.permutations, order.signs)
    if model is not None:
        _require_same_density(model, posterior, posterior.assign(after))
    before = {name: posterior[name] for name in after}
    return Relabelled(_replaced(tree, after), labelled, order.permutations, order.signs, _r_hat(before, after))


def _checked(posterior: xr.Dataset, axes: Mapping[str, int | tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    labelled = {name: (axis,) if isinstance(axis, int) else tuple(axis) for name, axis in axes.items()}
    if missing := [name for name in labelled if name not in posterior]:
        raise InputError(f"the draws have no {', '.join(missing)}", "unknown_name")
    if wrong := [name for name, places in labelled.items() if max(places, default=-1) >= posterior[name].ndim - 2]:
        raise InputError(f"{wrong[0]} has {posterior[wrong[0]].ndim - 2} axes", "wrong_shape", hint="the first is 0")
    lengths = {posterior[name].shape[2 + axis] for name, places in labelled.items() for axis in places}
    if len(lengths) != 1:
        raise InputError(f"the axes of the labels have the lengths {sorted(lengths)}", "wrong_shape")
    return labelled


def _inferred(posterior: xr.Dataset) -> dict[str, tuple[int, ...]]:
    """Return the axes with the name of the axis of the probability vector, or unnamed ones with its length.

    Other axes may have this length by chance, such as K columns of K components; ambiguous axes are refused.
    """
    vectors = [v for v in posterior.data_vars.values() if v.ndim == 3 and v.dtype.kind == "f" and _sum_to_one(v)]
    lengths, dims = {v.shape[2] for v in vectors}, {str(v.dims[2]) for v in vectors}
    if len(lengths) != 1:
        line = f"the axes of labels are ambiguous: vectors of probabilities have the lengths {sorted(lengths)}"
        raise InputError(line, "ambiguous_labels", hint='name them, such as axes={"mu": 0}')
    (length,) = lengths
    shapes = {str(name): v.shape[2:] for name, v in posterior.data_vars.items()}
    return {name: _labels_of(posterior[name], length, dims) for name, shape in shapes.items() if length in shape}


def _sum_to_one(values: xr.DataArray) -> bool:
    """Say whether the entries along the last axis are probabilities."""
    p = values.to_numpy()
    return bool((p >= 0).all() and np.abs(p.sum(axis=-1) - 1).max() < SIMPLEX)


def _labels_of(values: xr.DataArray, length: int, dims: set[str]) -> tuple[int, ...]:
    """Return the axes of labels of a variable, with names in ``dims``; the second of a matrix ends in ``_2``."""
    axes = [i for i, n in enumerate(values.shape[2:]) if n == length]
    names = [str(values.dims[2 + i]) for i in axes]
    matching = tuple(i for i, name in zip(axes, names, strict=True) if name.removesuffix("_2") in dims)
    if len(axes) == 1 and (matching or names[0].startswith(f"{values.name}_dim_")):
        return tuple(axes)
    if not matching or (len(matching) < len(axes) and _sum_to_one(values)):  # perhaps a transition matrix
        line = f"{values.name} has the axes {', '.join(names)} of length {length}: those of labels are ambiguous"
        raise InputError(line, "ambiguous_labels", hint=f'name them, such as axes={{"{values.name}": 0}}')
    return matching


def _features(posterior: xr.Dataset, labelled: Mapping[str, tuple[int, ...]], signed: bool) -> np.ndarray:
    """Return standardized entries of each component, (chain, draw, D, K); of a matrix only its diagonal."""
    parts = []
    for name, axes in labelled.items():
        values = posterior[name].to_numpy().astype(np.float64)
        if len(axes) == 2:
            values = np.diagonal(values, axis1=axes[0] + 2, axis2=axes[1] + 2)
        else:
            values = np.moveaxis(values, axes[0] + 2, -1)
        values = values.reshape(*values.shape[:2], -1, values.shape[-1])
        centred = values if signed else values - values.mean(axis=(0, 1, 3), keepdims=True)
        scale = np.sqrt(np.square(centred).mean(axis=(0, 1, 3), keepdims=True))
        parts.append(np.divide(centred, scale, out=np.zeros_like(centred), where=scale > 0))
    return np.concatenate(parts, axis=2)


def _turned(
    posterior: xr.Dataset, labelled: Mapping[str, tuple[int, ...]], permutations: np.ndarray, signs: np.ndarray
) -> dict[str, xr.DataArray]:
    """Return the labelled variables, permuted along their axes of labels, then with signs along the first axis."""
    turned = permuted(posterior, labelled, permutations)
    for name, axes in labelled.items():
        values = turned[name].to_numpy()
        turned[name] = turned[name].copy(data=np.where(_along(signs, axes[0], values.ndim) < 0, -values, values))
    return turned


def permuted(
    posterior: xr.Dataset, labelled: Mapping[str, tuple[int, ...]], permutations: np.ndarray
) -> dict[str, xr.DataArray]:
    """Return the labelled variables, permuted along their axes of labels, which are counted without chain and draw.

    Entry k of ``permutations`` (chain, draw, K) is the component that becomes component k.
    """
    after = {}
    for name, axes in labelled.items():
        values = posterior[name].to_numpy()
        for axis in axes:
            values = np.take_along_axis(values, _along(permutations, axis, values.ndim), axis=axis + 2)
        after[name] = posterior[name].copy(data=values)
    return after


def _along(values: np.ndarray, axis: int, ndim: int) -> np.ndarray:
    """Reshape values (chain, draw, K) so that K lies along an axis of a variable."""
    return values.reshape(*values.shape[:2], *[1] * axis, -1, *[1] * (ndim - 3 - axis))


def _replaced(tree: xr.DataTree, variables: Mapping[str, xr.DataArray]) -> xr.DataTree:
    copied = tree.copy()
    copied["posterior"] = type(tree)(tree["posterior"].to_dataset().assign(variables))
    return copied


def _require_same_density(model: pm.Model, before: xr.Dataset, after: xr.Dataset) -> None:
    from bayeszoo.compile.density import Density

    density = Density(model, "FAST_COMPILE")
    places = {"draw": np.linspace(0, before.sizes["draw"] - 1, COMPARED).astype(int)}
    heights = [
        [density.heights(x).joint for x in unconstrained(density, draws.isel(places)).reshape(-1, density.size)]
        for draws in (before, after)
    ]
    gap = float(np.max(np.abs(np.diff(heights, axis=0)) / np.maximum(1.0, np.abs(heights[0]))))
    if not gap <= SAME:
        line = f"the log density changes with the labels by a relative {gap:.3g}: the labels are not exchangeable"
        raise NumericalError(line, "not_exchangeable")


def _r_hat(before: Mapping[str, xr.DataArray], after: Mapping[str, xr.DataArray]) -> pd.DataFrame:
    import pandas as pd

    rows = {}
    for name in before:
        pair = [diagnostics.r_hat(np.asarray(draws[name].to_numpy(), dtype=np.float64)) for draws in (before, after)]
        for place in np.ndindex(pair[0].shape):
            rows[f"{name}[{', '.join(map(str, place))}]"] = {"before": pair[0][place], "after": pair[1][place]}
    return pd.DataFrame.from_dict(rows, orient="index")
