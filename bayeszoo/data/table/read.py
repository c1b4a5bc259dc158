"""Tables from files, data frames, mappings and arrays."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Mapping, Set, ValuesView
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from bayeszoo.data.table.cells import EXACT
from bayeszoo.data.table.delimited import delimited_parts
from bayeszoo.data.table.limits import refuse_columns, refuse_rows
from bayeszoo.data.table.table import Column, Table, escaped, refuse_duplicates, shown
from bayeszoo.errors import InputError


def read_table(
    source: Any, *, delimiter: str | None = None, decimal: str = ".", encoding: str = "utf-8", header: bool = True
) -> Table:
    """Read a table from a file, a data frame, a mapping of columns, or a sequence of values, as for `bz.read`.

    Examples
    --------
    >>> read_table({"y": [0, 1, 1]}).rows
    3
    """
    if isinstance(source, str | os.PathLike):
        (table,) = read_parts(source, None, delimiter=delimiter, decimal=decimal, encoding=encoding, header=header)
        return table
    _check_decimal(decimal)
    return source if isinstance(source, Table) else _from_memory(source, decimal)


def read_parts(
    source: str | os.PathLike[str],
    rows: int | None,
    *,
    delimiter: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    header: bool = True,
) -> Generator[Table]:
    """Read a file as tables of ``rows`` rows, the last perhaps shorter, one in memory at a time; None for one table.

    The columns of a part have the number of rows before it; those of a file in one part have none. Content that cannot
    be read exactly is refused, at once or when its part is read.
    """
    _check_decimal(decimal)
    path = Path(source)
    if not os.path.isfile(path):  # a folder, a pipe (which would block), a URL, or nothing
        raise InputError(
            f"{'not a regular file' if path.exists() else 'there is no file'}: {escaped(path)}", "no_such_file"
        )
    if path.suffix.lower() == ".parquet":
        return _parquet_parts(path, decimal, rows)
    return delimited_parts(path, delimiter, decimal, encoding, header, rows)


def _check_decimal(decimal: str) -> None:
    if decimal not in (".", ","):
        raise InputError(f"decimal must be '.' or ',', got {shown(decimal)}", "wrong_type")


def _from_memory(source: Any, decimal: str) -> Table:
    columns = source if isinstance(source, Mapping) else _columns_of_records(source)
    if columns is not None:
        return _from_mapping(columns, decimal)
    return _from_frame("", source, decimal) if is_frame(source) else _from_sequence(source, decimal)


def _columns_of_records(source: object) -> dict[Any, Any] | None:
    """Return the columns of a structured array, or of mappings, one a row; None for other objects."""
    if isinstance(source, np.ndarray) and source.dtype.names:
        return {name: source[name] for name in source.dtype.names}
    if not isinstance(source, list | tuple) or not source or not all(isinstance(row, Mapping) for row in source):
        return None
    names = source[0].keys()
    if other := next((place for place, row in enumerate(source, 1) if row.keys() != names), None):
        raise InputError(
            f"row {other} has other names than row 1", "ragged", rows=[other], hint="name all in every row"
        )
    return {name: [row[name] for row in source] for name in names}


def _from_sequence(source: object, decimal: str, name: str = "y") -> Table:
    """Return a table with one column of single values, or a column for each entry of rows."""
    columns = _columns_of(source, name)
    names = ["y"] if len(columns) == 1 else [str(i + 1) for i in range(len(columns))]
    return Table("", {name: to_column(name, cells, decimal) for name, cells in zip(names, columns, strict=True)})


def _columns_of(source: object, name: str) -> list[Any]:
    if isinstance(source, list | tuple) and source and all(issubclass(kind, list | tuple) for kind in _types(source)):
        widths = {len(row) for row in source}
        if len(widths) > 1:
            raise _ragged(name)
        # without an array, as numpy would turn the rows [1, "b"] into text
        return [source] if widths == {0} else [list(cells) for cells in zip(*source, strict=True)]
    if isinstance(source, list | tuple | range) and not any(isinstance(row, np.ndarray) for row in source[:1]):
        return [source]
    if _categories(source) is not None:
        return [source]
    array = _array(name, source)
    return list(array.T) if array.ndim == 2 and array.shape[1] > 1 else [array]


def _from_mapping(source: Mapping[object, object], decimal: str) -> Table:
    refuse_duplicates([str(name) for name in source])
    columns = {str(name): to_column(str(name), values, decimal) for name, values in source.items()}
    return Table("", columns, different_indexes(source))


def different_indexes(source: Mapping[object, object]) -> tuple[str, ...]:
    """Return a note on objects of pandas with different indexes; other objects have none."""
    pandas = {name: values for name, values in source.items() if hasattr(values, "reindex")}  # or xarray
    indexes = {str(name): values.index for name, values in pandas.items() if hasattr(values, "index")}
    first, *others = indexes or [""]
    other = next((name for name in others if not indexes[name].equals(indexes[first])), None)
    note = f"{escaped(first)} and {escaped(other)} have different indexes; rows matched by position"
    return () if other is None else (note,)


def _from_frame(name: str, source: Any, decimal: str) -> Table:
    import narwhals as nw

    source = _native(source)
    labels = [str(label) for label in getattr(source, "column_names", source.columns)]
    refuse_duplicates(labels)
    frame = nw.from_native(source, eager_only=True)
    series = dict(zip(labels, frame.iter_columns(), strict=True))
    return Table(name, {label: to_column(label, values, decimal) for label, values in series.items()})


def _native(source: Any) -> Any:
    """Return a frame of pandas, polars, pyarrow or their like, with the names of columns that the object has."""
    if _is_labelled(source):
        return source.to_pandas()
    if type(source).__name__ == "RecordBatch":
        import pyarrow

        return pyarrow.Table.from_batches([source])
    return source


def _is_labelled(source: Any) -> bool:
    """Say whether an object is an array of xarray whose second axis has labels."""
    return type(source).__name__ == "DataArray" and source.ndim == 2 and source.dims[1] in source.coords


def _parquet_parts(path: Path, decimal: str, rows: int | None) -> Generator[Table]:
    """Read a Parquet file as tables of ``rows`` rows, or as one table."""
    import pyarrow
    import pyarrow.parquet as parquet

    try:
        # an open file, as pyarrow would take a path as a URL or a partitioned folder too
        with path.open("rb") as file:
            opened = parquet.ParquetFile(file)
            count, labels = opened.metadata.num_rows, _categoricals(opened.schema_arrow)
            refuse_columns(escaped(path.name), opened.metadata.num_columns)
            if rows is None or count <= rows:
                refuse_rows(escaped(path.name), count, opened.metadata.num_columns)
                yield _labelled(_from_frame(escaped(path.name), opened.read(), decimal), labels)
                return
            before = 0
            for batch in opened.iter_batches(rows):
                table = _from_frame(escaped(path.name), pyarrow.Table.from_batches([batch]), decimal)
                table = _labelled(table, labels)
                columns = {name: replace(column, before=before) for name, column in table.columns.items()}
                yield replace(table, columns=columns)
                before += table.rows
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):  # `InputError` is a ValueError
            raise
        raise InputError(
            f"{escaped(path.name)} is not a readable Parquet file: {escaped(error)}", "unreadable_file"
        ) from None


def _categoricals(schema: Any) -> set[str]:
    """Return the columns that pandas wrote as categoricals; Parquet stores them as plain integers."""
    columns = (schema.pandas_metadata or {}).get("columns", [])
    return {column["name"] for column in columns if column["pandas_type"] == "categorical"}


def _labelled(table: Table, labels: set[str]) -> Table:
    """Mark columns whose values are labels."""
    columns = table.columns.items()
    return replace(
        table, columns={name: replace(c, is_categorical=True) if name in labels else c for name, c in columns}
    )


def is_frame(source: object) -> bool:
    """Say whether the columns of an object have names: a frame of pandas, polars, pyarrow or their like, or of xarray.

    One that is not computed yet is refused.
    """
    if _is_labelled(source):
        return True
    if not hasattr(type(source), "columns"):  # before narwhals is imported
        return False
    import narwhals as nw

    if nw.dependencies.is_into_dataframe(_native(source)):
        return True
    if isinstance(nw.from_native(source, pass_through=True), nw.LazyFrame):
        problem = f"a {type(source).__name__} that is not computed yet cannot be read"
        raise InputError(problem, "wrong_type", hint="call its .collect() or .compute()")
    return False


def has_two_dimensions(source: object) -> bool:
    """Say whether an object has rows and columns: a data frame, an array, or a list of sequences."""
    if isinstance(source, list | tuple):
        return bool(source) and all(issubclass(kind, list | tuple | np.ndarray) for kind in _types(source))
    return getattr(source, "ndim", None) == 2 or is_frame(source)


def columns_of_matrix(name: str, source: object, decimal: str) -> list[Column]:
    """Return the columns of a two-dimensional object, named as by `read_table`; messages call it `name`."""
    if not has_two_dimensions(source):
        raise InputError(f"{name} does not have two dimensions", "wrong_shape", hint="give it a row for each outcome")
    if getattr(source, "shape", (1, 1))[1] == 0:
        raise InputError(f"{name} has no columns", "missing_column")
    table = read_table(source, decimal=decimal) if is_frame(source) else _from_sequence(source, decimal, name)
    return list(table.columns.values())


def to_column(name: str, values: object, decimal: str = ".") -> Column:
    """Return a column of a sequence of values: text as a list, other values as an array."""
    if (labels := _categories(values)) is not None:
        column = to_column(name, labels, decimal)
        return replace(column, is_categorical=not {bool, np.bool_, type(None)} >= set(map(type, labels)))
    if isinstance(values, list) and set(map(type, values)) == {str}:
        return Column(name, values.copy(), decimal)
    array = _array(name, values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError(
            f"column {shown(name)} has shape {array.shape}, one dimension expected", "wrong_shape", column=name
        )
    if isinstance(array, np.ma.MaskedArray):
        array = _packed(name, array.tolist(), object) if np.ma.is_masked(array) else array.data
    if array.dtype.kind == "U":
        return Column(name, array.tolist(), decimal)
    if array.dtype.kind != "O":
        return Column(name, array, decimal)
    cells = array.tolist()
    if set(map(type, cells)) == {str}:  # before slower checks
        return Column(name, cells, decimal)
    cells = [None if _is_missing(cell) else cell for cell in cells]
    if set(map(type, cells)) <= {str, type(None)}:
        return Column(name, [cell or "" for cell in cells], decimal)
    array = np.empty(len(cells), dtype=object)
    array[:] = cells
    return Column(name, array, decimal)


def _categories(values: Any) -> list[Any] | None:
    """Return the values of a categorical, None where missing; return None for other objects."""
    if isinstance(values, list | tuple | range | np.ndarray | str | bytes | Mapping):
        return None
    import narwhals as nw

    series = nw.from_native(values, series_only=True, pass_through=True)
    native = series.to_native() if isinstance(series, nw.Series) else values
    if (
        str(getattr(native, "dtype", "")) == "category"
    ):  # of pandas, which makes floats of integers if a value is missing
        return [None if _is_missing(cell) else cell for cell in native.astype(object)]
    is_categorical = isinstance(series, nw.Series) and series.dtype in (nw.Categorical, nw.Enum)
    return series.to_list() if is_categorical else None


def _array(name: str, values: object) -> np.ndarray:
    if isinstance(values, np.ndarray):
        return values if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
    if hasattr(values, "toarray"):
        raise InputError(
            f"column {shown(name)} is a sparse matrix", "wrong_type", column=name, hint="pass its .toarray()"
        )
    if isinstance(values, str | bytes | Mapping | Set | ValuesView) or not hasattr(values, "__len__"):
        kind = type(values).__name__
        raise InputError(
            f"column {shown(name)} is a {kind}; a sequence of values was expected", "wrong_type", column=name
        )
    if isinstance(values, list | tuple):
        # numpy would turn [1, "b"] into text and [True, 0.5] into 1.0 and 0.5.
        types = set(map(type, values))
        mixed = len(types) > 1 and not types <= {int, float}
        array = _packed(name, values, object if mixed else None)
        has_ints = int in types or (np.ndarray in types and any(row.dtype.kind in "iu" for row in values))
        is_changed = has_ints and array.dtype.kind == "f" and bool((np.abs(array) >= EXACT).any())
        return _packed(name, values, object) if is_changed else array
    import narwhals as nw

    series = nw.from_native(values, series_only=True, pass_through=True)
    if not isinstance(series, nw.Series):
        type_of = getattr(
            values, "dtype", np.dtype(object)
        )  # an array of pandas makes floats of integers if a value is missing
        is_nullable = not isinstance(type_of, np.dtype) and getattr(type_of, "kind", "") in ("i", "u")
        return _packed(name, values, object if is_nullable else None)
    is_wide = series.dtype in (nw.Int128, nw.UInt128) or isinstance(series.dtype, nw.Decimal)
    if is_wide or (series.dtype.is_integer() and series.null_count()):
        return _packed(name, series.to_list(), object)  # as floats, integers above 2**53 would change
    return _clock(series) if getattr(series.dtype, "time_zone", None) else series.to_numpy()


def _clock(series: Any) -> np.ndarray:
    """Return times with a zone by its clock if this shows one time of day, else in UTC, as text with Z."""
    local = series.dt.replace_time_zone(None).to_numpy()
    if len(np.unique(local - local.astype("datetime64[D]"))) < 2:
        return np.asarray(local)
    moments = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None).to_numpy()
    seconds = moments.astype("datetime64[s]")
    shortest = seconds if np.all((seconds == moments) | np.isnat(moments)) else moments
    return np.array([None if np.isnat(moment) else f"{moment}Z" for moment in shortest], object)


def _types(values: Iterable[object]) -> set[type]:
    return set(map(type, values))


def _packed(name: str, values: object, dtype: type | None) -> np.ndarray:
    try:
        return np.asarray(values, dtype=dtype)
    except ValueError:
        raise _ragged(name) from None


def _ragged(name: str) -> InputError:
    return InputError(f"column {shown(name)} is ragged: its rows have different lengths", "ragged", column=name)


def _is_missing(cell: object) -> bool:
    # By name, so that pandas need not be imported to recognise its NA and NaT.
    if cell is None or type(cell).__name__ in ("NAType", "NaTType", "MaskedConstant"):
        return True
    return isinstance(cell, float | np.floating | Decimal) and bool(cell != cell)
