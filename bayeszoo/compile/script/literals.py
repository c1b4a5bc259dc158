"""Numbers and arrays as Python code with all digits."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Collection, Iterable
from itertools import count
from typing import Any

import numpy as np

WIDTH = 110
FEW = 8
"""Largest size of vectors that are written where they are used."""
RESERVED = ("np", "pm", "pt", "az", "model", "coords", "value", "inputs", "self", "Transform", "tree")


class Names:
    """Names in use in a block of a script, and the arrays at the beginning of the script."""

    def __init__(self) -> None:
        self.arrays = dict[str, np.ndarray]()
        self._here, self._anywhere = {*RESERVED}, {*RESERVED}

    def inner(self) -> Names:
        """Return the names for a function body, which other functions may use too."""
        names = Names()
        names.arrays, names._here, names._anywhere = self.arrays, {*self._here}, self._anywhere
        return names

    def new(self, wish: str) -> str:
        """Return a valid new name for this block, similar to ``wish``."""
        name = _free(wish, self._here | {*self.arrays})
        self._here.add(name)
        self._anywhere.add(name)
        return name

    def of_array(self, array: np.ndarray, wish: str) -> str:
        """Return the name of an array at the beginning of the script; equal arrays share a name."""
        for name, stored in self.arrays.items():
            if stored.dtype == array.dtype and np.array_equal(stored, array, equal_nan=array.dtype.kind == "f"):
                return name
        name = _free(f"{wish}_values", self._anywhere)
        self._anywhere.add(name)
        self.arrays[name] = array
        return name


def _free(wish: str, taken: Collection[str]) -> str:
    base = re.sub(r"\W|^(?=\d)", "_", wish, flags=re.ASCII) or "_"
    return next(name for i in count(1) if (name := base if i == 1 else f"{base}_{i}") not in taken)


def quoted(text: str) -> str:
    """Return a string in double quotes."""
    return json.dumps(text, ensure_ascii=False)


def tuple_of(entries: Iterable[str]) -> str:
    """Return the code of a tuple."""
    entries = list(entries)
    return f"({', '.join(entries)}{',' * (len(entries) == 1)})"


def literal(value: Any, names: Names, wish: str | None = None) -> str:
    """Return a number, a few numbers, or the name of an array; floats as NumPy's, because PyTensor rounds Python's."""
    if value is None or isinstance(value, str):
        return quoted(value) if value else "None"
    array = np.asarray(value)
    if array.ndim == 0:
        return _scalar(array.dtype, array.item())
    if array.ndim == 1 and array.size <= FEW:
        return text_of_array(array)
    if array.dtype == np.float64 and array.size and (array == array.flat[0]).all():
        return f"np.full({array.shape}, {_float(array.flat[0])})"
    return names.of_array(array, wish or "array")


def _scalar(dtype: np.dtype, number: Any) -> str:
    if dtype.kind == "f":
        return f"np.{dtype.name}({_float(number)})"
    return f"np.{number}_" if dtype.kind == "b" else repr(number)


def _float(number: float) -> str:
    """Return a float with the fewest digits that identify it."""
    return (
        repr(float(number))
        if np.isfinite(number)
        else repr(float(number)).replace("inf", "np.inf").replace("nan", "np.nan")
    )


def text_of_array(array: np.ndarray) -> str:
    """Return the code of an array, in lines of limited length."""
    if not array.size:
        return f"np.zeros({array.shape}, dtype={quoted(array.dtype.name)})"
    write = _float if array.dtype.kind == "f" else quoted if array.dtype.kind == "U" else repr
    flat = ", ".join(map(write, array.ravel().tolist()))
    kind = (
        ""
        if array.dtype in (np.float64, np.int64) or array.dtype.kind in "bU"
        else f", dtype={quoted(array.dtype.name)}"
    )
    shape = f".reshape({array.shape})" if array.ndim > 1 else ""
    text = f"np.array([{flat}]{kind}){shape}"
    if len(text) <= WIDTH:
        return text
    body = textwrap.indent(textwrap.fill(flat, WIDTH - 8, break_long_words=False, break_on_hyphens=False), " " * 8)
    return f"np.array(\n    [\n{body}\n    ]{kind}\n){shape}"
