"""Groups side by side: their estimates and contrasts."""

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
"""Most quantities drawn, if none are named."""
MOST_GROUPS = 200
"""Most groups for which each has a line."""


def plot_groups(tree: xr.DataTree, quantities: Sequence[str] | None = None, *, against: str | None = None) -> Figure:
    """Draw the estimates of each group and the differences of groups, with 95% intervals.

    Parameters
    ----------
    tree : xarray.DataTree
        A result of `fit_by`, or of `fit` for a model with parameters of each group, or a regression with levels.
    quantities : sequence of str, optional
        Labels of scalars with contrasts; by default the first `MOST`.
    against : str, optional
        The group that the others are compared with, as for `contrasts`.

    Returns
    -------
    matplotlib.figure.Figure
        Made without pyplot: two panels for each quantity. The numbers are those of `contrasts`; P is the probability
        that the difference is positive. A group whose estimates are withheld has no mark.

    Raises
    ------
    InputError
        When nothing can be compared, or the quantity or group does not exist.
    """
    compared, estimated = contrasts(tree, against), estimates(tree)
    labels = list(fits_of(tree)) if is_by_group(tree) else list(dict.fromkeys(estimated["group"]))
    if len(labels) > MOST_GROUPS:
        raise InputError(
            f"{len(labels)} groups are too many to draw each in a line", "too_large", hint="take bz.plot_pooling(tree)"
        )
    with_contrasts = list(dict.fromkeys(compared["quantity"])) if len(compared) else []
    chosen = with_contrasts[:MOST] if quantities is None else list(quantities)
    if unknown := [name for name in chosen if name not in with_contrasts]:
        hint = f"there are contrasts of {', '.join(with_contrasts) or 'nothing'}"
        raise InputError(f"there is no contrast of {unknown[0]!r}", "unknown_name", hint=hint)
    if not chosen:
        raise InputError(
            "; ".join(["no quantity of the groups can be compared", *compared.attrs["withheld"]]), "no_quantity"
        )
    pairs = int(compared["quantity"].value_counts().max())
    figure, axes = panels(2 * len(chosen), 4.2, 0.8 + 0.2 * max(len(labels), pairs), across=2)
    for name, left, right in zip(chosen, axes[::2], axes[1::2], strict=True):
        by_group = estimated[estimated["quantity"] == name].set_index("group")
        by_group = by_group.reindex(labels) if is_by_group(tree) else by_group  # some groups may have no estimate
        _forest(left, by_group, ("mean", "q025", "q975"), by_group.index.tolist(), name)
        differ = compared[compared["quantity"] == name]
        _forest(right, differ, ("difference", "difference_q025", "difference_q975"), _names(differ), "difference")
        right.axvline(0, color="0.6", lw=0.8, zorder=0)
    about = "" if tree.attrs["kind"] == "point estimate" else ": means and 95% intervals"
    by = tree.attrs.get("by", "level" if is_of_levels(tree) else "group")
    without = "; no mark where withheld" * bool(estimated.attrs.get("withheld"))
    title = f"{tree.attrs['model']}, {tree.attrs['method']}, by {by}{about}{without}"
    figure.suptitle(title, fontsize="medium", parse_math=False)
    return figure


def _names(rows: pd.DataFrame) -> list[str]:
    """Return the names of contrasts, with the probability that each is positive."""
    named = zip(rows["group"], rows["against"], rows["p_greater"], strict=True)
    return [f"{short(a)} - {short(b)}{_probability(p)}" for a, b, p in named]


def _probability(p: float) -> str:
    if p != p:  # NaN for point estimates
        return ""
    return "   P < 0.001" if p < 0.001 else "   P > 0.999" if p > 0.999 else f"   P {p:.3f}"


def _forest(panel: Axes, rows: pd.DataFrame, keys: tuple[str, str, str], names: Sequence[str], title: str) -> None:
    """Draw a point and an interval for each row, from the top."""
    look: dict[str, Any] = {"color": COLOURS[0]}
    places = np.arange(len(names))
    middle, low, high = (rows.get(key, np.full(len(places), np.nan)) for key in keys)  # a point has no interval
    panel.hlines(places, low, high, lw=1.6, **look)
    panel.plot(middle, places, "o", ms=4, **look)
    panel.set_yticks(places, [short(name) for name in names], parse_math=False)
    panel.set_ylim(len(places) - 0.5, -0.5)
    panel.tick_params(labelsize="small")
    panel.grid(axis="y", color="0.93")
    panel.set_title(short(title), fontsize="medium", parse_math=False)
