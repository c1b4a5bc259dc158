"""The text of a numba function: arrays with shapes, loops over them, and the names that the text uses.

PyTensor gives numba three functions an operation, some 500 a model, and numba takes a twentieth of a second for each
however little it does. Loops in the text of one function take it a hundredth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor
from pytensor.link.numba.cache import compile_numba_function_src
from pytensor.link.numba.dispatch.basic import cache_key_for_constant, numba_njit

from bayeszoo.compile import cache

_NUMPY = (
    *("empty", "full", "exp", "log", "log1p", "sqrt", "isnan", "isinf", "nan", "inf", "bool_", "float32", "float64"),
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
)
"""Names of NumPy's that the text may use."""


@dataclass(frozen=True)
class Array:
    """An array in the text: the expressions of its lengths, and of its entry at indices; of no axes, a number.

    ``at`` may write what the entry needs where the text stands. ``name`` is that of an array in memory, in C order.
    """

    shape: tuple[str, ...]
    at: Callable[..., str]
    name: str | None = None


class Source:
    """The text of a function, written line by line, with the objects that it names and what these compute."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._arguments = arguments
        self._lines: list[str] = []
        self._depth = self._count = 0
        self._names: dict[str, Any] = {name: getattr(np, name) for name in _NUMPY} | {"__name__": __name__}
        self._keys: dict[str, str] = {}
        self._equal: dict[str, str] = {}
        self._is_kept = True

    def line(self, text: str) -> None:
        """Write a line."""
        self._lines.append("    " * (self._depth + 1) + text)

    def new(self) -> str:
        """Return a name that was not used."""
        self._count += 1
        return f"v{self._count}"

    def assign(self, expression: str) -> str:
        """Name an expression, unless it is a name or a number."""
        if expression.isidentifier() or expression.isdecimal():
            return expression
        name = self.new()
        self.line(f"{name} = {expression}")
        return name

    def name(self, value: object, key: str | None) -> str:
        """Return the name of an object; of the same key the same. Without a key nothing is kept on the disk."""
        self._is_kept &= key is not None
        key = str(id(value)) if key is None else key
        if key not in self._keys:
            self._keys[key] = self.new()
            self._names[self._keys[key]] = value
        return self._keys[key]

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Indent the lines of the block behind a head such as ``if x:``."""
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1

    @contextmanager
    def loops(self, shape: Sequence[str]) -> Iterator[list[str]]:
        """Write the lines of the block inside a loop over all indices, which the block is given."""
        indices, depth = [], self._depth
        for length in shape:
            index = "0" if length == "1" else self.new()
            if length != "1":
                self.line(f"for {index} in range({length}):")
                self._depth += 1
            indices.append(index)
        yield indices
        self._depth = depth

    def equal(self, length: str, other: str) -> str:
        """Return the common length of two axes, and check it: loops would read out of bounds."""
        length, other = (self._equal.get(n, n) for n in (length, other))
        if length == other:
            return length
        if length.isdecimal() and other.isdecimal():
            raise ValueError(f"axes of lengths {length} and {other} do not go together")
        with self.block(f"if {length} != {other}:"):
            self.line("raise ValueError('lengths of axes differ')")
        kept, left = (length, other) if length.isdecimal() else (other, length)
        self._equal |= {n: kept for n, m in self._equal.items() if m == left} | {left: kept}
        return kept

    def empty(self, shape: Sequence[str], dtype: str) -> Array:
        """Make an array."""
        name = self.new()
        self.line(f"{name} = empty(({', '.join([*shape, ''])}), {type_name(dtype)})")
        return in_memory(name, shape)

    def stored(self, array: Array, dtype: str) -> Array:
        """Return an array in memory."""
        if array.name is not None:
            return array
        if not array.shape:
            name = self.new()
            self.line(f"{name} = full((), {array.at()}, {type_name(dtype)})")
            return Array((), array.at, name)
        copy = self.empty(array.shape, dtype)
        with self.loops(array.shape) as indices:
            self.line(f"{copy.at(*indices)} = {array.at(*indices)}")
        return copy

    def compiled(self) -> Callable[..., Any]:
        """Return the jitted function, from the disk where it was compiled before."""
        text = "\n".join([f"def graph({', '.join(self._arguments)}):", *self._lines])
        is_kept = self._is_kept and pytensor.config.numba__cache
        kept = cache.key(text, *self._keys, str(pytensor.config.numba__fastmath)) if is_kept else None
        function = compile_numba_function_src(text, "graph", self._names, cache_key=kept)
        return numba_njit(function, final_function=True, cache=kept is not None, error_model="numpy")


def type_name(dtype: str) -> str:
    """Return the name of NumPy's type."""
    return "bool_" if dtype == "bool" else dtype


def in_memory(name: str, shape: Sequence[str]) -> Array:
    """Return an array of a name."""
    if not shape:
        return Array((), lambda: f"{name}[()]", name)
    return Array(tuple(shape), lambda *indices: f"{name}[{', '.join(indices)}]", name)


def argument(name: str, shape: Sequence[int | None]) -> Array:
    """Return an array of a name, whose shape is known in part."""
    return in_memory(name, [f"{name}.shape[{i}]" if n is None else str(n) for i, n in enumerate(shape)])


def constant(value: object, source: Source) -> Array:
    """Return a constant: a literal, or an array that the function holds."""
    if not isinstance(value, np.ndarray | np.generic):
        return Array((), lambda: repr(value))
    if np.size(value) != 1:
        return in_memory(source.name(value, cache_key_for_constant(value)), tuple(map(str, value.shape)))
    number = np.ravel(value)[0].item()
    literal = f"({number!r})"
    return Array(("1",) * np.ndim(value), lambda *_: literal)
