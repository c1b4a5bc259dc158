"""Hidden Markov chains with known tables: filter, smoother, most probable path, draws of paths, prediction, E-step.

Throughout, K states and T rows: ``initial`` (K,) are the probabilities of the states in the first row of a sequence,
``transition`` (K, K) those of the next state, a row for each state, and ``log_b`` (T, K) the log density of each row in
each state. ``starts`` are the indices of the first rows of the sequences, which share nothing but the tables; by
default there is one. Rows marked in ``missing`` (T,) say nothing, whatever their ``log_b``.

Rows of the tables may sum to less than one, as in variational Bayes, where they are the exponentials of expected
logarithms. Zeros may be anywhere. Sources: Rabiner (1989), A tutorial on hidden Markov models; Bishop (2006), 13.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np

from bayeszoo.errors import InputError, NumericalError
from bayeszoo.likelihoods import hmm_loops, vectors

_loops = numba.njit(cache=True, nogil=True, error_model="numpy")


@dataclass(frozen=True, eq=False)
class Filtered:
    """What is known of the states as the rows come in.

    Attributes
    ----------
    predicted : numpy.ndarray of shape (T, K)
        p(z_t | rows before t of its sequence).
    filtered : numpy.ndarray of shape (T, K)
        p(z_t | rows up to t of its sequence).
    value : float
        Log likelihood.
    """

    predicted: np.ndarray
    filtered: np.ndarray
    value: float


@dataclass(frozen=True, eq=False)
class Smoothed:
    """What is known of the states given all rows: the E-step of Baum and Welch.

    Attributes
    ----------
    probabilities : numpy.ndarray of shape (T, K)
        p(z_t | all rows of its sequence).
    initial : numpy.ndarray of shape (K,)
        Expected number of sequences that start in each state.
    transition : numpy.ndarray of shape (K, K)
        Expected number of transitions from each state to each.
    value : float
        Log likelihood.
    """

    probabilities: np.ndarray
    initial: np.ndarray
    transition: np.ndarray
    value: float


@dataclass(frozen=True, eq=False)
class SymbolCounts:
    """The E-step of Baum and Welch for rows of symbols.

    Attributes
    ----------
    initial : numpy.ndarray of shape (K,)
        Expected number of sequences that start in each state.
    transition : numpy.ndarray of shape (K, K)
        Expected number of transitions from each state to each.
    emission : numpy.ndarray of shape (K, V)
        Expected number of times that each state gave each symbol.
    value : float
        Log likelihood.
    """

    initial: np.ndarray
    transition: np.ndarray
    emission: np.ndarray
    value: float


class _Chain(NamedTuple):
    """Checked arguments."""

    initial: np.ndarray
    transition: np.ndarray
    log_b: np.ndarray
    starts: np.ndarray

    @property
    def opens(self) -> np.ndarray:
        """Mark the first row of each sequence, shape (T,)."""
        return np.isin(np.arange(len(self.log_b)), self.starts)

    @property
    def zeros(self) -> Any:
        """What compiled passes know K from."""
        return vectors.zeros(len(self.initial))


def log_likelihood(initial: Any, transition: Any, log_b: Any, starts: Any = None, missing: Any = None) -> float:
    """Return the log density of the rows, states summed out; -inf where no path of states can give them."""
    chain = _checked(initial, transition, log_b, starts, missing)
    return float(_posterior(chain)[0])


def forward(initial: Any, transition: Any, log_b: Any, starts: Any = None, missing: Any = None) -> Filtered:
    """Return the probabilities of the states given the rows so far.

    Raises
    ------
    NumericalError
        Where no path of states can give the rows.
    """
    chain = _checked(initial, transition, log_b, starts, missing)
    log_predicted, value = _log_predicted(chain)
    return Filtered(_normalized(log_predicted), _normalized(log_predicted + chain.log_b), value)


def smooth(initial: Any, transition: Any, log_b: Any, starts: Any = None, missing: Any = None) -> Smoothed:
    """Return the probabilities of the states given all rows, and expected counts.

    Raises
    ------
    NumericalError
        Where no path of states can give the rows.
    """
    chain = _checked(initial, transition, log_b, starts, missing)
    value, of_initial, of_transition, probabilities = _posterior(chain)
    if value == -np.inf:
        raise _impossible(chain)
    return Smoothed(probabilities, chain.initial * of_initial, chain.transition * of_transition, float(value))


def symbol_counts(initial: Any, transition: Any, emission: Any, symbols: Any, starts: Any = None) -> SymbolCounts:
    """Return expected counts for rows of symbols, which are several times faster than by `smooth`.

    Parameters
    ----------
    initial, transition, starts : array_like
        As for all functions of this module.
    emission : array_like of shape (K, V)
        Probability of each symbol in each state.
    symbols : array_like of shape (T,)
        Codes 0 to V - 1; -1 where the observation is missing.

    Raises
    ------
    NumericalError
        Where no path of states can give the rows.
    """
    codes, table = np.ascontiguousarray(symbols, dtype=np.int64), np.ascontiguousarray(emission, dtype=np.float64)
    if table.ndim != 2 or not np.all(table >= 0) or not np.all(np.isfinite(table)):
        raise InputError("emission must be a table of probabilities: a row for each state, a column for each symbol")
    if np.any((codes < -1) | (codes >= table.shape[1])):
        raise InputError(f"symbols must be codes from 0 to {table.shape[1] - 1}, or -1 where missing")
    start, to, _, firsts = _checked(initial, transition, np.zeros((len(codes), len(table))), starts, None)
    value, *slopes = hmm_loops.table(vectors.zeros(len(start)), start, to, table, False, codes, firsts)
    if value == -np.inf:
        raise NumericalError("the data are impossible: no path of states can give them")
    return SymbolCounts(start * slopes[0], to * slopes[1], table * slopes[2], float(value))


def viterbi(
    initial: Any, transition: Any, log_b: Any, starts: Any = None, missing: Any = None
) -> tuple[np.ndarray, float]:
    """Return the most probable path of states, shape (T,), and its log joint density with the rows.

    Of equally probable last states the lowest is taken, and so on backwards.

    Raises
    ------
    NumericalError
        Where no path of states can give the rows.
    """
    chain = _checked(initial, transition, log_b, starts, missing)
    opens, path = chain.opens, np.zeros(len(chain.log_b), dtype=np.int64)
    with np.errstate(divide="ignore"):
        log_initial, log_transition = np.log(chain.initial), np.log(chain.transition)
    _best_path(log_initial, log_transition, chain.log_b, opens, path)
    steps = np.where(opens, log_initial[path], log_transition[np.roll(path, 1), path])
    value = float(np.sum(steps + np.take_along_axis(chain.log_b, path[:, None], axis=1)[:, 0]))
    if value == -np.inf:
        raise _impossible(chain)
    return path, value


def sample_paths(
    initial: Any,
    transition: Any,
    log_b: Any,
    starts: Any = None,
    missing: Any = None,
    *,
    rng: np.random.Generator,
    size: int = 1,
) -> np.ndarray:
    """Draw paths of states given all rows, shape (size, T): forward filtering, backward sampling.

    Raises
    ------
    NumericalError
        Where no path of states can give the rows.
    """
    chain = _checked(initial, transition, log_b, starts, missing)
    log_filtered = _log_predicted(chain)[0] + chain.log_b
    ends, paths = np.append(chain.opens[1:], True), np.empty((size, len(chain.log_b)), dtype=np.int64)
    with np.errstate(divide="ignore"):
        log_transition = np.log(chain.transition)
    for path in paths:
        _draw(log_filtered, log_transition, ends, rng.random(len(path)), path)
    return paths


def predict_states(probabilities: Any, transition: Any, steps: int) -> np.ndarray:
    """Return the probabilities of the states ``steps`` rows later, of shape (..., K) as those given."""
    if steps < 0:
        raise InputError("states are predicted 0 or more rows ahead")
    return np.asarray(probabilities, dtype=np.float64) @ np.linalg.matrix_power(np.asarray(transition), steps)


def _checked(initial: Any, transition: Any, log_b: Any, starts: Any, missing: Any) -> _Chain:
    start, to = (np.ascontiguousarray(table, dtype=np.float64) for table in (initial, transition))
    rows = np.array(log_b, dtype=np.float64, order="C")
    size, states = len(rows), start.size
    if start.ndim != 1 or to.shape != (states, states) or rows.ndim != 2 or rows.shape[1] != states or states == 0:
        raise InputError(f"shapes do not fit: initial {start.shape}, transition {to.shape}, log_b {rows.shape}")
    for name, table in (("initial", start), ("transition", to)):
        if not np.all(table >= 0) or not np.all(table.sum(axis=-1) <= 1 + 1e-8):
            raise InputError(f"{name} must be probabilities, of sum one or less")
    if missing is not None:
        if np.shape(missing) != (size,):
            raise InputError(f"missing has shape {np.shape(missing)}, the data have {size} rows")
        rows[np.asarray(missing, dtype=bool)] = 0.0
    if not np.all(rows < np.inf):
        raise InputError("log_b must be log densities: neither NaN nor infinite above")
    return _Chain(start, to, rows, _first_rows(starts, size))


def _first_rows(starts: Any, size: int) -> np.ndarray:
    firsts = np.ascontiguousarray([0] * min(size, 1) if starts is None else starts, dtype=np.int64)
    if firsts.ndim != 1 or not np.array_equal(firsts[:1], [0] * min(size, 1)) or not np.all(np.diff(firsts) > 0):
        raise InputError("starts are the first rows of the sequences: 0, and then increasing")
    if np.any(firsts >= size):
        raise InputError(f"a sequence cannot start at row {firsts[-1] + 1} of {size}")
    return firsts


def _posterior(chain: _Chain) -> Any:
    return hmm_loops.posterior(chain.zeros, *chain)


def _log_predicted(chain: _Chain) -> tuple[np.ndarray, float]:
    """Return log p(z_t | rows before t), shape (T, K), and the log likelihood, which must be finite."""
    rows, log_predicted = np.arange(len(chain.log_b)), np.full_like(chain.log_b, -np.inf)
    with np.errstate(divide="ignore"):
        tables = np.log(chain.initial), np.log(chain.transition)
    value = hmm_loops.log_forward(*tables, np.ascontiguousarray(chain.log_b.T), rows, chain.opens, log_predicted)
    if value == -np.inf:
        row = int(np.argmax(np.all(log_predicted + chain.log_b == -np.inf, axis=1)))
        raise NumericalError(
            f"the data are impossible: no state that can follow the rows before can give row {row + 1}"
        )
    return log_predicted, float(value)


def _impossible(chain: _Chain) -> Exception:
    """Return the error that says where."""
    try:
        _log_predicted(chain)
    except NumericalError as error:
        return error
    return NumericalError("the log likelihood is not finite")


def _normalized(logs: np.ndarray) -> np.ndarray:
    """Return probabilities that sum to one along the last axis."""
    weights = np.exp(logs - logs.max(axis=-1, keepdims=True, initial=-np.inf))
    return weights / weights.sum(axis=-1, keepdims=True)


@_loops
def _best_path(log_initial, log_transition, log_b, opens, path):  # type: ignore[no-untyped-def]
    """Fill in the path; scores are kept relative to the best one, or a million rows would cost ten digits."""
    size, states = log_b.shape
    before, score, now = np.zeros((size, states), np.int32), np.zeros(states), np.zeros(states)
    best = np.zeros(size, np.int32)
    for t in range(size):
        for j in range(states):
            now[j] = log_initial[j]
            if not opens[t]:
                at = 0
                for i in range(1, states):
                    if score[i] + log_transition[i, j] > score[at] + log_transition[at, j]:
                        at = i
                before[t, j], now[j] = at, score[at] + log_transition[at, j]
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


@_loops
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
            if weights[i] > 0:  # rounding may leave something after the last state that can be
                path[t] = i
                if left < weights[i]:
                    break
            left -= weights[i]
