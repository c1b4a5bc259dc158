"""Counts are whole numbers, their exposure is positive, and nothing is pooled or expanded unasked."""

from __future__ import annotations

import numpy as np
import pytest

from bayeszoo.data.inputs import Counts
from bayeszoo.data.read import read
from bayeszoo.data.table.read import read_table
from bayeszoo.errors import InputError
from tests.reading import model_of, refuses

BOTH = " the exposure and the counts"

TOO_MANY = " observations, at most 10000000 are read; give a part of them"

Events = model_of(Counts("y"))


REFUSED = {
    "negative": ({"b": [1, -1]}, {}, "column 'b', row 2: -1 is negative; counts must be >= 0"),
    "sum": ({"b": [2**53, 1]}, {}, "column 'b' has a sum above 2**53"),
    "two columns": ({"a": [1], "b": [2]}, {}, "the table has columns 'a', 'b'; say which with --column"),
    "no exposure": ({"y": [1, 2], "t": [1, 0]}, {"exposure": "t"}, "column 't', row 2: 0 is not > 0"),
    "no time": ({"y": [1], "exposure": [np.nan]}, {}, "column 'exposure' has no values"),
    "same": ({"y": [1]}, {"exposure": "y", "column": "y"}, "column 'y' cannot hold both the outcomes and the exposure"),
    "both": ({"y": [1], "n": [1]}, {"exposure": "n", "count": "n"}, "column 'n' cannot hold both" + BOTH),
    "never": ({"y": [1], "n": [0]}, {"count": "n"}, "column 'n' adds up to 0: there are no observations"),
    "expanded": ({"y": [1, 2], "n": [10**7, 1]}, {"count": "n"}, "column 'n' adds up to 10000001" + TOO_MANY),
    "sum of the expanded": ({"y": [2**52], "n": [3]}, {"count": "n"}, "column 'y' has a sum above 2**53"),
}
test_tables_that_are_refused = refuses(Events, REFUSED)


def test_counts():
    data = read(Events, ["0", "9007199254740991"])
    assert (data["y"].dtype, data["y"].tolist(), data.notes) == (np.int64, [0, 2**53 - 1], ())


def test_exposure_is_used_when_it_is_called_so_and_said():
    table = {"deaths": [1, 2, 3], "exposure": [0.5, 1, None]}
    data = read(Events, table, missing="drop")
    assert {name: values.tolist() for name, values in data.items()} == {"y": [1, 2], "exposure": [0.5, 1.0]}
    assert next(iter(data)) == "y"
    assert data.columns == {"y": "deaths", "exposure": "exposure"}
    assert data.notes == (
        "column 'exposure': how long or how much each row was observed",
        "1 row with missing values dropped (row 3)",
    )
    alone = read(Events, {"y": [1], "exposure": [2]}, column="y")
    assert list(alone) == ["y"]
    assert alone.notes == ("column 'exposure' is not used; use it with --exposure exposure",)


def test_repeated_rows():
    table = {"deaths": [0, 1, 2], "n": [2, 0, 1], "t": [1.0, 2.0, 4.0]}
    data = read(Events, table, column="deaths", count="n", exposure="t")
    assert (data["y"].tolist(), data["exposure"].tolist()) == ([0, 0, 2], [1.0, 1.0, 4.0])
    assert data.columns == {"y": "deaths", "exposure": "t", "count": "n"}


def test_a_column_called_count_is_not_overlooked():
    assert read(Events, {"y": [1], "count": [2]}).notes == ("column 'count' is not used; use it with --count count",)


def test_methods():
    inputs = Counts("y")
    plain, timed = (
        inputs.canonical({"y": [2, 0, 2]}).arrays,
        inputs.canonical({"y": [2, 0, 2, 2], "exposure": [1, 1, 3, 1]}).arrays,
    )
    rows, times = inputs.observations(plain)
    assert (rows["y"].tolist(), times.tolist()) == ([0, 2], [1, 2])
    rows, times = inputs.observations(timed)
    assert list(zip(rows["y"], rows["exposure"], times, strict=True)) == [(0, 1.0, 1), (2, 1.0, 2), (2, 3.0, 1)]
    assert [arrays["y"].tolist() for arrays in inputs.possible()] == [[count] for count in range(5000)]
    (other,) = inputs.other_forms(plain)
    assert other["y"].tolist() == [2, 0, 2]
    assert len(set(other["exposure"])) == 3
    assert inputs.other_forms(timed) == []


def test_new_rows_have_the_exposure_that_the_fit_has():
    inputs, plain = Counts("y"), {"y": np.array([1])}
    timed = {**plain, "exposure": np.array([2.0])}
    with pytest.raises(InputError, match="the exposure of further rows is not known; give a table"):
        inputs.unseen(timed, 1)
    with pytest.raises(InputError, match="the fit has an exposure, these rows have none; give its column"):
        inputs.parse_new(read_table({"y": [1]}), timed)
    with pytest.raises(InputError, match="the fit has no exposure, these rows do"):
        inputs.parse_new(read_table({"exposure": [1]}), plain)
    with pytest.raises(InputError, match="the fit has no exposure, these rows do"):
        inputs.parse_new(read_table({"y": [1], "t": [1]}), plain, exposure="t")
    assert inputs.parse_new(read_table({"y": [1]}), plain).arrays["y"].tolist() == [1]


@pytest.mark.parametrize(("name", "options"), [("exposure", {}), ("hours", {"exposure": "hours"})])
def test_new_rows_of_an_exposure_alone(name, options):
    data = read(Events, {name: [0.5, 2]}, new=True, like={"y": np.array([1]), "exposure": np.array([1.0])}, **options)
    assert {name: values.tolist() for name, values in data.items()} == {"exposure": [0.5, 2.0]}
    assert not Counts("y").has_outcome(data)
    assert Counts("y").has_outcome({"y": np.array([1])})
