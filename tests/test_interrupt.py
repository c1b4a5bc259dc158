"""Ctrl-C, SIGTERM and SIGHUP, sent to a real process: draws so far are kept next to the result, never in its place."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import bayeszoo as bz
from bayeszoo.foundation.process import signals
from bayeszoo.foundation.process.progress import PHASES
from bayeszoo.results.summary import HEADLINE
from tests.quick import quick_first
from tests.refusals import raises

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
    with raises(bz.Untrustworthy, "withheld", "interrupted"):
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
from bayeszoo.foundation.process import signals

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


@pytest.mark.quick
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


AFTER = """
import signal, sys, time
from bayeszoo import fit
from bayeszoo.cli.app import main
from bayeszoo.results import arviz_groups, assemble, files
import xarray as xr

def stopped(function):
    def then(*words, **options):
        signal.raise_signal(int(sys.argv[1]))
        time.sleep(600 if sys.argv[2] != "saving" else 0)
        return function(*words, **options)
    return then

def again(function):
    def then(*words, **options):
        for _ in range(3):
            signal.raise_signal(signal.SIGINT)
        return function(*words, **options)
    return then

if sys.argv[2] == "checking":
    assemble.labelled = stopped(assemble.labelled)
if sys.argv[2] == "groups":
    arviz_groups._MAKERS["posterior_predictive"] = stopped(arviz_groups._MAKERS["posterior_predictive"])
xr.DataTree.to_netcdf = (stopped if sys.argv[2] == "saving" else again)(xr.DataTree.to_netcdf)
main(["fit", "beta_bernoulli", "--example", "placenta_previa", "--method", "exact", "--seed", "1", "-o", "fit.nc"])
"""


STOPS_AFTER = {"checking": signal.SIGINT, "groups": signal.SIGTERM, "saving": signal.SIGHUP}


@pytest.mark.parametrize("where", quick_first(STOPS_AFTER))
def test_after_the_first_signal_no_other_one_takes_what_was_drawn(tmp_path, where):
    number, name = STOPS_AFTER[where], "fit.nc.partial" if where == "checking" else "fit.nc"
    with running(sys.executable, "-c", AFTER, str(int(number)), where, folder=tmp_path) as process:
        out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 128 + signal.SIGINT if where != "saving" else 128 + number
    assert listing(tmp_path) == [name]
    assert f"wrote {name}\n" in err
    assert err.count(signals.STOPPING.decode()) == 1
    assert "Traceback" not in err
    assert "status" in out
    assert bz.load(tmp_path / name).attrs["status"] == ("interrupted" if where == "checking" else "ok")


IMPORTED = """
import signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # which a parent may ignore, as nohup does
sys.modules["__main__"].__file__ = "/usr/bin/bayeszoo"
class Stops:
    def find_spec(self, name, *_):
        if name == "bayeszoo.answers":
            signal.raise_signal(int(sys.stdin.read()))
sys.meta_path.insert(0, Stops())
import bayeszoo
from tests.refusals import raises
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_stopped_while_the_library_is_imported(number):
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED], input=str(int(number)), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, "", "interrupted\n")


def test_a_program_that_uses_the_library_keeps_its_signals():
    code = IMPORTED.replace("/usr/bin/bayeszoo", "analysis.py")
    done = subprocess.run([sys.executable, "-c", code], input="2", capture_output=True, text=True, check=False)
    assert "KeyboardInterrupt" in done.stderr


EVERY_COUNT = f"from bayeszoo.cli import terminal; terminal.PACE = 0.0; {READY}"


def wait_for_the_second_group(process):
    """Read progress lines until a count is below the count before, as each group is counted from none."""
    last = 0
    for line in process.stderr:
        words = line.split()
        if words[:1] == ["sampling:"]:
            if int(words[1]) < last:
                return
            last = int(words[1])
    raise AssertionError("no second group was begun")


MANY_GROUPS = "y,g\n" + "".join(f"{i * 0.37 % 1:.3f},g{i % 40}\n" for i in range(400))


def test_groups_that_are_stopped_are_printed_and_saved_as_far_as_they_are_done(tmp_path):
    (tmp_path / "rows.csv").write_text(MANY_GROUPS)
    long = ("fit", "normal_gamma", "rows.csv", "--by", "g", "--method", "nuts", "--seed", "1", "--draws", "30000")
    with running(sys.executable, "-c", EVERY_COUNT, *long, "-o", "fits.nc", folder=tmp_path) as process:
        wait_for_the_second_group(process)
        code, out, err = end(process, signal.SIGINT)
    assert code == 128 + signal.SIGINT, err
    assert "Traceback" not in err
    assert "without a fit" in err
    assert listing(tmp_path) == ["fits.nc.partial", "rows.csv"]
    kept = bz.load(tmp_path / "fits.nc.partial")["fits"].children
    assert 1 <= len(kept) < 40
    assert kept["g0"].attrs["status"] == "ok"
    assert " g0 " in out
