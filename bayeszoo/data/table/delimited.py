"""Delimited text files, read strictly: a row that does not fit its header is refused, never shifted or padded."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Generator, Iterator, Sequence
from itertools import batched, chain, count, islice, repeat
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

import numpy as np

from bayeszoo.data.table.cells import Numbers, is_hole
from bayeszoo.data.table.limits import LONGEST_LINE, TooLarge, refuse_columns, refuse_large_file, refuse_rows
from bayeszoo.data.table.table import Column, Table, escaped, refuse_duplicates, shown
from bayeszoo.data.table.vectorized import UTF8, Misfit, TextFile, is_worth
from bayeszoo.errors import InputError

PACKED = ".gz"
_OTHERWISE_PACKED = frozenset({".zip", ".bz2", ".xz", ".zst", ".7z"})
_MOST_UNPACKED = 200
"""Largest unpacked size of an archive over 50 MB, as a multiple of its size: tables have about 20, bombs 1000."""
_ALWAYS_UNPACKED = 50_000_000
_ROWS_AT_A_TIME = 20_000
_DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": ","}


def delimited_parts(
    path: Path, delimiter: str | None, decimal: str, encoding: str, header: bool, rows: int | None
) -> Generator[Table]:
    """Read a text file as tables of ``rows`` rows, the last perhaps shorter; None for all rows at once.

    Everything that is refused in a whole file is refused here. Names that occur again below the header may be found
    only after earlier parts were yielded.
    """
    plain = path.with_suffix("") if path.suffix.lower() == PACKED else path
    name, source, values = escaped(path.name), escaped(plain.name), set[int]()
    mark = _delimiter_of(name, plain.suffix.lower(), delimiter)
    try:
        with _opened(path, encoding) as file:
            reader = csv.reader(_without_nul(name, file), delimiter=mark, strict=True)
            body = _rows(name, reader, header)
            first = _first(name, body, mark if delimiter is None else None)
            names = _names(first, header)
            refuse_columns(name, len(names))
            if rows is None:
                refuse_large_file(path, path.suffix.lower() == PACKED, len(names))
            parts = _parts(name, names, chain(first[header:], body), header, rows)
            if names and is_worth(path, mark, rows):
                fast = TextFile(path, _bytes_of, encoding, mark, decimal, names if header else None, len(names))
                parts = _at_once(fast, names, rows, parts)
            for part in parts:
                if header:
                    _refuse_values_as_names(name, part, values)
                    _refuse_bad_names(name, part)
                if part.is_whole and not (part.columns and part.columns[0]):
                    raise InputError(f"no data rows in {name}", "no_data")
                before = None if part.is_whole else part.before
                cells = zip(part.names, part.columns, strict=True)
                yield Table(source, {label: Column(label, column, decimal, before) for label, column in cells})
    except UnicodeError:
        raise _not_decoded(path, encoding) from None
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            f"cannot read {name}: {getattr(error, 'strerror', None) or error}", "unreadable_file"
        ) from None


def _delimiter_of(name: str, suffix: str, delimiter: str | None) -> str:
    """Return the requested delimiter, or that of the file's suffix."""
    if suffix in _OTHERWISE_PACKED:
        raise InputError(
            f"{name}: compressed files are not read, but for gzip", "unreadable_file", hint="unpack it first"
        )
    if delimiter is None and suffix not in _DELIMITERS:
        hint = "use a .csv, .tsv, .txt or .parquet file, or give --delimiter"
        raise InputError(f"cannot tell the format of {name}", "unreadable_file", hint=hint)
    delimiter = {None: _DELIMITERS.get(suffix), r"\t": "\t"}.get(delimiter, delimiter)
    if delimiter is None or len(delimiter) != 1 or delimiter in '"\r\n\0':
        raise InputError(f"the delimiter must be one character, got {shown(delimiter)}", "wrong_type")
    return delimiter


class _Part(NamedTuple):
    """A part of a file: names and cells of columns, the number of rows before it, and whether it is the last."""

    names: list[str]
    columns: list[list[str] | Numbers]
    before: int
    last: bool

    @property
    def is_whole(self) -> bool:
        return self.last and not self.before


class _Unpacked(gzip.GzipFile):
    """The bytes of an archive, refused if they are far more than its size."""

    def read1(self, size: int = -1) -> bytes:
        """Read bytes, as a text file does."""
        path = Path(self.name)
        if self.tell() > max(_ALWAYS_UNPACKED, _MOST_UNPACKED * path.stat().st_size):
            problem = f"{escaped(path.name)} unpacks to more than {_MOST_UNPACKED} times its size"
            raise InputError(problem, "bad_file", hint="unpack it first, if that is right")
        return super().read1(size)


def _bytes_of(path: Path) -> BinaryIO:
    return cast(BinaryIO, _Unpacked(path) if path.suffix.lower() == PACKED else path.open("rb"))


def _opened(path: Path, encoding: str) -> io.TextIOWrapper:
    # newline="" leaves line ends inside quotes as they are; "utf-8-sig" accepts a byte order mark.
    encoding, file = "utf-8-sig" if encoding.lower() in UTF8 else encoding, _bytes_of(path)
    try:
        return io.TextIOWrapper(file, encoding=encoding, newline="")
    except LookupError:
        file.close()
        raise InputError(f"unknown encoding {shown(encoding)}", "unknown_encoding") from None


def _without_nul(name: str, file: io.TextIOWrapper) -> Iterator[str]:
    for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE), ""), 1):
        if len(line) >= LONGEST_LINE:
            raise TooLarge(
                f"{name}: line {number} has {LONGEST_LINE:,} characters or more", "too_large", hint="is it a table?"
            )
        if "\0" in line:
            hint = "is the file UTF-16? use --encoding utf-16"
            raise InputError(f"{name}: line {number} contains a NUL byte", "unreadable_file", hint=hint)
        yield line


def _first(name: str, body: Iterator[list[str]], guessed: str | None) -> list[list[str]]:
    """Return the first two rows; refuse an empty first line and another delimiter."""
    first = list(islice(body, 2))
    if first and not first[0]:
        raise InputError(f"{name}: line 1 is empty", "unreadable_file", hint="names or values must start there")
    if guessed is not None:
        _refuse_other_delimiter(first, guessed)
    return first


def _names(first: list[list[str]], header: bool) -> list[str]:
    width = len(first[0]) if first else 0
    return first[0] if header and first else ["y"] if width == 1 else [str(i + 1) for i in range(width)]


def _at_once(file: TextFile, names: list[str], rows: int | None, slow: Iterator[_Part]) -> Iterator[_Part]:
    """Read parts in blocks; if something does not fit, read the remaining parts row by row."""
    done = 0
    try:
        for columns, is_last in file.parts(rows):
            yield _Part(names, columns, done * (rows or 0), is_last)
            done += 1
    except TooLarge:
        raise
    except (
        Misfit,
        UnicodeError,
        OSError,
        EOFError,
        zlib.error,
        InputError,
    ):  # reading row by row raises it again, or not
        yield from islice(slow, done, None)


def _parts(name: str, names: list[str], body: Iterator[list[str]], header: bool, rows: int | None) -> Iterator[_Part]:
    """Yield parts of exactly ``rows`` rows, each once it is known whether more follow."""
    columns: list[list[str]] = [[] for _ in names]
    before, like = 0, "the header" if header else "row 1"
    for batch in batched(body, rows or _ROWS_AT_A_TIME):
        if rows is not None and columns[0]:
            yield _Part(names, [*columns], before, last=False)
            columns, before = [[] for _ in names], before + rows
        _append(name, names, columns, batch, before, like)
        if columns:
            refuse_rows(name, len(columns[0]), len(columns), "more than ")
    yield _Part(names, [*columns], before, last=True)


def _rows(name: str, reader: Iterator[list[str]], header: bool) -> Iterator[list[str]]:
    """Yield rows, and convert the errors of `csv`; blank lines at the end of a file are ignored."""
    blank = 0
    for row in count(1 - header):
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise _malformed(name, f"row {row}" if row else "the header", row, str(error)) from None
        if cells:
            yield from repeat([], blank)
            yield cells
        blank = 0 if cells else blank + 1


def _malformed(name: str, where: str, row: int, error: str) -> InputError:
    problem = f"{name}: {where} cannot be read ({error})"
    if "unexpected end of data" in error:
        problem = f"{name}: quote opened in {where} is never closed"
    elif "field larger" in error:
        problem = f"{name}: {where} has a cell of more than {csv.field_size_limit()} characters: a quote left open?"
    elif "expected after" in error:
        problem = f"{name}: {where} has text after a closing quote"
    return InputError(problem, "bad_file", rows=[row] if row else ())


def _append(
    name: str, names: list[str], columns: list[list[str]], rows: Sequence[list[str]], before: int, like: str
) -> None:
    """Add rows to the columns; refuse the first row of another width."""
    width = len(names)
    if width == 1:
        rows = [row or [""] for row in rows]  # an empty line of a single column is an empty cell
    if set(map(len, rows)) != {width}:
        place, cells = next((i, len(row)) for i, row in enumerate(rows) if len(row) != width)
        row = before + len(columns[0]) + place + 1
        has = f"has {cells} field{'s' if cells > 1 else ''}" if cells else "is empty"
        comment = "remove the comment" if names[0].startswith("#") else None
        hint = comment or (None if cells else "remove the line")
        raise InputError(f"{name}: row {row} {has}, {like} has {width}", "ragged", rows=[row], hint=hint)
    for column, cell in zip(columns, zip(*rows, strict=True), strict=True):
        column.extend(cell)


def _refuse_other_delimiter(rows: list[list[str]], delimiter: str) -> None:
    if len(rows) < 2 or len(rows[0]) != 1:
        return
    head, body = rows[0][0], delimiter.join(rows[1])
    for other in ";\t|,":
        if other != delimiter and 0 < head.count(other) == body.count(other):
            mark = "\\t" if other == "\t" else other
            cells = [cell for cell in body.split(other) if "," in cell]
            comma = other != "," and any(cell.replace(",", "", 1).isdigit() for cell in cells)
            raise InputError(
                f"looks like '{mark}' separated: use --delimiter '{mark}'" + " --decimal ','" * comma, "wrong_delimiter"
            )


def _refuse_values_as_names(name: str, part: _Part, values: set[int]) -> None:
    """Refuse the file if all its names look like values: numbers, or words that occur again below."""
    values |= {
        i
        for i, (label, cells) in enumerate(zip(part.names, part.columns, strict=True))
        if i not in values and (not label or _is_number(label) or _is_among(label, cells))
    }
    if any(part.names) and len(values) == len(part.names):
        row = ",".join(map(shown, part.names))
        hint = "use --no-header, or give the columns other names"
        raise InputError(f"{name}: row 1 looks like data ({row})", "looks_like_data", rows=[1], hint=hint)


def _refuse_bad_names(name: str, part: _Part) -> None:
    for position, (label, cells) in enumerate(zip(part.names, part.columns, strict=True), 1):
        if not label and cells:
            empty = part.is_whole and _are_empty(cells)
            problem = f"{name}: column {position} has no name" + " and no values" * empty
            raise InputError(problem, "nameless_column", hint=_on_nameless(part.names, empty))
    refuse_duplicates(part.names)


def _on_nameless(names: Sequence[str], empty: bool) -> str:
    """Return what to do about a column without a name."""
    if names[0].startswith("sep="):
        return "remove the first line, which only spreadsheets read"
    return "remove the column, or the delimiter at the end of each row" if empty else "name it in the first row"


def _is_among(label: str, cells: list[str] | Numbers) -> bool:
    """Say whether a label, which is no number, is one of the cells."""
    if isinstance(cells, list):
        return label in cells
    return is_hole(label) and bool(np.isnan(cells.values).any()) and label in cells.texts


def _are_empty(cells: list[str] | Numbers) -> bool:
    if isinstance(cells, list):
        return not any(cells)
    return bool(np.isnan(cells.values).all()) and not any(cells.texts)


def _is_number(text: str) -> bool:
    try:
        return float(text.replace(",", ".")) == float(text.replace(",", "."))
    except ValueError:
        return False


def _not_decoded(path: Path, encoding: str) -> InputError:
    name = escaped(path.name)
    if encoding.lower() not in UTF8:
        return InputError(f"{name} is not {escaped(encoding)}", "unreadable_file", hint="use --encoding")
    with _bytes_of(path) as file:
        other = "utf-16" if file.read(2) in (b"\xff\xfe", b"\xfe\xff") else "latin-1"
    return InputError(f"{name} is not UTF-8", "unreadable_file", hint=f"use --encoding {other}")
