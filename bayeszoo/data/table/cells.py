"""Single cells of a table, which are numbers, missing or words; and whole columns of numbers."""

from __future__ import annotations

import numbers
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

import numpy as np

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "<na>"})
_PLAIN = re.compile(r"[0-9eE+.\-]*")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_CODE = re.compile(r"[+-]?0[0-9]+")
_MAY_BE_CODE = re.compile(r"^\s*[+-]?0[0-9]", re.MULTILINE)
_WHOLE = re.compile(r"([+-]?[0-9]+)(?:[.,]0*)?")
_SIGNS = re.compile(r"[%\u2030$\u20ac\u00a3\u00a5,'\u2019\s]")
_MINUS = "\u2212"
ALONE = "write the number alone, without signs of percent, currency or thousands"
"""What to do about cells that are numbers but for such signs."""
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]*,([0-9]{1,2}|[0-9]{4,})")


@dataclass(frozen=True, eq=False)
class Numbers:
    """The cells of a column of a text file, all missing or finite numbers without lost digits.

    They were converted while reading the file; the original text is read again when needed.
    """

    values: np.ndarray
    """Numbers, shape (n,), float64, NaN where a value is missing."""
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
    """Convert text to a number: NaN for a missing value, None if it is no number."""
    token = text.strip()
    if token.lower() in MISSING:
        return np.nan
    if decimal == ",":
        token = token.replace(".", "?").replace(",", ".")
    return float(token) if _NUMBER.fullmatch(token) else None


def number_of(cell: object, decimal: str) -> float | None:
    """Convert a Python object to a number, like `number` for text."""
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


def plain_text(value: object, dates: tuple[type, ...]) -> str:
    """Return text as it is, dates without a time of day that is midnight, and other values as Python writes them."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, np.datetime64) and isinstance(plain, int):  # nanoseconds, which Python has no type for
        return str(value).removesuffix("T00:00:00.000000000")
    return str(plain).removesuffix(" 00:00:00") if isinstance(plain, (str, *dates)) else repr(plain)


def plain_numbers(texts: list[str]) -> np.ndarray | None:
    """Convert texts at once if they are all plain numbers; return None if each must be checked."""
    # float accepts "1_000" and "infinity"; with these characters alone it gives only the numbers meant
    if not _PLAIN.fullmatch("".join(texts)):
        return None
    try:
        return np.fromiter(map(float, texts), np.float64, len(texts))
    except ValueError:
        return None


def numbers_in(texts: list[str], decimal: str) -> tuple[np.ndarray, list[int]]:
    """Return texts as float64, NaN where missing, and the indices of texts that are not numbers."""
    is_plain = decimal == "."
    if is_plain and len(set(texts[:1000])) > 500 and (at_once := plain_numbers(texts)) is not None:
        return at_once, []  # few texts repeat
    distinct = list(dict.fromkeys(texts))  # in order, for fast memory access
    plain = plain_numbers(distinct) if is_plain else None
    by_text = dict(zip(distinct, (number(t, decimal) for t in distinct) if plain is None else plain, strict=True))
    if None in by_text.values():
        return np.empty(0), [row for row, text in enumerate(texts) if by_text[text] is None]
    return np.fromiter(map(by_text.__getitem__, texts), np.float64, len(texts)), []


def is_lost(text: str) -> bool:
    """Say whether text that became 0 is a number too small for float64."""
    return re.match("[^eE]*[1-9]", text) is not None


EXACT = 2.0**53
"""The smallest number from which float64 misses whole numbers."""


def is_rounded(cell: object, value: float) -> bool:
    """Say whether a whole number changed as float64; decimals and numbers with an exponent may be rounded.

    Examples
    --------
    >>> is_rounded("9007199254740993", 9007199254740992.0), is_rounded("9007199254740994", 9007199254740994.0)
    (True, False)
    """
    if isinstance(cell, str):
        digits = _WHOLE.fullmatch(cell.strip())
        return digits is not None and Decimal(digits[1]) != Decimal(value)
    if isinstance(cell, float) or not isinstance(cell, numbers.Rational | Decimal | np.number):
        return False
    whole = int(cell)  # type: ignore[arg-type]  # all these types have it
    return bool(cell == whole and whole != int(value))


def is_code(cell: object) -> bool:
    """Say whether text is a whole number with leading zeros, such as a post code or identifier."""
    return isinstance(cell, str) and _CODE.fullmatch(cell.strip()) is not None


def rounded(values: list[str] | np.ndarray, converted: np.ndarray) -> np.ndarray:
    """Return the indices of whole numbers that changed as float64."""
    rows = np.flatnonzero((np.abs(converted) >= EXACT) & np.isfinite(converted))
    if not len(rows) or (isinstance(values, np.ndarray) and values.dtype == np.float64):
        return rows[:0]
    return np.array([row for row in rows.tolist() if is_rounded(values[row], converted[row])], dtype=np.int64)


def has_code(cells: Collection[object]) -> bool:
    """Say whether any cell is a code."""
    texts = [cell for cell in cells if isinstance(cell, str)]
    return _MAY_BE_CODE.search("\n".join(texts)) is not None and any(map(is_code, texts))


def are_codes(cells: Collection[str]) -> bool:
    """Say whether all cells are digits or missing, and some have leading zeros."""
    return has_code(cells) and all(is_hole(cell) or (cell.isascii() and cell.strip().isdigit()) for cell in cells)


def is_hole(cell: object) -> bool:
    """Say whether a value is missing."""
    return cell is None or (isinstance(cell, str) and cell.strip().lower() in MISSING)


def is_word(cell: object, decimal: str) -> bool:
    """Say whether a cell is a label or missing; a number with the other decimal mark is neither."""
    if not isinstance(cell, str):
        return cell is None or isinstance(cell, bool | np.bool_)
    is_of_other_mark = decimal == "." and has_decimal_comma(cell)
    return is_hole(cell) or (number(cell, decimal) is None and not is_of_other_mark)


def has_signs(cell: object) -> bool:
    """Say whether text is a number but for signs of percent, currency or thousands."""
    return isinstance(cell, str) and _NUMBER.fullmatch(_SIGNS.sub("", cell)) is not None


def has_decimal_comma(cell: object) -> bool:
    """Say whether text is a number with a decimal comma."""
    return isinstance(cell, str) and _DECIMAL_COMMA.fullmatch(cell.strip()) is not None


def hint_for(cell: object, decimal: str) -> str | None:
    """Return what to do about a cell that is no number; None where nothing is known."""
    if decimal == "." and has_decimal_comma(cell):
        return "use --decimal ','"
    if isinstance(cell, str) and _MINUS in cell and number(cell.replace(_MINUS, "-"), decimal) is not None:
        return "write minus as '-'"
    return ALONE if has_signs(cell) else None
