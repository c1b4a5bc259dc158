"""Hidden Markov chains with known tables: filter, smoother and E-steps; paths of states are in `paths`.

There are K states and T rows: ``initial`` (K,) are the probabilities of the states in the first row of a sequence,
``transition`` (K, K) those of the next state, a row for each state, and ``log_b`` (T, K) the log density of each row in
each state, 0 if its observation is missing. ``starts`` are the indices of the first rows of the sequences, which are
independent given the tables; by default there is one sequence.

Rows of the tables may sum to less than one, as in variational Bayes, where they are the exponentials of expected
logarithms. Any entry may be 0. If no path of states can give the rows, all functions but `log_likelihood` raise
`NumericalError`. Sources: Rabiner (1989), A tutorial on hidden Markov models; Bishop (2006), 13.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import lazy_loader
import numpy as np
import numpy.typing as npt

from bayeszoo.errors import InputError, NumericalError

# the import of numba is slow, and `bayeszoo list` does not need it
hmm_loops = lazy_loader.load("bayeszoo.likelihoods.loops.hmm", suppress_warning=True)
vectors = lazy_loader.load("bayeszoo.likelihoods.loops.vectors", suppress_warning=True)


class Filtered(NamedTuple):
    """Probabilities of the states (T, K) given the rows before each row, and up to it; and the log likelihood.

    If the tables sum to less than one, so does ``predicted``: the log likelihood is always the sum of the logs of
    predicted times density.
    """

    predicted: np.ndarray
    filtered: np.ndarray
    value: float


class Sums(NamedTuple):
    """Expected first states (K,) and transitions (K, K), expected statistics of the observations, log likelihood."""

    initial: np.ndarray
    transition: np.ndarray
    emitted: Any
    value: float


@dataclass(frozen=True, eq=False)
class CheckedChain:
    """Checked tables, log densities (K, V) of distinct observations, codes (T,) of the rows, -1 missing, and starts."""

    initial: np.ndarray
    transition: np.ndarray
    log_table: np.ndarray
    codes: np.ndarray
    starts: np.ndarray

    @classmethod
    def of_rows(cls, initial: Any, transition: Any, log_b: Any, starts: Any = None) -> CheckedChain:
        """Return the chain of rows with different densities."""
        return cls.checked(initial, transition, np.transpose(log_b), np.arange(len(log_b)), starts)

    @classmethod
    def checked(cls, initial: Any, transition: Any, log_table: Any, codes: Any, starts: Any = None) -> CheckedChain:
        """Raise `InputError` if shapes do not fit, a table has no probabilities, or a density is infinite or NaN."""
        starts = [0] * min(len(codes), 1) if starts is None else starts
        tables = _checked(initial, transition, log_table)
        # writable arrays, as loops would be compiled again for read-only ones
        return cls(*tables, *(np.require(numbers, np.int64, ("C", "W")) for numbers in (codes, starts)))

    @cached_property
    def log_b(self) -> np.ndarray:
        """Log densities of the rows, shape (T, K)."""
        return np.vstack([self.log_table.T, np.zeros(len(self.initial))])[self.codes]

    @cached_property
    def logs(self) -> tuple[np.ndarray, np.ndarray]:
        """Logarithms of initial and transition."""
        with np.errstate(divide="ignore"):
            return np.log(self.initial), np.log(self.transition)

    @cached_property
    def opens(self) -> np.ndarray:
        """Marks of the first rows of the sequences, shape (T,)."""
        return np.asarray(hmm_loops.opens(self.starts, len(self.codes)))

    def derivatives(self) -> Any:
        """Return the log likelihood, and its derivatives in both tables and in the log densities."""
        zeros = vectors.zeros(self.initial.size)
        return hmm_loops.table_density(
            zeros, self.initial, self.transition, self.log_table, True, self.codes, self.starts
        )

    def log_predicted(self) -> tuple[np.ndarray, float]:
        """Return log p(z_t | rows before t in its sequence), shape (T, K), and the log likelihood.

        Raises `NumericalError` that names the first impossible row.
        """
        rows, logs = np.arange(len(self.log_b)), np.full_like(self.log_b, -np.inf)
        b = np.ascontiguousarray(self.log_b.T)
        value = hmm_loops.log_forward(*self.logs, b, rows, self.opens, logs)
        if value == -np.inf:
            row = int(np.argmax(np.all(logs + self.log_b == -np.inf, axis=1))) + 1
            why = f"no state that can follow the rows before can give row {row}"
            raise NumericalError(f"the data are impossible: {why}", "impossible_data")
        return logs, float(value)


def _checked(initial: npt.ArrayLike, transition: npt.ArrayLike, log_table: object) -> list[np.ndarray]:
    """Return tables (..., K), (..., K, K) and log densities (..., K, V) as float64; raise `InputError` if invalid."""
    tables = [np.ascontiguousarray(table, dtype=np.float64) for table in (initial, transition, log_table)]
    states = tables[0].shape[-1]
    if tables[1].shape[-2:] != (states, states) or tables[2].shape[-2] != states:
        raise InputError(f"shapes do not fit: {[table.shape for table in tables]}", "wrong_shape")
    if not all(table.min() >= 0 and table.sum(axis=-1).max() <= 1 + 1e-8 for table in tables[:2]):
        raise InputError("initial and transition must be probabilities, of sum one or less", "not_a_probability")
    if not tables[2].max(initial=-np.inf) < np.inf:
        raise InputError("log densities must be neither NaN nor infinite above", "out_of_range")
    return tables


def log_rows(initial: Any, transition: np.ndarray, log_b: np.ndarray, starts: Any = None) -> np.ndarray:
    """Return the log density of each row given the rows before, (..., T); leading axes of the arguments are draws."""
    tables = _checked(initial, transition, np.swapaxes(log_b, -1, -2))
    draws = np.broadcast_shapes(tables[0].shape[:-1], tables[1].shape[:-2], tables[2].shape[:-2])
    with np.errstate(divide="ignore"):
        logs = np.log(tables[0]), np.log(tables[1]), tables[2]
    by_draw = [
        np.ascontiguousarray(np.broadcast_to(values, draws + values.shape[-n:])).reshape(-1, *values.shape[-n:])
        for values, n in zip(logs, (1, 2, 2), strict=True)
    ]
    length = tables[2].shape[-1]
    begins = np.asarray([0] * min(length, 1) if starts is None else starts, dtype=np.int64)
    terms = np.empty((len(by_draw[2]), length))
    if (draw := hmm_loops.log_rows(*by_draw, hmm_loops.opens(begins, length), terms)) < len(terms):
        impossible = np.exp(by_draw[0][draw]), np.exp(by_draw[1][draw]), by_draw[2][draw]
        CheckedChain(*impossible, np.arange(length), begins).log_predicted()  # raises an error that names the row
    return terms.reshape(*draws, length)


def log_likelihood(initial: Any, transition: Any, log_b: Any, starts: Any = None) -> float:
    """Return the log density of the rows, states summed out; -inf if the rows are impossible."""
    return float(CheckedChain.of_rows(initial, transition, log_b, starts).derivatives()[0])


def forward(initial: npt.ArrayLike, transition: npt.ArrayLike, log_b: npt.ArrayLike, starts: object = None) -> Filtered:
    """Return the probabilities of the states given the rows up to each row, the forward pass."""
    chain = CheckedChain.of_rows(initial, transition, log_b, starts)
    log_predicted, value = chain.log_predicted()
    logs = log_predicted + chain.log_b
    weights = np.exp(logs - logs.max(axis=-1, keepdims=True, initial=-np.inf))
    return Filtered(np.exp(log_predicted), weights / weights.sum(axis=-1, keepdims=True), value)


def given_the_others(
    initial: npt.ArrayLike, transition: npt.ArrayLike, log_b: npt.ArrayLike, starts: object = None
) -> np.ndarray:
    """Return the probabilities of each row's state given all other rows of its sequence, (T, K).

    They are proportional to the product of the messages from the rows before and after; all NaN if the rows are
    impossible.
    """
    chain = CheckedChain.of_rows(initial, transition, log_b, starts)
    (log_initial, log_transition), rows = chain.logs, np.arange(len(chain.log_b))
    b, before, after = np.ascontiguousarray(chain.log_b.T), *np.full((2, *chain.log_b.shape), np.nan)
    ends = np.append(chain.opens[1:], True).astype(chain.opens.dtype)
    value = hmm_loops.log_forward(log_initial, log_transition, b, rows, chain.opens, before)
    backwards = np.ascontiguousarray(log_transition.T), np.ascontiguousarray(b[:, ::-1]), rows, ends[::-1].copy()
    hmm_loops.log_forward(np.zeros_like(log_initial), *backwards, after)
    logs = before + after[::-1] if value > -np.inf else np.full_like(before, np.nan)
    weights = np.exp(logs - logs.max(axis=-1, keepdims=True, initial=-np.inf))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def smooth(initial: npt.ArrayLike, transition: npt.ArrayLike, log_b: npt.ArrayLike, starts: object = None) -> Sums:
    """Return expected counts, the E-step of Baum and Welch, and for ``emitted`` p(state | all rows), shape (T, K)."""
    sums = _sums(CheckedChain.of_rows(initial, transition, log_b, starts))
    return sums._replace(emitted=sums.emitted.T)


def table_sums(
    initial: npt.ArrayLike, transition: npt.ArrayLike, log_table: object, codes: object, starts: object = None
) -> Sums:
    """Return expected counts, with ``emitted`` (K, V) of V distinct observations: faster than `smooth` if V is small.

    ``log_table`` (K, V) holds the log densities of the distinct observations, ``codes`` (T,) the column of each row, -1
    if its observation is missing.
    """
    return _sums(CheckedChain.checked(initial, transition, log_table, codes, starts))


def _sums(chain: CheckedChain) -> Sums:
    value, of_initial, of_transition, of_table = chain.derivatives()
    if value == -np.inf:
        chain.log_predicted()  # raises an error that names the row
    return Sums(chain.initial * of_initial, chain.transition * of_transition, of_table, float(value))
