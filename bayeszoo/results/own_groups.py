"""The groups of a fit that hold its data, which other tools may replace: PyMC writes its own arrays there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import lazy_loader
import numpy as np

from bayeszoo.data.read import Data
from bayeszoo.errors import InputError
from bayeszoo.model.base import Model

if TYPE_CHECKING:
    import xarray as xr
else:
    xr = lazy_loader.load("xarray")

OF_DATA = ("observed_data", "constant_data")
"""The groups of data: outcomes, and the variables that they depend on."""


def groups_of_data(tree: xr.DataTree) -> dict[str, xr.Dataset]:
    """Return the current groups of data of a tree."""
    return {name: tree[name].to_dataset() for name in OF_DATA if name in tree.children}


def put_back(tree: xr.DataTree, original: Mapping[str, xr.Dataset]) -> None:
    """Restore a fit's groups of data, and keep the variables of another tool that have the same axes."""
    for name, group in original.items():
        other = tree[name].to_dataset() if name in tree.children else xr.Dataset()
        lengths = {**group.sizes}
        added = {
            key: values.variable
            for key, values in other.data_vars.items()
            if key not in group.variables and all(lengths.get(dim, n) == n for dim, n in values.sizes.items())
        }
        tree[name] = xr.DataTree(group.assign(added))


def numbers_of_rows(groups: Mapping[str, xr.Dataset]) -> np.ndarray | None:
    """Return the numbers of the rows in the user's table, which start at 1; another tool's start at 0."""
    group = groups.get("observed_data")
    row = None if group is None else group.coords.get("row")
    return None if row is None or 0 in row.to_numpy() else row.to_numpy()


def data_differ(missing: Sequence[str]) -> InputError:
    """Return the error that the stored data differ, or that PyMC has replaced them."""
    if not missing:
        line = "the data stored with the fit are not those that it was made from"
        return InputError(line, "data_differ", hint="fit again")
    return InputError(
        f"the groups of the data lack {', '.join(missing)}: another tool has replaced them",
        "data_differ",
        hint="give PyMC a copy, pm.sample_posterior_predictive(tree.copy(deep=True)), or save the fit before",
    )


def require_data_of(model: Model, data: Data) -> None:
    """Refuse data that are not canonical for the model's inputs; a forged file may have a matching digest."""
    try:
        is_same = Data(model.inputs.canonical(data.arrays).arrays).digest == data.digest
    except Exception:  # the arrays may have any type and shape; those that raise anything are refused
        is_same = False
    if not is_same:
        line = f"the data stored with the fit are no data of {model.name}"
        raise InputError(line, "not_writable", hint="fit again, or ask who made the file")
