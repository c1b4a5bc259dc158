"""Coherence: whether the words of a topic occur in the same documents."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy

from bayeszoo.data.table.table import shown
from bayeszoo.errors import InputError
from bayeszoo.families.documents.scores import checked_topics

MEASURES = ("npmi", "umass")

Arrays = Mapping[str, np.ndarray]


def coherence(topics: Any, data: Arrays, top: int = 10, measure: str = "npmi") -> np.ndarray:
    """Say how far the most probable words of each topic occur in the same documents of a reference corpus.

    Parameters
    ----------
    topics : array_like of shape (K, V)
        Probability of each word in each topic, such as posterior means.
    data : mapping of str to ndarray
        Canonical arrays of `Corpus`, with these words: that of the fit, or another one, which is the harder test.
    top : int
        How many words of each topic, >= 2.
    measure : {"npmi", "umass"}
        With D(v) documents that hold a word, and D(v, w) that hold both: the mean over pairs of normalized pointwise
        mutual information, log(p(v, w) / p(v) p(w)) / -log p(v, w), between -1 (never together, also where it is a
        limit) and 1 (only together); or the sum over pairs of log((D(v, w) + 1) / D(w)), w the more probable.

    Returns
    -------
    ndarray of shape (K,)
        Larger is better. NPMI is NaN where two of the words are in all documents, as there is nothing to tell.

    Raises
    ------
    InputError
        When one of the words is in no document.

    Notes
    -----
    UMass: Mimno, Wallach, Talley, Leenders and McCallum (2011), Optimizing semantic coherence in topic models, EMNLP.
    NPMI: Bouma (2009); for topics Lau, Newman and Baldwin (2014), whose counts are of windows of words, here documents.
    """
    draws, _ = checked_topics(data, topics, 1.0)
    topics = draws[0, 0]
    if draws.shape[:2] != (1, 1):
        raise InputError("coherence is of one table of topics", hint="give the mean of the draws")
    if measure not in MEASURES:
        raise InputError(f"measure must be {' or '.join(map(repr, MEASURES))}, got {measure!r}")
    if not 2 <= top <= topics.shape[1]:
        raise InputError(f"top must be 2 to {topics.shape[1]}, the number of words, got {top!r}")
    shape = len(data["document"]), len(data["word"])
    occurs = scipy.sparse.csc_array((np.ones(len(data["doc"])), (data["doc"], data["term"])), shape=shape)
    best = np.argsort(-topics, axis=1, kind="stable")[:, :top]
    lacking = np.setdiff1d(best, data["term"])
    if len(lacking):
        raise InputError(f"no document of the reference corpus holds {shown(data['word'][lacking[0]])}")
    together = ((occurs[:, words].T @ occurs[:, words]).toarray() for words in best)
    return np.array([_npmi(both, shape[0]) if measure == "npmi" else _umass(both) for both in together])


def _umass(together: np.ndarray) -> float:
    """Return the sum over pairs, from the numbers of documents that hold both words, the most probable word first."""
    rare, common = np.tril_indices(len(together), -1)
    return float(np.sum(np.log((together[rare, common] + 1) / np.diag(together)[common])))


def _npmi(together: np.ndarray, documents: int) -> float:
    first, second = np.tril_indices(len(together), -1)
    p, both = np.diag(together) / documents, together[first, second] / documents
    if np.any(both == 1):
        return math.nan
    log_both = np.log(np.where(both > 0, both, 0.5))
    found = (log_both - np.log(p[first]) - np.log(p[second])) / -log_both
    return float(np.mean(np.where(both > 0, found, -1.0)))
