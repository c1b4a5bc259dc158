"""What commands share: new rows of a saved fit, and tables and pictures that are printed and written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayeszoo.cli import terminal
from bayeszoo.cli.options import TABLE, TableOptions
from bayeszoo.foundation import writing
from bayeszoo.results.caveats import failures_of
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from bayeszoo.data.read import Data

MAX_ROWS = 400
"""Rows that are printed; --json and -o have all of them."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A text that begins so is run by spreadsheets."""


def probe(output: Path | None, plot: Path | None, overwrite: bool) -> None:
    """Check that table and picture can be written, before any work is done."""
    if output is not None:
        writing.require_writable(output, overwrite)
    if plot is not None:
        writing.probe_figure(plot, overwrite)


def new_rows(tree: xr.DataTree, data: str | None, table: TableOptions) -> Data | None:
    """Read further rows for a fit; None where no table is named, and then the rows of the fit are meant."""
    fit = Fit(tree)
    return None if data is None and table == TABLE else table.read(type(fit.model), data, new=True, like=fit.like)


def about(tree: xr.DataTree, *more: str) -> dict[str, Any]:
    """Return what is said of a fit beside every answer: what it is, and its caveats."""
    with_caution = Fit(tree).status == "caution"
    caveats = {"status": "caution", "caveats": failures_of(tree)[1:]} if with_caution else {}
    return {name: tree.attrs[name] for name in ("model", "method", "kind", *more)} | caveats


def write(frame: pd.DataFrame, output: Path | None) -> dict[str, str | None]:
    """Write the table, where that was asked for, and return where it is."""
    if output is not None:
        writing.write_text(as_csv(frame), output)
        terminal.note(f"wrote {output}")
    return {"saved": None if output is None else str(output)}


def draw(make: Callable[[], Figure], plot: Path | None, overwrite: bool = False) -> dict[str, str | None]:
    """Make and write the picture, where that was asked for, and return where it is."""
    if plot is not None:
        terminal.note(f"wrote {writing.write_figure(make(), plot, overwrite)}")
    return {"plot": None if plot is None else str(plot)}


def answer(
    frame: pd.DataFrame,
    whole: dict[str, Any],
    as_json: bool,
    show: Callable[[pd.DataFrame, dict[str, Any]], None],
    written: dict[str, Any] | None = None,
) -> None:
    """Print what a fit was asked, with what is known of the answer as a whole: one JSON document, or by ``show``."""
    whole = {**whole, **{str(name): value for name, value in frame.attrs.items()}}
    if as_json:
        terminal.print_json({**whole, **(written or {}), "rows": records(frame)})
    else:
        show(frame, whole)


def records(frame: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return the rows of a table, with what indexes them, as plain values."""
    return frame.reset_index().to_dict("records")


def title(whole: dict[str, Any], kind: str | None = None) -> str:
    """Return the title of a table: model, method, and what the numbers are."""
    return f"{whole['model']}, {whole['method']} ({kind or whole['kind']}{', with caution' * ('caveats' in whole)})"


def show_rows(frame: pd.DataFrame, title: str, noun: str = "rows") -> None:
    """Print the first rows of a table, and how many more there are."""
    cells = [[str(row[0]), *row[1:]] for row in frame.head(MAX_ROWS).itertuples()]
    terminal.show(terminal.text_table([str(frame.index.name), *map(str, frame.columns)], cells, title=title))
    note_more(len(frame), noun)


def note_more(count: int, noun: str = "rows") -> None:
    """Say where the rows are that were not printed."""
    if count > MAX_ROWS:
        terminal.out().print(f"The first {MAX_ROWS} of {count} {noun}; all of them: --json or -o.")


def as_csv(frame: pd.DataFrame) -> str:
    """Write a table as CSV: numbers in full, nothing for NaN, and no text that a spreadsheet would run."""
    whole = frame.reset_index()
    return str(whole.rename(columns=_plain).map(_plain).to_csv(index=False, lineterminator="\n"))


def _plain(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
