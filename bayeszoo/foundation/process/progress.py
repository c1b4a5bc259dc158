"""Progress of long work, the seconds of its phases, and estimates of duration."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bayeszoo.foundation.process.printable import escaped


class Reporter:
    """Receives progress; silent by default. The command line's reporter prints it."""

    def say(self, line: str) -> None:
        """Receive a line about the progress."""

    def phase(self, activity: str) -> None:
        """Receive the name of the current activity, without a measure of progress."""

    def progress(self, activity: str, done: int, total: int) -> None:
        """Receive how much of an activity is done."""

    def close(self) -> None:
        """Remove the display of progress."""


class ProgressLine(Reporter):
    """Writes progress to stderr: lines, and a status line that is overwritten, for terminals and notebooks."""

    def __init__(self) -> None:
        self._shown, self._last = "", 0.0

    def say(self, line: str) -> None:
        """Write the line in place of the status line."""
        self._write(line, "\n")

    def phase(self, activity: str) -> None:
        """Overwrite the status line."""
        self._write(activity, "")

    def progress(self, activity: str, done: int, total: int) -> None:
        """Overwrite the status line, at most ten times a second; a finished activity ends it."""
        if done >= total or time.monotonic() - self._last > 0.1:
            self._last = time.monotonic()
            self._write(f"{activity}: {done} of {total}", "\n" if done >= total else "")

    def close(self) -> None:
        """Erase the status line."""
        if self._shown:
            self._write("", "\r")

    def _write(self, line: str, end: str) -> None:
        line = escaped(line)
        sys.stderr.write(f"\r{line.ljust(len(self._shown))}{end}")
        sys.stderr.flush()
        self._shown = "" if end else line


PHASES = {
    "build": "declaring the model",
    "compile": "compiling",
    "run": "fitting",
    "measure": "measuring the approximation",
}
"""Descriptions of the phases of a `Clock`."""


class Clock:
    """Seconds spent in each of `PHASES`; the reporter is notified when a phase begins."""

    def __init__(self, reporter: Reporter) -> None:
        self.seconds = dict.fromkeys(PHASES, 0.0)
        self._reporter, self._open = reporter, list[str]()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time spent in the block to ``name``."""
        self._open.append(name)
        self._reporter.phase(PHASES[name])
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] += time.perf_counter() - start
            self._open.pop()
            if self._open:  # the enclosing phase goes on
                self._reporter.phase(PHASES[self._open[-1]])


def lasting(seconds: float) -> str:
    """Write an estimated duration with two digits: ``40 s``, ``2.5 h``."""
    unit, size = next(((u, s) for u, s in _UNITS.items() if seconds >= 2 * s), ("s", 1))
    return f"{float(f'{seconds / size:.2g}'):g} {unit}"


_UNITS = {"days": 86400, "h": 3600, "min": 60}
