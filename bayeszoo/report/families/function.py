"""The answer of a model of a function: its picture, and the variance that it leaves."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from bayeszoo.answers.function import function_bands, has_interval
from bayeszoo.answers.steps import steps
from bayeszoo.model.capabilities.cuts import OfCuts
from bayeszoo.model.capabilities.function import OfFunction
from bayeszoo.plots.families.function import plot_function
from bayeszoo.plots.families.nodes import plot_nodes
from bayeszoo.report.blocks import Block, Code, Words, picture
from bayeszoo.report.families.judged import about_judged
from bayeszoo.report.text.numbers import estimate, number, with_interval
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import pandas as pd


def about_function(fit: Fit) -> list[Block]:
    """Return lines on where the function is lowest and highest among the rows, and on the variance that it leaves."""
    data = fit.data
    frame, y = function_bands(fit, {"X": data["X"], "feature": data["feature"]}), data["y"] / data.get("trials", 1)
    residual_variance, total = float(np.mean(np.square(y - frame["mean"].to_numpy()))), float(np.var(y))
    ends = [_place(fit, frame, int(i)) for i in (np.nanargmin(frame["mean"]), np.nanargmax(frame["mean"]))]
    line = f"Among the rows the function is lowest at {ends[0]}, and highest at {ends[1]}"
    line += (
        f"; {residual_variance / total:.0%} of the variance of the outcome is residual"
        if total and not np.isnan(residual_variance)
        else ""
    )
    about = [Words(note, "note") for note in about_judged(frame)]
    return [Words(f"{line}. By {fit.method}."), *about, *_about_trees(fit)]


def _about_trees(fit: Fit) -> list[Block]:
    """Draw the most probable tree of a function with steps, with its probability."""
    if not isinstance(fit.model, OfCuts):
        return []
    answer = steps(fit.tree)
    leaves, (probability, error) = answer.leaves["probability"].idxmax(), answer.tree_probability
    written_probability = estimate(probability, error) if error else number(probability, 3)
    line = f"Most probably it has {leaves} steps ({answer.leaves['probability'].max():.0%}). The most probable tree is "
    return [Words(f"{line}one of many, with probability {written_probability}."), Code(answer.drawing)]


def _place(fit: Fit, frame: pd.DataFrame, i: int) -> str:
    """Return the features of a row, and the function there."""
    data = fit.data
    where = ", ".join(f"{name} {number(x)}" for name, x in zip(data["feature"], data["X"][i], strict=True))
    return f"{where}: {with_interval(frame.iloc[i])}"


def function(fit: Fit) -> Block:
    """Draw the function."""
    shown = "The function at the estimate"
    if has_interval(fit):
        shown = (
            "The function (dark band: 95%), new rows about it (light band: 95%), and functions drawn from the posterior"
        )
    caption = f"{shown}; dotted lines are where the rows end."
    if isinstance(model := fit.model, OfFunction):
        caption += f" Beyond, {model.beyond}."
    return picture(partial(plot_function, fit.tree), "the function", caption, wide=True)


def nodes(fit: Fit) -> Block:
    """Draw the graph."""
    caption = "The graph; nodes with a thick edge have observed labels, the other labels are inferred."
    return picture(partial(plot_nodes, fit.tree), "the graph", caption, wide=True)
