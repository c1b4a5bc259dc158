"""Which component does each row belong to? Probabilities averaged over a fit's draws, and the label of least loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.data.read import Data, read
from bayeszoo.errors import InputError, Untrustworthy
from bayeszoo.foundation import diagnostics
from bayeszoo.inference.labels.align import flat, in_chunks
from bayeszoo.model.base import Values
from bayeszoo.model.capabilities import Latent, Symmetric
from bayeszoo.results.stored import Fit
from bayeszoo.results.summary import components_withheld

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

_HELD = 2**24
"""Probabilities that are held at once for their Monte Carlo errors."""
_MIN_DRAWS = 4
"""With fewer ArviZ estimates no Monte Carlo error."""


@dataclass(frozen=True, eq=False)
class Assignments:
    """What is known of each row's component.

    Attributes
    ----------
    probability : ndarray of shape (rows, K)
        The mean over the draws of the probability given the parameters; NaN where at some draw no component can give
        the row.
    mcse : ndarray of shape (rows, K)
        Its Monte Carlo standard error; NaN of a point estimate.
    """

    probability: np.ndarray
    mcse: np.ndarray

    @property
    def label(self) -> np.ndarray:
        """The most probable component, counted from 0, shape (rows,): no other label has a smaller expected 0-1 loss.

        Of equally probable ones the first; where the probabilities are NaN it means nothing.
        """
        return np.argmax(self.probability, axis=1)

    @property
    def impossible(self) -> np.ndarray:
        """Which rows no component can give, shape (rows,)."""
        return np.isnan(self.probability).any(axis=1)

    @property
    def expected_loss(self) -> np.ndarray:
        """The probability that the label is wrong, shape (rows,): that of the other components."""
        others = np.arange(self.probability.shape[1]) != self.label[:, None]
        return np.sum(self.probability, axis=1, where=others)

    @property
    def expected_errors(self) -> float:
        """The expected number of rows with a wrong label, of those that can be."""
        return float(self.expected_loss[~self.impossible].sum())


@dataclass(frozen=True, eq=False)
class Latents:
    """What is known of each row's latent number, arrays of shape (rows,).

    Attributes
    ----------
    mean : ndarray
        Its posterior mean.
    sd_of_means : ndarray
        The standard deviation over draws of its mean given the parameters; what is not known of it when the parameters
        are is not in it. NaN of a point estimate.
    mcse : ndarray
        Monte Carlo standard error of the mean; NaN of a point estimate.
    """

    mean: np.ndarray
    sd_of_means: np.ndarray
    mcse: np.ndarray


def assign(tree: xr.DataTree, new_data: Any = None, **options: Any) -> pd.DataFrame:
    """Say which component each row belongs to, from a fit.

    Parameters
    ----------
    tree : xarray.DataTree
        What `fit` returned, of a model with latent variables. Components are called as in its draws.
    new_data : Data or anything that `read` takes, optional
        Further rows, with their outcome; by default those of the fit.
    **options
        Of `read`.

    Returns
    -------
    pandas.DataFrame
        One row a data row, numbered as in the table read. ``component``: the label of the most probable component,
        which has the smallest expected 0-1 loss; ``expected_loss``: the probability that it is wrong; then ``p[1]``,
        ...: the probability of each component, and ``mcse[1]``, ...: its Monte Carlo standard error (NaN of a point
        estimate).
        ``attrs["expected_errors"]`` is the expected number of rows with a wrong label. All is NaN of a row that no
        component can give at some draw, such as a document with a word that an estimate gives probability 0;
        ``attrs["impossible"]`` lists these rows. Of a latent variable that is a
        number instead ``mean``, ``sd_of_means`` (over draws, of its mean given the parameters) and ``mcse_mean``.

    Notes
    -----
    A point estimate is plugged in: its probabilities do not know how uncertain the parameters are.

    Raises
    ------
    Untrustworthy
        When the fit did not pass its gate, or its draws do not agree what the components are.
    InputError
        When the model has no latent variable of each row, or the new rows do not suit it.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> tree = bz.fit(bz.find("gaussian_mixture")(), method="nuts", seed=1)  # doctest: +SKIP
    >>> bz.assign(tree)[["component", "expected_loss"]]  # doctest: +SKIP
    """
    if tree.attrs["status"] != "ok":
        raise Untrustworthy(f"the fit is {tree.attrs['status']}: assignments by it are withheld")
    if why := components_withheld(tree):
        raise Untrustworthy(f"assignments to components are withheld: {why}")
    model: Any = Fit(tree).model
    if not isinstance(model, Latent):
        raise InputError(f"{model.name} has no latent variable of each row", hint="see `bayeszoo list`")
    data = _rows(model, tree, new_data, options)
    return _frame(model, data, assignments(model, Fit(tree).draws(), data))


def assignments(model: Any, params: Values, data: Values) -> Assignments | Latents:
    """Average the latent variables' distribution given the parameters over draws of these.

    Parameters
    ----------
    model : Model
        Must be `Latent`.
    params : mapping of str to ndarray
        Draws of shape (chain, draw, *parameter shape), the labels of components in the same order in all.
    data : mapping of str to ndarray
        The rows.

    Raises
    ------
    NumericalError
        When a draw gives a row no probabilities that are numbers.

    Notes
    -----
    Where the probabilities of all draws do not fit into memory, ArviZ gets the means of batches of draws.
    """
    chains, draws = np.shape(next(iter(params.values())))[:2]
    held, squares, origin, batches = np.empty(0), np.zeros(1), np.zeros(1), draws
    for some, values in in_chunks(model, flat(params), data):
        if not some.start:
            batches, origin = _batches(chains, draws, values[0].size), values[0]
            held = np.zeros((chains * batches, *values.shape[1:]))
        batch = np.arange(some.start, some.stop) * batches // draws
        starts = np.flatnonzero(np.diff(batch, prepend=-1))
        held[batch[starts]] += np.add.reduceat(values, starts, axis=0)
        squares = squares + np.sum(np.square(values - origin), axis=0)
    held *= batches / draws
    mean = held.mean(axis=0)
    mcse = _mcse(held.reshape(chains, batches, *mean.shape))
    if mean.ndim == 2:
        return Assignments(mean, mcse)
    total = chains * draws
    variance = (squares / total - np.square(mean - origin)) * (total / (total - 1) if total > 1 else np.nan)
    return Latents(mean, np.sqrt(np.maximum(variance, 0.0)), mcse)


def _batches(chains: int, draws: int, cells: int) -> int:
    """Return into how many batches of equal size the draws of each chain are put: as many as memory allows."""
    divisors = (size for size in range(1, draws + 1) if draws % size == 0)
    return next((draws // size for size in divisors if chains * (draws // size) * cells <= _HELD), 1)


def _mcse(values: np.ndarray) -> np.ndarray:
    if values.shape[1] < _MIN_DRAWS:
        return np.full(values.shape[2:], np.nan)
    return diagnostics.mcse(values)


def _rows(model: Any, tree: xr.DataTree, new_data: Any, options: dict[str, Any]) -> Data:
    """Return the rows to be assigned: those of the fit, or new ones, which must have an outcome."""
    if new_data is None:
        if options:
            raise InputError(f"{next(iter(options))} is an option for reading a table, and no table is given")
        return Fit(tree).data
    data = read(model, new_data, new=True, like=Fit(tree).like, **options)
    if not model.inputs.has_outcome(data):
        raise InputError("the new rows have no outcome, from which their component could be inferred")
    return data


def _frame(model: Any, data: Data, found: Assignments | Latents) -> pd.DataFrame:
    import pandas as pd

    columns: Mapping[str, Any]
    attrs: dict[str, Any]
    if isinstance(found, Latents):
        columns, attrs = {"mean": found.mean, "sd_of_means": found.sd_of_means, "mcse_mean": found.mcse}, {}
    else:
        labels = _labels(model, data, found.probability.shape[1])
        component = np.where(found.impossible, np.nan, labels[found.label]) if found.impossible.any() else None
        columns = {"component": labels[found.label] if component is None else component}
        columns |= {"expected_loss": found.expected_loss}
        columns |= {f"p[{label}]": p for label, p in zip(labels, found.probability.T, strict=True)}
        columns |= {f"mcse[{label}]": error for label, error in zip(labels, found.mcse.T, strict=True)}
        attrs = {"expected_errors": found.expected_errors}
        if found.impossible.any():
            attrs["impossible"] = data.numbers[found.impossible].tolist()
    frame = pd.DataFrame(columns, index=pd.Index(data.numbers, name="row"))
    frame.attrs.update(attrs)
    return frame


def _labels(model: Any, data: Values, K: int) -> np.ndarray:
    """Return what the components are called: by default 1..K."""
    axis = model.exchangeable() if isinstance(model, Symmetric) else None
    return np.asarray(model.coords(data).get(axis, np.arange(1, K + 1)))
