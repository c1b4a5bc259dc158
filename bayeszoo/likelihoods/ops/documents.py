"""Marginal log likelihood of documents of one topic each, as one PyTensor operation, which has its gradient as well.

Documents are their non-zero cells: their counts, the columns of their words, and where each document starts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from bayeszoo.likelihoods.loops import documents as document_loops
from bayeszoo.likelihoods.loops.documents import DocumentSums, document_e_step, document_statistics
from bayeszoo.likelihoods.ops.operation import LogDensity

__all__ = ["DocumentSums", "MultinomialMixtureLikelihood", "document_e_step", "multinomial_mixture_log_likelihood"]


def _by_loops(weights: Any, topics: Any, counts: Any, columns: Any, starts: Any) -> Any:
    """Return value and gradients from the expected counts, which are divided by the probabilities; 0 / 0 is 0."""
    value, documents, words = document_statistics(weights, topics, counts, columns, starts)
    K, V = topics.shape
    of_weights, of_topics = np.zeros(K), np.zeros((K, V))
    for k in range(K):
        of_weights[k] = documents[k] / weights[k] if weights[k] != 0.0 else 0.0
        for v in range(V):
            of_topics[k, v] = words[v, k] / topics[k, v] if topics[k, v] != 0.0 else 0.0
    return np.asarray(value), of_weights, of_topics


def _by_responsibilities(weights: Any, topics: Any, counts: Any, columns: Any, starts: Any) -> list[np.ndarray]:
    """Return value and gradients from the matrix of responsibilities, (N, K)."""
    table = scipy.sparse.csr_array((counts, columns, starts), shape=(len(starts) - 1, topics.shape[1]))
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(topics == 0, 0.0, np.log(topics))
        impossible = (table != 0).astype(np.float64) @ (topics.T == 0) > 0
        joint = np.where(impossible, -np.inf, np.log(weights) + table @ logs.T)
        rows = scipy.special.logsumexp(joint, axis=1)
        r = np.exp(joint - np.where(np.isneginf(rows), 0.0, rows)[:, None])
        of_weights = np.where(weights == 0, 0.0, r.sum(axis=0) / weights)
        of_topics = np.where(topics == 0, 0.0, (table.T @ r).T / topics)
    return [np.asarray(rows.sum()), of_weights, of_topics]


class MultinomialMixtureLikelihood(LogDensity):
    """Weights (K,), topics (K, V) and the cells of documents to log likelihood, and its two gradients."""

    parameters = (1, 2)
    data = ((1, "float64"), (1, "int64"), (1, "int64"))
    sources = (document_loops,)
    loops, by_numpy = staticmethod(_by_loops), staticmethod(_by_responsibilities)


def multinomial_mixture_log_likelihood(weights: Any, topics: Any, cells: Any) -> Any:
    """Return the log density of documents as ordered words, their topics summed out, as a PyTensor scalar.

    Parameters
    ----------
    weights : variable of shape (K,)
        Of the topics, >= 0; not divided by their sum.
    topics : variable of shape (K, V)
        Probability of each word in each topic.
    cells : tuple of variables
        Counts (cells,), columns (cells,) and starts (N + 1,): ``data``, ``indices`` and ``indptr`` of SciPy's CSR, as
        ``pm.Data``; they have no gradient.

    Notes
    -----
    The sum over documents of logsumexp_k(log w_k + sum_v C_nv log topics_kv); multinomial coefficients are not in it. A
    word that a topic cannot give makes the topic impossible, and if all are the value is -inf, never NaN. Where a
    weight or a probability is exactly 0 the derivative is given as 0: in softmax coordinates it is. Second derivatives
    raise NotImplementedError.
    """
    return MultinomialMixtureLikelihood()(weights, topics, *cells)[0]
