"""Steps shared by all mixtures: responsibilities, weights, and quantities that do not depend on labels."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import lazy_loader
import numpy as np
import scipy

from bayeszoo.distributions.conjugate.categorical import Categorical
from bayeszoo.distributions.conjugate.law import Block
from bayeszoo.distributions.conjugate.mixture import MixturePrior
from bayeszoo.distributions.conjugate.product import Expected, Factors
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.distributions.special import log_rising
from bayeszoo.distributions.statistics.counts import Counts
from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.errors import InputError
from bayeszoo.families.mixtures.gibbs import MixtureChain
from bayeszoo.families.statistics.assignments import log_evidence_of
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.model.capabilities import EM, Enumerable, Gibbs, Latent, Symmetric
from bayeszoo.model.capabilities.conjugate import ConjugateSteps
from bayeszoo.model.capabilities.steps import Expectation

loops = lazy_loader.load("bayeszoo.likelihoods.loops.permanents", suppress_warning=True)


MOST_AVERAGED = 10
"""Most components for which a density is averaged over the orders of their labels."""


class HiddenComponents(EM, Latent, Symmetric, family=True):
    """Rows that each belong to one of K components, which are summed out; labels are exchangeable by default.

    A subclass gives `log_terms`, the statistics that its M-step needs, and if there is no parameter ``weights`` (K,)
    the `shares` of the components.
    """

    @abstractmethod
    def log_terms(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the log of weight times density, of shape (..., rows, K); leading axes of the parameters are draws."""

    @abstractmethod
    def expected_statistics(self, r: np.ndarray, data: Arrays) -> Any:
        """Return the expected statistics under responsibilities ``r``, of shape (rows, K)."""

    def shares(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the mean weight of each component over the rows, (..., K)."""
        return np.asarray(params["weights"])

    def seeds(self, data: Arrays, rng: np.random.Generator) -> np.ndarray:
        """Return random responsibilities to start from: each row mostly in one component."""
        return rng.dirichlet(np.full(self.K, 0.5), self.inputs.size(data))

    def start(self, data: Arrays, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Return random parameters to climb from."""
        self.require_rows(data)
        return self.m_step(self.expected_statistics(self.seeds(data, rng), data))

    def e_step(self, params: Params, data: Arrays) -> Expectation:
        """Return expected statistics and the log likelihood at the parameters."""
        r, log_total = responsibilities(self.log_terms(params, data))
        return Expectation(self.expected_statistics(r, data), math.fsum(log_total))

    def log_rows(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the log likelihood of each row, which does not depend on labels: distinct maxima differ in it."""
        return responsibilities(self.log_terms(params, data))[1]

    def log_likelihoods(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the log likelihood at each draw."""
        return np.asarray(self.log_rows(params, data).sum(axis=-1))

    def component_probabilities(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the probability of each component for each row, (..., rows, K); NaN for impossible rows."""
        r, log_total = responsibilities(self.log_terms(params, data))
        return np.where(np.isneginf(log_total)[..., None], np.nan, r)

    def exchangeable_axis(self) -> str | None:
        """Return the exchangeable axis, or None with one component."""
        return "component" if self.K > 1 else None

    def invariants(self, params: Params, data: Arrays) -> dict[str, np.ndarray]:
        """Return quantities that do not depend on the labels; leading axes are draws."""
        return label_free(self.log_terms(params, data), self.shares(params, data))

    def require_rows(self, data: Arrays) -> None:
        """Refuse more components than rows."""
        if (rows := self.inputs.size(data)) < self.K:
            raise InputError(
                f"K={self.K} components but only {rows} row{'s' * (rows != 1)}", "too_few_rows", hint="use a smaller K"
            )


class MixtureModel(HiddenComponents, ConjugateSteps[MixturePrior], Enumerable, Gibbs, family=True):
    """A mixture of K components with weights ~ Dirichlet(alpha); with one number alpha labels are exchangeable.

    A subclass gives the conjugate law of a row in each component. Parameters are ``weights`` (K,) and those of the law.
    """

    alpha: float
    gibbs_options: ClassVar[Mapping[str, int]] = {"tune": 500, "thin": 2}

    @abstractmethod
    def component_law(self, data: Arrays) -> Block[Any]:
        """Return the law of a row in each of K components, with its conjugate prior."""

    def new_prior(self, data: Arrays) -> MixturePrior:
        """Return the prior of all parameters."""
        weights = Categorical(("weights",), "component", self.entries("alpha", self.K))
        return MixturePrior((weights, self.component_law(data)))

    def log_terms(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the log of weight times density, of shape (..., rows, K); leading axes of the parameters are draws."""
        return self.prior(data).log_terms(params, data)

    def expected_statistics(self, r: np.ndarray, data: Arrays) -> Expected[MixturePrior]:
        """Return the expected statistics under responsibilities ``r``, of shape (rows, K)."""
        return self.prior(data).moments(r, data)

    def vb_log_density(self, q: Factors[MixturePrior], params: Params) -> np.ndarray:
        """Log density of q(theta), averaged over the orders of exchangeable labels; leading axes are draws."""
        if self.exchangeable_axis() is None:
            return np.asarray(q.q.logpdf(params))
        return symmetrized(q.q.weights, params, q.q.law.log_pairs(params))

    def log_joint(self, assignments: np.ndarray, data: Arrays) -> np.ndarray:
        """Return log p(y, z), parameters integrated out, of shape (M,) for assignments of shape (M, rows)."""
        prior = self.prior(data)
        counts = np.stack([np.sum(assignments == k, axis=1) for k in range(self.K)], axis=1)
        return prior.weights.log_evidence(Counts(counts)) + log_evidence_of(prior.law, data, assignments)

    def vb_start(self, data: Arrays, rng: np.random.Generator) -> Factors:
        """Return a random q(theta) to climb from; half of them leave components empty, whose q is the prior."""
        self.require_rows(data)
        r = self.seeds(data, rng)
        for _ in range(rng.integers(0, self.K) if rng.random() < 0.5 else 0):
            j, k = rng.choice(self.K, 2, replace=False)
            r[:, j], r[:, k] = r[:, j] + r[:, k], 0.0
        return self.vb_m_step(self.expected_statistics(r, data))

    def gibbs(self, data: Arrays, rng: np.random.Generator) -> MixtureChain:
        """Return a chain over the components of the rows and the parameters, with a start of variational Bayes."""
        return MixtureChain(self.prior(data), data, self.vb_start(data, rng).q, rng)

    def alone(self, data: Arrays) -> Expected[MixturePrior] | None:
        """Return the statistics of all rows if there is one component, else None."""
        return self.expected_statistics(np.ones((self.inputs.size(data), 1)), data) if self.K == 1 else None

    def posterior_given(self, assignment: np.ndarray, data: Arrays) -> Posterior:
        """Return the posterior of the parameters given the component of each row."""
        return self.vb_posterior(self.vb_m_step(self.expected_statistics(np.eye(self.K)[assignment], data)))

    @property
    def has_few_orders(self) -> bool:
        """Whether the average over orders of labels, a sum over 2**K sets of labels, is short enough to compute."""
        return self.K <= MOST_AVERAGED or self.exchangeable_axis() is None

    def resampled(self, params: Params, data: Arrays, count: float, rng: np.random.Generator) -> Factors[MixturePrior]:
        """Draw a component for each row at one point; return the posterior given them, each row counted N times."""
        ends = np.cumsum(self.component_probabilities(params, data), axis=-1)[:, :-1]
        z = np.sum(rng.random(len(ends))[:, None] > ends, axis=-1)
        return self.vb_m_step(self.expected_statistics(count * np.eye(self.K)[z], data))

    def occupied(self, q: Factors[MixturePrior]) -> int:
        """Return the number of components with an expected number of rows of at least one under q(z)."""
        return int(np.sum(q.q.weights.alpha - self.alpha >= 1))

    def vb_e_step(self, q: Factors, data: Arrays) -> Expectation:
        """Return expected statistics under the best q(z), and the sum of its log normalizers."""
        r, log_normalizer = responsibilities(q.q.expected_log_terms(data))
        return Expectation(q.prior.moments(r, data), math.fsum(log_normalizer))

    def vb_row_terms(self, q: Factors, data: Arrays) -> np.ndarray:
        """Return the log normalizer of each row under q(theta), by which optima of the ELBO differ, (rows,)."""
        return responsibilities(q.q.expected_log_terms(data))[1]

    def unbounded(self, data: Arrays) -> str:
        """Return the reason why the posterior density has no maximum; empty if it has one."""
        if np.min(self.alpha) < 1 and self.K > 1:
            return "alpha < 1: it grows without bound as a weight goes to 0"
        return self.component_law(data).unbounded


def responsibilities(log_terms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the probability of each component for each row (..., rows, K), and the log normalizers (..., rows).

    ``log_terms`` (..., rows, K) are log weight times density, or its expectation in variational Bayes. If no component
    is possible, the probabilities are equal and the log normalizer is -inf.
    """
    log_total = np.logaddexp.reduce(log_terms, axis=-1)
    possible = np.isfinite(log_total)[..., None]
    finite_terms = np.where(possible, log_terms, 0.0)
    return np.exp(finite_terms - np.where(possible, log_total[..., None], math.log(finite_terms.shape[-1]))), log_total


def log_permanent(log_terms: np.ndarray) -> np.ndarray:
    """Return the log permanent of exp(log_terms), (..., K, K): the sum over permutations of products of entries."""
    flat = np.ascontiguousarray(log_terms, dtype=np.float64).reshape(-1, *log_terms.shape[-2:])
    return np.asarray(loops.log_permanents(flat)).reshape(log_terms.shape[:-2])


def symmetrized(weights: Categorical, params: Params, log_pairs: np.ndarray) -> np.ndarray:
    """Return the log density of weights (..., K) and components, averaged over the orders of the labels.

    ``log_pairs[..., j, k]`` is the log density of the parameters with label k under component j.
    """
    orders = float(log_rising(1.0, log_pairs.shape[-1]))
    return log_permanent(weights.log_entries(params) + log_pairs) - orders


def clusters(Y: np.ndarray, K: int, rng: np.random.Generator) -> np.ndarray:
    """Choose K of the rows (N, D) far from each other; return the nearest of them for each row, (N,).

    No cluster is empty. SciPy's k-means++ (Arthur and Vassilvitskii 2007), with columns in their standard deviations.
    """
    stats = Moments.of(Y)
    with warnings.catch_warnings(), np.errstate(invalid="ignore"):
        warnings.simplefilter("ignore")  # equal rows leave clusters empty, which are filled below
        _, nearest = scipy.cluster.vq.kmeans2((Y - stats.mean) / stats.sd, K, iter=1, minit="++", rng=rng)
    for k in np.flatnonzero(np.bincount(nearest, minlength=K) == 0):
        largest = np.argmax(np.bincount(nearest))
        nearest[np.flatnonzero(nearest == largest)[-1]] = k
    return nearest


def spread_out(size: int, most: int) -> np.ndarray:
    """Return at most ``most`` indices below ``size``, evenly spread."""
    return np.unique(np.linspace(0, size - 1, min(most, size)).round().astype(np.int64))


def label_free(log_terms: np.ndarray, weights: np.ndarray) -> dict[str, np.ndarray]:
    """Return quantities that do not depend on the labels, from log terms (..., rows, K) and weights (..., K).

    ``sorted_weights`` (..., K), ``log_likelihood`` (...), ``log_density`` (..., up to 10 rows) and ``together``
    (..., up to 20 pairs of rows): the probability that both rows are in the same component.
    """
    r, log_total = responsibilities(log_terms)
    rows = log_total.shape[-1]
    left = spread_out(rows, 20)
    right = (left + max(1, rows // 2)) % rows
    return {
        "sorted_weights": np.sort(weights, axis=-1),
        "log_likelihood": log_total.sum(axis=-1),
        "log_density": log_total[..., spread_out(rows, 10)],
        "together": np.sum(r[..., left, :] * r[..., right, :], axis=-1),
    }
