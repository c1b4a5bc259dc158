"""The command `check`: check models against the contract, or print their stored scorecards."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from bayeszoo.cli import options as opt
from bayeszoo.cli import terminal
from bayeszoo.contract import scorecard
from bayeszoo.contract.check import check, lacking
from bayeszoo.contract.cures import cures
from bayeszoo.data.table.table import escaped
from bayeszoo.errors import InputError, Untrustworthy
from bayeszoo.foundation.gate import Check, as_dict, passed
from bayeszoo.model import find as zoo
from bayeszoo.model.base import Model
from bayeszoo.model.fields import text


def check_command(
    name: str | None = None,
    data: opt.DataFile = None,
    /,
    *,
    every: Annotated[opt.Every, Parameter(help="Check every model of the zoo.")] = False,
    stored: opt.Flag = False,
    sampler: bool = True,
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
    table: opt.TableOptions = opt.TABLE,
) -> int:
    """Check a model's declaration, closed forms and sampling against each other.

    Without DATA: on data simulated from the prior, and on the model's own examples.

    Parameters
    ----------
    stored
        Print the stored scorecard of the model without running any check.
    sampler
        Whether to also compare NUTS and Gibbs sampling with the exact answer.
    seed
        Seed of the points, the simulated data and the chains.
    """
    if (name is None) == (not every):
        raise InputError("name a model, or use --all", "conflicting_options")
    if every and data is not None:
        raise InputError("--all checks each model on its own data", "conflicting_options", hint="leave out DATA")
    names = zoo.builtin_names() if every else [str(name)]
    if stored and not as_json:
        return max(show_stored(name) for name in names)
    cards = [scorecard.load(name) for name in names] if stored else []
    rows, checks_of = None, dict[str, Sequence[Check]]()
    checks_of |= {card.model: card.checks for card in cards}
    if not stored:
        reporter, kinds = terminal.TerminalReporter(), {name: zoo.find(name) for name in names}
        rows = None if data is None else table.read(kinds[names[0]], data)
        checks_of = {
            name: check(kind, rows, seed=seed, sampler=sampler, reporter=reporter) for name, kind in kinds.items()
        }
    if as_json:
        dates = {card.model: {"date": card.date} for card in cards}
        described = {name: dates.get(name, {}) | as_dict(checks) for name, checks in checks_of.items()}
        lacks = {name: {"lacking": [each._asdict() for each in lacking(zoo.find(name))]} for name in described}
        terminal.print_json({name: card | lacks[name] for name, card in described.items()})
    else:
        from bayeszoo.contract.case import cases_of  # it imports PyTensor

        for name, checks in checks_of.items():
            terminal.show_scorecard(checks, str(cases_of(zoo.find(name), rows, seed)[0].model))
            if zoo.own_file(zoo.find(name)) is not None:
                terminal.show_each(f"what to do: {line}" for line in cures(checks))
            _show_lacking(zoo.find(name))
    return 0 if all(map(passed, checks_of.values())) else Untrustworthy.exit_code


def _show_lacking(model: type[Model]) -> None:
    """Print which checks were not made and why; for a user's own model, also which steps it could add."""
    console, steps = terminal.out(), lacking(model)
    for each in steps:
        if each.checks:
            console.print(f"not checked: {each.checks}, as the model lacks the {each.name}")
    if zoo.own_file(model) is not None:
        console.print("It could also have:" if steps else "")
        for each in steps:
            console.print(f"  {each.name}: {each.gives}")


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
        terminal.note(f"warning: {name} or its checks have changed since; `bayeszoo check {name}` checks it now")
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
