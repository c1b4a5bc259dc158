"""Factor scores of rows, and rows reconstructed from the factors of a fit."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.answers.columns import moment_columns, not_updated, with_reasons
from bayeszoo.answers.judged import judged
from bayeszoo.answers.quantiles import Quantiles, summary_over_draws
from bayeszoo.answers.rows import by_row, rows_asked
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
"""Rough limit of the numbers in memory at once."""

Gaussians = Callable[[Params, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Map parameters (chain, draw, ...) and rows to means and sds of Gaussians, (chain, draw, rows, labels)."""


def project(tree: xr.DataTree, new_data: object = None, **options: object) -> pd.DataFrame:
    """Return the factor scores of rows, along the principal axes of the fit.

    Parameters
    ----------
    tree : xarray.DataTree
        What `fit` returned for a model with factors.
    new_data : Data or anything that `read` takes, optional
        Rows, which may have missing numbers with ``missing="mask"``; by default those of the fit.
    **options
        Options of `read`.

    Returns
    -------
    pandas.DataFrame
        Indexed by row, from 1, and factor: ``mean``, ``sd``, ``q025``, ``median``, ``q975`` and their Monte Carlo
        errors (``mcse_mean``, ``mcse_sd``, ``mcse_q025``, ...), NaN for a point estimate, or if the tails of the draws
        are too heavy, as ``withheld`` says. The prior of a score is N(0, 1).

    Raises
    ------
    Untrustworthy
        When the fit failed its gate.
    InputError
        When the model has no factors, or the data do not suit it.

    Notes
    -----
    The axes are those of the mean of W W', the longest first, each with its largest entry positive. Procrustes rotates
    the loadings of each draw, and the scores with them, as near as possible to these axes, so that the answer does not
    depend on a sampler's rotation of W. As the noise goes to 0 the scores are those of PCA divided by the square root
    of their variance (divisor N). New rows do not update the parameters, as ``attrs["remarks"]`` says.
    """
    return _of_rows(Fit(tree), new_data, options, _scores)


def _scores(fit: Fit, data: Data) -> pd.DataFrame:
    """Return the scores of rows along the principal axes of a fit."""
    params = _factors(fit)
    reference = principal_axes(params["loadings"])
    rotations = procrustes(params["loadings"], reference)

    def scores(params: Params, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        latent, rotation = latent_posterior(params, rows), params["rotation"]
        covariance = rotation.mT[..., None, :, :] @ latent.covariance @ rotation[..., None, :, :]
        return latent.mean @ rotation, np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1))

    labels = np.arange(1, reference.shape[1] + 1)
    return _averaged(fit, scores, {**params, "rotation": rotations}, data, ("factor", labels))


def reconstruct(tree: xr.DataTree, new_data: object = None, **options: object) -> pd.DataFrame:
    """Reconstruct rows from the factors of a fit, with intervals, and predict missing values.

    Parameters
    ----------
    tree, new_data, **options
        As in `project`.

    Returns
    -------
    pandas.DataFrame
        Indexed by row, from 1, and column: ``observed`` (NaN where missing), ``what``, and the columns of `project`.
        For observed numbers ``what`` is "without noise": mean + W z, with z the factors given the observed numbers of
        the row. For missing ones it is "predicted": the number itself, with noise. Units are those of the table, also
        if the fit divided its columns by their standard deviations.

    Raises
    ------
    Untrustworthy, InputError
        As `project`.

    Notes
    -----
    A prediction is not an imputation: the fit was made without it, and a second fit to the completed table would take
    it for an observation.
    """
    return _of_rows(Fit(tree), new_data, options, _reconstructed)


def _reconstructed(fit: Fit, data: Data) -> pd.DataFrame:
    """Return the rows reconstructed from the factors of a fit."""
    frame = _averaged(fit, reconstruction, _factors(fit), data, ("column", data["column"]))
    observed = np.ravel(data["Y"])
    frame.insert(0, "observed", observed)
    if scales := scales_of(fit.like):
        factors, numbers = np.tile([scales[name] for name in data["column"]], data.rows), frame.columns != "withheld"
        frame.loc[:, numbers] = frame.loc[:, numbers].mul(factors, axis=0)
    frame.insert(1, "what", np.where(np.isnan(observed), "predicted", "without noise"))
    return frame


def _of_rows(fit: Fit, new_data: object, options: Options, answer: Callable[[Fit, Data], pd.DataFrame]) -> pd.DataFrame:
    """Answer for the rows of the fit, or for new ones, which do not update its parameters."""
    frame = judged(fit, _ANSWER, partial(_rows, new_data, options), answer)
    return frame if new_data is None else not_updated(frame, fit.kind)


def _rows(new_data: object, options: Options, fit: Fit) -> Data:
    """Return the rows of the fit, or new ones, of a model with factors."""
    _factors(fit)
    return rows_asked(fit, new_data, options, "factors")


def _factors(fit: Fit) -> Params:
    """Return the draws (chain, draw, ...) of a model with factors, or raise `InputError`."""
    draws, names = fit.draws(), ("mean", "loadings", "variance")
    if not set(names) <= set(draws):
        raise InputError(f"{fit.tree.attrs['model']} has no factors to project rows on", "no_factors", hint="fit ppca")
    return {name: draws[name] for name in names}


def _averaged(fit: Fit, function: Gaussians, params: Params, data: Data, axis: Any) -> pd.DataFrame:
    """Return Gaussians averaged over the draws, in blocks of rows, as a table of rows and labels."""
    Y = data["Y"]
    chains, draws, _, q = params["loadings"].shape
    step = max(1, _CELLS // (chains * draws * max(Y.shape[1], q * q)))
    parts = [_mixed(fit, *function(params, Y[i : i + step])) for i in range(0, len(Y), step)]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    withheld = columns.pop("withheld")
    return with_reasons(by_row(columns, data, *axis), withheld)


def _mixed(fit: Fit, mean: np.ndarray, sd: np.ndarray) -> dict[str, np.ndarray]:
    """Return moments and quantiles of Gaussians (chain, draw, rows, ...) averaged over draws."""
    if fit.kind == "point estimate":
        row_moments = moments(mean, np.square(sd), independent=fit.has_independent_draws)
        quantiles = Quantiles.exact(frozen.norm(row_moments.mean, row_moments.sd))
    else:
        params = {"mean": mean, "sd": np.broadcast_to(sd, mean.shape)}
        row_moments, quantiles = summary_over_draws(_gaussian, params, independent=fit.has_independent_draws)
    columns = moment_columns(row_moments, quantiles) | {"withheld": row_moments.withheld}
    return {name: np.ravel(values) for name, values in columns.items()}


def _gaussian(params: Params) -> Any:
    return frozen.norm(params["mean"], params["sd"])
