"""Labels become codes that are said; counts stay whole and are never pooled or expanded unasked."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bayeszoo.data.inputs import Categories, Counts
from bayeszoo.data.read import read
from bayeszoo.errors import InputError
from tests.reading import by_name, model_of, plain, refusal, refuses

ONLY_A = " only the category 'a', at least two are needed; give all with --categories"
THE_2 = " the 2 given; add it to --categories"
OR_ELSE = " if it is, else --column or --count"
LEAVE_OUT = "leave out --categories"
MIXED = "columns of counts and a column of labels do not go together; leave one out"
FIT_AGAIN = "; leave it out, or fit again with it"

Poll = model_of(Categories("y"))


LABELS = {
    "text": (["b", "a", "a"], {}, [1, 0, 0], ["a", "b"]),
    "numbers": ([10, 9, 10], {}, [1, 0, 1], ["9", "10"]),
    "NA is a label": (["NA", "null"], {}, [0, 1], ["NA", "null"]),
    "pandas": (pd.Series(["b", None, "a"]), {"missing": "drop"}, [1, 0], ["a", "b"]),
    "given order": (["b", "a"], {"categories": ["b", "a"]}, [0, 1], ["b", "a"]),
    "given with a comma": (["b", "a,c"], {"categories": '"a,c",b'}, [1, 0], ["a,c", "b"]),
    "given as numbers": ([2, 1], {"categories": [2.0, 1]}, [0, 1], ["2", "1"]),
}


@by_name(("source", "options", "codes", "labels"), LABELS)
def test_labels(source, options, codes, labels):
    data = read(Poll, source, **options)
    assert plain(data) == {"y": codes, "category": labels}
    assert (data["y"].dtype, data["category"].dtype.kind, data.rows) == (np.int64, "U", len(codes))


def test_the_coding_is_said():
    assert read(Poll, {"candidate": ["dukakis", "bush"]}).notes == ("column 'candidate': categories bush, dukakis",)
    data = read(Poll, ["b", "a", ""], missing="drop", categories="c,b,a,d")
    assert data.notes == (
        "column 'y': categories c, b, a, d",
        "column 'y': categories c, d never occur",
        "1 row with missing values dropped (row 3)",
    )
    (note,) = read(Poll, [f"w{i}" for i in range(30)]).notes
    assert note.endswith("w26, ... (30 in all)")
    assert note.count(",") == 20


REFUSED = {
    "dates": (pd.Series(pd.to_datetime(["2020-01-01"])), {}, "column 'y' holds dates"),
    "lists": ([["a"], "b"], {}, "column 'y', row 1: ['a'] is neither text nor a number"),
    "one": (["a", "a"], {}, "column 'y' has" + ONLY_A),
    "one column": ({"a": [1]}, {"columns": ["a"]}, "the table has" + ONLY_A),
    "outside": (["a", "x", "b"], {"categories": "a,b"}, "column 'y', row 2: category 'x' is not among" + THE_2),
    "column outside": ({"a": [1], "x": [1]}, {"categories": "a,b"}, "category 'x' is not among" + THE_2),
    "no list": (["a", "b"], {"categories": 3}, "categories must be a list of names, got 3"),
    "mixture": ({"a": [1]}, {"columns": "a", "count": "a"}, MIXED),
    "sum": ({"a": [2**53], "b": [2]}, {}, "the counts have a sum above 2**53"),
    "zeros": ({"a": [0], "b": [0]}, {}, "the counts add up to 0: there are no observations"),
    "unclear": ({"y": [1], "x": [2]}, {}, "column 'y' may be a category or not; say --columns y,x" + OR_ELSE),
    "codes": ({"n": [1], "count": [7]}, {}, "column 'count' may be a category or not; say --columns n,count" + OR_ELSE),
    "text and numbers": ({"a": ["x"], "b": [2]}, {}, "the table has columns 'a', 'b'; say which with --column"),
}
test_tables_that_are_refused = refuses(Poll, REFUSED)


def test_labels_with_counts(written):
    path = written("candidate,count\ndukakis,583\nbush,700\nother,137\nbush,27\n", "poll.csv")
    data = read(Poll, path, count="count")
    assert plain(data) == {"counts": [[727, 583, 137]], "category": ["bush", "dukakis", "other"]}
    assert data.columns == {"column": "candidate", "count": "count"}
    assert data.notes == ("column 'candidate': categories bush, dukakis, other",)
    assert "column 'count' is not used; use it with --count count" in read(Poll, path, column="candidate").notes


def test_a_label_whose_rows_are_all_dropped_is_no_category():
    data = read(Poll, {"y": ["a", "b", "c"], "n": [1, None, 2]}, count="n", missing="drop")
    assert plain(data) == {"counts": [[1, 2]], "category": ["a", "c"]}


def test_columns_of_counts():
    table = {"spam": [1, 0, 5], "ham": [2, 0, 0]}
    data = read(Poll, table)
    assert plain(data) == {"counts": [[1, 2], [0, 0], [5, 0]], "category": ["spam", "ham"]}
    assert data.notes == ("the table: categories spam, ham", "1 row without observations (row 2)")
    assert (data.columns, data.rows) == ({"counts": "spam, ham"}, 3)
    ordered = read(Poll, {**table, "id": ["x", "y", "z"]}, columns=["spam", "ham"], categories="ham,eggs,spam")
    assert ordered["counts"].tolist() == [[2, 0, 1], [0, 0, 0], [0, 0, 5]]
    assert "the table: category eggs never occurs" in ordered.notes


LIKE = {"y": np.array([0]), "category": np.array(["a", "b", "c"])}


def test_new_rows_have_the_codes_of_the_fit():
    new = read(Poll, ["c", "a"], new=True, like=LIKE)
    assert (plain(new), new.notes) == ({"y": [2, 0], "category": ["a", "b", "c"]}, ())
    counted = read(Poll, {"who": ["c", "a"], "n": [5, 6]}, new=True, like=LIKE, count="n")
    assert counted["counts"].tolist() == [[6, 0, 5]]
    assert read(Poll, {"c": [1], "b": [2], "a": [3]}, new=True, like=LIKE)["counts"].tolist() == [[3, 2, 1]]


NEW = {
    "label": (["a", "x"], {}, "column 'y', row 2: category 'x' is not among the 3 of the fit" + FIT_AGAIN),
    "column": ({"a": [1], "b": [1], "c": [1], "d": [1]}, {}, "category 'd' is not among the 3 of the fit" + FIT_AGAIN),
    "no column": ({"a": [1], "b": [1]}, {}, "the table has no column 'c', a category of the fit"),
    "others": (["a"], {"categories": ["a", "b"]}, "categories must be those of the fit, in their order; " + LEAVE_OUT),
}
test_new_rows_that_are_refused = refuses(Poll, NEW, new=True, like=LIKE)


def test_rows_in_the_form_of_counts():
    arrays = {"y": np.array([0, 1, 1, 2, 0, 0, 1]), "category": np.array(["a", "b", "c"])}
    (counts,) = Categories().other_forms(arrays)
    assert counts["counts"].tolist() == [[1, 0, 0], [0, 2, 0], [2, 0, 1], [0, 1, 0]]
    assert Categories().other_forms(counts) == []


BOTH = " the exposure and the counts"

TOO_MANY = " observations, at most 10000000 are read; give a part of them"

Events = model_of(Counts("y"))


REFUSED_EVENTS = {
    "sum": ({"b": [2**53, 1]}, {}, "column 'b' has a sum above 2**53"),
    "no exposure": ({"y": [1, 2], "t": [1, 0]}, {"exposure": "t"}, "column 't', row 2: 0 is not > 0"),
    "both": ({"y": [1], "n": [1]}, {"exposure": "n", "count": "n"}, "column 'n' cannot hold both" + BOTH),
    "never": ({"y": [1], "n": [0]}, {"count": "n"}, "column 'n' adds up to 0: there are no observations"),
    "expanded": ({"y": [1, 2], "n": [10**7, 1]}, {"count": "n"}, "column 'n' adds up to 10000001" + TOO_MANY),
    "sum of the expanded": ({"y": [2**52], "n": [3]}, {"count": "n"}, "column 'y' has a sum above 2**53"),
}
test_tables_of_events_that_are_refused = refuses(Events, REFUSED_EVENTS)


def test_exposure_is_used_when_it_is_called_so_and_said():
    table = {"deaths": [1, 2, 3], "exposure": [0.5, 1, None]}
    data = read(Events, table, missing="drop")
    assert plain(data) == {"y": [1, 2], "exposure": [0.5, 1.0]}
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


def test_methods():
    inputs = Counts("y")
    alone = inputs.canonical({"y": [2, 0, 2]}).arrays
    timed = inputs.canonical({"y": [2, 0, 2, 2], "exposure": [1, 1, 3, 1]}).arrays
    rows, times = inputs.observations(alone)
    assert (rows["y"].tolist(), times.tolist()) == ([0, 2], [1, 2])
    rows, times = inputs.observations(timed)
    assert list(zip(rows["y"], rows["exposure"], times, strict=True)) == [(0, 1.0, 1), (2, 1.0, 2), (2, 3.0, 1)]
    assert [arrays["y"].tolist() for arrays in inputs.possible()] == [[count] for count in range(5000)]
    (other,) = inputs.other_forms(alone)
    assert other["y"].tolist() == [2, 0, 2]
    assert len(set(other["exposure"])) == 3
    assert inputs.other_forms(timed) == []


def test_new_rows_have_the_exposure_that_the_fit_has():
    alone = {"y": np.array([1])}
    timed = {**alone, "exposure": np.array([2.0])}
    with pytest.raises(InputError, match="the exposure of further rows is not known; give a table"):
        Counts("y").unseen(timed, 1)
    refused = "the fit has an exposure, these rows have none; give its column"
    assert str(refusal(Events, {"y": [1]}, new=True, like=timed)).startswith(refused)
    for table, options in (({"exposure": [1]}, {}), ({"y": [1], "t": [1]}, {"exposure": "t"})):
        refused = refusal(Events, table, new=True, like=alone, **options)
        assert str(refused).startswith("the fit has no exposure, these rows do")
    assert plain(read(Events, {"y": [1]}, new=True, like=alone)) == {"y": [1]}


@pytest.mark.parametrize(("name", "options"), [("exposure", {}), ("hours", {"exposure": "hours"})])
def test_new_rows_of_an_exposure_alone(name, options):
    data = read(Events, {name: [0.5, 2]}, new=True, like={"y": np.array([1]), "exposure": np.array([1.0])}, **options)
    assert plain(data) == {"exposure": [0.5, 2.0]}
    assert not Counts("y").has_outcome(data)
    assert Counts("y").has_outcome({"y": np.array([1])})
