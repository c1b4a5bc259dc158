"""An outcome and its features: the columns used, refusals, and weights that the data do not identify."""

import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.datasets import load_diabetes

from bayeszoo.data.inputs import Regression
from bayeszoo.data.read import Data, read
from bayeszoo.data.table.read import read_table
from bayeszoo.errors import InputError
from tests.reading import by_name, model_of, plain, refusal, refuses, typed
from tests.refusals import raises

USE_A_B = " of the fit; use --features a,b"

BOTH = " the outcome and a feature; leave it out of --features, or name the outcome with --target"
RENAME = ", which is also the name of the outcome; rename it"
NO_ROW = "no row has a value in every column that is used"

A_ROW_EACH = "; give it a row for each outcome"
NO_FEATURE = "there is no feature: column 'y' is the only one; give a table with feature columns"
COMMA = "; use --decimal ','"
DROP = "; use --missing drop"
ITS_ARRAY = "; pass its .toarray()"
ONE_COLUMN = "; give one feature one column"
WHICH_TARGET = "; name the outcome with --target"

DATA = Path(__file__).resolve().parents[1] / "models" / "data"
INPUTS = Regression("y")


Line = model_of(INPUTS)


# Tables

COLUMNS = {"a": [1, 2, 4], "y": [5, 6, 8], "b": [0.5, 0, 1]}


def test_the_outcome_is_y_and_all_other_columns_are_features():
    data = read(Line, COLUMNS)
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
    assert read(Line, COLUMNS, target="a", features=("y",))["X"].tolist() == [[5.0], [6.0], [8.0]]
    assert read(Line, {"x, 1": [1, 2], "y": [1, 2], "z": [0, 1]}, features='"x, 1"')["feature"].tolist() == ["x, 1"]
    with_text = {**COLUMNS, "place": ["p", "q", "r"]}
    assert read(Line, with_text, features="a")["feature"].tolist() == ["a"]


def test_rows_with_holes_are_dropped_from_both():
    table = {"a": [1, None, 3, 4, 6], "y": [1, 2, np.nan, 4, 7], "b": [1, 2, 3, 5, 4], "unused": [None] * 5}
    data = read(Line, table, missing="drop", features="a,b")
    assert (data["y"].tolist(), data["X"].tolist()) == ([1.0, 4.0, 7.0], [[1.0, 1.0], [4.0, 5.0], [6.0, 4.0]])
    assert data.notes == ("2 rows with missing values dropped (rows 2, 3)",)
    error = refusal(Line, table, features="a,b")
    assert str(error) == "column 'y': 1 missing value (row 3); use --missing drop"
    assert (error.column, error.rows, error.hint) == ("y", (3,), "use --missing drop")


def test_a_mark_of_a_missing_value_may_be_a_level():
    table = {"y": [1.0, 2, 3, 5], "place": ["NA", "EU", "AS", "NA"]}
    error = refusal(Line, table)
    assert (error.code, error.rows) == ("missing_values", (1, 4))
    named = error.hint.partition("--levels ")[2]  # as the message says
    assert read(Line, table, levels=named)["X"].tolist() == [[0.0, 1.0], [1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]
    assert "--levels" not in refusal(Line, {**table, "place": ["", "EU", "AS", "EU"]}).hint


CHOOSE = "; choose columns of numbers: --features "
A_AND_B = {"y": [1, 2], "a": [1, 3]}
REFUSED = {
    "no target": ({"a": [1], "b": [2]}, {}, "the table has columns 'a', 'b' and none called 'y'" + WHICH_TARGET),
    "many usable": (
        {"y": [1, 2], "id": ["u", "v"], **{f"c{i}": [i, i * i] for i in range(12)}},
        {},
        "column 'id' has 2 levels in 2 rows, as names of the rows have; leave it out: "
        "--features c0,c1,c2,c3,c4,c5,c6,c7,c8,c9,...",
    ),
    "unknown target": (COLUMNS, {"target": "z"}, "the table has no column 'z'; its columns are 'a', 'y', 'b'"),
    "both": (COLUMNS, {"features": "a,y"}, "column 'y' is both" + BOTH),
    "no feature": ({"y": [1, 2]}, {}, NO_FEATURE),
    "text": ({**A_AND_B, "b": ["1", "x"]}, {}, "column 'b', row 2: 'x' is not a number" + CHOOSE + "a"),
    "chosen text": ({**A_AND_B, "b": ["1", "x"]}, {"features": "a,b"}, "column 'b', row 2: 'x' is not a number"),
    "dates": ({**A_AND_B, "b": [datetime.date(2020, 1, 1)] * 2}, {}, "column 'b' holds dates" + CHOOSE + "a"),
    "decimal comma": ({**A_AND_B, "b": ["1,5", "2"]}, {}, "column 'b', row 1: '1,5' is not a number" + COMMA),
    "complementary": ({"y": [1, None], "a": [None, 1]}, {"missing": "drop"}, NO_ROW),
    "sparse": ({"y": [1, 2], "a": scipy.sparse.csr_array(np.eye(2))}, {}, "column 'a' is a sparse matrix" + ITS_ARRAY),
}
test_tables_that_are_refused = refuses(Line, REFUSED)


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
        assert known.notes == new({"a": [1, 1], "b": [1, 1], "y": [2, 2]}, fitted).notes == ()  # constant or not


WHICH = "; leave it out of --features, or name the outcome with --target"
NEW_REFUSED = {
    "lacking": ({"a": [1]}, {}, "there is no column 'b', which the fit has"),
    "more": ({"a": [1], "b": [2], "z": [0]}, {"features": "b,a,z"}, "column 'z' is not among the 2" + USE_A_B),
    "target a feature": ({"a": [1], "b": [2]}, {"target": "a"}, "column 'a' is both the outcome and a feature" + WHICH),
}
test_new_rows_that_are_refused = refuses(Line, NEW_REFUSED, new=True, like=read(Line, FIT))


def test_new_rows_have_the_outcome_under_the_name_of_the_fit():
    fit = read(Line, {"speed": [5, 6, 8], "a": [1, 2, 4], "y": [1, 0, 3]}, target="speed", features="a")
    both = new({"speed": [7], "a": [1], "y": [2]}, fit)
    assert (both["y"].tolist(), both.notes, both.columns) == ([7.0], (), {"y": "speed", "X": "a"})
    assert new({"v": [9], "a": [1], "speed": [2]}, fit, target="v")["y"].tolist() == [9.0]
    assert "y" not in new({"a": [1], "v": [2], "y": [3]}, fit)


def test_the_name_of_the_model_for_the_outcome_of_new_rows_is_noted_where_it_is_not_that_of_the_fit():
    like, both = read(Line, {"price": [1, 2, 4], "a": [0, 1, 2]}, target="price"), {"y": [3], "a": [1]}
    data = new(both, like)
    assert (list(data), data.notes) == (["X", "feature"], ("column 'y' is not used; use it with --target y",))
    chosen = new(both, like, target="y")
    assert (chosen["y"].tolist(), chosen.notes) == ([3], ())
    assert new({**both, "price": [2]}, like).notes == new({"a": [1]}, like).notes == ()


def test_a_feature_called_y_is_never_taken_for_the_outcome():
    fit = read(Line, {"speed": [5, 6, 8], "a": [1, 2, 4], "y": [1, 0, 3]}, target="speed")
    assert fit["feature"].tolist() == ["a", "y"]
    assert plain(new({"a": [1], "y": [2]}, fit)) == {"X": [[1.0, 2.0]], "feature": ["a", "y"]}
    arrays = dict(fit)  # without the names of the user's columns
    assert plain(new({"a": [1], "y": [2]}, arrays)) == {"X": [[1.0, 2.0]], "feature": ["a", "y"]}
    assert new({"a": [1], "y": [2], "y_2": [3]}, arrays)["y"].tolist() == [3.0]
    moved = INPUTS.relabelled(arrays, "feature", np.array([1, 0]))
    assert typed(new(Data(arrays), moved)) == typed(moved)


def test_new_rows_without_a_fit():
    data = read(Line, {"a": [1], "b": [2]}, new=True)
    assert plain(data) == {"X": [[1.0, 2.0]], "feature": ["a", "b"]}
    data = INPUTS.parse(read_table({"a": [1], "y": [2]}), new=True)
    assert plain(data.arrays) == {"y": [2.0], "X": [[1.0]], "feature": ["a"]}
    assert str(refusal(Line, {"y": [1]}, new=True)) == NO_FEATURE


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
    "lists": (X2.tolist(), [1, 2, 4]),
    "one column": (X2, np.array([[1], [2], [4]])),
    "polars": (pl.DataFrame({"x1": X2[:, 0], "x2": X2[:, 1]}), pl.Series("t", [1, 2, 4])),
    "pandas": (pd.DataFrame(X2, columns=["x1", "x2"]), pd.Series([1, 2, 4], name="t")),
    "mapping": {"X": X2, "y": [1, 2, 4]},
    "mapping of frame": {"y": [1, 2, 4], "X": pd.DataFrame(X2, columns=["x1", "x2"])},
    "labels": {"X": X2, "y": [1, 2, 4], "feature": ["x1", "x2"]},
}


@by_name("source", PAIRS)
def test_features_and_outcome_apart(source):
    data = read(Line, source)
    assert plain(data) == ARRAYS
    assert (data.notes, data["X"].dtype, data["X"].flags.c_contiguous) == ((), np.float64, True)


def test_a_table_that_has_a_column_called_like_the_matrix():
    assert plain(read(Line, {"X": [1, 2], "y": [1, 3]})) == {"y": [1.0, 3.0], "X": [[1.0], [2.0]], "feature": ["X"]}


@pytest.mark.parametrize("source", [lambda X, y: (X, y), lambda X, y: {"X": X, "y": y}])
def test_indexes_that_differ_are_noted(source):
    X, y = pd.DataFrame(X2, columns=["a", "b"]), pd.Series([1, 2, 4], index=[2, 1, 0])
    data = read(Line, source(X, y))
    assert data["y"].tolist() == [1.0, 2.0, 4.0]
    assert data.notes == ("X and y have different indexes; rows matched by position",)
    assert read(Line, source(X, y.to_frame())).notes == data.notes
    assert read(Line, source(X, y.set_axis(X.index))).notes == ()
    assert read(Line, source(X, y.to_numpy())).notes == ()


DIFFERENT, OTHERS = "X has 3 rows, y has 2", "X has columns 'b', 'a', feature holds 'x1', 'x2'"
TWO_COLUMNS = "column 'y' has shape (3, 2), one dimension expected"
APART = {
    "lengths": ((X2, [1, 2]), DIFFERENT),
    "sparse": ((scipy.sparse.csr_matrix(X2), [1, 2, 4]), "column 'X' is a sparse matrix" + ITS_ARRAY),
    "sparse outcome": ((X2, scipy.sparse.csr_matrix([[1], [2], [4]])), "column 'y' is a sparse matrix" + ITS_ARRAY),
    "outcome of two columns": ((X2, X2), TWO_COLUMNS),
    "frame of two columns": ((X2, pd.DataFrame(X2, columns=["a", "b"])), TWO_COLUMNS),
    "three dimensions": ((np.zeros((3, 2, 2)), [1, 2, 4]), "X does not have two dimensions" + A_ROW_EACH),
    "one dimension": ((np.array([1.0, 2.0]), np.array([3.0, 5.0])), "X has one dimension, two expected" + ONE_COLUMN),
    "ragged": (([[1, 2], [3]], [1, 2]), "column 'X' is ragged: its rows have different lengths"),
    "no columns": ((np.zeros((3, 0)), [1, 2, 4]), "X has no columns"),
    "no outcome": ({"X": X2}, "the table has columns 'x1', 'x2' and none called 'y'; name the outcome with --target"),
    "None": ((X2, None), "column 'y' is a NoneType; a sequence of values was expected"),
    "names": ((pd.DataFrame(X2, columns=["a", "y"]), [1, 2, 4]), "X has a column 'y'" + RENAME),
    "text": ((np.array([["u", "1"], ["1", "1"]]), [1, 2]), "column 'x1', row 1: 'u' is not a number" + CHOOSE + "x2"),
    "weights": ({"X": X2, "y": [1, 2, 4], "weights": [1, 1, 1]}, "column 'X' has shape (3, 2), one dimension expected"),
    "file": ({**ARRAYS, "X": "/etc/hosts"}, "X does not have two dimensions; give it a row for each outcome"),
    "frame": ({**ARRAYS, "X": pd.DataFrame(X2, columns=["b", "a"])}, OTHERS),
}
test_features_and_outcome_that_are_refused = refuses(Line, {k: (source, {}, m) for k, (source, m) in APART.items()})


# Methods


def test_units():
    arrays = dict(read(Line, (X2, [1, 2, 4])))
    scaled = INPUTS.rescaled(arrays, np.array([2.0, 1e3]), np.array([0.0, -1.0]))
    assert scaled["X"].tolist() == [[2.0, 1999.0], [6.0, 4999.0], [14.0, 5999.0]]
    assert scaled["y"] is arrays["y"]
    with raises(InputError, "new_rows_unknown", "x1", "x2"):
        INPUTS.unseen(arrays, 2)


# The data that come along


def test_diabetes_is_the_data_of_efron_and_others_in_its_units():
    bunch = load_diabetes(scaled=False)
    data = read(Line, DATA / "diabetes.csv", target="progression")
    assert data["feature"].tolist() == bunch.feature_names
    assert np.array_equal(data["X"], bunch.data)
    assert np.array_equal(data["y"], bunch.target)
    assert (data.rows, data.notes) == (442, ())
    assert data["y"].mean() == pytest.approx(152.133, abs=5e-4)
    assert sorted(set(data["X"][:, 1])) == [1.0, 2.0]


def test_an_outcome_that_is_constant_is_noted_and_five_thousand_features_are_read():
    wide = {"y": [2, 2, None], "X": np.ones((3, 5000)), "feature": [f"x{i + 1}" for i in range(5000)]}
    data = read(Line, wide, missing="drop")
    constant = "column 'y' is constant: an intercept alone fits it without error"
    assert (data["X"].shape, data.notes) == ((2, 5000), ("1 row with missing values dropped (row 3)", constant))
    assert read(Line, data["X"], new=True, like=data)["X"].shape == (2, 5000)
