"""Groups of rows: ``bayeszoo fit --by COLUMN`` and ``bayeszoo contrasts``."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lazy_loader

from bayeszoo.cli import options as opt
from bayeszoo.cli import saved, terminal
from bayeszoo.cli.answers import ANSWER, AnswerOptions
from bayeszoo.comparison.best import best_of_many
from bayeszoo.comparison.by import contrasts, failures_by_group, fit_parts, parts_of
from bayeszoo.comparison.hierarchy_contrasts import is_of_groups
from bayeszoo.comparison.levels import is_of_levels
from bayeszoo.data.table.table import escaped
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.foundation.named import Document
from bayeszoo.foundation.process import signals
from bayeszoo.model.incomplete import Incomplete, naming_impute
from bayeszoo.plots.groups import plot_groups
from bayeszoo.report.groups import about_best, best_rows, contrast_rows, decision_rows, estimates_by_group
from bayeszoo.results import files
from bayeszoo.results.stored import Fit, fits_of
from bayeszoo.results.summary import document

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bayeszoo.model.base import Model
else:
    pd = lazy_loader.load("pandas")

MOST_SAVED = 100
"""Groups that go into one file, whose reading takes some 0.2 s a group."""
MOST_IN_FULL = 10
"""Groups up to which a file holds all groups of ArviZ; files of more groups hold those that bz.extend needs."""


def fit_groups(
    model: type[Model],
    data: str | None,
    by: str,
    method: str,
    prior: opt.PriorOptions,
    table: opt.TableOptions,
    shown: AnswerOptions,
    **options: Any,
) -> int:
    """Fit every group of rows, save the fits in one file, and print the estimates and the contrasts."""
    if (output := shown.output) is not None:
        files.probe(output, shown.overwrite)
    with naming_impute(model):
        whole, parts = parts_of(model, data, by, **table.of_reading())
    if output is not None and len(parts) > MOST_SAVED:
        raise InputError(
            f"{len(parts)} groups are too many for one file",
            "too_large",
            hint=f"leave out -o: it saves up to {MOST_SAVED}",
        )
    terminal.notes(whole.notes)
    with closing(terminal.TerminalReporter()) as reporter, signals.saving():
        groups = () if output is None or len(parts) > MOST_IN_FULL else None
        if isinstance(whole, Incomplete):
            prior_model = prior.model(model, whole.sample, whole.which)
        else:
            prior_model = prior.model(model, whole)
        tree = fit_parts(prior_model, parts, by, method, reporter=reporter, groups=groups, **options)
        signals.answer()
        drawn = "" if options.get("seed") is not None else f" --seed {tree.attrs['seed']}"
        for fit in fits_of(tree).values():
            fit.tree.attrs |= {"command": terminal.typed(data, output) + drawn, "prior": prior.prior}
        write = saved.at_once(partial(saved.fitted, tree, output, shown.overwrite))
    _answer(tree, contrasts(tree), best_of_many(tree), shown, saved=write)
    code = terminal.verdict(list(fits_of(tree).values()))
    if tree.attrs.get("status") == "interrupted":
        return signals.exit_code()
    return NumericalError.exit_code if "failures" in tree.attrs else code


def contrasts_command(
    fit_file: opt.FitFile,
    /,
    *,
    against: str | None = None,
    rope: float | None = None,
    lowest: bool = False,
    plot: Path | None = None,
    shown: AnswerOptions = ANSWER,
) -> int:
    """Compare groups pairwise: of a fit saved with --by, of a hierarchical model, or levels of a regression.

    Also print the expected loss of each choice and, of three or more groups, the best: if higher is better, or with
    --lowest if lower is.

    Parameters
    ----------
    against
        The reference group or level; by default all pairs are compared, of more than five groups each with one.
    rope
        The least difference that matters: print the probabilities that the difference is above it, and below minus it.
    lowest
        Lower is better, as of costs.
    plot
        Draw the estimates of the groups and their differences here (.png, .svg or .pdf).
    """
    tree = shown.load(fit_file, plot)
    frame = contrasts(tree, against, rope=rope)
    best = best_of_many(tree, rope, lowest=lowest)
    whole = pd.concat([frame, best], ignore_index=True) if len(best) else frame
    write = partial(saved.write, whole, shown.output, shown.overwrite)
    draw = shown.drawn(lambda: plot_groups(tree, against=against), plot)
    _answer(tree, frame, best, shown, decides=True, rope=rope, lowest=lowest, saved=write, plot=draw)
    return terminal.verdict([Fit(tree)] if _is_alone(tree) else list(fits_of(tree).values()))


def _is_alone(tree: xr.DataTree) -> bool:
    """Return whether the contrasts are within one fit."""
    return is_of_groups(tree) or is_of_levels(tree)


def _answer(
    tree: xr.DataTree,
    frame: pd.DataFrame,
    best: pd.DataFrame,
    shown: AnswerOptions,
    *,
    decides: bool = False,
    rope: float | None = None,
    lowest: bool = False,
    **writers: saved.Writer,
) -> None:
    """Print the estimates of all groups and their contrasts, as tables or as one JSON document, and write the files."""

    def whole(written: saved.Written) -> Document:
        if _is_alone(tree):
            about = {**saved.about(tree), **{str(name): value for name, value in frame.attrs.items()}}
        else:
            documents = {label: document(fit) for label, fit in fits_of(tree).items()}
            about = {"by": str(tree.attrs["by"]), "groups": documents, "errors": failures_by_group(tree)}
            about["withheld"] = frame.attrs["withheld"]
        of_best = {"best": best.to_dict("records")} if len(best) else {}
        return {**about, "contrasts": frame.to_dict("records"), **of_best, **written}

    def show() -> None:
        if _is_alone(tree):
            _show_title_within(Fit(tree), frame)
        else:
            _show_estimates(tree, frame, shown.digits)
        _show_best(best, frame, rope)
        _show_contrasts(frame)
        if _is_alone(tree):
            saved.show_judged(frame)
        if decides:
            _show_decisions(frame, rope, lowest)

    saved.deliver(show, whole, shown.as_json, **writers)


def _show_decisions(frame: pd.DataFrame, rope: float | None, lowest: bool) -> None:
    """Print the expected loss of each choice, and the probabilities of differences that matter."""
    heads, rows = decision_rows(frame.head(saved.MAX_ROWS), rope, lowest=lowest)
    if rows:
        better = "lower" if lowest else "higher"
        title = (
            f"expected loss of each choice if {better} is better: the mean amount by which the other group is {better}"
        )
        alone = frame["quantity"].nunique() == 1
        terminal.show_table(heads[alone:], [row[alone:] for row in rows], title, ["groups", "choose"])


def _show_title_within(fit: Fit, frame: pd.DataFrame) -> None:
    """Print the title of contrasts within one fit, computed from its joint draws, and what they are against."""
    terminal.notes(f"{line}; --against takes another" for line in frame.attrs["notes"])
    terminal.out().print(escaped(saved.title(saved.about(fit.tree))))


def _show_estimates(tree: xr.DataTree, frame: pd.DataFrame, digits: int | None) -> None:
    """Print a row for each quantity and group, and what has no contrast."""
    first, by = next(iter(fits_of(tree).values())), str(tree.attrs["by"])
    title = f"{first.model}, {first.method}, each {by} separately, seed {first.tree.attrs['seed']}"
    columns, rows = estimates_by_group(tree, digits)
    terminal.show_table(columns, rows[: saved.MAX_ROWS], title=title, words=[by], spare=("mcse_mean", "median"))
    saved.note_more(len(rows), "estimates")
    for line in frame.attrs["withheld"]:
        terminal.note(f"withheld: {line}")


def _show_best(best: pd.DataFrame, frame: pd.DataFrame, rope: float | None) -> None:
    """Print for each of three or more groups the probability that it is the best, and its expected loss."""
    if len(best):
        heads, rows = best_rows(best.head(saved.MAX_ROWS), rope)
        alone = best["quantity"].nunique() == 1
        listed, spare = [row[alone:] for row in rows], ["95%", "difference"]
        terminal.show_table(heads[alone:], listed, about_best(best), ["group"], spare)
        saved.note_more(len(best), "groups")
    more = [line for line in best.attrs.get("withheld", []) if line not in frame.attrs["withheld"]]
    best.attrs["withheld"] = more
    saved.show_judged(best)


def _show_contrasts(frame: pd.DataFrame) -> None:
    """Print a row for each contrast."""
    if len(frame):
        alone = frame["quantity"].nunique() == 1
        title = f"contrasts of {escaped(frame['quantity'].iloc[0])}" if alone else "contrasts"
        title += f", in the {frame.attrs['of']}" if "of" in frame.attrs else ""
        heads, rows = contrast_rows(frame.head(saved.MAX_ROWS))
        spare = ["ratio", "difference"]
        terminal.show_table(heads[alone:], [row[alone:] for row in rows], title, ["groups"], spare)
        saved.note_more(len(frame), "contrasts")
