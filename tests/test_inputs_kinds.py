"""Every kind of input: canonical arrays are checked, and survive a round trip through a table."""

import datetime

import numpy as np
import pytest

from bayeszoo.cli.saved import as_csv
from bayeszoo.cli.verbs.models import table_of
from bayeszoo.data.inputs import (
    Binary,
    Categories,
    Corpus,
    Counts,
    CountSeries,
    Documents,
    GroupEvents,
    GroupMeans,
    GroupRows,
    Groups,
    GroupTrials,
    Matrix,
    Ratings,
    Real,
    RealSeries,
    RegressedSeries,
    Regression,
    Series,
    SymbolSeries,
    Transitions,
)
from bayeszoo.data.inputs.base import Measured
from bayeszoo.data.read import Data, read
from bayeszoo.data.table.read import read_table
from bayeszoo.errors import InputError
from tests.reading import by_name, model_of, plain, refusal, refuses
from tests.refusals import raises

A_ROW_EACH = "; give it a row for each outcome"
DROP = "; use --missing drop"
NOTHING = ": there are no observations"

ABC = np.array(["a", "b", "c"])
CHAIN = {"next": np.array([1, 2, 2]), "previous": np.array([0, 1, 2]), "context": ABC, "symbol": ABC}
TWO, X2 = np.array([0, 0, 1]), np.array([[1.0, 2.0], [7.0, 6.0]])
PAIRS = np.array(["a b", "b c"])
CORPUS = {"counts": np.array([2, 5]), "doc": np.array([0, 2]), "term": np.array([1, 1])}
CORPUS |= {"document": np.array(["e", "d", "f"]), "word": ABC}

RATINGS = {"counts": np.array([[[1, 0, 0], [0, 0, 2]], [[0, 3, 0], [0, 0, 0]]]), "item": np.array(["f", "e"])}
RATINGS |= {"rater": ABC[:2], "class": ABC}

CASES = {
    "zeros and ones": (Binary(), {"y": np.array([0, 1, 1])}),
    "successes": (Binary(), {"successes": np.array([0, 1]), "trials": np.array([2, 2])}),
    "real": (Real("x"), {"x": np.array([0.1, -1e9])}),
    "durations": (Real("x", positive=True), {"x": np.array([0.1, 1e9])}),
    "counts": (Counts(), {"y": np.array([0, 5, 2**50])}),
    "exposure": (Counts(), {"y": np.array([0, 5]), "exposure": np.array([0.1, 3.0])}),
    "labels": (Categories(), {"y": np.array([2, 0, 1, 1]), "category": ABC}),
    "other names": (Categories("word", "type"), {"word": np.array([2, 0, 1]), "type": ABC}),
    "numeric labels": (Categories(), {"y": np.array([0, 1]), "category": np.array(["9", "10"])}),
    "missing labels": (Categories(), {"y": np.array([2, 0, 2]), "category": ABC}),
    "other order": (Categories(), {"y": np.array([0, 1, 2]), "category": ABC[::-1]}),
    "tables of counts": (Categories(), {"counts": np.array([[1, 0, 2], [0, 0, 1]]), "category": ABC}),
    "one row": (Categories(), {"counts": np.array([[1, 0, 2]]), "category": ABC[::-1]}),
    "misleading labels": (Categories(), {"counts": np.array([[1, 2]]), "category": np.array(["count", "y"])}),
    "documents": (Documents(), {"counts": np.array([[1, 0, 2], [0, 4, 0]]), "word": ABC[::-1]}),
    "other documents": (Documents("n", "species"), {"n": np.array([[1, 0, 2]]), "species": ABC}),
    "misleading words": (Documents(), {"counts": np.array([[1, 2]]), "word": np.array(["document", "word"])}),
    "corpus": (Corpus(), CORPUS),
    "corpus in other order": (Corpus(), {**CORPUS, "word": ABC[::-1]}),
    "matrix": (Matrix(), {"Y": np.array([[0.1, 2.0], [3.0, 4.0]]), "column": np.array(["b", "a"])}),
    "one column": (Matrix("X", "feature"), {"X": np.array([[0.1], [0.2]]), "feature": np.array(["a"])}),
    "regression": (Regression(), {"y": np.array([1.0, 4.0]), "X": X2, "feature": np.array(["b", "10"])}),
    "one feature": (Regression(), {"y": np.array([0.1]), "X": X2[:1, :1], "feature": np.array(["km/h"])}),
    "other names of features": (Regression("t", "Phi", "term"), {"t": np.array([0.1]), "Phi": X2[:1], "term": ABC[:2]}),
    "a feature called y": (Regression(), {"y": np.array([1.0, 4.0]), "X": X2, "feature": np.array(["y_2", "y"])}),
    "features called as arrays": (Regression(), {"y": X2[:1, 0], "X": X2[:1], "feature": np.array(["X", "feature"])}),
    "chain": (Transitions(), CHAIN),
    "chain in other order": (Transitions(), {**CHAIN, "context": ABC[::-1], "symbol": ABC[::-1]}),
    "chain with more": (Transitions(), {**CHAIN, "next": np.array([1, 1, 1]), "previous": np.array([0, 0, 1])}),
    "order two": (Transitions(), {**CHAIN, "previous": np.array([0, 1, 1]), "context": PAIRS}),
    "words": (Transitions(), {**CHAIN, "previous": np.array([0, 1, 1]), "context": np.array(["start", "x"])}),
    "means of groups": (GroupMeans(), {"y": np.array([0.1, -1e9]), "se": np.array([2.0, 0.5]), "group": ABC[1::-1]}),
    "trials of groups": (GroupTrials(), {"successes": TWO, "trials": TWO * 3, "group": ABC[::-1]}),
    "hits of groups": (GroupTrials("hits"), {"hits": TWO[2:], "trials": TWO[2:], "group": np.array(["hits"])}),
    "events of groups": (
        GroupEvents("failures"),
        {"failures": TWO, "exposure": np.array([1.0, 0.5, 1e9]), "group": np.array(["10", "9", "y"])},
    ),
    "rows of groups": (GroupRows(), {"y": X2[0], "x": X2[1], "group_code": TWO[1:], "group": ABC[1::-1]}),
    "other names of rows": (
        GroupRows("grams", "week"),
        {"grams": X2[0], "week": X2[1], "group_code": TWO[:2], "group": np.array(["10"])},
    ),
    "ratings": (Ratings(), RATINGS),
    "ratings in other order": (Ratings(), {**RATINGS, "rater": ABC[1::-1], "class": ABC[::-1]}),
    "series of symbols": (SymbolSeries(), {"y": np.array([1, 0, 2]), "sequence": TWO, "symbol": ABC}),
    "other symbols": (SymbolSeries("z", "letter"), {"z": np.array([1, 1]), "sequence": TWO[:2], "letter": ABC[::-1]}),
    "series of numbers": (RealSeries("x"), {"x": np.array([0.1, -1e9, 3.0]), "sequence": TWO}),
    "series without features": (
        RegressedSeries(),
        {"y": np.array([0.5, 2.0]), "sequence": TWO[:2], "X": np.empty((2, 0)), "feature": np.empty(0, dtype="<U1")},
    ),
    "series with features": (
        RegressedSeries("x"),
        {"x": X2[0], "sequence": np.zeros(len(X2[0]), dtype=int), "X": X2.T, "feature": np.array(["10", "x"])},
    ),
    "series of counts": (CountSeries(), {"y": np.array([0, 5, 2**50]), "sequence": TWO}),
    "masked symbols": (SymbolSeries(), {"y": np.array([2, -1, 0]), "sequence": TWO, "symbol": ABC}),
    "masked numbers": (RealSeries(), {"y": np.array([0.5, np.nan, 1.0]), "sequence": TWO}),
    "masked counts": (CountSeries(), {"y": np.array([-1, 5, 0]), "sequence": TWO}),
}
KINDS = by_name(("inputs", "arrays"), CASES)
LABELLED = {name: case for name, case in CASES.items() if case[0].coords}
WITH_LABELS = by_name(("inputs", "arrays"), LABELLED)


def same(found, expected):
    assert list(found)[0] == list(expected)[0]  # noqa: RUF015
    assert {name: v.dtype.kind for name, v in found.items()} == {name: v.dtype.kind for name, v in expected.items()}
    np.testing.assert_equal(dict(found), dict(expected))


def has_masks(inputs, arrays):
    return "missing" in inputs.reading(arrays)


NEED_OPTIONS = {
    "missing labels", "other order", "misleading labels", "misleading words", "corpus in other order",
    "ratings in other order",
    "a feature called y", "chain in other order", "chain with more", "order two", "words",
    "series with features",
    "other symbols", "masked symbols", "masked numbers", "masked counts",
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_table_there_and_back_from_memory_and_from_a_file(tmp_path, name):
    inputs, arrays = CASES[name]
    options, table, path = inputs.reading(arrays), inputs.table(arrays), tmp_path / "data.csv"
    assert bool(options) == (name in NEED_OPTIONS)
    path.write_text(as_csv(table_of(inputs, arrays)))
    same(inputs.parse(read_table(table), **options).arrays, arrays)
    same(read(model_of(inputs), path, **options), arrays)
    assert list(read_table(path).columns) == list(table)


@KINDS
def test_canonical_arrays_are_taken_as_they_are(inputs, arrays):
    same(inputs.canonical(arrays).arrays, arrays)
    data = read(model_of(inputs), Data(arrays) if has_masks(inputs, arrays) else arrays)
    same(data, arrays)
    assert data.rows == inputs.size(arrays)
    same(inputs.canonical({name: values.tolist() for name, values in arrays.items()}).arrays, arrays)


@KINDS
def test_data_made_elsewhere_are_checked_again(inputs, arrays):
    model, data = model_of(inputs), Data(arrays, "elsewhere", notes=("note",))
    again = read(model, data)
    assert (again.digest, again.source, again.notes[0]) == (data.digest, "elsewhere", "note")
    assert read(model, again) is again
    outcome = next(iter(arrays))
    for broken in (arrays[outcome] + 1e300, arrays[outcome] * 1j, np.char.add(arrays[outcome].astype(str), "x")):
        with pytest.raises(InputError):
            read(model, Data({**arrays, outcome: broken}))
    if has_masks(inputs, arrays):
        assert "use --missing mask" in str(refusal(model, inputs.table(arrays)))


@KINDS
def test_rows_are_split_and_labels_are_not(inputs, arrays):
    first, rest = inputs.split(arrays, 1)
    assert (inputs.size(first), inputs.size(rest)) == (1, inputs.size(arrays) - 1)
    labels = [name for name in inputs.coords if name != inputs.row_names]
    for name in labels:
        assert first[name] is rest[name] is arrays[name]
    again = inputs.reordered(arrays, np.arange(inputs.size(arrays))[::-1])
    np.testing.assert_equal(inputs.outcome(again), inputs.outcome(arrays)[::-1])
    assert all(again[name] is arrays[name] for name in labels)
    if inputs.row_names:
        assert again[inputs.row_names].tolist() == arrays[inputs.row_names][::-1].tolist()
        assert first[inputs.row_names].tolist() + rest[inputs.row_names].tolist() == arrays[inputs.row_names].tolist()


@KINDS
def test_single_observations_are_data_and_as_many_as_there_are(inputs, arrays):
    rows, times = inputs.observations(arrays)
    same(inputs.canonical(rows).arrays, rows)
    assert inputs.size(rows) == len(times)
    of_single_words = "counts" in arrays and "category" in arrays
    of_single_trials = "trials" in arrays and not isinstance(inputs, Groups)
    each = ~inputs.masked(arrays) if isinstance(inputs, Series) else np.ones(inputs.size(arrays))
    total = arrays["counts"] if of_single_words else arrays["trials"] if of_single_trials else each
    assert times.sum() == total.sum()


@WITH_LABELS
def test_relabelled_data_are_the_same_table(inputs, arrays):
    for axis in inputs.coords:
        order = np.roll(np.arange(len(arrays[axis])), 1)
        other = inputs.relabelled(arrays, axis, order)
        assert other[axis].tolist() == arrays[axis][order].tolist()
        assert all(other[name] is arrays[name] for name in inputs.coords if name != axis)
        assert set(other) == set(arrays)
        if axis == inputs.row_names:
            same(other, inputs.reordered(arrays, order))
            continue
        before, after = inputs.table(arrays), inputs.table(other)
        assert {name: v.tolist() for name, v in after.items()} == {name: v.tolist() for name, v in before.items()}


@KINDS
def test_new_rows_from_data_with_other_codes(inputs, arrays):
    """Data read on their own have codes of their own: the fit's take their place."""
    model, like = model_of(inputs), dict(arrays)
    for axis in set(inputs.coords) - {inputs.row_names}:
        like = inputs.relabelled(like, axis, np.arange(len(arrays[axis]))[::-1])
    data = read(model, Data(arrays), new=True, like=like)
    same(data, like)
    assert read(model, data, new=True, like=like) is data
    if not has_masks(inputs, arrays):
        same(read(model, arrays, new=True, like=like), like)


@KINDS
def test_possible_data_sets_are_data_with_the_same_labels(inputs, arrays):
    every = inputs.possible(arrays)
    assert (every is None) == isinstance(inputs, Measured | Documents | Corpus | Ratings | Series | GroupEvents)
    assert hasattr(inputs, "in_units") == isinstance(inputs, Measured)
    made = [] if every is None else [one for one in every if np.max(inputs.outcome(one)) < 5]
    for one in made:
        same(inputs.canonical(one).arrays, one)
        assert all(one[name] is arrays[name] for name in inputs.coords)
    assert len({inputs.outcome(one).tobytes() for one in made}) == len(made)


@KINDS
def test_unseen_rows_have_the_axes_of_the_data_and_measurements_have_units(inputs, arrays):
    has_features = isinstance(inputs, RegressedSeries) and len(arrays["feature"]) > 0
    if isinstance(inputs, Regression | Transitions | Groups | GroupRows) or "exposure" in arrays or has_features:
        with raises(InputError, "row_order_matters" if isinstance(inputs, Transitions) else "new_rows_unknown"):
            inputs.unseen(arrays, 3)
    else:
        further = inputs.unseen(arrays, 3)
        assert inputs.size(further) == 3
        assert all(further[axis] is arrays[axis] for axis in inputs.coords if axis != inputs.row_names)
        for name in further.keys() & arrays.keys() - set(inputs.coords):
            assert (further[name].dtype, further[name].shape[1:]) == (arrays[name].dtype, arrays[name].shape[1:])
    if isinstance(inputs, Measured):
        moved = inputs.in_units(arrays, -2.0, 1.0)
        shift = not (isinstance(inputs, Real) and inputs.positive)
        np.testing.assert_equal(moved[inputs.name], shift - 2 * arrays[inputs.name])
    assert ("--" in inputs.describe()) == (not isinstance(inputs, Real))


def test_there_are_never_too_many_possible_data_sets():
    labels = np.array([f"w{i}" for i in range(20)])
    pairs = list(Categories().possible({"y": np.array([0]), "category": labels}))
    assert (len(pairs), len(pairs[0]["y"])) == (20**2, 2)
    paths = list(Transitions().possible({"context": labels, "symbol": labels}))
    assert (len(paths), len({(*path["previous"], *path["next"]) for path in paths})) == (20**2, 20**2)
    assert all(path["previous"].tolist() == [0, path["next"][0]] for path in paths)
    apart = list(Transitions().possible({"context": np.array(["a a", "b b", "c c"]), "symbol": labels[:3]}))
    assert {tuple(one["previous"]) for one in apart} == {(0, 1, 2, 0)}
    assert len({tuple(one["next"]) for one in apart}) == 3**4


CATEGORIES, CHAINS = Categories(), Transitions()
BROKEN = {
    "code": (CATEGORIES, {"y": [0, 3], "category": ABC}, "column 'y', row 2: 3 is outside the codes 0 to 2"),
    "negative": (CATEGORIES, {"y": [-1], "category": ABC}, "column 'y', row 1: -1 is negative; counts must be >= 0"),
    "fraction": (CATEGORIES, {"y": [0.5], "category": ABC}, "column 'y', row 1: 0.5 is not a whole number"),
    "truth": (CATEGORIES, {"y": [True], "category": ABC}, "column 'y' holds true/false, not numbers"),
    "repeated": (CATEGORIES, {"y": [0], "category": ["a", "b", "a"]}, "category: label 'a' appears twice"),
    "one": (CATEGORIES, {"y": [0], "category": ["a"]}, "category holds 1 labels, at least 2 expected"),
    "numbers": (CATEGORIES, {"y": [0], "category": [1, 2]}, "category must hold text labels"),
    "nothing": (CATEGORIES, {"y": [], "category": ABC}, "no data rows"),
    "NUL": (CATEGORIES, {"y": [0], "category": ["a", "a\0"]}, "a label ends in a NUL character; rename it"),
    "width": (CATEGORIES, {"counts": [[1, 2]], "category": ABC}, "counts has 2 columns, but there are 3 labels"),
    "no width": (CATEGORIES, {"counts": [1, 2], "category": ABC}, "counts does not have two dimensions" + A_ROW_EACH),
    "no rows": (CATEGORIES, {"counts": np.zeros((0, 3)), "category": ABC}, "no data rows"),
    "part": (CATEGORIES, {"counts": [[1, 2, 0.5]], "category": ABC}, "column 'c', row 1: 0.5 is not a whole number"),
    "zeros": (CATEGORIES, {"counts": [[0, 0, 0]], "category": ABC}, f"the counts add up to 0{NOTHING}"),
    "columns": (Matrix(), {"Y": [[1, 2]], "column": ["a"]}, "Y has 2 columns, but there are 1 labels"),
    "context": (CHAINS, {**CHAIN, "previous": [0, 1, 3]}, "column 'previous', row 3: 3 is outside the codes 0 to 2"),
    "lengths": (CHAINS, {**CHAIN, "previous": [0, 1]}, "next has 3 rows, previous has 2"),
    "lengths of a series": (RealSeries(), {"y": [1, 2], "sequence": [0]}, "y has 2 rows, sequence has 1"),
}


@by_name(("inputs", "arrays", "message"), BROKEN)
def test_canonical_arrays_that_are_refused(inputs, arrays, message):
    assert str(refusal(model_of(inputs), arrays)) == message


def test_holes_of_canonical_arrays_are_dropped_when_asked_for():
    data = read(model_of(CATEGORIES), {"y": [0, np.nan, 2], "category": ABC}, missing="drop")
    assert (data["y"].tolist(), data.notes) == ([0, 2], ("1 row with missing values dropped (row 2)",))
    holes = {"Y": [[1, np.nan], [1, 2]], "column": ["a", "b"]}
    assert read(model_of(Matrix()), holes, missing="drop")["Y"].tolist() == [[1.0, 2.0]]


def test_a_mapping_with_options_or_other_names_is_a_table_of_the_user():
    model = model_of(CATEGORIES)
    assert read(model, {"category": ["p", "q", "p"]})["y"].tolist() == [0, 1, 0]
    assert read(model, {"y": [5, 7], "category": ["p", "q"]}, column="y")["category"].tolist() == ["5", "7"]
    counts = read(model, {"category": ["p", "q"], "count": [3, 4]}, count="count")
    assert counts["counts"].tolist() == [[3, 4]]


def test_codes_mean_nothing_to_another_kind():
    labels = read(model_of(CATEGORIES), ["b", "a"])
    with raises(InputError, "not_a_number", "'y'", "1", "'b'"):
        read(model_of(Counts()), labels)
    counts = read(model_of(CATEGORIES), {"b": [1, 2], "a": [3, 4]})
    assert read(model_of(Matrix()), counts)["Y"].tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert read(model_of(Categories("word", "type")), labels)["type"].tolist() == ["a", "b"]


WITH_A_COLUMN = {
    "trials": (Binary(), {"successes": [1, 2]}, "trials"),
    "real": (Real(), {}, "y"),
    "counts": (Counts(), {}, "y"),
    "exposure": (Counts(), {"y": [1, 2]}, "exposure"),
    "categories": (Categories(), {"a": [1, 2]}, "b"),
    "documents": (Documents(), {"a": [1, 2]}, "b"),
    "corpus": (Corpus(), {"document": ["x", "y"], "word": ["a", "b"]}, "count"),
    "matrix": (Matrix(), {"a": [1, 2]}, "b"),
    "feature": (Regression(), {"y": [1, 2], "a": [1, 3]}, "b"),
    "outcome": (Regression(), {"a": [1, 3]}, "y"),
    "transitions": (Transitions(), {"from": ["x", "y"], "to": ["y", "x"]}, "count"),
    "series of numbers": (RealSeries(), {}, "y"),
    "series of counts": (CountSeries(), {}, "y"),
}
NO_NUMBERS = {
    "row 2: 'x' is not a number": ["1", "x"],
    " holds dates": [datetime.date(2020, 1, 1)] * 2,
    " holds true/false, not numbers": [True, False],
    " is complex": [1j, 2],
}
BAD_NUMBERS = {
    "row 2: inf is too large": [1, np.inf],
    "row 2: 1e+300 is too large": [1, 1e300],
    "1 missing value (row 2); use --missing": np.ma.array([1, 2], mask=[0, 1]),
    " has no values": [None, None],
}
BAD_COUNTS = {"row 2: 1.5 is not a whole number": [1, 1.5], "row 2: -1 is negative; counts must be >= 0": [1, -1]}


@by_name(("inputs", "others", "column"), WITH_A_COLUMN)
def test_a_column_that_holds_no_such_numbers_is_refused(inputs, others, column):
    bad = dict(BAD_NUMBERS) if isinstance(inputs, Categories) else NO_NUMBERS | BAD_NUMBERS  # text may be labels
    if isinstance(inputs, Regression) and column != inputs.name:
        del bad[" holds true/false, not numbers"]  # which are levels
    if not isinstance(inputs, Measured) and column != "exposure":
        bad |= BAD_COUNTS
    for message, values in bad.items():
        found = str(refusal(model_of(inputs), {**others, column: values}))
        assert found.startswith(f"column '{column}'")
        assert message in found


# Columns of real numbers, and of counts of words, keep their names

Vectors = model_of(Matrix("Y"))


def test_columns():
    table = {"a": [1, 2, None], "b": ["3", "4.0", "5"]}
    data = read(Vectors, table, missing="drop")
    assert plain(data) == {"Y": [[1.0, 3.0], [2.0, 4.0]], "column": ["a", "b"]}
    assert (data["Y"].dtype, data["Y"].flags.c_contiguous, data.columns) == (np.float64, True, {"Y": "a, b"})
    assert data.notes == ("1 row with missing values dropped (row 3)",)
    assert plain(read(Vectors, table, columns="b")) == {"Y": [[3.0], [4.0], [5.0]], "column": ["b"]}


CHOOSE = "; choose columns of numbers: --columns a"
REFUSED = {
    "text": ({"a": [1, 2], "b": ["1", "x"]}, {}, "column 'b', row 2: 'x' is not a number" + CHOOSE),
    "chosen text": ({"a": [1], "b": ["x"]}, {"columns": "b"}, "column 'b', row 1: 'x' is not a number"),
}
test_tables_that_are_refused = refuses(Vectors, REFUSED)


# One column of several


REAL = model_of(Real())


def test_rows_keep_their_types_and_their_lengths():
    refused = str(refusal(REAL, [[1, "b"], [2, "c"]], column="2"))
    assert refused == "column '2', row 1: 'b' is not a number (and 1 more: row 2)"
    assert Real().parse(read_table([[1, "b"], [2, "c"]]), column="1").arrays["y"].tolist() == [1.0, 2.0]
    assert str(refusal(REAL, [[1, 2], [3]])) == "column 'y' is ragged: its rows have different lengths"
    masked = np.ma.array([[1, 2], [3, 4]], mask=[[0, 0], [0, 1]])
    assert "1 missing value (row 2)" in str(refusal(REAL, masked, column="2"))


Topics = model_of(Documents())


WORDS = np.array(["b", "a", "c"])
ARRAYS = {"counts": np.array([[1, 0, 2], [0, 4, 1]]), "word": WORDS}


def test_columns_are_words():
    table = {"b": [1, 0], "a": ["0", "4.0"], "c": [2.0, 1.0]}
    data = read(Topics, table)
    assert (plain(data), data["counts"].dtype) == (plain(ARRAYS), np.int64)
    assert (data.columns, data.notes) == ({"counts": "b, a, c"}, ("every column is a word: b, a, c",))
    assert read(Topics, {"a": [2**53 - 4], "b": [3]})["counts"].tolist() == [[2**53 - 4, 3]]  # the largest sum
    assert plain(read(Topics, table, columns="c,b")) == {"counts": [[2, 1], [1, 0]], "word": ["c", "b"]}


def test_titles_and_authors_are_left_out_by_naming_the_words(written):
    path = written("title,upon,whilst\nNo. 10,3,0\nNo. 49,0,2\n", "papers.csv")
    expected = "column 'title', row 1: 'No. 10' is not a number (and 1 more: row 2)"
    hint = "choose columns of numbers: --columns upon,whilst; of raw text, --text title"
    assert str(refusal(Topics, path)) == f"{expected}; {hint}"
    assert read(Topics, path, columns="upon,whilst")["counts"].tolist() == [[3, 0], [0, 2]]


def test_empty_documents_and_words_that_never_occur_are_noted():
    data = read(Topics, {"a": [0, 1, 0], "b": [0, 0, 0], "c": [0, 2, 0]}, columns="a,b,c")
    assert data["counts"].tolist() == [[0, 0, 0], [1, 0, 2], [0, 0, 0]]
    assert data.notes == ("word b never occurs", "2 empty documents: 1, 3")
    arrays = {"counts": [[0, 0, 0], [0, 0, 1]], "word": WORDS}
    assert read(Topics, arrays).notes == ("words b, a never occur", "1 empty document: 1")


def test_rows_are_numbered_as_in_the_table_though_others_were_dropped():
    table = {"a": [None, 1, 0, 0], "b": [0, 2, 0, np.nan]}
    data = read(Topics, table, columns="a,b", missing="drop")
    assert data["counts"].tolist() == [[1, 2], [0, 0]]
    assert data.notes == ("2 rows with missing values dropped (rows 1, 4)", "1 empty document: 3")


TEXT = "; of raw text, --text b"
ALL = "; give or keep more"
REFUSED_DOCUMENTS = {
    "text": ({"a": [1, 2], "b": ["1", "x"]}, {}, "column 'b', row 2: 'x' is not a number" + CHOOSE + TEXT),
    "long sum": ({"a": [2**52] * 2000, "b": [0] * 2000}, {}, "the counts have a sum of 2**53 or more"),
    "nothing": ({"a": [0, 0], "b": [0, 0]}, {}, "the counts add up to 0: there are no words in the documents"),
    "one word": ([5, 6], {}, "only the word 'y', at least two are needed" + ALL),
}
test_tables_of_words_that_are_refused = refuses(Topics, REFUSED_DOCUMENTS)


USE = " of the fit; use --columns b,a,c"
NEW_WORDS = {
    "more": ({"z": [9], "a": [4], "b": [0], "c": [1]}, {}, "column 'z' is not among the 3" + USE),
    "less": ({"a": [1], "c": [1]}, {}, "there is no column 'b', which the fit has"),
}
test_new_documents_that_are_refused = refuses(Topics, NEW_WORDS, new=True, like=ARRAYS)


def test_new_documents_have_the_words_of_the_fit_in_its_order():
    data = read(Topics, {"z": [9, 9], "a": [4, 0], "b": [0, 0], "c": [1, 0]}, new=True, like=ARRAYS, columns="a,b,c")
    assert plain(data) == {"counts": [[0, 4, 1], [0, 0, 0]], "word": ["b", "a", "c"]}
    assert data.notes == ("1 empty document: 2",)


@pytest.mark.parametrize("values", [[7.0], [7e-9] * 3])
def test_numbers_without_a_spread_are_said_to_have_none(values):
    # a prior that is scaled to them has the scale 1, which is nothing that they say
    assert [note for note in read(model_of(Real("y")), values).notes if "only one value" in note]
    assert not read(model_of(Real("y")), [*values, 8.0]).notes
