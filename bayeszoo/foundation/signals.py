"""Ctrl-C, SIGTERM and SIGHUP: all become KeyboardInterrupt, and one that nobody has answered is sent again.

Exceptions get lost: Python ignores what a finalizer or a callback of a weak reference raises (each import has one), and
libraries that catch everything go on after an import or a compilation that was stopped.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
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

HELD = b"stopping, as soon as nothing is lost by it\n"
"""The line about a waiting signal."""

_HAS_ALARM = hasattr(signal, "setitimer")  # not on Windows
_NUMBERS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
_keeping = _promised = _held = _is_said = False
_terminals: list[int] = []


def listen() -> None:
    """Take over the signals, for a process that is a command."""
    received.clear()
    for number in _NUMBERS:
        if number == signal.SIGINT or signal.getsignal(number) != signal.SIG_IGN:  # as nohup has it
            signal.signal(number, _on_signal)
    if _HAS_ALARM:
        signal.signal(signal.SIGALRM, _on_alarm)
    _terminals[:] = [number for number in (1, 2) if _is_terminal(number)]
    sys.unraisablehook = partial(_on_ignored, sys.unraisablehook)
    sys.excepthook = partial(_on_printed, sys.excepthook)


def end_at_once() -> None:
    """Let a signal end the process, which has nothing to tidy up while it imports the library."""
    for number in _NUMBERS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _ended)


def exit_code() -> int:
    """Return the exit code of an interrupted run."""
    return 128 + (received[-1] if received else signal.SIGINT)


def leave(code: int) -> NoReturn:
    """Exit; after a signal at once, because finalizers of unfinished compiled modules may crash."""
    if not received:
        sys.exit(code)
    _send_again(0)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody reads it any more
            stream.flush()
    os._exit(code)


@contextmanager
def keeping() -> Iterator[None]:
    """Send no signal again while the block saves the draws made before the first one, which takes time."""
    global _keeping
    _keeping = True
    try:
        yield
    finally:
        _keeping = False


@contextmanager
def saving() -> Iterator[None]:
    """Let signals that come after one was answered wait, as the block saves the draws made before it."""
    global _promised, _held, _is_said
    before, _promised, _is_said = _promised, True, _is_said and _promised
    try:
        with _ctrl_c():
            yield
    finally:
        _promised, _held = before, _held and before


@contextmanager
def beginning() -> Iterator[None]:
    """Let a signal wait until the block ends, as what it begins can be ended only then."""
    global _held
    _held, before, count = True, _held, len(received)
    try:
        yield
    finally:
        _held = before
    if len(received) > count and not _held:
        raise KeyboardInterrupt


def answer() -> None:
    """Take the signal as answered: it is not sent again, and within `saving` no other one comes between."""
    global _held
    _send_again(0)
    _held = _promised


def unless_stopped[T](compute: Callable[[], T]) -> T | None:
    """Return the computed value; None after Ctrl-C, which is thereby answered: draws made before it are kept."""
    try:
        return compute()
    except KeyboardInterrupt:
        answer()
        return None


@contextmanager
def _ctrl_c() -> Iterator[None]:
    """Let Ctrl-C wait as a command's signals do, in a program that has left it to Python."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, _on_ctrl_c)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _on_ctrl_c(number: int, frame: FrameType | None) -> None:
    if not _held:
        signal.default_int_handler(number, frame)
    _say_held()


def _on_signal(number: int, frame: FrameType | None) -> None:
    received.append(number)
    _leave_terminal()
    if not _held:
        _on_alarm(number, frame)
    _say_held()


def _say_held() -> None:
    """Say once that a signal waits."""
    global _is_said
    if not _is_said:
        _is_said = True
        _write(HELD)


def _on_alarm(_: int, __: FrameType | None) -> None:
    _send_again(0 if _keeping else LATER)
    raise KeyboardInterrupt


def _ended(number: int, _: FrameType | None) -> None:
    _write(b"interrupted\n")
    os._exit(128 + number)


def _write(line: bytes) -> None:
    """Write to stderr; not by way of its stream, which a signal may have come in the middle of."""
    with suppress(OSError):
        os.write(2, line)


def _is_terminal(number: int) -> bool:
    try:
        return os.isatty(number)
    except OSError:
        return False


def _leave_terminal() -> None:
    """Write nowhere where a terminal was that has hung up, which would be an error for each line."""
    for number in _terminals:
        if not _is_terminal(number):
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)


def _send_again(seconds: float) -> None:
    """Set the alarm that sends the signal again after some seconds, in place of an earlier alarm; 0 cancels it."""
    if received and _HAS_ALARM:  # without a signal the alarm may be somebody else's
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _on_ignored(otherwise: Callable[[Any], Any], ignored: Any) -> None:
    """Report an exception that Python ignores; after a signal nothing, as the interrupt may be what is ignored."""
    if not received:
        otherwise(ignored)
    elif isinstance(ignored.exc_value, KeyboardInterrupt):
        _send_again(SOON)  # any other error comes from a finalizer of something unfinished


def _on_printed(
    otherwise: Callable[..., object], kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Compiled modules print what stopped their import, NumPy's among them, and raise another error in its place."""
    if not (received and issubclass(kind, KeyboardInterrupt)):
        otherwise(kind, error, trace)
