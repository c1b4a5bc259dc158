"""Rows that a fit is asked about, its own or new ones; and tables with a row for each of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.data.read import Data, read
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Options, Params
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import pandas as pd


def rows_asked(fit: Fit, new_data: object, options: Options, quantity: str = "") -> Data:
    """Return the rows of the fit, or new ones; these need an outcome if a ``quantity`` is inferred from it."""
    if new_data is None:
        if options:
            problem = f"{next(iter(options))} is an option for reading a table, and no table is given"
            raise InputError(problem, "option_needs_data")
        return fit.data
    data = read(fit.model, new_data, new=True, like=fit.like, **options)
    if quantity and not fit.model.inputs.has_outcome(data):
        problem = f"the new rows have no outcome, which is needed to infer their {quantity}"
        raise InputError(problem, "missing_outcome")
    return data


def by_row(columns: Params, data: Data, axis: str | None = None, labels: Any = None) -> pd.DataFrame:
    """Return a table of columns of shape (rows,), or (rows, labels) along an axis; its index names both."""
    import pandas as pd

    rows = pd.Index(data.numbers, name="row")
    index = rows if axis is None else pd.MultiIndex.from_product([rows, labels], names=["row", axis])
    return pd.DataFrame({name: np.ravel(values) for name, values in columns.items()}, index=index)


def labelled(name: str, labels: Iterable[Any], values: np.ndarray) -> dict[str, np.ndarray]:
    """Return the first columns of ``values``, shape (rows, columns), named by the labels: ``p[1]``, ``p[2]``, ..."""
    return {f"{name}[{label}]": column for label, column in zip(labels, values.T, strict=False)}
