"""Refusals by their codes: what an error is about is asserted, not how it is worded."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bayeszoo.answers.checks.leave_out import NoScore
from bayeszoo.errors import InputError, Interrupted, NumericalError, Untrustworthy

Refusal = InputError | NumericalError | Untrustworthy | Interrupted | NoScore


@contextmanager
def raises(error: type[Refusal], code: str, *values: object) -> Iterator[pytest.ExceptionInfo[Refusal]]:
    """Expect an error of this class and code, whose message has all the values: names and numbers, no sentences."""
    with pytest.raises(error) as caught:
        yield caught
    said = str(caught.value)
    assert caught.value.code == code, f"code {caught.value.code}: {said}"
    assert [str(value) for value in values if str(value) not in said] == [], said
