"""One sweep of collapsed Gibbs sampling over the words of a corpus, and the log joint density of their topics. Numba.

No PyTensor here. Counts are floats, which are whole numbers up to 2^53: they are multiplied without a conversion. Those
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

# Sums may be taken in any order, and a product and a sum in one step.
_loops = numba.njit(cache=True, nogil=True, error_model="numpy")
_strict = numba.njit(cache=True, nogil=True, error_model="numpy")


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
def sweep(
    topic: Any,
    order: Any,
    starts: Any,
    term: Any,
    alpha: Any,
    eta: Any,
    in_document: Any,
    of_word: Any,
    total: Any,
    power: float,
    rng: Any,
) -> None:
    """Draw the topic of each word given those of all others, in place.

    Parameters
    ----------
    topic : ndarray of int32, shape (words,)
        Topic of each word, counted from 0; -1 of one that has none yet, which is then in no count.
    order : ndarray of int64, shape (D,)
        The documents in the order in which they are gone through.
    starts : ndarray of int64, shape (D + 1,)
        Where the words of each document begin.
    term : ndarray of int32, shape (words,)
        Code of each word.
    alpha, eta : ndarray of shape (K,), (V,)
        Concentrations of the priors.
    in_document : ndarray of shape (D, K)
        How many words of each document are of each topic.
    of_word : ndarray of shape (V, a multiple of BLOCK)
        How often each word is of each topic, then zeros.
    total : ndarray of shape (K,)
        How many words are of each topic.
    power : float
        To which the probabilities are raised: 1, or less so that chains move freely.
    rng : numpy.random.Generator
        Gives one number for each word.
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


@_strict
def _log_rising(start: float, steps: float) -> float:
    """Return log of start (start + 1) ... (start + steps - 1), without cancellation where the steps are few."""
    if steps > 32.0:
        return math.lgamma(start + steps) - math.lgamma(start)
    value = 0.0
    for i in range(int(steps)):
        value += math.log(start + i)
    return value


@_strict
def log_joint(alpha: Any, eta: Any, in_document: Any, of_word: Any, total: Any) -> float:
    """Return log p(w, z), proportions and topics integrated out, of the ordered words with every constant.

    The arrays are as of `sweep`.
    """
    value, alpha_total, eta_total = 0.0, alpha.sum(), eta.sum()
    for d in range(len(in_document)):
        length = 0.0
        for k in range(len(alpha)):
            value += _log_rising(alpha[k], in_document[d, k])
            length += in_document[d, k]
        value -= _log_rising(alpha_total, length)
    for v in range(len(of_word)):
        for k in range(len(alpha)):
            if of_word[v, k] > 0.0:
                value += _log_rising(eta[v], of_word[v, k])
    for k in range(len(alpha)):
        value -= _log_rising(eta_total, total[k])
    return value
