"""Input types that no model of the zoo has: a value with its standard error, and a binary outcome with features."""

import numpy as np
import pandas as pd
import pytest

from bayeszoo.data.inputs import BinaryRegression, Real, RealWithError
from bayeszoo.data.read import read
from bayeszoo.data.table.read import read_table
from bayeszoo.errors import InputError
from tests.reading import model_of, plain, refusal
from tests.refusals import raises

SCHOOLS = model_of(RealWithError("y"))
FAILURES = model_of(BinaryRegression("fails"))
EFFECTS = {"effect": [28.0, 8.0, -3.0], "se": [15.0, 10.0, 16.0]}  # Rubin 1981
ROWS = {"temperature": [53, 57, 70], "pressure": [50.0, 50.0, 200.0], "leak": ["yes", "no", "no"]}


def test_a_value_comes_with_its_standard_error():
    data = read(SCHOOLS, EFFECTS)
    assert plain(data) == {"y": EFFECTS["effect"], "se": EFFECTS["se"]}
    assert data.columns == {"y": "effect", "se": "se"}
    renamed = pd.DataFrame({"a": EFFECTS["effect"], "b": EFFECTS["se"], "c": 1})
    assert read(SCHOOLS, renamed, column="a", se="b") == data
    assert read(SCHOOLS, dict(data)) == data
    assert plain(SCHOOLS.inputs.in_units(data, -2.0, 1.0)) == {"y": [-55.0, -15.0, 7.0], "se": [30.0, 20.0, 32.0]}
    assert plain(read(SCHOOLS, {"se": [5.0]}, new=True, like=data)) == {"se": [5.0]}


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (
            {"effect": [1.0]},
            {},
            "the table has columns 'effect' and none called 'se'; name the column of standard errors with",
        ),
        ({"effect": [1.0], "se": [0.0]}, {}, "column 'se', row 1: 0.0 is not > 0"),
        ({"effect": [1.0, None], "se": [1.0, 2.0]}, {}, "column 'effect': 1 missing value (row 2); use --missing drop"),
        ({"se": [1.0]}, {"column": "se"}, "column 'se' cannot hold both the outcomes and the standard errors"),
    ],
)
def test_what_is_no_value_with_its_error_is_refused(table, options, message):
    assert str(refusal(SCHOOLS, table, **options)).startswith(message)


def test_a_binary_outcome_has_features():
    data = read(FAILURES, ROWS, target="leak", positive="yes")
    assert (data["fails"].tolist(), data["fails"].dtype, data["X"].shape) == ([1, 0, 0], np.int64, (3, 2))
    assert data["feature"].tolist() == ["temperature", "pressure"]
    assert data.notes == ("column 'leak': 'no' is 0, 'yes' is 1",)
    numbers = read(FAILURES, (data["X"], [1, 0, 0]))
    assert np.array_equal(numbers["X"], data["X"])
    assert read(FAILURES, dict(data)) == data
    new = read(FAILURES, {"pressure": [100.0], "temperature": [31]}, new=True, like=data)
    assert plain(new) == {"X": [[31.0, 100.0]], "feature": ["temperature", "pressure"]}
    later = read(FAILURES, {**ROWS, "leak": ["no", "no", "yes"]}, new=True, like=data)
    assert later["fails"].tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (ROWS, {"target": "leak"}, "column 'leak' holds yes/no: use --positive yes"),
        (
            ROWS,
            {"target": "pressure", "features": ["temperature"]},
            "column 'pressure', row 1: 50.0 is neither 0 nor 1",
        ),
        (
            ROWS,
            {},
            "the table has columns 'temperature', 'pressure', 'leak' and none called 'fails'; name the outcome with",
        ),
        ({"x": [1.0], "fails": [2]}, {}, "column 'fails', row 1: 2 is neither 0 nor 1"),
    ],
)
def test_what_is_no_binary_outcome_is_refused(table, options, message):
    assert str(refusal(FAILURES, table, **options)).startswith(message)


def test_a_constant_outcome_is_said():
    assert "no slope is known but by the prior" in read(FAILURES, {"x": [1.0, 2.0], "fails": [1, 1]}).notes[-1]


def test_durations_are_positive():
    times = Real("t", positive=True)
    assert times.describe() == "one column of numbers > 0 (t)"
    assert times.parse(read_table({"t": ["0.5", "2"]})).arrays["t"].tolist() == [0.5, 2]
    assert times.in_units({"t": np.array([2.0])}, 60, 5)["t"] == 120
    for wrong in ("0", "-1.5"):
        with raises(InputError, "out_of_range", "'t'", "2", wrong, "0"):
            times.parse(read_table({"t": ["1", wrong]}))
    assert Real("t").parse(read_table({"t": ["0"]})).arrays["t"].tolist() == [0]
