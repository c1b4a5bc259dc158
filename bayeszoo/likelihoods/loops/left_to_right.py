"""Probability of documents given topics, proportions and the topics of their words summed out by sampling. Numba."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

MOVES = 256
"""Words whose topics are drawn anew before each next word: all of the first, later some in turn."""

_loops = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=False)


@_loops
def _pick(joint: Any, whole: float, rng: Any) -> int:
    """Draw an index with probability proportional to its entry; `whole` is their sum."""
    left = rng.random() * whole
    last = 0
    for k in range(len(joint)):
        if joint[k] > 0.0:
            last = k
            left -= joint[k]
            if left < 0.0:
                break
    return last  # never one of probability 0, also where rounding leaves something over


@_loops
def _joint(counts: Any, alpha: Any, of_word: Any, joint: Any) -> float:
    """Write (n_k + alpha_k) phi_kw for each topic, and return the sum."""
    whole = 0.0
    for k in range(len(alpha)):
        joint[k] = (counts[k] + alpha[k]) * of_word[k]
        whole += joint[k]
    return whole


@_loops
def _redraw(topic: Any, term: Any, some: Any, counts: Any, topics: Any, alpha: Any, joint: Any, rng: Any) -> None:
    """Draw the topics of some of the words anew, one after the other, given those of the others."""
    for i in some:
        counts[topic[i]] -= 1.0
        topic[i] = _pick(joint, _joint(counts, alpha, topics[term[i]], joint), rng)
        counts[topic[i]] += 1.0


@_loops
def _resample(weight: Any, whole: float, topic: Any, counts: Any, n: int, rng: Any) -> None:
    """Let each particle have as many copies as its share of the weights says, up to rounding at random (systematic).

    Topics of the first `n` words and counts are copied; the copies take the places of particles that have none.
    """
    R = len(weight)
    copies = np.zeros(R, dtype=np.int64)
    at, reached, r = rng.random(), weight[0] * R / whole, 0
    for i in range(R):
        while reached <= i + at and r < R - 1:
            r += 1
            reached += weight[r] * R / whole
        copies[r] += 1
    free = 0
    for r in range(R):
        while copies[r] > 1:
            while copies[free] > 0:
                free += 1
            topic[free, :n] = topic[r, :n]
            counts[free] = counts[r]
            copies[free], copies[r] = 1, copies[r] - 1


@_loops
def _one_run(term: Any, topics: Any, alpha: Any, particles: int, rng: Any) -> float:
    """Return the log of an unbiased estimate of the probability of a document's words in this order."""
    K, N = len(alpha), len(term)
    counts, topic = np.zeros((particles, K)), np.zeros((particles, N), dtype=np.int64)
    joint, weight, total, value, last = np.empty(K), np.empty(particles), alpha.sum(), 0.0, 0
    for n in range(N):
        whole, some = 0.0, (last + np.arange(min(n, MOVES))) % max(n, 1)
        last += MOVES
        for r in range(particles):
            _redraw(topic[r], term, some, counts[r], topics, alpha, joint, rng)
            weight[r] = _joint(counts[r], alpha, topics[term[n]], joint)
            whole += weight[r]
        if not whole > 0.0:  # no topic has the word; or a number is NaN
            return np.log(whole)
        value += math.log(whole / particles / (n + total))
        _resample(weight, whole, topic, counts, n, rng)
        for r in range(particles):
            topic[r, n] = _pick(joint, _joint(counts[r], alpha, topics[term[n]], joint), rng)
            counts[r, topic[r, n]] += 1.0
    return value


@_loops
def left_to_right(starts: Any, term: Any, topics: Any, alpha: Any, runs: int, particles: int, rng: Any) -> Any:
    """Return the log of unbiased estimates of the probability of each document's words, of independent runs, (runs, D).

    ``starts`` (D + 1,) are where the words of each document begin, ``term`` (words,) their codes; ``topics`` (V, K)
    have the words first, as they are read, and ``alpha`` (K,) is the concentration of the proportions. Each run takes
    the words in a random order of its own, with N particles.
    """
    D = len(starts) - 1
    estimates = np.empty((runs, D))
    for d in range(D):
        words = term[starts[d] : starts[d + 1]].copy()
        for s in range(runs):
            for i in range(len(words) - 1, 0, -1):
                j = min(int(rng.random() * (i + 1)), i)
                words[i], words[j] = words[j], words[i]
            estimates[s, d] = _one_run(words, topics, alpha, particles, rng)
    return estimates


@_loops
def topic_counts(topics: Any, alpha: Any, tune: int, sweeps: int, rng: Any) -> Any:
    """Return how many of N words are of each topic, (sweeps, K): draws given each word's probability in it, (N, K).

    Proportions are integrated out; given the counts they are Dirichlet(alpha + counts). All topics are drawn anew
    ``tune`` times before the first of the sweeps that count.
    """
    (N, K), every = topics.shape, np.arange(len(topics))
    counts, joint, topic, drawn = np.zeros(K), np.empty(K), np.empty(N, dtype=np.int64), np.empty((sweeps, K))
    for i in every:  # the first topics, each given those before it
        topic[i] = _pick(joint, _joint(counts, alpha, topics[i], joint), rng)
        counts[topic[i]] += 1.0
    for s in range(-tune, sweeps):
        _redraw(topic, every, every, counts, topics, alpha, joint, rng)
        if s >= 0:
            drawn[s] = counts
    return drawn
