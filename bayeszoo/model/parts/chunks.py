"""Files larger than memory: read in chunks, with the same checks as `read`, and summed to a model's statistics."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from bayeszoo.data.inputs import Arrays, Binary, Categories, Inputs, Labelled, Series, Transitions
from bayeszoo.data.inputs.labels import refuse_other_labels
from bayeszoo.data.inputs.matrix import Matrix, scales_by
from bayeszoo.data.inputs.regression import WithFeatures
from bayeszoo.data.read import Data, HasInputs, reading_of
from bayeszoo.data.table.read import read_parts
from bayeszoo.data.table.table import LARGEST_COUNT, Dropped, Table, shown
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Options
from bayeszoo.foundation.process.progress import Reporter
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import Sufficient
from bayeszoo.model.parts.accumulated import Accumulated, arrays_of, sufficient

ROWS = 100_000
_PROBE = 100
MOST_NOTES = 5


def read_chunks(
    model: HasInputs,
    source: str | os.PathLike[str],
    /,
    rows: int = ROWS,
    *,
    missing: str = "refuse",
    delimiter: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    header: bool = True,
    **options: object,
) -> Iterator[Data]:
    """Read a file for a model in chunks of N rows, with the same checks as `read`; memory holds one chunk.

    Messages and notes count the rows of the file. Problems of the whole file are found when the chunk that shows them
    is read: the file may be refused until the last chunk.

    Parameters
    ----------
    model : Model or class
        The model, or its class.
    source : path
        A ``.csv``, ``.tsv``, ``.txt`` or ``.parquet`` file.
    rows : int
        Rows of the file in a chunk, >= 1; the last chunk may have fewer.
    missing, delimiter, decimal, encoding, header
        Options of `read`.
    **options : str or list of str
        Options in ``model.inputs.options``. Labels that `read` finds in the data (categories, symbols) are required.

    Yields
    ------
    Data
        The rows of a chunk; without rows if all have missing values and were dropped.

    Raises
    ------
    InputError
        When the file cannot be used exactly as it is; or not in chunks, because a row's meaning depends on other rows
        (``positive``, counts of labels, sequences of symbols or of other observations).
    """
    how = {"delimiter": delimiter, "decimal": decimal, "encoding": encoding, "header": header}
    return (chunk.data for chunk in _read(model, source, rows, {**how, "missing": missing, **options}))


def total_of(
    model: Model,
    source: str | os.PathLike[str],
    rows: int,
    options: Options,
    reporter: Reporter,
    is_part: bool = False,
) -> Accumulated:
    """Add up a model's statistics of one file; a part of several files obeys the rules for chunks even if small."""
    total = _added_up(sufficient(model), _read(model, source, rows, options, is_part), reporter)
    return replace(total, reading=reading_of(model.inputs, source, options, rows=int(rows), **total.like.reading))


def first_chunk(
    model: HasInputs, source: str | os.PathLike[str], /, rows: int = ROWS, **options: object
) -> tuple[Data, str]:
    """Return the first chunk with rows that are kept, and its name for messages: ``"rows 1 to 1000"``."""
    chunks = _read(model, source, rows, options)
    chunk = next(chunk for chunk in chunks if model.inputs.size(chunk.data))  # reading refuses a file without rows
    return chunk.data, "the data" if chunk.is_whole else chunk.where


class _Chunk(NamedTuple):
    """Rows ``first`` to ``last`` of a file, counted from 1, and whether they are the whole file."""

    data: Data
    first: int
    last: int
    is_whole: bool

    @property
    def where(self) -> str:
        return f"rows {self.first} to {self.last}"


def _read(model: HasInputs, source: Any, rows: int, options: Options, is_part: bool = False) -> Iterator[_Chunk]:
    """Check the arguments before the file is read, and return its chunks."""
    if isinstance(rows, bool) or not isinstance(rows, int | np.integer) or rows < 1:
        raise InputError(f"the rows of a chunk must be a whole number >= 1, got {rows!r}", "wrong_type")
    if not isinstance(source, str | os.PathLike):
        raise InputError(
            f"only files can be read in chunks, got {type(source).__name__}",
            "not_a_file",
            hint="use bz.read for data in memory",
        )
    how = {name: options[name] for name in ("delimiter", "decimal", "encoding", "header") if name in options}
    options_of_inputs = {name: value for name, value in options.items() if name not in how}

    def read_again(inputs: Inputs, **scaling: Any) -> Iterator[_Chunk]:
        tables = read_parts(source, int(rows), **how)
        return _checked(model, inputs, tables, {**options_of_inputs, **scaling}, is_part)

    return _scaled(model.inputs, read_again) if str(options.get("scale")) == "True" else read_again(model.inputs)


def _scaled(inputs: Inputs, read_again: Callable[..., Iterator[_Chunk]]) -> Iterator[_Chunk]:
    """Yield chunks with columns divided by their standard deviations in the whole file, which is read twice."""
    if isinstance(inputs, Matrix) and inputs.scalable:
        inputs = replace(inputs, scales=_deviations(inputs, read_again(inputs, scale=None)))
    yield from read_again(inputs)


def _deviations(inputs: Matrix, chunks: Iterator[_Chunk]) -> dict[str, float]:
    """Return the standard deviation of each column over all chunks (divisor N), pooled without cancellation."""
    count, mean, squares = np.zeros((3, 1))
    for chunk in chunks:
        values = np.ma.masked_invalid(chunk.data[inputs.name])
        n, mean_of_chunk = values.count(axis=0), np.ma.filled(values.mean(axis=0), 0)
        step, total = mean_of_chunk - mean, np.maximum(count + n, 1)
        squares = squares + np.ma.filled(np.square(values - mean_of_chunk).sum(axis=0), 0) + step**2 * count * n / total
        count, mean = count + n, mean + step * n / total
    varies = squares > count * np.square(1e-14 * mean)  # smaller spreads are rounding errors
    return scales_by(chunk.data[inputs.axis].tolist(), np.where(varies, np.sqrt(squares / np.maximum(count, 1)), 0))


def _checked(
    model: HasInputs, inputs: Inputs, tables: Generator[Table], options: Options, is_part: bool
) -> Iterator[_Chunk]:
    """Parse tables, and check the rules for all of them together."""
    totals, observations = Counter[str](), 0
    first_arrays: Data | None = None
    with closing(tables):  # closes the file even if a chunk is refused
        for table in tables:
            chunk = _parsed(inputs, table, options, is_part)
            refuse_other_labels(model.labels, chunk.data)
            arrays = none_of(inputs, chunk.data)
            first_arrays = first_arrays or arrays
            if not chunk.is_whole and (
                arrays != first_arrays or arrays.columns != first_arrays.columns
            ):  # possible with inputs of plug-ins
                raise InputError(f"{chunk.where} differ from those before in labels, columns or types", "labels_differ")
            counts = ((n, v) for n, v in chunk.data.items() if n not in inputs.coded and v.dtype.kind == "i")
            totals.update({name: int(values.sum()) for name, values in counts})  # each sum of a chunk is below 2**53
            if large := [name for name, total in totals.items() if total > LARGEST_COUNT]:
                raise InputError(f"{shown(large[0])} has a sum of 2**53 or more", "too_large")
            observations += int(inputs.observations(chunk.data)[1].sum())
            yield chunk
    if not observations:
        raise InputError("there are no observations: every row has a missing value or a count of 0", "no_data")


def _parsed(inputs: Inputs, table: Table, options: Options, is_part: bool) -> _Chunk:
    before = next((column.before for column in table.columns.values()), None)
    first, last = 1 + (before or 0), table.rows + (before or 0)
    if before is not None or is_part:
        _refuse_what_needs_all_rows(inputs, table, options)
    try:
        parsed = inputs.parse(table, **options)
    except InputError as error:
        # the number of wrong rows counts the rows read so far, not the whole file
        raise error.also(f", of the rows up to {last}" * (before is not None and bool(error.rows))) from None
    checked_for = (inputs, False) if inputs.size(parsed.arrays) else None
    data = Data(parsed.arrays, table.name, parsed.columns, parsed.notes, checked_for, parsed.reading)
    return _Chunk(data, first, last, before is None)


def none_of(inputs: Inputs, data: Data) -> Data:
    """Return the arrays without rows: their names, types and labels."""
    return Data(inputs.split(data, 0)[0], data.source, data.columns, (), data.checked_for, data.reading)


# Rules for all chunks together


_OF_ALL_ROWS: dict[type[Inputs], frozenset[str]] = {
    Binary: frozenset({"positive", "count"}),
    Categories: frozenset({"count", "columns"}),
    Transitions: frozenset({"column", "sequence"}),
    WithFeatures: frozenset({"formula", "lags"}),
}
"""Options that need all rows together: their result for a part of the rows is not a part of their result."""
_LABELS: dict[type[Inputs], str] = {Categories: "categories", Transitions: "symbols", Labelled: "classes"}
"""The option with the labels, which `read` finds in the rows by default."""


def _refuse_what_needs_all_rows(inputs: Inputs, table: Table, options: Mapping[str, object]) -> None:
    """Refuse options, or their absence, with which a row's meaning depends on other rows."""
    if isinstance(inputs, Series):
        raise InputError(
            "a sequence of observations cannot be cut into chunks", "not_cuttable", hint="read the file at once"
        )
    chosen = {name: value for name, value in options.items() if value is not None}
    need_all_rows = next((names for kind, names in _OF_ALL_ROWS.items() if isinstance(inputs, kind)), frozenset[str]())
    for name in sorted(need_all_rows & chosen.keys()):
        hint = "write 0 and 1" if name == "positive" else "read the file at once, or write one observation a row"
        raise InputError(f"--{name} needs all rows together, and cannot be used with chunks", "needs_rows", hint=hint)
    if isinstance(inputs, Categories) and "column" not in chosen and len(table.columns) > 1:
        raise InputError(
            "only all rows together show whether the table holds labels or counts", "not_cuttable", hint="use --column"
        )
    labels = next((name for kind, name in _LABELS.items() if isinstance(inputs, kind)), None)
    if labels is not None and labels not in chosen:
        raise InputError(
            f"the {labels} must be known before the first chunk",
            "labels_must_be_given",
            hint=f"name them with --{labels}",
        )
    ends = "source" in chosen or any(pair <= table.columns.keys() for pair in ({"from", "to"}, {"source", "target"}))
    if isinstance(inputs, Transitions) and not ends:
        hint = "give columns of transitions with --source and --target"
        raise InputError("a sequence of symbols cannot be cut into chunks", "not_cuttable", hint=hint)
    if isinstance(inputs, Transitions) and str(chosen.get("order")) != "1":
        raise InputError("only all rows together show which contexts occur", "not_cuttable", hint="use --order 1")


# Adding up


def _added_up(model: Sufficient[Any], chunks: Iterator[_Chunk], reporter: Reporter) -> Accumulated:
    inputs, digest, notes = model.inputs, Digest(model.inputs), list[tuple[str, ...]]()
    stats: Any = None
    probe, like = None, None
    for chunk in chunks:
        stats_of_chunk = model.statistics(chunk.data)
        stats = stats_of_chunk if stats is None else stats + stats_of_chunk
        digest.update(chunk.data)
        notes.append(chunk.data.notes)
        if probe is None and inputs.size(chunk.data):
            probe, like = Data(inputs.split(chunk.data, _PROBE)[0]), none_of(inputs, chunk.data)
        reporter.say(f"{chunk.data.source}: {chunk.last} rows read, {digest.rows} kept")
    arrays_of(stats)  # refuses statistics that cannot be stored
    arrays = cast(Data, like)  # a file without observations has been refused
    chunked = f"{digest.rows} rows in {len(notes)} chunk{'s' * (len(notes) > 1)}"
    all_notes = (*_of_the_file(notes), f"{chunked}: their statistics were kept, the rows were not")
    description = (arrays.source, arrays.columns, all_notes, probe)
    return Accumulated(model, stats, arrays, digest.rows, digest.hexdigest(), *description)


class Digest:
    """SHA-256 of arrays that arrive in parts, independent of the parts: of the digests of each array's rows."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs, self._types = inputs, dict[str, tuple[str, tuple[int, ...]]]()
        self._states = dict[str, Any]()
        self.rows = 0

    def update(self, arrays: Arrays) -> None:
        """Add some rows; labels are added once."""
        first = not self._states
        for name, values in arrays.items():
            is_label = name in self._inputs.coords
            if first:
                self._states[name] = hashlib.sha256()
                self._types[name] = values.dtype.str, values.shape if is_label else values.shape[1:]
            if first or not is_label:
                self._states[name].update(np.ascontiguousarray(values))
        self.rows += self._inputs.size(arrays)

    def hexdigest(self) -> str:
        """Return the digest of the rows so far."""
        state = hashlib.sha256(f"rows in chunks\0{self.rows}\0".encode())
        for name in sorted(self._states):
            kind, shape = self._types[name]
            state.update(f"{name}\0{kind}\0{shape}\0{self._states[name].hexdigest()}\0".encode())
        return state.hexdigest()


def _of_the_file(notes: list[tuple[str, ...]]) -> tuple[str, ...]:
    """Merge the notes of all chunks: mark notes of only some chunks, and add up the dropped rows."""
    dropped = [note for of_chunk in notes for note in of_chunk if isinstance(note, Dropped)]
    times = Counter(note for of_chunk in notes for note in of_chunk if not isinstance(note, Dropped))
    common = [note for note in times if times[note] == len(notes)]
    partial = [f"in some chunks: {note}" for note in times if times[note] < len(notes)]
    hidden = len(partial) - MOST_NOTES
    common += partial[:MOST_NOTES] + [f"and {hidden} more note{'s' * (hidden > 1)} of some chunks"] * (hidden > 0)
    first = [row for note in dropped for row in note.first][:5]
    return (*common, *([Dropped.of(first, sum(note.total for note in dropped))] if dropped else []))
