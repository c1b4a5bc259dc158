"""The storeys of the library, where import-linter does not look: imports by string, circles of files, private names."""

import ast
import graphlib
import importlib.util
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LIBRARY, MODELS = sorted((ROOT / "bayeszoo").rglob("*.py")), sorted((ROOT / "models").glob("*.py"))
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]


def module_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = ("bayeszoo", *parts) if parts[0] == "models" else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


PATHS = {module_of(path): path for path in [*LIBRARY, *MODELS]}


@cache
def nodes_of(path):
    """Return the imports, calls and attributes of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom | ast.Call | ast.Attribute)]


def imported_from(path):
    """Yield module and name of each name that is imported from the library."""
    for node in nodes_of(path):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bayeszoo"):
            yield from ((node.module, alias.name) for alias in node.names)


def by_string(path):
    """Yield the modules of the library that are imported by their names in quotes."""
    for node in nodes_of(path):
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called, first = getattr(node.func, "attr", getattr(node.func, "id", "")), str(node.args[0].value)
            if called in ("load", "import_module") and first.startswith("bayeszoo."):
                yield first


@cache
def imports(path):
    """Return the modules of the library that a file imports anywhere, those by string too."""
    names = {(module, f"{module}.{name}") for module, name in imported_from(path)}
    modules = {full if full in PATHS else module for module, full in names}
    return (modules | set(by_string(path))) - {module_of(path)}


def height(module, layers, container):
    """Return how far down a module stands in a contract of layers; None where it is in none of them."""
    part = module.removeprefix(f"{container}.").split(".")[0]
    return next((i for i, layer in enumerate(layers) if part in layer.split(" | ")), None)


def goes_down(above, below):
    """Say whether an import is allowed by every contract of layers in which both modules stand in different parts."""
    for contract in (contract for contract in CONTRACTS if contract["type"] == "layers"):
        (container,) = contract["containers"]
        if not (above.startswith(f"{container}.") and below.startswith(f"{container}.")):
            continue
        parts = [module.removeprefix(f"{container}.").split(".")[0] for module in (above, below)]
        heights = [height(module, contract["layers"], container) for module in (above, below)]
        if None not in heights and parts[0] != parts[1] and heights[0] >= heights[1]:
            return False
    return True


def test_the_order_is_that_of_the_contracts():
    assert goes_down("bayeszoo.families.hmm.model", "bayeszoo.likelihoods.loops.hmm")
    assert not goes_down("bayeszoo.likelihoods.loops.hmm", "bayeszoo.families.hmm.model")
    assert not goes_down("bayeszoo.families.hmm.model", "bayeszoo.inference.starts")
    assert not goes_down("bayeszoo.families.linear.model", "bayeszoo.families.lasso.model")
    assert goes_down("bayeszoo.models.ridge", "bayeszoo.families.linear.model")


@pytest.mark.quick
def test_an_import_by_string_finds_a_file_and_goes_down():
    found = [(module, other) for module, path in PATHS.items() for other in by_string(path)]
    assert len(found) > 20
    assert not [pair for pair in found if pair[1] not in PATHS or not goes_down(*pair)]


def test_no_file_imports_another_in_a_circle():
    graph = {module: {other for other in imports(path) if other in PATHS} for module, path in PATHS.items()}
    del graph["bayeszoo"]  # which names what users may import
    graphlib.TopologicalSorter(graph).prepare()


def test_only_discovery_imports_a_model():
    assert not [module_of(path) for path in LIBRARY if any(m.startswith("bayeszoo.models") for m in imports(path))]
    assert importlib.util.find_spec("bayeszoo.models.ridge")


def private_names_reached(path):
    """Yield the private names of other files that a file uses."""
    modules = {name for module, name in imported_from(path) if f"{module}.{name}" in PATHS}
    yield from (name for _, name in imported_from(path) if name.startswith("_"))
    for node in nodes_of(path):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            is_private = node.attr.startswith("_") and not node.attr.endswith("__")
            yield from [f"{node.value.id}.{node.attr}"] * is_private


def test_a_private_name_stays_in_its_file():
    reached = {module: sorted(private_names_reached(path)) for module, path in PATHS.items()}
    assert not {module: names for module, names in reached.items() if names}


def test_the_guide_shows_the_folders_and_files_that_there_are():
    page = (ROOT / "docs" / "guide" / "architecture.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"^  ([\w.]+)/? ", page, re.M))
    there = {path.name for path in (ROOT / "bayeszoo").iterdir() if path.is_dir() or path.suffix == ".py"}
    assert shown == there - {"__init__.py", "__pycache__"}
    named = re.findall(r"`((?:[a-z_]+/)+(?:[a-z_]+\.py)?)`", page)
    assert len(named) > 20
    assert not [name for name in named if not any((ROOT / part / name).exists() for part in ("", "bayeszoo"))]
