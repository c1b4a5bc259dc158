"""The user of the command line: caveats are printed, and a model's file that is new is asked about."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bayeszoo.cli import terminal
from bayeszoo.errors import Caution
from bayeszoo.model.find import User


class AtTerminal(User):
    """The user of the command line, who can be asked where stdin and stderr are a terminal."""

    def ask(self, question: str) -> str:
        """Return the answer to a question; empty where there is no terminal."""
        if not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
            return ""
        sys.stderr.write(terminal.escaped(question))
        sys.stderr.flush()
        return sys.stdin.readline().strip()

    def note(self, line: str) -> None:
        """Print a line on stderr."""
        terminal.note(line)


@contextmanager
def cautions() -> Iterator[list[str]]:
    """Print the caveats of fits as notes, and collect them."""
    caveats: list[str] = []
    show = warnings.showwarning

    def noted(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if not issubclass(category, Caution):
            return show(message, category, *where, **more)
        caveats.append(str(message))
        terminal.note(f"caution: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", Caution)
        warnings.showwarning = noted
        yield caveats
