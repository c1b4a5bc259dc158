"""Effects of the features of a regression: ``bayeszoo effects``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bayeszoo.answers.effects import FEW, feature_effects
from bayeszoo.cli import options as opt
from bayeszoo.cli import saved
from bayeszoo.cli.answers import ANSWER, AnswerOptions
from bayeszoo.cli.groups import by_group
from bayeszoo.foundation.named import Document
from bayeszoo.plots.families.effects import mean_named, plot_effects
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import pandas as pd


@by_group
def effects_command(
    fit_file: opt.FitFile,
    /,
    *,
    group: str | None = None,
    plot: Path | None = None,
    shown: AnswerOptions = ANSWER,
) -> None:
    """Say how the mean outcome of a regression changes with each feature, the others at their means.

    A feature of an interaction has a curve for each level of the other feature, or for its 10, 50 and 90% quantiles.

    Parameters
    ----------
    group
        Of a fit in which groups have intercepts: the group; by default one whose intercept is 0.
    plot
        Draw the effects with 95% intervals (.png, .svg or .pdf).
    """
    tree = shown.load(fit_file, plot)
    frame = feature_effects(tree, group=group).set_index("feature")

    def show(frame: pd.DataFrame, whole: Document, digits: int | None) -> None:
        words = [name for name in ("feature", "value", "by", "at") if name in (frame.index.name, *frame)]
        few = _few(frame)
        saved.show_rows(few, saved.title(whole, str(whole["outcome"])), spare=("by",), words=words, digits=digits)

    about = {**saved.about(tree), "outcome": mean_named(Fit(tree))}
    draw = shown.drawn(lambda: plot_effects(tree, groups=None if group is None else [group]), plot)
    shown.answer(frame, about, show, plot=draw)


def _few(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the least, middle and greatest value of each curve of many; -o and --json have all."""
    keys = [frame.index, *(frame[name] for name in ("by", "at") if name in frame)]
    place = frame.groupby(keys, sort=False).cumcount()
    size = frame.groupby(keys, sort=False)["mean"].transform("size")
    few = frame[
        ((size <= FEW) | (place % (size // 2) == 0) | frame["value"].map(lambda x: isinstance(x, str))).to_numpy()
    ]
    few.attrs = frame.attrs
    return few
