"""Rows seen through the factors of a fit: where they lie along them, and what the factors say of their numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.answers.assign import by_row, rows_asked
from bayeszoo.answers.columns import moment_columns, with_reasons
from bayeszoo.answers.judged import judged
from bayeszoo.answers.quantiles import Quantiles, over_draws
from bayeszoo.data.inputs.matrix import scales_of
from bayeszoo.data.read import Data
from bayeszoo.distributions import frozen
from bayeszoo.errors import InputError
from bayeszoo.families.factors.base import latent_posterior, principal_axes, procrustes, reconstruction
from bayeszoo.foundation.named import Options, Params
from bayeszoo.foundation.tails import moments
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

_ANSWER = "projections by it"
_CELLS = 2**21
"""Numbers that are held at once, roughly."""

Gaussians = Callable[[Params, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Parameters with axes (chain, draw), and rows, to mean and sd of Gaussians, of shape (chain, draw, rows, labels)."""


def project(tree: xr.DataTree, new_data: object = None, **options: object) -> pd.DataFrame:
    """Return the factors of rows: their scores along the principal axes of the fit.

    Parameters
    ----------
    tree : xarray.DataTree
        What `fit` returned, of a model with factors.
    new_data : Data or anything that `read` takes, optional
        Rows, which may have missing numbers with ``missing="mask"``; by default those of the fit.
    **options
        Of `read`.

    Returns
    -------
    pandas.DataFrame
        Indexed by row, from 1, and factor: ``mean``, ``sd``, ``q025``, ``median``, ``q975`` and their Monte Carlo
        errors (``mcse_mean``, ``mcse_sd``, ``mcse_q025``, ...), NaN of a point estimate, or where the tails of the
        draws are too heavy, as ``withheld`` says. A priori a score is N(0, 1).

    Raises
    ------
    Untrustworthy
        When the fit failed its gate.
    InputError
        When the model has no factors, or the data do not suit it.

    Notes
    -----
    The axes are those of the mean of W W', the longest first, each with its largest entry positive. The loadings of
    every draw are rotated as near to them as they come (Procrustes), and the scores with them: which rotation of W a
    sampler took has no part in the answer. As the noise goes to 0 the scores are those of PCA over the square root of
    their variance (divisor N).
    """
    return judged(tree, _ANSWER, partial(_rows, new_data, options), _scores)


def _scores(fit: Fit, data: Data) -> pd.DataFrame:
    """Return the scores of rows along the principal axes of a fit."""
    params = _factors(fit)
    reference = principal_axes(params["loadings"])
    rotations = procrustes(params["loadings"], reference)

    def scores(params: Params, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        latent, turned = latent_posterior(params, rows), params["rotation"]
        covariance = turned.mT[..., None, :, :] @ latent.covariance @ turned[..., None, :, :]
        return latent.mean @ turned, np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1))

    labels = np.arange(1, reference.shape[1] + 1)
    return _averaged(fit, scores, {**params, "rotation": rotations}, data, ("factor", labels))


def reconstruct(tree: xr.DataTree, new_data: object = None, **options: object) -> pd.DataFrame:
    """Reconstruct rows from the factors of a fit, with intervals, and predict missing values.

    Parameters
    ----------
    tree, new_data, **options
        As of `project`.

    Returns
    -------
    pandas.DataFrame
        Indexed by row, from 1, and column: ``observed`` (NaN where missing), ``what``, and the columns of `project`.
        Where a number was observed ``what`` is "without noise": mean + W z, z the factors given what was observed of
        the row. Where it is missing, "predicted": the number itself, noise and all.
        All is in the units of the table, also where the fit divided its columns by their standard deviations.

    Raises
    ------
    Untrustworthy, InputError
        As `project`.

    Notes
    -----
    A prediction is not an imputation: the fit was made without it, and a second fit to data that were filled in would
    take it for an observation.
    """
    return judged(tree, _ANSWER, partial(_rows, new_data, options), _reconstructed)


def _reconstructed(fit: Fit, data: Data) -> pd.DataFrame:
    """Return the rows as the factors of a fit have them."""
    frame = _averaged(fit, reconstruction, _factors(fit), data, ("column", data["column"]))
    observed = np.ravel(data["Y"])
    frame.insert(0, "observed", observed)
    if scales := scales_of(fit.like):
        factors, numbers = np.tile([scales[name] for name in data["column"]], data.rows), frame.columns != "withheld"
        frame.loc[:, numbers] = frame.loc[:, numbers].mul(factors, axis=0)
    frame.insert(1, "what", np.where(np.isnan(observed), "predicted", "without noise"))
    return frame


def _rows(new_data: object, options: Options, fit: Fit) -> Data:
    """Read the rows that are asked about, of a model with factors."""
    _factors(fit)
    return rows_asked(fit, new_data, options, "factors")


def _factors(fit: Fit) -> Params:
    """Return the draws of a model with factors, with axes (chain, draw, ...)."""
    draws, names = fit.draws(), ("mean", "loadings", "variance")
    if not set(names) <= set(draws):
        raise InputError(f"{fit.tree.attrs['model']} has no factors to project rows on", "no_factors", hint="fit ppca")
    return {name: draws[name] for name in names}


def _averaged(fit: Fit, function: Gaussians, params: Params, data: Data, axis: Any) -> pd.DataFrame:
    """Average Gaussians over the draws, a few rows at a time: a table of rows and labels."""
    Y = data["Y"]
    chains, draws, _, q = params["loadings"].shape
    step = max(1, _CELLS // (chains * draws * max(Y.shape[1], q * q)))
    parts = [_of_some(fit, *function(params, Y[i : i + step])) for i in range(0, len(Y), step)]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    withheld = columns.pop("withheld")
    return with_reasons(by_row(columns, data, *axis), withheld)


def _of_some(fit: Fit, mean: np.ndarray, sd: np.ndarray) -> dict[str, np.ndarray]:
    """Return moments and quantiles of Gaussians (chain, draw, row, ...) averaged over draws."""
    is_independent, each = fit.has_independent_draws, {"mean": mean, "sd": np.broadcast_to(sd, mean.shape)}
    known = moments(mean, np.square(sd), independent=is_independent)
    if fit.kind == "point estimate":
        quantiles = Quantiles.exact(frozen.norm(known.mean, known.sd))
    else:
        size = mean.size // math.prod(mean.shape[:2])
        quantiles = over_draws(_gaussian, each, size, counts=False, independent=is_independent)
    return moment_columns(known, quantiles) | {"withheld": known.withheld}


def _gaussian(params: Params) -> Any:
    return frozen.norm(params["mean"], params["sd"])
