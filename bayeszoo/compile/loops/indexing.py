"""Operations that index or rearrange entries: most copy nothing, and entries are read where they are used."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from pytensor.graph import Apply, Constant, Op, Variable
from pytensor.tensor.basic import Alloc, Join, MakeVector, Split
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.shape import Reshape, Shape_i, SpecifyShape
from pytensor.tensor.subtensor import (
    AdvancedIncSubtensor,
    AdvancedSubtensor,
    IncSubtensor,
    Subtensor,
    indices_from_subtensor,
)

from bayeszoo.compile.loops.operations import called, entry, number, write
from bayeszoo.compile.loops.source import Array, Source


@write.register(DimShuffle)
def _dim_shuffle(op: Op, node: Apply, inputs: Sequence[Array], source: Source) -> list[Array]:
    (array,) = inputs
    dropped = [axis for axis in range(len(array.shape)) if axis not in op.new_order]
    for axis in dropped:
        source.equal(array.shape[axis], "1")

    def at(*indices: str) -> str:
        places = dict.fromkeys(dropped, "0") | dict(zip(op.new_order, indices, strict=True))
        return array.at(*(places[axis] for axis in range(len(array.shape))))

    shape, order = tuple("1" if axis == "x" else array.shape[axis] for axis in op.new_order), list(op.shuffle)
    is_same = shape == array.shape and order == sorted(order)  # a square matrix has the shape of its transpose
    return [array if is_same else Array(shape, at)]


@write.register(Subtensor)
@write.register(AdvancedSubtensor)
def _subtensor(op: Op, node: Apply, inputs: Sequence[Array], source: Source) -> list[Array]:
    view = _view(inputs[0], indices_from_subtensor(node.inputs[1:], op.idx_list), inputs[-1], source)
    return called(op, node, inputs, source, 1) if view is None else [view]


@write.register(IncSubtensor)
@write.register(AdvancedIncSubtensor)
def _changed(op: Op, node: Apply, inputs: Sequence[Array], source: Source) -> list[Array]:
    dtype = node.outputs[0].type.dtype
    output = source.empty(inputs[0].shape, dtype)
    view = _view(output, indices_from_subtensor(node.inputs[2:], op.idx_list), inputs[-1], source)
    if view is None or getattr(op, "ignore_duplicates", False):
        return called(op, node, inputs, source, 2)
    with source.loops(output.shape) as indices:
        source.line(f"{output.at(*indices)} = {inputs[0].at(*indices)}")
    sign, values = "=" if op.set_instead_of_inc else "+=", _broadcast(inputs[1], view.shape, source)
    with source.loops(view.shape) as indices:
        source.line(f"{view.at(*indices)} {sign} {values.at(*indices)}")
    return [output]


def _view(array: Array, indices: Sequence[object], last: Array, source: Source) -> Array | None:
    """Return a view by constant indices, or by codes along one axis; None for other indices."""
    if isinstance(indices[-1], Variable) and indices[-1].type.ndim:
        return _entries_at(array, indices, last, source)
    places = [_place(index, length) for index, length in zip(indices, array.shape, strict=False)]
    places += [(0, 1, length) for length in array.shape[len(places) :]]
    constant_places = [place for place in places if place is not None]
    if len(constant_places) < len(places):
        return None

    def at(*indices: str) -> str:
        remaining = iter(indices)
        return array.at(
            *(
                str(position) if isinstance(position, int) else _moved(next(remaining), *position[:2])
                for position in constant_places
            )
        )

    return Array(tuple(position[2] for position in constant_places if not isinstance(position, int)), at)


def _place(index: Any, length: str) -> int | tuple[int, int, str] | None:
    """Return an index, or start, step and length of a slice; None if not constant."""
    if index == slice(None):
        return 0, 1, length
    parts = [index.start, index.stop, index.step] if isinstance(index, slice) else [index]
    if not length.isdecimal() or not all(part is None or isinstance(part, Constant) for part in parts):
        return None
    numbers = [None if part is None or part.data is None else int(part.data) for part in parts]
    if not isinstance(index, slice):
        return range(int(length))[int(parts[0].data)]
    span = range(*slice(*numbers).indices(int(length)))
    return span.start, span.step, str(len(span))


def _moved(index: str, start: int, step: int) -> str:
    if index.isdecimal():
        return str(start + step * int(index))
    return _sum(str(start), index if step == 1 else f"{step} * {_factor(index)}")


def _entries_at(array: Array, indices: Sequence[Any], codes: Array, source: Source) -> Array | None:
    """Return the view of entries at codes along one axis."""
    axis, end = len(indices) - 1, len(indices) - 1 + len(codes.shape)
    if any(index != slice(None) for index in indices[:-1]) or indices[-1].type.dtype == "bool":
        return None
    places = _places(codes, array.shape[axis], source)

    def at(*indices: str) -> str:
        return array.at(*indices[:axis], entry(places, indices[axis:end]), *indices[end:])

    return Array((*array.shape[:axis], *codes.shape, *array.shape[axis + 1 :]), at)


def _places(codes: Array, length: str, source: Source) -> Array:
    """Write codes that count from the start of an axis, and check that they are within bounds."""
    places = source.empty(codes.shape, "int64")
    with source.loops(codes.shape) as indices:
        code = source.assign(f"int64({codes.at(*indices)})")
        with source.block(f"if not -{length} <= {code} < {length}:"):
            source.line("raise IndexError('index out of bounds')")
        source.line(f"{places.at(*indices)} = {code} if {code} >= 0 else {code} + {length}")
    return places


@write.register(Alloc)
def _alloc(op: Op, node: Apply, inputs: Sequence[Array], source: Source) -> list[Array]:
    value, *lengths = inputs
    shape = [
        str(n) if n is not None else source.assign(length.at())
        for n, length in zip(node.outputs[0].type.shape, lengths, strict=True)
    ]
    return [_broadcast(value, shape, source)]


def _broadcast(array: Array, shape: Sequence[str], source: Source) -> Array:
    before = len(shape) - len(array.shape)
    for n, m in zip(shape[before:], array.shape, strict=True):
        if m != "1":
            source.equal(n, m)
    return Array(tuple(shape), lambda *indices: entry(array, indices[before:]))


@write.register(MakeVector)
def _make_vector(op: Op, node: Apply, inputs: Sequence[Array], source: Source) -> list[Array]:
    vector = source.empty([str(len(inputs))], node.outputs[0].type.dtype)
    for i, term in enumerate(inputs):
        source.line(f"{vector.at(str(i))} = {term.at()}")
    return [vector]


@write.register(Join)
def _join(op: Op, node: Apply, inputs: Sequence[Array], source: Source) -> list[Array]:
    axis = op.axis % node.outputs[0].type.ndim
    shape = list(inputs[0].shape)
    for array in inputs[1:]:
        shape = [
            n if i == axis else source.equal(n, m) for i, (n, m) in enumerate(zip(shape, array.shape, strict=True))
        ]
    starts = _starts([array.shape[axis] for array in inputs], source)
    shape[axis] = starts.pop()
    joined = source.empty(shape, node.outputs[0].type.dtype)
    for array, start in zip(inputs, starts, strict=True):
        with source.loops([*shape[:axis], array.shape[axis], *shape[axis + 1 :]]) as indices:
            moved = [*indices[:axis], _sum(start, indices[axis]), *indices[axis + 1 :]]
            source.line(f"{joined.at(*moved)} = {array.at(*indices)}")
    return [joined]


def _starts(lengths: Sequence[str], source: Source) -> list[str]:
    """Return the offsets of parts with these lengths, followed by the end of the last part."""
    starts = ["0"]
    for length in lengths:
        starts.append(source.assign(_sum(starts[-1], length)))
    return starts


def _sum(x: str, y: str) -> str:
    if x.isdecimal() and y.isdecimal():
        return str(int(x) + int(y))
    return " + ".join(term for term in (x, y) if term != "0") or "0"


@write.register(Split)
def _split(op: Op, node: Apply, inputs: Sequence[Array], source: Source) -> list[Array]:
    array, axis, sizes = inputs[0], op.axis % len(inputs[0].shape), node.inputs[1]
    if not isinstance(sizes, Constant):
        return called(op, node, inputs, source)
    lengths = [str(n) for n in sizes.data]
    starts = _starts(lengths, source)
    source.equal(array.shape[axis], starts[-1])

    def part(start: str, length: str) -> Array:
        shape = (*array.shape[:axis], length, *array.shape[axis + 1 :])
        return Array(shape, lambda *i: array.at(*i[:axis], _sum(start, i[axis]), *i[axis + 1 :]))

    return [part(start, length) for start, length in zip(starts[:-1], lengths, strict=True)]


@write.register(Reshape)
def _reshape(op: Op, node: Apply, inputs: Sequence[Array], source: Source) -> list[Array]:
    lengths = node.inputs[1].data if isinstance(node.inputs[1], Constant) else node.outputs[0].type.shape
    if None in lengths:
        return called(op, node, inputs, source)
    flat = _flat(inputs[0], node.outputs[0].type.dtype, source)
    shape = ["" if n < 0 else str(n) for n in lengths]
    if "" in shape:
        shape[shape.index("")] = source.assign(_quotient(flat.shape[0], _product([n for n in shape if n])))
    source.equal(flat.shape[0], _product(shape))
    if len(shape) == 1:
        return [flat]
    strides = [_product(shape[i + 1 :]) for i in range(len(shape))]

    def at(*indices: str) -> str:
        terms = [i if n == "1" else _product([i, n]) for i, n in zip(indices, strides, strict=True)]
        return flat.at(functools.reduce(_sum, terms, "0"))

    return [Array(tuple(shape), at)]


def _flat(array: Array, dtype: str, source: Source) -> Array:
    """Return the entries as a vector in C order."""
    if len(array.shape) == 1:
        return array
    flat, place = source.empty([source.assign(_product(array.shape))], dtype), source.new()
    source.line(f"{place} = 0")
    with source.loops(array.shape) as indices:
        source.line(f"{flat.at(place)} = {array.at(*indices)}")
        source.line(f"{place} += 1")
    return flat


def _product(lengths: Sequence[str]) -> str:
    constants = math.prod(int(n) for n in lengths if n.isdecimal())
    factors = [_factor(n) for n in lengths if not n.isdecimal()]
    return " * ".join([*([str(constants)] if constants != 1 or not factors else []), *factors]) if constants else "0"


def _factor(expression: str) -> str:
    """Return an expression as a factor, in parentheses unless a name or number."""
    return expression if expression.isidentifier() or expression.isdecimal() else f"({expression})"


def _quotient(size: str, divisor: str) -> str:
    if size.isdecimal() and divisor.isdecimal():
        return str(int(size) // int(divisor)) if int(divisor) else "0"
    return f"({size}) // ({divisor})"


def _specified(array: Array, shape: Sequence[int | None], source: Source) -> Array:
    """Return an array with a partly known shape, and write checks of it."""
    lengths = [n if m is None else source.equal(n, str(m)) for n, m in zip(array.shape, shape, strict=True)]
    return Array(tuple(lengths), array.at, array.name)


@write.register(SpecifyShape)
def _specify_shape(op: Op, node: Apply, inputs: Sequence[Array], source: Source) -> list[Array]:
    array = inputs[0]
    if not all(isinstance(v, Constant) for v in node.inputs[1:]):
        return called(op, node, inputs, source)
    return [_specified(array, [v.data for v in node.inputs[1:]], source)]


@write.register(Shape_i)
def _length(op: Op, node: Apply, inputs: Sequence[Array], source: Source) -> list[Array]:
    return [number(inputs[0].shape[op.i])]
