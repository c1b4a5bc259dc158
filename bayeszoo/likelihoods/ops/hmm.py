"""Log likelihood of hidden Markov chains as PyTensor operations, which compute their gradients as well.

A `pytensor.scan` over the rows gives the same numbers, at 30 to 100 times the cost. Here the gradient is that of Baum
and Welch: posterior probabilities of the states, and expected counts, from one forward and one backward pass.

All functions take tables whose rows need not sum to one, and derivatives are with respect to each entry on its own.
Zeros may be anywhere: the derivative at a zero is what the entry would gain, or 1e300 where that overflows. Where the
data are impossible the log likelihood is -inf and the gradient 0. Second derivatives raise NotImplementedError.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytensor.tensor as pt
from pytensor.link.numba.dispatch import basic as numba_basic
from pytensor.link.numba.dispatch.basic import register_funcify_default_op_cache_key
from scipy import stats

from bayeszoo.likelihoods.loops import hmm as hmm_loops
from bayeszoo.likelihoods.loops import vectors
from bayeszoo.likelihoods.ops.operation import LogDensity, source_version


class ChainLikelihood(LogDensity):
    """Initial (K,), transition (K, K), and what the rows' densities follow from, to log likelihood and gradients.

    K may be unknown when the graph is made; where it is small and known, it is compiled for.
    """

    __props__: tuple[str, ...] = ("states",)  # type: ignore[assignment]
    sources: ClassVar[tuple[Any, ...]] = (hmm_loops, vectors)

    def __init__(self, states: int | None) -> None:
        self.states = states


@register_funcify_default_op_cache_key(ChainLikelihood)
def _funcify(op: ChainLikelihood, node: Any, **kwargs: Any) -> Any:
    loops = numba_basic.numba_njit(type(op).loops)
    zeros = vectors.zeros(op.states) if op.states is not None else None

    if isinstance(zeros, tuple):

        @numba_basic.numba_njit
        def chain(*inputs: Any) -> Any:
            return loops(zeros, *inputs)
    else:

        @numba_basic.numba_njit
        def chain(*inputs: Any) -> Any:
            return loops(np.zeros(len(inputs[0])), *inputs)

    return chain, source_version(type(op).loops, *op.sources)


def _dense_loops(zeros: Any, initial: Any, transition: Any, log_b: Any, starts: Any) -> Any:
    tables = np.ascontiguousarray(initial), np.ascontiguousarray(transition)
    value, of_initial, of_transition, gamma = hmm_loops.posterior(zeros, *tables, np.ascontiguousarray(log_b), starts)
    return np.asarray(value), of_initial, of_transition, gamma


def _symbol_loops(zeros: Any, initial: Any, transition: Any, emission: Any, symbols: Any, starts: Any) -> Any:
    tables = np.ascontiguousarray(initial), np.ascontiguousarray(transition), np.ascontiguousarray(emission)
    value, of_initial, of_transition, of_emission = hmm_loops.table(zeros, *tables, False, symbols, starts)
    return np.asarray(value), of_initial, of_transition, of_emission


def _table_loops(zeros: Any, initial: Any, transition: Any, log_table: Any, codes: Any, starts: Any) -> Any:
    tables = np.ascontiguousarray(initial), np.ascontiguousarray(transition), np.ascontiguousarray(log_table)
    value, of_initial, of_transition, of_table = hmm_loops.table(zeros, *tables, True, codes, starts)
    return np.asarray(value), of_initial, of_transition, of_table


def _normal_loops(zeros: Any, initial: Any, transition: Any, means: Any, sigmas: Any, y: Any, starts: Any) -> Any:
    tables = np.ascontiguousarray(initial), np.ascontiguousarray(transition)
    numbers = np.ascontiguousarray(means), np.ascontiguousarray(sigmas), np.ascontiguousarray(y)
    value, of_initial, of_transition, counts, first, second = hmm_loops.normal(zeros, *tables, *numbers, starts)
    return np.asarray(value), of_initial, of_transition, first / numbers[1], (second - counts) / numbers[1]


# The same by NumPy, in logarithms


def _lattices(initial: Any, transition: Any, log_b: Any, starts: Any) -> Any:
    """Return log likelihood, derivatives of the tables, and log derivatives with respect to b of each row, (T, K)."""
    size = len(log_b)
    opens, ends = np.isin(np.arange(size), starts), np.isin(np.arange(1, size + 1), [*starts, size])
    pred, beta, s = np.empty_like(log_b), np.zeros_like(log_b), np.empty(size)
    of_initial, of_transition = np.zeros_like(initial), np.zeros_like(transition)
    with np.errstate(divide="ignore"):
        log_initial, log_transition = np.log(initial), np.log(transition)
    for t in range(size):
        terms = log_initial[None] if opens[t] else (pred[t - 1] + log_b[t - 1])[:, None] - s[t - 1] + log_transition
        pred[t] = np.logaddexp.reduce(terms, axis=0)
        s[t] = np.logaddexp.reduce(pred[t] + log_b[t])
        if s[t] == -np.inf:
            return np.asarray(s[t]), of_initial, of_transition, np.full_like(log_b, -np.inf)
    for t in range(size - 1, -1, -1):
        if not ends[t]:
            u = log_b[t + 1] + beta[t + 1] - s[t + 1]
            beta[t] = np.logaddexp.reduce(log_transition + u, axis=1)
            of_transition += _bounded((pred[t] + log_b[t])[:, None] - s[t] + u)
        if opens[t]:
            of_initial += _bounded(log_b[t] + beta[t] - s[t])
    return np.asarray(s.sum()), of_initial, of_transition, pred + beta - s[:, None]


def _bounded(log_derivative: Any) -> Any:
    """Return its exponential, or where that overflows a finite number: a table may be multiplied by zeros."""
    return np.exp(np.minimum(log_derivative, hmm_loops.LARGEST_LOG))


def _dense_numpy(initial: Any, transition: Any, log_b: Any, starts: Any) -> Any:
    *results, messages = _lattices(initial, transition, log_b, starts)
    return *results, np.exp(messages + log_b)


def _table_numpy(initial: Any, transition: Any, log_table: Any, codes: Any, starts: Any, logs: bool = True) -> Any:
    rows = np.vstack([log_table.T, np.zeros(len(initial))])[codes]
    *results, messages = _lattices(initial, transition, rows, starts)
    of_table = np.zeros((log_table.shape[1] + 1, len(initial)))
    np.add.at(of_table, codes, np.exp(messages + rows) if logs else _bounded(messages))
    return *results, of_table[:-1].T


def _symbol_numpy(initial: Any, transition: Any, emission: Any, symbols: Any, starts: Any) -> Any:
    with np.errstate(divide="ignore"):
        return _table_numpy(initial, transition, np.log(emission), symbols, starts, logs=False)


def _normal_numpy(initial: Any, transition: Any, means: Any, sigmas: Any, y: Any, starts: Any) -> Any:
    missing, z = np.isnan(y)[:, None], (y[:, None] - means) / sigmas
    rows = np.where(missing, 0.0, stats.norm.logpdf(z) - np.log(sigmas))
    *results, gamma = _dense_numpy(initial, transition, rows, starts)
    slopes = np.where(missing, 0.0, gamma * z), np.where(missing, 0.0, gamma * (z * z - 1))
    return *results, slopes[0].sum(axis=0) / sigmas, slopes[1].sum(axis=0) / sigmas


class DenseChain(ChainLikelihood):
    """Log densities of the rows in each state, (T, K), and starts."""

    parameters, data = (1, 2, 2), ((1, "int64"),)
    loops, by_numpy = staticmethod(_dense_loops), staticmethod(_dense_numpy)


class TableChain(ChainLikelihood):
    """Log densities of the distinct observations, (K, V), codes (T,) and starts."""

    parameters, data = (1, 2, 2), ((1, "int64"), (1, "int64"))
    loops, by_numpy = staticmethod(_table_loops), staticmethod(_table_numpy)


class SymbolChain(ChainLikelihood):
    """Probabilities of the symbols, (K, V), symbols (T,) and starts."""

    parameters, data = (1, 2, 2), ((1, "int64"), (1, "int64"))
    loops, by_numpy = staticmethod(_symbol_loops), staticmethod(_symbol_numpy)


class NormalChain(ChainLikelihood):
    """Means and standard deviations (K,), y (T,) and starts."""

    parameters, data = (1, 2, 1, 1), ((1, "float64"), (1, "int64"))
    loops, by_numpy = staticmethod(_normal_loops), staticmethod(_normal_numpy)


def _states(initial: Any, transition: Any) -> int | None:
    """Return K, where a shape says it."""
    known = [n for x in (initial, transition) for n in pt.as_tensor_variable(x).type.shape if n is not None]
    return known[0] if known else None


def hmm_log_likelihood(initial: Any, transition: Any, log_b: Any, starts: Any) -> Any:
    """Return the log density of the ordered rows, states summed out, as a PyTensor scalar.

    Parameters
    ----------
    initial : variable of shape (K,)
        Probabilities of the states in the first row of each sequence.
    transition : variable of shape (K, K)
        Probabilities of the next state, a row for each state.
    log_b : variable of shape (T, K)
        Log density of each row in each state; 0 in all states where the observation is missing. Its gradient is the
        probability of each state given all rows.
    starts : variable of shape (number of sequences,)
        Index of the first row of each sequence: 0, and then increasing.
    """
    return DenseChain(_states(initial, transition))(initial, transition, log_b, starts)[0]


def hmm_table_log_likelihood(initial: Any, transition: Any, log_table: Any, codes: Any, starts: Any) -> Any:
    """Return the same where few observations are distinct, such as counts: three times as fast.

    ``log_table`` (K, V) is the log density in each state of each distinct observation, ``codes`` (T,) the column of
    each row, -1 where the observation is missing.
    """
    return TableChain(_states(initial, transition))(initial, transition, log_table, codes, starts)[0]


def hmm_categorical_log_likelihood(initial: Any, transition: Any, emission: Any, symbols: Any, starts: Any) -> Any:
    """Return the log probability of symbols (T,), columns of ``emission`` (K, V), or -1 where one is missing."""
    return SymbolChain(_states(initial, transition))(initial, transition, emission, symbols, starts)[0]


def hmm_gaussian_log_likelihood(initial: Any, transition: Any, means: Any, sigmas: Any, y: Any, starts: Any) -> Any:
    """Return the log density of rows y (T,) ~ N(means_k, sigmas_k^2), given their state k; NaN is missing."""
    return NormalChain(_states(initial, transition))(initial, transition, means, sigmas, y, starts)[0]


def hmm_poisson_log_likelihood(initial: Any, transition: Any, rates: Any, counts: Any, codes: Any, starts: Any) -> Any:
    """Return the log probability of rows ~ Poisson(rates_k), rates (K,) > 0, given their state k.

    ``counts`` (V,) are the distinct counts, and ``codes`` (T,) say which is that of each row, -1 where it is missing.
    """
    counts, rates = pt.cast(counts, "float64"), pt.as_tensor_variable(rates)[:, None]
    some = pt.maximum(counts, np.float64(1))
    log_table = pt.switch(counts > np.float64(0), _log_peak(some) - _excess(rates, some), -rates)
    return hmm_table_log_likelihood(initial, transition, log_table, codes, starts)


def _excess(rates: Any, counts: Any) -> Any:
    """Return rates - counts - counts log(rates / counts), which is 0 where they are equal, without cancellation."""
    away = (rates - counts) / counts
    near = pt.abs(away) < np.float64(0.5)
    inside = pt.switch(near, away, np.float64(0))
    return counts * pt.switch(near, inside - pt.log1p(inside), away - pt.log(rates / counts))


def _log_peak(counts: Any) -> Any:
    """Return the log Poisson mass of counts > 0 at rates equal to them: from 16 on by Stirling's series."""
    low, high = pt.minimum(counts, np.float64(16)), pt.maximum(counts, np.float64(16))
    direct = low * pt.log(low) - low - pt.gammaln(low + np.float64(1))
    terms = [np.float64(one) for one in (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)]
    series = sum(term * high ** np.float64(-1 - 2 * i) for i, term in enumerate(terms))
    return pt.switch(counts < np.float64(16), direct, np.float64(-0.5) * pt.log(np.float64(2 * np.pi) * high) - series)
