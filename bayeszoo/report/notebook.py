"""A fit as a notebook shows it: its verdict, its table of estimates and a picture of its first densities."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

from bayeszoo.comparison.by import contrasts
from bayeszoo.errors import InputError, Untrustworthy
from bayeszoo.foundation.process.printable import escaped as visible
from bayeszoo.plots import fits as plots
from bayeszoo.plots.drawable import drawable, one_of_each
from bayeszoo.plots.groups import plot_groups
from bayeszoo.plots.style import data_uri
from bayeszoo.report.groups import contrast_rows, estimates_by_group
from bayeszoo.report.text.numbers import number
from bayeszoo.report.text.tables import estimate_rows, figures
from bayeszoo.results.caveats import failures_of, next_step
from bayeszoo.results.stored import Fit, is_by_group
from bayeszoo.results.summary import document

if TYPE_CHECKING:
    import xarray as xr

_MOST_ROWS = 40  # rows of the table; `summarize` gives all of them
_PANEL = 3.2, 2.2
"""Width and height, in inches, of the density of a quantity."""


class View(Fit):
    """A view of a fit that a notebook shows as its verdict, its table of estimates and a picture."""

    def __repr__(self) -> str:
        """Name the model and the method, and give the verdict."""
        return f"{self.model}, {self.method}: {self.status}"

    def _repr_html_(self) -> str:
        described = document(self)
        heads, rows = estimate_rows(self, described)
        cells = [[str(row[0]), *(number(value, 4) for value in row[1:])] for row in rows[:_MOST_ROWS]]
        more = [f"{len(rows) - _MOST_ROWS} more rows: bz.summarize(tree)"] if len(rows) > _MOST_ROWS else []
        above = filter(None, [*failures_of(self), in_python(next_step(self))])
        shown = f"<p><b>{_escaped(repr(self))}</b></p>{_lines(above)}{_table(heads, cells)}"
        return shown + _lines([*more, *figures(described)]) + _densities(self)


def _escaped(text: str) -> str:
    """Return text escaped for HTML, without invisible characters."""
    return escape(visible(text))


def _cells(tag: str, values: list[str]) -> str:
    return "".join(f"<{tag}>{_escaped(value)}</{tag}>" for value in values)


def _table(heads: list[str], rows: list[list[str]]) -> str:
    body = "".join(f"<tr>{_cells('td', row)}</tr>" for row in rows)
    return f"<table><thead><tr>{_cells('th', heads)}</tr></thead><tbody>{body}</tbody></table>"


def _lines(lines: Any) -> str:
    return "".join(f"<p>{_escaped(line)}</p>" for line in lines)


def in_python(step: str) -> str:
    """Return a step with options of a command as arguments of `bz.fit`: --draws 4000 as draws=4000."""
    listed = re.sub(r"(\d) --", r"\1, --", step)
    named = re.sub(r"--(chains|draws|seed|thin) (\d+)", r"\1=\2", listed)
    return re.sub(r"--method (\w+)", r"method='\1'", named)


def _densities(fit: Fit) -> str:
    """Draw the density of the first entry of each parameter; nothing for point estimates and withheld quantities."""
    shown = drawable([fit])
    if not shown:
        return ""
    across = len(chosen := one_of_each(shown[0]))
    size = _PANEL[0] * across, _PANEL[1] + 0.3
    make = partial(plots.overlay, fit.tree, col_wrap=across, figure_kwargs={"figsize": size})
    return _picture(make, f"densities of {', '.join(chosen)}")


def _picture(make: Callable[[], object], alt: str) -> str:
    """Return the HTML element of a picture; nothing if it cannot be drawn."""
    try:
        return f'<img alt="{_escaped(alt)}" src="{data_uri(make)}" style="background: white">'
    except (InputError, Untrustworthy):
        return ""


def _by_group(tree: xr.DataTree) -> str:
    """Show fits by group: withheld numbers, the estimates, the contrasts of the groups, and a picture of both."""
    frame = contrasts(tree)
    withheld = _lines(f"withheld: {line}" for line in frame.attrs["withheld"])
    tables = f"{_table(*estimates_by_group(tree))}{_table(*contrast_rows(frame))}"
    return withheld + tables + _picture(partial(plot_groups, tree), f"estimates by {tree.attrs['by']}")


def view(tree: xr.DataTree) -> View:
    """Return a view of a fit, which a notebook shows as its verdict, its table of estimates and a picture.

    Where IPython has imported bayeszoo, a fit at the end of a cell is shown so without it.

    Parameters
    ----------
    tree : xarray.DataTree
        A fit, from `fit` or `load`.

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


def html(tree: xr.DataTree) -> str:
    """Return how a notebook shows a tree: a fit by its view, fits by group by tables, others as xarray does."""
    if is_by_group(tree):
        return _by_group(tree)
    return (View(tree) if "bayeszoo_format" in tree.attrs else tree)._repr_html_()


def show_in_notebooks() -> None:
    """Let IPython, if it runs, show fits by `html`; xarray is not changed, nor imported."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is not None:
        formatter = shell.display_formatter.formatters["text/html"]
        formatter.for_type_by_name("xarray.core.datatree", "DataTree", html)
