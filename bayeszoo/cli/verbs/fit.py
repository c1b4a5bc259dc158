"""The command ``bayeszoo fit``."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from bayeszoo.cli import terminal
from bayeszoo.cli.options import Flag, Json, MethodOptions, Output, PriorOptions, Seed, TableOptions
from bayeszoo.fit import check_method, fit
from bayeszoo.model import find as zoo
from bayeszoo.results import files

if TYPE_CHECKING:
    import xarray as xr

    from bayeszoo.data.read import Data
    from bayeszoo.foundation.progress import Reporter
    from bayeszoo.model.accumulated import Accumulated
    from bayeszoo.model.base import Model


def fit_command(
    name: str,
    data: str | None = None,
    /,
    *,
    method: str = "nuts",
    seed: Seed | None = None,
    output: Output = None,
    overwrite: Flag = False,
    as_json: Json = False,
    chunk_rows: Annotated[int | None, Parameter(validator=Number(gte=1))] = None,
    prior: PriorOptions | None = None,
    table: TableOptions | None = None,
    options: MethodOptions | None = None,
) -> int:
    """Fit a model to a table by one method.

    Parameters
    ----------
    name
        The model; see `bayeszoo list`.
    data
        CSV, TSV or Parquet file; the model's own data without it.
    method
        exact, enumerate, mle, map, em, vb, online_vb, laplace, advi, fullrank_advi, nuts, gibbs or smc.
    seed
        Source of all randomness; one is drawn and reported without it.
    output
        Save the fit here (.nc).
    overwrite
        Replace an existing file.
    as_json
        One JSON document on stdout, and nothing else.
    chunk_rows
        Read so many rows at a time and keep their statistics only, of a file larger than memory.
    """
    from bayeszoo.results.summary import document

    model = zoo.find(name)
    check_method(model, method)
    if output is not None:
        files.probe(output, overwrite)
    prior = prior or PriorOptions()
    reporter = terminal.TerminalReporter()
    try:
        made, rows = _model_and_data(model, data, prior, table or TableOptions(), chunk_rows, reporter)
        given = (options or MethodOptions()).given
        groups = () if output is None else None  # nobody asks what is not saved
        tree = fit(made, rows, method, seed=seed, reporter=reporter, groups=groups, **given)
    finally:
        reporter.close()
    tree.attrs |= {"command": shlex.join(sys.argv[1:]), "prior": prior.prior}
    described = {**document(tree), "prior": prior.prior, "saved": None}
    for line in described["notes"]:
        if line not in rows.notes:  # those were said when the table was read
            terminal.note(f"note: {line}")
    try:
        described["saved"] = _save(tree, output, overwrite)
    finally:  # a full disk must not take the printed result with it
        if as_json:
            terminal.print_json(described)
        else:
            terminal.show_fit(tree, described)
    return terminal.verdict([tree], described["warnings"])


def _model_and_data(
    model: type[Model],
    path: str | None,
    prior: PriorOptions,
    table: TableOptions,
    chunk_rows: int | None,
    reporter: Reporter,
) -> tuple[Model, Data | Accumulated]:
    """Read the data at once, or in chunks, of which the statistics are kept, and make the model for them."""
    if chunk_rows is None:
        rows = table.read(model, path)
        return prior.model(model, rows), rows
    first, which = table.first_chunk(model, path, chunk_rows)
    made_model = prior.model(model, first, which)
    total = table.accumulate(made_model, path, chunk_rows, reporter)
    scaled = (f"priors are scaled to {which}",) if prior.is_scaled(made_model) else ()
    return made_model, replace(total, notes=(*total.notes, *scaled))


def _save(tree: xr.DataTree, output: Path | None, overwrite: bool) -> str | None:
    """Save a fit; an interrupted one goes to ``NAME.partial`` and leaves NAME alone."""
    if output is None:
        return None
    interrupted = tree.attrs["status"] == "interrupted"
    target = output.with_name(f"{output.name}.partial") if interrupted else output
    files.save(tree, target, overwrite or interrupted)
    terminal.note(f"wrote {target}")
    return str(target)
