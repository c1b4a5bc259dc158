"""The picture of bias and variance against a penalty or a degree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.comparison.bias_variance import COLUMNS, ESTIMATES
from bayeszoo.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_bias_variance(
    result: pd.DataFrame, against: Mapping[Any, float] | None = None, label: str | None = None, log: bool = False
) -> Figure:
    """Draw squared bias, variance, noise and expected error of the models, one panel an estimate.

    Bars are one Monte Carlo standard error; crosses are the measured test error. Grey crosses at the foot are models
    of which all is withheld.

    Parameters
    ----------
    result : pandas.DataFrame
        Of `bias_variance`.
    against : mapping of names to float, optional
        Where each model is drawn, such as its degree or penalty; by default the names themselves where they are
        numbers, else one place after the other.
    label : str, optional
        What that is.
    log : bool
        Whether its axis is logarithmic.

    Returns
    -------
    matplotlib.figure.Figure
        Made without pyplot.

    Raises
    ------
    InputError
        When the result is not of `bias_variance`, or ``against`` lacks a model or is not > 0 on a logarithmic axis.
    """
    from matplotlib.figure import Figure

    if not set(COLUMNS) <= set(getattr(result, "columns", ())) or not len(result):
        raise InputError("the result is not one that bias_variance returned")
    names = list(dict.fromkeys(result["model"]))
    places, ticks = _places(names, against)
    if log and min(places.values()) <= 0:
        raise InputError("a logarithmic axis needs places > 0")
    shown = [e for e in ESTIMATES if (result.loc[result["estimate"] == e, "from"] != "withheld: no closed form").any()]
    figure = Figure(figsize=(1 + 3.6 * max(len(shown), 1), 3.8), layout="constrained")
    axes = figure.subplots(1, max(len(shown), 1), sharey=True, squeeze=False)[0]
    for panel, estimate in zip(axes, shown, strict=False):
        part = result[result["estimate"] == estimate]
        _draw(panel, part.assign(place=[places[name] for name in part["model"]]).sort_values("place"), estimate)
        panel.set_xlabel(label or ("model" if ticks else "place"))
        panel.set_xscale("log" if log else "linear")
        if ticks:
            panel.set_xticks(list(places.values()), [str(name) for name in places], rotation=90, parse_math=False)
    axes[0].set_ylabel("mean squared error")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize="small")
    return figure


def _places(names: Sequence[Any], against: Mapping[Any, float] | None) -> tuple[dict[Any, float], bool]:
    """Return where each model is drawn, and whether its name must stand there."""
    if against is not None:
        lacking = next((name for name in names if name not in against), None)
        if lacking is not None:
            raise InputError(f"against has no place for {lacking!r}")
        return {name: float(against[name]) for name in names}, False
    if all(isinstance(name, int | float | np.number) for name in names):
        return {name: float(name) for name in names}, False
    return {name: float(i) for i, name in enumerate(names)}, True


def _draw(panel: Axes, part: pd.DataFrame, title: str) -> None:
    panel.set_title(title)
    known = part[part["from"] == "simulation"]
    for column, what in (("bias2", "squared bias"), ("variance", "variance"), ("expected_error", "expected error")):
        panel.errorbar(known["place"], known[column], known[f"{column}_mcse"], fmt="o-", ms=3, label=what)
    panel.plot(known["place"], known["noise"], "--", color="0.5", label="noise")
    panel.plot(known["place"], known["test_error"], "x", color="k", label="test error")
    lost = part[part["from"] != "simulation"]
    panel.plot(
        lost["place"],
        np.full(len(lost), 0.03),
        "x",
        color="0.6",
        transform=panel.get_xaxis_transform(),
        label="withheld",
    )
