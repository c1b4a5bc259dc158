"""The picture of the lengths that the evidence chooses, one for each feature: which of them matter to a function."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.comparison.evidence.record import EmpiricalBayes
from bayeszoo.data.read import read
from bayeszoo.errors import InputError, Untrustworthy
from bayeszoo.plots.style import COLOURS, panels, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HINT = 'bz.empirical_bayes(model, data, over="scale") of gaussian_process, over="length" of one with a length each'


def relevance(chosen: EmpiricalBayes, data: object) -> dict[str, float]:
    """Return the standard deviation of each feature over its length: 0 where the length goes to infinity."""
    known, names = read(chosen.model, data), [name for name in chosen.over if name in ("scale", "length")]
    if "X" not in known or not any(np.ndim(getattr(chosen.model, name)) for name in names):
        raise InputError("there is no length for each feature to draw", "no_capability", hint=HINT)
    if not chosen.is_shown:
        raise Untrustworthy(f"the lengths are withheld: {'; '.join(chosen.reasons)}", "withheld")
    model: Any = chosen.model
    own = model.length if "length" in names else 1.0
    lengths = np.broadcast_to(np.asarray(model.scale) * np.asarray(own), known["X"].shape[1]).astype(np.float64).copy()
    for i, feature in enumerate(known["feature"]):
        if any(chosen.limits.get(f"{name}[{feature}]") == math.inf for name in names):
            lengths[i] = math.inf
    return dict(zip(map(str, known["feature"]), (known["X"].std(axis=0) / lengths).tolist(), strict=True))


def plot_relevance(chosen: EmpiricalBayes, data: object) -> Figure:
    """Draw how much each feature matters to a function: its standard deviation over its length.

    Parameters
    ----------
    chosen : EmpiricalBayes
        What `empirical_bayes` returned of a length for each feature: ``over="scale"`` of ``gaussian_process``, or
        ``over="length"`` of ``gaussian_process_classification`` with a length each.
    data : Data or anything that `read` takes
        The data that it was given.

    Returns
    -------
    matplotlib.figure.Figure
        A bar a feature, the largest above. At 1 the function changes over a standard deviation of the feature; at 0
        the length goes to infinity, and it does not depend on the feature (automatic relevance determination).

    Raises
    ------
    InputError
        When there is no length for each feature.
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
