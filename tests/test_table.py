"""Tables are read as they are or refused, at once and in chunks alike, with a message that says where."""

import gzip
import os

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xarray as xr

import bayeszoo as bz
from bayeszoo.data.inputs import Inputs
from bayeszoo.data.inputs.base import Layout, Parsed
from bayeszoo.data.table.read import read_parts, read_table
from bayeszoo.errors import InputError
from tests.reading import by_name, model_of
from tests.refusals import raises

REFUSED = {
    "trailing comma everywhere": (
        "a,b,\n1,2,\n",
        "column 3 has no name and no values; remove the column, or the delimiter at the end of each row",
        (),
    ),
    "no name": (",b\n1,2\n", "data.csv: column 1 has no name; name it in the first row", ()),
    "line of a spreadsheet": ("sep=,\na,b\n1,2\n", "column 2 has no name; remove the first line, which only", ()),
    "semicolons": ("x;y\n1,5;2\n", "looks like ';' separated: use --delimiter ';' --decimal ','", ()),
    "tabs": ("x\ty\n1\t2\n", r"looks like '\t' separated: use --delimiter '\t'", ()),
    "one row short": ("a,b\n1,2\n3\n", "row 2 has 1 field, the header has 2", (2,)),
    "one row long": ("a,b\n1,2\n3,4,5\n", "row 2 has 3 fields, the header has 2", (2,)),
    "blank line between": ("a,b\n1,2\n\n3,4\n", "row 2 is empty, the header has 2", (2,)),
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
    "NUL": ("a,b\n1,\0\n", "data.csv: line 2 contains a NUL byte; is the file UTF-16?", ()),
    "NUL in the header": ("a\0,b\n1,2\n", "data.csv: line 1 contains a NUL byte", ()),
    "comment": ("# births\na,b\n1,2\n", "row 1 has 2 fields, the header has 1; remove the comment", (1,)),
}


ALL = None
CASES = {
    f"{name}, {rows}": (*case, rows)
    for name, case in REFUSED.items()
    for rows in ([ALL, 1, 2, 3, 20_000, 10**6] if len(case[0]) < 10**5 else [ALL, 20_000, 10**6])
}


def parts_of(path, rows):
    """The table at once or in chunks of so many rows."""
    return [read_table(path)] if rows is ALL else list(read_parts(path, rows))


@by_name(("text", "message", "places", "rows"), CASES)
def test_text_that_is_refused_at_once_and_in_chunks(written, text, message, places, rows):
    with pytest.raises(InputError) as caught:
        parts_of(written(text), rows)
    assert message in str(caught.value)
    assert caught.value.rows == places


ACCEPTED = {
    "byte order mark": (b"\xef\xbb\xbfa,b\n1,2\n", {"a": ["1"], "b": ["2"]}),
    "CRLF": (b"a,b\r\n1,2\r\n", {"a": ["1"], "b": ["2"]}),
    "CR": (b"a,b\r1,2\r", {"a": ["1"], "b": ["2"]}),
    "no final line end": (b"a,b\n1,2", {"a": ["1"], "b": ["2"]}),
    "quoted comma and newline": (b'a,b\n"1,5","x\ny"\n2,"\n\n"\n', {"a": ["1,5", "2"], "b": ["x\ny", "\n\n"]}),
    "labels stay text": (b"a,b\nNA,00123\nnull,TRUE\n", {"a": ["NA", "null"], "b": ["00123", "TRUE"]}),
    "blank lines at the end": (b"a,b\n1,2\n\n\n", {"a": ["1"], "b": ["2"]}),
    "empty cells of one column": (b'a\n1\n\n2\n""\n\n', {"a": ["1", "", "2", ""]}),
    "spaces in a name": (b"a, b\n1,2\n", {"a": ["1"], " b": ["2"]}),
}


@pytest.mark.parametrize("rows", [ALL, 1, 2, 3, 100])
@by_name(("content", "columns"), ACCEPTED)
def test_text_that_is_accepted_at_once_and_in_chunks(written, content, columns, rows):
    parts = parts_of(written(content), rows)
    assert {name: [cell for part in parts for cell in part[name].values] for name in parts[0].columns} == columns
    assert {part.rows for part in parts[:-1]} <= {rows}
    assert all(part.rows and part.name == "data.csv" for part in parts)


def test_many_chunks_keep_every_row_in_order(written):
    cells = [str(i) for i in range(50_001)]
    path = written("a\n" + "\n".join(cells[:30_000]) + "\n\n" + "\n".join(cells[30_000:]))
    assert read_table(path)["a"].values == [*cells[:30_000], "", *cells[30_000:]]


LATIN, UTF_16 = ("s\nfé\nno\n".encode(encoding) for encoding in ("latin-1", "utf-16"))
PACKED, UNREAD = "data.csv.gz", "unreadable_file"
FILES = {
    "latin-1": ("data.csv", LATIN, {}, UNREAD, ("data.csv", "--encoding latin-1")),
    "utf-16": ("data.csv", UTF_16, {}, UNREAD, ("data.csv", "--encoding utf-16")),
    "a late byte": ("data.csv", b"s\n" + b"ok\n" * 100_000 + b"\xe9\n", {}, UNREAD, ("data.csv",)),
    "not ASCII": ("data.csv", LATIN, {"encoding": "ascii"}, UNREAD, ("data.csv", "ascii", "--encoding")),
    "zip": ("data.csv.zip", b"PK", {}, UNREAD, ("data.csv.zip", "gzip")),
    "bzip2": ("data.csv.bz2", b"PK", {"delimiter": ","}, UNREAD, ("data.csv.bz2", "gzip")),
    "xz": ("data.csv.XZ", b"PK", {}, UNREAD, ("data.csv.XZ", "gzip")),
    "compressed Parquet": ("data.parquet.gz", b"", {}, UNREAD, ("data.parquet.gz", ".csv")),
    "packed, not UTF-8": ("data.csv.gz", gzip.compress(LATIN), {}, UNREAD, (PACKED, "--encoding latin-1")),
    "packed UTF-16": ("data.csv.gz", gzip.compress(UTF_16), {}, UNREAD, (PACKED, "--encoding utf-16")),
    "packed, a short row": ("data.csv.gz", gzip.compress(b"a,b\n1\n"), {}, "ragged", (PACKED, "row 1")),
    "a bomb": (PACKED, gzip.compress(b"a" * 60_000_000), {}, "bad_file", (PACKED, 200)),
    "cut short": (PACKED, gzip.compress(b"a\n1\n")[:-9], {}, UNREAD, (PACKED,)),
    "no gzip": (PACKED, b"a\n1\n", {}, UNREAD, (PACKED,)),
    "no known suffix": ("data.xyz", "a|b\n1|2\n", {}, UNREAD, ("data.xyz",)),
    "the first row sets the width": ("data.csv", "1,2\n3\n", {"header": False}, "ragged", ("row 2", "row 1")),
    "no Parquet": ("data.parquet", b"PAR1 not really", {}, UNREAD, ("data.parquet",)),
}
ONE = ("data.csv", "y\n1\n")
FILES |= {name: (*ONE, {"encoding": name}, "unknown_encoding", (repr(name),)) for name in ("nonsense", "hex")}
FILES |= {mark: (*ONE, {"delimiter": mark}, "wrong_type", (repr(mark),)) for mark in ("", "ab", '"', "\n")}


@by_name(("name", "content", "options", "code", "names"), FILES)
def test_files_that_are_refused(written, name, content, options, code, names):
    with raises(InputError, code, *names):
        read_table(written(content, name), **options)


READ = {
    "latin-1": ("data.csv", LATIN, {"encoding": "latin-1"}, {"s": ["fé", "no"]}),
    "utf-16": ("data.csv", UTF_16, {"encoding": "utf-16"}, {"s": ["fé", "no"]}),
    "gzip": ("data.csv.gz", gzip.compress(b"a\n1\n"), {}, {"a": ["1"]}),
    "gzip in capitals": ("DATA.CSV.GZ", gzip.compress(b"a\n1\n"), {}, {"a": ["1"]}),
    "a small archive": ("a.csv.gz", gzip.compress(b"a" + b"\n1" * 10**5), {}, {"a": ["1"] * 10**5}),
    "delimiter": ("data.xyz", "a|b\n1|2\n", {"delimiter": "|"}, {"a": ["1"], "b": ["2"]}),
    "tsv": ("a.tsv", "a\tb\n1\t2\n", {}, {"a": ["1"], "b": ["2"]}),
    "tab": ("a.csv", "a\tb\n1\t2\n", {"delimiter": "\t"}, {"a": ["1"], "b": ["2"]}),
    "escaped tab": ("a.csv", "a\tb\n1\t2\n", {"delimiter": r"\t"}, {"a": ["1"], "b": ["2"]}),
    "two columns without names": ("a.csv", "1,2\n3,4\n", {"header": False}, {"1": ["1", "3"], "2": ["2", "4"]}),
    "one column without a name": ("a.csv", "1\n0\n", {"header": False}, {"y": ["1", "0"]}),
}


@by_name(("name", "content", "options", "columns"), READ)
def test_files_that_are_read(written, name, content, options, columns):
    table = read_table(written(content, name), **options)
    assert {label: column.values for label, column in table.columns.items()} == columns


@pytest.mark.parametrize("name", ["nothing.csv", ".", "pipe.csv", "http://example.org/data.csv", "s3://b/data.csv.gz"])
def test_only_regular_files_are_opened(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe.csv")
    with raises(InputError, "no_such_file"):
        read_table(name)


def test_parquet(tmp_path):
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({"y": [0, 1], "s": ["NA", None]}), path)
    table = read_table(path)
    assert table["y"].values.tolist() == [0, 1]
    assert table["s"].values == ["NA", ""]
    assert table.name == "data.parquet"


def records(columns):
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


FRAMES = {"mapping": dict, "pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
FRAMES |= {"batch": pa.RecordBatch.from_pydict, "xarray": lambda columns: pd.DataFrame(columns).to_xarray()}
FRAMES |= {"mappings": records, "structured": lambda columns: pd.DataFrame(columns).to_records(index=False)}


@by_name("frame", FRAMES)
def test_frames(frame):
    table = read_table(frame({"y": [0, 1], "s": ["NA", None]}))
    assert table["y"].values.tolist() == [0, 1]
    assert (table["s"].values[0], bool(table["s"].values[1])) == ("NA", False)


@by_name("frame", FRAMES)
def test_names_of_columns_are_kept(frame):
    """A batch, an array of xarray and a structured array lost them; records were one column."""
    table = read_table(frame({"b": [1.5, 2.5], "a": [3.5, 4.5]}))
    assert {name: column.values.tolist() for name, column in table.columns.items()} == {
        "b": [1.5, 2.5],
        "a": [3.5, 4.5],
    }


def test_labels_of_an_array_of_xarray_are_names():
    array = xr.DataArray([[1.5, 3.5], [2.5, 4.5]], dims=("row", "column"))
    assert [*read_table(array).columns] == ["1", "2"]
    named = array.assign_coords(column=["b", "a"])
    assert [*read_table(named).columns] == ["b", "a"]
    data = bz.read(bz.find("linear_regression"), {"y": [1.0, 2.0], "X": named})
    assert data["feature"].tolist() == ["b", "a"]


SEQUENCES = [[0, 1], range(2), np.array([0, 1]), [[0], [1]], pd.Series([0, 1], name="other")]
SEQUENCES += [pl.Series("other", [0, 1]), pa.chunked_array([[0, 1]])]


@pytest.mark.parametrize("source", SEQUENCES, ids=lambda source: type(source).__name__)
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
    "set": ({1}, "column 'y' is a set; a sequence of values was expected"),
    "records": ([{"a": 1}, {"b": 1}], "row 2 has other names than row 1; name all in every row"),
    "lazy": (
        pl.LazyFrame({"y": [0]}),
        "a LazyFrame that is not computed yet cannot be read; call its .collect() or .compute()",
    ),
    "duplicates": (pd.DataFrame([[1, 2]], columns=["a", "a"]), "column name 'a' appears twice (columns 1 and 2)"),
}


@by_name(("source", "message"), SOURCES)
def test_sources_that_are_refused(source, message):
    with pytest.raises(InputError) as caught:
        read_table(source)
    assert str(caught.value) == message


def test_integers_with_holes_keep_their_digits():
    large = 2**53 + 1
    holes = [large, None]
    for source in (pd.Series(holes, dtype="Int64"), pl.Series(holes), np.ma.array([large, 0], mask=[0, 1])):
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


# Chunks


@pytest.mark.parametrize("rows", [1, 2, 7, 100])
def test_names_that_occur_in_different_chunks_are_data(written, rows):
    path = written("boy,3\n" + "girl,4\n" * 10 + "boy,4\n" + "girl,4\n" * 20)
    with raises(InputError, "looks_like_data", "1", "'boy'", "'3'"):
        list(read_parts(path, rows))
    path.write_text("sex,at\n" + "girl,at\n" * 10 + "sex,4\n" + "girl,4\n" * 20)
    with raises(InputError, "looks_like_data", "1", "'sex'"):
        list(read_parts(path, rows))


def test_missing_values_are_dropped_and_counted(written):
    path = written("y,a\n" + "\n".join(["1,2", "NA,3", "4,5", ",", "6,NA", "7,9", "NA,1", "NA,2", "3,NA"]) + "\n")
    Ridge = bz.find("ridge")
    whole = bz.read(Ridge, path, missing="drop")
    assert whole.notes[0] == "6 rows with missing values dropped (rows 2, 4, 5, 7, 8, ...)"
    for rows in (1, 2, 4, 9):
        found = bz.accumulate(Ridge(), path, rows, missing="drop")
        assert whole.notes[0] in found.notes
        assert found.rows == 3
        assert Ridge().log_evidence(found.stats) == pytest.approx(Ridge().log_evidence(Ridge().statistics(whole)))
    sizes = [chunk.rows for chunk in bz.read_chunks(Ridge, path, 2, missing="drop")]
    assert sizes == [1, 1, 1, 0, 0]


def test_rows_of_no_trials_are_no_observations(written):
    path = written("successes,trials\n0,0\n1,2\n0,0\n")
    Coin = bz.find("beta_bernoulli")
    found = [bz.accumulate(Coin(), path, rows) for rows in (1, 2, 3)]
    assert {(one.stats.successes, one.stats.failures, one.rows) for one in found} == {(1, 1, 3)}
    assert len({one.digest for one in found}) == 1


def with_line(place, text):
    """Thirty rows of which one (counted from 1) is another."""
    cells = [str(i / 10) for i in range(1, 31)]
    return "\n".join(["y", *cells[: place - 1], text, *cells[place:]]) + "\n"


AB, HOLES, TWO_WORDS = {"symbols": "a,b"}, "y\nNA\nNA\nNA\n", with_line(17, "abc\nz")
DROP, VOTES, NEEDS_ROWS = {"missing": "drop"}, "v\na\nb\na\n", "needs_rows"
IN_CHUNKS = {
    "two words": ("gaussian_mean", 7, TWO_WORDS, {}, "not_a_number", ("row 17", "'abc'", "row 18", 21)),
    "a hole": ("gaussian_mean", 7, with_line(17, "NA"), {}, "missing_values", ("row 17", 21)),
    "too large": ("gaussian_mean", 7, with_line(17, "1e200"), {}, "too_large", ("row 17", "1e200", 21)),
    "no value": ("gaussian_mean", 2, HOLES, DROP, "no_data", ()),
    "no value at all": ("gaussian_mean", 5, HOLES, DROP, "no_data", ("'y'",)),
    "no trials": ("beta_bernoulli", 1, "successes,trials\n0,0\n0,0\n", {}, "no_data", ()),
    "sum": ("gamma_poisson", 1, "y\n" + f"{2**52}\n" * 3, {}, "too_large", ("'y'", "2**53")),
    "sum of a chunk": ("gamma_poisson", 3, "y\n" + f"{2**52}\n" * 3, {}, "too_large", ("'y'", "2**53")),
    "option": ("ridge", 1, "y,a\n1,2\n3,4\n", {"positive": "yes"}, "unknown_option", ("'positive'",)),
    "observations": ("hmm_gaussian", 1, "y\n1\n2\n", {}, "not_cuttable", ()),
    "documents": ("lda", 1, "document,word\nx,a\ny,b\n", {}, "not_cuttable", ()),
    "positive": ("beta_bernoulli", 1, "y\nyes\nno\n", {"positive": "yes"}, NEEDS_ROWS, ("--positive",)),
    "counts of labels": (
        "beta_bernoulli",
        1,
        "y,n\n1,2\n0,3\n",
        {"column": "y", "count": "n"},
        NEEDS_ROWS,
        ("--count",),
    ),
    "labels": ("dirichlet_multinomial", 1, VOTES, {}, "labels_must_be_given", ("--categories",)),
    "labels or counts": ("dirichlet_multinomial", 1, "v,w\n1,2\n3,4\n", {}, "not_cuttable", ("--column",)),
    "columns of counts": (
        "dirichlet_multinomial",
        1,
        "v,w\n1,2\n3,4\n",
        {"columns": "v,w"},
        NEEDS_ROWS,
        ("--columns",),
    ),
    "symbols": ("markov_chain", 1, "from,to\na,b\nb,a\n", {}, "labels_must_be_given", ("--symbols",)),
    "order": ("markov_chain", 1, "from,to\na,b\nb,a\n", AB, "not_cuttable", ("--order 1",)),
    "a sequence": ("markov_chain", 1, VOTES, {**AB, "order": 1}, "not_cuttable", ("--source", "--target")),
    "no rows": ("gaussian_mean", 0, VOTES, {}, "wrong_type", (">= 1", 0)),
    "text": ("gaussian_mean", "7", VOTES, {}, "wrong_type", (">= 1", "'7'")),
}


@by_name(("kind", "rows", "text", "options", "code", "names"), IN_CHUNKS)
def test_files_that_are_refused_in_chunks(written, kind, rows, text, options, code, names):
    with raises(InputError, code, *names):
        list(bz.read_chunks(bz.find(kind), written(text), rows, **options))


class Drifting(Inputs):
    """Labels that are found in each chunk by itself."""

    name, options, layout = "y", frozenset(), Layout(("label",), coded={"y": "label"})

    def _parse(self, table, missing, options, like):
        labels, codes = np.unique(table["y"].values, return_inverse=True)
        return Parsed({"y": codes, "label": labels}, {"y": "y"})


def test_labels_may_not_change_from_chunk_to_chunk(written):
    with raises(InputError, "labels_differ", "3", "4"):
        list(bz.read_chunks(model_of(Drifting()), written("y\na\nb\na\nc\n"), 2))


def test_what_is_no_file(tmp_path, written):
    Ridge = bz.find("ridge")
    with raises(InputError, "not_a_file"):
        bz.read_chunks(Ridge, pd.DataFrame({"y": [1, 2]}))
    with raises(InputError, "no_such_file"):
        bz.read_chunks(Ridge, tmp_path / "none.csv")
    with raises(InputError, "not_a_model"):
        bz.accumulate(Ridge, written("y,a\n1,2\n"))


def test_labels_of_an_updated_model_are_required(written):
    polls = bz.update(bz.find("dirichlet_multinomial")(), ["b", "c"])
    path = written("vote\na\nb\na\n", "votes.csv")
    with raises(InputError, "labels_differ", "'b'", "'c'"):
        bz.accumulate(polls, path, 2, categories=["a", "b"])


def test_times_that_are_all_missing_are_no_outcomes():
    """They were read as the whole number that stands for no time, -2**63."""
    for times in (pd.Series([pd.NaT, pd.NaT]), pd.Series(pd.to_timedelta([None, None]))):
        with raises(InputError, "dates"):
            bz.read(bz.find("beta_bernoulli"), times)


def test_intervals_are_refused_with_the_way_to_make_them_labels():
    bins = pd.cut(pd.Series([1.0, 2.0, 3.0]), 2)
    with raises(InputError, "wrong_type") as caught:
        bz.read(bz.find("dirichlet_multinomial"), bins)
    assert ".astype(str)" in caught.value.hint
    assert len(bz.read(bz.find("dirichlet_multinomial"), bins.astype(str))["category"]) == 2
