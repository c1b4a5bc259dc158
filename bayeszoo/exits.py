"""How a command ends: what it prints last, and its exit code."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bayeszoo import terminal
from bayeszoo.errors import Untrustworthy
from bayeszoo.tree import dumps

if TYPE_CHECKING:
    import xarray as xr

received: list[int] = []
"""The signals that this process was sent."""


def print_json(value: Any) -> None:
    """Print one JSON document."""
    sys.stdout.write(dumps(value) + "\n")


def verdict(trees: Sequence[xr.DataTree], warnings: Sequence[str]) -> int:
    """Print what a reader must know, and return the exit code."""
    for warning in warnings:
        terminal.note(f"warning: {warning}")
    states = {tree.attrs["status"] for tree in trees}
    if "interrupted" in states:
        return signal_code()
    return 0 if states <= {"ok"} else Untrustworthy.exit_code


def signal_code() -> int:
    """Return the exit code of an interrupted run."""
    return 128 + (received[-1] if received else signal.SIGINT)
