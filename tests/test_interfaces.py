"""Interfaces inside the library: typed signatures, families unknown above, few arguments of commands."""

import ast
from functools import cache
from pathlib import Path

import pytest

LIBRARY = Path(__file__).resolve().parents[1] / "bayeszoo"
BELOW = {"families", "distributions", "likelihoods", "data", "model", "foundation"}
MOST_ANY, MOST_ARGUMENTS = 0.24, 11


@cache
def parsed():
    """Return each file of the library by its path in it."""
    return {path.relative_to(LIBRARY): ast.parse(path.read_text(encoding="utf-8")) for path in LIBRARY.rglob("*.py")}


def functions(tree):
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def arguments(function):
    a = function.args
    return [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]


def names(node):
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def has_any(function):
    annotations = [*(argument.annotation for argument in arguments(function)), function.returns]
    return any("Any" in names(annotation) for annotation in annotations if annotation is not None)


@pytest.mark.quick
def test_few_signatures_take_or_return_anything():
    every = [function for tree in parsed().values() for function in functions(tree)]
    share = sum(map(has_any, every)) / len(every)
    assert share <= MOST_ANY, f"{share:.1%} of {len(every)} signatures have Any"


def test_no_class_of_a_family_is_asked_for_above_the_families():
    families = {
        node.name
        for path, tree in parsed().items()
        if path.parts[0] == "families"
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }
    of_laws = {"NegativeBinomial"}  # also a distribution
    asked = [
        f"{path}:{node.lineno}"
        for path, tree in parsed().items()
        if path.parts[0] not in BELOW
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("isinstance", "issubclass")
        if names(node.args[1]) & (families - of_laws)
    ]
    assert not asked


def test_no_command_has_many_arguments():
    commands = [
        function
        for path, tree in parsed().items()
        if path.parts[0] == "cli"
        for function in functions(tree)
        if function.name.endswith("_command")
    ]
    assert len(commands) > 20
    assert not [each.name for each in commands if len(arguments(each)) > MOST_ARGUMENTS]
