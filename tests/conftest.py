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


@pytest.fixture
def run(capsys):
    """The command line: ``run("list")`` -> (exit code, stdout, stderr)."""
    from bayeszoo.cli import main

    before, hooks = signal.getsignal(signal.SIGTERM), (sys.unraisablehook, sys.excepthook)

    def call(*arguments):
        with pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        return stop.value.code, *capsys.readouterr()

    yield call
    signal.signal(signal.SIGTERM, before)
    sys.unraisablehook, sys.excepthook = hooks
