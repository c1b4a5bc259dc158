"""PageRank: the stationary distribution of a surfer who follows links and sometimes jumps to a random node.

W4400, page rank; Page, Brin, Motwani and Winograd 1999.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from bayeszoo.data.table.read import read_table
from bayeszoo.data.table.table import Column, Table, quoted, shown, to_reals
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.families.markov.stationary import stationary

if TYPE_CHECKING:
    import pandas as pd

_MAX_STEPS = 100_000
_MAX_DENSE = 2_000  # most nodes for elimination, whose time is cubic
_STEP_ROUNDING = 1e-15  # rounding error of one step
_COLUMNS = ("source", "target", "weight")


def pagerank(
    edges: object, damping: float = 0.85, *, nodes: object = None, tolerance: float = 1e-12, start: object = None
) -> pd.DataFrame:
    """Rank the nodes of a directed graph by how often a random surfer visits them.

    With probability `damping` (1 - alpha in W4400) the surfer follows a link of the node, chosen in proportion to its
    weight; otherwise, and always from a node without links, the surfer jumps to a random node.

    Parameters
    ----------
    edges : sequence, ndarray, data frame, mapping or path
        ``(source, target)`` or ``(source, target, weight)`` tuples; an array of shape (E, 2); or a table with columns
        ``source``, ``target`` and perhaps ``weight``, or its file. Labels are text (in a file, always) or whole
        numbers. Weights are > 0, by default 1, and add up over parallel edges.
    damping : float
        From 0 to below 1. At 1 there must be only one class of nodes that is never left; its stationary distribution
        gives the ranks. Near 1, where rounding would spoil the steps (above 0.999 by default), at most 2000 nodes.
    nodes : sequence of labels, optional
        Nodes that may have no edges; nodes of the edges need not be repeated.
    tolerance : float
        Largest error of the ranks, summed over the nodes.
    start : data frame or mapping, optional
        Ranks by node to start from, for example from before some links changed; other nodes start at the mean. The
        answer is the same within the tolerance, after fewer steps: ``attrs["steps"]``.

    Returns
    -------
    pandas.DataFrame
        Indexed by ``node``, highest rank first; ranks equal within `tolerance` are sorted by label. Columns: ``rank``,
        which sums to one; ``links_in`` and ``links_out``, the numbers of nodes that link to the node and that it links
        to. A link to itself counts; parallel edges are one link.

    Raises
    ------
    InputError
        When the edges are not valid, or `damping` is out of range.
    NumericalError
        When the ranks do not converge, or `damping` is 1 and several classes of nodes are never left.

    Examples
    --------
    >>> pagerank([("a", "b"), ("b", "a"), ("c", "a")])["rank"].round(3).to_dict()
    {'a': 0.486, 'b': 0.464, 'c': 0.05}
    """
    import pandas as pd

    if not isinstance(damping, int | float) or not 0 <= damping <= 1:
        raise InputError(f"damping must be in [0, 1), got {shown(damping)}", "out_of_range")
    if not isinstance(tolerance, int | float) or not 0 < tolerance < 1:
        raise InputError(f"tolerance must be in (0, 1), got {shown(tolerance)}", "out_of_range")
    labels, links = _links(_edge_table(edges), nodes)
    rank, steps = _ranks(links, damping, tolerance, _start(labels, start))
    degrees = np.diff(links.indptr).astype(np.int64)
    columns = {"rank": rank, "links_in": np.bincount(links.indices, minlength=len(rank)), "links_out": degrees}
    frame = pd.DataFrame(columns, index=pd.Index(labels, name="node"))
    frame = frame.iloc[np.argsort(-np.round(rank / tolerance), kind="stable")]
    frame.attrs["steps"] = steps
    return frame


def _start(labels: list[Any], start: Any) -> np.ndarray:
    """Return the ranks to start from, which sum to 1."""
    given_ranks = start["rank"] if hasattr(start, "columns") and "rank" in start.columns else start
    ranks = np.full(len(labels), 1 / len(labels))
    if given_ranks is not None:
        ranks = np.array(
            [given_ranks.get(label, mean) for label, mean in zip(labels, ranks, strict=True)], dtype=np.float64
        )
    if not (np.isfinite(ranks).all() and np.all(ranks >= 0) and ranks.sum() > 0):
        raise InputError(
            "the ranks to start from must be numbers >= 0", "out_of_range", hint="give a result of pagerank"
        )
    return ranks / ranks.sum()


def _ranks(links: Any, damping: float, tolerance: float, rank: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the ranks and the number of steps, 0 by elimination."""
    count = links.shape[0]
    if tolerance * (1 - damping) >= _STEP_ROUNDING:
        for step in range(1, _MAX_STEPS + 1):
            before, rank = rank, damping * (rank @ links)
            rank += (1 - rank.sum()) / count  # the share of jumps
            if damping * np.abs(rank - before).sum() <= tolerance * (1 - damping):
                return rank, step  # as each step shrinks the error by damping
        hint = "lower the damping, or raise the tolerance"
        raise NumericalError(f"the ranks did not converge in {_MAX_STEPS} steps; {hint}", "not_converged")
    if count > _MAX_DENSE:
        hint = f"for more than {_MAX_DENSE} nodes lower it, or raise the tolerance"
        raise InputError(f"damping {damping!r} is too near to 1 for {count} nodes", "out_of_range", hint=hint)
    chain = links.toarray()
    chain[np.diff(links.indptr) == 0] = 1 / count
    return stationary(damping * chain + (1 - damping) / count), 0


def _edge_table(edges: object) -> Table:
    """Read the edges as a table with the columns source, target and perhaps weight."""
    if isinstance(edges, list | tuple | np.ndarray):
        rows = edges.tolist() if isinstance(edges, np.ndarray) else edges
        if len(rows) and {len(row) if isinstance(row, list | tuple) else 0 for row in rows} not in ({2}, {3}):
            raise InputError("edges must be (source, target) tuples, or all (source, target, weight)", "wrong_type")
        edges = {name: list(cells) for name, cells in zip(_COLUMNS, zip(*rows, strict=True), strict=False)}
    table = read_table(edges)
    if table.notes:
        raise InputError(table.notes[0], "bad_graph", hint="give them one index")
    others = [name for name in table.columns if name not in _COLUMNS]
    if others and "source" in table.columns:
        hint = "rename it to source, target or weight, or leave it out"  # ignored counts would give wrong ranks
        raise InputError(f"column {shown(others[0])} is not used", "missing_column", column=others[0], hint=hint)
    if not table.rows:
        raise InputError("there are no edges", "no_data")
    if lacking := [name for name in _COLUMNS[:2] if name not in table.columns]:
        hint = f"its columns are {quoted(table.columns)}; an edge goes from 'source' to 'target'"
        problem = f"{table.name or 'the table'} has no column {shown(lacking[0])}"
        raise InputError(problem, "missing_column", column=lacking[0], hint=hint)
    return table


def _links(table: Table, nodes: object) -> tuple[list[Any], Any]:
    """Return the sorted labels of the nodes, and the sparse matrix of the probabilities of each node's links."""
    import pandas as pd

    alone = [] if nodes is None else [read_table({"nodes": nodes})["nodes"]]
    labels = np.concatenate([_labels(column) for column in (table["source"], table["target"], *alone)])
    if len(set(map(type, labels))) > 1:
        raise InputError(
            "some labels are text and some are numbers", "mixed_types", hint="make them all text or all whole numbers"
        )
    weight = np.ones(table.rows)
    if "weight" in table.columns:
        weight = to_reals(table["weight"])
        table["weight"].refuse(~(weight > 0), "is not a weight", "out_of_range", hint="weights must be > 0")
    codes, names = pd.factorize(labels, sort=True)
    source, target = codes[: 2 * table.rows].reshape(2, -1)
    shares = weight / np.bincount(source, weights=weight)[source]
    return names.tolist(), scipy.sparse.csr_array((shares, (source, target)), shape=(len(names), len(names)))


def _labels(column: Column) -> np.ndarray:
    """Return labels as objects: all text, or all whole numbers."""
    labels = np.asarray(column.values, dtype=object)
    broken = [row for row, label in enumerate(labels) if type(label) not in (str, int) or label == ""]
    if broken:
        raise column.error("is not a label", "wrong_type", broken, hint="labels must be text or whole numbers")
    return labels
