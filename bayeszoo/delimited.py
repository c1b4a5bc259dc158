"""Delimited text files, read strictly: a row that does not fit its header is refused, never shifted or padded."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TextIO

from bayeszoo.errors import InputError
from bayeszoo.table import Column, Table, escaped, refuse_duplicates, shown

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


def delimiter_of(path: Path, delimiter: str | None) -> str:
    """Return the delimiter asked for, or the one that the file's suffix stands for."""
    suffix = path.suffix.lower()
    if delimiter is None and suffix not in _DELIMITERS:
        hint = "use a .csv, .tsv, .txt or .parquet file, or give --delimiter"
        raise InputError(f"cannot tell the format of {escaped(path.name)}", hint=hint)
    delimiter = {None: _DELIMITERS.get(suffix), r"\t": "\t"}.get(delimiter, delimiter)
    if delimiter is None or len(delimiter) != 1 or delimiter in '"\r\n\0':
        raise InputError(f"the delimiter must be one character, got {shown(delimiter)}")
    return delimiter


def read_delimited(path: Path, delimiter: str, guessed: bool, decimal: str, encoding: str, header: bool) -> Table:
    """Read a delimited text file whose delimiter was `guessed` from its suffix or given."""
    name = escaped(path.name)
    try:
        has_nul = _has_nul(path)
        with _opened(path, encoding) as file:
            names, columns = _columns(name, file, delimiter, guessed, header)
    except UnicodeError:
        raise _not_decoded(path, encoding) from None
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror}") from None
    if has_nul:
        _refuse_nul(names, columns)
    if header:
        _refuse_bad_header(name, names, columns)
    if not columns or not columns[0]:
        raise InputError(f"no data rows in {name}")
    return Table(name, {label: Column(label, cells, decimal) for label, cells in zip(names, columns, strict=True)})


def _opened(path: Path, encoding: str) -> TextIO:
    # newline="" leaves line ends inside quotes as they are; "utf-8-sig" accepts a byte order mark.
    try:
        return path.open(encoding="utf-8-sig" if encoding.lower() in _UTF8 else encoding, newline="")
    except LookupError:
        raise InputError(f"unknown encoding {shown(encoding)}") from None


def _columns(
    name: str, file: Iterable[str], delimiter: str, guessed: bool, header: bool
) -> tuple[list[str], list[list[str]]]:
    chunks = _chunks(name, csv.reader(file, delimiter=delimiter, strict=True), header)
    first = next(chunks, [])
    if not first:
        return [], []
    if not first[0]:
        raise InputError(f"{name}: line 1 is empty", hint="names or values must start there")
    if guessed:
        _refuse_other_delimiter(first, delimiter)
    width = len(first[0])
    names = first.pop(0) if header else ["y"] if width == 1 else [str(i + 1) for i in range(width)]
    columns: list[list[str]] = [[] for _ in names]
    like = "the header" if header else "row 1"
    for rows in _without_blank_end(chunks, first):
        _append(name, names, columns, rows, like)
    return names, columns


def _chunks(name: str, reader: Iterator[list[str]], header: bool) -> Iterator[list[list[str]]]:
    """Read many rows at once, and turn the errors of `csv` into ours with the row they are in."""
    before = -1 if header else 0
    while True:
        rows: list[list[str]] = []
        try:
            rows.extend(islice(reader, _ROWS_AT_A_TIME))
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


def _without_blank_end(chunks: Iterator[list[list[str]]], first: list[list[str]]) -> Iterator[list[list[str]]]:
    """Hold blank lines back until a row follows them: only at the end of a file do they mean nothing."""
    held: list[list[str]] = []
    rows: list[list[str]] | None = first
    while rows is not None:
        rows, held = held + rows, []
        while rows and not rows[-1]:
            held.append(rows.pop())
        yield rows
        rows = next(chunks, None)


def _append(name: str, names: list[str], columns: list[list[str]], rows: list[list[str]], like: str) -> None:
    width = len(names)
    if width == 1:
        rows = [row or [""] for row in rows]  # an empty line of a single column is an empty cell
    if not set(map(len, rows)) <= {width}:
        at = next(i for i, row in enumerate(rows) if len(row) != width)
        raise _wrong_width(name, names, len(columns[0]) + at + 1, len(rows[at]), like)
    for column, cells in zip(columns, zip(*rows, strict=True), strict=False):
        column.extend(cells)


def _wrong_width(name: str, names: list[str], row: int, found: int, like: str) -> InputError:
    width = len(names)
    if row == 1 and width == 1:
        comment = "remove the comment" if names[0].startswith("#") else None
        return InputError(f"{name}: header has 1 column, row 1 has {found}", rows=[1], hint=comment)
    if found == 0:
        return InputError(f"{name}: row {row} is empty, {like} has {width} fields", rows=[row])
    fields = f"{found} field{'s' if found > 1 else ''}"
    return InputError(f"{name}: row {row} has {fields}, {like} has {width}", rows=[row])


def _refuse_other_delimiter(rows: list[list[str]], delimiter: str) -> None:
    if len(rows) < 2 or len(rows[0]) != 1:
        return
    head, body = rows[0][0], delimiter.join(rows[1])
    for other in ";\t|,":
        if other != delimiter and 0 < head.count(other) == body.count(other):
            mark = "\\t" if other == "\t" else other
            comma = other != "," and any(
                cell.replace(",", "", 1).isdigit() and "," in cell for cell in body.split(other)
            )
            raise InputError(f"looks like '{mark}' separated: use --delimiter '{mark}'" + " --decimal ','" * comma)


def _refuse_bad_header(name: str, names: list[str], columns: list[list[str]]) -> None:
    # A number, or a word found again below it, is not a name: the file starts with data.
    pairs = list(zip(names, columns, strict=True))
    if any(names) and all(_is_number(label) or label in cells for label, cells in pairs if label):
        row = ",".join(map(shown, names))
        hint = "use --no-header, or give the columns other names"
        raise InputError(f"{name}: row 1 looks like data ({row})", rows=[1], hint=hint)
    for position, (label, cells) in enumerate(pairs, 1):
        if not label and cells:
            raise InputError(f"{name}: column {position} has no name" + " and no values" * (not any(cells)))
    refuse_duplicates(names)


def _is_number(text: str) -> bool:
    try:
        return float(text.replace(",", ".")) == float(text.replace(",", "."))
    except ValueError:
        return False


def _has_nul(path: Path) -> bool:
    with path.open("rb") as file:
        return any(b"\0" in block for block in iter(lambda: file.read(1 << 20), b""))


def _refuse_nul(names: list[str], columns: list[list[str]]) -> None:
    if any("\0" in label for label in names):
        raise InputError("the header contains a NUL byte", hint="is the file UTF-16? use --encoding utf-16")
    for row, cells in enumerate(zip(*columns, strict=True), 1):
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
