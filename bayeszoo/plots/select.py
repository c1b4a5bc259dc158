"""The picture of a selection: all criteria, each relative to its best candidate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayeszoo.errors import InputError
from bayeszoo.plots.style import panels, short

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_SHOWN = 32
"""Most candidates drawn; more would not be legible."""
_LINEAR_UP_TO = 10.0
"""If differences are large, the axis is linear up to this and logarithmic beyond."""
_CANDIDATES: dict[str, Any] = {"ecolor": "0.6", "ms": 4, "label": "candidates"}
_BEST: dict[str, Any] = {"color": "C1", "ms": 12, "zorder": 3, "label": "best"}
_WITHHELD: dict[str, Any] = {"color": "0.93", "lw": 0, "zorder": 0, "label": "withheld"}
_NO_VALUE: dict[str, Any] = {"ha": "center", "va": "center", "color": "0.5", "fontsize": "x-small"}
_ABOUT = "Star: best{}; grey: withheld; bar: one standard error{}"


class Criterion(NamedTuple):
    """A column of the table, and whether higher is better; ``error`` is the column with the error of the difference."""

    column: str
    title: str
    more_is_better: bool
    error: str = ""

    def behind(self, table: pd.DataFrame) -> np.ndarray:
        """Return how far each candidate is behind the best, 0 for the best, NaN where the criterion is withheld.

        The best has status ok, if any such candidate has the criterion; others may then be ahead of it.
        """
        values = table[self.column].to_numpy(dtype=float) * (-1 if self.more_is_better else 1)
        ok = values[_are_ok(table) & ~np.isnan(values)]
        return values if np.isnan(values).all() else values - np.nanmin(ok if len(ok) else values)

    def ranks(self, table: pd.DataFrame) -> bool:
        """Say whether there is a best: at least two candidates are ok, and all of these have a value."""
        has_value = table.loc[_are_ok(table), self.column].notna()
        return len(has_value) > 1 and bool(has_value.all())

    def best(self, table: pd.DataFrame) -> np.ndarray:
        """Return marks of the best candidates: several if equal, none if the criterion does not rank."""
        rounding = 1e-12 * np.nanmax(np.abs(table[self.column].to_numpy(dtype=float)), initial=1.0)
        return (self.behind(table) <= rounding) & _are_ok(table) & self.ranks(table)

    def errors(self, table: pd.DataFrame) -> np.ndarray:
        """Return the standard error of each difference, 0 without one."""
        return np.nan_to_num(table[self.error].to_numpy(dtype=float)) if self.error else np.zeros(len(table))


def _are_ok(table: pd.DataFrame) -> np.ndarray:
    return (table["status"] == "ok").to_numpy()


CRITERIA = (
    Criterion("log_evidence", "log evidence", True, "log_bayes_factor_se"),
    Criterion("aic", "AIC", False),
    Criterion("bic", "BIC", False),
    Criterion("ric", "RIC", False),
    Criterion("mdl", "MDL", False),
    Criterion("nml", "NML", False),
    Criterion("kfold", "K-fold", True, "kfold_difference_se"),
    Criterion("loo", "leave-one-out", True, "loo_difference_se"),
)
ELBO = Criterion("elbo", "ELBO", True)
OF_SOME = ("elbo", "ric", "nml")
"""Criteria of some models only, which are not drawn if no candidate has them."""


def plot_select(table: pd.DataFrame) -> Figure:
    """Draw the result of `select`, with a panel for each criterion and a line for each candidate.

    If candidates differ in the number of components K, or of factors q, the criteria of any candidate are drawn against
    this number. Otherwise each panel shows how far candidates are behind the best of the criterion, which is at 0;
    better is left. Bars are one standard error of the difference, if it has one. A star marks the best, unless a
    candidate lacks the criterion; a grey stripe marks a withheld value. Of more than 32 candidates only those that are
    first by some criterion are drawn, and the figure gives the number of the others.

    Parameters
    ----------
    table : pandas.DataFrame
        Result of `select`; candidates are drawn in its order, from the top.

    Returns
    -------
    matplotlib.figure.Figure
        Made without pyplot: nothing is shown or kept; ``figure.savefig("select.png")`` writes it.

    Raises
    ------
    InputError
        When the table is not from `select`, or empty.
    """
    _require_table(table)
    criteria = [CRITERIA[0], ELBO, *CRITERIA[1:]]
    criteria = [c for c in criteria if c.column not in OF_SOME or table[c.column].notna().any()]
    K = table["components"]
    if len(table) > 1 and K.notna().all() and K.is_unique:  # several numbers of components, each once
        return _against_components(table.sort_values("components", ignore_index=True), criteria)
    return _against_candidates(table, criteria)


def _require_table(table: Any) -> None:
    needed = {
        "model",
        "components",
        "elbo",
        "status",
        *(c.column for c in CRITERIA),
        *(c.error for c in CRITERIA if c.error),
    }
    if not needed <= set(getattr(table, "columns", ())):
        raise InputError("the table is not a result of bz.select", "not_a_fit", hint="give bz.select(candidates, data)")
    if not len(table):
        raise InputError("the table has no candidates", "no_data")


def _against_components(table: pd.DataFrame, criteria: Sequence[Criterion]) -> Figure:
    """Draw each criterion with any value against the number of components; the best is on top."""
    criteria = [c for c in criteria if table[c.column].notna().any()] or criteria[:1]
    figure, axes = _panels(criteria, 2.2, 3.2)
    K = table["components"].to_numpy(dtype=float)
    axis_label = "factors q" if table["model"].str.startswith("q=").all() else "components K"
    for panel, criterion in zip(axes, criteria, strict=True):
        behind, errors = criterion.behind(table), criterion.errors(table)
        has_value, best = ~np.isnan(behind), criterion.best(table)
        panel.errorbar(K[has_value], behind[has_value], yerr=errors[has_value], fmt="o-", lw=0.8, **_CANDIDATES)
        panel.plot(K[best], behind[best], "*", **_BEST)
        for k in K[~has_value]:
            panel.axvspan(k - 0.3, k + 0.3, **_WITHHELD)
            panel.text(k, 0.5, "withheld", transform=panel.get_xaxis_transform(), rotation="vertical", **_NO_VALUE)
        if np.nanmax(behind, initial=0.0) > 5 * _LINEAR_UP_TO:
            panel.set_yscale("symlog", linthresh=_LINEAR_UP_TO)
        panel.invert_yaxis()
        panel.set_xlabel(axis_label, fontsize="small")
        panel.set_ylabel(_behind_the_best(criterion, table), fontsize="small")
        panel.set_xticks(K, [f"{k:g}" for k in K])
        panel.margins(y=0.12)
    figure.suptitle(_ABOUT.format("", " of the difference from the best"), fontsize="medium")
    return figure


def _against_candidates(table: pd.DataFrame, criteria: Sequence[Criterion]) -> Figure:
    """Draw how far each candidate is behind the best of each criterion, on axes of one scale."""
    behind, errors = (np.array([getattr(c, name)(table) for c in criteria]) for name in ("behind", "errors"))
    chosen = _chosen(behind)
    figure, axes = _panels(criteria, 0.0, 1.8 + 0.27 * len(chosen), sharey=True)
    places, largest = np.arange(len(chosen)), float(np.nanmax(behind[:, chosen], initial=0.0))
    for panel, criterion, x, dx in zip(axes, criteria, behind[:, chosen], errors[:, chosen], strict=True):
        has_value, best = ~np.isnan(x), criterion.best(table)[chosen]
        panel.errorbar(x[has_value], places[has_value], xerr=dx[has_value], fmt="o", color="C0", **_CANDIDATES)
        panel.plot(x[best], places[best], "*", **_BEST)
        for place in places[~has_value]:
            panel.axhspan(place - 0.4, place + 0.4, **_WITHHELD)
            panel.text(0.5, place, "withheld", transform=panel.get_yaxis_transform(), **_NO_VALUE)
        panel.set_xlabel(_behind_the_best(criterion, table) if has_value.any() else "withheld", fontsize="small")
        panel.axvline(0, color="0.8", lw=0.8, zorder=0)
        panel.grid(axis="y", color="0.93")
        panel.margins(x=0.12)
        if largest > 5 * _LINEAR_UP_TO:
            panel.set_xscale("symlog", linthresh=_LINEAR_UP_TO)
        elif largest == 0:  # one candidate, or all equal
            panel.set_xlim(-1, 1)
    axes[0].set_yticks(places, [short(name) for name in table["model"].iloc[chosen]], parse_math=False)
    axes[0].set_ylim(len(chosen) - 0.5, -0.5)
    hidden = len(table) - len(chosen)
    more = f"; {hidden} of {len(table)} candidates are not shown" if hidden else ""
    figure.suptitle(_ABOUT.format(" of all candidates", more), fontsize="medium")
    return figure


def _panels(criteria: Sequence[Criterion], beside: float, height: float, **options: Any) -> tuple[Figure, list[Axes]]:
    figure, axes = panels(len(criteria), 2.4 + beside / len(criteria), height, **options)
    for panel, criterion in zip(axes, criteria, strict=True):
        panel.set_title(criterion.title, fontsize="medium")
        panel.tick_params(labelsize="small")
    return figure, axes


def _behind_the_best(criterion: Criterion, table: pd.DataFrame) -> str:
    label = "behind the best" if criterion.ranks(table) else "not ranked: difference"
    return f"{label}{'' if criterion.column in ('aic', 'bic') else ' (nats)'}"


def _chosen(behind: np.ndarray) -> np.ndarray:
    """Return the places of candidates to draw, those with the best ranks by any criterion, in the table's order."""
    ranks = np.argsort(np.argsort(np.where(np.isnan(behind), np.inf, behind), axis=1, kind="stable"), axis=1)
    best = np.where(np.isnan(behind), behind.shape[1], ranks).min(axis=0)
    return np.sort(np.argsort(best, kind="stable")[:MAX_SHOWN])
