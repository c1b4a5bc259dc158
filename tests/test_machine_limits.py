"""Requests too large for the machine, and panics of a sampler, end in one line and exit code 4."""

from unittest.mock import Mock

import pytest

import bayeszoo as bz
from bayeszoo.inference.methods import nuts, runs
from tests.refusals import raises


def test_more_draws_than_memory_are_refused_before_the_sampler_ends_the_process(monkeypatch):
    problem = Mock(**{"density.shapes": {"theta": (), "w": (3,)}})
    settings = nuts.Settings(draws=10**9, tune=10, chains=4, target_accept=0.8)
    with raises(bz.InputError, "too_large"):
        runs.require_room(problem, settings)
    monkeypatch.setattr(runs, "memory_of_machine", lambda: 8 * 4 * 22 * 30)
    runs.require_room(problem, nuts.Settings(20, 10, 4, 0.8))
    with raises(bz.InputError, "too_large", "20"):
        runs.require_room(problem, nuts.Settings(21, 10, 4, 0.8))


class PanicException(BaseException):
    """As Rust's, which is no Exception."""


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("Unable to allocate 9 GiB"),
        OSError(12, "Cannot allocate memory"),
        ImportError("lib.so: failed to map segment from shared object"),
        RuntimeError("can't start new thread"),
        PanicException("called `Option::unwrap()` on a `None` value"),
    ],
)
def test_what_memory_or_a_sampler_lacks_is_one_line_and_code_4(monkeypatch, run, error):
    def fails(*_, **__):
        raise error

    monkeypatch.setattr("bayeszoo.cli.verbs.fits.fit", fails)
    code, out, err = run("fit", "beta_bernoulli", "--example", "placenta_previa")
    assert (code, out) == (4, "")
    assert err.splitlines()[-1].startswith("error: ")
