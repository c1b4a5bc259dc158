"""Dirichlet process mixtures of Gaussian clusters, truncated at K sticks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import lazy_loader
import numpy as np

from bayeszoo.distributions.conjugate.mixture import MixturePrior
from bayeszoo.distributions.conjugate.product import Factors
from bayeszoo.distributions.special import log_rising
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.families.mixtures.gaussian import GaussianMixtureModel
from bayeszoo.families.mixtures.gaussian_components import GaussianComponents
from bayeszoo.families.mixtures.gibbs import IN_TURN, MixtureChain
from bayeszoo.families.mixtures.sticks import Sticks
from bayeszoo.families.statistics.assignments import log_evidence_of
from bayeszoo.foundation.named import Arrays, Params, Statistics
from bayeszoo.model.capabilities import Collapsed
from bayeszoo.model.views import View

loops = lazy_loader.load("bayeszoo.likelihoods.loops.dirichlet_process", suppress_warning=True)

MAX_ERROR = 1e-3
"""Largest truncation error with the number of sticks that `weak` chooses."""
SPLITS = 3
"""Proposals of splits and merges per sweep."""


def truncation_error(alpha: float, sticks: int, rows: int) -> float:
    """Return a bound of the L1 distance between the law of N rows and that of the full process, at most 2.

    The distance is at most 4 (1 - E[(1 - R)^N]) (Ishwaran and James 2001, theorem 2), where R is the stick left after
    K - 1 breaks, and so at most 4 N E[R]. Their 4 N exp(-(K - 1) / alpha) uses the median of R instead of its mean,
    which is larger.
    """
    return min(2.0, 4 * rows * math.exp(-(sticks - 1) * math.log1p(1 / alpha)))


def sticks_for(alpha: float, rows: int) -> int:
    """Return the number of sticks for a truncation error below a thousandth with N rows."""
    return 2 + math.floor(math.log(4 * max(rows, 1) / MAX_ERROR) / math.log1p(1 / alpha))


class DirichletProcessMixture(GaussianMixtureModel, Collapsed, family=True):
    """Gaussian clusters with stick-breaking weights, truncated to the first K of infinitely many.

    The stick of a cluster has no meaning; densities, the number of clusters and co-clustering of rows have.
    """

    is_annealed, usual_method = False, "gibbs"
    unread = "clusters of a Dirichlet process have no labels; `bayeszoo clusters` says what is known"
    prior_orders_labels = True
    gibbs_options: ClassVar[Mapping[str, int]] = {"tune": 500, "thin": 20}

    def views(self) -> frozenset[View]:
        """Return views of the number of clusters and of co-clustering instead of components without labels."""
        return super().views() - {View.COMPONENTS} | {View.CLUSTERS}

    def new_prior(self, data: Arrays) -> MixturePrior:
        """Return the prior of all parameters."""
        return MixturePrior((Sticks.of(self.alpha, self.K), self.component_law(data)))

    def seeds(self, data: Arrays, rng: np.random.Generator) -> np.ndarray:
        """Return responsibilities to start from, with the largest cluster on the first stick."""
        r = super().seeds(data, rng)
        return r[:, np.argsort(-r.sum(axis=0), kind="stable")]

    def start(self, data: Arrays, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Refuse to climb: the likelihood of a Dirichlet process has no maximum."""
        raise NumericalError(
            "the likelihood of infinitely many clusters has no maximum, as each row may be one: use gaussian_mixture "
            "with some K, or --method gibbs",
            "no_maximum",
        )

    def unbounded(self, data: Arrays) -> str:
        """Return the reason why the posterior density of the weights has no maximum."""
        return self.prior(data).weights.unbounded

    def require_rows(self, data: Arrays) -> None:
        """Accept any number of rows: most sticks may be empty."""

    def vb_log_density(self, q: Factors[MixturePrior], params: Params) -> np.ndarray:
        """Log density of q(theta); sticks are not exchangeable."""
        return np.asarray(q.q.logpdf(params))

    def vb_log_densities(self, qs: Any, params: Params) -> np.ndarray:
        """Return `vb_log_density` of each of several q(theta), (Q, draws)."""
        return np.array([self.vb_log_density(q, params) for q in qs])

    def vb_coordinates(self, data: Arrays) -> None:
        """Return None: climbs take plain steps."""
        return

    def occupied(self, q: Factors[MixturePrior]) -> int:
        """Return the number of sticks with an expected number of rows of at least one under q(z)."""
        rows = q.q.weights.alpha - q.prior.weights.alpha
        return int(np.sum(rows >= 1))

    def log_partitions(self, partitions: np.ndarray, data: Arrays) -> np.ndarray:
        """Return log p(y, partition), summed over the sticks of its clusters, (M,)."""
        prior = self.prior(data)
        sticks = _sticks(prior)
        return log_partitions(prior.law, partitions, data, lambda sizes: sticks.labels(sizes).log_probability)

    def with_labels(self, partition: np.ndarray, data: Arrays, rng: np.random.Generator) -> np.ndarray:
        """Draw the stick of each cluster of a partition."""
        sizes, cluster = by_size(partition)
        return _sticks(self.prior(data)).labels(sizes).draw(rng)[cluster]

    def gibbs(self, data: Arrays, rng: np.random.Generator) -> SplitMergeChain:
        """Return a chain over the clusters of the rows, parameters integrated out."""
        return SplitMergeChain(self.prior(data), data, self.vb_start(data, rng).q, rng)

    def remarks(self, stats: Statistics, data: Arrays) -> tuple[str, ...]:
        """State the truncation error, and that the number of clusters estimates no true number."""
        error, enough = truncation_error(self.alpha, self.K, rows := len(data["Y"])), sticks_for(self.alpha, rows)
        truncation = f"{self.K} sticks stand for infinitely many: the law of the rows is off by at most {error:.1g}"
        if error > MAX_ERROR:
            truncation += f"; --set K={enough} takes it below {MAX_ERROR:g}"
        return (truncation, "the number of clusters grows with the rows: it estimates no true number of groups")


class SplitMergeChain(MixtureChain):
    """Collapsed Gibbs sampling of clusters, with splits and merges; parameters are drawn when a draw is kept.

    Neal 2000, JCGS 9, 249-265, algorithm 3, with K sticks; Jain and Neal 2004, JCGS 13, 158-182; proposals of Dahl and
    Newcomb 2022, J. Stat. Comput. Simul. 92. Clusters also exchange their sticks, so that none is stuck on a stick.
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
        of_clusters, matrices = np.empty((3, K + 3)), np.zeros((2, K + 3, *shape))
        by_size = _by_size(law, len(self._Y))
        self._state = of_clusters[0], np.empty((K + 3, D)), *matrices, *of_clusters[1:], by_size, np.empty(D)

    def sweep(self, times: int, power: float = 1.0) -> None:
        """Draw the cluster of each row given those of all others, in N sweeps in random order, at power 1."""
        sticks = _sticks(self._prior)
        orders = np.stack([self._rng.permutation(len(self._Y)) for _ in range(times)])
        arguments = sticks.alpha, sticks.rest, self._prior_of_cluster, self._state, SPLITS
        loops.sweep(self._kind, self._component, orders, self._Y, *arguments, self._rng)

    def draw(self) -> dict[str, np.ndarray]:
        """Draw the parameters given the clusters."""
        with IN_TURN:
            self._draw_parameters()
        return self._params


def by_size(partition: np.ndarray) -> tuple[tuple[int, ...], np.ndarray]:
    """Return the sizes of the clusters, largest first, and the place in them of each row's cluster, (rows,)."""
    sizes = np.bincount(partition)
    order = np.argsort(-sizes, kind="stable")
    return tuple(sizes[order].tolist()), np.argsort(order)[partition]


def log_partitions(
    law: GaussianComponents, partitions: np.ndarray, data: Arrays, log_sizes: Callable[[tuple[int, ...]], float]
) -> np.ndarray:
    """Return log p(y, partition), (M,), from the log probability of clusters of given sizes, largest first."""
    most = int(partitions.max(initial=-1)) + 1
    distinct, index = distinct_sizes(partitions)
    of_sizes = np.array([log_sizes(sizes) for sizes in distinct])
    return of_sizes[index] + log_evidence_of(law[:most], data, partitions)


def distinct_sizes(partitions: np.ndarray) -> tuple[list[tuple[int, ...]], np.ndarray]:
    """Return the distinct sizes of clusters, largest first, and the index of each partition's sizes, (M,)."""
    counts = [np.sum(partitions == k, axis=1) for k in range(int(partitions.max(initial=-1)) + 1)]
    sizes = np.sort(np.reshape(counts, (-1, len(partitions))).T, axis=1)[:, ::-1]
    distinct, index = np.unique(sizes, axis=0, return_inverse=True)
    return [tuple(row[row > 0].tolist()) for row in distinct], index.ravel()


def _sticks(prior: MixturePrior) -> Sticks:
    assert isinstance(prior.weights, Sticks)
    return prior.weights


def _by_size(law: GaussianComponents, rows: int) -> np.ndarray:
    """Return kappa, and power and constant of the Student t density of a new row, by cluster size 0..N, (3, N + 1)."""
    n, structure = np.arange(rows + 1.0), law.structure
    kappa, nu = law.kappa[0] + n, law.nu[0] + structure.repeat * n
    power = (nu + structure.repeat) / 2
    ratio = structure.blocks * log_rising((nu - structure.block + 1) / 2, (structure.repeat + structure.block - 1) / 2)
    return np.stack([kappa, power, ratio - law.columns / 2 * np.log(np.pi * (kappa + 1) / kappa)])


def require_untied(covariance: str) -> None:
    """Refuse one covariance for all clusters: a new cluster needs its own."""
    if covariance == "tied":
        raise InputError(
            "a Dirichlet process has no tied covariance", "unknown_method", hint="use full, diagonal or spherical"
        )
