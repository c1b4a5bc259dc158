"""The base of every kind of input."""

from __future__ import annotations

import csv
import itertools
import shlex
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bayeszoo.data.inputs.labels import Arrays, repeated, text_of
from bayeszoo.data.table.cells import Numbers
from bayeszoo.data.table.read import columns_of_matrix, is_frame, read_table
from bayeszoo.data.table.table import Column, Table, are_numbers, escaped, quoted, shown
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Options

_MOST_POSSIBLE = 5000
_MOST_GROUPS = 12

_TELLING = ("count", "exposure")
"""Names of columns that get a note if no option uses them."""


KEPT = ("scales", "coding", "lags")
"""The fields of `Parsed` that `Data.reading` keeps, so that further rows are read in the same way."""


@dataclass(frozen=True, eq=False)
class Parsed:
    """The canonical arrays, the outcome first; the user's columns for each role; and notes on all changes.

    ``outcomes`` are the labels of a binary outcome that are 0 (empty if none is) and 1; ``scales`` the divisors of
    columns; ``coding`` how features became columns of numbers, if these are not columns of the table; ``lags`` their
    number, and the end of each sequence.
    """

    arrays: dict[str, np.ndarray]
    columns: dict[str, str]
    notes: tuple[str, ...] = ()
    outcomes: tuple[str, str] | None = None
    scales: dict[str, float] = field(default_factory=dict)
    coding: dict[str, Any] = field(default_factory=dict)
    lags: dict[str, Any] = field(default_factory=dict)

    @property
    def reading(self) -> Options:
        """The fields of `KEPT` that are not empty."""
        return {name: value for name in KEPT if (value := getattr(self, name))}


class Layout(NamedTuple):
    """The coordinates, axes and codes of the canonical arrays of a kind of input."""

    coords: tuple[str, ...] = ()
    """The coordinates: arrays of text that label an axis other than the rows, or name the rows."""
    dims: Mapping[str, tuple[str, ...]] = {}
    """The further axes of arrays, after that of the rows."""
    coded: Mapping[str, str] = {}
    """The coordinate with the labels, for each array of codes."""
    forms: tuple[set[str], ...] = ()
    """The sets of names of canonical arrays; only kinds with coordinates need them."""


class Inputs(ABC):
    """The content that the table of a model must have.

    The first axis of canonical arrays is that of the data rows, except for coordinates: arrays of text that label other
    axes. (Kinds whose rows have several entries, such as the words of a document, describe their arrays.) Every method
    is a pure function.
    """

    name: str
    """The model's name of the outcome, by default that of the textbook. Kinds with labels also name their ``axis``,
    regressions their ``features``."""

    options: frozenset[str]
    """The names of the options that `parse` accepts."""

    lists: frozenset[str] = frozenset()
    """The options that hold several names: a list, or text with commas."""

    elsewhere: Mapping[str, str] = {}
    """A hint for each option that only other models have."""

    treatments: tuple[str, ...] = ("refuse", "drop")
    """The values that `missing` may have."""

    row_names: str | None = None
    """The coordinate that names the rows, if any; other coordinates label other axes."""

    entries: tuple[str, ...] = ()
    """Arrays with several entries for a row, such as words of a document: their first axis is not that of the rows."""

    needs: ClassVar[tuple[str, str] | None] = None
    """The quantity that further rows need, such as their exposure, and its columns; None if they need none."""

    is_in_order: ClassVar[bool] = False
    """Whether rows are in order of time, and a column may name sequences of them."""

    on_groups: str = "`fit --by {}` fits each group separately"
    """What to do about an unused column that may name groups of rows, a format string for the column."""

    layout: Layout = Layout()
    """Coordinates, axes and codes of the canonical arrays."""

    holds: str
    """The content of the table in one line, a format string for ``{0}``, the inputs."""

    @property
    def coords(self) -> tuple[str, ...]:
        """The names of the coordinates."""
        return self.layout.coords

    @property
    def dims(self) -> Mapping[str, tuple[str, ...]]:
        """The further axes of arrays, after that of the rows."""
        return self.layout.dims

    @property
    def coded(self) -> Mapping[str, str]:
        """The coordinate with the labels, for each array of codes."""
        return self.layout.coded

    def parse(
        self, table: Table, missing: str = "refuse", new: bool = False, like: Arrays | None = None, **options: Any
    ) -> Parsed:
        """Check a table and convert it to arrays; an option that is None counts as absent.

        In `new` rows, which are to be predicted, labels get the codes that they have in `like`, the arrays of the fit,
        and the outcome may be absent if the model does not need it. A table without the content that the model needs
        raises `InputError`.
        """
        chosen = self._checked_options(table, missing, options)
        parsed = self._parse_new(table, missing, chosen, like) if new else self._parse(table, missing, chosen, None)
        return self._with_notes(parsed, table, new)

    def _with_notes(self, parsed: Parsed, table: Table, new: bool = False) -> Parsed:
        """Add the notes on the table, and on columns that are not used."""
        used = {name for names in parsed.columns.values() for name in names.split(", ")}
        unused = [name for name in _TELLING if name in self.options and name in table.columns and name not in used]
        notes = (f"{table[name]} is not used; use it with --{name} {name}" for name in unused)
        unused_columns = [column for name, column in table.columns.items() if name not in used]
        may_name_groups = unused_columns if not new and not self.is_in_order else []
        pooled = (_about_groups(column, self.on_groups) for column in may_name_groups)
        return replace(parsed, notes=(*table.notes, *parsed.notes, *notes, *filter(None, pooled)))

    @abstractmethod
    def _parse(self, table: Table, missing: str, options: Options, like: Arrays | None) -> Parsed: ...

    def _parse_new(self, table: Table, missing: str, options: Options, like: Arrays | None) -> Parsed:
        return self._parse(table, missing, options, like)

    def _checked_options(self, table: Table, missing: str, options: Options) -> Options:
        chosen = {name: value for name, value in options.items() if value is not None}
        for name in sorted(chosen.keys() - self.options):
            others = [f"--{other.replace('_', '-')}" for other in sorted(self.options)]
            hint = self.elsewhere.get(name, f"use {'one of ' * (len(others) > 1)}{', '.join(others)}")
            raise InputError(f"there is no option {shown(name)} for these data", "unknown_option", hint=hint)
        if missing not in self.treatments:
            hints = {"impute": "`bayeszoo fit` takes it, in Python bz.read_incomplete"}
            hints |= {"mask": "missing cells are not integrated out of these data"}
            problem = f"missing must be {' or '.join(map(repr, self.treatments))}, got {shown(missing)}"
            raise InputError(problem, "wrong_type", hint=hints.get(missing))
        if not table.rows:
            raise InputError(f"no data rows in {table.name}" if table.name else "no data rows", "no_data")
        return {
            name: (names_in if name in self.lists else _single_value)(name, value) for name, value in chosen.items()
        }

    def own_table(self, source: Any, decimal: str) -> Table | None:
        """Read a Python object that only this kind of input understands; return None to leave it to `read_table`."""
        return None

    def is_canonical(self, names: Iterable[object]) -> bool:
        """Say whether a mapping with these names holds canonical arrays and coordinates, and not a user's columns."""
        return set(map(str, names)) in self.layout.forms

    def canonical(self, arrays: Mapping[str, object], missing: str = "") -> Parsed:
        """Check data with canonical names, such as ``{"y": [0, 1]}``, as strictly as a file.

        Data without coordinates are checked as a table. By default masks are allowed if this kind of input has them.
        """
        missing = missing or ("mask" if "mask" in self.treatments else "refuse")
        return self._canonical(arrays, missing) if self.is_canonical(arrays) else self._as_table(arrays, missing)

    def _as_table(self, arrays: Mapping[str, object], missing: str) -> Parsed:
        return self.parse(self.own_table(arrays, ".") or read_table(arrays), missing)

    def _canonical(self, arrays: Mapping[str, object], missing: str) -> Parsed:
        """Check arrays and coordinates in one of the forms of the layout; kinds without forms read a table."""
        return self._as_table(arrays, missing)

    def table(self, arrays: Arrays) -> dict[str, np.ndarray]:
        """Return the columns of a table from which `parse`, with the options of `reading`, makes `arrays`."""
        return dict(arrays)

    def reading(self, arrays: Arrays) -> Options:
        """Return the options with which `parse` makes `arrays` from their table, as few as possible."""
        return {}

    def has_outcome(self, arrays: Arrays) -> bool:
        """Say whether rows hold their outcome; rows to be predicted may lack it."""
        return self.name in arrays

    def unseen(self, arrays: Arrays, rows: int) -> dict[str, np.ndarray]:
        """Return further observations with the labels of a fit, and unknown outcomes as 0; refuse rows with `needs`."""
        if self.needs is not None:
            raise further_rows_need(*(text.format(self) for text in self.needs))
        size = (rows, *(len(arrays[axis]) for axis in self.dims.get(self.name, ())))
        kind = arrays[self.name].dtype if self.name in arrays else np.int64
        return {self.name: np.zeros(size, kind), **{axis: arrays[axis] for axis in self.coords}}

    def other_forms(self, arrays: Arrays) -> list[dict[str, np.ndarray]]:
        """Return the same outcomes in other forms of table, for the checks of a model."""
        return []

    def possible(self, arrays: Arrays | None = None) -> Iterator[dict[str, np.ndarray]] | None:
        """Yield every data set of a few observations; return None if there are infinitely many."""
        return None

    def size(self, arrays: Arrays) -> int:
        """Return the number of rows."""
        return len(self.outcome(arrays))

    def split(self, arrays: Arrays, at: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Split the rows into those before index `at` and those from it on."""
        rows = np.arange(self.size(arrays))
        return self.reordered(arrays, rows[:at]), self.reordered(arrays, rows[at:])

    def reordered(self, arrays: Arrays, permutation: np.ndarray) -> dict[str, np.ndarray]:
        """Return the rows at the indices `permutation`, in its order."""
        return {name: values if name in self.coords else values[permutation] for name, values in arrays.items()}

    def without(self, arrays: Arrays, row: int) -> dict[str, np.ndarray]:
        """Return all rows but one."""
        return self.reordered(arrays, np.delete(np.arange(self.size(arrays)), row))

    def alike(self, arrays: Arrays) -> np.ndarray:
        """Return a number for each row, equal for equal rows."""
        values = (np.asarray(values) for name, values in arrays.items() if name not in self.coords)
        _, place = np.unique(np.hstack([v.reshape(len(v), -1) for v in values]), axis=0, return_inverse=True)
        return np.ravel(place)

    def features_of(self, arrays: Arrays) -> dict[str, Any]:
        """Return the values of the first row by name, as in the user's table."""
        return {name: values[0] for name, values in self.table(arrays).items()}

    def relabelled(self, arrays: Arrays, axis: str, permutation: np.ndarray) -> dict[str, np.ndarray]:
        """Return the same data with the labels of `axis` in the order of `permutation`, and new codes.

        The code -1 of missing labels stays.
        """
        place = np.argsort(permutation)
        codes = (name for name in arrays if self.coded.get(name) == axis)
        moved = {**arrays, **{name: np.where(arrays[name] < 0, -1, place[arrays[name]]) for name in codes}}
        for name in arrays.keys() & self.dims.keys():
            if axis in self.dims[name]:
                moved[name] = np.take(moved[name], permutation, axis=1 + self.dims[name].index(axis))
        return {**moved, axis: arrays[axis][permutation]}

    def outcome(self, arrays: Arrays) -> np.ndarray:
        """Return the array whose distribution the model describes, shape (rows,) or (rows, labels)."""
        return arrays[self.name]

    def indicators(self, arrays: Arrays, codes: np.ndarray, axis: str) -> np.ndarray:
        """Return codes (rows,) as indicators of the labels of an axis, (rows, labels)."""
        return np.asarray(codes[:, None] == np.arange(len(arrays[axis])), dtype=np.float64)

    def observations(self, arrays: Arrays) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return the distinct single observations as rows, and their counts; by default every row once."""
        return dict(arrays), np.ones(self.size(arrays), dtype=np.int64)

    def describe(self) -> str:
        """Return one line about the content that the table must have."""
        return self.holds.format(self)


class Measured(Inputs):
    """Real numbers with a unit and an origin; the outcome is the array `name`."""

    def in_units(self, arrays: Arrays, factor: float, shift: float = 0.0) -> dict[str, np.ndarray]:
        """Return the data with every outcome y as ``factor * y + shift``."""
        return {**arrays, self.name: factor * arrays[self.name] + shift}


def _about_groups(column: Column, advice: str) -> str:
    """Return a note if an unused column may name groups of rows: it has few words, most of them repeated."""
    words = _few_words(column)
    if not 2 <= len(words) <= len(column) // 2 or are_numbers(column):
        return ""
    names = quoted(sorted(words))
    unused = f"{column} ({names}) is not used: all rows are taken together"
    return "; ".join(filter(None, [unused, advice.format(listing([column.name]))]))


def _few_words(column: Column) -> set[str]:
    """Return the distinct words in a column; empty if there are many, or if all cells are numbers."""
    words = set[str]()
    for value in () if isinstance(column.cells, Numbers) else column.values:
        words.add(str(value).strip())
        if len(words) > _MOST_GROUPS:
            return set()
    return words


def _single_value(name: str, value: object) -> str:
    if isinstance(value, list | tuple | set | dict | np.ndarray):
        raise InputError(f"{name} takes one value, got a {type(value).__name__}", "wrong_type")
    return text_of(value)


def names_in(name: str, value: object) -> list[str]:
    """Read a list of names: a Python list, or text from the command line."""
    if isinstance(value, str):
        value = next(csv.reader([value], skipinitialspace=True), [])
    if hasattr(value, "tolist"):  # as the columns of a frame of pandas have
        value = value.tolist()
    if not isinstance(value, list | tuple):
        raise InputError(f"{name} must be a list of names, got {shown(value)}", "wrong_type")
    names = [text_of(item) for item in value]
    if not all(names) or not names:
        raise InputError(f"{name} holds an empty name" if names else f"{name} is empty", "empty_name")
    twice = repeated(names)
    if twice is not None:
        raise InputError(f"{name}: {shown(twice)} appears twice", "duplicate_name")
    return names


def columns_of(
    name: str, source: object, axis: str, labels: np.ndarray | None = None, decimal: str = "."
) -> list[Column]:
    """Return the columns of a two-dimensional object, named by the labels of an axis.

    Without labels they have the names of their data frame, or numbers, such as ``x1`` for the matrix ``X``.
    """
    columns = columns_of_matrix(name, source, decimal)
    names = [column.name for column in columns]
    wanted = names if is_frame(source) else [f"{name.lower()}{i + 1}" for i in range(len(names))]
    wanted = wanted if labels is None else labels.tolist()
    if len(names) != len(wanted):
        raise InputError(f"{name} has {len(names)} columns, but there are {len(wanted)} labels", "wrong_shape")
    if is_frame(source) and wanted != names:
        raise InputError(f"{name} has columns {quoted(names)}, {axis} holds {quoted(wanted)}", "labels_differ")
    if not len(columns[0]):
        raise InputError("no data rows", "no_data")
    return [replace(column, name=label) for label, column in zip(wanted, columns, strict=True)]


def further_rows_need(quantity: str, columns: str) -> InputError:
    """Return the error of further rows that are asked for by their number alone."""
    return InputError(f"further rows need {quantity}", "new_rows_unknown", hint=f"give a table with {columns}")


def every_code(labels: int) -> Iterator[np.ndarray]:
    """Yield every sequence of four codes; with too many of them, of three, two or one."""
    length = max((n for n in range(1, 5) if labels**n <= _MOST_POSSIBLE), default=1)
    return (np.array(codes) for codes in itertools.product(range(labels), repeat=length))


def group_starts(rows: int) -> np.ndarray:
    """Return where groups of one, two, three, ... rows start."""
    starts = np.cumsum(np.arange(rows))
    return starts[starts < rows]


def distinct_pairs(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the distinct pairs of two columns, as two arrays, and the count of each."""
    firsts, i = np.unique(first, return_inverse=True)
    seconds, j = np.unique(second, return_inverse=True)
    pairs, times = np.unique(i * len(seconds) + j, return_counts=True)
    return firsts[pairs // max(len(seconds), 1)], seconds[pairs % max(len(seconds), 1)], times


def listing(names: Iterable[str]) -> str:
    """Return at most ten names as the value of an option, quoted as a shell needs it."""
    names = list(names)
    return shlex.quote(",".join(map(escaped, names[:10])) + ",..." * (len(names) > 10))
