"""Prediction of each row from the rows before it: ``bayeszoo prequential``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from bayeszoo.cli import options as opt
from bayeszoo.cli import saved, terminal
from bayeszoo.cli.answers import ANSWER, AnswerOptions, about_data, of_data
from bayeszoo.comparison.prequential import prequential
from bayeszoo.data.table.table import escaped
from bayeszoo.foundation.named import Document
from bayeszoo.model import find as zoo
from bayeszoo.plots.prequential import plot_prequential
from bayeszoo.report.text.numbers import number

if TYPE_CHECKING:
    import pandas as pd


def prequential_command(
    name: opt.ModelName,
    data: opt.DataFile = None,
    /,
    *,
    forget: float = 1.0,
    plot: Annotated[Path | None, Parameter(help="Draw losses and regret here (.png, .svg or .pdf).")] = None,
    shown: AnswerOptions = ANSWER,
    prior: opt.PriorOptions = opt.PRIOR,
    table: opt.TableOptions = opt.TABLE,
) -> None:
    """Predict each row from the rows before it, and add up the log losses: their sum is minus the log evidence.

    Parameters
    ----------
    forget
        Factor by which the weight of earlier rows shrinks with each row, above 0 and at most 1; 1 forgets nothing.
    """
    shown.probe(plot)
    model = zoo.find(name)
    rows = table.read(model, data)
    used = prior.model(model, rows)
    frame = prequential(used, rows, forget=forget)
    whole = {"model": str(used), "kind": "exact", "data": about_data(rows), "notes": list(rows.notes)}
    shown.answer(frame, whole, _show, plot=shown.drawn(lambda: plot_prequential(frame), plot))


def _show(frame: pd.DataFrame, whole: Document, digits: int | None) -> None:
    """Print the first rows, and the totals."""
    forgets = "" if whole["forget"] == 1 else f", forget {whole['forget']:g}"
    title = f"{escaped(whole['model'])}: log loss of each row given the rows before it, exact{forgets}"
    saved.show_rows(frame, f"{title}; {of_data(whole['data'])}", digits=digits)
    last = frame.iloc[-1]
    line = f"cumulative log loss {number(last['cumulative_log_loss'], digits or 8)} nats"
    if whole["forget"] == 1:
        of_counts = " of the counts; a fit gives that of the ordered data" if whole["log_coefficient"] else ""
        line += f", minus the log evidence{of_counts}"
    undefined = "not defined: the rows have no maximum-likelihood estimate"
    regret = undefined if last["regret"] != last["regret"] else f"{number(last['regret'], digits or 5)} nats"
    terminal.out().print(line)
    terminal.out().print(f"regret against the best parameter in hindsight {regret}")
