"""Mixtures of as many Gaussian clusters as the rows ask for: a Dirichlet process, held at its first K sticks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import lazy_loader
import numpy as np

from bayeszoo.distributions.conjugate.mixture import MixturePrior
from bayeszoo.distributions.conjugate.product import Factors
from bayeszoo.distributions.special import log_rising
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.families.mixtures.gaussian import GaussianMixtureModel
from bayeszoo.families.mixtures.gaussian_components import GaussianComponents
from bayeszoo.families.mixtures.gibbs import MixtureChain
from bayeszoo.families.mixtures.sticks import Sticks
from bayeszoo.families.statistics.assignments import log_evidence_of
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.model.capabilities import Collapsed
from bayeszoo.model.views import View

loops = lazy_loader.load("bayeszoo.likelihoods.loops.dirichlet_process", suppress_warning=True)

MAX_ERROR = 1e-3
"""Error of the truncation that `weak` stays below."""
SPLITS = 3
"""Splits and merges that are proposed in a sweep."""


def truncation_error(alpha: float, sticks: int, rows: int) -> float:
    """Bound the distance of the law of N rows from that of the whole process, summed over all outcomes: at most 2.

    It is 4 (1 - E[(1 - R)^N]) or less (Ishwaran and James 2001, theorem 2), R the stick left after K - 1 breaks, and so
    4 N E[R] or less; their 4 N exp(-(K - 1) / alpha) has the median of R in the place of its mean, which is larger.
    """
    return min(2.0, 4 * rows * math.exp(-(sticks - 1) * math.log1p(1 / alpha)))


def sticks_for(alpha: float, rows: int) -> int:
    """Return how many sticks hold the process of N rows to an error below a thousandth."""
    return 2 + math.floor(math.log(4 * max(rows, 1) / MAX_ERROR) / math.log1p(1 / alpha))


class DirichletProcessMixture(GaussianMixtureModel, Collapsed, family=True):
    """Gaussian clusters whose weights are broken off a stick; K holds the first of infinitely many.

    Which cluster is on which stick says nothing: densities, the number of clusters and which rows are together do.
    """

    is_annealed, usual_method = False, "gibbs"
    unread = "clusters of a Dirichlet process have no labels; `bayeszoo clusters` says what is known"
    prior_orders_labels = True
    gibbs_options: ClassVar[Mapping[str, int]] = {"tune": 500, "thin": 20}

    def views(self) -> frozenset[View]:
        """Show how many clusters there are and which rows are together, as no cluster has a label."""
        return super().views() - {View.COMPONENTS} | {View.CLUSTERS}

    def new_prior(self, data: Arrays) -> MixturePrior:
        """Return the prior of all parameters."""
        return MixturePrior((Sticks.of(self.alpha, self.K), self.component_law(data)))

    def seeds(self, data: Arrays, rng: np.random.Generator) -> np.ndarray:
        """Return responsibilities to start from, the largest cluster on the first stick."""
        each = super().seeds(data, rng)
        return each[:, np.argsort(-each.sum(axis=0), kind="stable")]

    def start(self, data: Arrays, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Refuse to climb: the likelihood of a Dirichlet process has no maximum."""
        raise NumericalError(
            "the likelihood of infinitely many clusters has no maximum, as each row may be one: use gaussian_mixture "
            "with some K, or --method gibbs",
            "no_maximum",
        )

    def unbounded(self, data: Arrays) -> str:
        """Say why the posterior density of the weights has no maximum."""
        return self.prior(data).weights.unbounded

    def require_rows(self, data: Arrays) -> None:
        """Take any number of rows: most sticks may be empty."""

    def vb_log_density(self, q: Factors[MixturePrior], params: Params) -> np.ndarray:
        """Log density of q(theta): the prior tells the sticks apart."""
        return np.asarray(q.q.logpdf(params))

    def vb_log_densities(self, qs: Any, params: Params) -> np.ndarray:
        """Return `vb_log_density` of each of several q(theta), (Q, draws)."""
        return np.array([self.vb_log_density(q, params) for q in qs])

    def vb_coordinates(self, data: Arrays) -> None:
        """Climb by plain steps."""
        return

    def occupied(self, q: Factors[MixturePrior]) -> int:
        """Return how many sticks hold a row or more, in expectation under q(z)."""
        held = q.q.weights.alpha - q.prior.weights.alpha
        return int(np.sum(held >= 1))

    def log_partitions(self, partitions: np.ndarray, data: Arrays) -> np.ndarray:
        """Return log p(y, partition), summed over the sticks of its clusters, (M,)."""
        prior = self.prior(data)
        sticks = _sticks(prior)
        most = int(partitions.max(initial=-1)) + 1
        counts = np.stack([np.sum(partitions == k, axis=1) for k in range(most)], axis=1)
        sizes = np.sort(counts, axis=1)[:, ::-1]
        different, which = np.unique(sizes, axis=0, return_inverse=True)
        of_sizes = [sticks.labels(tuple(own[own > 0].tolist())).log_probability for own in different]
        return np.array(of_sizes)[which.ravel()] + log_evidence_of(prior.law[:most], data, partitions)

    def with_labels(self, partition: np.ndarray, data: Arrays, rng: np.random.Generator) -> np.ndarray:
        """Draw the stick of each cluster of a partition."""
        sticks = _sticks(self.prior(data))
        sizes = np.bincount(partition)
        order = np.argsort(-sizes, kind="stable")
        places = sticks.labels(tuple(sizes[order].tolist())).draw(rng)
        return places[np.argsort(order)][partition]

    def gibbs(self, data: Arrays, rng: np.random.Generator) -> SplitMergeChain:
        """Return a chain over the clusters of the rows, parameters integrated out."""
        return SplitMergeChain(self.prior(data), data, self.vb_start(data, rng).q, rng)

    def remarks(self, stats: Any, data: Arrays) -> tuple[str, ...]:
        """Say what holding the process at K sticks costs, and what the number of clusters is not."""
        error, enough = truncation_error(self.alpha, self.K, rows := len(data["Y"])), sticks_for(self.alpha, rows)
        held = f"{self.K} sticks stand for infinitely many: the law of the rows is off by at most {error:.1g}"
        if error > MAX_ERROR:
            held += f"; --set K={enough} takes it below {MAX_ERROR:g}"
        return (held, "the number of clusters grows with the rows: it estimates no true number of groups")


class SplitMergeChain(MixtureChain):
    """Collapsed Gibbs sampling of clusters, with splits and merges; parameters are drawn when a draw is kept.

    Neal 2000, JCGS 9, 249-265, algorithm 3, of K sticks; Jain and Neal 2004, JCGS 13, 158-182; the proposals are those
    of Dahl and Newcomb 2022, J. Stat. Comput. Simul. 92. Clusters exchange their sticks: none is kept by its place.
    """

    def __init__(self, prior: MixturePrior, rows: Arrays, start: MixturePrior, rng: np.random.Generator) -> None:
        super().__init__(prior, rows, start, rng)
        law: GaussianComponents = prior.law
        D, structure = law.columns, law.structure
        self._Y = np.ascontiguousarray(rows[law.column], dtype=np.float64)
        self._kind = 2 - len(structure.shape)
        shape = (D, D) if self._kind == 0 else (D, 1) if self._kind == 1 else (1, 1)
        K = len(prior.weights.alpha)
        self._prior_of_cluster = law.m[0] * 1.0, law.psi[0].reshape(shape) * 1.0
        of_each, matrices = np.empty((3, K + 3)), np.zeros((2, K + 3, *shape))
        by_size = _by_size(law, len(self._Y))
        self._state = of_each[0], np.empty((K + 3, D)), *matrices, *of_each[1:], by_size, np.empty(D)

    def sweep(self, times: int, power: float = 1.0) -> None:
        """Draw the cluster of each row given those of all others, in N sweeps in random order, at power 1."""
        sticks = _sticks(self._prior)
        orders = np.stack([self._rng.permutation(len(self._Y)) for _ in range(times)])
        given = sticks.alpha, sticks.rest, self._prior_of_cluster, self._state, SPLITS
        loops.sweep(self._kind, self._component, orders, self._Y, *given, self._rng)

    def draw(self) -> dict[str, np.ndarray]:
        """Draw the parameters given the clusters."""
        self._params = self._drawn(self._prior.updated(self._stats))
        return self._params


def _sticks(prior: MixturePrior) -> Sticks:
    assert isinstance(prior.weights, Sticks)
    return prior.weights


def _by_size(law: GaussianComponents, rows: int) -> np.ndarray:
    """Return by the size of a cluster, 0..N: kappa, and power and constant of the Student t density of a new row."""
    n, structure = np.arange(rows + 1.0), law.structure
    kappa, nu = law.kappa[0] + n, law.nu[0] + structure.repeat * n
    power = (nu + structure.repeat) / 2
    ratio = structure.blocks * log_rising((nu - structure.block + 1) / 2, (structure.repeat + structure.block - 1) / 2)
    return np.stack([kappa, power, ratio - law.columns / 2 * np.log(np.pi * (kappa + 1) / kappa)])


def require_untied(covariance: str) -> None:
    """Refuse one covariance for all clusters: a cluster must be new by itself."""
    if covariance == "tied":
        raise InputError(
            "a Dirichlet process has no tied covariance", "unknown_method", hint="use full, diagonal or spherical"
        )
