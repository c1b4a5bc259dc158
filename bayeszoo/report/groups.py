"""Fits by group as tables: the estimates of all groups, and what they differ by."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from bayeszoo.report.tables import estimate, number, statistic
from bayeszoo.results.stored import fits_of
from bayeszoo.results.summary import elements, listed, summarize

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

_ESTIMATES = ("mean", "sd", "q025", "median", "q975", "mcse_mean")


def estimates_by_group(tree: xr.DataTree, digits: int | None = None) -> tuple[list[str], list[list[str]]]:
    """Return the columns and a row for each quantity that is shown and each group."""
    fits, by, rows = fits_of(tree), str(tree.attrs["by"]), dict[str, list[list[str]]]()
    is_point = tree.attrs["kind"] == "point estimate"
    keys = _ESTIMATES[:1] if is_point else _ESTIMATES[: None if tree.attrs["kind"] == "sampled" else -1]
    for label, fit in fits.items():
        described, posterior = summarize(fit, listed(fit)), fit["posterior"].to_dataset()
        for name, summary in described.items():
            for index, quantity in elements(posterior[name]) if summary["mean"] is not None else ():
                cells = [_cell(summary, key, index, digits) for key in keys]
                rows.setdefault(quantity, []).append([quantity, label, *cells])
    return ["quantity", by, *(["estimate"] if is_point else keys)], [row for own in rows.values() for row in own]


def _cell(summary: dict[str, Any], key: str, index: tuple[int, ...], digits: int | None) -> str:
    values, errors = summary[key], summary.get(f"mcse_{key}")
    if values is None:
        return "-"
    return statistic(key, float(values[index]), None if errors is None else float(errors[index]), digits)


def contrast_rows(frame: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Return the columns and a row for each contrast."""
    columns = ["quantity", "groups", "P(greater)", "difference", "95%", "ratio", "95% of the ratio"]
    return columns, [_contrast(row) for row in frame.to_dict("records")]


def _contrast(row: dict[Any, Any]) -> list[str]:
    """Write a contrast with its errors and intervals; a ratio only of what is positive."""
    is_sampled, has_ratio = not math.isnan(row["p_greater_mcse"]), not math.isnan(row["ratio"])
    values = []
    for name in ("p_greater", "difference"):
        error = row[f"{name}_mcse"]
        values.append(f"{estimate(row[name], error)} \u00b1 {number(error, 1)}" if is_sampled else number(row[name], 4))
    bounds = [[row[f"{name}_{level}"] for level in ("q025", "q975")] for name in ("difference", "ratio")]
    spans = ["-" if math.isnan(low) else f"{number(low, 3)} to {number(high, 3)}" for low, high in bounds]
    ratio = [number(row["ratio"], 3), spans[1]] if has_ratio else ["", ""]
    return [row["quantity"], f"{row['group']} - {row['against']}", *values, spans[0], *ratio]
