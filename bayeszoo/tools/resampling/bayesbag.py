"""BayesBag: the average of the posteriors of resampled data, compared with the posterior of the data."""

from __future__ import annotations

import itertools
import math
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import lazy_loader
import numpy as np
import scipy

from bayeszoo.data.inputs import Series, Transitions
from bayeszoo.data.read import Data, read
from bayeszoo.data.table.table import shown
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.errors import InputError
from bayeszoo.foundation.streams import stream
from bayeszoo.foundation.tails import moments
from bayeszoo.model.base import Model, fields_of, require_instance
from bayeszoo.model.capabilities import Conjugate
from bayeszoo.model.suggest import models_with
from bayeszoo.results.summary import elements

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
else:
    pd, xr = lazy_loader.load("pandas"), lazy_loader.load("xarray")

MOST_RESAMPLES = 5000
"""Most different resamples that are all enumerated, each with its probability."""
MOST_DISTINCT = 2000
"""Most distinct observations for which the posterior is tested for linearity in their counts."""
FEWEST = 10
"""Fewest resamples from whose spread a Monte Carlo error is estimated."""
CHECKED = 20
"""Resamples at which linearity is tested."""
LINEAR = 1e-9
"""Largest difference from a linear function, relative to the spread, of a function that is taken as linear."""
ROUNDED = 32 * np.finfo(np.float64).eps
"""Rounding error of means, relative to their size: it dominates where the spread is 1 and the mean 1e9."""
NARROWER = 1 - 1e-9
"""Ratio of the variances below which the bagged posterior is narrower; 1 but for rounding."""
_MOST_PARTS = 64
"""Most distinct observations whose statistics are added up; with more, rows are repeated instead."""


@dataclass(frozen=True, eq=False)
class BayesBag:
    """The bagged posterior and the posterior.

    Attributes
    ----------
    model : Model
        The model; its fields are the prior.
    data : Data
        The data.
    size : int
        Number of observations in a resample.
    observations : int
        Number of observations in the data.
    kind : str
        "exact" if mean and variance of the bagged posterior have no Monte Carlo error, else "sampled".
    summary : pandas.DataFrame
        A row for each scalar: ``mean`` and ``sd`` of the bagged posterior, ``posterior_mean`` and ``posterior_sd``,
        ``ratio`` of the two variances, and ``mismatch``, which is 1 - 2 / ratio if the resamples have the size of
        the data and the ratio is 1 or more, else NaN. Each has its Monte Carlo error, ``mcse_...``, 0 where exact.
        Moments that do not exist are NaN: given a resample, or the data, a parameter may have no mean or variance.
    draws : dict of str to ndarray
        One draw from the posterior of each random resample, shape (resamples, *shape of the parameter): independent
        draws from the bagged posterior.
    seed : int
        Source of all randomness.
    notes : tuple of str
        How it was computed.
    """

    model: Model
    data: Data
    size: int
    observations: int
    kind: str
    summary: pd.DataFrame
    draws: dict[str, np.ndarray]
    seed: int
    notes: tuple[str, ...]


def bayesbag(
    model: Model, data: object = None, *, size: int | None = None, resamples: int = 1000, seed: int | None = None
) -> BayesBag:
    """Average the posteriors of resampled data (Buehlmann 2014; Huggins and Miller 2023).

    Observations are drawn with replacement, as in the bootstrap. If the model is right, the variance of the bagged
    posterior is about twice that of the posterior: the variance within each posterior, plus that of its centre between
    samples. Huggins and Miller call 1 - 2 / ratio of the variances the mismatch index. Near 0 there is no evidence
    against the model; towards 1 the posterior is too narrow for data like these; below 0 it is wider than necessary.
    The index is NaN if the bagged posterior is narrower than the posterior: there are then too few observations, or
    the model is far off.

    Parameters
    ----------
    model : Model
        A model with the base `Conjugate`, whose observations are independent of each other.
    data : anything that `read` takes, optional
        The model's first example by default.
    size : int, optional
        Number of observations in a resample; by default that of the data, which the mismatch index needs.
    resamples : int
        Number of random resamples, at least 10.
    seed : int, optional
        Source of all randomness; one is drawn without it.

    Returns
    -------
    BayesBag
        Its ``summary`` is exact if there are few different resamples, which are then enumerated with their multinomial
        probabilities; or if posterior mean and variance are linear in the counts of the observations, as for
        `gaussian_mean` and `gamma_poisson`. Otherwise it is estimated from the random resamples.

    Raises
    ------
    InputError
        When the model is not conjugate, or its rows depend on each other; and where `read` raises it.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> bag = bz.bayesbag(bz.find("gaussian_mean")(m0=0, s0=10, sigma=1), [-1.0, 0.5, 1.0, 3.5], seed=1)
    >>> bag.kind, bag.summary.loc["mu", ["posterior_sd", "sd", "ratio"]].round(4).tolist()
    ('exact', [0.4994, 0.9499, 3.6185])
    """
    require_conjugate(type(require_instance(model)))
    if resamples < FEWEST:
        raise InputError(f"resamples must be >= {FEWEST}, got {shown(resamples)}", "out_of_range")
    if size is not None and size < 1:
        raise InputError(f"size must be >= 1, got {shown(size)}", "out_of_range")
    rows = read(model, data)
    source = Resampled(cast("Conjugate[Any]", model), rows)
    size = source.total if size is None else size
    seed = secrets.randbelow(2**31 - 1) if seed is None else seed
    rng = stream(seed, "bayesbag", model.name, fields_of(model), rows.digest, size)
    resampled = [source.posterior(rng.multinomial(size, source.shares)) for _ in range(resamples)]
    draws = [posterior.rvs((), rng) for posterior in resampled]
    moments, kind, note = _moments(source, size, Moments.of(resampled), rng)
    summary = _summary(source, moments, is_own_size=size == source.total)
    notes = [note, *_remarks(source, summary, is_own_size=size == source.total)]
    joined = {name: np.array([draw[name] for draw in draws]) for name in draws[0]}
    return BayesBag(model, rows, size, source.total, kind, summary, joined, seed, tuple(notes))


def require_conjugate(kind: type[Model]) -> None:
    """Refuse a model without a conjugate prior, or with dependent observations."""
    dependent = Series, Transitions
    if not issubclass(kind, Conjugate) or isinstance(kind.inputs, dependent):
        why = "has observations that depend on each other" if issubclass(kind, Conjugate) else "is not conjugate"
        raise InputError(f"{kind.name} {why}", "no_capability", hint=models_with(Conjugate, without=dependent))


class Resampled:
    """The distinct observations of data, from which resamples are drawn, and the posteriors of resamples."""

    def __init__(self, model: Conjugate[Any], data: Data) -> None:
        rows, times = model.inputs.observations(data.arrays)
        places = np.flatnonzero(times)
        self.model, self.data, self.total = model, data, int(times.sum())
        self.rows, self.shares = model.inputs.reordered(rows, places), times[places] / self.total
        is_few = len(places) <= _MOST_PARTS
        self.parts = [self._statistics(counts) for counts in np.eye(len(places), dtype=int)] if is_few else []

    def _statistics(self, counts: np.ndarray) -> Any:
        rows = np.repeat(np.arange(len(counts)), counts)
        return self.model.statistics(self.model.inputs.reordered(self.rows, rows))

    def posterior(self, counts: np.ndarray) -> Posterior:
        """Return the posterior of a resample with these counts of the distinct observations."""
        if not self.parts:
            return self.model.posterior(self._statistics(counts))
        parts = (part.discounted(float(count)) for part, count in zip(self.parts, counts, strict=True) if count)
        first = next(parts)
        return self.model.posterior(sum(parts, start=first))

    def of_data(self) -> Posterior:
        """Return the posterior of the data."""
        return self.model.posterior(self.model.statistics(self.data))


@dataclass(frozen=True)
class Moments:
    """Means and variances of the entries of all parameters, shape (entries,) or (posteriors, entries)."""

    mean: np.ndarray
    variance: np.ndarray
    mean_error: np.ndarray | float = 0.0
    variance_error: np.ndarray | float = 0.0

    @classmethod
    def of(cls, posteriors: list[Posterior]) -> Moments:
        """Return the moments of each posterior."""
        marginals = [list(posterior.values()) for posterior in posteriors]
        means = [np.concatenate([np.ravel(marginal.mean()) for marginal in parameters]) for parameters in marginals]
        sds = [np.concatenate([np.ravel(marginal.std()) for marginal in parameters]) for parameters in marginals]
        return cls(_finite(means), np.square(_finite(sds)))

    def mixed(self, weights: np.ndarray) -> Moments:
        """Return the moments of their mixture, whose variance is the mean variance plus the variance of the means."""
        mean = weights @ self.mean
        return Moments(mean, weights @ (self.variance + np.square(self.mean - mean)))

    def sampled(self) -> Moments:
        """Return the moments of the mixture that these posteriors were drawn from, with standard errors."""
        mixture = moments(self.mean[None], self.variance[None], independent=True)
        return Moments(mixture.mean, np.square(mixture.sd), mixture.mcse_mean, 2 * mixture.sd * mixture.mcse_sd)


def _finite(values: list[np.ndarray]) -> np.ndarray:
    """Return an array, NaN where a moment is infinite."""
    array = np.array(values, dtype=np.float64)
    return np.where(np.isfinite(array), array, np.nan)


def _moments(source: Resampled, size: int, drawn: Moments, rng: np.random.Generator) -> tuple[Moments, str, str]:
    """Return the moments of the bagged posterior, "exact" or "sampled", and a note on the computation."""
    kinds, number = len(source.shares), len(drawn.mean)
    if scipy.special.gammaln([size + kinds, size + 1, kinds]) @ [1, -1, -1] <= math.log(MOST_RESAMPLES):
        resamples = np.array(list(_all_counts(size, kinds)))
        weights = scipy.stats.multinomial.pmf(resamples, size, source.shares)
        moments = Moments.of([source.posterior(counts) for counts in resamples]).mixed(weights / weights.sum())
        return moments, "exact", f"every different resample with its probability: {len(resamples)}"
    if (exact := _linear(source, size, rng)) is not None:
        return exact, "exact", "posterior mean and variance are linear in the counts of the observations"
    return drawn.sampled(), "sampled", f"{number} resamples drawn"


def _all_counts(size: int, kinds: int) -> Iterator[np.ndarray]:
    """Yield the counts of ``kinds`` distinct observations in every different resample of ``size``."""
    for bars in itertools.combinations(range(size + kinds - 1), kinds - 1):
        yield np.diff([-1, *bars, size + kinds - 1]) - 1


def _linear(source: Resampled, size: int, rng: np.random.Generator) -> Moments | None:
    """Return the exact moments if those of a posterior are linear in the counts, which a few resamples test.

    A linear function of multinomial counts is determined by its values where all observations are the same.
    """
    if len(source.shares) > MOST_DISTINCT:
        return None
    corners = Moments.of([source.posterior(size * row) for row in np.eye(len(source.shares), dtype=int)])
    mean, variance = (source.shares @ values for values in (corners.mean, corners.variance))
    between = source.shares @ np.square(corners.mean - mean) / size
    counts = rng.multinomial(size, source.shares, CHECKED)
    drawn = Moments.of([source.posterior(resample) for resample in counts])
    tolerance = LINEAR * np.sqrt(variance + between) + ROUNDED * np.abs(corners.mean).max(axis=0)
    is_mean = np.abs(counts / size @ corners.mean - drawn.mean) <= tolerance  # False for NaN
    is_variance = np.abs(counts / size @ corners.variance / drawn.variance - 1) <= LINEAR
    return Moments(mean, variance + between) if is_mean.all() and is_variance.all() else None


def _summary(source: Resampled, bagged: Moments, is_own_size: bool) -> pd.DataFrame:
    """Return the table of the bagged posterior and the posterior, a row for each scalar."""
    posterior = source.of_data()
    moments = Moments.of([posterior])
    posterior_mean, posterior_variance = moments.mean[0], moments.variance[0]
    sd, zero = np.sqrt(bagged.variance), np.zeros(len(posterior_mean))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = bagged.variance / posterior_variance
        ratio_error = bagged.variance_error / posterior_variance + zero
        mismatch = np.where((ratio >= NARROWER) & is_own_size, 1 - 2 / ratio, np.nan)
        columns = {
            "mean": bagged.mean,
            "mcse_mean": bagged.mean_error + zero,
            "sd": sd,
            "mcse_sd": bagged.variance_error / (2 * sd) + zero,
            "posterior_mean": posterior_mean,
            "posterior_sd": np.sqrt(posterior_variance),
            "ratio": ratio,
            "mcse_ratio": ratio_error,
            "mismatch": mismatch,
            "mcse_mismatch": np.where(np.isnan(mismatch), np.nan, 2 * ratio_error / ratio**2),
        }
    return pd.DataFrame(columns, index=pd.Index(_names(source, posterior), name="quantity"))


def _remarks(source: Resampled, summary: pd.DataFrame, is_own_size: bool) -> Iterator[str]:
    """Yield notes about the numbers."""
    if len(source.shares) == 1:
        yield "all observations are equal: resamples do not differ"
    if not is_own_size:
        yield f"no mismatch index: it needs resamples of the size of the data, {source.total}"
    elif narrow := list(summary.index[summary["ratio"] < NARROWER]):
        yield f"no mismatch index of {', '.join(narrow[:5])}: the bagged posterior is narrower than the posterior"
    if infinite := list(summary.index[summary["ratio"].isna()]):
        yield f"withheld: {', '.join(infinite[:5])} has no finite mean or variance given the data or a resample"


def _names(source: Resampled, posterior: Posterior) -> list[str]:
    """Return the names of the entries of all parameters, with their labels."""
    coords, names = source.model.coords(source.data), list[str]()
    for name, marginal in posterior.items():
        values = np.asarray(marginal.mean())[None, None]
        dims = ("chain", "draw", *source.model.dims.get(name, ()))
        variable = xr.DataArray(values, dims=dims, name=name)
        variable = variable.assign_coords({dim: np.asarray(coords[dim]) for dim in dims if dim in coords})
        names += [label for _, label in elements(variable)]
    return names
