"""PyTensor operations as loops in the text of a numba function; rare operations call PyTensor's own functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import singledispatch
from typing import Any

import numpy as np
import pytensor.scalar as ps
from pytensor.graph import Apply, Op
from pytensor.link.numba.dispatch.basic import numba_funcify_and_cache_key
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.basic import ScalarFromTensor, TensorFromScalar
from pytensor.tensor.elemwise import CAReduce, Elemwise
from pytensor.tensor.math import Dot

from bayeszoo.compile.loops.scalars import scalars
from bayeszoo.compile.loops.source import Array, Source, argument, type_name
from bayeszoo.likelihoods.ops.operation import UNREGISTERED, LogDensity

_REDUCTIONS = {
    ps.Add: ("0", "{0} + {1}"),
    ps.Mul: ("1", "{0} * {1}"),
    ps.Maximum: ("-inf", "{1} if ({1} > {0}) | ({1} != {1}) else {0}"),
    ps.Minimum: ("inf", "{1} if ({1} < {0}) | ({1} != {1}) else {0}"),
    ps.OR: ("False", "{0} | {1}"),
    ps.AND: ("True", "{0} & {1}"),
}
"""Initial value and step of each reduction."""
_MANY = 16
"""Entries from which a reduction uses four partial results, which the processor updates in parallel."""


@singledispatch
def write(op: object, node: object, inputs: Sequence[Array], source: Source) -> list[Array]:
    """Write an operation, and return its outputs; by default a call of PyTensor's function."""
    return called(op, node, inputs, source)


def called(op: Op, node: Apply, inputs: Sequence[Array], source: Source, arrays: int | None = None) -> list[Array]:
    """Write a call of PyTensor's function; after the first ``arrays`` inputs, inputs without axes are numbers."""
    function, key = numba_funcify_and_cache_key(op, node=node)
    arguments = [
        source.stored(array, v.type.dtype).name
        if hasattr(v.type, "ndim") and (v.type.ndim or arrays is None or i < arrays)
        else array.at()
        for i, (array, v) in enumerate(zip(inputs, node.inputs, strict=True))
    ]
    names = [source.new() for _ in node.outputs]
    tail = "," if len(names) > 1 else ""
    source.line(f"{', '.join(names)}{tail} = {source.name(function, key)}({', '.join(map(str, arguments))})")
    return [_returned(name, v.type, source) for name, v in zip(names, node.outputs, strict=True)]


def _returned(name: str, kind: Any, source: Source) -> Array:
    if not hasattr(kind, "ndim"):
        return Array((), lambda: name)
    return argument(name, kind.shape)


def common_shape(inputs: Sequence[Array], source: Source) -> list[str]:
    """Return the broadcast shape of arrays, and write checks of axes that are not of length 1."""
    shape = []
    for lengths in zip(*(array.shape for array in inputs), strict=True):
        shape.append("1")
        for length in lengths:
            if length != "1":
                shape[-1] = length if shape[-1] == "1" else source.equal(shape[-1], length)
    return shape


def entry(array: Array, indices: Sequence[str]) -> str:
    """Return the entry of a broadcast array."""
    return array.at(*("0" if n == "1" else i for n, i in zip(array.shape, indices, strict=True)))


def number(name: str) -> Array:
    """Return an array without axes."""
    return Array((), lambda: name)


def entries(node: Apply, inputs: Sequence[Array], source: Source) -> Array:
    """Return an elementwise operation with one output, whose entries are computed where they are used."""

    def at(*indices: str) -> str:
        return scalars(node.op.scalar_op, node, [source.assign(entry(x, indices)) for x in inputs], source)[0]

    return Array(tuple(common_shape(inputs, source)), at)


@write.register(Elemwise)
def _elementwise(op: Op, node: Apply, inputs: Sequence[Array], source: Source) -> list[Array]:
    shape = common_shape(inputs, source)
    if not shape:
        return [number(x) for x in scalars(op.scalar_op, node, [source.assign(x.at()) for x in inputs], source)]
    outputs = [source.empty(shape, v.type.dtype) for v in node.outputs]
    with source.loops(shape) as indices:
        names = scalars(op.scalar_op, node, [source.assign(entry(x, indices)) for x in inputs], source)
        for output, name in zip(outputs, names, strict=True):
            source.line(f"{output.at(*indices)} = {name}")
    return outputs


@write.register(ps.ScalarOp)
def _scalar(op: object, node: object, inputs: Sequence[Array], source: Source) -> list[Array]:
    return [number(name) for name in scalars(op, node, [source.assign(x.at()) for x in inputs], source)]


@write.register(CAReduce)
def _reduced(op: Op, node: Apply, inputs: Sequence[Array], source: Source) -> list[Array]:
    (array,), dtype = inputs, node.outputs[0].type.dtype
    if type(op.scalar_op) not in _REDUCTIONS or not dtype.startswith(("float", "bool", "int")):
        return called(op, node, inputs, source)
    axes = range(len(array.shape)) if op.axis is None else sorted(axis % len(array.shape) for axis in op.axis)
    return [_reduction(type(op.scalar_op), array, axes, dtype, source)]


@write.register(Dot)
def _dot(op: Op, node: Apply, inputs: Sequence[Array], source: Source) -> list[Array]:
    x, y = inputs
    length, rows = source.equal(x.shape[-1], y.shape[0]), len(x.shape) - 1
    is_last = (
        rows and len(y.shape) == 1 and x.name is not None
    )  # else keep the last axis, which is contiguous in memory
    axis = rows if is_last else 0

    def at(*indices: str) -> str:
        inner, remaining = indices[axis], [i for place, i in enumerate(indices) if place != axis]
        return f"{x.at(*remaining[:rows], inner)} * {y.at(inner, *remaining[rows:])}"

    shape = [*x.shape[:-1], *y.shape[1:]]
    shape.insert(axis, length)
    return [_reduction(ps.Add, Array(tuple(shape), at), [axis], node.outputs[0].type.dtype, source)]


def _reduction(kind: type, array: Array, axes: Sequence[int], dtype: str, source: Source) -> Array:
    """Write a reduction with few steps that depend on the previous one."""
    start, step = _REDUCTIONS[kind]
    start = f"{type_name(dtype)}({_ends(dtype).get(start, start)})"
    outer_axes = [axis for axis in range(len(array.shape)) if axis not in axes]
    output = source.empty([array.shape[axis] for axis in outer_axes], dtype) if outer_axes else None
    if output is not None and axes and outer_axes[-1] > axes[-1]:
        with source.loops(output.shape) as indices:
            source.line(f"{output.at(*indices)} = {start}")
        with source.loops([array.shape[axis] for axis in (*axes, *outer_axes)]) as indices:
            places = dict(zip([*axes, *outer_axes], indices, strict=True))
            total = output.at(*(places[axis] for axis in outer_axes))
            source.line(f"{total} = {step.format(total, _entry_at(array, places, source))}")
        return output
    with source.loops([array.shape[axis] for axis in outer_axes]) as outer:
        total = source.assign(start)
        with source.loops([array.shape[axis] for axis in axes[:-1]]) as inner:
            _along(
                array,
                axes[-1],
                dict(zip([*outer_axes, *axes[:-1]], [*outer, *inner], strict=True)),
                total,
                start,
                step,
                source,
            )
        if output is not None:
            source.line(f"{output.at(*outer)} = {total}")
    return number(total) if output is None else output


def _ends(dtype: str) -> dict[str, str]:
    """Return the smallest and largest integer of a type, to replace infinities."""
    if not dtype.startswith("int"):
        return {}
    ends = np.iinfo(dtype)
    return {"-inf": str(ends.min), "inf": str(ends.max)}


def _entry_at(array: Array, places: Mapping[int, str], source: Source) -> str:
    return source.assign(array.at(*(places[axis] for axis in sorted(places))))


def _along(
    array: Array, axis: int, places: Mapping[int, str], total: str, start: str, step: str, source: Source
) -> None:
    """Reduce the entries along one axis into a total, many entries by four partial results."""
    length = array.shape[axis]

    def add(part: str, index: str) -> None:
        source.line(f"{part} = {step.format(part, _entry_at(array, {**places, axis: index}, source))}")

    if length.isdecimal() and int(length) < _MANY:
        with source.loops([length]) as (index,):
            add(total, index)
        return
    parts, even_end, index = [source.assign(start) for _ in range(4)], source.assign(f"{length} // 4 * 4"), source.new()
    with source.block(f"for {index} in range(0, {even_end}, 4):"):
        for k, part in enumerate(parts):
            add(part, source.assign(f"{index} + {k}"))
    with source.block(f"for {index} in range({even_end}, {length}):"):
        add(total, index)
    for part in parts:
        source.line(f"{total} = {step.format(total, part)}")


@write.register(LogDensity)
def _log_density(op: object, node: object, inputs: Sequence[Array], source: Source) -> list[Array]:
    if UNREGISTERED:  # numba would call it as Python code, and nutpie's threads would wait for each other
        raise UNREGISTERED[0]
    return called(op, node, inputs, source)


@write.register(CheckAndRaise)
def _checked(op: Op, node: Apply, inputs: Sequence[Array], source: Source) -> list[Array]:
    array, *conditions = inputs
    error = source.name(op.exc_type, f"{op.exc_type.__module__}.{op.exc_type.__qualname__}")
    for condition in conditions:
        with source.block(f"if not {condition.at()}:"):
            source.line(f"raise {error}({op.msg!r})")
    return [array]


@write.register(ScalarFromTensor)
@write.register(TensorFromScalar)
def _unchanged(op: object, node: object, inputs: Sequence[Array], source: Source) -> list[Array]:
    return list(inputs)
