"""A model in a file of the user's own: found by its path, fitted, and remembered by its fits."""

import hashlib
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import bayeszoo as bz
from bayeszoo.contract.check import applicable, check, lacking
from bayeszoo.contract.cures import cures
from bayeszoo.errors import NoSimulator
from bayeszoo.fit import methods_for
from bayeszoo.foundation.gate import Check
from bayeszoo.model import find as zoo
from bayeszoo.report.notebook import html
from bayeszoo.results import files
from bayeszoo.results.stored import Fit
from tests.refusals import raises

COIN = '''"""A coin of one's own.

theta ~ Beta(a, b)
"""
from __future__ import annotations
from dataclasses import dataclass
from bayeszoo.models.beta_bernoulli import BetaBernoulli as Coin
from bayeszoo.model import positive

@dataclass(frozen=True)
class BetaBernoulli(Coin):
    """It has the name of a model of the zoo."""
    a: float = positive(3.0, "prior a")
'''
LEAST = '''"""No more than a model must have."""
from dataclasses import dataclass
import pymc as pm
from bayeszoo.data.inputs import Counts
from bayeszoo.model import Model

@dataclass(frozen=True)
class Rate(Model):
    inputs = Counts("y")

    def declare(self, data):
        with pm.Model() as model:
            rate = pm.HalfFlat("rate")
            pm.Poisson("y", rate, observed=pm.Data("y_data", data["y"], dims="row"), dims="row")
        return model
'''


@pytest.fixture
def coin(written):
    return f"{written(COIN, 'coin.py')}:BetaBernoulli"


@pytest.fixture
def least(written):
    return f"{written(LEAST, 'rate.py')}:Rate"


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def test_a_fit_finds_the_file_again_and_says_when_it_has_changed_or_gone(coin, run, written, tmp_path, monkeypatch):
    rows, fit = written("y\n1\n0\n1\n"), tmp_path / "fit.nc"
    code, out, _ = run("fit", coin, rows, "--method", "exact", "--seed", "1", "-o", fit, "--json")
    assert (code, json.loads(out)["parameters"]["theta"]["mean"]) == (0, pytest.approx(5 / 7))  # a = 3, not the zoo's 1
    tree = bz.load(fit)
    assert bz.view(tree).model == bz.find(coin)()
    assert str(tmp_path) not in tree.attrs["model_file"]  # the folder is nobody's business
    (tmp_path / "coin.py").write_text(COIN.replace("3.0", "4.0"))
    assert bz.find(coin)().a == 4  # which is read anew
    for _ in range(2):
        monkeypatch.setattr(zoo, "_FILES", {})  # as in another process
        code, out, err = run("predict", fit)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert "no longer the same, at" in err
        assert "--model-file FOLDER/coin.py:BetaBernoulli" in err
        (tmp_path / "coin.py").unlink(missing_ok=True)
    (tmp_path / "coin.py").write_text(COIN)
    assert run("predict", fit)[0] == 0


def test_a_fit_alone_runs_no_file(coin, run, written, tmp_path, state, monkeypatch):
    assert run("fit", coin, written("y\n1\n0\n"), "--method", "exact", "-o", tmp_path / "fit.nc")[0] == 0
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(zoo, "_FILES", {})
    (state / "bayeszoo" / "named_files").unlink()  # as of somebody to whom both files were sent
    code, out, err = run("predict", "fit.nc")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "which has not been named here; name the same file: --model-file FOLDER/coin.py" in err
    assert run("show", "coin.py:BetaBernoulli")[0] == run("predict", "fit.nc")[0] == 0


def digest_of_text(text):
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def test_a_file_that_is_named_for_a_fit_is_taken_and_a_change_of_it_is_said(coin, run, written, tmp_path, monkeypatch):
    assert run("fit", coin, written("y\n1\n0\n"), "--method", "exact", "-o", tmp_path / "fit.nc")[0] == 0
    other = tmp_path / "moved.py"
    for text, said in ((COIN, 0), (COIN.replace("of one's own", "that is mine"), 1)):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / str(said)))
        monkeypatch.setattr(zoo, "_FILES", {})
        monkeypatch.setattr(zoo, "_LENT", [])
        other.write_text(text)
        code, out, err = run("predict", tmp_path / "fit.nc", "--model-file", f"{other}:BetaBernoulli", "--json")
        assert (code, json.loads(out)["model"]) == (0, "beta_bernoulli")
        assert err.count("caution") == said
        assert not said or {digest_of_text(COIN), digest_of_text(text)} <= {*re.findall(r"[0-9a-f]{12}", err)}


def test_in_python_the_class_is_given(coin, run, written, tmp_path, monkeypatch):
    assert run("fit", coin, written("y\n1\n0\n"), "--method", "exact", "-o", tmp_path / "fit.nc")[0] == 0
    monkeypatch.setattr(zoo, "_FILES", {})
    monkeypatch.setattr(zoo, "_LENT", [])
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "nothing"))
    with raises(bz.InputError, "bad_model_file"):
        bz.predict(bz.load(tmp_path / "fit.nc"))
    (tmp_path / "mine.py").write_text(COIN)
    kind = bz.find(f"{tmp_path / 'mine.py'}:BetaBernoulli")
    assert type(bz.view(bz.load(tmp_path / "fit.nc", model=kind)).model) is kind


def test_at_a_terminal_the_file_is_asked_for_with_its_digest(coin, run, written, tmp_path, monkeypatch):
    assert run("fit", coin, written("y\n1\n0\n"), "--method", "exact", "-o", tmp_path / "fit.nc")[0] == 0
    asked = []

    class User:
        def ask(self, question):
            asked.append(question)
            return str(tmp_path / "coin.py")

        def note(self, line):
            raise AssertionError(line)

    monkeypatch.setattr(zoo, "_FILES", {})
    monkeypatch.setattr(zoo, "_LENT", [])
    monkeypatch.setattr(zoo, "_USERS", [User()])
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "nothing"))
    assert bz.view(bz.load(tmp_path / "fit.nc")).model.a == 3
    assert digest_of_text(COIN) in asked[0]


EVIL = "open({canary!r}, 'w')\n" + LEAST.replace("class Rate", "class Evil")


def test_the_name_of_a_model_in_a_fit_runs_no_file(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    canary = tmp_path / "canary"
    (tmp_path / "evil.py").write_text(EVIL.format(canary=str(canary)))
    tree = bz.fit(bz.find("beta_bernoulli")(), [1, 0, 1], "exact", seed=1)
    tree.attrs["model"] = "evil.py:Evil"
    tree.attrs[files.DIGEST] = json.dumps(files.digests(tree))
    tree.to_netcdf("evil.nc", engine=files.ENGINE)
    for command in (["predict", "evil.nc"], ["report", "evil.nc", "-o", "x.html"], ["contrasts", "evil.nc"]):
        code, out, err = run(*command)
        assert (code, out, err.count("\n")) == (2, "", 1)
    loaded = xr.load_datatree("evil.nc", engine=files.ENGINE)
    for show in (lambda: html(loaded), lambda: repr(bz.view(loaded)), lambda: bz.predict(loaded)):
        with pytest.raises(bz.InputError):
            show()
    assert not canary.exists()


def test_a_plug_in_runs_for_a_fit_after_it_was_named(monkeypatch):
    tree = bz.fit(bz.find("beta_bernoulli")(), [1, 0, 1], "exact", seed=1)
    tree.attrs["model"] = "theirs"

    class Point:
        name, value = "theirs", "theirs:Model"

        def load(self):
            pytest.fail("it was imported")

    monkeypatch.setattr(zoo, "plugins", lambda: {"theirs": Point()})
    with raises(bz.InputError, "unknown_model", "bayeszoo", "show", "theirs"):
        bz.predict(tree)
    theirs = type("Theirs", (bz.find("beta_bernoulli"),), {})
    monkeypatch.setattr(Point, "load", lambda _: theirs)
    assert bz.find("theirs") is theirs
    assert type(bz.view(tree).model) is theirs
    zoo.by_name.cache_clear()


def test_where_nothing_can_be_remembered_a_file_is_named_each_time(coin, run, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "coin.py"))  # which is no folder
    assert run("show", coin)[0] == 0


def test_every_command_takes_a_file(coin, run, written):
    rows = written("y\n1\n0\n1\n")
    assert "A coin of one's own." in run("show", coin)[1]
    _, out, err = run("select", rows, "-c", f"{coin} a=2", "-c", coin, "--no-loo")
    assert ("beta_bernoulli(a=2" in out, err.count("no fit checks")) == (True, 1)
    assert run("simulate", coin, "--size", "3", "--seed", "1")[1].startswith("y\n")
    compared = run("compare", coin, rows, "--methods", "exact,mle", "--seed", "1")
    assert compared[0] == 0
    assert "note: no fit checks all closed forms of beta_bernoulli; `bayeszoo check` does\n" in compared[2]
    assert "no fit checks" not in run("compare", "beta_bernoulli", rows, "--methods", "exact,mle", "--seed", "1")[2]
    tree = bz.fit(bz.find(coin)(), [1, 0], "exact", seed=1)
    from bayeszoo.report.provenance import python

    assert "M = bz.find('coin.py:BetaBernoulli')" in python([Fit(tree)])


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("x = 1 / 0", "X", "own.py, line 1: ZeroDivisionError: division by zero"),
        ("x = (", "X", "own.py: SyntaxError: '(' was never closed"),
        ("import sys\nsys.exit(3)", "X", "own.py, line 2: SystemExit: 3"),
        ("import beside", "X", "own.py, line 1: ModuleNotFoundError: No module named 'beside'"),
        (LEAST, "Rates", "own.py has no class Rates; it defines Rate"),
        ("class X: pass", "X", "own.py:X is not a bayeszoo Model; derive it from"),
        ("from bayeszoo.model import Model\nclass X(Model): pass", "X", "X lacks declare; see CONTRACT.md"),
        (LEAST, "", "own.py is a file: name its class; write"),
        (b"\xff", "X", "is not UTF-8 text"),
    ],
)
def test_a_file_that_holds_no_model_is_refused_in_one_line(text, kind, message, run, written, tmp_path):
    (tmp_path / "beside.py").write_text("")
    place = written(text, "own.py")
    code, out, err = run("fit", f"{place}:{kind}" if kind else place, "--method", "exact")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err
    assert re.search("cannot be read: No such file", run("show", "no/such.py:Model")[2])


def test_a_pipe_is_no_model_and_is_not_waited_for(run, tmp_path):
    os.mkfifo(tmp_path / "own.py")
    code, out, err = run("show", f"{tmp_path / 'own.py'}:Rate")
    assert (code, out, "not a regular file" in err) == (2, "", True)


def test_names_that_are_not_utf8_are_as_good_as_others(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model, table, fit = (os.fsdecode(b"\xff" + end) for end in (b".py", b".csv", b".nc"))
    Path(model).write_text(COIN)
    Path(table).write_text("y\n1\n0\n1\n")
    assert run("fit", f"{model}:BetaBernoulli", table, "--method", "exact", "-o", fit)[0] == 0
    assert run("predict", fit, "-o", os.fsdecode(b"\xfe.csv"))[0] == 0
    assert os.path.isfile(b"\xfe.csv")


def test_a_model_needs_inputs_and_declare_alone(least, run):
    kind = bz.find(least)
    assert {"nuts", "map", "advi"} <= {*methods_for(kind)}
    with raises(NoSimulator, "no_simulator", "simulate"):
        kind().simulate(np.random.default_rng(0))
    assert run("simulate", least)[::2] == (2, "error: rate has no step `simulate`\n")
    assert run("show", least)[0] == 0
    code, _, err = run("check", least)
    assert (code, err.count("\n")) == (2, 1)
    assert "give yours: bayeszoo check MODEL DATA" in err


@pytest.mark.parametrize("method", ["map", "nuts"])
def test_what_a_step_of_its_raises_is_a_line_about_the_file(method, run, written):
    place = written(LEAST.replace('pm.HalfFlat("rate")', "None.rate"), "wrong.py")
    code, out, err = run("fit", f"{place}:Rate", written("y\n1\n"), "--method", method, "--seed", "1")
    assert (code, out) == (2, "")
    assert err == "error: wrong.py, line 13: AttributeError: 'NoneType' object has no attribute 'rate'\n"


def test_what_a_model_could_have_besides_is_listed_with_what_is_not_checked(least):
    found = {each.name.partition(" (")[0]: each for each in lacking(bz.find(least))}
    names = ("step weak", "step simulate", "base Observable", "base Sufficient", "base ClosedForm", "base EM")
    assert tuple(found) == names
    assert [name for name in names if found[name].checks] == ["step simulate", "base Observable", "base ClosedForm"]
    assert "simulated_prior" not in {identity.function for identity in applicable(bz.find(least))}
    assert [each.name[:7] for each in lacking(bz.find("beta_bernoulli"))] == ["step we", "base EM"]


@pytest.mark.slow
def test_a_flat_prior_is_fitted_and_has_no_evidence(least, run, written, tmp_path, capsys):
    rows, fit = written("y\n" + "3\n1\n4\n1\n5\n" * 4), tmp_path / "fit.nc"
    code, out, _ = run("check", least, rows)
    assert code == 0
    assert "not checked: the density of a row by SciPy, as the model lacks the base Observable (likelihood)" in out
    found = json.loads(run("fit", least, rows, "--method", "laplace", "--seed", "1", "--json", "-o", fit)[1])
    assert (found["status"], found["log_evidence"]) == ("ok", None)
    assert found["facts"]["evidence_withheld"] == "log evidence is undefined under a flat prior (rate)"
    assert run("report", fit, "-o", tmp_path / "fit.html")[0] == 0
    tree = bz.fit(bz.find(least)(), [3, 1, 4, 1, 5] * 4, "nuts", seed=1)
    assert abs(bz.summarize(tree)["rate"]["mean"] - 57 / 20) < 0.05  # Gamma(57, 20)
    assert all(each.passed for each in check(bz.find(least), [3, 1, 4, 1, 5]))


def test_a_check_that_fails_names_its_cure():
    failed = Check("literal numbers in PyMC: line 17: pm.Beta(... 2 ...)", False, 1.0, "<= 0")
    (line,) = cures([failed, Check("gradient", True, 0.0, "<= 1e-5")])
    assert "np.float64(2)" in line
    assert cures([Check("a check that nobody knows", False, 1.0, "<= 0")]) == []


def test_bases_in_the_wrong_order_are_told_the_right_one(tmp_path):
    file = tmp_path / "coins.py"
    file.write_text("from bayeszoo.model import Model, Observable\nclass Coins(Model, Observable): pass\n")
    with raises(bz.InputError, "bad_model_file", "(Observable, Model)"):
        bz.find(f"{file}:Coins")
