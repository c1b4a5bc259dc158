"""Draws from the prior in the shape of a fit, so that what is made of fits can be made of the prior too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lazy_loader

from bayeszoo.errors import InputError
from bayeszoo.foundation.streams import stream_of_fit
from bayeszoo.results.groups import prior_draws
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import xarray as xr
else:
    xr = lazy_loader.load("xarray")

_CHAINS = 4


def prior_tree(tree: xr.DataTree, draws: int = 1000, seed: int = 0) -> xr.DataTree:
    """Return a fit with its draws replaced by draws of the prior.

    Parameters
    ----------
    tree : xarray.DataTree
        What `fit` returned, by any method.
    draws : int
        How many, in all; a multiple of four.
    seed : int
        Of the draws.

    Returns
    -------
    xarray.DataTree
        Parameters in ``posterior``, the data of the fit, its attributes but for ``method``, which is ``"prior"``. The
        draws are independent.

    Raises
    ------
    InputError
        When only statistics of the rows were kept, or the prior gives other parameters than the fit has.
    """
    model, data = Fit(tree).model, Fit(tree).data
    found = prior_draws(model, data, draws, stream_of_fit(tree.attrs, seed, "prior"))
    fitted = tree["posterior"].to_dataset()
    if missing := [str(name) for name in fitted.data_vars if name not in found]:
        raise InputError(f"the prior of {missing[0]} cannot be drawn: {model.name} simulates other parameters")
    variables = {
        name: (variable.dims, found[str(name)].reshape(_CHAINS, -1, *variable.shape[2:]))
        for name, variable in fitted.data_vars.items()
    }
    coords = {name: values for name, values in fitted.coords.items() if name not in ("chain", "draw")}
    groups = {name: tree[name].to_dataset() for name in ("observed_data", "constant_data") if name in tree.children}
    made = xr.DataTree.from_dict({"posterior": xr.Dataset(variables, coords=coords), **groups})
    made.attrs |= {**tree.attrs, "method": "prior", "kind": "exact", "status": "ok"}
    return made
