"""Data drawn from a model's prior predictive, as a table that `read` takes back."""

from __future__ import annotations

import csv
import io
import secrets
from typing import Any

from bayeszoo.errors import InputError
from bayeszoo.foundation.streams import stream
from bayeszoo.model.base import Model, fields_of


def simulate_csv(model: Model, size: int, seed: int | None = None) -> tuple[str, dict[str, Any], int]:
    """Return ``size`` simulated rows as CSV text, the parameters they came from, and the seed."""
    if size < 1:
        raise InputError(f"size must be >= 1, got {size}")
    seed = secrets.randbelow(2**31 - 1) if seed is None else seed
    params, data = model.simulate(stream(seed, model.name, fields_of(model), "simulate"), size)
    table = model.inputs.table(data)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(zip(*(values.tolist() for values in table.values()), strict=True))
    return buffer.getvalue(), params, seed
