"""Products of laws: independent parameters, and columns that are independent given the parameters."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from itertools import chain
from operator import add
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import numpy as np

from bayeszoo.distributions.conjugate.law import Block, Law
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.distributions.statistics.base import Stats
from bayeszoo.foundation.named import Arrays, Params


@dataclass(frozen=True, eq=False)
class Several(Stats):
    """The statistics of several laws, in their order."""

    parts: tuple[Any, ...] = ()

    def __add__(self, other: Self) -> Self:
        return replace(
            self, parts=tuple(part + other_part for part, other_part in zip(self.parts, other.parts, strict=True))
        )

    def __sub__(self, other: Self) -> Self:
        return replace(
            self, parts=tuple(part - other_part for part, other_part in zip(self.parts, other.parts, strict=True))
        )

    def __getitem__(self, index: object) -> Self:
        return replace(self, parts=tuple(part[index] for part in self.parts))

    def discounted(self, factor: float) -> Self:
        """Return the statistics of data with weight ``factor``."""
        return replace(self, parts=tuple(part.discounted(factor) for part in self.parts))


@dataclass(frozen=True, eq=False)
class LabelledStats(Several):
    """`Several` with the labels of the data, for a prior with entries by label."""

    labels: Arrays = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, eq=False)
class Product:
    """Independent priors of several laws; known laws have no prior."""

    laws: tuple[Law[Any], ...]

    @cached_property
    def blocks(self) -> tuple[Block[Any], ...]:
        """The priors of all unknown parameters."""
        return tuple(block for law in self.laws for block in law.blocks)

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters."""
        return tuple(name for block in self.blocks for name in block.names)

    @property
    def free_parameters(self) -> int:
        """The number of free parameters."""
        return sum(block.free_parameters for block in self.blocks)

    @property
    def unbounded(self) -> str:
        """Why the density has no maximum; empty if it has one."""
        return next((block.unbounded for block in self.blocks if block.unbounded), "")

    @property
    def moments_below(self) -> float:
        """The order below which moments of a new row exist in all laws."""
        return min((block.moments_below for block in self.blocks), default=math.inf)

    def updated(self, stats: Several) -> Self:
        """Return the posterior given statistics."""
        pairs = zip(self.laws, stats.parts, strict=True)
        return type(self)(tuple(law.updated(stats_of_law) for law, stats_of_law in pairs))

    def mode(self) -> dict[str, np.ndarray]:
        """Return the mode of the density."""
        return {name: value for block in self.blocks for name, value in block.mode().items()}

    def mle(self, stats: Several) -> dict[str, np.ndarray]:
        """Return the maximum of the likelihood."""
        estimates = (law.mle(stats_of_law) for law, stats_of_law in zip(self.laws, stats.parts, strict=True))
        return {name: value for part in estimates for name, value in part.items()}

    def typical(self) -> dict[str, np.ndarray]:
        """Return a central point, never on an edge."""
        return {name: value for block in self.blocks for name, value in block.typical().items()}

    def logpdf(self, params: Params) -> Any:
        """Joint log density of all parameters, (...)."""
        return reduce(add, (block.logpdf(params) for block in self.blocks), 0.0)

    def divergence(self, prior: Self) -> float:
        """Return KL(self || prior) in nats."""
        return sum(block.divergence(prior_block) for block, prior_block in zip(self.blocks, prior.blocks, strict=True))

    def posterior(self) -> Posterior:
        """Return the distribution of all parameters."""
        return Posterior.product(*(block.posterior() for block in self.blocks))

    def rvs(self, size: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Draw all parameters, (*size, *axes, *own)."""
        return {name: value for block in self.blocks for name, value in block.rvs(size, rng).items()}


class Expected[P: Product](NamedTuple):
    """Expected statistics of an E-step, and the prior to update: the argument of M-steps."""

    stats: Several
    prior: P

    def posterior(self) -> P:
        """Return the posterior given the statistics."""
        return self.prior.updated(self.stats)

    def pooled(self, other: Self) -> Self:
        """Return the statistics of both sets of rows together."""
        return self._replace(stats=self.stats + other.stats)


class Factors[P: Product](NamedTuple):
    """q(theta) of variational Bayes, with the prior."""

    q: P
    prior: P

    @property
    def divergence(self) -> float:
        """KL(q || prior) in nats."""
        return self.q.divergence(self.prior)


@dataclass(frozen=True, eq=False)
class Features(Product, Law[Several]):
    """Columns that are independent given the parameters, with laws of the same axes; cells may be missing."""

    @property
    def axes(self) -> tuple[int, ...]:
        """The shape of the array of laws."""
        return self.laws[0].axes

    def at(self, params: Params) -> Params:
        """Return the values of all parameters, including known ones."""
        return {name: value for law in self.laws for name, value in law.at(params).items()}

    def statistics(self, rows: Arrays, weights: np.ndarray) -> Several:
        """Return the statistics of each column."""
        return Several(tuple(law.statistics(rows, weights) for law in self.laws))

    def statistics_by(self, codes: np.ndarray, rows: Arrays) -> Several:
        """Return the statistics of each column, from rows that belong to the law with number ``codes`` (n,)."""
        return Several(tuple(law.statistics_by(codes, rows) for law in self.laws))

    def apart(self, rows: Arrays) -> Iterator[tuple[Law[Any], Arrays]]:
        """Yield a law of each column, with its rows."""
        return chain.from_iterable(law.apart(rows) for law in self.laws)

    def log_density(self, params: Params, rows: Arrays) -> np.ndarray:
        """Log density of each row, (..., n, *axes)."""
        return np.asarray(reduce(add, (law.log_density(params, rows) for law in self.laws)))

    def expected_log_density(self, rows: Arrays) -> np.ndarray:
        """Return the mean of `log_density` over the parameters, (n, *axes)."""
        return np.asarray(reduce(add, (law.expected_log_density(rows) for law in self.laws)))

    def log_predictive(self, rows: Arrays) -> np.ndarray:
        """Log predictive density of each row alone, (n, *axes)."""
        return np.asarray(reduce(add, (law.log_predictive(rows) for law in self.laws)))

    def log_evidence(self, stats: Several) -> np.ndarray:
        """Log marginal likelihood of the ordered rows, (..., *axes)."""
        pairs = zip(self.laws, stats.parts, strict=True)
        return np.asarray(reduce(add, (law.log_evidence(stats_of_law) for law, stats_of_law in pairs)))

    def row_mean(self, params: Params) -> np.ndarray:
        """Return the mean of each column, (..., *axes, columns)."""
        return np.stack([law.row_mean(params) for law in self.laws], axis=-1)
