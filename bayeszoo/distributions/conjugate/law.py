"""Laws of a row given parameters, and their conjugate priors, as values; several of them side by side.

A conjugate block *is* a distribution: priors, posteriors and q(theta) of variational Bayes are blocks of one class. Its
arrays have leading ``axes`` (components, states, classes, contexts), () for one law of all rows; each entry is a prior
of its own.

Shapes: n rows; weights (n, *axes), whose axes may have length 1 or be other sets of rows; parameters
(..., *axes, *own), whose leading axes are draws; statistics (..., *axes, *own), whose leading axes are sets of rows. A
row that is missing (code -1, a row of counts 0, NaN) has log density 0 and counts for nothing; vectors are not missing.
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
    """The law of a row given parameters, once for each of ``axes``: what an E-step asks for."""

    @property
    @abstractmethod
    def axes(self) -> tuple[int, ...]:
        """The shape of the laws that stand side by side."""

    @property
    @abstractmethod
    def blocks(self) -> tuple[Block[Any], ...]:
        """The priors of its parameters; none of a known law."""

    @abstractmethod
    def at(self, params: Params) -> Params:
        """Return the values of its own parameters: those given, or the known ones."""

    @abstractmethod
    def statistics(self, rows: Arrays, weights: np.ndarray) -> S:
        """Return the sufficient statistics of rows that count as often as weights (n, *axes) say."""

    @abstractmethod
    def log_density(self, params: Params, rows: Arrays) -> np.ndarray:
        """Log density of each row, (..., n, *axes)."""

    @abstractmethod
    def expected_log_density(self, rows: Arrays) -> np.ndarray:
        """Return the mean of `log_density` over the parameters, (n, *axes)."""

    @abstractmethod
    def log_predictive(self, rows: Arrays) -> np.ndarray:
        """Log density of each row by itself, parameters integrated out, (n, *axes)."""

    @abstractmethod
    def log_evidence(self, stats: S) -> np.ndarray:
        """Log density of the ordered rows, parameters integrated out, (..., *axes)."""

    @abstractmethod
    def updated(self, stats: S) -> Self:
        """Return the posterior given statistics; a known law stays as it is."""

    @abstractmethod
    def mle(self, stats: S) -> dict[str, np.ndarray]:
        """Return the parameters that maximize the likelihood; `NumericalError` where there is no maximum."""

    def apart(self, rows: Arrays) -> Iterator[tuple[Law[Any], Arrays]]:
        """Yield a law of each column that is independent of the others, with its rows; by default there is one."""
        yield self, rows

    def statistics_by(self, codes: np.ndarray, rows: Arrays) -> S:
        """Return the statistics of rows of known places (n,) along the one axis, -1 where a row counts for nothing."""
        return self.statistics(rows, np.eye(self.axes[0] + 1)[codes + 1][:, 1:])

    @abstractmethod
    def row_mean(self, params: Params) -> np.ndarray:
        """Return the mean of a row, (..., *axes) or (..., *axes, D); of a category the probabilities."""


@dataclass(frozen=True, eq=False)
class LogLikelihood(Stats):
    """The sufficient statistic of rows whose law is known: their log density, (..., *axes)."""

    value: np.ndarray


@dataclass(frozen=True, eq=False)
class Known[S: Stats](Law[LogLikelihood]):
    """A law of known parameters, which has no prior and is no `Block`."""

    law: Law[S]
    params: Params

    @property
    def axes(self) -> tuple[int, ...]:
        """The shape of the laws that stand side by side."""
        return self.law.axes

    @property
    def blocks(self) -> tuple[Block[Any], ...]:
        """None: nothing has a prior."""
        return ()

    def at(self, params: Params) -> Params:
        """Return the known parameters."""
        return self.params

    def statistics(self, rows: Arrays, weights: np.ndarray) -> LogLikelihood:
        """Return the weighted sum of the log densities."""
        each = self.expected_log_density(rows)
        each = each.reshape(len(each), *(1,) * (weights.ndim - each.ndim), *each.shape[1:])
        return LogLikelihood(np.sum(weights * np.where(weights > 0, each, 0.0), axis=0))  # 0 * -inf is 0 here

    def log_density(self, params: Params, rows: Arrays) -> np.ndarray:
        """Log density of each row, at the known parameters."""
        return self.law.log_density(self.params, rows)

    def expected_log_density(self, rows: Arrays) -> np.ndarray:
        """Return the same: nothing is random."""
        return self.law.log_density(self.params, rows)

    def log_predictive(self, rows: Arrays) -> np.ndarray:
        """Return the same."""
        return self.law.log_density(self.params, rows)

    def log_evidence(self, stats: LogLikelihood) -> np.ndarray:
        """Return the log likelihood."""
        return stats.value

    def updated(self, stats: LogLikelihood) -> Self:
        """Return the law as it is."""
        return self

    def mle(self, stats: LogLikelihood) -> dict[str, np.ndarray]:
        """Return no parameters."""
        return {}

    def row_mean(self, params: Params) -> np.ndarray:
        """Return the mean of a row at the known parameters."""
        return self.law.row_mean(self.params)


@cache
def _first_array(block: type[Block[Any]]) -> str:
    """Return the name of the first array, after the names of the parameters and the column."""
    return fields(block)[2].name


@dataclass(frozen=True, eq=False)
class Block[S: Stats](Law[S]):
    """A conjugate prior of the parameters called ``names``, of rows in ``column``.

    ``own`` says how many axes of its own each parameter has. Parameters and fields in ``shared`` lack the last of
    ``axes``: all its entries have them together. ``unbounded`` says why the density has no maximum; nothing where it
    has one.
    """

    names: tuple[str, ...]
    column: str
    own: ClassVar[Any]
    shared: ClassVar[Any] = ()
    unbounded: ClassVar[Any] = ""

    @property
    def axes(self) -> tuple[int, ...]:
        """The shape of the laws that stand side by side: by default that of the first array, but for its own axes."""
        shape = np.shape(getattr(self, _first_array(type(self))))
        return shape[: len(shape) - self.own[0]]

    @property
    def others(self) -> tuple[str, ...]:
        """The columns of exposures or trials, of blocks that have any."""
        return tuple(name for own in ("exposure", "trials") if (name := getattr(self, own, "")))

    @property
    def blocks(self) -> tuple[Block[Any], ...]:
        """Itself."""
        return (self,)

    @property
    def free_parameters(self) -> int:
        """How many numbers the likelihood is maximized over: by default one for each law."""
        return math.prod(self.axes)

    @property
    def moments_below(self) -> float:
        """The order below which moments of a new row exist, parameters integrated out, in each of the laws."""
        return math.inf

    @abstractmethod
    def each(self, rows: Arrays) -> S:
        """Return the statistics of each row by itself, (n, 1..., *own)."""

    def statistics_by(self, codes: np.ndarray, rows: Arrays) -> S:
        """Return the statistics of rows of known places (n,): where these are many, of the rows of each by themselves.

        A weight for each row and place would take gigabytes.
        """
        places = self.axes[0]
        if len(codes) * places <= AT_ONCE or len(self.axes) > 1:
            return super().statistics_by(codes, rows)
        order = np.argsort(codes, kind="stable")
        columns = {name: np.asarray(rows[name])[order] for name in (self.column, *self.others)}
        ends = np.searchsorted(codes[order], np.arange(places + 1))
        some = ({name: values[a:b] for name, values in columns.items()} for a, b in pairwise(ends.tolist()))
        each = [self[:1].statistics(own, np.ones((len(own[self.column]), 1))) for own in some]
        names = [f.name for f in fields(each[0]) if f.name != "log_coefficient"]
        arrays: dict[str, Any] = {name: np.concatenate([getattr(own, name) for own in each]) for name in names}
        return type(each[0])(**arrays)

    def entropy(self, params: Params) -> np.ndarray | None:
        """Return the entropy of a row (..., *axes) in nats, of numbers the differential one; None where not known."""
        return None

    def normalized_length(self, stats: S) -> float | None:
        """Return the code length of the ordered rows by normalized maximum likelihood, in nats; None where not known.

        It is minus the largest log likelihood, plus the log of the sum of these over all data of the same size.
        """
        return None

    def entropy_moments(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return mean and sd of `entropy` under this distribution, (*axes); None where they have no closed form."""
        return None

    def row_divergence(self, params: Params, other: Self, others: Params) -> np.ndarray | None:
        """Return KL(row || row of another block at other parameters) in nats, (..., *axes); None where not known."""
        return None

    @abstractmethod
    def mode(self) -> dict[str, np.ndarray]:
        """Return where the density is highest, in the constrained space; `NumericalError` where it has no maximum."""

    @abstractmethod
    def typical(self) -> dict[str, np.ndarray]:
        """Return means of the parameters, of variances the inverses of the mean precisions: never on an edge."""

    @abstractmethod
    def log_each(self, params: Params) -> np.ndarray:
        """Log density of the parameters of each of the laws, (..., *axes)."""

    @abstractmethod
    def divergence(self, prior: Self) -> float:
        """Return KL(self || prior) in nats."""

    @abstractmethod
    def rvs(self, size: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Draw the parameters jointly, (*size, *axes, *own)."""

    @abstractmethod
    def marginals(self) -> dict[str, Marginal]:
        """Return the distribution of each entry of the parameters by itself, with SciPy's methods."""

    def within(self) -> dict[str, Callable[[], np.ndarray]]:
        """Return the covariance matrices of parameters whose entries are correlated; parameters are not with others."""
        return {}

    def at(self, params: Params) -> Params:
        """Return its parameters among those given."""
        return {name: np.asarray(params[name], dtype=np.float64) for name in self.names}

    def posterior(self) -> Posterior:
        """Return it as the distribution of named parameters."""
        return Posterior(self.marginals(), self.rvs, self.logpdf, self.within())

    def at_points(self) -> Posterior:
        """Return it as the distributions of numbers at points, which are the axes."""
        return Posterior(self.marginals(), self.rvs, self.log_each, {})

    def logpdf(self, params: Params) -> Any:
        """Joint log density of all parameters, (...)."""
        return self.log_each(params).sum(axis=tuple(range(-len(self.axes), 0)))[()]

    def log_predictive(self, rows: Arrays) -> np.ndarray:
        """Log density of each row by itself, parameters integrated out, (n, *axes)."""
        return self.log_evidence(self.each(rows))

    def log_pairs(self, params: Params) -> np.ndarray:
        """Log density of the parameters in place k of the last axis under the prior in place j, (..., j, k).

        Summed over k at j = s(k) it is the joint log density of the prior with its places permuted by s. What all
        places share is spread evenly over them.
        """
        places = {name: -2 - own + (name in self.shared) for name, own in self._shapes()}
        priors: dict[str, Any] = {
            name: np.expand_dims(values, len(self.axes) - (name in self.shared))
            for name, values in self._arrays().items()
        }
        return replace(self, **priors).log_each({name: np.expand_dims(params[name], at) for name, at in places.items()})

    def _shapes(self) -> zip[tuple[str, int]]:
        return zip(self.names, self.own, strict=True)

    def __getitem__(self, index: object) -> Self:
        """Index the axes from the first on, as of an array; one law of several has what they share for itself."""
        index = index if isinstance(index, tuple) else (index,)
        ends = sum(i is not None for i in index) == len(self.axes)  # with the last axis, which what is shared lacks
        taken: dict[str, Any] = {
            name: values[index[:-1] if ends and name in self.shared else index]
            for name, values in self._arrays().items()
        }
        return replace(self, **taken)

    def _arrays(self) -> dict[str, np.ndarray]:
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: np.asarray(own) for name, own in values.items() if isinstance(own, np.ndarray | np.floating)}

    def _at_rows(self, params: Params) -> list[np.ndarray]:
        """Return the parameters with an axis of rows before ``axes``."""
        values = ((np.asarray(params[name], dtype=np.float64), own) for name, own in self._shapes())
        return [np.expand_dims(each, -1 - own - len(self.axes)) for each, own in values]

    def _column(self, rows: Arrays) -> np.ndarray:
        """Return the column with an axis of length 1 for each of ``axes``, (n, 1...)."""
        values = np.asarray(rows[self.column])
        return values.reshape(len(values), *(1,) * len(self.axes))

    def _refuse(self, bad: np.ndarray, why: str) -> None:
        """Raise `NumericalError` where the density of some law has no maximum."""
        if np.any(bad):
            where = f" {np.flatnonzero(bad)[0] + 1}" if np.ndim(bad) else ""
            raise NumericalError(f"no mode: the density of {' and '.join(self.names)}{where} {why}", "no_maximum")

    def _require_observed(self, total: np.ndarray) -> None:
        """Raise `NumericalError` where some law has no observations, as totals (*axes) say."""
        if not np.all(total > 0):
            where = f" of {self.names[0]} {np.argmin(total) + 1}" if self.axes else ""
            raise NumericalError(f"no maximum-likelihood estimate: there are no observations{where}", "no_data")

    @staticmethod
    def _grows(below: np.ndarray, what: str, where: str) -> str:
        """Say why the density is unbounded, where any is below 1; else nothing."""
        return f"{what} < 1: it grows without bound as {where}" if np.any(below) else ""
