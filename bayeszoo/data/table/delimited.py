"""Delimited text files, read strictly: a row that does not fit its header is refused, never shifted or padded."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TextIO

from bayeszoo.data.table.table import Column, Table, escaped, refuse_duplicates, shown
from bayeszoo.errors import InputError

_ROWS_AT_A_TIME = 20_000
_DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": ","}
_COMPRESSED = frozenset({".gz", ".bz2", ".xz", ".zip", ".zst", ".lz4", ".7z"})
_UTF8 = frozenset({"utf-8", "utf8", "utf_8"})


def regular(path: Path) -> Path:
    """Refuse what is not a regular, uncompressed file."""
    if not os.path.isfile(path):  # a folder, a pipe (which would block), a URL, or nothing
        raise InputError(f"not a regular file: {escaped(path)}")
    suffix = path.suffix.lower()
    if suffix in _COMPRESSED:
        raise InputError(f"compressed files are not read: {escaped(path.name)}", hint="unpack it first")
    return path


def delimited_parts(
    path: Path, delimiter: str | None, decimal: str, encoding: str, header: bool, rows: int | None
) -> Iterator[Table]:
    """Read a text file as tables of so many rows, the last with fewer; None is for all rows at once.

    All that is refused in a whole file is refused here. Names that are found again below the header, which only a whole
    file tells, may be found when earlier parts have been handed out.
    """
    mark, name, values = _delimiter_of(path, delimiter), escaped(path.name), set[int]()
    try:
        has_nul = _has_nul(path)
        with _opened(path, encoding) as file:
            reader = csv.reader(file, delimiter=mark, strict=True)
            for part in _parts(name, reader, mark if delimiter is None else None, header, rows):
                _check(name, part, values, has_nul, header)
                before = None if part.is_whole else part.before
                cells = zip(part.names, part.columns, strict=True)
                yield Table(name, {label: Column(label, column, decimal, before) for label, column in cells})
    except UnicodeError:
        raise _not_decoded(path, encoding) from None
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror}") from None


def _delimiter_of(path: Path, delimiter: str | None) -> str:
    """Return the delimiter asked for, or the one that the file's suffix stands for."""
    suffix = path.suffix.lower()
    if delimiter is None and suffix not in _DELIMITERS:
        hint = "use a .csv, .tsv, .txt or .parquet file, or give --delimiter"
        raise InputError(f"cannot tell the format of {escaped(path.name)}", hint=hint)
    delimiter = {None: _DELIMITERS.get(suffix), r"\t": "\t"}.get(delimiter, delimiter)
    if delimiter is None or len(delimiter) != 1 or delimiter in '"\r\n\0':
        raise InputError(f"the delimiter must be one character, got {shown(delimiter)}")
    return delimiter


class _Part(NamedTuple):
    """Columns of a file: their names and cells, how many rows come before these, and whether none comes after."""

    names: list[str]
    columns: list[list[str]]
    before: int
    last: bool

    @property
    def is_whole(self) -> bool:
        return self.last and not self.before


def _check(name: str, part: _Part, values: set[int], has_nul: bool, header: bool) -> None:
    """Refuse bytes and names that no table has; `values` are the columns whose names were seen to be values."""
    if has_nul:
        _refuse_nul(part)
    if header:
        _refuse_values_as_names(name, part, values)
        _refuse_bad_names(name, part)
    if part.is_whole and not (part.columns and part.columns[0]):
        raise InputError(f"no data rows in {name}")


def _opened(path: Path, encoding: str) -> TextIO:
    # newline="" leaves line ends inside quotes as they are; "utf-8-sig" accepts a byte order mark.
    try:
        return path.open(encoding="utf-8-sig" if encoding.lower() in _UTF8 else encoding, newline="")
    except LookupError:
        raise InputError(f"unknown encoding {shown(encoding)}") from None


def _parts(
    name: str, reader: Iterator[list[str]], guessed: str | None, header: bool, rows: int | None
) -> Iterator[_Part]:
    """Read parts of exactly so many rows; a row after each is held, so that the last is known as such."""
    # two rows at least tell which the delimiter is
    size = _ROWS_AT_A_TIME if rows is None else min(_ROWS_AT_A_TIME, max(rows, 2))
    blocks = _blocks(name, reader, header, size)
    first = next(blocks, [])
    if not first:
        yield _Part([], [], 0, last=True)
        return
    names, first = _names(name, first, guessed, header)
    columns: list[list[str]] = [[] for _ in names]
    before, like = 0, "the header" if header else "row 1"
    for block in _without_blank_end(blocks, first):
        _append(name, names, columns, block, before, like)
        while rows is not None and len(columns[0]) > rows:
            yield _Part(names, [cells[:rows] for cells in columns], before, last=False)
            columns, before = [cells[rows:] for cells in columns], before + rows
    yield _Part(names, columns, before, last=True)


def _names(name: str, first: list[list[str]], guessed: str | None, header: bool) -> tuple[list[str], list[list[str]]]:
    """Return the names of the columns, and the rows without the header."""
    if not first[0]:
        raise InputError(f"{name}: line 1 is empty", hint="names or values must start there")
    if guessed is not None:
        _refuse_other_delimiter(first, guessed)
    if header:
        return first[0], first[1:]
    width = len(first[0])
    return ["y"] if width == 1 else [str(i + 1) for i in range(width)], first


def _blocks(name: str, reader: Iterator[list[str]], header: bool, size: int) -> Iterator[list[list[str]]]:
    """Read many rows at once, and turn the errors of `csv` into ours with the row they are in."""
    before = -1 if header else 0
    while True:
        rows: list[list[str]] = []
        try:
            rows.extend(islice(reader, size))
        except csv.Error as error:  # the rows before the error are kept, which tells where it is
            row = before + len(rows) + 1
            raise _malformed(name, f"row {row}" if row else "the header", row, str(error)) from None
        if not rows:
            return
        before += len(rows)
        yield rows


def _malformed(name: str, where: str, row: int, error: str) -> InputError:
    problem = f"{name}: {where} cannot be read ({error})"
    if "unexpected end of data" in error:
        problem = f"{name}: quote opened in {where} is never closed"
    elif "field larger" in error:
        problem = f"{name}: {where} has a cell of more than {csv.field_size_limit()} characters: a quote left open?"
    elif "expected after" in error:
        problem = f"{name}: {where} has text after a closing quote"
    return InputError(problem, rows=[row] if row else ())


def _without_blank_end(blocks: Iterator[list[list[str]]], first: list[list[str]]) -> Iterator[list[list[str]]]:
    """Hold blank lines back until a row follows them: only at the end of a file do they mean nothing."""
    held: list[list[str]] = []
    rows: list[list[str]] | None = first
    while rows is not None:
        rows, held = held + rows, []
        while rows and not rows[-1]:
            held.append(rows.pop())
        yield rows
        rows = next(blocks, None)


def _append(
    name: str, names: list[str], columns: list[list[str]], rows: list[list[str]], before: int, like: str
) -> None:
    width = len(names)
    if width == 1:
        rows = [row or [""] for row in rows]  # an empty line of a single column is an empty cell
    if not set(map(len, rows)) <= {width}:
        at = next(i for i, row in enumerate(rows) if len(row) != width)
        raise _wrong_width(name, names, before + len(columns[0]) + at + 1, len(rows[at]), like)
    for column, cells in zip(columns, zip(*rows, strict=True), strict=False):
        column.extend(cells)


def _wrong_width(name: str, names: list[str], row: int, cells: int, like: str) -> InputError:
    width = len(names)
    if row == 1 and width == 1:
        comment = "remove the comment" if names[0].startswith("#") else None
        return InputError(f"{name}: header has 1 column, row 1 has {cells}", rows=[1], hint=comment)
    if cells == 0:
        return InputError(f"{name}: row {row} is empty, {like} has {width} fields", rows=[row])
    fields = f"{cells} field{'s' if cells > 1 else ''}"
    return InputError(f"{name}: row {row} has {fields}, {like} has {width}", rows=[row])


def _refuse_other_delimiter(rows: list[list[str]], delimiter: str) -> None:
    if len(rows) < 2 or len(rows[0]) != 1:
        return
    head, body = rows[0][0], delimiter.join(rows[1])
    for other in ";\t|,":
        if other != delimiter and 0 < head.count(other) == body.count(other):
            mark = "\\t" if other == "\t" else other
            cells = [cell for cell in body.split(other) if "," in cell]
            comma = other != "," and any(cell.replace(",", "", 1).isdigit() for cell in cells)
            raise InputError(f"looks like '{mark}' separated: use --delimiter '{mark}'" + " --decimal ','" * comma)


def _refuse_values_as_names(name: str, part: _Part, values: set[int]) -> None:
    """Refuse the file when all its names are values: each a number, or a word found again below it."""
    values |= {
        i
        for i, (label, cells) in enumerate(zip(part.names, part.columns, strict=True))
        if i not in values and (not label or _is_number(label) or label in cells)
    }
    if any(part.names) and len(values) == len(part.names):
        row = ",".join(map(shown, part.names))
        hint = "use --no-header, or give the columns other names"
        raise InputError(f"{name}: row 1 looks like data ({row})", rows=[1], hint=hint)


def _refuse_bad_names(name: str, part: _Part) -> None:
    for position, (label, cells) in enumerate(zip(part.names, part.columns, strict=True), 1):
        if not label and cells:
            empty = part.is_whole and not any(cells)
            raise InputError(f"{name}: column {position} has no name" + " and no values" * empty)
    refuse_duplicates(part.names)


def _is_number(text: str) -> bool:
    try:
        return float(text.replace(",", ".")) == float(text.replace(",", "."))
    except ValueError:
        return False


def _has_nul(path: Path) -> bool:
    with path.open("rb") as file:
        return any(b"\0" in block for block in iter(lambda: file.read(1 << 16), b""))


def _refuse_nul(part: _Part) -> None:
    if any("\0" in label for label in part.names):
        raise InputError("the header contains a NUL byte", hint="is the file UTF-16? use --encoding utf-16")
    for row, cells in enumerate(zip(*part.columns, strict=True), part.before + 1):
        if any("\0" in cell for cell in cells):
            raise InputError(f"row {row} contains a NUL byte", rows=[row])


def _not_decoded(path: Path, encoding: str) -> InputError:
    if encoding.lower() not in _UTF8:
        return InputError(f"{escaped(path.name)}: not {escaped(encoding)}", hint="use --encoding")
    with path.open("rb") as file:
        if file.read(2) in (b"\xff\xfe", b"\xfe\xff"):
            return InputError("not UTF-8 at byte 1", hint="use --encoding utf-16")
        file.seek(0)
        before = 0
        for line in file:  # the position in the error is that in a block of the file, not in the file
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                return InputError(f"not UTF-8 at byte {before + error.start + 1}", hint="use --encoding latin-1")
            before += len(line)
    return InputError("not UTF-8", hint="use --encoding")
