"""Fits and baselines by their errors on rows held out: ``bayeszoo compare --held-out`` and ``--baselines``."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cyclopts import Parameter

from bayeszoo.answers.latent.assign import assign
from bayeszoo.cli import options as opt
from bayeszoo.cli import terminal
from bayeszoo.cli.answers import AnswerOptions
from bayeszoo.comparison.compare import names_of
from bayeszoo.comparison.held_out_rows import held_out_error
from bayeszoo.data.inputs.labels import names_listed
from bayeszoo.data.read import Data
from bayeszoo.data.table.table import escaped
from bayeszoo.errors import InputError, NumericalError, Untrustworthy
from bayeszoo.foundation.named import Document
from bayeszoo.model.base import Model, fields_of
from bayeszoo.model.capabilities import Classifies, Latent
from bayeszoo.report.families.classes import SMALLEST_ERROR
from bayeszoo.report.text.numbers import estimate, number
from bayeszoo.results.stored import Fit
from bayeszoo.tools.neighbourhoods.kmeans import kmeans

if TYPE_CHECKING:
    import pandas as pd

KMEANS = "kmeans"
_ERROR = {True: "share of trials decided wrongly", False: "root mean squared error of the predictive mean"}
_ABOUT = """\
error: {}; se: its standard error.
log score: mean log predictive density of a trial, in nats. baseline: scikit-learn's, with
its defaults; it has no density, and is judged by the error alone."""
_ABOUT_ERROR = "MC error: Monte Carlo error of the log score, at most."


@Parameter(name="*")
@dataclass(frozen=True)
class HeldOut:
    """Which rows are held out, and which baselines are scored on them.

    Parameters
    ----------
    held_out
        Share of rows held out; the fits (regressions or classifiers) are compared by their error on these rows.
    folds
        Instead of --held-out: number of folds, each of which is held out once.
    baselines
        Comma-separated scikit-learn baselines, scored on the same rows: tree, forest, gradient_boosting, neighbours; of
        classes also svc, perceptron, boosting. kmeans: without rows held out, next to a mixture.
    """

    held_out: float | None = None
    folds: int | None = None
    baselines: str | None = None

    @property
    def is_asked(self) -> bool:
        """Whether rows are held out."""
        return not self.clusters and any(each is not None for each in (self.held_out, self.folds, self.baselines))

    @property
    def clusters(self) -> bool:
        """Whether k-means is the baseline, which needs no rows held out."""
        return self.baselines == KMEANS and self.held_out is None and self.folds is None


NOT_HELD_OUT = HeldOut()
"""Options with their defaults."""


def require_components(model: Model, rows: Data) -> None:
    """Refuse k-means next to a model without components of rows of numbers."""
    if not isinstance(model, Latent) or "K" not in fields_of(model) or "Y" not in rows:
        hint = "take gaussian_mixture, or one of the other baselines with --held-out"
        raise InputError(f"{model.name} has no k-means next to it", "unknown_method", hint=hint)


def beside_clusters(model: Model, rows: Data, fits: Sequence[Fit], seed: int | None) -> Document:
    """Return the objective of k-means with K clusters, and how many rows each fit puts into another cluster."""
    answer = kmeans(rows["Y"], int(fields_of(model)["K"]), seed=seed)
    apart: dict[str, int | None] = {}
    compared = dict[str, int]()
    for name, fit in zip(names_of(fits), fits, strict=True):
        try:
            assigned = assign(fit.tree)
            apart[name], compared[name] = answer.apart(assigned), int(assigned["component"].notna().sum())
        except (InputError, Untrustworthy):  # its components are withheld
            apart[name], compared[name] = None, 0
    return {"objective": answer.objective, "rows": len(answer.labels), "apart": apart, "compared": compared}


def show_clusters(clusters: Document, digits: int | None) -> None:
    """Print the objective of k-means, and how many rows each fit puts into another cluster."""
    console = terminal.out()
    console.print(f"k-means: sum of squared distances {number(clusters['objective'], digits or 6)}")
    for name, count in clusters["apart"].items():
        compared = clusters["compared"][name]
        difference = f"{count} of {compared} rows in another cluster" if compared else "its components are withheld"
        withheld = clusters["rows"] - compared if compared else 0
        console.print(f"{escaped(name)}: {difference}{f', and {withheld} withheld' * bool(withheld)}")


def compare_held_out(
    kind: type[Model],
    rows: Data,
    options: HeldOut,
    methods: list[str] | None,
    prior: opt.PriorOptions,
    seed: int | None,
    shown: AnswerOptions,
) -> int:
    """Print errors on rows held out; return the exit code, 4 where a fit has no answer."""
    fields = prior.fields(kind)
    model: Model | type[Model] = kind if prior.prior == "weak" else kind(**fields)
    chosen = fields if prior.prior == "weak" else None
    if drawn := seed is None:
        seed = secrets.randbelow(2**31 - 1)
    folds, baselines = options.folds, names_listed(options.baselines)
    how: dict[str, Any] = {"share": options.held_out, "folds": folds, "baselines": baselines}
    with closing(terminal.TerminalReporter()) as reporter:
        frame = held_out_error(model, rows, **how, methods=methods, fields=chosen, seed=seed, reporter=reporter)
    if prior.prior == "weak":
        terminal.note("priors are scaled to the rows that are seen")
    whole = {"model": kind.name, "seed": seed, "is_class": issubclass(kind, Classifies)}
    if drawn and not shown.as_json:
        terminal.note(terminal.SEED_DRAWN.format(seed))
    shown.answer(frame, whole, _show)
    return NumericalError.exit_code if (frame["status"] != "ok").any() else 0


def refuse_pictures(report: Path | None, plot: Path | None) -> None:
    """Refuse a report and a picture, which show fits of all rows."""
    if report is not None or plot is not None:
        problem = "--report and --plot show fits of all rows, and rows are held out"
        raise InputError(problem, "conflicting_options", hint="-o writes the table")


def _written(row: Mapping[Any, Any], digits: int | None) -> list[str]:
    """Write error and log score to the digits of their Monte Carlo errors, the former with its standard error."""
    error, score = (
        estimate(row[name], row[f"mcse_{name}"], digits)
        if row[f"mcse_{name}"] > SMALLEST_ERROR
        else number(row[name], digits or 4)
        for name in ("error", "log_score")
    )
    of_score = row["mcse_log_score"]
    return [
        error,
        number(row["error_se"], digits or 4),
        score,
        number(of_score, 2) if of_score > SMALLEST_ERROR else "-",
    ]


def _show(frame: pd.DataFrame, whole: Document, digits: int | None) -> None:
    """Print the table, and the meaning of its columns."""
    count, rows, parts = (whole[name] for name in ("held_out", "rows", "parts"))
    how = f"{count} of {rows} rows held out" if parts == 1 else f"{rows} rows held out in {parts} folds"
    records = frame.to_dict("records")
    cells = [[row["by"], row["kind"], *_written(row, digits)] for row in records]
    title = f"{whole['model']}, {how}, seed {whole['seed']}"
    terminal.show_table(["by", "kind", "error", "se", "log score", "MC error"], cells, title)
    for row in records:
        if row["status"] != "ok":
            terminal.out().print(f"{row['by']}: {escaped(row['status'])}")
    if frame.loc[(frame["kind"] != "baseline") & (frame["status"] == "ok"), "log_score"].isna().any():
        terminal.out().print("A log score is withheld where some outcomes are too far from the draws.")
    terminal.show_lines(_ABOUT.format(_ERROR[whole["is_class"]]))
    if (frame["mcse_log_score"] > SMALLEST_ERROR).any():
        terminal.out().print(_ABOUT_ERROR)
