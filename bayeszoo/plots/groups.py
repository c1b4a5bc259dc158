"""Groups side by side: the estimates of each, and what they differ by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.comparison.by import contrasts, estimates
from bayeszoo.comparison.levels import is_of_levels
from bayeszoo.errors import InputError
from bayeszoo.plots.style import COLOURS, panels, short
from bayeszoo.results.stored import fits_of, is_by_group

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 6
"""Quantities that are drawn, where none are named."""
MOST_GROUPS = 200
"""Groups up to which each has a line."""


def plot_groups(tree: xr.DataTree, quantities: Sequence[str] | None = None, *, against: str | None = None) -> Figure:
    """Draw the estimates of each group and the differences of groups, with 95% intervals.

    Parameters
    ----------
    tree : xarray.DataTree
        What `fit_by` returned, or `fit` for a model with parameters of each group, or a regression with levels.
    quantities : sequence of str, optional
        Labels of scalars that have contrasts; by default the first `MOST`.
    against : str, optional
        The group that the others are compared with, as of `contrasts`.

    Returns
    -------
    matplotlib.figure.Figure
        Made without pyplot: two panels a quantity. The numbers are those of `contrasts`; P is the probability that the
        difference is positive. A group whose estimates are withheld has no mark.

    Raises
    ------
    InputError
        When nothing can be compared, or there is no such quantity or group.
    """
    compared, known = contrasts(tree, against), estimates(tree)
    labels = list(fits_of(tree)) if is_by_group(tree) else list(dict.fromkeys(known["group"]))
    if len(labels) > MOST_GROUPS:
        raise InputError(
            f"{len(labels)} groups are too many to draw each in a line", "too_large", hint="take bz.plot_pooling(tree)"
        )
    every = list(dict.fromkeys(compared["quantity"])) if len(compared) else []
    chosen = every[:MOST] if quantities is None else list(quantities)
    if others := [name for name in chosen if name not in every]:
        raise InputError(
            f"there is no contrast of {others[0]!r}", "unknown_name", hint=f"there are of {', '.join(every) or 'none'}"
        )
    if not chosen:
        raise InputError(
            "; ".join(["no quantity of the groups can be compared", *compared.attrs["withheld"]]), "no_quantity"
        )
    pairs = int(compared["quantity"].value_counts().max())
    figure, axes = panels(2 * len(chosen), 4.2, 0.8 + 0.2 * max(len(labels), pairs), across=2)
    for name, left, right in zip(chosen, axes[::2], axes[1::2], strict=True):
        own = known[known["quantity"] == name].set_index("group")
        own = own.reindex(labels) if is_by_group(tree) else own  # a group may have no estimate of the quantity
        _forest(left, own, ("mean", "q025", "q975"), own.index.tolist(), name)
        differ = compared[compared["quantity"] == name]
        _forest(right, differ, ("difference", "difference_q025", "difference_q975"), _names(differ), "difference")
        right.axvline(0, color="0.6", lw=0.8, zorder=0)
    about = "" if tree.attrs["kind"] == "point estimate" else ": means and 95% intervals"
    by = tree.attrs.get("by", "level" if is_of_levels(tree) else "group")
    without = "; no mark where withheld" * bool(known.attrs.get("withheld"))
    title = f"{tree.attrs['model']}, {tree.attrs['method']}, by {by}{about}{without}"
    figure.suptitle(title, fontsize="medium", parse_math=False)
    return figure


def _names(rows: pd.DataFrame) -> list[str]:
    """Name each contrast, with the probability that it is positive where that is known."""
    named = zip(rows["group"], rows["against"], rows["p_greater"], strict=True)
    return [f"{short(a)} - {short(b)}{_probability(p)}" for a, b, p in named]


def _probability(p: float) -> str:
    if p != p:  # NaN, of point estimates
        return ""
    return "   P < 0.001" if p < 0.001 else "   P > 0.999" if p > 0.999 else f"   P {p:.3f}"


def _forest(panel: Axes, rows: pd.DataFrame, keys: tuple[str, str, str], names: Sequence[str], title: str) -> None:
    """Draw a point and an interval a row, from the top."""
    look: dict[str, Any] = {"color": COLOURS[0]}
    at = np.arange(len(names))
    middle, low, high = (rows.get(key, np.full(len(at), np.nan)) for key in keys)  # a point has no interval
    panel.hlines(at, low, high, lw=1.6, **look)
    panel.plot(middle, at, "o", ms=4, **look)
    panel.set_yticks(at, [short(name) for name in names], parse_math=False)
    panel.set_ylim(len(at) - 0.5, -0.5)
    panel.tick_params(labelsize="small")
    panel.grid(axis="y", color="0.93")
    panel.set_title(short(title), fontsize="medium", parse_math=False)
