"""Probability of documents given topics, estimated by sampling of proportions and topics of words. Numba."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bayeszoo.likelihoods.compiling import loop

MOVES = 256
"""Most earlier words whose topics are resampled before each next word; of more words, these in turn."""


@loop
def _pick(joint: np.ndarray, total: float, rng: Any) -> int:
    """Draw an index with probability proportional to its entry; ``total`` is their sum."""
    target = rng.random() * total
    last = 0
    for k in range(len(joint)):
        if joint[k] > 0.0:
            last = k
            target -= joint[k]
            if target < 0.0:
                break
    return last  # never one of probability 0, even with rounding errors


@loop
def _joint(counts: np.ndarray, alpha: np.ndarray, of_word: np.ndarray, joint: np.ndarray) -> float:
    """Write (n_k + alpha_k) phi_kw for each topic, and return the sum."""
    total = 0.0
    for k in range(len(alpha)):
        joint[k] = (counts[k] + alpha[k]) * of_word[k]
        total += joint[k]
    return total


@loop
def _redraw(
    topic: np.ndarray,
    term: np.ndarray,
    words: np.ndarray,
    counts: np.ndarray,
    topics: np.ndarray,
    alpha: np.ndarray,
    joint: np.ndarray,
    rng: Any,
) -> None:
    """Resample the topics of ``words``, one after the other, given those of all others."""
    for i in words:
        counts[topic[i]] -= 1.0
        topic[i] = _pick(joint, _joint(counts, alpha, topics[term[i]], joint), rng)
        counts[topic[i]] += 1.0


@loop
def _resample(weight: np.ndarray, total: float, topic: np.ndarray, counts: np.ndarray, n: int, rng: Any) -> None:
    """Resample particles in proportion to their weights (systematic resampling).

    Topics of the first `n` words and counts are copied; the copies replace particles without copies.
    """
    R = len(weight)
    copies = np.zeros(R, dtype=np.int64)
    offset, cumulative, r = rng.random(), weight[0] * R / total, 0
    for i in range(R):
        while cumulative <= i + offset and r < R - 1:
            r += 1
            cumulative += weight[r] * R / total
        copies[r] += 1
    free = 0
    for r in range(R):
        while copies[r] > 1:
            while copies[free] > 0:
                free += 1
            topic[free, :n] = topic[r, :n]
            counts[free] = counts[r]
            copies[free], copies[r] = 1, copies[r] - 1


@loop
def _one_run(term: np.ndarray, topics: np.ndarray, alpha: np.ndarray, particles: int, rng: Any) -> float:
    """Return the log of an unbiased estimate of the probability of a document's words in this order."""
    K, N = len(alpha), len(term)
    counts, topic = np.zeros((particles, K)), np.zeros((particles, N), dtype=np.int64)
    joint, weight, total, value, last = np.empty(K), np.empty(particles), alpha.sum(), 0.0, 0
    for n in range(N):
        weight_sum, resampled = 0.0, (last + np.arange(min(n, MOVES))) % max(n, 1)
        last += MOVES
        for r in range(particles):
            _redraw(topic[r], term, resampled, counts[r], topics, alpha, joint, rng)
            weight[r] = _joint(counts[r], alpha, topics[term[n]], joint)
            weight_sum += weight[r]
        if not weight_sum > 0.0:  # no topic has the word, or a number is NaN
            return np.log(weight_sum)
        value += math.log(weight_sum / particles / (n + total))
        _resample(weight, weight_sum, topic, counts, n, rng)
        for r in range(particles):
            topic[r, n] = _pick(joint, _joint(counts[r], alpha, topics[term[n]], joint), rng)
            counts[r, topic[r, n]] += 1.0
    return value


@loop
def left_to_right(
    starts: np.ndarray, term: np.ndarray, topics: np.ndarray, alpha: np.ndarray, runs: int, particles: int, rng: Any
) -> Any:
    """Return log unbiased estimates of the probability of each document's words, from independent runs, (runs, D).

    ``starts`` (D + 1,) are the first words of the documents, ``term`` (words,) the codes of words; ``topics`` (V, K)
    have the words first, for fast access, and ``alpha`` (K,) is the concentration of the proportions. Each run takes
    the words in its own random order, with N particles.
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


@loop
def topic_counts(topics: np.ndarray, alpha: np.ndarray, tune: int, sweeps: int, rng: Any) -> Any:
    """Return draws (sweeps, K) of topic counts of N words, given each word's probability in each topic (N, K).

    Proportions are integrated out; given the counts they are Dirichlet(alpha + counts). All topics are resampled
    ``tune`` times before the first draw.
    """
    (N, K), words = topics.shape, np.arange(len(topics))
    counts, joint, topic, drawn = np.zeros(K), np.empty(K), np.empty(N, dtype=np.int64), np.empty((sweeps, K))
    for i in words:  # initial topics, each given the earlier ones
        topic[i] = _pick(joint, _joint(counts, alpha, topics[i], joint), rng)
        counts[topic[i]] += 1.0
    for s in range(-tune, sweeps):
        _redraw(topic, words, words, counts, topics, alpha, joint, rng)
        if s >= 0:
            drawn[s] = counts
    return drawn
