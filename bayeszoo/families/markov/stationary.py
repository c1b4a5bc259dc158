"""Markov chains in the long run: stationary distributions p = p P, and PageRank.

``P[i, j]`` is the probability of going from state i to state j, so rows sum to one, and p is an eigenvector of the
transpose of P. (W4400, Markov models, prints the product without the transpose.)

W4400, Markov models and page rank; Grassmann, Taksar and Heyman 1985, Operations Research 33; Stewart 1994,
Introduction to the Numerical Solution of Markov Chains; Page, Brin, Motwani and Winograd 1999.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from bayeszoo.data.table.read import read_table
from bayeszoo.data.table.table import Column, Table, shown, to_reals
from bayeszoo.errors import InputError, NumericalError

if TYPE_CHECKING:
    import pandas as pd

_ROW_SUM = 1e-8  # how far from one a row of probabilities may sum
_SMALLEST = 1e-290  # below it, products of probabilities come near where float64 loses digits, and then everything
_MAX_STEPS = 100_000
_MAX_DENSE = 2_000  # nodes up to which ranks are found by elimination: the time is cubic
_STEP_ROUNDING = 1e-15  # what one step of the surfer may be off
_COLUMNS = ("source", "target", "weight")


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
            raise NumericalError(f"{_name(np.unravel_index(lost, draws))}: its stationary distribution underflows")
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
    matrices = matrices.astype(np.float64)
    for index in np.argwhere(~((matrices >= 0) & np.isfinite(matrices)))[:1]:
        raise InputError(f"{_name(index)} is {matrices[tuple(index)]:.6g}, not a probability")
    sums = matrices.sum(axis=-1)
    for index in np.argwhere(np.abs(sums - 1) > _ROW_SUM)[:1]:
        transposed = np.allclose(matrices.sum(axis=-2), 1, rtol=0, atol=_ROW_SUM)
        hint = "its columns do: pass the transpose" if transposed else "divide each row by its sum"
        raise InputError(f"{_name(index)} sums to {sums[tuple(index)]:.10g}, not to 1", hint=hint)
    return matrices


def _name(index: Sequence[Any] | np.ndarray) -> str:
    return f"transition[{', '.join(map(str, index))}]" if len(index) else "transition"


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
    has = f"{_name(np.unravel_index(alike[0], draws))}{others} has {len(closed)} closed classes of states, {sets}"
    raise NumericalError(f"{has}: its stationary distribution is not unique; take one class")


def _first(items: list[Any], most: int) -> str:
    return ", ".join(map(str, items[:most])) + ", ..." * (len(items) > most)


def pagerank(edges: Any, damping: float = 0.85, *, nodes: Any = None, tolerance: float = 1e-12) -> pd.DataFrame:
    """Rank the nodes of a directed graph by how often a random surfer is there.

    With probability `damping` (1 - alpha in W4400) the surfer follows a link of the node, chosen in proportion to its
    weight, else goes to any node at random; from a node without links, always.

    Parameters
    ----------
    edges : sequence, ndarray, data frame, mapping or path
        ``(source, target)`` or ``(source, target, weight)`` tuples; an array of shape (E, 2); or a table with columns
        ``source``, ``target`` and perhaps ``weight``, or its file. Labels are text (in a file, always) or whole
        numbers. Weights are > 0, by default 1, and add up over parallel edges.
    damping : float
        From 0 to below 1; or 1 where the chain is irreducible, whose stationary distribution the ranks then are. So
        near to 1 that steps would lose the answer to rounding (above 0.999 by default), at most 2000 nodes.
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
        When the ranks do not settle.

    Examples
    --------
    >>> pagerank([("a", "b"), ("b", "a"), ("c", "a")])["rank"].round(3).to_dict()
    {'a': 0.486, 'b': 0.464, 'c': 0.05}
    """
    import pandas as pd

    if not isinstance(damping, int | float) or not 0 <= damping <= 1:
        raise InputError(f"damping must be in [0, 1), got {shown(damping)}")
    if not isinstance(tolerance, int | float) or not 0 < tolerance < 1:
        raise InputError(f"tolerance must be in (0, 1), got {shown(tolerance)}")
    table = _edge_table(edges)
    labels, source, target = _codes(table, nodes)
    links = scipy.sparse.csr_array((_shares(table, source), (source, target)), shape=(len(labels), len(labels)))
    into = links.T.tocsr()
    too_slow = damping * _STEP_ROUNDING > tolerance * (1 - damping)
    rank = _ranks_by_elimination(links, damping) if too_slow else _surf(into, links, damping, tolerance)
    links_in, links_out = (np.diff(matrix.indptr).astype(np.int64) for matrix in (into, links))
    index = pd.Index(labels, name="node")
    frame = pd.DataFrame({"rank": rank, "links_in": links_in, "links_out": links_out}, index=index)
    return frame.iloc[np.argsort(-np.round(rank / tolerance), kind="stable")]


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


def _ranks_by_elimination(links: Any, damping: float) -> np.ndarray:
    """Find the ranks as `stationary` does, which rounding does not harm however near to 1 the damping is."""
    count = links.shape[0]
    if count > _MAX_DENSE:
        hint = f"for more than {_MAX_DENSE} nodes lower it, or raise the tolerance"
        raise InputError(f"damping {damping!r} is too near to 1 for {count} nodes", hint=hint)
    chain = links.toarray()
    chain[np.diff(links.indptr) == 0] = 1 / count
    if damping == 1 and scipy.sparse.csgraph.connected_components(chain, connection="strong")[0] > 1:
        raise InputError("damping is 1 and some nodes cannot be reached from others", hint="use a damping below 1")
    return stationary(damping * chain + (1 - damping) / count)


def _edge_table(edges: Any) -> Table:
    """Read the edges as a table with the columns source, target and perhaps weight."""
    if isinstance(edges, np.ndarray):
        if edges.ndim != 2 or edges.shape[1] != 2:
            raise InputError(f"edges have shape {edges.shape}", hint="(E, 2) was expected; weights go in tuples")
        edges = {"source": edges[:, 0], "target": edges[:, 1]}
    table = read_table(_unzipped(edges) if isinstance(edges, list | tuple) else edges)
    if table.notes:
        raise InputError(table.notes[0], hint="give them one index")
    others = [name for name in table.columns if name not in _COLUMNS]
    if others and "source" in table.columns:
        hint = "rename it to source, target or weight, or leave it out"  # counts passed over would give other ranks
        raise InputError(f"column {shown(others[0])} is not used", column=others[0], hint=hint)
    if not len(table["source"]):
        raise InputError("there are no edges")
    return table


def _unzipped(edges: Sequence[Any]) -> dict[str, list[Any]]:
    """Return the columns of a sequence of tuples, all of two or all of three."""
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
    labels = np.concatenate([_labels(column) for column in (table["source"], table["target"], *more)])
    if len({isinstance(label, str) for label in labels}) > 1:
        raise InputError("some labels are text and some are numbers", hint="make them all text or all whole numbers")
    codes, names = pd.factorize(labels, sort=True)
    source, target = np.split(codes[: 2 * table.rows], 2)
    return list(names), source, target


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
