"""The command ``bayeszoo decode``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayeszoo.answers.decode import decode, forecast
from bayeszoo.cli import saved, terminal
from bayeszoo.cli.options import FieldOptions, Flag, Json, Output, TableOptions
from bayeszoo.model import find as zoo
from bayeszoo.plots.states import plot_states
from bayeszoo.report.tables import number
from bayeszoo.results import files

if TYPE_CHECKING:
    import pandas as pd


def decode_command(
    fit_file: str,
    data: str | None = None,
    /,
    *,
    steps: int | None = None,
    plot: Path | None = None,
    output: Output = None,
    overwrite: Flag = False,
    as_json: Json = False,
    table: TableOptions | None = None,
    fields: FieldOptions | None = None,
) -> None:
    """Say what state each row of a hidden Markov model was in.

    Parameters
    ----------
    fit_file
        A fit saved with -o; or a model whose tables are all given by --set.
    data
        Table of other sequences; without it those of the fit, or the model's own data.
    steps
        Instead, predict this many rows after the last of each sequence.
    plot
        Picture of the states over time: PNG, SVG or PDF.
    output
        CSV file of all rows.
    overwrite
        Replace existing files.
    as_json
        One JSON document on stdout, and nothing else.
    """
    saved.probe(output, plot, overwrite)
    source, new, whole = _source(fit_file, data, table or TableOptions(), fields or FieldOptions())
    frame = decode(source, new) if steps is None else forecast(source, steps, new)
    whole |= {str(name): value for name, value in frame.attrs.items()}
    written = saved.write(frame, output, lambda: plot_states(source, new), plot, overwrite)
    if as_json:
        terminal.print_json({**whole, **written, "rows": frame.reset_index().to_dict("records")})
    else:
        _show(frame, whole)


def _source(name: str, data: str | None, table: TableOptions, fields: FieldOptions) -> tuple[Any, Any, dict[str, Any]]:
    """Return a fit or a model, the rows to decode, None for those of the fit, and what is to be said of both."""
    if fields.sets is not None:
        kind = zoo.find(name)
        model = kind(**fields.fields(kind))
        return model, table.read(kind, data), {"model": model.name, "method": "known tables", "kind": "exact"}
    tree = files.load(Path(name))
    return tree, saved.new_rows(tree, data, table), saved.about(tree)


def _show(frame: pd.DataFrame, whole: dict[str, Any]) -> None:
    """Print the rows, without Monte Carlo errors where there are none, and what is known of them as a whole."""
    frame = frame.drop(columns=[c for c in frame if str(c).startswith("mcse") and frame[c].isna().all()])
    console, kind = terminal.out(), terminal.kind_of(frame, whole["kind"])
    saved.show_rows(frame, saved.title(whole, kind))
    if "expected_errors" in whole:
        errors = number(whole["expected_errors"], 4)
        joint, rows = (number(whole[name], 10) for name in ("viterbi_log_joint", "log_likelihood"))
        console.print(f"Expected number of rows with a wrong state: {errors} of {len(frame)}.")
        where = "" if kind in ("point estimate", "exact") else ", at the draw of highest density"
        said = f"Log joint density of the Viterbi path and the rows {joint}, log likelihood of the rows {rows}"
        console.print(f"{said}{where}.")
    if "log_predictive" in whole:
        score, error = (number(whole[name], 5) for name in ("log_predictive", "mcse_log_predictive"))
        console.print(f"Log predictive density of the rows {score} +- {error}, averaged over the draws.")
    if "states_withheld" in whole:
        console.print(f"Probabilities of states are withheld: {whole['states_withheld']}.")
    if whole["kind"] == "point estimate":
        console.print("The estimate is plugged in: how uncertain the parameters are is not in the numbers.")
