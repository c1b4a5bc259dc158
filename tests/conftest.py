"""Settings that must stand before PyTensor and Matplotlib are imported, by the tests and by what they start."""

import os
import signal
import sys
from pathlib import Path

import pytest

CACHE = Path(__file__).resolve().parents[1] / ".cache" / "pytensor"

os.environ.setdefault("MPLBACKEND", "agg")
flags = os.environ.get("PYTENSOR_FLAGS", "")
if "base_compiledir" not in flags:  # compiled models are kept between runs, as in the Makefile
    os.environ["PYTENSOR_FLAGS"] = ",".join(
        filter(None, [flags, f"base_compiledir={CACHE}", f"generated_src_dir={CACHE / 'src'}"])
    )


@pytest.fixture(autouse=True)
def _as_before():
    """A command takes over signals and hooks for good: a test that runs one in this process gives them back."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)}
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
def run(capsys):
    """The command line: ``run("list")`` -> (exit code, stdout, stderr)."""
    from bayeszoo.cli.app import main

    def call(*arguments):
        with pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        return stop.value.code, *capsys.readouterr()

    return call
