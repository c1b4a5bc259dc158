"""What a mixture says that no label moves: how many clusters there are, which rows are together, which is alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.answers.assign import by_row, rows_asked
from bayeszoo.answers.quantiles import Quantiles
from bayeszoo.data.read import Data
from bayeszoo.errors import InputError
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.named import Params
from bayeszoo.foundation.streams import stream_of_fit
from bayeszoo.inference.labels.align import flat, in_chunks
from bayeszoo.model.capabilities import Latent
from bayeszoo.model.density import log_density
from bayeszoo.model.observable import Observable
from bayeszoo.results.caveats import require_shown

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

MOST_ROWS = 3000
"""Rows whose pairs are counted."""
CANDIDATES = 200
"""Draws of a partition among which that of least expected loss is looked for."""


@dataclass(frozen=True, eq=False)
class Clusters:
    """Which rows of a fit are together, by draws of the cluster of each row.

    Attributes
    ----------
    data : Data
        The rows.
    drawn : numpy.ndarray
        The cluster of each row, (chain, draw, rows); numbers of one draw mean nothing in another.
    """

    data: Data
    drawn: np.ndarray

    @cached_property
    def _sizes(self) -> np.ndarray:
        """The number of rows with each row in its cluster, itself included, (chain, draw, rows)."""
        flat_draws = self.drawn.reshape(-1, self.drawn.shape[2])
        counts = np.stack([np.bincount(own)[own] for own in flat_draws])
        return counts.reshape(self.drawn.shape)

    @cached_property
    def counts(self) -> np.ndarray:
        """The number of clusters that hold rows, (chain, draw)."""
        return np.sum(1 / self._sizes, axis=2).round().astype(np.int64)

    @property
    def number(self) -> pd.DataFrame:
        """The probability of each number of clusters that hold rows, with its Monte Carlo standard error."""
        import pandas as pd

        values = np.arange(self.counts.min(), self.counts.max() + 1)
        is_so = self.counts[..., None] == values
        columns = {"probability": is_so.mean(axis=(0, 1)), "mcse": diagnostics.mcse(is_so.astype(np.float64))}
        return pd.DataFrame(columns, index=pd.Index(values, name="clusters"))

    @cached_property
    def together(self) -> np.ndarray:
        """The probability that two rows are in one cluster, (rows, rows)."""
        draws = self.drawn.reshape(-1, self.drawn.shape[2])
        pairs = np.zeros((draws.shape[1], draws.shape[1]))
        for own in draws:
            pairs += own[:, None] == own
        return pairs / len(draws)

    @cached_property
    def groups(self) -> np.ndarray:
        """The partition drawn of which the fewest pairs are expected to be wrong (Binder 1978), numbered from 1.

        Of some draws; it is one summary of many partitions, and `together` says how sure it is.
        """
        draws = self.drawn.reshape(-1, self.drawn.shape[2])
        some = draws[np.linspace(0, len(draws) - 1, min(CANDIDATES, len(draws))).astype(int)]
        excess = self.together - 0.5
        best = some[np.argmax([np.sum((own[:, None] == own) * excess) for own in some])]
        _, first, which = np.unique(best, return_index=True, return_inverse=True)
        return np.asarray(np.argsort(np.argsort(first))[which] + 1)

    @property
    def rows(self) -> pd.DataFrame:
        """For each row ``group``, as `groups`; ``alone``, the probability that no other row is with it, and its error.

        ``alike`` is the mean probability to be with the other rows of its group, NaN of one by itself.
        """
        is_alone = (self._sizes == 1).astype(np.float64)
        same = (self.groups[:, None] == self.groups) & ~np.eye(len(self.groups), dtype=bool)
        others = same.sum(axis=1)
        alike = np.where(others, np.sum(self.together * same, axis=1) / np.maximum(others, 1), np.nan)
        columns = {"group": self.groups, "alike": alike, "alone": is_alone.mean(axis=(0, 1))}
        return by_row(columns | {"mcse_alone": diagnostics.mcse(is_alone)}, self.data)


def clusters(tree: xr.DataTree, *, seed: int | np.random.Generator = 0) -> Clusters:
    """Say how many clusters the rows of a fit are in, which are together, and which are alone.

    No label enters. The cluster of each row is drawn given each draw of the parameters, so that numbers are those of
    the posterior with a Monte Carlo error. The number of clusters of a Dirichlet process grows with the rows: it
    estimates no number of groups in nature.

    Parameters
    ----------
    tree : xarray.DataTree
        What `fit` returned of a mixture, as ``dp_mixture`` or ``gaussian_mixture``, by sampling or enumeration.
    seed : int or numpy.random.Generator
        Of these draws.

    Returns
    -------
    Clusters

    Raises
    ------
    Untrustworthy
        When the fit failed its gate.
    InputError
        When the model has no clusters, the fit no draws of the posterior, or the rows are too many for their pairs.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> M = bz.find("gaussian_mixture")
    >>> rows = {"x": [0.1, 0.2, 0.0, 4.0, 4.2]}
    >>> tree = bz.fit(M(Psi0=0.1), rows, "enumerate", seed=1)
    >>> bz.clusters(tree).groups.tolist()
    [1, 1, 1, 2, 2]
    """
    fit = require_shown(tree, "its clusters")
    model, data = fit.model, fit.data
    if not isinstance(model, Latent) or model.inputs.row_names is not None or not isinstance(model, Observable):
        raise InputError(f"{model.name} does not put rows into clusters", "no_capability", hint="see `bayeszoo list`")
    if fit.kind == "point estimate":
        raise InputError("a point estimate has no draws of clusters", "not_sampled", hint="use --method gibbs")
    if (rows := model.inputs.size(data)) > MOST_ROWS:
        raise InputError(f"{rows} rows have too many pairs", "too_large", hint=f"fit at most {MOST_ROWS} rows")
    params = fit.draws()
    leading = np.shape(next(iter(params.values())))[:2]
    rng = stream_of_fit(fit.tree.attrs, seed, "clusters")
    drawn = np.concatenate(list(_drawn(model, flat(params), data, rng)))
    return Clusters(data, drawn.reshape(*leading, rows))


def _drawn(model: Latent, params: Params, data: Data, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Draw the component of each row at each draw of the parameters, some at a time, (draws, rows)."""
    for _, values in in_chunks(model, params, data):
        ends = np.cumsum(values, axis=-1)[..., :-1]
        yield np.sum(rng.random(values.shape[:-1])[..., None] > ends, axis=-1)


def row_density(tree: xr.DataTree, new_data: Any = None, **options: Any) -> pd.DataFrame:
    """Return the density of a row at places, averaged over the parameters, with its 95% interval.

    Parameters
    ----------
    tree : xarray.DataTree
        What `fit` returned of a model whose rows have a distribution, as a mixture.
    new_data : Data or anything that `read` takes, optional
        Rows, with their outcome: the places; by default those of the fit.
    **options
        Of `read`.

    Returns
    -------
    pandas.DataFrame
        One row a place: ``density``, the posterior predictive density, its Monte Carlo standard error ``mcse``, and
        ``q025``, ``median``, ``q975`` of the density as the parameters vary, with their own errors ``mcse_q025`` and so
        on, all per unit of each column. Of a point estimate there is the density alone.

    Raises
    ------
    Untrustworthy
        When the fit failed its gate.
    InputError
        When the model has no distribution of a row, or the new rows do not suit it or have no outcome.
    """
    fit = require_shown(tree, "densities by it")
    model, data = fit.model, rows_asked(fit, new_data, options, "density")
    if not isinstance(model, Observable):
        raise InputError(f"{model.name} has no distribution of a row", "no_capability", hint="see `bayeszoo list`")
    logs = log_density(model.law(fit.draws(), fit.like, data), model.inputs.outcome(data))
    values = np.exp(np.asarray(logs))
    known = {"density": values.mean(axis=(0, 1)), "mcse": diagnostics.mcse(values)}
    quantiles = Quantiles.of_draws(values)
    return by_row(known | quantiles.values | quantiles.columns(), data)
