"""Quantities of a mixture that do not depend on labels: ``bayeszoo clusters``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from bayeszoo.answers.latent.clusters import Clusters, clusters, row_density
from bayeszoo.cli import options as opt
from bayeszoo.cli import saved, terminal
from bayeszoo.cli.answers import ANSWER, AnswerOptions
from bayeszoo.foundation.named import Document
from bayeszoo.plots.clusters import plot_clusters
from bayeszoo.report.families.profile import of_clusters
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import pandas as pd

_Plot = Annotated[Path | None, Parameter(help="Draw density and pairs of rows here (.png, .svg or .pdf).")]
SHOWN = 10
"""Rows most probably alone that are printed."""


def clusters_command(
    fit_file: opt.FitFile,
    density: opt.NewFile = None,
    /,
    *,
    plot: _Plot = None,
    shown: AnswerOptions = ANSWER,
    table: opt.TableOptions = opt.TABLE,
) -> None:
    """Estimate the number of clusters of a mixture, the groups of rows, and the rows that are alone.

    Parameters
    ----------
    density
        Table of places: print instead the density of a row there, with its 95% interval.
    """
    tree = shown.load(fit_file, plot)
    draw = shown.drawn(lambda: plot_clusters(tree), plot)
    if density is not None:
        frame = row_density(tree, saved.new_rows(Fit(tree), density, table))
        shown.answer(frame, saved.about(tree), _show_density, plot=draw)
        return
    answer = clusters(tree)
    number = answer.number.reset_index().to_dict("records")
    shown.answer(
        answer.rows, saved.about(tree) | {"number_of_clusters": number}, partial(_show_clusters, answer), plot=draw
    )


def _show_clusters(answer: Clusters, frame: pd.DataFrame, whole: Document, digits: int | None) -> None:
    """Print the number of clusters, the groups, and the rows that are most probably alone."""
    console = terminal.out()
    console.print(saved.title(whole, saved.kind_of(frame, whole["kind"])))
    for profile in of_clusters(answer, digits):
        terminal.show_profile(*profile)
    alone = frame.sort_values("alone", ascending=False, kind="stable").head(SHOWN)
    alone.attrs = {}  # the profile names what is withheld
    alone = alone.drop(columns=["alike", "withheld"], errors="ignore")
    saved.show_rows(alone, "the rows most probably alone", digits=digits)
    console.print("the number of clusters of a mixture does not estimate the number of groups in nature")
    console.print("alone: probability that no other row is in the row's cluster (an outlier)")


def _show_density(frame: pd.DataFrame, whole: Document, digits: int | None) -> None:
    """Print the densities."""
    saved.show_rows(frame, saved.title(whole), "places", digits=digits)
    has_interval = frame["q025"].notna().any()
    quantiles = "; quantiles: of the density over the draws" if has_interval else ""
    terminal.out().print(f"density: of a new row, per unit of each column{quantiles}")
