"""A fit as a notebook shows it: its verdict and its table of estimates."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from bayeszoo.results.stored import Fit
from bayeszoo.results.summary import elements, failures_of, listed, summarize

if TYPE_CHECKING:
    import xarray as xr

COLUMNS = ("mean", "sd", "q025", "median", "q975", "mcse_mean", "r_hat")
MOST_ROWS = 40
"""Rows of the table; `summarize` gives all of them."""


class View(Fit):
    """A view of a fit that a notebook shows as its verdict and its table of estimates."""

    def __repr__(self) -> str:
        """Name the model and the method, and give the verdict."""
        return f"{self.model}, {self.method}: {self.status}"

    def _repr_html_(self) -> str:
        heads = "".join(f"<th>{name}</th>" for name in ("parameter", *COLUMNS))
        rows = self._rows_of_table()
        more = f"<p>{len(rows) - MOST_ROWS} more rows: bz.summarize(tree)</p>" if len(rows) > MOST_ROWS else ""
        why = "".join(f"<p>{escape(line)}</p>" for line in failures_of(self.tree))
        table = f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(rows[:MOST_ROWS])}</tbody></table>"
        return f"<p><b>{escape(repr(self))}</b></p>{why}{table}{more}"

    def _rows_of_table(self) -> list[str]:
        """Return a row of HTML for each scalar; a number that is withheld or does not apply is a dash."""
        rows, posterior = [], self.tree["posterior"].to_dataset()
        for name, summary in summarize(self.tree, listed(self.tree)).items():
            for index, label in elements(posterior[name]):
                values = [None if summary[column] is None else np.asarray(summary[column])[index] for column in COLUMNS]
                cells = "".join(f"<td>{'-' if value is None else format(value, '.4g')}</td>" for value in values)
                rows.append(f"<tr><td>{escape(label)}</td>{cells}</tr>")
        return rows


def view(tree: xr.DataTree) -> View:
    """Return a view of a fit, which a notebook shows as its verdict and its table of estimates.

    Parameters
    ----------
    tree : xarray.DataTree
        What `fit` returned, or what was loaded.

    Raises
    ------
    InputError
        When it is not a fit.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> bz.view(bz.fit(bz.find("beta_bernoulli")(a=1, b=1), method="exact", seed=1))
    beta_bernoulli(a=1, b=1), exact: ok
    """
    return View(tree)
