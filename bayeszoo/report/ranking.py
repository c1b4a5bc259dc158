"""Which of several candidates each criterion of `select` prefers, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayeszoo.data.table.table import escaped
from bayeszoo.plots.select import CRITERIA, Criterion

if TYPE_CHECKING:
    import pandas as pd


def ranking(frame: pd.DataFrame) -> list[str]:
    """Name the best candidate by each criterion, and the criteria that rank none because a candidate lacks them.

    Parameters
    ----------
    frame : pandas.DataFrame
        Of `select`, with two candidates or more.

    Returns
    -------
    list of str
    """
    known = [criterion for criterion in CRITERIA if frame[criterion.column].notna().any()]
    best = [f"{each.title}: {_best(each, frame)}" for each in known if each.ranks(frame)]
    others = [each.title for each in known if not each.ranks(frame)]
    lines = [f"Best by {'; '.join(best)}."] * bool(best)
    return lines + [f"Not ranked, as not every candidate has it: {', '.join(others)}."] * bool(others)


def _best(criterion: Criterion, frame: pd.DataFrame) -> str:
    """Return sentences on the best candidates, on others within two errors of them, and on those not ranked."""
    is_ok, is_best = (frame["status"] == "ok").to_numpy(), criterion.best(frame)
    names = " and ".join(escaped(name) for name in frame["model"][is_best])
    is_near = is_ok & ~is_best & (criterion.behind(frame) <= 2 * criterion.errors(frame))
    unclear = ", by no clear difference" * bool(is_near.any())
    others = int((~is_ok).sum())
    return names + unclear + f" ({others} not ranked)" * bool(others)
