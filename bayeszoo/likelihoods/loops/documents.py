"""One pass over the non-zero cells of documents, each of one topic: log likelihood and expected statistics. Numba.

No PyTensor here. Cost O(cells x K); nothing of size documents x K or documents x words is held. Every function that a
compiled one calls is in this file, because numba's cache of compiled code looks at the time of one file.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba
import numpy as np

from bayeszoo.errors import NumericalError

# Sums may be taken in any order; NaN and infinity keep their meaning, which is that a point is to be rejected.
_loops = numba.njit(cache=True, nogil=True, error_model="numpy")


@_loops
def _logarithms(weights: np.ndarray, topics: np.ndarray) -> Any:
    """Return log weights, and log topics with the words first, as they are read."""
    K, V = topics.shape
    log_weights, log_topics = np.empty(K), np.empty((V, K))
    for k in range(K):
        log_weights[k] = math.log(weights[k])
        for v in range(V):
            log_topics[v, k] = math.log(topics[k, v])
    return log_weights, log_topics


@_loops
def _responsibilities(joint: np.ndarray) -> float:
    """Replace log w_k p(document | k) by responsibilities, all 0 where none can give it; return their log sum."""
    largest, total = joint[0], 0.0
    for k in range(1, len(joint)):
        largest = joint[k] if joint[k] > largest else largest
    if largest == -np.inf:
        largest = 0.0
    for k in range(len(joint)):
        joint[k] = math.exp(joint[k] - largest)
        total += joint[k]
    for k in range(len(joint)):
        joint[k] = joint[k] / total if total != 0.0 else 0.0
    return largest + math.log(total)


@_loops
def _add(to: np.ndarray, times: float, what: np.ndarray) -> None:
    """Add a multiple of one array to another."""
    for k in range(len(to)):
        to[k] += times * what[k]


@_loops
def document_statistics(weights: Any, topics: Any, counts: Any, columns: Any, starts: Any) -> Any:
    """Return log likelihood, expected documents (K,) and expected words (V, K).

    The log likelihood is NaN where a cell belongs to no word, or the starts are not those of the cells.
    """
    K, V = topics.shape
    if weights.shape != (K,) or counts.shape != columns.shape:
        raise ValueError("weights and topics differ in K, or counts and columns in length")
    log_weights, log_topics = _logarithms(weights, topics)
    documents, words, joint, value = np.zeros(K), np.zeros((V, K)), np.empty(K), 0.0
    for n in range(len(starts) - 1):
        if not 0 <= starts[n] <= starts[n + 1] <= len(columns):
            return np.nan, documents, words
        for k in range(K):
            joint[k] = log_weights[k]
        for cell in range(starts[n], starts[n + 1]):
            word, count = columns[cell], counts[cell]
            if not 0 <= word < V:
                return np.nan, documents, words
            if count != 0.0:  # 0 times log 0 is 0
                _add(joint, count, log_topics[word])
        value += _responsibilities(joint)
        for k in range(K):
            documents[k] += joint[k]
        for cell in range(starts[n], starts[n + 1]):
            _add(words[columns[cell]], counts[cell], joint)
    return value, documents, words


class DocumentSums(NamedTuple):
    """Expected sufficient statistics of documents of one topic each.

    Attributes
    ----------
    value : float
        Log likelihood of the documents as ordered words.
    counts : ndarray of shape (K,)
        Expected number of documents of each topic.
    words : ndarray of shape (K, V)
        Expected number of times that each word comes from each topic.
    """

    value: float
    counts: np.ndarray
    words: np.ndarray


def document_e_step(weights: Any, topics: Any, cells: Any) -> DocumentSums:
    """Return log likelihood and expected statistics of documents of one topic each, in one pass over their cells.

    Parameters
    ----------
    weights : array_like of shape (K,)
        >= 0. Neither their sum nor that of a topic need be 1: variational Bayes passes exp(E[log w]) in.
    topics : array_like of shape (K, V)
        Probability of each word in each topic.
    cells : tuple of array_like
        Counts (cells,), columns (cells,) and starts (N + 1,): ``data``, ``indices`` and ``indptr`` of SciPy's CSR.

    Raises
    ------
    ValueError
        When shapes do not agree.
    NumericalError
        When the log likelihood is NaN: cells are not of a table of V words, or a number is negative or not finite.

    Notes
    -----
    A document that no topic can give makes the log likelihood -inf, and is in no count.
    """
    weights, topics = (np.ascontiguousarray(a, dtype=np.float64) for a in (weights, topics))
    kinds = zip(cells, (np.float64, np.int64, np.int64), strict=True)
    arrays = (np.ascontiguousarray(array, dtype=kind) for array, kind in kinds)
    value, documents, words = document_statistics(weights, topics, *arrays)
    if np.isnan(value):
        raise NumericalError("no log likelihood: cells not of a table of V words, or a number negative or not finite")
    return DocumentSums(value, documents, words.T)
