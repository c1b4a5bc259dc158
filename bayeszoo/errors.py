"""The errors that bayeszoo raises on purpose, and the exit code each one means on the command line."""

from __future__ import annotations

from collections.abc import Sequence


class InputError(ValueError):
    """The user's data, options or hyperparameters cannot be used as they are.

    Parameters
    ----------
    message : str
        One line: what is wrong and where.
    column : str, optional
        Name of the column at fault.
    rows : sequence of int, optional
        The first offending data rows, counted from 1 (the header is not counted); at most five are kept.
    hint : str, optional
        What to do about it; printed after the message.
    """

    exit_code = 2

    def __init__(
        self, message: str, *, column: str | None = None, rows: Sequence[int] = (), hint: str | None = None
    ) -> None:
        self.message = message
        self.column = column
        self.rows = tuple(int(row) for row in rows[:5])
        self.hint = hint
        super().__init__(f"{message}; {hint}" if hint else message)

    def also(self, more: str) -> InputError:
        """Return the same error with more to its message, before the hint."""
        return InputError(self.message + more, column=self.column, rows=self.rows, hint=self.hint)


class NoSimulator(InputError, NotImplementedError):
    """A model draws no data from its prior, and data are needed."""


class NoRowLaw(InputError, NotImplementedError):
    """A model does not say how its rows are distributed, and that is needed."""


class NumericalError(ArithmeticError):
    """A computation that should have given a finite number did not."""

    exit_code = 4


class NotWritten(OSError):
    """A file could not be written, as on a full disk; what had its name before is as it was."""

    exit_code = 4

    def __init__(self, path: object, error: OSError) -> None:
        super().__init__(error.errno, f"cannot write {path}: {error.strerror or error}")

    def __str__(self) -> str:
        """Return the message alone: the number of the error says nothing more."""
        return str(self.strerror)


class Untrustworthy(RuntimeError):
    """A result failed its gate, and what was asked for would build on it."""

    exit_code = 3


class Caution(UserWarning):
    """The numbers of a fit are shown with a warning, which the warning gives."""


class Interrupted(Exception):
    """A run was stopped from outside (Ctrl-C: 130, SIGTERM: 143) before any draw could be kept."""

    def __init__(self, message: str, exit_code: int = 130) -> None:
        self.exit_code = exit_code
        super().__init__(message)
