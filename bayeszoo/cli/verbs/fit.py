"""The command ``bayeszoo fit``."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bayeszoo.cli import options as opt
from bayeszoo.cli import terminal
from bayeszoo.fit import check_method, fit
from bayeszoo.model import find as zoo
from bayeszoo.results import files
from bayeszoo.results.summary import document

if TYPE_CHECKING:
    import xarray as xr

    from bayeszoo.data.read import Data
    from bayeszoo.model.accumulated import Accumulated


def fit_command(
    name: opt.ModelName,
    data: opt.DataFile = None,
    /,
    *,
    method: str = "nuts",
    seed: opt.DrawnSeed = None,
    output: opt.Output = None,
    overwrite: opt.Overwrite = False,
    as_json: opt.Json = False,
    chunk_rows: opt.AtLeast1 | None = None,
    prior: opt.PriorOptions = opt.PRIOR,
    table: opt.TableOptions = opt.TABLE,
    options: opt.MethodOptions = opt.METHOD,
) -> int:
    """Fit a model to a table by one method.

    Parameters
    ----------
    method
        exact, enumerate, mle, map, em, vb, online_vb, laplace, advi, fullrank_advi, nuts, gibbs or smc.
    output
        Save the fit here (.nc).
    chunk_rows
        Read so many rows at a time and keep their statistics only, of a file larger than memory.
    """
    model = zoo.find(name)
    check_method(model, method)
    if output is not None:
        files.probe(output, overwrite)
    with closing(terminal.TerminalReporter()) as reporter:
        rows: Data | Accumulated
        if chunk_rows is None:
            rows = table.read(model, data)
            prior_model = prior.model(model, rows)
            if prior.is_scaled(prior_model):
                rows = replace(rows, notes=(*rows.notes, "priors are scaled to the data"))
        else:
            prior_model, rows = table.read_in_chunks(model, prior, data, chunk_rows, reporter)
        groups = () if output is None else None  # nobody asks what is not saved
        tree = fit(prior_model, rows, method, seed=seed, reporter=reporter, groups=groups, **options.given)
    tree.attrs |= {"command": terminal.typed(data, output), "prior": prior.prior}
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


def _save(tree: xr.DataTree, output: Path | None, overwrite: bool) -> str | None:
    """Save a fit; an interrupted one goes to ``NAME.partial`` and leaves NAME alone."""
    if output is None:
        return None
    interrupted = tree.attrs["status"] == "interrupted"
    target = output.with_name(f"{output.name}.partial") if interrupted else output
    files.save(tree, target, overwrite or interrupted)
    terminal.note(f"wrote {target}")
    return str(target)
