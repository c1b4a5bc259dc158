"""The gate for draws of any sampler: ``bayeszoo judge``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from bayeszoo.cli import saved, terminal
from bayeszoo.cli.answers import ANSWER, AnswerOptions
from bayeszoo.errors import Untrustworthy
from bayeszoo.foundation.named import Document
from bayeszoo.report.text.numbers import written
from bayeszoo.tools.draws.judge import Judgement, judge

if TYPE_CHECKING:
    import pandas as pd


_WORST = ("failed", "caution", "ok")
_TOLD_BY_DIGITS = ("mcse_sd", "mcse_q025", "mcse_median", "mcse_q975")
"""Errors that are not listed, as the digits of their numbers show them."""


def judge_command(
    draws: Annotated[Path, Parameter(help="NetCDF file (.nc) of an ArviZ tree, or Stan's CSV file of a chain.")],
    /,
    *more: Annotated[Path, Parameter(help="Stan's CSV files of further chains.")],
    shown: AnswerOptions = ANSWER,
) -> int:
    """Judge draws of any sampler, as PyMC's, NumPyro's or Stan's: what may be trusted, and what to do next."""
    shown.probe()
    answer = judge([draws, *more])
    whole = {
        "verdict": answer.verdict,
        "advice": list(answer.advice),
        "constant": list(answer.constant),
        "not_checked": list(answer.not_checked),
        "checks": {
            check.name: {"verdict": check.verdict, "value": check.value, "limit": check.limit}
            for check in answer.checks
        },
    }
    shown.answer(answer.quantities, whole, partial(_show, answer))
    return Untrustworthy.exit_code if answer.verdict == "failed" else 0


def _cell(row: pd.Series, column: str, digits: int | None) -> Any:
    return written(row, column, digits) if f"mcse_{column}" in row else row[column]


def _show(answer: Judgement, frame: pd.DataFrame, whole: Document, digits: int | None) -> None:
    """Print the quantities, doubtful ones first, and the verdict with the checks that failed and advice."""
    verdicts, r_hats = frame["verdict"].tolist(), frame["r_hat"].tolist()
    order = sorted(range(len(frame)), key=lambda i: (_WORST.index(verdicts[i]), -r_hats[i]))
    listed = frame.iloc[order].head(saved.MAX_ROWS)
    columns = [str(name) for name in frame if name != "why" and name not in _TOLD_BY_DIGITS]
    rows = [[str(name), *(_cell(row, column, digits) for column in columns)] for name, row in listed.iterrows()]
    terminal.show_table(
        ["quantity", *columns], rows, words=["verdict"], spare=["ess_tail", "ess_bulk", "median"], digits=digits
    )
    saved.note_more(len(frame), "quantities")
    terminal.show_lines(str(answer))
