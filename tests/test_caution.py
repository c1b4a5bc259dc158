"""Fits with status caution: every output shows the numbers with the caveat."""

import contextlib
import io
import json
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import bayeszoo as bz
from bayeszoo.cli.app import main
from bayeszoo.data.inputs import Real
from bayeszoo.foundation import gate
from bayeszoo.foundation.gate import at_most
from bayeszoo.inference.methods import nuts
from bayeszoo.inference.problem import Outcome, Problem
from bayeszoo.inference.reference import Reference
from bayeszoo.model import Symmetric
from bayeszoo.report import verdict
from bayeszoo.report.text import numbers, tables
from bayeszoo.results import gaps, measured
from bayeszoo.results.assemble import assemble
from bayeszoo.results.caveats import failures_of, next_step
from bayeszoo.results.stored import Fit, dumps
from bayeszoo.results.summary import components_withheld, document
from tests.quick import zoo_with

COIN = bz.find("beta_bernoulli")
ROWS = [0, 1, 1, 1, 0, 1]
SHORT = ("--draws", 400, "--tune", 100)
latent_models = zoo_with("latent_models")


def said_by(*arguments):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return ended.value.code, out.getvalue(), err.getvalue()


def a_little_off(problem, settings):
    """Move one chain so that R-hat is about 1.02, whatever the length."""
    run = nuts._with_nutpie(problem, settings)
    theta = run.draws["theta"]
    theta[1] = theta[1] * (1 - 0.7 * float(theta.std()))
    return run


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A fit by NUTS that misses R-hat by little at every attempt, with what the command line said of it."""
    folder = tmp_path_factory.mktemp("caution")
    (folder / "y.csv").write_text("y\n" + "\n".join(map(str, ROWS)) + "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(nuts.SAMPLERS, "nutpie", a_little_off)
        said = said_by("fit", "beta_bernoulli", folder / "y.csv", *SHORT, "--seed", 1, "-o", folder / "fit.nc")
    return folder / "fit.nc", said


@pytest.fixture(scope="module")
def caution(saved):
    with pytest.warns(bz.Caution, match=r"^beta_bernoulli, nuts: .*r_hat: 1\.0"):
        return bz.load(saved[0])


def test_the_screen_shows_the_numbers_with_the_caveat_after_the_longest_attempt(saved, caution):
    code, out, err = saved[1]
    assert code == 0
    assert "checks of the gate with a caveat\ncaution r_hat: 1.0" in out
    assert "withheld" not in out
    assert (
        numbers.statistic("mean", *(float(bz.summarize(caution)["theta"][key]) for key in ("mean", "mcse_mean")))
        in out.split()
    )
    assert err.count("did not pass: r_hat 1.0") == 3
    assert "caution: beta_bernoulli, nuts: estimates are shown with a warning: r_hat: 1.0" in err


def test_an_sd_whose_error_is_not_known_has_two_digits(caution):
    described = document(Fit(caution))
    described["parameters"]["theta"] |= {"sd": 3811.2, "mcse_sd": math.nan}
    heads, (row,) = tables.estimate_rows(Fit(caution), described)
    assert row[heads.index("sd")] == "3800"


def test_the_file_json_and_report_carry_the_verdict(caution):
    described = document(Fit(caution))
    assert (caution.attrs["status"], described["status"], Fit(caution).gate["verdict"]) == ("caution",) * 3
    assert Fit(caution).gate["passed"] is False
    assert described["parameters"]["theta"]["mean"] is not None
    assert [described["warnings"][0], described["next"]] == ["estimates are shown with a warning", None]
    assert "(must be <= 1.01; shown to 1.05)" in described["warnings"][1]
    said = verdict.verdict("nuts", described)
    assert (said.state, said.headline) == ("caution", "to be read with caution")
    assert said.words.startswith("Estimates are shown with a warning: r_hat: 1.0")
    assert "r_hat: 1.0" in bz.view(caution)._repr_html_()


def test_strict_makes_it_exit_code_3_and_prediction_is_shown(saved):
    code, out, err = said_by("predict", saved[0])
    assert (code, "0.6" in out) == (0, True)
    assert err.startswith("caution: beta_bernoulli, nuts: ")
    beside = json.loads(said_by("predict", saved[0], "--json")[1])
    assert (beside["status"], beside["caveats"][0][:10]) == ("caution", "r_hat: 1.0")
    strict, same, _ = said_by("predict", saved[0], "--strict")
    assert (strict, same) == (3, out)
    assert said_by("list", "--strict")[0] == 0


def test_selection_shows_and_does_not_rank_it(caution):
    exact = [bz.fit(COIN(a=a, b=2), Fit(caution).data, "exact", seed=1) for a in (2, 3)]
    table = bz.select([caution, *exact], seed=1).set_index("status")
    assert list(table.index) == ["ok", "ok", "caution"]
    assert table["loo"].notna().all()
    assert table["loo_difference"].notna().tolist() == [True, True, False]


def test_files_of_two_verdicts_are_read(tmp_path):
    tree = bz.fit(COIN(a=2, b=2), ROWS, "nuts", seed=1, draws=50, tune=50, extend=False, groups=())
    old = {"passed": False, "checks": {"draws": {"passed": False, "value": 50.0, "limit": ">= 400"}}}
    tree.attrs |= {"status": "not converged", "gate": json.dumps(old)}
    loaded = bz.load(bz.save(tree, tmp_path / "old.nc"))
    assert (Fit(loaded).status, Fit(loaded).is_shown) == ("failed", False)
    assert failures_of(Fit(loaded)) == ["estimates are withheld: the gate did not pass", "draws: 50 (must be >= 400)"]
    assert bz.summarize(loaded)["theta"]["mean"] is None
    assert document(Fit(loaded))["next"] == "try --chains 4 --draws 1000"


# Components


@pytest.mark.parametrize(("shift", "status"), [(0.0, "ok"), (0.04, "caution"), (0.3, "ok")])
def test_components_that_miss_by_little_are_shown_with_the_caveat(shift, status):
    """Where they miss by far they are withheld, and what does not depend on labels is shown."""
    rng, rows = np.random.default_rng(1), {"y": np.array([0, 1, 4, 5, 12, 30])}
    rates = np.array([2.0, 10.0]) * np.exp(0.1 * rng.normal(size=(4, 500, 2)))
    rates[0, :, 1] *= 1 + shift
    params = {"weights": rng.dirichlet([30.0, 20.0], (4, 500)), "rates": rates}
    model = bz.find("toy_poisson_mixture")(2, 1.0, 1.0, 0.1)
    problem = Problem(model, bz.read(model, rows), rng)
    outcome = Outcome(params, "by hand", [at_most("nothing", 0, 0)])
    tree = assemble(problem, outcome, {"method": "by hand", "kind": "sampled", "seed": 0}, {})
    assert tree.attrs["status"] == status
    assert bool(components_withheld(Fit(tree))) == bool(next_step(Fit(tree))) == (shift == 0.3)
    assert (bz.summarize(tree)["rates"]["mean"] is None) == (shift == 0.3)
    assert ("components: r_hat" in Fit(tree).checks) == (status == "caution")


@dataclass(frozen=True)
class Twins(Symmetric):
    """Two means that only their sum tells of; nothing says which component a row is of."""

    inputs = Real("y")
    dims: ClassVar = {"mu": ("component",)}

    def exchangeable_axis(self):
        return "component"

    def invariants(self, params, data):
        return {"total": params["mu"].sum(axis=-1)}

    def simulate(self, rng, size=3):
        return {"mu": np.zeros(2)}, {"y": rng.normal(size=size)}

    def declare(self, data):
        raise NotImplementedError


@pytest.mark.parametrize(("kind", "is_shown"), [("sampled", False), ("approximate", True)])
def test_draws_whose_labels_nothing_tells_apart_are_not_averaged(kind, is_shown):
    rng = np.random.default_rng(1)
    model, outcome = Twins(), Outcome({"mu": rng.normal(size=(4, 100, 2))}, "by hand", [], {"k_hat": 0.1})
    unmeasured = {"reference": Reference("it has no density")}
    problem = Problem(model, bz.read(model, {"y": [0.0, 1.0, 2.0]}), rng, shared=unmeasured)
    tree = assemble(problem, outcome, {"method": "by hand", "kind": kind, "seed": 0}, {})
    assert (bz.summarize(tree)["mu"]["mean"] is not None) == is_shown
    assert ("single components are withheld: " in "".join(tables.figures(document(Fit(tree))))) != is_shown


# Approximations that failed, beside fits that are ok


@pytest.fixture(scope="module")
def fits():
    """Four fits of one posterior: exact, by NUTS, and a Laplace approximation and a mode that fail their gate."""
    data, made = bz.read(COIN, ROWS), {}
    for method in ("exact", "nuts", "laplace", "map"):
        made[method] = bz.fit(COIN(a=2, b=2), data, method, seed=1, groups=())
    for method in ("laplace", "map"):
        made[method].attrs |= {"status": "failed", "gate": dumps(gate.as_dict([at_most("k_hat", 0.9, 0.7)]))}
    return made


@pytest.mark.parametrize("trusted", ["exact", "nuts"])
def test_an_approximation_that_failed_is_measured_against_a_trusted_fit(fits, trusted):
    frame = bz.compare([fits[trusted], fits["laplace"], fits["map"]]).set_index("method")
    theta = fits["laplace"]["posterior"]["theta"]
    mean, sd = (frame.loc[trusted, name] for name in ("mean", "sd"))
    assert frame.loc["laplace", ["status", "measured_against"]].tolist() == ["failed", trusted]
    assert frame.loc["laplace", "mean"] == pytest.approx(float(theta.mean()))
    assert frame.loc["laplace", "error_sd"] == pytest.approx((float(theta.mean()) - mean) / sd)
    assert frame.loc["laplace", "sd_ratio"] == pytest.approx(float(theta.std()) / sd)
    assert frame.loc["map", "error_sd"] == pytest.approx((5 / 8 - mean) / sd)  # Beta(6, 4) has its mode there
    assert frame.loc[["laplace", "map"], ["q025", "q975", "p_positive", "log_evidence", "elbo"]].isna().all(axis=None)
    lines = tables.measured_gaps(frame.reset_index())
    assert lines[0].startswith(f"laplace FAILED its gate, and is off from {trusted} by at most: theta mean 0.")
    assert "sd a factor of" in lines[0]
    assert "factor" not in lines[1]
    labelled = next(tables.comparison_tables(frame.reset_index()))[2]
    assert [row[1] for row in labelled] == [trusted, "laplace (failed)", "map (failed)"]


def test_the_command_shows_how_an_approximation_lies(run, written, monkeypatch):
    monkeypatch.setattr(measured, "MAX_MEAN_GAP", -1.0)
    monkeypatch.setattr(gaps, "SHOWN_MEAN_GAP", -1.0)
    data, methods = written("y\n0\n1\n1\n"), ("--methods", "exact,laplace")
    code, out, err = run("compare", "beta_bernoulli", data, *methods, "--seed", 1)
    assert code == 3
    assert "laplace (failed)" in out
    assert "laplace FAILED its gate, and is off from exact by at most: theta mean 0." in out
    assert "warning: laplace: the gate did not pass; means and sds are shown with their measured gaps\n" in err
    assert "next: laplace: try --method exact" in err
    err = run("fit", "beta_bernoulli", data, "--method", "laplace", "--seed", 1)[2]
    assert err.endswith(
        f"next: try --method exact\nthat is: bayeszoo fit beta_bernoulli {data} --seed 1 --method exact\n"
    )


def test_without_a_trusted_fit_it_stays_withheld(fits):
    untrusted = fits["nuts"].copy()
    untrusted.attrs["status"] = "caution"
    other = bz.fit(COIN(a=1, b=9), Fit(fits["nuts"]).data, "exact", seed=1)
    frame = bz.compare([untrusted, other, fits["laplace"]]).set_index("method")
    assert frame.loc["laplace", ["mean", "sd", "error_sd", "measured_against"]].isna().all()
    assert tables.measured_gaps(frame.reset_index()) == []


# What to try next

NEXT = [
    ("beta_bernoulli", "nuts", ["r_hat"], "try --draws 4000, or --method exact"),
    ("beta_bernoulli", "nuts", ["divergences"], "try a narrower prior (--set FIELD=...), or --method exact"),
    ("beta_bernoulli", "nuts", ["stuck_chains"], "try --seed 2, or --method exact"),
    ("beta_bernoulli", "nuts", ["draws"], "try --chains 4 --draws 1000"),
    ("gaussian_mixture", "nuts", ["r_hat"], "try bayeszoo select -c gaussian_mixture --components 1-4, or --method vb"),
    ("gaussian_mixture", "vb", ["k_hat"], "try --method nuts"),
    ("student_t", "laplace", ["k_hat"], "try --method nuts"),
    ("lda", "vb", ["k_hat"], "try --method gibbs"),
    ("lda", "gibbs", ["r_hat"], "try --thin 20, or --method vb"),
]


@pytest.mark.parametrize(("name", "method", "failed", "step"), NEXT)
def test_a_failed_fit_names_the_command_to_try(fits, name, method, failed, step):
    tree = fits["nuts"].copy()
    made = {"model": name, "fields": dumps({"K": 2} if name == "gaussian_mixture" else {}), "method": method}
    checks = [at_most(check, None, 0) for check in failed]
    tree.attrs |= {**made, "kind": "approximate", "status": "failed"}
    tree.attrs["gate"] = dumps(gate.as_dict(checks))
    if method in ("nuts", "gibbs"):
        tree.attrs |= {"kind": "sampled", "facts": dumps({"thin": 10} if method == "gibbs" else {})}
    assert next_step(Fit(tree)) == step
    assert next_step(Fit(fits["nuts"])) == ""


@pytest.mark.parametrize(
    ("prior", "fields", "step"),
    [
        ("weak", {}, "a proper prior"),
        ("weak", {"nu": 4}, "a proper prior (--set FIELD=...)"),
        ("textbook", {}, "--prior weak"),
    ],
)
def test_after_a_density_without_bound_a_proper_prior_comes_next_and_not_smc_which_needs_one(fits, prior, fields, step):
    tree, values = fits["nuts"].copy(), {"r_hat": 3.1, "divergences": 1000.0}
    tree.attrs |= {"model": "robust_regression", "fields": dumps(fields), "status": "failed", "prior": prior}
    tree.attrs["gate"] = dumps(gate.as_dict([at_most(name, value, 1) for name, value in values.items()]))
    assert next_step(Fit(tree)).endswith(f"chains are far apart, and break; try {step}")


def test_the_next_step_says_how_far_the_chains_are_apart_and_runs_on_the_same_data(fits):
    tree = fits["nuts"].copy()
    tree.attrs |= {"model": "gaussian_mixture", "fields": dumps({"K": 5}), "kind": "sampled", "status": "failed"}
    tree.attrs |= {"gate": dumps(gate.as_dict([at_most("r_hat", 1.4, 1.01)])), "facts": dumps({})}
    tree.attrs["command"] = "fit gaussian_mixture 'my rows.csv' --set K=5"
    command = "bayeszoo select 'my rows.csv' -c gaussian_mixture --components 1-6"
    sizes = tree["posterior"].sizes
    apart = f"R-hat 1.4 after {sizes['chain'] * sizes['draw']} draws: chains are in different modes"
    assert next_step(Fit(tree)) == f"{apart}; try {command}, or --method vb"
    tree.attrs["command"] = "fit gaussian_mixture --example iris"
    assert "select --example iris -c" in next_step(Fit(tree))


def test_derived_quantities_that_do_not_exist_are_withheld_with_their_reason():
    class Underived(bz.find("gaussian_mean")):
        def derived(self, params):
            raise bz.NumericalError("they have no value here")

    tree = bz.fit(Underived(), {"y": [1.0, 2.0]}, "exact", seed=1, groups=())
    assert json.loads(tree.attrs["facts"])["derived_withheld"] == "they have no value here"
    assert "derived" not in tree
