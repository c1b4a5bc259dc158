"""Sweeps of collapsed Gibbs sampling over the words of a corpus, one at a time or those of a kind together. Numba.

Counts are floats, which are whole numbers up to 2^53: they are multiplied without a conversion. Those
of a word lie together and are padded with zeros to whole blocks of topics, which the processor adds up side by side. A
topic is looked for among the blocks, then in one, by counting the sums below a number, so that no branch is guessed
wrong. That costs O(K) a word with a small constant: less than lists of the topics that each word has (SparseLDA, Yao,
Mimno and McCallum 2009) up to some fifty topics.
"""

from __future__ import annotations

import math

import numba
import numpy as np

BLOCK = 4
"""Topics that are added up one after the other."""
TOGETHER = 256
"""Occurrences of a word whose topics are drawn together, at most: of more fewer proposals are accepted."""
FAR = 1e200
"""A product that is larger, or smaller than one over it, is taken into the logarithm: it stays far from overflow."""

_loops = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=False)


@_loops
def _raised(x: float, power: float) -> float:
    return x if power == 1.0 else math.exp(power * math.log(x))


@_loops
def sweep(topic, order, starts, term, alpha, eta, in_document, of_word, total, power, rng):  # type: ignore[no-untyped-def]
    """Draw the topic of each word, (words,) of int32, given those of all others, in place.

    Of a word that has none yet it is -1. ``order`` (D,) are the documents as they are gone through, ``starts`` (D + 1,)
    where the words of each begin, ``term`` (words,) their codes; ``alpha`` (K,) and ``eta`` (V,) the concentrations of
    the priors. The counts are of the words of each document (D, K), of each word, padded by zeros to (V, a multiple of
    BLOCK), and of all (K,). Probabilities are raised to a ``power``: 1, or less so that chains move freely.
    """
    K, blocks, eta_total = len(alpha), of_word.shape[1] // BLOCK, eta.sum()
    # n_kv + eta_v, and of this document (n_dk + alpha_k) / (n_k + sum of eta), each to the power
    table = of_word + eta.reshape(-1, 1)
    if power != 1.0:
        table = np.exp(power * np.log(table))
    share, sums, ends = np.zeros(blocks * BLOCK), np.empty(blocks * BLOCK), np.empty(blocks)
    for d in order:
        here = in_document[d]
        for k in range(K):
            share[k] = _raised((here[k] + alpha[k]) / (total[k] + eta_total), power)
        for i in range(starts[d], starts[d + 1]):
            row, each, weight, old = of_word[term[i]], table[term[i]], eta[term[i]], topic[i]
            if old >= 0:
                row[old] -= 1.0
                here[old] -= 1.0
                total[old] -= 1.0
                each[old] = _raised(row[old] + weight, power)
                share[old] = _raised((here[old] + alpha[old]) / (total[old] + eta_total), power)
            whole = 0.0
            for block in range(blocks):
                part = 0.0
                for k in range(block * BLOCK, block * BLOCK + BLOCK):
                    part += share[k] * each[k]
                    sums[k] = part
                whole += part
                ends[block] = whole
            left, block = rng.random() * whole, 0
            for b in range(blocks - 1):
                block += left >= ends[b]
            left -= ends[block - 1] if block > 0 else 0.0
            new = block * BLOCK
            for k in range(new, min(new + BLOCK, K) - 1):
                new += left >= sums[k]
            topic[i] = new
            row[new] += 1.0
            here[new] += 1.0
            total[new] += 1.0
            each[new] = _raised(row[new] + weight, power)
            share[new] = _raised((here[new] + alpha[new]) / (total[new] + eta_total), power)


@_loops
def _moved(k, by, here, row, total, weight, eta_total, share):  # type: ignore[no-untyped-def]
    """Put a word into topic k, or take it out by -1; ``share`` (K,) are (n_kv + eta_v) / (n_k + sum of eta)."""
    here[k] += by
    row[k] += by
    total[k] += by
    share[k] = (row[k] + weight) / (total[k] + eta_total)


@_loops
def _cumulative(here, alpha, share, sums):  # type: ignore[no-untyped-def]
    """Write the cumulative probabilities of a word's topics, up to a factor that all share, and return the last."""
    whole = 0.0
    for k in range(len(alpha)):
        whole += (here[k] + alpha[k]) * share[k]
        sums[k] = whole
    return whole


@_loops
def sweep_words(topic, places, starts, doc, alpha, eta, in_document, of_word, total, rng):  # type: ignore[no-untyped-def]
    """Draw the topics of all occurrences of each word together, given those of all other words, in place.

    An occurrence that moves by itself seldom leaves the topic that the others of its word are in. All are taken out
    here and put in again one after the other, in random order, the topic of each drawn given those before it. Such a
    proposal has density p(z, w) over the product of the normalizers on its way, whatever the order, and is accepted
    with the ratio of these products, of the new topics to the old: Metropolis and Hastings, by the sequential
    imputation of Kong, Liu and Wong 1994, JASA 89, 278-288.

    ``places`` (words,) are the places in ``topic`` of the occurrences of one word after the other, which are shuffled,
    ``starts`` (V + 1,) where those of each word begin, ``doc`` (words,) the documents of all places; the rest as of
    `sweep`. Of a word that occurs often at most TOGETHER move at a time.
    """
    K, eta_total = len(alpha), eta.sum()
    share, sums, new = np.empty(K), np.empty(K), np.empty(TOGETHER, dtype=np.int32)
    for v in range(len(eta)):
        row, weight = of_word[v], eta[v]
        for k in range(K):
            share[k] = (row[k] + weight) / (total[k] + eta_total)
        for first in range(starts[v], starts[v + 1], TOGETHER):
            last, ratio, log_ratio = min(first + TOGETHER, starts[v + 1]), 1.0, 0.0
            for i in range(last - 1, first - 1, -1):  # the first that is out is the last in: the rest is as it was then
                j = first + int(rng.random() * (i + 1 - first))
                places[i], places[j] = places[j], places[i]
                here = in_document[doc[places[i]]]
                _moved(topic[places[i]], -1.0, here, row, total, weight, eta_total, share)
                ratio /= _cumulative(here, alpha, share, sums)
                if not 1 / FAR < ratio < FAR:
                    log_ratio, ratio = log_ratio + math.log(ratio), 1.0
            for i in range(first, last):
                here = in_document[doc[places[i]]]
                whole = _cumulative(here, alpha, share, sums)
                left, k = rng.random() * whole, 0
                for j in range(K - 1):
                    k += left >= sums[j]
                new[i - first] = k
                _moved(k, 1.0, here, row, total, weight, eta_total, share)
                ratio *= whole
                if not 1 / FAR < ratio < FAR:
                    log_ratio, ratio = log_ratio + math.log(ratio), 1.0
            if math.log(rng.random()) < log_ratio + math.log(ratio):
                for i in range(first, last):
                    topic[places[i]] = new[i - first]
                continue
            for i in range(first, last):
                here = in_document[doc[places[i]]]
                _moved(new[i - first], -1.0, here, row, total, weight, eta_total, share)
                _moved(topic[places[i]], 1.0, here, row, total, weight, eta_total, share)
