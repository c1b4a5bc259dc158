"""Bounds of the entropy rate of symbols whose hidden states are a Markov chain: it has no closed form.

Cover and Thomas 2006, theorem 4.5.1: H(Y_n | Y_1..Y_n-1, S_1) <= rate <= H(Y_n | Y_1..Y_n-1) for every n, at the
stationary distribution of the states; both tend to the rate as n grows.
"""

from __future__ import annotations

import numpy as np

from bayeszoo.distributions.information import entropy

MOST_NUMBERS, LONGEST = 2**24, 12
"""Probabilities of words that are held at once, and the longest words."""


def rate_bounds(often: np.ndarray, transition: np.ndarray, emission: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and the upper bound, in nats, by words as long as memory allows.

    Parameters
    ----------
    often : ndarray, shape (..., K)
        Stationary distribution of the states.
    transition : ndarray, shape (..., K, K)
        Each row the distribution of the next state.
    emission : ndarray, shape (..., K, V)
        Each row the distribution of the symbol.
    """
    leading, (K, V) = often.shape[:-1], emission.shape[-2:]
    emission = np.broadcast_to(emission, (*leading, K, V))
    first = np.broadcast_to(np.eye(K), (*leading, K, K))
    states = np.concatenate([often[..., None, :], first], axis=-2)[..., None, :]  # (..., starts, words, K)
    size, length, lower, upper = states.size, 0, np.zeros(leading), np.zeros(leading)
    before = np.zeros((*leading, K + 1))
    while length < LONGEST and size * V <= MOST_NUMBERS:
        length, size = length + 1, size * V
        shown = states[..., None] * emission[..., None, None, :, :]  # the next symbol last
        words = np.swapaxes(shown, -1, -2).reshape(*leading, K + 1, -1, K)
        own = entropy(words.sum(axis=-1))
        step, before = own - before, own
        upper, lower = step[..., 0], np.sum(often * step[..., 1:], axis=-1)
        states = words @ transition[..., None, :, :]
    return lower, upper
