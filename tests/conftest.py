"""Settings that must stand before PyTensor and Matplotlib are imported, by the tests and by what they start."""

import gc
import math
import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from unittest.mock import Mock

import pytest

CACHE = Path(__file__).resolve().parents[1] / ".cache" / "pytensor"

os.environ.setdefault("MPLBACKEND", "agg")
os.environ["XDG_STATE_HOME"] = str(CACHE.parent / "state")  # tests name files, which is remembered; not at home
flags = os.environ.get("PYTENSOR_FLAGS", "")
if "traceback__limit" not in flags:  # where each variable was made takes a quarter of the time that a declaration takes
    flags = ",".join(filter(None, [flags, "traceback__limit=0"]))
if "base_compiledir" not in flags:  # compiled models are kept between runs, as in the Makefile
    flags = f"{flags},base_compiledir={CACHE},generated_src_dir={CACHE / 'src'}"
os.environ["PYTENSOR_FLAGS"] = flags


def pytest_addoption(parser):
    parser.addoption("--measure", action="store_true", help="write the list of cases that `make test` leaves out")


@pytest.hookimpl(tryfirst=True)  # before `-m` is asked
def pytest_collection_modifyitems(config, items):
    from tests.cpu_time import mark_slow_cases

    if not config.getoption("measure"):
        mark_slow_cases(items, pytest.mark.slow)


def pytest_configure(config):
    from tests.cpu_time import CpuTime

    config.pluginmanager.register(CpuTime())
    config.pluginmanager.register(FrozenObjects())


class FrozenObjects:
    """The garbage collector forgets modules and tests once PyMC is there: half a million objects to look through."""

    done = False  # asked after each test, while `gc.get_freeze_count` counts the objects one by one: 70 ms

    def pytest_runtest_teardown(self):
        if "pymc" in sys.modules and not self.done:
            gc.collect()
            gc.freeze()
            self.done = True


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as of a shell's job in the background; processes inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)


@pytest.fixture(autouse=True)
def _as_before():
    """A command takes over signals and hooks for good: a test that runs one in this process gives them back."""
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    hooks = sys.unraisablehook, sys.excepthook
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)
    sys.unraisablehook, sys.excepthook = hooks


@pytest.fixture
def written(tmp_path):
    """Write text or bytes to a file of the test: ``written("y\\n1\\n")`` -> its path."""

    def write(content, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def unhurried(monkeypatch):
    """Whatever a command takes: no line about a phase or a loop that lasts, nor about what a run of NUTS may cost."""
    monkeypatch.setattr("bayeszoo.cli.terminal.Timer", Mock())
    monkeypatch.setattr("bayeszoo.cli.terminal.PACE", math.inf)
    monkeypatch.setattr("bayeszoo.inference.engine.cost.LONG", math.inf)


@pytest.fixture
def no_pictures(monkeypatch):
    """Pages with their words and tables, of which the pictures are not drawn: `test_report` draws them."""
    blocks = import_module("bayeszoo.report.blocks")  # `bayeszoo.report` is a function too
    monkeypatch.setattr(blocks, "data_uri", lambda make: "data:,")


@pytest.fixture
def run(capsys, unhurried):
    """The command line: ``run("list")`` -> (exit code, stdout, stderr)."""
    from bayeszoo.cli.app import main

    def call(*arguments):
        with pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        return stop.value.code, *capsys.readouterr()

    return call


@pytest.fixture
def unmeasured(monkeypatch):
    """Do not measure approximations against draws of the posterior, for which a density is compiled.

    `test_measured` and `test_caution` do measure them.
    """
    from bayeszoo.inference import reference

    monkeypatch.setattr(reference, "reference", lambda problem: reference.Reference("this test needs no reference"))


# Fits that several files draw and describe; a test that changes one copies it first


def _fit(name, prior, data, method, **options):
    import bayeszoo as bz

    return bz.fit(bz.find(name)(**prior), data, method, seed=1, **options)


@pytest.fixture(scope="session")
def numbers():
    """A prior and ten numbers: of `exact` and `at_mode`."""
    prior = {"mu0": 1.0, "kappa0": 1.0, "alpha0": 2.0, "beta0": 1.0}
    return "normal_gamma", prior, [1.2, 0.3, 2.2, 1.9, 0.7, 1.1, 1.6, 0.2, 2.4, 1.0]


@pytest.fixture(scope="session")
def exact(numbers):
    return _fit(*numbers, "exact")


@pytest.fixture(scope="session")
def at_mode(numbers):
    return _fit(*numbers, "map")


@pytest.fixture(scope="session")
def nuts():
    """Draws of theta ~ Beta(8, 5)."""
    prior, coins = {"a": 2, "b": 3}, [1, 0, 1, 1, 0, 1, 1, 1]
    return _fit("beta_bernoulli", prior, coins, "nuts", draws=400, tune=200, extend=False)


@pytest.fixture(scope="session")
def topics():
    """A short run on eight documents, which does not pass."""
    import numpy as np

    counts = np.random.default_rng(1).multinomial(40, np.tile([[0.5, 0.4, 0.1], [0.1, 0.2, 0.7]], (4, 1)))
    data, prior = {"counts": counts, "word": ["ant", "bee", "cat"]}, {"K": 2, "alpha": 0.5, "eta": 5.0}
    return _fit("lda", prior, data, "gibbs", draws=100, tune=50, extend=False)


@pytest.fixture
def closed():
    """Close the figures of a test after it."""
    import matplotlib.pyplot as plt

    yield
    plt.close("all")
