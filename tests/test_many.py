"""A model fitted to many data sets over processes: the fits are those of `bz.fit`, and failures stay alone."""

import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest
from scipy import stats

import bayeszoo as bz
from bayeszoo.comparison import many
from bayeszoo.results.stored import fits_of
from tests.refusals import raises

MEAN = bz.find("gaussian_mean")(m0=0.0, s0=5.0, sigma=1.0)
RNG = np.random.default_rng(3)
SETS = {f"set {i}": RNG.normal(i, 1, size=8) for i in range(5)}
OWN = '''"""A coin: y ~ Bernoulli(theta)."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from bayeszoo.model import Model, positive
from bayeszoo.data.inputs import Real


@dataclass(frozen=True)
class Ending(Model):
    """Ends the process of data that begin with 13, and raises at 14."""

    s: float = positive(1.0, "scale")
    inputs = Real("y")

    def declare(self, data):
        import pymc as pm

        if data["y"][0] == 13:
            os._exit(1)
        if data["y"][0] == 14:
            raise KeyError("fourteen")
        with pm.Model(coords={"row": np.arange(len(data["y"]))}) as model:
            mu = pm.Normal("mu", 0.0, self.s)
            pm.Normal("y", mu, 1.0, observed=data["y"], dims="row")
        return model
'''


def test_each_fit_is_the_posterior_of_its_data():
    tree = bz.fit_many(MEAN, SETS, "exact", seed=1, workers=1)
    assert tree["posterior"]["mu"].dims == ("chain", "draw", "dataset")
    for label, values in SETS.items():
        precision = 1 / 25 + 8
        exact = stats.norm(values.sum() / precision, precision**-0.5)
        draws = tree["posterior"]["mu"].sel(dataset=label).to_numpy().ravel()
        assert stats.kstest(draws, exact.cdf).pvalue > 1e-6
        assert stats.kstest(draws, stats.norm(exact.mean() + 0.1, exact.std()).cdf).pvalue < 1e-6  # of other data
    assert tree["posterior"]["status"].to_numpy().tolist() == ["ok"] * 5


def test_a_data_set_that_cannot_be_read_is_recorded_and_the_others_are_fitted():
    with pytest.warns(bz.Caution, match="'bad'.*'y'"):
        tree = bz.fit_many(MEAN, {"bad": [1.0, np.nan], **SETS}, "exact", seed=1, workers=1)
    failures = json.loads(tree.attrs["failures"])
    assert list(failures) == ["bad"]
    assert "row 2" in failures["bad"]
    assert tree["posterior"]["dataset"].to_numpy().tolist() == list(SETS) == list(fits_of(tree))


def test_equal_data_have_independent_draws():
    tree = bz.fit_many(MEAN, [[1.0, 2.0], [1.0, 2.0]], "exact", seed=4, workers=1)
    first, second = (tree["posterior"]["mu"].sel(dataset=label).to_numpy().ravel() for label in ("0", "1"))
    assert abs(np.corrcoef(first, second)[0, 1]) < 5 / np.sqrt(len(first))
    assert [fit.tree.attrs["seed"] for fit in fits_of(tree).values()] == [4, 5]


def test_parameters_of_other_shapes_are_left_to_the_fits():
    ridge = bz.find("linear_regression")()
    tables = {k: {"y": RNG.normal(size=9), **{f"x{i}": RNG.normal(size=9) for i in range(k)}} for k in (1, 2)}
    tree = bz.fit_many(ridge, tables, "exact", seed=1, workers=1, reading={"target": "y"})
    assert "w" not in tree["posterior"]
    assert tree["posterior"].sizes["dataset"] == 2
    assert [fit.draws()["w"].shape[-1] for fit in fits_of(tree).values()] == [2, 3]


def test_the_tree_is_taken_as_fits_by_group():
    tree = bz.fit_many(MEAN, SETS, "exact", seed=1, workers=1)
    row = bz.contrasts(tree, against="set 0").set_index("group").loc["set 4"]
    assert row["difference"] == pytest.approx((SETS["set 4"].sum() - SETS["set 0"].sum()) / (1 / 25 + 8))


@pytest.mark.parametrize(
    ("datasets", "more", "said"),
    [
        ({}, {}, ("no_data",)),
        (np.ones((3, 2)), {}, ("wrong_type",)),
        ({1: [1.0], "1": [2.0]}, {}, ("duplicate_name",)),
        (SETS, {"workers": 0}, ("wrong_type", "workers", "1", "0")),
        (SETS, {"method": "gibbs"}, ("method_unavailable",)),
        (SETS, {"workers": 2, "client": "tcp://"}, ("conflicting_options", "cluster", "workers", "client")),
        (SETS, {"drawz": 3}, ("unknown_option", "'drawz'")),
    ],
)
def test_what_cannot_be_done_is_refused_before_any_fit(monkeypatch, datasets, more, said):
    monkeypatch.setattr(many, "fit", None)
    with raises(bz.InputError, *said):
        bz.fit_many(MEAN, datasets, **{"method": "exact", **more})


def test_without_any_fit_the_first_reason_is_said():
    with raises(bz.NumericalError, "all_failed", "'0'", "'y'", "1"):
        bz.fit_many(MEAN, [[np.nan, 1.0], [2.0, np.nan]], "exact", workers=1)


def test_a_model_that_no_other_process_finds_is_fitted_in_this_one():
    class Elsewhere(type(MEAN)):
        pass

    with raises(bz.InputError, "not_importable", "workers", "1"):
        bz.fit_many(Elsewhere(), SETS, "exact", workers=2)


@pytest.mark.slow
def test_the_draws_are_those_of_single_fits_whatever_the_number_of_workers():
    trees = [bz.fit_many(MEAN, SETS, "nuts", seed=7, workers=n) for n in (1, 2, 3)]
    for label, values in SETS.items():
        alone = bz.fit(MEAN, values, "nuts", seed=7)["posterior"]["mu"]
        for tree in trees:
            np.testing.assert_array_equal(tree["posterior"]["mu"].sel(dataset=label), alone)


SOCKETS = pytest.mark.filterwarnings("ignore:.*unclosed.*socket:pytest.PytestUnraisableExceptionWarning")
"""Sockets that Dask leaves to the collector of garbage."""


@pytest.fixture(scope="module")
def client():
    """A cluster of two processes of this machine, which tries what ends one at most once more."""
    distributed = pytest.importorskip("distributed")
    with (
        pytest.importorskip("dask").config.set({"distributed.scheduler.allowed-failures": 0}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as local,
        distributed.Client(local) as client,
    ):
        yield client


@pytest.mark.slow
@SOCKETS
def test_a_cluster_gives_what_this_machine_gives(client):
    for method in ("exact", "nuts"):
        here, there = (bz.fit_many(MEAN, SETS, method, seed=7, **w) for w in ({"workers": 1}, {"client": client}))
        assert there["posterior"].identical(here["posterior"])


def test_a_client_that_is_none_is_refused():
    pytest.importorskip("distributed")
    with raises(bz.InputError, "cluster_failed", "client"):
        bz.fit_many(MEAN, SETS, "exact", client="tcp://127.0.0.1:8786")


@pytest.mark.slow
@SOCKETS
@pytest.mark.parametrize("where", ["processes", "cluster"])
def test_a_process_that_ends_and_a_model_that_raises_stop_no_other_fit(written, where, request):
    model = bz.find(f"{written(OWN, 'ending.py')}:Ending")()
    sets = {"plain": [1.0, 2.0], "ends": [13.0, 1.0], "raises": [14.0, 1.0], "last": [3.0, 2.0], "more": [0.0, 2.0]}
    how = {"client": request.getfixturevalue("client")} if where == "cluster" else {"workers": 2}
    with pytest.warns(bz.Caution):
        tree = bz.fit_many(model, sets, "nuts", seed=1, **how)
    assert tree["posterior"]["dataset"].to_numpy().tolist() == ["plain", "last", "more"]
    failures = json.loads(tree.attrs["failures"])
    assert failures.keys() == {"ends", "raises"}
    assert failures["ends"] == "the process that fitted it ended, perhaps out of memory"
    assert failures["raises"].endswith("KeyError: 'fourteen'")


@pytest.mark.slow
def test_processes_end_when_their_parent_is_killed(written, tmp_path):
    """A script without a main guard; its processes write their numbers, and would fit for ten minutes."""
    waiting = "import pathlib, time\n            pathlib.Path(OUT, str(os.getpid())).touch(); time.sleep(600)"
    model = OWN.replace("os._exit(1)", waiting).replace("OUT", repr(str(tmp_path)))
    sets = "{'plain': [1.0, 2.0], 'waits': [13.0, 1.0], 'waits too': [13.0, 2.0]}"
    fit = f"bz.fit_many(bz.find('{written(model, 'waiting.py')}:Ending')(), {sets}, 'map', seed=1, workers=2)"
    parent = subprocess.Popen([sys.executable, written(f"import bayeszoo as bz\n{fit}\n", "script.py")])
    numbers = []
    while len(numbers) < 2:
        assert parent.poll() is None
        time.sleep(0.2)
        numbers = [int(name) for name in os.listdir(tmp_path) if name.isdecimal()]
    parent.kill()
    parent.wait()
    for _ in range(300):  # a minute, where a second is enough
        if not any(runs(number) for number in numbers):
            return
        time.sleep(0.2)
    pytest.fail("a process outlived its parent")


def runs(number):
    """Whether a process runs; those that have ended may be left to the first process of the machine."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(number)], capture_output=True, text=True, check=False).stdout
    return state.strip() not in ("", "Z", "Zs", "Zl")
