"""Groups of a hierarchical model: from one row per group or from raw rows, with unique names of groups."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bayeszoo.cli.options import TableOptions
from bayeszoo.data.by import read_by
from bayeszoo.data.inputs import GroupEvents, GroupMeans, GroupTrials, places_of
from bayeszoo.data.read import Data, read
from bayeszoo.errors import InputError
from tests.reading import model_of, plain, refuses
from tests.refusals import raises

DATA = Path(__file__).parent.parent / "models" / "data"
Means, Trials, Events = model_of(GroupMeans()), model_of(GroupTrials()), model_of(GroupEvents())
KINDS = pytest.mark.parametrize("model", [Means, Trials, Events])

SCHOOLS = {"school": ["A", "B", "C"], "effect": [28, 8, -3], "se": [15, 10, 16]}
HITS = {"player": ["Santo", "Alvis", "Scott"], "hits": [11, 7, 10], "at_bats": [45, 45, 40]}
PUMPS = {"pump": [3, 1, 2], "failures": [5, 1, 14], "hours": [94.3, 15.7, 126.0]}
COUNTED, OBSERVED = {"successes": "hits", "trials": "at_bats"}, {"column": "failures", "exposure": "hours"}
WARDS = {"ward": ["w", "v", "w", "w"], "died": ["no", "yes", "yes", "no"]}
SUBJECTS = {"subject": [308, 309, 308, 309, 308], "ms": [250.0, 222.0, 259.0, 205.0, 251.0]}

NAMED = "column {!r} names the groups".format
UNNAMED = "no column names the groups: they are called by the numbers of their rows"
DROP = "; use --missing drop"
RENAME = ", or write another name for such a group"
WHICH = "; name the column of groups with --group"


def last(table, name, value):
    """Return a table whose last entry of a column is another."""
    return {**table, name: [*table[name][:-1], value]}


# A row a group


def test_estimates_come_with_their_standard_errors():
    data = read(Means, SCHOOLS)
    assert plain(data) == {"y": [28.0, 8.0, -3.0], "se": [15.0, 10.0, 16.0], "group": ["A", "B", "C"]}
    assert data.columns == {"y": "effect", "se": "se", "group": "school"}
    assert data.notes == (NAMED("school"),)
    assert data.rows == 3
    others = pd.DataFrame({"d": SCHOOLS["effect"], "e": SCHOOLS["se"], "town": "x", "id": SCHOOLS["school"]})
    assert read(Means, others, column="d", se="e", group="id") == data
    assert plain(GroupMeans().in_units(data, -2.0, 1.0))["y"] == [-55.0, -15.0, 7.0]
    assert plain(GroupMeans().in_units(data, -2.0, 1.0))["se"] == [30.0, 20.0, 32.0]


def test_successes_come_with_their_trials():
    data = read(Trials, HITS, **COUNTED)
    assert plain(data) == {"successes": [11, 7, 10], "trials": [45, 45, 40], "group": HITS["player"]}
    assert data.columns == {"successes": "hits", "trials": "at_bats", "group": "player"}
    assert {data["successes"].dtype, data["trials"].dtype} == {np.dtype(np.int64)}


def test_events_come_with_their_exposure():
    data = read(Events, PUMPS, **OBSERVED, group="pump")
    assert plain(data) == {"y": [5, 1, 14], "exposure": [94.3, 15.7, 126.0], "group": ["3", "1", "2"]}
    assert data.notes == ()
    alone = read(Events, {"y": [5, 1]})
    assert plain(alone) == {"y": [5, 1], "exposure": [1.0, 1.0], "group": ["1", "2"]}
    assert alone.notes == (UNNAMED, "no exposure is given: each row of the table counts as 1 (--exposure)")


def test_columns_that_are_called_as_the_arrays_are_used():
    for model, arrays in [
        (Means, {"y": [1.0, 2.0], "se": [0.5, 0.5], "group": ["b", "a"]}),
        (Trials, {"successes": [0, 2], "trials": [3, 2], "group": ["b", "a"]}),
        (Events, {"y": [0, 2], "exposure": [0.5, 1.5], "group": ["b", "a"]}),
    ]:
        data = read(model, arrays | {"text": ["p", "q"]})
        assert plain(data) == arrays
        assert data.notes == ()
        assert read(model, Data(data)) == data


def test_groups_without_names_are_called_by_their_rows():
    data = read(Means, {"y": [1.0, 2.0, None], "se": [1.0, 1.0, 1.0]}, missing="drop")
    assert data["group"].tolist() == ["1", "2"]
    assert data.notes == (UNNAMED, "1 row with missing values dropped (row 3)")
    first_missing = read(Means, {"y": [None, 2.0], "se": [1.0, 1.0]}, missing="drop")
    assert first_missing["group"].tolist() == ["2"]


def test_a_column_with_a_number_in_it_is_not_taken_for_names():
    mixed = {"site": ["2", "2b", "3"], "y": [1.0, 2.0, 3.0], "se": [1.0, 1.0, 1.0]}
    assert read(Means, mixed)["group"].tolist() == ["1", "2", "3"]
    assert read(Means, mixed, group="site")["group"].tolist() == mixed["site"]


def test_what_is_remarkable_about_groups_is_said():
    names = {"school": ["A", "a ", "B"]}
    assert "column 'school': 'A', 'a ' are taken for different groups" in read(Means, SCHOOLS | names).notes
    single = read(Means, {"y": [1.0], "se": [1.0], "group": ["x"]})
    assert single.notes == ("there is one group only: how much groups differ is known from the prior alone",)
    never = read(Trials, {"successes": [0, 1, 0], "trials": [0, 2, 0], "group": ["x", "y", "z"]})
    assert never["trials"].tolist() == [0, 2, 0]
    assert never.notes == ("groups without trials, estimated from the other groups: x, z",)


# Raw rows


def test_the_means_of_raw_rows_have_the_standard_errors_of_pandas():
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"g": rng.permutation(np.repeat(["b", "c", "a"], [2, 5, 9])), "x": 1e8 + rng.normal(size=16)})
    data = read(Means, table, group="g", column="x")
    by = table.groupby("g", sort=False)["x"]
    assert data["group"].tolist() == list(by.groups) == list(dict.fromkeys(table["g"]))
    np.testing.assert_allclose(data["y"], by.mean(), rtol=1e-14)
    np.testing.assert_allclose(data["se"], by.sem(), rtol=1e-7)  # pandas' own digits at 1e8
    np.testing.assert_allclose(data["se"], read(Means, table.assign(x=table["x"] - 1e8), group="g")["se"], rtol=1e-12)
    (note,) = data.notes
    assert note.startswith("column 'x': the mean of the n rows of each group (16 rows, 3 groups, least n 2), and its")


def test_labels_of_groups_may_be_numbers():
    data = read(Means, SUBJECTS, group="subject")
    assert data["group"].tolist() == ["308", "309"]
    assert data.columns == {"y": "ms", "group": "subject"}


def test_single_trials_are_counted():
    data = read(Trials, WARDS, group="ward", positive="yes")
    assert plain(data) == {"successes": [1, 1], "trials": [3, 1], "group": ["w", "v"]}
    assert data.notes == (
        "column 'died': 'no' is 0, 'yes' is 1",
        "each row is a trial, counted by group: 4 rows, 2 groups",
    )
    numbers = read(Trials, {"group": WARDS["ward"], "z": [0, 1, 1, 0]})
    assert plain(numbers) == plain(data)
    without = read(Trials, {"ward": ["w", "v", "u", "w"], "z": [None, 1, None, 0]}, group="ward", missing="drop")
    assert plain(without) == {"successes": [1, 0], "trials": [1, 1], "group": ["v", "w"]}


def test_rows_of_one_group_are_added_up_where_a_column_is_said_to_name_it():
    twice = {"shift": ["d", "n", "d"], "hits": [1, 2, 3], "of": [4, 5, 6], "t": [0.5, 1.0, 0.25]}
    trials = read(Trials, twice, successes="hits", trials="of", group="shift")
    assert plain(trials) == {"successes": [4, 2], "trials": [10, 5], "group": ["d", "n"]}
    events = read(Events, twice, column="hits", exposure="t", group="shift")
    assert plain(events) == {"y": [4, 2], "exposure": [0.75, 1.0], "group": ["d", "n"]}
    assert events.notes == trials.notes == ("the rows of each group are added up: 3 rows, 2 groups",)
    assert read(Events, twice, column="hits", group="shift")["exposure"].tolist() == [2.0, 1.0]


def test_a_hundred_thousand_groups_are_read_row_by_row():
    names = np.arange(100_000).astype(str)
    data = read(Trials, {"group": np.tile(names, 2), "z": np.repeat([0, 1], 100_000)}, column="z")
    assert (data["trials"] == 2).all()
    assert (data["successes"] == 1).all()
    assert (data["group"] == names).all()


# What is refused

AGAIN = "column {!r}, row 3: {!r} is the name of an earlier group too".format
SAME = "; give one estimate and standard error a group"
SE_OR_ROWS = "; name the column of standard errors with --se, or of the group of each row with --group"
COUNTS_OR_ROWS = (
    "; name the columns of counts with --successes and --trials; or of the group of each trial with --group"
)
TOGETHER = "successes and trials go together, and with neither column nor positive"
SINGLE = "column 'subject': groups of one row (a standard error needs two): 309, 310"
LEAVE = "; leave them out, or name the column of standard errors with --se"
FLAT = "column 'ms': all rows of a group are equal, and the standard error is 0: 309"
FLAT += "; leave such groups out, or give --se"

REFUSED_MEANS = {
    "zero": (last(SCHOOLS, "se", 0), {}, "column 'se', row 3: 0 is not > 0"),
    "negative": (last(SCHOOLS, "se", -1), {}, "column 'se', row 3: -1 is not > 0"),
    "missing error": (last(SCHOOLS, "se", None), {}, "column 'se': 1 missing value (row 3)" + DROP),
    "missing estimate": (last(SCHOOLS, "effect", None), {}, "column 'effect': 1 missing value (row 3)" + DROP),
    "text": (last(SCHOOLS, "effect", "x"), {"column": "effect"}, "column 'effect', row 3: 'x' is not a number"),
    "no name": (last(SCHOOLS, "school", None), {}, "column 'school': 1 missing value (row 3)" + DROP),
    "NA": (last(SCHOOLS, "school", "NA"), {}, "column 'school': 1 missing value (row 3)" + DROP + RENAME),
    "twice": (last(SCHOOLS, "school", "A"), {"group": "school"}, AGAIN("school", "A") + SAME),
    "twice, not said": (last(SCHOOLS, "school", "A"), {}, AGAIN("school", "A") + WHICH),
    "no errors": ({"a": ["x"], "b": [1.0]}, {}, "the table has columns 'a', 'b'" + SE_OR_ROWS),
    "other errors": (SCHOOLS, {"se": "s"}, "the table has no column 's'; its columns are 'school', 'effect', 'se'"),
    "one column": (
        SCHOOLS, {"group": "se"}, "column 'se' cannot hold both the names of the groups and the standard errors"
    ),
    "both": (
        SCHOOLS, {"group": "school", "column": "school"},
        "column 'school' cannot hold both the outcomes and the names of the groups",
    ),
    "single rows": (
        {"subject": [308, 309, 308, 310], "ms": [1.0, 2.0, 3.0, 4.0]}, {"group": "subject"}, SINGLE + LEAVE
    ),
    "equal rows": ({"subject": [308, 309, 308, 309], "ms": [1.0, 0.1, 3.0, 0.1]}, {"group": "subject"}, FLAT),
    "dates": (
        {"group": pd.to_datetime(["2020-01-01"]), "y": [1.0], "se": [1.0]}, {}, "column 'group' holds dates"
    ),
}  # fmt: skip
test_tables_of_estimates_that_are_refused = refuses(Means, REFUSED_MEANS)

REFUSED_TRIALS = {
    "more": (last(HITS, "hits", 41), COUNTED, "column 'hits', row 3: 41 successes are more than 40 trials"),
    "fraction": (last(HITS, "hits", 1.5), COUNTED, "column 'hits', row 3: 1.5 is not a whole number"),
    "negative": (
        last(HITS, "at_bats", -1), COUNTED, "column 'at_bats', row 3: -1 is negative; counts must be >= 0"
    ),
    "missing": (last(HITS, "at_bats", None), COUNTED, "column 'at_bats': 1 missing value (row 3)" + DROP),
    "twice": (last(HITS, "player", "Santo"), COUNTED, AGAIN("player", "Santo") + WHICH),
    "no trials": (
        HITS, {"successes": "hits"},
        "the table has columns 'player', 'hits', 'at_bats'; name the column of trials with --trials",
    ),
    "no successes": (
        HITS, {"trials": "at_bats"},
        "the table has columns 'player', 'hits', 'at_bats'; name the column of successes with --successes",
    ),
    "neither": (HITS, {}, "the table has columns 'player', 'hits', 'at_bats'" + COUNTS_OR_ROWS),
    "none at all": (
        {"successes": [0, 0], "trials": [0, 0]}, {}, "column 'trials' adds up to 0: there are no observations"
    ),
    "too many": ({"successes": [0, 0], "trials": [2**53 - 1, 1]}, {}, "column 'trials' has a sum of 2**53 or more"),
    "counts and trials": (HITS, {**COUNTED, "positive": "yes"}, TOGETHER),
    "labels": (WARDS, {"group": "ward"}, "column 'died' holds yes/no: use --positive yes"),
    "no group": (WARDS, {"positive": "yes"}, "the table has columns 'ward', 'died'" + COUNTS_OR_ROWS),
    "neither 0 nor 1": ({"group": ["a"], "z": [2]}, {}, "column 'z', row 1: 2 is neither 0 nor 1"),
}  # fmt: skip
test_tables_of_trials_that_are_refused = refuses(Trials, REFUSED_TRIALS)

REFUSED_EVENTS = {
    "fraction": (last(PUMPS, "failures", 0.5), OBSERVED, "column 'failures', row 3: 0.5 is not a whole number"),
    "negative": (
        last(PUMPS, "failures", -1), OBSERVED, "column 'failures', row 3: -1 is negative; counts must be >= 0"
    ),
    "never observed": (last(PUMPS, "hours", 0), OBSERVED, "column 'hours', row 3: 0.0 is not > 0"),
    "missing": (last(PUMPS, "hours", None), OBSERVED, "column 'hours': 1 missing value (row 3)" + DROP),
    "twice": ({"site": ["a", "b", "a"], "y": [1, 2, 3]}, {}, AGAIN("site", "a") + WHICH),
    "which": (
        {"y_1": [1], "y_2": [2]}, {}, "the table has columns 'y_1', 'y_2'; say which with --column"
    ),
    "both": (
        PUMPS, {**OBSERVED, "exposure": "failures"},
        "column 'failures' cannot hold both the outcomes and the exposure",
    ),
    "sum": ({"y": [2**53 - 1, 1]}, {}, "column 'y' has a sum of 2**53 or more"),
}  # fmt: skip
test_tables_of_events_that_are_refused = refuses(Events, REFUSED_EVENTS)


# Rows to be predicted


@pytest.mark.parametrize(
    ("model", "table", "options", "new", "expected"),
    [
        (Means, SCHOOLS, {}, {"school": ["C", "D"], "se": [1, 2]}, {"se": [1.0, 2.0]}),
        (Means, SCHOOLS, {}, {"school": ["C", "D"], "se": [1, 2], "effect": [5, 6]}, {"y": [5, 6], "se": [1, 2]}),
        (Trials, HITS, COUNTED, {"player": ["Scott", "D"], "at_bats": [9, 0]}, {"trials": [9, 0]}),
        (
            Trials, WARDS, {"group": "ward", "positive": "yes"}, {"ward": ["w", "x"], "trials": [9, 1]},
            {"trials": [9, 1]},
        ),
        (
            Trials, WARDS, {"group": "ward", "positive": "yes"}, {"ward": ["w", "x"], "died": ["no", "no"]},
            {"successes": [0, 0], "trials": [1, 1]},
        ),
        (
            Events, PUMPS, OBSERVED | {"group": "pump"}, {"pump": [2, 9], "failures": [1, 0], "hours": [3, 4]},
            {"y": [1, 0], "exposure": [3.0, 4.0]},
        ),
        (Events, PUMPS, OBSERVED | {"group": "pump"}, {"pump": [2, 9], "hours": [3, 4]}, {"exposure": [3.0, 4.0]}),
    ],
)  # fmt: skip
def test_rows_to_be_predicted_may_lack_the_outcome_and_be_of_new_groups(model, table, options, new, expected):
    fit = read(model, table, **options)
    data = read(model, new, new=True, like=fit)
    names = next(iter(new.values()))
    assert plain(data) == {**expected, "group": list(map(str, names))}
    assert f"new groups, without rows in the fit: {names[1]}" in data.notes
    assert model.inputs.has_outcome(data) == (len(expected) == 2)
    assert model.inputs.size(data) == data.rows == 2
    assert read(model, data, new=True, like=fit) == data


def test_new_rows_have_the_columns_of_the_fit_where_these_are_called_otherwise_than_the_arrays():
    named = model_of(GroupTrials("wins"))
    fit = read(named, HITS, **COUNTED)
    assert fit.columns == {"successes": "hits", "trials": "at_bats", "group": "player"}
    new = read(named, {"town": ["x"], "player": ["Scott"], "at_bats": [3], "hits": [2]}, new=True, like=fit)
    assert plain(new) == {"wins": [2], "trials": [3], "group": ["Scott"]}


def test_rows_to_be_predicted_find_their_groups_in_the_fit():
    fit = read(Trials, HITS, **COUNTED)
    data = read(Trials, {"player": ["Scott", "Ruth", "Santo"], "trials": [1, 2, 3]}, new=True, like=fit)
    assert places_of(data["group"], fit["group"]).tolist() == [2, -1, 0]


@KINDS
def test_rows_without_names_are_of_groups_that_the_fit_does_not_have(model):
    inputs = model.inputs
    fit = read(model, {inputs.name: [1, 1], inputs.companion: [2, 2], "group": ["new 2", "1"]})
    data = read(model, {inputs.companion: [3, 4]}, new=True, like=fit)
    assert plain(data)["group"] == ["new 1", "new 3"]
    assert data.notes[-1:] == ("no column names the groups: each row is of a new group",)


def test_the_numbers_that_are_named_as_the_outcome_are_not_left_out():
    fit = read(Means, SCHOOLS)
    with raises(InputError, "not_a_number", "'effect'", "2", "'x'"):
        read(Means, {"school": ["A", "B"], "effect": ["1", "x"], "se": [1, 2]}, new=True, like=dict(fit))


def test_parts_of_a_table_keep_the_numbers_of_their_groups():
    table = {"arm": ["p", "q", "p"], "successes": [1, 2, 3], "trials": [4, 5, 6]}
    whole, parts = read_by(Trials, table, "arm")
    assert whole["group"].tolist() == ["1", "2", "3"]
    assert {label: plain(part) for label, part in parts.items()} == {
        "p": {"successes": [1, 3], "trials": [4, 6], "group": ["1", "3"]},
        "q": {"successes": [2], "trials": [5], "group": ["2"]},
    }


# What the checks of a model need


def test_the_possible_tables_of_trials_have_the_groups_of_the_data():
    data = read(Trials, HITS, **COUNTED)
    every = list(GroupTrials().possible(data))
    assert [one["successes"][:2].tolist() for one in every] == [[i, j] for i in range(3) for j in range(3)]
    assert all(one["trials"].tolist() == [2, 2, 0] and one["group"] is data["group"] for one in every)
    assert all(one["successes"][2] == 0 for one in every)
    assert len(list(GroupTrials().possible())) == 9
    assert (GroupMeans().possible(), GroupEvents().possible()) == (None, None)


@KINDS
def test_groups_are_reordered_with_their_names(model):
    inputs = model.inputs
    data = read(model, {inputs.name: [0, 1, 2], inputs.companion: [2, 3, 4], "group": ["a", "b", "c"]})
    order = np.array([2, 0, 1])
    moved = inputs.reordered(data, order)
    assert {name: values.tolist() for name, values in moved.items()} == {
        name: [values[i] for i in order] for name, values in plain(data).items()
    }
    assert plain(inputs.relabelled(data, "group", order)) == plain(moved)
    first, rest = inputs.split(data, 1)
    assert (first["group"].tolist(), rest["group"].tolist()) == (["a"], ["b", "c"])
    with raises(InputError, "new_rows_unknown", inputs.companion):
        inputs.unseen(data, 2)


# Real data


def test_the_data_of_groups_are_those_published():
    schools = read(Means, DATA / "eight_schools.csv")
    weights = schools["se"] ** -2
    assert schools["group"].tolist() == list("ABCDEFGH")
    assert round(float(np.average(schools["y"], weights=weights)), 2) == 7.69  # BDA3: a pooled estimate of 7.7,
    assert round(float(weights.sum() ** -0.5), 1) == 4.1  # with standard error 4.1
    rats = read(Trials, DATA / "rat_tumours.csv", successes="tumours", trials="rats")
    assert [rats[name].sum() for name in ("successes", "trials")] == [267, 1739]
    assert [rats[name][-1] for name in ("successes", "trials", "group")] == [4, 14, "71"]
    pumps = read(Events, DATA / "pumps.csv", column="failures", exposure="thousand_hours", group="pump")
    assert (pumps["y"].sum(), round(float(pumps["exposure"].sum()), 2)) == (75, 350.03)


def test_the_baseball_players_shrink_as_published():
    table = pd.read_csv(DATA / "baseball.csv")
    y, rest = table["hits"] / table["at_bats"], table["rest"]
    spread = float(((y - y.mean()) ** 2).sum())
    shrinkage = 1 - (len(y) - 3) * y.mean() * (1 - y.mean()) / 45 / spread
    shrunk = y.mean() + shrinkage * (y - y.mean())
    assert round(shrinkage, 3) == 0.212  # Efron and Morris 1977
    assert [round(float(((each - rest) ** 2).sum()), 4) for each in (shrunk, y)] == [0.0214, 0.0755]


def test_reaction_times_are_those_of_lme4():
    table = pd.read_csv(DATA / "sleepstudy.csv")
    assert table.groupby("subject").size().tolist() == [10] * 18
    assert np.polyfit(table["days"], table["reaction"], 1).round(4).tolist() == [10.4673, 251.4051]
    data = read(Means, DATA / "sleepstudy.csv", group="subject", column="reaction")
    np.testing.assert_allclose(data["se"], table.groupby("subject")["reaction"].sem(), rtol=1e-12)


def test_the_command_line_has_every_option_of_groups():
    known = {field.name for field in fields(TableOptions)}
    assert GroupMeans.options | GroupTrials.options | GroupEvents.options <= known
