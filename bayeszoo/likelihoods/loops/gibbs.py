"""One sweep of collapsed Gibbs sampling over the words of a corpus. Numba.

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
    # n_kv + eta_v, and of the document at hand (n_dk + alpha_k) / (n_k + sum of eta), each to the power
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
