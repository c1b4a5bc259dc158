"""PageRank: the stationary distribution of a surfer who follows links, and at times jumps to a random node.

W4400, Markov models and page rank; Page, Brin, Motwani and Winograd 1999.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from bayeszoo.data.table.numbers import to_reals
from bayeszoo.data.table.read import read_table
from bayeszoo.data.table.table import Column, Table, shown
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.families.markov.stationary import stationary

if TYPE_CHECKING:
    import pandas as pd

_MAX_STEPS = 100_000
_MAX_DENSE = 2_000  # nodes up to which ranks are found by elimination: the time is cubic
_STEP_ROUNDING = 1e-15  # what one step of the surfer may be off
_COLUMNS = ("source", "target", "weight")


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
        When the ranks do not settle.

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
