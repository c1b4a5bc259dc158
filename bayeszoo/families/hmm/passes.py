"""Hidden Markov chains with known tables: filter, smoother and E-steps; paths of states are in `paths`.

Throughout, K states and T rows: ``initial`` (K,) are the probabilities of the states in the first row of a sequence,
``transition`` (K, K) those of the next state, a row for each state, and ``log_b`` (T, K) the log density of each row in
each state, 0 where its observation is missing. ``starts`` are the indices of the first rows of the sequences, which
share nothing but the tables; by default there is one.

Rows of the tables may sum to less than one, as in variational Bayes, where they are the exponentials of expected
logarithms. Zeros may be anywhere. Where no path of states can give the rows all but `log_likelihood` raise
`NumericalError`. Sources: Rabiner (1989), A tutorial on hidden Markov models; Bishop (2006), 13.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import lazy_loader
import numpy as np

from bayeszoo.errors import InputError, NumericalError

# numba takes its time, which `bayeszoo list` need not wait for
hmm_loops = lazy_loader.load("bayeszoo.likelihoods.loops.hmm", suppress_warning=True)
vectors = lazy_loader.load("bayeszoo.likelihoods.loops.vectors", suppress_warning=True)


class Filtered(NamedTuple):
    """Probabilities of the states (T, K) given the rows before, and up to, each row of its sequence; log likelihood.

    Where the tables sum to less than one so does ``predicted``: the log likelihood is always the sum of the logs of
    predicted times density.
    """

    predicted: np.ndarray
    filtered: np.ndarray
    value: float


class Smoothed(NamedTuple):
    """Probabilities of the states given all rows (T, K), expected first states and transitions, log likelihood."""

    probabilities: np.ndarray
    initial: np.ndarray
    transition: np.ndarray
    value: float


class Sums(NamedTuple):
    """Expected first states (K,) and transitions (K, K), expected statistics of the observations, log likelihood."""

    initial: np.ndarray
    transition: np.ndarray
    emitted: Any
    value: float


@dataclass(frozen=True, eq=False)
class CheckedChain:
    """Checked tables, log densities of the rows (T, K), and the first rows of the sequences."""

    initial: np.ndarray
    transition: np.ndarray
    log_b: np.ndarray
    starts: np.ndarray

    @classmethod
    def checked(cls, initial: Any, transition: Any, log_b: Any, starts: Any = None) -> CheckedChain:
        """Raise `InputError` where shapes do not fit, a table has no probabilities, or a density is infinite or NaN."""
        rows = np.ascontiguousarray(log_b, dtype=np.float64)
        start, to = _tables(initial, transition)
        if rows.ndim != 2 or rows.shape[1] != start.size:
            raise InputError(f"shapes do not fit: {start.size} states, log_b {rows.shape}")
        if not np.all(rows < np.inf):
            raise InputError("log_b must be log densities: neither NaN nor infinite above")
        return cls(start, to, rows, _first_rows(starts, len(rows)))

    @cached_property
    def logs(self) -> tuple[np.ndarray, np.ndarray]:
        """Logarithms of initial and transition."""
        with np.errstate(divide="ignore"):
            return np.log(self.initial), np.log(self.transition)

    @cached_property
    def opens(self) -> np.ndarray:
        """Marks of the first rows of the sequences, shape (T,)."""
        return np.isin(np.arange(len(self.log_b)), self.starts)

    def posterior(self) -> Any:
        """Return the log likelihood, derivatives of the tables, and probabilities of the states given all rows."""
        zeros = vectors.zeros(self.initial.size)
        return hmm_loops.posterior(zeros, self.initial, self.transition, self.log_b, self.starts)

    def log_predicted(self) -> tuple[np.ndarray, float]:
        """Return log p(z_t | rows before t of its sequence), shape (T, K), and the log likelihood.

        Raises `NumericalError` with the first row that no state can give.
        """
        rows, logs = np.arange(len(self.log_b)), np.full_like(self.log_b, -np.inf)
        b = np.ascontiguousarray(self.log_b.T)
        value = hmm_loops.log_forward(*self.logs, b, rows, self.opens, logs)
        if value == -np.inf:
            row = int(np.argmax(np.all(logs + self.log_b == -np.inf, axis=1))) + 1
            why = f"no state that can follow the rows before can give row {row}"
            raise NumericalError(f"the data are impossible: {why}")
        return logs, float(value)


def _tables(initial: Any, transition: Any) -> tuple[np.ndarray, np.ndarray]:
    start, to = (np.ascontiguousarray(table, dtype=np.float64) for table in (initial, transition))
    if start.ndim != 1 or start.size == 0 or to.shape != (start.size, start.size):
        raise InputError(f"shapes do not fit: initial {start.shape}, transition {to.shape}")
    for name, table in (("initial", start), ("transition", to)):
        if not np.all(table >= 0) or not np.all(table.sum(axis=-1) <= 1 + 1e-8):
            raise InputError(f"{name} must be probabilities, of sum one or less")
    return start, to


def _first_rows(starts: Any, size: int) -> np.ndarray:
    firsts = np.ascontiguousarray([0] * min(size, 1) if starts is None else starts, dtype=np.int64)
    if list(firsts[:1]) != [0] * min(size, 1) or np.any(np.diff(firsts) <= 0) or np.any(firsts >= size):
        raise InputError(f"starts are the first rows of the sequences in {size} rows: 0, and then increasing")
    return firsts


def log_likelihood(initial: Any, transition: Any, log_b: Any, starts: Any = None) -> float:
    """Return the log density of the rows, states summed out; -inf where no path of states can give them."""
    return float(CheckedChain.checked(initial, transition, log_b, starts).posterior()[0])


def forward(initial: Any, transition: Any, log_b: Any, starts: Any = None) -> Filtered:
    """Return the probabilities of the states given the rows so far."""
    chain = CheckedChain.checked(initial, transition, log_b, starts)
    log_predicted, value = chain.log_predicted()
    logs = log_predicted + chain.log_b
    weights = np.exp(logs - logs.max(axis=-1, keepdims=True, initial=-np.inf))
    return Filtered(np.exp(log_predicted), weights / weights.sum(axis=-1, keepdims=True), value)


def smooth(initial: Any, transition: Any, log_b: Any, starts: Any = None) -> Smoothed:
    """Return the probabilities of the states given all rows, and expected counts: the E-step of Baum and Welch."""
    chain = CheckedChain.checked(initial, transition, log_b, starts)
    value, of_initial, of_transition, probabilities = chain.posterior()
    if value == -np.inf:
        chain.log_predicted()  # says which row is impossible
    return Smoothed(probabilities, chain.initial * of_initial, chain.transition * of_transition, float(value))


def table_sums(initial: Any, transition: Any, log_table: Any, codes: Any, starts: Any = None) -> Sums:
    """Return how often each state gave each of V distinct observations, (K, V): faster than `smooth` where V is small.

    ``log_table`` (K, V) are the log densities of the distinct observations, ``codes`` (T,) the column of each row, -1
    where its observation is missing.
    """
    densities = np.ascontiguousarray(log_table, dtype=np.float64)
    tables = _tables(initial, transition)
    if densities.ndim != 2 or len(densities) != tables[0].size or not np.all(densities < np.inf):
        raise InputError("log_table must be log densities, with a row for each state")
    columns = np.ascontiguousarray(codes, dtype=np.int64)
    zeros = vectors.zeros(len(densities))
    return _sums(tables, *hmm_loops.table(zeros, *tables, densities, True, columns, _first_rows(starts, len(columns))))


def normal_sums(initial: Any, transition: Any, means: Any, sigmas: Any, y: Any, starts: Any = None) -> Sums:
    """Return expected sums (K,) of 1, z and z^2 over rows y (T,) ~ N(means_k, sigmas_k^2), z = (y - means) / sigmas.

    NaN is missing. It is faster than `smooth`.
    """
    values, tables = np.ascontiguousarray(y, dtype=np.float64), _tables(initial, transition)
    centers, scales = (np.ascontiguousarray(numbers, dtype=np.float64) for numbers in (means, sigmas))
    if not centers.shape == scales.shape == tables[0].shape or not np.all(np.isfinite(centers) & (scales > 0)):
        raise InputError("means must be finite and sigmas positive, one for each state")
    zeros = vectors.zeros(len(centers))
    return _sums(tables, *hmm_loops.normal(zeros, *tables, centers, scales, values, _first_rows(starts, len(values))))


def _sums(tables: tuple[np.ndarray, np.ndarray], value: float, of_initial: Any, of_transition: Any, *of: Any) -> Sums:
    if not np.isfinite(value):
        raise NumericalError(f"the data are impossible, of log likelihood {value}: no path of states can give them")
    return Sums(tables[0] * of_initial, tables[1] * of_transition, of[0] if len(of) == 1 else of, float(value))
