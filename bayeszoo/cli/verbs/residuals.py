"""The command ``bayeszoo residuals``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

from bayeszoo.answers.predictive_check import predictive_check
from bayeszoo.answers.residuals import WITHHELD, residuals
from bayeszoo.cli import terminal
from bayeszoo.cli.options import Flag, Json, Seed
from bayeszoo.foundation import writing
from bayeszoo.plots.residuals import plot_residuals
from bayeszoo.report.tables import number
from bayeszoo.results import files

if TYPE_CHECKING:
    import pandas as pd

_WORST = {
    "observed": "observed",
    "mean": "mean",
    "sd": "sd",
    "standardized": "standardized",
    "pit": "PIT",
    "normal_score": "normal score",
    "leverage": "leverage",
    "k_hat": "k-hat",
}
"""Columns of the frame that are printed, and what heads them."""
_CHECKS = {
    "observed": "observed",
    "mean": "replicates",
    "q025": "2.5%",
    "q975": "97.5%",
    "p_value": "p",
    "mcse": "MC error",
}


def residuals_command(
    fit_file: Path,
    /,
    *,
    plot: Path | None = None,
    overwrite: Flag = False,
    rows: Annotated[int, Parameter(validator=Number(gte=1))] = 10,
    replicates: Annotated[int, Parameter(validator=Number(gte=1))] = 1000,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Check a saved fit against its data: residuals, QQ band, posterior predictive checks.

    Parameters
    ----------
    fit_file
        A fit saved with -o.
    plot
        Draw the residuals here (.png, .pdf or .svg).
    overwrite
        Replace an existing picture.
    rows
        How many of the worst rows are listed.
    replicates
        Number of data sets drawn for the predictive checks.
    seed
        Seed of these data sets, and of the randomized PITs of counts.
    as_json
        One JSON document on stdout, and nothing else.
    """
    if plot is not None:
        writing.probe_figure(plot, overwrite)
    tree = files.load(fit_file)
    frame = residuals(tree, seed=seed)
    checks = predictive_check(tree, replicates=replicates, seed=seed)
    if plot is not None:
        terminal.note(f"wrote {writing.write_figure(plot_residuals(frame), plot, overwrite)}")
    described = document(frame, checks, rows) | {"seed": seed, "plot": None if plot is None else str(plot)}
    if as_json:
        terminal.print_json(described)
    else:
        _show(described)


def document(frame: pd.DataFrame, checks: pd.DataFrame, rows: int) -> dict[str, Any]:
    """Return what is printed as plain values.

    Parameters
    ----------
    frame : pandas.DataFrame
        Of `residuals`.
    checks : pandas.DataFrame
        Of `predictive_check`.
    rows : int
        How many of the rows with the largest absolute normal scores are listed.
    """
    order = frame["normal_score"].abs().sort_values(ascending=False, kind="stable", na_position="last").index
    worst = frame.loc[order[:rows]].reset_index().to_dict("records")
    facts = {str(name): value for name, value in frame.attrs.items()}
    return {**facts, "rows": len(frame), "worst": worst, "checks": checks.reset_index().to_dict("records")}


def _show(described: dict[str, Any]) -> None:
    """Print the worst rows, how the normal scores lie to their band, and the predictive checks."""
    console = terminal.out()
    basis = "; ".join(f"{name} ({count} rows)" for name, count in described["basis"].items())
    console.print(f"{described['model']}, {described['method']}: residuals {basis}")
    used = {key: head for key, head in _WORST.items() if any(_known(row[key]) for row in described["worst"])}
    cells = [[str(row["row"]), *(row[key] for key in used)] for row in described["worst"]]
    title = f"The {len(cells)} rows with the largest normal scores, of {described['rows']}"
    terminal.show(terminal.table(["row", *used.values()], cells, title=title))
    for line in _lines(described):
        console.print(line)
    cells = [[row["statistic"], *(row[key] for key in _CHECKS)] for row in described["checks"]]
    terminal.show(terminal.table(["statistic", *_CHECKS.values()], cells, title="Posterior predictive checks"))
    for row in described["checks"]:
        if row["withheld"]:
            console.print(f"{row['statistic']}: withheld, {row['withheld']}")
    console.print("p: share of replicated data sets whose statistic is larger, ties half; near 0 or 1 the model")
    console.print(
        "does not reproduce it. Not uniform under the true model, but nearer to 1/2: the data were used twice."
    )


def _known(value: Any) -> bool:
    return value is not None and value == value  # NaN is not itself


def _lines(described: dict[str, Any]) -> list[str]:
    """Say how the normal scores as a whole lie to what is expected of them."""
    scored = described["rows"] - described["basis"].get(WITHHELD, 0)
    level, p = (number(described[key], 3) for key in ("band_pointwise_level", "ks_p"))
    band = f"the simultaneous {described['band']:.0%} band (each at level {level})"
    lines = [
        f"QQ plot: {described['outside']} of {scored} normal scores outside {band}",
        f"Kolmogorov-Smirnov p {p} of uniform PITs (approximate: they share one fit)",
    ]
    if described["randomized"]:
        lines.append("PITs of discrete outcomes are randomized: another --seed gives others")
    return lines
