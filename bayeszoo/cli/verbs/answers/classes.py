"""Decisions between classes: ``bayeszoo classify`` and ``svm``."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from cyclopts import Parameter

from bayeszoo.answers.classes.classify import WITHHELD, classify
from bayeszoo.answers.classes.explain import explain as explained
from bayeszoo.answers.classes.scores import calibration, confusion
from bayeszoo.cli import options as opt
from bayeszoo.cli import saved, terminal
from bayeszoo.cli.answers import ANSWER, AnswerOptions, about_answer, of_data
from bayeszoo.cli.groups import by_group
from bayeszoo.data.read import Data
from bayeszoo.data.table.table import escaped, listed
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Document
from bayeszoo.plots.families.classes import plot_classes
from bayeszoo.report.families.classes import (
    ABOUT_PLUGGED_IN,
    MOST_CLASSES,
    SMALLEST_ERROR,
    about_rows,
    calibration_rows,
    confusion_rows,
    score_rows,
)
from bayeszoo.report.text.numbers import estimate, number
from bayeszoo.results.stored import Fit
from bayeszoo.tools.svm import svm

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


@Parameter(name="*")
@dataclass(frozen=True)
class DecisionOptions:
    """How a class is chosen.

    Parameters
    ----------
    loss
        Loss matrix, as JSON: a row for each true class, a number for each decision; 0 and 1 by default.
    reject
        Loss of a rejection; rows whose least expected loss is larger are rejected.
    leave_one_out
        Classify each row of the fit given all other rows; rows whose k-hat is too high are withheld.
    density
        Also print the log density of each row's features, summed over classes (generative classifiers).
    """

    loss: str | None = None
    reject: float | None = None
    leave_one_out: opt.Flag = False
    density: opt.Flag = False

    def decide(self, tree: xr.DataTree, new: Data | None) -> pd.DataFrame:
        """Classify the rows of a fit, or new rows."""
        return classify(tree, new, **{**asdict(self), "loss": _matrix(self.loss)})


DECISIONS = DecisionOptions()


@by_group
def classify_command(
    fit_file: opt.FitFile,
    data: opt.NewFile = None,
    /,
    *,
    decisions: DecisionOptions = DECISIONS,
    explain: opt.AtLeast1 | None = None,
    plot: Path | None = None,
    append: opt.Flag = False,
    shown: AnswerOptions = ANSWER,
    table: opt.TableOptions = opt.TABLE,
) -> None:
    """Choose a class for each row by expected loss, from a saved fit of a classifier; score known outcomes.

    Parameters
    ----------
    data
        Table of new rows, with or without their outcome; without it the rows of the fit.
    explain
        Print the log odds that each feature gives to the class of this row instead; rows count from 1 (naive_bayes).
    plot
        Where outcomes are known, draw calibration and the ROC curve here (.png, .svg or .pdf).
    append
        Write to -o the table itself, with the decisions after its own columns.
    """
    shown.require_append(append, data)
    if append and isinstance(data, Data):
        raise InputError("--append needs a single fit", "one_group_only", hint="leave it out: -o has all groups")
    tree = shown.load(fit_file, plot)
    new = saved.new_rows(Fit(tree), data, table)
    if explain is not None:
        table_of_row = explained(tree, new, row=explain)
        return shown.answer(table_of_row, saved.about(tree), _show_explained, table_of_row)
    frame = decisions.decide(tree, new)
    in_full = frame
    if append and data is not None and new is not None and shown.output is not None:
        in_full = saved.appended(frame, data, table, [new], shown.output)
    whole = saved.about(tree)
    if "trials" in frame.attrs:
        whole |= {"confusion": confusion(frame).to_dict("index"), "calibration": saved.records(calibration(frame))}
    shown.answer(frame, whole, _show, in_full, plot=shown.drawn(lambda: plot_classes(frame), plot))


def _show_explained(frame: pd.DataFrame, whole: Document, digits: int | None) -> None:
    """Print the log odds of each feature, and their sum."""
    saved.show_rows(frame, saved.title(whole), spare=("log_density",), words=["value"], digits=digits)
    decision, against, total = (frame.attrs[name] for name in ("decision", "against", "log_odds"))
    terminal.out().print(
        f"Log odds of {decision} against {against}, the sum: {number(total, digits or 5)} nats; "
        f"probability of {decision}: {number(frame.attrs['p'], digits or 5)}."
    )


def _matrix(loss: str | None) -> Any:
    if loss is None:
        return None
    try:
        return json.loads(loss)
    except (ValueError, RecursionError):
        raise InputError(f"--loss {loss} is not JSON", "wrong_type", hint='write "[[0,1],[5,0]]"') from None


def _show(frame: pd.DataFrame, whole: Document, digits: int | None) -> None:
    """Print the scores, then the decisions, and mark those within Monte Carlo error of a tie."""
    is_open = ~frame["settled"] & (frame["decision"] != WITHHELD)
    console, open_rows = terminal.out(), frame.index[is_open] - 1
    console.print(escaped(saved.title(whole)))
    decided = frame["decision"] + np.where(is_open, " ?", "")
    zero = whole["classes"][0]
    first = [f"p[{zero}]", f"mcse[{zero}]"] * (len(whole["classes"]) == 2)  # of two classes the second has both
    is_short = len(whole["classes"]) <= MOST_CLASSES
    probabilities = [] if is_short else [name for name in map(str, frame) if name.startswith(("p[", "mcse["))]
    shown = frame.assign(decision=decided).drop(columns=["settled", *first, *probabilities])
    if whole["kind"] == "exact":
        shown = shown.drop(
            columns=[name for name in map(str, shown) if "mcse" in name and (shown[name] < SMALLEST_ERROR).all()]
        )
    if "trials" in whole:
        _show_scores(frame, whole, digits, is_short)
    words = ["decision", "observed"]
    saved.show_rows(
        shown,
        "decisions" if "trials" in whole else None,
        spare=("brier", "log_score", "p["),
        words=words,
        digits=digits,
    )
    if len(open_rows):
        console.print(f"Not settled within the Monte Carlo error (?): {listed(open_rows.to_numpy())}.")
    if not is_short:
        console.print(f"Probabilities of {len(whole['classes'])} classes, and ROC areas: --json or -o.")
    terminal.show_each(about_rows(whole, len(frame)))
    if whole["kind"] == "point estimate":
        console.print(ABOUT_PLUGGED_IN)


def _show_scores(frame: pd.DataFrame, whole: Document, digits: int | None, is_short: bool) -> None:
    """Print the scores; of few classes also the confusion matrix, the ROC areas and the calibration of each."""
    if not is_short:
        terminal.show_table(*score_rows({**whole, "auc": {}}, digits))
        return
    terminal.show_table(*score_rows(whole, digits))
    terminal.show_table(*confusion_rows(confusion(frame)), title="true classes by decision")
    columns, rows_of = calibration_rows(calibration(frame), digits)
    terminal.show_table(columns, rows_of, title="probabilities, and frequencies of the class")


def svm_command(
    data: opt.TableFile,
    /,
    *,
    tau: float = 1.0,
    standardize: bool = True,
    draws: int = 1000,
    thin: opt.AtLeast1 = 10,
    seed: opt.DrawnSeed = None,
    shown: AnswerOptions = ANSWER,
    table: opt.TableOptions = opt.TABLE,
) -> None:
    """Sample the pseudo-posterior of a linear support vector machine, and find its mode.

    Parameters
    ----------
    tau
        Prior standard deviation of the weights; scikit-learn's C is 2 tau^2.
    standardize
        Whether features are divided by their standard deviations first.
    draws
        Of each of four chains.
    thin
        Sweeps of the sampler a draw.
    """
    shown.probe()
    answer = svm(data, tau, standardize=standardize, draws=draws, thin=thin, seed=seed, **table.of_reading())
    terminal.notes(answer.data.notes)
    names = ("kind", "tau", "objective", "gap", "errors", "support", "seed", "notes")
    whole = about_answer(answer, *names)
    shown.answer(answer.summary, whole, _show_svm)


def _show_svm(frame: pd.DataFrame, whole: Document, digits: int | None) -> None:
    """Print the mode and the pseudo-posterior of each weight, and what a pseudo-posterior is not."""
    title = f"support vector machine, pseudo-posterior: tau {whole['tau']:g}, C {2 * whole['tau'] ** 2:g}"
    columns = ["weight", "mode", "mean", "sd", "2.5%", "median", "97.5%", "R-hat"]
    rows = []
    for name, row in frame.head(saved.MAX_ROWS).iterrows():
        sampled = [estimate(row[key], row[f"mcse_{key}"], digits) for key in ("mean", "sd", "q025", "median", "q975")]
        rows.append([str(name), number(row["mode"], digits or 5), *sampled, number(row["r_hat"], 4)])
    terminal.show_table(columns, rows, [title, f"{of_data(whole['data'])}, seed {whole['seed']}"], spare=("R-hat",))
    saved.note_more(len(frame), "weights")
    count, console = whole["data"]["rows"], terminal.out()
    console.print(f"objective {whole['objective']:.7g} at the mode, the minimum by duality")
    console.print(f"{whole['errors']} of {count} rows on the wrong side, {whole['support']} on or inside the margin")
    terminal.show_each(whole["notes"])
