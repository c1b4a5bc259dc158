"""Help about the options of one model and method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from bayeszoo.cli import options as opt
from bayeszoo.errors import InputError
from bayeszoo.fit import defaults_of, methods_for
from bayeszoo.model import find as zoo
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import Sufficient

if TYPE_CHECKING:
    from cyclopts.help import HelpPanel
    from rich.console import Console, ConsoleOptions

_OF_ANY_TABLE = {"example", "missing", *opt.FORM}


def help_about(words: Sequence[str]) -> tuple[Callable[..., None], str] | None:
    """Return a formatter of help that leaves out options the model does not take, and the line under the help.

    ``words`` are the words of the command; None where they name no model.
    """
    if (model := _model_of(words)) is None:
        return None
    others = {field.name for field in fields(opt.TableOptions)} - _OF_ANY_TABLE - model.inputs.options
    others |= set() if issubclass(model, Sufficient) else {"chunk_rows", "dask"}
    by, method = "", _after(words, "--method")
    with suppress(InputError):
        if method is not None:
            others |= {field.name for field in fields(opt.MethodOptions)} - defaults_of(model, method).keys()
            by = f" by {method}"
    left_out = {f"--{name.replace('_', '-')}" for name in others}

    def show(console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        from cyclopts.help import DefaultFormatter

        panel.entries = [entry for entry in panel.entries if not left_out & {*entry.names}]
        DefaultFormatter()(console, options, panel)

    said = f"These are the options of {model.name}{by}; `bayeszoo {words[0]} --help` has all. "
    return show, f"{said}Methods of {model.name}: {', '.join(methods_for(model))}."


def _model_of(words: Sequence[str]) -> type[Model] | None:
    """Return the model that a command names, or its first candidate, if any."""
    candidate = _after(words, "-c") or _after(words, "--candidate")
    name: Any = candidate.split()[:1] if candidate else words[1:2]
    with suppress(InputError):
        return zoo.find(*name) if name and words[0] not in ("show", "check") else None
    return None


def _after(words: Sequence[str], option: str) -> str | None:
    """Return the value of an option."""
    for i, word in enumerate(words):
        if word == option:
            return words[i + 1] if i + 1 < len(words) else None
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
    return None
