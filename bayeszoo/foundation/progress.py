"""Progress of long work, and the seconds that its phases took."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Reporter:
    """Takes progress; this one is silent, the command line's is not."""

    def say(self, line: str) -> None:
        """Take one line about what is going on."""

    def progress(self, what: str, done: int, total: int) -> None:
        """Take how much of a long piece of work is done."""

    def close(self) -> None:
        """Take away what shows how much is done."""


class ProgressLine(Reporter):
    """Writes progress to stderr: lines, and one that is written over, which terminals and notebooks show alike."""

    def __init__(self) -> None:
        self._shown, self._last = "", 0.0

    def say(self, line: str) -> None:
        """Write the line, in place of the one that is written over."""
        self._write(line, "\n")

    def progress(self, what: str, done: int, total: int) -> None:
        """Write over the line, at most ten times a second; what is done ends it."""
        if done >= total or time.monotonic() - self._last > 0.1:
            self._last = time.monotonic()
            self._write(f"{what}: {done} of {total}", "\n" if done >= total else "")

    def close(self) -> None:
        """Leave the line that is written over, as the last that was shown."""
        if self._shown:
            self._write(self._shown, "\n")

    def _write(self, line: str, end: str) -> None:
        sys.stderr.write(f"\r{line.ljust(len(self._shown))}{end}")
        sys.stderr.flush()
        self._shown = "" if end else line


class Clock:
    """Seconds by phase: ``build`` (declaring the model), ``compile`` and ``run``."""

    def __init__(self) -> None:
        self.seconds = {"build": 0.0, "compile": 0.0, "run": 0.0}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time spent in the block to ``name``."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] += time.perf_counter() - start
