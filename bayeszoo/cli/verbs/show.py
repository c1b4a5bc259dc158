"""The commands ``bayeszoo list`` and ``bayeszoo show``: what models there are, and what one of them is."""

from __future__ import annotations

from pathlib import Path

from bayeszoo.cli import terminal
from bayeszoo.cli.options import Flag, Json
from bayeszoo.foundation import writing
from bayeszoo.model import find as zoo
from bayeszoo.report.describe import in_brief, in_full


def list_command(*, as_json: Json = False) -> None:
    """List the models, what each can do, and its data."""
    rows = [in_brief(zoo.find(name)) for name in zoo.builtin_names()]
    plugins = {name: point.value for name, point in zoo.plugins().items()}
    if as_json:
        terminal.print_json({"models": rows, "plugins": plugins})
    else:
        terminal.show_models(rows, plugins)


def show_command(name: str, /, *, as_json: Json = False, plot: Path | None = None, overwrite: Flag = False) -> None:
    """Show a model: its notation, fields, inputs, data and graph.

    Parameters
    ----------
    name
        The model; see `bayeszoo list`.
    as_json
        One JSON document on stdout, and nothing else.
    plot
        Draw the model's graph here (.svg, .png or .pdf).
    overwrite
        Replace an existing file.
    """
    model = zoo.find(name)
    if plot is not None:
        writing.probe_figure(plot, overwrite)
    described = in_full(model)
    if as_json:
        terminal.print_json(described)
    else:
        terminal.show_model(described)
    if plot is not None:
        from bayeszoo.plots.graph import write_graph

        terminal.note(f"wrote {write_graph(model(), plot, overwrite)}")
