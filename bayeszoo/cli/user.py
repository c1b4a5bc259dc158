"""The user of the command line, who is told which file a fit runs, and asked for one that was not named before."""

from __future__ import annotations

import sys

from bayeszoo.cli import terminal
from bayeszoo.model.find import User


class AtTerminal(User):
    """The user of the command line, who can be asked where both ends are a terminal."""

    def ask(self, question: str) -> str:
        """Return the answer, or nothing where nobody is there."""
        if not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
            return ""
        sys.stderr.write(terminal.escaped(question))
        sys.stderr.flush()
        return sys.stdin.readline().strip()

    def note(self, line: str) -> None:
        """Print a line on stderr."""
        terminal.note(line)
