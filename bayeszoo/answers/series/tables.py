"""Tables of rows in time: by row, or by step after each sequence."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.data.inputs import NAMES, starts
from bayeszoo.data.inputs.sequences.times import times_after
from bayeszoo.data.read import Data
from bayeszoo.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


_TAKEN = ("row", "sequence", "state", "viterbi", "level", "sd", "filtered", "withheld", "log_score")
"""Columns of tables in time, whose names no column of times takes."""


def sequences(data: Data, steps: int | None = None) -> dict[str, np.ndarray]:
    """Return the name or number of each row's sequence, or of each step after its end; nothing for a single one."""
    sequence = data["sequence"]
    numbers = sequence if steps is None else np.repeat(sequence[starts(sequence)], steps)
    return {"sequence": names_of(data)[numbers]} if sequence.any() else {}


def names_of(data: Data) -> np.ndarray:
    """Return the names of the sequences, else their numbers from 1."""
    count = int(data["sequence"].max(initial=0)) + 1
    names = data.reading.get(NAMES, ())
    return np.array(names, dtype=object) if len(names) == count else np.arange(1, count + 1)


def times_of(data: Data) -> dict[str, np.ndarray]:
    """Return the time of each row under the name of its column; nothing if unknown."""
    times = data.reading.get("times")
    if times is None or times["column"] in _TAKEN or len(times["values"]) != data.rows:
        return {}
    return {times["column"]: np.array(times["values"], dtype=object)}


def times_ahead(data: Data, steps: int) -> dict[str, np.ndarray]:
    """Return the times of the steps after each sequence, under the name of their column; nothing if unknown."""
    times = data.reading.get("times")
    if times is None or times["column"] in _TAKEN:
        return {}
    begins = [*starts(data["sequence"]), data.rows]
    times_of_sequences = [times_after(times["values"][begin:end], steps) for begin, end in itertools.pairwise(begins)]
    if not all(len(sequence_times) == steps for sequence_times in times_of_sequences):
        return {}
    return {times["column"]: np.array([*itertools.chain(*times_of_sequences)], dtype=object)}


def with_times(frame: pd.DataFrame, columns: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """Return a table that begins with the columns of times, unless it has columns of these names."""
    for place, name in enumerate(name for name in columns if name not in frame):
        frame.insert(place, name, columns[name])
    return frame


def frame_of(
    columns: Mapping[str, Any], name: str, about: Mapping[str, object], every: int | None = None
) -> pd.DataFrame:
    """Return the table with attributes ``about``; its index starts at 1 again after ``every`` rows."""
    import pandas as pd

    size = len(next(iter(columns.values())))
    frame = pd.DataFrame(dict(columns), index=pd.Index(np.arange(size) % (every or size) + 1, name=name))
    frame.attrs.update(about)
    return frame


def whole_number(value: object, least: int, noun: str) -> int:
    """Return a number of steps or paths, or raise `InputError`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"the number of {noun} must be >= {least}, got {value!r}", "out_of_range")
    return int(value)
