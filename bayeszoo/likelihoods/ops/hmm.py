"""Log likelihood of hidden Markov chains as a PyTensor operation with its gradient.

A `pytensor.scan` over the rows gives the same numbers, at 30 to 100 times the cost. Here the gradient is Baum
and Welch's: posterior probabilities of the states and expected counts, from one forward and one backward pass.

All functions take tables whose rows need not sum to one, and derivatives are by single entries.
Zeros are allowed: the derivative at a zero entry is finite, or 1e300 if it overflows. If the
data are impossible the log likelihood is -inf and the gradient 0. There are no second derivatives.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor.tensor as pt

from bayeszoo.likelihoods.loops import hmm as hmm_loops
from bayeszoo.likelihoods.loops import vectors
from bayeszoo.likelihoods.ops.operation import LogDensity, compiled_by, jitted, source_version


def _by_loops(
    zeros: np.ndarray,
    logs: bool,
    initial: np.ndarray,
    transition: np.ndarray,
    table: np.ndarray,
    codes: np.ndarray,
    starts: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    tables = np.ascontiguousarray(initial), np.ascontiguousarray(transition), np.ascontiguousarray(table)
    value, of_initial, of_transition, of_table = hmm_loops.table_density(zeros, *tables, logs, codes, starts)
    return np.asarray(value), of_initial, of_transition, of_table


class ChainLikelihood(LogDensity):
    """Initial (K,), transition (K, K), densities (K, V), codes (T,) and starts to log likelihood and three gradients.

    Densities are those of the distinct observations or, with ``logs``, their logarithms. K may be unknown when the
    graph is made; if it is small and known, code is compiled for it.
    """

    __props__: tuple[str, ...] = ("states", "logs")  # type: ignore[assignment]
    parameters, data = (1, 2, 2), ((1, "int64"), (1, "int64"))
    sources = (hmm_loops, vectors)
    loops = staticmethod(_by_loops)

    def __init__(self, states: int | None, logs: bool) -> None:
        self.states, self.logs = states, logs

    def interpreted(self, *inputs: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return the outputs, for other linkers than numba's."""
        return _by_loops(vectors.zeros(len(inputs[0])), self.logs, *inputs)


@compiled_by(ChainLikelihood)
def _funcify(op: ChainLikelihood, node: Any, **kwargs: Any) -> Any:
    loops, logs = jitted(_by_loops), op.logs
    zeros = vectors.zeros(op.states) if op.states is not None else None

    if isinstance(zeros, tuple):

        @jitted
        def chain(*inputs: Any) -> Any:
            return loops(zeros, logs, *inputs)
    else:

        @jitted
        def chain(*inputs: Any) -> Any:
            return loops(np.zeros(len(inputs[0])), logs, *inputs)

    return chain, source_version(_by_loops, *op.sources)


def _log_likelihood(
    logs: bool,
    initial: pt.TensorVariable,
    transition: pt.TensorVariable,
    table: pt.TensorVariable,
    *codes_and_starts: pt.TensorVariable,
) -> pt.TensorVariable:
    """Apply the operation for K states, if a shape gives K."""
    shapes = (pt.as_tensor_variable(x).type.shape[0] for x in (initial, transition, table))
    states = next((n for n in shapes if n is not None), None)
    return ChainLikelihood(states, logs)(initial, transition, table, *codes_and_starts)[0]


def hmm_log_likelihood(
    initial: pt.TensorVariable, transition: pt.TensorVariable, log_b: pt.TensorVariable, starts: pt.TensorVariable
) -> pt.TensorVariable:
    """Return the log density of the ordered rows, states summed out, as a PyTensor scalar.

    Parameters
    ----------
    initial : variable of shape (K,)
        Probabilities of the states in the first row of each sequence.
    transition : variable of shape (K, K)
        Probabilities of the next state, a row for each state.
    log_b : variable of shape (T, K)
        Log density of each row in each state; 0 in all states if the observation is missing. Its gradient is the
        probability of each state given all rows.
    starts : variable of shape (number of sequences,)
        Index of the first row of each sequence: 0, and then increasing.
    """
    log_b = pt.as_tensor_variable(log_b)
    return hmm_table_log_likelihood(initial, transition, log_b.T, pt.arange(log_b.shape[0]), starts)


def hmm_table_log_likelihood(
    initial: pt.TensorVariable,
    transition: pt.TensorVariable,
    log_table: pt.TensorVariable,
    codes: pt.TensorVariable,
    starts: pt.TensorVariable,
) -> pt.TensorVariable:
    """Return the same for few distinct observations, such as counts: three times as fast.

    ``log_table`` (K, V) is the log density in each state of each distinct observation, ``codes`` (T,) the column of
    each row, -1 if the observation is missing.
    """
    return _log_likelihood(True, initial, transition, log_table, codes, starts)


def hmm_categorical_log_likelihood(
    initial: pt.TensorVariable,
    transition: pt.TensorVariable,
    emission: pt.TensorVariable,
    symbols: pt.TensorVariable,
    starts: pt.TensorVariable,
) -> pt.TensorVariable:
    """Return the log probability of symbols (T,), columns of ``emission`` (K, V), or -1 if missing."""
    return _log_likelihood(False, initial, transition, emission, symbols, starts)


def hmm_gaussian_log_likelihood(
    initial: pt.TensorVariable,
    transition: pt.TensorVariable,
    means: pt.TensorVariable,
    sigmas: pt.TensorVariable,
    y: pt.TensorVariable,
    starts: pt.TensorVariable,
) -> pt.TensorVariable:
    """Return the log density of rows y (T,) ~ N(means_k, sigmas_k^2), given their state k; NaN is missing."""
    missing, sigmas = pt.isnan(y), pt.as_tensor_variable(sigmas)[:, None]
    z = (pt.switch(missing, np.float64(0), y) - pt.as_tensor_variable(means)[:, None]) / sigmas
    log_b = np.float64(-0.5) * (z * z + np.float64(np.log(2 * np.pi))) - pt.log(sigmas)
    log_b = pt.switch(missing, np.float64(0), log_b)
    return hmm_table_log_likelihood(initial, transition, log_b, pt.arange(log_b.shape[1]), starts)


def hmm_poisson_log_likelihood(
    initial: pt.TensorVariable,
    transition: pt.TensorVariable,
    rates: pt.TensorVariable,
    counts: pt.TensorVariable,
    codes: pt.TensorVariable,
    starts: pt.TensorVariable,
) -> pt.TensorVariable:
    """Return the log probability of rows ~ Poisson(rates_k), rates (K,) > 0, given their state k.

    ``counts`` (V,) are the distinct counts, and ``codes`` (T,) index them for each row, -1 if missing.
    """
    counts, rates = pt.cast(counts, "float64"), pt.as_tensor_variable(rates)[:, None]
    positive = pt.maximum(counts, np.float64(1))
    log_table = pt.switch(counts > np.float64(0), _log_peak(positive) - _excess(rates, positive), -rates)
    return hmm_table_log_likelihood(initial, transition, log_table, codes, starts)


def _excess(rates: pt.TensorVariable, counts: pt.TensorVariable) -> pt.TensorVariable:
    """Return rates - counts - counts log(rates / counts), without cancellation near 0."""
    relative = (rates - counts) / counts
    is_near = pt.abs(relative) < np.float64(0.5)
    inside = pt.switch(is_near, relative, np.float64(0))
    return counts * pt.switch(is_near, inside - pt.log1p(inside), relative - pt.log(rates / counts))


def _log_peak(counts: pt.TensorVariable) -> pt.TensorVariable:
    """Return log Poisson masses of counts > 0 at equal rates, from 16 on by Stirling's series."""
    low, high = pt.minimum(counts, np.float64(16)), pt.maximum(counts, np.float64(16))
    direct = low * pt.log(low) - low - pt.gammaln(low + np.float64(1))
    terms = [np.float64(coefficient) for coefficient in (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)]
    series = sum(term * high ** np.float64(-1 - 2 * i) for i, term in enumerate(terms))
    return pt.switch(counts < np.float64(16), direct, np.float64(-0.5) * pt.log(np.float64(2 * np.pi) * high) - series)
