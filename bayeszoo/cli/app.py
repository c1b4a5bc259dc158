"""The command line. Results go to stdout, progress and notes to stderr; nothing heavy is imported before it is needed.

Exit codes: 0 ok; 2 input or usage; 3 the result may not be trusted; 4 numerical failure; 130 and 143 interrupted;
1 a bug.
"""

from __future__ import annotations

import io
import os
import shlex
import signal
import sys
import traceback
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, CycloptsError, Parameter
from cyclopts.validators import Number

from bayeszoo.cli import exits, terminal
from bayeszoo.cli.options import FieldOptions, MethodOptions, PriorOptions, TableOptions
from bayeszoo.cli.verbs.assign import assign_command
from bayeszoo.cli.verbs.check import check_command
from bayeszoo.cli.verbs.compare import compare_command
from bayeszoo.cli.verbs.decode import decode_command
from bayeszoo.cli.verbs.empirical import empirical_command
from bayeszoo.cli.verbs.heldout import heldout_command
from bayeszoo.cli.verbs.predict import predict_command
from bayeszoo.cli.verbs.report import report_command
from bayeszoo.cli.verbs.residuals import residuals_command
from bayeszoo.cli.verbs.select import select_command
from bayeszoo.cli.verbs.topics import topics_command
from bayeszoo.errors import InputError, Interrupted, NumericalError, Untrustworthy
from bayeszoo.fit import check_method, fit
from bayeszoo.foundation import signals, writing
from bayeszoo.model import find as zoo
from bayeszoo.report.describe import in_brief, in_full
from bayeszoo.results import files
from bayeszoo.results.stored import dumps

if TYPE_CHECKING:
    import xarray as xr

    from bayeszoo.data.read import Data
    from bayeszoo.foundation.progress import Reporter
    from bayeszoo.model.accumulated import Accumulated
    from bayeszoo.model.base import Model

app = App(
    name="bayeszoo",
    help="Textbook Bayesian models in PyMC, checked against closed forms.",
    help_epilogue="Exit codes: 0 ok, 2 input, 3 not trustworthy, 4 numerical failure, 130/143 interrupted, 1 a bug.",
    suppress_keyboard_interrupt=False,  # it would end in 130 whatever the signal, and without a word
)
app.command(assign_command, name="assign")
app.command(check_command, name="check")
app.command(compare_command, name="compare")
app.command(decode_command, name="decode")
app.command(empirical_command, name="empirical")
app.command(heldout_command, name="heldout")
app.command(predict_command, name="predict")
app.command(report_command, name="report")
app.command(residuals_command, name="residuals")
app.command(select_command, name="select")
app.command(topics_command, name="topics")

Json = Annotated[bool, Parameter(name="--json", negative=())]
Output = Annotated[Path | None, Parameter(name=("--output", "-o"))]
Flag = Annotated[bool, Parameter(negative=())]
Seed = Annotated[int, Parameter(validator=Number(gte=0, lt=2**63))]


@app.command(name="list")
def list_models(*, as_json: Json = False) -> None:
    """List the models, what each can do, and its data."""
    rows = [in_brief(zoo.find(name)) for name in zoo.builtin_names()]
    plugins = {name: point.value for name, point in zoo.plugins().items()}
    if as_json:
        exits.print_json({"models": rows, "plugins": plugins})
    else:
        terminal.show_models(rows, plugins)


@app.command
def show(
    name: str, /, *, as_json: Json = False, plot: Annotated[Path | None, Parameter()] = None, overwrite: Flag = False
) -> None:
    """Show a model: its notation, fields, inputs, data and graph.

    Parameters
    ----------
    name
        The model; see `bayeszoo list`.
    as_json
        One JSON document on stdout, and nothing else.
    plot
        Draw its graph here (.svg, .png or .pdf).
    overwrite
        Replace an existing file.
    """
    model = zoo.find(name)
    if plot is not None:
        writing.probe_figure(plot, overwrite)
    described = in_full(model)
    if as_json:
        exits.print_json(described)
    else:
        terminal.show_model(described)
    if plot is not None:
        from bayeszoo.plots.graph import write_graph

        terminal.note(f"wrote {write_graph(model(), plot, overwrite)}")


@app.command
def simulate(
    name: str,
    /,
    *,
    size: int = 100,
    seed: Seed | None = None,
    sets: FieldOptions | None = None,
    output: Output = None,
    overwrite: Flag = False,
) -> None:
    """Draw parameters from the prior and data given them, as CSV.

    Parameters
    ----------
    size
        Rows.
    seed
        Source of all randomness; one is drawn and reported without it.
    output
        CSV file; stdout without it.
    overwrite
        Replace an existing file.
    """
    from bayeszoo.cli.verbs.simulate import simulate_csv

    if output is not None and not output.parent.is_dir():
        raise InputError(f"there is no folder {str(output.parent)!r}", hint="make it first")
    if output is not None and output.exists() and not overwrite:
        raise InputError(f"{output} exists", hint="choose another name or use --overwrite")
    model = zoo.find(name)
    text, params, seed = simulate_csv(model(**(sets or FieldOptions()).fields(model)), size, seed)
    terminal.note(f"seed {seed}; drawn from the prior: {dumps(params)}")
    if output is None:
        sys.stdout.write(text)
    else:
        output.write_text(text, encoding="utf-8")
        terminal.note(f"wrote {output}")


@app.command(name="fit")
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
            exits.print_json(described)
        else:
            terminal.show_fit(tree, described)
    return exits.verdict([tree], described["warnings"])


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
    made = prior.model(model, first, which)
    total = table.accumulate(made, path, chunk_rows, reporter)
    scaled = (f"priors are scaled to {which}",) if prior.is_scaled(made) else ()
    return made, replace(total, notes=(*total.notes, *scaled))


def _save(tree: xr.DataTree, output: Path | None, overwrite: bool) -> str | None:
    """Save a fit; an interrupted one goes to ``NAME.partial`` and leaves NAME alone."""
    if output is None:
        return None
    interrupted = tree.attrs["status"] == "interrupted"
    target = output.with_name(f"{output.name}.partial") if interrupted else output
    files.save(tree, target, overwrite or interrupted)
    terminal.note(f"wrote {target}")
    return str(target)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    signals.listen()
    _mend_streams()
    signals.leave(_run([argument for argument in given if argument != "--debug"], debug))


def _mend_streams() -> None:
    """Replace closed streams, and write what an encoding lacks as escapes: neither is the user's mistake."""
    sys.stdout, sys.stderr = (stream or open(os.devnull, "w") for stream in (sys.stdout, sys.stderr))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _reader_left() -> int:
    """End quietly when a pipe was closed, as by ``| head``: the code is that of SIGPIPE."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 128 + signal.SIGPIPE


def _run(arguments: list[str], debug: bool) -> int:
    try:
        code = app(arguments, exit_on_error=False, print_error=False, result_action="return_value") or 0
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        terminal.note("interrupted")
        return signals.exit_code()
    except CycloptsError as error:
        return _fail(error, f"error: {str(error).strip()} See `bayeszoo --help`.", InputError.exit_code, debug)
    except (InputError, NumericalError, Untrustworthy) as error:
        return _fail(error, f"error: {error}", error.exit_code, debug)
    except Interrupted as error:
        return _fail(error, f"error: {error}", signals.exit_code(), debug)
    except BrokenPipeError:
        return _reader_left()
    except OSError as error:
        return _fail(error, f"error: {error}", NumericalError.exit_code, debug)
    except Exception as error:  # the last resort, so that a bug ends in one line and code 1
        if signals.received:  # compiled code may turn an interrupt into an error of its own
            return _fail(error, "interrupted", signals.exit_code(), debug)
        return _fail(error, f"bug: {type(error).__name__}: {error}; run again with --debug", 1, debug)


def _fail(error: BaseException, line: str, code: int, debug: bool) -> int:
    if debug:
        traceback.print_exception(error)
    terminal.note(line)
    return code
