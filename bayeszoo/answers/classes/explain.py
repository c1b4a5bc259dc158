"""Log odds of a row's class by feature, which add up to the log odds of the class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import lazy_loader
import numpy as np
import scipy

from bayeszoo.answers.classes.classify import classifier
from bayeszoo.answers.classes.probabilities import is_closed
from bayeszoo.answers.rows import rows_asked
from bayeszoo.data.read import Data
from bayeszoo.errors import InputError
from bayeszoo.model.base import Model
from bayeszoo.results.caveats import require_shown
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
else:
    pd = lazy_loader.load("pandas")


def explain(tree: xr.DataTree, new_data: object = None, *, row: int, **options: object) -> pd.DataFrame:
    """Return the log odds that each feature of a row adds to its class against the second most probable one.

    Parameters
    ----------
    tree : xarray.DataTree
        An exact fit of a model of class and features, such as ``naive_bayes``.
    new_data : Data or anything that `read` takes, optional
        Further rows; by default those of the fit.
    row : int
        The row, numbered from 1 as in the table that `classify` returns.
    **options
        Options of `read`.

    Returns
    -------
    pandas.DataFrame
        One row per feature, the largest log odds first, after ``(shares)``, the shares of the classes: ``value``, the
        cell of the row; ``log_odds`` of the most probable class against the second, in nats, from the feature; and
        ``log_density[...]`` of the feature in each class. Features that are dependent given the class share a row.
        ``attrs`` has the ``decision``, the class ``against`` it, and the ``log_odds`` of the two, which the column adds
        up to, as parameters are integrated out.

    Raises
    ------
    InputError
        When the fit is not exact, its model has no distribution of features, or there is no such row.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> flowers = bz.example(bz.find("naive_bayes"), "iris")
    >>> tree = bz.fit(bz.find("naive_bayes"), flowers, "exact", seed=1)
    >>> table = bz.explain(tree, row=71)
    >>> table.attrs["decision"], table.attrs["against"]
    ('virginica', 'versicolor')
    >>> bool(abs(table["log_odds"].sum() - table.attrs["log_odds"]) < 1e-9)
    True
    """
    fit = Fit(tree)
    model = classifier(fit.model)
    if not is_closed(fit):
        needs = "log odds of features need an exact fit of class and features"
        problem = f"{needs}, and this is {model.name} by {fit.method}"
        raise InputError(problem, "no_closed_form", hint="fit naive_bayes by exact")
    require_shown(fit, "explanations by it")
    data = rows_asked(fit, new_data, options)
    place = _place(data, row)
    cells = model.inputs.reordered(data, np.array([place]))
    terms = model.log_terms_of_rows(fit.stats, cells) or {}
    return _explained(model, cells, {name: values[0] for name, values in terms.items()}, model.classes(fit.like))


def _place(data: Data, row: int) -> int:
    numbers = np.arange(1, data.rows + 1) if data.row_numbers is None else np.asarray(data.row_numbers)
    places = np.flatnonzero(numbers == row)
    if not len(places):
        raise InputError(f"there is no row {row} among the {data.rows} rows", "unknown_label", hint="rows count from 1")
    return int(places[0])


def _explained(model: Model, row: Any, terms: Mapping[str, np.ndarray], classes: list[str]) -> pd.DataFrame:
    log_density = np.array(list(terms.values()))
    total = log_density.sum(axis=0)
    best, second = np.argsort(-total, kind="stable")[:2]
    odds = log_density[:, best] - log_density[:, second]
    cells = model.inputs.features_of(row)
    columns = {"value": [_text(cells[name]) if name in cells else "" for name in terms], "log_odds": odds}
    columns |= {f"log_density[{label}]": log_density[:, k] for k, label in enumerate(classes)}
    order = np.concatenate([[0], 1 + np.argsort(-np.abs(odds[1:]), kind="stable")])
    frame = pd.DataFrame(columns, index=pd.Index(list(terms), name="feature")).iloc[order]
    p = scipy.special.softmax(total)
    facts = {"decision": classes[best], "against": classes[second], "log_odds": float(total[best] - total[second])}
    frame.attrs |= {**facts, "p": float(p[best])}
    return frame


def _text(cell: object) -> str:
    is_missing = cell is None or cell == "" or (isinstance(cell, float | np.floating) and np.isnan(cell))
    return "missing" if is_missing else f"{cell:g}" if isinstance(cell, float | np.floating) else str(cell)
