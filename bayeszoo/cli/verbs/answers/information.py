"""Mutual information of class and features, and the entropy of a row: ``bayeszoo information``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bayeszoo.answers.information import entropy, mutual_information
from bayeszoo.cli import options as opt
from bayeszoo.cli import saved, terminal
from bayeszoo.cli.answers import ANSWER, AnswerOptions
from bayeszoo.cli.groups import by_group
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Document
from bayeszoo.plots.families.information import plot_information
from bayeszoo.report.families.information import SPARE, about_information, information_rows
from bayeszoo.tools.information import CLASS_ENTROPY

if TYPE_CHECKING:
    import pandas as pd


@by_group
def information_command(
    fit_file: opt.FitFile,
    /,
    *,
    bits: opt.Flag = False,
    of_row: opt.Flag = False,
    top: opt.AtLeast1 = saved.MAX_ROWS,
    plot: Path | None = None,
    shown: AnswerOptions = ANSWER,
) -> None:
    """Rank features by their mutual information with the class of a saved fit, or print the entropy of a row.

    Parameters
    ----------
    bits
        Print bits in place of nats.
    of_row
        Print the entropy of a row instead, or entropy rates of Markov chains and hidden states.
    top
        Number of features printed, in order of mutual information; -o and --json have all.
    plot
        Draw the features with their intervals here (.png, .svg or .pdf).
    """
    if of_row and plot is not None:
        raise InputError("--plot draws features, and --of-row has none", "conflicting_options")
    tree = shown.load(fit_file, plot)
    if of_row:
        return shown.answer(entropy(tree, bits=bits), saved.about(tree), _show_entropy)
    frame = mutual_information(tree, bits=bits)
    draw = shown.drawn(lambda: plot_information(frame), plot)
    return shown.answer(frame, saved.about(tree), partial(_show, top), plot=draw)


def _show(top: int, frame: pd.DataFrame, whole: Document, digits: int | None) -> None:
    """Print a row a feature."""
    between = "with the class" if CLASS_ENTROPY in whole else "of columns"
    _table(frame.head(top), f"{_title(frame, whole)}: mutual information {between}", digits)
    has_plug_in = "plug_in" in frame and bool(frame["plug_in"].head(top).notna().any())
    terminal.show_each(about_information(whole, has_plug_in))
    if top < len(frame):
        terminal.out().print(f"The {top} highest of {len(frame)} features; all of them: --json or -o.")


def _show_entropy(frame: pd.DataFrame, whole: Document, digits: int | None) -> None:
    """Print the entropy of a row."""
    _table(frame, f"{_title(frame, whole)}: entropy of a row", digits)
    of_numbers = "The entropy of numbers is differential: it may be negative, and depends on their unit."
    terminal.show_lines(f"Unit: {whole['unit']}. {of_numbers}")


def _title(frame: pd.DataFrame, whole: Document) -> str:
    return saved.title(whole, saved.kind_of(frame, whole["kind"]))


def _table(frame: pd.DataFrame, title: str, digits: int | None) -> None:
    columns, rows = information_rows(frame, digits)
    terminal.show_table(columns, rows, title, spare=SPARE, whole="-o or --json")
    terminal.show_each(f"Withheld: {line}." for line in frame.attrs.get("withheld", []))
