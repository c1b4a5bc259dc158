"""Single cells of a table: which say a number, which are missing, which are words; and whole columns of numbers."""

from __future__ import annotations

import numbers
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

import numpy as np

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "<na>"})
_PLAIN = re.compile(r"[0-9eE+.\-]*")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]*,([0-9]{1,2}|[0-9]{4,})")


@dataclass(frozen=True, eq=False)
class Numbers:
    """The cells of a column of a text file, all of them finite numbers with all their digits, or missing.

    They were converted as the file was read; what was written is read again when it is asked for.
    """

    values: np.ndarray
    """Of shape (n,), float64, NaN where a value is missing."""
    read_again: Callable[[], list[str]]

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def texts(self) -> list[str]:
        """The cells as they are written."""
        return self.read_again()

    def of_rows(self, rows: np.ndarray) -> Numbers:
        """Take the rows of an array of indices."""
        return Numbers(self.values[rows], lambda: [self.texts[row] for row in rows])


def number(text: str, decimal: str = ".") -> float | None:
    """Convert text to a number: NaN when it stands for a missing value, None when it is no number."""
    token = text.strip()
    if token.lower() in MISSING:
        return np.nan
    if decimal == ",":
        token = token.replace(".", "?").replace(",", ".")
    return float(token) if _NUMBER.fullmatch(token) else None


def number_of(cell: object, decimal: str) -> float | None:
    """Convert a Python object as `number` does text."""
    if cell is None:
        return np.nan
    if isinstance(cell, str):
        return number(cell, decimal)
    if isinstance(cell, bool | np.bool_) or not isinstance(cell, numbers.Real | Decimal):
        return None
    try:
        return float(cell)
    except OverflowError:
        return np.inf


def plain_numbers(texts: list[str]) -> np.ndarray | None:
    """Convert texts at once when they are all numbers; return None when one has to look at each."""
    # float takes "1_000" and "infinity"; but of these characters it makes nothing but the numbers meant.
    if not _PLAIN.fullmatch("".join(texts)):
        return None
    try:
        return np.fromiter(map(float, texts), np.float64, len(texts))
    except ValueError:
        return None


def is_lost(text: str) -> bool:
    """Say whether text that became 0 is another number, too small for float64."""
    return re.match("[^eE]*[1-9]", text) is not None


def is_hole(cell: object) -> bool:
    """Say whether a value is missing."""
    return cell is None or (isinstance(cell, str) and cell.strip().lower() in MISSING)


def is_word(cell: object, decimal: str) -> bool:
    """Say whether a cell is a label, or missing: a number with the other decimal mark is a misprint."""
    if not isinstance(cell, str):
        return cell is None or isinstance(cell, bool | np.bool_)
    is_of_other_mark = decimal == "." and has_decimal_comma(cell)
    return is_hole(cell) or (number(cell, decimal) is None and not is_of_other_mark)


def has_decimal_comma(cell: object) -> bool:
    """Say whether text is a number with a decimal comma."""
    return isinstance(cell, str) and _DECIMAL_COMMA.fullmatch(cell.strip()) is not None
