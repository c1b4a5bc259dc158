"""Values are used as they are or refused with a message that says where: VERIFICATION.md, section 3.2."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from bayeszoo.data.inputs import Binary, Real
from bayeszoo.data.table.read import read_table
from bayeszoo.errors import InputError


def file_with(tmp_path, text, **options):
    path = tmp_path / "data.csv"
    path.write_text(text)
    return read_table(path, **options)


def refusal(inputs, table, **options):
    with pytest.raises(InputError) as caught:
        inputs.parse(read_table(table), **options)
    return caught.value


NOT_REAL = {
    "NaN": ([0.1, np.nan], "column 'y': 1 missing value (row 2); use --missing drop", (2,)),
    "None": ([0.1, None], "column 'y': 1 missing value (row 2); use --missing drop", (2,)),
    "pandas NA": (pd.Series([1, None], dtype="Int64"), "column 'y': 1 missing value (row 2); use --missing drop", (2,)),
    "polars null": (pl.Series([1.5, None]), "column 'y': 1 missing value (row 2); use --missing drop", (2,)),
    "masked": (np.ma.array([1.0, 2.0], mask=[0, 1]), "column 'y': 1 missing value (row 2); use --missing drop", (2,)),
    "many missing": (
        [np.nan] * 7 + [1.0],
        "column 'y': 7 missing values (rows 1, 2, 3, 4, 5, ...); use --missing drop",
        (1, 2, 3, 4, 5),
    ),
    "all NaN": ([np.nan, np.nan], "column 'y' has no values", ()),
    "all None": ([None, None], "column 'y' has no values", ()),
    "inf": ([0.0, np.inf], "column 'y', row 2: inf is too large", (2,)),
    "1e300": ([0.0, 1e300], "column 'y', row 2: 1e+300 is too large to square; rescale the column", (2,)),
    "-1e200": ([-1e200, 0.0], "column 'y', row 1: -1e+200 is too large to square; rescale the column", (1,)),
    "10**400": ([10**400, 1], "column 'y', row 1: 1000000000000000000000000000000000000... is too large", (1,)),
    "text": (["1", "b"], "column 'y', row 2: 'b' is not a number", (2,)),
    "objects": ([1, "b"], "column 'y', row 2: 'b' is not a number", (2,)),
    "lists": ([1, [2]], "column 'y', row 2: [2] is not a number", (2,)),
    "truth among numbers": ([0.5, True], "column 'y', row 2: True is not a number", (2,)),
    "bool": ([True, False], "column 'y' holds true/false, not numbers", ()),
    "bool with a hole": (pd.Series([True, None], dtype="boolean"), "column 'y' holds true/false, not numbers", ()),
    "complex": ([1j, 2], "column 'y' is complex", ()),
    "complex array": (np.array([1j, 2]), "column 'y' is complex", ()),
    "pandas complex": (pd.Series([1j, 2]), "column 'y' is complex", ()),
    "datetime64": (np.array(["2020-01-01"], dtype="datetime64[D]"), "column 'y' holds dates", ()),
    "dates": ([datetime.date(2020, 1, 1), None], "column 'y' holds dates", ()),
    "time zone": (pd.Series(pd.to_datetime(["2020-01-01"]).tz_localize("UTC")), "column 'y' holds dates", ()),
    "polars dates": (pl.Series([datetime.date(2020, 1, 1), None]), "column 'y' holds dates", ()),
    "durations": (pd.Series(pd.to_timedelta([1, 2])), "column 'y' holds dates", ()),
    "empty": ([], "no data rows", ()),
    "empty array": (np.empty((0, 1)), "no data rows", ()),
    "long double": (
        np.array([np.longdouble("1e4000")]),
        "column 'y', row 1: np.longdouble('1e+4000') is too large",
        (1,),
    ),
    "bytes": (np.array([b"1"]), "column 'y', row 1: b'1' is not a number", (1,)),
}


@pytest.mark.parametrize(("values", "message", "rows"), NOT_REAL.values(), ids=NOT_REAL.keys())
def test_values_that_are_not_real_numbers(values, message, rows):
    error = refusal(Real("y"), values)
    assert str(error) == message
    assert error.rows == rows
    assert error.column == ("y" if "column" in message else None)


NOT_NUMBERS = {
    "thousands": ("'1,000'", '"1,000"'),
    "percent": ("'10%'", "10%"),
    "hexadecimal": ("'0x1F'", "0x1F"),
    "date": ("'2020-01-01'", "2020-01-01"),
    "underscore": ("'1_000'", "1_000"),
    "infinity": ("'inf'", "inf"),
    "other digits": ("'\u0661'", "\u0661"),
    "sum": ("'1-2'", "1-2"),
    "control character": (r"'1\x1b'", "1\x1b"),
    "long": ("'" + "x" * 37 + "...'", "x" * 100),
}


@pytest.mark.parametrize(("quoted", "cell"), NOT_NUMBERS.values(), ids=NOT_NUMBERS.keys())
def test_text_that_is_not_a_number(tmp_path, quoted, cell):
    error = refusal(Real("a"), file_with(tmp_path, f"a\n{cell}\n1\n"))
    assert str(error) == f"column 'a', row 1: {quoted} is not a number"
    assert (error.column, error.rows) == ("a", (1,))


def test_text_too_large_for_a_float(tmp_path):
    assert str(refusal(Real(), file_with(tmp_path, "a\n1e400\n"))) == "column 'a', row 1: '1e400' is too large"


def test_decimal_comma(tmp_path):
    text = 'y\n"1,5"\n"-2"\n'
    error = refusal(Real(), file_with(tmp_path, text))
    assert str(error) == "column 'y', row 1: '1,5' is not a number; use --decimal ','"
    parsed = Real().parse(file_with(tmp_path, text, decimal=","))
    assert parsed.arrays["y"].tolist() == [1.5, -2.0]
    assert "'1.5' is not a number" in str(refusal(Real(), file_with(tmp_path, 'y\n1.5\n"2,5"\n', decimal=",")))


REAL = {
    "integers": [1, -2],
    "column": np.array([[1.0], [-2.0]]),
    "text": ["1", "-2.0"],
    "spaces": [" 1", "-2e0 "],
    "decimals": [Decimal(1), Decimal(-2)],
    "float32": np.array([1, -2], dtype=np.float32),
    "big endian": np.array([1, -2], dtype=">f8"),
    "objects": np.array([1, -2.0], dtype=object),
    "pandas": pd.Series([1, -2], dtype="Int64"),
}


@pytest.mark.parametrize("values", REAL.values(), ids=REAL.keys())
def test_real_numbers(values):
    parsed = Real("y").parse(read_table(values))
    assert parsed.arrays["y"].dtype == np.dtype("f8")
    assert parsed.arrays["y"].tolist() == [1.0, -2.0]
    assert parsed.notes == ()


def test_subnormal_numbers_are_noted():
    assert Real().parse(read_table([1e-320, 2e-320])).notes == ("column 'y' spans 1e-320..2e-320",)


@pytest.mark.parametrize("word", ["NA", "n/a", "NaN", "null", "None", " ", ""])
def test_words_for_missing_in_a_numeric_column(word):
    parsed = Real().parse(read_table(["1", word, "2"]), missing="drop")
    assert parsed.arrays["y"].tolist() == [1.0, 2.0]
    assert parsed.notes == ("1 row with missing values dropped (row 2)",)


NOT_BINARY = {
    "0.7": ([0, 1, 0.7], "column 'y', row 3: 0.7 is neither 0 nor 1", (3,)),
    "1.9": ([1.9, 1], "column 'y', row 1: 1.9 is neither 0 nor 1", (1,)),
    "2": ([0, 2], "column 'y', row 2: 2 is neither 0 nor 1", (2,)),
    "-1": ([0, -1], "column 'y', row 2: -1 is neither 0 nor 1", (2,)),
    "text 0.7": (["0", "0.7"], "column 'y', row 2: 0.7 is neither 0 nor 1", (2,)),
    "five": (
        [0, 1, 0.7, 1, 0.7, 1, 1, 2, 3, 0, 4],
        "column 'y', row 3: 0.7 is neither 0 nor 1 (and 4 more: rows 5, 8, 9, 11)",
        (3, 5, 8, 9, 11),
    ),
    "more than five": (
        [2] * 10,
        "column 'y', row 1: 2 is neither 0 nor 1 (and 9 more: rows 2, 3, 4, 5, ...)",
        (1, 2, 3, 4, 5),
    ),
    "NaN": ([0, np.nan], "column 'y': 1 missing value (row 2); use --missing drop", (2,)),
    "bool with a hole": ([True, None], "column 'y': 1 missing value (row 2); use --missing drop", (2,)),
    "true/false": (["false", "true"], "column 'y' holds true/false: use --positive true", ()),
    "YES/NO": (["NO", "YES", "NA"], "column 'y' holds YES/NO: use --positive YES", ()),
    "two labels": (["girl", "boy"], "column 'y' holds boy/girl: use --positive boy or --positive girl", ()),
    "labels with spaces": (
        ["not good", "good"],
        "column 'y' holds good/not good: use --positive good or --positive 'not good'",
        (),
    ),
    "labels and numbers": (["1", "b", "0"], "column 'y', row 2: 'b' is neither 0 nor 1", (2,)),
    "three labels": (["a", "b", "c"], "column 'y', row 1: 'a' is neither 0 nor 1 (and 2 more: rows 2, 3)", (1, 2, 3)),
    "dates": ([datetime.date(2020, 1, 1)], "column 'y' holds dates", ()),
    "complex": ([1j], "column 'y' is complex", ()),
    "inf": ([np.inf, 1], "column 'y', row 1: inf is too large", (1,)),
    "empty": ([], "no data rows", ()),
}


@pytest.mark.parametrize(("values", "message", "rows"), NOT_BINARY.values(), ids=NOT_BINARY.keys())
def test_values_that_are_not_binary(values, message, rows):
    error = refusal(Binary("y"), values)
    assert str(error) == message
    assert error.rows == rows


BINARY = {
    "integers": [0, 1, 1],
    "floats": [0.0, 1.0, 1.0],
    "bool": [False, True, True],
    "text": ["0", "1", "1.0"],
    "int8": np.array([0, 1, 1], dtype=np.int8),
    "column": [[0], [1], [1]],
    "objects": np.array([False, True, np.True_], dtype=object),
    "pandas bool": pd.Series([False, True, True]),
    "pandas boolean": pd.Series([False, True, True], dtype="boolean"),
    "polars": pl.Series([0, 1, 1], dtype=pl.UInt8),
}


@pytest.mark.parametrize("values", BINARY.values(), ids=BINARY.keys())
def test_zeros_and_ones(values):
    parsed = Binary("y").parse(read_table(values))
    assert parsed.arrays["y"].dtype == np.dtype("i8")
    assert parsed.arrays["y"].tolist() == [0, 1, 1]
    assert (parsed.columns, parsed.notes) == ({"y": "y"}, ())


LABELS = {
    "words": (["girl", "boy"], "boy", [0, 1]),
    "codes stay text": (["00123", "123"], "123", [0, 1]),
    "NA is a label": (["NA", "null"], "null", [0, 1]),
    "numbers": ([1, 2], "2", [0, 1]),
    "floats": ([1.0, 2.0], "2", [0, 1]),
    "infinite": ([np.inf, 2.5], "2.5", [0, 1]),
    "truth": ([False, True], True, [0, 1]),
    "only one label": (["boy", "boy"], "boy", [1, 1]),
    "category": (pd.Series(["girl", "boy"], dtype="category"), "boy", [0, 1]),
}


@pytest.mark.parametrize(("values", "positive", "outcomes"), LABELS.values(), ids=LABELS.keys())
def test_labels(values, positive, outcomes):
    parsed = Binary("y").parse(read_table(values), positive=positive)
    assert parsed.arrays["y"].tolist() == outcomes


def test_labels_are_noted_and_an_empty_cell_is_missing(tmp_path):
    table = file_with(tmp_path, "sex\ngirl\nboy\n\nNA\n")
    message = "column 'sex' holds 3 labels, not two: 'NA', 'boy', 'girl'"
    assert str(refusal(Binary(), table, positive="boy")) == message
    parsed = Binary().parse(file_with(tmp_path, "sex\ngirl\n\nboy\n"), "drop", positive="boy")
    assert parsed.notes == ("column 'sex': 'boy' is 1, 'girl' is 0", "1 row with missing values dropped (row 2)")
    assert parsed.columns == {"y": "sex"}


LABEL_ERRORS = {
    "absent": (["a", "b"], "c", "column 'y' has no 'c'; it holds 'a', 'b'"),
    "three": (["a", "b", "c"], "a", "column 'y' holds 3 labels, not two: 'a', 'b', 'c'"),
    "seven": (list("abcdefg"), "a", "column 'y' holds 7 labels, not two: 'a', 'b', 'c', 'd', 'e', ..."),
    "missing": (["a", ""], "a", "column 'y': 1 missing value (row 2); use --missing drop"),
    "none": (["", ""], "a", "column 'y' has no values"),
}


@pytest.mark.parametrize(("values", "positive", "message"), LABEL_ERRORS.values(), ids=LABEL_ERRORS.keys())
def test_labels_that_are_refused(values, positive, message):
    assert str(refusal(Binary("y"), values, positive=positive)) == message


COUNT_ERRORS = {
    "fraction": ([1.5], [2], "column 'successes', row 1: 1.5 is not a whole number"),
    "negative": ([-1], [2], "column 'successes', row 1: -1 is negative; counts must be >= 0"),
    "1e18": ([1], [10**18], "column 'trials', row 1: 1000000000000000000 is too large; counts must be <= 2**53"),
    "2**53 + 1": ([1], [2**53 + 1], "column 'trials', row 1: 9007199254740993 is too large; counts must be <= 2**53"),
    "text": (
        ["1"],
        ["9007199254740993"],
        "column 'trials', row 1: '9007199254740993' is too large; counts must be <= 2**53",
    ),
    "1e300": ([1], [1e300], "column 'trials', row 1: 1e+300 is too large; counts must be <= 2**53"),
    "inf": ([1], [np.inf], "column 'trials', row 1: inf is too large"),
    "above trials": ([1, 3], [2, 2], "column 'successes', row 2: 3 successes are more than 2 trials"),
    "missing": ([1, np.nan], [2, 2], "column 'successes': 1 missing value (row 2); use --missing drop"),
    "bool": ([True], [1], "column 'successes' holds true/false, not numbers"),
    "sum": ([0, 0], [2**53, 2], "column 'trials' has a sum above 2**53"),
    "lengths": ([1] * 30, [1] * 29, "successes has 30 rows, trials has 29"),
    "complementary holes": ([1, np.nan], [np.nan, 2], "no row has a value in every column that is used"),
}


@pytest.mark.parametrize(("successes", "trials", "message"), COUNT_ERRORS.values(), ids=COUNT_ERRORS.keys())
def test_counts_that_are_refused(successes, trials, message):
    missing = "drop" if message.startswith("no row") else "refuse"
    assert str(refusal(Binary(), {"successes": successes, "trials": trials}, missing=missing)) == message


@pytest.mark.parametrize("table", [{"successes": [0, 0], "trials": [0, 0]}])
def test_a_table_without_an_observation_is_refused(table):
    with pytest.raises(InputError, match="column 'trials' adds up to 0: there are no observations"):
        Binary().parse(read_table(table))


def test_rows_in_the_form_of_counts():
    (counts,) = Binary().other_forms({"y": np.array([1, 0, 1, 1, 1, 0, 0])})
    assert counts["trials"].tolist() == [1, 2, 3, 1]
    assert counts["successes"].tolist() == [1, 1, 2, 0]


def test_counts_by_row():
    parsed = Binary().parse(read_table({"successes": [1, 0, None], "trials": [2**53, 0, 3]}), missing="drop")
    assert parsed.arrays["successes"].tolist() == [1, 0]
    assert parsed.arrays["trials"].tolist() == [2**53, 0]
    assert parsed.arrays["trials"].dtype == np.int64
    assert parsed.notes == ("1 row with missing values dropped (row 3)",)


@pytest.mark.parametrize(
    "options", [{"positive": "boy", "count": "n"}, {"column": "s", "positive": "boy", "count": "n"}]
)
def test_labels_with_counts(options):
    parsed = Binary().parse(read_table({"s": ["boy", "girl", "boy"], "n": ["3", "4", "1"]}), **options)
    assert {name: values.tolist() for name, values in parsed.arrays.items()} == {"successes": [4], "trials": [8]}
    assert parsed.columns == {"column": "s", "count": "n"}
    assert parsed.notes == ("column 's': 'boy' is 1, 'girl' is 0",)


def test_a_count_column_is_never_the_outcome_too():
    table = read_table({"y": [3, 4], "sex": ["boy", "girl"]})
    assert Binary().parse(table, count="y", positive="boy").arrays["successes"].tolist() == [3]


def test_zeros_and_ones_with_counts():
    arrays = Binary().parse(read_table({"y": [0, 1], "n": [5, 6]}), count="n").arrays
    assert (arrays["successes"].tolist(), arrays["trials"].tolist()) == ([6], [11])


def test_counts_whose_sum_is_too_large():
    table = read_table({"y": [0, 1], "n": [2**53, 2**53]})
    assert str(refusal(Binary(), table, count="n")) == "column 'n' has a sum above 2**53"


CHOICES = {
    "none fits": ({"a": [0], "b": [1]}, {}, "the table has columns 'a', 'b'; say which with --column"),
    "absent": ({"a": [0]}, {"column": "z"}, "the table has no column 'z'; its columns are 'a'"),
    "unknown option": (
        {"y": [0]},
        {"colour": "y"},
        "unknown option 'colour'; accepted are column, count, positive, successes, trials",
    ),
    "half": ({"s": [0]}, {"successes": "s"}, "successes and trials go together, and with no other option"),
    "same": (
        {"y": [0]},
        {"column": "y", "count": "y"},
        "column 'y' cannot hold both the outcomes and their counts",
    ),
    "only counts": ({"y": [0]}, {"count": "y"}, "the table has columns 'y'; say which with --column"),
    "missing": ({"y": [0]}, {"missing": "impute"}, "missing must be 'refuse' or 'drop', got 'impute'"),
}


@pytest.mark.parametrize(("table", "options", "message"), CHOICES.values(), ids=CHOICES.keys())
def test_choices_that_are_refused(table, options, message):
    assert str(refusal(Binary(), table, **options)) == message


def test_choices():
    table = read_table({"y": [1, 1], "other": [0, 1], "successes": [1, 2], "trials": [2, 2]})
    assert Binary().parse(table).columns == {"successes": "successes", "trials": "trials"}
    assert Binary().parse(table, column="other", positive=None).arrays["y"].tolist() == [0, 1]
    assert Binary().parse(table, successes="other", trials="y").arrays["successes"].tolist() == [0, 1]
    assert Binary().parse(read_table({"y": [1], "x": [0]})).columns == {"y": "y"}
    assert Binary().parse(read_table({"z": [1]})).columns == {"y": "z"}


def test_methods_of_binary():
    inputs = Binary("y")
    rows, counts = (
        inputs.canonical({"y": [0, 1, 1]}).arrays,
        inputs.canonical({"successes": [1, 2], "trials": [3, 3]}).arrays,
    )
    nothing, everything = inputs.split(counts, 0)
    assert (inputs.size(rows), inputs.size(counts), inputs.size(nothing)) == (3, 2, 0)
    assert inputs.outcome(counts).tolist() == [1, 2]
    for arrays, expected in ((rows, [1, 2]), (everything, [3, 3]), (nothing, [0, 0])):
        values, times = inputs.observations(arrays)
        assert (values["y"].tolist(), times.tolist()) == ([0, 1], expected)
    first, rest = inputs.split(counts, 1)
    assert (first["trials"].tolist(), rest["successes"].tolist()) == ([3], [2])
    assert inputs.reordered(rows, np.array([2, 0, 1]))["y"].tolist() == [1, 0, 1]
    assert len({tuple(arrays["y"]) for arrays in inputs.possible()}) == 2**4
    assert inputs.unseen(counts, 3)["y"].shape == (3,)
    assert "--positive" in inputs.describe()
    assert not hasattr(inputs, "in_units")


def test_methods_of_real():
    inputs = Real("x")
    arrays = inputs.canonical({"x": [1.5, 2.5]}).arrays
    values, times = inputs.observations(arrays)
    assert (values["x"].tolist(), times.tolist()) == ([1.5, 2.5], [1, 1])
    assert inputs.in_units(arrays, 2, -1)["x"].tolist() == [2.0, 4.0]
    assert inputs.possible() is None
    assert inputs.unseen(arrays, 3)["x"].shape == (3,)
    assert inputs.describe() == "one column of real numbers (x)"


def test_an_option_of_one_value_takes_no_list():
    assert str(refusal(Real(), {"y": [1]}, column=["y"])) == "column takes one value, got a list"


@pytest.mark.parametrize("inputs", [Binary(), Real()])
def test_coerce_refuses_no_rows(inputs):
    with pytest.raises(InputError, match=r"^no data rows$"):
        inputs.canonical({"y": []})


def test_no_data_rows_in_a_file(tmp_path):
    with pytest.raises(InputError, match=r"^no data rows in data.csv$"):
        file_with(tmp_path, "y\n")
