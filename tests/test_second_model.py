"""A second model is one file, and with all required steps and no optional one it works with every method it offers."""

import json
import subprocess
import sys
import sysconfig
from dataclasses import dataclass, make_dataclass
from pathlib import Path

import lazy_loader
import numpy as np
import pytest
import scipy
from scipy.special import logsumexp, softmax

import bayeszoo as bz
from bayeszoo.contract.sampler import MAX_Z
from bayeszoo.data.inputs import Real
from bayeszoo.fit import methods_for
from bayeszoo.model import (
    EM,
    ClosedForm,
    Collapsed,
    Conjugate,
    Enumerable,
    Expectation,
    Latent,
    Model,
    Observable,
    PointEstimates,
    Posterior,
    Predictive,
    Stats,
    Stochastic,
    Sufficient,
    Symmetric,
    Variational,
    real,
    whole,
)
from bayeszoo.model import find as zoo
from tests.quick import zoo_with

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


def test_the_contract_holds_on_real_data(waiting):
    data = bz.read(waiting, [3.6e12 * hours for hours in HOURS])  # in nanoseconds
    card = bz.check(waiting.weak(data), data, sampler=False)
    assert [str(check) for check in card if not check.passed] == []


# Numbers


def test_the_posterior_is_the_textbook_s(waiting):
    expected = scipy.stats.gamma(2 + len(HOURS), scale=1 / (100 + sum(HOURS)))
    found = bz.summarize(bz.fit(waiting(2, 100), HOURS, "exact", seed=1))["rate"]
    known = {"mean": expected.mean(), "sd": expected.std(), "q975": expected.ppf(0.975)}
    assert {name: found[name] for name in known} == pytest.approx(known, rel=1e-13)


def test_every_method_agrees_with_the_closed_form(waiting):
    data = bz.read(waiting, HOURS)
    frame = bz.compare(waiting.weak(data), data, ["exact", "mle", "map", "laplace", "advi", "nuts"], seed=1)
    found = frame.set_index("method")
    assert set(found["status"]) == {"ok"}
    assert found.loc[["map", "laplace", "advi"], "error_sd"].abs().max() < 0.25  # the mode is 1 / 31 below the mean
    assert abs(found.loc["nuts", "error_mcse"]) < MAX_Z
    assert found.loc["laplace", "log_evidence"] == pytest.approx(found.loc["exact", "log_evidence"], abs=0.01)
    assert found["loo_score"].max() - found["loo_score"].min() < 0.05  # six routes to the same predictions


# Command line


def test_list_and_show_know_it(run):
    code, out, _ = run("list", "--json")
    found = {model["name"]: model for model in json.loads(out)["models"]}["waiting_time"]
    assert code == 0
    listed = "Sufficient, ClosedForm, Predictive, Conjugate, PointEstimates, Observable"
    assert ", ".join(found["capabilities"]) == listed
    assert found["data"] == []
    code, out, _ = run("show", "waiting_time")
    assert code == 0
    assert "t_n  ~ Exponential(rate)" in out
    assert "one column of real numbers (t)" in out
    assert "rate --> t" in out


def test_fit_scales_the_prior_to_the_user_s_column(run, failures):
    code, out, err = run("fit", "waiting_time", failures, "--column", "km/h", "--method", "exact", "--json")
    assert (code, err) == (0, "priors are scaled to the data, and so is the log evidence\n")
    found = json.loads(out)
    assert found["fields"] == pytest.approx({"a": 1, "b": np.mean(HOURS)})
    assert found["parameters"]["rate"]["mean"] == pytest.approx(1 / np.mean(HOURS))
    assert found["exact"]["log_evidence"] == found["log_evidence"]


def test_fit_predict_and_compare_run_on_the_user_s_table(run, failures, tmp_path):
    fields = ["--set", "a=2", "--set", "b=100"]
    saved = tmp_path / "fit.nc"
    code, out, err = run("fit", "waiting_time", failures, "--column", "km/h", *fields, "--seed", 1, "-o", saved)
    assert code == 0, err
    assert "waiting_time(a=2, b=100)" in out
    code, out, _ = run("predict", saved, failures, "--column", "km/h", "--json")
    assert code == 0
    assert [row["observed"] for row in json.loads(out)["rows"]] == HOURS
    code, out, _ = run("compare", "waiting_time", failures, "--column", "km/h", *fields, "--methods", "exact,map")
    assert code == 0
    assert "point estimate" in out


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ("t\n1\n0\n-2\n", [], "column 't', row 2: '0' is not > 0 (and 1 more: row 3)"),
        ("t\n1\n", ["--set", "b=0"], "prior rate must be > 0, got 0"),
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
    points = {"my_coin": "their_module:TheirCoin", "not_a_model": "json:dumps", "halfway": "bayeszoo.model:ClosedForm"}
    install("theirs", points, {"their_module": plugin_source()})
    for name, message in {
        "my_coin": "TheirCoin is called 'their_coin', but is offered as 'my_coin'",
        "not_a_model": "the plug-in 'not_a_model' is not a bayeszoo Model",
        "halfway": "ClosedForm lacks compressed, declare, log_evidence, posterior, simulate, statistics",
    }.items():
        with pytest.raises(bz.InputError, match=message):
            bz.find(name)


def test_files_in_the_current_folder_are_never_imported(tmp_path):
    for name in ("numpy", "model", "beta_bernoulli", "models", "bayeszoo", "sitecustomize", "evil"):
        (tmp_path / f"{name}.py").write_text("print('imported')\nraise SystemExit(99)\n")
    command = Path(sysconfig.get_path("scripts")) / "bayeszoo"
    for arguments in (["list"], ["fit", "beta_bernoulli", "--method", "exact"], ["show", "evil"]):
        done = subprocess.run([command, *arguments], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == (2 if "evil" in arguments else 0), done.stderr
        assert "imported" not in done.stdout + done.stderr


# Plug-ins with the required steps alone

pm = lazy_loader.load("pymc")

Y = {"y": np.array([-2.0, -1.8, 2.1, 1.9, 2.2])}
ROOT = np.log(2 * np.pi) / 2
QUICK = {"exact", "enumerate", "map", "mle", "em", "vb", "online_vb", "gibbs"}
"""Methods that compile little or nothing."""


@dataclass(frozen=True)
class Sums(Stats):
    n: float = 0.0
    total: float = 0.0
    squares: float = 0.0


class Mean:
    """y ~ N(mu, 1), mu ~ N(center, 1): the required steps of models in closed form."""

    inputs = Real("y")

    def simulate(self, rng, size=20):
        mu = rng.normal(self.center)
        return {"mu": mu}, {"y": rng.normal(mu, 1, size)}

    def declare(self, data):
        with pm.Model() as model:
            mu = pm.Normal("mu", self.center, np.float64(1))
            pm.Normal("y", mu, np.float64(1), observed=data["y"])
        return model

    def statistics(self, data):
        return Sums(float(len(data["y"])), float(np.sum(data["y"])), float(np.sum(np.square(data["y"]))))

    def compressed(self, stats):
        with pm.Model() as model:
            mu = pm.Normal("mu", self.center, np.float64(1))
            pm.Potential("y", mu * stats.total - stats.n * (mu**2 / 2 + ROOT) - stats.squares / 2)
        return model

    def _normal(self, stats):
        return (self.center + stats.total) / (1 + stats.n), 1 / (1 + stats.n)

    def posterior(self, stats):
        mean, variance = self._normal(stats)
        return Posterior({"mu": scipy.stats.norm(mean, np.sqrt(variance))})

    def log_evidence(self, stats):
        mean, variance = self._normal(stats)
        return -stats.n * ROOT + (np.log(variance) + mean**2 / variance - self.center**2 - stats.squares) / 2

    def predictive(self, stats, data):
        mean, variance = self._normal(stats)
        return scipy.stats.norm(np.full(len(data["y"]), mean), np.sqrt(1 + variance))

    def updated(self, stats):
        return self.replaced(center=self._normal(stats)[0])

    def likelihood(self, params, data):
        return scipy.stats.norm(np.asarray(params["mu"])[..., None] + np.zeros(len(data["y"])), 1)

    def map(self, stats):
        return {"mu": self._normal(stats)[0]}

    def mle(self, stats):
        return {"mu": stats.total / stats.n}

    def free_parameters(self, stats):
        return 1


class Halves:
    """Two equal parts N(mu_k, 1), mu_k ~ N(0, 1): the required steps of models with latent variables."""

    inputs = Real("y")
    dims = {"mu": ("component",)}  # noqa: RUF012

    def coords(self, data):
        return {"component": np.arange(1, self.K + 1)}

    def simulate(self, rng, size=20):
        mu = rng.normal(size=self.K)
        return {"mu": mu}, {"y": rng.normal(rng.choice(mu, size))}

    def declare(self, data):
        with pm.Model(coords=self.coords(data)) as model:
            mu = pm.Normal("mu", np.float64(0), np.float64(1), dims="component")
            parts = pm.logp(pm.Normal.dist(mu[None], np.float64(1)), data["y"][:, None])
            pm.Potential("y", pm.math.logsumexp(parts, axis=1).sum() - len(data["y"]) * np.log(self.K))
        return model

    def _terms(self, mu, y, spread=0.0):
        return -((y[:, None] - np.asarray(mu)[..., None, :]) ** 2 + spread) / 2 - ROOT - np.log(self.K)

    def _expectation(self, terms, y):
        each = softmax(terms, axis=-1)
        return Expectation((each.sum(axis=0), y @ each), float(logsumexp(terms, axis=-1).sum()))

    def start(self, data, rng):
        return {"mu": rng.choice(data["y"], self.K)}

    def e_step(self, params, data):
        return self._expectation(self._terms(params["mu"], data["y"]), data["y"])

    def m_step(self, stats, flat=False):
        return {"mu": stats[1] / (stats[0] + (not flat))}

    def log_prior(self, params, data):
        return scipy.stats.norm.logpdf(params["mu"]).sum(axis=-1)

    def free_parameters(self, stats):
        return self.K

    def vb_start(self, data, rng):
        return rng.choice(data["y"], self.K), np.ones(self.K)

    def vb_e_step(self, q, data):
        return self._expectation(self._terms(q[0], data["y"], q[1]), data["y"])

    def _given(self, stats):
        return stats[1] / (1 + stats[0]), 1 / (1 + stats[0])

    def vb_m_step(self, stats):
        return self._given(stats)

    def divergence(self, q):
        return float(np.sum(q[1] + q[0] ** 2 - 1 - np.log(q[1])) / 2)

    def vb_posterior(self, q):
        return Posterior({"mu": scipy.stats.norm(q[0], np.sqrt(q[1]))})

    def vb_log_density(self, q, params):
        return scipy.stats.norm(q[0], np.sqrt(q[1])).logpdf(params["mu"]).sum(axis=-1)

    def vb_local(self, q, data):
        return q

    def vb_scaled(self, stats, factor):
        return stats[0] * factor, stats[1] * factor

    def vb_mixed(self, q, other, share):
        precision = (1 - share) / q[1] + share / other[1]
        return ((1 - share) * q[0] / q[1] + share * other[0] / other[1]) / precision, 1 / precision

    def assign(self, params, data):
        return softmax(self._terms(params["mu"], data["y"]), axis=-1)

    def _sums(self, assignments, data):
        one = assignments[..., None] == np.arange(self.K)
        return one.sum(axis=-2), np.einsum("...nk,n->...k", one, data["y"])

    def log_joint(self, assignments, data):
        return self._log_joint(assignments, data)

    def _log_joint(self, assignments, data):
        n, total = self._sums(assignments, data)
        gain = (total**2 / (1 + n) - np.log1p(n)).sum(axis=-1) - np.sum(data["y"] ** 2)
        return gain / 2 - len(data["y"]) * (ROOT + np.log(self.K))

    def posterior_given(self, assignment, data):
        mean, variance = self._given(self._sums(assignment, data))
        return Posterior({"mu": scipy.stats.norm(mean, np.sqrt(variance))})

    def gibbs(self, data, rng):
        return Walk(self, data, rng)

    def exchangeable(self):
        return "component"

    def invariants(self, params, data):
        return {"sorted": np.sort(params["mu"], axis=-1)}


class Walk:
    """A chain over the assignments that draws one row at a time."""

    def __init__(self, model, data, rng):
        self.model, self.data, self.rng = model, data, rng
        self.z = rng.integers(0, model.K, len(data["y"]))

    def sweep(self, times, power=1.0):
        for row in np.tile(np.arange(len(self.z)), times):
            every = np.tile(self.z, (self.model.K, 1))
            every[:, row] = np.arange(self.model.K)
            self.z = every[self.rng.choice(self.model.K, p=softmax(power * self.model._log_joint(every, self.data)))]

    def draw(self):
        mean, variance = self.model._given(self.model._sums(self.z, self.data))
        return {"mu": self.rng.normal(mean, np.sqrt(variance))}

    @property
    def log_joint(self):
        return float(self.model._log_joint(self.z[None], self.data)[0])


def plug_in(*bases):
    """Make a model of these capabilities alone."""
    closed = issubclass(bases[0], Sufficient) or bases == (Observable,)
    steps, fields = (Mean, {"center": real(0.0, "center")}) if closed else (Halves, {"K": whole(2, "K")})
    declared = {name for base in bases for kind in base.__mro__ for name in vars(kind)} | {"inputs"}
    own = {name: step for name, step in vars(steps).items() if name in declared or name.startswith("_")}
    own.pop("__dict__"), own.pop("__weakref__")
    name = "Plug" + "".join(base.__name__ for base in bases)
    typed = [(field, float, default) for field, default in fields.items()]
    return make_dataclass(name, typed, bases=bases, namespace=own, frozen=True)


CLOSED = [(Observable,), (Sufficient,), (ClosedForm,), (Predictive,), (Conjugate,), (PointEstimates,)]
LATENT = [(EM,), (Variational,), (EM, Variational), (Stochastic,), (Latent,), (Enumerable,), (Collapsed,)]
PLUG_INS = [plug_in(*bases) for bases in (*CLOSED, *LATENT, (Symmetric,), (Latent, Symmetric))]


def slow_if_compiled(kind, method):
    """Mark what goes through PyMC."""
    by_steps = issubclass(kind, EM | PointEstimates) or method not in ("map", "mle", "vb")
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
    tree = bz.fit(kind(), Y, method, seed=1, **OPTIONS.get(method, {}))
    draws = tree["posterior"]["mu"].to_numpy()
    assert tree.attrs["method"] == method
    assert np.isfinite(draws).all()
    if tree.attrs["status"] == "ok" and kind.name.startswith(("plug_closed", "plug_conjugate", "plug_point")):
        assert abs(draws.mean() - 2.4 / (6 if method != "mle" else 5)) < 0.2


def test_a_misspelt_step_is_refused_with_the_name_it_may_have_meant():
    with pytest.raises(TypeError, match=r"Misspelt\.remarkz is no step of any of its bases: did you mean remarks\?"):
        type("Misspelt", (Model,), {"remarkz": lambda self, stats, data: ("lost",)})
    with pytest.raises(TypeError, match=r"Misspelt\.degenerated .* did you mean degenerate\?"):
        type("Misspelt", (EM,), {"degenerated": lambda self, params, data: ""})
    assert type("Own", (Model,), {"own": ("special",), "special": lambda self: 1}).name == "own"


def test_a_model_without_a_required_step_is_not_made():
    kind = type("Halfway", (plug_in(EM),), {"m_step": EM.m_step})
    with pytest.raises(TypeError, match=r"abstract method '?m_step"):
        kind()


def test_a_model_that_is_no_dataclass_is_refused_in_a_line():
    with pytest.raises(
        bz.InputError, match=r"PlugEM is no dataclass; write @dataclass\(frozen=True\) above the class$"
    ):
        type("PlugEM", (Model,), {"simulate": Mean.simulate, "declare": Mean.declare})()
