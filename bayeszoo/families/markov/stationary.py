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
    distributions = np.zeros((len(stack), states))
    # draws of one model mostly have their zeros at the same places: those are done together
    patterns, pattern_of = np.unique((stack > 0).reshape(len(stack), states**2), axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        alike = np.flatnonzero(pattern_of == number)
        closed = _closed_class(pattern.reshape(states, states), alike, draws)
        distributions[np.ix_(alike, closed)], smallest = _eliminated(stack[np.ix_(alike, closed, closed)])
        for lost in alike[~(smallest >= _SMALLEST)][:1]:
            raise NumericalError(f"{_draw(lost, draws)}: its stationary distribution underflows")
    return distributions.reshape(*draws, states)


def _eliminated(stack: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distributions (draws, K) of irreducible chains (draws, K, K), and the smallest divisor of each."""
    states, smallest = stack.shape[-1], np.ones(len(stack))
    with np.errstate(all="ignore"):
        for n in range(states - 1, 0, -1):  # the chain watched only while it is in the states below n
            leaving = stack[:, n, :n].sum(axis=1)  # not 1 - stay, which cancels
            smallest = np.minimum(smallest, leaving)
            stack[:, :n, n] /= leaving[:, None]
            stack[:, :n, :n] += stack[:, :n, n, None] * stack[:, n, None, :n]
        distributions = np.zeros(stack.shape[:2])
        distributions[:, 0] = 1.0
        for n in range(1, states):  # stack[:, i, n] is now the mean number of visits to n between states below n
            distributions[:, n] = (distributions[:, :n] * stack[:, :n, n]).sum(axis=1)
            distributions /= distributions.sum(axis=1, keepdims=True)  # at every step, lest it overflow
    return distributions, np.minimum(smallest, distributions.min(axis=1))


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
        raise InputError("the rows of transition are not named as its columns", hint="reindex both by the same states")
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


def _draw(number: Any, draws: Sequence[int]) -> str:
    return _entry(np.unravel_index(number, draws)) if draws else "transition"


def _closed_class(pattern: np.ndarray, alike: np.ndarray, draws: Sequence[int]) -> np.ndarray:
    """Return the states of the one class that is never left; refuse chains (``alike``) that have several."""
    count, label = scipy.sparse.csgraph.connected_components(pattern, connection="strong")
    source, target = np.nonzero(pattern)
    left = label[source[label[source] != label[target]]]
    closed = [np.flatnonzero(label == c) for c in range(count) if c not in left]
    if len(closed) == 1:
        return closed[0]
    sets = _first(["{" + _first(states.tolist(), 8) + "}" for states in sorted(closed, key=lambda c: c[0])], 5)
    others = f" (and {len(alike) - 1} more)" if len(alike) > 1 else ""
    raise NumericalError(
        f"{_draw(alike[0], draws)}{others} has {len(closed)} closed classes of states, {sets}: "
        "its stationary distribution is not unique; take one class"
    )


def _first(items: list[Any], most: int) -> str:
    return ", ".join(map(str, items[:most])) + (", ..." if len(items) > most else "")
