"""An outcome and its features: which columns they are, what is refused, and what the data cannot tell apart."""

from __future__ import annotations

import csv
import datetime
import io
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn.datasets import load_diabetes

from bayeszoo.cli.options import TableOptions
from bayeszoo.cli.verbs.models import table_csv
from bayeszoo.data.inputs import Matrix, Regression
from bayeszoo.data.read import Data, read
from bayeszoo.data.table.read import read_table
from bayeszoo.errors import InputError

DATA = Path(__file__).resolve().parents[1] / "models" / "data"
INPUTS = Regression("y")


class Line:
    inputs = INPUTS
    examples = ()
    name = "line"


def plain(data):
    return {name: values.tolist() for name, values in data.items()}


def same(found, expected):
    assert list(found) == list(expected)
    assert {name: (v.dtype.kind, v.shape, v.tolist()) for name, v in found.items()} == {
        name: (v.dtype.kind, v.shape, v.tolist()) for name, v in expected.items()
    }


def refusal(source, model=Line, **options):
    with pytest.raises(InputError) as caught:
        read(model, source, **options)
    return caught.value


# Tables

COLUMNS = {"a": [1, 2, 4], "y": [5, 6, 8], "b": [0.5, 0, 1]}
TABLES = {
    "mapping": COLUMNS,
    "text": {name: list(map(str, values)) for name, values in COLUMNS.items()},
    "pandas": pd.DataFrame(COLUMNS, index=[7, 5, 6]),
    "polars": pl.DataFrame(COLUMNS),
    "arrow": pa.table(COLUMNS),
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES.keys())
def test_the_outcome_is_y_and_all_other_columns_are_features(table):
    data = read(Line, table)
    expected = {"y": [5.0, 6.0, 8.0], "X": [[1.0, 0.5], [2.0, 0.0], [4.0, 1.0]], "feature": ["a", "b"]}
    assert plain(data) == expected
    assert list(data) == ["y", "X", "feature"]
    assert (data["y"].dtype, data["X"].dtype, data["X"].flags.c_contiguous) == (np.float64, np.float64, True)
    assert (data.rows, data.notes) == (3, ())
    assert data.columns == {"y": "y", "X": "a, b"}


def test_options_choose_columns():
    data = read(Line, COLUMNS, target="b")
    assert (data["y"].tolist(), data["feature"].tolist()) == ([0.5, 0.0, 1.0], ["a", "y"])
    assert data.columns == {"y": "b", "X": "a, y"}
    assert plain(read(Line, COLUMNS, features="b,a")) == plain(read(Line, COLUMNS, features=["b", "a"]))
    assert read(Line, COLUMNS, features="b,a")["X"].tolist() == [[0.5, 1.0], [0.0, 2.0], [1.0, 4.0]]
    assert read(Line, COLUMNS, target="a", features=("y",))["X"].tolist() == [[5.0], [6.0], [8.0]]
    assert read(Line, {"x, 1": [1, 2], "y": [1, 2], "z": [0, 1]}, features='"x, 1"')["feature"].tolist() == ["x, 1"]
    with_text = {**COLUMNS, "place": ["p", "q", "r"]}
    assert read(Line, with_text, features="a")["feature"].tolist() == ["a"]


def test_other_names_of_the_arrays():
    inputs = Regression("t", "Phi", "term")
    data = read(SimpleNamespace(inputs=inputs, examples=()), {"t": [1, 2, 3], "a": [1, 2, 4]})
    assert list(data) == ["t", "Phi", "term"]
    assert (inputs.coords, inputs.dims) == (("term",), {"Phi": ("term",)})
    pair = read(SimpleNamespace(inputs=inputs, examples=()), (np.array([[1.0], [2.0]]), [1, 3]))
    assert pair["term"].tolist() == ["phi1"]


def test_rows_with_holes_are_dropped_from_both():
    table = {"a": [1, None, 3, 4, 6], "y": [1, 2, np.nan, 4, 7], "b": [1, 2, 3, 5, 4], "unused": [None] * 5}
    data = read(Line, table, missing="drop", features="a,b")
    assert (data["y"].tolist(), data["X"].tolist()) == ([1.0, 4.0, 7.0], [[1.0, 1.0], [4.0, 5.0], [6.0, 4.0]])
    assert data.notes == ("2 rows with missing values dropped (rows 2, 3)",)
    error = refusal(table, features="a,b")
    assert str(error) == "column 'y': 1 missing value (row 3); use --missing drop"
    assert (error.column, error.rows, error.hint) == ("y", (3,), "use --missing drop")


CHOOSE = "; choose columns of numbers: --features a"
A_AND_B = {"y": [1, 2], "a": [1, 3]}
REFUSED = {
    "no target": (
        {"a": [1], "b": [2]},
        {},
        "the table has columns 'a', 'b' and none called 'y'; say which with --target",
    ),
    "unknown target": (COLUMNS, {"target": "z"}, "the table has no column 'z'; its columns are 'a', 'y', 'b'"),
    "unknown feature": (COLUMNS, {"features": "a,z"}, "the table has no column 'z'; its columns are 'a', 'y', 'b'"),
    "both": (
        COLUMNS,
        {"features": "a,y"},
        "column 'y' is both the outcome and a feature; leave it out of --features, or say which is the outcome "
        "with --target",
    ),
    "both by option": (
        COLUMNS,
        {"target": "a", "features": "a"},
        "column 'a' is both the outcome and a feature; leave it out of --features, or say which is the outcome "
        "with --target",
    ),
    "twice": (COLUMNS, {"features": "a,a"}, "features: 'a' appears twice"),
    "empty name": (COLUMNS, {"features": "a,"}, "features holds an empty name"),
    "no names": (COLUMNS, {"features": []}, "features is empty"),
    "two targets": (COLUMNS, {"target": ["a", "b"]}, "target takes one value, got a list"),
    "other option": (COLUMNS, {"columns": "a"}, "unknown option 'columns'; accepted are features, target"),
    "no feature": (
        {"y": [1, 2]},
        {},
        "there is no feature: column 'y' is the only one; give a table with columns beside it",
    ),
    "one column": ([1, 2], {}, "there is no feature: column 'y' is the only one; give a table with columns beside it"),
    "text": ({**A_AND_B, "b": ["1", "x"]}, {}, "column 'b', row 2: 'x' is not a number" + CHOOSE),
    "labels": ({**A_AND_B, "b": ["u", "v"]}, {}, "column 'b', row 1: 'u' is not a number (and 1 more: row 2)" + CHOOSE),
    "objects": ({**A_AND_B, "b": [object(), 1]}, {}, None),
    "chosen text": ({**A_AND_B, "b": ["1", "x"]}, {"features": "a,b"}, "column 'b', row 2: 'x' is not a number"),
    "text outcome": ({"y": ["1", "x"], "a": [1, 2]}, {}, "column 'y', row 2: 'x' is not a number"),
    "only text": ({"y": [1], "a": ["x"]}, {}, "column 'a', row 1: 'x' is not a number"),
    "dates": ({**A_AND_B, "b": [datetime.date(2020, 1, 1)] * 2}, {}, "column 'b' holds dates" + CHOOSE),
    "date outcome": ({"y": np.array(["2020-01-01"], dtype="M8[D]"), "a": [1]}, {}, "column 'y' holds dates"),
    "bool": ({**A_AND_B, "b": [True, False]}, {}, "column 'b' holds true/false, not numbers" + CHOOSE),
    "bool outcome": ({"y": [True, False], "a": [1, 2]}, {}, "column 'y' holds true/false, not numbers"),
    "complex": ({**A_AND_B, "b": [1j, 2]}, {}, "column 'b' is complex" + CHOOSE),
    "complex outcome": ({"y": np.array([1j, 2]), "a": [1, 2]}, {}, "column 'y' is complex"),
    "decimal comma": (
        {**A_AND_B, "b": ["1,5", "2"]},
        {},
        "column 'b', row 1: '1,5' is not a number; use --decimal ','",
    ),
    "infinite": ({**A_AND_B, "b": [1, np.inf]}, {}, "column 'b', row 2: inf is too large"),
    "infinite outcome": ({"y": [-np.inf], "a": [1]}, {}, "column 'y', row 1: -inf is too large"),
    "large": (
        {**A_AND_B, "b": [1, 1e300]},
        {},
        "column 'b', row 2: 1e+300 is too large to square; rescale the column",
    ),
    "large outcome": (
        {"y": [1, -1e200], "a": [1, 2]},
        {},
        "column 'y', row 2: -1e+200 is too large to square; rescale the column",
    ),
    "missing": ({**A_AND_B, "b": [np.nan, 1]}, {}, "column 'b': 1 missing value (row 1); use --missing drop"),
    "None": ({**A_AND_B, "b": [None, 1]}, {}, "column 'b': 1 missing value (row 1); use --missing drop"),
    "NA": (
        {**A_AND_B, "b": pd.Series([None, 1], dtype="Int64")},
        {},
        "column 'b': 1 missing value (row 1); use --missing drop",
    ),
    "masked": (
        {**A_AND_B, "b": np.ma.array([1, 2], mask=[0, 1])},
        {},
        "column 'b': 1 missing value (row 2); use --missing drop",
    ),
    "all missing": ({**A_AND_B, "b": [None, None]}, {}, "column 'b' has no values"),
    "all missing, dropped": ({**A_AND_B, "b": [None, None]}, {"missing": "drop"}, "column 'b' has no values"),
    "complementary": (
        {"y": [1, None], "a": [None, 1]},
        {"missing": "drop"},
        "no row has a value in every column that is used",
    ),
    "no rows": ({"y": [], "a": []}, {}, "no data rows"),
    "empty frame": (pd.DataFrame(), {}, "no data rows"),
    "lengths": ({"y": [1, 2], "a": [1]}, {}, "y has 2 rows, a has 1"),
    "ragged": ({"y": [1, 2], "a": [[1], [2, 3]]}, {}, "column 'a' is ragged: its rows have different lengths"),
    "sparse": (
        {"y": [1, 2], "a": scipy.sparse.csr_array(np.eye(2))},
        {},
        "column 'a' is a sparse matrix; pass its .toarray()",
    ),
    "three dimensions": (
        np.zeros((2, 2, 2)),
        {},
        "column 'y' has shape (2, 2, 2), one dimension expected",
    ),
}


@pytest.mark.parametrize(("table", "options", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_tables_that_are_refused(table, options, message):
    found = str(refusal(table, **options))
    if message is None:  # an object is shown by its address
        assert found.startswith("column 'b', row 1: <object object at 0x")
        assert found.endswith(" is not a number" + CHOOSE)
    else:
        assert found == message


def test_many_usable_columns_are_listed_in_part():
    table = {"y": [1, 2], "id": ["u", "v"], **{f"c{i}": [i, i * i] for i in range(12)}}
    listing = "c0,c1,c2,c3,c4,c5,c6,c7,c8,c9,..."
    expected = (
        f"column 'id', row 1: 'u' is not a number (and 1 more: row 2); choose columns of numbers: --features {listing}"
    )
    assert str(refusal(table)) == expected


FILES = {
    "one field too many": ("y,a\n1,2,3\n", {}, "data.csv: row 1 has 3 fields, the header has 2"),
    "one field too few": ("y,a,b\n1,2,3\n1,2\n", {}, "data.csv: row 2 has 2 fields, the header has 3"),
    "names twice": ("y,a,a\n1,2,3\n", {}, "column name 'a' appears twice (columns 2 and 3)"),
    "thousands": ('y,a\n1,"1,000"\n', {}, "column 'a', row 1: '1,000' is not a number"),
    "percent": ("y,a\n1,10%\n", {}, "column 'a', row 1: '10%' is not a number"),
    "hexadecimal": ("y,a\n1,0x1F\n", {}, "column 'a', row 1: '0x1F' is not a number"),
    "date": ("y,a\n1,2020-01-01\n", {}, "column 'a', row 1: '2020-01-01' is not a number"),
    "too large": ("y,a\n1,1e400\n", {}, "column 'a', row 1: '1e400' is too large"),
    "truth": ("y,a\nTRUE,1\nFALSE,2\n", {}, "column 'y', row 1: 'TRUE' is not a number (and 1 more: row 2)"),
    "hole": ("y,a\n1,2\n2,\n3,NA\n", {}, "column 'a': 2 missing values (rows 2, 3); use --missing drop"),
    "header only": ("y,a\n", {}, "no data rows in data.csv"),
    "no outcome": ("a,b\n1,2\n", {}, "data.csv has columns 'a', 'b' and none called 'y'; say which with --target"),
    "no header": (
        "1,2\n3,4\n",
        {"header": False},
        "data.csv has columns '1', '2' and none called 'y'; say which with --target",
    ),
    "no such column": ("a,b\n1,2\n", {"target": "c"}, "data.csv has no column 'c'; its columns are 'a', 'b'"),
}


@pytest.mark.parametrize(("text", "options", "message"), FILES.values(), ids=FILES.keys())
def test_files_that_are_refused(tmp_path, text, options, message):
    path = tmp_path / "data.csv"
    path.write_text(text)
    assert str(refusal(path, **options)) == message


def test_files_that_are_read(tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(b"\xef\xbb\xbfkm/h;y\r\n1,5;2\r\n2,5;4\r\n")
    data = read(Line, path, delimiter=";", decimal=",")
    assert plain(data) == {"y": [2.0, 4.0], "X": [[1.5], [2.5]], "feature": ["km/h"]}
    path.write_text("1,2,3\n4,5,7\n6,7,8\n")
    data = read(Line, path, header=False, target="3", features="2,1")
    assert plain(data)["X"] == [[2.0, 1.0], [5.0, 4.0], [7.0, 6.0]]


# Notes


def notes(table, **options):
    return read(Line, table, **options).notes


SUM = "only the sum of their coefficients is identified by the data"
NOISE = [0.3, -1.2, 2.5, 0.1, 4.0, -3.3, 0.9, 1.1]
OTHER = [1.0, 0.0, 2.0, 7.0, -1.0, 3.0, 2.0, 5.0]
MINUS = [-x for x in NOISE]
Y8 = [1.0, 2.0, 4.0, 3.0, 9.0, 1.0, 0.0, 2.0]
NOTED = {
    "constant": (
        {"x1": NOISE, "x2": [3] * 8},
        ["column 'x2' is constant (3): its coefficient is not told apart from an intercept"],
    ),
    "constant zeros": (
        {"x1": NOISE, "x2": [0.0, -0.0] * 4},
        ["column 'x2' is constant (0): its coefficient is not told apart from an intercept"],
    ),
    "two constants": (
        {"x1": [0.1] * 8, "x2": [0.1] * 8},  # not told to be identical, too
        [
            "column 'x1' is constant (0.1): its coefficient is not told apart from an intercept",
            "column 'x2' is constant (0.1): its coefficient is not told apart from an intercept",
        ],
    ),
    "identical": ({"x1": NOISE, "x2": OTHER, "x3": NOISE}, [f"columns 'x1' and 'x3' are identical: {SUM}"]),
    "identical but for signs of zeros": (
        {"x1": [0.0, *OTHER[1:]], "x2": [-0.0, *OTHER[1:]]},
        [f"columns 'x1' and 'x2' are identical: {SUM}"],
    ),
    "opposite": (
        {"x1": NOISE, "x2": MINUS},
        ["columns 'x1' and 'x2' are opposite: only the difference of their coefficients is identified by the data"],
    ),
    "opposite with zeros first": (
        {"x1": [0.0, 0.0, *NOISE[2:]], "x2": [0.0, -0.0, *MINUS[2:]]},
        ["columns 'x1' and 'x2' are opposite: only the difference of their coefficients is identified by the data"],
    ),
    "three": (
        {"x1": NOISE, "x2": NOISE, "z": OTHER, "x3": NOISE},
        [f"columns 'x1', 'x2' and 'x3' are identical: {SUM}"],
    ),
    "seven": (
        {f"x{i}": NOISE for i in range(1, 8)},
        [f"columns 'x1', 'x2', 'x3', 'x4', 'x5' and 2 more are identical: {SUM}"],
    ),
    "mixed": (
        {"x1": NOISE, "x2": MINUS, "x3": NOISE},
        [
            "columns 'x1', 'x2' and 'x3' are identical or opposite: only the sum of their coefficients, with a minus "
            "for 'x2', is identified by the data"
        ],
    ),
    "two groups": (
        {"x1": NOISE, "x2": OTHER, "x3": OTHER, "x4": NOISE},
        [f"columns 'x1' and 'x4' are identical: {SUM}", f"columns 'x2' and 'x3' are identical: {SUM}"],
    ),
    "nearly identical": ({"x1": NOISE, "x2": [np.nextafter(NOISE[0], 1), *NOISE[1:]]}, []),
    "absolute values": ({"x1": NOISE, "x2": list(map(abs, NOISE))}, []),
    "proportional": ({"x1": NOISE, "x2": [2 * x + 1 for x in NOISE]}, []),  # left to the singular values
    "like the outcome": ({"x1": Y8, "x2": NOISE}, []),
    "subnormal": ({"x1": [1e-320, *NOISE[1:]]}, ["column 'x1' spans 1e-320..4.0"]),
}


@pytest.mark.parametrize(("features", "expected"), NOTED.values(), ids=NOTED.keys())
def test_what_the_data_cannot_tell_apart_is_noted(features, expected):
    wide = "8 features, 8 rows: the data do not identify all coefficients and an intercept; the prior does the rest"
    found = notes({"y": Y8, **features})
    assert list(found) == expected + [wide] * (len(features) == 8)


def test_columns_that_differ_late_or_agree_early_are_told_apart():
    rng = np.random.default_rng(1)
    x = rng.normal(size=1000)
    late = x.copy()
    late[-1] += 1
    table = {
        "y": rng.normal(size=1000),
        "x1": x,
        "x2": late,
        "x3": x,
        "x4": -late,
        "x5": np.where(np.arange(1000) < 64, x, 0),
    }
    assert notes(table) == (
        f"columns 'x1' and 'x3' are identical: {SUM}",
        "columns 'x2' and 'x4' are opposite: only the difference of their coefficients is identified by the data",
    )


def test_constant_outcome():
    assert notes({"y": [5, 5.0, 5], "a": [1, 2, 4]}) == (
        "column 'y' is constant (5): an intercept alone fits it without error",
    )
    table = {"speed": [0.5] * 3, "a": [1, 2, 4]}
    assert notes(table, target="speed") == (
        "column 'speed' is constant (0.5): an intercept alone fits it without error",
    )


def test_more_features_than_rows():
    rng = np.random.default_rng(0)
    rest = "; the prior does the rest"
    assert notes((rng.normal(size=(5, 7)), np.arange(5))) == (
        f"7 features, 5 rows: the data do not identify all coefficients{rest}",
    )
    assert notes((rng.normal(size=(5, 5)), np.arange(5))) == (
        f"5 features, 5 rows: the data do not identify all coefficients and an intercept{rest}",
    )
    assert notes((rng.normal(size=(5, 4)), np.arange(5))) == ()
    assert notes(([[1, 1]], [3])) == (f"2 features, 1 row: the data do not identify all coefficients{rest}",)
    assert notes(([[1]], [3])) == (
        f"1 feature, 1 row: the data do not identify all coefficients and an intercept{rest}",
    )


def test_notes_are_of_the_rows_that_are_kept():
    assert notes({"y": [1, 2, None, 5], "a": [3, 3, 4, 3]}, missing="drop") == (
        "1 row with missing values dropped (row 3)",
        "column 'a' is constant (3): its coefficient is not told apart from an intercept",
    )


def test_at_most_five_notes_of_a_kind():
    rng = np.random.default_rng(0)
    y = np.arange(30.0)
    constants = {f"c{i}": np.full(30, i) for i in range(7)}
    found = notes({"y": y, **constants})
    assert len(found) == 6
    assert found[4:] == (
        "column 'c4' is constant (4): its coefficient is not told apart from an intercept",
        "7 constant columns in all",
    )
    assert len(notes({"y": y, **{f"c{i}": np.full(30, i) for i in range(5)}})) == 5
    pairs = {f"x{i}": column for i, column in enumerate(np.repeat(rng.normal(size=(6, 30)), 2, axis=0))}
    found = notes({"y": y, **pairs})
    assert len(found) == 6
    assert found[4:] == (
        f"columns 'x8' and 'x9' are identical: {SUM}",
        "6 groups of columns that are identical or opposite in all",
    )
    small = {f"s{i}": [1e-320, *rng.normal(size=29)] for i in range(6)}
    found = notes({"y": y, **small})
    assert (len(found), found[5]) == (6, "6 columns with such small numbers in all")


def test_five_thousand_columns():
    X = np.random.default_rng(0).normal(size=(6, 5000))
    X[:, 4321] = X[:, 17]
    data = read(Line, (X, np.arange(6)))
    assert data["X"].shape == (6, 5000)
    assert data.notes == (
        f"columns 'x18' and 'x4322' are identical: {SUM}",
        "5000 features, 6 rows: the data do not identify all coefficients; the prior does the rest",
    )
    assert read(Line, X[:2], new=True, like=data)["X"].shape == (2, 5000)


# Rows to be predicted

FIT = {"y": [5, 6, 8], "a": [1, 2, 4], "b": [0.5, 0, 1]}


@pytest.fixture
def fitted():
    return read(Line, FIT)


def new(table, like, **options):
    return read(Line, table, new=True, like=like, **options)


def test_new_rows_have_the_features_of_the_fit_in_its_order(fitted):
    data = new({"b": [2], "z": ["text"], "a": [1]}, fitted)
    assert plain(data) == {"X": [[1.0, 2.0]], "feature": ["a", "b"]}
    assert (data.notes, data.columns, data.rows) == ((), {"X": "a, b"}, 1)
    assert not INPUTS.has_outcome(data)
    assert plain(new({"b": [2], "a": [1]}, fitted, features="b,a")) == plain(data)
    for table in ({"y": [3], "b": [2], "a": [1]}, pd.DataFrame({"a": [1], "b": [2], "y": [3]})):
        known = new(table, fitted)
        assert plain(known) == {"y": [3.0], "X": [[1.0, 2.0]], "feature": ["a", "b"]}
        assert INPUTS.has_outcome(known)
        assert known.notes == ()


NEW_REFUSED = {
    "lacking": ({"a": [1]}, {}, "there is no column 'b', which the fit has"),
    "lacking from the option": ({"a": [1], "b": [2]}, {"features": "a"}, "there is no column 'b', which the fit has"),
    "more in the option": (
        {"a": [1], "b": [2], "z": [0]},
        {"features": "b,a,z"},
        "column 'z' is not among the 2 of the fit; use --features a,b",
    ),
    "lacking from the table": (
        {"a": [1], "z": [2]},
        {"features": "a,b"},
        "the table has no column 'b'; its columns are 'a', 'z'",
    ),
    "target lacking": ({"a": [1], "b": [2]}, {"target": "t"}, "the table has no column 't'; its columns are 'a', 'b'"),
    "target a feature": (
        {"a": [1], "b": [2]},
        {"target": "a"},
        "column 'a' is both the outcome and a feature; leave it out of --features, or say which is the outcome "
        "with --target",
    ),
    "text": ({"a": ["u"], "b": [2]}, {}, "column 'a', row 1: 'u' is not a number"),
    "missing": ({"a": [None, 1], "b": [2, 1]}, {}, "column 'a': 1 missing value (row 1); use --missing drop"),
    "missing outcome": (
        {"a": [0, 1], "b": [2, 1], "y": [None, 1]},
        {},
        "column 'y': 1 missing value (row 1); use --missing drop",
    ),
    "empty outcome": ({"a": [0, 1], "b": [2, 1], "y": [None, None]}, {}, "column 'y' has no values"),
    "infinite": ({"a": [np.inf], "b": [2]}, {}, "column 'a', row 1: inf is too large"),
    "large": ({"a": [1e300], "b": [2]}, {}, "column 'a', row 1: 1e+300 is too large to square; rescale the column"),
    "no rows": ({"a": [], "b": []}, {}, "no data rows"),
    "option": ({"a": [1], "b": [2]}, {"columns": "a"}, "unknown option 'columns'; accepted are features, target"),
    "names": (np.zeros((1, 2)), {}, "there is no column 'a', which the fit has"),
    "width": ([1, 2], {}, "there is no column 'a', which the fit has"),
}


@pytest.mark.parametrize(("table", "options", "message"), NEW_REFUSED.values(), ids=NEW_REFUSED.keys())
def test_new_rows_that_are_refused(fitted, table, options, message):
    with pytest.raises(InputError) as caught:
        new(table, fitted, **options)
    assert str(caught.value) == message


def test_new_rows_have_the_outcome_under_the_name_of_the_fit_or_of_the_model():
    fit = read(Line, {"speed": [5, 6, 8], "a": [1, 2, 4], "y": [1, 0, 3]}, target="speed", features="a")
    both = new({"speed": [7], "a": [1], "y": [2]}, fit)
    assert (both["y"].tolist(), both.notes, both.columns) == ([7.0], (), {"y": "speed", "X": "a"})
    assert new({"v": [9], "a": [1], "speed": [2]}, fit, target="v")["y"].tolist() == [9.0]
    other = new({"a": [1], "y": [2]}, fit)
    assert other["y"].tolist() == [2.0]
    assert other.notes == ("column 'y' is taken for the outcome, which is 'speed' in the fit",)
    assert "y" not in new({"a": [1], "v": [2]}, fit)


def test_a_feature_called_y_is_never_taken_for_the_outcome():
    fit = read(Line, {"speed": [5, 6, 8], "a": [1, 2, 4], "y": [1, 0, 3]}, target="speed")
    assert fit["feature"].tolist() == ["a", "y"]
    assert plain(new({"a": [1], "y": [2]}, fit)) == {"X": [[1.0, 2.0]], "feature": ["a", "y"]}
    arrays = dict(fit)  # without the names of the user's columns
    assert plain(new({"a": [1], "y": [2]}, arrays)) == {"X": [[1.0, 2.0]], "feature": ["a", "y"]}
    assert new({"a": [1], "y": [2], "y_2": [3]}, arrays)["y"].tolist() == [3.0]
    moved = INPUTS.relabelled(arrays, "feature", np.array([1, 0]))
    same(new(Data(arrays), moved), moved)


def test_one_new_row_is_not_said_to_be_constant(fitted):
    assert new({"a": [1, 1], "b": [1, 1], "y": [2, 2]}, fitted).notes == ()
    assert new({"a": [1e-320], "b": [1]}, fitted).notes == ("column 'a' spans 1e-320..1e-320",)
    dropped = new({"a": [1, None], "b": [1, 2]}, fitted, missing="drop")
    assert dropped.notes == ("1 row with missing values dropped (row 2)",)


def test_new_rows_without_a_fit():
    data = read(Line, {"a": [1], "b": [2]}, new=True)
    assert plain(data) == {"X": [[1.0, 2.0]], "feature": ["a", "b"]}
    data = INPUTS.parse_new(read_table({"a": [1], "y": [2]}))
    assert plain(data.arrays) == {"y": [2.0], "X": [[1.0]], "feature": ["a"]}
    message = "there is no feature: column 'y' is the only one; give a table with columns beside it"
    assert str(refusal({"y": [1]}, new=True)) == message


def test_new_rows_as_plain_arrays(fitted):
    fit = read(Line, (np.array([[1.0, 2.0], [3.0, 5.0], [7.0, 6.0]]), [1, 2, 4]))
    for rows in (np.array([[8.0, 9.0]]), [[8.0, 9.0]], [(8.0, 9.0)], [np.array([8.0, 9.0])], {"X": [[8, 9]]}):
        assert plain(new(rows, fit)) == {"X": [[8.0, 9.0]], "feature": ["x1", "x2"]}
    two = [[8.0, 9.0], [1.0, 2.0]]  # not a pair of X and y
    for rows in (np.array(two), two, tuple(two), list(map(np.array, two))):
        assert plain(new(rows, fit))["X"] == two
    assert plain(new((two, [3, 4]), fit))["y"] == [3.0, 4.0]
    narrow = read(Line, (np.array([[1.0], [3.0], [4.0]]), [1, 2, 4]))
    assert plain(new([[2.0], [3.0]], narrow)) == {"X": [[2.0], [3.0]], "feature": ["x1"]}


# Objects of Python

X2 = np.array([[1.0, 2.0], [3.0, 5.0], [7.0, 6.0]])
ARRAYS = {"y": [1.0, 2.0, 4.0], "X": X2.tolist(), "feature": ["x1", "x2"]}
PAIRS = {
    "arrays": (X2, np.array([1, 2, 4])),
    "list": [X2, np.array([1, 2, 4])],
    "lists": (X2.tolist(), [1, 2, 4]),
    "list of lists": [X2.tolist(), [1, 2, 4]],
    "rows of tuples": (list(map(tuple, X2)), (1, 2, 4)),
    "rows of arrays": (list(X2), pd.Series([1, 2, 4])),
    "one column": (X2, np.array([[1], [2], [4]])),
    "lists of one": (X2, [[1], [2], [4]]),
    "frame of one column": (X2, pd.DataFrame({"t": [1, 2, 4]})),
    "polars": (pl.DataFrame({"x1": X2[:, 0], "x2": X2[:, 1]}), pl.Series("t", [1, 2, 4])),
    "polars frames": (pl.DataFrame({"x1": X2[:, 0], "x2": X2[:, 1]}), pl.DataFrame({"t": [1, 2, 4]})),
    "pandas": (pd.DataFrame(X2, columns=["x1", "x2"]), pd.Series([1, 2, 4], name="t")),
    "Fortran": (np.asfortranarray(X2), [1, 2, 4]),
    "integers": (X2.astype(int), [1, 2, 4]),
    "mapping": {"X": X2, "y": [1, 2, 4]},
    "mapping of frame": {"y": [1, 2, 4], "X": pd.DataFrame(X2, columns=["x1", "x2"])},
    "mapping of lists": {"X": X2.tolist(), "y": [1, 2, 4]},
    "labels": {"X": X2, "y": [1, 2, 4], "feature": ["x1", "x2"]},
    "labels of frame": {"X": pd.DataFrame(X2, columns=["x1", "x2"]), "y": [1, 2, 4], "feature": ["x1", "x2"]},
}


@pytest.mark.parametrize("source", PAIRS.values(), ids=PAIRS.keys())
def test_features_and_outcome_apart(source):
    data = read(Line, source)
    assert plain(data) == ARRAYS
    assert (data.notes, data["X"].dtype, data["X"].flags.c_contiguous) == ((), np.float64, True)


def test_options_go_with_pairs():
    assert read(Line, (X2, [1, 2, 4]), features="x2")["X"].tolist() == [[2.0], [5.0], [6.0]]
    data = read(Line, {"X": X2, "y": [1, 2, 4], "feature": ["p", "q"]}, features=["q"])
    assert plain(data)["feature"] == ["q"]
    assert read(Line, X2, target="x2")["y"].tolist() == [2.0, 5.0, 6.0]
    frame = pd.DataFrame(X2, columns=["km/h", 7])
    assert read(Line, (frame, [1, 2, 4]))["feature"].tolist() == ["km/h", "7"]


def test_a_table_that_has_a_column_called_like_the_matrix():
    data = read(Line, {"X": [1, 2, 4], "y": [1, 2, 3]})
    assert plain(data) == {"y": [1.0, 2.0, 3.0], "X": [[1.0], [2.0], [4.0]], "feature": ["X"]}
    assert read(Line, {"X": [1, 2, 4], "y": [1, 2, 3], "z": [0, 1, 1]})["feature"].tolist() == ["X", "z"]


def test_holes_of_pairs_are_dropped_together():
    X = np.ma.array(X2, mask=[[0, 0], [0, 1], [0, 0]])
    data = read(Line, (X, [1, 2, np.nan]), missing="drop")
    assert (data["X"].tolist(), data["y"].tolist()) == ([[1.0, 2.0]], [1.0])
    assert data.notes[0] == "2 rows with missing values dropped (rows 2, 3)"


@pytest.mark.parametrize("source", [lambda X, y: (X, y), lambda X, y: {"X": X, "y": y}])
def test_indexes_that_differ_are_noted(source):
    X, y = pd.DataFrame(X2, columns=["a", "b"]), pd.Series([1, 2, 4], index=[2, 1, 0])
    data = read(Line, source(X, y))
    assert data["y"].tolist() == [1.0, 2.0, 4.0]
    assert data.notes == ("X and y have different indexes; rows matched by position",)
    assert read(Line, source(X, y.to_frame())).notes == data.notes
    assert read(Line, source(X, y.set_axis(X.index))).notes == ()
    assert read(Line, source(X, y.to_numpy())).notes == ()


DIFFERENT = "X has 3 rows, y has 2"
APART = {
    "lengths": ((X2, [1, 2]), DIFFERENT),
    "lengths of frames": ((pd.DataFrame(X2, columns=["a", "b"]), pd.Series([1, 2])), DIFFERENT),
    "lengths in a mapping": ({"X": X2, "y": [1, 2]}, DIFFERENT),
    "lengths of canonical arrays": ({"X": X2, "y": [1, 2], "feature": ["a", "b"]}, DIFFERENT),
    "sparse": ((scipy.sparse.csr_matrix(X2), [1, 2, 4]), "X is a sparse matrix; pass X.toarray()"),
    "sparse array": ((scipy.sparse.coo_array(X2), [1, 2, 4]), "X is a sparse matrix; pass X.toarray()"),
    "sparse in a mapping": (
        {"X": scipy.sparse.csr_matrix(X2), "y": [1, 2, 4]},
        "X is a sparse matrix; pass X.toarray()",
    ),
    "sparse outcome": (
        (X2, scipy.sparse.csr_matrix([[1], [2], [4]])),
        "column 'y' is a sparse matrix; pass its .toarray()",
    ),
    "outcome of two columns": ((X2, X2), "column 'y' has shape (3, 2), one dimension expected"),
    "frame of two columns": ((X2, pd.DataFrame(X2, columns=["a", "b"])), "y has 2 columns, one expected"),
    "three dimensions": (
        (np.zeros((3, 2, 2)), [1, 2, 4]),
        "X does not have two dimensions; give it a row for each outcome",
    ),
    "one dimension": (
        (np.array([1.0, 2.0]), np.array([3.0, 5.0])),
        "X has one dimension, two expected; give one feature one column",
    ),
    "two series": (
        (pd.Series([1.0, 2.0]), pd.Series([3.0, 5.0])),
        "X has one dimension, two expected; give one feature one column",
    ),
    "ragged": (([[1, 2], [3]], [1, 2]), "X is ragged: its rows have different lengths"),
    "no columns": ((np.zeros((3, 0)), [1, 2, 4]), "X has no columns"),
    "no columns in lists": (([[], [], []], [1, 2, 4]), "X has no columns"),
    "no columns in a frame": ((pd.DataFrame(index=range(3)), [1, 2, 4]), "X has no columns"),
    "no rows": ((np.zeros((0, 2)), []), "no data rows"),
    "no outcome": ({"X": X2}, "the table has columns 'x1', 'x2' and none called 'y'; say which with --target"),
    "no outcome, bare": (X2, "the table has columns 'x1', 'x2' and none called 'y'; say which with --target"),
    "two rows": (
        [[1, 2], [3, 4]],
        "the table has columns 'x1', 'x2' and none called 'y'; say which with --target",
    ),
    "no outcome but labels": (
        {"X": X2, "feature": ["a", "b"]},
        "the table has columns 'a', 'b' and none called 'y'; say which with --target",
    ),
    "None": ((X2, None), "column 'y' is a NoneType; a sequence of values was expected"),
    "names": (
        (pd.DataFrame(X2, columns=["a", "y"]), [1, 2, 4]),
        "X has a column 'y', and so is the outcome called; rename it",
    ),
    "names twice": (
        (pd.DataFrame(X2, columns=["a", "a"]), [1, 2, 4]),
        "column name 'a' appears twice (columns 1 and 2)",
    ),
    "text": (
        (np.array([["1", "u"]]), [1]),
        "column 'x2', row 1: 'u' is not a number; choose columns of numbers: --features x1",
    ),
    "text in rows": (
        ([[1, "u"], [2, "v"]], [1, 2]),
        "column 'x2', row 1: 'u' is not a number (and 1 more: row 2); choose columns of numbers: --features x1",
    ),
    "bool": ((X2 > 2, [1, 2, 4]), "column 'x1' holds true/false, not numbers"),
    "complex": ((X2 * 1j, [1, 2, 4]), "column 'x1' is complex"),
    "dates": ((np.zeros((3, 1), dtype="M8[D]"), [1, 2, 4]), "column 'x1' holds dates"),
    "NaN": ((np.where(X2 == 6, np.nan, X2), [1, 2, 4]), "column 'x2': 1 missing value (row 3); use --missing drop"),
    "masked": (
        (np.ma.array(X2, mask=X2 == 3), [1, 2, 4]),
        "column 'x1': 1 missing value (row 2); use --missing drop",
    ),
    "masked outcome": (
        (X2, np.ma.array([1, 2, 4], mask=[0, 0, 1])),
        "column 'y': 1 missing value (row 3); use --missing drop",
    ),
    "infinite": ((np.where(X2 == 6, np.inf, X2), [1, 2, 4]), "column 'x2', row 3: inf is too large"),
    "large": (
        (np.where(X2 == 6, 1e300, X2), [1, 2, 4]),
        "column 'x2', row 3: 1e+300 is too large to square; rescale the column",
    ),
    "another key": (
        {"X": X2, "y": [1, 2, 4], "weights": [1, 1, 1]},
        "column 'X' has shape (3, 2), one dimension expected",
    ),
}


@pytest.mark.parametrize(("source", "message"), APART.values(), ids=APART.keys())
def test_features_and_outcome_that_are_refused(source, message):
    assert str(refusal(source)) == message


def test_sparse_rows_to_be_predicted_are_refused(fitted):
    with pytest.raises(InputError, match=r"^X is a sparse matrix; pass X\.toarray\(\)$"):
        new(scipy.sparse.csr_matrix(X2), fitted)


# Canonical arrays

AB = np.array(["a", "b"])
CANONICAL = {
    "usual": {"y": np.array([1.0, 2.0, 4.0]), "X": X2, "feature": AB},
    "other order": {"y": np.array([1.0, 2.0, 4.0]), "X": X2, "feature": AB[::-1]},
    "one feature": {"y": np.array([1.0, 2.0, 4.0]), "X": X2[:, :1], "feature": np.array(["km/h"])},
    "numbers for names": {"y": np.array([1.0, 2.0, 4.0]), "X": X2, "feature": np.array(["10", "9"])},
    "a feature called y": {"y": np.array([1.0, 2.0, 4.0]), "X": X2, "feature": np.array(["a", "y"])},
    "y and y_2": {"y": np.array([1.0, 2.0, 4.0]), "X": X2, "feature": np.array(["y_2", "y"])},
    "matrix's name": {"y": np.array([1.0, 2.0, 4.0]), "X": X2, "feature": np.array(["X", "feature"])},
    "wide": {"y": np.array([0.1]), "X": X2[:1], "feature": AB},
}
EVERY = pytest.mark.parametrize("arrays", CANONICAL.values(), ids=CANONICAL.keys())
NEED_TARGET = {"a feature called y": "y_2", "y and y_2": "y_3"}


@EVERY
def test_a_table_there_and_back(arrays):
    found = INPUTS.parse(read_table(INPUTS.table(arrays)), **INPUTS.reading(arrays)).arrays
    same(found, arrays)
    unknown = {name: arrays[name] for name in ("X", "feature")}
    back = INPUTS.parse_new(read_table(INPUTS.table(unknown)), arrays, **INPUTS.reading(unknown)).arrays
    same(back, unknown)
    assert INPUTS.reading(unknown) == {}


@pytest.mark.parametrize("name", CANONICAL)
def test_the_outcome_is_named_only_where_a_feature_is_called_as_it_is(name):
    options = INPUTS.reading(CANONICAL[name])
    assert options == ({"target": NEED_TARGET[name]} if name in NEED_TARGET else {})
    assert next(iter(INPUTS.table(CANONICAL[name]))) == options.get("target", "y")


@EVERY
def test_simulated_data_are_written_as_a_table_that_is_read_back(tmp_path, arrays):
    text = table_csv(INPUTS, arrays)
    assert list(csv.reader(io.StringIO(text)))[0] == list(INPUTS.table(arrays))  # noqa: RUF015
    (tmp_path / "data.csv").write_text(text)
    same(read(Line, tmp_path / "data.csv", **INPUTS.reading(arrays)), arrays)


@EVERY
def test_canonical_arrays_are_taken_as_they_are(arrays):
    same(INPUTS.canonical(arrays).arrays, arrays)
    data = read(Line, arrays)
    same(data, arrays)
    assert (data.rows, data.columns) == (INPUTS.size(arrays), {})
    same(INPUTS.canonical({name: values.tolist() for name, values in arrays.items()}).arrays, arrays)
    unknown = {name: arrays[name] for name in ("X", "feature")}
    same(read(Line, unknown, new=True, like=arrays), unknown)
    same(read(Line, arrays, new=True, like=arrays), arrays)


@EVERY
def test_data_made_elsewhere_are_checked_again(arrays):
    data = Data(arrays, "elsewhere", notes=("note",))
    again = read(Line, data)
    assert (again.digest, again.source, again.notes[0]) == (data.digest, "elsewhere", "note")
    assert read(Line, again) is again
    with pytest.raises(InputError, match=r"^column 'y', row 1: 1e\+300 is too large to square"):
        read(Line, Data({**arrays, "y": arrays["y"] + 1e300}))
    like = INPUTS.relabelled(arrays, "feature", np.arange(len(arrays["feature"]))[::-1])
    found = read(Line, Data(arrays), new=True, like=like)
    same(found, like)
    assert read(Line, found, new=True, like=like) is found
    unknown = Data({name: arrays[name] for name in ("X", "feature")})
    same(read(Line, unknown, new=True, like=like), {name: like[name] for name in ("X", "feature")})


def test_canonical_arrays_are_noted_as_tables_are():
    X = np.column_stack([np.arange(4.0), np.full(4, 3), np.arange(4.0)])
    found = read(Line, {"y": [2, 2, 2, 2], "X": X, "feature": ["a", "b", "c"]})
    assert found.notes == (
        "column 'y' is constant (2): an intercept alone fits it without error",
        "column 'b' is constant (3): its coefficient is not told apart from an intercept",
        f"columns 'a' and 'c' are identical: {SUM}",
    )
    holes = {"y": [2, 1, 3, 0], "X": [[1], [None], [3], [5]], "feature": ["a"]}
    data = read(Line, holes, missing="drop")
    assert (data["y"].tolist(), data.notes) == ([2.0, 3.0, 0.0], ("1 row with missing values dropped (row 2)",))
    frame, series = pd.DataFrame({"a": [1, 2, 4]}), pd.Series([1, 2, 4], index=[1, 2, 3])
    found = read(Line, {"y": series, "X": frame, "feature": ["a"]})
    assert found.notes == ("X and y have different indexes; rows matched by position",)


def canonical(X=X2, y=(1, 2, 4), feature=("a", "b")):
    return {"X": X, "y": y, "feature": list(feature)}


BROKEN = {
    "width": (canonical(X2[:, :1]), "X has 1 columns, but there are 2 labels"),
    "labels": (canonical(feature=["a"]), "X has 2 columns, but there are 1 labels"),
    "no labels": (canonical(feature=[]), "feature must hold text labels"),
    "label twice": (canonical(feature=["a", "a"]), "feature: label 'a' appears twice"),
    "numbers": (canonical(feature=[1, 2]), "feature must hold text labels"),
    "NUL": (canonical(feature=["a", "a\0"]), "a label ends in a NUL character; rename it"),
    "vector": (canonical([1, 2, 4], feature=["a"]), "X does not have two dimensions; give it a row for each outcome"),
    "file": (canonical("/etc/hosts"), "X does not have two dimensions; give it a row for each outcome"),
    "matrix for y": (canonical(y=X2), "column 'y' has shape (3, 2), one dimension expected"),
    "lengths": (canonical(y=[1]), "X has 3 rows, y has 1"),
    "no rows": (canonical(np.zeros((0, 2)), []), "no data rows"),
    "nothing": (canonical([], []), "no data rows"),
    "ragged": (canonical([[1, 2], [3]]), "X is ragged: its rows have different lengths"),
    "sparse": (canonical(scipy.sparse.csr_matrix(X2)), "X is a sparse matrix; pass X.toarray()"),
    "frame": (
        canonical(pd.DataFrame(X2, columns=["b", "a"])),
        "X has columns 'b', 'a', feature holds 'a', 'b'",
    ),
    "infinite": (canonical(np.where(X2 == 3, np.inf, X2)), "column 'a', row 2: inf is too large"),
    "NaN": (canonical(np.where(X2 == 3, np.nan, X2)), "column 'a': 1 missing value (row 2); use --missing drop"),
    "masked": (canonical(np.ma.array(X2, mask=X2 == 3)), "column 'a': 1 missing value (row 2); use --missing drop"),
    "outcome": (canonical(y=[1, None, 2]), "column 'y': 1 missing value (row 2); use --missing drop"),
    "truth": (canonical(X2 > 3), "column 'a' holds true/false, not numbers"),
    "text": (canonical([["u", "v"]] * 3), "column 'a', row 1: 'u' is not a number (and 2 more: rows 2, 3)"),
    "complex": (canonical(X2 * 1j), "column 'a' is complex"),
}


@pytest.mark.parametrize(("arrays", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_canonical_arrays_that_are_refused(arrays, message):
    assert str(refusal(arrays)) == message
    with pytest.raises(InputError) as caught:
        INPUTS.canonical(arrays)
    assert str(caught.value) == message


def test_a_matrix_names_its_own_option():
    model = SimpleNamespace(inputs=Matrix(), examples=())
    table = {"a": [1, 2], "b": ["u", "v"]}
    assert str(refusal(table, model)).endswith("; choose columns of numbers: --columns a")
    with pytest.raises(InputError, match=r"^column 'b' is not among the 1 of the fit; use --columns a$"):
        Matrix().parse_new(read_table({"a": [1], "b": [2]}), {"Y": np.zeros((1, 1)), "column": np.array(["a"])})


def test_arrays_of_other_kinds():
    matrix = read(SimpleNamespace(inputs=Matrix(), examples=()), {"y": [1, 2, 4], "a": [2, 3, 3]})
    assert plain(read(Line, matrix)) == {"y": [1.0, 2.0, 4.0], "X": [[2.0], [3.0], [3.0]], "feature": ["a"]}
    back = read(SimpleNamespace(inputs=Matrix(), examples=()), read(Line, matrix))
    assert plain(back) == plain(matrix)
    same(INPUTS.canonical({"y": [1, 2, 4], "a": [2, 3, 3]}).arrays, dict(read(Line, matrix)))
    same(
        INPUTS.canonical({"X": [[2], [3], [3]], "y": [1, 2, 4]}).arrays,
        {**read(Line, matrix), "feature": np.array(["x1"])},
    )


# Methods


@pytest.fixture
def arrays():
    return {"y": np.array([1.0, 2.0, 4.0]), "X": X2, "feature": AB}


def test_rows_are_split_and_reordered_and_labels_are_not(arrays):
    for at in (0, 1, 3):
        first, rest = INPUTS.split(arrays, at)
        assert (INPUTS.size(first), INPUTS.size(rest)) == (at, 3 - at)
        assert (first["y"].shape, first["X"].shape) == ((at,), (at, 2))
        assert first["feature"] is rest["feature"] is arrays["feature"]
    again = INPUTS.reordered(arrays, np.array([2, 0]))
    assert plain(again) == {"y": [4.0, 1.0], "X": [[7.0, 6.0], [1.0, 2.0]], "feature": ["a", "b"]}


def test_labels_are_reordered_with_the_columns(arrays):
    nothing, _ = INPUTS.split(arrays, 0)
    unknown = {name: arrays[name] for name in ("X", "feature")}
    order = np.array([1, 0])
    other = INPUTS.relabelled(arrays, "feature", order)
    assert plain(other) == {"y": [1.0, 2.0, 4.0], "X": X2[:, ::-1].tolist(), "feature": ["b", "a"]}
    assert INPUTS.relabelled(unknown, "feature", order)["X"].tolist() == X2[:, ::-1].tolist()
    assert INPUTS.relabelled(nothing, "feature", order)["X"].shape == (0, 2)
    before, after = INPUTS.table(arrays), INPUTS.table(other)
    assert {name: v.tolist() for name, v in after.items()} == {name: v.tolist() for name, v in before.items()}


def test_observations_are_the_rows(arrays):
    rows, times = INPUTS.observations(arrays)
    assert (plain(rows), times.tolist()) == (plain(arrays), [1, 1, 1])
    unknown, times = INPUTS.observations({name: arrays[name] for name in ("X", "feature")})
    assert (list(unknown), times.tolist()) == (["X", "feature"], [1, 1, 1])
    nothing, times = INPUTS.observations(INPUTS.split(arrays, 0)[0])
    assert (nothing["X"].shape, len(times)) == ((0, 2), 0)
    assert INPUTS.outcome(arrays) is arrays["y"]
    assert INPUTS.possible(arrays) is None
    assert INPUTS.other_forms(arrays) == []


def test_units(arrays):
    moved = INPUTS.in_units(arrays, -2, 1)
    assert moved["y"].tolist() == [-1.0, -3.0, -7.0]
    assert moved["X"] is arrays["X"]
    scaled = INPUTS.rescaled(arrays, np.array([2.0, 1e3]), np.array([0.0, -1.0]))
    assert scaled["X"].tolist() == [[2.0, 1999.0], [6.0, 4999.0], [14.0, 5999.0]]
    assert scaled["y"] is arrays["y"]
    assert X2[0].tolist() == [1.0, 2.0]


def test_features_of_further_rows_are_not_known(arrays):
    with pytest.raises(InputError) as caught:
        INPUTS.unseen(arrays, 2)
    assert str(caught.value) == "the features of further rows are not known; give a table with the columns a, b"


def test_what_it_says_of_itself():
    assert INPUTS.is_canonical(["X", "y", "feature"])
    assert not INPUTS.is_canonical(["X", "feature"])  # to be told from rows of a fit
    assert (INPUTS.coded, INPUTS.lists, INPUTS.options) == ({}, {"features"}, {"target", "features"})
    described = INPUTS.describe()
    assert "--target" in described
    assert "--features" in described
    assert "\n" not in described


def test_sources_are_left_as_they_were():
    X, y = X2.copy(), np.array([1.0, 2.0, 4.0])
    data = read(Line, (X, y))
    X[:], y[:] = 0, 0
    assert plain(data) == ARRAYS
    with pytest.raises(ValueError, match="read-only"):
        data["X"][0, 0] = 1


# The command line, and the data that come along


def test_options_of_the_command_line(tmp_path, capsys):
    path = tmp_path / "d.csv"
    path.write_text("a,b,v\n1,2,3\n2,2,5\n4,2,4\n")
    data = TableOptions(target="v", features="b,a").read(Line, str(path))
    assert (data["y"].tolist(), data["feature"].tolist()) == ([3.0, 5.0, 4.0], ["b", "a"])
    assert "column 'b' is constant (2)" in " ".join(capsys.readouterr().err.split())


def test_diabetes_is_the_data_of_efron_and_others_in_its_units():
    bunch = load_diabetes(scaled=False)
    data = read(Line, DATA / "diabetes.csv", target="progression")
    assert data["feature"].tolist() == bunch.feature_names
    assert np.array_equal(data["X"], bunch.data)
    assert np.array_equal(data["y"], bunch.target)
    assert (data.rows, data.notes) == (442, ())
    assert data["y"].mean() == pytest.approx(152.133, abs=5e-4)
    assert sorted(set(data["X"][:, 1])) == [1.0, 2.0]


def test_airquality_has_holes():
    path = DATA / "airquality.csv"
    options = {"target": "Ozone", "features": "Solar.R,Wind,Temp"}
    assert str(refusal(path, **options)) == (
        "column 'Ozone': 37 missing values (rows 5, 10, 25, 26, 27, ...); use --missing drop"
    )
    data = read(Line, path, **options, missing="drop")
    assert data.rows == 111
    assert data.notes == ("42 rows with missing values dropped (rows 5, 6, 10, 11, 25, ...)",)
    # the least squares of R's lm(Ozone ~ Solar.R + Wind + Temp, airquality)
    design = np.column_stack([np.ones(111), data["X"]])
    found = np.linalg.lstsq(design, data["y"], rcond=None)[0]
    assert found == pytest.approx([-64.34208, 0.05982, -3.33359, 1.65209], abs=5e-6)


@pytest.mark.parametrize("name", ["diabetes.csv", "airquality.csv"])
def test_sources_are_given(name):
    assert f"| `{name}` |" in (DATA / "SOURCES.md").read_text(encoding="utf-8")
