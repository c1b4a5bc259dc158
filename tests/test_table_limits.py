"""Tables that are too large to be read at once are refused by their size, before they are read."""

import gzip

import pytest

from bayeszoo.data.inputs import Real
from bayeszoo.data.table import delimited, limits, vectorized
from bayeszoo.data.table.read import read_parts, read_table
from bayeszoo.errors import InputError
from bayeszoo.model.parts.chunks import read_chunks
from tests.reading import model_of
from tests.refusals import raises

SHORT = "y\n" + "1\n2\n" * 50_000


@pytest.fixture
def few_rows(monkeypatch):
    monkeypatch.setattr(limits, "MOST_ROWS", 1000)


@pytest.fixture(params=["packed", "plain"])
def short(request, tmp_path):
    path = tmp_path / ("short.csv.gz" if request.param == "packed" else "short.csv")
    path.write_bytes(gzip.compress(SHORT.encode()) if request.param == "packed" else SHORT.encode())
    return path


@pytest.mark.usefixtures("few_rows")
def test_a_file_of_very_many_rows_is_refused_by_its_first_lines_and_read_in_chunks(short, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(delimited, "_parts", lambda *_: pytest.fail("it was read"))
        with raises(limits.TooLarge, "too_large"):
            read_table(short)
    chunks = read_chunks(model_of(Real("y")), short, 900)
    assert sum(chunk.rows for chunk in chunks) == 100_000


@pytest.mark.usefixtures("few_rows")
@pytest.mark.parametrize("way", ["row by row", "in blocks"])
def test_a_file_whose_first_lines_say_nothing_is_refused_as_it_grows(way, tmp_path, monkeypatch):
    if way == "in blocks":
        pytest.importorskip("pyarrow")
        monkeypatch.setattr(vectorized, "SMALLEST", 1)
        monkeypatch.setattr(vectorized, "BLOCK", 150_000)
    (tmp_path / "odd.csv").write_text(f"y\n{'0' * 130_000}1\n" + "1\n" * 1400 * 50)
    monkeypatch.setattr(limits, "_SAMPLE", 1000)
    with raises(limits.TooLarge, "too_large"):
        read_table(tmp_path / "odd.csv")


def test_very_many_columns_are_refused_in_chunks_too(tmp_path):
    names = ",".join(f"c{i}" for i in range(limits.MOST_COLUMNS + 1))
    (tmp_path / "wide.csv").write_text(f"{names}\n{names.replace('c', '')}\n")
    for rows in (None, 10):
        with raises(limits.TooLarge, "too_large"):
            next(read_parts(tmp_path / "wide.csv", rows))


def test_rows_and_columns_count_together(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "MOST_CELLS", 100)
    (tmp_path / "cells.csv").write_text("a,b,c\n" + "1,2,3\n" * 200)
    with raises(limits.TooLarge, "too_large", "cells"):
        read_table(tmp_path / "cells.csv")


def test_a_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "LONGEST_LINE", 1000)
    (tmp_path / "line.csv").write_text("y\n" + "1" * 5000)
    with raises(InputError, "too_large", "2"):
        read_table(tmp_path / "line.csv")


def test_parquet_is_refused_by_what_it_declares(tmp_path, monkeypatch):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table({"y": [1.0] * 5000}), tmp_path / "y.parquet")
    monkeypatch.setattr(limits, "MOST_ROWS", 1000)
    monkeypatch.setattr(parquet.ParquetFile, "read", lambda *_: pytest.fail("it was read"))
    with pytest.raises(limits.TooLarge):
        read_table(tmp_path / "y.parquet")
    assert sum(part.rows for part in read_parts(tmp_path / "y.parquet", 800)) == 5000
