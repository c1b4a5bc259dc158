"""Marginal log likelihood of documents that mix topics, as one PyTensor operation, which has its gradient as well.

A corpus is its non-zero cells: how often, in which document, and which word. Of each word the topic is summed out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from bayeszoo.likelihoods.loops import topics as count_loops
from bayeszoo.likelihoods.loops.topics import cell_sums
from bayeszoo.likelihoods.ops.operation import LogDensity


def _by_loops(proportions: Any, topics: Any, counts: Any, doc: Any, term: Any) -> Any:
    """Return value and gradients, from one pass over the cells."""
    value, of_documents, of_words = cell_sums(proportions, topics.T.copy(), counts, doc, term)
    return np.asarray(value), of_documents, of_words.T.copy()


def _by_sparse_products(proportions: Any, topics: Any, counts: Any, doc: Any, term: Any) -> list[np.ndarray]:
    """Return value and gradients from the sparse table of count / probability."""
    p = np.sum(proportions[doc] * topics.T[term], axis=1)
    shares = np.divide(counts, p, out=np.zeros_like(p), where=p != 0)
    table = scipy.sparse.csr_array((shares, (doc, term)), shape=(len(proportions), topics.shape[1]))
    with np.errstate(divide="ignore"):
        value = np.sum(scipy.special.xlogy(counts, p))
    return [np.asarray(value), table @ topics.T, (table.T @ proportions).T]


class LatentDirichletLikelihood(LogDensity):
    """Proportions (D, K), topics (K, V) and the cells of a corpus to log likelihood, and its two gradients."""

    parameters = (2, 2)
    data = ((1, "float64"), (1, "int64"), (1, "int64"))
    sources = (count_loops,)
    loops, by_numpy = staticmethod(_by_loops), staticmethod(_by_sparse_products)


def lda_log_likelihood(proportions: Any, topics: Any, cells: Any) -> Any:
    """Return the log density of documents as ordered words, the topic of each word summed out, as a PyTensor scalar.

    Parameters
    ----------
    proportions : variable of shape (D, K)
        Of the topics in each document, >= 0; not divided by their sum.
    topics : variable of shape (K, V)
        Probability of each word in each topic, likewise.
    cells : tuple of variables
        Counts, codes of documents and codes of words, each of shape (cells,), as ``pm.Data``; they have no gradient.

    Notes
    -----
    The sum over cells of c log(theta_d . phi_w) (Blei, Ng and Jordan 2003, equation 3, given theta); multinomial
    coefficients are not in it. Where a word that occurs has probability 0 the value is -inf, never NaN, and the word
    adds nothing to the gradient. Time O(cells x K), memory that of the cells and the gradients. Second derivatives
    raise NotImplementedError.
    """
    return LatentDirichletLikelihood()(proportions, topics, *cells)[0]
