"""Graphs: edges between nodes, and labels of some of the nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayeszoo.data.inputs.base import Arrays, Inputs, Layout, Parsed
from bayeszoo.data.inputs.counts import read_outcomes
from bayeszoo.data.inputs.labels import OUTCOMES, Alphabet, Coded, checked_labels, code, label_array
from bayeszoo.data.table.read import read_table, to_column
from bayeszoo.data.table.table import Column, Table, shown, to_reals
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Options

NODE, NEIGHBOUR, LABEL, WEIGHT = "node", "neighbour", "label", "weight"
PLACE, FIRST, SECOND = "place", "first", "second"


@dataclass(frozen=True)
class Edges(Inputs):
    """An undirected graph, and one of two labels for some of its nodes; a row is an edge or the label of a node.

    The table has columns ``node`` and ``neighbour``, or others named by these options; perhaps ``weight``, the strength
    of an edge, > 0; and ``label``, 0 and 1 or two labels with the option ``positive``. A row with a neighbour is an
    edge; a row without one gives the label of its node, or only lists the node. In Python also a pair of a networkx
    graph and a mapping of nodes to labels. Rows to be predicted are a column ``node``, or the labelled nodes of such a
    table.

    The canonical arrays are the labels `name` (rows,) of the nodes with the codes ``place`` (rows,); the ends ``first``
    and ``second`` and the ``weight`` of edges (edges,); and the coordinate ``node``.
    """

    name: str = "y"
    options = frozenset({NODE, NEIGHBOUR, LABEL, WEIGHT, "positive"})
    treatments = ("refuse",)
    entries = (FIRST, SECOND, WEIGHT)
    holds = (
        "columns node and neighbour (--node, --neighbour), an edge a row, perhaps with its weight (--weight), and rows "
        "of a node without a neighbour, but with a label, 0 and 1 or two labels (--label, --positive)"
    )

    @property
    def layout(self) -> Layout:  # type: ignore[override]
        """The nodes are a coordinate."""
        arrays = {self.name, PLACE, FIRST, SECOND, WEIGHT, NODE}
        return Layout((NODE,), {}, dict.fromkeys((PLACE, FIRST, SECOND), NODE), (arrays,))

    def own_table(self, source: Any, decimal: str) -> Table | None:
        """Read a pair of a networkx graph and a mapping of nodes to labels."""
        if not (isinstance(source, tuple) and len(source) == 2 and isinstance(source[1], Mapping)):
            return None
        graph, labels = source
        if not callable(getattr(graph, "is_directed", None)):
            kind, hint = type(graph).__name__, "networkx.Graph(EDGES) makes a graph from pairs of nodes"
            raise InputError(
                f"a graph and labels: the first is a {kind} and no networkx graph", "wrong_type", hint=hint
            )
        if graph.is_directed() or graph.is_multigraph():
            raise InputError("the graph is directed, or has several edges between two nodes", "directed", hint=DIRECTED)
        unknown = next((node for node in labels if node not in graph), None)
        if unknown is not None:
            raise InputError(f"the label of {shown(unknown)}, which is no node", "unknown_label")
        edges = list(graph.edges(data=WEIGHT, default=1.0))
        unlabelled = [node for node in graph if node not in labels]
        rows = [(a, b, w, "") for a, b, w in edges] + [(a, "", "", labels[a]) for a in labels]
        rows += [(a, "", "", "") for a in unlabelled]
        columns = (list(map(str, values)) for values in zip(*rows, strict=True)) if rows else ([], [], [], [])
        return read_table(dict(zip((NODE, NEIGHBOUR, WEIGHT, LABEL), columns, strict=True)))

    def _parse(self, table: Table, missing: str, options: Options, like: Arrays | None) -> Parsed:
        names = {role: options.get(role, role) for role in (NODE, NEIGHBOUR, LABEL, WEIGHT)}
        optional = {WEIGHT} - options.keys() - table.columns.keys()
        columns = {role: table[name] for role, name in names.items() if role not in optional}
        ends = [code(columns[NODE]), code(columns[NEIGHBOUR])]
        columns[NODE].refuse(np.isnan(ends[0].codes), "is empty", "missing_values")
        nodes = code(to_column(NODE, [*ends[0].labels, *ends[1].labels])).labels
        first, second = (end.among(nodes).codes for end in ends)
        is_edge = ~np.isnan(second)
        columns[NEIGHBOUR].refuse(is_edge & (first == second), "is the node itself", "self_loop")
        labels = read_outcomes(columns[LABEL], options.get("positive"))
        columns[LABEL].refuse(is_edge & ~np.isnan(labels.values), "is that of an edge, not of a node", "label_of_edge")
        weights = _weights(columns.get(WEIGHT), is_edge)
        edges, notes = _once(columns[NEIGHBOUR], first[is_edge], second[is_edge], weights, is_edge)
        labelled = np.flatnonzero(~np.isnan(labels.values))
        if not len(labelled):
            raise columns[LABEL].error("has no label of a node", "no_data")
        twice = np.flatnonzero(np.bincount(first[labelled].astype(np.int64), minlength=len(nodes)) > 1)
        if len(twice):
            rows = labelled[first[labelled] == twice[0]]
            raise columns[NODE].error("has its label twice", "duplicate_rows", rows)
        labelled = labelled[np.argsort(first[labelled])]
        arrays = {self.name: labels.values[labelled].astype(np.int64), PLACE: first[labelled].astype(np.int64), **edges}
        arrays |= {NODE: label_array(nodes)}
        used = {role: column.name for role, column in columns.items()}
        return Parsed(arrays, used, (*labels.notes, *notes), labels.labels)

    def _parse_new(self, table: Table, missing: str, options: Options, like: Arrays | None) -> Parsed:
        column = table[options.get(NODE, NODE)]
        coded = Alphabet.of(NODE, "nodes", None, None if like is None else like[NODE]).coded(column)
        column.refuse(np.isnan(coded.codes), "is empty", "missing_values")
        graph = {name: like[name] for name in (*self.entries, NODE)} if like is not None else _without_edges(coded)
        used, places = {NODE: column.name}, coded.codes.astype(np.int64)
        if (label := options.get(LABEL, LABEL)) not in table.columns:
            return Parsed({PLACE: places, **graph}, used)
        outcomes = getattr(like, "reading", {}).get(OUTCOMES, ())
        labels = read_outcomes(table[label], options.get("positive"), outcomes)
        is_labelled = ~np.isnan(labels.values)
        if options.get(NEIGHBOUR, NEIGHBOUR) not in table.columns:
            table[label].refuse(~is_labelled, "is empty", "missing_values")
        arrays = {self.name: labels.values[is_labelled].astype(np.int64), PLACE: places[is_labelled], **graph}
        return Parsed(arrays, {**used, LABEL: label}, labels.notes, labels.labels)

    def _canonical(self, arrays: Mapping[str, object], missing: str) -> Parsed:
        nodes = checked_labels(NODE, arrays[NODE], 1)
        codes = {name: _codes(name, arrays[name], len(nodes)) for name in (PLACE, FIRST, SECOND)}
        y = np.asarray(arrays[self.name])
        weight = np.asarray(arrays[WEIGHT], dtype=np.float64)
        if y.shape != codes[PLACE].shape or not np.isin(y, (0, 1)).all():
            raise InputError(f"{self.name} must be 0 or 1 for each place", "not_binary")
        if not codes[FIRST].shape == codes[SECOND].shape == weight.shape:
            raise InputError("first, second and weight must have one entry an edge", "wrong_shape")
        if np.any(codes[FIRST] == codes[SECOND]) or not np.all((weight > 0) & np.isfinite(weight)):
            raise InputError("edges must join two nodes and have a weight > 0", "out_of_range")
        return Parsed({self.name: y.astype(np.int64), **codes, WEIGHT: weight, NODE: nodes}, {})

    def table(self, arrays: Arrays) -> dict[str, np.ndarray]:
        """Return the edges, then the labels, then other nodes; only names for nodes to be predicted."""
        if self.name not in arrays:
            return {NODE: arrays[NODE][arrays[PLACE]]}
        nodes, edges = arrays[NODE], len(arrays[FIRST])
        touched = {*arrays[FIRST].tolist(), *arrays[SECOND].tolist(), *arrays[PLACE].tolist()}
        others = nodes[[i for i in range(len(nodes)) if i not in touched]]
        without_edge = len(arrays[PLACE]) + len(others)
        texts = [[*map(repr, map(float, arrays[WEIGHT])), *[""] * without_edge], [""] * edges]
        texts[1] = [*texts[1], *arrays[self.name].astype(str), *[""] * len(others)]
        return {
            NODE: np.array([*nodes[arrays[FIRST]], *nodes[arrays[PLACE]], *others], dtype=str),
            NEIGHBOUR: np.array([*nodes[arrays[SECOND]], *[""] * without_edge], dtype=str),
            WEIGHT: np.array(texts[0], dtype=str),
            LABEL: np.array(texts[1], dtype=str),
        }

    def features_of(self, arrays: Arrays) -> dict[str, Any]:
        """Return the name of the first node."""
        return {NODE: arrays[NODE][arrays[PLACE][0]]}

    def size(self, arrays: Arrays) -> int:
        """Return how many nodes are told, or asked for."""
        return len(arrays[PLACE])

    def reordered(self, arrays: Arrays, permutation: np.ndarray) -> dict[str, np.ndarray]:
        """Take some of the labels; the graph stays."""
        return {name: v[permutation] if name in (self.name, PLACE) else v for name, v in arrays.items()}

    def alike(self, arrays: Arrays) -> np.ndarray:
        """Return a number for each node told; rows to be predicted may repeat one."""
        return np.unique(arrays[PLACE], return_inverse=True)[1]

    def unseen(self, arrays: Arrays, rows: int) -> dict[str, np.ndarray]:
        """Refuse nodes without a name, as their place in the graph is unknown."""
        raise InputError("further nodes have no place in the graph", "no_data", hint="give a table with a column node")


DIRECTED = "leave the directions out, as by graph.to_undirected(), or give each edge once"


def _weights(column: Column | None, is_edge: np.ndarray) -> np.ndarray:
    """Return the weight of each edge, 1 if the table has no weights."""
    if column is None:
        return np.ones(int(is_edge.sum()))
    weights = to_reals(column)
    column.refuse(is_edge & ~(weights > 0), "is no weight > 0 of an edge", "out_of_range")
    column.refuse(~is_edge & ~np.isnan(weights), "is of a row without a neighbour", "out_of_range")
    return np.asarray(weights[is_edge])


def _once(
    column: Column, first: np.ndarray, second: np.ndarray, weights: np.ndarray, is_edge: np.ndarray
) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
    """Return each edge once; if some edges are given in both directions, all must be, with equal weights."""
    ends, rows = np.column_stack([first, second]).astype(np.int64).reshape(-1, 2), np.flatnonzero(is_edge)
    _, start, place = np.unique(ends, axis=0, return_index=True, return_inverse=True)
    if len(repeats := np.flatnonzero(start[np.ravel(place)] != np.arange(len(ends)))):
        raise column.error("repeats an edge", "duplicate_rows", rows[repeats])
    distinct, start, place, counts = np.unique(
        np.sort(ends, axis=1), axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    other = weights != weights[start][np.ravel(place)]
    if other.any():
        hint = "give each edge once, with one weight"
        raise column.error("is an edge with another weight than its reverse", "directed", rows[other], hint=hint)
    if len(counts) and len({*counts.tolist()}) > 1:
        hint = "give each edge once, or each in both directions"
        one_way = rows[counts[np.ravel(place)] == 1]
        raise column.error("is an edge without its reverse, and others have theirs", "directed", one_way, hint=hint)
    are_in_both_directions = len(counts) > 0 and counts[0] == 2
    notes = ("edges are given in both directions, and each is counted once",) if are_in_both_directions else ()
    return {FIRST: distinct[:, 0], SECOND: distinct[:, 1], WEIGHT: weights[start]}, notes


def _codes(name: str, values: object, size: int) -> np.ndarray:
    codes = np.asarray(values)
    if codes.ndim != 1 or (len(codes) and (codes.dtype.kind not in "iu" or codes.min() < 0 or codes.max() >= size)):
        raise InputError(f"{name} must be codes of nodes, from 0 to {size - 1}", "out_of_range")
    return codes.astype(np.int64)


def _without_edges(coded: Coded) -> dict[str, np.ndarray]:
    empty = np.zeros(0, dtype=np.int64)
    return {FIRST: empty, SECOND: empty, WEIGHT: np.zeros(0), NODE: label_array(coded.labels)}
