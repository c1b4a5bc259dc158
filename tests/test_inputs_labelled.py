"""Rows of classes, and features of levels, counts and real numbers: how they are read, and what is refused."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

import bayeszoo as bz
from bayeszoo.data.inputs import Labelled, Mixed, levels_by_feature, tables_of
from bayeszoo.data.read import Data, read
from bayeszoo.distributions.conjugate.categorical import Categorical
from bayeszoo.distributions.statistics.counts import Counts
from bayeszoo.model import BlockModel, positive
from bayeszoo.model.parts.chunks import read_chunks
from bayeszoo.results.stored import Fit
from tests.reading import by_name, model_of, plain
from tests.refusals import raises

SPAM = Path(__file__).resolve().parents[1] / "models" / "data" / "spam.csv"
INPUTS = Labelled("y")
Rows = model_of(INPUTS)
Vectors = model_of(Labelled("y", kinds=("reals",), maskable=False))
TABLE = {
    "y": ["a", "b"] * 6,
    "sex": ["f", "m", "m"] * 4,
    "urban": [True, False, False, True] * 3,
    "stage": [1, 2, 3, 3, 2, 1] * 2,
    "calls": [0, 1, 2, 5] * 3,
    "height": [0.5 * i for i in range(12)],
}
KINDS = {"levels": "stage", "counts": "calls"}
HOLES = {**TABLE, "sex": [None, *TABLE["sex"][1:]], "calls": [0, np.nan, *TABLE["calls"][2:]]}
HOLES["height"] = [None, *TABLE["height"][1:]]


@pytest.fixture
def data():
    return read(Rows, TABLE, **KINDS)


@pytest.fixture
def with_holes():
    return read(Rows, HOLES, **KINDS, missing="mask")


def same(first, second):
    """Assert that arrays have the same names, in order, and the same types and values, NaN included."""
    assert list(first) == list(second)
    for name in first:
        assert first[name].dtype.kind == second[name].dtype.kind, name
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)


# Tables


def test_text_and_truth_are_levels_and_numbers_are_what_options_say(data):
    assert list(data) == ["y", "levels", "counts", "reals", "feature", "level", "count", "real", "class"]
    assert data["feature"].tolist() == ["sex", "urban", "stage"]
    expected = ["sex=f", "sex=m", "urban=False", "urban=True", "stage=1", "stage=2", "stage=3"]
    assert data["level"].tolist() == expected
    assert data["levels"][:3].tolist() == [[0, 3, 4], [1, 2, 5], [1, 2, 6]]
    assert (data["count"].tolist(), data["counts"][:4, 0].tolist()) == (["calls"], [0.0, 1.0, 2.0, 5.0])
    assert (data["real"].tolist(), data["reals"][:3, 0].tolist()) == (["height"], [0.0, 0.5, 1.0])
    assert (data["class"].tolist(), data["y"][:3].tolist()) == (["a", "b"], [0, 1, 0])
    assert [data[name].dtype for name in ("y", "levels", "counts")] == [np.int64, np.int64, np.float64]
    assert data.columns == {"y": "y", "levels": "sex, urban, stage", "counts": "calls", "reals": "height"}


def test_levels_are_found_by_feature(data):
    by_feature = levels_by_feature(data)
    assert by_feature["stage"] == {"1": 4, "2": 5, "3": 6}
    assert tables_of(data) == ((0, 1), (2, 3), (4, 5, 6))
    assert (levels_by_feature({"real": data["real"]}), tables_of({})) == ({}, ())
    turned = INPUTS.relabelled(data, "level", np.array([6, 0, 2, 4, 1, 3, 5]))
    assert tables_of(turned) == ((1, 4), (2, 5), (0, 3, 6))


def test_numbers_that_may_be_counts_or_levels_are_remarked():
    remarked = [
        note for note in read(Rows, TABLE).notes if "'stage', 'calls'" in note and "--counts stage,calls" in note
    ]
    assert len(remarked) == 1
    silent = read(Rows, TABLE, reals="stage,calls").notes
    assert not any("--counts" in note for note in silent)


def test_the_kinds_of_a_model_say_what_numbers_are():
    levels = model_of(Mixed(kinds=("levels",)))
    data = read(levels, {"item": [0, 1, 1, 0], "other": ["u", "u", "v", "v"]})
    assert plain(data) == {
        "levels": [[0, 2], [1, 2], [1, 3], [0, 3]],
        "feature": ["item", "other"],
        "level": ["item=0", "item=1", "other=u", "other=v"],
    }
    reals = read(Vectors, {"y": ["a", "b", "a"], "u": [1, 2, 4], "v": [0.5, 1, 0]})
    assert list(reals) == ["y", "reals", "real", "class"]
    counts = read(model_of(Mixed("counts", kinds=("counts",))), {"u": [1, 2, 4], "v": [0, 1, 0]})
    assert (list(counts), INPUTS.size(read(Rows, TABLE))) == (["counts", "count"], 12)


def test_a_table_of_counts_stands_for_its_rows():
    data = read(Rows, SPAM, target="spam", count="count")
    frame = pd.read_csv(SPAM)
    assert (len(frame), data.rows, data["y"].mean()) == (56, 4601, pytest.approx(0.39404, abs=1e-5))
    assert data["levels"].shape == (4601, 5)
    dollars = frame["count"][(frame["spam"] == "yes") & (frame["dollar"] == "yes")].sum()
    code = levels_by_feature(data)["dollar"]["yes"]
    assert ((data["y"] == 1) & (data["levels"][:, 0] == code)).sum() == dollars


def test_declared_classes_and_levels_need_not_occur():
    data = read(Rows, TABLE, classes="c,b,a", levels=["stage", "sex=m,f,x"], counts="calls")
    assert (data["class"].tolist(), data["y"][:2].tolist()) == (["c", "b", "a"], [2, 1])
    assert levels_by_feature(data)["sex"] == {"m": 0, "f": 1, "x": 2}
    assert sum("never occur" in note for note in data.notes) == 2


# Missing cells


def test_missing_cells_are_kept_on_request_and_said(with_holes):
    assert with_holes["levels"][0].tolist() == [-1, 3, 4]
    assert np.isnan([with_holes["counts"][1, 0], with_holes["reals"][0, 0]]).all()
    assert with_holes["counts"].dtype == np.float64
    assert any(note.startswith("3 missing values in 2 rows") for note in with_holes.notes)


def test_rows_with_missing_cells_are_dropped_on_request():
    data = read(Rows, HOLES, **KINDS, missing="drop")
    assert (data.rows, data.numbers[0]) == (10, 3)


def test_a_row_without_any_cell_is_said():
    empty = {"y": TABLE["y"], "sex": HOLES["sex"], "height": HOLES["height"]}
    notes = read(Rows, empty, missing="mask").notes
    assert any("1 row (row 1) without any value" in note for note in notes)


# New rows


def test_new_rows_are_coded_as_those_of_the_fit_in_any_order(data):
    new = {"height": [1.0], "stage": [3], "calls": [7], "urban": [False], "sex": ["m"], "more": ["text"]}
    read_new = read(Rows, new, new=True, like=data)
    assert not INPUTS.has_outcome(read_new)
    assert plain(read_new)["levels"] == [[1, 2, 6]]
    assert (read_new["counts"].tolist(), read_new["reals"].tolist()) == ([[7.0]], [[1.0]])
    assert all(read_new[axis].tolist() == data[axis].tolist() for axis in INPUTS.coords)


def test_the_class_of_new_rows_is_read_where_it_is_known(data):
    new = {name: values[1:2] for name, values in TABLE.items()}
    assert read(Rows, new, new=True, like=data)["y"].tolist() == [1]
    named = read(Rows, {**TABLE, "kind": TABLE["y"], "y": TABLE["height"][::-1]}, target="kind", **KINDS)
    assert named.columns["y"] == "kind"
    assert read(Rows, {**new, "y": [1.5], "kind": ["a"]}, new=True, like=named)["y"].tolist() == [0]


def test_new_rows_without_any_cell_are_read(data):
    nothing = {name: [None] for name in TABLE if name != "y"}
    read_new = read(Rows, nothing, new=True, like=data, missing="mask")
    assert plain(read_new)["levels"] == [[-1, -1, -1]]
    assert any("without any value" in note for note in read_new.notes)
    assert (INPUTS.unseen(data, 2)["levels"] == -1).all()


LESS = {name: values for name, values in TABLE.items() if name != "sex"}
NEW = {
    "level": ({"sex": ["z"] * 12}, {}, ("unknown_label", "'sex', row 1", "'z'")),
    "class": ({"y": ["z"] * 12}, {}, ("unknown_label", "'y', row 1", "'z'")),
    "hole": ({"sex": [None] * 12}, {}, ("missing_values", "'sex'")),
    "fraction": ({"calls": [0.5] * 12}, {}, ("not_whole", "'calls'")),
    "another kind": ({}, {"counts": "height"}, ("labels_differ", "'height'")),
    "other levels": ({}, {"levels": "sex=m,f"}, ("labels_differ", "'sex'")),
}


@by_name(("changes", "options", "expected"), NEW)
def test_new_rows_that_the_fit_does_not_know_are_refused(data, changes, options, expected):
    with raises(bz.InputError, *expected):
        read(Rows, {**TABLE, **changes}, new=True, like=data, **options)


def test_new_rows_have_all_features_of_the_fit(data):
    with raises(bz.InputError, "missing_column", "'sex'"):
        read(Rows, LESS, new=True, like=data)


# Bad tables

FEW = {"y": TABLE["y"], "sex": TABLE["sex"], "height": TABLE["height"], "calls": TABLE["calls"]}
LATE = {"y": TABLE["y"], "sex": ["f"] * 11 + ["m"], "height": [*TABLE["height"][:11], None], "u": TABLE["urban"]}
REFUSED = {
    "one class": ({**FEW, "y": ["a"] * 12}, {}, ("no_data", "'y'", "'a'")),
    "no column of the class": ({"sex": ["f", "m"]}, {}, ("missing_column", "'y'")),
    "only the class": ({"y": ["a", "b"]}, {}, ("no_data",)),
    "constant text": ({**FEW, "k": ["q"] * 12}, {}, ("constant", "'k'")),
    "constant number": ({**FEW, "k": [1.5] * 12}, {}, ("constant", "'k'")),
    "constant count": ({**FEW, "k": [1] * 12}, {"counts": "k"}, ("constant", "'k'")),
    "constant after rows are dropped": (LATE, {"missing": "drop"}, ("constant", "'sex'")),
    "duplicated text": ({**FEW, "k": FEW["sex"]}, {}, ("duplicate_columns", "'k'", "'sex'")),
    "duplicated numbers": ({**FEW, "k": FEW["height"]}, {}, ("duplicate_columns", "'k'", "'height'")),
    "class column twice": ({**FEW, "k": FEW["y"]}, {}, ("duplicate_columns", "'k'", "'y'")),
    "class as a feature": (FEW, {"features": "y,sex"}, ("duplicate_name", "'y'")),
    "class as a count": (FEW, {"counts": "y"}, ("duplicate_name", "'y'")),
    "10,000 classes": ({"y": [f"c{i}" for i in range(10_000)], "x": np.arange(1e4)}, {}, ("names_of_rows", "10000")),
    "class of numbers": ({**FEW, "y": TABLE["height"]}, {}, ("names_of_rows", "'y'")),
    "negative count": ({**FEW, "calls": [-1] * 12}, {"counts": "calls"}, ("out_of_range", "'calls', row 1")),
    "fractional count": ({**FEW, "calls": [0.5] * 12}, {"counts": "calls"}, ("not_whole", "'calls', row 1")),
    "large counts": ({**FEW, "calls": [2**52] * 12}, {"counts": "calls"}, ("too_large", "'calls'")),
    "identifier": ({**FEW, "id": [f"r{i}" for i in range(12)]}, {}, ("names_of_rows", "'id'", "12 levels")),
    "text among numbers": (
        {**FEW, "height": ["tall", *"123456789", "10", "11"]},
        {},
        ("not_a_number", "'height', row 1"),
    ),
    "text that is named as numbers": (FEW, {"reals": "sex"}, ("not_a_number", "'sex', row 1", "--reals")),
    "hole": ({**FEW, "sex": HOLES["sex"]}, {}, ("missing_values", "'sex'", "--missing mask")),
    "hole in the class": ({**FEW, "y": [None, *FEW["y"][1:]]}, {"missing": "mask"}, ("missing_values", "'y'")),
    "empty column": ({**FEW, "k": [None] * 12}, {"missing": "mask"}, ("no_data", "'k'")),
    "two kinds": (FEW, {"counts": "calls", "levels": "calls"}, ("conflicting_options", "--levels and --counts")),
    "kind of no feature": (FEW, {"counts": "calls", "features": "sex"}, ("unknown_label", "'calls'")),
    "kind of no column": (FEW, {"counts": "z"}, ("missing_column", "'z'")),
    "levels twice": (FEW, {"levels": ["sex", "sex=f,m"]}, ("duplicate_name", "'sex'")),
    "undeclared level": (FEW, {"levels": "sex=f,x"}, ("unknown_label", "'sex', row 2")),
    "undeclared class": (FEW, {"classes": "a,c"}, ("unknown_label", "'y', row 2")),
    "unclear counts": ({**FEW, "count": FEW["calls"]}, {}, ("unclear_counts", "--count")),
    "negative repeats": ({**FEW, "n": [-1] * 12}, {"count": "n"}, ("out_of_range", "'n', row 1")),
    "no repeats": ({**FEW, "n": [0] * 12}, {"count": "n"}, ("no_data", "'n'")),
    "labels of two features": (
        {**FEW, "u": ["v=p", "q"] * 6, "u=v": ["p", "q", "q"] * 4},
        {},
        ("duplicate_name", "'u=v=p'"),
    ),
    "option of regressions": (FEW, {"formula": "y ~ sex"}, ("unknown_option", "formula")),
}


@by_name(("table", "options", "expected"), REFUSED)
def test_tables_that_are_refused(table, options, expected):
    with raises(bz.InputError, *expected):
        read(Rows, table, **options)


OF_VECTORS = {
    "text": ({"y": ["a", "b"], "x": [1.5, 2], "k": ["u", "v"]}, {}, ("not_a_number", "'k'", "--features x")),
    "hole": ({"y": ["a", "b"], "x": [1.5, None]}, {}, ("missing_values", "'x'", "--missing drop")),
    "mask": ({"y": ["a", "b"], "x": [1.5, None]}, {"missing": "mask"}, ("wrong_type", "'mask'")),
    "counts": ({"y": ["a", "b"], "x": [1, 2]}, {"counts": "x"}, ("unknown_option", "counts")),
}


@by_name(("table", "options", "expected"), OF_VECTORS)
def test_tables_that_a_model_of_real_vectors_refuses(table, options, expected):
    with raises(bz.InputError, *expected):
        read(Vectors, table, **options)


def test_features_that_are_named_may_be_constant_or_equal():
    table = {**FEW, "k": ["q"] * 12, "again": FEW["height"]}
    notes = read(Rows, table, features="sex,height,calls,k,again").notes
    assert sum("'k' is constant" in note or "'again' holds the values" in note for note in notes) == 2


def test_a_column_name_that_occurs_twice_in_a_file_is_refused(written):
    with raises(bz.InputError, "duplicate_name", "'y'"):
        read(Rows, written("y,y,x\na,a,1\nb,b,2\n"))


# Canonical arrays


@pytest.mark.parametrize("source", ["data", "with_holes"])
def test_arrays_and_tables_are_read_back(source, request):
    arrays = request.getfixturevalue(source)
    assert INPUTS.is_canonical(arrays)
    same(INPUTS.canonical(arrays).arrays, arrays)
    same(read(Rows, INPUTS.table(arrays), **INPUTS.reading(arrays)), arrays)
    blank = INPUTS.blank({"class": np.array(["a", "b"])}, 3)
    assert [blank[kind].shape for kind in ("levels", "counts", "reals")] == [(3, 0)] * 3


@pytest.mark.parametrize("axis", INPUTS.coords)
def test_labels_in_another_order_are_the_same_data(with_holes, axis):
    order = np.arange(len(with_holes[axis]))[::-1]
    turned = INPUTS.relabelled(with_holes, axis, order)
    same(INPUTS.canonical(turned).arrays, turned)
    tables = INPUTS.table(turned), INPUTS.table(with_holes)
    same(*(dict(sorted(table.items())) for table in tables))
    same(INPUTS.relabelled(turned, axis, order), dict(with_holes))


CHANGED = {
    "code of another feature": ("levels", lambda a: a + 1, ("unknown_label", "'sex'")),
    "negative count": ("counts", lambda a: a - 1, ("out_of_range", "'calls'")),
    "unknown class": ("y", lambda a: a + 1, ("unknown_label", "'y'")),
    "fewer rows": ("y", lambda a: a[1:], ("wrong_shape",)),
    "name of two features": ("real", lambda a: np.array(["calls"]), ("duplicate_name", "'calls'")),
    "level of no feature": ("level", lambda a: np.array(["z", *a[1:]]), ("unknown_label", "'z'")),
    "label without a column": ("count", lambda a: a[:0], ("wrong_shape", "counts")),
}


@by_name(("name", "change", "expected"), CHANGED)
def test_arrays_that_do_not_fit_together_are_refused(data, name, change, expected):
    with raises(bz.InputError, *expected):
        read(Rows, {**data, name: change(data[name])})


def test_every_data_set_of_a_few_rows_is_gone_through(data):
    sets = [plain(rows) for rows in INPUTS.possible(data)]
    distinct = {(tuple(rows["y"]), tuple(map(tuple, rows["levels"]))) for rows in sets}
    assert len(sets) == len(distinct) == (2 * 2 * 2 * 3) ** 2
    assert np.isnan(sets[-1]["reals"]).all()
    assert Vectors.inputs.possible() is None
    assert len([*INPUTS.possible()]) == 6**4


# Files


@dataclass(frozen=True)
class Shares(BlockModel[Counts]):
    """Shares of the classes, whatever the features."""

    alpha: float = positive(1.0, "prior alpha")

    inputs = INPUTS
    dims: ClassVar = {"p": ("class",)}

    def declare(self, data):
        raise NotImplementedError

    compressed = predictive = likelihood = declare

    def statistics(self, data):
        return Counts(np.bincount(data["y"], minlength=len(data["class"])).astype(float))

    def block(self, stats):
        return Categorical(("p",), "y", np.full(len(stats.counts), self.alpha))

    def from_block(self, block):
        return self


@pytest.mark.parametrize("columns", [("sex",), ("calls",), ("height",), ("sex", "stage", "calls", "height")])
def test_a_saved_fit_holds_its_data_also_where_a_kind_is_absent(tmp_path, columns):
    options = {kind: name for kind, name in KINDS.items() if name in columns}
    data = read(Shares, {name: HOLES[name] for name in ("y", *columns)}, **options, missing="mask")
    path = bz.save(bz.fit(Shares(), data, method="exact"), tmp_path / "fit.nc")
    stored = Fit(bz.load(path, Shares)).data
    same(stored, data)
    assert stored.digest == data.digest == Data(dict(data)).digest


def test_chunks_need_declared_classes_and_levels(tmp_path):
    path = tmp_path / "rows.csv"
    pd.DataFrame({name: TABLE[name] for name in ("y", "sex", "height")}).to_csv(path, index=False)
    with raises(bz.InputError, "labels_must_be_given", "--classes"):
        [*read_chunks(Rows, path, 5)]
    with raises(bz.InputError, "labels_must_be_given", "--levels sex="):
        [*read_chunks(Rows, path, 5, classes="a,b")]
    declared = {"classes": "a,b", "levels": "sex=f,m"}
    chunks = [*read_chunks(Rows, path, 5, **declared)]
    at_once = read(Rows, path, **declared)
    assert np.concatenate([chunk["levels"] for chunk in chunks]).tolist() == at_once["levels"].tolist()


def test_whole_numbers_with_a_decimal_point_are_the_labels_of_the_fit(tmp_path):
    """A table with gaps has 2.0 for 2; another number is another label, and so is 02."""
    stages = np.array(["1", "2", "10"])
    rows = {
        "y": stages[np.arange(12) % 3],
        "sex": TABLE["sex"],
        "stage": np.repeat([1, 2], 6),
        "height": TABLE["height"],
    }
    data = read(Rows, rows, levels="stage")
    path = tmp_path / "new.csv"
    path.write_text("y,sex,stage,height\n10.0,f,1.0,3\n2.0,m,2.0,4\n1,f,1,5\n")
    new = read(Rows, path, new=True, like=data)
    assert new["class"][new["y"]].tolist() == ["10", "2", "1"]
    assert levels_by_feature(new)["stage"] == levels_by_feature(data)["stage"]
    assert [str(new["level"][code]) for code in new["levels"][:, 1]] == ["stage=1", "stage=2", "stage=1"]
    for label in ("2.5", "02"):
        path.write_text(f"y,sex,stage,height\n{label},f,1,3\n")
        with raises(bz.InputError, "unknown_label"):
            read(Rows, path, new=True, like=data)


def test_a_class_that_some_new_rows_lack_is_refused_with_what_to_do(tmp_path):
    """To mask is no way out: the column may be left out, and then all rows are classified."""
    data = read(Rows, TABLE, **KINDS)
    path = tmp_path / "new.csv"
    path.write_text("y,sex,urban,stage,calls,height\na,f,True,1,0,3\n,m,False,2,1,4\n")
    for missing in ("refuse", "mask"):
        with raises(bz.InputError, "missing_values", "leave the column out"):
            read(Rows, path, new=True, like=data, missing=missing)
        with raises(bz.InputError, "missing_values", "use --missing drop"):
            read(Rows, path, missing=missing, **KINDS)
    without = path.read_text().replace("y,", "").replace("\na,", "\n").replace("\n,", "\n")
    path.write_text(without)
    assert "y" not in read(Rows, path, new=True, like=data)
