"""Decisions between classes: ``bayeszoo classify``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.answers.classes.classify import WITHHELD, classify
from bayeszoo.answers.classes.scores import calibration, confusion
from bayeszoo.cli import options as opt
from bayeszoo.cli import saved, terminal
from bayeszoo.cli.groups import by_group
from bayeszoo.data.read import Data
from bayeszoo.data.table.table import listed
from bayeszoo.errors import InputError
from bayeszoo.plots.families.classes import plot_classes
from bayeszoo.report.classes import ABOUT_PLUGGED_IN, about_rows, calibration_rows, confusion_rows, score_rows

if TYPE_CHECKING:
    import pandas as pd

_NEGLIGIBLE = 1e-6
"""Errors of a quadrature below which they are not printed."""


@by_group
def classify_command(
    fit_file: opt.FitFile,
    data: opt.NewFile = None,
    /,
    *,
    loss: str | None = None,
    reject: float | None = None,
    leave_one_out: opt.Flag = False,
    plot: Path | None = None,
    output: opt.RowsFile = None,
    append: opt.Flag = False,
    overwrite: opt.Overwrite = False,
    as_json: opt.Json = False,
    digits: opt.Digits = None,
    table: opt.TableOptions = opt.TABLE,
) -> None:
    """Decide which class each row is of, from a saved fit of a classifier; where outcomes are known, score it.

    Parameters
    ----------
    data
        Table of new rows, with or without their outcome; without it the rows of the fit.
    loss
        What decisions cost, as JSON: a row for each true class, a number for each decision; 0 and 1 by default.
    reject
        What it costs not to decide; rows with a larger expected loss are rejected.
    leave_one_out
        Judge each row of the fit by what all others say of it; rows where the draws do not say so are withheld.
    plot
        Where outcomes are known, draw calibration and the ROC curve here (.png, .svg or .pdf).
    append
        Write to -o the table itself, with the decisions after its own columns.
    """
    if append and (data is None or output is None):
        raise InputError("--append goes with DATA and -o")
    if append and isinstance(data, Data):
        raise InputError("--append is of one fit", hint="leave it out: -o has the rows of all groups")
    saved.probe(output, plot, overwrite)
    tree = saved.load(fit_file)
    new = saved.new_rows(tree, data, table)
    frame = classify(tree, new, loss=_matrix(loss), reject=reject, leave_one_out=leave_one_out)
    in_full = saved.appended(frame, data, table, [new]) if append and data is not None and new is not None else frame
    whole = saved.about(tree)
    if "trials" in frame.attrs:
        whole |= {"confusion": confusion(frame).to_dict("index"), "calibration": saved.records(calibration(frame))}
    written = saved.draw(lambda: plot_classes(frame), plot, overwrite) | saved.write(in_full, output)
    saved.answer(frame, whole, as_json, _show, written, digits)


def _matrix(loss: str | None) -> Any:
    if loss is None:
        return None
    try:
        return json.loads(loss)
    except (ValueError, RecursionError):
        raise InputError(f"--loss {loss} is not JSON", hint='write "[[0,1],[5,0]]"') from None


def _show(frame: pd.DataFrame, whole: dict[str, Any], digits: int | None) -> None:
    """Print the decisions, those marked that Monte Carlo error leaves open, and what they were worth."""
    is_open = ~frame["settled"] & (frame["decision"] != WITHHELD)
    console, open_rows = terminal.out(), frame.index[is_open] - 1
    decided = frame["decision"] + np.where(is_open, " ?", "")
    zero = whole["classes"][0]
    first = [f"p[{zero}]", f"mcse[{zero}]"] * (len(whole["classes"]) == 2)  # of two, the second says it
    shown = frame.assign(decision=decided).drop(columns=["settled", *first])
    if whole["kind"] == "exact":
        shown = shown.drop(
            columns=[name for name in map(str, shown) if "mcse" in name and (shown[name] < _NEGLIGIBLE).all()]
        )
    words = ["decision", "observed"]
    saved.show_rows(shown, saved.title(whole), spare=("brier", "log_score", "p["), words=words, digits=digits)
    if len(open_rows):
        console.print(f"Not settled within the Monte Carlo error (?): {listed(open_rows.to_numpy())}.")
    if "trials" in whole:
        terminal.show_table(*confusion_rows(confusion(frame)), title="true classes by decision")
        terminal.show_table(*score_rows(whole, digits))
        columns, rows_of = calibration_rows(calibration(frame), digits)
        terminal.show_table(columns, rows_of, title="probabilities, and how often they came true")
    for line in about_rows(whole, len(frame)):
        console.print(line)
    if whole["kind"] == "point estimate":
        console.print(ABOUT_PLUGGED_IN)
