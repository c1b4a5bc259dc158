"""Counts of words: a document a row, a word a column, and nothing that is no count."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from bayeszoo.data.inputs import Categories, Documents, Matrix
from bayeszoo.data.read import Data, read
from bayeszoo.errors import InputError
from bayeszoo.model.chunks import read_chunks
from tests.reading import by_name, model_of, plain, refusal, refuses

Topics = model_of(Documents())


WORDS = np.array(["b", "a", "c"])
ARRAYS = {"counts": np.array([[1, 0, 2], [0, 4, 1]]), "word": WORDS}


TABLES = {
    "mapping": {"b": [1, 0], "a": ["0", "4.0"], "c": [2.0, 1.0]},
    "pandas": pd.DataFrame({"b": [1, 0], "a": [0, 4], "c": [2, 1]}, index=[7, 5]),
    "polars": pl.DataFrame({"b": [1, 0], "a": [0, 4], "c": [2, 1]}),
}


@by_name("table", TABLES)
def test_columns_are_words(table):
    data = read(Topics, table)
    assert plain(data) == plain(ARRAYS)
    assert (data["counts"].dtype, data["counts"].flags.c_contiguous, data.rows) == (np.int64, True, 2)
    assert (data.columns, data.notes) == ({"counts": "b, a, c"}, ("every column is a word: b, a, c",))
    chosen = read(Topics, table, columns="c,b")
    assert plain(chosen) == {"counts": [[2, 1], [1, 0]], "word": ["c", "b"]}
    assert chosen.notes == ()


def test_titles_and_authors_are_left_out_by_naming_the_words(written):
    path = written("title,upon,whilst\nNo. 10,3,0\nNo. 49,0,2\n", "papers.csv")
    expected = "column 'title', row 1: 'No. 10' is not a number (and 1 more: row 2)"
    hint = "choose columns of numbers: --columns upon,whilst; of raw text, --text title"
    assert str(refusal(Topics, path)) == f"{expected}; {hint}"
    assert read(Topics, path, columns="upon,whilst")["counts"].tolist() == [[3, 0], [0, 2]]


def test_empty_documents_and_words_that_never_occur_are_noted():
    data = read(Topics, {"a": [0, 1, 0], "b": [0, 0, 0], "c": [0, 2, 0]}, columns="a,b,c")
    assert data["counts"].tolist() == [[0, 0, 0], [1, 0, 2], [0, 0, 0]]
    assert data.notes == ("2 empty documents: 1, 3", "word b never occurs")
    arrays = {"counts": [[0, 0, 0], [0, 0, 1]], "word": WORDS}
    assert read(Topics, arrays).notes == ("1 empty document: 1", "words b, a never occur")


def test_rows_are_numbered_as_in_the_table_though_others_were_dropped():
    table = {"a": [None, 1, 0, 0], "b": [0, 2, 0, np.nan]}
    data = read(Topics, table, columns="a,b", missing="drop")
    assert data["counts"].tolist() == [[1, 2], [0, 0]]
    assert data.notes == ("2 rows with missing values dropped (rows 1, 4)", "1 empty document: 3")


CHOOSE = "; choose columns of numbers: --columns a"
TEXT = "; of raw text, --text b"
ALL = "; give a column a word"
ACCEPTED = "columns, count, document, max_share, min_documents, stop_words, text, vocabulary, word"
LARGE = "is too large; counts must be <= 2**53"
REFUSED = {
    "text": ({"a": [1, 2], "b": ["1", "x"]}, {}, "column 'b', row 2: 'x' is not a number" + CHOOSE + TEXT),
    "no text": ({"b": ["I"]}, {}, "the counts add up to 0: there are no words in the documents"),
    "large": ({"a": [1], "b": [2**53 + 1]}, {}, f"column 'b', row 1: {2**53 + 1} {LARGE}"),
    "sum": ({"a": [2**53], "b": [1]}, {}, "the counts have a sum above 2**53"),
    "long sum": ({"a": [2**53] * 2000, "b": [0] * 2000}, {}, "the counts have a sum above 2**53"),
    "nothing": ({"a": [0, 0], "b": [0, 0]}, {}, "the counts add up to 0: there are no words in the documents"),
    "one word": ([5, 6], {}, "only the word 'y', at least two are needed" + ALL),
    "option": ({"a": [1]}, {"column": "a"}, "unknown option 'column'; accepted are " + ACCEPTED),
}
test_tables_that_are_refused = refuses(Topics, REFUSED)


def test_the_largest_sum_is_kept_exactly():
    data = read(Topics, {"a": [2**53 - 3], "b": [3]})
    assert data["counts"].tolist() == [[2**53 - 3, 3]]


BROKEN = {
    "width": ([[1, 2]], WORDS, "counts has 2 columns, but there are 3 labels"),
    "hole": ([[1, 2, np.nan]], WORDS, "column 'c' has no values"),
    "zeros": ([[0, 0, 0]], WORDS, "the counts add up to 0: there are no words in the documents"),
}


@by_name(("counts", "words", "message"), BROKEN)
def test_canonical_arrays_that_are_refused(counts, words, message):
    assert str(refusal(Topics, {"counts": counts, "word": words})) == message


def test_counts_read_for_another_model_are_the_same_documents():
    counts = read(type("Poll", (), {"inputs": Categories(), "examples": ()}), {"b": [1, 2], "a": [3, 4]})
    assert plain(read(Topics, counts)) == {"counts": [[1, 3], [2, 4]], "word": ["b", "a"]}
    numbers = read(type("Vectors", (), {"inputs": Matrix(), "examples": ()}), {"b": [1.0, 2.0], "a": [3.0, 4.5]})
    with pytest.raises(InputError, match=r"^column 'a', row 2: 4\.5 is not a whole number$"):
        read(Topics, numbers)


def test_new_documents_have_the_words_of_the_fit_in_its_order():
    data = read(Topics, {"a": [4, 0], "b": [0, 0], "c": [1, 0]}, new=True, like=ARRAYS)
    assert plain(data) == {"counts": [[0, 4, 1], [0, 0, 0]], "word": ["b", "a", "c"]}
    assert data.notes == ("1 empty document: 2",)
    assert read(Topics, {"a": [0], "b": [0], "c": [0]}, new=True, like=ARRAYS).rows == 1
    more = {"z": [9], "a": [4], "b": [0], "c": [1]}
    assert read(Topics, more, new=True, like=ARRAYS, columns="a,b,c")["counts"].tolist() == [[0, 4, 1]]
    with pytest.raises(InputError, match=r"^column 'z' is not among the 3 of the fit; use --columns b,a,c$"):
        read(Topics, more, new=True, like=ARRAYS)
    with pytest.raises(InputError, match=r"^there is no column 'b', which the fit has$"):
        read(Topics, {"a": [1], "c": [1]}, new=True, like=ARRAYS)
    other = Topics.inputs.relabelled(ARRAYS, "word", np.array([2, 0, 1]))
    assert plain(read(Topics, Data(other), new=True, like=ARRAYS)) == plain(ARRAYS)


def test_the_words_of_chunks_may_all_be_in_one_of_them(written):
    path = written("a,b,c\n0,0,0\n0,0,0\n1,0,2\n", "counts.csv")
    first, second = read_chunks(Topics, path, rows=2, columns="a,b,c")
    assert (first["counts"].tolist(), second["counts"].tolist()) == ([[0, 0, 0], [0, 0, 0]], [[1, 0, 2]])
    assert (first.notes, second.notes) == (("2 empty documents: 1, 2",), ())
