"""What only some models have: components of rows, states over time, topics, factors, a path of coefficients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.answers.assign import assign
from bayeszoo.answers.topics import topics as words_of
from bayeszoo.errors import InputError
from bayeszoo.families.hmm.model import HiddenMarkovModel
from bayeszoo.families.lasso.model import LaplaceWeights
from bayeszoo.model.accumulated import Accumulated
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import FoldIn, Latent
from bayeszoo.plots.factors import plot_ard, plot_biplot, plot_scree
from bayeszoo.plots.lasso_path import lasso_path, plot_lasso_path
from bayeszoo.plots.latent import plot_states, plot_topics
from bayeszoo.plots.style import COLOURS, panels
from bayeszoo.report.blocks import Section, Words, picture, table
from bayeszoo.report.tables import topic_rows
from bayeszoo.results.stored import Fit
from bayeszoo.results.summary import best, best_of_components

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

_ROWS_SHOWN = 12


def sections(trees: Sequence[xr.DataTree]) -> Iterator[tuple[str, Callable[[], Section]]]:
    """Yield what a section is about, and what makes it, for each that the model can have."""
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
    caption = "The probability of the rarest state given all rows, and below it the most probable path."
    drawn = picture(partial(plot_states, tree), "states over time", caption, wide=True)
    return Section("states", "States over time", [drawn])


def topics(tree: xr.DataTree) -> Section:
    """Draw the words of the topics, and list them with what is known of each topic as a whole."""
    top = min(10, tree["posterior"]["topics"].shape[-1])
    frame = words_of(tree, top)
    caption = "The most probable words of each topic: the mean as a bar, the 95% interval as a line."
    blocks = [
        table(*topic_rows(frame), words=["words"]),
        picture(partial(plot_topics, tree, top), "words of each topic", caption, True),
    ]
    return Section("topics", "Topics", blocks)


def factors(tree: xr.DataTree) -> Section:
    """Draw rows and columns along the first two factors, and how much each factor explains."""
    pictures = [
        (plot_biplot, "biplot", "Rows as points, columns as arrows, along the first two principal axes; bars: one sd."),
        (plot_scree, "scree", "Eigenvalues of the covariance, of the fit and of the sample; dotted: the noise."),
        (plot_ard, "ard", "Relevance precisions, sorted: large ones switch factors off."),
    ]
    kept = pictures if "alpha" in tree["posterior"].data_vars else pictures[:2]
    return Section("factors", "Factors", [picture(partial(draw, tree), alt, words) for draw, alt, words in kept])


def path(tree: xr.DataTree) -> Section:
    """Draw the modes of a lasso under tighter and wider priors."""
    modes = lasso_path(Fit(tree).model, Fit(tree).data)
    caption = "Modes under tighter (left) and wider priors (right): where each coefficient leaves zero."
    drawn = picture(partial(plot_lasso_path, modes), "lasso path", caption)
    return Section("path", "The path of the coefficients", [drawn])


def responsibilities(tree: xr.DataTree) -> Section:
    """Say which component each row belongs to, and how sure that is."""
    data = Fit(tree).given
    if isinstance(data, Accumulated):
        raise InputError("this needs the rows, and only their statistics were kept")
    frame = assign(tree)
    if "component" not in frame:
        raise InputError("the latent variable of a row is a number, not a component")
    lead = f"Each row has the label of its most probable component; of {len(frame)} labels "
    lead += f"{frame.attrs['expected_errors']:.3g} are expected to be wrong."
    counts = frame.groupby("component", sort=True)["expected_loss"].agg(["size", "mean", "max"])
    rows = [[str(name), int(size), mean, most] for name, size, mean, most in counts.itertuples()]
    heads = ["component", "rows", "mean probability that the label is wrong", "largest"]
    least = frame.sort_values("expected_loss", ascending=False, kind="stable").head(_ROWS_SHOWN)
    shown = [[str(row), str(label), loss] for row, label, loss in least[["component", "expected_loss"]].itertuples()]
    caption = "Colour: the most probable component; pale: unsure."
    blocks = [
        Words(lead),
        picture(partial(_draw, frame, data), "rows by component", caption),
        table(heads, rows),
        table(["row", "label", "probability that it is wrong"], shown, "The least sure rows", ["label"]),
    ]
    return Section("components", "Components of the rows", blocks)


def _draw(frame: pd.DataFrame, data: Any) -> Figure:
    """Draw rows of two numbers or more by the first two; else the probabilities of the rows in order."""
    figure, (axes,) = panels(1, 6.4, 4.0)
    values = next((v for v in data.values() if v.ndim == 2 and v.dtype.kind == "f" and v.shape[1] >= 2), None)
    if values is not None and len(values) == len(frame):
        sure = np.clip(1 - frame["expected_loss"].to_numpy(), 0.15, 1)
        for i, label in enumerate(sorted(frame["component"].unique(), key=str)):
            mine = (frame["component"] == label).to_numpy()
            x, y = values[mine, :2].T
            axes.scatter(x, y, 16, COLOURS[i % len(COLOURS)], lw=0, alpha=sure[mine], label=label)
        names = next((data[name].tolist() for name in ("column", "feature") if name in data), ["1", "2"])
        axes.set_xlabel(str(names[0]), parse_math=False)
        axes.set_ylabel(str(names[1]), parse_math=False)
    else:
        columns = [name for name in frame.columns if str(name).startswith("p[")]
        order, places = frame.sort_values(columns, ascending=False, kind="stable"), np.arange(1, len(frame) + 1)
        colours = [COLOURS[i % len(COLOURS)] for i in range(len(columns))]
        names = [name[2:-1] for name in columns]
        axes.stackplot(places, order[columns].to_numpy().T, labels=names, colors=colours, step="mid", lw=0)
        axes.set(xlabel="rows, by probability", ylabel="probability", ylim=(0, 1), xlim=(0.5, len(order) + 0.5))
    axes.legend(title="component", loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return figure
