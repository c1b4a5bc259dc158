"""The wheel alone, away from the checkout: what a user gets who never sees this repository."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[1]
SOURCES = ["pyproject.toml", "README.md", "LICENSE", "bayeszoo", "models"]

BUILD = "import sys, setuptools.build_meta as backend; backend.build_wheel(sys.argv[1])"

# -S keeps out the .pth files, and with them the editable install of this checkout; the dependencies stay in reach.
RUN = """
import sys
target, *dependencies = sys.argv.pop(1).split("\\n")
sys.path[:] = [target, *sys.path, *dependencies]
from importlib.metadata import distribution
(script,) = distribution("bayeszoo").entry_points.select(group="console_scripts", name="bayeszoo")
main = script.load()
import bayeszoo, bayeszoo.models
for module in (bayeszoo, bayeszoo.models):
    assert module.__file__.startswith(target), module.__file__
sys.argv[0] = "bayeszoo"
sys.exit(main())
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder that holds the unpacked wheel, built from a copy so that the checkout gains no build folder."""
    source, wheels, target = (tmp_path_factory.mktemp(name) for name in ("source", "wheels", "target"))
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, source / name)
    built = subprocess.run([sys.executable, "-c", BUILD, str(wheels)], cwd=source, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    (wheel,) = wheels.glob("bayeszoo-*-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    return target


@pytest.fixture
def command(installed, tmp_path):
    """The installed console script: ``command("list")`` -> its standard output."""
    dependencies = dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))
    path = "\n".join([str(installed), *dependencies])

    def run(*arguments):
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", RUN, path, *arguments],
            cwd=tmp_path,
            env=os.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_wheel_holds_the_data_and_the_type_marker(installed):
    files = {path.relative_to(installed).as_posix() for path in installed.rglob("*") if path.is_file()}
    wanted = {f"bayeszoo/models/data/{path.name}" for path in (ROOT / "models" / "data").iterdir() if path.is_file()}
    wanted |= {f"bayeszoo/models/{path.name}" for path in (ROOT / "models").glob("*.py")}
    assert wanted | {"bayeszoo/py.typed"} <= files
    assert not [name for name in files if name.startswith(("models", "tests"))]


def test_the_wheel_lists_its_models_and_fits_its_own_data(command):
    assert "beta_bernoulli" in command("list")
    result = json.loads(command("fit", "beta_bernoulli", "--method", "exact", "--json"))
    assert result["model"] == "beta_bernoulli"
    assert result["status"] == "ok"
    assert result["log_evidence"] < 0
    assert 0 < result["parameters"]["theta"]["mean"] < 1
