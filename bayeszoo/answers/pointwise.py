"""The log likelihood of each observation at each draw, in the group where ArviZ looks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lazy_loader

from bayeszoo.answers.leave_out import MAX_DISTINCT
from bayeszoo.errors import InputError
from bayeszoo.model.base import Observable
from bayeszoo.model.density import log_density
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import xarray as xr
else:
    xr = lazy_loader.load("xarray")


def with_log_likelihood(tree: xr.DataTree) -> xr.DataTree:
    """Return a fit with the group ``log_likelihood``, of shape (chain, draw, row).

    Raises
    ------
    InputError
        When the fit has no draws, the model does not say how one observation is distributed, a row of the table stands
        for several observations, there are more rows than `score.MAX_DISTINCT`, or the rows were not kept.
    """
    model, data = Fit(tree).model, Fit(tree).data
    if tree.attrs["kind"] == "point estimate" or not isinstance(model, Observable):
        what = f"{model.name} does not say how one observation is distributed"
        raise InputError("a point estimate has no draws" if isinstance(model, Observable) else what)
    _, weights = model.inputs.observations(data)
    if float(weights.sum()) != data.rows or data.rows > MAX_DISTINCT:
        why = f"more than {MAX_DISTINCT} rows" if data.rows > MAX_DISTINCT else "a row stands for several observations"
        raise InputError(f"no log likelihood of each observation: {why}")
    posterior = tree["posterior"].to_dataset()
    draws = {str(name): v.transpose("chain", "draw", ...).to_numpy() for name, v in posterior.data_vars.items()}
    values = log_density(model.likelihood(draws, data), model.inputs.outcome(data))
    array = xr.DataArray(values, dims=("chain", "draw", "row"), name="y")
    return xr.DataTree.from_dict({"posterior": posterior, "log_likelihood": array.to_dataset()})
