"""The decomposition of the difference of two groups: ``bayeszoo due-to``."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from bayeszoo.cli import options as opt
from bayeszoo.cli import terminal
from bayeszoo.cli.answers import ANSWER, AnswerOptions, about_answer, of_data
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Document
from bayeszoo.plots.decomposition import plot_due_to
from bayeszoo.report.text.numbers import estimate, number
from bayeszoo.tools.decomposition.due_to import CHANGE
from bayeszoo.tools.decomposition.kitagawa import ABOUT, kitagawa
from bayeszoo.tools.decomposition.totals import due_to_of_table

if TYPE_CHECKING:
    import pandas as pd


@Parameter(name="*")
@dataclass(frozen=True)
class GroupOptions:
    """The groups that are compared, and their parts.

    Parameters
    ----------
    within
        Column that names the parts (such as departments) of each group.
    before
        The group before the change; by default the first in the table.
    after
        The group after the change.
    """

    within: str | None = None
    before: str | None = None
    after: str | None = None


GROUPS = GroupOptions()


def due_to_command(
    data: opt.TableFile,
    /,
    *,
    by: str,
    total: str | None = None,
    groups: GroupOptions = GROUPS,
    draws: int = 4000,
    seed: opt.DrawnSeed = None,
    plot: Annotated[Path | None, Parameter(help="Draw the parts as a waterfall here (.png, .svg or .pdf).")] = None,
    shown: AnswerOptions = ANSWER,
    table: opt.TableOptions = opt.TABLE,
) -> None:
    """Decompose the difference of two groups' rates into a mix effect and a rate effect (Kitagawa), or of a total.

    Parameters
    ----------
    by
        Column that names the groups, or the periods.
    total
        Instead of rates: a total whose factors are columns, as 'volume * sum(mix * rate)'; sum(...) is over the parts.
    draws
        Number of posterior draws of shares and rates.
    """
    shown.probe(plot)
    if total is not None:
        return _decompose_total(data, total, by, groups, plot, shown, table)
    if groups.within is None:
        hint = "name the parts of each group with --within, or the factors with --total"
        raise InputError("due-to needs the parts of a rate, or a total", "missing_column", hint=hint)
    options = {**asdict(groups), "draws": draws, "seed": seed, **table.of_reading()}
    answer = kitagawa(data, by=by, **options)
    terminal.notes(answer.data.notes)
    asked = {"total": answer.formula, "by": by, "within": groups.within}
    how = {"kind": "observed exact, others sampled", "draws": answer.before.size, "notes": [ABOUT]}
    draw = shown.drawn(lambda: plot_due_to(answer), plot)
    shown.answer(answer.summary, about_answer(answer, "seed", **asked, **how), _show, plot=draw)


def _decompose_total(
    data: str,
    total: str,
    by: str,
    groups: GroupOptions,
    plot: Path | None,
    shown: AnswerOptions,
    table: opt.TableOptions,
) -> None:
    """Decompose the change of a total whose factors are columns of numbers: exact, without draws."""
    answer = due_to_of_table(data, total, by=by, **asdict(groups), **table.of_reading())
    whole = {"total": answer.formula, "by": by, "within": groups.within, "kind": answer.kind}
    shown.answer(answer.summary, whole, _show_total, plot=shown.drawn(lambda: plot_due_to(answer), plot))


def _show_total(frame: pd.DataFrame, whole: Document, digits: int | None) -> None:
    """Print the exact parts, and each as a share of the change."""
    change, ends = float(frame["mean"].to_dict()[CHANGE]), (frame.index[0], frame.index[-1])
    rows = [
        [str(name), number(value, digits or 6), f"{value / change:.1%}" if name not in ends and change else "-"]
        for name, value in frame["mean"].to_dict().items()
    ]
    terminal.show_table(["part", "exact", "share of the change"], rows, f"{whole['total']}, by {whole['by']}")
    terminal.out().print("Shapley values: the effect of each factor, averaged over all orders of the factors")


def _show(frame: pd.DataFrame, whole: Document, digits: int | None) -> None:
    """Print a row for each total and part."""
    title = f"{whole['total']} of {whole['within']}, by {whole['by']}, {of_data(whole['data'])}, seed {whole['seed']}"
    columns = ["part", "observed", "mean", "Monte Carlo error", "95%", "P(> 0)"]
    terminal.show_table(columns, [_part_cells(str(name), row, digits) for name, row in frame.iterrows()], title)
    terminal.show_each([f"observed: exact; others: {whole['draws']} draws from their posterior", *whole["notes"]])


def _part_cells(name: str, row: pd.Series, digits: int | None) -> list[str]:
    """Write a row, each number to the order of its Monte Carlo error."""
    mean, low, high, share = (
        estimate(row[key], row[f"mcse_{key}"], digits) for key in ("mean", "q025", "q975", "p_positive")
    )
    share = f"< {row['mcse_p_positive']:.1g}" if row["p_positive"] == 0 else share
    return [name, number(row["observed"], digits or 5), mean, number(row["mcse_mean"], 2), f"{low} to {high}", share]
