"""Ctrl-C and SIGTERM: both become KeyboardInterrupt, and none is lost where Python has to ignore an exception."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from types import FrameType, TracebackType
from typing import Any

received: list[int] = []
"""The signals that this process was sent."""

AGAIN = 0.02
"""Seconds until an ignored interrupt is sent again: by then the callback that could not raise it has returned."""


def listen() -> None:
    """Take over SIGINT and SIGTERM, for a process that is a command."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _on_signal)
    sys.unraisablehook = partial(_on_ignored, sys.unraisablehook)
    sys.excepthook = partial(_on_printed, sys.excepthook)


def exit_code() -> int:
    """Return the exit code of an interrupted run."""
    return 128 + (received[-1] if received else signal.SIGINT)


def _on_signal(number: int, _: FrameType | None) -> None:
    received.append(number)
    raise KeyboardInterrupt


def _on_ignored(otherwise: Callable[[Any], Any], ignored: Any) -> None:
    """Python ignores what a finalizer or a callback of a weak reference raises; each import has such a callback."""
    if received and isinstance(ignored.exc_value, KeyboardInterrupt):
        main = threading.main_thread().ident
        timer = threading.Timer(AGAIN, signal.pthread_kill, (main, received[-1]))
        timer.daemon = True
        timer.start()
    else:
        otherwise(ignored)


def _on_printed(
    otherwise: Callable[..., Any], kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Compiled modules print what stopped their import, NumPy's among them, and raise another error in its place."""
    if not (received and issubclass(kind, KeyboardInterrupt)):
        otherwise(kind, error, trace)
