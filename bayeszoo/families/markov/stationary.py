"""Markov chains in the long run: stationary distributions.

``transition[i, j]`` is the probability of going from state i to state j, so rows sum to one, and a distribution p is
stationary when p = p P: it is an eigenvector of the transpose of P. (W4400, Markov models, prints the product without
the transpose.)

W4400, Markov models; Grassmann, Taksar and Heyman 1985, Operations Research 33; Stewart 1994, Introduction to the
Numerical Solution of Markov Chains.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy

from bayeszoo.errors import InputError, NumericalError

_ROW_SUM = 1e-8
"""How far from one a row of probabilities may sum."""

_SMALLEST = 1e-290
"""Below it, products of probabilities come near where float64 loses digits, and then everything."""


# Stationary distributions


def stationary(transition: Any) -> np.ndarray:
    r"""Stationary distributions of Markov chains, by the elimination of Grassmann, Taksar and Heyman.

    It never subtracts, so that every entry is accurate relative to its own size, also where the chain hardly ever
    leaves a group of states. For the same reason it reads only the probabilities off the diagonal; those on it are
    what the rows lack to one. Periodic chains have a stationary distribution too.

    Parameters
    ----------
    transition : array_like, shape (..., K, K)
        ``transition[..., i, j]`` is the probability of going from i to j. Leading axes are draws.

    Returns
    -------
    ndarray, shape (..., K)
        Of each draw; exactly 0 at transient states.

    Raises
    ------
    InputError
        When a matrix is not square, an entry is negative, or a row does not sum to one within 1e-8: nothing is
        renormalized.
    NumericalError
        When a chain has several closed classes, and so no unique stationary distribution; or when probabilities are
        so small that products of them underflow.

    Examples
    --------
    >>> stationary([[0.5, 0.5], [0.25, 0.75]]).round(4).tolist()
    [0.3333, 0.6667]
    """
    matrices = _checked(transition)
    *draws, states, _ = matrices.shape
    stack = matrices.reshape(-1, states, states)
    recurrent = _recurrent(stack, draws)
    # every state leads to a recurrent one; with those in front, no elimination finds a state without an exit
    order = np.argsort(~recurrent, axis=1, kind="stable")
    stack = np.take_along_axis(np.take_along_axis(stack, order[:, :, None], 1), order[:, None, :], 2)
    with np.errstate(all="ignore"):
        smallest = _eliminate(stack)
        ordered = _substitute(stack)
    found = np.take_along_axis(ordered, np.argsort(order, axis=1), 1)
    smallest = np.minimum(smallest, np.min(found, axis=1, where=recurrent, initial=1.0))
    lost = np.flatnonzero(~(smallest >= _SMALLEST))
    if len(lost):
        raise NumericalError(f"{_draw(lost[0], draws)}: its stationary distribution underflows")
    return found.reshape(*draws, states)


def _eliminate(stack: np.ndarray) -> np.ndarray:
    """Censor the chains, shape (draws, K, K), on ever fewer states, in place; return the smallest exit probabilities.

    Afterwards entry i, n with i < n is the mean number of visits to n from i before the chain is back in 0..n-1.
    """
    smallest = np.ones(len(stack))
    for n in range(stack.shape[-1] - 1, 0, -1):
        leaving = stack[:, n, :n].sum(axis=1)  # not 1 - stay, which cancels
        smallest = np.minimum(smallest, leaving)
        stack[:, :n, n] /= leaving[:, None]
        stack[:, :n, :n] += stack[:, :n, n, None] * stack[:, n, None, :n]
    return smallest


def _substitute(stack: np.ndarray) -> np.ndarray:
    """Build the distributions, shape (draws, K), up from state 0."""
    found = np.zeros(stack.shape[:2])
    found[:, 0] = 1.0
    for n in range(1, stack.shape[-1]):
        found[:, n] = (found[:, :n] * stack[:, :n, n]).sum(axis=1)
        found /= found.sum(axis=1, keepdims=True)  # at every step, lest it overflow
    return found


def power_iteration(transition: Any, tolerance: float = 1e-12, max_iterations: int = 64) -> np.ndarray:
    """Stationary distributions by the power method, on the lazy chain (I + P) / 2, which is not periodic.

    The powers are 2, 4, 8, ...: each iteration squares the matrix, until all its rows agree. The stationary
    distribution lies between the rows, so their spread bounds the error. The small change of a single vector would
    not: a chain that hardly ever leaves a group of states changes little from the start.

    Parameters
    ----------
    transition : array_like, shape (..., K, K)
        As in `stationary`.
    tolerance : float
        The most that a distribution may be off, summed over its states.
    max_iterations : int
        How often to square; 64 is 2**64 steps of the chain.

    Returns
    -------
    ndarray, shape (..., K)

    Raises
    ------
    InputError
        As in `stationary`.
    NumericalError
        When the rows still differ: the chain has several closed classes, or mixes too slowly.
    """
    matrices = _checked(transition)
    power = (np.eye(matrices.shape[-1]) + matrices) / 2
    last = np.inf
    for _ in range(max_iterations):
        power = power @ power
        power /= power.sum(axis=-1, keepdims=True)  # rounding would otherwise grow with the power
        last = float(np.ptp(power, axis=-2).sum(axis=-1).max(initial=0.0))
        if last <= tolerance:
            return power.mean(axis=-2)
    raise NumericalError(f"no convergence in {max_iterations} squarings: the rows still differ by {last:.3g}")


def _checked(transition: Any) -> np.ndarray:
    """Return a float64 array of shape (..., K, K) whose rows are distributions."""
    matrices = _square(transition)
    for index in np.argwhere(~((matrices >= 0) & np.isfinite(matrices)))[:1]:
        raise InputError(f"{_entry(index)} is {matrices[tuple(index)]:.6g}, not a probability")
    sums = matrices.sum(axis=-1)
    for index in np.argwhere(np.abs(sums - 1) > _ROW_SUM)[:1]:
        transposed = np.allclose(matrices.sum(axis=-2), 1, rtol=0, atol=_ROW_SUM)
        hint = "its columns do: pass the transpose" if transposed else "divide each row by its sum"
        raise InputError(f"{_entry(index)} sums to {sums[tuple(index)]:.10g}, not to 1", hint=hint)
    return matrices


def _square(transition: Any) -> np.ndarray:
    if hasattr(transition, "columns") and list(transition.columns) != list(transition.index):
        raise InputError("transition has other rows than columns", hint="reindex both by the same states")
    try:
        matrices = np.asarray(transition)
    except ValueError:
        raise InputError("transition is ragged: its rows have different lengths") from None
    if matrices.dtype.kind not in "iuf":
        raise InputError(f"transition must hold numbers, got {matrices.dtype}")
    if matrices.ndim < 2 or matrices.shape[-1] != matrices.shape[-2] or matrices.shape[-1] == 0:
        raise InputError(f"transition has shape {matrices.shape}; (..., K, K) was expected")
    return matrices.astype(np.float64)


def _entry(index: Iterable[Any]) -> str:
    return f"transition[{', '.join(str(int(i)) for i in index)}]"


def _draw(number: int, draws: Sequence[int]) -> str:
    return _entry(np.unravel_index(number, draws)) if draws else "transition"


def _recurrent(stack: np.ndarray, draws: Sequence[int]) -> np.ndarray:
    """Return which states are recurrent, shape (draws, K); refuse chains with several closed classes."""
    # draws of one model mostly have their zeros at the same places: each pattern is looked at once
    bits = np.packbits((stack > 0).reshape(len(stack), stack.shape[-1] ** 2), axis=1)
    _, first, pattern = np.unique(bits, axis=0, return_index=True, return_inverse=True)
    classes = [_closed_classes(stack[draw]) for draw in first]
    broken = np.flatnonzero(np.array([len(closed) > 1 for closed in classes], dtype=bool)[pattern])
    if len(broken):
        raise _not_unique(classes[pattern[broken[0]]], _draw(broken[0], draws), len(broken) - 1)
    masks = np.zeros((len(classes), stack.shape[-1]), dtype=bool)
    for mask, closed in zip(masks, classes, strict=True):
        mask[closed[0]] = True
    return masks[pattern]


def _closed_classes(matrix: np.ndarray) -> list[np.ndarray]:
    """Return the sets of states that communicate and are never left, each as sorted indices."""
    count, label = communicating(matrix)
    source, target = np.nonzero(matrix > 0)
    is_open = np.zeros(count, dtype=bool)
    is_open[label[source[label[source] != label[target]]]] = True
    found = [np.flatnonzero(label == c) for c in np.flatnonzero(~is_open)]
    return sorted(found, key=lambda states: int(states[0]))


def communicating(matrix: np.ndarray) -> tuple[int, np.ndarray]:
    """Return how many classes of states that reach each other there are, and the class of each state."""
    graph = scipy.sparse.csr_array(matrix > 0)
    count, label = scipy.sparse.csgraph.connected_components(graph, directed=True, connection="strong")
    return int(count), label


def _not_unique(classes: list[np.ndarray], where: str, others: int) -> NumericalError:
    sets = f"{len(classes)} closed classes of states, {_first(['{' + _first(list(c), 8) + '}' for c in classes], 5)}"
    more = f" (and {others} more)" if others else ""
    return NumericalError(f"{where}{more} has {sets}: its stationary distribution is not unique; take one class")


def _first(items: list[Any], most: int) -> str:
    return ", ".join(map(str, items[:most])) + (", ..." if len(items) > most else "")
