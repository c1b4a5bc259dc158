"""Ctrl-C and SIGTERM, sent to a real process: what was drawn is kept beside the result, never in its place."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pyarrow
import pytest

import bayeszoo as bz
from bayeszoo.errors import Interrupted
from bayeszoo.foundation import signals
from bayeszoo.foundation.progress import PHASES, Reporter
from bayeszoo.inference.methods import nuts
from bayeszoo.results.summary import HEADLINE
from tests.quick import quick_first

BIRTHS = bz.example(bz.find("beta_bernoulli"), "placenta_previa")
COMMAND = Path(sys.executable).with_name("bayeszoo")
LONG = ("fit", "beta_bernoulli", "--example", "placenta_previa", "--seed", "1", "--draws", "2000000")
SECONDS = 60
"""From the signal to the end, at most: what is stopped would run for ten minutes."""


READY = "import sys; from bayeszoo.cli.app import main; print('ready', file=sys.stderr, flush=True); main(sys.argv[1:])"


@contextmanager
def running(*command, folder) -> Iterator[subprocess.Popen]:
    process = subprocess.Popen(
        command, cwd=folder, env=os.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for_draws(process, least):
    """Read progress lines until so many draws of all chains are done."""
    for line in process.stderr:
        words = line.split()
        if words[:1] == ["sampling:"] and int(words[1]) >= least:
            return
    raise AssertionError("it ended first")


def end(process, number):
    """Send a signal, and return exit code, stdout and stderr."""
    process.send_signal(number)
    out, err = process.communicate(timeout=SECONDS)
    return process.returncode, out, err


def listing(folder):
    return sorted(path.name for path in folder.iterdir())


STOPS = [(signal.SIGINT, "nutpie", 130), (signal.SIGTERM, "nutpie", 143), (signal.SIGINT, "pymc", 130)]


@pytest.mark.slow  # a quick one: `test_stopped_before_the_first_draw`
@pytest.mark.parametrize(("number", "sampler", "code"), STOPS)
def test_stopped_while_sampling(tmp_path, number, sampler, code):
    (tmp_path / "fit.nc").write_bytes(b"an older fit")
    arguments = (*LONG, "--sampler", sampler, "--json", "-o", "fit.nc", "--overwrite")
    with running(COMMAND, *arguments, folder=tmp_path) as process:
        wait_for_draws(process, 20_000)
        found, out, err = end(process, number)

    assert found == code, err
    assert "Traceback" not in err
    assert "wrote fit.nc.partial\n" in err
    assert "warning: estimates are withheld: the run was interrupted\n" in err
    document = json.loads(out)
    assert document["status"] == "interrupted"
    assert document["saved"] == "fit.nc.partial"
    assert [document["parameters"]["theta"][name] for name in HEADLINE] == [None] * len(HEADLINE)

    assert listing(tmp_path) == ["fit.nc", "fit.nc.partial"]
    assert (tmp_path / "fit.nc").read_bytes() == b"an older fit"
    tree = bz.load(tmp_path / "fit.nc.partial")
    with pytest.raises(bz.Untrustworthy, match="the fit was interrupted"):
        bz.predict(tree)
    draws = tree["posterior"]["theta"].to_numpy()
    assert draws.shape[0] == (4 if sampler == "nutpie" else 1)  # PyMC samples one chain after the other
    assert 100 < draws.shape[1] < 2_000_000
    assert np.isfinite(draws).all()
    assert np.isfinite(tree["sample_stats"]["energy"]).all()


@pytest.mark.parametrize("number", quick_first([signal.SIGINT, signal.SIGTERM]))
@pytest.mark.parametrize("seconds", quick_first([0.8, 0.2, 1.6]))
def test_stopped_before_the_first_draw(tmp_path, number, seconds):
    """While PyMC is imported, the model compiled, or the chains warm up."""
    arguments = (*LONG, "--tune", "2000000", "-o", "fit.nc")
    with running(sys.executable, "-c", READY, *arguments, folder=tmp_path) as process:
        assert process.stderr.readline() == "ready\n"
        time.sleep(seconds)
        code, out, err = end(process, number)
    assert code == 128 + number
    assert out == ""
    *before, last = err.splitlines()
    assert last.startswith(("interrupted", "error: stopped"))
    assert all(line.startswith((*PHASES.values(), "NUTS may take", "sampling: ")) for line in before)
    assert listing(tmp_path) == []


STOPPED_IN = """
import os, signal, sys, time
from bayeszoo.cli.app import main
from bayeszoo.cli.verbs import fits as verb
from bayeszoo.foundation import signals

class Finalized:
    def __del__(self):
        signal.raise_signal(int(sys.argv[1]))

class Unfinished:
    def __init__(self):
        signal.raise_signal(int(sys.argv[1]))
        self.pointer = None

    def __del__(self):
        self.pointer

def finalizer(*_, **__):
    with signals.keeping():
        Finalized()
        time.sleep(600)

def initializer(*_, **__):
    Unfinished()

class Linked:
    def __del__(self):
        os.abort()  # as LLVM does where a module is freed that another has taken

LINKED = Linked()

def linker(*_, **__):
    signal.raise_signal(int(sys.argv[1]))

def compiled_import(*_, **__):
    try:
        signal.raise_signal(int(sys.argv[1]))
    except KeyboardInterrupt:
        sys.excepthook(*sys.exc_info())  # as PyErr_Print does
    raise ImportError("numpy._core.multiarray failed to import")

def catches_all(seconds):
    for step in (lambda: signal.raise_signal(int(sys.argv[1])), lambda: time.sleep(seconds)):
        try:
            step()
        except BaseException:
            pass

def caught_twice(*_, **__):
    catches_all(600)
    time.sleep(600)

def kept(*_, **__):
    with signals.keeping():
        catches_all(0)
        time.sleep(2 * signals.LATER)
    os._exit(0)

verb.fit = globals()[sys.argv[2]]
main(["fit", "beta_bernoulli"])
"""


@pytest.mark.parametrize("number", quick_first([signal.SIGINT, signal.SIGTERM]))
@pytest.mark.parametrize(
    "where", quick_first(["finalizer", "initializer", "linker", "compiled_import", "caught_twice"])
)
def test_a_signal_is_not_lost_where_its_exception_is(tmp_path, number, where):
    """As in the callbacks of weak references that each import has: the process went on for good."""
    assert ends(tmp_path, number, where) == (128 + number, f"{NOTE}interrupted\n")


@pytest.mark.slow
def test_no_signal_is_sent_again_while_draws_are_kept(tmp_path):
    assert ends(tmp_path, signal.SIGINT, "kept") == (0, NOTE)


NOTE = "note: column 'sex': 'boy' is 1, 'girl' is 0\n"


def ends(folder, number, where):
    """Run a command that is sent a signal in this function; return its exit code and what it says."""
    with running(sys.executable, "-c", STOPPED_IN, str(int(number)), where, folder=folder) as process:
        out, err = process.communicate(timeout=SECONDS)
    assert out == ""
    return process.returncode, err


# What a signal at an awkward moment does, without one


def test_stopped_while_draws_are_converted():
    finished = Mock(**{"wait.side_effect": KeyboardInterrupt, "abort.side_effect": ValueError("no results to take")})
    with pytest.raises(Interrupted, match="stopped while the draws were collected; nothing was kept"):
        nuts._wait(finished)


def batches(warmup, length):
    """Return what nutpie has of a chain after so many draws of warmup and so many others."""
    rows = np.arange(warmup + length)
    flat = pyarrow.array([[float(row), row + 0.5] for row in rows], pyarrow.list_(pyarrow.float64()))
    missing = pyarrow.array([None] * len(rows), pyarrow.uint64())
    stats = {"tuning": rows < warmup, "energy": 1.0 * rows, "divergence_draw": missing, "divergence_start": flat}
    return pyarrow.record_batch({nuts.FLAT: flat}), pyarrow.record_batch(stats)


def trace_of(*lengths):
    return Mock(**{"get_arrow_trace.return_value": tuple(zip(*(batches(3, n) for n in lengths), strict=True))})


def test_chains_lose_their_warmup_and_are_cut_to_the_shortest():
    tree = nuts._tree(trace_of(5, 2), {"theta": (), "of_group": (1,), "nothing": (0, 2)})
    assert tree["posterior"]["theta"].to_numpy().tolist() == [[3, 4], [3, 4]]
    assert tree["posterior"]["of_group"].to_numpy().tolist() == [[[3.5], [4.5]]] * 2
    assert tree["posterior"]["nothing"].shape == (2, 2, 0, 2)
    assert tree["sample_stats"]["energy"].to_numpy().tolist() == [[3, 4], [3, 4]]
    assert tree["sample_stats"]["divergence_draw"].to_numpy().tolist() == [[0, 0], [0, 0]]
    assert set(tree["sample_stats"].data_vars) == {"energy", "divergence_draw"}


def test_nothing_is_kept_while_a_chain_has_no_draw():
    with pytest.raises(Interrupted, match="stopped before every chain had a draw; nothing was kept"):
        nuts._tree(trace_of(5, 0), {"theta": (), "of_group": (1,)})


def interrupting(at):
    """Return a reporter that stands in for Ctrl-C when so many draws are done."""

    class Interrupting(Reporter):
        def progress(self, what, done, total):
            if done == at:
                raise KeyboardInterrupt

    return Interrupting()


@pytest.mark.parametrize(("at", "chains", "draws"), [(300, 1, 200), (500, 1, 300), (900, 2, 300)])
def test_pymc_stops_for_good_and_says_so(at, chains, draws):
    """Ctrl-C ends only the chain that runs, and PyMC would sample all the others to the end."""
    options = {"sampler": "pymc", "draws": 300, "tune": 100, "reporter": interrupting(at)}
    tree = bz.fit(bz.find("beta_bernoulli")(), BIRTHS, seed=1, **options)
    assert tree.attrs["status"] == "interrupted"
    assert dict(tree["posterior"].sizes) == {"chain": chains, "draw": draws}


@pytest.mark.parametrize(("before", "reporter"), [([signal.SIGINT], Reporter()), ([], interrupting(200))])
def test_pymc_stopped_by_a_signal_lost_before_or_during_warmup(monkeypatch, before, reporter):
    monkeypatch.setattr(signals, "received", before)
    with pytest.raises(Interrupted, match="stopped before any chain had a draw; nothing was kept"):
        bz.fit(bz.find("beta_bernoulli")(), seed=1, sampler="pymc", draws=300, tune=300, reporter=reporter)
