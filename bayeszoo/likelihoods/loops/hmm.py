"""Forward and backward passes over hidden Markov chains: log likelihood and expected counts. Numba.

Two routes give the same numbers. The first uses scaled probabilities, at 10 to 70 ns for each row. A double
holds no ratio beyond 1e308, and if the tables have zeros, a state that far behind may be the only one that later data
allow. The first route detects this; the second, in logarithms and 5 to 15 times slower, then takes over.

Throughout: K states; T rows; ``starts`` are the first rows of the sequences; initial (K,) and transition
(K, K), whose rows need not sum to one; ``zeros`` is `vectors.zeros` of K. Derivatives are by single
entries, and are sums of products, not counts divided by probabilities: they are finite at entries of 0. If the
data are impossible the log likelihood is -inf and all derivatives 0. Source: Rabiner (1989), section III.
"""

from __future__ import annotations

import math

import numpy as np

from bayeszoo.likelihoods.compiling import loop
from bayeszoo.likelihoods.loops.vectors import copied, exponentials, with_entry

RESCALE = 1e-50
"""Sum of the forward probabilities below which they are normalized."""

LARGEST_LOG = math.log(1e300)
"""Logarithm of the largest derivative."""

# Limits of the first route. If every transition is at least LEAST_ENTRY, a state lost to underflow could contribute
# less than 1e-50 of the total later. If not, no state may be lost: with factors at least as large as these, a state
# is between 0 and FAINT before it is lost.
LEAST_ENTRY, LEAST_DENSITY, FAINT, LEAST_SUM = 1e-50, 1e-100, 1e-150, 1e-200


@loop
def _least_above(bound: float, x: np.ndarray) -> float:
    """Return the smallest entry of a matrix above ``bound``, at most 1.0."""
    smallest = 1.0  # numpy.where and min would take six seconds to compile
    for i in range(len(x)):
        for j in range(x.shape[1]):
            smallest = x[i, j] if bound < x[i, j] < smallest else smallest
    return smallest


@loop
def _densities(b: np.ndarray, largest: np.ndarray, watch: bool) -> float:
    """Replace log densities (K, n) by densities over the largest of their column, whose log is written to ``largest``.

    With ``watch`` return the smallest positive density; 0 if it underflows.
    """
    states, size = b.shape
    for t in range(size):
        largest[t] = b[0, t]
    for j in range(1, states):
        for t in range(size):
            largest[t] = b[j, t] if b[j, t] > largest[t] else largest[t]
    for j in range(states):
        for t in range(size):
            b[j, t] -= 0.0 if largest[t] == -np.inf else largest[t]
    smallest = min(_least_above(-np.inf, b), 0.0) if watch else 0.0
    exponentials(b.reshape(b.size), np.empty(b.size))
    return math.exp(smallest)


@loop
def _forward(zeros, initial, transition, b, rows, opens, pred):  # type: ignore[no-untyped-def]
    """Fill in pred[t, j] = p(z_t = j, rows before t), up to a factor that keeps it representable.

    Row t has the densities b[:, rows[t]]. Return the log likelihood, and the smallest sum of probabilities.
    """
    value, smallest_sum, s, w, current = 0.0, 1.0, 1.0, copied(zeros), copied(zeros)
    for t in range(len(rows)):
        row, opening = rows[t], opens[t]
        if opening:
            value += math.log(s)
        s = 0.0
        for j in range(len(zeros)):
            p = 0.0
            if opening:
                p = initial[j]
            else:
                for i in range(len(zeros)):
                    p += w[i] * transition[i, j]
            pred[t, j] = p
            p *= b[j, row]
            current = with_entry(current, j, p)
            s += p
        if s < RESCALE:
            smallest_sum = s if s < smallest_sum else smallest_sum
            value += math.log(s)
            for j in range(len(zeros)):
                current = with_entry(current, j, current[j] / s)
            s = 1.0
        w, current = current, w
    return value + math.log(s), smallest_sum


@loop
def _backward(zeros, transition, b, rows, opens, pred, d_initial, d_transition):  # type: ignore[no-untyped-def]
    """Replace pred by the derivative of the log likelihood by b of each row; add to the tables' derivatives.

    beta is scaled so that pred * b * beta sums to one, which also corrects rounding errors. ``u`` is b * beta of the
    next row, and ``is_last`` marks the last row of a sequence.
    """
    w, u, current, is_last = copied(zeros), copied(zeros), copied(zeros), True
    for t in range(len(rows) - 1, -1, -1):
        row, norm = rows[t], 0.0
        for i in range(len(zeros)):
            beta = 1.0
            if not is_last:
                beta = 0.0
                for j in range(len(zeros)):
                    beta += transition[i, j] * u[j]
            norm += pred[t, i] * b[i, row] * beta
            w = with_entry(w, i, pred[t, i] * b[i, row])
            current = with_entry(current, i, b[i, row] * beta)
            pred[t, i] *= beta
        if abs(norm - 1) > 1e-12:  # at the end of a sequence, and after rescaling in the forward pass
            for i in range(len(zeros)):
                w = with_entry(w, i, w[i] / norm)
                current = with_entry(current, i, current[i] / norm)
                pred[t, i] /= norm
        if not is_last:
            for i in range(len(zeros)):
                for j in range(len(zeros)):
                    d_transition[i, j] += w[i] * u[j]
        u, current = current, u
        is_last = opens[t]
        if is_last:
            for j in range(len(zeros)):
                d_initial[j] += u[j]


@loop
def _may_lose(initial, transition):  # type: ignore[no-untyped-def]
    """Say whether a state lost to underflow may matter later, and whether the first route is then safe."""
    closed = _least_above(-1.0, transition) < LEAST_ENTRY
    smallest = min(_least_above(0.0, transition), _least_above(0.0, initial.reshape(1, -1)))
    return closed, not closed or smallest >= LEAST_ENTRY


@loop
def _none_lost(pred, b, rows, least_density):  # type: ignore[no-untyped-def]
    """Say whether no possible state became so improbable that it may have been lost."""
    none_is_faint = least_density >= LEAST_DENSITY
    for t in range(len(rows)):
        for j in range(len(b)):
            none_is_faint &= not 0.0 < pred[t, j] * b[j, rows[t]] < FAINT
    return none_is_faint


@loop
def opens(starts: np.ndarray, rows: int) -> np.ndarray:
    """Mark the first row of each sequence."""
    marks = np.zeros(rows, np.bool_)
    for n in range(max(len(starts), min(rows, 1))):
        if len(starts) == 0 or starts[0] != 0 or starts[n] >= rows or (n > 0 and starts[n] <= starts[n - 1]):
            raise ValueError("starts must be the first rows of the sequences: 0, then increasing")
        marks[starts[n]] = True
    return marks


# The second route, in logarithms


@loop
def _exp(x: float) -> float:
    """Return exp(x), or a large finite number on overflow, as it may be multiplied by zero."""
    # the C library takes ten times as long on underflow
    return 0.0 if x < -745.2 else math.exp(LARGEST_LOG if x > LARGEST_LOG else x)


@loop
def _log_sum(x: np.ndarray) -> float:
    """Return log(sum(exp(x))); -inf if all are."""
    largest = x[0]
    for value in x:
        largest = value if value > largest else largest
    if largest == -np.inf:
        return largest
    total = 0.0
    for value in x:
        total += _exp(value - largest)
    return largest + math.log(total)


@loop
def log_forward(log_initial, log_transition, log_b, rows, opens, pred):  # type: ignore[no-untyped-def]
    """Fill in pred[t, j] = log p(z_t = j | rows before t) up to an impossible row; return the log likelihood."""
    size, value = len(log_initial), 0.0
    w, terms = np.empty(size), np.empty(size)
    for t in range(len(rows)):
        for j in range(size):
            for i in range(size):
                terms[i] = w[i] + log_transition[i, j]
            pred[t, j] = log_initial[j] if opens[t] else _log_sum(terms)
        for j in range(size):
            w[j] = pred[t, j] + log_b[j, rows[t]]
        log_s = _log_sum(w)
        value += log_s
        if log_s == -np.inf:
            return value
        for j in range(size):
            w[j] -= log_s
    return value


@loop
def log_rows(log_initial, log_transition, log_b, opens, terms):  # type: ignore[no-untyped-def]
    """Fill in terms[d, t] = log p(row t | rows before t) at draws d, each with its own tables and densities.

    Stop at the first draw under which the rows are impossible, and return its number; else the number of draws.
    """
    draws, size, length = log_b.shape
    rows, pred, w = np.arange(length), np.empty((length, size)), np.empty(size)
    for d in range(draws):
        if log_forward(log_initial[d], log_transition[d], log_b[d], rows, opens, pred) == -np.inf:
            return d
        for t in range(length):
            for j in range(size):
                w[j] = pred[t, j] + log_b[d, j, t]
            terms[d, t] = _log_sum(w)
    return draws


@loop
def _log_backward(log_transition, log_b, rows, opens, pred, d_initial, d_transition):  # type: ignore[no-untyped-def]
    """Replace pred by the log derivative by b of each row; add to the tables' derivatives."""
    size, is_last = len(log_transition), True
    u, w, beta, terms = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    for t in range(len(rows) - 1, -1, -1):
        for i in range(size):
            w[i] = pred[t, i] + log_b[i, rows[t]]
        log_s = _log_sum(w)
        for i in range(size):
            for j in range(size):
                terms[j] = log_transition[i, j] + u[j]
                d_transition[i, j] += 0.0 if is_last else _exp(w[i] - log_s + u[j])
            beta[i] = 0.0 if is_last else _log_sum(terms)
        is_last = opens[t]
        for j in range(size):
            pred[t, j] += beta[j] - log_s
            u[j] = log_b[j, rows[t]] + beta[j] - log_s
            d_initial[j] += _exp(u[j]) if is_last else 0.0


@loop
def _in_logs(initial, transition, log_b, rows, opens):  # type: ignore[no-untyped-def]
    """Return the log likelihood, derivatives by the tables, and log derivatives by b of each row."""
    size = len(initial)
    pred, d_initial, d_transition = np.empty((len(rows), size)), np.zeros(size), np.zeros((size, size))
    log_transition = np.log(transition)
    value = log_forward(np.log(initial), log_transition, log_b, rows, opens, pred)
    if value == -np.inf:
        pred[:] = -np.inf
    else:
        _log_backward(log_transition, log_b, rows, opens, pred, d_initial, d_transition)
    return value, d_initial, d_transition, pred


# Both routes: rows that share the densities of V distinct observations


@loop
def _scaled(zeros, initial, transition, b, largest, logs, codes, opens, d_b, d_initial, d_transition):  # type: ignore[no-untyped-def]
    """Add to the derivatives; return the log likelihood, and whether the first route was exact."""
    (closed, safe), pred = _may_lose(initial, transition), np.empty((len(codes), len(initial)))
    smallest_density = _densities(b, largest, closed) if logs else _least_above(0.0, b)
    value, smallest_sum = _forward(zeros, initial, transition, b, codes, opens, pred)
    if not safe or smallest_sum < LEAST_SUM or (closed and not _none_lost(pred, b, codes, smallest_density)):
        return value, False
    _backward(zeros, transition, b, codes, opens, pred, d_initial, d_transition)
    partial = 0.0
    for t in range(len(codes)):
        partial += largest[codes[t]]
        if t % 256 == 255:  # one long sum of a million terms would lose five digits
            value, partial = value + partial, 0.0
        for j in range(len(b)):
            d_b[j, codes[t]] += pred[t, j] * b[j, codes[t]] if logs else pred[t, j]
    # beta of an impossible state may overflow: infinity times 0
    return value + partial, math.isfinite(d_b.sum() + d_initial.sum() + d_transition.sum())


@loop
def _with_missing(table: np.ndarray, missing: float) -> np.ndarray:
    """Return a table (K, V) with an additional column for missing observations."""
    states, size = table.shape
    b = np.empty((states, size + 1))
    for j in range(states):  # slice assignment would take three seconds to compile
        for v in range(size):
            b[j, v] = table[j, v]
        b[j, size] = missing
    return b


@loop
def table_density(zeros, initial, transition, densities, logs, codes, starts):  # type: ignore[no-untyped-def]
    """Return the log likelihood and its derivatives by initial, transition and densities.

    ``densities`` (K, V) are those of the distinct observations, or with ``logs`` their logarithms; ``codes`` (T,) are
    the rows' columns, -1 for a missing observation, which gets an additional last column.
    """
    (states, size), length, marks = densities.shape, len(codes), opens(starts, len(codes))
    for code in codes:
        if not -1 <= code < size:
            raise ValueError("codes must be columns of the table, or -1 for missing observations")
    b, d_b, largest = _with_missing(densities, 0.0 if logs else 1.0), np.zeros((states, size + 1)), np.zeros(size + 1)
    d_initial, d_transition = np.zeros(states), np.zeros((states, states))
    value, safe = _scaled(zeros, initial, transition, b, largest, logs, codes, marks, d_b, d_initial, d_transition)
    if not safe:
        b, d_b = _with_missing(densities if logs else np.log(densities), 0.0), np.zeros((states, size + 1))
        value, d_initial, d_transition, log_d = _in_logs(initial, transition, b, codes, marks)
        for t in range(length):
            for j in range(states):
                d_b[j, codes[t]] += _exp(log_d[t, j] + (b[j, codes[t]] if logs else 0.0))
    return value, d_initial, d_transition, d_b[:, :size]
