"""``--append``: the user's own cells come back as they were, in CSV by value and in Parquet by type."""

import csv
import datetime
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bayeszoo as bz
from bayeszoo.cli.saved import as_csv

ROWS = [
    ["x", "note", "code", "=head", "sign"],
    ["1", "=1+1", "01234", "a", "-1.5"],
    ["2", "line\nbreak", "00001", " lead ", "+2"],
    ["3", 'a "q", b', "12345", "", "NA"],
    ["-1.5", "'q", "7", "é", "-"],
]


@pytest.fixture
def line(tmp_path):
    """A saved straight line."""
    data = {"y": [1.0, 2, 2.5, 4], "x": [0.0, 1, 2, 3]}
    return bz.save(bz.fit(bz.find("linear_regression")(), data, "exact"), tmp_path / "line.nc")


@pytest.fixture
def table(tmp_path):
    """A CSV file of cells that spreadsheets, types and quotes put in danger."""
    path = tmp_path / "own.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(ROWS)
    return path


def test_cells_of_a_csv_come_back_as_they_were(run, line, table, tmp_path):
    output = tmp_path / "beside.csv"
    assert run("predict", line, table, "--append", "-o", output)[0] == 0
    with output.open(newline="") as file:
        rows = list(csv.reader(file))
    assert [row[: len(ROWS[0])] for row in rows] == ROWS
    assert [name.startswith("predicted_") for name in rows[0][len(ROWS[0]) :]] == [True] * (len(rows[0]) - len(ROWS[0]))


def test_columns_of_numbers_of_a_csv_are_numbers_in_parquet(run, line, table, tmp_path):
    more = zip(["n", "9007199254740993", "", "-3", "4"], ["huge", "1e999", "1", "2", "3"], strict=True)
    own = [[*row, *cells] for row, cells in zip(ROWS, more, strict=True)]
    with table.open("w", newline="") as file:
        csv.writer(file).writerows(own)
    output = tmp_path / "beside.parquet"
    assert run("predict", line, table, "--append", "-o", output)[0] == 0
    written = pq.read_table(output)
    assert written["x"].to_pylist() == [1, 2, 3, -1.5]
    assert written["n"].to_pylist() == [2**53 + 1, None, -3, 4]
    assert written["huge"].to_pylist() == ["1e999", "1", "2", "3"]
    for i, name in enumerate(ROWS[0][1:], 1):
        assert written[name].to_pylist() == [row[i] for row in ROWS[1:]]


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_columns_of_parquet_keep_their_types(run, line, tmp_path, suffix):
    at = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    own = pa.table(
        {
            "x": pa.array([1.0, -1.5], pa.float32()),
            "large": pa.array([2**53 + 1, None]),
            "price": pa.array([Decimal("1.50"), None], pa.decimal128(10, 2)),
            "at": pa.array([at, None], pa.timestamp("ms", tz="Europe/Berlin")),
            "kind": pa.array(["a", None]).dictionary_encode(),
            "small": pa.array([1, 2], pa.int8()),
            "flag": pa.array([True, None]),
            "text": pa.array(["=1+1", "-1.5"]),
        }
    )
    table, output = tmp_path / "own.parquet", tmp_path / f"beside.{suffix}"
    pq.write_table(own, table)
    assert run("predict", line, table, "--append", "-o", output)[0] == 0
    if suffix == "parquet":
        assert pq.read_table(output).select(own.column_names).equals(own)
        return
    with output.open(newline="") as file:
        first, second = csv.DictReader(file)
    assert (first["large"], first["price"], first["text"]) == ("9007199254740993", "1.50", "=1+1")
    assert (second["x"], second["large"], second["text"], second["small"]) == ("-1.5", "", "-1.5", "2")


def test_only_our_own_text_is_guarded_and_numbers_never_are():
    frame = pd.DataFrame({"=own": ["=1+1"], "=ours": ["=1+1"], "label": ["-1"], "value": [-0.5]})
    frame.attrs["user columns"] = 1
    assert as_csv(frame) == "=own,'=ours,label,value\n=1+1,'=1+1,-1,-0.5\n"


def test_decisions_of_classes_that_are_numbers_are_written_as_they_are(run, tmp_path):
    data = {"y": ["-1", "+1", "-1", "+1", "-1", "+1"], "x": [0.0, 1, 2, 3, 1, 2]}
    tree = bz.fit(bz.find("softmax_regression")(), data, "map")
    output = tmp_path / "rows.csv"
    assert run("classify", bz.save(tree, tmp_path / "fit.nc"), "-o", output)[0] == 0
    with output.open(newline="") as file:
        assert {row["decision"] for row in csv.DictReader(file)} <= {"-1", "+1"}
