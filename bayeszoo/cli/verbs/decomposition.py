"""The difference of two groups taken apart: ``bayeszoo due-to``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from bayeszoo.cli import options as opt
from bayeszoo.cli import terminal
from bayeszoo.cli.answers import ANSWER, AnswerOptions
from bayeszoo.cli.verbs.resampling import about_data, of_data
from bayeszoo.plots.decomposition import plot_due_to
from bayeszoo.report.tables import estimate, number
from bayeszoo.tools.decomposition.kitagawa import ABOUT, kitagawa

if TYPE_CHECKING:
    import pandas as pd


def due_to_command(
    data: opt.TableFile,
    /,
    *,
    by: str,
    within: str,
    before: str | None = None,
    after: str | None = None,
    draws: int = 4000,
    seed: opt.DrawnSeed = None,
    plot: Annotated[Path | None, Parameter(help="Draw the parts as a waterfall here (.png, .svg or .pdf).")] = None,
    shown: AnswerOptions = ANSWER,
    table: opt.TableOptions = opt.TABLE,
) -> None:
    """Decompose the difference of two groups' rates into a mix effect and a rate effect (Kitagawa).

    Parameters
    ----------
    by
        Column that names the groups.
    within
        Column that names the parts (such as departments) of each group.
    before
        The group before the change; by default the first in the table.
    after
        The group after the change.
    draws
        Number of posterior draws of shares and rates.
    """
    shown.probe(plot)
    options = {"draws": draws, "seed": seed, **table.of_reading()}
    answer = kitagawa(data, by=by, within=within, before=before, after=after, **options)
    for line in answer.data.notes:
        terminal.note(f"note: {line}")
    frame = answer.summary
    whole = {
        "total": answer.formula,
        "by": by,
        "within": within,
        "kind": "observed exact, others sampled",
        "draws": answer.before.size,
        "seed": answer.seed,
        "data": about_data(answer.data),
        "notes": [ABOUT],
    }
    draw = shown.drawn(lambda: plot_due_to(answer), plot)
    shown.answer(frame, whole, _show, plot=draw)


def _show(frame: pd.DataFrame, whole: dict[str, Any], digits: int | None) -> None:
    """Print a row for each total and part."""
    title = f"{whole['total']} of {whole['within']}, by {whole['by']}, {of_data(whole['data'])}, seed {whole['seed']}"
    columns = ["part", "observed", "mean", "Monte Carlo error", "95%", "P(> 0)"]
    terminal.show_table(columns, [_of_part(str(name), row, digits) for name, row in frame.iterrows()], title)
    for line in (f"observed: exact; others: {whole['draws']} draws from their posterior", *whole["notes"]):
        terminal.out().print(line)


def _of_part(name: str, row: pd.Series, digits: int | None) -> list[str]:
    """Write a row, each number to the order of its Monte Carlo error."""
    mean, low, high, share = (
        estimate(row[key], row[f"mcse_{key}"], digits) for key in ("mean", "q025", "q975", "p_positive")
    )
    share = f"< {row['mcse_p_positive']:.1g}" if row["p_positive"] == 0 else share
    return [name, number(row["observed"], digits or 5), mean, number(row["mcse_mean"], 2), f"{low} to {high}", share]
