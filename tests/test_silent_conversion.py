"""No value is changed silently: whole numbers beyond 2**53, codes with leading zeros, categoricals, labels."""

import gzip
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bayeszoo as bz
from bayeszoo.data.inputs import Binary, Categories, ClassRegression, Counts, Matrix, Real, Regression
from bayeszoo.data.read import read
from bayeszoo.data.table import vectorized
from bayeszoo.data.table.cells import Numbers, is_code, is_rounded
from bayeszoo.data.table.read import read_table
from bayeszoo.data.table.table import are_numbers, is_text, to_numbers
from bayeszoo.errors import InputError
from tests.reading import by_name, model_of, refusal
from tests.refusals import raises

ROUNDED = 2**53 + 1  # the first whole number that float64 lacks
CELL, LINE, CLASSES, COIN = map(model_of, (Real("y"), Regression("y"), ClassRegression("y"), Binary("y")))

NUMBERS = {
    "list": [ROUNDED, 1],
    "list with a decimal": [0.5, ROUNDED],
    "list with a negative and a large one": [-1, 2**63 + 1],
    "int64": np.array([ROUNDED, 1]),
    "negative int64": np.array([-ROUNDED, 1]),
    "largest int64": np.array([2**63 - 1, 1]),
    "uint64": np.array([ROUNDED, 1], dtype=np.uint64),
    "largest uint64": np.array([2**64 - 1, 1], dtype=np.uint64),
    "objects": np.array([ROUNDED, 1], dtype=object),
    "Fraction": [Fraction(ROUNDED), Fraction(1, 3)],
    "Decimal": [Decimal(ROUNDED), Decimal("0.1")],
    "masked": np.ma.array([ROUNDED, 1, 2], mask=[0, 0, 1]),
    "text": [str(ROUNDED), "1"],
    "text with a point": [f"{ROUNDED}.0", "1"],
    "pandas Int64": pd.Series([ROUNDED, None], dtype="Int64"),
    "pandas array": pd.array([ROUNDED, None], dtype="Int64"),
    "pandas UInt64": pd.Series([2**64 - 1, 1], dtype="UInt64"),
    "pandas of pyarrow": pd.Series([ROUNDED, 1], dtype="int64[pyarrow]"),
    "polars UInt64": pl.Series([2**64 - 1, 1], dtype=pl.UInt64),
    "polars Int128": pl.Series([2**100 + 1, 1], dtype=pl.Int128),
    "polars Decimal": pl.Series([Decimal(ROUNDED), Decimal(1)], dtype=pl.Decimal(30, 2)),
    "polars with a hole": pl.Series([ROUNDED, None]),
    "pyarrow": pa.chunked_array([pa.array([ROUNDED, None])]),
    "pyarrow decimal": pa.chunked_array([pa.array([Decimal(ROUNDED)], pa.decimal128(30, 2))]),
}


@by_name(("values",), {name: (values,) for name, values in NUMBERS.items()})
def test_whole_numbers_that_float64_lacks_are_refused_by_row(values):
    for source in (values, {"y": values}):
        error = refusal(CELL, source, missing="drop")
        assert "more digits than float64 holds" in str(error)
        assert error.column == "y"
        assert len(error.rows) == 1


def test_rows_of_different_types_are_as_strict():
    table = [np.array([ROUNDED, 1]), np.array([0.5, 2])]
    assert refusal(model_of(Matrix()), table).rows == (1,)


def test_whole_numbers_that_float64_has_and_decimals_are_read():
    large = [2**53, 2**53 + 2, -(2**60), 3 * 2**70]
    for source in (large, [*map(str, large)], [*map(Decimal, large)], np.array(large[:3]), pl.Series(large[:3])):
        assert read(CELL, source)["y"].tolist() == [float(value) for value in large[: len(source)]]
    rounded = ["0.1", "1e23", "9007199254740993.5", "1.5e16", "0.12345678901234567890"]
    assert read(CELL, rounded)["y"].tolist() == [*map(float, rounded)]
    assert read(CELL, [Fraction(1, 3), Decimal("0.1")])["y"].tolist() == [1 / 3, 0.1]


def test_a_long_double_is_refused_where_its_digits_are_lost():
    values = np.array([np.longdouble(2**53) + 1, np.longdouble(1)])
    if values[0] == 2**53:  # on a machine without extended precision nothing is lost
        assert read(CELL, values)["y"].tolist() == [2.0**53, 1.0]
    else:
        assert refusal(CELL, values).rows == (1,)


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet", "tsv"])
def test_files_of_them_are_refused_at_once_and_in_chunks(tmp_path, suffix):
    path = tmp_path / f"large.{suffix}"
    text = f"y\n1\n{ROUNDED}\n3\n"
    if suffix == "parquet":
        pq.write_table(pa.table({"y": [1, ROUNDED, 3]}), path)
    else:
        path.write_bytes(gzip.compress(text.encode()) if suffix.endswith("gz") else text.encode())
    model = bz.find("normal_gamma")
    for fault in (lambda: bz.read(model, path), lambda: bz.accumulate(model(), path, 1)):
        with raises(InputError, "not_representable", "float64") as caught:
            fault()
        assert caught.value.rows == (2,)


@by_name(
    ("cell", "reads"),
    {
        "rounded": (str(ROUNDED), False),
        "exact": (str(ROUNDED + 1), True),
        "leading zero": ("01", False),
        "signed": ("-007", False),
        "spaced": (" 01", False),
        "zero": ("0", True),
        "decimal": ("0.5", True),
        "padded decimal": ("007.5", True),
        "last": ("10", True),
    },
)
def test_a_large_file_is_read_at_once_only_where_no_cell_changes(written, monkeypatch, cell, reads):
    for name in ("SMALLEST", "FEWEST"):
        monkeypatch.setattr(vectorized, name, 0)
    column = read_table(written(f"y,x\n1,2\n{cell},3\n4,5\n"))["y"]
    assert isinstance(column.cells, Numbers) == reads
    if reads:
        assert to_numbers(column).tolist() == [1, float(cell), 4]
    else:
        with pytest.raises(InputError) as caught:
            to_numbers(column)
        assert caught.value.rows == (2,)


def test_new_rows_are_as_strict(tmp_path):
    line = bz.find("linear_regression")()
    tree = bz.fit(line, {"y": [1.0, 2, 3, 5], "x": [0.0, 1, 2, 3]}, "exact")
    for x, code in ((ROUNDED, "not_representable"), ("01", "leading_zeros"), ("1_000", "not_a_number")):
        with raises(InputError, code, x):
            bz.predict(tree, {"x": [x]})


# Codes


def test_codes_are_no_measurements():
    codes = ["01234", "00123", "12345"]
    for model, source in ((CELL, codes), (model_of(Counts("y")), {"y": codes}), (model_of(Matrix()), {"a": codes})):
        error = refusal(model, source)
        assert "has leading zeros" in str(error)
        assert error.rows == (1, 2)
    mixed = np.array(["007", 1.5], dtype=object)
    assert refusal(CELL, mixed).rows == (1,)
    assert refusal(CELL, {"y": ["007", "1.5"]}).rows == (1,)


def test_codes_are_labels_where_there_are_labels():
    places = ["01234", "12345", "01234", "12345", "01234"]
    data = read(LINE, {"y": [1.0, 2, 3, 4, 5], "place": places})
    assert data["feature"].tolist() == ["place[12345]"]
    assert "column 'place': levels 01234, 12345; 01234 is the reference" in data.notes
    assert read(model_of(Categories("y")), places)["category"].tolist() == ["01234", "12345"]
    assert read(COIN, ["00", "01"], positive="01")["y"].tolist() == [0, 1]
    assert "--positive" in str(refusal(COIN, ["00", "01"]))
    lines = read(bz.find("varying_lines"), {"group": places, "y": [1.0, 2, 3, 4, 6], "x": [1.0, 2, 3, 4, 6]})
    assert lines["group"].tolist() == ["01234", "12345"]


@pytest.mark.parametrize(
    ("cell", "expected"), [("0", False), ("00", True), ("-01", True), ("0.1", False), ("1", False)]
)
def test_what_a_code_is(cell, expected):
    assert is_code(cell) == expected
    assert not is_rounded(cell, float(cell))


# Categoricals

CATEGORICALS = {
    "pandas": pd.Series([10, 20, 10, 30, 10, 20, 10], dtype="category"),
    "pandas array": pd.Categorical([10, 20, 10, 30, 10, 20, 10]),
    "ordered": pd.Series(pd.Categorical([10, 20, 10, 30, 10, 20, 10], ordered=True)),
    "pandas text": pd.Series(["10", "20", "10", "30", "10", "20", "10"], dtype="category"),
    "polars": pl.Series(["10", "20", "10", "30", "10", "20", "10"], dtype=pl.Categorical),
    "polars Enum": pl.Series(["10", "20", "10", "30", "10", "20", "10"], dtype=pl.Enum(["30", "20", "10"])),
    "pyarrow": pa.chunked_array([pa.array([10, 20, 10, 30, 10, 20, 10]).dictionary_encode()]),
}


@by_name(("values",), {name: (values,) for name, values in CATEGORICALS.items()})
def test_categoricals_of_numbers_are_labels(values):
    for source in (values, {"y": values}):
        assert "is categorical" in str(refusal(CELL, source))
        assert read(model_of(Categories("y")), source)["category"].tolist() == ["10", "20", "30"]
    column = read_table({"g": values})["g"]
    assert is_text(column)
    assert not are_numbers(column)
    data = read(LINE, {"y": [1.0, 2, 3, 4, 5, 6, 7], "g": values})
    assert data["feature"].tolist() == ["g[20]", "g[30]"]
    assert any("10 is the reference" in note for note in data.notes)


def test_categoricals_keep_large_labels_beside_a_hole_and_outcomes_of_0_and_1():
    label = pd.Series(pd.Categorical([ROUNDED, ROUNDED + 1, None]))
    assert read(model_of(Categories("y")), label, missing="drop")["category"].tolist() == [
        str(ROUNDED),
        f"{ROUNDED + 1}",
    ]
    assert read(COIN, pd.Series([0, 1, 1], dtype="category"))["y"].tolist() == [0, 1, 1]
    assert read(COIN, pd.Series([False, True], dtype="category"))["y"].tolist() == [0, 1]
    assert read(COIN, pd.Series(["no", "yes"], dtype="category"), positive="yes")["y"].tolist() == [0, 1]


def test_a_categorical_in_a_parquet_file_stays(tmp_path):
    path = tmp_path / "table.parquet"
    pd.DataFrame({"y": [1.0, 2, 4, 5], "g": pd.Categorical([1, 2, 1, 2])}).to_parquet(path)
    assert read(LINE, path)["feature"].tolist() == ["g[2]"]
    assert "is categorical" in str(refusal(CELL, path, column="g"))


# Labels


def test_classes_called_as_missing_values_are_classes_and_are_said():
    y = ["NA", "None", "null", "NA", "None", "null", ""]
    data = read(CLASSES, {"y": y, "x": [1.0, 2, 3, 4, 5, 6, 7]}, missing="drop")
    assert data["class"].tolist() == ["NA", "None", "null"]
    assert data["y"].tolist() == [0, 1, 2, 0, 1, 2]
    assert any("'NA', 'None', 'null' are labels" in note for note in data.notes)
    assert refusal(CLASSES, {"y": y, "x": [1.0, 2, 3, 4, 5, 6, 7]}).rows == (7,)
    absent = np.array(["a", None, "b", np.nan, "a", "b"], dtype=object)
    assert refusal(CLASSES, {"y": absent, "x": [1.0, 2, 3, 4, 5, 6]}).rows == (2, 4)


def test_a_group_called_as_a_missing_value_is_refused_with_both_ways_out():
    table = {"group": ["NA", "b", "c"], "y": [1.0, 2, 3], "se": [1.0, 1, 1]}
    error = refusal(bz.find("normal_means"), table)
    assert error.rows == (1,)
    assert "--missing drop" in error.hint
    assert "another name" in error.hint
    assert read(bz.find("normal_means"), table, missing="drop")["group"].tolist() == ["b", "c"]


@pytest.mark.parametrize(
    "cell", ["1_000", "1,000", "0x1F", "inf", "\uff11\uff12", "\u0661\u0662", "\u22121", "1e", "True", "10%"]
)
def test_what_is_no_number_elsewhere_is_none(cell):
    assert refusal(CELL, {"y": [cell, "2"]}).rows == (1,)
    assert refusal(CELL, {"y": np.array([cell, 2], dtype=object)}).rows == (1,)
