"""The groups of a fit that hold its data, which other tools replace: PyMC puts its own arrays in their place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import lazy_loader
import numpy as np

if TYPE_CHECKING:
    import xarray as xr
else:
    xr = lazy_loader.load("xarray")

OF_DATA = ("observed_data", "constant_data")
"""The groups of data: outcomes, and what they depend on."""


def groups_of_data(tree: xr.DataTree) -> dict[str, xr.Dataset]:
    """Return the groups of data that a tree has now."""
    return {name: tree[name].to_dataset() for name in OF_DATA if name in tree.children}


def put_back(tree: xr.DataTree, own: Mapping[str, xr.Dataset]) -> None:
    """Put the groups of data of a fit back into its tree, next to what another tool has put there that fits in."""
    for name, group in own.items():
        other = tree[name].to_dataset() if name in tree.children else xr.Dataset()
        lengths = {**group.sizes}
        added = {
            key: values.variable
            for key, values in other.data_vars.items()
            if key not in group.variables and all(lengths.get(dim, n) == n for dim, n in values.sizes.items())
        }
        tree[name] = xr.DataTree(group.assign(added))


def numbers_of_rows(groups: Mapping[str, xr.Dataset]) -> np.ndarray | None:
    """Return the numbers of the rows in the user's table, which count from 1; another tool counts from 0."""
    group = groups.get("observed_data")
    row = None if group is None else group.coords.get("row")
    return None if row is None or 0 in row.to_numpy() else row.to_numpy()
