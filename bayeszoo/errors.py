"""The errors that bayeszoo raises on purpose, and the exit code each one means on the command line.

Each error has a ``code``, a short name such as ``missing_column``. Codes stay the same between versions; messages may
change. Programs and tests compare codes.
"""

from __future__ import annotations

from collections.abc import Sequence


class InputError(ValueError):
    """The user's data, options or hyperparameters cannot be used as they are.

    Parameters
    ----------
    message : str
        One line: what is wrong and where.
    code : str
        Short, stable name of the problem, such as ``missing_column``.
    column : str, optional
        Name of the column at fault.
    rows : sequence of int, optional
        The first offending data rows, counted from 1 (the header is not counted); at most five are kept.
    hint : str, optional
        What to do about it; printed after the message.
    """

    exit_code = 2

    def __init__(
        self,
        message: str,
        code: str = "invalid_input",
        *,
        column: str | None = None,
        rows: Sequence[int] = (),
        hint: str | None = None,
    ) -> None:
        self.message = message
        self.code = code
        self.column = column
        self.rows = tuple(int(row) for row in rows[:5])
        self.hint = hint
        super().__init__(f"{message}; {hint}" if hint else message)

    def also(self, more: str) -> InputError:
        """Return the same error with more to its message, before the hint."""
        return InputError(self.message + more, self.code, column=self.column, rows=self.rows, hint=self.hint)


class NoSimulator(InputError, NotImplementedError):
    """A model draws no data from its prior, and data are needed."""


class NoRowLaw(InputError, NotImplementedError):
    """A model does not say how its rows are distributed, and that is needed."""


class NumericalError(ArithmeticError):
    """A computation that should have given a finite number did not; ``code`` names the reason."""

    exit_code = 4

    def __init__(self, message: str, code: str = "not_computed") -> None:
        self.code = code
        super().__init__(message)


class NotWritten(OSError):
    """A file could not be written, as on a full disk; an existing file of that name is unchanged."""

    exit_code = 4
    code = "not_written"

    def __init__(self, path: object, error: OSError) -> None:
        super().__init__(error.errno, f"cannot write {path}: {error.strerror or error}")

    def __str__(self) -> str:
        """Return the message alone: the number of the error says nothing more."""
        return str(self.strerror)


class Untrustworthy(RuntimeError):
    """A result failed its gate, and the requested answer would depend on it; ``code`` names the reason."""

    exit_code = 3

    def __init__(self, message: str, code: str = "withheld") -> None:
        self.code = code
        super().__init__(message)


class NoAddress(RuntimeError):
    """A compiled density has no address in memory, so that nutpie cannot call it; PyMC's own sampler can."""


class Caution(UserWarning):
    """The numbers of a fit are shown with a warning, which the warning gives."""


class Interrupted(Exception):
    """A run was stopped from outside (Ctrl-C: 130, SIGTERM: 143) before any draw could be kept."""

    def __init__(self, message: str, code: str = "interrupted", exit_code: int = 130) -> None:
        self.code, self.exit_code = code, exit_code
        super().__init__(message)
