"""Commands that run group by group: by ``--by COLUMN`` of a table, or on a fit that was saved so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from inspect import signature
from typing import Any

from bayeszoo.cli import options as opt
from bayeszoo.cli import saved, terminal
from bayeszoo.cli.answers import AnswerOptions
from bayeszoo.data.by import read_by, together
from bayeszoo.data.read import Data, HasInputs
from bayeszoo.data.table.table import escaped, shown
from bayeszoo.errors import InputError, NumericalError, Untrustworthy
from bayeszoo.model import find as zoo
from bayeszoo.results.stored import fits_of, is_by_group

Changes = dict[str, Any]
"""Arguments of a command that differ between groups."""


def by_group(command: Callable[..., int | None], reads: HasInputs | None = None) -> Callable[..., int | None]:
    """Run a command once per group if it has ``by`` or a fit by groups, else once.

    The answer of a group is printed under its name; JSON documents and tables are joined. A group without an answer
    does not stop the others, and the exit code is the largest of all groups. The table is read by ``reads``, by default
    by the model that the command names, or by its first candidate.
    """

    @wraps(command)
    def run(*words: object, **options: object) -> int | None:
        bound = signature(command).bind(*words, **options)
        arguments = bound.arguments
        by, groups = _groups_of_fit(arguments) if "fit_file" in arguments else _groups_of_table(arguments, reads)
        if not groups:
            return command(*bound.args, **bound.kwargs)
        for name in ("plot", "report"):
            if arguments.get(name) is not None:
                how = f"name one as FILE.nc:{next(iter(groups))}" if "fit_file" in arguments else "leave out --by"
                raise InputError(f"--{name} needs a single group", "one_group_only", hint=how)

        def of_group(changes: Changes) -> int:
            arguments.update(changes)
            return command(*bound.args, **bound.kwargs) or 0

        shown = arguments.get("shown", AnswerOptions(as_json=arguments.get("as_json", False)))
        return _run_each(of_group, by, groups, shown)

    return run


def _groups_of_fit(arguments: Changes) -> tuple[str, dict[str, Changes]]:
    """Load the fit that a command names, and return the fits by group in it; nothing for a single fit."""
    if arguments.get("fields", opt.FIELDS).sets is not None:  # a model whose parameters are all known
        return "", {}
    arguments["fit_file"] = tree = saved.load(arguments["fit_file"])
    if not is_by_group(tree):
        return "", {}
    fits = fits_of(tree)
    parts = saved.new_parts(tree, arguments.get("data"), arguments.get("table", opt.TABLE))
    if parts is None:
        return tree.attrs["by"], {label: {"fit_file": fit.tree} for label, fit in fits.items()}
    return tree.attrs["by"], {
        label: {"fit_file": fits[label].tree, "data": part, "table": opt.TABLE} for label, part in parts.items()
    }


def _groups_of_table(arguments: Changes, reads: HasInputs | None) -> tuple[str, dict[str, Changes]]:
    """Read the table of a command by groups, and return the rows of each; nothing without ``by``."""
    by = arguments.pop("by", None)
    if by is None:
        return "", {}
    named = [arguments["name"]] if "name" in arguments else arguments.get("candidates", ())
    names = [text.partition(" ")[0] for text in named if ".nc" not in text]
    if not names:
        raise InputError("fits bring their own data", "option_needs_data", hint="give models with --by")
    table = arguments.get("table", opt.TABLE)
    whole, parts = read_by(reads or zoo.find(names[0]), arguments.get("data"), by, **table.of_reading())
    terminal.notes(whole.notes)
    first = next(iter(parts))
    return by, {
        label: {"data": _rows(part, whole, label == first), "table": opt.TABLE} for label, part in parts.items()
    }


def _rows(part: Data, whole: Data, is_first: bool) -> opt.RowsOfGroup:
    """Return the rows of a group without their notes, which were printed, and with the whole table, for the prior."""
    about = {field.name: getattr(part, field.name) for field in fields(part)}
    return opt.RowsOfGroup(**{**about, "notes": ()}, whole=whole, is_first=is_first)


def _run_each(
    run: Callable[[Changes], int],
    by: str,
    groups: dict[str, Changes],
    options: AnswerOptions,
) -> int:
    """Run for each group; print, write and return the joint results."""
    code, errors, kept = 0, dict[str, str](), dict[str, terminal.Kept]()
    for label, changes in groups.items():
        if not options.as_json:
            terminal.out().print(f"{escaped(by)} {escaped(label)}")
        try:
            with terminal.keeping() as kept[label]:
                code = max(code, run(changes))
        except (InputError, NumericalError, Untrustworthy) as error:
            errors[label], code = str(error), max(code, error.exit_code)
            if len(errors) == len(groups) and len({*errors.values()}) == 1:  # the same error in all groups
                raise
    for label, why in errors.items():
        terminal.note(f"error: group {shown(label)}: {why}")
    frames = {label: each.frame for label, each in kept.items() if each.frame is not None}
    documents = {label: each.document for label, each in kept.items() if each.document is not None}
    whole = {"by": by, "groups": documents, "errors": errors}
    write = (lambda: saved.write(together(frames, by), options.output, options.overwrite)) if frames else (lambda: None)
    saved.deliver(lambda: None, lambda written: whole | written, options.as_json, saved=write)
    return code
