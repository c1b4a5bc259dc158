"""Content forged into a fit runs no code, and ends in an answer or in one line."""

import json
import math
import random

import numpy as np
import pytest
import xarray as xr

import bayeszoo as bz
from bayeszoo.foundation.gate import AGREEMENT
from bayeszoo.report.notebook import html
from bayeszoo.report.provenance import again
from bayeszoo.results import files
from bayeszoo.results.caveats import next_step
from bayeszoo.results.stored import Fit
from bayeszoo.results.support import ends_of
from tests import forged_fits as forge
from tests.refusals import raises

CODES = (0, 2, 3, 4)


@pytest.fixture
def ask(run, tmp_path, monkeypatch):
    """Write a forged fit, ask it by a command, and return what is wrong with how that ended."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil.py").write_text(forge.EVIL)

    def ask(tree, what, command):
        try:
            forge.write(tree, tmp_path / "fit.nc")
        except (TypeError, ValueError):  # netCDF cannot hold it, so nobody can send it
            return None
        where = ["-c", "fit.nc"] if command == "select" else ["fit.nc"]
        code, out, err = run(command, *where, *(["-o", "page.html", "--overwrite"] if command == "report" else []))
        said = [line for line in err.splitlines() if not line.startswith(("note:", "caution:", "wrote", "next:"))]
        unseen = [c for c in out + err if not c.isprintable() and c != "\n"]
        is_well = code in CODES and len(said) <= 1 and "Traceback" not in err and not unseen
        return None if is_well and not (tmp_path / "canary").exists() else (what[:300], command, code, err[-300:])

    return ask


@pytest.mark.quick
def test_forged_attributes_run_nothing_and_end_in_one_line(ask):
    cases = forge.cases(12, 5, (forge.coin, forge.formula), ("predict",))
    assert [wrong for case in cases if (wrong := ask(*case))] == []


@pytest.mark.slow  # minutes: a thousand of the same, of fits of all kinds
def test_a_thousand_forged_attributes_run_nothing_and_end_in_one_line(ask):
    assert [wrong for case in forge.cases(1000, 2026) if (wrong := ask(*case))] == []


def forged(tmp_path, **attrs):
    tree = forge.coin()
    tree.attrs |= attrs
    forge.write(tree, tmp_path / "fit.nc")
    return tmp_path / "fit.nc"


ATTRIBUTES = {
    "status": "splendid",
    "kind": "certain",
    "fields": "[1, 2]",
    "facts": "7",
    "notes": "null",
    "gate": '{"checks": {"x": {"passed": 1, "value": 0, "limit": ""}}}',
    "seed": -1,
    "data_rows": "many",
    "command": "fit 'beta",
    "columns": "[" * 10_000,
    "options": json.dumps({"x=1); import os; (y": 1}),
    "versions": json.dumps({"python": "x" * 20_000_000}),
    "model_file": json.dumps({"file": "a.py", "kind": "__import__('os')", "digest": "0" * 64}),
}


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_an_attribute_that_is_no_fits_is_named(name, tmp_path):
    with raises(bz.InputError, "damaged_fit", repr(name)):
        bz.load(forged(tmp_path, **{name: ATTRIBUTES[name]}))


@pytest.mark.parametrize("fields", [{"a": 1.0, "b": 1.0, "c": 2.0}, {"a": -1.0}, {"a": [1.0]}])
def test_fields_that_are_not_those_of_the_model_are_refused(fields, tmp_path):
    with pytest.raises(bz.InputError):
        bz.predict(bz.load(forged(tmp_path, fields=json.dumps(fields))))


def test_a_failed_gate_does_not_become_ok_by_its_status(tmp_path):
    gate = {"passed": False, "verdict": "failed", "checks": {"x": {"passed": False, "value": 1.0, "limit": "<= 0"}}}
    with raises(bz.InputError, "damaged_fit", "status"):
        bz.load(forged(tmp_path, gate=json.dumps(gate)))


def test_draws_that_are_no_numbers_are_refused_though_their_digests_are_right(run, tmp_path):
    tree = forge.coin()
    tree["posterior"]["theta"][0, 3] = np.nan
    forge.write(tree, tmp_path / "fit.nc")
    code, out, err = run("predict", tmp_path / "fit.nc")
    assert (code, out, err.count("\n")) == (2, "", 1)
    with raises(bz.InputError, "damaged_fit", "'theta'"):
        Fit(xr.load_datatree(tmp_path / "fit.nc", engine=files.ENGINE))


@pytest.mark.parametrize("value", [-1.0, 2.0, np.inf])
def test_draws_that_are_no_probabilities_end_in_one_line_though_their_digests_are_right(value, ask):
    tree = forge.made(forge.states).copy(deep=True)
    tree["posterior"]["emission"][:] = value
    assert ask(tree, value, "decode") is None


def support(model):
    """Return the names of parameters that PyMC's transforms keep above 0, and between 0 and 1."""
    declared = model.declare(bz.example(model).arrays)
    transforms = {v.name: getattr(declared.rvs_to_transforms[v], "name", None) for v in declared.free_RVs}
    above = {name for name, transform in transforms.items() if transform in ("log", "cholesky")}
    return above, {name for name, transform in transforms.items() if transform in ("logodds", "simplex")}


@pytest.mark.parametrize("name", bz.names())
def test_a_model_names_its_parameters_with_a_support_as_pymc_transforms_them(name):
    model = bz.find(name).weak(bz.example(bz.find(name)))
    above, shares = support(model)
    ends = ends_of(model)
    assert {each for each in above if ends.get(each) != (0.0, math.inf)} == set()
    assert {each for each in shares if each not in model.probabilities and ends.get(each) != (0.0, 1.0)} == set()


FORGED = {
    "a precision": ("normal_gamma", "exact", "posterior", "lam"),
    "a precision's mean": ("normal_gamma", "exact", "exact", "lam"),
    "its derived sd": ("normal_gamma", "exact", "derived", "sigma"),
    "a rate": ("gamma_poisson", "exact", "posterior", "rate"),
    "a mode of a rate": ("gamma_poisson", "map", "posterior", "rate"),
    "a variance of a matrix": ("normal_inverse_wishart", "exact", "posterior", "Sigma"),
    "a spread of groups": ("normal_means", "exact", "posterior", "tau"),
    "a variance of a mixture": ("gaussian_mixture", "map", "posterior", "covariances"),
    "a probability": ("markov_chain", "exact", "posterior", "P"),
}


@pytest.mark.parametrize(("name", "method", "group", "parameter"), FORGED.values(), ids=FORGED)
def test_numbers_outside_the_declared_support_are_refused_though_all_digests_are_right(
    name, method, group, parameter, run, tmp_path
):
    model = bz.find(name)
    data = bz.example(model)
    tree = bz.fit(model.weak(data), data, method, seed=1, groups=(), **({"draws": 20} if method == "exact" else {}))
    bz.load(files.save(tree, tmp_path / "right.nc"))
    tree = tree.copy(deep=True)
    values = tree[group][parameter].to_numpy()
    values[(0,) * values.ndim] = -2.0
    forge.write(tree, tmp_path / "fit.nc")
    with raises(bz.InputError, "damaged_fit", parameter, "-2"):
        bz.load(tmp_path / "fit.nc")
    code, out, err = run("predict", tmp_path / "fit.nc")
    assert (code, out, err.count("\n")) == (2, "", 1)


def test_a_negative_covariance_is_in_the_support():
    model = bz.find("normal_inverse_wishart")
    data = bz.read(model, {"Y": [[1.0, -1.0], [2.0, -2.5], [3.0, -2.9]], "column": ["a", "b"]})
    tree = bz.fit(model.weak(data), data, "exact", seed=1, draws=20)
    assert tree["posterior"]["Sigma"].to_numpy()[..., 0, 1].min() < 0
    assert Fit(tree.copy(deep=True)).draws()


ODD_ARRAYS = {
    "data without their features": (forge.formula, "constant_data", "feature", "left out", "contrasts"),
    "no array of the data": (forge.coin, "observed_data", "y", "one number", "residuals"),
    "words for numbers": (forge.formula, "observed_data", "y", "type", "predict"),
    "no statistic": (forge.statistics, "statistics", "failures", "left out", "predict"),
    "another statistic": (forge.statistics, "statistics", "failures", "renamed", "residuals"),
    "a statistic of two": (forge.statistics, "statistics", "failures", "one more axis", "predict"),
    "no draws": (forge.coin, "posterior", "theta", "renamed", "residuals"),
    "draws without axes": (forge.coin, "posterior", "theta", "flat", "residuals"),
}


@pytest.mark.parametrize(("fit", "group", "name", "how", "command"), ODD_ARRAYS.values(), ids=ODD_ARRAYS)
def test_arrays_of_other_shapes_end_in_one_line_though_all_digests_are_right(fit, group, name, how, command, ask):
    tree = forge.reshaped(forge.made(fit), Always(), group, name, how)[0]
    assert ask(tree, how, command) is None


@pytest.mark.parametrize(("name", "how"), [("statistic", "cut"), ("theta", "shorter"), ("theta", "one more axis")])
def test_a_closed_form_of_other_statistics_is_refused_though_its_digests_are_right(name, how, tmp_path):
    forge.write(forge.reshaped(forge.made(forge.coin), Always(), "exact", name, how)[0], tmp_path / "fit.nc")
    with raises(bz.InputError, "group_differs", "'exact'"):
        bz.load(tmp_path / "fit.nc")


@pytest.mark.parametrize(
    ("group", "name", "how"),
    [("posterior_predictive", "y", "flat"), ("posterior_predictive", "draw", "flat"), ("observed_data", "y", "flat")],
)
def test_replicates_that_are_not_beside_the_outcomes_are_refused_though_their_digests_are_right(
    group, name, how, tmp_path
):
    forge.write(forge.reshaped(forge.made(forge.coin), Always(), group, name, how)[0], tmp_path / "fit.nc")
    with raises(bz.InputError, "group_differs", "predictive"):
        bz.load(tmp_path / "fit.nc")


class Always(random.Random):
    """Chance that takes the first of all choices, and makes digests anew."""

    def random(self):
        return 0.0

    def choice(self, seq):
        return seq[0]


UNSEEN = "\u202ey\x1b[2J<b>"


def hidden():
    linear = bz.find("linear_regression")
    data = bz.read(linear, {UNSEEN: [1.0, 2, 3, 4], "y": [1.0, 3, 2, 4]}, target="y")
    return bz.fit(linear.weak(data), data, "exact", seed=1)


@pytest.mark.parametrize("change", [lambda v: v[..., :1], lambda v: np.concatenate([v, v], axis=-1)])
def test_draws_of_other_sizes_are_refused_though_their_digests_are_right(change, run, tmp_path):
    model = bz.find("dirichlet_multinomial")
    tree = bz.fit(model(), {"y": ["a", "b", "c", "a"]}, "exact", seed=1, draws=20)
    posterior = tree["posterior"].to_dataset().drop_vars(["p", "category"])
    tree["posterior"] = xr.DataTree(posterior.assign(p=(("chain", "draw", "k"), change(tree["posterior"]["p"].values))))
    path = files.save(tree, tmp_path / "other.nc")
    with raises(bz.InputError, "group_differs", "p", "'exact'"):
        Fit(bz.load(path)).draws()
    for verb in ("report", "residuals", "predict"):  # an answer in closed form asks for no draw
        code, _, err = run(verb, str(path), *(["-o", str(tmp_path / "page.html")] if verb == "report" else []))
        assert code in (0, 2)
        assert "bug" not in err


def test_a_notebook_shows_what_nobody_would_see():
    page = html(hidden())
    assert r"\u202ey" in page
    assert not {"\u202e", "\x1b"} & {*page}


@pytest.mark.slow  # a page has pictures
def test_a_page_shows_what_nobody_would_see(tmp_path):
    bz.report(hidden(), tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert r"\u202ey" in page
    assert not {"\u202e", "\x1b"} & {*page}
    assert "[2J<b>" not in page


@pytest.mark.parametrize("command", ["fit evil.py:Evil rows.csv", "fit beta_bernoulli rows.csv -c evil.py:Evil", "fit"])
def test_no_command_of_a_fit_that_would_run_a_file_is_shown_to_be_typed(command, tmp_path):
    tree = bz.load(forged(tmp_path, command=command))
    assert "evil" not in again({"it": Fit(tree)}).blocks.__repr__()
    checks = {AGREEMENT: {"verdict": "failed", "passed": False, "value": 9.0, "limit": "<= 6"}}
    tree = bz.load(forged(tmp_path, command=command, status="failed", gate=json.dumps({"checks": checks})))
    assert next_step(Fit(tree)).endswith("try bayeszoo check beta_bernoulli") or "rows.csv" in next_step(Fit(tree))
    assert "evil" not in next_step(Fit(tree))
