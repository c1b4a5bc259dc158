"""Mixtures at their edges: rows that no component can give, and what the command line says of odd requests."""

import json
import math

import numpy as np
import pytest

import bayeszoo as bz
from bayeszoo.report import tables

DOCUMENTS = "a,b,c\n3,0,0\n4,0,0\n0,5,0\n0,6,0\n"
NEW = "a,b,c\n1,0,0\n1,2,0\n0,0,1\n"


@pytest.fixture
def fitted(tmp_path, run):
    """Topics of one word each; no topic has the third word, and no document two of them."""
    (tmp_path / "documents.csv").write_text(DOCUMENTS)
    (tmp_path / "new.csv").write_text(NEW)
    options = ("--columns", "a,b,c", "--method", "mle", "--seed", "1", "-o", tmp_path / "fit.nc")
    code, _, err = run("fit", "multinomial_mixture", tmp_path / "documents.csv", *options)
    assert code == 0, err
    return tmp_path


def test_a_row_that_no_component_can_give_has_no_probabilities(fitted):
    tree = bz.load(fitted / "fit.nc")
    found = bz.assign(tree, {"a": [1, 1, 0], "b": [0, 2, 0], "c": [0, 0, 1]})
    assert found.attrs["impossible"] == [2, 3]
    assert found.attrs["expected_errors"] == 0
    assert np.isfinite(found.loc[1, ["component", "expected_loss", "p[1]", "p[2]"]].astype(float)).all()
    assert found.loc[[2, 3]].isna().all(axis=None)
    predicted = bz.predict(tree, {"a": [1, 1], "b": [0, 2], "c": [0, 0]})
    assert np.isneginf(predicted["log_score"].xs(2)).all()
    assert predicted["component"].xs(2).isna().all()


def test_the_command_withholds_it_and_says_why(fitted, run):
    code, out, _ = run("assign", fitted / "fit.nc", fitted / "new.csv")
    assert code == 0
    assert "Expected number of rows with a wrong label: 0 of 1." in out
    assert "Withheld: rows 2, 3, which no component can give" in out
    rows = json.loads(run("assign", fitted / "fit.nc", fitted / "new.csv", "--json")[1])["rows"]
    assert rows[1]["p[1]"] is None
    assert rows[1]["component"] is None


def test_text_needs_no_quotes(run):
    code, out, _ = run("fit", "gaussian_mixture", "--method", "map", "--seed", "1", "--set", "covariance=diagonal")
    assert code == 0
    assert "covariance=diagonal" in out
    assert run("fit", "gaussian_mixture", "--method", "map", "--set", 'covariance="diagonal"', "--seed", "1")[0] == 0
    code, _, err = run("fit", "gaussian_mixture", "--method", "map", "--set", "covariance=diag")
    assert code == 2
    assert "there is no covariance 'diag'" in err
    assert "the value is not JSON" in run("fit", "gaussian_mixture", "--set", "K=two")[2]


@pytest.mark.parametrize(("k_hat", "said"), [(-math.inf, "none, as all weights are equal"), (0.41234, "0.412")])
def test_equal_weights_have_no_k_hat(k_hat, said):
    document = {"log_evidence": None, "elbo": -3.0, "log_likelihood": None, "exact": None, "kind": "approximate"}
    lines = tables.figures({**document, "status": "ok", "facts": {"elbo_se": 0.0, "k_hat": k_hat}})
    assert lines[0].endswith(f"k-hat {said}")


def test_the_command_says_that_predictions_by_enumeration_are_from_draws(tmp_path, run):
    (tmp_path / "few.csv").write_text("x\n0\n0.5\n4\n5\n")
    options = ("--method", "enumerate", "--seed", "1", "-o", tmp_path / "fit.nc")
    assert run("fit", "gaussian_mixture", tmp_path / "few.csv", *options)[0] == 0
    code, out, _ = run("predict", tmp_path / "fit.nc", tmp_path / "few.csv")
    assert code == 0
    assert "(draws of the exact posterior)" in out
