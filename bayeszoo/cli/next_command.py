"""The command to try next after a fit with withheld numbers."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from pathlib import PurePath

from bayeszoo.cli.options import TABLE, MethodOptions, TableOptions
from bayeszoo.fit import defaults_of
from bayeszoo.model.base import Model

_FLAGS = ("--extend", "--no-extend")


def instead(
    words: Sequence[str], step: str, model: type[Model], method: str, data: str | None, table: TableOptions
) -> str:
    """Return the first command that a next step names, in full.

    Parameters
    ----------
    words : sequence of str
        The words of the fit's own command, without that of the program.
    step : str
        What to try, as `next_step` names it: options of the same command, or another one on the same data.
    model, method, data, table
        The command of the fit, without options that another method does not take.

    Returns
    -------
    str
        Empty where the step is not a command.
    """
    first = shlex.split(step.partition("try ")[2].partition(", or ")[0])
    if first[:1] == ["bayeszoo"]:  # the step names the data, but not the options of reading
        named = [data if data is not None and word == PurePath(data).name else word for word in first]
        return shlex.join([*named, *_options_of(replace(table, example=None))])
    if not first or not first[0].startswith("--"):
        return ""
    chosen = dict(zip(first[::2], first[1::2], strict=True))
    taken = defaults_of(model, chosen.get("--method", method))
    others = {f"--{field.name.replace('_', '-')}" for field in fields(MethodOptions) if field.name not in taken}
    kept = _without(words, {*chosen, *others, *(("--no-extend",) if "extend" not in taken else ())})
    saves = any(word.partition("=")[0] in ("-o", "--output") for word in kept)
    return shlex.join(["bayeszoo", *kept, *first, *["--overwrite"] * (saves and "--overwrite" not in kept)])


def _options_of(table: TableOptions) -> list[str]:
    """Return the options of a table that differ from the defaults, as words of a command."""
    usual, words = asdict(TABLE), list[str]()
    for name, value in asdict(table).items():
        option = name.replace("_", "-")
        if value != usual[name]:
            words += [f"--no-{option}"] if value is False else [f"--{option}", str(value)]
    return words


def _without(words: Sequence[str], options: set[str]) -> list[str]:
    """Leave options out, with their values."""
    kept, is_value = [], False
    for word in words:
        name = word.partition("=")[0]
        if not is_value and name not in options:
            kept.append(word)
        is_value = not is_value and name in options and "=" not in word and name not in _FLAGS
    return kept
