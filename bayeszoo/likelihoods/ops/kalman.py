"""Log likelihoods of time series models with moving levels as PyTensor operations with their gradients."""

from __future__ import annotations

import numpy as np
import pytensor.tensor as pt

from bayeszoo.likelihoods.loops import hmm as hmm_loops
from bayeszoo.likelihoods.loops import kalman, structural, structural_states
from bayeszoo.likelihoods.loops.hmm import opens
from bayeszoo.likelihoods.loops.kalman import derivatives
from bayeszoo.likelihoods.loops.structural_states import Form
from bayeszoo.likelihoods.ops.operation import LogDensity


def _by_loops(
    q: np.ndarray, r: np.ndarray, y: np.ndarray, first: np.ndarray, starts: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the value and its derivatives in both standard deviations, as arrays."""
    step_sd, noise_sd = q.item(), r.item()
    value, of_q2, of_r2 = derivatives(y, opens(starts, len(y)), first.item(), step_sd * step_sd, noise_sd * noise_sd)
    return np.asarray(value), np.asarray(2.0 * step_sd * of_q2), np.asarray(2.0 * noise_sd * of_r2)


class LevelLikelihood(LogDensity):
    """Standard deviations q and r, deviations y (T,), variance of the first level, and starts, to a log likelihood."""

    parameters = (0, 0)
    data = ((1, "float64"), (0, "float64"), (1, "int64"))
    sources = (kalman, hmm_loops)
    loops = staticmethod(_by_loops)


def level_log_likelihood(
    q: pt.TensorVariable,
    r: pt.TensorVariable,
    y: pt.TensorVariable,
    first: pt.TensorVariable,
    starts: pt.TensorVariable,
) -> pt.TensorVariable:
    """Return the log density of rows about a level that moves in time, levels integrated out, as a scalar.

    Parameters
    ----------
    q, r : scalar variables
        Standard deviations of the steps of the level, and of rows about it.
    y : variable of shape (T,)
        Rows minus the prior mean of the first level of a sequence; NaN if missing.
    first : scalar variable
        Prior variance of the first level of a sequence.
    starts : variable of shape (number of sequences,)
        Index of the first row of each sequence: 0, and then increasing.
    """
    return LevelLikelihood()(*map(pt.as_tensor_variable, (q, r, y, first, starts)))[0]


def _structural_by_loops(
    q: np.ndarray,
    r: np.ndarray,
    y: np.ndarray,
    X: np.ndarray,
    first: np.ndarray,
    spread: np.ndarray,
    starts: np.ndarray,
    *form: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the value and its derivatives in the standard deviations, as arrays."""
    noise_sd, marks = r.item(), opens(starts, len(y))
    value, of_q2, of_r2 = structural.derivatives(y, X, marks, Form(*form), first, spread, q * q, noise_sd * noise_sd)
    return np.asarray(value), 2.0 * q * of_q2, np.asarray(2.0 * noise_sd * of_r2)


class StructuralLikelihood(LogDensity):
    """Standard deviations of steps (3,) and of rows, a series and the prior of its first state to a log likelihood."""

    parameters = (1, 0)
    data = (
        *((1, "float64"), (2, "float64"), (2, "float64"), (1, "float64"), (1, "int64"), (1, "int64")),
        *((1, "float64"), (2, "float64"), (1, "float64"), (2, "float64")),
    )
    sources = (structural, structural_states, hmm_loops)
    loops = staticmethod(_structural_by_loops)


def structural_log_likelihood(
    q: pt.TensorVariable,
    r: pt.TensorVariable,
    y: pt.TensorVariable,
    X: pt.TensorVariable,
    first: pt.TensorVariable,
    spread: pt.TensorVariable,
    starts: pt.TensorVariable,
    *form: pt.TensorVariable,
) -> pt.TensorVariable:
    """Return the log density of rows with the states of all rows integrated out, as a scalar.

    Parameters
    ----------
    q : variable of shape (3,)
        Standard deviations of the steps of level, slope and season; 0 for absent parts.
    r : scalar variable
        Noise standard deviation of rows.
    y, X : variables of shape (T,), (T, p)
        Rows minus the prior mean of the first level, NaN if missing; and features.
    first, spread : variables of shape (d, d), (d,)
        Unit upper triangular U and D of the covariance matrix U diag(D) U' of the first state and the weights.
    starts : variable of shape (number of sequences,)
        Index of the first row of each sequence: 0, and then increasing.
    *form : variables
        Entries of `bayeszoo.likelihoods.loops.structural_states.Form`.
    """
    inputs = (q, r, y, X, first, spread, starts, *form)
    return StructuralLikelihood()(*map(pt.as_tensor_variable, inputs))[0]
