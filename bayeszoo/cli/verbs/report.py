"""The command ``bayeszoo report``: a page about saved fits, or about every model on its own data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from bayeszoo.cli import terminal
from bayeszoo.cli.options import Flag, Seed
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.model import find as zoo
from bayeszoo.model.base import Model
from bayeszoo.results import files


def report_command(
    *fit_files: Path,
    output: Annotated[Path, Parameter(name=("--output", "-o"))],
    every: Annotated[bool, Parameter(name="--all", negative=())] = False,
    models: str | None = None,
    methods: str | None = None,
    seed: Seed = 1,
    overwrite: Flag = False,
) -> int:
    """Write one HTML page about saved fits of the same data; nothing in it is fetched from anywhere.

    Parameters
    ----------
    fit_files
        Fits saved with -o.
    output
        The page (.html); with --all a folder, which gets one page a model.
    every
        Instead of saved fits: fit every model to its own first data set.
    models
        With --all: these only, with commas between.
    methods
        With --all: comma-separated, those of them that a model has; by default exact, map, vb, advi and nuts or gibbs.
    seed
        With --all: source of all randomness.
    overwrite
        Replace existing files.
    """
    if every == bool(fit_files):
        raise InputError("give saved fits, or --all")
    if every:
        return _every(output, models, methods, seed, overwrite)
    from bayeszoo.report.page import probe, report

    probe(output, overwrite)
    trees = [files.load(path) for path in fit_files]
    terminal.note(f"wrote {report(trees, output, overwrite=overwrite, reporter=terminal.TerminalReporter())}")
    return 0


def _every(folder: Path, models: str | None, methods: str | None, seed: int, overwrite: bool) -> int:
    """Write a page a model; one that has no answer at all does not stop the others, and makes the code 4."""
    from bayeszoo.report.page import probe

    chosen = zoo.builtin_names() if models is None else [name.strip() for name in models.split(",")]
    classes = {name: zoo.find(name) for name in chosen}
    asked = {name: _methods(model, methods) for name, model in classes.items()}
    if not folder.is_dir():
        raise InputError(f"there is no folder {str(folder)!r}", hint="make it first")
    for name in classes:
        probe(folder / f"{name}.html", overwrite)
    failed = [
        name
        for name, model in classes.items()
        if not _one(model, folder / f"{name}.html", asked[name], seed, overwrite)
    ]
    for name in failed:
        terminal.note(f"no report of {name}")
    return NumericalError.exit_code if failed else 0


def _one(model: type[Model], path: Path, methods: Sequence[str], seed: int, overwrite: bool) -> bool:
    """Fit a model to its own data by several methods and write the page; say whether there was anything to write."""
    from bayeszoo.comparison.compare import fit_each
    from bayeszoo.data.read import example
    from bayeszoo.report.page import report

    reporter = terminal.TerminalReporter()
    try:
        rows = example(model)
        made = model.weak(rows)
        fits = fit_each(made, rows, methods, seed, reporter)
        terminal.note(f"wrote {report(fits, path, overwrite=overwrite, reporter=reporter)}")
    except (InputError, NumericalError) as error:
        terminal.note(f"error: {model.__name__}: {error}")
        return False
    finally:
        reporter.close()
    return True


def _methods(model: type[Model], names: str | None) -> list[str]:
    """Return those of the methods that a model has, by default the usual ones."""
    from bayeszoo.comparison.compare import usual_methods
    from bayeszoo.fit import METHODS, methods_for

    if names is None:
        return [name for name in usual_methods(model) if name != "laplace"]
    chosen = [method.strip() for method in names.split(",")]
    if unknown := [name for name in chosen if name not in METHODS]:
        raise InputError(f"there is no method {unknown[0]!r}", hint=f"use some of {', '.join(METHODS)}")
    return [name for name in chosen if name in methods_for(model)]
