"""Documents with one topic each: densities of their words, q(theta), topics integrated out, and their counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from bayeszoo.distributions.bases import ByVariance
from bayeszoo.distributions.conjugate.categorical import Categorical
from bayeszoo.distributions.conjugate.dirichlet import log_multinomial
from bayeszoo.families.mixtures.base import MixtureModel
from bayeszoo.foundation.named import Arrays, Coords, Params, RandomState
from bayeszoo.model.capabilities import Observable


class DocumentMixtureModel(MixtureModel, Observable, family=True):
    """Documents with one topic each; a subclass declares the model and gives the steps of EM and VB.

    Parameters are ``weights`` (K,) and ``topics`` (K, words). Densities are of the ordered words.
    """

    eta: Any

    def component_law(self, data: Arrays) -> Categorical:
        """Return the law of the words of a document in each topic, with a Dirichlet prior."""
        return Categorical(("topics",), "counts", self.entries("eta", (self.K, len(data["word"]))))

    def coords(self, data: Arrays) -> Coords:
        """Return the words, and the numbers of the topics."""
        return {"word": data["word"], "component": np.arange(1, self.K + 1)}

    def unbounded(self, data: Arrays) -> str:
        """Return the reason why the posterior density has no maximum; empty if it has one."""
        of_words = "eta < 1: it grows without bound as the probability of a word goes to 0"
        return of_words if (why := super().unbounded(data)) and np.min(self.eta) < 1 <= self.alpha else why

    def log_coefficient(self, data: Arrays) -> float:
        """Return the log of the number of ordered documents with these counts."""
        return float(np.sum(log_multinomial(data["counts"])))

    def likelihood(self, params: Params, data: Arrays) -> DocumentMixture:
        """Return the distribution of each document's counts; its log mass is that of the ordered words."""
        return DocumentMixture(data["counts"].sum(axis=1), params["weights"], params["topics"])


class DocumentMixture(ByVariance):
    """The distribution of word counts in documents of known lengths (documents,), each of one unknown topic.

    Weights (..., K) and topics (..., K, words) may have leading axes of draws. Methods are named as in SciPy.
    """

    def __init__(self, lengths: object, weights: npt.ArrayLike, topics: npt.ArrayLike) -> None:
        self._lengths = np.asarray(lengths)
        self._weights = np.asarray(weights, dtype=np.float64)
        self._topics = np.asarray(topics, dtype=np.float64)

    def _average(self, values: np.ndarray) -> np.ndarray:
        """Average values (..., documents, K, words) over topics."""
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

    def cdf(self, counts: npt.ArrayLike) -> np.ndarray:
        """Probability of at most these counts of each word, of shape (..., documents, words)."""
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

    def logpmf(self, counts: npt.ArrayLike) -> np.ndarray:
        """Log density of the ordered words of each document, of shape (..., documents)."""
        law = Categorical(("topics",), "counts", np.ones(self._topics.shape[-2:]))
        with np.errstate(divide="ignore"):  # of a weight of 0
            log_weights = np.log(self._weights)[..., None, :]
        terms = log_weights + law.log_density({"topics": self._topics}, {"counts": np.asarray(counts)})
        return np.logaddexp.reduce(terms, axis=-1)

    def rvs(self, size: tuple[int, ...], random_state: RandomState = None) -> np.ndarray:
        """Draw counts of shape ``size``, which ends in (documents, words)."""
        rng = np.random.default_rng(random_state)
        steps = np.cumsum(self._weights, axis=-1)[..., None, :]
        topic = np.minimum(np.sum(rng.random(size[:-1])[..., None] >= steps, axis=-1), self._weights.shape[-1] - 1)
        topics = np.broadcast_to(self._topics[..., None, :, :], (*size[:-1], *self._topics.shape[-2:]))
        p = np.take_along_axis(topics, topic[..., None, None], axis=-2)[..., 0, :]
        return rng.multinomial(self._lengths, p, size=size[:-1])
