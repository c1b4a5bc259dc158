"""A second model is one file, and with all required steps and no optional one it works with every method it offers."""

import json
import subprocess
import sys
import sysconfig
from dataclasses import field, fields, make_dataclass
from pathlib import Path

import numpy as np
import pytest

import bayeszoo as bz
from bayeszoo.contract.sampler import MAX_Z
from bayeszoo.fit import methods_for
from bayeszoo.model import EM, Model, PointEstimates
from bayeszoo.model import capabilities as can
from bayeszoo.model import find as zoo
from tests.quick import quick_first, zoo_with
from tests.refusals import raises

scratch_models = zoo_with("scratch_models")
# Proschan 1963: hours between failures of the air conditioning of one Boeing 720
HOURS = [23, 261, 87, 7, 120, 14, 62, 47, 225, 71, 246, 21, 42, 20, 5, 12, 120, 11, 3, 14, 71, 11, 14, 11, 16, 90]
HOURS += [1, 16, 52, 95]


@pytest.fixture
def waiting():
    return bz.find("waiting_time")


@pytest.fixture
def failures(tmp_path):
    """A user's CSV."""
    path = tmp_path / "failures.csv"
    path.write_text("failure,km/h\n" + "".join(f"{i},{hours}\n" for i, hours in enumerate(HOURS)))
    return path


def test_a_model_in_one_file_passes_the_whole_contract(waiting):
    card = bz.check(waiting)
    assert [str(check) for check in card if not check.passed] == []
    assert {"candidate identity", "units", "simulator (KS p)", "NUTS: largest |z|"} <= {check.name for check in card}


@pytest.mark.slow
def test_the_contract_holds_on_real_data(waiting):
    data = bz.read(waiting, [3.6e12 * hours for hours in HOURS])  # in nanoseconds
    card = bz.check(waiting.weak(data), data, sampler=False)
    assert [str(check) for check in card if not check.passed] == []


def test_every_method_agrees_with_the_closed_form(waiting):
    data = bz.read(waiting, HOURS)
    frame = bz.compare(waiting.weak(data), data, ["exact", "mle", "map", "laplace", "advi", "nuts"], seed=1)
    found = frame.set_index("method")
    assert set(found["status"].drop("laplace")) == {"ok"}
    assert found.loc["laplace", "status"] in ("ok", "caution")  # 0.09 sd off, of a limit of 0.1
    assert found.loc[["map", "laplace", "advi"], "error_sd"].abs().max() < 0.25  # the mode is 1 / 31 below the mean
    assert abs(found.loc["nuts", "error_mcse"]) < MAX_Z
    assert found.loc["laplace", "log_evidence"] == pytest.approx(found.loc["exact", "log_evidence"], abs=0.01)
    assert found["loo_score"].max() - found["loo_score"].min() < 0.05  # six routes to the same predictions


# Command line


def test_list_and_show_know_it(run):
    found = {model["name"]: model for model in json.loads(run("list", "--json")[1])["models"]}["waiting_time"]
    listed = "Sufficient, ClosedForm, Predictive, Conjugate, PointEstimates, Observable"
    assert (", ".join(found["capabilities"]), found["data"]) == (listed, [])
    shown = run("show", "waiting_time")[1]
    for line in (
        "t_n  ~ Exponential(rate)",
        "one column of numbers > 0 (t)",
        "t ~ Exponential [row], observed <- rate",
    ):
        assert line in shown


def test_fit_scales_the_prior_to_the_user_s_column_and_predicts_its_rows(run, failures, tmp_path):
    options = ["--column", "km/h", "--json"]
    fitted = ["--method", "exact", "-o", tmp_path / "fit.nc"]
    code, out, err = run("fit", "waiting_time", failures, *options, *fitted)
    assert (code, err.splitlines()[0]) == (0, "priors are scaled to the data, and so is the log evidence")
    found = json.loads(out)
    assert found["fields"] == pytest.approx({"a": 1, "b": np.mean(HOURS)})
    assert found["parameters"]["rate"]["mean"] == pytest.approx(1 / np.mean(HOURS))
    assert found["exact"]["log_evidence"] == found["log_evidence"]
    code, out, _ = run("predict", tmp_path / "fit.nc", failures, *options)
    assert (code, [row["observed"] for row in json.loads(out)["rows"]]) == (0, HOURS)


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ("t\n1\n0\n-2\n", [], "column 't', row 2: '0' is not > 0 (and 1 more: row 3)"),
        ("t\n1\n2\n", ["--set", "b=0"], "prior rate must be > 0, got 0"),
        (None, [], "WaitingTime comes with no example; give the data"),
    ],
)
def test_what_does_not_suit_it_is_refused_in_one_line(run, tmp_path, rows, options, message):
    table = tmp_path / "bad.csv"
    if rows is not None:
        table.write_text(rows)
    code, out, err = run("fit", "waiting_time", *([table] if rows else []), "--method", "exact", *options)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


# Plug-ins


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a distribution: ``install("name", {"model": "module:Class"}, {"module": source})``."""
    site = tmp_path / "site"

    def make(name, points, modules=()):
        info = site / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = "".join(f"{model} = {where}\n" for model, where in points.items())
        (info / "entry_points.txt").write_text(f"[bayeszoo.models]\n{lines}")
        for module, source in dict(modules).items():
            (site / f"{module}.py").write_text(source)
            monkeypatch.delitem(sys.modules, module, raising=False)
        monkeypatch.syspath_prepend(site)

    yield make
    zoo.by_name.cache_clear()
    for module in ("their_module", "broken_module"):
        sys.modules.pop(module, None)


def plugin_source(name="TheirCoin"):
    return (
        "from dataclasses import dataclass\nfrom bayeszoo.models.beta_bernoulli import BetaBernoulli\n"
        f"@dataclass(frozen=True)\nclass {name}(BetaBernoulli):\n    pass\n"
    )


def test_a_plug_in_is_listed_without_being_imported_and_imported_when_named(install, run):
    install("theirs", {"their_coin": "their_module:TheirCoin"}, {"their_module": plugin_source()})
    code, out, _ = run("list")
    assert code == 0
    assert "their_coin  plug-in, not loaded until named (their_module:TheirCoin)" in out
    assert "their_coin" in bz.names()
    assert "their_module" not in sys.modules
    assert bz.find("their_coin").__name__ == "TheirCoin"
    tree = bz.fit(bz.find("their_coin")(), [1, 0, 1], "exact", seed=1)
    assert tree.attrs["model"] == "their_coin"


@pytest.mark.parametrize("name", ["their_coin", "beta_bernoulli"])
def test_two_models_of_one_name_are_refused(install, run, name):
    install("theirs", {name: "their_module:TheirCoin"}, {"their_module": plugin_source()})
    install("others", {name: "their_module:TheirCoin"})
    code, _, err = run("list")
    assert code == 2
    assert err == f"error: two installed models are called {name!r}; uninstall one\n"


def test_a_plug_in_must_be_the_model_that_it_is_offered_as(install):
    points = {"my_coin": "their_module:TheirCoin", "not_a_model": "json:dumps", "halfway": "bayeszoo.model:ClosedForm"}
    install("theirs", points, {"their_module": plugin_source()})
    for name, message in {
        "my_coin": ("duplicate_name", "TheirCoin", "'their_coin'", "'my_coin'"),
        "not_a_model": ("not_a_model", "'not_a_model'", "bayeszoo"),
        "halfway": ("bad_model_file", "declare", "log_evidence", "posterior"),
    }.items():
        with raises(bz.InputError, *message):
            bz.find(name)


@pytest.mark.parametrize(
    "arguments", quick_first([("fit", "beta_bernoulli", "--method", "exact"), ("show", "evil"), ("list",)], 2)
)
def test_files_in_the_current_folder_are_never_imported(tmp_path, arguments):
    for name in ("numpy", "model", "beta_bernoulli", "models", "bayeszoo", "sitecustomize", "evil"):
        (tmp_path / f"{name}.py").write_text("print('imported')\nraise SystemExit(99)\n")
    command = Path(sysconfig.get_path("scripts")) / "bayeszoo"
    done = subprocess.run([command, *arguments], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == (2 if "evil" in arguments else 0), done.stderr
    assert "imported" not in done.stdout + done.stderr


# Plug-ins with the required steps alone: those of a model of the zoo, without its optional ones

DATA = {
    "gaussian_mean": {"y": np.array([-2.0, -1.8, 2.1, 1.9, 2.2])},
    "multinomial_mixture": {"counts": np.array([[3, 1, 0], [4, 0, 1], [0, 2, 5], [1, 1, 6]]), "word": list("abc")},
    "lda": {"counts": np.array([[2, 1, 0], [0, 2, 1], [1, 0, 2]]), "word": list("abc")},
}
CONJUGATE = can.Observable, can.Sufficient, can.ClosedForm, can.Predictive, can.Conjugate, PointEstimates
CLOSED = [(kind,) for kind in CONJUGATE]
LATENT = [(kind,) for kind in (EM, can.Variational, can.Latent, can.Enumerable, can.Symmetric)]
LATENT += [(EM, can.Variational), (can.Latent, can.Symmetric)]
BASES = {"gaussian_mean": CLOSED, "multinomial_mixture": LATENT, "lda": [(can.Stochastic,), (can.Collapsed,)]}
KINDS = [kind for kind in vars(can).values() if isinstance(kind, type) and issubclass(kind, Model)]
HELPERS = {"vb_m_step", "vb_posterior", "exchangeable_axis"}
"""Steps by which others of the zoo's models are computed."""
QUICK = {"exact", "enumerate", "map", "mle", "em", "gibbs"}
"""Methods that compile little or nothing."""


def plug_in(name, *bases):
    """Make a model of these capabilities alone."""
    right, steps = bz.find(name), {}
    for kind in reversed(right.__mro__[: right.__mro__.index(Model)]):
        steps |= vars(kind) if kind not in KINDS else {}
    required = HELPERS.union(*(base.__abstractmethods__ for base in bases))
    offered = set().union(*map(vars, [Model, *KINDS]))
    kept = {step for step in steps if step in required or step not in offered} | {"inputs", "dims"}
    own = {step: steps[step] for step in kept & steps.keys() if not step.startswith(("__", "_abc"))}
    own |= {"own": tuple(kept), "coords": lambda self, data: right().coords(data), "_data": DATA[name]}
    typed = [(f.name, f.type, field(default=f.default, metadata=f.metadata)) for f in fields(right)]
    called = "Plug" + "".join(base.__name__ for base in bases)
    return make_dataclass(called, typed, bases=bases, namespace=own, frozen=True)


PLUG_INS = [plug_in(name, *bases) for name, each in BASES.items() for bases in each]


def slow_if_compiled(kind, method):
    """Mark what goes through PyMC."""
    by_steps = issubclass(kind, EM | PointEstimates) or method not in ("map", "mle")
    return [pytest.mark.slow] * (method not in QUICK or not by_steps)


OPTIONS = {"nuts": {"draws": 50, "tune": 50, "chains": 2, "extend": False}, "gibbs": {"draws": 50, "tune": 20}}


@pytest.mark.parametrize(
    ("kind", "method"),
    [
        pytest.param(kind, method, marks=slow_if_compiled(kind, method), id=f"{kind.name}-{method}")
        for kind in PLUG_INS
        for method in methods_for(kind)
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_required_steps_are_enough(kind, method):
    tree = bz.fit(kind(), kind._data, method, seed=1, **OPTIONS.get(method, {}))
    posterior = tree["posterior"].to_dataset()
    assert tree.attrs["method"] == method
    assert all(np.isfinite(values).all() for values in posterior.values())
    if tree.attrs["status"] == "ok" and "mu" in posterior:
        assert abs(posterior["mu"].mean() - 0.48) < 0.2


def test_a_misspelt_step_is_refused_with_the_name_it_may_have_meant():
    with pytest.raises(TypeError, match=r"Misspelt\.remarkz .*\bremarks\b"):
        type("Misspelt", (Model,), {"remarkz": lambda self, stats, data: ("lost",)})
    with pytest.raises(TypeError, match=r"Misspelt\.degenerated .*\bdegenerate\b"):
        type("Misspelt", (EM,), {"degenerated": lambda self, params, data: ""})
    assert type("Own", (Model,), {"own": ("special",), "special": lambda self: 1}).name == "own"


def test_a_model_without_a_required_step_is_not_made():
    kind = type("Halfway", (plug_in("multinomial_mixture", EM),), {"m_step": EM.m_step})
    with pytest.raises(TypeError, match="m_step"):
        kind()


def test_a_model_that_is_no_dataclass_is_refused_in_a_line():
    with raises(bz.InputError, "not_a_model", "PlugEM"):
        type("PlugEM", (Model,), dict.fromkeys(("simulate", "declare"), lambda self, *_: None))()


def test_parameters_of_rows_that_have_no_names_are_refused_when_the_class_is_made():
    with pytest.raises(TypeError, match=r"OfRows\.theta"):
        type("OfRows", (type(zoo.find("normal_gamma")()),), {"dims": {"theta": ("row",)}})
    assert type("OfNone", (type(zoo.find("normal_gamma")()),), {"dims": {"theta": ()}}).name == "of_none"
