"""Clusters by a mixture, whatever the labels: how many there are, which rows are together, and which are alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy

from bayeszoo.answers.averages import log_means
from bayeszoo.answers.columns import FAR_FROM_DRAWS, error_of_mean, with_reasons
from bayeszoo.answers.judged import (
    Part,
    answering,
    is_judged,
    kept_parts,
    limits_of,
    line_of,
    line_within,
    moments_part,
    only_agreeing,
    reference_of,
    refuse,
)
from bayeszoo.answers.quantiles import Quantiles
from bayeszoo.answers.rows import by_row, rows_asked
from bayeszoo.data.read import Data
from bayeszoo.distributions.posterior import QUANTILES
from bayeszoo.errors import InputError
from bayeszoo.foundation.blocks import blocks
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.foundation.streams import stream_of_fit
from bayeszoo.inference.labels.align import in_chunks
from bayeszoo.model.capabilities import Latent
from bayeszoo.model.capabilities.observable import Observable
from bayeszoo.model.density import log_density
from bayeszoo.model.draws import flat, shape_of
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

MOST_ROWS = 3000
"""Largest number of rows whose pairs are counted."""
_CLUSTERS, _DENSITIES = "its clusters", "densities by it"
_SPREAD = "sd_density"
"""The sd of the density over draws, the unit in which its mean is judged; not in the answer."""
CANDIDATES = 200
"""Draws of the partition among which that of least expected loss is taken."""


class Agreeing(NamedTuple):
    """Which numbers of `Clusters` agree with those by draws of the posterior, and a line that sums it up."""

    counts: np.ndarray
    """For each number of clusters, from the smallest drawn."""
    together: np.ndarray
    group: np.ndarray
    alike: np.ndarray
    alone: np.ndarray
    line: str


@dataclass(frozen=True, eq=False)
class Clusters:
    """Which rows of a fit are together, by draws of the cluster of each row.

    If parameters of an approximation are off, numbers are NaN where draws of the posterior do not agree.

    Attributes
    ----------
    data : Data
        The rows.
    drawn : numpy.ndarray
        The cluster of each row, (chain, draw, rows); cluster numbers of different draws are unrelated.
    agreeing : Agreeing, optional
        Which numbers agree with draws of the posterior, if parameters are off.
    """

    data: Data
    drawn: np.ndarray
    agreeing: Agreeing | None = None

    @cached_property
    def _sizes(self) -> np.ndarray:
        """The number of rows in each row's cluster, (chain, draw, rows)."""
        flat_draws = self.drawn.reshape(-1, self.drawn.shape[2])
        counts = np.stack([np.bincount(labels)[labels] for labels in flat_draws])
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
        counts = np.broadcast_to(self.counts[..., None], (*self.counts.shape, len(values)))
        has_number = counts == values
        error = error_of_mean(has_number.astype(np.float64), "sampled", counts)
        columns = {"probability": has_number.mean(axis=(0, 1)), "mcse": error}
        frame = pd.DataFrame(columns, index=pd.Index(values, name="clusters"))
        if self.agreeing is None:
            return frame
        return only_agreeing(frame, [Part(("probability", "mcse"), self.agreeing.counts, "probability")])

    @property
    def together(self) -> np.ndarray:
        """The probability that two rows are in one cluster, (rows, rows)."""
        return self.pairs if self.agreeing is None else np.where(self.agreeing.together, self.pairs, np.nan)

    @property
    def groups(self) -> np.ndarray:
        """The drawn partition with the fewest expected wrong pairs (Binder 1978), groups numbered from 1.

        It summarizes many partitions, and `together` says how certain it is. A row whose group is withheld has 0.
        """
        return self.partition if self.agreeing is None else np.where(self.agreeing.group, self.partition, 0)

    @cached_property
    def pairs(self) -> np.ndarray:
        """As `together`, without withholding."""
        draws = self.drawn.reshape(-1, self.drawn.shape[2])
        pairs = np.zeros((draws.shape[1], draws.shape[1]))
        for labels in draws:
            pairs += labels[:, None] == labels
        return pairs / len(draws)

    @cached_property
    def partition(self) -> np.ndarray:
        """As `groups`, without withholding."""
        draws = self.drawn.reshape(-1, self.drawn.shape[2])
        candidates = draws[np.linspace(0, len(draws) - 1, min(CANDIDATES, len(draws))).astype(int)]
        excess = self.pairs - 0.5
        best = candidates[np.argmax([np.sum((labels[:, None] == labels) * excess) for labels in candidates])]
        _, first, which = np.unique(best, return_index=True, return_inverse=True)
        return np.asarray(np.argsort(np.argsort(first))[which] + 1)

    @property
    def rows(self) -> pd.DataFrame:
        """``group`` of each row, as `groups`; ``alone``, the probability that no other row is with it, and its error.

        ``alike`` is its mean probability to be with the other rows of its group, NaN if there are none.
        """
        is_alone = self.is_alone.astype(np.float64)
        alike = self.with_groups(self.partition)[np.arange(len(self.partition)), self.partition - 1]
        columns = {"group": self.partition, "alike": alike, "alone": is_alone.mean(axis=(0, 1))}
        frame = by_row(columns | {"mcse_alone": error_of_mean(is_alone, "sampled", self._sizes)}, self.data)
        if self.agreeing is None:
            return frame
        parts = [Part((name,), getattr(self.agreeing, name)) for name in ("group", "alike", "alone")]
        frame = only_agreeing(frame, parts)
        frame.attrs["judged"] = self.agreeing.line
        return frame

    @cached_property
    def is_alone(self) -> np.ndarray:
        """Whether a row's cluster has no other row, (chain, draw, rows)."""
        return self._sizes == 1

    def with_groups(self, partition: np.ndarray) -> np.ndarray:
        """Return each row's mean probability to be with the other rows of each group; NaN if there are none."""
        member = np.eye(partition.max())[partition - 1]
        pairs = self.pairs - np.eye(len(partition))
        others = member.sum(axis=0) - member
        return np.where(others > 0, pairs @ member / np.maximum(others, 1), np.nan)


def clusters(tree: xr.DataTree, *, seed: int | np.random.Generator = 0) -> Clusters:
    """Say how many clusters the rows of a fit are in, which are together, and which are alone.

    The answer does not depend on labels. The cluster of each row is drawn given each draw of the parameters: numbers
    are posterior probabilities with Monte Carlo errors. The number of clusters of a Dirichlet process grows with the
    rows, and estimates no number of groups in nature.

    Parameters
    ----------
    tree : xarray.DataTree
        What `fit` returned for a mixture, such as ``dp_mixture`` or ``gaussian_mixture``, by sampling or enumeration.
    seed : int or numpy.random.Generator
        Seed of the draws of clusters.

    Returns
    -------
    Clusters

    Raises
    ------
    Untrustworthy
        When the fit failed its gate.
    InputError
        When the model has no clusters, the fit has no draws of the posterior, or there are too many rows.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> M = bz.find("gaussian_mixture")
    >>> rows = {"x": [0.1, 0.2, 0.0, 4.0, 4.2]}
    >>> tree = bz.fit(M(Psi0=0.1), rows, "enumerate", seed=1)
    >>> bz.clusters(tree).groups.tolist()
    [1, 1, 1, 2, 2]
    """
    fit = answering(Fit(tree), _CLUSTERS)
    model, data = fit.model, fit.data
    if not isinstance(model, Latent) or model.inputs.row_names is not None or not isinstance(model, Observable):
        hint = "fit dp_mixture, gaussian_mixture or latent_class"
        raise InputError(f"{model.name} does not put rows into clusters", "no_capability", hint=hint)
    if fit.kind == "point estimate":
        raise InputError("a point estimate has no draws of clusters", "not_sampled", hint="use --method gibbs")
    if (rows := model.inputs.size(data)) > MOST_ROWS:
        raise InputError(f"{rows} rows have too many pairs", "too_large", hint=f"fit at most {MOST_ROWS} rows")
    own = _clusters(fit, seed)
    return _judged(fit, own, _clusters(reference_of(fit), seed)) if is_judged(fit) else own


def _clusters(fit: Fit, seed: int | np.random.Generator) -> Clusters:
    """Draw the cluster of each row."""
    model, data, params = fit.model, fit.data, fit.draws()
    assert isinstance(model, Latent)
    rng = stream_of_fit(fit.tree.attrs, seed, "clusters")
    drawn = np.concatenate(list(_drawn(model, flat(params), data, rng)))
    return Clusters(data, drawn.reshape(*shape_of(params), -1))


def _judged(fit: Fit, own: Clusters, reference: Clusters) -> Clusters:
    """Compare probabilities of numbers of clusters, of pairs and of rows alone, and each row's preferred group.

    No number depends on labels. The group of a row is shown if its probabilities to be with the rows of each group
    agree, and the same group has the fewest expected wrong pairs.
    """
    limits, partition = limits_of(fit), own.partition
    sizes = [np.prod(answer.drawn.shape[:2]) for answer in (own, reference)]

    def agree(*p: np.ndarray) -> np.ndarray:
        shares = ((size * share + 0.5) / (size + 1) for size, share in zip(sizes, p, strict=True))
        return limits.scores_agree(*map(scipy.special.ndtri, shares))

    counts = np.arange(own.counts.min(), own.counts.max() + 1)
    with_groups = [answer.with_groups(partition) for answer in (own, reference)]
    of_groups = agree(*with_groups) | np.isnan(with_groups[0])
    preferred = [_preferred(answer.pairs, partition) for answer in (own, reference)]
    pairs = agree(own.pairs, reference.pairs)
    rows = np.arange(len(partition))
    shown = Agreeing(
        agree(*(np.mean(answer.counts[..., None] == counts, axis=(0, 1)) for answer in (own, reference))),
        pairs,
        of_groups.all(axis=1) & (preferred[0] == preferred[1]),
        of_groups[rows, partition - 1],
        agree(*(answer.is_alone.mean(axis=(0, 1)) for answer in (own, reference))),
        "",
    )
    if not any(np.any(agrees) for agrees in (shown.counts, shown.group, shown.alone)):
        refuse(fit, _CLUSTERS)
    gap = np.abs(own.pairs - reference.pairs)[pairs].max(initial=0.0)
    within = f": probabilities of pairs within {gap:.2g} of the posterior's"
    return replace(own, agreeing=shown._replace(line=line_within(shown.group, within, limits)))


def _preferred(pairs: np.ndarray, partition: np.ndarray) -> np.ndarray:
    """Return for each row the group with the fewest expected wrong pairs; 0 if that is the row alone."""
    excess = (pairs - 0.5) * ~np.eye(len(partition), dtype=bool)
    gains = excess @ np.eye(partition.max())[partition - 1]
    return np.asarray(np.argmax(np.column_stack([np.zeros(len(partition)), gains]), axis=1))


def _drawn(model: Latent, params: Params, data: Data, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield the component of each row drawn at each draw of the parameters, in blocks of draws, (draws, rows)."""
    for _, values in in_chunks(model, params, data):
        ends = np.cumsum(values, axis=-1)[..., :-1]
        yield np.sum(rng.random(values.shape[:-1])[..., None] > ends, axis=-1)


def row_density(tree: xr.DataTree, new_data: object = None, **options: Any) -> pd.DataFrame:
    """Return the posterior predictive density of rows, with its 95% interval as the parameters vary.

    Parameters
    ----------
    tree : xarray.DataTree
        What `fit` returned for a model whose rows have a distribution, such as a mixture.
    new_data : Data or anything that `read` takes, optional
        Rows, with their outcome; by default those of the fit.
    **options
        Options of `read`.

    Returns
    -------
    pandas.DataFrame
        One row per row: ``density``, the posterior predictive density, its Monte Carlo standard error ``mcse``, and
        ``q025``, ``median``, ``q975`` of the density as the parameters vary, with their errors ``mcse_q025`` and so on,
        all per unit of each column. A point estimate has the density alone. The density is NaN at places so far from
        the draws that few of them carry its mean (Pareto k-hat above `k_hat_limit`), and, if parameters of an
        approximation are off, where draws of the posterior do not agree; the column ``withheld`` says so.

    Raises
    ------
    Untrustworthy
        When the fit failed its gate.
    InputError
        When the model has no distribution of a row, or the new rows do not suit it or have no outcome.
    """
    fit = answering(Fit(tree), _DENSITIES)
    data = rows_asked(fit, new_data, options, "density")
    if not isinstance(fit.model, Observable):
        hint = "fit dp_mixture or gaussian_mixture"
        raise InputError(f"{fit.model.name} has no distribution of a row", "no_capability", hint=hint)
    own = _densities(fit, data)
    if is_judged(fit):
        own = _judged_densities(fit, own, _densities(reference_of(fit), data))
    return own.drop(columns=_SPREAD)


def _densities(fit: Fit, data: Data) -> pd.DataFrame:
    inputs, width = fit.model.inputs, math.prod(shape_of(fit.draws()))
    numbers = np.arange(inputs.size(data))
    parts = [_density_columns(fit, inputs.reordered(data, numbers[part])) for part in blocks(len(numbers), width)]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    withheld = np.where(np.isnan(columns["density"]), f"density: {FAR_FROM_DRAWS}", "").astype(object)
    return with_reasons(by_row(columns, data), withheld)


def _density_columns(fit: Fit, rows: Arrays) -> dict[str, np.ndarray]:
    """Return the density of each row, its Monte Carlo error, and its spread over the draws."""
    model, is_independent = fit.model, fit.has_independent_draws
    assert isinstance(model, Observable)
    logs = np.asarray(log_density(model.law(fit.draws(), fit.like, rows), model.inputs.outcome(rows)))
    values = np.exp(logs)
    log_mean, relative_error = log_means(logs, independent=is_independent)
    density = np.exp(log_mean)
    unknown, is_point = np.full(len(density), np.nan), fit.kind == "point estimate"
    mcse = unknown if is_point else density * relative_error
    no_interval = Quantiles.without_error(dict.fromkeys(QUANTILES, unknown))
    quantiles = no_interval if is_point else Quantiles.of_draws(values, independent=is_independent)
    spread = {"density": density, "mcse": mcse, _SPREAD: values.std(axis=(0, 1))}
    return spread | quantiles.values | quantiles.columns()


def _judged_densities(fit: Fit, own: pd.DataFrame, reference: pd.DataFrame) -> pd.DataFrame:
    """Compare densities in units of their sd over the parameters, and their logs in nats, as scores are.

    Far from the rows the sd of a density exceeds its mean, and a wrong density would be near in units of the sd.
    """
    limits, names = limits_of(fit), ("density", _SPREAD, *QUANTILES)
    part, gaps = moments_part(own, reference, limits, names)
    with np.errstate(divide="ignore"):
        logs = (np.log(frame["density"].to_numpy()) for frame in (own, reference))
    agree = part.agree & limits.logs_agree(*logs)
    parts = [Part(("density", "mcse", *QUANTILES), agree, "density, quantiles")]
    return kept_parts(own, parts, fit, _DENSITIES, line_of(agree, gaps.mean, gaps.sd, limits))
