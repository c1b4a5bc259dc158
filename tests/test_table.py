"""Tables are read as they are or refused with a message that says where: VERIFICATION.md, section 3.1."""

from __future__ import annotations

import os
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bayeszoo.data.table.read import read_table
from bayeszoo.errors import InputError
from tests.reading import by_name

REFUSED = {
    "trailing comma everywhere": ("a,b,\n1,2,\n", "column 3 has no name and no values", ()),
    "no name": (",b\n1,2\n", "data.csv: column 1 has no name", ()),
    "semicolons": ("x;y\n1,5;2\n", "looks like ';' separated: use --delimiter ';' --decimal ','", ()),
    "tabs": ("x\ty\n1\t2\n", r"looks like '\t' separated: use --delimiter '\t'", ()),
    "one row short": ("a,b\n1,2\n3\n", "row 2 has 1 field, the header has 2", (2,)),
    "one row long": ("a,b\n1,2\n3,4,5\n", "row 2 has 3 fields, the header has 2", (2,)),
    "blank line between": ("a,b\n1,2\n\n3,4\n", "row 2 is empty, the header has 2 fields", (2,)),
    "duplicate names": ("a,b,a\n1,2,3\n", "column name 'a' appears twice (columns 1 and 3)", ()),
    "no header": ("1,2\n3,4\n", "row 1 looks like data ('1','2'); use --no-header", (1,)),
    "no header, labels": ("boy\ngirl\nboy\n", "row 1 looks like data ('boy'); use --no-header", (1,)),
    "empty": ("", "no data rows in data.csv", ()),
    "header only": ("a,b\n", "no data rows in data.csv", ()),
    "blank first line": ("\na,b\n1,2\n", "data.csv: line 1 is empty", ()),
    "open quote": ('a,b\n"1,2\n3,4\n', "quote opened in row 1 is never closed", (1,)),
    "open quote, late": ("a,b\n" + "1,2\n" * 30_000 + '"1,2\n', "quote opened in row 30001 is never closed", (30_001,)),
    "open quote, long file": ('a,b\n"' + "1,2\n" * 50_000, "row 1 has a cell of more than 131072 characters", (1,)),
    "text after a quote": ('a,b\n1,2\n"x"y,2\n', "row 2 has text after a closing quote", (2,)),
    "NUL": ("a,b\n1,\0\n", "row 1 contains a NUL byte", (1,)),
    "NUL in the header": ("a\0,b\n1,2\n", "the header contains a NUL byte", ()),
    "comment": ("# births\na,b\n1,2\n", "header has 1 column, row 1 has 2", (1,)),
}


@by_name(("text", "message", "rows"), REFUSED)
def test_text_that_is_refused(tmp_path, text, message, rows):
    path = tmp_path / "data.csv"
    path.write_bytes(text.encode())
    with pytest.raises(InputError) as caught:
        read_table(path)
    assert message in str(caught.value)
    assert caught.value.rows == rows


ACCEPTED = {
    "byte order mark": (b"\xef\xbb\xbfa,b\n1,2\n", {"a": ["1"], "b": ["2"]}),
    "CRLF": (b"a,b\r\n1,2\r\n", {"a": ["1"], "b": ["2"]}),
    "CR": (b"a,b\r1,2\r", {"a": ["1"], "b": ["2"]}),
    "no final line end": (b"a,b\n1,2", {"a": ["1"], "b": ["2"]}),
    "quoted comma and newline": (b'a,b\n"1,5","x\ny"\n', {"a": ["1,5"], "b": ["x\ny"]}),
    "labels stay text": (b"a,b\nNA,00123\nnull,TRUE\n", {"a": ["NA", "null"], "b": ["00123", "TRUE"]}),
    "blank lines at the end": (b"a,b\n1,2\n\n\n", {"a": ["1"], "b": ["2"]}),
    "empty cells of one column": (b'a\n1\n\n2\n""\n\n', {"a": ["1", "", "2", ""]}),
    "spaces in a name": (b"a, b\n1,2\n", {"a": ["1"], " b": ["2"]}),
}


@by_name(("content", "columns"), ACCEPTED)
def test_text_that_is_accepted(written, content, columns):
    path = written(content)
    table = read_table(path)
    assert {name: column.values for name, column in table.columns.items()} == columns
    assert table.name == "data.csv"


def test_many_chunks_keep_every_row_in_order(tmp_path):
    path = tmp_path / "data.csv"
    cells = [str(i) for i in range(50_001)]
    path.write_text("a\n" + "\n".join(cells[:30_000]) + "\n\n" + "\n".join(cells[30_000:]))
    assert read_table(path)["a"].values == [*cells[:30_000], "", *cells[30_000:]]


ENCODINGS = {
    "latin-1": ("latin-1", "not UTF-8 at byte 4; use --encoding latin-1"),
    "utf-16": ("utf-16", "not UTF-8 at byte 1; use --encoding utf-16"),
}


@by_name(("encoding", "message"), ENCODINGS)
def test_another_encoding_is_refused_until_named(tmp_path, encoding, message):
    path = tmp_path / "data.csv"
    path.write_bytes("s\nfé\nno\n".encode(encoding))
    with pytest.raises(InputError, match=message):
        read_table(path)
    assert read_table(path, encoding=encoding)["s"].values == ["fé", "no"]


def test_the_byte_is_counted_from_the_start_of_the_file(written):
    path = written(b"s\n" + b"ok\n" * 100_000 + b"\xe9\n")
    with pytest.raises(InputError, match="byte 300003;"):
        read_table(path)


@pytest.mark.parametrize("encoding", ["nonsense", "hex"])
def test_unknown_encoding(written, encoding):
    path = written("y\n1\n")
    with pytest.raises(InputError, match=f"unknown encoding '{encoding}'"):
        read_table(path, encoding=encoding)


@pytest.mark.parametrize("name", ["nothing.csv", ".", "pipe.csv", "http://example.org/data.csv", "s3://b/data.csv.gz"])
def test_only_regular_files_are_opened(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe.csv")
    with pytest.raises(InputError, match=r"^not a regular file: "):
        read_table(name)


def test_compressed_file(written):
    path = written(b"\x1f\x8b", "data.csv.gz")
    with pytest.raises(InputError, match=r"compressed files are not read: data.csv.gz; unpack it first"):
        read_table(path)


def test_a_file_of_unknown_kind_needs_a_delimiter(written):
    path = written("a|b\n1|2\n", "data.xyz")
    with pytest.raises(InputError, match=r"cannot tell the format of data.xyz"):
        read_table(path)
    assert read_table(path, delimiter="|")["b"].values == ["2"]


@pytest.mark.parametrize(("name", "delimiter"), [("a.tsv", None), ("a.csv", "\t"), ("a.csv", r"\t")])
def test_tabs(tmp_path, name, delimiter):
    path = tmp_path / name
    path.write_text("a\tb\n1\t2\n")
    assert read_table(path, delimiter=delimiter)["b"].values == ["2"]


@pytest.mark.parametrize("delimiter", ["", "ab", '"', "\n"])
def test_delimiters_that_cannot_be(written, delimiter):
    path = written("y\n1\n")
    with pytest.raises(InputError, match="the delimiter must be one character"):
        read_table(path, delimiter=delimiter)


@pytest.mark.parametrize(("text", "names"), [("1,2\n3,4\n", ["1", "2"]), ("1\n0\n", ["y"])])
def test_without_a_header(written, text, names):
    path = written(text)
    table = read_table(path, header=False)
    assert list(table.columns) == names
    assert table.rows == 2


def test_without_a_header_the_first_row_sets_the_width(written):
    path = written("1,2\n3\n")
    with pytest.raises(InputError, match=r"row 2 has 1 field, row 1 has 2"):
        read_table(path, header=False)


def test_parquet(tmp_path):
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({"y": [0, 1], "s": ["NA", None]}), path)
    table = read_table(path)
    assert table["y"].values.tolist() == [0, 1]
    assert table["s"].values == ["NA", ""]
    assert table.name == "data.parquet"


def test_parquet_that_is_none(written):
    path = written(b"PAR1 not really", "data.parquet")
    with pytest.raises(InputError, match=r"data.parquet is not a readable Parquet file"):
        read_table(path)


def test_parquet_without_pyarrow(written, monkeypatch):
    path = written(b"PAR1", "data.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(InputError, match=r"Parquet files need pyarrow; pip install 'bayeszoo\[parquet\]'"):
        read_table(path)


FRAMES = {"mapping": dict, "pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


@by_name("frame", FRAMES)
def test_frames(frame):
    table = read_table(frame({"y": [0, 1], "s": ["NA", None]}))
    assert table["y"].values.tolist() == [0, 1]
    assert table["s"].values[0] == "NA"
    assert not table["s"].values[1]


SEQUENCES = {
    "list": [0, 1],
    "range": range(2),
    "array": np.array([0, 1]),
    "nested list (n, 1)": [[0], [1]],
    "pandas": pd.Series([0, 1], name="other"),
    "polars": pl.Series("other", [0, 1]),
    "pyarrow": pa.chunked_array([[0, 1]]),
}


@by_name("source", SEQUENCES)
def test_one_sequence_is_the_column_y(source):
    assert read_table(source)["y"].values.tolist() == [0, 1]


class Sparse:
    def toarray(self):
        raise AssertionError("never made dense without being asked")


SOURCES = {
    "three dimensions": (np.zeros((3, 2, 2)), "column 'y' has shape (3, 2, 2), one dimension expected"),
    "no dimension": (np.array(1.0), "column 'y' has shape (), one dimension expected"),
    "ragged": ([[1, 2], [3]], "column 'y' is ragged: its rows have different lengths"),
    "sparse": (Sparse(), "column 'y' is a sparse matrix; pass its .toarray()"),
    "same name twice": ({1: [0], "1": [1]}, "column name '1' appears twice (columns 1 and 2)"),
    "number": (1, "column 'y' is a int; a sequence of values was expected"),
    "text": ({"y": "01"}, "column 'y' is a str; a sequence of values was expected"),
    "duplicates": (pd.DataFrame([[1, 2]], columns=["a", "a"]), "column name 'a' appears twice (columns 1 and 2)"),
}


@by_name(("source", "message"), SOURCES)
def test_sources_that_are_refused(source, message):
    with pytest.raises(InputError) as caught:
        read_table(source)
    assert str(caught.value) == message


def test_integers_with_holes_keep_their_digits():
    large = 2**53 + 1
    for source in (
        pd.Series([large, None], dtype="Int64"),
        pl.Series([large, None]),
        np.ma.array([large, 0], mask=[0, 1]),
    ):
        assert read_table(source)["y"].values.tolist() == [large, None]


def test_different_indexes_are_noted():
    a, b = pd.Series([1, 2]), pd.Series([1, 2], index=[1, 0])
    (note,) = read_table({"successes": a, "trials": b}).notes
    assert note == "successes and trials have different indexes; rows matched by position"
    assert read_table({"successes": a, "trials": a, "more": [1, 2]}).notes == ()


def test_names_cannot_drive_the_terminal(written):
    path = written("\x1b[31m" + "a" * 100 + ",b\n1,2\n", "\x1b[2Jdata.csv")
    with pytest.raises(InputError) as caught:
        read_table(path)["\x1b]0;"]
    assert "\x1b" not in str(caught.value)
    assert r"\x1b[2Jdata.csv has no column '\x1b]0;'; its columns are '\x1b[31maaa" in str(caught.value)
    assert "a" * 41 not in str(caught.value)


def test_decimal_mark():
    with pytest.raises(InputError, match=r"decimal must be '.' or ',', got ';'"):
        read_table([1], decimal=";")
