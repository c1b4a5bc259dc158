"""Features of text: their levels, interactions, new rows, and the weights against pandas, least squares and R."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayeszoo as bz
from bayeszoo.data.inputs import BinaryRegression, Regression
from bayeszoo.data.inputs.features.levels import by_feature, products
from bayeszoo.data.read import read
from bayeszoo.data.table.cells import ALONE
from bayeszoo.model.parts.chunks import read_chunks
from tests.reading import by_name, model_of, plain, refusal, refuses
from tests.refusals import raises

IRIS = Path(__file__).resolve().parents[1] / "models" / "data" / "iris.csv"
Line = model_of(Regression("y"))
Linear = bz.find("linear_regression")

COLOURS = ["red", "blue", "red", "green", "blue", "red"]
TABLE = {"y": [1.0, 2.0, 4.0, 3.0, 5.0, 2.0], "colour": COLOURS, "a": [1.0, 2.0, 3.0, 5.0, 4.0, 7.0]}


def cars(rows=200, seed=3):
    """Make cars whose consumption depends on weight, origin and both, with 20% of them rare."""
    rng = np.random.default_rng(seed)
    origin = rng.choice(["usa", "europe", "japan"], rows, p=[0.8, 0.15, 0.05])
    weight, gears = rng.normal(3000, 600, rows), rng.choice([3, 4, 5], rows)
    slope = np.select([origin == "usa", origin == "europe"], [-0.007, -0.009], -0.012)
    mpg = 44 + slope * weight + gears + rng.normal(0, 2, rows)
    return pd.DataFrame({"mpg": mpg, "weight": weight, "origin": origin, "gears": gears})


# What is read


def test_text_becomes_columns_against_the_first_level():
    data = read(Line, TABLE)
    assert data["feature"].tolist() == ["colour[green]", "colour[red]", "a"]
    expected = pd.get_dummies(pd.DataFrame(TABLE)[["colour", "a"]], columns=["colour"], drop_first=True, dtype=float)
    assert np.array_equal(data["X"], expected[["colour_green", "colour_red", "a"]])
    assert data.notes == ("column 'colour': levels blue, green, red; blue is the reference",)
    assert data.columns == {"y": "y", "X": "colour, a"}


ASKED = {
    "a mapping": {"colour": ["red", "green", "blue"]},
    "text": "colour=red,green,blue",
    "texts": ["colour=red, green,blue"],
}


@by_name(("levels",), {name: (levels,) for name, levels in ASKED.items()})
def test_levels_are_in_the_order_that_is_asked_for(levels):
    data = read(Line, TABLE, levels=levels)
    assert data["feature"].tolist() == ["colour[green]", "colour[blue]", "a"]
    assert data["X"][:, 0].tolist() == [c == "green" for c in COLOURS]
    assert data.notes == ("column 'colour': levels red, green, blue; red is the reference",)


def test_levels_may_be_of_numbers_and_may_never_occur():
    data = read(Line, {**TABLE, "colour": [4, 6, 4, 8, 6, 4]}, levels="colour=8,4,6,2")
    assert data["feature"].tolist() == ["colour[4]", "colour[6]", "colour[2]", "a"]
    assert data["X"][:, :3].tolist() == [[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 0], [0, 1, 0], [1, 0, 0]]
    assert data.notes[1] == "column 'colour': 2 never occurs"


def test_numbers_with_few_values_and_0_and_1_stay_numbers():
    data = read(Line, {**TABLE, "colour": [0, 1, 0, 1, 1, 0]})
    assert (data["feature"].tolist(), data.notes, data.reading.get("coding")) == (["colour", "a"], (), None)


def test_truth_values_are_levels_from_memory_and_from_text():
    for colour in ([True, False, True, False, True, True], ["True", "False", "True", "False", "True", "True"]):
        data = read(Line, {**TABLE, "colour": colour})
        assert data["feature"].tolist() == ["colour[True]", "a"]
        assert data["X"][:, 0].tolist() == [1, 0, 1, 0, 1, 1]


def test_missing_levels_are_refused_or_dropped_and_levels_without_rows_with_them():
    table = {**TABLE, "colour": ["red", "NA", "red", "green", "", "red"], "a": [1, 2, 3, None, 4, 7]}
    refused = refusal(Line, table)
    assert (refused.code, refused.column, [*refused.rows]) == ("missing_values", "colour", [2, 5])
    assert "--missing drop" in str(refused)
    assert "--levels colour=NA,green,red" in str(refused)
    data = read(Line, {**table, "b": [1, 2, 3, 4, 5, 6]}, missing="drop", features="colour,b")
    assert (data["feature"].tolist(), data["y"].tolist()) == (["colour[red]", "b"], [1, 4, 3, 2])
    only_red = read(Line, table, missing="drop")
    assert (only_red["feature"].tolist(), only_red["X"].tolist()) == (["a"], [[1], [3], [7]])
    assert only_red.notes[0] == "column 'colour' has one level, red: nothing is compared with it"


def test_a_word_that_stands_for_a_missing_value_is_a_level_where_it_is_asked_for():
    table = {**TABLE, "colour": ["none", "some", "none", "some", "none", "some"]}
    assert "3 missing values" in str(refusal(Line, table))
    assert read(Line, table, levels="colour=none,some")["feature"].tolist() == ["colour[some]", "a"]


def test_a_level_of_one_row_and_names_that_differ_in_case_are_said():
    data = read(Line, {**TABLE, "colour": ["red", "Red", "red", "green", "Red", " red "]})
    assert data["feature"].tolist() == ["colour[green]", "colour[red]", "a"]
    assert data["X"].sum(axis=0).tolist()[:2] == [1, 3]
    assert "column 'colour': 'Red', 'red' are taken for different levels" in data.notes


def test_interactions_are_products_of_the_columns():
    data = read(Line, {**TABLE, "b": [0.5, 1, 2, 3, 4, 1]}, interactions=["colour:a", "a:b"])
    assert data["feature"].tolist()[3:] == ["b", "colour[green]:a", "colour[red]:a", "a:b"]
    X = dict(zip(data["feature"].tolist(), data["X"].T, strict=True))
    assert np.array_equal(X["colour[red]:a"], X["colour[red]"] * X["a"])
    assert np.array_equal(X["a:b"], X["a"] * X["b"])


def test_products_and_features_are_told_by_names():
    names = ["a", "b:c", "s[x:y]", "a:b:c", "a:b:c:s[x:y]", "b", "t[(0, 1]]", "t[(0, 1]]:a"]
    assert products(names) == {3: [0, 1], 4: [0, 1, 2], 7: [6, 0]}
    assert by_feature(["a", "s[x]", "s[y]", "a:s[x]", "a:s[y]"]) == {"a": [0], "s": [1, 2], "a:s": [3, 4]}


BRACKETS = {
    "y": [1.0, 2, 3, 4, 5, 7, 6, 5, 4],
    "sh[ape": ["p[q", "r]", "[s]"] * 3,
    "x[1]": [1.0, 2, 3, 5, 4, 7, 6, 9, 8],
    "g": list("uuuvvvwww"),
}


@pytest.mark.parametrize("how", [{"target": "y"}, {"formula": "y ~ `sh[ape` + g"}])
def test_names_of_features_and_levels_may_have_brackets(how):
    data = bz.read(Linear, BRACKETS, **how)
    tree = bz.fit(Linear.weak(data), data, "exact", seed=1)
    frame = bz.contrasts(tree)
    pairs = frame.loc[frame["quantity"] == "sh[ape", ["group", "against"]].values.tolist()
    assert pairs == [["p[q", "[s]"], ["r]", "[s]"], ["r]", "p[q"]]
    with raises(bz.InputError, "new_rows_unknown"):
        bz.predict(tree, 1)


@pytest.mark.parametrize("how", [{"target": "y"}, {"formula": "y ~ g + `g[x]`"}])
def test_a_level_with_brackets_makes_no_column_of_another_feature(how):
    rows = {
        "y": [1.0, 2, 4, 3, 5, 2],
        "g": ["u", "x][a", "u", "x][a", "u", "u"],
        "g[x]": ["z", "a", "a", "z", "z", "z"],
    }
    levels = {"g": ["u", "x][a"], "g[x]": ["a", "z"]}
    data = bz.read(Linear, rows, levels=levels, **how)
    frame = bz.contrasts(bz.fit(Linear.weak(data), data, "exact", seed=1))
    assert frame[["quantity", "group", "against"]].values.tolist() == [["g", "x][a", "u"], ["g[x]", "z", "a"]]


def test_subsets_of_features_whose_names_have_brackets_are_of_whole_features():
    data = bz.read(Linear, BRACKETS, target="y", interactions="sh[ape:x[1]")
    chosen = bz.subsets(Linear(), data)
    assert {name for model in chosen.values() for name in model.features} == {"sh[ape", "x[1]", "g", "sh[ape:x[1]"}
    columns = {name: model.used(dict(data)).tolist() for name, model in chosen.items()}
    assert columns["sh[ape"] == [0, 1]
    assert columns["sh[ape, x[1], sh[ape:x[1]"] == [0, 1, 2, 5, 6]


AS_NAMES = "column 'id' has 6 levels in 6 rows, as names of the rows have; leave it out: --features colour,a"
MOST = "column 'id' has 4 levels in 6 rows, as names of the rows have; leave it out: --features colour,a"
PRODUCT = "; name an interaction as a:b, of features that are used"
WRITE = "; write colour=red,green,blue, the reference first"
REFUSED = {
    "identifier": ({**TABLE, "id": list("abcdef")}, {}, AS_NAMES),
    "chosen identifier": ({**TABLE, "id": list("abcdef")}, {"features": ["colour", "a", "id"]}, AS_NAMES),
    "percentages": (
        {**TABLE, "id": ["1%", "2%", "2.5%", "4%", "5%", "7%"]},
        {},
        f"column 'id' has 6 levels in 6 rows, as names of the rows have; {ALONE}",
    ),
    "nearly": ({**TABLE, "id": list("abccdd")}, {}, MOST),
    "misprint": (
        {**TABLE, "b": ["1", "2", "x", "4", "5", "6"]},
        {},
        "column 'b', row 3: 'x' is not a number; choose columns of numbers: --features a",
    ),
    "decimal comma": (
        {**TABLE, "b": ["1,5", "2,5", "1,5", "2,5", "1,5", "2,5"]},
        {"features": "b"},
        "column 'b', row 1: '1,5' is not a number (and 5 more: rows 2, 3, 4, 5, ...); use --decimal ','",
    ),
    "unknown level": (
        TABLE,
        {"levels": "colour=red,blue"},
        "column 'colour', row 4: level 'green' is not among the 2 given; add it to --levels",
    ),
    "no feature": (TABLE, {"levels": "size=S,M"}, "levels are given for 'size', which is no feature; leave them out"),
    "no equals": (TABLE, {"levels": "red,blue"}, "levels: 'red,blue'" + WRITE),
    "twice": (TABLE, {"levels": ["a=1,2", "a=2,1"]}, "levels of 'a' are given twice" + WRITE),
    "a level twice": (TABLE, {"levels": "colour=red,red"}, "levels of 'colour': 'red' appears twice"),
    "unknown factor": (TABLE, {"interactions": "a:b"}, "interaction 'a:b' has no feature 'b'" + PRODUCT),
    "square": (TABLE, {"interactions": "a:a"}, "interaction 'a:a' has 'a' twice; use --set degree=2 for powers"),
    "one level": (
        {"y": [1, 2, 3], "colour": ["red"] * 3},
        {},
        "there is no feature, or each has one level; give one that differs between rows",
    ),
    "called alike": (
        {**TABLE, "colour[red]": [1, 2, 3, 4, 5, 6]},
        {},
        "two features would be called 'colour[red]'; rename a column of the table",
    ),
    "no product": (
        {**TABLE, "b": [1, 2, 3, 4, 5, 6], "a:b": [1, 1, 1, 1, 1, 1]},
        {},
        "column 'a:b' is not the product of 'a' and 'b', as its name says; rename it",
    ),
}
test_tables_that_are_refused = refuses(Line, REFUSED)


# Rows to be predicted

FIT = read(Line, {**TABLE, "b": [0, 1, 0, 1, 1, 0]}, levels="colour=red,green,blue", interactions="colour:a")


def test_new_rows_are_coded_as_the_fit_was():
    new = read(Line, {"a": [2, 3], "b": [1, 1], "colour": ["blue", "red"]}, new=True, like=FIT)
    assert new["feature"].tolist() == FIT["feature"].tolist()
    assert plain(new)["X"] == [[0, 1, 2, 1, 0, 2], [0, 0, 3, 1, 0, 0]]
    assert new.notes == ()
    again = read(Line, FIT, new=True, like=FIT)
    assert np.array_equal(again["X"], FIT["X"])
    coded = read(Line, dict(zip(FIT["feature"].tolist(), FIT["X"].T, strict=True)), new=True, like=FIT)
    assert np.array_equal(coded["X"], FIT["X"])


ROW = {"a": [2, 3], "b": [1, 1], "colour": ["blue", "red"]}
NEW = {
    "unknown": (
        {**ROW, "colour": ["red", "pink"]},
        {},
        "column 'colour', row 2: level 'pink' is not among the 3 of the fit; leave it out, or fit again with it",
    ),
    "missing": ({**ROW, "colour": ["red", ""]}, {}, "column 'colour': 1 missing value (row 2); use --missing drop"),
    "lacking": ({"a": [1], "b": [1]}, {}, "there is no column 'colour', which the fit has"),
    "other levels": (
        ROW,
        {"levels": "colour=blue,red,green"},
        "levels must be those of the fit, in their order; leave out --levels",
    ),
}
test_new_rows_that_are_refused = refuses(Line, NEW, new=True, like=FIT)


def test_chunks_need_levels_beforehand(tmp_path):
    path = tmp_path / "cars.csv"
    cars(50).to_csv(path, index=False)
    error = refusal_of_chunks(path, target="mpg")
    assert error.endswith("must be known before the first chunk; name them with --levels origin=...")
    levels = {"origin": ["usa", "europe", "japan"]}
    parts = [part["X"] for part in read_chunks(Line, path, 20, target="mpg", levels=levels)]
    assert np.array_equal(np.vstack(parts), read(Line, path, target="mpg", levels=levels)["X"])


def refusal_of_chunks(path, **options):
    with pytest.raises(bz.InputError) as caught:
        list(read_chunks(Line, path, 20, **options))
    return str(caught.value)


def test_a_binary_outcome_has_levels_of_its_features_too():
    Yes = model_of(BinaryRegression("y"))
    data = read(Yes, {**TABLE, "y": ["no", "yes", "no", "yes", "yes", "no"]}, positive="yes")
    assert (data["y"].tolist(), data["feature"].tolist()) == ([0, 1, 0, 1, 1, 0], ["colour[green]", "colour[red]", "a"])


# What is fitted


def test_the_mle_on_species_is_that_of_R():
    """R: lm(Sepal.Length ~ Species), iris: 5.006, 0.930, 1.582."""
    data = read(Linear, IRIS, target="sepal length", features="species")
    tree = bz.fit(Linear.weak(data), data, method="mle", seed=1)
    w = tree["posterior"]["w"].values[0, 0]
    shares = data["X"].mean(axis=0)  # the intercept is at the mean of the columns
    assert np.allclose([w[0] - shares @ w[1:], *w[1:]], [5.006, 0.930, 1.582], atol=5e-4)
    assert tree["posterior"]["term"].values.tolist() == ["(intercept)", "species[versicolor]", "species[virginica]"]


def test_the_mle_with_interactions_is_least_squares_about_the_means():
    frame = cars()
    data = read(Linear, frame, target="mpg", interactions="weight:origin,weight:gears")
    tree = bz.fit(Linear.weak(data), data, method="mle", seed=1)
    ours = dict(zip(tree["posterior"]["term"].values.tolist(), tree["posterior"]["w"].values[0, 0], strict=True))
    dummies = pd.get_dummies(frame["origin"], drop_first=True, dtype=float)
    about = pd.concat([frame[["weight", "gears"]], dummies], axis=1)
    about = about - about.mean()
    design = np.column_stack(
        [
            np.ones(len(frame)),
            about["weight"],
            about["japan"],
            about["usa"],
            about["gears"],
            about["weight"] * about["japan"],
            about["weight"] * about["usa"],
            about["weight"] * about["gears"],
        ]
    )
    expected = np.linalg.lstsq(design, frame["mpg"], rcond=None)[0]
    names = ["(intercept)", "weight", "origin[japan]", "origin[usa]", "gears"]
    names += ["weight:origin[japan]", "weight:origin[usa]", "weight:gears"]
    assert np.allclose([ours[name] for name in names], expected, rtol=1e-6)


def test_predictions_do_not_depend_on_the_reference_at_the_mle_and_are_least_squares():
    frame, predicted = cars(), []
    for levels in (None, "origin=usa,japan,europe"):
        data = read(Linear, frame, target="mpg", levels=levels, interactions="weight:origin")
        tree = bz.fit(Linear.weak(data), data, method="mle", seed=1)
        predicted.append(bz.predict(tree, frame.head(20))["mean"].to_numpy())
    dummies = pd.get_dummies(frame["origin"], dtype=float)
    slopes = dummies.mul(frame["weight"], axis=0)
    design = np.column_stack([dummies, slopes, frame["gears"]])
    expected = design @ np.linalg.lstsq(design, frame["mpg"], rcond=None)[0]
    assert np.allclose(predicted[0], expected[:20], rtol=1e-8)
    assert np.allclose(predicted[1], expected[:20], rtol=1e-8)


def test_the_prior_of_a_level_does_not_depend_on_how_rare_it_is_nor_that_of_an_interaction_on_the_origin():
    rare, common = (np.repeat(["a", "b"], [200 - n, n]) for n in (1, 100))
    x = np.tile([1.0, 2.0, 3.0, 6.0], 50)
    scales = []
    for kind, moved in ((rare, 0), (common, 0), (rare, 1990)):
        table = {"y": x, "kind": kind, "x": x + moved}
        scales.append(Linear.weak(read(Linear, table, interactions="kind:x")).scale)
    assert scales[0] == scales[1] == scales[2]
    assert np.allclose(scales[0], [0.5, np.std(x, ddof=1), np.std(x, ddof=1) / 2])


def test_the_evidence_of_interactions_does_not_depend_on_the_origin_of_a_feature():
    evidences = []
    for origin in (0.0, 1e5):
        frame = cars().assign(weight=lambda frame, origin=origin: frame["weight"] + origin)
        model = Linear.weak(data := read(Linear, frame, target="mpg", interactions="weight:origin"))
        evidences.append(model.log_evidence(model.statistics(data)))
    assert evidences[0] == pytest.approx(evidences[1], abs=1e-6)


def test_a_field_may_name_a_feature_with_all_its_levels():
    data = read(Linear, cars(), target="mpg", interactions="weight:origin")
    named = lambda *features: Linear(features=features).coords(data)["term"].tolist()[1:]  # noqa: E731
    assert named("origin", "gears") == ["origin[japan]", "origin[usa]", "gears"]
    assert named("weight:origin", "origin[usa]") == ["weight:origin[japan]", "weight:origin[usa]", "origin[usa]"]
    with raises(bz.InputError, "missing_column", "'orign'"):
        named("orign")


def test_subsets_keep_levels_together_and_interactions_with_their_features():
    data = read(Linear, cars(), target="mpg", interactions="weight:origin")
    names = list(bz.subsets(Linear.weak(data), data))
    mains = ["(intercept)", "weight", "origin", "gears", "weight, origin", "weight, gears", "origin, gears"]
    with_product = ["weight, origin, weight:origin", "weight, origin, gears, weight:origin"]
    assert sorted(names) == sorted([*mains, "weight, origin, gears", *with_product])
