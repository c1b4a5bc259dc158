"""The command ``bayeszoo predict``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bayeszoo.answers.predict import predict
from bayeszoo.cli import saved, terminal
from bayeszoo.cli.options import Json, Seed, TableOptions
from bayeszoo.cli.verbs.topics import show_proportions
from bayeszoo.errors import InputError
from bayeszoo.results import files
from bayeszoo.results.stored import Fit


def predict_command(
    fit_file: Path,
    data: str | None = None,
    /,
    *,
    rows: int | None = None,
    seed: Seed = 0,
    as_json: Json = False,
    table: TableOptions | None = None,
) -> None:
    """Predict new rows from a saved fit, and score the prediction where their outcome is known.

    Of a topic model, the topics of new documents.

    Parameters
    ----------
    fit_file
        A fit saved with -o.
    data
        Table of new rows.
    rows
        Without a table: number of further observations to predict; one by default.
    seed
        Seed of the predictive draws.
    as_json
        One JSON document on stdout, and nothing else.
    """
    tree = files.load(fit_file)
    frame = predict(tree, _new_rows(tree, data, rows, table or TableOptions()), seed=seed)
    whole = saved.about(tree)
    if "log_score" in frame:
        score = float(frame.reset_index().groupby("row")["log_score"].first().sum(skipna=False))
        whole["sum_of_log_scores"] = score
    if as_json:
        terminal.print_json({**whole, "rows": frame.reset_index().to_dict("records")})
    elif "log_score" in frame:
        terminal.show_prediction(frame.reset_index(), score, tree.attrs["kind"])
    else:
        show_proportions(frame, whole)


def _new_rows(tree: Any, data: str | None, rows: int | None, table: TableOptions) -> Any:
    if data is None and table == TableOptions():
        return 1 if rows is None else rows
    if rows is not None:
        raise InputError("give a table or --rows, not both")
    return table.read(type(Fit(tree).model), data, new=True, like=Fit(tree).like)
