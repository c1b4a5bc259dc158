"""Columns of text in arrays of pyarrow, converted to numbers.

Unambiguous text is converted at once; other cells are checked one by one, as by `cells.number`. If any cell is no
number, all stay text.
"""

from __future__ import annotations

from functools import cache, partial
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from bayeszoo.data.table.cells import EXACT, MISSING, Numbers, is_code, is_lost, is_rounded, number

if TYPE_CHECKING:
    import pyarrow as pa

_PLAIN = {mark: b"0123456789eE+-" + mark.encode() for mark in ".,"}
_TO_POINT = bytes.maketrans(b",", b".")

Converted = list[str] | np.ndarray
"""Text, or numbers with NaN where a value is missing."""


def with_text(strings: pa.ChunkedArray, decimal: str) -> list[str] | Numbers:
    """Convert like `converted`, and keep access to the text."""
    cells = converted(strings, decimal)
    return cells if isinstance(cells, list) else Numbers(cells, partial(texts_of, strings))


def converted(strings: pa.ChunkedArray, decimal: str) -> Converted:
    """Convert to numbers, NaN where missing; or to text if any cell is not a finite number without lost digits."""
    parts = list[np.ndarray]()
    for chunk in strings.chunks:
        numbers = _numbers(chunk, decimal)
        if numbers is None:
            return texts_of(strings)
        parts.append(numbers)
    return np.concatenate(parts)


def texts_of(strings: pa.ChunkedArray) -> list[str]:
    """Return the text of each cell, with one object for equal texts."""
    texts = list[str]()
    for chunk in strings.chunks:
        encoded = chunk.dictionary_encode()
        words = np.array(encoded.dictionary.to_pylist(), dtype=object)
        texts += words[encoded.indices.to_numpy()].tolist()
    return texts


def lengths(strings: pa.ChunkedArray) -> tuple[int, int]:
    """Return the lengths in bytes of the shortest and of the longest cell."""
    import pyarrow.compute as compute

    ends = compute.min_max(compute.binary_length(strings))
    return ends["min"].as_py(), ends["max"].as_py()


def _numbers(strings: pa.StringArray, decimal: str) -> np.ndarray | None:
    """Convert cells to finite numbers without lost digits, NaN where missing; None if that is impossible."""
    import pyarrow as pa

    numbers = _plain(strings, decimal)
    numbers = _trimmed(strings, decimal) if numbers is None else numbers
    if numbers is None or np.isinf(numbers).any():
        return None
    zeros, large = numbers == 0, np.abs(numbers) >= EXACT
    is_any_lost = zeros.any() and any(map(is_lost, strings.filter(pa.array(zeros)).unique().to_pylist()))
    texts = strings.filter(pa.array(large)).to_pylist() if large.any() else []
    is_any_rounded = any(map(is_rounded, texts, numbers[large].tolist()))
    return None if is_any_lost or is_any_rounded else numbers


def _plain(strings: pa.StringArray, decimal: str) -> np.ndarray | None:
    """Convert cells at once if they have only digits, signs, decimal marks and exponents.

    With these characters pyarrow gives the numbers meant; "0x1F", "nan" and the like have others.
    """
    import pyarrow as pa
    from pyarrow import compute

    ends = np.frombuffer(strings.buffers()[1], np.int32, len(strings) + 1, 4 * strings.offset)
    text = strings.buffers()[2][ends[0] : ends[-1]].to_pybytes() if ends[-1] else b""
    if text.translate(None, _PLAIN[decimal]) or _may_be_codes(text, ends - ends[0]):
        return None
    if decimal == ",":
        changed = pa.py_buffer(text.translate(_TO_POINT))
        strings = pa.StringArray.from_buffers(len(strings), pa.py_buffer(ends - ends[0]), changed)
    try:
        return np.array(compute.cast(strings, pa.float64()))
    except pa.ArrowInvalid:
        return None


def _may_be_codes(text: bytes, ends: np.ndarray) -> bool:
    """Say whether any cell of digits and marks has a leading zero before another digit."""
    characters = np.frombuffer(text + b"\0\0", np.uint8)
    first = characters[ends[:-1]]
    is_signed = (first == ord("+")) | (first == ord("-"))
    digits = ends[:-1] + is_signed  # places of the first digits
    rows = np.flatnonzero((characters[digits] == ord("0")) & (digits + 1 < ends[1:]))
    second = characters[digits[rows] + 1]
    return bool(np.any((ord("0") <= second) & (second <= ord("9"))))


def _trimmed(strings: pa.StringArray, decimal: str) -> np.ndarray | None:
    """Convert cells with missing values or surrounding spaces, if necessary one by one."""
    import pyarrow as pa
    from pyarrow import compute

    trimmed = compute.ascii_trim(strings, characters=" ")
    holes = np.array(compute.is_in(trimmed, value_set=pa.array(_missing())))
    present = trimmed.filter(pa.array(~holes))
    numbers = _plain(present, decimal)
    if numbers is None:
        numbers = _one_by_one(present, decimal)
    if numbers is None:
        return None
    values = np.full(len(strings), np.nan)
    values[~holes] = numbers
    return values


def _one_by_one(strings: pa.StringArray, decimal: str) -> np.ndarray | None:
    encoded = strings.dictionary_encode()
    numbers = list[float]()
    for word in encoded.dictionary.to_pylist():
        value = number(word, decimal)
        if value is None or is_code(word):
            return None
        numbers.append(value)
    return np.array(numbers)[encoded.indices.to_numpy()]


@cache
def _missing() -> list[str]:
    """Return all spellings of missing values, in small and capital letters."""
    return sorted({"".join(letters) for text in MISSING for letters in product(*({c, c.upper()} for c in text))})
