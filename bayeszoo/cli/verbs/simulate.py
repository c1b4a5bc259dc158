"""The command ``bayeszoo simulate``: data drawn from a model's prior predictive, as a table that `read` takes back."""

from __future__ import annotations

import csv
import io
import secrets
import sys

from bayeszoo.cli import terminal
from bayeszoo.cli.options import FieldOptions, Flag, Output, Seed
from bayeszoo.data.inputs.base import Arrays, Inputs
from bayeszoo.errors import InputError
from bayeszoo.foundation import writing
from bayeszoo.foundation.streams import stream
from bayeszoo.model import find as zoo
from bayeszoo.model.base import fields_of
from bayeszoo.results.stored import dumps


def simulate_command(
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
    if output is not None:
        writing.require_writable(output, overwrite)
    model = zoo.find(name)
    prior = model(**(sets or FieldOptions()).fields(model))
    if size < 1:
        raise InputError(f"size must be >= 1, got {size}")
    seed = secrets.randbelow(2**31 - 1) if seed is None else seed
    params, data = prior.simulate(stream(seed, model.name, fields_of(prior), "simulate"), size)
    text = table_csv(model.inputs, data)
    terminal.note(f"seed {seed}; drawn from the prior: {dumps(params)}")
    if output is None:
        sys.stdout.write(text)
    else:
        writing.write_text(text, output)
        terminal.note(f"wrote {output}")


def table_csv(inputs: Inputs, arrays: Arrays) -> str:
    """Write data as the CSV text of a table that `read` takes back to them."""
    table, buffer = inputs.table(arrays), io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(zip(*(values.tolist() for values in table.values()), strict=True))
    return buffer.getvalue()
