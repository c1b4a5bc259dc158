"""Steps that commands share: reading new rows of a saved fit, printing and writing tables and pictures."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from bayeszoo.cli import terminal
from bayeszoo.cli.options import FORM, TABLE, TableOptions
from bayeszoo.data.by import read_new_by
from bayeszoo.data.table.cells import is_hole
from bayeszoo.data.table.cells import number as number_in
from bayeszoo.data.table.read import read_table
from bayeszoo.data.table.table import Column, quoted, to_numbers
from bayeszoo.distributions.posterior import QUANTILES
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Document
from bayeszoo.foundation.process import writing
from bayeszoo.report.families.judged import about_judged
from bayeszoo.report.text.numbers import MOST_DIGITS, number, spread, statistic, without_error
from bayeszoo.results import files
from bayeszoo.results.caveats import failures_of
from bayeszoo.results.stored import Fit, fits_of, is_by_group

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from bayeszoo.data.read import Data

MAX_ROWS = 40
"""Rows that are printed; --json and -o have all of them."""
_OF_MEAN = ("sd", *QUANTILES)
"""Columns of a prediction whose errors are of the size of the error of its mean."""
_LARGE = 1e9
"""Whole numbers below it are printed in full."""
PARQUET = ".parquet"
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters of a text that spreadsheets run as a formula."""
USER_COLUMNS = "user columns"
"""Attribute of a table: how many of its first columns are the user's own, which are written unchanged."""
_WHOLE = re.compile(r"[+-]?(0|[1-9][0-9]{0,17})")
"""A whole number of 64 bits, without leading zeros."""


def probe(output: Path | None, plot: Path | None, overwrite: bool) -> None:
    """Check that table and picture can be written, before any work is done."""
    if output is not None:
        if output.suffix.lower() == ".nc":
            line = f"{output} names a fit (.nc), and the output is a table"
            raise InputError(line, "not_writable", hint="name it .csv, .csv.gz or .parquet")
        if plot is not None and output.resolve() == plot.resolve():
            raise InputError(
                f"{output} cannot be both the table and the picture", "conflicting_options", hint="give them two names"
            )
        writing.require_writable(output, overwrite)
    if plot is not None:
        writing.probe_figure(plot, overwrite)


def fitted(tree: xr.DataTree, output: Path | None, overwrite: bool) -> Path | None:
    """Save a fit, or fits by group; an interrupted fit goes to ``NAME.partial``, and NAME is not changed."""
    if output is None:
        return None
    if tree.attrs.get("status") == "interrupted":
        return wrote(files.save(tree, files.partial_of(output), overwrite=True))
    return wrote(files.save(tree, output, overwrite))


def load(fit_file: Any, single: bool = False) -> xr.DataTree:
    """Load the fit that a command names: FILE.nc, or one group of it, FILE.nc:GROUP; keep a fit that is loaded."""
    if hasattr(fit_file, "children"):
        return cast("xr.DataTree", fit_file)
    name, is_of_group, group = str(fit_file).partition(".nc:")
    is_of_group = "" if Path(fit_file).is_file() else is_of_group
    tree = files.load(f"{name}.nc" if is_of_group else fit_file)
    fits = fits_of(tree) if is_by_group(tree) else {}
    if is_of_group and group not in fits:
        raise InputError(f"{name}.nc has no group {group!r}", "unknown_name", hint=f"it has {quoted(fits) or 'none'}")
    if single and fits and not is_of_group:
        raise InputError(
            f"{fit_file} holds fits by group", "one_group_only", hint=f"name one as {fit_file}:{next(iter(fits))}"
        )
    return fits[group].tree if is_of_group else tree


def new_rows(fit: Fit, data: str | None, table: TableOptions) -> Data | None:
    """Read new rows for a fit; None where no table is named: the rows of the fit are meant."""
    return None if data is None and table == TABLE else table.read(type(fit.model), data, new=True, like=fit.like)


def new_parts(tree: xr.DataTree, data: str | None, table: TableOptions) -> dict[str, Data] | None:
    """Read new rows for each of the fits by group; None where no table is named."""
    if data is None:
        if table != TABLE:
            raise InputError("the options of a table go with DATA", "option_needs_data")
        return None
    likes = {label: fit.like for label, fit in fits_of(tree).items()}
    kind = type(next(iter(fits_of(tree).values())).model)
    whole, parts = read_new_by(kind, data, tree.attrs["by"], likes, **table.of_reading())
    terminal.notes(whole.notes)
    return parts


def about(tree: xr.DataTree, *more: str) -> Document:
    """Return the head of every answer from a fit, or from fits by group: model, method, status and caveats."""
    fits = fits_of(tree).values() if is_by_group(tree) else [Fit(tree)]
    said = [line for fit in fits if fit.status == "caution" for line in failures_of(fit)[1:]]
    caveats = {"status": "caution", "caveats": list(dict.fromkeys(said))} if said else {}
    names = ("model", "method", "kind", *more, *(["by"] if is_by_group(tree) else []))
    return {name: tree.attrs[name] for name in names} | caveats


def write(frame: pd.DataFrame, output: Path | None, overwrite: bool) -> Path | None:
    """Write the table in the format of the file's ending, and return its path; None where no file is asked for."""
    if terminal.keep(frame) or output is None:
        return None
    if output.suffix.lower() == PARQUET:
        plain = _with_index(frame)
        plain.attrs = {}  # which would have to be JSON
        writing.write_bytes(plain.to_parquet(index=False), output, overwrite)
    else:
        writing.write_text(as_csv(frame), output, overwrite)
    return wrote(output)


def wrote(path: Path) -> Path:
    """Print the name of a file that was written, and return it."""
    terminal.note(f"wrote {path}")
    return path


def appended(
    frame: pd.DataFrame, data: str, table: TableOptions, parts: Collection[Data], output: Path
) -> pd.DataFrame:
    """Return the user's table unchanged, with the columns of a prediction appended."""
    import pandas as pd

    own = _user_table(data, table, in_types=output.suffix.lower() == PARQUET)
    own.index += 1
    is_whole = sum(part.rows for part in parts) == len(own)
    if frame.index.names[0] != "row" or not (is_whole or all(part.row_numbers is not None for part in parts)):
        raise InputError(
            "--append needs one prediction a row of the table", "wrong_columns", hint="leave it out: -o has the rows"
        )
    wide = frame.drop(columns="observed", errors="ignore")
    if frame.index.nlevels > 1:
        of_rows = [wide.xs(label, level=1).add_suffix(f"[{label}]") for label in wide.index.unique(1)]
        wide = pd.concat(of_rows, axis=1)
    wide = wide.add_prefix("predicted_")
    if taken := sorted({*map(str, wide)} & {*own}):
        raise InputError(f"the table has a column {taken[0]!r} already", "duplicate_name", hint="rename it")
    whole = own.join(wide)
    whole.attrs = {USER_COLUMNS: len(own.columns)}
    return whole


def _user_table(data: str, table: TableOptions, in_types: bool) -> pd.DataFrame:
    """Read a user's table: Parquet in its types, a text file as text, or ``in_types`` numbers as such."""
    import pandas as pd

    if Path(data).suffix.lower() == PARQUET:
        import pyarrow.parquet as parquet

        with Path(data).open("rb") as file:
            whole = parquet.ParquetFile(file).read()
        columns = zip(whole.column_names, whole.columns, strict=True)
        return pd.DataFrame({name: pd.Series(pd.arrays.ArrowExtensionArray(column)) for name, column in columns})
    how = {name: value for name, value in table.of_reading().items() if name in FORM}
    texts = read_table(data, **how).columns
    cells = {name: _in_type(column) if in_types else column.values for name, column in texts.items()}
    return pd.DataFrame(
        {name: pd.Series(values, dtype=getattr(values, "dtype", object)) for name, values in cells.items()}
    )


def _in_type(column: Column) -> Any:
    """Return the cells of a column of text as numbers, where all are, or are missing; else as they are."""
    import pandas as pd

    texts = [None if is_hole(cell) else cell.strip() for cell in column.values]
    if not any(texts):
        return column.values
    if all(text is None or _WHOLE.fullmatch(text) for text in texts):
        return pd.array([None if text is None else int(text) for text in texts], dtype="Int64")
    with suppress(InputError):  # words, or numbers that float64 lacks
        return to_numbers(column)
    return column.values


def draw(make: Callable[[], Figure], plot: Path | None, overwrite: bool) -> Path | None:
    """Draw and write the picture, and return its path; None where no file is asked for."""
    return None if plot is None else wrote(writing.write_figure(make(), plot, overwrite))


def at_once(write_file: Writer) -> Writer:
    """Write a file now, and return a writer that returns its path, or raises its error, later."""
    result: Future[Path | None] = Future()
    try:
        result.set_result(write_file())
    except Exception as error:  # any, raised when the path is asked for, once the answer is printed
        result.set_exception(error)
    return result.result


type Writer = Callable[[], Path | None]
"""Writes a file, and returns its path; None where no file is asked for."""
Written = dict[str, Any]
"""Paths of the files of an answer."""


def deliver(
    show: Callable[[], None], document: Callable[[Written], dict[str, Any]], as_json: bool, **writers: Writer
) -> None:
    """Print an answer and write its files; an answer is printed although a file cannot be written.

    A JSON document names the files, and so is printed after them. Files are written although the reader of stdout has
    left, as ``| head`` does.
    """
    failed, written = list[Exception](), Written(dict.fromkeys(writers))
    try:
        if not as_json:
            _show(show)
    except OSError as error:
        failed.append(error)
    try:
        for name, write_file in writers.items():
            try:
                path = write_file()
                written[name] = None if path is None else str(path)
            except Exception as error:  # any, raised below, once the other files are written
                error.add_note(IN_FULL)
                failed.append(error)
    finally:  # an interrupt too
        if as_json:
            _show(lambda: terminal.print_json(document(written)))
    for other in failed[1:]:
        terminal.note(f"error: {other}")
    if failed:
        raise failed[0]


IN_FULL = "the answer is printed in full"


def _show(show: Callable[[], None]) -> None:
    show()
    sys.stdout.flush()


def records(frame: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return the rows of a table with their index as plain values."""
    return frame.reset_index().to_dict("records")


def title(whole: Document, kind: str | None = None) -> str:
    """Return the title of a table: model, method, and what the numbers are."""
    return f"{whole['model']}, {whole['method']} ({kind or whole['kind']}{', with caution' * ('caveats' in whole)})"


def kind_of(frame: pd.DataFrame, kind: str) -> str:
    """Name the kind of the numbers: numbers of an exact fit with Monte Carlo errors are averages over its draws."""
    errors = [column for column in frame if str(column).startswith("mcse")]
    return "draws of the exact posterior" if kind == "exact" and frame[errors].gt(0).any(axis=None) else kind


def show_rows(
    frame: pd.DataFrame,
    title: str | None = None,
    noun: str = "rows",
    spare: tuple[str, ...] = (),
    words: Collection[str] = (),
    digits: int | None = None,
) -> None:
    """Print the first rows of a table, and how many more there are.

    Where the terminal is narrow, errors are hidden first, then columns whose names begin with one of ``spare``.
    """
    lines, shown = frame.attrs.get("withheld", []), frame.head(MAX_ROWS).reset_index()
    shown.attrs = {}  # pandas copies them, whatever their size, with each column that is taken
    names = [name for name in map(str, shown) if not (lines and name == "withheld")]
    names = [name for name in names if not (name.startswith("mcse") and shown[name].isin([0, np.nan]).all())]
    names = [name for name in names if name.removeprefix("mcse_") not in QUANTILES or name in QUANTILES]  # digits tell
    columns = [list(map(str, shown.iloc[:, 0])), *(_written(shown, name, digits) for name in names[1:])]
    last = [name for start in ("mcse", *spare) for name in reversed(names) if name.startswith(start)]
    terminal.show_table(names, list(zip(*columns, strict=True)), title, words, last, whole="-o or --json")
    note_more(len(frame), noun)
    show_judged(frame)


def show_judged(frame: pd.DataFrame) -> None:
    """Print which numbers of an answer are withheld, and the measured gap of those that were judged."""
    terminal.show_each(about_judged(frame))


def _written(frame: pd.DataFrame, name: str, digits: int | None) -> list[str]:
    """Format a column to the digits that its Monte Carlo error, or that of the mean, supports; keep whole numbers."""
    values = frame[name]
    labels = [f"mcse_{name}", f"mcse[{name.partition('[')[2]}", "mcse_mean"][: 3 if name in _OF_MEAN else 2]
    errors = next((frame[label] for label in labels if label in frame), [None] * len(frame))
    if values.dtype != float or ((values.dropna() % 1 == 0) & (values.dropna() < _LARGE)).all():
        return [number(value, MOST_DIGITS) for value in values.tolist()]
    key = "mcse" if name.startswith("mcse") else name
    sds = spread(frame, name)
    key, spreads = (key, [None] * len(frame)) if sds is None else ("mean", sds)
    written = [statistic(key, *each[:2], digits, each[2]) for each in zip(values, errors, spreads, strict=True)]
    if not {"withheld", f"mcse_{name}"} <= {*frame} or name not in ("mean", "sd"):
        return written
    is_unsure = frame["withheld"].str.contains(f"mcse_{name}") & values.notna()
    is_wide = name == "mean" and "q025" in frame
    widths = (frame["q975"] - frame["q025"]).to_numpy() if is_wide else np.zeros(len(frame))
    unsure = [without_error(value, digits, width) for value, width in zip(values, widths, strict=True)]
    return [unsure[i] if is_unsure.iloc[i] else written[i] for i in range(len(frame))]


def note_more(count: int, noun: str) -> None:
    """Say how to see the rows that are not printed."""
    if count > MAX_ROWS:
        terminal.out().print(f"The first {MAX_ROWS} of {count} {noun}; all of them: --json or -o.")


def as_csv(frame: pd.DataFrame) -> str:
    """Write a table as CSV: numbers in full, NaN as an empty cell, and formulas with an apostrophe in front.

    The user's own columns stay unchanged.
    """
    import pandas as pd

    whole, first = _with_index(frame), frame.attrs.get(USER_COLUMNS, 0)
    whole = pd.concat([whole.iloc[:, :first], whole.iloc[:, first:].rename(columns=_plain).map(_plain)], axis=1)
    return str(whole.to_csv(index=False, lineterminator="\n"))


def _with_index(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with the named levels of its index as columns."""
    return frame.reset_index(drop=frame.index.names == [None])


def _plain(value: Any) -> Any:
    """Put an apostrophe in front of a formula; a number, such as -1, is no formula."""
    is_formula = isinstance(value, str) and value.startswith(_FORMULA) and number_in(value) is None
    return f"'{value}" if is_formula else value
