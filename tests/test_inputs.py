"""Values are used as they are or refused with a message that says where: VERIFICATION.md, section 3.2."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from bayeszoo.data.inputs import Binary, Categories, Counts, Real
from bayeszoo.data.read import read
from bayeszoo.data.table.cells import ALONE
from bayeszoo.data.table.read import read_table
from bayeszoo.errors import InputError
from tests.reading import by_name, model_of, plain, refusal, refuses
from tests.refusals import raises

DROP = "; use --missing drop"
DIGITS = " for all digits; rescale it, or write 0"
NO_ROW = "no row has a value in every column that is used"
ACCEPTED = "--column, --count, --positive, --successes, --trials"


Numbers, Coin = model_of(Real("y")), model_of(Binary("y"))

NOT_REAL = {
    "NaN": ([0.1, np.nan], "column 'y': 1 missing value (row 2); use --missing drop", (2,)),
    "pandas NA": (pd.Series([1, None], dtype="Int64"), "column 'y': 1 missing value (row 2); use --missing drop", (2,)),
    "many": ([np.nan] * 7 + [1.0], "column 'y': 7 missing values (rows 1, 2, 3, 4, 5, ...)" + DROP, (1, 2, 3, 4, 5)),
    "1e300": ([0.0, 1e300], "column 'y', row 2: 1e+300 is too large to square; rescale the column", (2,)),
    "10**400": ([10**400, 1], "column 'y', row 1: 1000000000000000000000000000000000000... is too large", (1,)),
    "objects": ([1, "b"], "column 'y', row 2: 'b' is not a number", (2,)),
    "lists": ([1, [2]], "column 'y', row 2: [2] is not a number", (2,)),
    "truth among numbers": ([0.5, True], "column 'y', row 2: True is not a number", (2,)),
    "datetime64": (np.array(["2020-01-01"], dtype="datetime64[D]"), "column 'y' holds dates", ()),
    "times": (pd.to_timedelta([1, 2], unit="s"), "column 'y' holds dates", ()),
    "empty": ([], "no data rows", ()),
    "long": (np.array([np.longdouble("1e4000")]), "column 'y', row 1: np.longdouble('1e+4000') is too large", (1,)),
    "bytes": (np.array([b"1"]), "column 'y', row 1: b'1' is not a number", (1,)),
    "too small": (["1", "1e-310"], f"column 'y', row 2: '1e-310' is too small{DIGITS}", (2,)),
    "nothing left": (["0e5", "-0.5e-400"], f"column 'y', row 2: '-0.5e-400' is too small{DIGITS}", (2,)),
    "no decimal left": ([0, Decimal("1e-400")], f"column 'y', row 2: Decimal('1E-400') is too small{DIGITS}", (2,)),
    "comma": (["1,5", "-2"], "column 'y', row 1: '1,5' is not a number; use --decimal ','", (1,)),
    "minus": (["1", "\u22122"], "column 'y', row 2: '\u22122' is not a number; write minus as '-'", (2,)),
    "thousands": (["1,000"], f"column 'y', row 1: '1,000' is not a number; {ALONE}", (1,)),
    "percent": (["2 %"], f"column 'y', row 1: '2 %' is not a number; {ALONE}", (1,)),
    "currency": (["1", "\u20ac3.50"], f"column 'y', row 2: '\u20ac3.50' is not a number; {ALONE}", (2,)),
    "date": (["2020-01-01"], "column 'y', row 1: '2020-01-01' is not a number", (1,)),
    "underscore": (["1_000"], "column 'y', row 1: '1_000' is not a number", (1,)),
    "infinity": (["inf"], "column 'y', row 1: 'inf' is not a number", (1,)),
    "other digits": (["\u0661"], "column 'y', row 1: '\u0661' is not a number", (1,)),
    "control character": (["1\x1b"], r"column 'y', row 1: '1\x1b' is not a number", (1,)),
    "long text": (["x" * 100], f"column 'y', row 1: '{'x' * 37}...' is not a number", (1,)),
}


@by_name(("values", "message", "rows"), NOT_REAL)
def test_values_that_are_not_real_numbers(values, message, rows):
    error = refusal(Numbers, values)
    assert str(error) == message
    assert error.rows == rows
    assert error.column == ("y" if "column" in message else None)


def test_a_point_is_no_decimal_comma():
    assert "'1.5' is not a number" in str(refusal(Numbers, ["1.5", "2,5"], decimal=","))


@pytest.mark.parametrize("word", ["NA", "n/a", "NaN", "null", "None", " ", ""])
def test_words_for_missing_in_a_numeric_column(word):
    parsed = Real().parse(read_table(["1", word, "2"]), missing="drop")
    assert parsed.arrays["y"].tolist() == [1.0, 2.0]
    assert parsed.notes == ("1 row with missing values dropped (row 2)",)


def test_labels_are_noted_and_an_empty_cell_is_missing(written):
    data = read(Coin, written("sex\ngirl\n\nboy\n"), missing="drop", positive="boy")
    assert data.notes == ("column 'sex': 'boy' is 1, 'girl' is 0", "1 row with missing values dropped (row 2)")
    assert data.columns == {"y": "sex"}


A = {"positive": "a"}
LARGE = "is too large; counts must be < 2**53"
HALF_COINS = [0, 1, 0.7, 1, 0.7, 1, 1, 2, 3, 0, 4]
TOO_MANY_HEADS = "column 'successes', row 2: 3 successes are more than 2 trials"
NO_COINS = {
    "five": (HALF_COINS, {}, ", row 3: 0.7 is neither 0 nor 1 (and 4 more: rows 5, 8, 9, 11)"),
    "bool with a hole": ([True, None], {}, ": 1 missing value (row 2); use --missing drop"),
    "true/false": (["false", "true"], {}, " holds true/false: use --positive true"),
    "YES/NO": (["NO", "YES", "NA"], {}, " holds YES/NO: use --positive YES"),
    "two labels": (["girl", "boy"], {}, " holds boy/girl: use --positive boy or --positive girl"),
    "labels and numbers": (["1", "b", "0"], {}, ", row 2: 'b' is neither 0 nor 1"),
    "three labels": (["a", "b", "c"], {}, ", row 1: 'a' is neither 0 nor 1 (and 2 more: rows 2, 3)"),
    "absent": (["c", "b"], A, " has no 'a'; it holds 'b', 'c'"),
    "three, one of them NA": (["NA", "a", "c"], A, " holds 3 labels, not two: 'NA', 'a', 'c'"),
    "seven": (list("abcdefg"), A, " holds 7 labels, not two: 'a', 'b', 'c', 'd', 'e', ..."),
    "none": (["", ""], A, " has no values; leave it out, or name other columns"),
    "same": ([0], {"column": "y", "count": "y"}, " cannot hold both the outcomes and their counts"),
}
test_outcomes_that_are_refused = refuses(Coin, {k: (t, o, f"column 'y'{m}") for k, (t, o, m) in NO_COINS.items()})
NO_COUNTS = {
    "2**53": ({"trials": [2**53], "successes": [1]}, {}, f"column 'trials', row 1: {2**53} {LARGE}"),
    "text": ({"trials": [f"{2**53}"], "successes": ["1"]}, {}, f"column 'trials', row 1: '{2**53}' {LARGE}"),
    "above": ({"successes": [1, 3], "trials": [2, 2]}, {}, TOO_MANY_HEADS),
    "sum": ({"successes": [0, 0], "trials": [2**53 - 1, 1]}, {}, "column 'trials' has a sum of 2**53 or more"),
    "no trial": ({"successes": [0], "trials": [0]}, {}, "column 'trials' adds up to 0: there are no observations"),
    "complementary holes": ({"successes": [1, None], "trials": [None, 2]}, {"missing": "drop"}, NO_ROW),
    "list": ({"y": [1]}, {"column": ["y"]}, "column takes one value, got a list"),
    "decimal": ({"y": [1]}, {"decimal": ";"}, "decimal must be '.' or ',', got ';'"),
    "none fits": ({"a": [0], "b": [1]}, {}, "the table has columns 'a', 'b'; say which with --column"),
    "unnamed counts": (
        {"year": [2020, 2021], "won": [3, 0], "of all": [5, 7]},
        {},
        "the table has columns 'year', 'won', 'of all'; say which with --column; of counts, --successes won --trials "
        "'of all'",
    ),
    "unknown option": (
        {"y": [0]},
        {"colour": "y"},
        "there is no option 'colour' for these data; use one of " + ACCEPTED,
    ),
    "half": ({"s": [0]}, {"successes": "s"}, "successes and trials go together, and with no other option"),
    "missing": ({"y": [0]}, {"missing": "skip"}, "missing must be 'refuse' or 'drop', got 'skip'"),
    "mask": (
        {"y": [0]},
        {"missing": "mask"},
        "missing must be 'refuse' or 'drop', got 'mask'; missing cells are not integrated out of these data",
    ),
}
test_tables_of_outcomes_that_are_refused = refuses(Coin, NO_COUNTS)


def test_rows_in_the_form_of_counts():
    (counts,) = Binary().other_forms({"y": np.array([1, 0, 1, 1, 1, 0, 0])})
    assert counts["trials"].tolist() == [1, 2, 3, 1]
    assert counts["successes"].tolist() == [1, 1, 2, 0]


# Labels become codes that are said; counts stay whole and are never pooled or expanded unasked

ONLY_A = " only the category 'a', at least two are needed; give all with --categories"
THE_2 = " the 2 given; add it to --categories"
OR_ELSE = " if it is, else --column or --count"
LEAVE_OUT = "leave out --categories"
MIXED = "columns of counts and a column of labels do not go together; leave one out"
FIT_AGAIN = "; leave it out, or fit again with it"

Poll = model_of(Categories("y"))


def test_the_coding_is_said():
    assert read(Poll, {"candidate": ["dukakis", "bush"]}).notes == ("column 'candidate': categories bush, dukakis",)
    data = read(Poll, ["b", "a", ""], missing="drop", categories="c,b,a,d")
    assert data.notes == (
        "column 'y': categories c, b, a, d",
        "column 'y': categories c, d never occur",
        "1 row with missing values dropped (row 3)",
    )
    (note,) = read(Poll, [f"w{i}" for i in range(30)]).notes
    assert note.endswith("w26, ... (30 in all)")
    assert note.count(",") == 20


REFUSED = {
    "dates": (pd.Series(pd.to_datetime(["2020-01-01"])), {}, "column 'y' holds dates"),
    "lists": ([["a"], "b"], {}, "column 'y', row 1: ['a'] is neither text nor a number"),
    "one": (["a", "a"], {}, "column 'y' has" + ONLY_A),
    "one column": ({"a": [1]}, {"columns": ["a"]}, "the table has" + ONLY_A),
    "outside": (["a", "x", "b"], {"categories": "a,b"}, "column 'y', row 2: category 'x' is not among" + THE_2),
    "column outside": ({"a": [1], "x": [1]}, {"categories": "a,b"}, "category 'x' is not among" + THE_2),
    "no list": (["a", "b"], {"categories": 3}, "categories must be a list of names, got 3"),
    "mixture": ({"a": [1]}, {"columns": "a", "count": "a"}, MIXED),
    "sum": ({"a": [2**53 - 1], "b": [1]}, {}, "the counts have a sum of 2**53 or more"),
    "zeros": ({"a": [0], "b": [0]}, {}, "the counts add up to 0: there are no observations"),
    "unclear": ({"y": [1], "x": [2]}, {}, "column 'y' may be a category or not; give --columns y,x" + OR_ELSE),
    "codes": (
        {"n": [1], "count": [7]},
        {},
        "column 'count' may be a category or not; give --columns n,count" + OR_ELSE,
    ),
    "text and numbers": ({"a": ["x"], "b": [2]}, {}, "the table has columns 'a', 'b'; say which with --column"),
}
test_tables_that_are_refused = refuses(Poll, REFUSED)


def test_labels_with_counts_of_categories(written):
    path = written("candidate,count\ndukakis,583\nbush,700\nother,137\nbush,27\n", "poll.csv")
    data = read(Poll, path, count="count")
    assert plain(data) == {"counts": [[727, 583, 137]], "category": ["bush", "dukakis", "other"]}
    assert data.columns == {"column": "candidate", "count": "count"}
    assert data.notes == ("column 'candidate': categories bush, dukakis, other",)
    assert "column 'count' is not used; use it with --count count" in read(Poll, path, column="candidate").notes


def test_columns_of_counts_of_categories():
    table = {"spam": [1, 0, 5], "ham": [2, 0, 0]}
    data = read(Poll, table)
    assert plain(data) == {"counts": [[1, 2], [0, 0], [5, 0]], "category": ["spam", "ham"]}
    assert data.notes == ("the table: categories spam, ham", "1 row without observations (row 2)")
    assert (data.columns, data.rows) == ({"counts": "spam, ham"}, 3)
    ordered = read(Poll, {**table, "id": ["x", "y", "z"]}, columns=["spam", "ham"], categories="ham,eggs,spam")
    assert ordered["counts"].tolist() == [[2, 0, 1], [0, 0, 0], [0, 0, 5]]
    assert "the table: category eggs never occurs" in ordered.notes


LIKE = {"y": np.array([0]), "category": np.array(["a", "b", "c"])}
NEW = {
    "label": (["a", "x"], {}, "column 'y', row 2: category 'x' is not among the 3 of the fit" + FIT_AGAIN),
    "column": ({"a": [1], "b": [1], "c": [1], "d": [1]}, {}, "category 'd' is not among the 3 of the fit" + FIT_AGAIN),
    "no column": ({"a": [1], "b": [1]}, {}, "the table has no column 'c', a category of the fit"),
    "others": (["a"], {"categories": ["a", "b"]}, "categories must be those of the fit, in their order; " + LEAVE_OUT),
}
test_new_rows_that_are_refused = refuses(Poll, NEW, new=True, like=LIKE)


def test_rows_in_the_form_of_counts_of_categories():
    arrays = {"y": np.array([0, 1, 1, 2, 0, 0, 1]), "category": np.array(["a", "b", "c"])}
    (counts,) = Categories().other_forms(arrays)
    assert counts["counts"].tolist() == [[1, 0, 0], [0, 2, 0], [2, 0, 1], [0, 1, 0]]
    assert Categories().other_forms(counts) == []


BOTH = " the exposure and the counts"
TOO_MANY = " observations, at most 10000000 are read; give a part of them"

Events = model_of(Counts("y"))


REFUSED_EVENTS = {
    "sum": ({"b": [2**53 - 1, 1]}, {}, "column 'b' has a sum of 2**53 or more"),
    "no exposure": ({"y": [1, 2], "t": [1, 0]}, {"exposure": "t"}, "column 't', row 2: 0 is not > 0"),
    "both": ({"y": [1], "n": [1]}, {"exposure": "n", "count": "n"}, "column 'n' cannot hold both" + BOTH),
    "never": ({"y": [1], "n": [0]}, {"count": "n"}, "column 'n' adds up to 0: there are no observations"),
    "expanded": ({"y": [1, 2], "n": [10**7, 1]}, {"count": "n"}, "column 'n' adds up to 10000001" + TOO_MANY),
    "sum of the expanded": ({"y": [2**52], "n": [3]}, {"count": "n"}, "column 'y' has a sum of 2**53 or more"),
}
test_tables_of_events_that_are_refused = refuses(Events, REFUSED_EVENTS)


def test_exposure_is_used_when_it_is_called_so_and_said():
    table = {"deaths": [1, 2, 3], "exposure": [0.5, 1, None]}
    data = read(Events, table, missing="drop")
    assert plain(data) == {"y": [1, 2], "exposure": [0.5, 1.0]}
    assert next(iter(data)) == "y"
    assert data.columns == {"y": "deaths", "exposure": "exposure"}
    exposure = "column 'exposure': the exposure of each row"
    assert data.notes == (exposure, "1 row with missing values dropped (row 3)")
    alone = read(Events, {"y": [1], "exposure": [2]}, column="y")
    assert list(alone) == ["y"]
    assert alone.notes == ("column 'exposure' is not used; use it with --exposure exposure",)


def test_methods():
    inputs = Counts("y")
    alone = inputs.canonical({"y": [2, 0, 2]}).arrays
    timed = inputs.canonical({"y": [2, 0, 2, 2], "exposure": [1, 1, 3, 1]}).arrays
    rows, times = inputs.observations(alone)
    assert (rows["y"].tolist(), times.tolist()) == ([0, 2], [1, 2])
    rows, times = inputs.observations(timed)
    assert list(zip(rows["y"], rows["exposure"], times, strict=True)) == [(0, 1.0, 1), (2, 1.0, 2), (2, 3.0, 1)]
    assert [arrays["y"].tolist() for arrays in inputs.possible()] == [[count] for count in range(5000)]
    (other,) = inputs.other_forms(alone)
    assert other["y"].tolist() == [2, 0, 2]
    assert len(set(other["exposure"])) == 3
    assert inputs.other_forms(timed) == []


ALONE, TIME = {"y": np.array([1])}, {"exposure": np.array([2.0])}
HAS_EXPOSURE = "the fit has an exposure, these rows have none; give its column with --exposure"
NO_EXPOSURE = "the fit has no exposure, these rows do; leave it out with --column"
OF_COUNTS = {"new": True, "like": ALONE}
EXPOSURES = {
    "lacking": ({"y": [1]}, {"new": True, "like": ALONE | TIME}, HAS_EXPOSURE),
    "more": ({"exposure": [1]}, OF_COUNTS, NO_EXPOSURE),
    "named": ({"y": [1], "t": [1]}, {**OF_COUNTS, "exposure": "t"}, NO_EXPOSURE),
}
test_new_exposures_that_are_refused = refuses(Events, EXPOSURES)


def test_further_exposures_are_not_known():
    with raises(InputError, "new_rows_unknown", "exposure"):
        Counts("y").unseen(ALONE | TIME, 1)
    assert [Counts("y").has_outcome(data) for data in (ALONE, TIME)] == [True, False]


# What is read

BOY, AB, AC, ABC = {"positive": "boy"}, ["a", "b"], ["a", "c"], ["a", "b", "c"]
DROPPED, COUNTED_AND_TIMED = {"count": "n", "missing": "drop"}, {"count": "n", "column": "deaths", "exposure": "t"}
BOYS, BY_SEX = {"s": ["boy", "girl", "boy"], "n": ["3", "4", "1"]}, {"y": [3, 4], "sex": ["boy", "girl"]}
SEVERAL = {"y": [1, 1], "other": [0, 1], "successes": [1, 2], "trials": [2, 2]}
OF_FIT, WHO = {"new": True, "like": LIKE}, {"who": ["c", "a"], "n": [5, 6]}
TIMED = {"new": True, "like": {"y": np.array([1]), "exposure": np.array([1.0])}}
COUNTED = {"deaths": [0, 1, 2], "n": [2, 0, 1], "t": [1, 2, 4]}
READ = {
    "real": (Numbers, [1, -2], {}, {"y": [1.0, -2.0]}),
    "text of numbers": (Numbers, ["1", "-2.0"], {}, {"y": [1.0, -2.0]}),
    "spaces": (Numbers, [" 1", "-2e0 "], {}, {"y": [1.0, -2.0]}),
    "decimals": (Numbers, [Decimal(1), Decimal(-2)], {}, {"y": [1.0, -2.0]}),
    "big endian": (Numbers, np.array([1, -2], dtype=">f8"), {}, {"y": [1.0, -2.0]}),
    "comma": (Numbers, ["1,5", "-2"], {"decimal": ","}, {"y": [1.5, -2.0]}),
    "integers": (Coin, [0, 1, 1], {}, {"y": [0, 1, 1]}),
    "bool": (Coin, [False, True, True], {}, {"y": [0, 1, 1]}),
    "text": (Coin, ["0", "1", "1.0"], {}, {"y": [0, 1, 1]}),
    "objects": (Coin, np.array([False, True, np.True_], dtype=object), {}, {"y": [0, 1, 1]}),
    "words": (Coin, ["girl", "boy"], BOY, {"y": [0, 1]}),
    "codes stay text": (Coin, ["00123", "123"], {"positive": "123"}, {"y": [0, 1]}),
    "NA is a label": (Coin, ["NA", "null"], {"positive": "null"}, {"y": [0, 1]}),
    "numbers": (Coin, [1, 2], {"positive": "2"}, {"y": [0, 1]}),
    "infinite": (Coin, [np.inf, 2.5], {"positive": "2.5"}, {"y": [0, 1]}),
    "truth": (Coin, [False, True], {"positive": True}, {"y": [0, 1]}),
    "pandas": (Coin, pd.Series(["girl", "boy"], dtype="category"), BOY, {"y": [0, 1]}),
    "large counts": (Coin, {"successes": [0], "trials": [2**53 - 1]}, {}, {"successes": [0], "trials": [2**53 - 1]}),
    "counted labels": (Coin, BOYS, {**BOY, "count": "n"}, {"successes": [4], "trials": [8]}),
    "named labels": (Coin, BOYS, {**BOY, "count": "n", "column": "s"}, {"successes": [4], "trials": [8]}),
    "counts are never the outcome": (Coin, BY_SEX, {**BOY, "count": "y"}, {"successes": [3], "trials": [7]}),
    "counted outcomes": (Coin, {"y": [0, 1], "n": [5, 6]}, {"count": "n"}, {"successes": [6], "trials": [11]}),
    "counts before y": (Coin, SEVERAL, {}, {"successes": [1, 2], "trials": [2, 2]}),
    "a column": (Coin, SEVERAL, {"column": "other", "positive": None}, {"y": [0, 1]}),
    "other counts": (Coin, SEVERAL, {"successes": "other", "trials": "y"}, {"successes": [0, 1], "trials": [1, 1]}),
    "y among others": (Coin, {"y": [1], "x": [0]}, {}, {"y": [1]}),
    "the only column": (Coin, {"z": [1]}, {}, {"y": [1]}),
    "categories": (Poll, ["b", "a", "a"], {}, {"y": [1, 0, 0], "category": AB}),
    "numeric categories": (Poll, [10, 9, 10], {}, {"y": [1, 0, 1], "category": ["9", "10"]}),
    "NA is a category": (Poll, ["NA", "null"], {}, {"y": [0, 1], "category": ["NA", "null"]}),
    "holes": (Poll, pd.Series(["b", None, "a"]), {"missing": "drop"}, {"y": [1, 0], "category": AB}),
    "given order": (Poll, ["b", "a"], {"categories": ["b", "a"]}, {"y": [0, 1], "category": ["b", "a"]}),
    "with a comma": (Poll, ["b", "a,c"], {"categories": '"a,c",b'}, {"y": [1, 0], "category": ["a,c", "b"]}),
    "given as numbers": (Poll, [2, 1], {"categories": [2.0, 1]}, {"y": [0, 1], "category": ["2", "1"]}),
    "all rows of b are dropped": (Poll, {"y": ABC, "n": [1, None, 2]}, DROPPED, {"counts": [[1, 2]], "category": AC}),
    "codes of the fit": (Poll, ["c", "a"], OF_FIT, {"y": [2, 0], "category": ABC}),
    "counts of new labels": (Poll, WHO, {**OF_FIT, "count": "n"}, {"counts": [[6, 0, 5]], "category": ABC}),
    "new columns": (Poll, {"c": [1], "b": [2], "a": [3]}, OF_FIT, {"counts": [[3, 2, 1]], "category": ABC}),
    "repeated rows": (Events, {"deaths": [0, 2], "n": [2, 1]}, {"count": "n", "column": "deaths"}, {"y": [0, 0, 2]}),
    "repeated and timed": (Events, COUNTED, COUNTED_AND_TIMED, {"y": [0, 0, 2], "exposure": [1.0, 1.0, 4.0]}),
    "exposure alone": (Events, {"exposure": [0.5, 2]}, TIMED, {"exposure": [0.5, 2.0]}),
    "hours alone": (Events, {"hours": [0.5, 2]}, {**TIMED, "exposure": "hours"}, {"exposure": [0.5, 2.0]}),
    "no exposure": (Events, {"y": [1]}, {"new": True, "like": {"y": np.array([1])}}, {"y": [1]}),
}


@by_name(("model", "table", "options", "arrays"), READ)
def test_tables_that_are_read(model, table, options, arrays):
    assert repr(plain(read(model, table, **options))) == repr(arrays)
