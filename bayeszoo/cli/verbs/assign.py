"""The command ``bayeszoo assign``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.answers.assign import assign
from bayeszoo.cli import saved, terminal
from bayeszoo.cli.options import Flag, Json, Output, TableOptions
from bayeszoo.data.table.table import listed
from bayeszoo.foundation import writing
from bayeszoo.report.tables import number
from bayeszoo.results import files

if TYPE_CHECKING:
    import pandas as pd


def assign_command(
    fit_file: Path,
    data: str | None = None,
    /,
    *,
    output: Output = None,
    overwrite: Flag = False,
    as_json: Json = False,
    table: TableOptions | None = None,
) -> None:
    """Say which component each row belongs to, from a saved fit.

    Parameters
    ----------
    fit_file
        A fit saved with -o.
    data
        Table of new rows with their outcome; without it the rows of the fit.
    output
        CSV file of all rows; text that a spreadsheet would run as a formula gets an apostrophe in front.
    overwrite
        Replace an existing file.
    as_json
        One JSON document on stdout, and nothing else.
    """
    saved.probe(output, None, overwrite)
    tree = files.load(fit_file)
    frame = assign(tree, saved.new_rows(tree, data, table))
    whole = saved.about(tree) | {str(name): value for name, value in frame.attrs.items()}
    if output is not None:
        writing.write_text(saved.as_csv(frame), output)
        terminal.note(f"wrote {output}")
    if as_json:
        rows = frame.reset_index().to_dict("records")
        terminal.print_json({**whole, "saved": None if output is None else str(output), "rows": rows})
    else:
        _show(frame, whole)


def _show(frame: pd.DataFrame, whole: dict[str, Any]) -> None:
    """Print the rows, and how many of them are expected to have a wrong label."""
    console = terminal.out()
    saved.show_rows(frame, saved.title(whole, terminal.kind_of(frame, whole["kind"])))
    impossible = whole.get("impossible", [])
    if "expected_errors" in whole:
        errors = number(whole["expected_errors"], 4)
        console.print(f"Expected number of rows with a wrong label: {errors} of {len(frame) - len(impossible)}.")
    if impossible:
        rows = listed(np.array(impossible) - 1)
        console.print(f"Withheld: {rows}, which no component can give at the parameters of the fit.")
    if whole["kind"] == "point estimate":
        console.print("The estimate is plugged in: how uncertain the parameters are is not in the probabilities.")
