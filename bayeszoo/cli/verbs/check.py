"""The command `check`: hold models to the contract now, or print what was found when their scorecards were stored."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from bayeszoo.cli import options as opt
from bayeszoo.cli import terminal
from bayeszoo.contract import scorecard
from bayeszoo.contract.check import check
from bayeszoo.data.table.table import escaped
from bayeszoo.errors import InputError, Untrustworthy
from bayeszoo.foundation.gate import Check, as_dict, passed
from bayeszoo.model import find as zoo
from bayeszoo.model.fields import text


def check_command(
    name: str | None = None,
    /,
    *,
    every: Annotated[opt.Every, Parameter(help="Check every model of the zoo.")] = False,
    stored: opt.Flag = False,
    sampler: bool = True,
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
) -> int:
    """Check a model's declaration, closed forms and sampling against each other.

    Parameters
    ----------
    stored
        Print the scorecard that is stored with the model, and check nothing.
    sampler
        Whether to compare NUTS with the exact answer too.
    seed
        Seed of the points, the simulated data and the chains.
    """
    if (name is None) == (not every):
        raise InputError("name a model, or use --all")
    names = zoo.builtin_names() if every else [str(name)]
    if stored and not as_json:
        return max(show_stored(name) for name in names)
    cards = [scorecard.load(name) for name in names] if stored else []
    checks_of: dict[str, Sequence[Check]] = {card.model: card.checks for card in cards}
    if not stored:
        reporter = terminal.TerminalReporter()
        checks_of = {name: check(zoo.find(name), seed=seed, sampler=sampler, reporter=reporter) for name in names}
    if as_json:
        dates = {card.model: {"date": card.date} for card in cards}
        terminal.print_json({name: dates.get(name, {}) | as_dict(checks) for name, checks in checks_of.items()})
    else:
        from bayeszoo.contract.case import cases_of  # which imports PyTensor

        for name, checks in checks_of.items():
            terminal.show_scorecard(checks, str(cases_of(zoo.find(name), None, seed)[0].model))
    return 0 if all(map(passed, checks_of.values())) else Untrustworthy.exit_code


def show_stored(name: str) -> int:
    """Print the stored scorecard of a model with its date and versions; return the exit code that `check` would."""
    card = scorecard.load(name)
    terminal.show_scorecard(card.checks, f"{card.model}, checked on {card.date[:10]}")
    console = terminal.out()
    for case in card.cases:
        fields = ", ".join(f"{field}={text(value)}" for field, value in case["fields"].items())
        console.print(escaped(f"on {case['data']}, {case['rows']} rows: {card.model}({fields})"))
    console.print(f"seed {card.seed}; {', '.join(' '.join(pair) for pair in card.versions.items())}")
    if not scorecard.is_current(card):
        terminal.note(f"warning: {name} or its checks have changed since; `bayeszoo check {name}` makes them now")
    return 0 if card.passed else Untrustworthy.exit_code


def store(names: Sequence[str]) -> int:
    """Check the models named, by default all of the zoo, and store their scorecards; ``make scorecards`` runs it."""
    failed = []
    for kind in [zoo.find(name) for name in names or zoo.builtin_names()]:
        card = scorecard.make(kind, reporter=terminal.TerminalReporter())
        scorecard.save([card], scorecard.folder_of(kind))
        show_stored(kind.name)
        failed += [] if card.passed else [kind.name]
    if failed:
        terminal.note(f"not passed: {', '.join(failed)}")
    return Untrustworthy.exit_code if failed else 0


if __name__ == "__main__":
    sys.exit(store(sys.argv[1:]))
