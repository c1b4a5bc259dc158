"""The models, their descriptions and simulated data: ``bayeszoo list``, ``show``, ``find`` and ``simulate``."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from cyclopts import Parameter

from bayeszoo.cli import options as opt
from bayeszoo.cli import saved, terminal
from bayeszoo.data.inputs.base import Arrays, Inputs
from bayeszoo.data.read import example
from bayeszoo.data.table.table import escaped
from bayeszoo.errors import InputError
from bayeszoo.fit import methods_for
from bayeszoo.foundation.named import Document
from bayeszoo.foundation.streams import stream
from bayeszoo.model import find as zoo
from bayeszoo.model.base import Model, fields_of
from bayeszoo.model.capabilities import capabilities, simulates
from bayeszoo.model.fields import hyperparameters, text
from bayeszoo.model.other_names import Suggestion
from bayeszoo.model.suggest import suggest
from bayeszoo.plots.graph import as_mermaid, as_text, declared, write_graph
from bayeszoo.report.provenance import notation
from bayeszoo.results.stored import dumps
from bayeszoo.tools.references.code import code as script_of

if TYPE_CHECKING:
    import pandas as pd
    import pymc as pm


def _show_models(rows: Iterable[Mapping[str, Any]], plugins: Mapping[str, str]) -> None:
    """Print the purpose of each model; `show` has its methods and data."""
    cells = [[row["name"], row["about"].partition(": ")[2].rstrip(".") or row["about"]] for row in rows]
    terminal.show_table(["name", "for"], cells, words=["for"])
    for name, value in plugins.items():
        terminal.out().print(f"{escaped(name)}  plug-in, not loaded until named ({escaped(value)})")


def _show_model(described: Document, graph: Iterable[str]) -> None:
    """Print the description of a model, and its graph as lines of text."""
    console = terminal.out()
    terminal.show_lines(f"{described['notation']}\n\ntable: {described['inputs']}")
    terminal.show_table(["field", "is", "default"], [list(f.values()) for f in described["fields"]], words=["is"])
    for title in ("capabilities", "methods"):
        console.print(f"{title}: {', '.join(described[title])}")
    for name, about in described["examples"].items():
        console.print(f"data {name}: {about}")
    if lines := [f"    {escaped(line)}" for line in graph]:
        console.print("", "graph: parents after the arrow; --plot FILE draws it", *lines, sep="\n")


def list_command(*, as_json: opt.Json = False) -> None:
    """List the models and their purposes; `show MODEL` has methods and data of a model, --json of all models."""
    rows = [in_brief(zoo.find(name)) for name in zoo.builtin_names()]
    plugins = {name: point.value for name, point in zoo.plugins().items()}
    if as_json:
        terminal.print_json({"models": rows, "plugins": plugins})
    else:
        _show_models(rows, plugins)


def show_command(
    name: opt.ModelName,
    /,
    *,
    as_json: opt.Json = False,
    plot: Annotated[Path | None, Parameter(help="Draw the model's graph here (.svg, .png or .pdf).")] = None,
    overwrite: opt.Overwrite = False,
    code: Annotated[bool, Parameter(negative=(), help="Print the model on its first data as a PyMC script.")] = False,
) -> None:
    """Show a model: its notation, fields, inputs, data and graph."""
    model = zoo.find(name)
    if code:
        sys.stdout.write(script_of(model.weak(rows := example(model)), rows))
        return
    saved.probe(None, plot, overwrite)
    described = in_full(model)
    saved.deliver(
        lambda: _show_model(described, _graph(model, as_text, [])),
        lambda written: described | written,
        as_json,
        plot=lambda: None if plot is None else saved.wrote(write_graph(model(), plot, overwrite)),
    )


def find_command(*words: str, as_json: opt.Json = False) -> None:
    """Find the model or command for a task, or the library that has it where bayeszoo does not.

    Parameters
    ----------
    words
        The name of a model, a method or a task, such as k-means, t-test or survival.
    """
    answers = suggest(" ".join(words))
    if as_json:
        terminal.print_json([each._asdict() for each in answers])
    elif answers:
        terminal.show_lines("\n".join(map(_answer, answers)))
    else:
        terminal.show_lines("no model or command goes by this name: see `bayeszoo list`, or write your own model")


def _answer(answer: Suggestion) -> str:
    """Return a line with the model or command and its purpose, and a line with the reason."""
    about = f" ({in_brief(zoo.find(answer.take))['about'].rstrip('.')})" if answer.take in zoo.names() else ""
    named = answer.name if answer.name == answer.take else f"{answer.name}: {answer.answer}"
    return f"{named}{about}" + (f"\n    {answer.why}" if answer.why else "")


def in_brief(model: type[Model]) -> Document:
    """Return a model's name, first line, capabilities, methods and data sets."""
    return {
        "name": model.name,
        "about": notation(model).partition("\n")[0],
        "capabilities": list(capabilities(model)),
        "methods": methods_for(model),
        "data": [item.name for item in model.examples],
    }


def in_full(model: type[Model]) -> Document:
    """Return the description in brief, with notation, fields, inputs, data, and the graph in Mermaid."""
    rows, known = [], hyperparameters(model)
    for field in fields(cast(Any, model)):
        about = known.get(field.name)
        along = f"; along {', '.join(about.axes)}" if about and about.axes else ""
        label = about.label + along if about else ""
        rows.append({"field": field.name, "is": label, "default": text(field.default)})
    return {
        **in_brief(model),
        "notation": notation(model),
        "fields": rows,
        "inputs": model.inputs.describe(),
        "examples": {item.name: f"{item.about} ({item.source})" for item in model.examples},
        "graph": _graph(model, as_mermaid, ""),
    }


def _graph[Graph](model: type[Model], drawn: Callable[[pm.Model], Graph], nothing: Graph) -> Graph:
    """Return the graph of a model, or ``nothing`` where there is no PyMC model."""
    with suppress(InputError):
        return drawn(declared(model())) if simulates(model) or model.examples else nothing
    return nothing


def simulate_command(
    name: opt.ModelName,
    /,
    *,
    size: Annotated[int, Parameter(help="Rows.")] = 100,
    seed: opt.DrawnSeed = None,
    sets: opt.FieldOptions = opt.FIELDS,
    output: Annotated[opt.Output, Parameter(help="Table to write (.parquet, else CSV); stdout without it.")] = None,
    overwrite: opt.Overwrite = False,
) -> None:
    """Simulate parameters from the prior, and a table of data given them."""
    saved.probe(output, None, overwrite)
    model = zoo.find(name)
    prior = model(**sets.fields(model))
    if size < 1:
        raise InputError(f"size must be >= 1, got {size}", "out_of_range")
    seed = secrets.randbelow(2**31 - 1) if seed is None else seed
    params, data = prior.simulate(stream(seed, model.name, fields_of(prior), "simulate"), size)
    rows = table_of(model.inputs, data)
    terminal.note(f"seed {seed}; drawn from the prior: {dumps(params)}")
    if output is None:
        sys.stdout.write(saved.as_csv(rows))
    else:
        saved.write(rows, output, overwrite)


def table_of(inputs: Inputs, arrays: Arrays) -> pd.DataFrame:
    """Return data as a table from which `read` makes the same data."""
    import pandas as pd

    return pd.DataFrame(dict(inputs.table(arrays)))
