"""The command ``bayeszoo assign``."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from cyclopts import Parameter

from bayeszoo.answers.assign import assign
from bayeszoo.cli import terminal
from bayeszoo.cli.options import TableOptions
from bayeszoo.data.table.table import listed
from bayeszoo.errors import InputError
from bayeszoo.foundation import writing
from bayeszoo.report.tables import number
from bayeszoo.results import files
from bayeszoo.results.stored import Fit, dumps

if TYPE_CHECKING:
    import pandas as pd

MAX_ROWS = 400
"""Rows that are printed; --json and -o have all of them."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A text that begins so is run by spreadsheets."""


def assign_command(
    fit_file: Path,
    data: str | None = None,
    /,
    *,
    output: Annotated[Path | None, Parameter(name=("--output", "-o"))] = None,
    overwrite: Annotated[bool, Parameter(negative=())] = False,
    as_json: Annotated[bool, Parameter(name="--json", negative=())] = False,
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
        CSV file of all rows; a text in it that a spreadsheet would run begins with an apostrophe.
    overwrite
        Replace an existing file.
    as_json
        One JSON document on stdout, and nothing else.
    """
    if output is not None:
        writing.require_writable(output, overwrite)
    tree, table = files.load(fit_file), table or TableOptions()
    if data is None and table != TableOptions():
        raise InputError("the options of a table go with DATA")
    new = None if data is None else table.read(type(Fit(tree).model), data, new=True, like=Fit(tree).like)
    frame = assign(tree, new)
    whole: dict[str, Any] = {name: tree.attrs[name] for name in ("model", "method", "kind")}
    whole |= {str(name): value for name, value in frame.attrs.items()}
    if output is not None:
        writing.write_text(as_csv(frame), output)
        terminal.note(f"wrote {output}")
    if as_json:
        rows = frame.reset_index().to_dict("records")
        sys.stdout.write(dumps({**whole, "saved": None if output is None else str(output), "rows": rows}) + "\n")
    else:
        show(frame, whole)


def show(frame: pd.DataFrame, whole: dict[str, Any]) -> None:
    """Print the rows, and how many of them are expected to have a wrong label."""
    columns, console, kind = ["row", *map(str, frame.columns)], terminal.out(), terminal.kind_of(frame, whole["kind"])
    cells = [[str(row[0]), *row[1:]] for row in frame.head(MAX_ROWS).itertuples()]
    terminal.show(terminal.table(columns, cells, title=f"{whole['model']}, {whole['method']} ({kind})"))
    if len(frame) > MAX_ROWS:
        console.print(f"The first {MAX_ROWS} of {len(frame)} rows; all of them: --json or -o.")
    impossible = whole.get("impossible", [])
    if "expected_errors" in whole:
        errors = number(whole["expected_errors"], 4)
        console.print(f"Expected number of rows with a wrong label: {errors} of {len(frame) - len(impossible)}.")
    if impossible:
        rows = listed(np.array(impossible) - 1)
        console.print(f"Withheld: {rows}, which no component can give at the parameters of the fit.")
    if whole["kind"] == "point estimate":
        console.print("The estimate is plugged in: how uncertain the parameters are is not in the probabilities.")


def as_csv(frame: pd.DataFrame) -> str:
    """Write a table as CSV: numbers in full, nothing for NaN, and no text that a spreadsheet would run."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    whole = frame.reset_index()
    writer.writerow([_cell(str(name)) for name in whole.columns])
    writer.writerows([_cell(value) for value in row] for row in zip(*(whole[c].tolist() for c in whole), strict=True))
    return buffer.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA) else value
    return "" if value != value else value  # NaN is not itself
