"""Features that depend on each other along a tree: ``bayeszoo trees`` and ``complete``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bayeszoo.answers.latent.complete import complete
from bayeszoo.cli import options as opt
from bayeszoo.cli import saved, terminal
from bayeszoo.cli.answers import ANSWER, AnswerOptions, about_answer, of_data
from bayeszoo.cli.groups import by_group
from bayeszoo.foundation.named import Document
from bayeszoo.report.text.numbers import number
from bayeszoo.results.stored import Fit
from bayeszoo.tools.trees import trees

if TYPE_CHECKING:
    import pandas as pd

_EVIDENCES = {
    "all trees": "log_evidence",
    "the most probable tree": "log_evidence_of_tree",
    "independent features": "log_evidence_independent",
    "a table of all combinations": "log_evidence_saturated",
}


def trees_command(
    data: opt.TableFile,
    /,
    *,
    alpha: float = 1.0,
    shown: AnswerOptions = ANSWER,
    table: opt.TableOptions = opt.TABLE,
) -> None:
    """Sum over all trees of features that are levels: the probability of each edge, and the evidence; exact.

    Parameters
    ----------
    alpha
        Equivalent sample size of the prior of the tables, > 0.
    """
    shown.probe()
    answer = trees(data, alpha=alpha, **table.of_reading())
    terminal.notes(answer.data.notes)
    names = ("tree", "tree_probability", *_EVIDENCES.values())
    whole = about_answer(answer, *names, kind="exact", alpha=alpha)
    shown.answer(answer.summary, whole, _show)


def _show(frame: pd.DataFrame, whole: Document, digits: int | None) -> None:
    """Print the pairs of features, and the evidences."""
    title = [f"edges of trees of features, exact, alpha {whole['alpha']:g}", of_data(whole["data"])]
    listed = frame.head(saved.MAX_ROWS)
    rows = [
        [str(pair.feature), str(pair.feature_2), pair.probability, pair.log_bayes_factor, "yes" * bool(pair.is_in_tree)]
        for pair in listed.reset_index().itertuples()
    ]
    columns = ["feature", "feature 2", "probability", "log Bayes factor", "in the most probable tree"]
    words = ("feature", "feature 2", "in the most probable tree")
    terminal.show_table(columns, rows, title, words=words, digits=digits)
    saved.note_more(len(frame), "pairs")
    evidences = [[name, number(whole[key], digits or 8)] for name, key in _EVIDENCES.items()]
    terminal.show_table(["log evidence of", "nats"], evidences)
    terminal.out().print(f"the most probable tree has probability {number(whole['tree_probability'], digits or 5)}")
    if whole["log_evidence_saturated"] > whole["log_evidence"]:
        line = "a tree is not enough: the table of all combinations has the higher evidence"
        terminal.out().print(line)


@by_group
def complete_command(
    fit_file: opt.FitFile,
    data: opt.NewFile = None,
    /,
    *,
    shown: AnswerOptions = ANSWER,
    table: opt.TableOptions = opt.TABLE,
) -> None:
    """Give the probability of each level of missing cells, from the other cells of the row, by a fit of tree_network.

    Parameters
    ----------
    data
        Table of rows with empty cells, which are kept (--missing mask).
    """
    tree = saved.load(fit_file)
    may_mask = data is not None and "mask" in Fit(tree).model.inputs.treatments
    masked = replace(table, missing="mask") if table.missing == "refuse" and may_mask else table
    shown.answer_rows(complete, tree, data, masked, _show_levels)


def _show_levels(frame: pd.DataFrame, whole: Document, digits: int | None) -> None:
    """Print the first rows."""
    saved.show_rows(frame, saved.title(whole), words=["feature", "level"], digits=digits)
    terminal.out().print("is_in_completion: whether the level is in the most probable completion of the whole row")
