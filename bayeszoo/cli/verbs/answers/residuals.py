"""Checks of a saved fit against its data: ``bayeszoo residuals``."""

from __future__ import annotations

import math
from collections.abc import Hashable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayeszoo.answers.checks.predictive_check import WITH_ERRORS, predictive_check
from bayeszoo.answers.checks.residuals import UNKNOWN, residuals
from bayeszoo.cli import options as opt
from bayeszoo.cli import saved, terminal
from bayeszoo.cli.answers import ANSWER, AnswerOptions
from bayeszoo.cli.groups import by_group
from bayeszoo.data.inputs import Inputs
from bayeszoo.foundation.named import Document
from bayeszoo.model.capabilities.sequential import Sequential
from bayeszoo.plots.residuals import plot_residuals
from bayeszoo.report.next_model import conclusion
from bayeszoo.report.text.numbers import number, with_error, written
from bayeszoo.report.text.series import conclusion_of_series
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import pandas as pd

_WORST = ("observed", "mean", "sd", "deviance", "standardized", "pit", "normal_score", "leverage", "k_hat")
_HEADS = {"pit": "PIT", "normal_score": "normal score", "k_hat": "k-hat"}
_HEADS |= {f"mcse_{name}": f"mcse_{_HEADS.get(name, name)}" for name in _WORST}
_CHECKS = {"observed": "observed", "mean": "replicates", "q025": "2.5%", "q975": "97.5%", "p_value": "p"}
_CHECKS |= {"mcse": "MC error"}
_ABOUT_CHECKS = """\
p: share of replicated data sets with a larger statistic (ties count half). p near 0 or 1: misfit.
p-values are conservative because the same data fitted the model."""


@by_group
def residuals_command(
    fit_file: opt.FitFile,
    /,
    *,
    plot: Path | None = None,
    rows: opt.AtLeast1 = 10,
    replicates: opt.AtLeast1 = 1000,
    seed: opt.Seed = 0,
    shown: AnswerOptions = ANSWER,
) -> None:
    """Check a saved fit against its data: residuals, QQ band, posterior predictive checks.

    Parameters
    ----------
    plot
        Draw the residuals here (.png, .pdf or .svg).
    rows
        Number of largest residuals to list.
    replicates
        Number of replicated data sets for the predictive checks.
    seed
        Seed of the replicated data sets and of the randomized PITs of counts.
    """
    tree = shown.load(fit_file, plot)
    frame = residuals(tree, seed=seed)
    model = Fit(tree).model
    series = isinstance(model, Sequential)  # rows of a series depend on those before
    checks = None if series else predictive_check(tree, replicates=replicates, seed=seed)
    worst, facts = worst_rows(frame, rows), {**frame.attrs, "rows": len(frame)}

    def document(written: saved.Written) -> Document:
        tables = {"worst": saved.records(worst), **({} if checks is None else {"checks": saved.records(checks)})}
        return {**{str(name): value for name, value in facts.items()}, **tables, "seed": seed, **written}

    draw = shown.drawn(lambda: plot_residuals(frame), plot)
    show = partial(_show_residuals, worst, checks, facts, model.inputs, shown.digits)
    shown.deliver(show, document, frame, plot=draw)


def _about_all(facts: dict[Hashable, Any], digits: int | None) -> list[str]:
    """Return lines on the normal scores in their band, and on the test of uniform PITs."""
    if math.isnan(facts["outside"]):
        return ["QQ plot and Kolmogorov-Smirnov test: withheld, as they need all rows."]
    level = number(facts["band_pointwise_level"], digits or 3)
    p = with_error(facts["ks_p"], facts["mcse_ks_p"], number(facts["ks_p"], digits or 3), digits)
    count = facts["rows"] - sum(facts["basis"].get(name, 0) for name in UNKNOWN)
    outside = f"{facts['outside']} of {count} normal scores outside"
    return [
        f"QQ plot: {outside} the simultaneous {facts['band']:.0%} band (each at level {level})",
        f"Kolmogorov-Smirnov p {p} of uniform PITs (approximate: they share one fit)",
    ]


def worst_rows(frame: pd.DataFrame, rows: int) -> pd.DataFrame:
    """Return the most extreme rows of `residuals`: of counts and binary outcomes by deviance, of others by tail."""
    rank = -frame["deviance"].abs() if frame["deviance"].notna().any() else frame["log_tail"]
    return frame.loc[rank.sort_values(kind="stable", na_position="last").index[:rows]]


def _show_residuals(
    worst: pd.DataFrame, checks: pd.DataFrame | None, facts: dict[Hashable, Any], inputs: Inputs, digits: int | None
) -> None:
    """Print the largest residuals, how many normal scores lie outside the band, and the predictive checks."""
    console, basis = terminal.out(), facts["basis"]
    said = "; ".join(f"{name} ({count} rows)" for name, count in basis.items())
    console.print(f"{facts['model']}, {facts['method']}: residuals {said}")
    names = list(worst.columns[: list(worst.columns).index("observed")])  # times
    names += [name for column in _WORST for name in (column, f"mcse_{column}") if name in worst]
    known = worst[[name for name in names if worst[name].notna().any()]].rename(columns=_HEADS)
    saved.show_rows(known, f"The {len(worst)} largest residuals of {facts['rows']}", digits=digits)
    terminal.show_each(_about_all(facts, digits))
    if facts["randomized"]:
        console.print("PITs of discrete outcomes are randomized by --seed")
    if checks is None:
        return _show_series(facts, digits)
    cells = {name: [written(row, name, digits) for row in saved.records(checks)] for name in WITH_ERRORS}
    shown = checks.assign(**cells)[list(_CHECKS)].rename(columns=_CHECKS)
    saved.show_rows(shown, "Posterior predictive checks", digits=digits)
    for name, why in checks["withheld"].items():
        if why:
            console.print(f"{name}: withheld, {why}")
    terminal.show_lines(_ABOUT_CHECKS)
    return terminal.show_each(conclusion(checks, inputs, facts["model"]))


def _show_series(facts: dict[Hashable, Any], digits: int | None) -> None:
    """Print whether the residuals of a series depend on earlier ones, and which model to try next."""
    console = terminal.out()
    if math.isnan(facts["ljung_box_p"]):
        return console.print(conclusion_of_series(facts, facts["model"])[0])
    r, p, extreme = (number(facts[key], digits or 3) for key in ("lag_1", "ljung_box_p", "extreme_p"))
    console.print(f"Autocorrelation of normal scores {r}; Ljung-Box p {p} of the first {facts['ljung_box_lags']}")
    console.print(f"p of a largest score as large {extreme}")
    return terminal.show_each(conclusion_of_series(facts, facts["model"]))
