"""Sweeps of collapsed Gibbs sampling over the words of a corpus: single, or all occurrences of a word. Numba.

Counts are floats, exact up to 2^53, which need no conversion for products. Counts
of a word are contiguous and padded with zeros to whole blocks of topics, which the processor adds in parallel. A
topic is searched among the blocks, then within one, by counting the sums below a number, so that no branch is predicted
wrongly. The cost is O(K) for each word with a small constant: less than sparse lists of topics (SparseLDA, Yao,
Mimno and McCallum 2009) up to about fifty topics.
"""

from __future__ import annotations

import math

import numpy as np

from bayeszoo.likelihoods.compiling import loop

BLOCK = 4
"""Topics in a block, summed sequentially."""
TOGETHER = 256
"""Most occurrences of a word whose topics are proposed together: for more, fewer proposals are accepted."""
FAR = 1e200
"""Products outside 1 / FAR to FAR are moved into the logarithm, far from overflow."""


@loop
def _raised(x: float, power: float) -> float:
    return x if power == 1.0 else math.exp(power * math.log(x))


@loop
def sweep(topic, order, starts, term, alpha, eta, in_document, of_word, total, power, rng):  # type: ignore[no-untyped-def]
    """Draw the topic of each word, (words,) of int32, in place, given those of all other words.

    Topics not yet drawn are -1. ``order`` (D,) is the order of the documents, ``starts`` (D + 1,)
    the first word of each, ``term`` (words,) the codes of words; ``alpha`` (K,) and ``eta`` (V,) the concentrations of
    the priors. The counts are of the words of each document (D, K), of each word, padded by zeros to (V, a multiple of
    BLOCK), and of all (K,). Probabilities are raised to ``power``: 1, or less for annealing.
    """
    K, blocks, eta_total = len(alpha), of_word.shape[1] // BLOCK, eta.sum()
    # n_kv + eta_v, and of this document (n_dk + alpha_k) / (n_k + sum of eta), each to the power
    table = of_word + eta.reshape(-1, 1)
    if power != 1.0:
        table = np.exp(power * np.log(table))
    share, sums, ends = np.zeros(blocks * BLOCK), np.empty(blocks * BLOCK), np.empty(blocks)
    for d in order:
        of_document = in_document[d]
        for k in range(K):
            share[k] = _raised((of_document[k] + alpha[k]) / (total[k] + eta_total), power)
        for i in range(starts[d], starts[d + 1]):
            row, raised, weight, old = of_word[term[i]], table[term[i]], eta[term[i]], topic[i]
            if old >= 0:
                row[old] -= 1.0
                of_document[old] -= 1.0
                total[old] -= 1.0
                raised[old] = _raised(row[old] + weight, power)
                share[old] = _raised((of_document[old] + alpha[old]) / (total[old] + eta_total), power)
            cumulative = 0.0
            for block in range(blocks):
                block_sum = 0.0
                for k in range(block * BLOCK, block * BLOCK + BLOCK):
                    block_sum += share[k] * raised[k]
                    sums[k] = block_sum
                cumulative += block_sum
                ends[block] = cumulative
            target, block = rng.random() * cumulative, 0
            for b in range(blocks - 1):
                block += target >= ends[b]
            target -= ends[block - 1] if block > 0 else 0.0
            new = block * BLOCK
            for k in range(new, min(new + BLOCK, K) - 1):
                new += target >= sums[k]
            topic[i] = new
            row[new] += 1.0
            of_document[new] += 1.0
            total[new] += 1.0
            raised[new] = _raised(row[new] + weight, power)
            share[new] = _raised((of_document[new] + alpha[new]) / (total[new] + eta_total), power)


@loop
def _moved(k, change, of_document, row, total, weight, eta_total, share):  # type: ignore[no-untyped-def]
    """Add ``change`` (1 or -1) words to topic k; ``share`` (K,) are (n_kv + eta_v) / (n_k + sum of eta)."""
    of_document[k] += change
    row[k] += change
    total[k] += change
    share[k] = (row[k] + weight) / (total[k] + eta_total)


@loop
def _cumulative(of_document, alpha, share, sums):  # type: ignore[no-untyped-def]
    """Write the cumulative probabilities of a word's topics, up to a common factor, and return the last."""
    total = 0.0
    for k in range(len(alpha)):
        total += (of_document[k] + alpha[k]) * share[k]
        sums[k] = total
    return total


@loop
def sweep_words(topic, places, starts, doc, alpha, eta, in_document, of_word, total, rng):  # type: ignore[no-untyped-def]
    """Draw the topics of all occurrences of each word together, in place, given those of all other words.

    A single occurrence seldom leaves the topic of the word's other occurrences. Here all are removed, and added again
    one after the other in random order, each topic drawn given the earlier ones. The proposal has density p(z, w) over
    the product of its normalizers, for any order, and is accepted with the ratio of the products of new and old topics:
    Metropolis and Hastings, by the sequential imputation of Kong, Liu and Wong 1994, JASA 89, 278-288.

    ``places`` (words,) are indices in ``topic`` of occurrences, word by word, which are shuffled; ``starts`` (V + 1,)
    the first of each word, and ``doc`` (words,) the document of each occurrence; the rest is as in `sweep`. At most
    TOGETHER occurrences of a word move together.
    """
    K, eta_total = len(alpha), eta.sum()
    share, sums, new = np.empty(K), np.empty(K), np.empty(TOGETHER, dtype=np.int32)
    for v in range(len(eta)):
        row, weight = of_word[v], eta[v]
        for k in range(K):
            share[k] = (row[k] + weight) / (total[k] + eta_total)
        for first in range(starts[v], starts[v + 1], TOGETHER):
            last, ratio, log_ratio = min(first + TOGETHER, starts[v + 1]), 1.0, 0.0
            for i in range(
                last - 1, first - 1, -1
            ):  # removed in reverse order of the additions, so that normalizers match
                j = first + int(rng.random() * (i + 1 - first))
                places[i], places[j] = places[j], places[i]
                of_document = in_document[doc[places[i]]]
                _moved(topic[places[i]], -1.0, of_document, row, total, weight, eta_total, share)
                ratio /= _cumulative(of_document, alpha, share, sums)
                if not 1 / FAR < ratio < FAR:
                    log_ratio, ratio = log_ratio + math.log(ratio), 1.0
            for i in range(first, last):
                of_document = in_document[doc[places[i]]]
                normalizer = _cumulative(of_document, alpha, share, sums)
                target, k = rng.random() * normalizer, 0
                for j in range(K - 1):
                    k += target >= sums[j]
                new[i - first] = k
                _moved(k, 1.0, of_document, row, total, weight, eta_total, share)
                ratio *= normalizer
                if not 1 / FAR < ratio < FAR:
                    log_ratio, ratio = log_ratio + math.log(ratio), 1.0
            if math.log(rng.random()) < log_ratio + math.log(ratio):
                for i in range(first, last):
                    topic[places[i]] = new[i - first]
                continue
            for i in range(first, last):
                of_document = in_document[doc[places[i]]]
                _moved(new[i - first], -1.0, of_document, row, total, weight, eta_total, share)
                _moved(topic[places[i]], 1.0, of_document, row, total, weight, eta_total, share)
