"""Where the numbers come from, and how to get them again."""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayeszoo.data.inputs.labels import text_of
from bayeszoo.data.read import own_example
from bayeszoo.data.table.table import escaped
from bayeszoo.model.accumulated import Accumulated
from bayeszoo.model.base import fields_of
from bayeszoo.model.chunks import ROWS
from bayeszoo.report.blocks import Code, Section, Words, table
from bayeszoo.results.stored import Fit

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
    data += [["read with", words]] if (words := _keywords(_asked(first).options)) else []
    data += [["SHA-256 of the arrays", first.attrs["data_digest"]]]
    versions = [[name, value] for name, value in Fit(first).versions.items()]
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
    return ", ".join(f"{name} {value:.2f}" for name, value in Fit(tree).seconds.items() if value >= 0.005) or "0"


def reproduce(trees: Sequence[xr.DataTree]) -> Section:
    """Give the command and the Python that make each fit again."""
    commands = "\n".join(dict.fromkeys(map(command, trees)))
    lead = (
        "The same versions, data and seed give the same numbers; another machine may round the last digits otherwise."
    )
    if any(_asked(tree).place in _FILES for tree in trees):
        lead += " Files are named without their folders, but in commands that are shown as they were typed."
    if any(tree.attrs["status"] == "interrupted" for tree in trees):
        lead += " A fit that was interrupted is made whole, which gives other numbers."
    blocks = [Words(lead), Code(commands, "On the command line"), Code(python(trees), "In Python")]
    return Section("reproduce", "How to make it again", blocks)


# Where the data came from


class _Asked(NamedTuple):
    """Where data came from and what they were read with.

    ``place`` is "own", the example of that ``name`` as it comes; "example", the first one, read with options; "file";
    "unknown", a file of which it was not kept how it was read; or "memory". For statistics ``rows`` were read at once.
    """

    place: str
    name: str
    options: Mapping[str, Any]
    rows: int | None


_BEST_FIRST = ("own", "file", "example", "unknown", "memory")
_FILES = ("file", "unknown")


def _asked(tree: xr.DataTree) -> _Asked:
    source, reading = str(tree.attrs["data_source"]), Fit(tree).reading
    in_parts = tree.attrs.get("data_from") == "statistics"
    if own := own_example(Fit(tree).model, source, tree.attrs["data_digest"]):
        return _Asked("own", own.name, {}, None)
    if reading is None:
        is_file = in_parts or PurePath(source).suffix in (".csv", ".tsv", ".txt", ".parquet")
        return _Asked("unknown" if is_file else "memory", source, {}, ROWS if in_parts else None)
    place, options = reading.get("from", "memory"), reading.get("options", {})
    if place == "example" and not options:
        place = "memory"  # what this version has under that name is something else
    return _Asked(place, source, options, reading.get("rows"))


def _given_words(tree: xr.DataTree) -> str:
    """Say of which data nothing is known that could be written down."""
    asked = _asked(tree)
    named = f" as {escaped(asked.name)}" if PurePath(asked.name).suffix else ""
    return f"the arrays that were given{named}, SHA-256 {tree.attrs['data_digest']}"


def _keywords(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in options.items())


# The command


def command(tree: xr.DataTree) -> str:
    """Return the command that makes a fit: the one that was given, or one that gives the same; or why there is none."""
    if "command" in tree.attrs:
        return f"bayeszoo {_as_typed(tree.attrs['command'], tree.attrs['seed'])}"
    data = _data_words(tree)
    if data is None:
        return f"# {_no_command(tree)}"
    sets = [part for name, value in _given_fields(tree).items() for part in ("--set", f"{name}={json.dumps(value)}")]
    given, attrs = given_options(tree), tree.attrs
    options = [part for name, value in given.items() if name in OF_COMMANDS for part in _option(name, value)]
    words = ["bayeszoo", "fit", Fit(tree).model.name, *data, "--method", attrs["method"], "--seed", str(attrs["seed"])]
    rest = _keywords({name: value for name, value in given.items() if name not in OF_COMMANDS})
    said = [f"{rest}, in Python only"] * bool(rest) + [_NOT_KEPT] * (_asked(tree).place == "unknown")
    return shlex.join([*words, *options, *sets]) + "".join(f"  # and {one}" for one in said)


_NOT_KEPT = "what it was read with, which was not kept"
OF_COMMANDS = frozenset(
    ("draws", "chains", "tune", "target_accept", "sampler", "extend", "density", "threshold", "thin")
)
"""Options of methods that the command line has."""
OF_TABLES = frozenset(
    [
        "column",
        "positive",
        "count",
        "successes",
        "trials",
        "columns",
        "categories",
        "exposure",
        "sequence",
        "source",
        "target",
        "features",
        "symbols",
        "order",
        "text",
        "document",
        "word",
        "stop_words",
        "min_documents",
        "max_share",
        "vocabulary",
        "delimiter",
        "decimal",
        "encoding",
        "header",
        "missing",
    ]
)
"""Options of reading that the command line has."""
_PLACES = ("-o", "--output", "--report", "--plot")
"""Options that say where results go."""


def _as_typed(words: str, seed: int) -> str:
    """Leave out where results went, which says nothing about them, and add the seed that was drawn."""
    given, kept = iter(shlex.split(words)), []
    for word in given:
        if word in _PLACES:
            next(given, None)
        elif word not in ("--overwrite", "--json") and not word.startswith(tuple(f"{one}=" for one in _PLACES)):
            kept.append(word)
    has_seed = any(word.partition("=")[0] == "--seed" for word in kept)
    return shlex.join(kept if has_seed else [*kept, "--seed", str(seed)])


def _data_words(tree: xr.DataTree) -> list[str] | None:
    """Return the words that name the data and say how to read them, or None where the command line cannot."""
    asked = _asked(tree)
    if asked.place == "own":
        return ["--example", asked.name]
    if asked.place not in _FILES or not asked.options.keys() <= OF_TABLES:
        return None
    options = [part for name, value in asked.options.items() for part in _option(name, value)]
    return [_path(asked.name), *options, *([] if asked.rows is None else ["--chunk-rows", str(asked.rows)])]


def _path(name: str) -> str:
    return f"./{name}" if name.startswith("-") else name  # which is no option


def _no_command(tree: xr.DataTree) -> str:
    asked = _asked(tree)
    if asked.place == "memory":
        return f"{_given_words(tree)}: no command makes them"
    return f"{escaped(asked.name)} read with {_keywords(asked.options)}: in Python only"


def _option(name: str, value: Any) -> list[str]:
    flag = name.replace("_", "-")
    if isinstance(value, bool) and name != "positive":  # which is a label
        return [f"--{flag}" if value else f"--no-{flag}"]
    text = _with_commas(value) if isinstance(value, list) else str(value)
    return [f"--{flag}={text}"] if text.startswith("-") else [f"--{flag}", text]


def _with_commas(names: Iterable[Any]) -> str:
    """Write names as a line of CSV, in quotes where commas or blanks belong to them."""
    cells = list(map(text_of, names))
    line = io.StringIO()
    has_blanks = any(cell != cell.strip() for cell in cells)
    csv.writer(line, quoting=csv.QUOTE_ALL if has_blanks else csv.QUOTE_MINIMAL, lineterminator="").writerow(cells)
    return line.getvalue()


def _given_fields(tree: xr.DataTree) -> dict[str, Any]:
    """Return the fields from which, and the data, the others follow: all, where the rows are not kept."""
    model, data, every = Fit(tree).model, Fit(tree).given, Fit(tree).fields
    chosen: dict[str, Any] = {}
    for name, value in fields_of(model).items():
        if isinstance(data, Accumulated) or not _same(fields_of(type(model).weak_given(data, chosen))[name], value):
            chosen[name] = value
    return {name: every[name] for name in chosen}


def _same(one: Any, other: Any) -> bool:
    return np.shape(one) == np.shape(other) and bool(np.array_equal(one, other))


def given_options(tree: xr.DataTree) -> dict[str, Any]:
    """Return the options of the method that are not its defaults."""
    from bayeszoo.fit import defaults_of

    defaults = defaults_of(type(Fit(tree).model), tree.attrs["method"])
    return {name: value for name, value in Fit(tree).options.items() if value != defaults.get(name, value)}


# Python


class _Names(NamedTuple):
    """What a fit's model class and its data are called in Python."""

    kind: str
    data: str


def python(trees: Sequence[xr.DataTree]) -> str:
    """Return the lines of Python that make the fits and this page."""
    names = _names(trees)
    calls = [_call(tree, *one) for tree, one in zip(trees, names, strict=True)]
    models = _numbered("model", calls)
    found = {one.kind: Fit(tree).model.name for tree, one in zip(trees, names, strict=True)}
    lines = ["import bayeszoo as bz", "", *(f"{kind} = bz.find({name!r})" for kind, name in found.items())]
    for data in dict.fromkeys(one.data for one in names):
        same = [(tree, call, one.kind) for tree, call, one in zip(trees, calls, names, strict=True) if one.data == data]
        made = list(dict.fromkeys(f"{models[call]} = {call}" for _, call, _ in same))
        best, call, kind = min(same, key=lambda one: _BEST_FIRST.index(_asked(one[0]).place))
        read = _data_lines(best, data, kind, models[call])
        lines += [*made, *read] if _asked(best).rows else [*read, *made]
    for i, (tree, call, one) in enumerate(zip(trees, calls, names, strict=True)):
        how = _keywords({"method": tree.attrs["method"], "seed": int(tree.attrs["seed"]), **given_options(tree)})
        lines.append(f"{'fits = [' if i == 0 else '        '}bz.fit({models[call]}, {one.data}, {how}),")
    lines[-1] = lines[-1].removesuffix(",") + "]"
    return "\n".join([*lines, 'bz.report(fits, "report.html")'])


def _names(trees: Sequence[xr.DataTree]) -> list[_Names]:
    """Give each class a name, and each data: what was read by the same rules is the same where the digests are."""
    kinds, rows = [Fit(tree).model.name for tree in trees], list(map(_same_data, trees))
    of_kinds, of_rows = _numbered("M", kinds), _numbered("data", rows)
    return [_Names(of_kinds[kind], of_rows[one]) for kind, one in zip(kinds, rows, strict=True)]


def _same_data(tree: xr.DataTree) -> tuple[str, ...]:
    model, attrs = Fit(tree).model, tree.attrs
    statistics = (model.name, attrs["statistics_digest"]) if "statistics_digest" in attrs else ()
    return attrs["data_digest"], repr(model.inputs), *statistics


def _numbered(name: str, things: Iterable[Any]) -> dict[Any, str]:
    """Name each thing: numbered only where there are several."""
    distinct = list(dict.fromkeys(things))
    return {one: f"{name}_{i}" if len(distinct) > 1 else name for i, one in enumerate(distinct, 1)}


def _data_lines(tree: xr.DataTree, data: str, kind: str, model: str) -> list[str]:
    """Return the lines that read the data; what cannot be written stands as dots."""
    asked = _asked(tree)
    given = f", {words}" if (words := _keywords(asked.options)) else ""
    if asked.place == "own":
        return [f"{data} = bz.example({kind}, {asked.name!r})"]
    if asked.place == "example":
        return [f"{data} = bz.read({kind}{given})"]
    if asked.place == "memory":
        arrays = data.replace("data", "arrays")
        return [f"{arrays} = ...  # {_given_words(tree)}", f"{data} = bz.read({kind}, {arrays}{given})"]
    said = [_NOT_KEPT] * (asked.place == "unknown")
    said += [f"{escaped(role)} is {column!r}" for role, column in Fit(tree).columns.items()]
    comment = f"  # {', '.join(said)}" if said else ""
    if asked.rows:
        return [f"{data} = bz.accumulate({model}, {asked.name!r}, rows={asked.rows}{given}){comment}"]
    return [f"{data} = bz.read({kind}, {asked.name!r}{given}){comment}"]


def _call(tree: xr.DataTree, kind: str, data: str) -> str:
    """Return the call that makes the model, over several lines where it is long."""
    chosen, every = _given_fields(tree), Fit(tree).fields
    if not chosen:
        return f"{kind}.weak({data})"
    if len(chosen) < len(every):
        return f"{kind}.weak_given({data}, {chosen!r})"
    given = [f"{name}={value!r}" for name, value in every.items()]
    line = f"{kind}({', '.join(given)})"
    return line if len(line) <= 90 else f"{kind}(\n" + "".join(f"    {one},\n" for one in given) + ")"
