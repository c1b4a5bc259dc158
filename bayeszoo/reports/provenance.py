"""Where the numbers come from, and how to get them again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from bayeszoo.options import MethodOptions
from bayeszoo.reports.blocks import Code, Section, Words, table
from bayeszoo.tree import model_of, nested

if TYPE_CHECKING:
    import xarray as xr


def section(named: Mapping[str, xr.DataTree]) -> Section:
    """Give seeds, digests, seconds and versions."""
    columns = ["fit", "method", "engine", "seed", "seconds", "made at", "declared from"]
    rows = [
        [name, *(_cell(tree, what) for what in ("method", "sampler", "seed", "seconds", "created_at", "declared_from"))]
        for name, tree in named.items()
    ]
    first = next(iter(named.values()))
    data = [["source", first.attrs["data_source"]], ["rows", str(first.attrs["data_rows"])]]
    data += [["SHA-256 of the arrays", first.attrs["data_digest"]]]
    versions = [[name, value] for name, value in nested(first, "versions").items()]
    return Section(
        "provenance",
        "Where this comes from",
        [
            table(columns, rows, "The fits", ["method", "engine", "made at", "declared from"]),
            table(["data", ""], data, words=[""], sortable=False),
            table(["package", "version"], versions, words=["version"], sortable=False),
        ],
    )


def _cell(tree: xr.DataTree, what: str) -> str:
    if what != "seconds":
        return str(tree.attrs[what])
    return ", ".join(f"{name} {value:.2f}" for name, value in nested(tree, "seconds").items() if value >= 0.005) or "0"


def reproduce(trees: Sequence[xr.DataTree]) -> Section:
    """Give the command and the Python that make each fit again."""
    commands = "\n".join(dict.fromkeys(map(command, trees)))
    lead = (
        "The same versions, data and seed give the same numbers; another machine may round the last digits otherwise."
    )
    blocks = [Words(lead), Code(commands, "On the command line"), Code(python(trees), "In Python")]
    return Section("reproduce", "How to make it again", blocks)


def command(tree: xr.DataTree) -> str:
    """Return the command that makes a fit: the one that was given, or one that gives the same."""
    if "command" in tree.attrs:
        return f"bayeszoo {_without_output(tree.attrs['command'])}"
    attrs, model = tree.attrs, model_of(tree)
    own = _own(tree)
    data = ["--example", own] if own else [attrs["data_source"]]
    sets = [part for name, value in nested(tree, "fields").items() for part in ("--set", f"{name}={json.dumps(value)}")]
    given = given_options(tree)
    options = [part for name, value in given.items() if name in _OF_COMMANDS for part in _option(name, value)]
    words = ["bayeszoo", "fit", model.name, *data, "--method", attrs["method"], "--seed", str(attrs["seed"])]
    rest = ", ".join(f"{name}={value!r}" for name, value in given.items() if name not in _OF_COMMANDS)
    return shlex.join([*words, *options, *sets]) + (f"  # and {rest}, in Python only" if rest else "")


_OF_COMMANDS = {f.name for f in fields(MethodOptions)}
"""Options of methods that the command line has."""
_PLACES = ("-o", "--output", "--report")
"""Options that say where results go."""


def _without_output(words: str) -> str:
    """Leave out where results went, which says nothing about them."""
    given, kept = iter(shlex.split(words)), []
    for word in given:
        if word in _PLACES:
            next(given, None)
        elif word not in ("--overwrite", "--json") and not word.startswith(tuple(f"{one}=" for one in _PLACES)):
            kept.append(word)
    return shlex.join(kept)


def _own(tree: xr.DataTree) -> str | None:
    """Name the model's own data set that a fit was made from, if it was."""
    return next((one.name for one in model_of(tree).examples if one.file == tree.attrs["data_source"]), None)


def _option(name: str, value: Any) -> list[str]:
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{flag}" if value else f"--no-{flag}"]
    return [f"--{flag}", str(value)]


def given_options(tree: xr.DataTree) -> dict[str, Any]:
    """Return the options of the method that are not its defaults."""
    from bayeszoo.fit import defaults_of

    defaults = defaults_of(type(model_of(tree)), tree.attrs["method"])
    return {name: value for name, value in nested(tree, "options").items() if value != defaults.get(name, value)}


def python(trees: Sequence[xr.DataTree]) -> str:
    """Return the lines of Python that make the fits and this page."""
    model, source, own = model_of(trees[0]), trees[0].attrs["data_source"], _own(trees[0])
    columns = ", ".join(f"{role} is {column!r}" for role, column in nested(trees[0], "columns").items())
    read = f"bz.example(M, {own!r})" if own else f"bz.read(M, {source!r})" + (f"  # {columns}" if columns else "")
    lines = ["import bayeszoo as bz", "", f"M = bz.find({model.name!r})", f"data = {read}"]
    priors = dict.fromkeys(_call(tree) for tree in trees)
    names = {call: f"model_{i}" if len(priors) > 1 else "model" for i, call in enumerate(priors, 1)}
    lines += [f"{name} = {call}" for call, name in names.items()]
    for i, tree in enumerate(trees):
        options = "".join(f", {name}={value!r}" for name, value in given_options(tree).items())
        how = f"method={tree.attrs['method']!r}, seed={tree.attrs['seed']}{options}"
        lines.append(f"{'fits = [' if i == 0 else '        '}bz.fit({names[_call(tree)]}, data, {how}),")
    lines[-1] = lines[-1].removesuffix(",") + "]"
    return "\n".join([*lines, 'bz.report(fits, "report.html")'])


def _call(tree: xr.DataTree) -> str:
    """Return the call that makes the model, over several lines where it is long."""
    given = [f"{name}={value!r}" for name, value in nested(tree, "fields").items()]
    line = f"M({', '.join(given)})"
    return line if len(line) <= 90 else "M(\n" + "".join(f"    {one},\n" for one in given) + ")"
