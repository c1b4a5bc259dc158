"""Groups of rows: ``bayeszoo fit --by COLUMN`` and ``bayeszoo contrasts``."""

from __future__ import annotations

import math
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayeszoo.cli import options as opt
from bayeszoo.cli import saved, terminal
from bayeszoo.comparison.by import contrasts, fit_parts
from bayeszoo.data.by import read_by
from bayeszoo.data.table.table import escaped
from bayeszoo.report.tables import estimate, number, statistic
from bayeszoo.results import files
from bayeszoo.results.stored import Fit, fits_of
from bayeszoo.results.summary import document, elements, listed, summarize

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bayeszoo.model.base import Model

MOST_IN_FULL = 10
"""Groups up to which a file holds all that ArviZ can use; of more it holds what that is made from, by bz.extend."""
_ESTIMATES = ("mean", "sd", "q025", "median", "q975", "mcse_mean")


def fit_groups(
    model: type[Model],
    data: str | None,
    by: str,
    method: str,
    prior: opt.PriorOptions,
    table: opt.TableOptions,
    output: Path | None,
    overwrite: bool,
    as_json: bool,
    digits: int | None,
    **options: Any,
) -> int:
    """Fit every group of rows, save the fits in one file, and print the estimates and the contrasts."""
    if output is not None:
        files.probe(output, overwrite)
    whole, parts = read_by(model, data, by, **table.of_reading())
    for line in whole.notes:
        terminal.note(f"note: {line}")
    with closing(terminal.TerminalReporter()) as reporter:
        groups = () if output is None or len(parts) > MOST_IN_FULL else None
        tree = fit_parts(prior.model(model, whole), parts, by, method, reporter=reporter, groups=groups, **options)
    for fit in fits_of(tree).values():
        fit.attrs |= {"command": terminal.typed(data, output), "prior": prior.prior}
    try:
        if output is not None:
            files.save(tree, output, overwrite)
            terminal.note(f"wrote {output}")
    finally:  # a full disk must not take the printed result with it
        _answer(tree, contrasts(tree), as_json, digits, {"saved": None if output is None else str(output)})
    return terminal.verdict(list(fits_of(tree).values()))


def contrasts_command(
    fit_file: opt.FitFile,
    /,
    *,
    against: str | None = None,
    output: opt.RowsFile = None,
    overwrite: opt.Overwrite = False,
    as_json: opt.Json = False,
    digits: opt.Digits = None,
) -> None:
    """Compare the groups of a fit that was saved with --by.

    Parameters
    ----------
    against
        The group that the others are compared with; by default all pairs, of more than five groups each with the first.
    """
    saved.probe(output, None, overwrite)
    tree = files.load(fit_file)
    frame = contrasts(tree, against)
    _answer(tree, frame, as_json, digits, saved.write(frame, output))


def _answer(tree: xr.DataTree, frame: pd.DataFrame, as_json: bool, digits: int | None, written: dict[str, Any]) -> None:
    """Print the estimates of all groups and their contrasts, as tables or as one JSON document."""
    fits, by = fits_of(tree), str(tree.attrs["by"])
    if not as_json:
        return _show(by, fits, frame, digits)
    documents = {label: document(fit) for label, fit in fits.items()}
    about = {"by": by, "groups": documents, "withheld": frame.attrs["withheld"]}
    terminal.print_json({**about, "contrasts": frame.to_dict("records"), **written})


def _show(by: str, fits: dict[str, xr.DataTree], frame: pd.DataFrame, digits: int | None) -> None:
    """Print a row for each quantity and group, and one for each contrast."""
    rows, first = list[list[str]](), next(iter(fits.values()))
    keys = [key for key in _ESTIMATES if Fit(first).kind == "sampled" or not key.startswith("mcse")]
    for label, fit in fits.items():
        described, posterior = summarize(fit, listed(fit)), fit["posterior"].to_dataset()
        for name, summary in described.items():
            for index, quantity in elements(posterior[name]) if summary["mean"] is not None else ():
                rows.append([quantity, label, *(_cell(summary, key, index, digits) for key in keys)])
    title = f"{Fit(first).model}, {first.attrs['method']}, each {by} by itself, seed {first.attrs['seed']}"
    rows.sort(key=lambda row: row[0])
    terminal.show_table(["quantity", by, *keys], rows, title=title, words=[by], spare=("mcse_mean", "median"))
    for line in frame.attrs["withheld"]:
        terminal.note(f"withheld: {line}")
    if len(frame):
        heads = ["quantity", "groups", "P(greater)", "difference", "95%", "ratio", "95% of the ratio"]
        contrasted = [_contrast(row) for row in frame.head(saved.MAX_ROWS).to_dict("records")]
        alone = frame["quantity"].nunique() == 1
        title = f"contrasts of {escaped(frame['quantity'].iloc[0])}" if alone else "contrasts"
        rows = [row[alone:] for row in contrasted]
        terminal.show_table(heads[alone:], rows, title, ["groups"], spare=["ratio", "difference"])
        saved.note_more(len(frame), "contrasts")


def _cell(summary: dict[str, Any], key: str, index: tuple[int, ...], digits: int | None) -> str:
    values, errors = summary[key], summary.get(f"mcse_{key}")
    if values is None:
        return "-"
    return statistic(key, float(values[index]), None if errors is None else float(errors[index]), digits)


def _contrast(row: dict[Any, Any]) -> list[str]:
    """Write a contrast with its errors and intervals; a ratio only of what is positive."""
    is_sampled, has_ratio = not math.isnan(row["p_greater_mcse"]), not math.isnan(row["ratio"])
    values = []
    for name in ("p_greater", "difference"):
        error = row[f"{name}_mcse"]
        values.append(f"{estimate(row[name], error)} \u00b1 {number(error, 1)}" if is_sampled else number(row[name], 4))
    spans = [
        f"{number(row[f'{name}_q025'], 3)} to {number(row[f'{name}_q975'], 3)}" for name in ("difference", "ratio")
    ]
    ratio = [number(row["ratio"], 3), spans[1]] if has_ratio else ["", ""]
    return [row["quantity"], f"{row['group']} - {row['against']}", *values, spans[0], *ratio]
