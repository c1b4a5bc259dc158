"""Progress of long work, and the seconds that its phases took."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Reporter:
    """Takes progress; this one is silent, the command line's is not."""

    def say(self, line: str) -> None:
        """Take one line about what is going on."""

    def progress(self, what: str, done: int, total: int) -> None:
        """Take how much of a long piece of work is done."""


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
