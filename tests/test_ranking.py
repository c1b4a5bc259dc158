"""What `select` claims: a criterion names a best candidate only where every candidate has it."""

import numpy as np
import pytest

import bayeszoo as bz
from bayeszoo.plots.select import CRITERIA
from bayeszoo.report.text.ranking import ranking

X = np.array([0.0, 1, 2, 3, 4, 5])
TABLE = {"y": np.array([1.1, 0.2, 2.3, 1.7, 3.1, 2.2]), "x": X, "z": np.array([1.0, 0, 1, 0, 1, 0])}
BY = {criterion.column: criterion for criterion in CRITERIA}


def weak_model(name):
    """A model of the table with weak fields."""
    kind = bz.find(name)
    return kind.weak(bz.read(kind, TABLE))


@pytest.fixture(scope="module")
def mixed():
    """A candidate with every criterion, and others with few or none."""
    names = ("linear_regression", "robust_regression", "support_vector_regression")
    return bz.select({name: weak_model(name) for name in names}, TABLE)


def test_models_without_statistics_are_candidates(mixed):
    assert set(mixed["model"]) == {"linear_regression", "robust_regression", "support_vector_regression"}
    table = mixed.set_index("model")
    assert table["mdl"].notna().tolist() == [name == "linear_regression" for name in table.index]
    assert table["mdl_from"].str.startswith("withheld").sum() == 2


def test_a_criterion_that_one_candidate_has_names_no_best(mixed):
    (line,) = ranking(mixed)
    assert line.startswith("Not ranked")
    assert all(title in line for title in ("log evidence", "AIC", "BIC", "MDL", "leave-one-out"))
    assert not any(criterion.best(mixed).any() for criterion in CRITERIA)
    of_one = ["log_bayes_factor", "probability", "loo_difference", "loo_difference_se"]
    assert mixed[of_one].isna().all(axis=None)
    figure = bz.plot_select(mixed)
    assert not [
        each for panel in figure.axes for each in panel.lines if each.get_label() == "best" and len(each.get_xdata())
    ]


def ranked(**columns):
    """A table of `select` with some columns changed."""
    coin = bz.find("beta_bernoulli")
    table = bz.select({"fair": coin(a=50, b=50), "flat": coin(a=1, b=1), "odd": coin(a=1, b=9)}, [1, 0, 1, 1] * 5)
    return table.assign(**columns)


def test_a_criterion_of_all_names_the_best_and_equals_are_named_together():
    lines = ranking(ranked())
    assert len(lines) == 1
    assert f"log evidence: {ranked()['model'][0]};" in lines[0]
    assert lines[0].count(" and ") == 6  # AIC, BIC and NML, of one likelihood


def test_a_criterion_that_some_lack_is_said_not_to_rank():
    table = ranked(loo=[np.nan, -13.0, -12.0])
    best, not_ranked = ranking(table)
    assert "leave-one-out" not in best
    assert not_ranked.endswith(": leave-one-out.")
    assert not BY["loo"].best(table).any()


def test_fits_with_a_caveat_are_neither_ranked_nor_the_measure():
    table = ranked(status=["caution", "ok", "ok"])
    behind, best = BY["log_evidence"].behind(table), BY["log_evidence"].best(table)
    assert table["model"][best].tolist() == [table["model"][1]]
    assert behind[0] < 0 == behind[1]
    assert "(1 not ranked)" in ranking(table)[0]
    assert not ranking(ranked(status=["ok", "caution", "failed"]))[0].startswith("Best")


@pytest.mark.parametrize(("error", "unclear"), [(0.01, False), (1e3, True)])
def test_a_best_within_two_errors_is_not_clear(error, unclear):
    table = ranked()
    line = ranking(table.assign(log_bayes_factor_se=[0.0, error, error]))[0]
    assert ("no clear difference" in line.partition(";")[0]) == unclear


def test_the_command_runs_and_claims_nothing(run, written):
    rows = "\n".join(",".join(map(str, row)) for row in zip(*TABLE.values(), strict=True))
    data = written(f"y,x,z\n{rows}\n")
    code, out, _ = run("select", data, "-c", "linear_regression", "-c", "robust_regression", "--no-loo")
    assert (code, "Best by" in out, "Not ranked" in out) == (0, False, True)
