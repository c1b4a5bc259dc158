"""Data are frozen copies, with the same digest wherever they come from."""

import hashlib
import importlib.util
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest

from bayeszoo.data.inputs import Binary, Real
from bayeszoo.data.read import Example, example, read
from bayeszoo.errors import InputError
from tests.reading import by_name, model_of, plain
from tests.refusals import raises


class Coin:
    inputs = Binary("y")
    examples, labels = (), {}


def parquet_file(written):
    path = written("", "data.parquet")
    pl.DataFrame({"y": [0, 1, 1]}, schema={"y": pl.Int8}).write_parquet(path)
    return path


CSV = "y,x\n0,5\n1,6\n1,7\n"
SOURCES = {
    "csv": lambda written: written(CSV),
    "tsv": lambda written: written(b"\xef\xbb\xbfx\ty\r\n\t0\r\n\t1.0\r\n\t1\r\n", "data.tsv"),
    "parquet": parquet_file,
    "pandas": lambda _: pd.DataFrame({"y": [0, 1, 1]}, index=[5, 4, 3]),
    "list": lambda _: [0, 1, 1],
}


@by_name("source", SOURCES)
def test_the_digest_does_not_depend_on_the_source(written, source):
    data = read(Coin, source(written))
    content = b"y\0<i8\0(3,)\0" + np.array([0, 1, 1], dtype="<i8").tobytes()
    assert data.digest == hashlib.sha256(content).hexdigest()
    assert data == read(Coin, [0, 1, 1])
    assert data.rows == 3


def test_digests_differ_with_values_order_type_and_names():
    data = [read(Coin, [0, 1, 1]), read(Coin, [1, 0, 1]), read(model_of(Real("y")), [0, 1, 1])]
    data.append(read(Coin, {"successes": [0, 1, 1], "trials": [1, 1, 1]}))
    assert len({each.digest for each in data}) == len(set(data)) == 4
    assert data[0] != {"y": 1}


def test_data_are_frozen_copies():
    mine = np.array([0, 1, 1])
    data = read(Coin(), mine)
    mine[:] = 0
    assert data["y"].tolist() == [0, 1, 1]
    with pytest.raises(ValueError, match="read-only"):
        data["y"][0] = 1
    with pytest.raises(AttributeError):
        data.source = "another"
    assert mine.flags.writeable


def test_data_know_where_they_come_from(written):
    data = read(Coin, written(CSV), column="y")
    assert (data.source, dict(data.columns), data.notes) == ("data.csv", {"y": "y"}, ())
    assert (list(data), len(data)) == (["y"], 1)
    assert repr(data) == "Data(y: int64 (3,); from data.csv)"
    assert read(Coin, {"y": [0]}).source == "dict"


def test_options_reach_the_file_and_the_model(written):
    path = written("ja;1,0\n;1,0\nné;2,0\n".encode("latin-1"))
    data = read(
        Coin, path, missing="drop", delimiter=";", decimal=",", encoding="latin-1", header=False,
        column="1", positive="ja", count="2",
    )  # fmt: skip
    assert (data["successes"].tolist(), data["trials"].tolist()) == ([1], [3])
    assert data.notes == ("column '1': 'ja' is 1, 'né' is 0", "1 row with missing values dropped (row 2)")
    assert dict(data.columns) == {"column": "1", "count": "2"}


@pytest.fixture(params=[True, False], ids=["package", "folder"])
def zoo(request, tmp_path, monkeypatch):
    """A package with one model and its examples, as an installed bayeszoo has them."""
    name = f"zoo_{tmp_path.name}"  # unique, and made of word characters
    folder = tmp_path / name / "data"
    folder.mkdir(parents=True)
    (tmp_path / name / "__init__.py").touch()
    if request.param:
        (folder / "__init__.py").touch()
    (folder / "births.csv").write_text("sex,count\nboy,3\ngirl,2\n")
    (folder / "previa.csv").write_text("successes,trials\n4,9\n")
    (tmp_path / name / "coin.py").write_text("class Coin: pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    model = __import__(f"{name}.coin", fromlist=["Coin"]).Coin
    births = Example("births.csv", "Births.", "Laplace", {"column": "sex", "positive": "boy", "count": "count"})
    model.inputs = Binary("y")
    model.examples, model.labels = (births, Example("previa.csv", "Births.", "Gelman")), {}
    return model


def test_examples(zoo):
    assert read(zoo) == example(zoo) == example(zoo(), "births")
    assert plain(read(zoo)) == {"successes": [3], "trials": [5]}
    assert read(zoo, positive="girl")["successes"].tolist() == [2]
    assert read(zoo).source == "births.csv"
    assert example(zoo, "previa")["successes"].tolist() == [4]


def test_unknown_examples(zoo):
    for name in ("../births", "births.csv", ""):
        with raises(InputError, "unknown_name", "Coin", "births", "previa"):
            example(zoo, name)
    for call in (lambda: read(Coin), lambda: example(Coin(), "births")):
        with raises(InputError, "no_example", "Coin"):
            call()


def test_names_of_examples():
    assert Example("births.csv.gz", "", "").name == "births"


def test_reading_data_imports_no_heavy_package():
    folder = importlib.util.find_spec("bayeszoo").submodule_search_locations[0]
    code = (
        "import sys, types\n"
        # An empty package in place of bayeszoo: what its __init__ imports is not the matter here.
        "package = sys.modules['bayeszoo'] = types.ModuleType('bayeszoo')\n"
        f"package.__path__ = [{folder!r}]\n"
        "from bayeszoo.data.read import read\n"
        "from bayeszoo.data.inputs import Binary\n"
        "class Coin: inputs = Binary('y'); examples, labels = (), {}\n"
        "read(Coin, [0, 1])\n"
        "print({'pymc', 'arviz', 'matplotlib', 'pandas', 'polars', 'pyarrow', 'narwhals', 'scipy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
