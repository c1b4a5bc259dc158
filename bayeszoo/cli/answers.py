"""How the answer of a command is shown and written: the options that all verbs share, and what they do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from bayeszoo.cli import options as opt
from bayeszoo.cli import saved, terminal
from bayeszoo.data.table.table import escaped
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Document
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from bayeszoo.data.read import Data

type Show = Callable[[pd.DataFrame, dict[str, Any], int | None], None]
"""Prints a table, with facts about the answer as a whole, to N digits."""


@Parameter(name="*")
@dataclass(frozen=True)
class AnswerOptions:
    """How the answer is shown and written."""

    output: opt.RowsFile = None
    overwrite: opt.Overwrite = False
    as_json: opt.Json = False
    digits: opt.Digits = None

    def probe(self, plot: Path | None = None) -> None:
        """Refuse files that cannot be written, before anything is computed."""
        saved.probe(self.output, plot, self.overwrite)

    def load(self, fit_file: Path | xr.DataTree, plot: Path | None = None) -> xr.DataTree:
        """Refuse files that cannot be written, and load the fit."""
        self.probe(plot)
        return saved.load(fit_file)

    def require_append(self, append: bool, data: object) -> None:
        """Refuse to append an answer to a table unless both tables are named."""
        if append and (data is None or self.output is None):
            raise InputError("--append goes with DATA and -o", "option_needs_data")

    def deliver(
        self,
        show: Callable[[], None],
        document: Callable[[saved.Written], dict[str, Any]],
        rows: pd.DataFrame,
        **writers: saved.Writer,
    ) -> None:
        """Print an answer, or its document, and write its rows and its other files: see `saved.deliver`."""
        write = partial(saved.write, rows, self.output, self.overwrite)
        saved.deliver(show, document, self.as_json, saved=write, **writers)

    def answer(
        self,
        frame: pd.DataFrame,
        whole: Document,
        show: Show,
        in_full: pd.DataFrame | None = None,
        **writers: saved.Writer,
    ) -> None:
        """Print a table and its summary lines, and write the table, or the unabridged table ``in_full``."""
        whole = {**whole, **{str(name): value for name, value in frame.attrs.items()}}

        def document(written: saved.Written) -> Document:
            return {**whole, **written, "rows": saved.records(frame)}

        def print_all() -> None:
            show(frame, whole, self.digits)
            for remark in whole.get("remarks", ()):
                terminal.out().print(f"{remark[0].upper()}{remark[1:]}.")

        self.deliver(print_all, document, frame if in_full is None else in_full, **writers)

    def answer_rows(
        self,
        ask: Callable[[xr.DataTree, Data | None], pd.DataFrame],
        fit_file: Path | xr.DataTree,
        data: str | None,
        table: opt.TableOptions,
        show: Show,
    ) -> None:
        """Answer for the rows of a fit, or for new rows: load the fit, read the rows, ask, print and write."""
        tree = self.load(fit_file)
        self.answer(ask(tree, saved.new_rows(Fit(tree), data, table)), saved.about(tree), show)

    def drawn(self, draw: Callable[[], Figure], plot: Path | None) -> saved.Writer:
        """Return what draws a picture, where one was asked for."""
        return partial(saved.draw, draw, plot, self.overwrite)


@Parameter(name="*")
@dataclass(frozen=True)
class FitOptions(AnswerOptions):
    """How the fit is shown and saved."""

    output: Annotated[opt.Output, Parameter(help="Save the fit here (.nc).")] = None


@Parameter(name="*")
@dataclass(frozen=True)
class DrawsOptions(AnswerOptions):
    """How the answer is shown, and its draws are written."""

    output: Annotated[opt.Output, Parameter(help="Write all draws here (.parquet, else CSV).")] = None


ANSWER, FIT, DRAWS = AnswerOptions(), FitOptions(), DrawsOptions()
"""Options with their defaults."""


def about_data(data: Data) -> Document:
    """Return the head of a table: its source, digest and number of rows."""
    return {"source": data.source, "digest": data.digest, "rows": data.rows}


def about_answer(answer: Any, *names: str, **more: object) -> Document:
    """Return the head of an answer without a fit: attributes by name, further facts, and the head of its table."""
    return {**{name: getattr(answer, name) for name in names}, **more, "data": about_data(answer.data)}


def of_data(described: Document) -> str:
    """Write the head of a table in a line."""
    rows = described["rows"]
    return f"{rows} row{'s' * (rows != 1)} of {escaped(described['source'])} ({described['digest'][:8]})"
