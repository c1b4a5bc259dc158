"""Markov chains in the long run: stationary distributions p = p P.

``P[i, j]`` is the probability of going from state i to state j, so rows sum to one, and p is an eigenvector of the
transpose of P. (W4400, Markov models, prints the product without the transpose.)

W4400, Markov models; Grassmann, Taksar and Heyman 1985, Operations Research 33; Stewart 1994, Introduction to the
Numerical Solution of Markov Chains.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bayeszoo.errors import InputError, NumericalError

_ROW_SUM = 1e-8  # largest distance from one of the sum of a row of probabilities
_SMALLEST = 1e-290  # smallest product of probabilities, safely above the underflow of float64


def stationary(transition: npt.ArrayLike) -> np.ndarray:
    r"""Stationary distributions of Markov chains, by the elimination of Grassmann, Taksar and Heyman.

    It never subtracts, so that every entry is accurate relative to its size, also if the chain hardly ever leaves a
    group of states. It uses only the probabilities off the diagonal; the diagonal follows, as rows sum to one. Periodic
    chains have a stationary distribution too.

    Parameters
    ----------
    transition : array_like, shape (..., K, K)
        ``transition[..., i, j]`` is the probability of going from i to j. Leading axes are draws.

    Returns
    -------
    ndarray, shape (..., K)
        The distribution of each draw; exactly 0 at transient states.

    Raises
    ------
    InputError
        When a matrix is not square, an entry is negative, or a row does not sum to one within 1e-8.
    NumericalError
        When a chain has several closed classes, and so no unique stationary distribution; or when products of
        probabilities underflow.

    Examples
    --------
    >>> stationary([[0.5, 0.5], [0.25, 0.75]]).round(4).tolist()
    [0.3333, 0.6667]
    """
    matrices = _checked(transition)
    recurrent = _recurrent(matrices)
    order = np.argsort(~recurrent, axis=-1, kind="stable")  # a state that can be reached from all others comes first
    matrices = np.take_along_axis(np.take_along_axis(matrices, order[..., None], -2), order[..., None, :], -1)
    distributions, smallest = np.ones(order.shape), np.ones(order.shape)
    with np.errstate(all="ignore"):
        for n in range(order.shape[-1] - 1, 0, -1):  # the chain watched only while it is in the states below n
            smallest[..., n] = matrices[..., n, :n].sum(axis=-1)  # not 1 - stay, which cancels
            matrices[..., :n, n] /= smallest[..., n, None]
            matrices[..., :n, :n] += matrices[..., :n, n, None] * matrices[..., n, None, :n]
        for n in range(1, order.shape[-1]):  # matrices[..., i, n] is now the mean visits to n between states below n
            distributions[..., n] = (distributions[..., :n] * matrices[..., :n, n]).sum(axis=-1)
        distributions /= distributions.sum(axis=-1, keepdims=True)
    smallest = np.where(np.take_along_axis(recurrent, order, -1), np.minimum(smallest, distributions), 1.0)
    for draw in np.argwhere(~np.all(smallest >= _SMALLEST, axis=-1))[:1]:
        raise NumericalError(f"{_name(draw)}: its stationary distribution underflows", "not_finite")
    return np.take_along_axis(distributions, np.argsort(order, axis=-1), -1)


def _recurrent(matrices: np.ndarray) -> np.ndarray:
    """Mark the states (..., K) that can be reached from all others: those of the only closed class."""
    reach = (matrices > 0) | np.eye(matrices.shape[-1], dtype=bool)
    for _ in range(matrices.shape[-1].bit_length()):  # paths of up to 1, 2, 4, ... steps
        reach = reach.astype(np.float32) @ reach.astype(np.float32) > 0
    recurrent = reach.all(axis=-2)
    for draw in np.argwhere(~recurrent.any(axis=-1))[:1]:
        chain = reach[tuple(draw)]
        closed = dict.fromkeys(
            tuple(np.flatnonzero(row).tolist()) for i, row in enumerate(chain) if chain[row, i].all()
        )
        sets = _first(["{" + _first(states, 8) + "}" for states in closed], 5)
        has = f"{_name(draw)} has {len(closed)} closed classes of states, {sets}"
        raise NumericalError(f"{has}: its stationary distribution is not unique; take one class", "not_identified")
    return recurrent


def _checked(transition: Any) -> np.ndarray:
    """Return a new float64 array of shape (..., K, K) whose rows are distributions."""
    if hasattr(transition, "columns") and list(transition.columns) != list(transition.index):
        raise InputError(
            "the rows of transition are not named as its columns",
            "labels_differ",
            hint="reindex both by the same states",
        )
    try:
        matrices = np.asarray(transition)
    except ValueError:
        raise InputError("transition is ragged: its rows have different lengths", "ragged") from None
    if matrices.dtype.kind not in "iuf":
        raise InputError(f"transition must hold numbers, got {matrices.dtype}", "wrong_type")
    matrices = matrices.astype(np.float64)
    if matrices.ndim < 2 or matrices.shape[-1] != matrices.shape[-2] or matrices.shape[-1] == 0:
        raise InputError(f"transition has shape {matrices.shape}; (..., K, K) was expected", "wrong_shape")
    for index in np.argwhere(~((matrices >= 0) & np.isfinite(matrices)))[:1]:
        raise InputError(f"{_name(index)} is {matrices[tuple(index)]:.6g}, not a probability", "not_a_probability")
    sums = matrices.sum(axis=-1)
    for index in np.argwhere(np.abs(sums - 1) > _ROW_SUM)[:1]:
        transposed = np.allclose(matrices.sum(axis=-2), 1, rtol=0, atol=_ROW_SUM)
        hint = "its columns do: pass the transpose" if transposed else "divide each row by its sum"
        raise InputError(f"{_name(index)} sums to {sums[tuple(index)]:.10g}, not to 1", "not_a_probability", hint=hint)
    return matrices


def _name(index: np.ndarray) -> str:
    return f"transition[{', '.join(map(str, index))}]" if len(index) else "transition"


def _first(items: Any, most: int) -> str:
    return ", ".join(map(str, items[:most])) + ", ..." * (len(items) > most)
