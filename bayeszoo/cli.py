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
from dataclasses import asdict, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, CycloptsError, Parameter
from cyclopts.validators import Number

from bayeszoo import files, terminal, zoo
from bayeszoo.assign_command import assign_command
from bayeszoo.check_command import check_command
from bayeszoo.decode_command import decode_command
from bayeszoo.describe import in_brief, in_full
from bayeszoo.empirical_command import empirical_command
from bayeszoo.errors import InputError, Interrupted, NumericalError, Untrustworthy
from bayeszoo.fit import check_method, fit
from bayeszoo.options import FieldOptions, MethodOptions, PriorOptions, TableOptions
from bayeszoo.residuals_command import residuals_command
from bayeszoo.select_command import select_command
from bayeszoo.tree import dumps

if TYPE_CHECKING:
    import xarray as xr

    from bayeszoo.accumulated import Accumulated
    from bayeszoo.data import Data
    from bayeszoo.model import Model
    from bayeszoo.problem import Reporter

app = App(
    name="bayeszoo",
    help="Textbook Bayesian models in PyMC, checked against closed forms.",
    help_epilogue="Exit codes: 0 ok, 2 input, 3 not trustworthy, 4 numerical failure, 130/143 interrupted, 1 a bug.",
    suppress_keyboard_interrupt=False,  # it would end in 130 whatever the signal, and without a word
)
app.command(assign_command, name="assign")
app.command(check_command, name="check")
app.command(decode_command, name="decode")
app.command(empirical_command, name="empirical")
app.command(residuals_command, name="residuals")
app.command(select_command, name="select")

Json = Annotated[bool, Parameter(name="--json", negative=())]
Output = Annotated[Path | None, Parameter(name=("--output", "-o"))]
Flag = Annotated[bool, Parameter(negative=())]
Seed = Annotated[int, Parameter(validator=Number(gte=0, lt=2**63))]

_received: list[int] = []


@app.command(name="list")
def list_models(*, as_json: Json = False) -> None:
    """List the models, what each can do, and its data."""
    rows = [in_brief(zoo.find(name)) for name in zoo.builtin_names()]
    plugins = {name: point.value for name, point in zoo.plugins().items()}
    if as_json:
        _print_json({"models": rows, "plugins": plugins})
    else:
        terminal.show_models(rows, plugins)


@app.command
def show(name: str, /, *, as_json: Json = False) -> None:
    """Show a model: its notation, fields, inputs, data and graph."""
    described = in_full(zoo.find(name))
    if as_json:
        _print_json(described)
    else:
        terminal.show_model(described)


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
    from bayeszoo.simulate import simulate_csv

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
        exact, enumerate, mle, map, em, vb, laplace, advi, fullrank_advi, nuts or smc.
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
    from bayeszoo.summary import document

    model = zoo.find(name)
    check_method(model, method)
    if output is not None:
        files.probe(output, overwrite)
    prior = prior or PriorOptions()
    reporter = terminal.TerminalReporter()
    try:
        made, rows = _model_and_data(model, data, prior, table or TableOptions(), chunk_rows, reporter)
        given = (options or MethodOptions()).given
        tree = fit(made, rows, method, seed=seed, reporter=reporter, **given)
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
            _print_json(described)
        else:
            terminal.show_fit(tree, described)
    return _verdict([tree], described["warnings"])


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
    scaled = (f"priors are scaled to {which}",) if prior.is_scaled(model) else ()
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


def _verdict(trees: Sequence[xr.DataTree], warnings: Sequence[str]) -> int:
    """Print what a reader must know, and return the exit code."""
    for warning in warnings:
        terminal.note(f"warning: {warning}")
    states = {tree.attrs["status"] for tree in trees}
    if "interrupted" in states:
        return _signal_code()
    return 0 if states <= {"ok"} else Untrustworthy.exit_code


@app.command(name="compare")
def compare_command(
    name: str,
    data: str | None = None,
    /,
    *,
    methods: str | None = None,
    seed: Seed | None = None,
    as_json: Json = False,
    prior: PriorOptions | None = None,
    table: TableOptions | None = None,
) -> int:
    """Fit by several methods and put them side by side.

    Parameters
    ----------
    name
        The model; see `bayeszoo list`.
    data
        CSV, TSV or Parquet file; the model's own data without it.
    methods
        Comma-separated; 'all' for every one that the model has; by default exact, map, vb, laplace, advi, nuts, as
        far as it has them.
    seed
        Source of all randomness; one is drawn and reported without it.
    as_json
        One JSON document on stdout, and nothing else.
    """
    from bayeszoo.compare import Withheld, compare, fit_each, named_methods
    from bayeszoo.summary import document, failures_of

    model = zoo.find(name)
    chosen = named_methods(model, methods)
    rows = (table or TableOptions()).read(model, data)
    made = (prior or PriorOptions()).model(model, rows)
    found = fit_each(made, rows, chosen, seed, terminal.TerminalReporter())
    trees = [one for one in found if not isinstance(one, Withheld)]
    frame = compare(found)
    if as_json:
        withheld = [asdict(one) for one in found if isinstance(one, Withheld)]
        fits = [document(tree) for tree in trees]
        _print_json({"fits": fits, "withheld": withheld, "table": frame.to_dict("records")})
    else:
        terminal.show_comparison(frame)
    code = _verdict(trees, [f"{tree.attrs['method']}: {line}" for tree in trees for line in failures_of(tree)])
    return code or (NumericalError.exit_code if len(trees) < len(found) else 0)


@app.command(name="predict")
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

    Parameters
    ----------
    fit_file
        A fit saved with -o.
    data
        Table of new rows.
    rows
        Without a table: how many further observations; one by default.
    seed
        Of the predictive draws.
    as_json
        One JSON document on stdout, and nothing else.
    """
    from bayeszoo.accumulated import like_of
    from bayeszoo.predict import predict
    from bayeszoo.tree import given_of, model_of

    tree = files.load(fit_file)
    table = table or TableOptions()
    if data is None and table == TableOptions():
        new: Any = 1 if rows is None else rows
    elif rows is None:
        new = table.read(type(model_of(tree)), data, new=True, like=like_of(given_of(tree)))
    else:
        raise InputError("--rows goes without a table")
    frame = predict(tree, new, seed=seed).reset_index()
    whole = {name: tree.attrs[name] for name in ("model", "method", "kind")}
    score = float(frame.groupby("row")["log_score"].first().sum(skipna=False))
    if as_json:
        _print_json({**whole, "sum_of_log_scores": score, "rows": frame.to_dict("records")})
    else:
        terminal.show_prediction(frame, score, tree.attrs["kind"])


def _print_json(value: Any) -> None:
    sys.stdout.write(dumps(value) + "\n")


def _on_signal(number: int, _: FrameType | None) -> None:
    _received.append(number)
    raise KeyboardInterrupt


def _signal_code() -> int:
    return 128 + (_received[-1] if _received else signal.SIGINT)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _on_signal)
    _mend_streams()
    sys.exit(_run([argument for argument in given if argument != "--debug"], debug))


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
        return _signal_code()
    except CycloptsError as error:
        return _fail(error, f"error: {str(error).strip()} See `bayeszoo --help`.", InputError.exit_code, debug)
    except (InputError, NumericalError, Untrustworthy) as error:
        return _fail(error, f"error: {error}", error.exit_code, debug)
    except Interrupted as error:
        return _fail(error, f"error: {error}", _signal_code(), debug)
    except BrokenPipeError:
        return _reader_left()
    except OSError as error:
        return _fail(error, f"error: {error}", NumericalError.exit_code, debug)
    except Exception as error:  # the last resort, so that a bug ends in one line and code 1
        if _received:  # compiled code may turn an interrupt into an error of its own
            return _fail(error, "interrupted", _signal_code(), debug)
        return _fail(error, f"bug: {type(error).__name__}: {error}; run again with --debug", 1, debug)


def _fail(error: BaseException, line: str, code: int, debug: bool) -> int:
    if debug:
        traceback.print_exception(error)
    terminal.note(line)
    return code
