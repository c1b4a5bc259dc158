"""Sentences on the candidate that each criterion of `select` prefers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bayeszoo.data.table.table import escaped
from bayeszoo.plots.select import CRITERIA, Criterion

if TYPE_CHECKING:
    import pandas as pd


_LONG = 40
"""Length of a name, in letters, above which it is shortened."""
_BETWEEN_FIELDS = re.compile(r", (?=\w+=)")


def plain(name: str) -> str:
    """Return a name without the fields of its model."""
    return name.partition("(")[0]


def short_names(names: list[str]) -> list[str]:
    """Return the names of models without the fields that candidates share, where names are long and remain unique.

    Examples
    --------
    >>> short_names(["ridge(center=[1.5, 2.5], scale=[1, 1], tau=1)", "ridge(center=[1.5, 2.5], scale=[1, 1], tau=5)"])
    ['ridge(tau=1)', 'ridge(tau=5)']
    """
    if max(map(len, names)) <= _LONG:
        return names
    short = [_distinct(name, [other for other in names if plain(other) == plain(name)]) for name in names]
    return short if len(set(short)) == len(names) else names


def _distinct(name: str, alike: list[str]) -> str:
    """Return the name with the fields in which it differs from candidates of the same model."""
    of_each = {other: _BETWEEN_FIELDS.split(other.partition("(")[2].removesuffix(")")) for other in alike}
    own = [field for field in of_each[name] if not all(field in fields for fields in of_each.values())]
    return f"{plain(name)}({', '.join(own)})" if own else plain(name)


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
