"""Many files, on this machine or on a Dask cluster: the statistics of all their rows, whatever the partition."""

import json
import os
import signal
import sys
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import bayeszoo as bz
from bayeszoo.foundation.process.progress import Reporter
from bayeszoo.model.many_files import cluster
from bayeszoo.model.parts.accumulated import arrays_of
from tests.reading import Opaque
from tests.refusals import raises

# sockets that Dask leaves to the collector of garbage
pytestmark = pytest.mark.filterwarnings("ignore:.*unclosed.*socket:pytest.PytestUnraisableExceptionWarning")

RNG = np.random.default_rng(5)
ROWS = 600
X = RNG.normal(size=(ROWS, 2)) * [1, 10] + [0, 500]
FRAMES = {
    "ridge": pd.DataFrame(np.column_stack([2 + X @ [1.0, -0.2] + RNG.normal(size=ROWS), X]), columns=["y", "a", "b"]),
    "normal_gamma": pd.DataFrame({"y": RNG.normal(1e6, 2, ROWS)}),
    "beta_bernoulli": pd.DataFrame({"successes": RNG.integers(0, 3, ROWS), "trials": RNG.integers(2, 4, ROWS)}),
    "dirichlet_multinomial": pd.DataFrame({"vote": RNG.choice(["x", "y", "z"], ROWS)}),
    "normal_inverse_wishart": pd.DataFrame(X, columns=["u", "v"]),
}
OPTIONS = {"dirichlet_multinomial": {"categories": list("xyz")}}
CUTS = {"two": [300], "nine": list(range(70, 600, 70)), "uneven": [1, 2, 590]}


@pytest.fixture
def cut(tmp_path):
    """Write a family's table as files cut at some rows: ``cut("ridge", [300])`` -> the pattern of their names."""

    def write(name, cuts, kind="csv"):
        folder = tmp_path / f"{name}-{len(cuts)}-{kind}"
        folder.mkdir()
        edges = [0, *cuts, ROWS]
        for i, (first, last) in enumerate(pairwise(edges)):
            part, path = FRAMES[name].iloc[first:last], folder / f"part{i:02}.{kind}"
            part.to_parquet(path) if kind == "parquet" else part.to_csv(path, index=False)
        return str(folder / f"*.{kind}")

    return write


@pytest.fixture(scope="module")
def client():
    """A cluster of two processes of this machine."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as local,
        distributed.Client(local) as client,
    ):
        yield client


def assert_close(total, name):
    """The statistics are those of the rows at once."""
    model, options = bz.find(name)(), OPTIONS.get(name, {})
    data = bz.read(model, FRAMES[name], **options)
    whole = model.statistics(data)
    assert total.rows == ROWS
    assert model.log_evidence(total.stats) == pytest.approx(model.log_evidence(whole), rel=1e-10)
    for parameter, exact in model.posterior(whole).items():
        np.testing.assert_allclose(model.posterior(total.stats)[parameter].mean(), exact.mean(), rtol=1e-10)


@pytest.mark.parametrize("cuts", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("name", FRAMES)
def test_files_add_up_to_the_rows_at_once(cut, name, cuts):
    total = bz.accumulate(bz.find(name)(), cut(name, cuts), 100, **OPTIONS.get(name, {}))
    assert_close(total, name)
    assert total.notes[-1].startswith(f"600 rows in {len(cuts) + 1} files")


def test_parquet_files_are_fitted_as_one_table(cut):
    model = bz.find("ridge")()
    total = bz.accumulate(model, cut("ridge", CUTS["nine"], "parquet"))
    tree = bz.fit(model, total, "exact", seed=1)
    alone = bz.fit(model, FRAMES["ridge"], "exact", seed=1)
    np.testing.assert_allclose(tree["exact"]["w"], alone["exact"]["w"], rtol=1e-10)


def test_a_lost_file_is_another_result(cut):
    pattern = cut("normal_gamma", CUTS["nine"])
    os.remove(pattern.replace("*", "part03"))
    total = bz.accumulate(bz.find("normal_gamma")(), pattern)
    with pytest.raises(AssertionError):  # the comparison of all tests here
        assert_close(total, "normal_gamma")


def refused(pattern, name="normal_gamma", **options):
    with pytest.raises(bz.InputError) as refusal:
        bz.accumulate(bz.find(name)(), pattern, **options)
    return str(refusal.value)


def test_a_file_that_does_not_fit_is_named_with_its_row(cut):
    pattern = cut("normal_gamma", CUTS["two"])
    with open(pattern.replace("*", "part01"), "a") as file:
        file.write("oops\n")
    said = refused(pattern)
    assert said.startswith("part01.csv: column 'y'")
    assert "row 301" in said


def test_files_with_other_columns_are_refused(cut):
    pattern = cut("normal_inverse_wishart", CUTS["two"])
    FRAMES["normal_inverse_wishart"].rename(columns={"v": "w"}).to_csv(pattern.replace("*", "part02"), index=False)
    assert refused(pattern, "normal_inverse_wishart") == "part02.csv has other labels, columns or types than part00.csv"


def test_what_only_all_rows_tell_is_refused(cut):
    assert "the categories must be known" in refused(cut("dirichlet_multinomial", [300]), "dirichlet_multinomial")
    assert "--scale needs all rows together" in refused(cut("ridge", [300]), "ppca", scale=True)


def test_a_pattern_without_files_and_a_client_that_is_none_are_refused(tmp_path, written):
    assert "no file matches" in refused(str(tmp_path / "*.csv"))
    pytest.importorskip("distributed")
    assert "client must be a synchronous dask.distributed.Client" in refused(written("y\n1\n"), client="local")
    with raises(bz.InputError, "no_statistics"):
        bz.accumulate(Opaque(), str(tmp_path / "*.csv"))


def test_a_local_cluster_is_asked_to_listen_to_this_machine_alone(monkeypatch):
    distributed, asked = pytest.importorskip("distributed"), {}

    @contextmanager
    def started(*_, **options):
        asked.update(options)
        yield

    monkeypatch.setattr(distributed, "LocalCluster", started)
    monkeypatch.setattr(distributed, "Client", started)
    with cluster.connected("local"):
        pass
    assert (asked["host"], asked["dashboard_address"]) == ("127.0.0.1", None)
    assert asked["scheduler_kwargs"]["dashboard_address"].startswith("127.0.0.1:")


@pytest.mark.slow  # a cluster of processes
def test_a_local_cluster_listens_to_this_machine_alone_and_has_no_dashboard(monkeypatch):
    monkeypatch.setattr(cluster.os, "cpu_count", lambda: 1)
    with cluster.connected("local") as client:
        scheduler = client.cluster.scheduler
        sockets = [each for server in (scheduler.http_server, *scheduler.listeners) for each in _sockets_of(server)]
        assert {each.getsockname()[0] for each in sockets} == {"127.0.0.1"}
        workers = client.scheduler_info()["workers"]
        assert all(address.startswith("tcp://127.0.0.1:") for address in workers)
        assert scheduler.http_application.applications == []


def _sockets_of(server):
    return (getattr(server, "_sockets", None) and server._sockets.values()) or server.tcp_server._sockets.values()


def test_without_dask_a_line_says_what_to_install(monkeypatch, run, written):
    monkeypatch.setitem(sys.modules, "distributed", None)
    code, _, err = run("fit", "normal_gamma", written("y\n1\n2\n"), "--dask", "local", "--method", "exact")
    assert code == 2
    assert "error: a cluster needs Dask; pip install 'bayeszoo[dask]'" in err


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense://x", "no-such-host:8786"])
def test_a_wrong_address_is_one_line(monkeypatch, run, written, address):
    pytest.importorskip("distributed")
    monkeypatch.setattr(cluster, "PATIENCE", 1)
    code, _, err = run("fit", "normal_gamma", written("y\n1\n2\n"), "--dask", address, "--method", "exact")
    assert code == 2
    (line,) = (line for line in err.splitlines() if line.startswith("error"))
    assert line.startswith(f"error: no Dask scheduler answers at {address}; give tcp://HOST:PORT")


def test_a_fit_is_saved_after_a_wrong_address(tmp_path):
    pytest.importorskip("distributed")
    with raises(bz.InputError, "cluster_failed"), cluster.connected("nonsense://x"):
        pass
    tree = bz.fit(bz.find("gamma_poisson")(), [1, 2, 3], "exact", seed=1, draws=10)
    assert bz.save(tree, tmp_path / "fit.nc").exists()


def test_no_tasks_are_complete():
    assert list(cluster.as_completed([])) == []


# A cluster of two processes


@pytest.mark.slow
@pytest.mark.parametrize("cuts", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("name", FRAMES)
def test_the_cluster_gives_what_this_machine_gives(client, cut, name, cuts):
    pattern, model, options = cut(name, cuts, "parquet"), bz.find(name)(), OPTIONS.get(name, {})
    here, there = (bz.accumulate(model, pattern, 100, client=c, **options) for c in (None, client))
    assert_close(there, name)
    assert here.digest == there.digest
    for field, values in arrays_of(here.stats).items():
        np.testing.assert_array_equal(arrays_of(there.stats)[field], values)


@pytest.mark.slow
def test_the_cluster_names_the_file_and_the_row(client, cut):
    pattern = cut("normal_gamma", CUTS["two"])
    with open(pattern.replace("*", "part01"), "a") as file:
        file.write("oops\n")
    assert refused(pattern, client=client) == refused(pattern)


@pytest.mark.slow
def test_a_worker_that_is_killed_loses_nothing(client, cut):
    pattern = cut("normal_gamma", list(range(10, 600, 10)))

    class Killing(Reporter):
        """Kills a worker when a third of the files are read."""

        killed = 0
        seen = ()

        def progress(self, what, done, total):
            self.seen = (*self.seen, (what, done, total))
            if done == 20:
                self.killed = next(iter(client.run(os.getpid).values()))
                os.kill(self.killed, signal.SIGKILL)

    reporter = Killing()
    total = bz.accumulate(bz.find("normal_gamma")(), pattern, client=client, reporter=reporter)
    assert_close(total, "normal_gamma")
    assert reporter.seen == tuple(("files", done, 60) for done in range(1, 61))
    client.wait_for_workers(2, timeout=60)
    assert reporter.killed not in client.run(os.getpid).values()


@pytest.mark.slow
def test_the_command_uses_a_cluster_by_its_address(client, cut, run):
    pattern = cut("ridge", CUTS["nine"])
    words = ("fit", "ridge", pattern, "--target", "y", "--method", "exact", "--seed", "1", "--json")
    by_address = run(*words, "--dask", client.scheduler.address)
    assert by_address[0] == 0
    assert "of part00.csv" in by_address[2]
    here = run(*words, "--chunk-rows", "100000")
    documents = [json.loads(out) for _, out, _ in (by_address, here)]
    assert documents[0]["data"] == documents[1]["data"]
    assert documents[0]["parameters"] == documents[1]["parameters"]


@pytest.mark.slow
def test_the_command_starts_a_cluster_of_this_machine(cut, run):
    pytest.importorskip("distributed")
    code, out, err = run("fit", "normal_gamma", cut("normal_gamma", [300]), "--method", "exact", "--dask", "local")
    assert (code, "600 rows in 2 files" in err) == (0, True), out + err
