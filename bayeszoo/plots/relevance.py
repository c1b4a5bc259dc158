"""The picture of the lengths of features chosen by the evidence, which shows the relevant features of a function."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from bayeszoo.comparison.evidence.record import EmpiricalBayes
from bayeszoo.data.read import read
from bayeszoo.errors import InputError, Untrustworthy
from bayeszoo.model.base import fields_of
from bayeszoo.plots.style import COLOURS, panels, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HINT = 'bz.empirical_bayes(model, data, over="scale") of gaussian_process, over="length" of one with a length each'


def relevance(chosen: EmpiricalBayes, data: object) -> dict[str, float]:
    """Return the standard deviation of each feature divided by its length, 0 where the length goes to infinity."""
    rows, names = read(chosen.model, data), [name for name in chosen.over if name in ("scale", "length")]
    if "X" not in rows or not any(np.ndim(getattr(chosen.model, name)) for name in names):
        raise InputError("there is no length for each feature to draw", "no_capability", hint=HINT)
    if not chosen.is_shown:
        raise Untrustworthy(f"the lengths are withheld: {'; '.join(chosen.reasons)}", "withheld")
    fields = fields_of(chosen.model)
    length = np.asarray(fields["length"] if "length" in names else 1.0)
    lengths = np.broadcast_to(np.asarray(fields["scale"]) * length, rows["X"].shape[1]).astype(np.float64).copy()
    for i, feature in enumerate(rows["feature"]):
        if any(chosen.limits.get(f"{name}[{feature}]") == math.inf for name in names):
            lengths[i] = math.inf
    return dict(zip(map(str, rows["feature"]), (rows["X"].std(axis=0) / lengths).tolist(), strict=True))


def plot_relevance(chosen: EmpiricalBayes, data: object) -> Figure:
    """Draw the relevance of each feature of a function: its standard deviation divided by its length.

    Parameters
    ----------
    chosen : EmpiricalBayes
        Result of `empirical_bayes` with a length for each feature: ``over="scale"`` of ``gaussian_process``, or
        ``over="length"`` of ``gaussian_process_classification`` with a length for each feature.
    data : Data or anything that `read` takes
        The data of `empirical_bayes`.

    Returns
    -------
    matplotlib.figure.Figure
        A bar for each feature, the largest at the top. At 1 the function changes over a standard deviation of the
        feature; at 0 the length is infinite, and the function does not depend on the feature (automatic relevance
        determination).

    Raises
    ------
    InputError
        When features do not have separate lengths.
    Untrustworthy
        When the search for the lengths did not end at a maximum.
    """
    pairs = sorted(relevance(chosen, data).items(), key=lambda pair: pair[1])
    figure, (axes,) = panels(1, 6.0, 1.2 + 0.35 * len(pairs))
    axes.barh([short(name) for name, _ in pairs], [value for _, value in pairs], color=COLOURS[0], height=0.6)
    axes.set_xlabel("standard deviation of the feature, in lengths")
    for label in axes.get_yticklabels():
        label.set_parse_math(False)
    axes.spines[["right", "top"]].set_visible(False)
    return figure
