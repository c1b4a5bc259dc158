"""Pictures of latent variables: states over time with the Viterbi path, and the most probable words of topics.

Figures are Matplotlib's, made without pyplot: ``figure.savefig("states.png")``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.answers.judged import has_withheld
from bayeszoo.answers.latent.topics import topics
from bayeszoo.answers.series.decode import Decodable, decodable, decode
from bayeszoo.data.inputs import starts
from bayeszoo.errors import InputError
from bayeszoo.families.hmm import emissions
from bayeszoo.inference.labels.align import in_chunks
from bayeszoo.model.base import Model
from bayeszoo.model.draws import flat, size_of
from bayeszoo.plots.families.levels import name_rows
from bayeszoo.plots.style import COLOURS, panels
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


BAND = (0.05, 0.95)
"""Quantiles over draws at the ends of the band."""
_WIDER = 0.01
"""Largest widening of a band, in probability, without a note."""
ACROSS = 5
"""Topics in a row of panels."""
_MOST = 2**24
"""Most probabilities for which quantiles are computed; with more, an even selection of draws is used."""
_DARK, _PALE, _TRUE = "#1f4e79", "#9dbbd8", "#f3d9b1"


def plot_states(
    source: xr.DataTree | Model, new_data: object = None, *, truth: Any = None, state: Any = None, **options: Any
) -> Figure:
    """Draw the smoothed probabilities of all states over time, each in its own colour, and the Viterbi path below.

    Parameters
    ----------
    source, new_data, **options
        As for `decode`.
    truth : array_like of shape (rows,), optional
        The true state of each row, if known, with any names. Rows of the name that matches `state`, the one in whose
        rows the state is most probable on average, are shaded. For booleans, rows that are True are shaded.
    state : optional
        The only state to draw, by its name in the draws; by default all, or with ``truth`` the state with the smallest
        share of the rows.

    Returns
    -------
    matplotlib.figure.Figure
        The band of the probability given the parameters is between its 5% and 95% quantiles over draws; a point
        estimate has none. Real or count observations are drawn above, on the same axis of rows; dotted lines mark
        starts of sequences. Where parameters are withheld there are no bands and no means of states, and what `decode`
        withholds of a row is left out.

    Raises
    ------
    InputError
        As for `decode`; or when the state does not exist, or ``truth`` does not have one entry for each row.
    Untrustworthy, NumericalError
        As `decode`.
    """
    known = source if isinstance(source, Model) else Fit(source)
    decoded = decodable(known, new_data, options)
    frame = decode(source, new_data, **options)
    k = _chosen(decoded, frame, state)
    shaded = None if truth is None else _shaded(truth, frame[f"smoothed[{decoded.states[k]}]"])
    has_parameters = isinstance(known, Model) or not has_withheld(known)
    numbers = "symbol" not in decoded.data
    heights = [2.2] * numbers + [2.4, 0.22 * decoded.model.K + 0.1]
    height = (sum(heights) + 0.9) / len(heights)
    figure, axes = panels(len(heights), 10, height, across=1, sharex=True, height_ratios=heights)
    if numbers:
        _draw_numbers(axes[0], decoded, frame, with_means=has_parameters)
    is_one = state is not None or truth is not None
    for j in [k] if is_one else range(decoded.model.K):
        _draw_probability(axes[-2], decoded, frame, j, shaded, with_band=has_parameters)
    axes[-2].set(ylim=(-0.02, 1.02), ylabel=f"P(state {decoded.states[k]})" if is_one else "P(state)")
    _place_legend(axes[-2], 3 if is_one else min(decoded.model.K, 8))
    _draw_path(axes[-1], decoded, frame)
    for panel in axes:
        for start in starts(decoded.data["sequence"])[1:]:
            panel.axvline(start + 0.5, color="0.4", lw=0.8, ls=":")
        panel.tick_params(labelsize="small")
    axes[-1].set(xlim=(0.5, len(frame) + 0.5))
    name_rows(axes[-1], decoded.data)
    method = "known tables" if isinstance(known, Model) else f"{known.method} ({known.kind})"
    figure.suptitle(f"{decoded.model.name}, {method}", fontsize="medium")
    return figure


def _chosen(decoded: Decodable, frame: pd.DataFrame, state: object) -> int:
    if state is None:
        return int(np.argmin([frame[f"smoothed[{label}]"].mean() for label in decoded.states]))
    named = [str(label) for label in decoded.states]
    if str(state) not in named:
        raise InputError(f"there is no state {state!r}", "unknown_label", hint=f"the states are {', '.join(named)}")
    return named.index(str(state))


def _shaded(truth: object, probability: pd.Series) -> tuple[np.ndarray, str]:
    """Return which rows truly have this state, and the label of the truth."""
    names = np.asarray(truth)
    if names.shape != probability.shape:
        raise InputError(f"truth has shape {names.shape}, there are {len(probability)} rows", "wrong_shape")
    if names.dtype == bool:
        return names, "true"
    text = names.astype(str)
    name = probability.groupby(text).mean().idxmax()
    return text == name, f"true: {name}"


def _band(decoded: Decodable, k: int) -> np.ndarray:
    """Return quantiles over draws of the probability of a state, shape (2, rows)."""
    draws = flat(decoded.draws)
    size = size_of(draws)
    step = -(-size * len(decoded.data["y"]) // _MOST)
    selection = {name: values[::step] for name, values in draws.items()}
    probabilities = [values[:, :, k] for _, values in in_chunks(decoded.model, selection, decoded.data)]
    return np.asarray(np.quantile(np.concatenate(probabilities), BAND, axis=0))


def _draw_band(axes: Axes, rows: np.ndarray, mean: np.ndarray, band: np.ndarray, colour: str) -> None:
    """Draw a band of quantiles over draws, widened to contain the mean; the label says so if it matters."""
    label = f"{BAND[0]:.0%} to {BAND[1]:.0%} of the draws"
    low, high = np.minimum(band[0], mean), np.maximum(band[1], mean)
    if np.max((high - low) - (band[1] - band[0])) > _WIDER:
        label += ", and their mean: few draws differ, or change labels"
    axes.fill_between(rows, low, high, color=colour, alpha=0.3, lw=0, label=label)


def _draw_probability(
    axes: Axes, decoded: Decodable, frame: pd.DataFrame, k: int, shaded: tuple[np.ndarray, str] | None, with_band: bool
) -> None:
    rows, label = frame.index.to_numpy(), decoded.states[k]
    if shaded is not None:
        axes.broken_barh(_spans(shaded[0]), (-0.02, 1.04), color=_TRUE, lw=0, label=shaded[1])
    colour = _colour(k)
    if with_band and decoded.shape != (1, 1):
        _draw_band(axes, rows, frame[f"smoothed[{label}]"].to_numpy(), _band(decoded, k), colour)
    axes.plot(rows, frame[f"smoothed[{label}]"], color=colour, lw=1.2, label=f"state {label}")


def _colour(k: int) -> str:
    return COLOURS[k % len(COLOURS)]


def _place_legend(axes: Axes, columns: int) -> None:
    """Put the legend above the panel; bands of several states have one entry."""
    entries = dict(zip(*axes.get_legend_handles_labels()[::-1], strict=True))
    axes.legend(
        [*entries.values()],
        [*entries],
        fontsize="small",
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=columns,
        frameon=False,
        borderaxespad=0.1,
    )


def _spans(rows: np.ndarray) -> list[tuple[float, float]]:
    """Return the start on the axis and the length of each run of true rows."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], rows.astype(int), [0]])))
    return [(first + 0.5, after - first) for first, after in edges.reshape(-1, 2)]


def _draw_path(axes: Axes, decoded: Decodable, frame: pd.DataFrame) -> None:
    """Draw a bar in the lane of each row's state."""
    lanes = {label: lane for lane, label in enumerate(decoded.states)}
    path = frame["viterbi"].map(lanes).to_numpy()
    for lane in lanes.values():
        axes.broken_barh(_spans(path == lane), (lane - 0.4, 0.8), color=_colour(lane), lw=0)
    axes.set_yticks(list(lanes.values()), [str(label) for label in lanes])
    axes.set(ylim=(len(lanes) - 0.5, -0.5), ylabel="Viterbi")


def _draw_numbers(axes: Axes, decoded: Decodable, frame: pd.DataFrame, with_means: bool) -> None:
    """Draw the observations, grey where the state is withheld, and the mean of each row's state on the best path."""
    y, law = decoded.data["y"], decoded.model.rows_in(flat(decoded.draws), decoded.data, np.eye(decoded.model.K))
    seen, means = emissions.seen(y), np.atleast_2d(law.mean())  # known parameters have no axis of draws
    lanes = {label: k for k, label in enumerate(decoded.states)}
    path = frame["viterbi"].map(lanes).fillna(-1).to_numpy().astype(int)
    colours = ["0.6" if k < 0 else _colour(k) for k in path[seen]]
    axes.scatter(np.flatnonzero(seen) + 1, y[seen], s=9, c=colours, lw=0)
    if with_means:
        axes.step(frame.index, means.mean(axis=0)[path], where="mid", color="0.25", lw=1.5, label="mean of the state")
        axes.legend(fontsize="small", loc="lower left", bbox_to_anchor=(0, 1), frameon=False, borderaxespad=0.1)
    axes.set_ylabel(decoded.data.columns.get("y", "y"), parse_math=False)


# Topics


def plot_topics(tree: xr.DataTree, top: int = 10, *, untrusted: bool = False) -> Figure:
    """Draw the most probable words of each topic: the mean as a bar, the 95% interval as a line.

    Parameters
    ----------
    tree, top, untrusted
        As for `topics`.

    Returns
    -------
    matplotlib.figure.Figure
        One panel for each topic, with its share of all documents in the title.

    Raises
    ------
    Untrustworthy, InputError
        As for `topics`.
    """
    frame = topics(tree, top, untrusted=untrusted)
    labels, shares = frame.index.unique("topic"), frame.attrs["shares"]
    figure, axes = panels(len(labels), 2.6, 0.24 * len(frame) / len(labels) + 1.0, ACROSS)
    for i, (panel, label) in enumerate(zip(axes, labels, strict=True)):
        _draw_words(panel, frame.loc[label], f"topic {label}" + (f": {shares[i]:.0%}" if shares else ""))
    withheld = "withheld" in (caveat := frame.attrs.get("caveat", ""))
    caveat = " - NOT TO BE TRUSTED, the gate did not pass" if withheld else " - with caution" * bool(caveat)
    figure.suptitle(f"{tree.attrs['model']}, {tree.attrs['method']} ({tree.attrs['kind']}){caveat}", fontsize="medium")
    return figure


def _draw_words(panel: Axes, rows: Any, title: str) -> None:
    places = np.arange(len(rows))
    panel.barh(places, rows["mean"], color=_PALE)
    if rows["q025"].notna().all():
        panel.hlines(places, rows["q025"], rows["q975"], color=_DARK, lw=1.5)
    panel.set_yticks(places, rows["word"].tolist(), fontsize="small", parse_math=False)
    panel.tick_params(axis="x", labelsize=7)
    panel.locator_params(axis="x", nbins=3)
    panel.set(ylim=(len(rows) - 0.5, -0.5), xlim=(0, None))
    panel.set_title(title, fontsize="medium")
