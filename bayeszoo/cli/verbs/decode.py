"""The command ``bayeszoo decode``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from bayeszoo.answers.decode import decode, forecast
from bayeszoo.cli import terminal
from bayeszoo.cli.options import FieldOptions, TableOptions
from bayeszoo.cli.verbs.assign import MAX_ROWS, as_csv
from bayeszoo.errors import InputError
from bayeszoo.foundation import writing
from bayeszoo.model import find as zoo
from bayeszoo.plots.states import plot_states
from bayeszoo.report.tables import number
from bayeszoo.results import files
from bayeszoo.results.stored import Fit, dumps

if TYPE_CHECKING:
    import pandas as pd


def decode_command(
    fit_file: str,
    data: str | None = None,
    /,
    *,
    steps: int | None = None,
    plot: Path | None = None,
    output: Annotated[Path | None, Parameter(name=("--output", "-o"))] = None,
    overwrite: Annotated[bool, Parameter(negative=())] = False,
    as_json: Annotated[bool, Parameter(name="--json", negative=())] = False,
    table: TableOptions | None = None,
    fields: FieldOptions | None = None,
) -> None:
    """Say what state each row of a hidden Markov model was in.

    Parameters
    ----------
    fit_file
        A fit saved with -o; with --set, a model all tables of which are given so.
    data
        Table of other sequences; without it those of the fit, or the model's own data.
    steps
        Predict so many rows after the last of each sequence instead.
    plot
        Picture of the states over time: PNG, SVG or PDF.
    output
        CSV file of all rows.
    overwrite
        Replace existing files.
    as_json
        One JSON document on stdout, and nothing else.
    """
    if output is not None:
        writing.require_writable(output, overwrite)
    if plot is not None:
        writing.probe_figure(plot, overwrite)
    source, new, whole = _source(fit_file, data, table or TableOptions(), fields or FieldOptions())
    frame = decode(source, new) if steps is None else forecast(source, steps, new)
    whole |= {str(name): value for name, value in frame.attrs.items()}
    _save(frame, source, new, output, plot, overwrite)
    if as_json:
        saved = {name: None if path is None else str(path) for name, path in (("saved", output), ("plot", plot))}
        sys.stdout.write(dumps({**whole, **saved, "rows": frame.reset_index().to_dict("records")}) + "\n")
    else:
        show(frame, whole)


def _source(name: str, data: str | None, table: TableOptions, fields: FieldOptions) -> tuple[Any, Any, dict[str, Any]]:
    """Return a fit or a model, the rows to decode, None for those of the fit, and what is to be said of both."""
    if fields.sets is not None:
        found = zoo.find(name)
        model = found(**fields.fields(found))
        return model, table.read(found, data), {"model": model.name, "method": "known tables", "kind": "exact"}
    tree = files.load(Path(name))
    if data is None and table != TableOptions():
        raise InputError("the options of a table go with DATA")
    new = None if data is None else table.read(type(Fit(tree).model), data, new=True, like=Fit(tree).like)
    return tree, new, {attr: tree.attrs[attr] for attr in ("model", "method", "kind")}


def _save(frame: pd.DataFrame, source: Any, new: Any, output: Path | None, plot: Path | None, overwrite: bool) -> None:
    if output is not None:
        writing.write_text(as_csv(frame), output)
        terminal.note(f"wrote {output}")
    if plot is not None:
        terminal.note(f"wrote {writing.write_figure(plot_states(source, new), plot, overwrite)}")


def show(frame: pd.DataFrame, whole: dict[str, Any]) -> None:
    """Print the rows, without Monte Carlo errors where there are none, and what is known of them as a whole."""
    frame = frame.drop(columns=[c for c in frame if str(c).startswith("mcse") and frame[c].isna().all()])
    columns, console = [str(frame.index.name), *map(str, frame.columns)], terminal.out()
    kind = terminal.kind_of(frame, whole["kind"])
    cells = [[str(row[0]), *row[1:]] for row in frame.head(MAX_ROWS).itertuples()]
    terminal.show(terminal.table(columns, cells, title=f"{whole['model']}, {whole['method']} ({kind})"))
    if len(frame) > MAX_ROWS:
        console.print(f"The first {MAX_ROWS} of {len(frame)} rows; all of them: --json or -o.")
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
