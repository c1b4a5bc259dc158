"""Where the function of a regression tree is cut: ``bayeszoo steps``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from bayeszoo.answers.steps import Steps, steps
from bayeszoo.cli import options as opt
from bayeszoo.cli import saved, terminal
from bayeszoo.cli.answers import ANSWER, AnswerOptions
from bayeszoo.data.table.table import escaped
from bayeszoo.foundation.named import Document
from bayeszoo.plots.families.steps import plot_steps
from bayeszoo.report.text.numbers import estimate

if TYPE_CHECKING:
    import pandas as pd

_Plot = Annotated[Path | None, Parameter(help="Draw the probabilities of jumps here (.png, .svg or .pdf).")]
LIKELY = 0.02
"""Probability from which a jump, a first cut, or a number of leaves is printed."""


def steps_command(fit_file: opt.FitFile, /, *, plot: _Plot = None, shown: AnswerOptions = ANSWER) -> None:
    """Say where the function of a regression tree jumps: steps, probabilities of jumps, trees, numbers of leaves.

    -o writes the function between all cuts of one feature, of several features the probability of a cut at each place.
    """
    tree = shown.load(fit_file, plot)
    answer = steps(tree)
    is_written = shown.output is not None or shown.as_json
    frame = answer.function if is_written and len(answer.data["feature"]) == 1 else answer.jumps
    whole = {
        **saved.about(tree),
        "jumps": saved.records(answer.jumps),
        "first_cuts": saved.records(answer.first_cuts),
        "number_of_leaves": saved.records(answer.leaves.reset_index()),
        "tree": answer.drawing.split("\n"),
        **dict(zip(("tree_probability", "mcse_tree_probability"), answer.tree_probability, strict=True)),
    }
    shown.answer(frame, whole, partial(_show, answer), plot=shown.drawn(lambda: plot_steps(tree), plot))


def _show(answer: Steps, frame: pd.DataFrame, whole: Document, digits: int | None) -> None:
    """Print the function at the steps of the most probable tree, jumps, this tree, first cuts, numbers of leaves."""
    console = terminal.out()
    if len(answer.data["feature"]) == 1:
        feature = escaped(str(answer.data["feature"][0]))
        console.print(f"{saved.title(whole)}: steps of the function of {feature}")
        saved.show_rows(answer.at_steps, None, "steps", digits=digits)
        console.print("at: the middle row of a step; mean and 95% interval there are averages over all trees")
    else:
        console.print(f"{saved.title(whole)}: a function of several features, cut at most twice on the way to a leaf")
    console.print()
    _show_jumps(answer.jumps, digits)
    most, (probability, error) = answer.most_probable, answer.tree_probability
    is_best = most <= probability * (1 + 1e-6)
    sure = "no tree is more probable" if is_best else f"no tree has more than {most:.2g}"
    known = estimate(probability, error, digits)
    console.print(f"the most probable tree; its probability is {known}, {sure}")
    terminal.show_lines("\n".join(map(escaped, answer.drawing.split("\n"))))
    console.print()
    cuts = answer.first_cuts
    likely = cuts[cuts["probability"] >= LIKELY]
    saved.show_rows(likely.set_index("feature"), "first cuts", "first cuts", digits=digits)
    if (rest := 1 - float(likely["probability"].sum())) > 1e-6:
        console.print(f"{len(cuts) - len(likely)} others, each below {LIKELY:g}: {rest:.3g} together")
    console.print()
    number = answer.leaves[answer.leaves["probability"] >= LIKELY]
    saved.show_rows(number, "number of leaves", "numbers", digits=digits)


def _show_jumps(jumps: pd.DataFrame, digits: int | None) -> None:
    """Print where the function probably jumps, in order of the places, and how many jumps are expected elsewhere."""
    likely = jumps["probability"] >= LIKELY
    saved.show_rows(jumps[likely].set_index("feature"), "jumps", "jumps", digits=digits)
    console = terminal.out()
    console.print("probability: of a jump of the function there, summed over all trees")
    if not likely.all():
        elsewhere = float(jumps["probability"][~likely].sum())
        console.print(f"{(~likely).sum()} other places, each below {LIKELY:g}: {elsewhere:.3g} jumps expected together")
    console.print()
