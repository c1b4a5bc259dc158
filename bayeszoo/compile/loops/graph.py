"""A PyTensor graph as one numba function of loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pytensor.compile.builders import OpFromGraph
from pytensor.graph import Apply, Constant, FunctionGraph, Op
from pytensor.tensor.elemwise import CAReduce, Elemwise

from bayeszoo.compile.loops import indexing  # noqa: F401  its operations are registered
from bayeszoo.compile.loops.operations import entries, write
from bayeszoo.compile.loops.source import Array, Source, argument, constant


def jitted(graph: FunctionGraph) -> Callable[..., Any]:
    """Return a graph as one jitted function from its inputs, arrays in C order, to a tuple of its outputs.

    The shape of the first input is checked at each call; other shapes are taken from their types.
    """
    names = [f"data_{i}" for i in range(len(graph.inputs))]
    source = Source(names)
    arrays = [argument(name, v.type.shape) for name, v in zip(names, graph.inputs, strict=True)]
    for i, length in enumerate(arrays[0].shape):
        source.equal(f"{names[0]}.shape[{i}]", length)
    outputs = []
    for array, variable in zip(_graph(graph, arrays, source), graph.outputs, strict=True):
        output = Array(array.shape, array.at) if array.name in names else array  # inputs are not returned
        outputs.append(source.stored(output, variable.type.dtype).name if output.shape else output.at())
    source.line(f"return {', '.join([*map(str, outputs), ''])}")
    return source.compiled()


def _graph(graph: FunctionGraph, inputs: Sequence[Array], source: Source) -> list[Array]:
    arrays = dict(zip(graph.inputs, inputs, strict=True))

    def array(variable: object) -> Array:
        return constant(variable.data, source) if isinstance(variable, Constant) else arrays[variable]

    for node in graph.toposort():
        if _is_part_of_sum(node, graph):
            arrays[node.outputs[0]] = entries(node, [array(v) for v in node.inputs], source)
        else:
            arrays |= zip(node.outputs, write(node.op, node, [array(v) for v in node.inputs], source), strict=True)
    return [array(v) for v in graph.outputs]


def _is_part_of_sum(node: Apply, graph: FunctionGraph) -> bool:
    """Say whether entries are used once, by a reduction, and so need no memory."""
    if not isinstance(node.op, Elemwise) or len(node.outputs) > 1:
        return False
    clients = graph.clients[node.outputs[0]]
    return len(clients) == 1 and isinstance(clients[0][0].op, CAReduce)


@write.register(OpFromGraph)
def _inner(op: Op, node: Apply, inputs: Sequence[Array], source: Source) -> list[Array]:
    return _graph(op.fgraph, inputs, source)
