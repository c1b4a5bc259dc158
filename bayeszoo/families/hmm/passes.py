"""Hidden Markov chains with known tables: filter, smoother, prediction, E-steps; paths in `state_paths`.

Throughout, K states and T rows: ``initial`` (K,) are the probabilities of the states in the first row of a sequence,
``transition`` (K, K) those of the next state, a row for each state, and ``log_b`` (T, K) the log density of each row in
each state. ``starts`` are the indices of the first rows of the sequences, which share nothing but the tables; by
default there is one. Rows marked in ``missing`` (T,) say nothing, whatever their ``log_b``.

Rows of the tables may sum to less than one, as in variational Bayes, where they are the exponentials of expected
logarithms. Zeros may be anywhere. Sources: Rabiner (1989), A tutorial on hidden Markov models; Bishop (2006), 13.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import lazy_loader
import numpy as np

from bayeszoo.errors import InputError, NumericalError
from bayeszoo.families.hmm.hidden_chain import Chain, Tables

hmm_loops = lazy_loader.load("bayeszoo.likelihoods.loops.hmm", suppress_warning=True)


@dataclass(frozen=True, eq=False)
class Filtered:
    """What is known of the states as the rows come in.

    Attributes
    ----------
    predicted : numpy.ndarray of shape (T, K)
        p(z_t | rows before t of its sequence), of sum less than one where the tables are: the log likelihood is always
        the sum of the logs of predicted times density.
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
class TableSums:
    """The E-step where few observations are distinct.

    Attributes
    ----------
    initial, transition : numpy.ndarray of shapes (K,) and (K, K)
        Expected numbers, as of `Smoothed`.
    observations : numpy.ndarray of shape (K, V)
        Expected number of times that each state gave each observation.
    value : float
        Log likelihood.
    """

    initial: np.ndarray
    transition: np.ndarray
    observations: np.ndarray
    value: float


@dataclass(frozen=True, eq=False)
class NormalSums:
    """The E-step for rows that are normal given their state.

    Attributes
    ----------
    initial, transition : numpy.ndarray of shapes (K,) and (K, K)
        Expected numbers, as of `Smoothed`.
    counts : numpy.ndarray of shape (K,)
        Expected number of observed rows of each state.
    shifts, squares : numpy.ndarray of shape (K,)
        Expected sums over them of y - mean, and of its square, about the means that were given.
    value : float
        Log likelihood.
    """

    initial: np.ndarray
    transition: np.ndarray
    counts: np.ndarray
    shifts: np.ndarray
    squares: np.ndarray
    value: float


def log_likelihood(initial: Any, transition: Any, log_b: Any, starts: Any = None, missing: Any = None) -> float:
    """Return the log density of the rows, states summed out; -inf where no path of states can give them."""
    chain = Chain.checked(initial, transition, log_b, starts, missing)
    return float(_posterior(chain)[0])


def forward(initial: Any, transition: Any, log_b: Any, starts: Any = None, missing: Any = None) -> Filtered:
    """Return the probabilities of the states given the rows so far.

    Raises
    ------
    NumericalError
        Where no path of states can give the rows.
    """
    chain = Chain.checked(initial, transition, log_b, starts, missing)
    log_predicted, value = chain.log_predicted()
    return Filtered(np.exp(log_predicted), _normalized(log_predicted + chain.log_b), value)


def smooth(initial: Any, transition: Any, log_b: Any, starts: Any = None, missing: Any = None) -> Smoothed:
    """Return the probabilities of the states given all rows, and expected counts.

    Raises
    ------
    NumericalError
        Where no path of states can give the rows.
    """
    chain = Chain.checked(initial, transition, log_b, starts, missing)
    value, of_initial, of_transition, probabilities = _posterior(chain)
    if value == -np.inf:
        chain.log_predicted()  # says which row is impossible
    tables = chain.tables
    return Smoothed(probabilities, tables.initial * of_initial, tables.transition * of_transition, float(value))


def table_sums(initial: Any, transition: Any, log_table: Any, codes: Any, starts: Any = None) -> TableSums:
    """Return expected counts where few observations are distinct, as symbols are, or counts: faster than `smooth`.

    Parameters
    ----------
    initial, transition, starts : array_like
        As of all functions of this module.
    log_table : array_like of shape (K, V)
        Log density in each state of each distinct observation.
    codes : array_like of shape (T,)
        The column of each row, -1 where the observation is missing.

    Raises
    ------
    NumericalError
        Where no path of states can give the rows.
    """
    columns, densities = np.ascontiguousarray(codes, dtype=np.int64), np.ascontiguousarray(log_table, dtype=np.float64)
    tables = Tables.checked(initial, transition, starts, len(columns))
    if densities.ndim != 2 or len(densities) != tables.states or not np.all(densities < np.inf):
        raise InputError("log_table must be log densities, with a row for each state")
    if np.any((columns < -1) | (columns >= densities.shape[1])):
        raise InputError(f"codes must be from 0 to {densities.shape[1] - 1}, or -1 where the observation is missing")
    found = hmm_loops.table(tables.zeros, tables.initial, tables.transition, densities, True, columns, tables.starts)
    _refuse_impossible(found[0])
    return TableSums(tables.initial * found[1], tables.transition * found[2], found[3], float(found[0]))


def normal_sums(initial: Any, transition: Any, means: Any, sigmas: Any, y: Any, starts: Any = None) -> NormalSums:
    """Return expected counts and sums for rows that are normal given their state: faster than `smooth`.

    Parameters
    ----------
    initial, transition, starts : array_like
        As of all functions of this module.
    means, sigmas : array_like of shape (K,)
        Mean and standard deviation of each state, in the unit of y.
    y : array_like of shape (T,)
        NaN where the observation is missing.

    Raises
    ------
    NumericalError
        Where no path of states can give the rows.
    """
    values = np.ascontiguousarray(y, dtype=np.float64)
    tables = Tables.checked(initial, transition, starts, len(values))
    centers, scales = (np.ascontiguousarray(numbers, dtype=np.float64) for numbers in (means, sigmas))
    if not centers.shape == scales.shape == (tables.states,) or not np.all(np.isfinite(centers) & (scales > 0)):
        raise InputError("means must be finite and sigmas positive, one for each state")
    found = hmm_loops.normal(tables.zeros, tables.initial, tables.transition, centers, scales, values, tables.starts)
    _refuse_impossible(found[0])
    counts, z, z_squared = found[3:]
    of_tables = tables.initial * found[1], tables.transition * found[2]
    return NormalSums(*of_tables, counts, scales * z, scales**2 * z_squared, float(found[0]))


def predict_states(probabilities: Any, transition: Any, steps: int) -> np.ndarray:
    """Return the probabilities of the states ``steps`` rows later, of shape (..., K) as those given."""
    if steps < 0:
        raise InputError("states are predicted 0 or more rows ahead")
    return np.asarray(probabilities, dtype=np.float64) @ np.linalg.matrix_power(np.asarray(transition), steps)


def _posterior(chain: Chain) -> Any:
    tables = chain.tables
    return hmm_loops.posterior(tables.zeros, tables.initial, tables.transition, chain.log_b, tables.starts)


def _refuse_impossible(value: float) -> None:
    if not np.isfinite(value):
        raise NumericalError(f"the data are impossible, of log likelihood {value}: no path of states can give them")


def _normalized(logs: np.ndarray) -> np.ndarray:
    """Return probabilities that sum to one along the last axis."""
    weights = np.exp(logs - logs.max(axis=-1, keepdims=True, initial=-np.inf))
    return weights / weights.sum(axis=-1, keepdims=True)
