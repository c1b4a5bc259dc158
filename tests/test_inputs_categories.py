"""Labels become codes that are said, and counts of them stay whole."""

from __future__ import annotations

import time
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from bayeszoo.data.inputs import Categories
from bayeszoo.data.read import read
from bayeszoo.data.table.read import read_table
from bayeszoo.errors import InputError


class Poll:
    inputs = Categories("y")
    examples = ()


def plain(data):
    return {name: values.tolist() for name, values in data.items()}


LABELS = {
    "text": (["b", "a", "a"], {}, [1, 0, 0], ["a", "b"]),
    "numbers in text": (["10", "9", "9.5"], {}, [2, 0, 1], ["9", "9.5", "10"]),
    "numbers": ([10, 9, 10], {}, [1, 0, 1], ["9", "10"]),
    "floats": ([10.0, 9.5], {}, [1, 0], ["9.5", "10"]),
    "truth": ([True, False], {}, [1, 0], ["False", "True"]),
    "NA is a label": (["NA", "null"], {}, [0, 1], ["NA", "null"]),
    "codes stay text": (["00123", "123"], {}, [0, 1], ["00123", "123"]),
    "pandas": (pd.Series(["b", None, "a"]), {"missing": "drop"}, [1, 0], ["a", "b"]),
    "given order": (["b", "a"], {"categories": ["b", "a"]}, [0, 1], ["b", "a"]),
    "given as text": (["b", "a"], {"categories": "b, a"}, [0, 1], ["b", "a"]),
    "given with a comma": (["b", "a,c"], {"categories": '"a,c",b'}, [1, 0], ["a,c", "b"]),
    "given as numbers": ([2, 1], {"categories": [2.0, 1]}, [0, 1], ["2", "1"]),
    "dropped": ({"y": ["a", "b", "c"], "n": [1, 1, None]}, {"column": "y"}, [0, 1, 2], ["a", "b", "c"]),
}


@pytest.mark.parametrize(("source", "options", "codes", "labels"), LABELS.values(), ids=LABELS.keys())
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
    "one": (
        ["a", "a"],
        {},
        "column 'y' has only the category 'a', at least two are needed; give all with --categories",
    ),
    "one column": (
        {"a": [1]},
        {"columns": ["a"]},
        "the table has only the category 'a', at least two are needed; give all with --categories",
    ),
    "outside": (
        ["a", "x", "b"],
        {"categories": "a,b"},
        "column 'y', row 2: category 'x' is not among the 2 given; add it to --categories",
    ),
    "column outside": (
        {"a": [1], "x": [1]},
        {"categories": "a,b"},
        "category 'x' is not among the 2 given; add it to --categories",
    ),
    "twice": (["a", "b"], {"categories": ["a", "b", "a"]}, "categories: 'a' appears twice"),
    "empty": (["a", "b"], {"categories": "a,,b"}, "categories holds an empty name"),
    "none": (["a", "b"], {"categories": []}, "categories is empty"),
    "no list": (["a", "b"], {"categories": 3}, "categories must be a list of names, got 3"),
    "missing": (["a", ""], {}, "column 'y': 1 missing value (row 2); use --missing drop"),
    "dates": (pd.Series(pd.to_datetime(["2020-01-01"])), {}, "column 'y' holds dates"),
    "lists": ([["a"], "b"], {}, "column 'y', row 1: ['a'] is neither text nor a number"),
    "mixture": (
        {"a": [1]},
        {"columns": "a", "count": "a"},
        "columns of counts and a column of labels do not go together; leave one out",
    ),
    "fraction": ({"a": [1, 2], "b": [1.5, 3]}, {}, "column 'b', row 1: 1.5 is not a whole number"),
    "negative": ({"a": [1, 2], "b": [-1, 3]}, {}, "column 'b', row 1: -1 is negative; counts must be >= 0"),
    "infinite": ({"a": [1, 2], "b": [1, np.inf]}, {}, "column 'b', row 2: inf is too large"),
    "large": (
        {"a": [1], "b": [2.0**60]},
        {},
        "column 'b', row 1: 1.152921504606847e+18 is too large; counts must be <= 2**53",
    ),
    "hole": ({"a": [1, 2], "b": [np.nan, 3]}, {}, "column 'b': 1 missing value (row 1); use --missing drop"),
    "sum": ({"a": [2**53], "b": [2]}, {}, "the counts have a sum above 2**53"),
    "zeros": ({"a": [0], "b": [0]}, {}, "the counts add up to 0: there are no observations"),
    "no counts": ({"a": ["x", "y"], "n": [0, 0]}, {"count": "n"}, "column 'n' adds up to 0: there are no observations"),
    "unclear": (
        {"y": [1], "x": [2]},
        {},
        "column 'y' may be a category or not; say --columns y,x if it is, else --column or --count",
    ),
    "codes and counts": (
        {"who": [1, 2], "count": [7, 8]},
        {},
        "column 'count' may be a category or not; say --columns who,count if it is, else --column or --count",
    ),
    "text and numbers": ({"a": ["x"], "b": [2]}, {}, "the table has columns 'a', 'b'; say which with --column"),
    "no column": ({"a": [1], "b": [2]}, {"columns": "a,c"}, "the table has no column 'c'; its columns are 'a', 'b'"),
}


@pytest.mark.parametrize(("source", "options", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_tables_that_are_refused(source, options, message):
    with pytest.raises(InputError) as caught:
        read(Poll, source, **options)
    assert str(caught.value) == message


def test_labels_with_counts(tmp_path):
    path = tmp_path / "poll.csv"
    path.write_text("candidate,count\ndukakis,583\nbush,700\nother,137\nbush,27\n")
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


def test_ten_times_the_rows_are_read_in_about_ten_times_the_time():
    labels = [f"word {i}" for i in np.random.default_rng(0).integers(0, 1000, 500_000)]
    times = []
    for rows in (50_000, 500_000):
        start = time.process_time()
        data = read(Poll, labels[:rows])
        times.append(time.process_time() - start)
    assert times[1] < 50 * times[0]
    assert data["category"][data["y"][:100]].tolist() == labels[:100]


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
    "label": (
        ["a", "x"],
        {},
        "column 'y', row 2: category 'x' is not among the 3 of the fit; leave it out, or fit again with it",
    ),
    "column": (
        {"a": [1], "b": [1], "c": [1], "d": [1]},
        {},
        "category 'd' is not among the 3 of the fit; leave it out, or fit again with it",
    ),
    "no column": ({"a": [1], "b": [1]}, {}, "the table has no column 'c', a category of the fit"),
    "others": (
        ["a"],
        {"categories": ["a", "b"]},
        "categories must be those of the fit, in their order; leave out --categories",
    ),
}


@pytest.mark.parametrize(("source", "options", "message"), NEW.values(), ids=NEW.keys())
def test_new_rows_that_are_refused(source, options, message):
    with pytest.raises(InputError) as caught:
        Categories("y").parse_new(read_table(source), LIKE, **options)
    assert str(caught.value) == message


def test_methods():
    inputs = Categories("word", "letter")
    arrays = {"word": np.array([2, 0, 2]), "letter": np.array(["a", "b", "c"])}
    counts = {"counts": np.array([[1, 0, 2], [0, 0, 4]]), "letter": arrays["letter"]}
    assert (inputs.size(arrays), inputs.size(counts)) == (3, 2)
    assert (inputs.outcome(arrays).tolist(), inputs.outcome(counts).shape) == ([2, 0, 2], (2, 3))
    for data, expected in ((arrays, [1, 0, 2]), (counts, [1, 0, 6])):
        rows, times = inputs.observations(data)
        assert (plain(rows), times.tolist()) == ({"word": [0, 1, 2], "letter": ["a", "b", "c"]}, expected)
    first, rest = inputs.split(counts, 1)
    assert (first["counts"].tolist(), rest["letter"].tolist()) == ([[1, 0, 2]], ["a", "b", "c"])
    assert plain(inputs.reordered(arrays, np.array([1]))) == {"word": [0], "letter": ["a", "b", "c"]}
    assert plain(inputs.unseen(arrays, 2)) == {"word": [0, 0], "letter": ["a", "b", "c"]}
    assert inputs.dims == {"counts": ("letter",)}
    assert "--columns" in inputs.describe()


def test_rows_in_the_form_of_counts():
    arrays = {"y": np.array([0, 1, 1, 2, 0, 0, 1]), "category": np.array(["a", "b", "c"])}
    (counts,) = Categories().other_forms(arrays)
    assert counts["counts"].tolist() == [[1, 0, 0], [0, 2, 0], [2, 0, 1], [0, 1, 0]]
    assert Categories().other_forms(counts) == []


def test_every_possible_data_set():
    seen = Counter(tuple(arrays["y"].tolist()) for arrays in Categories().possible())
    assert len(seen) == 3**4
    assert set(seen.values()) == {1}
    assert all(arrays["category"].tolist() == ["a", "b", "c"] for arrays in Categories().possible())
