"""The command ``bayeszoo report``: a page about saved fits, or about every model on its own data."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from bayeszoo.cli import options as opt
from bayeszoo.cli import terminal
from bayeszoo.comparison.compare import fit_each, usual_methods
from bayeszoo.data.read import example
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.fit import METHODS, methods_for
from bayeszoo.model import find as zoo
from bayeszoo.model.base import Model
from bayeszoo.report import page
from bayeszoo.results import files


def report_command(
    *fit_files: Path,
    output: Annotated[Path, Parameter(name=("--output", "-o"))],
    every: Annotated[opt.Every, Parameter(help="Instead of saved fits: fit every model to its own data.")] = False,
    models: str | None = None,
    methods: str | None = None,
    seed: opt.Seed = 1,
    overwrite: opt.Overwrite = False,
) -> int:
    """Write one HTML page about saved fits of the same data; nothing in it is fetched from anywhere.

    Parameters
    ----------
    fit_files
        Fits saved with -o.
    output
        The page (.html); with --all a folder, which gets one page a model.
    models
        With --all: these only, with commas between.
    methods
        With --all: comma-separated, those of them that a model has; by default exact, map, vb, advi and nuts or gibbs.
    seed
        With --all: source of all randomness.
    """
    if every == bool(fit_files):
        raise InputError("give saved fits, or --all")
    if every:
        return _every(output, models, methods, seed, overwrite)
    page.probe(output, overwrite)
    trees = [files.load(path) for path in fit_files]
    terminal.note(f"wrote {page.report(trees, output, overwrite=overwrite, reporter=terminal.TerminalReporter())}")
    return 0


def _every(folder: Path, models: str | None, methods: str | None, seed: int, overwrite: bool) -> int:
    """Write a page a model; one that has no answer at all does not stop the others, and makes the code 4."""
    chosen = zoo.builtin_names() if models is None else [name.strip() for name in models.split(",")]
    asked = {model: _methods(model, methods) for model in map(zoo.find, chosen)}
    if not folder.is_dir():
        raise InputError(f"there is no folder {str(folder)!r}", hint="make it first")
    pages = {model: page.probe(folder / f"{model.name}.html", overwrite) for model in asked}
    failed = []
    for model, path in pages.items():
        try:
            with closing(terminal.TerminalReporter()) as reporter:
                rows = example(model)
                fits = fit_each(model.weak(rows), rows, asked[model], seed, reporter)
                terminal.note(f"wrote {page.report(fits, path, overwrite=overwrite, reporter=reporter)}")
        except (InputError, NumericalError) as error:
            terminal.note(f"error: {model.__name__}: {error}")
            failed.append(model.name)
    for name in failed:
        terminal.note(f"no report of {name}")
    return NumericalError.exit_code if failed else 0


def _methods(model: type[Model], names: str | None) -> list[str]:
    """Return those of the methods that a model has, by default the usual ones."""
    if names is None:
        return [name for name in usual_methods(model) if name != "laplace"]
    chosen = [method.strip() for method in names.split(",")]
    if unknown := [name for name in chosen if name not in METHODS]:
        raise InputError(f"there is no method {unknown[0]!r}", hint=f"use some of {', '.join(METHODS)}")
    return [name for name in chosen if name in methods_for(model)]
