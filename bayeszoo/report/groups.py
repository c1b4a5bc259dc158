"""Tables and a page about fits by group: the estimates of all groups, and their contrasts."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bayeszoo.comparison.best import best_of_many
from bayeszoo.comparison.by import contrasts, estimates
from bayeszoo.comparison.closed_contrasts import SMALLEST
from bayeszoo.comparison.contrast_columns import LOWEST
from bayeszoo.plots.groups import plot_groups
from bayeszoo.report import checks, provenance, verdict
from bayeszoo.report.blocks import Code, Section, Words, picture, table
from bayeszoo.report.families.screens import Answer
from bayeszoo.report.text.numbers import digits_for, estimate, interval, number, statistic, without_error
from bayeszoo.results.stored import fits_of
from bayeszoo.results.summary import document

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

MOST_CHECKED = 10
"""Most groups whose models are checked against their data."""
_ESTIMATES = ("mean", "sd", "q025", "median", "q975", "mcse_mean")


def estimates_by_group(tree: xr.DataTree, digits: int | None = None) -> tuple[list[str], list[list[str]]]:
    """Return the columns, and one row per shown quantity and group."""
    is_point = tree.attrs["kind"] == "point estimate"
    keys = _ESTIMATES[:1] if is_point else _ESTIMATES[: None if tree.attrs["kind"] == "sampled" else -1]
    rows = [_estimate(row, keys, digits) for row in estimates(tree).to_dict("records")]
    return ["quantity", str(tree.attrs["by"]), *(["estimate"] if is_point else keys)], rows


def _estimate(row: dict[Any, Any], keys: tuple[str, ...], digits: int | None) -> list[str]:
    statistics = [statistic(key, row[key], row.get(f"mcse_{key}"), digits, row.get("sd")) for key in keys]
    return [row["quantity"], row["group"], *statistics]


def contrast_rows(frame: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Return the columns, and one row per contrast."""
    columns = ["quantity", "groups", "P(greater)", "difference", "95%", "ratio", "95% of the ratio"]
    count = len(columns) if len(frame) and frame["ratio"].notna().any() else 5
    return columns[:count], [_contrast(row)[:count] for row in frame.to_dict("records")]


def _contrast(row: dict[Any, Any]) -> list[str]:
    """Return a contrast with its errors and intervals; ratios are for positive quantities only."""
    error = row["ratio_mcse"] if row["ratio_mcse"] > 0 else None
    ratio = [number(row["ratio"], 3) if error is None else estimate(row["ratio"], error), _span(row, "ratio")]
    ratio = ["", ""] if math.isnan(row["ratio"]) else ratio
    return [row["quantity"], f"{row['group']} - {row['against']}", *_compared(row), *ratio]


def _compared(row: dict[Any, Any]) -> list[str]:
    """Return the probability that the first is greater, the difference with its error, and its interval."""
    values = list[str]()
    for name in ("p_greater", "difference"):
        value, error = row[name], row[f"{name}_mcse"]
        width = row["difference_q975"] - row["difference_q025"] if name == "difference" else math.nan
        if error > 0:
            values.append(f"{estimate(value, error)} \u00b1 {number(error, 1)}")
        elif math.isnan(error) and _is_by_draws(row):
            values.append(without_error(value, width=width))
        else:
            values.append(_exact(name, value, digits_for(value, width / 4, 4)))
    return [*values, _span(row, "difference")]


def _exact(name: str, value: float, digits: int) -> str:
    """Return a number without a Monte Carlo error; a probability too small for the quadrature by its bound."""
    return f"< {SMALLEST:g}" if value == 0 and name.startswith("p_") else number(value, digits)


def _is_by_draws(row: dict[Any, Any]) -> bool:
    """Return whether a contrast is by draws: then a number without an error has heavy tails."""
    return not math.isnan(row["p_greater_mcse"])


def _span(row: dict[Any, Any], name: str) -> str:
    ends = (f"{name}_{level}" for level in ("q025", "q975"))
    return interval(*((row[end], row[f"{end}_mcse"]) for end in ends))


def best_rows(frame: pd.DataFrame, rope: float | None = None) -> tuple[list[str], list[list[str]]]:
    """Return the columns, and one row per group: whether it is the best, and by how much.

    The expected loss of choosing a group is that against the best of all others. With ``rope`` also the probability
    that the group is the best by more than ``rope``.
    """
    names = ["loss_group", *(["p_above"] if rope is not None else [])]
    columns = ["quantity", "group", "P(best)", "difference", "95%", "expected loss"]
    rows = [
        [row["quantity"], row["group"], *_compared(row), *(_with_digits(row, name) for name in names)]
        for row in frame.to_dict("records")
    ]
    return [*columns, *([] if rope is None else [f"P(> {rope:g})"])], rows


def about_best(frame: pd.DataFrame) -> str:
    """Return the title of the table of `best_rows`."""
    counts = {*frame.groupby("quantity")["group"].nunique()}
    of_groups = f"best of {min(counts)} groups" if len(counts) == 1 else "best groups"
    scale = f", in the {frame.attrs['of'].partition(';')[0]}" if "of" in frame.attrs else ""
    better, end = ("lower", "lowest") if {*frame["against"]} == {LOWEST} else ("higher", "highest")
    return f"{of_groups}{scale}, if {better} is better: each against the {end} of the others"


def decision_rows(
    frame: pd.DataFrame, rope: float | None, *, lowest: bool = False
) -> tuple[list[str], list[list[str]]]:
    """Return the columns, and one row per contrast: the expected loss of each choice, and the better choice.

    If ``lowest`` is better, the two losses change places. With ``rope`` also the probabilities that the difference is
    above ``rope`` or below minus ``rope``. Point estimates have no losses.
    """
    losses = ["loss of first", "loss of second"]
    beyond = [] if rope is None else [f"P(> {rope:g})", f"P(< {-rope:g})"]
    shown = frame[frame["loss_group"].notna()].to_dict("records") if len(frame) else []
    return ["quantity", "groups", "choose", *losses, *beyond], [_decision(row, rope, lowest) for row in shown]


def _decision(row: dict[Any, Any], rope: float | None, lowest: bool) -> list[str]:
    first, second = ("loss_against", "loss_group") if lowest else ("loss_group", "loss_against")
    choice = row["group"] if row[first] < row[second] else row["against"]
    pair, beyond = f"{row['group']} - {row['against']}", [] if rope is None else ["p_above", "p_below"]
    return [row["quantity"], pair, choice, *(_with_digits(row, name) for name in (first, second, *beyond))]


def _with_digits(row: dict[Any, Any], name: str) -> str:
    """Return a probability or loss to the digits that its Monte Carlo error supports."""
    value, error = row[name], row[f"{name}_mcse"]
    if error > 0:
        return estimate(value, error)
    return without_error(value) if math.isnan(error) and _is_by_draws(row) else _exact(name, value, 4)


def parts(tree: xr.DataTree) -> dict[str, Any]:
    """Return the parts of the page about fits by group: verdicts, a picture, estimates and contrasts."""
    by, named = tree.attrs["by"], {label: (fit, document(fit)) for label, fit in fits_of(tree).items()}
    main, first = next((label, fit) for label, (fit, _) in named.items())
    documents, frame = {label: described for label, (_, described) in named.items()}, contrasts(tree)
    best = best_of_many(tree)
    rows = sum(int(fit.tree.attrs["data_rows"]) for fit, _ in named.values())
    again = Section("again", "How to make it again", [Code(typed)] if (typed := provenance.command(first)) else [])
    return {
        "title": f"{tree.attrs['model']} by {by}",
        "about": provenance.about([type(first.model)]),
        "data": f"{rows:,} rows of {first.data_source or 'arrays'} in {len(named)} groups",
        "notes": first.notes,
        "verdicts": _verdicts(named),
        "winner": [],
        "answer": Answer(below=[picture(lambda: plot_groups(tree), f"estimates by {by} and differences", wide=True)]),
        "estimates": _estimates(tree, frame, best, main),
        "sections": [section for section in (verdict.section(named, main, []), again) if section.blocks],
        "numbers": {"groups": documents, "contrasts": frame.to_dict("records"), "best": best.to_dict("records")},
    }


def _verdicts(named: verdict.Named) -> list[verdict.Verdict]:
    """Return verdicts on each fit and its model; with many fits only on failed ones."""
    verdicts = [verdict.verdict(label, described) for label, (_, described) in named.items()]
    if len(named) <= MOST_CHECKED:
        return verdicts + [checks.Checked(fit).verdict(f"{label}: model") for label, (fit, _) in named.items()]
    good = [of_group for of_group in verdicts if of_group.state in ("ok", "approximate")]
    words = "All passed their checks, which are below."
    passed = [replace(good[0], name=f"{len(good)} of {len(verdicts)} groups", words=words)] if good else []
    return [*passed, *(of_group for of_group in verdicts if of_group not in good)]


def _estimates(tree: xr.DataTree, frame: pd.DataFrame, best: pd.DataFrame, main: str) -> Section:
    """List the contrasts of the groups, and the estimates of each group."""
    about = "P(greater) is the probability that the quantity is greater in the first group than in the second."
    columns, rows = contrast_rows(frame)
    compared = [table(columns, rows, "Differences between groups", ["groups"]), Words(about, "note")] if rows else []
    if len(best):
        compared = [table(*best_rows(best), about_best(best).capitalize(), ["group"]), *compared]
    withheld = [Words(f"Withheld: {line}.", "bad") for line in frame.attrs["withheld"]]
    heads, listed = estimates_by_group(tree)
    by_group = table([verdict.HEADS.get(head, head) for head in heads], listed, words=[str(tree.attrs["by"])])
    more = f"All checks of one group: bayeszoo report FILE.nc:{main} -o report.html"
    return Section("estimates", "Estimates", [*compared, *withheld, by_group, Words(more, "note")])
