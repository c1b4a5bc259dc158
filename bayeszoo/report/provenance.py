"""Provenance: the model as its file states it, the prior, the data, the graph, and how to reproduce the fit."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from textwrap import dedent
from typing import Any, cast

import numpy as np

from bayeszoo.data.inputs import Inputs, Regression
from bayeszoo.data.read import PACKED, Data, own_example
from bayeszoo.fit import defaults_of
from bayeszoo.model.base import Model, fields_of
from bayeszoo.model.fields import hyperparameters, text
from bayeszoo.model.find import names_a_file, own_file
from bayeszoo.model.incomplete import Incomplete
from bayeszoo.model.outer.over_fields import OverFields
from bayeszoo.model.parts.accumulated import Accumulated, arrays_of
from bayeszoo.plots.graph import declared, draw
from bayeszoo.report.blocks import Block, Choice, Code, Folded, Section, TableBlock, Words, picture, skipping, table
from bayeszoo.report.text.numbers import seconds
from bayeszoo.results.stored import Fit

_DESCRIBED = {"count": "values", "mean": "mean", "std": "sd", "min": "least", "max": "greatest", "unique": "labels"}
_DESCRIBED |= {"top": "most frequent"}
"""Figures shown for a column: names in pandas, and headings."""
_COLUMNS_SHOWN = 20
_MOST_NAMED = 120
"""Most characters of column names at the top of the page."""


def data_line(fit: Fit) -> str:
    """Return the line at the top of the page: the source of the data, the number of rows, and the columns."""
    rows = int(fit.tree.attrs["data_rows"])
    inputs, columns = fit.model.inputs, dict(fit.columns)
    has_outcome = isinstance(inputs, Regression) and inputs.name in columns
    outcome = [f"outcome {columns.pop(inputs.name)}"] if has_outcome else []
    labels = [name for name in ("feature", "column") if name in fit.like]  # the columns of a matrix
    names = [str(name) for name in fit.like[labels[0]]] if labels else list(columns.values())
    count = max(1, int(np.searchsorted(np.cumsum([len(name) + 2 for name in names]), _MOST_NAMED)))
    listed = ", ".join(names[:count]) + f" and {len(names) - count} more" * (count < len(names))
    parts = [f"{rows:,} row{'s' * (rows != 1)} of {fit.data_source or 'arrays'}", *outcome]
    parts += [f"{'features' if outcome else 'from'} {listed}"] if listed else []
    return "; ".join(parts)


def about(models: Iterable[type[Model]]) -> list[str]:
    """Return a line about each model, with its name if there are several."""
    lines = {model.name: notation(model).partition("\n")[0] for model in models}
    return [f"{name}: {line}" if len(lines) > 1 else line for name, line in lines.items()]


def section(fits: Mapping[str, Fit]) -> Section:
    """Describe each model, given by a fit, and the data, which all fits share."""
    data, options = next(iter(fits.values())).observed, {name: _model(fit) for name, fit in fits.items()}
    model = next(iter(fits.values())).model
    about_table = f"The table: {type(model).inputs.describe()}."
    if example := own_example(model, data.source, data.digest):
        about_table += f" Example data of the model: {example.about} ({example.source})"
    described = Folded("The data", [Words(about_table), _data(data, type(model).inputs)])
    return Section("asked", "What was asked", [Choice("model", options), described])


def _model(fit: Fit) -> list[Block]:
    """Return a model as its file states it, its prior and its graph."""
    model, data = fit.model, fit.observed
    _, *paragraphs = _paragraphs(notation(type(model)))  # the first is at the top of the page
    words = [block for block in paragraphs if isinstance(block, Words)]
    return [
        *(block for block in paragraphs if isinstance(block, Code)),
        *([Folded("More about the model", words)] if words else []),
        Folded("The prior and the switches", [_prior(model, data)]),
        Folded("The graph of the model", [_graph(model, data)]),
    ]


def _graph(model: Model, data: Data | Accumulated) -> Block:
    """Draw the graph of the declared PyMC model."""
    blocks: list[Any] = []
    with skipping("the graph of the model", blocks):
        pymc_model = declared(model, data if isinstance(data, Data) else None)
        caption = "Shaded: observed. A frame repeats its nodes along an axis. Discrete latent variables are summed out."
        blocks.append(picture(partial(draw, pymc_model), f"graph of {model.name}", caption))
    return blocks[0]


def _paragraphs(words: str) -> list[Words | Code]:
    """Split a docstring into paragraphs; indented text is mathematics and is not reflowed."""
    parts = [part for part in words.replace("``", "").split("\n\n") if part.strip()]
    return [
        Code(dedent(part))
        if all(line.startswith("    ") for line in part.split("\n"))
        else Words(" ".join(part.split()))
        for part in parts
    ]


def _prior(model: Model, data: Data | Accumulated) -> TableBlock:
    """Return a table of the fields, with the likely origin of each by its value."""
    declarations, values = hyperparameters(model), fields_of(model)
    is_given = isinstance(model, OverFields)  # the fields of its model, and priors of the others
    weak = fields_of(type(model).weak(data)) if isinstance(data, Data) and not is_given else {}
    rows = []
    for field in (field for field in fields(cast(Any, model)) if field.name in values):
        value, origin = values[field.name], "given"
        if np.array_equal(value, cast(Any, field.default)):
            origin = "the model's default"
        elif field.name in weak and np.array_equal(value, weak[field.name]):
            origin = "weakly informative, scaled to these data"
        label = declarations[field.name].label if field.name in declarations else ""
        rows.append([field.name, text(value), label, origin])
    columns = ["field", "value", "is", "comes from"]
    return table(columns, rows, words=columns[1:])


def _data(data: Data | Accumulated, inputs: Inputs) -> TableBlock:
    """Describe the columns of the table, or the arrays of statistics, as pandas does."""
    import pandas as pd

    rows_kept = data.holed if isinstance(data, Incomplete) else data if isinstance(data, Data) else None
    arrays = arrays_of(cast(Accumulated, data).stats) if rows_kept is None else inputs.table(rows_kept)
    shown = list(arrays.items())[:_COLUMNS_SHOWN]
    summary = pd.DataFrame([pd.Series(np.ravel(values)).describe() for _, values in shown])
    described = summary.reindex(columns=list(_DESCRIBED)).dropna(axis=1, how="all")
    figures = described.to_numpy().tolist()
    note = ", some with empty cells" if isinstance(data, Incomplete) else ""
    note = " (statistics only)" if rows_kept is None else note
    caption = f"The data: {data.rows} row{'s' * (data.rows != 1)}{note}, from {data.source or 'arrays'}"
    caption += f"; the first {len(shown)} of {len(arrays)} columns" if len(arrays) > len(shown) else ""
    rows = [[name, data.columns.get(name, ""), *cells] for (name, _), cells in zip(shown, figures, strict=True)]
    heads = ["", "column", *(_DESCRIBED[str(name)] for name in described)]
    return table(heads, rows, caption, ["column", _DESCRIBED["top"]], sortable=False)


def notation(model: type[Model]) -> str:
    """Return the docstring of the model's file: the model in ~ notation, and its sources."""
    return (sys.modules[model.__module__].__doc__ or "").strip()


# How to make it again


def again(named: Mapping[str, Fit]) -> Section:
    """Return the commands of the fits, Python that repeats them, and seeds, digests and versions."""
    fits = list(named.values())
    lead = "The same versions, data and seed give the same numbers, up to rounding of the last digits."
    if any(fit.tree.attrs["status"] == "interrupted" for fit in fits):
        lead += " An interrupted fit is repeated to its end, and gives other numbers."
    typed = dict.fromkeys(filter(None, map(command, fits)))
    on_command_line = [Code("\n".join(typed), "On the command line")] if typed else []
    in_python = Folded("In Python", [Code(python(fits))])
    versions = Folded("Seeds, digests, versions", _provenance(named))
    return Section("again", "How to make it again", [Words(lead), *on_command_line, in_python, versions])


def _provenance(named: Mapping[str, Fit]) -> list[TableBlock]:
    rows = [
        [name, *(str(fit.tree.attrs[key]) for key in ("method", "sampler", "seed", "created_at", "declared_from"))]
        for name, fit in named.items()
    ]
    columns = ["fit", "method", "engine", "seed", "made at", "declared from", "seconds"]
    rows = [[*row, seconds(fit.seconds)] for row, fit in zip(rows, named.values(), strict=True)]
    first = next(iter(named.values()))
    data = [["source", first.data_source], ["rows", str(first.tree.attrs["data_rows"])]]
    data += [["read with", words]] if (words := _keywords(_options_of_reading(first))) else []
    data += [["SHA-256 of the arrays", first.data_digest]]
    return [
        table(columns, rows, words=["method", "engine", "made at", "declared from"]),
        table(["data", ""], data, words=[""], sortable=False),
        table(["package", "version"], first.versions.items(), words=["version"], sortable=False),
    ]


def command(fit: Fit) -> str:
    """Return the command of a fit, as it was typed, with the seed if that was drawn; empty without a command.

    A command that would run another file than the model's is not returned.
    """
    words, model_file = shlex.split(str(fit.tree.attrs.get("command", ""))), fit.own_file
    if not words or any(names_a_file(word) and not (model_file and model_file.is_named(word)) for word in words):
        return ""
    has_seed = any(word.partition("=")[0] == "--seed" for word in words)
    return shlex.join(["bayeszoo", *words, *([] if has_seed else ["--seed", str(fit.tree.attrs["seed"])])])


def python(fits: Sequence[Fit]) -> str:
    """Return the lines of Python that make the fits and this page; files are named without their folders."""
    lines, before = ["import bayeszoo as bz", "", "fits = []"], ""
    for fit in fits:
        fields = "".join(f"    {name}={value!r},\n" for name, value in fit.fields.items())
        code = f"M = bz.find({_name(type(fit.model))!r})\nmodel = M(\n{fields})\n{_data_line(fit)}"
        lines += [code] * (code != before)
        before, defaults = code, {**defaults_of(type(fit.model), fit.method), "tables": None}
        options = {name: value for name, value in fit.options.items() if value != defaults.get(name, value)}
        how = _keywords({"method": fit.method, "seed": int(fit.tree.attrs["seed"]), **options})
        lines.append(f"fits.append(bz.fit(model, data, {how}))")
    return "\n".join([*lines, 'bz.report(fits, "report.html")'])


def _name(model: type[Model]) -> str:
    """Return the name for `find` of a class; its file, if it is the user's, without the folder."""
    model_file = own_file(model)
    return model.name if model_file is None else f"{model_file.file}:{model_file.kind}"


def _data_line(fit: Fit) -> str:
    """Return the line that reads the data; arrays are written as dots."""
    source, reading = fit.data_source, fit.reading or {}
    if example := own_example(fit.model, source, fit.data_digest):
        return f"data = bz.example(M, {example.name!r})"
    options = _options_of_reading(fit)
    if "rows" in reading:
        return f"data = bz.accumulate(model, {source!r}, {_keywords({'rows': reading['rows'], **options})})"
    if "files" in reading:
        return f"data = bz.read_files(M, {', '.join(filter(None, [repr(source), _keywords(options)]))})"
    examples = {item.file.removesuffix(PACKED): item.name for item in fit.model.examples}
    if reading.get("from") == "example" and options and source in examples:
        return f"data = bz.example(M, {examples[source]!r}, {_keywords(options)})"
    place = repr(source) if reading.get("from") == "file" else "..."
    drawn = isinstance(fit.observed, Incomplete)
    taken = {name: value for name, value in options.items() if not (drawn and name == "missing")}
    words = ["M", place, *filter(None, [_keywords(taken)])]
    line = f"data = bz.{'read_incomplete' if drawn else 'read'}({', '.join(words)})"
    return f"{line}  # the arrays that were given, SHA-256 {fit.data_digest}" if "..." in words else line


def _options_of_reading(fit: Fit) -> Mapping[str, object]:
    example = own_example(fit.model, fit.data_source, fit.data_digest)
    return {} if example else (fit.reading or {}).get("options", {})


def _keywords(options: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in options.items())
