"""How results, progress and the end of a command look: tables and JSON on stdout, progress and notes on stderr."""

from __future__ import annotations

import shlex
import sys
import time
import warnings
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console, ConsoleDimensions
from rich.measure import Measurement
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from bayeszoo.data.table.table import escaped
from bayeszoo.errors import Caution, Untrustworthy
from bayeszoo.foundation import signals
from bayeszoo.foundation.gate import Check
from bayeszoo.foundation.progress import Reporter
from bayeszoo.report.tables import (
    ABOUT_COMPARISON,
    comparison_tables,
    estimate_rows,
    figures,
    measured_gaps,
    number,
    seconds,
)
from bayeszoo.results.caveats import failures_of, next_step
from bayeszoo.results.stored import Fit, dumps

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

_OUTCOMES = {"ok": "passed", "caution": "with a caveat", "failed": "failed"}
WIDE = 160
"""Columns of a table that does not go to a terminal."""


def typed(*files: object) -> str:
    """Return the command as it was typed, but of files with an absolute path the names alone."""
    words = sys.argv[1:]
    for path in (str(file) for file in files if file is not None and PurePath(str(file)).is_absolute()):
        words = [word.removesuffix(path) + PurePath(path).name if word.endswith(path) else word for word in words]
    return shlex.join(words)


class _Results(Console):
    """A console that leaves a closed pipe to the command line: rich would end with code 1."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def out() -> Console:
    """Return the console for results."""
    return _Results(file=sys.stdout, width=None if sys.stdout.isatty() else WIDE, highlight=False, markup=False)


def note(line: str) -> None:
    """Print one line on stderr, with control characters made visible."""
    print(escaped(line), file=sys.stderr, flush=True)  # noqa: T201


class TerminalReporter(Reporter):
    """Shows a progress bar on a terminal, and plain lines at most every five seconds elsewhere."""

    def __init__(self) -> None:
        self._bar: Progress | None = None
        self._last = time.monotonic()

    def say(self, line: str) -> None:
        """Print the line, above the bar if there is one."""
        self.close()
        self._last = time.monotonic()
        note(line)

    def progress(self, what: str, done: int, total: int) -> None:
        """Move the bar."""
        if sys.stderr.isatty():
            self._draw(what, done, total)
        elif time.monotonic() - self._last > 5:
            self._last = time.monotonic()
            note(f"{what}: {done} of {total}")

    def _draw(self, what: str, done: int, total: int) -> None:
        if self._bar is None:
            self._bar = Progress(console=Console(file=sys.stderr), transient=True)
            self._bar.start()
            self._bar.add_task(what, total=total)
        self._bar.update(self._bar.task_ids[0], completed=done, total=total)

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def text_table(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None, words: Iterable[str] = ()
) -> Table:
    """Make a table whose cells are never read as markup; the first column and ``words`` are text, the others numbers.

    Text is folded where the terminal is too narrow, numbers never are.
    """
    grid = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    wordy = {columns[0], *words}
    for column in columns:
        left = column in wordy
        grid.add_column(
            Text(column), justify="left" if left else "right", overflow="fold", no_wrap=not left, min_width=len(column)
        )
    for row in rows:
        grid.add_row(*(Text(escaped(cell) if isinstance(cell, str) else number(cell)) for cell in row))
    return grid


def show(grid: Table) -> None:
    """Print a table, beyond the edge of a terminal that is too narrow for its numbers."""
    console = out()
    unbounded = console.options.update(max_width=10_000)
    needed = Measurement.get(console, unbounded, grid).minimum
    console.size = ConsoleDimensions(max(console.width, needed), console.height)
    console.print(grid)


def show_models(rows: Iterable[Mapping[str, Any]], plugins: Mapping[str, str]) -> None:
    """Print the table of models; the capabilities that a model lacks are not listed."""
    columns = ["name", "about", "capabilities", "methods", "data"]
    cells = [[", ".join(row[c]) if isinstance(row[c], list) else row[c] for c in columns] for row in rows]
    show(text_table(columns, cells, words=columns))
    for name, value in plugins.items():
        out().print(f"{escaped(name)}  plug-in, not loaded until named ({escaped(value)})")


def show_model(described: Mapping[str, Any]) -> None:
    """Print everything about one model."""
    console = out()
    console.print(f"{described['notation']}\n\ntable: {described['inputs']}")
    show(text_table(["field", "is", "default"], [list(f.values()) for f in described["fields"]], words=["is"]))
    for title in ("capabilities", "methods"):
        console.print(f"{title}: {', '.join(described[title])}")
    for name, about in described["examples"].items():
        console.print(f"data {name}: {about}")
    console.print(f"\n{described['graph']}")


def kind_of(frame: pd.DataFrame, kind: str) -> str:
    """Say what the numbers are: those of an exact fit that have Monte Carlo errors are averages over its draws."""
    errors = [column for column in frame if str(column).startswith("mcse")]
    return "draws of the exact posterior" if kind == "exact" and frame[errors].notna().any(axis=None) else kind


def show_fit(tree: xr.DataTree, document: Mapping[str, Any]) -> None:
    """Print a fit: where it comes from, the estimates, the figures of the fit as a whole, the gate."""
    console = out()
    console.print(f"{Fit(tree).model}  {document['method']}: {document['sampler']}, {document['kind']}")
    source, digest = escaped(document["data"]["source"]), document["data"]["digest"][:8]
    console.print(f"data {source} ({digest}), seed {document['seed']}, {seconds(document['seconds'])}")
    show(text_table(*estimate_rows(tree, document)))
    for line in figures(document):
        console.print(line)
    console.print(judged(document, "checks of the gate"))
    for line in document["warnings"][1:] if document["status"] == "caution" else ():
        console.print(f"caution {escaped(line)}")


def judged(document: Mapping[str, Any], noun: str = "checks") -> str:
    """Say in a line what the status is, and how many checks there are of the worst verdict."""
    checks = document["gate"]["checks"]
    count = {verdict: sum(check["verdict"] == verdict for check in checks.values()) for verdict in _OUTCOMES}
    said = [f"{count[verdict]} of {len(checks)} {noun} {words}" for verdict, words in _OUTCOMES.items()]
    worst = max((i for i, number in enumerate(count.values()) if number), default=-1)
    return f"status {document['status']}: {said[worst]}"


def show_comparison(frame: pd.DataFrame) -> None:
    """Print a comparison as three tables: estimates, evidence, and prediction and cost."""
    for title, columns, cells, words in comparison_tables(frame):
        show(text_table(columns, cells, title=title, words=words))
    for line in (*measured_gaps(frame), *ABOUT_COMPARISON):
        out().print(line)


def show_scorecard(checks: Iterable[Check], title: str) -> None:
    """Print the contract's checks with their figures."""
    rows = [
        ("ok" if c.passed else "FAILED", c.name, "not checked" if c.value is None else f"{c.value:.3g}", c.limit)
        for c in checks
    ]
    show(text_table(["", "check", "figure", "must be"], rows, title=title, words=["check"]))


def print_json(value: Any) -> None:
    """Print one JSON document."""
    sys.stdout.write(dumps(value) + "\n")


def verdict(trees: Sequence[xr.DataTree], measured: Container[str] = ()) -> int:
    """Print why numbers are withheld, and what to try next, and return the exit code; of caveats `fit` has warned.

    Of methods that are ``measured`` against another fit some numbers are shown all the same.
    """
    for tree in trees:
        whose = f"{tree.attrs['method']}: " if len(trees) > 1 else ""
        lines = failures_of(tree) if not Fit(tree).is_shown else []
        if tree.attrs["method"] in measured:
            lines[:1] = ["the gate did not pass, and means and sds are shown for what they miss"] * bool(lines)
        for line in lines:
            note(f"warning: {whose}{line}")
        if step := next_step(tree):
            note(f"next: {whose}{step}")
    if any(Fit(tree).status == "interrupted" for tree in trees):
        return signals.exit_code()
    return 0 if all(Fit(tree).is_shown for tree in trees) else Untrustworthy.exit_code


@contextmanager
def cautions() -> Iterator[list[str]]:
    """Print the caveats of fits as notes, and collect them."""
    said: list[str] = []
    show = warnings.showwarning

    def noted(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if not issubclass(category, Caution):
            return show(message, category, *where, **more)
        said.append(str(message))
        note(f"caution: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", Caution)
        warnings.showwarning = noted
        yield said
