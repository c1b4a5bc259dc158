"""Statistics by pattern of missing numbers, and their tables with missing cells."""

import functools
import operator

import numpy as np

import bayeszoo as bz
from bayeszoo.data.inputs import Matrix
from bayeszoo.data.read import Data, read
from bayeszoo.data.table.read import read_table
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.families.statistics.patterns import Patterns
from tests.reading import model_of, refusal
from tests.refusals import raises

RNG = np.random.default_rng(0)
WHOLE = RNG.normal(3.0, 2.0, (40, 3))
HOLES = np.where(RNG.random((40, 3)) < 0.3, np.nan, WHOLE)
AIR = ["Ozone", "Solar.R", "Wind", "Temp"]


Masked, Strict = model_of(Matrix("Y", maskable=True)), model_of(Matrix("Y"))


def air(missing="mask", model=Masked):
    return read(model, "models/data/airquality.csv", columns=AIR, missing=missing)


def same(one, other, tolerance=1e-12):
    assert np.array_equal(one.observed, other.observed)
    for name in ("n", "mean", "scatter"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=tolerance, atol=tolerance)


def test_each_pattern_has_the_moments_of_its_rows():
    found, has = Patterns.of(HOLES), ~np.isnan(HOLES)
    assert len(found.n) == len(np.unique(has, axis=0))
    assert found.n.sum() == found.rows == 40
    assert found.n @ found.observed.sum(axis=1) == has.sum()
    for p, seen in enumerate(found.observed):
        rows = HOLES[(has == seen).all(axis=1)][:, seen]
        assert found.n[p] == len(rows)
        np.testing.assert_allclose(found.mean[p][seen], rows.mean(axis=0))
        centred = rows - rows.mean(axis=0)
        np.testing.assert_allclose(found.scatter[p][np.ix_(seen, seen)], centred.T @ centred, atol=1e-12)
        assert not found.mean[p][~seen].any()
        assert not found.scatter[p][~seen].any()


def test_complete_data_are_one_pattern():
    np.testing.assert_allclose(Patterns.of(WHOLE).whole.scatter, 39 * np.cov(WHOLE.T))
    with raises(NumericalError, "not_identified"):
        _ = Patterns.of(HOLES).whole


def test_statistics_pool_whatever_the_parts_and_the_order():
    whole = Patterns.of(HOLES)
    same(Patterns.of(HOLES[:13]) + Patterns.of(HOLES[13:]), whole)
    same(functools.reduce(operator.add, [Patterns.of(HOLES[i : i + 1]) for i in RNG.permutation(40)]), whole)
    same(Patterns.of(HOLES[RNG.permutation(40)]), whole)
    same(Patterns.of(HOLES[:0]) + whole, whole)
    same(whole - Patterns.of(HOLES[:13]), Patterns.of(HOLES[13:]), 1e-11)
    same(whole.discounted(2.0), Patterns.of(np.concatenate([HOLES, HOLES])))
    with raises(NumericalError, "not_subtractable"):
        Patterns.of(WHOLE) - Patterns.of(HOLES[np.isnan(HOLES).any(axis=1)])


def test_pooling_does_not_cancel_far_from_zero():
    far = HOLES + 1e9
    found = Patterns.of(far[:20]) + Patterns.of(far[20:])
    # a number near 1e9 is known to 1e-7; of sums of squares near 1e18 nothing would be left
    np.testing.assert_allclose(found.scatter, Patterns.of(far - 1e9).scatter, rtol=1e-6, atol=1e-6)


def test_columns_are_described_by_what_was_observed_of_them():
    n, mean, squares = Patterns.of(HOLES).each_column()
    np.testing.assert_allclose(mean, np.nanmean(HOLES, axis=0))
    np.testing.assert_allclose(squares / (n - 1), np.nanvar(HOLES, axis=0, ddof=1))
    constant = np.column_stack([np.full(9, 0.1 + 1e6), WHOLE[:9, 0]])
    assert np.isnan(Patterns.of(constant).column_variances()).tolist() == [True, False]


def test_more_patterns_than_memory_holds_are_refused(monkeypatch):
    monkeypatch.setattr("bayeszoo.families.statistics.patterns.MOST_IN_SCATTERS", 30)
    with raises(InputError, "too_large", "3"):
        Patterns.of(HOLES)


# Tables with holes


def test_masks_keep_every_row_and_say_so():
    data = air()
    assert data["Y"].shape == (153, 4)
    assert np.isnan(data["Y"]).sum(axis=0).tolist() == [37, 7, 0, 0]
    assert data.notes == ("44 missing values in 42 rows integrated out, none imputed",)


def test_holes_are_refused_unless_asked_for_and_the_hint_says_how():
    hint = "use --missing mask, which integrates them out, or drop"
    error = refusal(Masked, "models/data/airquality.csv", columns=AIR)
    assert "'Ozone': 37 missing values" in str(error)
    assert (error.hint, error.column, list(error.rows)) == (hint, "Ozone", [5, 10, 25, 26, 27])
    assert air("drop")["Y"].shape == (111, 4)
    with raises(InputError, "wrong_type", "'refuse'", "'drop'"):
        air(model=Strict)
    with raises(InputError, "missing_values", "37", "5", "10", "drop"):
        read(Strict, air())


def test_a_column_without_values_is_refused_and_a_row_flagged():
    with raises(InputError, "no_data", "'b'"):
        read(Masked, {"a": [1.0, 2.0], "b": [None, None]}, missing="mask")
    data = read(Masked, {"a": [1.0, None, 2.0], "b": [2.0, None, None]}, missing="mask")
    assert data.notes[1] == "1 row (row 2) without values was ignored"
    for cell, message in (("x", ("not_a_number", "'x'")), (float("inf"), ("too_large",))):
        with raises(InputError, *message):
            read(Masked, {"a": [1.0, None, cell], "b": [1.0, 2.0, 3.0]}, missing="mask")


def test_masked_data_are_themselves_however_they_come():
    data = air()
    assert read(Masked, Data(data.arrays)) == data
    assert read(Masked, dict(data.arrays), missing="mask") == data
    odd = data["Y"].copy()
    odd[np.isnan(odd)] = -np.frombuffer(np.uint64(0x7FF8000000000001).tobytes())[0]  # another NaN
    assert read(Masked, {"Y": odd, "column": data["column"]}, missing="mask").digest == data.digest
    back = Masked.inputs.parse(read_table(Masked.inputs.table(data)), **Masked.inputs.reading(data))
    np.testing.assert_array_equal(back.arrays["Y"], data["Y"])
    first, rest = Masked.inputs.split(data, 100)
    moved = Masked.inputs.reordered(data, np.arange(153)[::-1])
    for parts in (Patterns.of(first["Y"]) + Patterns.of(rest["Y"]), Patterns.of(moved["Y"])):
        same(parts, Patterns.of(data["Y"]), 1e-10)
    model = bz.find("robust_regression")  # whose example has options of its own
    assert bz.read(model).rows == bz.read(model, missing="drop").rows == 116
