"""Large text files, split and converted in blocks by pyarrow, if all their content is plain.

Other content is not judged here: `Misfit` leaves the file to `delimited`, which reads it row by row. Both ways give the
same cells.
"""

from __future__ import annotations

import codecs
import csv
import os
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self, cast

import numpy as np

from bayeszoo.data.table.cells import Numbers
from bayeszoo.data.table.limits import LONGEST_LINE, refuse_rows
from bayeszoo.data.table.strings import Converted, converted, lengths, texts_of, with_text
from bayeszoo.data.table.table import escaped
from bayeszoo.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

SMALLEST = 2_000_000
"""Fewest bytes of a file for which blocks are used; smaller files are read before pyarrow is imported."""
FEWEST = 1_000
"""Fewest rows of a part for which blocks are used."""
BLOCK = 2_000_000
"""Bytes read at once."""
_BYTES_A_ROW = 100
"""Approximate bytes in a row, by which the block for a part is chosen."""
UTF8 = frozenset({"utf-8", "utf8", "utf_8"})
_THREADS = min(4, os.cpu_count() or 1)


class _Growing:
    """An array of numbers that grows, in place if the system allows it."""

    def __init__(self, first: np.ndarray) -> None:
        self.values, self.size = first.copy(), len(first)

    def __iadd__(self, more: np.ndarray) -> Self:
        end = self.size + len(more)
        if end > len(self.values):
            self.values.resize(end + end // 2, refcheck=False)
        self.values[self.size : end] = more
        self.size = end
        return self

    def finished(self) -> np.ndarray:
        """Return the numbers, and release unused memory."""
        self.values.resize(self.size, refcheck=False)
        return self.values


class Misfit(Exception):
    """A file has content that must be read row by row."""


def is_worth(path: Path, mark: str, rows: int | None) -> bool:
    """Say whether a file is large, and pyarrow knows its delimiter."""
    is_large = path.stat().st_size >= SMALLEST and (rows is None or rows >= FEWEST)
    return is_large and mark.isascii()


@dataclass(frozen=True)
class TextFile:
    """A delimited text file, its header if it has one, and its number of columns."""

    path: Path
    opened: Callable[[Path], BinaryIO]
    encoding: str
    mark: str
    decimal: str
    header: Sequence[str] | None
    width: int
    state: tuple[int, ...] = field(init=False)
    """The state of the file when it was first opened, as text that is read again must be the same."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "state", _state(os.stat(self.path)))

    # Tables

    def parts(self, rows: int | None) -> Iterator[tuple[list[list[str] | Numbers], bool]]:
        """Yield tables of ``rows`` rows, or all at once, each with whether it is the last."""
        import pyarrow as pa

        if rows is None:
            columns = self._columns()
            pa.default_memory_pool().release_unused()
            yield columns, True
            return
        for strings, is_last in _of_size(_in_order(self._strings, self._body(min(BLOCK, _BYTES_A_ROW * rows))), rows):
            yield [with_text(column, self.decimal) for column in strings.columns], is_last

    def _columns(self) -> list[list[str] | Numbers]:
        """Read all rows; a column with anything other than numbers is text."""
        texts: set[int] = set()
        while True:
            columns, late = self._read(range(self.width), texts)
            if not late:
                return [self._finished(i, columns.pop(i)) for i in range(self.width)]
            texts |= late

    def _finished(self, i: int, cells: list[str] | _Growing) -> list[str] | Numbers:
        return cells if isinstance(cells, list) else Numbers(cells.finished(), partial(self._read_again, i))

    def _read_again(self, i: int) -> list[str]:
        """Return the text of a column that was read as numbers."""
        try:
            cells = self._read([i], {i})[0][i]
        except (Misfit, OSError):
            raise _changed(self.path) from None
        return cast(list[str], cells)

    def _read(
        self, wanted: Collection[int], texts: Collection[int]
    ) -> tuple[dict[int, list[str] | _Growing], set[int]]:
        """Convert columns block by block: to text if requested, or if the first block has text.

        Also return the columns with words only after blocks of numbers, whose text was not kept.
        """
        body, late = self._body(BLOCK), set[int]()
        first = self._converted(next(body, b""), wanted, texts)
        columns = {i: cells if isinstance(cells, list) else _Growing(cells) for i, cells in first.items()}
        texts = {i for i, cells in columns.items() if isinstance(cells, list)}
        for read in _in_order(partial(self._converted, wanted=wanted, texts=texts), body):
            for i, cells in read.items():
                if isinstance(cells, list) == (i in texts):
                    columns[i] += cells
                else:
                    late.add(i)
            kept = next(iter(columns.values()))
            size = len(kept) if isinstance(kept, list) else kept.size
            refuse_rows(escaped(self.path.name), size, self.width, "more than ")
        return columns, late

    def _converted(self, block: bytes, wanted: Collection[int], texts: Collection[int]) -> dict[int, Converted]:
        read = zip(wanted, self._strings(block, wanted).columns, strict=True)
        return {i: texts_of(cells) if i in texts else converted(cells, self.decimal) for i, cells in read}

    def _strings(self, block: bytes, wanted: Collection[int] | None = None) -> pa.Table:
        """Split rows into columns of text; raise `Misfit` if they are not plain."""
        import pyarrow as pa
        from pyarrow import csv as arrow

        _refuse_odd(block, self.mark)
        names = [str(i) for i in range(self.width)]
        chosen = names if wanted is None else [names[i] for i in wanted]
        quote: Any = '"' if b'"' in block else False
        try:
            table = arrow.read_csv(
                pa.py_buffer(block),
                arrow.ReadOptions(use_threads=False, block_size=len(block), column_names=names),
                arrow.ParseOptions(delimiter=self.mark, quote_char=quote, ignore_empty_lines=False),
                arrow.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), include_columns=chosen),
            )
        except pa.ArrowInvalid:
            raise Misfit from None
        shortest, longest = zip(*map(lengths, table.columns), strict=True)
        has_blank_line = self.width > 1 and not shortest[0] and _has_blank_line(block)  # pyarrow reads it as a row
        if has_blank_line or max(longest) > csv.field_size_limit():
            raise Misfit
        return table

    # Bytes

    def _body(self, size: int) -> Iterator[bytes]:
        """Yield blocks of whole lines below the header."""
        blocks = self._lines(size)
        if self.header is None:
            return blocks
        line, _, remainder = next(blocks, b"").partition(b"\n")
        try:
            names = next(csv.reader([line.decode().removesuffix("\r")], delimiter=self.mark, strict=True), [])
        except csv.Error:
            raise Misfit from None
        if names != list(self.header):  # the header continues on the next line
            raise Misfit
        return chain([remainder] if remainder else [], blocks)

    def _lines(self, size: int) -> Iterator[bytes]:
        """Yield blocks of whole lines, without blank lines at the end of the file."""
        lines = b""
        for piece in self._pieces(size):
            lines += piece
            end = lines.rfind(b"\n", 0, len(lines.rstrip(b"\r\n"))) + 1
            if end:
                yield lines[:end]
                lines = lines[end:]
            if len(lines) > LONGEST_LINE:
                raise Misfit
        if lines := lines.rstrip(b"\r\n"):
            yield lines + b"\n"

    def _pieces(self, size: int) -> Iterator[bytes]:
        """Yield the text as bytes in UTF-8, without a byte order mark."""
        with self.opened(self.path) as file:
            if _state(os.fstat(file.fileno())) != self.state:
                raise _changed(self.path)
            pieces: Iterator[bytes] = iter(lambda: file.read1(size), b"")  # type: ignore[attr-defined]
            if self.encoding.lower() in UTF8:
                yield next(pieces, b"").removeprefix(codecs.BOM_UTF8)
                yield from pieces
                return
            decoder = codecs.getincrementaldecoder(self.encoding)()
            yield from (decoder.decode(piece).encode() for piece in pieces)
            yield decoder.decode(b"", final=True).encode()


def _state(stat: os.stat_result) -> tuple[int, ...]:
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def _changed(path: Path) -> InputError:
    return InputError(f"{escaped(path.name)} has changed since it was read", "unreadable_file", hint="read it again")


def _refuse_odd(block: bytes, mark: str) -> None:
    """Raise `Misfit` for content that the two ways of reading may understand differently."""
    is_odd = not block or b"\0" in block or block.startswith(codecs.BOM_UTF8)
    is_odd = is_odd or (b"\r" in block and block.count(b"\r") != block.count(b"\r\n"))
    if is_odd or (b'"' in block and not _are_plain_quotes(block, mark)):
        raise Misfit


def _has_blank_line(block: bytes) -> bool:
    return block[:1] in b"\r\n" or b"\n\n" in block or b"\n\r" in block


def _are_plain_quotes(block: bytes, mark: str) -> bool:
    """Say whether quotes are only around whole cells without quotes or line ends."""
    data, line_end = np.frombuffer(block, np.uint8), ord("\n")
    quotes, line_ends = np.flatnonzero(data == ord('"')), np.flatnonzero(data == line_end)
    if len(quotes) % 2:
        return False
    opening, closing = quotes[::2], quotes[1::2]
    # A block ends in a line end, which is also what stands before its first byte.
    are_opened = np.isin(data[opening - 1], [ord(mark), line_end])
    are_closed = np.isin(data[closing + 1], [ord(mark), line_end, ord("\r")])
    are_within = np.searchsorted(line_ends, opening) == np.searchsorted(line_ends, closing)
    return bool(np.all(are_opened & are_closed & are_within))


def _in_order(function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    """Map a function in threads, a few items ahead, in order."""
    waiting = deque[Future[Any]]()
    with ThreadPoolExecutor(_THREADS) as pool:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > _THREADS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _of_size(tables: Iterable[pa.Table], rows: int) -> Iterator[tuple[pa.Table, bool]]:
    """Yield tables of ``rows`` rows, each with whether it is the last.

    Each is yielded after the next was read, as when reading row by row, so that the same of two faults is reported.
    """
    import pyarrow as pa

    pending: list[pa.Table] = []
    for table in tables:
        pending.append(table)
        while sum(map(len, pending)) >= 2 * rows:
            whole = pa.concat_tables(pending)
            yield whole.slice(0, rows), False
            pending = [whole.slice(rows)]
    if not pending:
        raise Misfit
    whole = pa.concat_tables(pending)
    if len(whole) > rows:
        yield whole.slice(0, rows), False
        whole = whole.slice(rows)
    yield whole, True
