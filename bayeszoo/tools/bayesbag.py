"""BayesBag: the average of the posteriors of resampled data, and how far it is from the posterior of the data."""

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
from bayeszoo.model.base import Model, fields_of
from bayeszoo.model.capabilities import Conjugate
from bayeszoo.results.summary import elements

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
else:
    pd, xr = lazy_loader.load("pandas"), lazy_loader.load("xarray")

MOST_RESAMPLES = 5000
"""Different resamples up to which all are gone through, each with its probability."""
MOST_DISTINCT = 2000
"""Distinct observations up to which it is looked whether the posterior is linear in how often each occurs."""
FEWEST = 10
"""Resamples below which their spread tells nothing of the Monte Carlo error."""
CHECKED = 20
"""Resamples at which it is looked."""
LINEAR = 1e-9
"""Difference from a linear function, relative to the spread, up to which a function is taken for one."""
ROUNDED = 32 * np.finfo(np.float64).eps
"""Difference that rounding of means makes, relative to their size: all that is left of a spread of 1 about 1e9."""
NARROWER = 1 - 1e-9
"""Ratio of the variances below which the bagged posterior is narrower, but for rounding."""
_MOST_PARTS = 64
"""Distinct observations up to which statistics of each are added up, and rows are not repeated."""


@dataclass(frozen=True, eq=False)
class BayesBag:
    """The bagged posterior and the posterior.

    Attributes
    ----------
    model : Model
        Its fields are the prior.
    data : Data
        The data.
    size : int
        Observations of a resample.
    observations : int
        Observations of the data.
    kind : str
        "exact" where mean and variance of the bagged posterior are known without Monte Carlo error, else "sampled".
    summary : pandas.DataFrame
        A row for each scalar: ``mean`` and ``sd`` of the bagged posterior, ``posterior_mean`` and ``posterior_sd``,
        ``ratio`` of the two variances, and ``mismatch``, which is 1 - 2 / ratio where the resamples have the size of
        the data and the ratio is 1 or more, else NaN. Each has its Monte Carlo error, ``mcse_...``, 0 where exact.
        NaN is what does not exist: of a resample, or of the data, a parameter may have no mean or no variance.
    draws : dict of str to ndarray
        A draw from the posterior of each of the resamples drawn, shape (resamples, *shape of the parameter): they are
        independent draws from the bagged posterior.
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

    Observations are drawn with replacement, as in the bootstrap. Where the model holds, the variance of the bagged
    posterior is about twice that of the posterior: its own, and that of its centre from sample to sample. Huggins and
    Miller call 1 - 2 / ratio of the variances the mismatch index: near 0 nothing speaks against the model; towards 1
    the posterior is too narrow for data like these; below 0 it is wider than it need be. NaN, where the bagged
    posterior is narrower than the posterior, says that there are too few observations, or that the model is far off.

    Parameters
    ----------
    model : Model
        A model with the base `Conjugate`, whose observations are independent of each other.
    data : anything that `read` takes, optional
        The model's first example by default.
    size : int, optional
        Observations of a resample; by default as many as the data have: only then is there a mismatch index.
    resamples : int
        How many are drawn, at least 10.
    seed : int, optional
        Source of all randomness; one is drawn without it.

    Returns
    -------
    BayesBag
        Its ``summary`` is exact where there are few different resamples, which are all gone through with their
        multinomial probabilities; and where posterior mean and variance are linear in how often each observation
        occurs, as of `gaussian_mean` and `gamma_poisson`. Else it is of the resamples drawn.

    Raises
    ------
    InputError
        When the posterior of the model is not of its prior's family, or rows depend on each other; and as `read` does.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> bag = bz.bayesbag(bz.find("gaussian_mean")(m0=0, s0=10, sigma=1), [-1.0, 0.5, 1.0, 3.5], seed=1)
    >>> bag.kind, bag.summary.loc["mu", ["posterior_sd", "sd", "ratio"]].round(4).tolist()
    ('exact', [0.4994, 0.9499, 3.6185])
    """
    require_conjugate(type(model))
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
    joined = {name: np.array([each[name] for each in draws]) for name in draws[0]}
    return BayesBag(model, rows, size, source.total, kind, summary, joined, seed, tuple(notes))


def require_conjugate(kind: type[Model]) -> None:
    """Refuse a model without a conjugate prior, or with dependent observations."""
    if not issubclass(kind, Conjugate) or isinstance(kind.inputs, Series | Transitions):
        why = "has observations that depend on each other" if issubclass(kind, Conjugate) else "is not conjugate"
        raise InputError(
            f"{kind.name} {why}", "no_capability", hint="`bayeszoo list` shows which models have the base Conjugate"
        )


class Resampled:
    """Distinct observations of data, from which resamples are drawn, and the posterior of each resample."""

    def __init__(self, model: Conjugate[Any], data: Data) -> None:
        rows, times = model.inputs.observations(data.arrays)
        occur = np.flatnonzero(times)
        self.model, self.data, self.total = model, data, int(times.sum())
        self.rows, self.shares = model.inputs.reordered(rows, occur), times[occur] / self.total
        is_few = len(occur) <= _MOST_PARTS
        self.parts = [self._statistics(np.eye(len(occur), dtype=int)[i]) for i in range(len(occur))] if is_few else []

    def _statistics(self, counts: np.ndarray) -> Any:
        rows = np.repeat(np.arange(len(counts)), counts)
        return self.model.statistics(self.model.inputs.reordered(self.rows, rows))

    def posterior(self, counts: np.ndarray) -> Posterior:
        """Return the posterior of a resample in which each distinct observation occurs so often."""
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
        means = [np.concatenate([np.ravel(marginal.mean()) for marginal in each.values()]) for each in posteriors]
        deviations = [np.concatenate([np.ravel(marginal.std()) for marginal in each.values()]) for each in posteriors]
        return cls(_finite(means), np.square(_finite(deviations)))

    def mixed(self, weights: np.ndarray) -> Moments:
        """Return the moments of their mixture: the variance is the mean variance and the variance of the means."""
        mean = weights @ self.mean
        return Moments(mean, weights @ (self.variance + np.square(self.mean - mean)))

    def sampled(self) -> Moments:
        """Return the moments of the mixture that these draws come from, with their standard errors."""
        known = moments(self.mean[None], self.variance[None], independent=True)
        return Moments(known.mean, np.square(known.sd), known.mcse_mean, 2 * known.sd * known.mcse_sd)


def _finite(values: list[np.ndarray]) -> np.ndarray:
    """Return an array, NaN where a moment is infinite."""
    array = np.array(values, dtype=np.float64)
    return np.where(np.isfinite(array), array, np.nan)


def _moments(source: Resampled, size: int, drawn: Moments, rng: np.random.Generator) -> tuple[Moments, str, str]:
    """Return the moments of the bagged posterior, whether they are exact, and how they were computed."""
    kinds, number = len(source.shares), len(drawn.mean)
    if scipy.special.gammaln([size + kinds, size + 1, kinds]) @ [1, -1, -1] <= math.log(MOST_RESAMPLES):
        every = np.array(list(_every(size, kinds)))
        weights = scipy.stats.multinomial.pmf(every, size, source.shares)
        moments = Moments.of([source.posterior(each) for each in every]).mixed(weights / weights.sum())
        return moments, "exact", f"every different resample with its probability: {len(every)}"
    if (exact := _linear(source, size, rng)) is not None:
        return exact, "exact", "posterior mean and variance are linear in how often each observation occurs"
    return drawn.sampled(), "sampled", f"{number} resamples drawn"


def _every(size: int, kinds: int) -> Iterator[np.ndarray]:
    """Yield the counts of each kind, for all ways in which ``size`` observations can be of N kinds."""
    for bars in itertools.combinations(range(size + kinds - 1), kinds - 1):
        yield np.diff([-1, *bars, size + kinds - 1]) - 1


def _linear(source: Resampled, size: int, rng: np.random.Generator) -> Moments | None:
    """Return the exact moments where those of a posterior are linear in the counts, as a few resamples show.

    A function that is linear in multinomial counts is known by its values where all observations are of one kind.
    """
    if len(source.shares) > MOST_DISTINCT:
        return None
    corners = Moments.of([source.posterior(size * row) for row in np.eye(len(source.shares), dtype=int)])
    mean, variance = (source.shares @ each for each in (corners.mean, corners.variance))
    between = source.shares @ np.square(corners.mean - mean) / size
    counts = rng.multinomial(size, source.shares, CHECKED)
    drawn = Moments.of([source.posterior(each) for each in counts])
    allowed = LINEAR * np.sqrt(variance + between) + ROUNDED * np.abs(corners.mean).max(axis=0)
    is_mean = np.abs(counts / size @ corners.mean - drawn.mean) <= allowed  # NaN is not
    is_variance = np.abs(counts / size @ corners.variance / drawn.variance - 1) <= LINEAR
    return Moments(mean, variance + between) if is_mean.all() and is_variance.all() else None


def _summary(source: Resampled, bagged: Moments, is_own_size: bool) -> pd.DataFrame:
    """Join the bagged posterior and the posterior, scalar by scalar."""
    posterior = source.of_data()
    own = Moments.of([posterior])
    own_mean, own_variance = own.mean[0], own.variance[0]
    sd, zero = np.sqrt(bagged.variance), np.zeros(len(own_mean))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio, ratio_error = bagged.variance / own_variance, bagged.variance_error / own_variance + zero
        mismatch = np.where((ratio >= NARROWER) & is_own_size, 1 - 2 / ratio, np.nan)
        columns = {
            "mean": bagged.mean,
            "mcse_mean": bagged.mean_error + zero,
            "sd": sd,
            "mcse_sd": bagged.variance_error / (2 * sd) + zero,
            "posterior_mean": own_mean,
            "posterior_sd": np.sqrt(own_variance),
            "ratio": ratio,
            "mcse_ratio": ratio_error,
            "mismatch": mismatch,
            "mcse_mismatch": np.where(np.isnan(mismatch), np.nan, 2 * ratio_error / ratio**2),
        }
    return pd.DataFrame(columns, index=pd.Index(_names(source, posterior), name="quantity"))


def _remarks(source: Resampled, summary: pd.DataFrame, is_own_size: bool) -> Iterator[str]:
    """Yield notes about the numbers."""
    if len(source.shares) == 1:
        yield "all observations are alike: resamples do not differ"
    if not is_own_size:
        yield f"no mismatch index: it is of resamples of as many observations as the data have, {source.total}"
    elif narrow := list(summary.index[summary["ratio"] < NARROWER]):
        yield f"no mismatch index of {', '.join(narrow[:5])}: the bagged posterior is narrower than the posterior"
    if infinite := list(summary.index[summary["ratio"].isna()]):
        yield f"withheld: of the data or of a resample {', '.join(infinite[:5])} has no finite mean or variance"


def _names(source: Resampled, posterior: Posterior) -> list[str]:
    """Name the entries of all parameters, by their labels where they have any."""
    coords, names = source.model.coords(source.data), list[str]()
    for name, marginal in posterior.items():
        values = np.asarray(marginal.mean())[None, None]
        dims = ("chain", "draw", *source.model.dims.get(name, ()))
        variable = xr.DataArray(values, dims=dims, name=name)
        variable = variable.assign_coords({dim: np.asarray(coords[dim]) for dim in dims if dim in coords})
        names += [label for _, label in elements(variable)]
    return names
