"""Ctrl-C and SIGTERM: both become KeyboardInterrupt, and one that nobody has answered is sent again.

Exceptions get lost: Python ignores what a finalizer or a callback of a weak reference raises (each import has one), and
libraries that catch everything go on after an import or a compilation that was stopped.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType, TracebackType
from typing import Any, NoReturn

received: list[int] = []
"""The signals that this process was sent."""

SOON = 0.02
"""Seconds until an ignored interrupt is sent again: by then the callback that could not raise it has returned."""
LATER = 2.0
"""Seconds until an interrupt without an answer is sent again: unwinding takes less."""

_HAS_ALARM = hasattr(signal, "setitimer")  # not on Windows
_keeping = False


def listen() -> None:
    """Take over SIGINT and SIGTERM, for a process that is a command."""
    received.clear()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _on_signal)
    if _HAS_ALARM:
        signal.signal(signal.SIGALRM, _on_alarm)
    sys.unraisablehook = partial(_on_ignored, sys.unraisablehook)
    sys.excepthook = partial(_on_printed, sys.excepthook)


def exit_code() -> int:
    """Return the exit code of an interrupted run."""
    return 128 + (received[-1] if received else signal.SIGINT)


def leave(code: int) -> NoReturn:
    """Exit; after a signal at once, because finalizers of what compiled modules had not finished may crash."""
    if not received:
        sys.exit(code)
    _send_again(0)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody reads it any more
            stream.flush()
    os._exit(code)


@contextmanager
def keeping() -> Iterator[None]:
    """Send no signal again while the block keeps what was drawn before the first one, which takes time."""
    global _keeping
    _keeping = True
    try:
        yield
    finally:
        _keeping = False


def _on_signal(number: int, frame: FrameType | None) -> None:
    received.append(number)
    _on_alarm(number, frame)


def _on_alarm(_: int, __: FrameType | None) -> None:
    _send_again(0 if _keeping else LATER)
    raise KeyboardInterrupt


def _send_again(seconds: float) -> None:
    """Set the alarm that sends the signal again after some seconds, in place of an earlier alarm; 0 cancels it."""
    if received and _HAS_ALARM:  # without a signal the alarm may be somebody else's
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _on_ignored(otherwise: Callable[[Any], Any], ignored: Any) -> None:
    """Report an exception that Python ignores; after a signal nothing, as the interrupt may be what is ignored."""
    if not received:
        otherwise(ignored)
    elif isinstance(ignored.exc_value, KeyboardInterrupt):
        _send_again(SOON)  # any other error is of a finalizer of what was not finished


def _on_printed(
    otherwise: Callable[..., Any], kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Compiled modules print what stopped their import, NumPy's among them, and raise another error in its place."""
    if not (received and issubclass(kind, KeyboardInterrupt)):
        otherwise(kind, error, trace)
