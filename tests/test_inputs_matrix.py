"""Columns of real numbers keep their names, and none is used that holds no numbers."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

from bayeszoo.data.inputs import Matrix, Real
from bayeszoo.data.read import read
from bayeszoo.data.table.read import read_table
from bayeszoo.errors import InputError


class Vectors:
    inputs = Matrix("Y")
    examples = ()


def plain(data):
    return {name: values.tolist() for name, values in data.items()}


TABLES = {
    "mapping": {"a": [1, 2], "b": ["3", "4.0"]},
    "pandas": pd.DataFrame({"a": [1, 2], "b": [3.0, 4.0]}, index=[7, 5]),
    "polars": pl.DataFrame({"a": [1, 2], "b": [3.0, 4.0]}),
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES.keys())
def test_columns(table):
    data = read(Vectors, table)
    assert plain(data) == {"Y": [[1.0, 3.0], [2.0, 4.0]], "column": ["a", "b"]}
    assert (data["Y"].dtype, data["Y"].flags.c_contiguous, data.rows) == (np.float64, True, 2)
    assert (data.columns, data.notes) == ({"Y": "a, b"}, ())
    assert read(Vectors, table, columns="b,a")["Y"].tolist() == [[3.0, 1.0], [4.0, 2.0]]
    assert plain(read(Vectors, table, columns=["b"])) == {"Y": [[3.0], [4.0]], "column": ["b"]}


@pytest.mark.parametrize("rows", [np.array([[1, 2], [3, 4]]), [[1, 2], (3, 4.0)], [np.array([1, 2]), np.array([3, 4])]])
def test_rows_without_names(rows):
    assert plain(read(Vectors, rows)) == {"Y": [[1.0, 2.0], [3.0, 4.0]], "column": ["1", "2"]}


def test_one_column_and_one_row_and_equal_rows():
    assert plain(read(Vectors, [5])) == {"Y": [[5.0]], "column": ["y"]}
    assert read(Vectors, np.array([[5], [5]]))["Y"].tolist() == [[5.0], [5.0]]


def test_rows_with_holes():
    table = {"a": [1, None, 3], "b": [1, 2, np.nan], "c": [1, 2, 3]}
    data = read(Vectors, table, missing="drop")
    assert data["Y"].tolist() == [[1.0, 1.0, 1.0]]
    assert data.notes == ("2 rows with missing values dropped (rows 2, 3)",)
    assert read(Vectors, table, columns="c").rows == 3


def test_subnormal_numbers_are_noted():
    assert read(Vectors, {"a": [1, 2], "b": [1e-320, 1]}).notes == ("column 'b' spans 1e-320..1.0",)


CHOOSE = "; choose columns of numbers: --columns a"
REFUSED = {
    "text": ({"a": [1, 2], "b": ["1", "x"]}, {}, "column 'b', row 2: 'x' is not a number" + CHOOSE),
    "dates": ({"a": [1], "b": [datetime.date(2020, 1, 1)]}, {}, "column 'b' holds dates" + CHOOSE),
    "bool": ({"b": [True], "a": [1]}, {}, "column 'b' holds true/false, not numbers" + CHOOSE),
    "complex": ({"a": [1], "b": [1j]}, {}, "column 'b' is complex" + CHOOSE),
    "comma": ({"a": ["1"], "b": ["1,5"]}, {}, "column 'b', row 1: '1,5' is not a number; use --decimal ','"),
    "only text": ({"b": ["x"]}, {}, "column 'b', row 1: 'x' is not a number"),
    "chosen text": ({"a": [1], "b": ["x"]}, {"columns": "b"}, "column 'b', row 1: 'x' is not a number"),
    "infinite": ({"a": [1], "b": [np.inf]}, {}, "column 'b', row 1: inf is too large"),
    "large": ({"a": [1], "b": [1e300]}, {}, "column 'b', row 1: 1e+300 is too large to square; rescale the column"),
    "missing": ({"a": [1, 2], "b": [1, None]}, {}, "column 'b': 1 missing value (row 2); use --missing drop"),
    "complementary": (
        {"a": [1, None], "b": [None, 1]},
        {"missing": "drop"},
        "no row has a value in every column that is used",
    ),
    "unknown": ({"a": [1]}, {"columns": "z"}, "the table has no column 'z'; its columns are 'a'"),
    "twice": ({"a": [1]}, {"columns": "a,a"}, "columns: 'a' appears twice"),
    "option": ({"a": [1]}, {"column": "a"}, "unknown option 'column'; accepted are columns"),
    "three dimensions": (np.zeros((2, 2, 2)), {}, "column 'y' has shape (2, 2, 2), one dimension expected"),
    "no rows": (np.zeros((0, 2)), {}, "no data rows"),
}


@pytest.mark.parametrize(("table", "options", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_tables_that_are_refused(table, options, message):
    with pytest.raises(InputError) as caught:
        read(Vectors, table, **options)
    assert str(caught.value) == message


LIKE = {"Y": np.zeros((1, 2)), "column": np.array(["a", "b"])}


def test_new_rows_have_the_columns_of_the_fit_in_its_order():
    data = read(Vectors, {"b": [2], "a": [1]}, new=True, like=LIKE)
    assert plain(data) == {"Y": [[1.0, 2.0]], "column": ["a", "b"]}
    more = {"b": [2], "z": [0], "a": [1]}
    assert read(Vectors, more, new=True, like=LIKE, columns="b,a")["Y"].tolist() == [[1.0, 2.0]]
    with pytest.raises(InputError, match=r"^column 'z' is not among the 2 of the fit; use --columns a,b$"):
        read(Vectors, more, new=True, like=LIKE)
    with pytest.raises(InputError, match=r"^there is no column 'a', which the fit has$"):
        Matrix("Y").parse_new(read_table({"b": [2]}), LIKE)


def test_methods():
    inputs = Matrix("X", "feature")
    arrays = {"X": np.array([[1.0, 2.0], [3.0, 4.0]]), "feature": np.array(["a", "b"])}
    rows, times = inputs.observations(arrays)
    assert (plain(rows), times.tolist()) == (plain(arrays), [1, 1])
    assert inputs.outcome(arrays) is arrays["X"]
    assert inputs.dims == {"X": ("feature",)}
    moved = inputs.in_units(arrays, -2, np.array([1, 0]))
    assert plain(moved) == {"X": [[-1.0, -4.0], [-5.0, -8.0]], "feature": ["a", "b"]}
    assert inputs.unseen(arrays, 3)["X"].shape == (3, 2)
    assert inputs.possible() is None
    assert "--columns" in inputs.describe()


# One column of several


def refusal(source, **options):
    with pytest.raises(InputError) as caught:
        Real().parse(read_table(source), **options)
    return caught.value


@pytest.mark.parametrize("source", [np.array([[1.0, 2.0], [3.0, 4.0]]), [[1, 2.0], (3, 4)], [np.array([1, 2])] * 2])
def test_rows_become_numbered_columns(source):
    assert str(refusal(source)) == "the table has columns '1', '2'; say which with --column"
    assert Real().parse(read_table(source), column="2").arrays["y"][0] == 2.0


def test_rows_keep_their_types_and_their_lengths():
    assert (
        str(refusal([[1, "b"], [2, "c"]], column="2")) == "column '2', row 1: 'b' is not a number (and 1 more: row 2)"
    )
    assert Real().parse(read_table([[1, "b"], [2, "c"]]), column="1").arrays["y"].tolist() == [1.0, 2.0]
    assert str(refusal([[1, 2], [3]])) == "column 'y' is ragged: its rows have different lengths"
    masked = np.ma.array([[1, 2], [3, 4]], mask=[[0, 0], [0, 1]])
    assert "1 missing value (row 2)" in str(refusal(masked, column="2"))
