"""A page with sliders for the prior and the rows: ``bayeszoo explore``."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from bayeszoo.cli import options as opt
from bayeszoo.cli import terminal
from bayeszoo.model import find as zoo
from bayeszoo.report.explore.page import explore
from bayeszoo.report.safe import probe


def explore_command(
    name: opt.ModelName,
    data: opt.DataFile = None,
    /,
    *,
    output: Annotated[Path, Parameter(name=("--output", "-o"))] = Path("explore.html"),
    overwrite: opt.Overwrite = False,
    prior: opt.PriorOptions = opt.PRIOR,
    table: opt.TableOptions = opt.TABLE,
) -> None:
    """Write a page on which sliders move the prior and rows are added one by one: for models of few parameters.

    Parameters
    ----------
    output
        The page (.html): one file, which needs no network and no server.
    """
    model = zoo.find(name)
    probe(output, overwrite)
    rows = table.read(model, data)
    with closing(terminal.TerminalReporter()) as reporter:
        path = explore(prior.model(model, rows), rows, output, overwrite=overwrite, reporter=reporter)
    terminal.note(f"wrote {path}")
