"""Where the function of a regression tree is cut: ``bayeszoo steps``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from bayeszoo.answers.steps import Steps, steps
from bayeszoo.cli import options as opt
from bayeszoo.cli import saved, terminal
from bayeszoo.cli.answers import ANSWER, AnswerOptions
from bayeszoo.data.table.table import escaped
from bayeszoo.plots.families.function import plot_function

if TYPE_CHECKING:
    import pandas as pd

_Plot = Annotated[Path | None, Parameter(help="Draw the function with its 95% band here (.png, .svg or .pdf).")]
LIKELY = 0.02
"""Probability from which a first cut, or a number of leaves, is printed."""


def steps_command(fit_file: opt.FitFile, /, *, plot: _Plot = None, shown: AnswerOptions = ANSWER) -> None:
    """Say where the function of a regression tree jumps: steps, the most probable tree, first cuts, numbers of leaves.

    -o writes the function between all cuts of one feature, of several features the probabilities of first cuts.
    """
    shown.probe(plot)
    tree = saved.load(fit_file)
    answer = steps(tree)
    frame = answer.function if len(answer.function) else answer.first_cuts
    whole = {
        **saved.about(tree),
        "first_cuts": saved.records(answer.first_cuts),
        "number_of_leaves": saved.records(answer.leaves.reset_index()),
        "tree": answer.drawing.split("\n"),
        "tree_probability": answer.trees.tree_probability,
    }
    draw = shown.drawn(lambda: plot_function(tree), plot)
    shown.answer(frame, whole, partial(_show, answer), plot=draw)


def _show(answer: Steps, frame: pd.DataFrame, whole: dict[str, Any], digits: int | None) -> None:
    """Print the function at the steps of the most probable tree, this tree, first cuts, and numbers of leaves."""
    console, trees = terminal.out(), answer.trees
    if len(answer.function):
        feature = escaped(str(answer.data["feature"][0]))
        console.print(f"{saved.title(whole)}: steps of the function of {feature}")
        saved.show_rows(answer.at_steps, None, "steps", digits=digits or 4)
        console.print("at: the middle row of a step; mean and 95% interval there are averages over all trees")
    else:
        console.print(f"{saved.title(whole)}: a function of several features, cut at most twice on the way to a leaf")
    console.print()
    is_best = trees.most_probable <= trees.tree_probability * (1 + 1e-6)
    sure = "no tree is more probable" if is_best else f"no tree has more than {trees.most_probable:.3g}"
    console.print(f"the most probable tree; its probability is {trees.tree_probability:.3g}, {sure}")
    terminal.show_lines("\n".join(map(escaped, answer.drawing.split("\n"))))
    console.print()
    cuts = answer.first_cuts
    likely = cuts[cuts["probability"] >= LIKELY]
    saved.show_rows(likely.set_index("feature"), "first cuts", "first cuts", digits=digits or 3)
    if (rest := 1 - float(likely["probability"].sum())) > 1e-6:
        console.print(f"{len(cuts) - len(likely)} others, each below {LIKELY:g}: {rest:.3g} together")
    console.print()
    number = answer.leaves[answer.leaves["probability"] >= LIKELY]
    saved.show_rows(number, "number of leaves", "numbers", digits=digits or 3)
