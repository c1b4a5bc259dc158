"""Models fitted to data: ``bayeszoo fit``, ``compare`` and ``report``."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from bayeszoo.cli import options as opt
from bayeszoo.cli import saved, terminal
from bayeszoo.cli.answers import ANSWER, FIT, AnswerOptions, FitOptions
from bayeszoo.cli.groups import by_group
from bayeszoo.cli.held_out import (
    KMEANS,
    NOT_HELD_OUT,
    HeldOut,
    beside_clusters,
    compare_held_out,
    refuse_pictures,
    require_components,
    show_clusters,
)
from bayeszoo.cli.next_command import instead
from bayeszoo.cli.verbs.by import fit_groups
from bayeszoo.comparison.compare import Withheld, compare, fit_each, named_methods, usual_methods
from bayeszoo.data.inputs.labels import names_listed
from bayeszoo.data.read import example
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.fit import METHODS, check_method, default_method, fit, methods_for, usual_method
from bayeszoo.foundation.named import Document
from bayeszoo.foundation.process import signals
from bayeszoo.model import find as zoo
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities.latent import Additive
from bayeszoo.model.incomplete import naming_impute
from bayeszoo.plots import fits as pictures
from bayeszoo.plots import style
from bayeszoo.report import page
from bayeszoo.report.safe import probe
from bayeszoo.results import files
from bayeszoo.results.stored import Fit
from bayeszoo.results.summary import document

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from bayeszoo.data.read import Data
    from bayeszoo.model.parts.accumulated import Accumulated


@Parameter(name="*")
@dataclass(frozen=True)
class LargeFiles:
    """Options for files larger than memory.

    Parameters
    ----------
    chunk_rows
        Read this many rows at a time and keep only their sufficient statistics (for files larger than memory).
    dask
        Dask scheduler address, or "local". Workers read the files and send back sufficient statistics; for EM and
        variational Bayes of mixtures, hidden Markov models and lda they keep the rows.
    """

    chunk_rows: opt.AtLeast1 | None = None
    dask: str | None = None


SMALL = LargeFiles()
"""Files that are read at once."""


def fit_command(
    name: opt.ModelName,
    data: opt.DataFile = None,
    /,
    *,
    method: opt.Method | None = None,
    seed: opt.DrawnSeed = None,
    shown: FitOptions = FIT,
    by: str | None = None,
    large: LargeFiles = SMALL,
    prior: opt.PriorOptions = opt.PRIOR,
    table: opt.TableOptions = opt.TABLE,
    options: opt.MethodOptions = opt.METHOD,
) -> int:
    """Fit a model to a table by one method.

    Parameters
    ----------
    method
        exact, enumerate, mle, map, em, vb, online_vb, laplace, advi, fullrank_advi, nuts, gibbs or smc; by default
        nuts, and vb of documents that mix topics.
    by
        Column that names groups of rows: each is fitted separately, then all are compared.
    """
    model = zoo.find(name)
    in_files = large.dask is not None and issubclass(model, Additive)
    check_method(model, method or default_method(model), in_files)
    if by is not None:
        if large != SMALL:
            left_out = "--dask" if large.chunk_rows is None else "--chunk-rows"
            raise InputError("--by reads the table at once", "needs_rows", hint=f"leave out {left_out}")
        return fit_groups(
            model, data, by, method or default_method(model), prior, table, shown, seed=seed, **options.chosen
        )
    if (output := shown.output) is not None:
        files.probe(output, shown.overwrite)
    with closing(terminal.TerminalReporter()) as reporter, ExitStack() as cluster_lasts:
        rows: Data | Accumulated
        if large == SMALL and table.missing == "impute":
            rows = table.read_incomplete(model, data)
            prior_model = prior.model(model, rows.sample, rows.which)
            rows = prior.noted(prior_model, rows, rows.which)
        elif large == SMALL:
            with naming_impute(model):
                rows = table.read(model, data)
            prior_model = prior.over(model, rows)
            rows = prior.noted(prior_model, rows)
        else:
            prior_model, rows = table.read_in_chunks(
                model, prior, data, large.chunk_rows, reporter, large.dask, cluster_lasts
            )
        if method is None:
            is_plain = options.chosen.keys() <= {"draws", "chains", "tables"}
            method, why = usual_method(prior_model, rows) if is_plain else (default_method(type(prior_model)), "")
            terminal.notes([why] if why else [])
        groups = () if output is None else None  # further groups serve questions to a saved fit
        with signals.saving():
            tree = fit(prior_model, rows, method, seed=seed, reporter=reporter, groups=groups, **options.chosen)
            signals.answer()
            tree.attrs |= {"command": terminal.typed(data, output), "prior": prior.prior}
            reporter.phase("saving")
            write = saved.at_once(partial(saved.fitted, tree, output, shown.overwrite))
        reporter.phase("summarizing")
        view = Fit(tree)
        described = {**document(view), "prior": prior.prior}
    terminal.notes(line for line in described["notes"] if line not in rows.notes)  # those of the table were printed
    show = partial(terminal.show_fit, view, described, shown.digits)
    saved.deliver(show, lambda written: described | written, shown.as_json, saved=write)
    code, step = terminal.verdict([view]), described["next"]
    if command := step and instead(terminal.WORDS, step, model, method, data, table):
        terminal.note(f"that is: {command}")
    return code


@by_group
def compare_command(
    name: opt.ModelName,
    data: opt.DataFile = None,
    /,
    *,
    methods: str | None = None,
    held_out: HeldOut = NOT_HELD_OUT,
    seed: opt.DrawnSeed = None,
    report: Path | None = None,
    plot: Path | None = None,
    by: opt.By = None,
    shown: AnswerOptions = ANSWER,
    prior: opt.PriorOptions = opt.PRIOR,
    table: opt.TableOptions = opt.TABLE,
) -> int:
    """Fit a model by several methods and compare the estimates.

    Parameters
    ----------
    methods
        Comma-separated; 'all' for all methods of the model; by default exact, map, vb, laplace, advi, and nuts or
        gibbs, if the model has them.
    report
        Write a page about the fits here (.html).
    plot
        Plot the densities of all fits in one figure (.png, .svg or .pdf).
    """
    model = zoo.find(name)
    chosen = named_methods(model, methods)
    shown.probe(plot)
    if held_out.is_asked:
        refuse_pictures(report, plot)
        named = None if methods is None else chosen
        return compare_held_out(model, table.read(model, data), held_out, named, prior, seed, shown)
    if report is not None:
        probe(report, shown.overwrite)
    if plot is not None and all(METHODS[method].kind == "point estimate" for method in chosen):
        raise InputError("a point estimate has no density to draw", "no_draws", hint="name a method that draws as well")
    rows = table.read(model, data)
    prior_model = prior.model(model, rows)
    if held_out.clusters:
        require_components(prior_model, rows)
    results = fit_each(prior_model, rows, chosen, seed, terminal.TerminalReporter())
    fits = [Fit(result) for result in results if not isinstance(result, Withheld)]
    for each in fits:
        each.tree.attrs |= {"command": terminal.typed(data, report, plot), "prior": prior.prior}
    frame = compare(results)
    clusters = beside_clusters(prior_model, rows, fits, seed) if held_out.clusters else {}

    def whole(written: saved.Written) -> Document:
        withheld = [asdict(result) for result in results if isinstance(result, Withheld)]
        documents, baseline = [document(each) for each in fits], {KMEANS: clusters} if clusters else {}
        return {"fits": documents, "withheld": withheld, **baseline, **written, "table": frame.to_dict("records")}

    def show() -> None:
        terminal.show_comparison(frame, shown.digits)
        if clusters:
            show_clusters(clusters, shown.digits)
        if seed is None and fits:
            terminal.note(terminal.SEED_DRAWN.format(fits[0].tree.attrs["seed"]))

    shown.deliver(show, whole, frame, **_pictures(results, report, plot, shown.overwrite))
    measured = set(frame.loc[frame["measured_against"].notna(), "method"])
    return terminal.verdict(fits, measured) or (NumericalError.exit_code if len(fits) < len(results) else 0)


def _pictures(
    results: Sequence[xr.DataTree | Withheld], report: Path | None, plot: Path | None, overwrite: bool
) -> dict[str, saved.Writer]:
    """Return what writes the page and the picture of a comparison."""

    def write_page() -> Path | None:
        return None if report is None else saved.wrote(page.report(results, report, overwrite=overwrite))

    def draw() -> Path | None:
        with style.styled("white"):  # which has a say in how a figure is written, too
            trees = [result for result in results if not isinstance(result, Withheld)]
            return saved.draw(lambda: _densities(trees), plot, overwrite)

    return {"report": write_page, "plot": draw}


def _densities(trees: Sequence[xr.DataTree]) -> Figure:
    import matplotlib

    matplotlib.use("agg")  # no window is wanted
    figure: Figure = pictures.overlay(trees).viz["figure"].item()
    figure.suptitle(f"{trees[0].attrs['model']}: {trees[0].attrs['data_source']}")
    return figure


def report_command(
    *fit_files: Path,
    output: Annotated[Path, Parameter(name=("--output", "-o"))],
    every: Annotated[opt.Every, Parameter(help="Instead of saved fits: fit every model to its own data.")] = False,
    models: str | None = None,
    methods: str | None = None,
    seed: opt.Seed = 1,
    overwrite: opt.Overwrite = False,
) -> int:
    """Write a self-contained HTML report about saved fits of the same data.

    Parameters
    ----------
    fit_files
        Fits saved with -o.
    output
        The page (.html); with --all a folder, which gets one page a model.
    models
        With --all: only these models, comma-separated.
    methods
        With --all: comma-separated, for the models that have them; by default exact, map, vb, advi and nuts or gibbs.
    seed
        With --all: source of all randomness.
    """
    if every == bool(fit_files):
        raise InputError("give saved fits, or --all", "conflicting_options")
    if every:
        return _write_pages(output, models, methods, seed, overwrite)
    probe(output, overwrite)
    trees = [saved.load(path) for path in fit_files]
    with closing(terminal.TerminalReporter()) as reporter:
        terminal.note(f"wrote {page.report(trees, output, overwrite=overwrite, reporter=reporter)}")
    return 0


def _write_pages(folder: Path, models: str | None, methods: str | None, seed: int, overwrite: bool) -> int:
    """Write one page for each model; a model without any answer does not stop the others, and the exit code is 4."""
    chosen = names_listed(models) or zoo.builtin_names()
    asked = {model: _methods(model, methods) for model in map(zoo.find, chosen)}
    if not folder.is_dir():
        raise InputError(f"there is no folder {str(folder)!r}", "no_such_file", hint="make it first")
    pages = {model: probe(folder / f"{model.name}.html", overwrite) for model in asked}
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
    """Return the named methods that the model has, by default its usual ones."""
    if names is None:
        return [name for name in usual_methods(model) if name != "laplace"]
    chosen = names_listed(names)
    if unknown := [name for name in chosen if name not in METHODS]:
        raise InputError(
            f"there is no method {unknown[0]!r}", "unknown_method", hint=f"use some of {', '.join(METHODS)}"
        )
    return [name for name in chosen if name in methods_for(model)]
