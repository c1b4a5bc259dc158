"""Functions of one flat vector, compiled once for all data: data are arguments, not constants.

A graph is cut where values that do not depend on the vector enter it. The part before the cut is evaluated once; the
part after it is compiled with those values as arguments, and reused for other data of the same shape. Compiled code
depends on the graph only, not on what was compiled before, so that a fit has the same draws in a fresh process.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.compile import get_mode
from pytensor.graph import Constant, FunctionGraph, clone_replace
from pytensor.graph.traversal import toposort
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.subtensor import AdvancedSubtensor

from bayeszoo.compile.function import Function, without_c
from bayeszoo.compile.loops.graph import jitted
from bayeszoo.likelihoods.ops.operation import LogDensity

MOST_KEPT = 64
_KEPT: OrderedDict[Hashable, Callable[..., Any]] = OrderedDict()
"""The most recently used compiled functions, by the structure of their graphs."""
_PLAIN = {-np.inf, np.inf, *(k / 2 for k in range(-8, 9))}
"""Numbers that stay constants, because PyTensor simplifies graphs with them: x ** 2, 1 - x."""
_TAKE_INTEGERS = (Elemwise, AdvancedSubtensor, LogDensity)
"""Operations whose integer inputs are data; for others they may be shapes and axes, and stay constants."""


def compiled(flat: object, outputs: Sequence[object], mode: str) -> Function:
    """Compile outputs as a function of a flat vector, or reuse the function of a graph of the same structure."""
    entering = _entering(flat, outputs)
    values = dict(zip(entering, _evaluated(list(entering)), strict=True))
    data = [v for v in entering if _is_data(v, values[v], entering[v])]
    scalars = [v for v in data if np.size(values[v]) == 1 and v.type.dtype == "float64"]
    arrays = {v: v.type() for v in data if v not in scalars}
    packed = pt.vector(
        "scalars", shape=(len(scalars),), dtype="float64"
    )  # each argument costs a tenth of a microsecond
    numbers = {v: packed[i].reshape((1,) * v.type.ndim) for i, v in enumerate(scalars)}
    constants = {v: v.type.make_constant(values[v]) for v in entering if v not in data}
    graph, inputs = clone_replace(list(outputs), {**arrays, **numbers, **constants}), [flat, packed, *arrays.values()]
    function = _cached(inputs, graph, mode)
    arguments = [
        np.array([np.ravel(values[v])[0] for v in scalars]),
        *(np.asarray(v.type.filter(values[v]), order="C") for v in arrays),
    ]
    return Function(function, arguments)


def _cached(inputs: Sequence[object], graph: Sequence[object], mode: str) -> Callable[..., Any]:
    key = mode, _structure(inputs, graph)
    if key not in _KEPT:
        _KEPT[key] = _jitted(inputs, graph) if mode == "NUMBA" else _interpreted(inputs, graph, mode)
    _KEPT.move_to_end(key)
    while len(_KEPT) > MOST_KEPT:
        _KEPT.popitem(last=False)
    return _KEPT[key]


def _jitted(inputs: Sequence[object], outputs: Sequence[object]) -> Callable[..., Any]:
    """Compile a graph simplified by PyTensor, without rewrites for its own numba linker."""
    graph = FunctionGraph(inputs, outputs, clone=True)
    get_mode("NUMBA").excluding("inplace", "fuse_indexed_into_elemwise").optimizer.rewrite(graph)
    return jitted(graph)


def _interpreted(inputs: Sequence[object], outputs: Sequence[object], mode: str) -> Callable[..., Any]:
    with without_c():
        return pytensor.function(inputs, outputs, mode=mode, on_unused_input="ignore", trust_input=True)


def _entering(flat: object, outputs: Sequence[object]) -> dict[Any, list[Any]]:
    """Return variables that do not depend on the vector, with the operations on the vector that use them."""
    moving, entering = {flat}, dict[Any, list[Any]]()
    for node in toposort(outputs):
        if not moving.isdisjoint(node.inputs):
            moving.update(node.outputs)
            for variable in (v for v in node.inputs if v not in moving):
                entering.setdefault(variable, []).append(node.op)
    return entering | {variable: [None] for variable in outputs if variable not in moving}


def _evaluated(variables: Sequence[Any]) -> list[Any]:
    """Return the values of variables without inputs, each operation evaluated once by its Python code."""
    values = dict[Any, Any]()

    def value(variable: Any) -> Any:
        if variable.owner is not None:
            return values[variable]
        return variable.data if isinstance(variable, Constant) else variable.get_value()

    for node in toposort(variables):
        inputs = {v: [value(v)] for v in node.inputs}
        outputs = {v: [None] for v in node.outputs}
        is_computed = {**{v: [True] for v in inputs}, **{v: [False] for v in outputs}}
        node.op.make_thunk(node, {**inputs, **outputs}, is_computed, [], impl="py")()
        values |= {v: cell[0] for v, cell in outputs.items()}
    return [value(variable) for variable in variables]


def _is_data(variable: Any, value: Any, used_by: Sequence[Any]) -> bool:
    """Say whether a value becomes an argument."""
    if not isinstance(variable.type, pt.TensorType) or not np.size(value):
        return False
    if variable.type.dtype.startswith("float"):
        return np.size(value) > 1 or (variable.type.dtype == "float64" and float(np.ravel(value)[0]) not in _PLAIN)
    return (
        np.ndim(value) > 0 and variable.type.dtype != "bool" and all(isinstance(op, _TAKE_INTEGERS) for op in used_by)
    )


def _structure(inputs: Sequence[Any], outputs: Sequence[Any]) -> Hashable:
    """Describe a graph: graphs with equal descriptions compute the same function."""
    numbers = {variable: i for i, variable in enumerate(inputs)}
    nodes = list[Hashable]()
    for node in toposort(outputs):
        nodes.append((node.op, tuple(_name(v, numbers) for v in node.inputs), tuple(v.type for v in node.outputs)))
        numbers |= {variable: len(numbers) + i for i, variable in enumerate(node.outputs)}
    return tuple(v.type for v in inputs), tuple(nodes), tuple(_name(v, numbers) for v in outputs)


def _name(variable: object, numbers: Mapping[object, int]) -> Hashable:
    if not isinstance(variable, Constant):
        return numbers[variable]
    data = variable.data
    return variable.type, (data.dtype.str, data.shape, data.tobytes()) if isinstance(data, np.ndarray) else repr(data)
