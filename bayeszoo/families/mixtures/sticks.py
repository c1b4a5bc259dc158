"""Stick-breaking weights: the prior of the weights of a Dirichlet process, truncated at K components."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import scipy

from bayeszoo.distributions.conjugate import dirichlet
from bayeszoo.distributions.conjugate.categorical import Categorical
from bayeszoo.distributions.posterior import Marginal
from bayeszoo.distributions.statistics.counts import Counts
from bayeszoo.errors import NumericalError
from bayeszoo.foundation.blocks import blocks
from bayeszoo.foundation.named import Arrays, Params

_CELLS = 2**18
"""Most numbers in a table of sets of clusters."""


def drawn(pairs: np.ndarray, size: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Draw weights, (*size, ..., K), from the concentrations (..., K - 1, 2) of each break and what is left of it."""
    broken, left = np.moveaxis(dirichlet.draw_dirichlet(pairs, size, rng), -1, 0)
    ones = np.ones((*broken.shape[:-1], 1))
    return np.append(ones, np.cumprod(left, axis=-1), axis=-1) * np.append(broken, ones, axis=-1)


def later(values: np.ndarray) -> np.ndarray:
    """Return the sum of all later entries along the last axis, for all entries but the last, (..., K - 1)."""
    return np.cumsum(values[..., ::-1], axis=-1)[..., ::-1][..., 1:]


@dataclass(frozen=True, eq=False)
class Sticks(Categorical):
    """Codes of K components; weights v_k (1 - v_1) ... (1 - v_{k-1}), v_k ~ Beta(alpha_k, rest_k) for k < K, v_K = 1.

    ``alpha`` (K,) ends with rest_{K-1}, ``rest`` is (K - 1,): with rest_k = alpha_{k+1} + ... + alpha_K it is
    Dirichlet(alpha). A generalized Dirichlet distribution (Connor and Mosimann 1969, JASA 64, 194-206). The posterior
    adds to alpha_k the rows at k, and to rest_k the rows after k. Ishwaran and James 2001, JASA 96, 161-173.
    """

    rest: np.ndarray

    @classmethod
    def of(cls, alpha: float, count: int) -> Self:
        """Return the first ``count`` sticks of a Dirichlet process: v_k ~ Beta(1, alpha)."""
        ends = np.append(np.ones(count - 1), alpha)
        return cls(("weights",), "component", ends, np.full(count - 1, float(alpha)))

    @cached_property
    def pairs(self) -> np.ndarray:
        """The concentrations of v_k and 1 - v_k, (K - 1, 2)."""
        return np.stack([self.alpha[:-1], self.rest], axis=-1)

    @cached_property
    def expected_log(self) -> np.ndarray:
        """The expected logarithms of the weights, (K,)."""
        broken, left = np.moveaxis(dirichlet.expected_log(self.pairs), -1, 0)
        return np.append(broken, 0.0) + np.append(0.0, np.cumsum(left))

    @property
    def unbounded(self) -> str:
        """The reason why the density of the weights, with its Jacobian, has no maximum; empty if it has one."""
        falls = self.rest - 1 - np.arange(len(self.rest))[::-1]
        is_unbounded = bool(np.any(self.alpha[:-1] < 1) or np.any(falls < 0))
        return "the density of the weights grows without bound as the later ones go to 0" * is_unbounded

    @property
    def is_flat(self) -> bool:
        """Whether the density is constant: with one component."""
        return len(self.alpha) == 1

    def updated(self, stats: Counts) -> Self:
        """Return the posterior: alpha_k grows by the rows at component k, and rest_k by the rows after it."""
        return replace(self, alpha=self.alpha + stats.counts, rest=self.rest + later(stats.counts))

    def log_evidence(self, stats: Counts) -> np.ndarray:
        """Log probability of the ordered codes, the weights integrated out, (...)."""
        counts = np.stack([stats.counts[..., :-1], later(stats.counts)], axis=-1)
        return np.asarray(dirichlet.log_dirichlet_ratio(self.pairs, counts).sum(axis=-1))

    def log_predictive(self, rows: Arrays) -> np.ndarray:
        """Log mean weight of each row's component, (n,)."""
        return self._of_rows(np.log(self.typical()[self.names[0]]), rows)

    def typical(self) -> dict[str, np.ndarray]:
        """Return the mean weights."""
        return {self.names[0]: self._moments(1)}

    def _moments(self, order: int) -> np.ndarray:
        """Return the means of powers of the weights, (K,): products over independent Beta variables."""
        moments = np.exp(scipy.special.betaln(self.pairs + order, self.pairs[:, ::-1]))
        broken, left = (moments / np.exp(scipy.special.betaln(*self.pairs.T))[:, None]).T
        return np.append(broken, 1.0) * np.append(1.0, np.cumprod(left))

    def mode(self) -> dict[str, np.ndarray]:
        """Return the mode of the weights."""
        if self.unbounded:
            raise NumericalError(f"no mode: {self.unbounded}", "no_maximum")
        falls = self.rest - 1 - np.arange(len(self.rest))[::-1]
        rises = self.alpha[:-1] - 1
        total = rises + falls
        broken = np.where(total > 0, rises / np.where(total > 0, total, 1.0), 0.5)
        return {self.names[0]: np.append(broken, 1.0) * np.append(1.0, np.cumprod(1 - broken))}

    def log_each(self, params: Params) -> np.ndarray:
        """Log density of the weights, (...)."""
        weights = np.asarray(params[self.names[0]], dtype=np.float64)
        left = np.cumsum(weights[..., ::-1], axis=-1)[..., ::-1]  # at each break
        shares = np.stack([weights[..., :-1], left[..., 1:]], axis=-1) / left[..., :-1, None]
        of_breaks = dirichlet.log_density(shares, self.pairs) - np.log(left[..., :-1])
        return np.asarray(of_breaks.sum(axis=-1))

    def divergence(self, prior: Self) -> float:
        """Return KL(self || prior) in nats: the breaks are independent."""
        return dirichlet.divergence(self.pairs, prior.pairs)

    def rvs(self, size: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Draw weights, (*size, K)."""
        return {self.names[0]: drawn(self.pairs, size, rng)}

    def marginals(self) -> dict[str, Marginal]:
        """Return means and standard deviations of the weights, products of Beta variables."""
        mean = self._moments(1)
        return {self.names[0]: Products(mean, np.sqrt(np.maximum(self._moments(2) - mean**2, 0.0)))}

    def within(self) -> dict[str, Callable[[], np.ndarray]]:
        """Return the covariance matrix of the weights."""
        return {self.names[0]: self._covariance}

    def _covariance(self) -> np.ndarray:
        """Return the covariances: an earlier break is shared by all later weights."""
        K, mean = len(self.alpha), self._moments(1)
        products = np.diag(self._moments(2))
        total = self.pairs.sum(axis=1)
        cross = self.alpha[:-1] * self.rest / (total * (total + 1))  # E[v (1 - v)]
        squares = np.append(1.0, np.cumprod(self.rest * (self.rest + 1) / (total * (total + 1))))
        for j in range(K - 1):
            after = mean[j + 1 :] / math.prod(self.rest[: j + 1] / total[: j + 1])  # given all breaks up to j
            products[j, j + 1 :] = products[j + 1 :, j] = squares[j] * cross[j] * after
        return products - np.outer(mean, mean)

    @cached_property
    def _labels(self) -> dict[tuple[int, ...], Labels]:
        return {}

    def labels(self, sizes: tuple[int, ...]) -> Labels:
        """Return the distribution of the sticks of clusters of these sizes; cached, as sizes repeat."""
        if sizes not in self._labels:
            self._labels[sizes] = Labels.of(self, sizes)
        return self._labels[sizes]


class Products(NamedTuple):
    """Products of independent Beta variables: their quantiles have no closed form."""

    means: np.ndarray
    sds: np.ndarray

    def mean(self) -> np.ndarray:
        """Return the means."""
        return self.means

    def std(self) -> np.ndarray:
        """Return the standard deviations."""
        return self.sds

    def cdf(self, x: Any, /) -> Any:
        """Refuse."""
        raise NumericalError(
            "a weight broken off a stick has no distribution function in closed form", "no_closed_form"
        )

    def ppf(self, q: Any, /) -> Any:
        """Refuse."""
        raise NumericalError("a weight broken off a stick has no quantiles in closed form", "no_closed_form")


class Labels(NamedTuple):
    """All ways to place clusters of given sizes on sticks, summed from the last stick to the first.

    ``log_left[k][s]`` is the log probability of sticks k, k + 1, ... given that the clusters in the set s (one bit per
    cluster) lie on earlier sticks; ``terms[k][s]`` (clusters + 1,) are its terms by the cluster on stick k, the last
    one for no cluster.
    """

    log_left: list[np.ndarray]
    terms: list[np.ndarray]

    @classmethod
    def of(cls, sticks: Sticks, sizes: tuple[int, ...]) -> Labels:
        """Sum from the last stick backwards, in time K c 2**c for c clusters and K sticks."""
        steps = [*_from_last_stick(sticks.pairs, sizes)][::-1]
        return cls([left for left, _ in steps], [terms for _, terms in steps])

    @property
    def log_probability(self) -> float:
        """Log probability of the clusters, summed over their places."""
        return float(self.log_left[0][0])

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Draw the stick of each cluster, (clusters,)."""
        count = self.terms[0].shape[1] - 1
        places, before = np.empty(count, dtype=np.int64), 0
        for k, terms in enumerate(self.terms):
            cluster = int(np.argmax(terms[before] + rng.gumbel(size=count + 1)))
            if cluster < count:
                places[cluster], before = k, before | (1 << cluster)
        return places


def _from_last_stick(pairs: np.ndarray, sizes: tuple[int, ...]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield ``log_left`` and ``terms`` of `Labels`, from the last stick; pairs (..., K - 1, 2) have leading axes."""
    count, K = len(sizes), pairs.shape[-2] + 1
    sets = np.arange(2**count)
    is_in = (sets[:, None] >> np.arange(count)) & 1
    rows = sum(sizes) - is_in @ np.array(sizes, dtype=np.float64)  # on this stick or later
    at_stick = np.append(np.array(sizes, dtype=np.float64), 0.0)
    after = np.maximum(rows[:, None] - at_stick, 0.0)
    counts = np.stack([at_stick + np.zeros(after.shape), after], axis=-1)
    following = np.append(sets[:, None] | (1 << np.arange(count)), sets[:, None], axis=1)
    is_new = np.append(is_in == 0, np.ones((len(sets), 1), dtype=bool), axis=1)
    log_left = np.where(rows == 0, 0.0, -np.inf) + np.zeros((*pairs.shape[:-2], 1))
    of_break: Any = 0.0  # nothing is left of the last stick
    for k in reversed(range(K)):
        if k < K - 1 and not (k < K - 2 and np.array_equal(pairs[..., k, :], pairs[..., k + 1, :])):
            of_break = dirichlet.log_dirichlet_ratio(pairs[..., k, None, None, :], counts)
        terms = np.where(is_new, of_break + log_left[..., following], -np.inf)
        log_left = np.logaddexp.reduce(terms, axis=-1)
        yield log_left, terms


def equal_breaks(alpha: np.ndarray, sticks: int) -> np.ndarray:
    """Return the concentrations of the breaks of a process, at each alpha (...): (..., K - 1, 2)."""
    pairs = np.stack([np.ones(np.shape(alpha)), np.asarray(alpha, dtype=np.float64)], axis=-1)
    return np.repeat(pairs[..., None, :], sticks - 1, axis=-2)


def log_clusters(alpha: np.ndarray, sticks: int, sizes: tuple[int, ...]) -> np.ndarray:
    """Return the log probability of clusters of these sizes, summed over their sticks, at each alpha (P,)."""
    parts = blocks(len(alpha), len(sizes) * 2 ** len(sizes), _CELLS)
    steps = ([*_from_last_stick(equal_breaks(alpha[part], sticks), sizes)][-1] for part in parts)
    return np.concatenate([log_left[:, 0] for log_left, _ in steps])


def log_density_at(alpha: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the log density of weights (..., K) of a process at each alpha (...)."""
    breaks = weights.shape[-1] - 1
    of_one = Sticks.of(1.0, breaks + 1).log_each({"weights": weights})
    return np.asarray(of_one + breaks * np.log(alpha) + (alpha - 1) * np.log(weights[..., -1]))
