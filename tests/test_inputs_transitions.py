"""Transitions stay within a sequence, and never cross its end, a missing symbol, or another sequence."""

from pathlib import Path

import numpy as np
import pytest

from bayeszoo.data.inputs import Transitions
from bayeszoo.data.read import read
from bayeszoo.errors import InputError
from tests.reading import by_name, model_of, plain, refusal, refuses
from tests.refusals import raises

OUTSIDE = " is not among the 2 given; add it to --symbols"
FOUR = ("from", "to", "source", "target")
JOINS = ", which joins the symbols of a context; write it without, or use --order 1"
NOT_BOTH = " cannot hold both the outcomes and their sequences"
WITH = "; name them with --source and --target"

ALL_SYMBOLS = "; give all with --symbols"
TWO_SYMBOLS = "; a sequence of more than 1 symbols is needed"
WHICH_COLUMNS = "; say which columns these are"

ONEGIN = Path(__file__).parents[1] / "models" / "data" / "onegin.csv"


Chain = model_of(Transitions())


def steps(data):
    """The transitions in words."""
    columns = Transitions().table(data)
    return list(zip(columns["from"].tolist(), columns["to"].tolist(), strict=True))


def test_symbols_in_order():
    data = read(Chain, list("abca"))
    assert plain(data) == {"next": [1, 2, 0], "previous": [0, 1, 2], "context": list("abc"), "symbol": list("abc")}
    assert (next(iter(data)), data.rows, data["next"].dtype) == ("next", 3, np.int64)
    assert (data.notes, data.columns) == (("column 'y': symbols a, b, c",), {"symbol": "y"})
    assert steps(read(Chain, [10, 9, 10])) == [("10", "9"), ("9", "10")]
    assert read(Chain, [10, 9, 10])["symbol"].tolist() == ["9", "10"]


SEQUENCES = {
    "lists": [["a", "b", "a"], ["b", "b"]],
    "one column": {"symbol": list("ababb"), "sequence": [1, 1, 1, 2, 2]},
    "interleaved": {"symbol": list("abbba"), "sequence": ["x", "y", "x", "y", "x"]},
}


@by_name("source", SEQUENCES)
def test_sequences_are_never_glued(source):
    data = read(Chain, source)
    assert sorted(steps(data)) == [("a", "b"), ("b", "a"), ("b", "b")]
    assert "column 'sequence' names 2 sequences" in data.notes


def test_transitions_keep_the_order_of_the_table():
    table = {"s": list("abcdef"), "id": ["z", "y", "z", "y", "y", "z"]}
    assert steps(read(Chain, table, column="s", sequence="id")) == [("a", "c"), ("b", "d"), ("d", "e"), ("c", "f")]


def test_short_and_empty_sequences_are_counted():
    data = read(Chain, [["a", "b"], ["c"], [], ["b"]])
    assert steps(data) == [("a", "b")]
    assert data["symbol"].tolist() == ["a", "b", "c"]
    too_short = "column 'sequence' names 3 sequences, 2 of them too short for a transition"
    assert data.notes == ("1 empty sequence", "column 'symbol': symbols a, b, c", too_short)


def test_a_hole_breaks_the_sequence():
    data = read(Chain, {"s": ["a", "b", "", "a", "a"]}, missing="drop")
    assert steps(data) == [("a", "b"), ("a", "a")]
    assert data.notes[1:] == ("1 row with missing values dropped (row 3)", "no transition leads across a dropped row")
    assert steps(read(Chain, ["a", "b", "", "a", "a", "b"], missing="drop", order=2)) == [("a a", "b")]


def test_contexts_of_several_symbols():
    data = read(Chain, list("abcabba"), order=2)
    assert data.notes == ("column 'y': symbols a, b, c", "4 contexts of 2 symbols")
    numbers = read(Chain, [10, 2, 10, 10, 2, 2], order="2")
    assert numbers["context"].tolist() == ["2 10", "10 2", "10 10"]
    assert steps(read(Chain, [list("abc"), list("bca")], order=2)) == [("a b", "c"), ("b c", "a")]


@pytest.mark.parametrize("order", [1, 2, 3, 7])
def test_contexts_against_slices(order):
    symbols = np.random.default_rng(order).choice(list("abcd"), 300).tolist()
    slices = [(" ".join(symbols[i - order : i]), symbols[i]) for i in range(order, 300)]
    data = read(Chain, symbols, order=order)
    assert steps(data) == slices
    assert data["context"].tolist() == sorted({context for context, _ in slices})


def test_an_alphabet_in_order():
    data = read(Chain, list("ab"), symbols=["c", "b", "a"])
    assert (data["symbol"].tolist(), data["context"].tolist()) == (["c", "b", "a"], ["c", "b", "a"])
    assert steps(data) == [("a", "b")]
    assert data.notes == ("column 'y': symbols c, b, a", "column 'y': symbol c never occurs")


def test_tables_of_transitions():
    data = read(Chain, ONEGIN)
    assert data.rows == 1104 + 7534 + 7535 + 3827
    rows, times = Transitions().observations(data)
    found = dict(zip(steps(rows), times.tolist(), strict=True))
    assert found[("vowel", "consonant")] == 7534
    assert found[("consonant", "vowel")] == 7535
    assert data.columns == {"previous": "from", "next": "to", "count": "count"}
    assert data.notes == ("columns 'from' and 'to': symbols consonant, vowel",)


@pytest.mark.parametrize(
    ("names", "options"),
    [(("from", "to"), {}), (("source", "target"), {}), (("u", "v"), {"source": "u", "target": "v"})],
)
def test_names_of_the_ends(names, options):
    table = dict(zip(names, (["a", "b", "b"], ["b", "c", "d"]), strict=True))
    data = read(Chain, {**table, "other": [1, 2, 3]}, **options)
    assert steps(data) == [("a", "b"), ("b", "c"), ("b", "d")]
    assert data["context"].tolist() == data["symbol"].tolist() == ["a", "b", "c", "d"]


def test_counted_transitions():
    table = {"from": ["a", "b", "a"], "to": ["b", "a", "c"], "n": [2, None, 0]}
    data = read(Chain, table, count="n", missing="drop")
    assert steps(data) == [("a", "b"), ("a", "b")]
    assert data["symbol"].tolist() == ["a", "b", "c"]


def test_when_contexts_are_of_their_own():
    apart = {"from": ["a b", "b a"], "to": ["c", "d"]}
    data = read(Chain, apart)
    assert (data["context"].tolist(), data["symbol"].tolist()) == (["a b", "b a"], ["c", "d"])
    assert data.notes == ("column 'to': symbols c, d", "column 'from': contexts a b, b a")
    assert read(Chain, apart, order=1)["context"].tolist() == ["a b", "b a", "c", "d"]
    together = {"from": ["a", "b"], "to": ["c", "d"]}
    assert read(Chain, together)["context"].tolist() == ["a", "b", "c", "d"]
    assert read(Chain, together, order=2)["context"].tolist() == ["a", "b"]
    towns = read(Chain, {"from": ["New York", "Los Angeles"], "to": ["New York", "x"]})
    assert towns["context"].tolist() == ["Los Angeles", "New York", "x"]
    assert read(Chain, apart, symbols="d,c")["symbol"].tolist() == ["d", "c"]


MIXED = "a column of symbols and a table of transitions do not mix; leave out column"
REFUSED = {
    "outside": (list("abx"), {"symbols": "a,b"}, "column 'y', row 3: symbol 'x'" + OUTSIDE),
    "one symbol": (["a"], {"symbols": "a,b"}, "column 'y' holds no transition" + TWO_SYMBOLS),
    "short": (list("ab"), {"order": 2}, "column 'y' holds no transition; a sequence of more than 2 symbols is needed"),
    "always the same": (["a", "a"], {}, "column 'y' has only the symbol 'a', at least two are needed" + ALL_SYMBOLS),
    "no name": (
        {"symbol": list("abc"), "sequence": ["x", "", "x"]},
        {"missing": "drop"},
        "column 'sequence': 1 missing value (row 2); name its sequence, or take the row out of the table",
    ),
    "no order": (list("ab"), {"order": 0}, "order must be a whole number >= 1, got '0'"),
    "spaces": (["New York", "x", "y"], {"order": 2}, "symbol 'New York' has a space" + JOINS),
    "half": ({"a": ["x"], "b": ["y"]}, {"source": "a"}, "source and target go together"),
    "mixture": ({"a": ["x"], "b": ["y"]}, {"source": "a", "target": "b", "column": "a"}, MIXED),
    "counted symbols": ({"a": ["x"], "n": [1]}, {"column": "a", "count": "n"}, MIXED),
    "counts of what": ({"a": ["x"], "n": [1]}, {"count": "n"}, "count goes with source and target" + WHICH_COLUMNS),
    "twice": ({"a": ["x"]}, {"source": "a", "target": "a"}, "source, target and count must be different columns"),
    "which": ({name: ["x"] for name in FOUR}, {}, "the table has columns from, to, source and target" + WITH),
    "same": ({"sequence": ["x"], "b": ["y"]}, {"column": "b", "sequence": "b"}, "column 'b'" + NOT_BOTH),
}
test_tables_that_are_refused = refuses(Chain, REFUSED)


def test_a_column_of_sequences_is_not_ignored_unless_it_is_the_symbols():
    table = {"symbol": list("abab"), "sequence": list("xxyy")}
    assert steps(read(Chain, table, column="symbol")) == [("a", "b"), ("a", "b")]
    assert steps(read(Chain, table, column="sequence")) == [("x", "x"), ("x", "y"), ("y", "y")]
    assert steps(read(Chain, {"sequence": list("xy")})) == [("x", "y")]


def test_new_rows_have_the_codes_of_the_fit():
    like = read(Chain, list("abca"))
    new = read(Chain, list("cb"), new=True, like=like)
    assert plain(new) == {"next": [1], "previous": [2], "context": list("abc"), "symbol": list("abc")}
    assert new.notes == ()
    new = read(Chain, {"from": ["b"], "to": ["c"], "count": [2]}, new=True, like=like)
    assert (new["previous"].tolist(), new["next"].tolist()) == ([1, 1], [2, 2])
    refused = str(refusal(Chain, list("abx"), new=True, like=like))
    assert refused.startswith("column 'y', row 3: symbol 'x' is not among the 3 of the fit; leave it out")
    refused = str(refusal(Chain, {"from": ["x"], "to": ["a"]}, new=True, like=like))
    assert refused.startswith("column 'from', row 1: symbol 'x' is not among the 3 of the fit")
    with raises(InputError, "row_order_matters", "next", "symbols"):
        Transitions().unseen(like, 1)


def test_new_rows_have_the_order_of_the_fit():
    like = read(Chain, list("abcabba"), order=2)
    new = read(Chain, list("bca"), new=True, like=like)
    assert steps(new) == [("b c", "a")]
    assert new["context"].tolist() == like["context"].tolist()
    refused = str(refusal(Chain, list("bcbabc"), new=True, like=like))
    assert refused.startswith("column 'y', row 4: context 'c b' is not among the 4 of the fit")
    refused = str(refusal(Chain, {"from": ["c b"], "to": ["a"]}, new=True, like=like))
    assert refused.startswith("column 'from', row 1: context 'c b' is not among the 4 of the fit")


def test_more_symbols_than_a_matrix_of_their_transitions_has_room_for_are_refused(run, written):
    table = written("s\n" + "".join(f"w{i}\n" for i in range(60_000)))
    for method in ("map", "exact"):
        code, out, err = run("fit", "markov_chain", table, "--column", "s", "--method", method)
        assert (code, out, err.count("\n")) == (2, "", 1)
    labels = np.array([f"w{i}" for i in range(10_001)])
    with raises(InputError, "bad_transitions", "10,001"):
        read(Chain, {"next": [1, 2], "previous": [0, 1], "context": labels, "symbol": labels})
