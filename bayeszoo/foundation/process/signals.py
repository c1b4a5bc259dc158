"""Ctrl-C, SIGTERM and SIGHUP become KeyboardInterrupt; an unanswered signal is sent again.

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
"""The signals that this process received."""

SOON = 0.02
"""Seconds until an ignored interrupt is sent again: the callback that could not raise it has then returned."""
LATER = 2.0
"""Seconds until an unanswered interrupt is sent again: unwinding takes less."""

STOPPING = b"stopping as soon as the draws are saved\n"
"""The line about a waiting signal."""

_HAS_ALARM = hasattr(signal, "setitimer")  # not on Windows
_NUMBERS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
_keeping = _promised = _is_delayed = _is_said = False
_terminals: list[int] = []


def listen() -> None:
    """Take over the signals, for a process that is a command."""
    received.clear()
    for number in _NUMBERS:
        if number == signal.SIGINT or signal.getsignal(number) != signal.SIG_IGN:  # SIG_IGN: under nohup
            signal.signal(number, _on_signal)
    if _HAS_ALARM:
        signal.signal(signal.SIGALRM, _on_alarm)
    _terminals[:] = [number for number in (1, 2) if _is_terminal(number)]
    sys.unraisablehook = partial(_on_ignored, sys.unraisablehook)
    sys.excepthook = partial(_on_printed, sys.excepthook)


def end_at_once() -> None:
    """Let a signal end the process at once: during the import of the library there is nothing to clean up."""
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
        with suppress(OSError, ValueError):  # no reader is left
            stream.flush()
    os._exit(code)


@contextmanager
def keeping() -> Iterator[None]:
    """Do not resend signals while the block saves draws, which takes time."""
    global _keeping
    _keeping = True
    try:
        yield
    finally:
        _keeping = False


@contextmanager
def saving() -> Iterator[None]:
    """Delay signals that follow an answered one until the block has saved the draws."""
    global _promised, _is_delayed, _is_said
    before, _promised, _is_said = _promised, True, _is_said and _promised
    try:
        with _ctrl_c():
            yield
    finally:
        _promised, _is_delayed = before, _is_delayed and before


@contextmanager
def beginning() -> Iterator[None]:
    """Delay signals until the block ends: a process that is being started cannot be stopped before."""
    global _is_delayed
    _is_delayed, before, count = True, _is_delayed, len(received)
    try:
        yield
    finally:
        _is_delayed = before
    if len(received) > count and not _is_delayed:
        raise KeyboardInterrupt


def answer() -> None:
    """Mark the signal as answered: it is not sent again, and within `saving` further ones are delayed."""
    global _is_delayed
    _send_again(0)
    _is_delayed = _promised


def unless_stopped[T](compute: Callable[[], T]) -> T | None:
    """Return the computed value; None after Ctrl-C, which is then answered: earlier draws are kept."""
    try:
        return compute()
    except KeyboardInterrupt:
        answer()
        return None


@contextmanager
def _ctrl_c() -> Iterator[None]:
    """Delay Ctrl-C like signals of a command, in a program with Python's default handler."""
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
    if not _is_delayed:
        signal.default_int_handler(number, frame)
    _say_delayed()


def _on_signal(number: int, frame: FrameType | None) -> None:
    received.append(number)
    _leave_terminal()
    if not _is_delayed:
        _on_alarm(number, frame)
    _say_delayed()


def _say_delayed() -> None:
    """Print once that a signal is delayed."""
    global _is_said
    if not _is_said:
        _is_said = True
        _write(STOPPING)


def _on_alarm(_: int, __: FrameType | None) -> None:
    _send_again(0 if _keeping else LATER)
    raise KeyboardInterrupt


def _ended(number: int, _: FrameType | None) -> None:
    _write(b"interrupted\n")
    os._exit(128 + number)


def _write(line: bytes) -> None:
    """Write to stderr directly: the signal may have interrupted its stream."""
    with suppress(OSError):
        os.write(2, line)


def _is_terminal(number: int) -> bool:
    try:
        return os.isatty(number)
    except OSError:
        return False


def _leave_terminal() -> None:
    """Redirect output of a closed terminal to nowhere, as each line would raise an error."""
    for number in _terminals:
        if not _is_terminal(number):
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)


def _send_again(seconds: float) -> None:
    """Set the alarm that sends the signal again after some seconds, in place of an earlier alarm; 0 cancels it."""
    if received and _HAS_ALARM:  # without a signal the alarm may belong to other code
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _on_ignored(otherwise: Callable[[Any], Any], ignored: Any) -> None:
    """Report an exception that Python ignores; after a signal nothing, as it may be the interrupt itself."""
    if not received:
        otherwise(ignored)
    elif isinstance(ignored.exc_value, KeyboardInterrupt):
        _send_again(SOON)  # any other error comes from a finalizer of something unfinished


def _on_printed(
    otherwise: Callable[..., object], kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Print exceptions, except interrupts after a signal: compiled modules print those and raise another error."""
    if not (received and issubclass(kind, KeyboardInterrupt)):
        otherwise(kind, error, trace)
