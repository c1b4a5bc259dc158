"""The command ``bayeszoo select``."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from cyclopts import Parameter

from bayeszoo import files, terminal, zoo
from bayeszoo.data import Data
from bayeszoo.errors import InputError, Untrustworthy
from bayeszoo.model import Model
from bayeszoo.options import FieldOptions, TableOptions
from bayeszoo.tree import dumps

if TYPE_CHECKING:
    import pandas as pd

Prior = Literal["weak", "textbook"]

_TABLES = {
    "Evidence": {
        "log_evidence": "log evidence",
        "evidence_se": "error",
        "log_bayes_factor": "log Bayes factor",
        "log_bayes_factor_se": "error",
        "probability": "probability",
        "evidence_from": "from",
    },
    "Likelihood": {
        "log_likelihood": "maximum",
        "parameters": "parameters",
        "observations": "observations",
        "aic": "AIC",
        "bic": "BIC",
        "likelihood_from": "from",
    },
    "Prediction": {
        "loo": "LOO score",
        "loo_se": "se",
        "loo_mcse": "MC error",
        "loo_difference": "difference",
        "loo_difference_se": "se",
        "k_hat": "k-hat",
        "loo_from": "from",
    },
}
"""The tables that are printed: columns of the frame, and what heads them."""
_PRECISE = {"log_evidence", "log_likelihood", "aic", "bic", "loo"}


def select_command(
    data: str | None = None,
    /,
    *,
    candidates: Annotated[list[str], Parameter(name=("--candidate", "-c"), negative=(), consume_multiple=False)],
    prior: Prior = "weak",
    as_json: Annotated[bool, Parameter(name="--json", negative=())] = False,
    table: TableOptions | None = None,
) -> int:
    """Compare models of the same data: evidence, AIC and BIC, leave-one-out prediction.

    Nothing is fitted: models have closed forms, and others are given as fits.

    Parameters
    ----------
    data
        CSV, TSV or Parquet file; without it the first model's own data.
    candidates
        "MODEL [FIELD=JSON ...]", or a fit saved with -o (FILE.nc); repeated for each.
    prior
        The fields not given: weakly informative, scaled to the data; or the textbook's.
    as_json
        One JSON document on stdout, and nothing else.
    """
    from bayeszoo.select import select

    parsed = [_parse(text) for text in candidates]
    kinds = [kind for kind, _ in parsed if not isinstance(kind, Path)]
    table = table or TableOptions()
    if not kinds and (data is not None or table != TableOptions()):
        raise InputError("the candidates are fits, which bring their own data", hint="leave DATA and its options out")
    rows = table.read(kinds[0], data) if kinds else None
    _require_one_kind_of_data(kinds)
    made = [files.load(kind) if isinstance(kind, Path) else _model(kind, given, rows, prior) for kind, given in parsed]
    frame = select(made, rows)
    if as_json:
        sys.stdout.write(dumps({"prior": prior, "table": frame.to_dict("records")}) + "\n")
    else:
        _show(frame)
    return 0 if set(frame["status"]) == {"ok"} else Untrustworthy.exit_code


def _require_one_kind_of_data(kinds: Sequence[type[Model]]) -> None:
    for kind in kinds[1:]:
        if kind.inputs != kinds[0].inputs:
            names = f"{kinds[0].name} takes {kinds[0].inputs.describe()}; {kind.name} takes {kind.inputs.describe()}"
            raise InputError(f"the candidates are for different data: {names}")


def _parse(text: str) -> tuple[type[Model] | Path, dict[str, Any]]:
    """Read a candidate: a model with the fields that were given, or the file of a fit."""
    try:
        name, *sets = shlex.split(text)
    except ValueError:  # a quotation that does not end; nothing at all
        raise InputError(f"--candidate {text!r} is not a model with fields", hint="write 'MODEL a=1 b=5'") from None
    if name.endswith(".nc") and not sets:
        return Path(name), {}
    kind = zoo.find(name)
    try:
        return kind, FieldOptions(sets).fields(kind)
    except InputError as error:
        raise InputError(f"--candidate {text!r}: {str(error).removeprefix('--set ')}") from None


def _model(kind: type[Model], given: dict[str, Any], rows: Data | None, prior: Prior) -> Model:
    """Make the model for the data, and say whether they shaped its prior."""
    own = kind(**given)
    if prior == "textbook":
        return own
    made = cast(Model, replace(cast(Any, kind.weak(cast(Data, rows))), **given))
    if made != own:
        terminal.note(f"{made}: the prior is scaled to the data, and so is the log evidence")
    return made


def _show(frame: pd.DataFrame) -> None:
    """Print evidence, likelihood and prediction, each as a table."""
    for title, heads in _TABLES.items():
        cells = [_cells(row, heads) for row in frame.to_dict("records")]
        terminal.show(terminal.table(["model", *heads.values()], cells, title=title, words=["from"]))
    console = terminal.out()
    console.print("In nats, of the ordered observations. Probability: of the model, all being equally likely before.")
    console.print("AIC, BIC: less is better. LOO score: sum of leave-one-out log predictive densities; more is better.")


def _cells(row: dict[Any, Any], heads: Iterable[str]) -> list[Any]:
    return [row["model"], *(terminal.number(row[name], 9 if name in _PRECISE else 5) for name in heads)]
