"""The probability that a parameter is positive, which an estimate of exactly 0 says nothing about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from bayeszoo.model.accumulated import stats_of
from bayeszoo.results.assemble import given_of, model_of

if TYPE_CHECKING:
    import xarray as xr


def probability_positive(tree: xr.DataTree, name: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the posterior probability that each entry of a parameter is > 0, and its Monte Carlo standard error.

    Parameters
    ----------
    tree : xarray.DataTree
        What `fit` returned. An exact fit gives the closed form, with error 0; others the share of their draws.
    name : str
        The parameter.

    Returns
    -------
    tuple of two ndarrays of the parameter's shape, or None
        None for point estimates, and for fits that did not pass their gate.
    """
    if tree.attrs["status"] != "ok" or tree.attrs["kind"] == "point estimate":
        return None
    if tree.attrs["method"] == "exact":
        model = cast(Any, model_of(tree))
        below = np.asarray(model.posterior(stats_of(model, given_of(tree)))[name].cdf(0.0))
        return 1 - below, 0 * below
    from arviz_stats.base import array_stats

    positive = tree["posterior"].to_dataset()[name].transpose("chain", "draw", ...).to_numpy() > 0
    with np.errstate(divide="ignore", invalid="ignore"):  # of signs that are all alike
        mcse = array_stats.mcse(positive.astype(np.float64), method="mean", chain_axis=0, draw_axis=1)
    return positive.mean((0, 1)), np.where(positive.all((0, 1)) | ~positive.any((0, 1)), np.nan, mcse)
