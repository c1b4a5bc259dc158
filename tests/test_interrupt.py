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
import xarray as xr

import bayeszoo as bz
from bayeszoo.comparison import by, many
from bayeszoo.comparison.compare import STOPPED
from bayeszoo.errors import Interrupted
from bayeszoo.fit import uninterrupted
from bayeszoo.foundation import signals
from bayeszoo.foundation.gate import Check
from bayeszoo.foundation.progress import PHASES, Reporter
from bayeszoo.inference.methods import gibbs, nuts, runs
from bayeszoo.inference.problem import Problem
from bayeszoo.results import assemble as assembling
from bayeszoo.results import groups
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


# After the draws: they are kept whatever of the rest is stopped


def stopping(*_, **__):
    raise KeyboardInterrupt


def test_stopped_while_it_is_checked_a_fit_keeps_its_draws(monkeypatch, tmp_path):
    model, rows = bz.find("normal_gamma")(), [1.2, 0.3, 2.2, 1.9]
    whole = bz.fit(model, rows, "exact", seed=1, groups=[])
    monkeypatch.setattr(assembling, "labelled", stopping)
    tree = bz.load(bz.save(bz.fit(model, rows, "exact", seed=1), tmp_path / "fit.nc"))
    assert (tree.attrs["status"], bz.view(tree).checks) == ("interrupted", {})
    np.testing.assert_array_equal(tree["posterior"]["mu"], whole["posterior"]["mu"])
    assert bz.summarize(tree)["mu"]["mean"] is None
    with pytest.raises(bz.Untrustworthy):
        bz.predict(tree)


def test_a_second_ctrl_c_takes_nothing_from_a_fit_that_is_assembled(monkeypatch, capfd):
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def pressed_in(name):
        right = getattr(assembling, name)

        def then(*words, **options):
            signal.raise_signal(signal.SIGINT)
            return right(*words, **options)

        monkeypatch.setattr(assembling, name, then)

    for name in ("labelled", "_as_drawn", "_provenance"):
        pressed_in(name)
    tree = bz.fit(bz.find("normal_gamma")(), [1.2, 0.3, 2.2, 1.9], "exact", seed=1)
    assert (tree.attrs["status"], tree["posterior"]["mu"].size) == ("interrupted", 4000)
    assert capfd.readouterr().err == signals.HELD.decode()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_stopped_while_groups_are_added_a_fit_is_whole_without_them(monkeypatch):
    model, rows = bz.find("normal_gamma")(), [1.2, 0.3, 2.2, 1.9]
    monkeypatch.setitem(groups._MAKERS, "posterior_predictive", stopping)
    for asked in (None, ["posterior_predictive"]):
        tree = bz.fit(model, rows, "exact", seed=1, groups=asked)
        assert tree.attrs["status"] == "ok"
        assert "posterior_predictive" not in tree.children
        assert any("stopped" in note for note in bz.view(tree).notes)


def a_run(length):
    """A run of 2 chains of so many draws."""
    draws = xr.Dataset({"theta": (("chain", "draw"), np.full((2, length), 0.5))})
    return nuts.Run(xr.DataTree.from_dict({"posterior": draws, "sample_stats": draws.rename(theta="energy")}))


@pytest.mark.parametrize(
    ("second", "kept"),
    [(stopping, 30), (Mock(side_effect=Interrupted("no draw")), 30), (Mock(return_value=a_run(5)), 30)],
)
def test_an_attempt_that_is_stopped_does_not_take_the_one_before_with_it(monkeypatch, second, kept):
    """Of a run that did not pass all draws are there, when it is repeated and stopped before it has as many."""
    first = a_run(30)
    attempts = iter([lambda *_: first, second])
    failed = [Check("r_hat", passed=False, value=1.2, limit="<= 1.01")]
    checked = iter([lambda *_: failed, stopping])
    monkeypatch.setattr(nuts, "_sampled", lambda *words: next(attempts)(*words))
    monkeypatch.setattr(nuts, "_checks", lambda *words: next(checked)(*words))
    monkeypatch.setattr(nuts, "_ends", lambda *_: ())
    monkeypatch.setattr(nuts, "announce_again", lambda *_: None)
    problem = Mock(**{"density.names": ["theta"], "density.dims": {}, "density.coords": {}})
    outcome = nuts.run(problem, draws=30)
    assert (outcome.interrupted, outcome.checks, outcome.facts["attempts"]) == (True, [], 1)
    assert outcome.draws["theta"].shape == (2, kept)


@pytest.mark.parametrize("second", [0, 5, 30, "checked", "said"])
def test_a_second_attempt_of_gibbs_that_is_stopped_does_not_take_the_first_with_it(monkeypatch, second):
    """Nor does one that is not long enough to be shown in its place; where both are whole the later one is kept."""
    lengths, judged, failed = iter([30, second]), [], [Check("ess", passed=False, value=9.0, limit=">= 400")]

    def sampled(chains, kept, *_):
        length = next(lengths)
        if length == 0:
            raise Interrupted("no draw")
        length = length if isinstance(length, int) else 30
        for name in kept:
            kept[name][:, :length] = 1.0 if judged else 0.0
        return length

    def checks(*_):
        judged.append(1)
        if len(judged) == 2:
            raise KeyboardInterrupt
        return failed

    monkeypatch.setattr(gibbs, "_sample", sampled)
    monkeypatch.setattr(gibbs, "_judged", checks)
    probit = bz.find("probit_regression")
    data = bz.read(probit, {"x": [1.0, 2.0, 9.0, 9.5], "y": [0, 1, 0, 1]})
    problem = Problem(probit.weak(data), data, np.random.default_rng(1))
    if second == "said":
        monkeypatch.setattr(problem.reporter, "say", stopping)
    outcome = gibbs.run(problem, draws=30)
    is_later = second in (30, "checked")
    assert (outcome.interrupted, outcome.checks, outcome.facts["attempts"]) == (True, [], 2 if is_later else 1)
    assert outcome.sample_stats["lp"].tolist() == [[float(is_later)] * 30] * 4


AFTER = """
import signal, sys, time
from bayeszoo import fit
from bayeszoo.cli.app import main
from bayeszoo.results import assemble, files, groups
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
    groups._MAKERS["posterior_predictive"] = stopped(groups._MAKERS["posterior_predictive"])
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
    assert err.count(signals.HELD.decode()) == 1
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


# What a machine is too small for


def test_more_draws_than_memory_are_refused_before_the_sampler_ends_the_process(monkeypatch):
    problem = Mock(**{"density.shapes": {"theta": (), "w": (3,)}})
    settings = nuts.Settings(draws=10**9, tune=10, chains=4, target_accept=0.8)
    with pytest.raises(bz.InputError, match="at most"):
        runs.require_room(problem, settings)
    monkeypatch.setattr(runs, "memory_of_machine", lambda: 8 * 4 * 22 * 30)
    runs.require_room(problem, nuts.Settings(20, 10, 4, 0.8))
    with pytest.raises(bz.InputError, match="at most 20 draws"):
        runs.require_room(problem, nuts.Settings(21, 10, 4, 0.8))


class PanicException(BaseException):
    """As Rust's, which is no Exception."""


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("Unable to allocate 9 GiB"),
        OSError(12, "Cannot allocate memory"),
        ImportError("lib.so: failed to map segment from shared object"),
        RuntimeError("can't start new thread"),
        PanicException("called `Option::unwrap()` on a `None` value"),
    ],
)
def test_what_memory_or_a_sampler_lacks_is_one_line_and_code_4(monkeypatch, run, error):
    def fails(*_, **__):
        raise error

    monkeypatch.setattr("bayeszoo.cli.verbs.fits.fit", fails)
    code, out, err = run("fit", "beta_bernoulli", "--example", "placenta_previa")
    assert (code, out) == (4, "")
    assert err.splitlines()[-1].startswith("error: ")


def test_a_comparison_that_is_stopped_shows_the_fits_that_it_has(monkeypatch):
    model, rows = bz.find("normal_gamma")(), [1.2, 0.3, 2.2, 1.9]
    monkeypatch.setattr("bayeszoo.inference.methods.mode.run_map", stopping)
    monkeypatch.setattr("bayeszoo.inference.methods.mode.run_mle", lambda *_: pytest.fail("it went on"))
    frame = bz.compare(model, rows, ["exact", "map", "mle"], seed=1)
    assert frame["status"].tolist() == ["ok"] * 2 + [f"withheld: {STOPPED}"] * 2
    with pytest.raises(KeyboardInterrupt):
        bz.compare(model, rows, ["map", "exact"], seed=1)


def stopping_after(count, right, state):
    """Return a fit that is stopped when it is asked for once more than ``count`` times."""

    def fitted(*given, **options):
        state.append(1)
        if len(state) > count:
            raise KeyboardInterrupt
        return right(*given, **options)

    return fitted


TABLE = "y,site\n1.2,a\n0.3,a\n2.2,b\n1.9,b\n0.1,c\n0.7,c\n"


@pytest.mark.parametrize("count", [1, 2])
def test_groups_that_are_stopped_keep_the_fits_that_there_are(count, monkeypatch, run, tmp_path):
    (tmp_path / "sites.csv").write_text(TABLE)
    monkeypatch.setattr(by, "fit", stopping_after(count, by.fit, []))
    out = tmp_path / "sites.nc"
    command = ["fit", "normal_gamma", str(tmp_path / "sites.csv"), "--by", "site", "--method", "exact", "--seed", "1"]
    code, printed, err = run(*command, "-o", str(out))
    assert code == 130
    assert "without a fit" in err
    assert not out.exists()
    kept = bz.load(tmp_path / "sites.nc.partial")
    assert list(kept["fits"].children) == ["a", "b"][:count]
    assert "a" in printed


def test_many_data_sets_that_are_stopped_keep_the_fits_that_there_are(monkeypatch):
    monkeypatch.setattr(many, "fit", stopping_after(1, many.fit, []))
    data = {"north": [1.2, 0.9], "south": [3.1, 2.8], "east": [0.1, 0.3]}
    with pytest.warns(bz.Caution, match="2 data sets without a fit"):
        tree = bz.fit_many(bz.find("gaussian_mean")(), data, "exact", seed=1, workers=1)
    assert list(tree["fits"].children) == ["north"]
    monkeypatch.setattr(many, "fit", stopping)
    with pytest.raises((Interrupted, KeyboardInterrupt)):
        bz.fit_many(bz.find("gaussian_mean")(), data, "exact", seed=1, workers=1)


def test_a_signal_waits_while_processes_begin(monkeypatch):
    """Of a Dask cluster that has half begun nobody could end the other half."""
    monkeypatch.setattr(signals, "received", [])
    signals.listen()
    begun = []

    def begin():
        with signals.beginning():
            signal.raise_signal(signal.SIGINT)
            begun.append("all of it")

    with pytest.raises(KeyboardInterrupt):
        begin()
    assert begun


def test_what_builds_on_a_fit_that_was_stopped_is_stopped_too():
    tree = bz.fit(bz.find("beta_bernoulli")(), [1, 0, 1], "exact", seed=1, groups=[])
    assert uninterrupted(tree) is tree
    tree.attrs["status"] = "interrupted"
    with pytest.raises(bz.Interrupted):
        uninterrupted(tree)
