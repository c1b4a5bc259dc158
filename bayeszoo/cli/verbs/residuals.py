"""The command ``bayeszoo residuals``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayeszoo.answers.predictive_check import predictive_check
from bayeszoo.answers.residuals import WITHHELD, residuals
from bayeszoo.cli import options as opt
from bayeszoo.cli import saved, terminal
from bayeszoo.plots.residuals import plot_residuals
from bayeszoo.report.tables import number
from bayeszoo.results import files

if TYPE_CHECKING:
    import pandas as pd

_WORST = ("observed", "mean", "sd", "standardized", "pit", "normal_score", "leverage", "k_hat")
_HEADS = {"pit": "PIT", "normal_score": "normal score", "k_hat": "k-hat"}
_CHECKS = {"observed": "observed", "mean": "replicates", "q025": "2.5%", "q975": "97.5%", "p_value": "p"}
_CHECKS |= {"mcse": "MC error"}
_ABOUT = """\
p: share of replicated data sets whose statistic is larger, ties half; near 0 or 1 the model
does not reproduce it. Not uniform under the true model, but nearer to 1/2: the data were used twice."""


def residuals_command(
    fit_file: opt.FitFile,
    /,
    *,
    plot: Path | None = None,
    overwrite: opt.Overwrite = False,
    rows: opt.AtLeast1 = 10,
    replicates: opt.AtLeast1 = 1000,
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
) -> None:
    """Check a saved fit against its data: residuals, QQ band, posterior predictive checks.

    Parameters
    ----------
    plot
        Draw the residuals here (.png, .pdf or .svg).
    rows
        How many of the worst rows are listed.
    replicates
        Number of data sets drawn for the predictive checks.
    seed
        Seed of these data sets, and of the randomized PITs of counts.
    """
    saved.probe(None, plot, overwrite)
    tree = files.load(fit_file)
    frame = residuals(tree, seed=seed)
    checks = predictive_check(tree, replicates=replicates, seed=seed)
    drawn = saved.draw(lambda: plot_residuals(frame), plot, overwrite)
    described = document(frame, checks, rows) | {"seed": seed, **drawn}
    if as_json:
        terminal.print_json(described)
    else:
        _show(described)


def document(frame: pd.DataFrame, checks: pd.DataFrame, rows: int) -> dict[str, Any]:
    """Return plain values: the rows furthest out in their predictive distributions, and `predictive_check`."""
    order = frame["log_tail"].sort_values(kind="stable", na_position="last").index
    worst = frame.loc[order[:rows]].reset_index().to_dict("records")
    facts = {str(name): value for name, value in frame.attrs.items()}
    return {**facts, "rows": len(frame), "worst": worst, "checks": checks.reset_index().to_dict("records")}


def _show(described: dict[str, Any]) -> None:
    """Print the worst rows, how the normal scores lie to their band, and the predictive checks."""
    import pandas as pd

    console = terminal.out()
    basis = "; ".join(f"{name} ({count} rows)" for name, count in described["basis"].items())
    console.print(f"{described['model']}, {described['method']}: residuals {basis}")
    used = [key for key in _WORST if any(not pd.isna(row[key]) for row in described["worst"])]
    cells = [[str(row["row"]), *(row[key] for key in used)] for row in described["worst"]]
    title = f"The {len(cells)} rows that lie furthest out, of {described['rows']}"
    terminal.show(terminal.table(["row", *(_HEADS.get(key, key) for key in used)], cells, title=title))
    for line in _lines(described):
        console.print(line)
    cells = [[row["statistic"], *(row[key] for key in _CHECKS)] for row in described["checks"]]
    terminal.show(terminal.table(["statistic", *_CHECKS.values()], cells, title="Posterior predictive checks"))
    for row in described["checks"]:
        if row["withheld"]:
            console.print(f"{row['statistic']}: withheld, {row['withheld']}")
    console.print(_ABOUT)


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
