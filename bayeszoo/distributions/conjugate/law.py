"""Laws of a row given parameters, and their conjugate priors, as arrays of laws.

A conjugate block *is* a distribution: priors, posteriors and q(theta) of variational Bayes are blocks of one class. Its
arrays have leading ``axes`` (components, states, classes, contexts), () for one law of all rows; each entry is a prior.

Shapes: n rows; weights (n, *axes), whose axes may have length 1 or be other sets of rows; parameters
(..., *axes, *own), whose leading axes are draws; statistics (..., *axes, *own), whose leading axes are sets of rows. A
missing row (code -1, a row of counts 0, NaN) has log density 0 and weight 0; vectors cannot be missing.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from bayeszoo.distributions.posterior import Marginal, Posterior
from bayeszoo.distributions.statistics.base import Stats
from bayeszoo.errors import NumericalError
from bayeszoo.foundation.blocks import AT_ONCE
from bayeszoo.foundation.named import Arrays, Params


class Law[S: Stats](ABC):
    """The law of a row given parameters, one for each entry of ``axes``: the interface of E-steps."""

    @property
    @abstractmethod
    def axes(self) -> tuple[int, ...]:
        """The shape of the array of laws."""

    @property
    @abstractmethod
    def blocks(self) -> tuple[Block[Any], ...]:
        """The priors of its parameters; empty for a known law."""

    @abstractmethod
    def at(self, params: Params) -> Params:
        """Return the values of this law's parameters: those in ``params``, or the known ones."""

    @abstractmethod
    def statistics(self, rows: Arrays, weights: np.ndarray) -> S:
        """Return the sufficient statistics of rows with weights (n, *axes)."""

    @abstractmethod
    def log_density(self, params: Params, rows: Arrays) -> np.ndarray:
        """Log density of each row, (..., n, *axes)."""

    @abstractmethod
    def expected_log_density(self, rows: Arrays) -> np.ndarray:
        """Return the mean of `log_density` over the parameters, (n, *axes)."""

    @abstractmethod
    def log_predictive(self, rows: Arrays) -> np.ndarray:
        """Log predictive density of each row alone, (n, *axes)."""

    @abstractmethod
    def log_evidence(self, stats: S) -> np.ndarray:
        """Log marginal likelihood of the ordered rows, (..., *axes)."""

    @abstractmethod
    def updated(self, stats: S) -> Self:
        """Return the posterior given statistics; a known law is unchanged."""

    @abstractmethod
    def mle(self, stats: S) -> dict[str, np.ndarray]:
        """Return the parameters that maximize the likelihood; raise `NumericalError` without a maximum."""

    def apart(self, rows: Arrays) -> Iterator[tuple[Law[Any], Arrays]]:
        """Yield the independent laws of columns, each with its rows; by default one law."""
        yield self, rows

    def statistics_by(self, codes: np.ndarray, rows: Arrays) -> S:
        """Return the statistics of rows that belong to the law with number ``codes`` (n,), -1 for none."""
        return self.statistics(rows, np.eye(self.axes[0] + 1)[codes + 1][:, 1:])

    @abstractmethod
    def row_mean(self, params: Params) -> np.ndarray:
        """Return the mean of a row, (..., *axes) or (..., *axes, D).

        For categories it is the probabilities; for counts it is that of an exposure of 1.
        """


@dataclass(frozen=True, eq=False)
class LogLikelihood(Stats):
    """The statistic of rows with a known law: their log density, (..., *axes)."""

    value: np.ndarray


@dataclass(frozen=True, eq=False)
class Known[S: Stats](Law[LogLikelihood]):
    """A law with known parameters, which has no prior and is not a `Block`."""

    law: Law[S]
    params: Params

    @property
    def axes(self) -> tuple[int, ...]:
        """The shape of the array of laws."""
        return self.law.axes

    @property
    def blocks(self) -> tuple[Block[Any], ...]:
        """Empty: there is no prior."""
        return ()

    def at(self, params: Params) -> Params:
        """Return the known parameters."""
        return self.params

    def statistics(self, rows: Arrays, weights: np.ndarray) -> LogLikelihood:
        """Return the weighted sum of the log densities."""
        log_densities = self.expected_log_density(rows)
        log_densities = log_densities.reshape(
            len(log_densities), *(1,) * (weights.ndim - log_densities.ndim), *log_densities.shape[1:]
        )
        return LogLikelihood(np.sum(weights * np.where(weights > 0, log_densities, 0.0), axis=0))  # 0 * -inf is 0 here

    def log_density(self, params: Params, rows: Arrays) -> np.ndarray:
        """Log density of each row, at the known parameters."""
        return self.law.log_density(self.params, rows)

    def expected_log_density(self, rows: Arrays) -> np.ndarray:
        """Return `log_density`: the parameters are known."""
        return self.law.log_density(self.params, rows)

    def log_predictive(self, rows: Arrays) -> np.ndarray:
        """Return `log_density`: the parameters are known."""
        return self.law.log_density(self.params, rows)

    def log_evidence(self, stats: LogLikelihood) -> np.ndarray:
        """Return the log likelihood."""
        return stats.value

    def updated(self, stats: LogLikelihood) -> Self:
        """Return the law unchanged."""
        return self

    def mle(self, stats: LogLikelihood) -> dict[str, np.ndarray]:
        """Return no parameters."""
        return {}

    def row_mean(self, params: Params) -> np.ndarray:
        """Return the mean of a row at the known parameters."""
        return self.law.row_mean(self.params)


@cache
def _first_array(block: type[Block[Any]]) -> str:
    """Return the name of the first array field, which follows ``names`` and ``column``."""
    return fields(block)[2].name


@dataclass(frozen=True, eq=False)
class Block[S: Stats](Law[S]):
    """A conjugate prior of the parameters ``names``, for rows in ``column``.

    ``own`` is the number of axes of each parameter after ``axes``. Parameters and fields in ``shared`` lack the last of
    ``axes``: its entries share them. ``unbounded`` says why the density has no maximum; empty if it
    has one.
    """

    names: tuple[str, ...]
    column: str
    own: ClassVar[Any]
    shared: ClassVar[Any] = ()
    unbounded: ClassVar[Any] = ""

    @property
    def axes(self) -> tuple[int, ...]:
        """The shape of the array of laws: by default that of the first array field, without its own axes."""
        shape = np.shape(getattr(self, _first_array(type(self))))
        return shape[: len(shape) - self.own[0]]

    @property
    def others(self) -> tuple[str, ...]:
        """The columns of exposures or trials, if the block has any."""
        return tuple(name for field_name in ("exposure", "trials") if (name := getattr(self, field_name, "")))

    @property
    def blocks(self) -> tuple[Block[Any], ...]:
        """Itself."""
        return (self,)

    @property
    def free_parameters(self) -> int:
        """The number of free parameters: by default one for each law."""
        return math.prod(self.axes)

    @property
    def moments_below(self) -> float:
        """The order below which moments of a new row exist, parameters integrated out, in each of the laws."""
        return math.inf

    @abstractmethod
    def each(self, rows: Arrays) -> S:
        """Return the statistics of each row alone, (n, 1..., *own)."""

    def row_mean(self, params: Params) -> np.ndarray:
        """Return the mean of a row: by default the first parameter."""
        return np.asarray(params[self.names[0]])

    def statistics_by(self, codes: np.ndarray, rows: Arrays) -> S:
        """Return the statistics of rows that belong to the law with number ``codes`` (n,); if many, law by law.

        A weight for each row and law would take gigabytes.
        """
        laws = self.axes[0]
        if len(codes) * laws <= AT_ONCE or len(self.axes) > 1:
            return super().statistics_by(codes, rows)
        order = np.argsort(codes, kind="stable")
        columns = {name: np.asarray(rows[name])[order] for name in (self.column, *self.others)}
        ends = np.searchsorted(codes[order], np.arange(laws + 1))
        rows_of_laws = ({name: values[a:b] for name, values in columns.items()} for a, b in pairwise(ends.tolist()))
        stats_of_laws = [
            self[:1].statistics(rows_of_law, np.ones((len(rows_of_law[self.column]), 1)))
            for rows_of_law in rows_of_laws
        ]
        names = [f.name for f in fields(stats_of_laws[0]) if f.name != "log_coefficient"]
        arrays: dict[str, Any] = {
            name: np.concatenate([getattr(stats, name) for stats in stats_of_laws]) for name in names
        }
        return type(stats_of_laws[0])(**arrays)

    def entropy(self, params: Params) -> np.ndarray | None:
        """Return the entropy of a row (..., *axes) in nats, differential for continuous rows; None if not known."""
        return None

    def normalized_length(self, stats: S) -> float | None:
        """Return the code length of the ordered rows by normalized maximum likelihood, in nats; None if not known.

        It is minus the maximum log likelihood, plus the log sum of maximum likelihoods over all data of this size.
        """
        return None

    def entropy_moments(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return mean and sd of `entropy` under this distribution, (*axes); None without a closed form."""
        return None

    def row_divergence(self, params: Params, other: Self, others: Params) -> np.ndarray | None:
        """Return KL(row || row of ``other`` at ``others``) in nats, (..., *axes); None if not known."""
        return None

    @abstractmethod
    def mode(self) -> dict[str, np.ndarray]:
        """Return the mode in the constrained space; raise `NumericalError` without one."""

    @abstractmethod
    def typical(self) -> dict[str, np.ndarray]:
        """Return means of the parameters, for variances inverse mean precisions: never on an edge."""

    @abstractmethod
    def log_each(self, params: Params) -> np.ndarray:
        """Log density of the parameters of each law, (..., *axes)."""

    @abstractmethod
    def divergence(self, prior: Self) -> float:
        """Return KL(self || prior) in nats."""

    @abstractmethod
    def rvs(self, size: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Draw the parameters jointly, (*size, *axes, *own)."""

    @abstractmethod
    def marginals(self) -> dict[str, Marginal]:
        """Return the marginal distribution of each entry of the parameters, with SciPy's methods."""

    def within(self) -> dict[str, Callable[[], np.ndarray]]:
        """Return covariance matrices of parameters with correlated entries; different parameters are uncorrelated."""
        return {}

    def at(self, params: Params) -> Params:
        """Return the parameters of this block among ``params``."""
        return {name: np.asarray(params[name], dtype=np.float64) for name in self.names}

    def posterior(self) -> Posterior:
        """Return the block as the distribution of named parameters."""
        return Posterior(self.marginals(), self.rvs, self.logpdf, self.within())

    def at_points(self) -> Posterior:
        """Return the block as distributions at points, which are its axes."""
        return Posterior(self.marginals(), self.rvs, self.log_each, {})

    def logpdf(self, params: Params) -> Any:
        """Joint log density of all parameters, (...)."""
        return self.log_each(params).sum(axis=tuple(range(-len(self.axes), 0)))[()]

    def log_predictive(self, rows: Arrays) -> np.ndarray:
        """Log predictive density of each row alone, (n, *axes)."""
        return self.log_evidence(self.each(rows))

    def log_pairs(self, params: Params) -> np.ndarray:
        """Return log densities (..., j, k) of the parameters of law k of the last axis under the prior of law j.

        The sum over k at j = s(k) is the joint log density of the prior with laws permuted by s. The density of shared
        parameters is spread evenly over laws.
        """
        new_axes = {name: -2 - own + (name in self.shared) for name, own in self._shapes()}
        priors: dict[str, Any] = {
            name: np.expand_dims(values, len(self.axes) - (name in self.shared))
            for name, values in self._arrays().items()
        }
        return replace(self, **priors).log_each(
            {name: np.expand_dims(params[name], axis) for name, axis in new_axes.items()}
        )

    def _shapes(self) -> zip[tuple[str, int]]:
        return zip(self.names, self.own, strict=True)

    def __getitem__(self, index: object) -> Self:
        """Index the axes, as in an array; indexing the last axis keeps shared parameters whole."""
        index = index if isinstance(index, tuple) else (index,)
        has_last_axis = sum(i is not None for i in index) == len(
            self.axes
        )  # includes the last axis, which shared fields lack
        arrays: dict[str, Any] = {
            name: values[index[:-1] if has_last_axis and name in self.shared else index]
            for name, values in self._arrays().items()
        }
        return replace(self, **arrays)

    def _arrays(self) -> dict[str, np.ndarray]:
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {
            name: np.asarray(value) for name, value in values.items() if isinstance(value, np.ndarray | np.floating)
        }

    def _at_rows(self, params: Params) -> list[np.ndarray]:
        """Return the parameters with an axis of rows before ``axes``."""
        values = ((np.asarray(params[name], dtype=np.float64), own_axes) for name, own_axes in self._shapes())
        return [np.expand_dims(value, -1 - own_axes - len(self.axes)) for value, own_axes in values]

    def _column(self, rows: Arrays) -> np.ndarray:
        """Return the column with an axis of length 1 for each axis, (n, 1...)."""
        values = np.asarray(rows[self.column])
        return values.reshape(len(values), *(1,) * len(self.axes))

    def _refuse(self, has_no_maximum: np.ndarray, why: str) -> None:
        """Raise `NumericalError` if the density of a law has no maximum."""
        if np.any(has_no_maximum):
            where = f" {np.flatnonzero(has_no_maximum)[0] + 1}" if np.ndim(has_no_maximum) else ""
            raise NumericalError(f"no mode: the density of {' and '.join(self.names)}{where} {why}", "no_maximum")

    def _require_observed(self, total: np.ndarray) -> None:
        """Raise `NumericalError` if a law has no observations, from totals (*axes)."""
        if not np.all(total > 0):
            where = f" of {self.names[0]} {np.argmin(total) + 1}" if self.axes else ""
            raise NumericalError(f"no maximum-likelihood estimate: there are no observations{where}", "no_data")

    @staticmethod
    def _grows(below: np.ndarray, parameter: str, where: str) -> str:
        """Say why the density is unbounded, if any entry is below 1; else return an empty text."""
        return f"{parameter} < 1: it grows without bound as {where}" if np.any(below) else ""
