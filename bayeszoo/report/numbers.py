"""The numbers: the estimates of each fit, and all fits side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bayeszoo.report import tables
from bayeszoo.report.blocks import Choice, Section, Skipped, Table, Words, table

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

_IN_BRIEF = 8
"""Scalars of the first table."""
_BRIEF = ("parameter", "mean", "estimate", "sd", "q025", "q975")
HEADS = {"q025": "2.5%", "q975": "97.5%", "mcse_mean": "MCSE", "ess_bulk": "ESS bulk", "ess_tail": "ESS tail"}
HEADS |= {"r_hat": "R-hat", "error_sd": "error/sd", "sd_ratio": "sd ratio"}


def estimates(tree: xr.DataTree, document: Mapping[str, Any]) -> Table:
    """Return the table of estimates of a fit, as the terminal has it."""
    columns, rows = tables.estimate_rows(tree, document)
    return table([HEADS.get(name, name) for name in columns], rows)


def in_brief(tree: xr.DataTree, document: Mapping[str, Any]) -> Table | Skipped:
    """Return the first few estimates: mean, sd and interval; or why there are none."""
    columns, rows = tables.estimate_rows(tree, document)
    kept = [i for i, name in enumerate(columns) if name in _BRIEF]
    rows = [row for row in rows if any(row[i] is not None for i in kept[1:])]
    if not rows:
        return Skipped("estimates", document["facts"].get("components_withheld") or "none is listed by itself")
    more = len(rows) - _IN_BRIEF
    caption = f"The first {_IN_BRIEF} of {len(rows)}; all of them below." if more > 0 else ""
    shown = [[row[i] for i in kept] for row in rows[:_IN_BRIEF]]
    return table([HEADS.get(columns[i], columns[i]) for i in kept], shown, caption, sortable=False)


def section(named: Mapping[str, tuple[xr.DataTree, Mapping[str, Any]]], main: str) -> Section:
    """List the estimates of each fit, and what it says of itself as a whole; ``main`` is shown first."""
    options = {
        name: [*(Words(f"{line}.") for line in tables.figures(document)), estimates(tree, document)]
        for name, (tree, document) in named.items()
    }
    return Section("estimates", "Estimates", [Choice("fit", options, main)])


def comparison(frame: pd.DataFrame) -> Section:
    """Put all fits side by side; what is withheld throughout is left out."""
    filled = [_without_blanks(*one) for one in tables.comparison_tables(frame)]
    said = [one for one in filled if one.rows and len(one.columns) > 1]
    return Section("comparison", "Side by side", [*said, Words(" ".join(tables.ABOUT_COMPARISON), "note")])


def _without_blanks(title: str, columns: list[str], rows: list[list[Any]], words: list[str]) -> Table:
    """Make a table of the columns, and of estimates also of the rows, that say anything."""
    names = 2 if columns[0] == "parameter" else 1
    rows = [row for row in rows if names == 1 or any(cell != "-" for cell in row[names:])]
    kept = [i for i in range(len(columns)) if i < names or any(row[i] != "-" for row in rows)]
    return table([columns[i] for i in kept], [[row[i] for i in kept] for row in rows], title, words)
