"""The command ``bayeszoo compare``."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayeszoo.cli import terminal
from bayeszoo.cli.options import Flag, Json, PriorOptions, Seed, TableOptions
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.foundation import writing
from bayeszoo.model import find as zoo

if TYPE_CHECKING:
    import xarray as xr


def compare_command(
    name: str,
    data: str | None = None,
    /,
    *,
    methods: str | None = None,
    seed: Seed | None = None,
    report: Path | None = None,
    plot: Path | None = None,
    overwrite: Flag = False,
    as_json: Json = False,
    prior: PriorOptions | None = None,
    table: TableOptions | None = None,
) -> int:
    """Fit by several methods and put them side by side.

    Parameters
    ----------
    name
        The model; see `bayeszoo list`.
    data
        CSV, TSV or Parquet file; the model's own data without it.
    methods
        Comma-separated; 'all' for every one that the model has; by default exact, map, vb, laplace, advi, and nuts or
        gibbs, as far as it has them.
    seed
        Source of all randomness; one is drawn and reported without it.
    report
        Write a page about the fits here (.html).
    plot
        Draw the densities of all fits over each other here (.png, .svg or .pdf).
    overwrite
        Replace existing files.
    as_json
        One JSON document on stdout, and nothing else.
    """
    from bayeszoo.comparison.compare import Withheld, compare, fit_each, named_methods
    from bayeszoo.fit import METHODS
    from bayeszoo.results.summary import document, failures_of

    model = zoo.find(name)
    chosen = named_methods(model, methods)
    _probe(report, plot, overwrite)
    if plot is not None and all(METHODS[method].kind == "point estimate" for method in chosen):
        raise InputError("a point estimate has no density to draw", hint="name a method that draws as well")
    rows = (table or TableOptions()).read(model, data)
    prior_model = (prior or PriorOptions()).model(model, rows)
    results = fit_each(prior_model, rows, chosen, seed, terminal.TerminalReporter())
    trees = [fit for fit in results if not isinstance(fit, Withheld)]
    for tree in trees:
        tree.attrs |= {"command": shlex.join(sys.argv[1:]), "prior": (prior or PriorOptions()).prior}
    frame = compare(results)
    if as_json:
        withheld = [asdict(fit) for fit in results if isinstance(fit, Withheld)]
        fits = [document(tree) for tree in trees]
        terminal.print_json({"fits": fits, "withheld": withheld, "table": frame.to_dict("records")})
    else:
        terminal.show_comparison(frame)
        if seed is None and trees:
            terminal.note(f"seed {trees[0].attrs['seed']}, which was drawn: --seed gives the same again")
    _write(results, trees, report, plot, overwrite)
    code = terminal.verdict(trees, [f"{tree.attrs['method']}: {line}" for tree in trees for line in failures_of(tree)])
    return code or (NumericalError.exit_code if len(trees) < len(results) else 0)


def _probe(report: Path | None, plot: Path | None, overwrite: bool) -> None:
    """Check that what is asked for can be written, before any work is done."""
    if report is not None:
        from bayeszoo.report.page import probe

        probe(report, overwrite)
    if plot is not None:
        writing.probe_figure(plot, overwrite)


def _write(fits: Any, trees: Sequence[xr.DataTree], report: Path | None, plot: Path | None, overwrite: bool) -> None:
    if report is not None:
        from bayeszoo.report.page import report as write

        terminal.note(f"wrote {write(fits, report, overwrite=overwrite)}")
    if plot is not None:
        import matplotlib

        from bayeszoo.plots import fits as plots
        from bayeszoo.plots import style as pictures

        matplotlib.use("agg")  # no window is wanted
        with pictures.styled("white"):
            figure = plots.overlay(trees).viz["figure"].item()
            figure.suptitle(f"{trees[0].attrs['model']}: {trees[0].attrs['data_source']}")
            terminal.note(f"wrote {writing.write_figure(figure, plot, overwrite)}")
