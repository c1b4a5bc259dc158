"""Emissions of hidden Markov models: E-steps, starts and checks, for the law of a row in each state.

The law is a conjugate block, or known, with a single axis of K states; rows are in the column ``y``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any

import numpy as np

from bayeszoo.distributions.conjugate.categorical import Categorical
from bayeszoo.distributions.conjugate.law import Known, Law
from bayeszoo.distributions.conjugate.normal import Normal, spread
from bayeszoo.distributions.conjugate.poisson import Poisson
from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.errors import NumericalError
from bayeszoo.families.hmm import passes
from bayeszoo.families.hmm.passes import Sums
from bayeszoo.families.hmm.tables import Pair
from bayeszoo.families.mixtures.base import clusters
from bayeszoo.foundation.named import Arrays, Params, Statistics

SMALLEST = 1e-12
"""Ratio of a state's variance to that of all rows below which the likelihood counts as unbounded."""
COLLAPSED = 1e-5
"""The same ratio below which a maximum counts as degenerate."""

OfRows = Callable[[Arrays], np.ndarray]
"""Maps rows ``{"y": (n,)}`` to the log density of each row in each state, (n, K)."""


def kind_of(law: Law[Any]) -> Law[Any]:
    """Return the block of a law with unknown or known parameters."""
    return law.law if isinstance(law, Known) else law


def seen(y: np.ndarray) -> np.ndarray:
    """Mark rows with an observation, (n,): missing codes and counts are -1, missing numbers NaN."""
    return ~np.isnan(y) if y.dtype.kind == "f" else y >= 0


def smoothed(law: Law[Any], tables: Pair, log_density: OfRows, y: np.ndarray, starts: np.ndarray) -> Sums:
    """Return expected statistics of rows in their states given the log density, and the log likelihood.

    If rows have few distinct values, the pass computes densities of these values alone.
    """
    if (grouped := distinct_values(kind_of(law), y)) is None:
        sums = passes.smooth(*tables, log_density({"y": y}), starts)
        return sums._replace(emitted=law.statistics({"y": y}, sums.emitted))
    values, codes = grouped
    sums = passes.table_sums(*tables, log_density({"y": values}).T, codes, starts)
    return sums._replace(emitted=law.statistics({"y": values}, sums.emitted.T))


@singledispatch
def distinct_values(block: Law[Any], y: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the distinct values of rows, and the code of each row, -1 if missing; None for real numbers."""
    return None


@distinct_values.register
def _(block: Categorical, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(block.alpha.shape[-1]), y


@distinct_values.register
def _(block: Poisson, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return distinct(y)


def distinct(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct counts of a series, and the code of each row, -1 if it is masked."""
    values, codes = np.unique(y, return_inverse=True)
    masked = int(np.searchsorted(values, 0))  # 1 if any row is masked, as -1 is then the smallest value
    return values[masked:], codes - masked


@singledispatch
def states_by_value(block: Law[Any], y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a random state for each observed row: for numbers, the nearest of K rows chosen by k-means++."""
    return clusters(y[:, None].astype(np.float64), block.axes[0], rng)


@states_by_value.register
def _(block: Categorical, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.asarray(rng.integers(0, *block.alpha.shape))[y]


def next_mean(law: Law[Any], params: Params, states: np.ndarray) -> np.ndarray:
    """Return the mean of a row, or the probabilities of its symbols, given probabilities (..., K) of its state."""
    mean = law.row_mean(law.at(params))
    if isinstance(kind_of(law), Categorical):
        return np.sum(states[..., :, None] * mean, axis=-2)
    return np.sum(states * mean, axis=-1)


def ordered(law: Law[Any], params: Params) -> dict[str, np.ndarray]:
    """Return each parameter sorted over the states, which does not depend on the labels of the states."""
    state_axis = -2 if isinstance(law, Categorical) else -1
    names = () if isinstance(law, Known) else law.at(params)
    return {f"sorted_{name}": np.sort(params[name], axis=state_axis) for name in names}


def require_spread(law: Law[Any], stats: Statistics) -> None:
    """Refuse states without rows, or with equal rows: the likelihood of real numbers then has no maximum."""
    if not isinstance(law, Normal):
        return
    if law.variance is not None:
        if not np.all(stats.n > 0):
            raise NumericalError("a state has no rows, and its mean may be anything: use a smaller K", "no_data")
        return
    scatter = stats.about(law.m) if law.mean_known else stats.scatter
    with np.errstate(divide="ignore", invalid="ignore"):
        enough = scatter / stats.n > SMALLEST * spread(stats)
    if not np.all((stats.n > 0) & enough):
        line = "as its variance goes to 0 the likelihood grows without bound"
        raise NumericalError(f"a state has no rows, or only equal ones: {line}", "no_data")


def collapsed(law: Law[Any], params: Params, stats: Moments) -> str:
    """Name a state whose variance is below 1e-5 of that of all rows; empty if there is none."""
    if not isinstance(law, Normal) or law.variance is not None:
        return ""
    share = law.means_and_variances(params)[1] / spread(stats)
    if np.min(share) >= COLLAPSED:
        return ""
    return f"state {np.argmin(share) + 1} has collapsed: its variance is {np.min(share):.1g} of that of all rows"
