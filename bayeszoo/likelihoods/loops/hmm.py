"""Forward and backward passes over hidden Markov chains: log likelihood and expected counts. Numba.

Two routes to the same numbers. The first takes probabilities, scaled as they get small, at 10 to 70 ns a row. A double
holds no ratio beyond 1e308, and where the tables have zeros a state that far behind may be the only one that later data
allow. The first route notices that; the second, in logarithms and 5 to 15 times slower, then takes over.

Throughout: K states; T rows, of which ``starts`` are the first ones of the sequences; initial (K,) and transition
(K, K), whose rows need not sum to one; ``zeros`` is `vectors.zeros` of K. Derivatives are with respect to each entry on
its own, and are sums of products, not counts divided by probabilities: they are finite where an entry is 0. Where the
data are impossible the log likelihood is -inf and all derivatives 0. Source: Rabiner (1989), section III.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from bayeszoo.likelihoods.loops.vectors import copied, exponentials, with_entry

BLOCK = 256
"""Rows at a time whose densities are computed and used: few enough for the first-level cache."""

RESCALE = 1e-50
"""Sum of the forward probabilities below which they are made to sum to one."""

LARGEST_LOG = math.log(1e300)
"""Logarithm of the largest derivative."""

# What the first route may meet. If every transition is at least LEAST_ENTRY, what a state lost to underflow could add
# later is less than 1e-50 of the whole. If not, no state may be lost: with factors no less than these, none is without
# having been between 0 and FAINT.
LEAST_ENTRY, LEAST_DENSITY, FAINT, LEAST_SUM = 1e-50, 1e-100, 1e-150, 1e-200

_loops = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=False)


@_loops
def _densities(b: np.ndarray, largest: np.ndarray, work: np.ndarray, watch: bool) -> float:
    """Replace log densities, (K, n), by densities over the largest of their column, whose log goes to ``largest``.

    With ``watch`` returns the least that is not 0: where an underflow made it so, 0.
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
    least = np.where(b > -np.inf, b, 0.0).min() if watch else 0.0
    exponentials(b.reshape(b.size), work)
    return math.exp(least)


@_loops
def _forward(zeros, initial, transition, b, rows, opens, pred, w, s):  # type: ignore[no-untyped-def]
    """Fill in pred[t, j] = p(z_t = j, rows before t) but for a factor that keeps it representable.

    Row t has the densities b[:, rows[t]]. ``w`` and ``s``, from block to block: the last row's pred * b and its sum.
    Returns the log likelihood up to a last log(s), the least sum met, w and s.
    """
    value, least, now = 0.0, 1.0, copied(zeros)
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
            now = with_entry(now, j, p)
            s += p
        if s < RESCALE:
            least = s if s < least else least
            value += math.log(s)
            for j in range(len(zeros)):
                now = with_entry(now, j, now[j] / s)
            s = 1.0
        w, now = now, w
    return value, least, w, s


@_loops
def _backward(zeros, transition, b, rows, opens, pred, u, ends, d_initial, d_transition):  # type: ignore[no-untyped-def]
    """Replace pred by the derivative of the log likelihood with respect to b of each row; add to those of the tables.

    ``u``, from block to block, is b * beta of the row after, and ``ends`` whether that one is of another sequence. beta
    is scaled so that pred * b * beta sums to one, which also mends rounding errors.
    """
    w, now = copied(zeros), copied(zeros)
    for t in range(len(rows) - 1, -1, -1):
        row, norm = rows[t], 0.0
        for i in range(len(zeros)):
            beta = 1.0
            if not ends:
                beta = 0.0
                for j in range(len(zeros)):
                    beta += transition[i, j] * u[j]
            norm += pred[t, i] * b[i, row] * beta
            w = with_entry(w, i, pred[t, i] * b[i, row])
            now = with_entry(now, i, b[i, row] * beta)
            pred[t, i] *= beta
        if abs(norm - 1) > 1e-12:  # at the end of a sequence, and where the forward pass was rescaled
            for i in range(len(zeros)):
                w = with_entry(w, i, w[i] / norm)
                now = with_entry(now, i, now[i] / norm)
                pred[t, i] /= norm
        if not ends:
            for i in range(len(zeros)):
                for j in range(len(zeros)):
                    d_transition[i, j] += w[i] * u[j]
        u, now = now, u
        ends = opens[t]
        if ends:
            for j in range(len(zeros)):
                d_initial[j] += u[j]
    return u, ends


@_loops
def _may_lose(initial, transition):  # type: ignore[no-untyped-def]
    """Say whether a state lost to underflow may matter later, and whether the tables allow the first route then."""
    closed = transition.min() < LEAST_ENTRY
    least = min(np.where(transition > 0, transition, 1.0).min(), np.where(initial > 0, initial, 1.0).min())
    return closed, not closed or least >= LEAST_ENTRY


@_loops
def _none_lost(pred, b, rows, least_density):  # type: ignore[no-untyped-def]
    """Say whether no state that could be has got so improbable that it may be lost."""
    kept = least_density >= LEAST_DENSITY
    for t in range(len(rows)):
        for j in range(len(b)):
            kept &= not 0.0 < pred[t, j] * b[j, rows[t]] < FAINT
    return kept


@_loops
def _opens(starts: np.ndarray, rows: int) -> np.ndarray:
    """Mark the first row of each sequence."""
    marks = np.zeros(rows, np.bool_)
    for n in range(max(len(starts), min(rows, 1))):
        if len(starts) == 0 or starts[0] != 0 or starts[n] >= rows or (n > 0 and starts[n] <= starts[n - 1]):
            raise ValueError("starts are the first rows of the sequences: 0, and then increasing")
        marks[starts[n]] = True
    return marks


# The second route, in logarithms


@_loops
def _exp(x: float) -> float:
    """Return exp(x), or where that overflows a finite number: a table may be multiplied by zeros."""
    # the C library takes ten times as long to say that there is an underflow
    return 0.0 if x < -745.2 else math.exp(LARGEST_LOG if x > LARGEST_LOG else x)


@_loops
def _log_sum(x: np.ndarray) -> float:
    """Return log(sum(exp(x))); -inf where all are."""
    largest = x[0]
    for value in x:
        largest = value if value > largest else largest
    if largest == -np.inf:
        return largest
    total = 0.0
    for value in x:
        total += _exp(value - largest)
    return largest + math.log(total)


@_loops
def log_forward(log_initial, log_transition, log_b, rows, opens, pred):  # type: ignore[no-untyped-def]
    """Fill in pred[t, j] = log p(z_t = j | rows before t), up to an impossible row; return the log likelihood."""
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


@_loops
def _log_backward(log_transition, log_b, rows, opens, pred, d_initial, d_transition):  # type: ignore[no-untyped-def]
    """Replace pred by the log of the derivative with respect to b of each row; add to the derivatives of the tables."""
    size, ends = len(log_transition), True
    u, w, beta, terms = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    for t in range(len(rows) - 1, -1, -1):
        for i in range(size):
            w[i] = pred[t, i] + log_b[i, rows[t]]
        log_s = _log_sum(w)
        for i in range(size):
            for j in range(size):
                terms[j] = log_transition[i, j] + u[j]
                d_transition[i, j] += 0.0 if ends else _exp(w[i] - log_s + u[j])
            beta[i] = 0.0 if ends else _log_sum(terms)
        ends = opens[t]
        for j in range(size):
            pred[t, j] += beta[j] - log_s
            u[j] = log_b[j, rows[t]] + beta[j] - log_s
            d_initial[j] += _exp(u[j]) if ends else 0.0


@_loops
def _in_logs(initial, transition, log_b, rows, opens):  # type: ignore[no-untyped-def]
    """Return the log likelihood, derivatives of the tables, and log derivatives with respect to b of each row."""
    size = len(initial)
    pred, d_initial, d_transition = np.empty((len(rows), size)), np.zeros(size), np.zeros((size, size))
    log_transition = np.log(transition)
    value = log_forward(np.log(initial), log_transition, log_b, rows, opens, pred)
    if value == -np.inf:
        pred[:] = -np.inf
    else:
        _log_backward(log_transition, log_b, rows, opens, pred, d_initial, d_transition)
    return value, d_initial, d_transition, pred


# Rows with densities of their own: given in logarithms, or as normal


@_loops
def _fill(b, first, log_b, y, means, sigmas):  # type: ignore[no-untyped-def]
    """Fill in log densities, (K, n), of the rows from ``first``: log_b's, or where it has none N(means, sigmas^2)'s."""
    states, size = b.shape
    for j in range(states):
        if len(log_b) > 0:
            for t in range(size):
                b[j, t] = log_b[first + t, j]
        else:
            constant, scale, mean = -math.log(sigmas[j]) - 0.5 * math.log(2 * math.pi), 1 / sigmas[j], means[j]
            for t in range(size):
                z = (y[first + t] - mean) * scale
                b[j, t] = 0.0 if y[first + t] != y[first + t] else constant - 0.5 * z * z  # NaN is missing


@_loops
def _block(held, iota, opens, pred, first, size):  # type: ignore[no-untyped-def]
    """Return the part of each array for ``size`` rows; the densities of a block are together, (K, size)."""
    states, last = pred.shape[1], first + size
    return held[states * first : states * last].reshape(states, size), iota[:size], opens[first:last], pred[first:last]


@_loops
def _scaled_forward(zeros, initial, transition, log_b, y, means, sigmas, opens, pred, held):  # type: ignore[no-untyped-def]
    """Fill in pred and densities; return the log likelihood, and whether no state was lost that may matter."""
    length, states = pred.shape
    work, largest, iota = np.empty(BLOCK * states), np.empty(BLOCK), np.arange(BLOCK)
    w, s, value = copied(zeros), 1.0, 0.0
    closed, safe = _may_lose(initial, transition)
    for first in range(0, length if safe else 0, BLOCK):
        size = min(BLOCK, length - first)
        b, rows, opening, mine = _block(held, iota, opens, pred, first, size)
        _fill(b, first, log_b, y, means, sigmas)
        least_density = _densities(b, largest, work, closed)
        gain, least, w, s = _forward(zeros, initial, transition, b, rows, opening, mine, w, s)
        value += gain + largest[:size].sum()
        safe &= least >= LEAST_SUM and (not closed or _none_lost(mine, b, rows, least_density))
    return value + math.log(s), safe


@_loops
def _scaled_backward(zeros, transition, opens, pred, held, d_initial, d_transition):  # type: ignore[no-untyped-def]
    """Replace pred by p(z_t | all rows)."""
    (length, states), iota = pred.shape, np.arange(BLOCK)
    u, ends = copied(zeros), True
    for first in range((length - 1) // BLOCK * BLOCK, -1, -BLOCK):
        size = min(BLOCK, length - first)
        b, rows, opening, mine = _block(held, iota, opens, pred, first, size)
        u, ends = _backward(zeros, transition, b, rows, opening, mine, u, ends, d_initial, d_transition)
        for t in range(size):
            for j in range(states):
                mine[t, j] *= b[j, t]


@_loops
def _posterior(zeros, initial, transition, log_b, y, means, sigmas, opens):  # type: ignore[no-untyped-def]
    length, states = len(opens), len(initial)
    pred, d_initial, d_transition = np.empty((length, states)), np.zeros(states), np.zeros((states, states))
    held = np.empty(length * states)
    value, safe = _scaled_forward(zeros, initial, transition, log_b, y, means, sigmas, opens, pred, held)
    if safe:
        _scaled_backward(zeros, transition, opens, pred, held, d_initial, d_transition)
        # of a state that cannot be, beta may overflow: infinity times 0
        if math.isfinite(d_initial.sum() + d_transition.sum() + pred.sum()):
            return value, d_initial, d_transition, pred
    logs = np.empty((states, length))
    _fill(logs, 0, log_b, y, means, sigmas)
    value, d_initial, d_transition, pred = _in_logs(initial, transition, logs, np.arange(length), opens)
    for t in range(length):
        for j in range(states):
            pred[t, j] = _exp(pred[t, j] + logs[j, t])
    return value, d_initial, d_transition, pred


@_loops
def posterior(zeros, initial, transition, log_b, starts):  # type: ignore[no-untyped-def]
    """Return log likelihood, derivatives of initial and transition, and p(z_t | all rows), (T, K), that of log_b.

    ``log_b`` (T, K) are the log densities of the rows in each state; those of a missing observation are 0.
    """
    none = np.empty(0)
    return _posterior(zeros, initial, transition, log_b, none, none, none, _opens(starts, len(log_b)))


@_loops
def normal(zeros, initial, transition, means, sigmas, y, starts):  # type: ignore[no-untyped-def]
    """Return log likelihood, derivatives of the tables, and each state's sums of 1, z and z^2; NaN is missing."""
    states, none, opens = len(initial), np.empty((0, 0)), _opens(starts, len(y))
    value, d_initial, d_transition, gamma = _posterior(zeros, initial, transition, none, y, means, sigmas, opens)
    counts, first, second = np.zeros(states), np.zeros(states), np.zeros(states)
    for t in range(len(y)):
        for j in range(states if y[t] == y[t] else 0):
            z = (y[t] - means[j]) / sigmas[j]
            counts[j] += gamma[t, j]
            first[j] += gamma[t, j] * z
            second[j] += gamma[t, j] * z * z
    return value, d_initial, d_transition, counts, first, second


# Rows that share the densities of V distinct observations


@_loops
def _scaled_table(zeros, initial, transition, b, least_density, codes, opens, d_b, d_initial, d_transition):  # type: ignore[no-untyped-def]
    """Add to the derivatives; return the log likelihood, and whether nothing was lost that may matter."""
    (closed, safe), pred = _may_lose(initial, transition), np.empty((len(codes), len(initial)))
    value, least, _, s = _forward(zeros, initial, transition, b, codes, opens, pred, copied(zeros), 1.0)
    if not safe or least < LEAST_SUM or (closed and not _none_lost(pred, b, codes, least_density)):
        return value, False
    _backward(zeros, transition, b, codes, opens, pred, copied(zeros), True, d_initial, d_transition)
    for t in range(len(codes)):
        for j in range(len(b)):
            d_b[j, codes[t]] += pred[t, j]
    return value + math.log(s), math.isfinite(d_b.sum() + d_initial.sum() + d_transition.sum())


@_loops
def _counted(codes: np.ndarray, size: int) -> np.ndarray:
    """Count the codes, and last the missing ones."""
    counts = np.zeros(size + 1)
    for code in codes:
        if not -1 <= code < size:
            raise ValueError("codes are columns of the table, or -1 where the observation is missing")
        counts[code] += 1
    return counts


@_loops
def table(zeros, initial, transition, densities, logs, codes, starts):  # type: ignore[no-untyped-def]
    """Return log likelihood and derivatives of initial, transition and densities.

    ``densities`` (K, V) of the distinct observations, or with ``logs`` their logarithms; ``codes`` (T,) are the rows'
    columns, -1 where the observation is missing: the table gets a last column for it.
    """
    (states, size), length = densities.shape, len(codes)
    counts, opens, largest = _counted(codes, size), _opens(starts, length), np.zeros(size + 1)
    b, d_b = np.empty((states, size + 1)), np.zeros((states, size + 1))
    b[:, :size], b[:, size] = densities, 0.0 if logs else 1.0
    least = _densities(b, largest, np.empty(b.size), True) if logs else np.where(b > 0, b, 1.0).min()
    d_initial, d_transition = np.zeros(states), np.zeros((states, states))
    value, safe = _scaled_table(zeros, initial, transition, b, least, codes, opens, d_b, d_initial, d_transition)
    if safe:
        value += (counts * np.where(counts > 0, largest, 0.0)).sum()
        return value, d_initial, d_transition, (d_b * b if logs else d_b)[:, :size]
    b[:, :size], b[:, size], d_b[:] = densities if logs else np.log(densities), 0.0, 0.0
    value, d_initial, d_transition, log_d = _in_logs(initial, transition, b, codes, opens)
    for t in range(length):
        for j in range(states):
            d_b[j, codes[t]] += _exp(log_d[t, j] + (b[j, codes[t]] if logs else 0.0))
    return value, d_initial, d_transition, d_b[:, :size]
