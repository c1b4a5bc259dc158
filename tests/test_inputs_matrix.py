"""Columns of real numbers, and of counts of words, keep their names, and none is used that holds no such numbers."""

from __future__ import annotations

import numpy as np

from bayeszoo.data.inputs import Documents, Matrix, Real
from bayeszoo.data.read import Data, read
from bayeszoo.data.table.read import read_table
from bayeszoo.model.chunks import read_chunks
from tests.reading import model_of, plain, refusal, refuses

Vectors = model_of(Matrix("Y"))


def test_columns():
    table = {"a": [1, 2], "b": ["3", "4.0"]}
    data = read(Vectors, table)
    assert plain(data) == {"Y": [[1.0, 3.0], [2.0, 4.0]], "column": ["a", "b"]}
    assert (data["Y"].dtype, data["Y"].flags.c_contiguous, data.rows) == (np.float64, True, 2)
    assert (data.columns, data.notes) == ({"Y": "a, b"}, ())
    assert read(Vectors, table, columns="b,a")["Y"].tolist() == [[3.0, 1.0], [4.0, 2.0]]
    assert plain(read(Vectors, table, columns=["b"])) == {"Y": [[3.0], [4.0]], "column": ["b"]}


def test_rows_with_holes():
    table = {"a": [1, None, 3], "b": [1, 2, np.nan], "c": [1, 2, 3]}
    data = read(Vectors, table, missing="drop")
    assert data["Y"].tolist() == [[1.0, 1.0, 1.0]]
    assert data.notes == ("2 rows with missing values dropped (rows 2, 3)",)
    assert read(Vectors, table, columns="c").rows == 3


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
    assert plain(data) == plain(ARRAYS)
    assert (data["counts"].dtype, data["counts"].flags.c_contiguous, data.rows) == (np.int64, True, 2)
    assert (data.columns, data.notes) == ({"counts": "b, a, c"}, ("every column is a word: b, a, c",))
    assert read(Topics, {"a": [2**53 - 3], "b": [3]})["counts"].tolist() == [[2**53 - 3, 3]]  # the largest sum
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


TEXT = "; of raw text, --text b"
ALL = "; give a column a word"
REFUSED_DOCUMENTS = {
    "text": ({"a": [1, 2], "b": ["1", "x"]}, {}, "column 'b', row 2: 'x' is not a number" + CHOOSE + TEXT),
    "long sum": ({"a": [2**53] * 2000, "b": [0] * 2000}, {}, "the counts have a sum above 2**53"),
    "nothing": ({"a": [0, 0], "b": [0, 0]}, {}, "the counts add up to 0: there are no words in the documents"),
    "one word": ([5, 6], {}, "only the word 'y', at least two are needed" + ALL),
}
test_tables_of_words_that_are_refused = refuses(Topics, REFUSED_DOCUMENTS)


def test_new_documents_have_the_words_of_the_fit_in_its_order():
    data = read(Topics, {"a": [4, 0], "b": [0, 0], "c": [1, 0]}, new=True, like=ARRAYS)
    assert plain(data) == {"counts": [[0, 4, 1], [0, 0, 0]], "word": ["b", "a", "c"]}
    assert data.notes == ("1 empty document: 2",)
    assert read(Topics, {"a": [0], "b": [0], "c": [0]}, new=True, like=ARRAYS).rows == 1
    more = {"z": [9], "a": [4], "b": [0], "c": [1]}
    assert read(Topics, more, new=True, like=ARRAYS, columns="a,b,c")["counts"].tolist() == [[0, 4, 1]]
    refused = str(refusal(Topics, more, new=True, like=ARRAYS))
    assert refused == "column 'z' is not among the 3 of the fit; use --columns b,a,c"
    refused = str(refusal(Topics, {"a": [1], "c": [1]}, new=True, like=ARRAYS))
    assert refused == "there is no column 'b', which the fit has"
    other = Topics.inputs.relabelled(ARRAYS, "word", np.array([2, 0, 1]))
    assert plain(read(Topics, Data(other), new=True, like=ARRAYS)) == plain(ARRAYS)


def test_the_words_of_chunks_may_all_be_in_one_of_them(written):
    path = written("a,b,c\n0,0,0\n0,0,0\n1,0,2\n", "counts.csv")
    first, second = read_chunks(Topics, path, rows=2, columns="a,b,c")
    assert (first["counts"].tolist(), second["counts"].tolist()) == ([[0, 0, 0], [0, 0, 0]], [[1, 0, 2]])
    assert (first.notes, second.notes) == (("2 empty documents: 1, 2",), ())
