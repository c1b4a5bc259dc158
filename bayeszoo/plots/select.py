"""The picture of a selection: every criterion beside the others, each relative to its best candidate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_SHOWN = 32
"""Candidates that are drawn; more could not be read."""
MAX_NAME = 40
_LINEAR_UP_TO = 10.0
"""Where differences are large, the axis is linear to here and logarithmic beyond."""


@dataclass(frozen=True)
class Criterion:
    """A column of the table, and whether more of it is better; ``error`` is that of its difference from the best."""

    column: str
    title: str
    more_is_better: bool
    error: str | None = None

    def behind(self, table: pd.DataFrame) -> np.ndarray:
        """Return how far each candidate is behind the best: 0 for it, NaN where the criterion is withheld."""
        values = table[self.column].to_numpy(dtype=float)
        if np.isnan(values).all():
            return values
        return np.nanmax(values) - values if self.more_is_better else values - np.nanmin(values)

    def errors(self, table: pd.DataFrame) -> np.ndarray:
        """Return the standard error of each difference, 0 where there is none."""
        return np.zeros(len(table)) if self.error is None else np.nan_to_num(table[self.error].to_numpy(dtype=float))


CRITERIA = (
    Criterion("log_evidence", "log evidence", True, "log_bayes_factor_se"),
    Criterion("aic", "AIC", False),
    Criterion("bic", "BIC", False),
    Criterion("mdl", "MDL", False),
    Criterion("kfold", "K-fold", True, "kfold_difference_se"),
    Criterion("loo", "leave-one-out", True, "loo_difference_se"),
)
ELBO = Criterion("elbo", "ELBO", True)
"""Of models with latent variables only."""


def plot_select(table: pd.DataFrame) -> Figure:
    """Draw what `select` returned: one panel a criterion, one line a candidate.

    Where the candidates differ in the number of components K, or of factors q, the criteria that there are of some of
    them are drawn against it. Else every panel shows how far each candidate is behind the best of that criterion, which
    is at 0; better is left. Bars are one standard error of the difference, where it has one. A star marks the best, a
    grey cross at the edge what is withheld. Of more than 32 candidates those that come first by some criterion are
    drawn, and the figure says how many are not.

    Parameters
    ----------
    table : pandas.DataFrame
        Of `select`; candidates are drawn in its order, from the top.

    Returns
    -------
    matplotlib.figure.Figure
        Made without pyplot: nothing is shown or kept; ``figure.savefig("select.png")`` writes it.

    Raises
    ------
    InputError
        When the table is not of `select`, or empty.
    """
    from matplotlib.figure import Figure

    _require_table(table)
    if _is_of_components(table):
        return _against_components(table)
    chosen, criteria = _chosen(table), _criteria(table)
    figure = Figure(figsize=(2.4 * len(criteria), 1.8 + 0.27 * len(chosen)), layout="constrained")
    panels = figure.subplots(1, len(criteria), sharey=True, squeeze=False)[0]
    drawn = [(c.behind(table)[chosen], c.errors(table)[chosen]) for c in criteria]
    largest = max((float(np.nanmax(behind, initial=0.0)) for behind, _ in drawn), default=0.0)
    for panel, criterion, (behind, errors) in zip(panels, criteria, drawn, strict=True):
        _draw(panel, criterion, behind, errors)
        _scale(panel, largest)
    names = [_short(name) for name in table["model"].iloc[chosen]]
    panels[0].set_yticks(range(len(names)), names, parse_math=False)
    panels[0].set_ylim(len(names) - 0.5, -0.5)
    hidden = len(table) - len(chosen)
    more = f"; {hidden} of {len(table)} candidates are not shown" if hidden else ""
    figure.suptitle(f"Star: best of all candidates; cross: withheld; bar: one standard error{more}", fontsize="medium")
    return figure


def _require_table(table: Any) -> None:
    needed = {"model", "components", "elbo", *(c.column for c in CRITERIA), *(c.error for c in CRITERIA if c.error)}
    if not needed <= set(getattr(table, "columns", ())):
        raise InputError("the table is not one that select returned", hint="give bz.select(candidates, data)")
    if not len(table):
        raise InputError("the table has no candidates")


def _criteria(table: pd.DataFrame) -> list[Criterion]:
    return [CRITERIA[0], *([ELBO] if table["elbo"].notna().any() else []), *CRITERIA[1:]]


def _is_of_components(table: pd.DataFrame) -> bool:
    """Say whether the candidates are several numbers of components, each once."""
    return len(table) > 1 and bool(table["components"].notna().all()) and table["components"].is_unique


def _against_components(table: pd.DataFrame) -> Figure:
    """Draw each criterion that there is of some candidate against the number of components; the best is on top."""
    from matplotlib.figure import Figure

    table = table.sort_values("components", ignore_index=True)
    criteria = [one for one in _criteria(table) if table[one.column].notna().any()] or [CRITERIA[0]]
    figure = Figure(figsize=(2.2 + 2.4 * len(criteria), 3.2), layout="constrained")
    K = table["components"].to_numpy(dtype=float)
    what = "factors q" if table["model"].str.startswith("q=").all() else "components K"
    for panel, criterion in zip(figure.subplots(1, len(criteria), squeeze=False)[0], criteria, strict=True):
        _draw_against(panel, criterion, K, criterion.behind(table), criterion.errors(table))
        panel.set_xlabel(what, fontsize="small")
    figure.suptitle(
        "Star: best; cross: withheld; bar: one standard error of the difference from the best", fontsize="medium"
    )
    return figure


def _draw_against(panel: Axes, criterion: Criterion, K: np.ndarray, behind: np.ndarray, errors: np.ndarray) -> None:
    known, best = ~np.isnan(behind), behind == 0
    lost = K[~known]
    at, edge = K[known], panel.get_xaxis_transform()
    panel.errorbar(at, behind[known], yerr=errors[known], fmt="o-", ecolor="0.6", ms=4, lw=0.8, label="candidates")
    panel.plot(K[best], behind[best], "*", color="C1", ms=12, zorder=3, label="best")
    panel.plot(lost, np.full(len(lost), 0.04), "x", color="0.5", transform=edge, label="withheld")
    if np.nanmax(behind, initial=0.0) > 5 * _LINEAR_UP_TO:
        panel.set_yscale("symlog", linthresh=_LINEAR_UP_TO)
    panel.invert_yaxis()
    panel.set_title(criterion.title, fontsize="medium")
    panel.set_ylabel(_behind_the_best(criterion), fontsize="small")
    panel.set_xticks(K, [f"{k:g}" for k in K])
    panel.tick_params(labelsize="small")
    panel.margins(y=0.12)  # room for the crosses at the edge


def _behind_the_best(criterion: Criterion) -> str:
    return f"behind the best{'' if criterion.column in ('aic', 'bic') else ' (nats)'}"


def _chosen(table: pd.DataFrame) -> np.ndarray:
    """Return the places of the candidates to draw: those with the best rank by any criterion, in the table's order."""
    behind = np.array([criterion.behind(table) for criterion in _criteria(table)])
    ranks = np.argsort(np.argsort(np.where(np.isnan(behind), np.inf, behind), axis=1, kind="stable"), axis=1)
    best = np.where(np.isnan(behind), len(table), ranks).min(axis=0)
    return np.sort(np.argsort(best, kind="stable")[:MAX_SHOWN])


def _draw(panel: Axes, criterion: Criterion, behind: np.ndarray, errors: np.ndarray) -> None:
    places = np.arange(len(behind))
    known, best = ~np.isnan(behind), behind == 0
    panel.errorbar(
        behind[known], places[known], xerr=errors[known], fmt="o", color="C0", ecolor="0.6", ms=4, label="candidates"
    )
    panel.plot(behind[best], places[best], "*", color="C1", ms=12, zorder=3, label="best")
    panel.plot(
        np.full(np.sum(~known), 0.96), places[~known], "x", color="0.5", transform=panel.get_yaxis_transform(),
        label="withheld",
    )  # fmt: skip
    panel.set_title(criterion.title, fontsize="medium")
    panel.set_xlabel(_behind_the_best(criterion) if known.any() else "withheld", fontsize="small")


def _scale(panel: Axes, largest: float) -> None:
    """Set the axis, in the same way for all panels."""
    panel.axvline(0, color="0.8", lw=0.8, zorder=0)
    panel.grid(axis="y", color="0.93")
    panel.tick_params(labelsize="small")
    panel.margins(x=0.12)  # room for the crosses at the edge
    if largest > 5 * _LINEAR_UP_TO:
        panel.set_xscale("symlog", linthresh=_LINEAR_UP_TO)
    elif largest == 0:  # one candidate, or all alike
        panel.set_xlim(-1, 1)


def _short(name: Any) -> str:
    text = "".join(c if c.isprintable() else " " for c in str(name))
    return text if len(text) <= MAX_NAME else text[: MAX_NAME - 1] + "…"
