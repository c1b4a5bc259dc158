"""Documents that are each of one topic: densities of their ordered words, and the distribution of their counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

_IMPOSSIBLE = -1e300
"""In place of log 0: times a count of 0 it is 0."""


def log_words(counts: np.ndarray, topics: Any) -> np.ndarray:
    """Log density of the ordered words of each document under each topic.

    Parameters
    ----------
    counts : ndarray of shape (documents, words)
        How often each word occurs in each.
    topics : array_like
        Shape (..., K, words): the probability of each word; leading axes are draws.

    Returns
    -------
    ndarray
        Shape (..., documents, K); -inf where a document has a word that a topic has not.
    """
    topics = np.asarray(topics, dtype=np.float64)
    logs = np.log(topics, out=np.full(topics.shape, _IMPOSSIBLE), where=topics > 0)
    found = np.asarray(counts, dtype=np.float64) @ logs.mT
    return np.where(found > _IMPOSSIBLE / 2, found, -np.inf)


def log_terms(counts: np.ndarray, weights: Any, topics: Any) -> np.ndarray:
    """Log of weight times density, of shape (..., documents, K)."""
    with np.errstate(divide="ignore"):  # of a weight of 0
        return np.log(np.asarray(weights))[..., None, :] + log_words(counts, topics)


def words_by_topic(assignments: np.ndarray, counts: np.ndarray, K: int) -> np.ndarray:
    """Return how often each word occurs in the documents of each topic.

    Parameters
    ----------
    assignments : ndarray of int, shape (M, documents)
    counts : ndarray of shape (documents, words)
    K : int

    Returns
    -------
    ndarray of shape (M, K, words)
    """
    return np.stack([(assignments == k) @ counts for k in range(K)], axis=1)


class DocumentMixture:
    """Counts of documents of known length, each of one topic which is not known.

    Parameters
    ----------
    lengths : array_like of int
        Shape (documents,).
    weights, topics : array_like
        Shapes (..., K) and (..., K, words); leading axes are draws.
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

    def std(self) -> np.ndarray:
        """Return the standard deviation of each count, of shape (..., documents, words)."""
        return np.sqrt(self.var())

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
