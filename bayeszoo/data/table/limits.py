"""Limits on the size of a table that is read at once, as a small file may unpack to more than fits in memory."""

from __future__ import annotations

import zlib
from pathlib import Path

from bayeszoo.errors import InputError
from bayeszoo.foundation.process.printable import escaped

MOST_COLUMNS = 100_000
MOST_ROWS = 50_000_000
MOST_CELLS = 200_000_000
"""Most cells of a table: 1.6 GB of numbers, or ten times as much text."""
LONGEST_LINE = 2**26
"""Most characters of a line."""
_SAMPLE, _UNPACKED_SAMPLE = 2**17, 2**22
"""Bytes from which the number of rows of a file is estimated, packed and unpacked."""
_SURE = 1.5
"""Factor above its limit from which an estimated size is refused."""
_GZIP = 31  # zlib's code for gzip


class TooLarge(InputError):
    """A table is too large to be read at once."""


def refuse_columns(name: str, columns: int) -> None:
    """Refuse a table with too many columns."""
    if columns > MOST_COLUMNS:
        hint = "are its lines and columns swapped, or is the delimiter another one?"
        raise TooLarge(f"{name} has {columns:,} columns, at most {MOST_COLUMNS:,} are read", "too_large", hint=hint)


def refuse_rows(name: str, rows: int, columns: int, about: str = "") -> None:
    """Refuse to read too many rows at once."""
    if rows > MOST_ROWS or rows * columns > MOST_CELLS:
        most = f"at most {MOST_ROWS:,} rows and {MOST_CELLS:,} cells are read at once"
        hint = "--chunk-rows 1000000 reads a file of any size in parts, for models that have statistics; or take a part"
        raise TooLarge(f"{name} has {about}{rows:,} rows of {columns:,} columns, {most}", "too_large", hint=hint)


def refuse_large_file(path: Path, is_packed: bool, columns: int) -> None:
    """Refuse a text file with far too many rows, estimated from its size and its first lines."""
    with path.open("rb") as file:
        packed = file.read(_SAMPLE)
    text, share = packed, len(packed)
    if is_packed:
        unpacking = zlib.decompressobj(_GZIP)
        text = unpacking.decompress(packed, _UNPACKED_SAMPLE)
        share = len(packed) - len(unpacking.unconsumed_tail)
    lines = text.count(b"\n")
    rows = int(path.stat().st_size / max(share, 1) * lines)
    if rows > _SURE * MOST_ROWS or rows * columns > _SURE * MOST_CELLS:
        refuse_rows(escaped(path.name), rows, columns, "about ")
