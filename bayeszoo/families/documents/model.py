"""Documents that are each of one topic: densities of their words, q(theta), topics integrated out, and their counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from bayeszoo.distributions import dirichlet
from bayeszoo.distributions.dirichlet import Dirichlet, log_dirichlet_ratio, log_multinomial
from bayeszoo.distributions.discrete import ByVariance
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.families.mixtures.base import MixtureModel, log_count_probability, symmetrized
from bayeszoo.model.base import Values
from bayeszoo.model.capabilities import Observable

_IMPOSSIBLE = -1e300
"""In place of log 0: times a count of 0 it is 0."""


class DocumentMixtureModel(MixtureModel, Observable, family=True):
    """Documents that are each of one topic; a subclass declares it and gives the steps of EM and VB.

    Parameters are ``weights`` (K,) and ``topics`` (K, words); q(theta) is a mapping of both to the concentrations of
    Dirichlet distributions, and of ``eta`` to that of the prior. Densities are of the ordered words.
    """

    eta: Any

    def _eta(self, data: Values) -> np.ndarray:
        return self.entries("eta", len(data["word"]))

    def coords(self, data: Values) -> dict[str, Any]:
        """Return the words, and the numbers of the topics."""
        return {"word": data["word"], "component": np.arange(1, self.K + 1)}

    def log_terms(self, params: Values, data: Values) -> np.ndarray:
        """Return the log of weight times density of the ordered words, of shape (..., documents, K)."""
        return log_terms(data["counts"], params["weights"], params["topics"])

    def moments(self, each: np.ndarray, data: Values) -> dict[str, np.ndarray]:
        """Return expected documents and words of each topic, and the prior of the latter."""
        return {"documents": each.sum(axis=0), "words": each.T @ data["counts"], "eta": self._eta(data)}

    def pooled(self, stats: Any, other: Any) -> dict[str, np.ndarray]:
        """Return the expected documents and words of both parts of the documents, and the prior of the latter."""
        return {**stats, **{name: stats[name] + other[name] for name in ("documents", "words")}}

    def log_prior(self, params: Values, data: Values) -> np.ndarray:
        """Log density of weights and topics; leading axes are draws."""
        of_topics = dirichlet.log_density(params["topics"], self._eta(data)).sum(axis=-1)
        return dirichlet.log_density(params["weights"], np.full(self.K, self.alpha)) + of_topics

    def free_parameters(self, stats: Any) -> int:
        """Return K - 1 weights and K (V - 1) probabilities of words."""
        return self.K - 1 + self.K * (len(stats["word"]) - 1)

    def unbounded(self, data: Values) -> str:
        """Say why the posterior density has no maximum; nothing where it has one."""
        of_words = "eta < 1: it grows without bound as the probability of a word goes to 0"
        return super().unbounded(data) or of_words * bool(np.min(self.eta) < 1)

    def log_coefficient(self, data: Values) -> float:
        """Return the log of how many ordered documents the counts stand for."""
        return float(np.sum(log_multinomial(data["counts"])))

    def expected_log_terms(self, q: Any, data: Values) -> np.ndarray:
        """Return the expected log of weight times density, of shape (documents, K)."""
        return dirichlet.expected_log(q["weights"]) + data["counts"] @ dirichlet.expected_log(q["topics"]).T

    def divergence(self, q: Any) -> float:
        """Return KL(q(theta) || prior)."""
        return dirichlet.divergence(q["weights"], self.alpha) + dirichlet.divergence(q["topics"], q["eta"])

    def vb_posterior(self, q: Any) -> Posterior:
        """Return q(theta): independent Dirichlet distributions."""
        return Posterior.product(*(Dirichlet(q[name]).posterior(name) for name in self.dims))

    def vb_log_density(self, q: Any, params: Values) -> np.ndarray:
        """Log density of q(theta), averaged over the orders of the labels; leading axes are draws."""
        pairwise = dirichlet.log_density(params["topics"][..., None, :, :], q["topics"][:, None])
        return symmetrized(q["weights"], params["weights"], pairwise)

    def log_joint(self, assignments: np.ndarray, data: Values) -> np.ndarray:
        """Return log p(w, z), parameters integrated out, of shape (M,) for assignments of shape (M, documents)."""
        words = np.stack([(assignments == k) @ data["counts"] for k in range(self.K)], axis=1)
        of_words = log_dirichlet_ratio(self._eta(data), words).sum(axis=-1)
        return log_count_probability(assignments, self.K, self.alpha) + of_words

    def likelihood(self, params: Values, data: Values) -> DocumentMixture:
        """Return the distribution of each document's counts; its log mass is that of the ordered words."""
        return DocumentMixture(data["counts"].sum(axis=1), params["weights"], params["topics"])


def log_terms(counts: np.ndarray, weights: Any, topics: Any) -> np.ndarray:
    """Log of weight times density of the ordered words of each document, of shape (..., documents, K).

    Of counts (documents, words), weights (..., K) and topics (..., K, words), whose leading axes are draws; -inf where
    a document has a word that a topic has not.
    """
    topics = np.asarray(topics, dtype=np.float64)
    logs = np.log(topics, out=np.full(topics.shape, _IMPOSSIBLE), where=topics > 0)
    by_words = np.asarray(counts, dtype=np.float64) @ logs.mT
    with np.errstate(divide="ignore"):  # of a weight of 0
        return np.log(np.asarray(weights))[..., None, :] + np.where(by_words > _IMPOSSIBLE / 2, by_words, -np.inf)


class DocumentMixture(ByVariance):
    """Counts of documents of known length (documents,), each of one topic which is not known.

    Weights (..., K) and topics (..., K, words) have draws as leading axes; with SciPy's methods.
    """

    def __init__(self, lengths: Any, weights: Any, topics: Any) -> None:
        self._lengths = np.asarray(lengths)
        self._weights = np.asarray(weights, dtype=np.float64)
        self._topics = np.asarray(topics, dtype=np.float64)

    def _average(self, values: np.ndarray) -> np.ndarray:
        """Average over topics what has shape (..., documents, K, words)."""
        return np.sum(self._weights[..., None, :, None] * values, axis=-2)

    def _means(self) -> np.ndarray:
        return self._lengths[:, None, None] * self._topics[..., None, :, :]

    def mean(self) -> np.ndarray:
        """Return the mean count of each word, of shape (..., documents, words)."""
        return self._average(self._means())

    def var(self) -> np.ndarray:
        """Return the variance of each count, of shape (..., documents, words)."""
        means = self._means()
        within = means * (1 - self._topics[..., None, :, :])
        return np.maximum(self._average(within + means**2) - self.mean() ** 2, 0.0)

    def cdf(self, counts: Any) -> np.ndarray:
        """Probability of at most so many of each word, of shape (..., documents, words)."""
        counts = np.asarray(counts)[..., None, :]
        below = scipy.stats.binom.cdf(counts, self._lengths[:, None, None], self._topics[..., None, :, :])
        return self._average(below)

    def ppf(self, q: float) -> np.ndarray:
        """Return the quantile of each count, of shape (..., documents, words), by bisection."""
        shape = np.broadcast_shapes(self.mean().shape)
        low, high = np.full(shape, -1), np.broadcast_to(self._lengths[:, None], shape).copy()
        while np.any(high - low > 1):
            middle = (low + high) // 2
            enough = self.cdf(middle) >= q
            high, low = np.where(enough, middle, high), np.where(enough, low, middle)
        return high.astype(np.float64)

    def logpmf(self, counts: Any) -> np.ndarray:
        """Log density of the ordered words of each document, of shape (..., documents)."""
        return np.logaddexp.reduce(log_terms(np.asarray(counts), self._weights, self._topics), axis=-1)

    def rvs(self, size: tuple[int, ...], random_state: Any = None) -> np.ndarray:
        """Draw counts of shape ``size``, which ends in (documents, words)."""
        rng = np.random.default_rng(random_state)
        steps = np.cumsum(self._weights, axis=-1)[..., None, :]
        topic = np.minimum(np.sum(rng.random(size[:-1])[..., None] >= steps, axis=-1), self._weights.shape[-1] - 1)
        topics = np.broadcast_to(self._topics[..., None, :, :], (*size[:-1], *self._topics.shape[-2:]))
        p = np.take_along_axis(topics, topic[..., None, None], axis=-2)[..., 0, :]
        return rng.multinomial(self._lengths, p, size=size[:-1])
