"""Missing levels of rows, given their other levels: ``bayeszoo complete``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayeszoo.answers.rows import rows_asked
from bayeszoo.data.inputs import tables_of
from bayeszoo.data.read import Data
from bayeszoo.errors import InputError
from bayeszoo.model.capabilities.closed import Predictive
from bayeszoo.model.capabilities.observable import Completes, CompletingRows
from bayeszoo.results.caveats import require_shown
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


def complete(tree: xr.DataTree, new_data: object = None, **options: object) -> pd.DataFrame:
    """Return the probability of each level of each missing cell, given the other levels of the row.

    Parameters
    ----------
    tree : xarray.DataTree
        An exact fit or a point estimate of ``tree_network``.
    new_data : Data or anything that `read` takes
        Rows with missing cells; a table is read with ``missing="mask"``.
    **options
        Options of `read`.

    Returns
    -------
    pandas.DataFrame
        Indexed by row, from 1, feature and level, for the missing cells alone: ``probability``; ``is_in_completion``,
        whether the level is in the most probable completion of the whole row, which may differ from the most probable
        levels one by one. An exact fit integrates the parameters out; a point estimate is plugged in.

    Raises
    ------
    Untrustworthy
        When the fit failed its gate.
    InputError
        When the model does not complete rows, the fit is by draws, or no cell is missing.
    """
    import pandas as pd

    fit = Fit(tree)
    if not isinstance(fit.model, Completes):
        hint = "give a fit of tree_network"
        raise InputError(f"{fit.model.name} completes no rows", "no_capability", hint=hint)
    require_shown(fit, "completions by it")
    usual = {} if new_data is None or isinstance(new_data, Data) else {"missing": "mask"}
    data = rows_asked(fit, new_data, usual | options, "missing levels")
    holes, tables = np.asarray(data["levels"]) < 0, tables_of(data)
    if not holes.any():
        raise InputError("no cell is missing", "no_data", hint="leave the cells empty that are to be completed")
    law = _law(fit, fit.model, data)
    p, completed = law.level_probabilities(data["levels"]), law.completed(data["levels"])
    index, columns = list[tuple[int, str, str]](), list[tuple[float, bool]]()
    for row, feature in np.argwhere(holes):
        name = str(data["feature"][feature])
        for place in tables[feature]:
            level = str(data["level"][place]).removeprefix(f"{name}=")
            index.append((int(data.numbers[row]), name, level))
            columns.append((float(p[row, place]), bool(completed[row, feature] == place)))
    names = ["row", "feature", "level"]
    labels = ["probability", "is_in_completion"]
    return pd.DataFrame(columns, columns=labels, index=pd.MultiIndex.from_tuples(index, names=names))


def _law(fit: Fit, model: Completes, data: Data) -> CompletingRows:
    """Return the distribution of rows: parameters integrated out, or fixed at a point estimate."""
    if fit.kind == "exact" and isinstance(model, Predictive):
        law: CompletingRows = model.predictive(fit.stats, data)
        return law
    if fit.kind != "point estimate":
        hint = "fit again with --method exact"
        raise InputError("rows are completed by an exact fit, or a point estimate", "no_capability", hint=hint)
    return model.likelihood({name: values[0] for name, values in fit.pooled().items()}, data)
