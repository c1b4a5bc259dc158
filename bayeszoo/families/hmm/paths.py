"""Paths of the states of a hidden Markov chain given all rows: the most probable one, and draws.

Arguments and errors are those of `passes`. Sources: Rabiner (1989), section III.B (Viterbi); Scott (2002), Bayesian
methods for hidden Markov models (forward filtering, backward sampling).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bayeszoo.families.hmm.passes import CheckedChain
from bayeszoo.likelihoods.compiling import loop


def viterbi(
    initial: npt.ArrayLike, transition: npt.ArrayLike, log_b: npt.ArrayLike, starts: object = None
) -> tuple[np.ndarray, float]:
    """Return the most probable path of states, shape (T,), and its log joint density with the rows.

    Among equally probable states the lowest is taken, from the last row backwards.
    """
    chain = CheckedChain.of_rows(initial, transition, log_b, starts)
    (log_initial, log_transition), path = chain.logs, np.zeros(len(chain.log_b), dtype=np.int64)
    _best_path(log_initial, log_transition, chain.log_b, chain.opens, path)
    steps = np.where(chain.opens, log_initial[path], log_transition[np.roll(path, 1), path])
    value = float(np.sum(steps + np.take_along_axis(chain.log_b, path[:, None], axis=1)[:, 0]))
    if value == -np.inf:
        chain.log_predicted()  # raises an error that names the row
    return path, value


def sample_paths(
    initial: npt.ArrayLike,
    transition: npt.ArrayLike,
    log_b: npt.ArrayLike,
    starts: object = None,
    *,
    rng: np.random.Generator,
    size: int = 1,
) -> np.ndarray:
    """Draw paths of states given all rows, shape (size, T): forward filtering, backward sampling."""
    chain = CheckedChain.of_rows(initial, transition, log_b, starts)
    log_filtered = chain.log_predicted()[0] + chain.log_b
    ends, paths = np.append(chain.opens[1:], True), np.empty((size, len(chain.log_b)), dtype=np.int64)
    for path in paths:
        _draw(log_filtered, chain.logs[1], ends, rng.random(len(path)), path)
    return paths


@loop
def _best_path(log_initial, log_transition, log_b, opens, path):  # type: ignore[no-untyped-def]
    """Fill in the path; scores are relative to the best one, so that a million rows do not cost ten digits."""
    size, states = log_b.shape
    before, score, now = np.zeros((size, states), np.int32), np.zeros(states), np.zeros(states)
    best = np.zeros(size, np.int32)
    for t in range(size):
        for j in range(states):
            now[j] = log_initial[j]
            if not opens[t]:
                previous = 0
                for i in range(1, states):
                    if score[i] + log_transition[i, j] > score[previous] + log_transition[previous, j]:
                        previous = i
                before[t, j], now[j] = previous, score[previous] + log_transition[previous, j]
            now[j] += log_b[t, j]
        for j in range(1, states):
            best[t] = j if now[j] > now[best[t]] else best[t]
        top = now[best[t]]
        for j in range(states):
            score[j] = now[j] - top if top > -np.inf else 0.0
    state = 0
    for t in range(size - 1, -1, -1):
        state = best[t] if t == size - 1 or opens[t + 1] else before[t + 1, state]
        path[t] = state


@loop
def _draw(log_filtered, log_transition, ends, uniforms, path):  # type: ignore[no-untyped-def]
    """Fill in one path, from its end, by inverting the distribution function at the uniforms."""
    size, states = log_filtered.shape
    weights = np.empty(states)
    for t in range(size - 1, -1, -1):
        largest = -np.inf
        for i in range(states):
            weights[i] = log_filtered[t, i] + (0.0 if ends[t] else log_transition[i, path[t + 1]])
            largest = max(largest, weights[i])
        total = 0.0
        for i in range(states):
            weights[i] = np.exp(weights[i] - largest)
            total += weights[i]
        left = uniforms[t] * total
        for i in range(states):
            if weights[i] > 0:  # rounding may leave a remainder after the last possible state
                path[t] = i
                if left < weights[i]:
                    break
            left -= weights[i]
