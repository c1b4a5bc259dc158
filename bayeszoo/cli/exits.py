"""How a command ends: what it prints last, and its exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bayeszoo.cli import terminal
from bayeszoo.errors import Untrustworthy
from bayeszoo.foundation import signals
from bayeszoo.results.stored import dumps

if TYPE_CHECKING:
    import xarray as xr


def print_json(value: Any) -> None:
    """Print one JSON document."""
    sys.stdout.write(dumps(value) + "\n")


def verdict(trees: Sequence[xr.DataTree], warnings: Sequence[str]) -> int:
    """Print what a reader must know, and return the exit code."""
    for warning in warnings:
        terminal.note(f"warning: {warning}")
    states = {tree.attrs["status"] for tree in trees}
    if "interrupted" in states:
        return signals.exit_code()
    return 0 if states <= {"ok"} else Untrustworthy.exit_code
