"""Values are used as they are or refused with a message that says where: VERIFICATION.md, section 3.2."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from bayeszoo.data.inputs import Binary, Real
from bayeszoo.data.read import read
from bayeszoo.data.table.read import read_table
from tests.reading import by_name, model_of, plain, refusal, refuses, typed

DROP = "; use --missing drop"
ACCEPTED = "column, count, positive, successes, trials"


Numbers, Coin = model_of(Real("y")), model_of(Binary("y"))

NOT_REAL = {
    "NaN": ([0.1, np.nan], "column 'y': 1 missing value (row 2); use --missing drop", (2,)),
    "None": ([0.1, None], "column 'y': 1 missing value (row 2); use --missing drop", (2,)),
    "pandas NA": (pd.Series([1, None], dtype="Int64"), "column 'y': 1 missing value (row 2); use --missing drop", (2,)),
    "many": ([np.nan] * 7 + [1.0], "column 'y': 7 missing values (rows 1, 2, 3, 4, 5, ...)" + DROP, (1, 2, 3, 4, 5)),
    "all NaN": ([np.nan, np.nan], "column 'y' has no values", ()),
    "inf": ([0.0, np.inf], "column 'y', row 2: inf is too large", (2,)),
    "1e300": ([0.0, 1e300], "column 'y', row 2: 1e+300 is too large to square; rescale the column", (2,)),
    "10**400": ([10**400, 1], "column 'y', row 1: 1000000000000000000000000000000000000... is too large", (1,)),
    "text": (["1", "b"], "column 'y', row 2: 'b' is not a number", (2,)),
    "objects": ([1, "b"], "column 'y', row 2: 'b' is not a number", (2,)),
    "lists": ([1, [2]], "column 'y', row 2: [2] is not a number", (2,)),
    "truth among numbers": ([0.5, True], "column 'y', row 2: True is not a number", (2,)),
    "bool": ([True, False], "column 'y' holds true/false, not numbers", ()),
    "complex": ([1j, 2], "column 'y' is complex", ()),
    "datetime64": (np.array(["2020-01-01"], dtype="datetime64[D]"), "column 'y' holds dates", ()),
    "dates": ([datetime.date(2020, 1, 1), None], "column 'y' holds dates", ()),
    "times": (pd.to_timedelta([1, 2], unit="s"), "column 'y' holds dates", ()),
    "empty": ([], "no data rows", ()),
    "long": (np.array([np.longdouble("1e4000")]), "column 'y', row 1: np.longdouble('1e+4000') is too large", (1,)),
    "bytes": (np.array([b"1"]), "column 'y', row 1: b'1' is not a number", (1,)),
}


@by_name(("values", "message", "rows"), NOT_REAL)
def test_values_that_are_not_real_numbers(values, message, rows):
    error = refusal(Numbers, values)
    assert str(error) == message
    assert error.rows == rows
    assert error.column == ("y" if "column" in message else None)


NOT_NUMBERS = {
    "thousands": ("'1,000'", '"1,000"'),
    "date": ("'2020-01-01'", "2020-01-01"),
    "underscore": ("'1_000'", "1_000"),
    "infinity": ("'inf'", "inf"),
    "other digits": ("'\u0661'", "\u0661"),
    "control character": (r"'1\x1b'", "1\x1b"),
    "long": ("'" + "x" * 37 + "...'", "x" * 100),
}


@by_name(("quoted", "cell"), NOT_NUMBERS)
def test_text_that_is_not_a_number(written, quoted, cell):
    error = refusal(Numbers, written(f"a\n{cell}\n1\n"))
    assert str(error) == f"column 'a', row 1: {quoted} is not a number"
    assert (error.column, error.rows) == ("a", (1,))


def test_decimal_comma(written):
    text = 'y\n"1,5"\n"-2"\n'
    assert str(refusal(Numbers, written(text))) == "column 'y', row 1: '1,5' is not a number; use --decimal ','"
    assert plain(read(Numbers, written(text), decimal=",")) == {"y": [1.5, -2.0]}
    assert "'1.5' is not a number" in str(refusal(Numbers, written('y\n1.5\n"2,5"\n'), decimal=","))


REAL = {
    "integers": [1, -2],
    "text": ["1", "-2.0"],
    "spaces": [" 1", "-2e0 "],
    "decimals": [Decimal(1), Decimal(-2)],
    "big endian": np.array([1, -2], dtype=">f8"),
}


@by_name("values", REAL)
def test_real_numbers(values):
    parsed = Real("y").parse(read_table(values))
    assert parsed.arrays["y"].dtype == np.dtype("f8")
    assert parsed.arrays["y"].tolist() == [1.0, -2.0]
    assert parsed.notes == ()


@pytest.mark.parametrize("word", ["NA", "n/a", "NaN", "null", "None", " ", ""])
def test_words_for_missing_in_a_numeric_column(word):
    parsed = Real().parse(read_table(["1", word, "2"]), missing="drop")
    assert parsed.arrays["y"].tolist() == [1.0, 2.0]
    assert parsed.notes == ("1 row with missing values dropped (row 2)",)


NOT_BINARY = {
    "0.7": ([0, 1, 0.7], "column 'y', row 3: 0.7 is neither 0 nor 1", (3,)),
    "five": (
        [0, 1, 0.7, 1, 0.7, 1, 1, 2, 3, 0, 4],
        "column 'y', row 3: 0.7 is neither 0 nor 1 (and 4 more: rows 5, 8, 9, 11)",
        (3, 5, 8, 9, 11),
    ),
    "bool with a hole": ([True, None], "column 'y': 1 missing value (row 2); use --missing drop", (2,)),
    "true/false": (["false", "true"], "column 'y' holds true/false: use --positive true", ()),
    "YES/NO": (["NO", "YES", "NA"], "column 'y' holds YES/NO: use --positive YES", ()),
    "two labels": (["girl", "boy"], "column 'y' holds boy/girl: use --positive boy or --positive girl", ()),
    "labels and numbers": (["1", "b", "0"], "column 'y', row 2: 'b' is neither 0 nor 1", (2,)),
    "three labels": (["a", "b", "c"], "column 'y', row 1: 'a' is neither 0 nor 1 (and 2 more: rows 2, 3)", (1, 2, 3)),
}


@by_name(("values", "message", "rows"), NOT_BINARY)
def test_values_that_are_not_binary(values, message, rows):
    error = refusal(Coin, values)
    assert str(error) == message
    assert error.rows == rows


BINARY = {
    "integers": [0, 1, 1],
    "bool": [False, True, True],
    "text": ["0", "1", "1.0"],
    "objects": np.array([False, True, np.True_], dtype=object),
}


@by_name("values", BINARY)
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
    "infinite": ([np.inf, 2.5], "2.5", [0, 1]),
    "truth": ([False, True], True, [0, 1]),
    "category": (pd.Series(["girl", "boy"], dtype="category"), "boy", [0, 1]),
}


@by_name(("values", "positive", "outcomes"), LABELS)
def test_labels(values, positive, outcomes):
    parsed = Binary("y").parse(read_table(values), positive=positive)
    assert parsed.arrays["y"].tolist() == outcomes


def test_labels_are_noted_and_an_empty_cell_is_missing(written):
    message = "column 'sex' holds 3 labels, not two: 'NA', 'boy', 'girl'"
    assert str(refusal(Coin, written("sex\ngirl\nboy\n\nNA\n"), positive="boy")) == message
    data = read(Coin, written("sex\ngirl\n\nboy\n"), missing="drop", positive="boy")
    assert data.notes == ("column 'sex': 'boy' is 1, 'girl' is 0", "1 row with missing values dropped (row 2)")
    assert data.columns == {"y": "sex"}


A = {"positive": "a"}
LABEL_ERRORS = {
    "absent": (["c", "b"], A, "column 'y' has no 'a'; it holds 'b', 'c'"),
    "seven": (list("abcdefg"), A, "column 'y' holds 7 labels, not two: 'a', 'b', 'c', 'd', 'e', ..."),
    "none": (["", ""], A, "column 'y' has no values"),
}
test_labels_that_are_refused = refuses(Coin, LABEL_ERRORS)


COUNT_ERRORS = {
    "2**53 + 1": ([1], [2**53 + 1], "column 'trials', row 1: 9007199254740993 is too large; counts must be <= 2**53"),
    "text": (["1"], [f"{2**53 + 1}"], f"column 'trials', row 1: '{2**53 + 1}' is too large; counts must be <= 2**53"),
    "above trials": ([1, 3], [2, 2], "column 'successes', row 2: 3 successes are more than 2 trials"),
    "sum": ([0, 0], [2**53, 2], "column 'trials' has a sum above 2**53"),
    "no trial": ([0, 0], [0, 0], "column 'trials' adds up to 0: there are no observations"),
    "complementary holes": ([1, np.nan], [np.nan, 2], "no row has a value in every column that is used"),
}


@by_name(("successes", "trials", "message"), COUNT_ERRORS)
def test_counts_that_are_refused(successes, trials, message):
    missing = "drop" if message.startswith("no row") else "refuse"
    assert str(refusal(Coin, {"successes": successes, "trials": trials}, missing=missing)) == message


def test_rows_in_the_form_of_counts():
    (counts,) = Binary().other_forms({"y": np.array([1, 0, 1, 1, 1, 0, 0])})
    assert counts["trials"].tolist() == [1, 2, 3, 1]
    assert counts["successes"].tolist() == [1, 1, 2, 0]


def test_counts_by_row():
    data = read(Coin, {"successes": [1, 0, None], "trials": [2**53, 0, 3]}, missing="drop")
    assert typed(data) == {"successes": ("i", (2,), [1, 0]), "trials": ("i", (2,), [2**53, 0])}
    assert data.notes == ("1 row with missing values dropped (row 3)",)


@pytest.mark.parametrize(
    "options", [{"positive": "boy", "count": "n"}, {"column": "s", "positive": "boy", "count": "n"}]
)
def test_labels_with_counts(options):
    parsed = Binary().parse(read_table({"s": ["boy", "girl", "boy"], "n": ["3", "4", "1"]}), **options)
    assert plain(parsed.arrays) == {"successes": [4], "trials": [8]}
    assert parsed.columns == {"column": "s", "count": "n"}
    assert parsed.notes == ("column 's': 'boy' is 1, 'girl' is 0",)


def test_columns_of_counts():
    never_the_outcome_too = read(Coin, {"y": [3, 4], "sex": ["boy", "girl"]}, count="y", positive="boy")
    assert plain(never_the_outcome_too) == {"successes": [3], "trials": [7]}
    assert plain(read(Coin, {"y": [0, 1], "n": [5, 6]}, count="n")) == {"successes": [6], "trials": [11]}


CHOICES = {
    "list": ({"y": [1]}, {"column": ["y"]}, "column takes one value, got a list"),
    "decimal": ({"y": [1]}, {"decimal": ";"}, "decimal must be '.' or ',', got ';'"),
    "none fits": ({"a": [0], "b": [1]}, {}, "the table has columns 'a', 'b'; say which with --column"),
    "unknown option": ({"y": [0]}, {"colour": "y"}, "unknown option 'colour'; accepted are " + ACCEPTED),
    "half": ({"s": [0]}, {"successes": "s"}, "successes and trials go together, and with no other option"),
    "same": ({"y": [0]}, {"column": "y", "count": "y"}, "column 'y' cannot hold both the outcomes and their counts"),
    "missing": ({"y": [0]}, {"missing": "impute"}, "missing must be 'refuse' or 'drop', got 'impute'"),
}
test_choices_that_are_refused = refuses(Coin, CHOICES)


def test_choices():
    table = read_table({"y": [1, 1], "other": [0, 1], "successes": [1, 2], "trials": [2, 2]})
    assert Binary().parse(table).columns == {"successes": "successes", "trials": "trials"}
    assert Binary().parse(table, column="other", positive=None).arrays["y"].tolist() == [0, 1]
    assert Binary().parse(table, successes="other", trials="y").arrays["successes"].tolist() == [0, 1]
    assert Binary().parse(read_table({"y": [1], "x": [0]})).columns == {"y": "y"}
    assert Binary().parse(read_table({"z": [1]})).columns == {"y": "z"}
