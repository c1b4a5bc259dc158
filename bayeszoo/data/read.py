"""The data that a model is fitted to: read, checked, frozen, and identified by a digest."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from os import PathLike
from pathlib import PurePath
from typing import Any, Protocol

import numpy as np

from bayeszoo.data.inputs import NAMES, Arrays, Corpus, Inputs, Parsed, Series, labels_of_rows
from bayeszoo.data.inputs.base import KEPT
from bayeszoo.data.inputs.features.formula import refuse_other_coding
from bayeszoo.data.inputs.labels import OUTCOMES, outcomes_of, refuse_other_labels, refuse_other_outcomes
from bayeszoo.data.inputs.matrix import refuse_other_scales, scales_of
from bayeszoo.data.table.delimited import PACKED
from bayeszoo.data.table.folder import table_of
from bayeszoo.data.table.kept import rows_kept
from bayeszoo.data.table.read import read_table
from bayeszoo.data.table.table import Table, shown
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Options

_DEFAULTS = {"missing": "refuse", "delimiter": None, "decimal": ".", "encoding": "utf-8", "header": True}
_ROWLESS = {"Accumulated": "only statistics were kept", "FileRows": "they are in files", "Incomplete": "some have gaps"}


@dataclass(frozen=True)
class Example:
    """A real data set that comes with a model.

    Parameters
    ----------
    file : str
        Its file in the folder ``data`` next to the model, such as ``paris_births.csv``; it may be packed by gzip.
    about : str
        Description, in a sentence.
    source : str
        Its publication.
    options : mapping of str to str or list
        The options of `read` that its columns need.
    """

    file: str
    about: str
    source: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The file's name without its suffixes."""
        return PurePath(self.file.removesuffix(PACKED)).stem


class HasInputs(Protocol):
    """The attributes of a model, or of its class, that `read` needs."""

    @property
    def inputs(self) -> Inputs:
        """The content that the model's table must have."""

    @property
    def examples(self) -> tuple[Example, ...]:
        """The data sets that come with the model, the default first; may be empty."""

    @property
    def labels(self) -> Mapping[str, tuple[str, ...]]:
        """The labels of the entries of its hyperparameters, by axis; may be empty."""


@dataclass(frozen=True, eq=False)
class Data(Mapping[str, np.ndarray]):
    """Arrays that a model accepts, and their origin.

    A mapping of names to read-only arrays with one row for each data row, except coordinates, which label other axes.
    The arrays are copies: later changes of the user's arrays have no effect. Data are equal if their digests are.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        The arrays, with the model's names for them, the outcome first.
    source : str
        The base name of their file, or the kind of their object.
    columns : mapping of str to str
        The user's column for each role.
    notes : tuple of str
        Changes made to the data, and remarks on them.
    checked_for : tuple, optional
        The inputs that checked the arrays, and whether they are rows to be predicted. `read` checks data again that
        were made by hand or for another model.
    reading : mapping of str to object, optional
        The arguments of `read`, ready for JSON: ``from``, one of "file", "example" and "memory"; the ``options`` that
        are not defaults; and the ``inputs``. Empty if these arguments would not give the data again. Also
        ``outcomes``, the labels of a binary outcome that are 0 and 1; ``scales``, the divisors of columns; ``coding``,
        how features became columns of numbers; and ``times`` of sequences, the ``column`` with the time of each row of
        the table, and its ``values``.
    row_numbers : ndarray of int, optional
        The numbers of these rows in the table, from 1, if others were dropped; by default all rows, in order.
    """

    arrays: Mapping[str, np.ndarray]
    source: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    checked_for: tuple[Inputs, bool] | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)
    row_numbers: np.ndarray | None = None

    def __post_init__(self) -> None:
        arrays = {name: np.array(values) for name, values in self.arrays.items()}
        for values in arrays.values():
            values.setflags(write=False)
        object.__setattr__(self, "arrays", arrays)
        object.__setattr__(self, "columns", dict(self.columns))
        object.__setattr__(self, "reading", dict(self.reading))

    def __getitem__(self, name: str) -> np.ndarray:
        return self.arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)

    def __eq__(self, other: object) -> bool:
        return self.digest == other.digest if isinstance(other, Data) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        arrays = ", ".join(f"{name}: {values.dtype} {values.shape}" for name, values in self.arrays.items())
        return f"Data({arrays}; from {self.source or 'arrays'})"

    @property
    def rows(self) -> int:
        """The number of data rows."""
        names = self.checked_for[0].row_names if self.checked_for else None
        return len(next(iter(self.arrays.values()), ()) if names is None else self.arrays[names])

    @property
    def numbers(self) -> np.ndarray:
        """The number of each row in the user's table, from 1."""
        return np.arange(1, self.rows + 1) if self.row_numbers is None else self.row_numbers

    @cached_property
    def digest(self) -> str:
        """SHA-256 of names, types, shapes and bytes of the arrays with entries, whatever their origin."""
        state = hashlib.sha256()
        for name, values in sorted(item for item in self.arrays.items() if item[1].size):
            state.update(f"{name}\0{values.dtype.str}\0{values.shape}\0".encode())
            state.update(np.ascontiguousarray(values))
        return state.hexdigest()


def read(
    model: HasInputs,
    source: Any = None,
    /,  # some inputs have an option that is called source
    *,
    missing: str = "refuse",
    delimiter: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    header: bool = True,
    new: bool = False,
    like: Arrays | None = None,
    **options: Any,
) -> Data:
    r"""Read and check the data for a model.

    Nothing is dropped, imputed, rescaled, relabelled or converted unless an option asks for it, and `Data.notes` lists
    every change. Messages name options as the command line does: ``--positive yes`` is ``positive="yes"`` here.

    Parameters
    ----------
    model : Model or class
        The model, or its class, whose `inputs` say what the table must hold.
    source : path, data frame, mapping or array-like, optional
        A ``.csv``, ``.tsv``, ``.txt`` (each may be packed by gzip, as ``.csv.gz``) or ``.parquet`` file; a pandas,
        polars or pyarrow table; a mapping of names to sequences; one sequence, array or series of shape (n,) or (n, 1);
        or a two-dimensional array or list of rows, whose columns are called ``1``, ``2``, ...; for documents a folder
        of ``.txt`` files, or a pattern, ``letters/*.txt``. The model's first example by default. Canonical arrays and
        coordinates, as from ``simulate``, and `Data` read for another kind of model are checked as strictly.
    missing : {"refuse", "drop", "mask"}
        The treatment of rows without a value in a used column. Rows of sequences cannot be dropped, but may be masked:
        the row stays, and its observation is unknown.
    delimiter : str, optional
        The character between the cells of a text file; a comma by default, a tab in ``.tsv`` files.
    decimal : {".", ","}
        The decimal mark of numbers in text.
    encoding : str
        The encoding of a text file. A byte order mark is accepted.
    header : bool
        Whether the first line of a text file names the columns.
    new : bool
        Whether these are rows to be predicted, whose outcome may be absent.
    like : mapping of str to ndarray, optional
        The data of the fit that predicts the rows; labels get the codes that they have there.
    **options : str or list of str
        Options in ``model.inputs.options``: the columns to use, and the meaning of their values.

    Returns
    -------
    Data
        Read-only arrays with one row for each data row, and a digest that identifies them.

    Raises
    ------
    InputError
        When the data cannot be used exactly as they are. The error has `column`, `rows` (from 1, below the header) and
        `hint`.

    Examples
    --------
    >>> from bayeszoo.data.inputs import Binary
    >>> class Coin:
    ...     inputs = Binary("y")
    ...     examples, labels = (), {}
    >>> data = read(Coin, {"won": ["yes", "no", "yes"]}, positive="yes")
    >>> data["y"]
    array([1, 0, 1])
    >>> data.notes
    ("column 'won': 'no' is 0, 'yes' is 1",)
    """
    form = {"delimiter": delimiter, "decimal": decimal, "encoding": encoding, "header": header}
    data = _read(model, source, missing, form, new, like, options)
    if like is None:  # rows of a fit may have groups of their own
        refuse_other_labels(model.labels, data)
    else:
        refuse_other_outcomes(outcomes_of(like), source if isinstance(source, Data) else data)
        refuse_other_scales(scales_of(like), source if isinstance(source, Data) else data)
        refuse_other_coding(like, source)
    return data


def _read(
    model: HasInputs,
    source: Any,
    missing: str,
    form: Mapping[str, Any],
    new: bool,
    like: Arrays | None,
    options: Options,
) -> Data:
    inputs = model.inputs
    if why := _ROWLESS.get(type(source).__name__):
        raise InputError(f"this needs the rows, and {why}", "needs_rows", hint="bz.fit works without them")
    if isinstance(source, Data):
        return _checked_again(source, inputs, new, like)
    arguments = reading_of(inputs, source, {**form, "missing": missing, **options})
    reading = {} if new or like is not None else arguments  # new rows need the fit as well
    if not options and isinstance(source, Mapping) and inputs.is_canonical(source):
        data = data_of(inputs.canonical(source, missing), type(source).__name__, inputs, new, reading)
        return _checked_again(data, inputs, new, like)
    if source is None:
        table, defaults = example_table(model, None)
        options = {**defaults, **options}
        treatment = options.pop("missing", missing)  # of the example, unless the caller chose another
        missing = treatment if missing == "refuse" else missing
    else:
        table = inputs.own_table(source, form["decimal"]) or table_of(source, "text" in inputs.options, **form)
        options = {**_as_in_the_fit(inputs, like, table, options), **options}
    parsed, name = inputs.parse(table, missing, new, like, **options), table.name or type(source).__name__
    reading |= labels_of_rows(table, parsed) if isinstance(inputs, Series) else {}
    del table  # before the arrays are copied
    return data_of(parsed, name, inputs, new, reading)


def data_of(parsed: Parsed, name: str, inputs: Inputs, new: bool, reading: Options) -> Data:
    """Return the parsed data, with their row numbers in the table."""
    reading = reading | ({} if parsed.outcomes is None else {OUTCOMES: list(parsed.outcomes)}) | parsed.reading
    data = Data(parsed.arrays, name, parsed.columns, parsed.notes, (inputs, new), reading)
    kept = rows_kept(parsed.notes)
    return data if kept is None or inputs.row_names or len(kept) != data.rows else replace(data, row_numbers=kept)


def _as_in_the_fit(inputs: Inputs, like: Arrays | None, table: Table, options: Options) -> Options:
    """Return options that name the columns of the fit, where new rows have them too."""
    if not isinstance(like, Data):
        return {}
    of_fit = like.reading.get("options", {})
    if not {name for name, value in options.items() if value is not None} - {"positive"} <= of_fit.keys():
        return {}  # the rows have another form
    name = getattr(inputs, "name", "")
    outcome = {} if name in inputs.options else {"column": like.columns.get(name)}
    used = of_fit if isinstance(inputs, Corpus) else {**outcome, **like.columns, **of_fit}
    names = (inputs.options - inputs.lists) & used.keys() - {"positive"}
    return {name: used[name] for name in names if used[name] in table.columns}


def reading_of(inputs: Inputs, source: object, options: Options, **more: object) -> Options:
    """Return the options of reading, ready for JSON, as `Data.reading` keeps them."""
    place = "example" if source is None else "file" if isinstance(source, str | PathLike) else "memory"
    named = {name: value for name, value in options.items() if value is not None}
    chosen = {name: value for name, value in named.items() if name not in _DEFAULTS or value != _DEFAULTS[name]}
    return {"from": place, "options": {n: _plain(v) for n, v in chosen.items()}, "inputs": repr(inputs), **more}


def _plain(value: object) -> Any:
    """Return the value of an option in a form that JSON can store and `read` understands."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(item) for item in value]
    value = value.item() if isinstance(value, np.generic) else value
    is_kept = isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))
    return value if is_kept else str(value)


def _checked_again(data: Data, inputs: Inputs, new: bool, like: Arrays | None) -> Data:
    """Check data by the rules of `inputs`, unless they were checked, with the codes of `like`."""
    labels = [name for name in inputs.coords if name != inputs.row_names]
    has_codes = like is None or (like.keys() == data.keys() and all(np.array_equal(like[n], data[n]) for n in labels))
    if has_codes and data.checked_for == (inputs, new):
        return data
    if has_codes and inputs.is_canonical(data):
        parsed = inputs.canonical(data.arrays)
    else:
        # read their table: codes mean nothing to another kind of inputs
        made_by = data.checked_for[0] if data.checked_for else inputs
        table = read_table(made_by.table(data.arrays))
        parsed = inputs.parse(table, "mask" if "mask" in inputs.treatments else "refuse", new, like)
    notes = dict.fromkeys((*data.notes, *parsed.notes))
    reading = data.reading if has_codes and not new and data.reading.get("inputs") == repr(inputs) else {}
    checked = Data(parsed.arrays, data.source, data.columns, tuple(notes), (inputs, new), reading)
    return replace(checked, row_numbers=data.row_numbers) if checked.rows == data.rows else checked


def example(model: HasInputs, name: str | None = None, **options: object) -> Data:
    """Read a data set that comes with a model.

    Parameters
    ----------
    model : Model or class
        The model, or its class.
    name : str, optional
        The name of the example; the first by default.
    **options
        Options of `read`, in addition to those that the example needs, such as ``scale=True``.

    Returns
    -------
    Data

    Raises
    ------
    InputError
        When the model has no example with the name.
    """
    table, defaults = example_table(model, name)
    data = read(model, table, **{**defaults, **options})
    of_rows = {name: data.reading[name] for name in (OUTCOMES, "times", NAMES, *KEPT) if name in data.reading}
    return replace(data, reading=reading_of(model.inputs, None, options, **of_rows))


def own_example(model: HasInputs, source: str, digest: str) -> Example | None:
    """Return the example of a model with this file name and digest, or None."""
    candidates = (item for item in model.examples if item.file.removesuffix(PACKED) == source)
    return next((item for item in candidates if _digest_of_example(_class_of(model), item.name) == digest), None)


@lru_cache(maxsize=64)
def _digest_of_example(kind: HasInputs, name: str) -> str | None:
    try:
        return example(kind, name).digest
    except (InputError, OSError):  # the file of a plug-in may be missing
        return None


def example_table(model: HasInputs, name: str | None = None) -> tuple[Table, dict[str, Any]]:
    """Return the table of a model's example, by default the first, and the options of reading that it needs."""
    if not model.examples:
        raise InputError(f"{_class_of(model).__name__} comes with no example", "no_example", hint="give the data")
    by_name = {item.name: item for item in model.examples}
    chosen = model.examples[0] if name is None else by_name.get(name)
    if chosen is None:
        problem = f"{_class_of(model).__name__} has no example {shown(name)}"
        raise InputError(problem, "unknown_name", hint=f"it has {', '.join(by_name)}")
    with resources.as_file(_folder(model) / chosen.file) as path:
        return read_table(path), dict(chosen.options)


def _class_of(model: HasInputs) -> type:
    return model if isinstance(model, type) else type(model)


def _folder(model: HasInputs) -> Traversable:
    """Return the folder ``data`` next to the module of the class that lists the examples."""
    model_class = _class_of(model)
    owner = next((c for c in model_class.__mro__ if "examples" in vars(c)), model_class)
    return resources.files(owner.__module__.rpartition(".")[0] or owner.__module__) / "data"
