"""Where the rows of files are: on this machine, or in the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
from bayeszoo.foundation.progress import Reporter
from bayeszoo.model.base import Model
from bayeszoo.model.chunks import none_of
from bayeszoo.model.find import Reference
from bayeszoo.model.many_files import cluster
from bayeszoo.model.many_files.files import naming
from bayeszoo.model.many_files.rows import Held, Step

_HOW = ("delimiter", "decimal", "encoding", "header")
"""Options of a file that a table no longer needs."""


class Part(NamedTuple):
    """The rows of a file, and the names of its sequences or documents, where a column holds them or they are rows."""

    data: Data
    names: Sequence[str]
    numbered: int = 0  # of rows called by their numbers in the table: how many it has


class About(NamedTuple):
    """Facts about the rows of a file, kept where the rows are not."""

    like: Data  # none of the rows, nor their names
    rows: int
    lengths: np.ndarray | None  # of sequences: how many rows each has
    names: Sequence[str]
    numbered: int
    digest: str
    notes: tuple[str, ...]


def part_of(model: Model, path: str, options: Mapping[str, Any]) -> Part:
    """Read a file that is one of several; errors name it."""
    with naming(path):
        table = read_table(path, **{name: options[name] for name in _HOW if name in options})
        data = read(model, table, **options)
        named = data.columns.get(SEQUENCE, data.columns.get(DOCUMENT))
        if (own := model.inputs.row_names) is not None:
            return Part(data, data[own].tolist(), 0 if named else table.rows)
        return Part(data, () if named is None else code(table[named]).labels)


def about(model: Model, part: Part) -> About:
    """Describe the rows of a file."""
    data, inputs = part.data, model.inputs
    lengths = np.bincount(data[SEQUENCE]) if isinstance(inputs, Series) else None
    like = none_of(inputs, data)
    if (own := inputs.row_names) is not None:
        like = replace(like, arrays={**like, own: np.zeros(0, dtype=str)})
    return About(like, inputs.size(data), lengths, part.names, part.numbered, data.digest, data.notes)


class Here:
    """The rows of files on this machine."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts

    @classmethod
    def read(
        cls, model: Model, paths: Sequence[str], options: Mapping[str, object], reporter: Reporter
    ) -> tuple[Held, list[About]]:
        """Read the files one after the other."""
        parts = []
        for done, path in enumerate(paths, start=1):
            parts.append(part_of(model, path, options))
            reporter.progress("files", done, len(paths))
        return cls(parts), [about(model, part) for part in parts]

    def each(self, step: Step, model: Model, ats: Iterable[Any]) -> list[Any]:
        """Return what a step gives of each file."""
        return [step(model, at, part.data) for part, at in zip(self._parts, ats, strict=True)]


class There:
    """The rows of files in the workers of a Dask cluster; those of a worker that ends are read again by another."""

    def __init__(self, client: Any, paths: Sequence[str], parts: Sequence[Any]) -> None:
        self._client, self._paths, self._parts = client, paths, parts

    @classmethod
    def read(
        cls, client: Any, model: Model, paths: Sequence[str], options: Mapping[str, object], reporter: Reporter
    ) -> tuple[Held, list[About]]:
        """Let the workers read the files, which the futures of this object keep there."""
        reference = Reference.of(model)
        held = cls(client, paths, [client.submit(_part, reference, path, options, pure=False) for path in paths])
        asked = held._submitted(_about, model, [None] * len(paths))
        for done, _ in enumerate(cluster.as_completed(asked), start=1):
            reporter.progress("files", done, len(paths))
        return held, held._results(asked)

    def each(self, step: Step, model: Model, ats: Iterable[Any]) -> list[Any]:
        """Return what a step gives of each file."""
        return self._results(self._submitted(partial(_of_rows, step), model, ats))

    def _submitted(self, step: Step, model: Model, ats: Iterable[Any]) -> list[Any]:
        reference, submit = Reference.of(model), self._client.submit
        with cluster.without_size_warning():
            return [
                submit(_stepped, step, reference, at, part, pure=False)
                for at, part in zip(ats, self._parts, strict=True)
            ]

    def _results(self, asked: Sequence[Any]) -> list[Any]:
        return [cluster.result(future, path) for future, path in zip(asked, self._paths, strict=True)]


def held_rows(
    model: Model, paths: Sequence[str], options: Mapping[str, object], client: Any, reporter: Reporter
) -> tuple[Held, list[About]]:
    """Read files here, or by the workers of a cluster; return the holder of their rows, and facts about them."""
    if client is None:
        return Here.read(model, paths, options, reporter)
    return There.read(cluster.waiting(client), model, paths, options, reporter)


def _part(reference: Reference, path: str, options: Mapping[str, Any]) -> Part:
    return part_of(reference.model(), path, options)


def _stepped(step: Step, reference: Reference, at: Any, part: Part) -> Any:
    return step(reference.model(), at, part)


def _about(model: Model, at: None, part: Part) -> About:
    return about(model, part)


def _of_rows(step: Step, model: Model, at: Any, part: Part) -> Any:
    return step(model, at, part.data)
