"""The command line as its user meets it: what is printed where, the exit codes, and every message."""

import json
import math
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import bayeszoo as bz
from bayeszoo.cli.verbs import fits as fit_verb
from bayeszoo.foundation.process import signals
from bayeszoo.model import find as zoo

SINGLE = {"log_evidence", "elbo", "log_likelihood", "log_joint"}
DOCUMENT = SINGLE | {"model", "method", "status", "seed", "seconds", "gate", "parameters", "derived", "warnings"}
PARAMETER = {"dims", "coords", "mean", "sd", "q025", "median", "q975", "mcse_mean", "ess_bulk", "ess_tail", "r_hat"}
EXACT = ["--method", "exact", "--seed", "1"]


@pytest.fixture
def coins(written):
    """Eight tosses, six of them heads."""
    return written("y\n1\n0\n1\n1\n0\n1\n1\n1\n", "coins.csv")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """An exact fit of the eight tosses with a = b = 1: theta ~ Beta(7, 3)."""
    tree = bz.fit(bz.find("beta_bernoulli")(), [1, 0, 1, 1, 0, 1, 1, 1], "exact", seed=1)
    return bz.save(tree, tmp_path_factory.mktemp("fits") / "fit.nc")


def strict(text):
    """Parse one JSON document without NaN and Infinity, and nothing after it."""
    return json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


# Each command


def test_simulate_writes_a_table_that_fit_reads_back(run, tmp_path):
    code, out, err = run("simulate", "beta_bernoulli", "--size", 5, "--seed", 1, "--set", "a=2")
    assert (code, out.split()[0], len(out.split())) == (0, "y", 6)
    assert err.startswith('seed 1; drawn from the prior: {"theta": 0.')
    table = tmp_path / "simulated.csv"
    assert run("simulate", "beta_bernoulli", "--size", 5, "--seed", 1, "--set", "a=2", "-o", table)[:2] == (0, "")
    assert table.read_text() == out
    assert run("fit", "beta_bernoulli", table, *EXACT)[0] == 0
    packed = tmp_path / "simulated.parquet"
    assert run("simulate", "beta_bernoulli", "--size", 5, "--seed", 1, "--set", "a=2", "-o", packed)[:2] == (0, "")
    assert pd.read_parquet(packed)["y"].tolist() == pd.read_csv(table)["y"].tolist()


@pytest.mark.parametrize(
    ("method", "kind", "given"),
    [
        ("exact", "exact", {"log_evidence"}),
        ("mle", "point estimate", {"log_likelihood", "log_joint"}),
        ("map", "point estimate", {"log_likelihood", "log_joint"}),
        ("laplace", "approximate", {"log_evidence", "elbo"}),
        ("advi", "approximate", {"elbo"}),
        ("fullrank_advi", "approximate", {"elbo"}),
        pytest.param("smc", "sampled", {"log_evidence"}, marks=pytest.mark.slow),
        ("nuts", "sampled", set()),
    ],
)
def test_fit_prints_one_json_document(run, method, kind, given):
    code, out, err = run(
        "fit", "beta_bernoulli", "--example", "placenta_previa", "--method", method, "--seed", 1, "--json"
    )
    found = strict(out)
    assert code == 0, err
    assert found.keys() >= DOCUMENT
    assert (found["model"], found["method"], found["kind"], found["status"]) == ("beta_bernoulli", method, kind, "ok")
    assert found["parameters"]["theta"].keys() >= PARAMETER
    assert found["parameters"]["theta"]["mean"] == pytest.approx(438 / 982, abs=1e-3)
    assert {name for name in SINGLE if found[name] is not None} == given


def test_fit_prints_the_closed_form_and_where_it_is_from(run, coins):
    code, out, err = run("fit", "beta_bernoulli", coins, *EXACT)
    assert (code, err) == (0, "")
    assert "beta_bernoulli(a=1, b=1)  exact: closed form, exact" in out
    assert "data coins.csv (" in out
    assert re.search(r"theta +0\.7 +0\.13817 ", out)
    assert "log evidence -5.53 (exact, of the ordered data)" in out


def test_compare_prints_one_json_document(run, coins):
    code, out, err = run("compare", "beta_bernoulli", coins, "--methods", "exact, map", "--seed", 1, "--json")
    found = strict(out)
    assert (code, err) == (0, "beta_bernoulli: exact\nbeta_bernoulli: map\n")
    assert [fit["method"] for fit in found["fits"]] == [row["method"] for row in found["table"]] == ["exact", "map"]
    assert found["table"][1]["mean"] == pytest.approx(0.75)
    assert found["table"][0]["error_sd"] is None


@pytest.mark.slow
def test_check_prints_the_scorecard_of_every_model(run, monkeypatch):
    monkeypatch.setattr(zoo, "builtin_names", lambda: ["beta_bernoulli"])  # the others have their turn in test_contract
    code, out, err = run("check", "--all", "--no-sampler", "--json")
    cards = strict(out)
    assert code == 0, err
    assert cards.keys() == set(bz.names())
    assert all(card["passed"] for card in cards.values())
    assert "beta_bernoulli: candidate_identity" in err


def test_a_failed_check_gives_exit_code_3(run, monkeypatch):
    wrong = bz.Check("candidate identity", False, 0.5, "<= 1e-09")
    monkeypatch.setattr(sys.modules["bayeszoo.cli.verbs.check"], "check", lambda *_, **__: [wrong])
    code, out, _ = run("check", "beta_bernoulli")
    assert code == 3
    assert "FAILED   candidate identity" in out


def test_predict_scores_the_rows_whose_outcome_is_known(run, saved, coins):
    code, out, err = run("predict", saved, coins, "--json")
    found = strict(out)
    assert (code, err) == (0, "")
    assert found["sum_of_log_scores"] == pytest.approx(6 * np.log(0.7) + 2 * np.log(0.3))
    code, out, _ = run("predict", saved, "--rows", 2, "--json")
    assert [row["mean"] for row in strict(out)["rows"]] == pytest.approx([0.7, 0.7])
    assert strict(out)["sum_of_log_scores"] is None
    assert "437" in run("predict", saved, "--example", "placenta_previa")[1]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_predictions_are_written_in_full_and_beside_the_columns_of_their_table(run, saved, written, tmp_path, suffix):
    table = written("id,trials\n007,10\nb,\nc,20\n")
    alone, beside = tmp_path / f"alone.{suffix}", tmp_path / f"beside.{suffix}"
    asked = ("predict", saved, table, "--missing", "drop", "-o")
    assert run(*asked, alone)[0] == 0
    read = pd.read_csv if suffix == "csv" else pd.read_parquet
    frame = read(alone)
    assert frame["row"].tolist() == [1, 3]  # of the file
    assert frame["sd"].tolist() == pytest.approx(
        [bz.predict(bz.load(saved), {"trials": [n]})["sd"][1] for n in (10, 20)]
    )
    assert run(*asked, beside, "--append")[0] == 0
    frame = read(beside, **({"dtype": {"id": str}} if suffix == "csv" else {}))
    assert frame["id"].tolist() == ["007", "b", "c"]
    assert frame["predicted_mean"].round(9).fillna(-1).tolist() == [7, -1, 14]
    assert run(*asked, beside)[2].endswith("exists; choose another name or use --overwrite\n")


@pytest.mark.parametrize("command", ["compare", "select", "residuals"])
def test_tables_are_written_in_full(run, saved, coins, tmp_path, command):
    words = {
        "compare": ["beta_bernoulli", coins, "--methods", "exact,map"],
        "select": [coins, "-c", "beta_bernoulli", "-c", "beta_bernoulli a=2"],
        "residuals": [saved, "--replicates", 20],
    }
    path = tmp_path / "table.csv"
    assert run(command, *words[command], "-o", path)[0] == 0
    frame = pd.read_csv(path)
    column, size = {"compare": ("log_evidence", 2), "select": ("log_evidence", 2), "residuals": ("pit", 8)}[command]
    assert len(frame) == size
    assert len(str(frame[column].dropna()[0])) > 10


def test_a_mean_far_from_zero_is_told_apart_from_its_quantiles(run, written):
    # near 1e8 an sd of .74 is in the ninth digit, and five digits would be the same for mean and quantiles
    path = written("y\n100000000\n100000001\n100000003\n100000002\n")
    out = run("fit", "normal_gamma", path, *EXACT)[1]
    mean, sd, low, median, high = map(float, re.search(r"^ mu (.*)$", out, re.MULTILINE)[1].split())
    assert mean == median == 100000001.5
    half = stats.t(5).ppf(0.975) * sd * math.sqrt(3 / 5)  # of a t with 2 alpha = 5 degrees of freedom
    assert [low, high] == pytest.approx([mean - half, mean + half], abs=0.01)


def test_more_digits_are_printed_where_they_are_asked_for(run, coins):
    out = run("fit", "beta_bernoulli", coins, *EXACT, "--digits", 8)[1]
    assert "log evidence -5.52942909 (exact" in out
    assert " 0.13816986 " in out


def test_help_about_a_model_lists_the_options_that_it_and_the_method_take(run):
    in_full, of_ridge, by_map = (
        run(*words, "--help")[1] for words in (["fit"], ["fit", "ridge"], ["fit", "ridge", "--method", "map"])
    )
    for option, known in {
        "--target": [True] * 3,
        "--missing": [True] * 3,
        "--symbols": [True, False, False],
        "--chunk-rows": [True] * 3,
        "--draws": [True, True, False],
    }.items():
        assert [option in out for out in (in_full, of_ridge, by_map)] == known
    assert "Exit codes" in run("fit", "--help")[1]  # help about one model is not kept
    assert "--features" not in run("select", "-c", "beta_bernoulli", "--help")[1]


COMPLETED = """
source ./completions.bash
try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _bayeszoo; echo "${COMPREPLY[*]}"; }
"""


def test_a_shell_completes_commands_models_methods_options_and_files(run, tmp_path):
    code, out, _ = run("completion", "bash")
    assert code == 0
    (tmp_path / "completions.bash").write_text(out)
    (tmp_path / "coins.csv").touch()
    typed = {
        "cla": "classify",
        "fit beta_be": "beta_bernoulli",
        "fit ridge --method exa": "exact",
        "fit ridge --metho": "--method",
        "fit ridge coi": "coins.csv",
        "select -c gaussian_mi": "gaussian_mixture",
    }
    tries = "".join(f"try bayeszoo {words}\n" for words in typed)
    done = subprocess.run(["bash", "-c", COMPLETED + tries], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == list(typed.values())


@pytest.mark.slow  # each script is written for two seconds, by the same words as that of bash
@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_complete_models(run, shell):
    assert "gaussian_mixture" in run("completion", shell)[1]


# Exit codes other than 0 and 2


@pytest.mark.quick
def test_a_result_that_fails_its_gate_is_withheld(run, coins, tmp_path):
    fit = tmp_path / "short.nc"
    code, out, err = run("fit", "beta_bernoulli", coins, "--draws", 10, "--seed", 1, "-o", fit)
    assert code == 3
    assert re.search(
        r"^the estimate is withheld: worst r_hat [\d.]+ of theta, ess_bulk \d+ of theta; --json has all$", out, re.M
    )
    assert "status failed" in out
    assert "warning: draws: 10 (must be >= 400)" in err
    code, out, err = run("predict", fit)
    step = "try --chains 4 --draws 1000"
    assert (code, out, err) == (3, "", f"error: the fit failed its gate: predictions from it are withheld; {step}\n")


def test_a_posterior_without_a_mode_has_no_map(run, written):
    zeros, half = written("y\n0\n0\n0\n"), ["--set", "a=0.5", "--set", "b=0.5"]
    code, out, err = run("fit", "beta_bernoulli", zeros, "--method", "map", *half)
    assert (code, out) == (4, "")
    assert "the density of theta is unbounded at 0" in err
    assert "exact" in err
    code, out, _ = run("compare", "beta_bernoulli", zeros, "--methods", "exact,map", *half)
    assert code == 4
    assert "withheld: no mode" in out


def test_a_bug_is_one_line_and_debug_shows_where(run, coins, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("first line\nsecond line")

    monkeypatch.setattr(fit_verb, "fit", broken)
    code, out, err = run("fit", "beta_bernoulli", coins)
    assert (code, out, err) == (1, "", "bug: RuntimeError: first line\\nsecond line; run again with --debug\n")
    code, _, err = run("fit", "beta_bernoulli", coins, "--debug")
    assert code == 1
    assert "Traceback (most recent call last)" in err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_is_said_and_has_its_own_exit_code(run, coins, monkeypatch, number, code):
    monkeypatch.setattr(signals, "received", [])
    monkeypatch.setattr(os, "_exit", sys.exit)  # this process is that of the tests
    monkeypatch.setattr(fit_verb, "fit", lambda *_, **__: os.kill(os.getpid(), number))
    assert run("fit", "beta_bernoulli", coins) == (code, "", "interrupted\n")


# Options


def test_set_does_not_swallow_the_table_after_it(run, coins):
    code, out, _ = run("fit", "beta_bernoulli", "--set", "a=2", "--set", "b=3", coins, *EXACT, "--json")
    assert (code, strict(out)["fields"]) == (0, {"a": 2.0, "b": 3.0})
    assert strict(out)["data"]["source"] == "coins.csv"


# What is printed


def test_control_characters_are_made_visible_and_markup_is_printed_as_it_is(run, written):
    table = written("won\x1b[31m,y\x07\n1,1\n", "evil\x1b[2J.csv")
    code, out, err = run("fit", "beta_bernoulli", table, *EXACT)
    assert (code, out) == (2, "")
    assert err == "error: evil\\x1b[2J.csv has columns 'won\\x1b[31m', 'y\\x07'; say which with --column\n"
    table = written("[bold]x\n[blink]yes\nno\n", "[red]\x1b[2J.csv")
    code, out, err = run("fit", "beta_bernoulli", table, *EXACT, "--positive", "[blink]yes")
    assert (code, "\x1b" in out + err, "data [red]\\x1b[2J.csv" in out) == (0, False, True)
    assert "column '[bold]x': '[blink]yes' is 1, 'no' is 0" in err


# Wrong usage: one line that says what to do, and nothing on stdout

FIT = ["fit", "beta_bernoulli", "coins.csv"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "beta_bernouli"], "there is no model called 'beta_bernouli'; did you mean 'beta_bernoulli'?"),
        (["show", "../etc"], "there is no model called '../etc'; see `bayeszoo find"),
        (["simulate", "beta_bernoulli", "--size", "0"], "size must be >= 1, got 0"),
        (["simulate", "beta_bernoulli", "--seed", "-1"], 'Invalid value "-1" for --seed.'),
        (["simulate", "beta_bernoulli", "-o", "coins.csv"], "coins.csv exists; choose another name or use --overwrite"),
        (["check"], "name a model, or use --all"),
        (["compare", "beta_bernoulli", "--methods", "exact,magic"], "there is no method 'magic'; use one of"),
        (["predict", "coins.csv"], "coins.csv is not a bayeszoo result (or is damaged)"),
        (["predict", "fit.nc", "--rows", "0"], "the number of further observations must be >= 1, got 0"),
        (["predict", "fit.nc", "coins.csv", "--rows", "2"], "give a table or --rows, not both"),
        (["predict", "fit.nc", "--column", "y"], "--column goes with DATA"),
        (["frobnicate"], 'Unknown command "frobnicate".'),
        (["fit", "beta_bernoulli", "none.csv"], "there is no file: none.csv"),
        (["fit", "beta_bernoulli", "--example", "x"], "has no example 'x'; it has paris_births, placenta_previa"),
        (["fit", "beta_bernoulli", "--column", "y"], "--column goes with DATA"),
        ([*FIT, "more.csv"], "more.csv"),
        ([*FIT, "--example", "paris_births"], "give DATA or --example, not both"),
        ([*FIT, "--method", "magic"], "there is no method 'magic'; use one of exact, enumerate, mle, map"),
        ([*FIT, "--frob", "1"], "Unknown option: --frob."),
        ([*FIT, "--outcome", "y"], "Unknown option: --outcome; here it is `--target COLUMN`."),
        (
            [*FIT, "--columns", "y", "--columns", "z"],
            "Parameter --columns specified multiple times. Give it once; a list has commas: a,b.",
        ),
        (["forecast", "fit.nc"], 'Unknown command "forecast"; here it is `bayeszoo predict FIT --rows N`.'),
        ([*FIT, "--prior", "flat"], 'Invalid value "flat" for --prior.'),
        ([*FIT, "--method", "exact", "--tune", "5"], "method 'exact' has no option 'tune'; it takes draws, chains"),
        ([*FIT, "--set", "c=1"], "--set c=1: beta_bernoulli has no such field; it has a, b"),
        ([*FIT, "--set", "a=1", "--set", "a=2"], "--set a=2: a is set twice"),
        ([*FIT, "--set", "a=x"], "--set a=x: the value is not JSON; write a=0.5 or alpha=[1,1]"),
        ([*FIT, "--set", "a=" + "9" * 5000], "the value is not JSON"),
        ([*FIT, "--set", "a=" + "[" * 100_000], "the value is not JSON"),
        ([*FIT, "--set", "a=NaN"], "prior a must be finite and at most 1e+100 in size, got nan"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(run, saved, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    Path("coins.csv").write_text("y\n1\n0\n")
    Path("fit.nc").write_bytes(saved.read_bytes())
    code, out, err = run(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("error: ")
    assert message in err
