"""Markov chains in the long run: stationary distributions p = p P, and PageRank.

``P[i, j]`` is the probability of going from state i to state j, so rows sum to one, and p is an eigenvector of the
transpose of P. (W4400, Markov models, prints the product without the transpose.)

W4400, Markov models and page rank; Grassmann, Taksar and Heyman 1985, Operations Research 33; Stewart 1994,
Introduction to the Numerical Solution of Markov Chains; Page, Brin, Motwani and Winograd 1999.
"""

from __future__ import annotations

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
        raise NumericalError(f"{_name(draw)}: its stationary distribution underflows")
    return np.take_along_axis(distributions, np.argsort(order, axis=-1), -1)


def _recurrent(matrices: np.ndarray) -> np.ndarray:
    """Say which states (..., K) are reached from all others: those of the one class that is never left."""
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
        raise NumericalError(f"{has}: its stationary distribution is not unique; take one class")
    return recurrent


def _checked(transition: Any) -> np.ndarray:
    """Return a new float64 array of shape (..., K, K) whose rows are distributions."""
    if hasattr(transition, "columns") and list(transition.columns) != list(transition.index):
        raise InputError("the rows of transition are not named as its columns", hint="reindex both by the same states")
    try:
        matrices = np.asarray(transition)
    except ValueError:
        raise InputError("transition is ragged: its rows have different lengths") from None
    if matrices.dtype.kind not in "iuf":
        raise InputError(f"transition must hold numbers, got {matrices.dtype}")
    matrices = matrices.astype(np.float64)
    if matrices.ndim < 2 or matrices.shape[-1] != matrices.shape[-2] or matrices.shape[-1] == 0:
        raise InputError(f"transition has shape {matrices.shape}; (..., K, K) was expected")
    for index in np.argwhere(~((matrices >= 0) & np.isfinite(matrices)))[:1]:
        raise InputError(f"{_name(index)} is {matrices[tuple(index)]:.6g}, not a probability")
    sums = matrices.sum(axis=-1)
    for index in np.argwhere(np.abs(sums - 1) > _ROW_SUM)[:1]:
        transposed = np.allclose(matrices.sum(axis=-2), 1, rtol=0, atol=_ROW_SUM)
        hint = "its columns do: pass the transpose" if transposed else "divide each row by its sum"
        raise InputError(f"{_name(index)} sums to {sums[tuple(index)]:.10g}, not to 1", hint=hint)
    return matrices


def _name(index: Any) -> str:
    return f"transition[{', '.join(map(str, index))}]" if len(index) else "transition"


def _first(items: Any, most: int) -> str:
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
        From 0 to below 1; or 1 where one class of nodes is never left, and its stationary distribution the ranks. So
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
        When the ranks do not settle, or `damping` is 1 and several classes of nodes are never left.

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
    labels, links = _links(_edge_table(edges), nodes)
    rank, degrees = _ranks(links, damping, tolerance), np.diff(links.indptr).astype(np.int64)
    columns = {"rank": rank, "links_in": np.bincount(links.indices, minlength=len(rank)), "links_out": degrees}
    frame = pd.DataFrame(columns, index=pd.Index(labels, name="node"))
    return frame.iloc[np.argsort(-np.round(rank / tolerance), kind="stable")]


def _ranks(links: Any, damping: float, tolerance: float) -> np.ndarray:
    count = links.shape[0]
    if tolerance * (1 - damping) >= _STEP_ROUNDING:
        rank = np.full(count, 1 / count)
        for _ in range(_MAX_STEPS):
            before, rank = rank, damping * (rank @ links)
            rank += (1 - rank.sum()) / count  # who does not follow a link goes anywhere
            if damping * np.abs(rank - before).sum() <= tolerance * (1 - damping):
                return rank  # for a step shrinks the error by damping
        hint = "lower the damping, or raise the tolerance"
        raise NumericalError(f"the ranks did not settle in {_MAX_STEPS} steps; {hint}")
    if count > _MAX_DENSE:
        hint = f"for more than {_MAX_DENSE} nodes lower it, or raise the tolerance"
        raise InputError(f"damping {damping!r} is too near to 1 for {count} nodes", hint=hint)
    chain = links.toarray()
    chain[np.diff(links.indptr) == 0] = 1 / count
    return stationary(damping * chain + (1 - damping) / count)


def _edge_table(edges: Any) -> Table:
    """Read the edges as a table with the columns source, target and perhaps weight."""
    if isinstance(edges, list | tuple | np.ndarray):
        rows = edges.tolist() if isinstance(edges, np.ndarray) else edges
        if len(rows) and {len(row) if isinstance(row, list | tuple) else 0 for row in rows} not in ({2}, {3}):
            raise InputError("edges must be (source, target) tuples, or all (source, target, weight)")
        edges = {name: list(cells) for name, cells in zip(_COLUMNS, zip(*rows, strict=True), strict=False)}
    table = read_table(edges)
    if table.notes:
        raise InputError(table.notes[0], hint="give them one index")
    others = [name for name in table.columns if name not in _COLUMNS]
    if others and "source" in table.columns:
        hint = "rename it to source, target or weight, or leave it out"  # counts passed over would give other ranks
        raise InputError(f"column {shown(others[0])} is not used", column=others[0], hint=hint)
    if not table.rows:
        raise InputError("there are no edges")
    return table


def _links(table: Table, nodes: Any) -> tuple[list[Any], Any]:
    """Return the sorted labels of the nodes, and the sparse matrix of the probabilities of each node's links."""
    import pandas as pd

    alone = [] if nodes is None else [read_table({"nodes": nodes})["nodes"]]
    labels = np.concatenate([_labels(column) for column in (table["source"], table["target"], *alone)])
    if len(set(map(type, labels))) > 1:
        raise InputError("some labels are text and some are numbers", hint="make them all text or all whole numbers")
    weight = np.ones(table.rows)
    if "weight" in table.columns:
        weight = to_reals(table["weight"])
        table["weight"].refuse(~(weight > 0), "is not a weight", hint="weights must be > 0")
    codes, names = pd.factorize(labels, sort=True)
    source, target = codes[: 2 * table.rows].reshape(2, -1)
    shares = weight / np.bincount(source, weights=weight)[source]
    return names.tolist(), scipy.sparse.csr_array((shares, (source, target)), shape=(len(names), len(names)))


def _labels(column: Column) -> np.ndarray:
    """Return labels as objects: all text, or all whole numbers."""
    labels = np.asarray(column.values, dtype=object)
    broken = [row for row, label in enumerate(labels) if type(label) not in (str, int) or label == ""]
    if broken:
        raise column.error("is not a label", broken, hint="labels must be text or whole numbers")
    return labels
