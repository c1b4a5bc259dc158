"""The text of a numba function: arrays with shapes, loops over them, and names.

PyTensor gives numba three functions for each operation, about 500 for a model, and numba takes 0.05 s for each,
however small. Loops in the text of one function take a hundredth of that.
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
"""NumPy's names in the text."""


@dataclass(frozen=True)
class Array:
    """An array in the text: expressions of its lengths, and of its entry at indices; without axes, a number.

    ``at`` may write lines that the entry needs. ``name`` is that of an array in memory, in C order.
    """

    shape: tuple[str, ...]
    at: Callable[..., str]
    name: str | None = None


class Source:
    """The text of a function, written line by line, with the objects that it names."""

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
        """Return a new name."""
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
        """Return the name of an object, the same for equal keys. Without a key the function is not cached on disk."""
        self._is_kept &= key is not None
        key = str(id(value)) if key is None else key
        if key not in self._keys:
            self._keys[key] = self.new()
            self._names[self._keys[key]] = value
        return self._keys[key]

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Write a head such as ``if x:`` and indent the lines of the block."""
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1

    @contextmanager
    def loops(self, shape: Sequence[str]) -> Iterator[list[str]]:
        """Write the lines of the block inside loops over all indices; yield the indices."""
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
        """Return the common length of two axes, and write a check: otherwise loops could read out of bounds."""
        length, other = (self._equal.get(n, n) for n in (length, other))
        if length == other:
            return length
        if length.isdecimal() and other.isdecimal():
            raise ValueError(f"axes of lengths {length} and {other} do not match")
        with self.block(f"if {length} != {other}:"):
            self.line("raise ValueError('lengths of axes differ')")
        common, replaced = (length, other) if length.isdecimal() else (other, length)
        self._equal |= {n: common for n, m in self._equal.items() if m == replaced} | {replaced: common}
        return common

    def empty(self, shape: Sequence[str], dtype: str) -> Array:
        """Write a new array, and return it."""
        name = self.new()
        self.line(f"{name} = empty(({', '.join([*shape, ''])}), {type_name(dtype)})")
        return in_memory(name, shape)

    def stored(self, array: Array, dtype: str) -> Array:
        """Return the array in memory, copied if necessary."""
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
        """Return the jitted function, from disk if it was compiled before."""
        text = "\n".join([f"def graph({', '.join(self._arguments)}):", *self._lines])
        is_kept = self._is_kept and pytensor.config.numba__cache
        cache_key = cache.key(text, *self._keys, str(pytensor.config.numba__fastmath)) if is_kept else None
        function = compile_numba_function_src(text, "graph", self._names, cache_key=cache_key)
        return numba_njit(function, final_function=True, cache=cache_key is not None, error_model="numpy")


def type_name(dtype: str) -> str:
    """Return NumPy's name of a type."""
    return "bool_" if dtype == "bool" else dtype


def in_memory(name: str, shape: Sequence[str]) -> Array:
    """Return the array in memory with this name."""
    if not shape:
        return Array((), lambda: f"{name}[()]", name)
    return Array(tuple(shape), lambda *indices: f"{name}[{', '.join(indices)}]", name)


def argument(name: str, shape: Sequence[int | None]) -> Array:
    """Return the array in memory with this name and a partly known shape."""
    return in_memory(name, [f"{name}.shape[{i}]" if n is None else str(n) for i, n in enumerate(shape)])


def constant(value: object, source: Source) -> Array:
    """Return a constant: a literal, or a global array of the function."""
    if not isinstance(value, np.ndarray | np.generic):
        return Array((), lambda: repr(value))
    if np.size(value) != 1:
        return in_memory(source.name(value, cache_key_for_constant(value)), tuple(map(str, value.shape)))
    number = np.ravel(value)[0].item()
    literal = f"({number!r})"
    return Array(("1",) * np.ndim(value), lambda *_: literal)
