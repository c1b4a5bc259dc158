"""Wrong usage of the command line: one line that says what to do, exit code 2, and nothing on stdout."""

from pathlib import Path

import pytest

import bayeszoo as bz
from bayeszoo.cli.app import main

FIT = ["fit", "beta_bernoulli", "coins.csv"]


@pytest.fixture(scope="module")
def fit(tmp_path_factory):
    """A saved fit."""
    tree = bz.fit(bz.find("beta_bernoulli")(), [1, 0, 1], "exact", seed=1)
    return bz.save(tree, tmp_path_factory.mktemp("fits") / "fit.nc")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "beta_bernouli"], "there is no model called 'beta_bernouli'; did you mean 'beta_bernoulli'?"),
        (["show", "../etc"], "there is no model called '../etc'; see `bayeszoo list`"),
        (["simulate", "beta_bernoulli", "--size", "0"], "size must be >= 1, got 0"),
        (["simulate", "beta_bernoulli", "--seed", "-1"], 'Invalid value "-1" for --seed.'),
        (["simulate", "beta_bernoulli", "--prior", "weak"], "Unknown option: --prior."),
        (["simulate", "beta_bernoulli", "-o", "none/x.csv"], "there is no folder 'none'; make it first"),
        (["simulate", "beta_bernoulli", "-o", "coins.csv"], "coins.csv exists; choose another name or use --overwrite"),
        (["check"], "name a model, or use --all"),
        (["check", "beta_bernoulli", "--all"], "name a model, or use --all"),
        (
            ["compare", "beta_bernoulli", "--methods", "exact,magic"],
            "there is no method 'magic'; use one of",
        ),
        (["predict", "none.nc"], "not a regular file: none.nc"),
        (["predict", "coins.csv"], "coins.csv is not a bayeszoo result (or is damaged)"),
        (["predict", "fit.nc", "--rows", "0"], "the number of further observations must be >= 1, got 0"),
        (["predict", "fit.nc", "coins.csv", "--rows", "2"], "give a table or --rows, not both"),
        (["predict", "fit.nc", "--column", "y"], "--column goes with DATA"),
        (["frobnicate"], 'Unknown command "frobnicate".'),
        (["fit", "beta_bernoulli", "none.csv"], "not a regular file: none.csv"),
        (["fit", "beta_bernoulli", "--example", "x"], "has no example 'x'; it has paris_births, placenta_previa"),
        (["fit", "beta_bernoulli", "--column", "y"], "--column goes with DATA"),
        ([*FIT, "more.csv"], "more.csv"),
        ([*FIT, "--example", "paris_births"], "give DATA or --example, not both"),
        ([*FIT, "--method", "magic"], "there is no method 'magic'; use one of exact, enumerate, mle, map"),
        ([*FIT, "--frob", "1"], "Unknown option: --frob."),
        ([*FIT, "--prior", "flat"], 'Invalid value "flat" for --prior.'),
        ([*FIT, "--method", "exact", "--tune", "5"], "method 'exact' has no option 'tune'; it takes draws, chains"),
        ([*FIT, "--draws", "0"], "draws must be a whole number >= 1, got 0"),
        ([*FIT, "--seed", "9223372036854775808"], "for --seed."),
        ([*FIT, "-o", "fit.txt"], "fits are saved as netCDF: 'fit.txt' must end in .nc"),
        ([*FIT, "-o", "fit.nc"], "fit.nc exists; choose another name or use --overwrite"),
        ([*FIT, "--set", "c=1"], "--set c=1: beta_bernoulli has no such field; it has a, b"),
        ([*FIT, "--set", "a"], "--set a: beta_bernoulli has no such field; it has a, b"),
        ([*FIT, "--set", "a=1", "--set", "a=2"], "--set a=2: a is set twice"),
        ([*FIT, "--set", "a=x"], "--set a=x: the value is not JSON; write a=2 or alpha=[1,1]"),
        ([*FIT, "--set", "a=" + "9" * 5000], "the value is not JSON"),
        ([*FIT, "--set", "a=" + "[" * 100_000], "the value is not JSON"),
        ([*FIT, "--set", "a=0"], "prior a must be > 0, got 0"),
        ([*FIT, "--set", "a=-1"], "prior a must be > 0, got -1"),
        ([*FIT, "--set", "a=NaN"], "prior a must be finite and at most 1e+100 in size, got nan"),
        ([*FIT, "--set", "a=true"], "prior a must be a number, got True"),
        ([*FIT, "--set", 'a="x"'], "prior a must be a number, got 'x'"),
        ([*FIT, "--set", "a=[1,2]"], "prior a must be a number, got [1, 2]"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(capsys, fit, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    Path("coins.csv").write_text("y\n1\n0\n")
    Path("fit.nc").write_bytes(fit.read_bytes())
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    out, err = capsys.readouterr()
    assert (stop.value.code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("error: ")
    assert message in err
