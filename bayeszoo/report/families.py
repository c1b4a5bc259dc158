"""What only some models have: components of rows, states over time, topics, factors, a path of coefficients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.errors import InputError
from bayeszoo.model.accumulated import Accumulated
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import FoldIn, Latent
from bayeszoo.plots.style import COLOURS
from bayeszoo.report.blocks import Section, Words, picture, table
from bayeszoo.results.stored import Fit
from bayeszoo.results.summary import best, best_of_components

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROWS_SHOWN = 12


def sections(trees: Sequence[xr.DataTree]) -> Iterator[tuple[str, Callable[[], Section]]]:
    """Yield what a section is about, and what makes it, for each that the model can have."""
    from bayeszoo.families.hmm.model import HiddenMarkovModel
    from bayeszoo.families.lasso.model import LaplaceWeights

    tree = best_of_components(trees)
    model: Model = Fit(tree).model
    if isinstance(model, FoldIn):
        yield "topics", partial(topics, tree)
    elif isinstance(model, HiddenMarkovModel):
        yield "states", partial(states, tree)
    elif isinstance(model, Latent) and "loadings" not in tree["posterior"].data_vars:
        yield "components of the rows", partial(responsibilities, tree)
    if "loadings" in tree["posterior"].data_vars:
        yield "factors", partial(factors, best(trees))  # whose pictures do not depend on labels
    if isinstance(model, LaplaceWeights):
        yield "path of the coefficients", partial(path, tree)


def states(tree: xr.DataTree) -> Section:
    """Draw the path of the states over time."""
    from bayeszoo.plots.states import plot_states

    caption = "The probability of the rarest state given all rows, and below it the most probable path."
    return Section(
        "states", "States over time", [picture(partial(plot_states, tree), "states over time", caption, True)]
    )


def topics(tree: xr.DataTree) -> Section:
    """Draw the words of the topics, and list them with what is known of each topic as a whole."""
    from bayeszoo.answers.topics import topics as words_of
    from bayeszoo.plots.topics import plot_topics

    top = min(10, tree["posterior"]["topics"].shape[-1])
    frame = words_of(tree, top)
    labels = list(dict.fromkeys(frame.index.get_level_values("topic")))
    named = [key for key in ("shares", "stability", "coherence") if frame.attrs[key]]
    rows = [
        [str(label), *(frame.attrs[key][i] for key in named), ", ".join(frame.loc[label, "word"])]
        for i, label in enumerate(labels)
    ]
    caption = "The most probable words of each topic: the mean as a bar, the 95% interval as a line."
    blocks = [
        table(["topic", *named, "words"], rows, words=["words"]),
        picture(partial(plot_topics, tree, top), "words of each topic", caption, True),
    ]
    return Section("topics", "Topics", blocks)


def factors(tree: xr.DataTree) -> Section:
    """Draw rows and columns along the first two factors, and how much each factor explains."""
    from bayeszoo.plots.factors import plot_ard, plot_biplot, plot_scree

    captions = {
        plot_biplot: "Rows as points, columns as arrows, along the first two principal axes; bars: one sd.",
        plot_scree: "Eigenvalues of the covariance, of the fit and of the sample; dotted: the noise.",
        plot_ard: "Relevance precisions, sorted: large ones switch factors off.",
    }
    if "alpha" not in tree["posterior"].data_vars:
        del captions[plot_ard]
    blocks = [
        picture(partial(draw, tree), draw.__name__.removeprefix("plot_"), words) for draw, words in captions.items()
    ]
    return Section("factors", "Factors", blocks)


def path(tree: xr.DataTree) -> Section:
    """Draw the modes of a lasso under tighter and wider priors."""
    from bayeszoo.plots.lasso_path import lasso_path, plot_lasso_path

    made = lasso_path(Fit(tree).model, Fit(tree).data)
    caption = "Modes under tighter (left) and wider priors (right): where each coefficient leaves zero."
    return Section(
        "path", "The path of the coefficients", [picture(partial(plot_lasso_path, made), "lasso path", caption)]
    )


def responsibilities(tree: xr.DataTree) -> Section:
    """Say which component each row belongs to, and how sure that is."""
    from bayeszoo.answers.assign import assign

    given = Fit(tree).given
    if isinstance(given, Accumulated):
        raise InputError("this needs the rows, and only their statistics were kept")
    frame = assign(tree)
    if "component" not in frame:
        raise InputError("the latent variable of a row is a number, not a component")
    expected = frame.attrs["expected_errors"]
    lead = "Each row has the label of its most probable component; of {} labels {:.3g} are expected to be wrong."
    lead = lead.format(len(frame), expected)
    counts = frame.groupby("component", sort=True)["expected_loss"].agg(["size", "mean", "max"])
    rows = [[str(name), int(size), mean, most] for name, size, mean, most in counts.itertuples()]
    heads = ["component", "rows", "mean probability that the label is wrong", "largest"]
    least = frame.sort_values("expected_loss", ascending=False, kind="stable").head(_ROWS_SHOWN)
    shown = [[str(row), str(label), loss] for row, label, loss in least[["component", "expected_loss"]].itertuples()]
    blocks = [
        Words(lead),
        picture(
            partial(_draw, frame, given), "rows by component", "Colour: the most probable component; pale: unsure."
        ),
        table(heads, rows),
        table(["row", "label", "probability that it is wrong"], shown, "The least sure rows", ["label"]),
    ]
    return Section("components", "Components of the rows", blocks)


def _draw(frame: pd.DataFrame, data: Any) -> Figure:
    """Draw rows of two numbers or more by the first two; else the probabilities of the rows in order."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.subplots()
    values = next((v for v in data.values() if v.ndim == 2 and v.dtype.kind == "f" and v.shape[1] >= 2), None)
    labels = list(dict.fromkeys(sorted(frame["component"], key=str)))
    if values is not None and len(values) == len(frame):
        _scatter(axes, values, frame, labels)
        names = next((data[name].tolist() for name in ("column", "feature") if name in data), ["1", "2"])
        axes.set_xlabel(str(names[0]), parse_math=False)
        axes.set_ylabel(str(names[1]), parse_math=False)
    else:
        _bars(axes, frame, labels)
    axes.legend(title="component", loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return figure


def _scatter(axes: Axes, values: np.ndarray, frame: pd.DataFrame, labels: list[Any]) -> None:
    sure = 1 - frame["expected_loss"].to_numpy()
    for i, label in enumerate(labels):
        mine = (frame["component"] == label).to_numpy()
        x, y = values[mine, :2].T
        axes.scatter(x, y, 16, COLOURS[i % len(COLOURS)], lw=0, alpha=np.clip(sure[mine], 0.15, 1), label=label)


def _bars(axes: Axes, frame: pd.DataFrame, labels: list[Any]) -> None:
    columns = [name for name in frame.columns if str(name).startswith("p[")]
    order = frame.sort_values(columns, ascending=False, kind="stable")
    below = np.zeros(len(order))
    for i, name in enumerate(columns):
        axes.bar(
            np.arange(1, len(order) + 1),
            order[name],
            1.0,
            below,
            color=COLOURS[i % len(COLOURS)],
            lw=0,
            label=name[2:-1],
        )
        below = below + order[name].to_numpy()
    axes.set(xlabel="rows, by probability", ylabel="probability", ylim=(0, 1), xlim=(0.5, len(order) + 0.5))
