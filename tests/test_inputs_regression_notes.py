"""What the data of a regression cannot tell apart is said, and little of it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from bayeszoo.data.inputs import Regression
from bayeszoo.data.read import read
from tests.reading import by_name, model_of

Line = model_of(Regression("y"))


def notes(table, **options):
    return read(Line, table, **options).notes


OPPOSITE = "opposite: only the difference of their coefficients is identified by the data"
UNTOLD = ": its coefficient is not told apart from an intercept"
SUM = "only the sum of their coefficients is identified by the data"
NOISE = [0.3, -1.2, 2.5, 0.1, 4.0, -3.3, 0.9, 1.1]
OTHER = [1.0, 0.0, 2.0, 7.0, -1.0, 3.0, 2.0, 5.0]
MINUS = [-x for x in NOISE]
Y8 = [1.0, 2.0, 4.0, 3.0, 9.0, 1.0, 0.0, 2.0]
NOTED = {
    "constant": ({"x1": NOISE, "x2": [3] * 8}, ["column 'x2' is constant (3)" + UNTOLD]),
    "two constants": (
        {"x1": [0.1] * 8, "x2": [0.1] * 8},  # not told to be identical, too
        [f"column '{name}' is constant (0.1){UNTOLD}" for name in ("x1", "x2")],
    ),
    "identical": ({"x1": NOISE, "x2": OTHER, "x3": NOISE}, [f"columns 'x1' and 'x3' are identical: {SUM}"]),
    "zeros": ({"x1": [0.0, *OTHER[1:]], "x2": [-0.0, *OTHER[1:]]}, [f"columns 'x1' and 'x2' are identical: {SUM}"]),
    "opposite": ({"x1": NOISE, "x2": MINUS}, ["columns 'x1' and 'x2' are " + OPPOSITE]),
    "seven": (
        {f"x{i}": NOISE for i in range(7)},
        [f"columns 'x0', 'x1', 'x2', 'x3', 'x4' and 2 more are identical: {SUM}"],
    ),
    "mixed": (
        {"x1": NOISE, "x2": MINUS, "x3": NOISE},
        [
            "columns 'x1', 'x2' and 'x3' are identical or opposite: only the sum of their coefficients, with a minus "
            "for 'x2', is identified by the data"
        ],
    ),
    "nearly identical": ({"x1": NOISE, "x2": [np.nextafter(NOISE[0], 1), *NOISE[1:]]}, []),
    "absolute values": ({"x1": NOISE, "x2": list(map(abs, NOISE))}, []),
    "proportional": ({"x1": NOISE, "x2": [2 * x + 1 for x in NOISE]}, []),  # left to the singular values
}


@by_name(("features", "expected"), NOTED)
def test_what_the_data_cannot_tell_apart_is_noted(features, expected):
    wide = "8 features, 8 rows: the data do not identify all coefficients and an intercept; the prior does the rest"
    found = notes({"y": Y8, **features})
    assert list(found) == expected + [wide] * (len(features) == 8)


def test_columns_that_differ_late_or_agree_early_are_told_apart():
    rng = np.random.default_rng(1)
    x = rng.normal(size=1000)
    late = x.copy()
    late[-1] += 1
    early = np.where(np.arange(1000) < 64, x, 0)
    assert notes({"y": rng.normal(size=1000), "x1": x, "x2": late, "x3": x, "x4": -late, "x5": early}) == (
        f"columns 'x1' and 'x3' are identical: {SUM}",
        "columns 'x2' and 'x4' are " + OPPOSITE,
    )


def test_constant_outcome():
    for name, value in (("y", 5), ("speed", 0.5)):
        note = f"column '{name}' is constant ({value}): an intercept alone fits it without error"
        assert notes({name: [value] * 3, "a": [1, 2, 4]}, target=name) == (note,)


def test_more_features_than_rows():
    rng = np.random.default_rng(0)
    for shape, sizes, what in (
        ((5, 7), "7 features, 5 rows", "coefficients"),
        ((5, 5), "5 features, 5 rows", "coefficients and an intercept"),
        ((1, 2), "2 features, 1 row", "coefficients"),
        ((1, 1), "1 feature, 1 row", "coefficients and an intercept"),
    ):
        (note,) = notes((rng.normal(size=shape), 3 + np.arange(shape[0])))
        assert note == f"{sizes}: the data do not identify all {what}; the prior does the rest"
    assert notes((rng.normal(size=(5, 4)), np.arange(5))) == ()


def test_notes_are_of_the_rows_that_are_kept():
    assert notes({"y": [1, 2, None, 5], "a": [3, 3, 4, 3]}, missing="drop") == (
        "1 row with missing values dropped (row 3)",
        "column 'a' is constant (3)" + UNTOLD,
    )


def test_at_most_five_notes_of_a_kind():
    rng, y = np.random.default_rng(0), np.arange(30.0)
    constants = {f"c{i}": np.full(30, i) for i in range(7)}
    pairs = {f"x{i}": column for i, column in enumerate(np.repeat(rng.normal(size=(6, 30)), 2, axis=0))}
    small = {f"s{i}": [1e-320, *rng.normal(size=29)] for i in range(6)}
    for columns, fifth, last in (
        (constants, "column 'c4' is constant (4)" + UNTOLD, "7 constant columns in all"),
        (pairs, f"columns 'x8' and 'x9' are identical: {SUM}", "6 groups of columns that are identical or opposite"),
        (small, "column 's4' spans 1e-320..", "6 columns with such small numbers in all"),
    ):
        found = notes({"y": y, **columns})
        assert len(found) == 6
        assert found[4].startswith(fifth)
        assert found[5].startswith(last)
    assert len(notes({"y": y, **{f"c{i}": np.full(30, i) for i in range(5)}})) == 5


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


def test_canonical_arrays_are_noted_as_tables_are():
    X = np.column_stack([np.arange(4.0), np.full(4, 3), np.arange(4.0)])
    found = read(Line, {"y": [2, 2, 2, 2], "X": X, "feature": ["a", "b", "c"]})
    assert found.notes == (
        "column 'y' is constant (2): an intercept alone fits it without error",
        "column 'b' is constant (3)" + UNTOLD,
        f"columns 'a' and 'c' are identical: {SUM}",
    )
    holes = {"y": [2, 1, 3, 0], "X": [[1], [None], [3], [5]], "feature": ["a"]}
    data = read(Line, holes, missing="drop")
    assert (data["y"].tolist(), data.notes) == ([2.0, 3.0, 0.0], ("1 row with missing values dropped (row 2)",))
    frame, series = pd.DataFrame({"a": [1, 2, 4]}), pd.Series([1, 2, 4], index=[1, 2, 3])
    found = read(Line, {"y": series, "X": frame, "feature": ["a"]})
    assert found.notes == ("X and y have different indexes; rows matched by position",)
