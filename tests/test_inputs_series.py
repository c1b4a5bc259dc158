"""Sequences of observations stay apart and in order, and unknown observations are never dropped."""

import itertools

import numpy as np
import pandas as pd
import polars as pl

from bayeszoo.answers.series.tables import sequences
from bayeszoo.data.inputs import CountSeries, RealSeries, SymbolSeries, starts
from bayeszoo.data.read import Data, read
from tests.reading import by_name, model_of, plain, refusal

NAME_IT = "; name its sequence, or take the row out of the table"
TOGETHER = "; put the rows of each sequence together, in their order"

ABC = np.array(["a", "b", "c"])
NAN = np.nan


SYMBOLS, REAL, COUNTS = model_of(SymbolSeries()), model_of(RealSeries()), model_of(CountSeries())
MODELS = {"symbols": SYMBOLS, "real": REAL, "counts": COUNTS}
EVERY = by_name("model", MODELS)


# One sequence and several


@EVERY
def test_one_column_is_one_sequence(model):
    for source in ([3, 1, 2], (3, 1, 2), np.array([3, 1, 2]), np.array([[3], [1], [2]]), [*map(np.array, [3, 1, 2])]):
        data = read(model, source)
        assert data["sequence"].tolist() == [0, 0, 0]
        assert (data["y"].dtype, data["sequence"].dtype) == (np.float64 if model is REAL else np.int64, np.int64)
        assert list(data) == ["y", "sequence", *model.inputs.coords]
        values = data["symbol"][data["y"]].astype(int) if model is SYMBOLS else data["y"]
        assert values.tolist() == [3, 1, 2]


@EVERY
def test_a_list_of_sequences_is_several(model):
    series = [[kind([3, 1]), kind([1, 3, 3])] for kind in (list, np.array, pd.Series, pl.Series)]
    for source in (*series, ([3, 1], (1, 3, 3))):
        data = read(model, source)
        assert data["sequence"].tolist() == [0, 0, 1, 1, 1]
        assert data["y"].tolist() == ([1, 0, 0, 1, 1] if model is SYMBOLS else [3, 1, 1, 3, 3])
        assert data.notes[-1] == "column 'sequence' names 2 sequences, of 2 to 3 rows"
    assert read(model, [[3], [1], [2]])["sequence"].tolist() == [0, 1, 2]
    assert sequences(read(model, [[3], [1], [2]]))["sequence"].tolist() == [1, 2, 3]
    assert read(model, [[3, 1, 2]])["sequence"].tolist() == [0, 0, 0]
    assert "1 empty sequence" in read(model, [[3, 1], [], [2]]).notes
    assert read(model, [[3], [2]]).notes[-1] == "column 'sequence' names 2 sequences, of 1 row each"


@EVERY
def test_a_column_names_the_sequence_of_each_row(model):
    table = {"who": ["late", "late", "early", "early"], "rolls": [6, 1, 6, 6]}
    data = read(model, table, sequence="who", column="rolls")
    assert data["sequence"].tolist() == [0, 0, 1, 1]
    assert data.columns == {"y": "rolls", "sequence": "who"}
    assert data.notes[-1] == "column 'who' names 2 sequences, of 2 rows each"
    assert sequences(data)["sequence"].tolist() == ["late", "late", "early", "early"]
    assert sequences(data, 1)["sequence"].tolist() == ["late", "early"]
    by_default = read(model, {"sequence": [7.5, 2.0, 2.0, -1.0], "rolls": [6, 1, 6, 6]})
    assert sequences(by_default)["sequence"].tolist() == ["7.5", "2.0", "2.0", "-1.0"]
    assert by_default["sequence"].tolist() == [0, 1, 1, 2]
    assert by_default["y"].tolist() == data["y"].tolist()
    assert "--column" in refusal(model, table).hint


def test_a_column_called_sequence_may_be_the_observations():
    assert plain(read(COUNTS, {"sequence": [3, 1]})) == {"y": [3, 1], "sequence": [0, 0]}
    alone = read(COUNTS, {"sequence": [3, 1], "other": [1, 1]}, column="sequence")
    assert (alone["y"].tolist(), alone["sequence"].tolist(), alone.notes) == ([3, 1], [0, 0], ())


@EVERY
def test_numbers_of_sequences_are_those_of_the_groups(model):
    rng = np.random.default_rng(5)
    for _ in range(100):
        names = rng.integers(0, 4, size=rng.integers(2, 12)).tolist()
        groups = [(name, len(list(rows))) for name, rows in itertools.groupby(names)]
        table = {"y": [1, 2, *[1] * (len(names) - 2)], "id": names}
        if len(groups) > len(set(names)):
            assert "names a sequence that ended in row" in str(refusal(model, table, sequence="id"))
            continue
        data = read(model, table, sequence="id")
        expected = [number for number, (_, length) in enumerate(groups) for _ in range(length)]
        assert data["sequence"].tolist() == expected
        firsts = starts(data["sequence"])
        assert firsts.tolist() == [expected.index(number) for number in range(len(groups))]
        assert firsts.dtype == np.int64


# What is missing


@by_name(("model", "source"), {"symbols": (SYMBOLS, ["b", "", "b", "a"]), "numbers": (REAL, [0.5, NAN, 1, 2])})
def test_holes_are_masked(model, source):
    data = read(model, source, missing="mask")
    assert model.inputs.masked(data).tolist() == [False, True, False, False]
    assert data.notes[-1] == "column 'y': 1 missing value masked (row 2)"
    assert len(data.notes) == (2 if model is SYMBOLS else 1)
    several = read(model, [[1, 2], [None, None]], missing="mask")
    assert model.inputs.masked(several).tolist() == [False, False, True, True]
    assert "column 'y': 2 missing values masked (rows 3, 4)" in several.notes


def test_a_mapping_of_codes_has_masks_when_they_are_asked_for():
    data = read(SYMBOLS, [[2, None, 1], [None, 2]], missing="mask")
    for arrays in (dict(data), {name: values.tolist() for name, values in data.items()}):
        assert read(SYMBOLS, arrays, missing="mask") == data
        assert "row 2 is position 2 of sequence 0; use --missing mask" in str(refusal(SYMBOLS, arrays))


@EVERY
def test_data_made_by_hand_are_checked(model):
    assert read(model, Data({"y": np.array([1, 2])}))["sequence"].tolist() == [0, 0]
    names = {"y": np.array([1, 2, 2]), "sequence": np.array(["u", "v", "v"])}
    assert read(model, Data(names))["sequence"].tolist() == [0, 1, 1]
    assert "names a sequence that ended" in str(refusal(model, Data({**names, "sequence": np.array([0, 1, 0])})))


def test_a_mapping_with_the_names_of_the_arrays_has_a_decimal_mark():
    data = read(REAL, {"y": ["0,5", "2"], "sequence": ["u", "u"]}, decimal=",")
    assert data["y"].tolist() == [0.5, 2.0]


# Symbols


def test_the_coding_of_symbols_is_noted():
    rolls = [6, 1, 3, 2, 5, 4, 6]
    data = read(SYMBOLS, rolls)
    assert (data["y"].tolist(), data["symbol"].tolist()) == ([5, 0, 2, 1, 4, 3, 5], ["1", "2", "3", "4", "5", "6"])
    assert data.notes == ("column 'y': symbols 1, 2, 3, 4, 5, 6",)
    assert read(SYMBOLS, [float(roll) for roll in rolls]) == read(SYMBOLS, list(map(str, rolls))) == data
    order = read(SYMBOLS, ["b", "a"], symbols="c,b,a")
    assert (order["y"].tolist(), order["symbol"].tolist()) == ([1, 2], ["c", "b", "a"])
    assert order.notes == ("column 'y': symbols c, b, a", "column 'y': symbol c never occurs")


def named(names, y=(1, 2, 1, 2, 2)):
    return {"y": list(y), "id": list(names)}


ID, MASK, ONE_TWO, AABAB = {"sequence": "id"}, {"missing": "mask"}, {"symbols": "1,2"}, named("aabab")
HOLES, ITSELF = {"y": [1, 2, None, None], "sequence": list("uuvv")}, {"sequence": "y", "column": "y"}
UNKNOWN = "; use --missing mask, which keeps the row with an unknown observation"
NOT_ADJACENT = "to drop a row would join its neighbours, which are not adjacent" + UNKNOWN
WRONG = {
    "interleaved": (REAL, AABAB, ID, "'id', row 4: 'a' names a sequence that ended in row 2 (and 1 more: row 5)"),
    "back later": (COUNTS, named([1, 2, 2, 3, 2]), ID, "row 5: 2 names a sequence that ended in row 3" + TOGETHER),
    "no name": (SYMBOLS, named(["a", "a", None, "b", "b"]), {**ID, **MASK}, "'id': 1 missing value (row 3)" + NAME_IT),
    "one column": (REAL, [1, 2], ITSELF, "'y' cannot hold both the outcomes and their sequences"),
    "dropped": (REAL, [1, None, 2], {"missing": "drop"}, NOT_ADJACENT),
    "nothing to drop": (COUNTS, [1, 1, 2], {"missing": "drop"}, NOT_ADJACENT),
    "impute": (SYMBOLS, [1, 2], {"missing": "impute"}, "missing must be 'refuse' or 'mask', got 'impute'"),
    "nothing known": (SYMBOLS, [None, None], MASK, "column 'y' has no values"),
    "no number known": (REAL, [None, None], {}, "column 'y' has no values"),
    "no count known": (COUNTS, [None, None], MASK, "column 'y' has no values"),
    "not masked": (COUNTS, [2, None, 0], {}, "column 'y': 1 missing value (row 2); use --missing mask"),
    "no count": (COUNTS, {"n": [3, -1]}, MASK, "column 'n', row 2: -1 is negative; counts must be >= 0"),
    "no mask": (COUNTS, {"y": [3, -1], "sequence": [0, 0]}, MASK, "column 'y', row 2: -1 is negative; counts"),
    "with a hole": (SYMBOLS, ["a", None], {"missing": "mask"}, "column 'y' has only the symbol 'a'"),
    "lists and numbers": (COUNTS, [[1, 2], 3], {}, "item 2 is a int, the others are sequences"),
    "symbol": (SYMBOLS, [[1, 2], [2, 1, 7]], ONE_TWO, "the 2 given; row 5 is position 3 of sequence 2; add it"),
    "hole": (REAL, HOLES, {}, "; row 3 is position 1 of sequence 'v'; use"),
    "fraction": (COUNTS, [[1, 2], [2, 0.5]], {}, "0.5 is not a whole number; row 4 is position 2 of sequence 2"),
}


@by_name(("model", "source", "options", "message"), WRONG)
def test_observations_that_are_refused(model, source, options, message):
    assert message in str(refusal(model, source, **options))


def test_new_rows_have_the_symbols_of_the_fit():
    fitted = read(SYMBOLS, [1, 2, 3, 4, 5, 6])
    assert read(SYMBOLS, [3, 1], new=True, like=fitted)["y"].tolist() == [2, 0]
    assert read(SYMBOLS, [3], new=True, like=fitted).notes == ()
    other = read(SYMBOLS, [[3, None], [1, 3]], missing="mask")
    again = read(SYMBOLS, other, new=True, like=fitted)
    assert (again["y"].tolist(), again["sequence"].tolist()) == ([2, -1, 0, 2], [0, 0, 1, 1])
    masked = read(REAL, [[3, None], [1, 3]], missing="mask")
    assert read(REAL, masked, new=True, like=read(REAL, [1, 2])) == masked


# Methods

THREE = {"y": np.array([0, 1, 2, -1, 0, 1]), "sequence": np.array([0, 0, 1, 1, 1, 2]), "symbol": ABC}


def test_parts_number_their_sequences_from_zero():
    inputs = SymbolSeries()
    for at in range(7):
        first, rest = inputs.split(THREE, at)
        assert (*first["y"], *rest["y"]) == (*THREE["y"],)
        for part, rows in ((first, THREE["sequence"][:at]), (rest, THREE["sequence"][at:])):
            assert part["sequence"].tolist() == [int(n - rows[0]) for n in rows]
            assert (part["sequence"].dtype, part["symbol"]) == (np.int64, ABC)


def test_whole_sequences_in_another_order_are_the_same_data():
    made = SymbolSeries().reordered(THREE, np.array([5, 2, 3, 4, 0, 1]))
    assert (made["y"].tolist(), made["sequence"].tolist()) == ([1, 2, -1, 0, 0, 1], [0, 1, 1, 1, 2, 2])
    assert SymbolSeries().reordered(THREE, np.array([0, 2, 1]))["sequence"].tolist() == [0, 1, 2]
    assert SymbolSeries().reordered(THREE, np.arange(3))["sequence"].tolist() == [0, 0, 1]
    assert SymbolSeries().reordered(THREE, np.array([], dtype=int))["sequence"].tolist() == []
