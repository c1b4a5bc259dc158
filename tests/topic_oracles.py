"""Tiny corpora, and every assignment of their words to topics: none of it is computed by bayeszoo."""

import itertools

import numpy as np
import scipy
from scipy.special import gammaln

LIMIT = 4.4
ALPHA, ETA = np.array([0.3, 1.2]), np.array([0.1, 0.4, 0.2])


def corpus(table):
    """Return the canonical arrays of a table of documents and words."""
    table = np.asarray(table)
    doc, term = np.nonzero(table)
    document, word = (np.array([f"{kind}{i + 1}" for i in range(n)]) for kind, n in zip("dw", table.shape, strict=True))
    return {"counts": table[doc, term], "doc": doc, "term": term, "document": document, "word": word}


TINY = corpus([[1, 1, 0], [0, 2, 0]])
SMALL = corpus([[2, 1, 0], [0, 1, 1], [2, 0, 1]])


def words_of(data):
    """Return the document and the code of each word."""
    return np.repeat(data["doc"], data["counts"]), np.repeat(data["term"], data["counts"])


def log_ratio(prior, counts):
    """The log of B(prior + counts) / B(prior), as the textbooks write it."""
    both = prior + counts
    return gammaln(both).sum() - gammaln(both.sum()) - gammaln(prior).sum() + gammaln(prior.sum())


def tables(z, data, K):
    """Count the words of each document and topic, and of each topic and word."""
    by_document, by_topic = np.zeros((len(data["document"]), K)), np.zeros((K, len(data["word"])))
    for d, v, k in zip(*words_of(data), z, strict=True):
        by_document[d, k] += 1
        by_topic[k, v] += 1
    return by_document, by_topic


def log_joint(z, data, alpha=ALPHA, eta=ETA):
    by_document, by_topic = tables(z, data, len(alpha))
    return sum(log_ratio(alpha, row) for row in by_document) + sum(log_ratio(eta, row) for row in by_topic)


def enumerated(data, alpha=ALPHA, eta=ETA):
    """Return every assignment and its probability."""
    every = list(itertools.product(range(len(alpha)), repeat=int(data["counts"].sum())))
    logs = np.array([log_joint(z, data, alpha, eta) for z in every])
    return every, np.exp(logs - scipy.special.logsumexp(logs))


def together(by_document, alpha=ALPHA):
    """E[sum over k of theta_ik theta_jk] of each pair of documents, given the topics of the words."""
    shares = (by_document + alpha) / (by_document + alpha).sum(axis=1, keepdims=True)
    return np.array([shares[i] @ shares[j] for i, j in itertools.combinations(range(len(shares)), 2)])
