"""Rows of files in memory: on this machine, or in the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bayeszoo.data.inputs import Series
from bayeszoo.data.inputs.labels import code
from bayeszoo.data.inputs.sequences.series import SEQUENCE
from bayeszoo.data.inputs.words.cells import DOCUMENT
from bayeszoo.data.read import Data, read
from bayeszoo.data.table.read import read_table
from bayeszoo.foundation.named import Options
from bayeszoo.foundation.process.progress import Reporter
from bayeszoo.model.base import Model
from bayeszoo.model.find import Reference
from bayeszoo.model.many_files import cluster
from bayeszoo.model.many_files.files import naming
from bayeszoo.model.many_files.rows import Step, StoredRows
from bayeszoo.model.parts.chunks import none_of

_HOW = ("delimiter", "decimal", "encoding", "header")
"""Options of a file, which are not needed for its table."""


class Part(NamedTuple):
    """The rows of a file, and the names of its sequences or documents if it has any."""

    data: Data
    names: Sequence[str]
    numbered: int = 0  # number of rows in the table if rows are named by their numbers, else 0


class Facts(NamedTuple):
    """Facts about the rows of a file, kept where the rows are not."""

    like: Data  # arrays without rows and their names
    rows: int
    lengths: np.ndarray | None  # number of rows of each sequence
    names: Sequence[str]
    numbered: int
    digest: str
    notes: tuple[str, ...]


def part_of(model: Model, path: str, options: Options) -> Part:
    """Read one of several files; errors name the file."""
    with naming(path):
        table = read_table(path, **{name: options[name] for name in _HOW if name in options})
        data = read(model, table, **options)
        named = data.columns.get(SEQUENCE, data.columns.get(DOCUMENT))
        if (row_names := model.inputs.row_names) is not None:
            return Part(data, data[row_names].tolist(), 0 if named else table.rows)
        return Part(data, () if named is None else code(table[named]).labels)


def facts_of(model: Model, part: Part) -> Facts:
    """Return the facts about the rows of a file."""
    data, inputs = part.data, model.inputs
    lengths = np.bincount(data[SEQUENCE]) if isinstance(inputs, Series) else None
    like = none_of(inputs, data)
    if (row_names := inputs.row_names) is not None:
        like = replace(like, arrays={**like, row_names: np.zeros(0, dtype=str)})
    return Facts(like, inputs.size(data), lengths, part.names, part.numbered, data.digest, data.notes)


class LocalRows:
    """Rows of files in the memory of this machine."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts

    @classmethod
    def read(
        cls, model: Model, paths: Sequence[str], options: Options, reporter: Reporter
    ) -> tuple[StoredRows, list[Facts]]:
        """Read the files one after the other."""
        parts = []
        for done, path in enumerate(paths, start=1):
            parts.append(part_of(model, path, options))
            reporter.progress("files", done, len(paths))
        return cls(parts), [facts_of(model, part) for part in parts]

    def each(self, step: Step, model: Model, ats: Iterable[Any]) -> list[Any]:
        """Return the result of a step for each file."""
        return [step(model, point, part.data) for part, point in zip(self._parts, ats, strict=True)]


class ClusterRows:
    """Rows of files in the workers of a Dask cluster; if a worker ends, another reads its files again."""

    def __init__(self, client: Any, paths: Sequence[str], parts: Sequence[Any]) -> None:
        self._client, self._paths, self._parts = client, paths, parts

    @classmethod
    def read(
        cls, client: Any, model: Model, paths: Sequence[str], options: Options, reporter: Reporter
    ) -> tuple[StoredRows, list[Facts]]:
        """Let the workers read the files; the futures of this object keep the rows there."""
        reference = Reference.of(model)
        rows = cls(client, paths, [client.submit(_part, reference, path, options, pure=False) for path in paths])
        futures = rows._submitted(_facts_of, model, [None] * len(paths))
        for done, _ in enumerate(cluster.as_completed(futures), start=1):
            reporter.progress("files", done, len(paths))
        return rows, rows._results(futures)

    def each(self, step: Step, model: Model, ats: Iterable[Any]) -> list[Any]:
        """Return the result of a step for each file."""
        return self._results(self._submitted(partial(_of_rows, step), model, ats))

    def _submitted(self, step: Step, model: Model, ats: Iterable[Any]) -> list[Any]:
        reference, submit = Reference.of(model), self._client.submit
        with cluster.without_size_warning():
            return [
                submit(_stepped, step, reference, point, part, pure=False)
                for point, part in zip(ats, self._parts, strict=True)
            ]

    def _results(self, futures: Sequence[Any]) -> list[Any]:
        return [cluster.result(future, path) for future, path in zip(futures, self._paths, strict=True)]


def stored_rows(
    model: Model, paths: Sequence[str], options: Options, client: Any, reporter: Reporter
) -> tuple[StoredRows, list[Facts]]:
    """Read files on this machine, or by a cluster's workers; return their rows, and facts about them."""
    if client is None:
        return LocalRows.read(model, paths, options, reporter)
    return ClusterRows.read(cluster.waiting(client), model, paths, options, reporter)


def _part(reference: Reference, path: str, options: Options) -> Part:
    return part_of(reference.model(), path, options)


def _stepped(step: Step, reference: Reference, point: Any, part: Part) -> Any:
    return step(reference.model(), point, part)


def _facts_of(model: Model, point: None, part: Part) -> Facts:
    return facts_of(model, part)


def _of_rows(step: Step, model: Model, point: Any, part: Part) -> Any:
    return step(model, point, part.data)
