"""Rows seen through the factors of a fit: where they lie along them, and what the factors say of their numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayeszoo.data.read import Data, read
from bayeszoo.distributions.posterior import QUANTILES
from bayeszoo.errors import InputError, Untrustworthy
from bayeszoo.families.factors.rows import latent_posterior, principal_axes, procrustes, reconstruction
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.streams import stream_of_fit
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


_CELLS = 2**21
"""Numbers that are held at once, roughly."""

Params = dict[str, np.ndarray]
Moments = Callable[[Params, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Parameters with axes (chain, draw), and rows, to mean and sd of Gaussians, of shape (chain, draw, rows, labels)."""


class _Seen(NamedTuple):
    """What a fit says of numbers of rows, each of shape (rows, labels)."""

    mean: np.ndarray
    sd: np.ndarray
    quantiles: np.ndarray
    mcse: np.ndarray


def project(tree: xr.DataTree, new_data: Any = None, *, seed: int = 0, **options: Any) -> pd.DataFrame:
    """Return the factors of rows: their scores along the principal axes of the fit.

    Parameters
    ----------
    tree : xarray.DataTree
        What `fit` returned, of a model with factors.
    new_data : Data or anything that `read` takes, optional
        Rows, which may have missing numbers with ``missing="mask"``; by default those of the fit.
    seed : int
        Of the draws that give the quantiles of a fit that has draws.
    **options
        Of `read`.

    Returns
    -------
    pandas.DataFrame
        Indexed by row, from 1, and factor: ``mean``, ``sd``, ``q025``, ``median``, ``q975``, and ``mcse_mean``, NaN of
        a point estimate. A priori a score is N(0, 1).

    Raises
    ------
    Untrustworthy
        When the fit did not pass its gate.
    InputError
        When the model has no factors, or the data do not suit it.

    Notes
    -----
    The axes are those of the mean of W W', the longest first, each with its largest entry positive. The loadings of
    every draw are rotated as near to them as they come (Procrustes), and the scores with them: which rotation of W a
    sampler took has no part in the answer. As the noise goes to 0 the scores are those of PCA over the square root of
    their variance (divisor N).
    """
    fit = _Fit.of(tree)
    reference = principal_axes(fit.params["loadings"])
    rotations = procrustes(fit.params["loadings"], reference)

    def scores(params: Params, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found, turned = latent_posterior(params, rows), params["rotation"]
        covariance = turned.mT[..., None, :, :] @ found.covariance @ turned[..., None, :, :]
        return found.mean @ turned, np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1))

    data = fit.rows(new_data, options)
    seen = fit.averaged(scores, {**fit.params, "rotation": rotations}, data["Y"], seed)
    return _frame(seen, data, "factor", np.arange(1, reference.shape[1] + 1))


def reconstruct(tree: xr.DataTree, new_data: Any = None, *, seed: int = 0, **options: Any) -> pd.DataFrame:
    """Return rows as the factors of a fit give them back, with intervals, and predictions of what is missing.

    Parameters
    ----------
    tree, new_data, seed, **options
        As of `project`.

    Returns
    -------
    pandas.DataFrame
        Indexed by row, from 1, and column: ``observed`` (NaN where missing), ``what``, and ``mean``, ``sd``, ``q025``,
        ``median``, ``q975``, ``mcse_mean``. Where a number was observed ``what`` is "without noise": mean + W z, z the
        factors given what was observed of the row. Where it is missing, "predicted": the number itself, noise and all.

    Raises
    ------
    Untrustworthy, InputError
        As `project`.

    Notes
    -----
    A prediction is not an imputation: the fit was made without it, and a second fit to data that were filled in would
    take it for an observation.
    """
    fit = _Fit.of(tree)
    data = fit.rows(new_data, options)
    frame = _frame(fit.averaged(reconstruction, fit.params, data["Y"], seed), data, "column", data["column"])
    observed = np.ravel(data["Y"])
    frame.insert(0, "observed", observed)
    frame.insert(1, "what", np.where(np.isnan(observed), "predicted", "without noise"))
    return frame


class _Fit:
    """A fit of a model with factors, and its draws with axes (chain, draw, ...)."""

    def __init__(self, tree: xr.DataTree, params: Params) -> None:
        self.tree, self.params = tree, params
        self.is_point = tree.attrs["kind"] == "point estimate"

    @classmethod
    def of(cls, tree: xr.DataTree) -> _Fit:
        if tree.attrs["status"] != "ok":
            raise Untrustworthy(f"the fit is {tree.attrs['status']}: projections by it are withheld")
        names = ("mean", "loadings", "variance")
        draws = Fit(tree).draws()
        if not set(names) <= set(draws):
            raise InputError(f"{tree.attrs['model']} has no factors to project rows on", hint="fit ppca")
        return cls(tree, {name: draws[name] for name in names})

    def rows(self, new_data: Any, options: dict[str, Any]) -> Data:
        """Return the rows that are asked for."""
        if new_data is None:
            return Fit(self.tree).data
        like = Fit(self.tree).like
        return read(Fit(self.tree).model, new_data, new=True, like=like, **options)

    def averaged(self, moments: Moments, params: Params, Y: np.ndarray, seed: int) -> _Seen:
        """Average Gaussians over the draws, a few rows at a time: quantiles of draws, of a point estimate exact."""
        rng = stream_of_fit(self.tree.attrs, seed, "rows", Data({"Y": Y}).digest)
        pieces = [self._of_some(moments, params, rows, rng) for rows in _few(Y, self.params["loadings"])]
        joined = [np.concatenate(parts, axis=1 if i == 2 else 0) for i, parts in enumerate(zip(*pieces, strict=True))]
        return _Seen(*joined)

    def _of_some(self, moments: Moments, params: Params, rows: np.ndarray, rng: np.random.Generator) -> _Seen:
        from scipy.special import ndtri

        each, sd = moments(params, rows)
        mean, whole = each.mean((0, 1)), np.sqrt(np.square(sd).mean((0, 1)) + each.var((0, 1)))
        levels = np.array(list(QUANTILES.values()))
        if self.is_point:
            return _Seen(mean, whole, mean + whole * ndtri(levels)[:, None, None], np.full(mean.shape, np.nan))
        quantiles = np.quantile(rng.normal(each, sd), levels, axis=(0, 1))
        return _Seen(mean, whole, quantiles, diagnostics.mcse(each))


def _few(Y: np.ndarray, loadings: np.ndarray) -> Iterator[np.ndarray]:
    """Go through the rows so many at a time that little memory is needed."""
    draws, q = loadings.shape[0] * loadings.shape[1], loadings.shape[-1]
    step = max(1, _CELLS // (draws * max(Y.shape[1], q * q)))
    return (Y[i : i + step] for i in range(0, len(Y), step))


def _frame(seen: _Seen, data: Data, axis: str, labels: Any) -> pd.DataFrame:
    import pandas as pd

    index = pd.MultiIndex.from_product([data.numbers, labels], names=["row", axis])
    quantiles = dict(zip(QUANTILES, seen.quantiles, strict=True))
    columns = {"mean": seen.mean, "sd": seen.sd, **quantiles, "mcse_mean": seen.mcse}
    return pd.DataFrame({name: np.ravel(values) for name, values in columns.items()}, index=index)
