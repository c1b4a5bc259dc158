"""The command ``bayeszoo compare``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from bayeszoo.cli import options as opt
from bayeszoo.cli import terminal
from bayeszoo.comparison.compare import Withheld, compare, fit_each, named_methods
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.fit import METHODS
from bayeszoo.foundation import writing
from bayeszoo.model import find as zoo
from bayeszoo.plots import fits as pictures
from bayeszoo.plots import style
from bayeszoo.report import page
from bayeszoo.results.summary import document, failures_of

if TYPE_CHECKING:
    import xarray as xr


def compare_command(
    name: opt.ModelName,
    data: opt.DataFile = None,
    /,
    *,
    methods: str | None = None,
    seed: opt.DrawnSeed = None,
    report: Path | None = None,
    plot: Path | None = None,
    overwrite: opt.Overwrite = False,
    as_json: opt.Json = False,
    prior: opt.PriorOptions = opt.PRIOR,
    table: opt.TableOptions = opt.TABLE,
) -> int:
    """Fit by several methods and put them side by side.

    Parameters
    ----------
    methods
        Comma-separated; 'all' for every one that the model has; by default exact, map, vb, laplace, advi, and nuts or
        gibbs, as far as it has them.
    report
        Write a page about the fits here (.html).
    plot
        Draw the densities of all fits over each other here (.png, .svg or .pdf).
    """
    model = zoo.find(name)
    chosen = named_methods(model, methods)
    if report is not None:
        page.probe(report, overwrite)
    if plot is not None:
        writing.probe_figure(plot, overwrite)
        if all(METHODS[method].kind == "point estimate" for method in chosen):
            raise InputError("a point estimate has no density to draw", hint="name a method that draws as well")
    rows = table.read(model, data)
    prior_model = prior.model(model, rows)
    results = fit_each(prior_model, rows, chosen, seed, terminal.TerminalReporter())
    trees = [fit for fit in results if not isinstance(fit, Withheld)]
    for tree in trees:
        tree.attrs |= {"command": terminal.typed(data, report, plot), "prior": prior.prior}
    frame = compare(results)
    if as_json:
        withheld = [asdict(fit) for fit in results if isinstance(fit, Withheld)]
        fits = [document(tree) for tree in trees]
        terminal.print_json({"fits": fits, "withheld": withheld, "table": frame.to_dict("records")})
    else:
        terminal.show_comparison(frame)
        if seed is None and trees:
            terminal.note(f"seed {trees[0].attrs['seed']}, which was drawn: --seed gives the same again")
    if report is not None:
        terminal.note(f"wrote {page.report(results, report, overwrite=overwrite)}")
    if plot is not None:
        _draw(trees, plot, overwrite)
    code = terminal.verdict(trees, [f"{tree.attrs['method']}: {line}" for tree in trees for line in failures_of(tree)])
    return code or (NumericalError.exit_code if len(trees) < len(results) else 0)


def _draw(trees: Sequence[xr.DataTree], plot: Path, overwrite: bool) -> None:
    import matplotlib

    matplotlib.use("agg")  # no window is wanted
    with style.styled("white"):
        figure = pictures.overlay(trees).viz["figure"].item()
        figure.suptitle(f"{trees[0].attrs['model']}: {trees[0].attrs['data_source']}")
        terminal.note(f"wrote {writing.write_figure(figure, plot, overwrite)}")
