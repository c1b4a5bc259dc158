"""Labels become codes that are said, and counts of them stay whole."""

from __future__ import annotations

import numpy as np
import pandas as pd

from bayeszoo.data.inputs import Categories
from bayeszoo.data.read import read
from bayeszoo.data.table.read import read_table
from tests.reading import by_name, model_of, plain, refuses

ONLY_A = " only the category 'a', at least two are needed; give all with --categories"
THE_2 = " the 2 given; add it to --categories"

OR_ELSE = " if it is, else --column or --count"
LEAVE_OUT = "leave out --categories"
MIXED = "columns of counts and a column of labels do not go together; leave one out"

FIT_AGAIN = "; leave it out, or fit again with it"

Poll = model_of(Categories("y"))


LABELS = {
    "text": (["b", "a", "a"], {}, [1, 0, 0], ["a", "b"]),
    "numbers in text": (["10", "9", "9.5"], {}, [2, 0, 1], ["9", "9.5", "10"]),
    "numbers": ([10, 9, 10], {}, [1, 0, 1], ["9", "10"]),
    "NA is a label": (["NA", "null"], {}, [0, 1], ["NA", "null"]),
    "pandas": (pd.Series(["b", None, "a"]), {"missing": "drop"}, [1, 0], ["a", "b"]),
    "given order": (["b", "a"], {"categories": ["b", "a"]}, [0, 1], ["b", "a"]),
    "given with a comma": (["b", "a,c"], {"categories": '"a,c",b'}, [1, 0], ["a,c", "b"]),
    "given as numbers": ([2, 1], {"categories": [2.0, 1]}, [0, 1], ["2", "1"]),
    "dropped": ({"y": ["a", "b", "c"], "n": [1, 1, None]}, {"column": "y"}, [0, 1, 2], ["a", "b", "c"]),
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
    "one": (["a", "a"], {}, "column 'y' has" + ONLY_A),
    "one column": ({"a": [1]}, {"columns": ["a"]}, "the table has" + ONLY_A),
    "outside": (["a", "x", "b"], {"categories": "a,b"}, "column 'y', row 2: category 'x' is not among" + THE_2),
    "column outside": ({"a": [1], "x": [1]}, {"categories": "a,b"}, "category 'x' is not among" + THE_2),
    "no list": (["a", "b"], {"categories": 3}, "categories must be a list of names, got 3"),
    "missing": (["a", ""], {}, "column 'y': 1 missing value (row 2); use --missing drop"),
    "dates": (pd.Series(pd.to_datetime(["2020-01-01"])), {}, "column 'y' holds dates"),
    "lists": ([["a"], "b"], {}, "column 'y', row 1: ['a'] is neither text nor a number"),
    "mixture": ({"a": [1]}, {"columns": "a", "count": "a"}, MIXED),
    "hole": ({"a": [1, 2], "b": [np.nan, 3]}, {}, "column 'b': 1 missing value (row 1); use --missing drop"),
    "sum": ({"a": [2**53], "b": [2]}, {}, "the counts have a sum above 2**53"),
    "zeros": ({"a": [0], "b": [0]}, {}, "the counts add up to 0: there are no observations"),
    "no counts": ({"a": ["x", "y"], "n": [0, 0]}, {"count": "n"}, "column 'n' adds up to 0: there are no observations"),
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
    inputs = Categories("y")
    assert plain(inputs.parse_new(read_table(["c", "a"]), LIKE).arrays) == {"y": [2, 0], "category": ["a", "b", "c"]}
    assert inputs.parse_new(read_table(["c"]), LIKE).notes == ()
    counted = inputs.parse_new(read_table({"who": ["c", "a"], "n": [5, 6]}), LIKE, count="n").arrays
    assert counted["counts"].tolist() == [[6, 0, 5]]
    counts = inputs.parse_new(read_table({"c": [1], "b": [2], "a": [3]}), LIKE).arrays
    assert counts["counts"].tolist() == [[3, 2, 1]]


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
