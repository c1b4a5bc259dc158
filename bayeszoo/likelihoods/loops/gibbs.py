"""One sweep of collapsed Gibbs sampling over the words of a corpus. Numba.

Counts are floats, which are whole numbers up to 2^53: they are multiplied without a conversion. Those
of a word lie together and are padded with zeros to whole blocks of topics, whose sums the compiler takes several at a
time; a topic is looked for block by block. That costs O(K) a word with a small constant: less than lists of the topics
that each word has (SparseLDA, Yao, Mimno and McCallum 2009) up to some fifty topics, and a third more at a hundred.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

BLOCK = 16
"""Topics that are added up at a time."""

_loops = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=False)


@_loops
def _flattened(joint: Any, sums: Any, power: float, K: int) -> float:
    """Raise the probabilities to a power, in place; return their sum."""
    whole = 0.0
    for block in range(len(sums)):
        sums[block] = 0.0
        for k in range(block * BLOCK, min(block * BLOCK + BLOCK, K)):
            joint[k] = math.exp(power * math.log(joint[k]))
            sums[block] += joint[k]
        whole += sums[block]
    return whole


@_loops
def sweep(topic, order, starts, term, alpha, eta, in_document, of_word, total, power, rng):  # type: ignore[no-untyped-def]
    """Draw the topic of each word, (words,) of int32, given those of all others, in place.

    Of a word that has none yet it is -1. ``order`` (D,) are the documents as they are gone through, ``starts`` (D + 1,)
    where the words of each begin, ``term`` (words,) their codes; ``alpha`` (K,) and ``eta`` (V,) the concentrations of
    the priors. The counts are of the words of each document (D, K), of each word, padded by zeros to (V, a multiple of
    BLOCK), and of all (K,). Probabilities are raised to a ``power``: 1, or less so that chains move freely.
    """
    K, blocks, eta_total = len(alpha), of_word.shape[1] // BLOCK, eta.sum()
    # of the document at hand, (n_dk + alpha_k) / (n_k + sum of eta), and its products with n_kv + eta_v
    share, joint = np.zeros(blocks * BLOCK), np.zeros(blocks * BLOCK)
    sums = np.empty(blocks)
    for d in order:
        here = in_document[d]
        for k in range(K):
            share[k] = (here[k] + alpha[k]) / (total[k] + eta_total)
        for i in range(starts[d], starts[d + 1]):
            row, weight, old = of_word[term[i]], eta[term[i]], topic[i]
            if old >= 0:
                row[old] -= 1.0
                here[old] -= 1.0
                total[old] -= 1.0
                share[old] = (here[old] + alpha[old]) / (total[old] + eta_total)
            whole = 0.0
            for block in range(blocks):
                part = 0.0
                for k in range(block * BLOCK, block * BLOCK + BLOCK):
                    value = share[k] * (row[k] + weight)
                    joint[k] = value
                    part += value
                sums[block] = part
                whole += part
            if power != 1.0:
                whole = _flattened(joint, sums, power, K)
            left, block = rng.random() * whole, 0
            while block < blocks - 1 and left >= sums[block]:
                left -= sums[block]
                block += 1
            new = block * BLOCK
            last = min(new + BLOCK, K) - 1
            left -= joint[new]
            while new < last and left >= 0.0:
                new += 1
                left -= joint[new]
            topic[i] = new
            row[new] += 1.0
            here[new] += 1.0
            total[new] += 1.0
            share[new] = (here[new] + alpha[new]) / (total[new] + eta_total)
