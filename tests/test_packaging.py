"""The promises of the packaging, and the wheel alone, away from the checkout: what a user gets."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name as canonical

from tests.cpu_time import SLOW_CASES

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LIBRARY = sorted((ROOT / "bayeszoo").rglob("*.py"))
MODELS = sorted((ROOT / "models").glob("*.py"))
LONG_MODELS = {"lda"}  # its recursions need the room

# In two halves, or this file would be found too.
REGISTRIES = [f"{name}.org" for name in ("pypi", "pythonhosted", "anaconda")] + ["npmjs" + ".com", "crates" + ".io"]
IMPORTED_AS = {"sklearn": "scikit-learn", "arviz_base": "arviz", "arviz_plots": "arviz", "arviz_stats": "arviz"}


def named(path):
    return str(path.relative_to(ROOT))


def requirement_names(requirement):
    """The distributions that a requirement asks for: ``arviz[matplotlib]>=1`` -> arviz, matplotlib."""
    asked = Requirement(requirement)
    return {canonical(name) for name in (asked.name, *asked.extras)}


def imported(path):
    """Top-level names that a file imports, lazily or not."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                yield from (alias.name.split(".")[0] for alias in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module.split(".")[0]
            case ast.Call(func=ast.Attribute(attr="load"), args=[ast.Constant(value=str(module)), *_]):
                yield module.split(".")[0]


def test_constraints_pin_names_to_versions_and_nothing_else():
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert [pin for pin in pins if not re.fullmatch(r"[\w.-]+==[\w.!+-]+( ; [^:/@]+)?", pin)] == []
    assert "pymc==6.4.0" in pins


def test_constraints_cover_every_declared_dependency():
    pinned = {
        canonical(pin.split("==")[0]) for pin in (ROOT / "constraints.txt").read_text(encoding="utf-8").split("\n")
    }
    extras = PROJECT["project"]["optional-dependencies"]
    declared = [*PROJECT["project"]["dependencies"], *(one for extra in extras.values() for one in extra)]
    assert set().union(*map(requirement_names, declared)) - pinned == set()


def test_the_page_of_installation_names_each_extra():
    page = (ROOT / "docs" / "guide" / "install.md").read_text(encoding="utf-8")
    extras = re.findall(r"^\| `(\w+)` \|", page, flags=re.MULTILINE)
    assert sorted(extras) == sorted(PROJECT["project"]["optional-dependencies"])


def test_no_file_names_a_registry():
    folders = ["bayeszoo", "models", "tests", "benchmarks", ".ci"]
    files = [*(path for folder in folders for path in (ROOT / folder).rglob("*")), *ROOT.glob("*")]
    found = []
    for path in (path for path in files if path.is_file() and path.suffix != ".pyc"):
        text = path.read_bytes().decode("utf-8", errors="ignore")
        found += [f"{named(path)}: {host}" for host in REGISTRIES if host in text]
    assert found == []


def test_build_and_pin_files_hold_no_address():
    files = ["pyproject.toml", "constraints.txt", "Makefile", ".ci/run", ".pre-commit-config.yaml"]
    assert [name for name in files if "://" in (ROOT / name).read_text(encoding="utf-8")] == []


def test_make_has_its_targets_and_help_lists_each():
    targets = re.findall(r"^([a-z-]+):.* ## \w", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    wanted = "help env demo docs docs-quick notebooks reports test test-all test-browser lint format bench scorecards"
    assert set(targets) == {*wanted.split(), "certify", "clean", "measure", "test-newest"}


def test_files_can_be_read_in_one_sitting():
    limits = dict.fromkeys(LIBRARY, 400) | {path: 300 if path.stem in LONG_MODELS else 150 for path in MODELS}
    sizes = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in limits}
    assert {named(path): size for path, size in sizes.items() if size > limits[path]} == {}


@pytest.mark.quick
def test_every_import_is_declared():
    extras = PROJECT["project"]["optional-dependencies"]
    declared = [
        *PROJECT["project"]["dependencies"],
        *extras["formula"],
        *extras["dask"],
        *extras["polars"],
        *extras["samplers"],
        "jax",  # which BlackJAX and NumPyro are written in
    ]
    known = set().union(*map(requirement_names, declared)) | {"bayeszoo"}
    undeclared = {
        f"{named(path)}: {module}"
        for path in [*LIBRARY, *MODELS]
        for module in imported(path)
        if module not in sys.stdlib_module_names and canonical(IMPORTED_AS.get(module, module)) not in known
    }
    assert undeclared == set()


def test_every_package_is_installed():
    folders = {path.parent for path in (ROOT / "bayeszoo").rglob("__init__.py")}
    names = {".".join(folder.relative_to(ROOT).parts) for folder in folders}
    names |= {"bayeszoo.models", "bayeszoo.models.data", "bayeszoo.models.scorecards"}
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == names


def test_what_is_loaded_lazily_loads_nothing_lazily_itself():
    """lazy_loader holds a lock while it looks around, which may load a lazy module: one in it would wait for ever."""
    calls = {
        path: re.findall(r'lazy_loader\.load\("(bayeszoo[\w.]*)"', path.read_text()) for path in [*LIBRARY, *MODELS]
    }
    targets = {name for names in calls.values() for name in names}
    nested = [name for name in targets if calls[ROOT / (name.replace(".", "/") + ".py")]]
    assert targets
    assert nested == []


# The wheel

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
        options = {"cwd": tmp_path, "env": os.environ, "stdin": subprocess.DEVNULL, "capture_output": True}
        done = subprocess.run([sys.executable, "-I", "-S", "-c", RUN, path, *arguments], text=True, **options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.mark.slow
def test_wheel_holds_the_data_and_the_type_marker(installed):
    files = {path.relative_to(installed).as_posix() for path in installed.rglob("*") if path.is_file()}
    wanted = {f"bayeszoo/models/data/{path.name}" for path in (ROOT / "models" / "data").iterdir() if path.is_file()}
    wanted |= {f"bayeszoo/models/{path.name}" for path in (ROOT / "models").glob("*.py")}
    assert wanted | {"bayeszoo/py.typed"} <= files
    assert not [name for name in files if name.startswith(("models", "tests"))]


@pytest.mark.slow
def test_the_wheel_lists_its_models_and_fits_its_own_data(command):
    assert "beta_bernoulli" in command("list")
    assert "gaussian_mixture" in command("find", "kmeans")
    result = json.loads(command("fit", "beta_bernoulli", "--method", "exact", "--json"))
    assert result["model"] == "beta_bernoulli"
    assert result["status"] == "ok"
    assert result["log_evidence"] < 0
    assert 0 < result["parameters"]["theta"]["mean"] < 1


def test_the_list_of_slow_cases_names_tests_that_there_are():
    """A line about a test that was renamed would leave that test in `make test` without a word."""
    files = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")}
    listed = {line.split("[")[0] for line in SLOW_CASES.read_text(encoding="utf-8").splitlines()}
    names = [line.removeprefix("tests/").split("::") for line in listed]
    assert [name for file, name in names if f"def {name}(" not in files.get(file, "")] == []
