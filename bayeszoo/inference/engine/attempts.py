"""Runs of a sampler, each longer or more careful than the one before, until one passes the gate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice

from bayeszoo.errors import InputError, Interrupted
from bayeszoo.foundation.gate import Check, failures, longer_may_help, passed
from bayeszoo.foundation.process import signals
from bayeszoo.inference.problem import Outcome, Problem


class TooLarge(InputError):
    """Draws do not fit into the memory of this machine."""


def with_checks(problem: Problem, outcome: Outcome, check: Callable[[], list[Check]]) -> Outcome:
    """Check a run, unless it was stopped: a user who pressed Ctrl-C does not wait for checks."""
    if outcome.interrupted:
        return outcome
    problem.reporter.phase("checking draws")
    checks = signals.unless_stopped(check)
    return replace(outcome, checks=checks or [], interrupted=checks is None)


def first_to_pass(problem: Problem, attempts: Iterator[Outcome], most: int) -> Outcome:
    """Return the first of at most N attempts that passes the gate, else the last; after Ctrl-C the longest.

    Attempts end early where a longer run cannot repair what failed, or does not fit in memory. What the iterator does
    between two attempts is done only when the next attempt is wanted.
    """
    longest: Outcome | None = None
    try:
        for number, outcome in enumerate(islice(attempts, most), start=1):
            if outcome.interrupted and longest is not None and outcome.length < longest.length:
                return replace(longest, checks=[], interrupted=True)
            longest = outcome
            if outcome.interrupted or passed(outcome.checks) or not longer_may_help(outcome.checks):
                break
            problem.reporter.say(f"attempt {number} did not pass: {failures(outcome.checks)}")
    except (Interrupted, KeyboardInterrupt):  # before this attempt has a draw
        if longest is None:
            raise
        signals.answer()
        return replace(longest, checks=[], interrupted=True)
    except TooLarge as error:
        if longest is None:
            raise
        problem.reporter.say(f"not run again: {error.message}")
    assert longest is not None  # there is an attempt
    return longest
