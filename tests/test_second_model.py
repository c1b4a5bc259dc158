"""A second model is one file: everything works on it, and nothing in the library had to know it."""

import json
import math
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest
import scipy

import bayeszoo as bz
from bayeszoo import models, zoo
from bayeszoo.check import MAX_Z
from bayeszoo.cli import main

SCRATCH = Path(__file__).parent / "scratch_models"
# Michelson 1879, the first experiment: speed of light in air, km/s above 299,000
SPEEDS = [850, 740, 900, 1070, 930, 850, 950, 980, 980, 880, 1000, 980, 930, 650, 760, 810, 1000, 1000, 960, 960]


def forget():
    zoo.find.cache_clear()
    for path in SCRATCH.glob("*.py"):
        sys.modules.pop(f"bayeszoo.models.{path.stem}", None)


@pytest.fixture(scope="module", autouse=True)
def scratch_models():
    """Put the folder in front of those that hold our models; the files in it are found by name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(models, "__path__", [str(SCRATCH), *models.__path__])
        forget()
        yield
    forget()


@pytest.fixture
def gaussian():
    return bz.find("gaussian_mean")


@pytest.fixture
def speeds(tmp_path):
    """A user's CSV."""
    path = tmp_path / "speeds.csv"
    path.write_text("run,km/s\n" + "".join(f"{i},{speed}\n" for i, speed in enumerate(SPEEDS)))
    return path


@pytest.fixture
def run(capsys):
    """The command line: ``run("list")`` -> (exit code, stdout, stderr)."""

    def call(*arguments):
        with pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        return stop.value.code, *capsys.readouterr()

    return call


@pytest.mark.parametrize("name", [path.stem for path in sorted(SCRATCH.glob("*.py"))])
def test_a_model_in_one_file_passes_the_whole_contract(name):
    card = bz.check(bz.find(name))
    assert [str(check) for check in card if not check.passed] == []
    assert {"candidate identity", "simulator (KS p)", "NUTS: largest |z|"} <= {check.name for check in card}


def test_the_contract_holds_on_data_far_from_zero(gaussian):
    data = bz.read(gaussian, [speed + 1e9 for speed in SPEEDS])
    card = bz.check(gaussian.weak(data), data, sampler=False)
    assert [str(check) for check in card if not check.passed] == []


# Numbers


def test_the_posterior_is_the_textbook_s(gaussian):
    model, n, mean = gaussian(m0=900, s0=50, sigma=100), len(SPEEDS), np.mean(SPEEDS)
    precision = 1 / 50**2 + n / 100**2
    expected = scipy.stats.norm((900 / 50**2 + n * mean / 100**2) / precision, precision**-0.5)
    found = bz.summarize(bz.fit(model, SPEEDS, "exact", seed=1))["mu"]
    assert found["mean"] == pytest.approx(expected.mean(), rel=1e-14)
    assert found["sd"] == pytest.approx(expected.std(), rel=1e-14)
    assert found["q975"] == pytest.approx(expected.ppf(0.975), rel=1e-14)


@pytest.mark.parametrize("fields", [(0, 10, 1), (900, 50, 100), (0, 1e4, 80), (850, 1e-3, 1e3)])
def test_the_evidence_is_the_multivariate_normal_density(gaussian, fields):
    m0, s0, sigma = fields
    covariance = sigma**2 * np.eye(len(SPEEDS)) + s0**2
    expected = scipy.stats.multivariate_normal(np.full(len(SPEEDS), m0), covariance).logpdf(SPEEDS)
    model = gaussian(m0, s0, sigma)
    assert model.log_evidence(model.statistics({"y": np.array(SPEEDS)})) == pytest.approx(expected, rel=1e-9)


def test_moving_the_data_and_the_prior_together_leaves_the_evidence_alone(gaussian):
    near, far = (gaussian(m0=m0, s0=50, sigma=100) for m0 in (900, 900 + 1e9))
    y = np.array(SPEEDS, dtype=float)
    evidence = near.log_evidence(near.statistics({"y": y}))
    assert far.log_evidence(far.statistics({"y": y + 1e9})) == pytest.approx(evidence, rel=1e-9)
    parts = [far.statistics({"y": part + 1e9}) for part in (y[:1], y[1:7], y[7:])]
    assert far.log_evidence(parts[0] + parts[1] + parts[2]) == pytest.approx(evidence, rel=1e-9)


def test_statistics_add_up_and_subtract_far_from_zero(gaussian):
    rng = np.random.default_rng(1)
    y = 1e9 + rng.normal(size=1000).round(3)
    stats = [gaussian().statistics({"y": part}) for part in (y, y[:300], y[300:], y[:0])]
    everything, first, second, nothing = stats
    for found, expected in [(first + second, everything), (everything - first, second), (first - first, nothing)]:
        assert found.n == expected.n
        assert found.mean == pytest.approx(expected.mean, rel=1e-15)
        assert found.squares == pytest.approx(expected.squares, rel=1e-8)
    assert nothing + first == first + nothing == first


@pytest.mark.parametrize(("y", "sigma"), [([3.5], 1), ([7, 7, 7], 1), ([1e9, 1e9 + 2], math.sqrt(2))])
def test_weak_priors_are_proper_whatever_the_data(gaussian, y, sigma):
    model = gaussian.weak(bz.read(gaussian, y))
    assert (model.m0, model.s0, model.sigma) == pytest.approx((np.mean(y), 10 * sigma, sigma))


def test_every_method_agrees_with_the_closed_form(gaussian):
    data = bz.read(gaussian, SPEEDS)
    frame = bz.compare(gaussian.weak(data), data, ["exact", "mle", "map", "laplace", "advi", "nuts"], seed=1)
    found = frame.set_index("method")
    assert set(found["status"]) == {"ok"}
    assert found.loc[["map", "laplace", "advi"], "error_sd"].abs().max() < 0.1
    assert abs(found.loc["nuts", "error_mcse"]) < MAX_Z
    assert found.loc["laplace", "log_evidence"] == pytest.approx(found.loc["exact", "log_evidence"], abs=1e-6)
    assert found["loo_score"].max() - found["loo_score"].min() < 0.05  # six routes to the same predictions


def test_updating_by_batches_is_updating_at_once(gaussian):
    model = gaussian(900, 50, 100)
    twice = bz.update(bz.update(model, SPEEDS[:5]), SPEEDS[5:])
    once = bz.update(model, SPEEDS)
    assert (twice.m0, twice.s0) == pytest.approx((once.m0, once.s0), rel=1e-13)


# Command line


def test_list_and_show_know_it(run):
    code, out, _ = run("list", "--json")
    found = {model["name"]: model for model in json.loads(out)["models"]}["gaussian_mean"]
    assert code == 0
    assert found["capabilities"] == ["Sufficient", "Conjugate", "PointEstimates", "Observable"]
    assert found["data"] == []
    code, out, _ = run("show", "gaussian_mean")
    assert code == 0
    assert "y_n ~ N(mu, sigma^2)" in out
    assert "one column of real numbers (y)" in out


def test_fit_scales_the_prior_to_the_user_s_column(run, speeds):
    code, out, err = run("fit", "gaussian_mean", speeds, "--column", "km/s", "--method", "exact", "--json")
    assert (code, err) == (0, "priors are scaled to the data, and so is the log evidence\n")
    found = json.loads(out)
    assert found["fields"] == pytest.approx(
        {"m0": np.mean(SPEEDS), "s0": 10 * np.std(SPEEDS, ddof=1), "sigma": np.std(SPEEDS, ddof=1)}
    )
    assert found["parameters"]["mu"]["mean"] == pytest.approx(np.mean(SPEEDS))
    assert found["exact"]["log_evidence"] == found["log_evidence"]


def test_fit_predict_and_compare_run_on_the_user_s_table(run, speeds, tmp_path):
    fields = ["--set", "m0=900", "--set", "s0=50", "--set", "sigma=100"]
    saved = tmp_path / "fit.nc"
    code, out, err = run("fit", "gaussian_mean", speeds, "--column", "km/s", *fields, "--seed", 1, "-o", saved)
    assert code == 0, err
    assert "gaussian_mean(m0=900, s0=50, sigma=100)" in out
    code, out, _ = run("predict", saved, speeds, "--column", "km/s", "--json")
    assert code == 0
    assert [row["observed"] for row in json.loads(out)["rows"]] == SPEEDS
    code, out, _ = run("compare", "gaussian_mean", speeds, "--column", "km/s", *fields, "--methods", "exact,map")
    assert code == 0
    assert "point estimate" in out


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ("y\n1\nfast\n", [], "column 'y', row 2: 'fast' is not a number"),
        ("y\n1\n1e200\n", [], "too large to square"),
        ("a,b\n1,2\n", [], "say which with --column"),
        ("y\n1\n", ["--set", "sigma=0"], "sd of an observation must be > 0, got 0"),
        ("y\n1\n", ["--positive", "1"], "unknown option 'positive'"),
        (None, [], "GaussianMean comes with no example; give the data"),
    ],
)
def test_what_does_not_suit_it_is_refused_in_one_line(run, tmp_path, rows, options, message):
    table = tmp_path / "bad.csv"
    if rows is not None:
        table.write_text(rows)
    code, out, err = run("fit", "gaussian_mean", *([table] if rows else []), "--method", "exact", *options)
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
    zoo.find.cache_clear()
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
    assert err == f"error: two installed models are called {name!r}; uninstall one of them\n"


def test_a_plug_in_must_be_the_model_that_it_is_offered_as(install):
    points = {"my_coin": "their_module:TheirCoin", "not_a_model": "json:dumps"}
    install("theirs", points, {"their_module": plugin_source()})
    with pytest.raises(bz.InputError, match="TheirCoin is called 'their_coin', but is offered as 'my_coin'"):
        bz.find("my_coin")
    with pytest.raises(bz.InputError, match="the plug-in 'not_a_model' is not a bayeszoo Model"):
        bz.find("not_a_model")


def test_files_in_the_current_folder_are_never_imported(tmp_path):
    for name in ("numpy", "model", "beta_bernoulli", "models", "bayeszoo", "sitecustomize", "evil"):
        (tmp_path / f"{name}.py").write_text("print('imported')\nraise SystemExit(99)\n")
    command = Path(sysconfig.get_path("scripts")) / "bayeszoo"
    for arguments in (["list"], ["fit", "beta_bernoulli", "--method", "exact"], ["show", "evil"]):
        done = subprocess.run([command, *arguments], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == (2 if "evil" in arguments else 0), done.stderr
        assert "imported" not in done.stdout + done.stderr
