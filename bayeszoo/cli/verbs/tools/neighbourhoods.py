"""Answers from distances of rows, and from links: ``bayeszoo density``, ``knn``, ``kmeans`` and ``pagerank``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from bayeszoo.answers.latent.assign import assign
from bayeszoo.cli import options as opt
from bayeszoo.cli import saved, terminal
from bayeszoo.cli.answers import ANSWER, AnswerOptions, Show, about_answer, of_data
from bayeszoo.data.table.read import read_table
from bayeszoo.data.table.table import to_reals
from bayeszoo.foundation.named import Document
from bayeszoo.plots.neighbourhoods import plot_density, plot_neighbours
from bayeszoo.report.text.numbers import number, statistic
from bayeszoo.tools.neighbourhoods.density import ABOUT, Densities, density
from bayeszoo.tools.neighbourhoods.kmeans import kmeans
from bayeszoo.tools.neighbourhoods.neighbours import PSEUDO, Neighbours, knn
from bayeszoo.tools.neighbourhoods.pagerank import pagerank

if TYPE_CHECKING:
    import pandas as pd

_New = Annotated[Path | None, Parameter(help="Table of new rows, which are classified.")]
_Plot = Annotated[Path | None, Parameter(help="Draw the answer here (.png, .svg or .pdf).")]


def density_command(
    data: opt.TableFile,
    /,
    *,
    standardize: bool | None = None,
    new: _New = None,
    plot: _Plot = None,
    shown: AnswerOptions = ANSWER,
    table: opt.TableOptions = opt.TABLE,
) -> None:
    """Estimate a density and its bandwidth by Parzen windows; with a column of classes (--class) one for each class.

    Parameters
    ----------
    standardize
        Whether columns are divided by their standard deviations; by default several columns are.
    """
    shown.probe(plot)
    answer = density(data, standardize=standardize, **table.of_reading())
    whole = about_answer(answer, "kind", *["errors"] * ("class" in answer.data), about=ABOUT)
    _answer(shown, answer, whole, _show_density, new=new, plot=shown.drawn(lambda: plot_density(answer), plot))


def _answer(
    shown: AnswerOptions,
    answer: Densities | Neighbours,
    whole: Document,
    show: Show,
    *,
    new: Path | None,
    plot: saved.Writer,
) -> None:
    """Print the notes of the data, then the classes of new rows, or the summary where there are no new rows."""
    terminal.notes(answer.data.notes)
    if new is None:
        shown.answer(answer.summary, whole, show, plot=plot)
    else:
        shown.answer(answer.classify(new), whole, _show_classes, plot=plot)


def _show_density(frame: pd.DataFrame, whole: Document, digits: int | None) -> None:
    """Print the bandwidths."""
    saved.show_rows(frame, f"Parzen windows, {of_data(whole['data'])}", spare=("median", "pseudo_sd"), digits=digits)
    console = terminal.out()
    console.print("bandwidth: maximizes the leave-one-out density; score: the log of this density, in nats")
    if "errors" in whole:
        console.print(f"{whole['errors']} of {whole['data']['rows']} rows are classified wrongly by the other rows")
    console.print(f"pseudo_mean, pseudo_sd and quantiles: {whole['about']}")


def knn_command(
    data: opt.TableFile,
    /,
    *,
    most: opt.AtLeast1 = 100,
    standardize: bool = True,
    new: _New = None,
    plot: _Plot = None,
    shown: AnswerOptions = ANSWER,
    table: opt.TableOptions = opt.TABLE,
) -> None:
    """Classify by nearest neighbours, averaged over their number and weight (Holmes and Adams).

    Parameters
    ----------
    most
        Largest number of neighbours.
    standardize
        Whether features are divided by their standard deviations first.
    """
    shown.probe(plot)
    answer = knn(data, most=most, standardize=standardize, **table.of_reading())
    whole = about_answer(answer, "kind", about=PSEUDO)
    _answer(shown, answer, whole, _show_knn, new=new, plot=shown.drawn(lambda: plot_neighbours(answer), plot))


def _show_knn(frame: pd.DataFrame, whole: Document, digits: int | None) -> None:
    """Print k and beta."""
    saved.show_rows(frame, f"nearest neighbours, {of_data(whole['data'])}", digits=digits)
    terminal.out().print(whole["about"])


def _show_classes(frame: pd.DataFrame, whole: Document, digits: int | None) -> None:
    """Print the class probabilities of new rows."""
    saved.show_rows(frame, f"classes of new rows, by {of_data(whole['data'])}", words=["decision"], digits=digits)
    terminal.out().print(whole["about"])


def kmeans_command(
    data: opt.TableFile,
    /,
    *,
    components: Annotated[int | None, Parameter(name=("--components", "-K"))] = None,
    sequential: opt.Flag = False,
    against: Annotated[Path | None, Parameter(help="A saved fit of a mixture of the same rows.")] = None,
    seed: opt.DrawnSeed = None,
    shown: AnswerOptions = ANSWER,
    table: opt.TableOptions = opt.TABLE,
) -> None:
    """Put rows into K clusters by k-means, and count the rows that a mixture puts into another cluster.

    Parameters
    ----------
    components
        Number of clusters; by default that of components of the fit, and 2 without one.
    sequential
        Take each row once, in the order of the table.
    """
    shown.probe()
    assigned = None if against is None else assign(saved.load(against))
    if components is None:
        components = 2 if assigned is None else sum(str(name).startswith("p[") for name in assigned)
    answer = kmeans(data, components, sequential=sequential, seed=seed, **table.of_reading())
    terminal.notes(answer.data.notes)
    whole = about_answer(answer, "objective", "seed", kind="baseline")
    frame = answer.summary
    if assigned is not None:
        whole |= {"apart": answer.apart(assigned), "compared": int(assigned["component"].notna().sum())}
        frame.attrs |= {name: assigned.attrs[name] for name in ("withheld", "judged") if name in assigned.attrs}
    shown.answer(frame, whole, _show_clusters)


def _show_clusters(frame: pd.DataFrame, whole: Document, digits: int | None) -> None:
    """Print the centres."""
    centres = frame.assign(
        **{name: [statistic("mean", x, None, digits) for x in frame[name]] for name in frame.columns[1:]}
    )
    saved.show_rows(centres, f"k-means, {of_data(whole['data'])}", "clusters", digits=digits)
    console = terminal.out()
    console.print(f"sum of squared distances {number(whole['objective'], digits or 6)}; no density, and no evidence")
    if "apart" in whole:
        console.print(f"the fit puts {whole['apart']} of {whole['compared']} rows into another cluster")


def pagerank_command(
    edges: Annotated[Path, Parameter(help="Table with columns source, target and, if links differ, weight.")],
    /,
    *,
    damping: float = 0.85,
    start: Annotated[Path | None, Parameter(help="Ranks to begin with, a table that -o wrote.")] = None,
    shown: AnswerOptions = ANSWER,
) -> None:
    """Rank the nodes of a directed graph by PageRank.

    Parameters
    ----------
    damping
        Probability that the surfer follows a link.
    """
    shown.probe()
    frame = pagerank(edges, damping, start=None if start is None else _ranks_of(start))
    shown.answer(frame, {"kind": "exact to 1e-12", "damping": damping, "source": str(edges)}, _show_ranks)


def _ranks_of(path: Path) -> dict[str, float]:
    """Read the ranks that an earlier command wrote."""
    table = read_table(path)
    return dict(zip(map(str, table["node"].values), to_reals(table["rank"]).tolist(), strict=True))


def _show_ranks(frame: pd.DataFrame, whole: Document, digits: int | None) -> None:
    """Print the nodes of highest rank."""
    saved.show_rows(frame, f"PageRank, damping {whole['damping']:g}", "nodes", digits=digits)
    steps = whole["steps"]
    terminal.out().print(f"converged after {steps} step{'s' * (steps != 1)}" if steps else "solved by elimination")
