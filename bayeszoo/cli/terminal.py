"""How results, progress and the end of a command look: tables and JSON on stdout, progress and notes on stderr."""

from __future__ import annotations

import shlex
import shutil
import sys
import textwrap
import time
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePath
from threading import RLock, Timer
from typing import TYPE_CHECKING, Any

from rich import box, markup
from rich.cells import cell_len
from rich.console import Console, ConsoleDimensions
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from bayeszoo.data.table.table import escaped
from bayeszoo.errors import Untrustworthy
from bayeszoo.foundation.gate import Check
from bayeszoo.foundation.named import Document
from bayeszoo.foundation.process import signals
from bayeszoo.foundation.process.progress import Reporter, lasting
from bayeszoo.model.views import View
from bayeszoo.report.text.numbers import number, seconds
from bayeszoo.report.text.tables import (
    ABOUT_COMPARISON,
    comparison_tables,
    estimate_rows,
    figures,
    measured_gaps,
    none_shown,
)
from bayeszoo.results.caveats import failures_of, next_step
from bayeszoo.results.stored import Fit, dumps

if TYPE_CHECKING:
    import pandas as pd

_SPARE = ("ess_tail", "mcse_mean", "ess_bulk", "sd_ratio", "error_sd", "r_hat", "median")
_SPARE_MEASURED = ("mcse_mean", "median", "q025", "q975", "sd_ratio", "error_sd")
_SPARE_COMPARED = ("MCSE", "sd ratio", "error/MCSE", "error/sd")
"""Columns of the tables of estimates that a narrow terminal hides, in the order of hiding."""
PROFILED = {View.CLUSTERS, View.COMPONENTS, View.FUNCTION, View.STATES, View.TOPICS}
"""Views of models whose fits have a profile."""
MOST_LISTED = 40
"""Entries of a parameter that are printed one by one; of further entries the range is printed."""
_OUTCOMES = {"ok": "passed", "caution": "with a caveat", "failed": "failed"}
SEED_DRAWN = "seed {}, drawn at random: --seed gives the same answer"
PACE = 5.0  # seconds between two lines of progress, where there is no bar
WIDE = 160
"""Width of text that does not go to a terminal; tables are 80 columns wide, or as wide as COLUMNS says."""
_LONG, _SHORT = 24, 14
"""Longest text that is not wrapped, in the first column and in the others, in characters."""


WORDS: list[str] = []
"""The words of the command, without that of the program."""


def typed(*files: object) -> str:
    """Return the command as it was typed, with the names alone of files that have an absolute path.

    Bytes of a name that are not UTF-8 are written as escapes, as no file holds them as text.
    """
    words = WORDS
    for path in (str(file) for file in files if file is not None and PurePath(str(file)).is_absolute()):
        words = [word.removesuffix(path) + PurePath(path).name if word.endswith(path) else word for word in words]
    return shlex.join(words).encode("utf-8", "backslashreplace").decode("utf-8")


class _Results(Console):
    """A console that shows control characters of labels, and leaves a closed pipe to the command line.

    Rich would end with code 1. A line of text is one argument of `print`: an end of line within it is shown as well.
    """

    def print(self, *objects: Any, **how: Any) -> None:
        """Print lines of text, and tables, whose cells are escaped by `show_table`."""
        super().print(*(escaped(each) if isinstance(each, str) else each for each in objects), **how)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def out() -> Console:
    """Return the console for results."""
    return _Results(file=sys.stdout, width=None if sys.stdout.isatty() else WIDE, highlight=False, markup=False)


def show_lines(text: str) -> None:
    """Print lines of text."""
    show_each(text.split("\n"))


def show_each(lines: Iterable[str]) -> None:
    """Print lines, each with an end of line in it shown as a character."""
    console = out()
    for line in lines:
        console.print(line)


def note(line: str) -> None:
    """Print one line on stderr, with control characters made visible."""
    print(escaped(line), file=sys.stderr, flush=True)  # noqa: T201


def notes(lines: Iterable[str]) -> None:
    """Print notes for the user on stderr."""
    for line in lines:
        note(f"note: {line}")


class TerminalReporter(Reporter):
    """Progress on stderr: a bar on a terminal, elsewhere a line for each long phase and one every five seconds."""

    def __init__(self) -> None:
        self._bar: Progress | None = None
        self._last = time.monotonic()
        self._work: tuple[str, int | None] | None = None
        self._drawn: tuple[str, int | None] | None = None
        self._begun_at = 0  # how much was done when the work began
        self._paced_from = self._last, 0  # the time from which the rate is taken, and how much was done then
        self._soon, self._lock = Timer(0, self.close), RLock()

    def say(self, line: str) -> None:
        """Print the line, above the bar if there is one."""
        self.close()
        self._last = time.monotonic()
        note(line)

    def phase(self, activity: str) -> None:
        """Show the current phase after a delay, as most phases end before a line could be read."""
        with self._lock:
            self._begin(activity)
            self._soon = Timer(0.5 if sys.stderr.isatty() else 2, self._show, [activity])
            self._soon.daemon = True
            self._soon.start()

    def _begin(self, activity: str | None, done: int = 0, total: int | None = None) -> None:
        """Begin another piece of work; the previous one is over, and is no longer shown."""
        self._soon.cancel()
        self._work, self._begun_at = (activity, total) if activity else None, done
        self._paced_from = time.monotonic(), done

    def _show(self, activity: str) -> None:
        """Show the phase, unless it is over; this runs in the timer's thread."""
        with self._lock:
            if self._work != (activity, None):
                return
            if sys.stderr.isatty():
                self._draw(activity)
            else:
                note(activity)

    def progress(self, activity: str, done: int, total: int) -> None:
        """Move the bar."""
        with self._lock:
            if self._work != (activity, total):
                self._begin(activity, done, total)
            if done == self._begun_at + 1:  # the first climb, or the first table, may have compiled
                self._paced_from = time.monotonic(), done
            if sys.stderr.isatty():
                self._draw(f"{activity}: {done} of {total}", done, total)
            elif time.monotonic() - self._last > PACE:
                self._last = time.monotonic()
                note(f"{activity}: {done} of {total}{self._left(done, total)}")

    def _left(self, done: int, total: int) -> str:
        """Return the estimated time left at the present rate, without the time of compiling."""
        since, first = self._paced_from
        pace = (self._last - since) / max(1, done - first)
        return f", about {lasting(pace * (total - done))} left" if done > first else ""

    def _draw(self, activity: str, done: int = 0, total: int | None = None) -> None:
        """Draw the bar, which moves to and fro where no total is known."""
        if self._bar is None:
            self._bar = Progress(console=Console(file=sys.stderr), transient=True)
            self._bar.start()
        if self._drawn != self._work:
            for task in self._bar.task_ids:
                self._bar.remove_task(task)
            self._bar.add_task(markup.escape(escaped(activity)), total=total)
            self._drawn = self._work
        self._bar.update(self._bar.task_ids[0], description=markup.escape(escaped(activity)), completed=done)

    def close(self) -> None:
        """Take the bar away."""
        with self._lock:
            self._begin(None)
            if self._bar is not None:
                self._bar.stop()
                self._bar = self._drawn = None


def show_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    title: str | Sequence[str] | None = None,
    words: Collection[str] = (),
    spare: Iterable[str] = (),
    whole: str = "--json",
    digits: int | None = None,
) -> None:
    """Print a table that is no wider than the terminal; the first column and ``words`` are text, the others numbers.

    Cells are never read as markup. Columns of dashes alone are left out. Where there is no room, text is folded
    between words, numbers never are; then columns are hidden, first those of ``spare`` in its order, then those on the
    right. A line names the hidden columns, and ``whole``, the option that has them.
    """
    columns, words, spare = ([*map(escaped, names)] for names in (columns, words, spare))
    across = shutil.get_terminal_size().columns
    of_numbers = 5 if digits is None else digits
    cells = [[escaped(cell) if isinstance(cell, str) else number(cell, of_numbers) for cell in row] for row in rows]
    columns, cells = _known(columns, cells)
    is_text = [column == columns[0] or column in words for column in columns]
    texts = list(zip(columns, *cells, strict=True))
    least = [_least(texts[i], (_SHORT if i else _LONG) * is_text[i], across // 2) for i in range(len(columns))]
    kept = _kept(columns, least, is_text.index(False) + 1 if False in is_text else 1, spare, across)
    widths = _folded([max(map(cell_len, texts[i])) for i in kept], [least[i] for i in kept], across)
    is_narrow = _total(widths) + len(kept) > across
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=is_narrow)
    for i, width in zip(kept, widths, strict=True):
        head = Text("\n".join(textwrap.wrap(columns[i], width)))
        grid.add_column(head, width=width, justify="left" if is_text[i] else "right", overflow="fold")
    for row in cells:
        grid.add_row(*(Text(row[i]) for i in kept))
    console = out()
    if title is not None:
        console.print(*([title] if isinstance(title, str) else title), sep="\n")
    console.size = ConsoleDimensions(max(console.width, _total(widths) + len(kept)), console.height)
    console.print(grid)
    if left := ", ".join(dict.fromkeys(column for i, column in enumerate(columns) if i not in kept)):
        out().print(f"Columns hidden at width {across}: {left} (use {whole} or a wider terminal)")


def _known(columns: Sequence[str], cells: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """Leave out columns of dashes alone, unless all are."""
    known = [i for i in range(len(columns)) if i == 0 or any(row[i] != "-" for row in cells)]
    kept = known if len(known) > 1 else range(len(columns))
    return [columns[i] for i in kept], [[row[i] for i in kept] for row in cells]


def _total(widths: Iterable[int]) -> int:
    """Return the width of a table: two spaces between columns, and one at either end."""
    return sum(width + 2 for width in widths)


def _least(texts: Sequence[str], letters: int, longest: int) -> int:
    """Return the width that a column needs; the first of its texts is the head.

    Only text of more than ``letters`` is folded, and no word but one of more than ``longest`` is cut.
    """
    head, *cells = texts
    needed = max(map(cell_len, cells), default=0)
    if letters:
        words = max((cell_len(word) for cell in cells for word in cell.split()), default=0)
        needed = max(min(words, longest), min(needed, letters))
    return max(needed, *map(cell_len, head.split() or [head]), 1)


def _kept(columns: Sequence[str], least: Sequence[int], first: int, spare: Iterable[str], across: int) -> list[int]:
    """Return the places of the columns for which there is room; the ``first`` ones are always kept."""
    kept = list(range(len(columns)))
    for name in (*spare, *reversed(columns[first:])):
        if _total(least[i] for i in kept) <= across:
            break
        kept = [i for i in kept if columns[i] != name or i < first]
    return kept


def _folded(widths: list[int], least: Sequence[int], across: int) -> list[int]:
    """Make the widest columns narrower until all fit, none narrower than it needs."""
    widths = list(widths)
    while _total(widths) > across and (spacious := [i for i, width in enumerate(widths) if width > least[i]]):
        widths[max(spacious, key=widths.__getitem__)] -= 1
    return widths


def show_fit(fit: Fit, document: Document, digits: int | None = None) -> None:
    """Print a fit: its model and data, the estimates, the figures of the fit as a whole, the gate."""
    console = out()
    console.print(f"{fit.model}  {document['method']}: {document['sampler']}, {document['kind']}")
    source, digest = escaped(document["data"]["source"]), document["data"]["digest"][:8]
    console.print(f"data {source} ({digest}), seed {document['seed']}, {seconds(document['seconds'])}")
    _show_profiles(fit, document, digits)
    columns, rows = estimate_rows(fit, document, digits, MOST_LISTED)
    if any(cell not in (None, "-", "withheld") for row in rows for cell in row[1:2]):  # some rows have names alone
        show_table(columns, rows, spare=_SPARE_MEASURED if document["kind"] == "approximate" else _SPARE)
    else:
        console.print(none_shown(columns, rows, document["gate"]["checks"]))
    show_each([*figures(document, digits), judged(document, "checks of the gate")])
    if document["status"] == "caution":
        show_each(f"caution {line}" for line in document["warnings"][1:])


def _show_profiles(fit: Fit, document: Document, digits: int | None) -> None:
    """Print the function, or a profile of components, states and topics, before the estimates of parameters."""
    if not fit.model.views() & PROFILED:
        return
    from bayeszoo.report.families.profile import profiles  # other models do not need its imports

    for profile in profiles(fit, document, digits):
        show_profile(*profile)


def show_profile(title: str, columns: list[str], rows: list[list[Any]], words: Sequence[str]) -> None:
    """Print a table of `bayeszoo.report.families.profile`; one without columns is a line of text."""
    if columns:
        show_table(columns, rows, title, words, whole="-o or --json")
    else:
        out().print(escaped(title))


def judged(document: Document, noun: str = "checks") -> str:
    """Return a line with the status, and the number of checks with the worst verdict."""
    checks = document["gate"]["checks"]
    if not checks:
        return f"status {document['status']}: nothing was checked"
    verdicts = [check["verdict"] for check in checks.values()]
    worst = max(verdicts, key=list(_OUTCOMES).index)
    return f"status {document['status']}: {verdicts.count(worst)} of {len(checks)} {noun} {_OUTCOMES[worst]}"


def show_comparison(frame: pd.DataFrame, digits: int | None) -> None:
    """Print a comparison as three tables: estimates, evidence, and prediction and cost."""
    for title, columns, cells, words in comparison_tables(frame, digits):
        show_table(columns, cells, title, words, _SPARE_COMPARED)
    show_each([*measured_gaps(frame), *ABOUT_COMPARISON])


def show_scorecard(checks: Iterable[Check], title: str) -> None:
    """Print the contract's checks with their figures."""
    rows = [("ok" if c.passed else "FAILED", c.name, c.figure(3), c.limit) for c in checks]
    show_table(["", "check", "figure", "must be"], rows, title, words=["check"])


@dataclass
class Kept:
    """The JSON document and the table of a group, which are printed and written with those of the other groups."""

    document: Any = None
    frame: pd.DataFrame | None = None


_keeping: list[Kept] = []


@contextmanager
def keeping() -> Iterator[Kept]:
    """Keep the JSON document and the table that the block would print and write."""
    _keeping.append(Kept())
    try:
        yield _keeping[-1]
    finally:
        _keeping.pop()


def keep(frame: pd.DataFrame) -> bool:
    """Keep a table inside a block of `keeping`; return whether it was kept."""
    for kept in _keeping:
        kept.frame = frame
    return bool(_keeping)


def print_json(value: object) -> None:
    """Print one JSON document."""
    if _keeping:
        _keeping[-1].document = value
        return
    sys.stdout.write(dumps(value) + "\n")


def verdict(fits: Sequence[Fit], measured: Container[str] = ()) -> int:
    """Print why numbers are withheld, and what to try next, and return the exit code; `fit` has printed the caveats.

    Some numbers of methods that are ``measured`` against another fit are shown although the gate failed.
    """
    for fit in fits:
        whose = f"{fit.tree.attrs.get('group', fit.method)}: " if len(fits) > 1 else ""
        lines = failures_of(fit) if not fit.is_shown else []
        if fit.method in measured:
            lines[:1] = ["the gate did not pass; means and sds are shown with their measured gaps"] * bool(lines)
        for line in lines:
            note(f"warning: {whose}{line}")
        if step := next_step(fit):
            note(f"next: {whose}{step}")
    if any(fit.status == "interrupted" for fit in fits):
        return signals.exit_code()
    return 0 if all(fit.is_shown for fit in fits) else Untrustworthy.exit_code
