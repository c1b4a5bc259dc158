"""Marginal log likelihoods of documents with mixed topics, or one topic each, as PyTensor operations with gradients.

A corpus is given by its non-zero cells: count, document and word; topics are summed out.
"""

from __future__ import annotations

import numpy as np
import pytensor.tensor as pt

from bayeszoo.likelihoods.loops import topics as count_loops
from bayeszoo.likelihoods.loops.topics import cell_sums, document_statistics
from bayeszoo.likelihoods.ops.operation import LogDensity


def _by_loops(
    proportions: np.ndarray, topics: np.ndarray, counts: np.ndarray, doc: np.ndarray, term: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return value and gradients, from one pass over the cells."""
    value, of_documents, of_words = cell_sums(proportions, topics.T.copy(), counts, doc, term)
    return np.asarray(value), of_documents, of_words.T.copy()


class LatentDirichletLikelihood(LogDensity):
    """Proportions (D, K), topics (K, V) and the cells of a corpus to log likelihood, and its two gradients."""

    parameters = (2, 2)
    data = ((1, "float64"), (1, "int64"), (1, "int64"))
    sources = (count_loops,)
    loops = staticmethod(_by_loops)


def lda_log_likelihood(
    proportions: pt.TensorVariable, topics: pt.TensorVariable, cells: pt.TensorVariable
) -> pt.TensorVariable:
    """Return the log density of documents as ordered words, the topic of each word summed out, as a PyTensor scalar.

    Arguments are proportions (D, K) and topics (K, V), not normalized; ``cells`` are counts, codes of documents and
    codes of words, as ``pm.Data`` without gradient.

    The value is the sum over cells of c log(theta_d . phi_w) (Blei, Ng and Jordan 2003, equation 3, given theta),
    without multinomial coefficients. If a word that occurs has probability 0 the value is -inf, never NaN, and the word
    does not contribute to the gradient. Time O(cells x K), memory that of cells and gradients. There are no second
    derivatives.
    """
    return LatentDirichletLikelihood()(proportions, topics, *cells)[0]


def _one_topic_by_loops(
    weights: np.ndarray, topics: np.ndarray, counts: np.ndarray, columns: np.ndarray, starts: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return value and gradients from the expected counts, which are divided by the probabilities; 0 / 0 is 0."""
    value, documents, words = document_statistics(weights, topics, counts, columns, starts)
    of_weights = documents / np.where(weights != 0.0, weights, 1.0)
    return np.asarray(value), of_weights, words.T / np.where(topics != 0.0, topics, 1.0)


class MultinomialMixtureLikelihood(LogDensity):
    """Weights (K,), topics (K, V) and the cells of documents to log likelihood, and its two gradients."""

    parameters = (1, 2)
    data = ((1, "float64"), (1, "int64"), (1, "int64"))
    sources = (count_loops,)
    loops = staticmethod(_one_topic_by_loops)


def multinomial_mixture_log_likelihood(
    weights: pt.TensorVariable, topics: pt.TensorVariable, cells: pt.TensorVariable
) -> pt.TensorVariable:
    """Return the log density of documents as ordered words, their topics summed out, as a PyTensor scalar.

    Arguments are weights (K,), not normalized, and topics (K, V); ``cells`` are ``data``, ``indices`` and ``indptr`` of
    SciPy's CSR, as ``pm.Data`` without gradient.

    The value is the sum over documents of logsumexp_k(log w_k + sum_v C_nv log topics_kv), without multinomial
    coefficients. A topic without a word of the document is impossible; if all are, the value is -inf, never NaN. At a
    weight or probability of exactly 0 the derivative is set to 0, its value in softmax coordinates. There are no second
    derivatives.
    """
    return MultinomialMixtureLikelihood()(weights, topics, *cells)[0]
