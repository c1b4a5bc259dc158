"""Sentences on the candidate that each criterion of `select` prefers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayeszoo.data.table.table import escaped
from bayeszoo.plots.select import CRITERIA, Criterion

if TYPE_CHECKING:
    import pandas as pd


def ranking(frame: pd.DataFrame) -> list[str]:
    """Return lines on the best candidate by each criterion, and on criteria that a candidate lacks.

    Parameters
    ----------
    frame : pandas.DataFrame
        The table of `select`, with at least two candidates.

    Returns
    -------
    list of str
    """
    criteria = [criterion for criterion in CRITERIA if frame[criterion.column].notna().any()]
    best = [f"{criterion.title}: {_best(criterion, frame)}" for criterion in criteria if criterion.ranks(frame)]
    lacking = [criterion.title for criterion in criteria if not criterion.ranks(frame)]
    lines = [f"Best by {'; '.join(best)}."] * bool(best)
    return lines + [f"Not ranked, as not every candidate has it: {', '.join(lacking)}."] * bool(lacking)


def _best(criterion: Criterion, frame: pd.DataFrame) -> str:
    """Return the best candidates, and whether others are within two errors, or are not ranked."""
    is_ok, is_best = (frame["status"] == "ok").to_numpy(), criterion.best(frame)
    names = " and ".join(escaped(name) for name in frame["model"][is_best])
    is_near = is_ok & ~is_best & (criterion.behind(frame) <= 2 * criterion.errors(frame))
    unclear = ", by no clear difference" * bool(is_near.any())
    not_ranked = int((~is_ok).sum())
    return names + unclear + f" ({not_ranked} not ranked)" * bool(not_ranked)
