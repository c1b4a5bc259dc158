"""Groups of a hierarchy: ``bayeszoo groups``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bayeszoo.answers.group_estimates import group_estimates
from bayeszoo.cli import options as opt
from bayeszoo.cli import saved, terminal
from bayeszoo.cli.answers import ANSWER, AnswerOptions
from bayeszoo.cli.groups import by_group
from bayeszoo.foundation.named import Document
from bayeszoo.plots.families.pooling import plot_pooling
from bayeszoo.report.families.pooling import (
    ABOUT_RANKS,
    about_estimates,
    fully_pooled,
    highest_first,
    pooling_rows,
    rank_rows,
)

if TYPE_CHECKING:
    import pandas as pd


@by_group
def groups_command(
    fit_file: opt.FitFile,
    /,
    *,
    top: opt.AtLeast1 = saved.MAX_ROWS,
    plot: Path | None = None,
    shown: AnswerOptions = ANSWER,
) -> None:
    """Estimate and rank the groups of a hierarchical model: raw, partially pooled and fully pooled.

    Parameters
    ----------
    top
        Number of groups printed, the highest first; -o and --json have all groups, in the order of the data.
    plot
        Draw the estimates against how well each group is known (.png, .svg or .pdf).
    """
    tree = shown.load(fit_file, plot)
    frame = group_estimates(tree)

    def show(frame: pd.DataFrame, whole: Document, digits: int | None) -> None:
        _show(highest_first(frame).head(top), len(frame), whole, digits)

    shown.answer(frame, saved.about(tree), show, plot=shown.drawn(lambda: plot_pooling(tree), plot))


def _show(shown: pd.DataFrame, total: int, whole: Document, digits: int | None) -> None:
    """Print a row a group of its estimates, and one of its ranks."""
    console, is_point = terminal.out(), whole["kind"] == "point estimate"
    columns, rows = pooling_rows(shown, digits)
    terminal.show_table(
        columns, rows, f"{saved.title(whole)}: {whole['quantity']}", spare=("sd",), whole="-o or --json"
    )
    if not is_point:
        columns, rows = rank_rows(shown)
        terminal.show_table(columns, rows, f"ranks among {total} groups", whole="-o or --json")
    console.print(f"Fully pooled: {fully_pooled(shown, digits)}")
    terminal.show_each([*about_estimates(shown), *[ABOUT_RANKS] * (not is_point)])
    saved.show_judged(shown)
    if len(shown) < total:
        console.print(f"The {len(shown)} highest of {total} groups; all of them: --json or -o.")
