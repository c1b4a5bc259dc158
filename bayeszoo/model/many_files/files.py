"""Several files as one table: their paths, and their statistics added up in the order of their names."""

from __future__ import annotations

import glob
import hashlib
import os
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

import numpy as np

from bayeszoo.data.table.table import LARGEST_COUNT, Dropped, escaped
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Options
from bayeszoo.foundation.process.progress import Reporter
from bayeszoo.model.base import Model
from bayeszoo.model.parts.accumulated import Accumulated, arrays_of
from bayeszoo.model.parts.chunks import MOST_NOTES, total_of

Parts = Generator[tuple[int, Accumulated]]
"""File numbers and the statistics of these files, in any order."""


def paths_of(source: object) -> list[str] | None:
    """Return the files that match a pattern, sorted by name; None if it is not a pattern."""
    if not isinstance(source, str | os.PathLike) or os.path.exists(source):
        return None
    pattern = str(source)
    if not any(sign in pattern for sign in "*?["):
        return None
    paths = sorted(path for path in glob.glob(pattern, recursive=True) if os.path.isfile(path))
    if not paths:
        raise InputError(f"no file matches {escaped(pattern)}", "no_such_file")
    return [os.path.abspath(path) for path in paths]


def parts_here(model: Model, paths: Sequence[str], rows: int, options: Options) -> Parts:
    """Yield the statistics of each file."""
    for number, path in enumerate(paths):
        yield number, part_of(model, path, rows, options)


def part_of(model: Model, path: str, rows: int, options: Options) -> Accumulated:
    """Return the statistics of one of several files; errors name the file."""
    with naming(path):
        return total_of(model, path, rows, options, Reporter(), is_part=True)


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Return a context that adds the file's name to errors."""
    name = escaped(os.path.basename(path))
    try:
        yield
    except InputError as error:
        message = error.message if name in error.message else f"{name}: {error.message}"
        raise InputError(message, error.code, column=error.column, rows=error.rows, hint=error.hint) from None


def merged_notes(notes: Sequence[tuple[str, ...]], of_each: str = "") -> list[str]:
    """Return notes common to all files, prefixed with ``of_each``, notes of some files, and dropped rows."""
    dropped = sum(note.total for of_file in notes for note in of_file if isinstance(note, Dropped))
    times = Counter(note for of_file in notes for note in of_file if not isinstance(note, Dropped))
    files = f"{len(notes)} file{'s' * (len(notes) > 1)}"
    common = [f"{of_each}{note}" for note in times if times[note] == len(notes)]
    partial = [f"in {times[note]} of {files}: {note}" for note in times if times[note] < len(notes)]
    hidden = len(partial) - MOST_NOTES
    common += partial[:MOST_NOTES] + [f"and {hidden} more note{'s' * (hidden > 1)} of some files"] * (hidden > 0)
    return common + [f"{dropped} row{'s' * (dropped > 1)} with missing values dropped"] * (dropped > 0)


class Sum:
    """Adds up statistics of files in the order of their names, in whatever order they arrive."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths, self._waiting = paths, dict[int, Accumulated]()
        self._first: Accumulated | None = None
        self._stats: Any = None
        self._state, self._rows, self._added = hashlib.sha256(b"files\0"), 0, 0
        self._notes = list[tuple[str, ...]]()

    def take(self, number: int, part: Accumulated) -> None:
        """Take the statistics of a file, and add up the files that have arrived without a gap."""
        self._waiting[number] = part
        while self._added in self._waiting:
            self._add(self._waiting.pop(self._added))
            self._added += 1

    def _add(self, part: Accumulated) -> None:
        self._first = self._first or part
        arrays, first_arrays = part.like, self._first.like
        if arrays != first_arrays or arrays.columns != first_arrays.columns or arrays.reading != first_arrays.reading:
            raise InputError(
                f"{part.source} has other labels, columns or types than {self._first.source}", "labels_differ"
            )
        self._stats = part.stats if self._stats is None else self._stats + part.stats
        for name, values in arrays_of(self._stats).items():
            if values.dtype.kind in "iu" and np.any(np.abs(values) > LARGEST_COUNT):
                raise InputError(f"{name} has a sum of 2**53 or more", "too_large")
        self._notes.append(part.notes[:-1])  # the last one counts the rows of the file
        self._state.update(f"{part.digest}\0".encode())
        self._rows += part.rows

    def whole(self, model: Model, source: str | os.PathLike[str], reading: Options) -> Accumulated:
        """Return the statistics of all files."""
        first, count = cast(Accumulated, self._first), len(self._paths)
        rows, files = f"{self._rows} rows", f"{count} file{'s' * (count > 1)}"
        notes = [*merged_notes(self._notes), f"{rows} in {files}: their statistics were kept, the rows were not"]
        name, digest = escaped(os.path.basename(source)), self._state.hexdigest()
        description: dict[str, Any] = {"source": name, "notes": tuple(notes)}
        arrays = replace(first.like, source=name)
        return replace(
            first,
            model=model,
            stats=self._stats,
            like=arrays,
            rows=self._rows,
            digest=digest,
            reading={**reading, **arrays.reading},
            **description,
        )
