"""Where the numbers come from, and how to get them again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from bayeszoo.data.read import own_example
from bayeszoo.fit import defaults_of
from bayeszoo.report.blocks import Code, Section, Words, table
from bayeszoo.report.tables import seconds
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import xarray as xr


def section(named: Mapping[str, xr.DataTree]) -> Section:
    """Give seeds, digests, seconds and versions."""
    rows = [
        [name, *(str(tree.attrs[key]) for key in ("method", "sampler", "seed", "created_at", "declared_from"))]
        for name, tree in named.items()
    ]
    columns = ["fit", "method", "engine", "seed", "made at", "declared from", "seconds"]
    rows = [[*row, seconds(Fit(tree).seconds)] for row, tree in zip(rows, named.values(), strict=True)]
    first = next(iter(named.values()))
    data = [["source", first.attrs["data_source"]], ["rows", str(first.attrs["data_rows"])]]
    data += [["read with", words]] if (words := _keywords(_options_of_reading(first))) else []
    data += [["SHA-256 of the arrays", first.attrs["data_digest"]]]
    blocks = [
        table(columns, rows, "The fits", ["method", "engine", "made at", "declared from"]),
        table(["data", ""], data, words=[""], sortable=False),
        table(["package", "version"], Fit(first).versions.items(), words=["version"], sortable=False),
    ]
    return Section("provenance", "Where this comes from", blocks)


def reproduce(trees: Sequence[xr.DataTree]) -> Section:
    """Give the commands by which fits were made, and the Python that makes each again."""
    lead = "The same versions, data and seed give the same numbers, up to how a machine rounds the last digits."
    if any(tree.attrs["status"] == "interrupted" for tree in trees):
        lead += " A fit that was interrupted is made whole, which gives other numbers."
    typed = dict.fromkeys(command(tree) for tree in trees if "command" in tree.attrs)
    blocks = [Words(lead), *([Code("\n".join(typed), "On the command line")] if typed else [])]
    return Section("reproduce", "How to make it again", [*blocks, Code(python(trees), "In Python")])


def command(tree: xr.DataTree) -> str:
    """Return the command by which a fit was made, as it was typed, and the seed if that was drawn."""
    words = shlex.split(tree.attrs["command"])
    has_seed = any(word.partition("=")[0] == "--seed" for word in words)
    return shlex.join(["bayeszoo", *words, *([] if has_seed else ["--seed", str(tree.attrs["seed"])])])


def python(trees: Sequence[xr.DataTree]) -> str:
    """Return the lines of Python that make the fits and this page; files are named without their folders."""
    lines, before = ["import bayeszoo as bz", "", "fits = []"], ""
    for tree in trees:
        fit, attrs = Fit(tree), tree.attrs
        fields = "".join(f"    {name}={value!r},\n" for name, value in fit.fields.items())
        model, data = f"model = M(\n{fields})", _data_line(tree)
        steps = [model, data] if "(model," in data else [data, model]  # which accumulates for it
        if (made := "\n".join([f"M = bz.find({fit.model.name!r})", *steps])) != before:
            lines.append(made)
            before = made
        defaults = defaults_of(type(fit.model), attrs["method"])
        options = {name: value for name, value in fit.options.items() if value != defaults.get(name, value)}
        how = _keywords({"method": attrs["method"], "seed": int(attrs["seed"]), **options})
        lines.append(f"fits.append(bz.fit(model, data, {how}))")
    return "\n".join([*lines, 'bz.report(fits, "report.html")'])


def _data_line(tree: xr.DataTree) -> str:
    """Return the line that reads the data; arrays that have no name stand as dots."""
    source, reading, options = tree.attrs["data_source"], Fit(tree).reading, _options_of_reading(tree)
    given = f", {_keywords(options)}" if options else ""
    if own := own_example(Fit(tree).model, source, tree.attrs["data_digest"]):
        return f"data = bz.example(M, {own.name!r})"
    if reading is None and PurePath(source).suffix:
        return f"data = bz.read(M, {source!r})  # read with options that were not kept"
    place = (reading or {}).get("from")
    if place == "example" and options:
        return f"data = bz.read(M{given})"
    if place == "file" and reading and "rows" in reading:
        return f"data = bz.accumulate(model, {source!r}, rows={reading['rows']}{given})"
    if place == "file":
        return f"data = bz.read(M, {source!r}{given})"
    return f"data = bz.read(M, ...{given})  # the arrays that were given, SHA-256 {tree.attrs['data_digest']}"


def _options_of_reading(tree: xr.DataTree) -> Mapping[str, Any]:
    found = own_example(Fit(tree).model, tree.attrs["data_source"], tree.attrs["data_digest"])
    return {} if found else (Fit(tree).reading or {}).get("options", {})


def _keywords(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in options.items())
