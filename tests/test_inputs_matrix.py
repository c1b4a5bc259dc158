"""Columns of real numbers keep their names, and none is used that holds no numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from bayeszoo.data.inputs import Matrix, Real
from bayeszoo.data.read import read
from bayeszoo.data.table.read import read_table
from bayeszoo.errors import InputError
from tests.reading import by_name, model_of, plain, refusal, refuses

NO_ROW = "no row has a value in every column that is used"

Vectors = model_of(Matrix("Y"))


TABLES = {
    "mapping": {"a": [1, 2], "b": ["3", "4.0"]},
    "pandas": pd.DataFrame({"a": [1, 2], "b": [3.0, 4.0]}, index=[7, 5]),
    "polars": pl.DataFrame({"a": [1, 2], "b": [3.0, 4.0]}),
}


@by_name("table", TABLES)
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


CHOOSE = "; choose columns of numbers: --columns a"
REFUSED = {
    "text": ({"a": [1, 2], "b": ["1", "x"]}, {}, "column 'b', row 2: 'x' is not a number" + CHOOSE),
    "comma": ({"a": ["1"], "b": ["1,5"]}, {}, "column 'b', row 1: '1,5' is not a number; use --decimal ','"),
    "chosen text": ({"a": [1], "b": ["x"]}, {"columns": "b"}, "column 'b', row 1: 'x' is not a number"),
    "large": ({"a": [1], "b": [1e300]}, {}, "column 'b', row 1: 1e+300 is too large to square; rescale the column"),
    "complementary": ({"a": [1, None], "b": [None, 1]}, {"missing": "drop"}, NO_ROW),
    "option": ({"a": [1]}, {"column": "a"}, "unknown option 'column'; accepted are columns"),
    "no rows": (np.zeros((0, 2)), {}, "no data rows"),
}
test_tables_that_are_refused = refuses(Vectors, REFUSED)


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


# One column of several


REAL = model_of(Real())


@pytest.mark.parametrize("source", [np.array([[1.0, 2.0], [3.0, 4.0]]), [[1, 2.0], (3, 4)], [np.array([1, 2])] * 2])
def test_rows_become_numbered_columns(source):
    assert str(refusal(REAL, source)) == "the table has columns '1', '2'; say which with --column"
    assert Real().parse(read_table(source), column="2").arrays["y"][0] == 2.0


def test_rows_keep_their_types_and_their_lengths():
    assert (
        str(refusal(REAL, [[1, "b"], [2, "c"]], column="2"))
        == "column '2', row 1: 'b' is not a number (and 1 more: row 2)"
    )
    assert Real().parse(read_table([[1, "b"], [2, "c"]]), column="1").arrays["y"].tolist() == [1.0, 2.0]
    assert str(refusal(REAL, [[1, 2], [3]])) == "column 'y' is ragged: its rows have different lengths"
    masked = np.ma.array([[1, 2], [3, 4]], mask=[[0, 0], [0, 1]])
    assert "1 missing value (row 2)" in str(refusal(REAL, masked, column="2"))
