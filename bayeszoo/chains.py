"""Markov chains in the long run: stationary distributions, and PageRank.

``transition[i, j]`` is the probability of going from state i to state j, so rows sum to one, and a distribution p is
stationary when p = p P: it is an eigenvector of the transpose of P. (W4400, Markov models, prints the product without
the transpose.)

W4400, Markov models and page rank; Grassmann, Taksar and Heyman 1985, Operations Research 33; Stewart 1994,
Introduction to the Numerical Solution of Markov Chains; Page, Brin, Motwani and Winograd 1999.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from bayeszoo.errors import InputError, NumericalError
from bayeszoo.numeric import to_reals
from bayeszoo.sources import read_table
from bayeszoo.table import Column, Table, shown

if TYPE_CHECKING:
    import pandas as pd

_ROW_SUM = 1e-8
"""How far from one a row of probabilities may sum."""

_SMALLEST = 1e-290
"""Below it, products of probabilities come near where float64 loses digits, and then everything."""

_MAX_STEPS = 100_000
_MAX_RESIDUAL = 1e-10
_MAX_DENSE = 2_000  # nodes up to which ranks are found by elimination: the time is cubic
_STEP_ROUNDING = 1e-15  # what one step of the surfer may be off
_COLUMNS = ("source", "target", "weight")


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
    count, label = _communicating(matrix)
    source, target = np.nonzero(matrix > 0)
    is_open = np.zeros(count, dtype=bool)
    is_open[label[source[label[source] != label[target]]]] = True
    found = [np.flatnonzero(label == c) for c in np.flatnonzero(~is_open)]
    return sorted(found, key=lambda states: int(states[0]))


def _communicating(matrix: np.ndarray) -> tuple[int, np.ndarray]:
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


# PageRank


def pagerank(edges: Any, damping: float = 0.85, *, nodes: Any = None, tolerance: float = 1e-12) -> pd.DataFrame:
    """Rank the nodes of a directed graph by how often a random surfer is there.

    With probability `damping` the surfer follows a link of the node, chosen in proportion to its weight, else goes to
    any node at random. From a node without links the surfer always goes to any node. (`damping` is 1 - alpha in
    W4400.)

    Parameters
    ----------
    edges : sequence, ndarray, data frame, mapping or path
        ``(source, target)`` or ``(source, target, weight)`` tuples; an array of shape (E, 2); or a table with columns
        ``source``, ``target`` and perhaps ``weight``, or its file. Labels are text (in a file, always) or whole
        numbers. Weights are > 0, by default 1, and add up over parallel edges.
    damping : float
        From 0 to below 1. It may be 1 when the chain is irreducible: the ranks then are its stationary distribution.
        So near to 1 that steps would lose the answer to rounding (above 0.999 by default), at most 2000 nodes.
    nodes : sequence of labels, optional
        Nodes that may have no edges. Those of the edges need not be repeated.
    tolerance : float
        The most that the ranks may be off, summed over the nodes.

    Returns
    -------
    pandas.DataFrame
        Indexed by ``node``, highest rank first, ranks equal within `tolerance` by label. Columns: ``rank``, which sums
        to one; ``links_in`` and ``links_out``, from and to how many nodes there are links. The node itself counts;
        parallel edges are one link.

    Raises
    ------
    InputError
        When the edges cannot be used exactly as they are, or `damping` is out of range.
    NumericalError
        When the ranks do not settle, or are not stationary within 1e-10.

    Examples
    --------
    >>> pagerank([("a", "b"), ("b", "a"), ("c", "a")])["rank"].round(3).to_dict()
    {'a': 0.486, 'b': 0.464, 'c': 0.05}
    """
    import pandas as pd

    _check_settings(damping, tolerance)
    table = _edge_table(edges)
    labels, source, target = _codes(table, nodes)
    share = _shares(table, source)
    links = scipy.sparse.csr_array((share, (source, target)), shape=(len(labels), len(labels)))
    into = links.T.tocsr()
    too_slow = damping * _STEP_ROUNDING > tolerance * (1 - damping)
    rank = _eliminated(links, damping) if too_slow else _surf(into, links, damping, tolerance)
    _check_residual(rank, (source, target, share), damping)
    links_in, links_out = (np.diff(matrix.indptr).astype(np.int64) for matrix in (into, links))
    columns = {"rank": rank, "links_in": links_in, "links_out": links_out}
    frame = pd.DataFrame(columns, index=pd.Index(labels, name="node"))
    return frame.iloc[np.argsort(-np.round(rank / tolerance), kind="stable")]


def _check_settings(damping: Any, tolerance: Any) -> None:
    if not isinstance(damping, int | float) or not 0 <= damping <= 1:
        raise InputError(f"damping must be in [0, 1), got {shown(damping)}")
    if not isinstance(tolerance, int | float) or not 0 < tolerance < 1:
        raise InputError(f"tolerance must be in (0, 1), got {shown(tolerance)}")


def _surf(into: Any, links: Any, damping: float, tolerance: float) -> np.ndarray:
    """Follow the surfer until the ranks settle; ``into[j, i]`` is the probability that i's link leads to j."""
    count, dangling = links.shape[0], np.diff(links.indptr) == 0
    rank, change = np.full(count, 1 / count), np.inf
    for _ in range(_MAX_STEPS):
        jumps = damping * rank[dangling].sum() + 1 - damping
        after = damping * (into @ rank) + jumps / count
        after /= after.sum()
        change, rank = float(np.abs(after - rank).sum()), after
        # a step shrinks the error by damping, at least, but for its own rounding
        if damping * max(change, _STEP_ROUNDING) <= tolerance * (1 - damping):
            return rank
    hint = "lower the damping, or raise the tolerance"
    raise NumericalError(f"no convergence in {_MAX_STEPS} steps: the last changed the ranks by {change:.3g}; {hint}")


def _eliminated(links: Any, damping: float) -> np.ndarray:
    """Find the ranks as `stationary` does, which rounding does not harm however near to 1 the damping is."""
    count = links.shape[0]
    if count > _MAX_DENSE:
        hint = f"for more than {_MAX_DENSE} nodes lower it, or raise the tolerance"
        raise InputError(f"damping {damping!r} is too near to 1 for {count} nodes", hint=hint)
    chain = links.toarray()
    chain[np.diff(links.indptr) == 0] = 1 / count
    if damping == 1 and _communicating(chain)[0] > 1:
        raise InputError("damping is 1 and some nodes cannot be reached from others", hint="use a damping below 1")
    return stationary(damping * chain + (1 - damping) / count)


def _check_residual(rank: np.ndarray, edges: tuple[np.ndarray, np.ndarray, np.ndarray], damping: float) -> None:
    """Refuse ranks that one more step would change, going edge by edge instead of by the sparse matrix."""
    source, target, share = edges
    dangling = np.bincount(source, minlength=len(rank)) == 0
    followed = np.bincount(target, weights=share * rank[source], minlength=len(rank)) + rank[dangling].sum() / len(rank)
    residual = float(np.abs(damping * followed + (1 - damping) / len(rank) - rank).sum())
    if not residual <= _MAX_RESIDUAL:
        raise NumericalError(f"the ranks are off: one more step changes them by {residual:.3g}; lower the tolerance")


def _edge_table(edges: Any) -> Table:
    """Read the edges as a table with the columns source, target and perhaps weight."""
    if isinstance(edges, np.ndarray):
        if edges.ndim != 2 or edges.shape[1] != 2:
            raise InputError(f"edges have shape {edges.shape}", hint="(E, 2) was expected; weights go in tuples")
        edges = {"source": edges[:, 0], "target": edges[:, 1]}
    table = read_table(_unzipped(edges) if isinstance(edges, list | tuple) else edges)
    if table.notes:
        raise InputError(table.notes[0], hint="give them one index")
    other = next((name for name in table.columns if name not in _COLUMNS), None)
    if other is not None and "source" in table.columns:
        hint = "rename it to source, target or weight, or leave it out"  # counts passed over would give other ranks
        raise InputError(f"column {shown(other)} is not used", column=other, hint=hint)
    if not len(table["source"]):
        raise InputError("there are no edges")
    return table


def _unzipped(edges: Sequence[Any]) -> dict[str, list[Any]]:
    width = len(edges[0]) if edges and isinstance(edges[0], list | tuple) else 2
    for number, edge in enumerate(edges):
        if not isinstance(edge, list | tuple) or len(edge) != width or width not in (2, 3):
            like = "(source, target, weight)" if width == 3 else "(source, target)"
            raise InputError(f"edges[{number}] is {shown(edge)}", hint=f"all edges must be {like} tuples")
    return {name: [edge[k] for edge in edges] for k, name in enumerate(_COLUMNS[:width])}


def _codes(table: Table, nodes: Any) -> tuple[list[Any], np.ndarray, np.ndarray]:
    """Return the sorted labels of the nodes, and the places among them of the edges' sources and targets."""
    import pandas as pd

    more = [] if nodes is None else [read_table({"nodes": nodes})["nodes"]]
    columns = [table["source"], table["target"], *more]
    codes, names = pd.factorize(np.concatenate([_labels(column) for column in columns]))
    if len({isinstance(name, str) for name in names}) > 1:
        raise InputError("some labels are text and some are numbers", hint="make them all text or all whole numbers")
    order = sorted(range(len(names)), key=names.__getitem__)
    source, target = np.split(np.argsort(order)[codes[: 2 * table.rows]], 2)
    return [names[k] for k in order], source, target


def _labels(column: Column) -> np.ndarray:
    """Return labels as objects: all text, or all whole numbers."""
    values = column.values
    cells = values if isinstance(values, list) else values.tolist()
    broken = [k for k, cell in enumerate(cells) if not isinstance(cell, str | int) or cell == "" or type(cell) is bool]
    if broken:
        raise column.error("is not a label", broken, hint="labels must be text or whole numbers")
    labels = np.empty(len(cells), dtype=object)
    labels[:] = cells
    return labels


def _shares(table: Table, source: np.ndarray) -> np.ndarray:
    """Return the probability of each edge among those of its source."""
    weight = np.ones(len(source))
    if "weight" in table.columns:
        column = table["weight"]
        weight = to_reals(column)
        broken = np.flatnonzero(~(weight > 0))
        if len(broken):
            raise column.error("is not a weight", broken, hint="weights must be > 0")
    return weight / np.bincount(source, weights=weight)[source]
