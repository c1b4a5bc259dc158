"""The command that says which component each row belongs to."""

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest

import bayeszoo as bz
from bayeszoo.cli.saved import as_csv

TOPICS = bz.find("multinomial_mixture")
DOCUMENTS = {"a": [9, 8, 0, 1, 7, 0], "b": [1, 0, 6, 9, 1, 8], "c": [0, 1, 1, 2, 0, 3]}


@pytest.fixture(scope="module")
def fit():
    return bz.fit(TOPICS(K=2), DOCUMENTS, "vb", seed=1)


@pytest.fixture
def saved(fit, tmp_path):
    return bz.save(fit, tmp_path / "fit.nc")


def test_prints_the_rows_of_the_fit(run, saved, fit):
    code, out, err = run("assign", saved)
    expected = bz.assign(fit)
    assert (code, err) == (0, "")
    assert "multinomial_mixture, vb (approximate)" in out
    assert f"wrong label: {expected.attrs['expected_errors']:.4g} of 6" in out
    lines = [line.split() for line in out.splitlines() if line.split()[:1] and line.split()[0].isdigit()]
    assert [int(line[1]) for line in lines] == expected["component"].tolist()


def test_prints_one_json_document_and_writes_numbers_in_full(run, saved, fit, tmp_path):
    path = tmp_path / "rows.csv"
    code, out, err = run("assign", saved, "--json", "-o", path)
    found, expected = json.loads(out), bz.assign(fit).reset_index()
    assert (code, err, found["model"], found["saved"]) == (0, f"wrote {path}\n", "multinomial_mixture", str(path))
    assert found["expected_errors"] == pytest.approx(expected.attrs["expected_errors"])
    pd.testing.assert_frame_equal(pd.DataFrame(found["rows"]), expected, check_dtype=False)
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == [str(name) for name in expected.columns]
    numbers = np.array([[float(cell or "nan") for cell in row] for row in rows])
    assert np.array_equal(numbers, expected.to_numpy(dtype=float), equal_nan=True)
    assert run("assign", saved, "-o", path)[:2] == (2, "")
    assert run("assign", saved, "-o", path, "--overwrite")[0] == 0


def test_new_rows_are_assigned(run, saved, fit, tmp_path):
    (tmp_path / "new.csv").write_text("c,b,a\n0,0,9\n1,8,0\n")
    code, out, _ = run("assign", saved, tmp_path / "new.csv", "--json")
    rows = json.loads(out)["rows"]
    expected = bz.assign(fit, {"a": [9, 0], "b": [0, 8], "c": [0, 1]})
    assert code == 0
    assert [row["component"] for row in rows] == expected["component"].tolist()
    assert [row["expected_loss"] for row in rows] == pytest.approx(expected["expected_loss"].tolist())
    assert rows[0]["component"] != rows[1]["component"]


@pytest.mark.parametrize(
    ("model", "data", "said"),
    [(TOPICS(K=2), DOCUMENTS, "wrong label"), (bz.find("student_t")(), [0.1, 0.4, -1.0, 0.2, 8.0], "mean")],
)
def test_a_point_estimate_says_that_it_is_one_and_a_latent_number_has_no_label(run, tmp_path, model, data, said):
    code, out, _ = run("assign", bz.save(bz.fit(model, data, "map", seed=1), tmp_path / "map.nc"))
    assert (code, "The estimate is plugged in" in out, said in out) == (0, True, True)
    assert ("wrong label" in out) == (said == "wrong label")


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx"])
def test_no_text_is_run_by_a_spreadsheet(text):
    frame = pd.DataFrame({text: [text, "rain"], "p": [-0.25, np.nan]}, index=pd.RangeIndex(1, 3, name="row"))
    header, *rows = csv.reader(io.StringIO(as_csv(frame), newline=""))
    assert header == ["row", f"'{text}", "p"]
    assert rows == [["1", f"'{text}", "-0.25"], ["2", "rain", ""]]


def test_a_fit_that_is_not_ok_gives_exit_code_3(run, fit, tmp_path):
    bad = fit.copy()
    bad.attrs["status"] = "not converged"
    code, out, err = run("assign", bz.save(bad, tmp_path / "bad.nc"), "-o", tmp_path / "rows.csv")
    assert (code, out) == (3, "")
    assert err == "error: the fit is not converged: assignments by it are withheld\n"
    assert not (tmp_path / "rows.csv").exists()


def test_refuses_in_one_line(run, saved, tmp_path):
    coin = bz.save(bz.fit(bz.find("beta_bernoulli")(), [1, 0, 1], "exact"), tmp_path / "coin.nc")
    for arguments, message in (
        ((coin,), "beta_bernoulli has no latent variable of each row"),
        ((saved, "--columns", "a,b"), "--columns goes with DATA"),
        ((saved, "-o", tmp_path / "no" / "rows.csv"), "there is no folder"),
        ((saved, tmp_path / "none.csv"), "none.csv"),
    ):
        code, out, err = run("assign", *arguments)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert message in err
