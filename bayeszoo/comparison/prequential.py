"""Prediction of each row from the rows before it: cumulative log loss, and regret (Dawid 1984)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.data.read import Data, read
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.foundation.named import Arrays
from bayeszoo.foundation.process.threads import one_thread
from bayeszoo.model.base import Model, require_instance
from bayeszoo.model.capabilities import Conjugate, Observable, PointEstimates, Predictive
from bayeszoo.model.density import log_density
from bayeszoo.model.parts.update import require_weights
from bayeszoo.model.suggest import models_with

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS, MOST_PLACES = 100_000, 500


def prequential(model: Model, data: object = None, *, forget: float = 1.0, **options: Any) -> pd.DataFrame:
    """Predict each row from the rows before it, in the order of the table, and add up the log losses.

    Parameters
    ----------
    model : Model
        A `Predictive` model, whose predictive distribution has a closed form.
    data : Data or anything that `read` takes, optional
        Rows in order; by default the model's first real data set.
    forget : float
        Factor in (0, 1] by which the weight of each row falls with every new row: after ``age`` rows it is
        ``forget ** age``. At 1 nothing is forgotten.
    **options
        Options of `read`.

    Returns
    -------
    pandas.DataFrame
        Indexed by row, from 1, in nats: ``log_loss``, minus the log predictive density of the row;
        ``cumulative_log_loss``, in the end minus ``log_evidence + log_coefficient`` if nothing is forgotten;
        ``least_log_loss``, that of the rows so far at the maximum of their likelihood, NaN where there is none;
        ``regret``, the cumulative loss minus the least. With more than 500 rows the last two are computed at 500 of
        them. ``attrs`` has ``forget`` and, if nothing is forgotten, ``log_evidence``, of the ordered data as of a fit,
        and ``log_coefficient``, the log number of orders of rows that are counts.

    Raises
    ------
    InputError
        When the model is not `Predictive`, or is to forget and not `Conjugate`, ``forget`` is not in (0, 1], or there
        are more than 100,000 rows.
    NumericalError
        When the model's statistics cannot weight rows.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> frame = bz.prequential(bz.find("beta_bernoulli")(), [1, 1, 0, 1])
    >>> frame["log_loss"].round(4).tolist()
    [0.6931, 0.4055, 1.3863, 0.5108]
    >>> round(frame["regret"].iloc[-1], 4)
    0.7464
    """
    import pandas as pd

    predictive = _require(model, forget)
    rows = read(predictive, data, **options)
    if rows.rows > MOST_ROWS:
        problem = f"{rows.rows} rows are predicted one by one, more than {MOST_ROWS}"
        raise InputError(problem, "too_many_rows", hint="give the first or last of them")
    with one_thread():
        losses, least = _losses(predictive, rows, float(forget))
    cumulative = np.cumsum(losses)
    columns = {
        "log_loss": losses,
        "cumulative_log_loss": cumulative,
        "least_log_loss": least,
        "regret": cumulative - least,
    }
    frame = pd.DataFrame(columns, index=pd.Index(rows.numbers, name="row"))
    frame.attrs["forget"] = float(forget)
    if forget == 1:
        coefficient = predictive.statistics(rows).log_coefficient
        frame.attrs |= {"log_evidence": -math.fsum(losses) - coefficient, "log_coefficient": coefficient}
    return frame


def _require(model: object, forget: float) -> Predictive[Any]:
    model = require_instance(model)
    if not isinstance(model, Predictive):
        hint = models_with(Predictive)
        raise InputError(f"{model.name} has no predictive distributions in closed form", "no_closed_form", hint=hint)
    if isinstance(forget, bool) or not 0 < forget <= 1:
        raise InputError(f"forget must be a number in (0, 1], got {forget!r}", "out_of_range", hint="1 forgets nothing")
    if forget < 1 and not isinstance(model, Conjugate):
        raise InputError(f"{model.name} cannot forget: it is not conjugate", "no_capability", hint="leave out forget")
    return model


def _losses(model: Predictive[Any], data: Data, forget: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the log loss of each row given those before, and the least log loss of the rows so far, both (rows,)."""
    inputs, losses, least = model.inputs, np.empty(data.rows), np.full(data.rows, np.nan)
    past = total = model.statistics(inputs.split(data, 0)[0])
    places = {*np.linspace(0, data.rows - 1, min(data.rows, MOST_PLACES)).astype(int).tolist()}
    for i in range(data.rows):
        row = inputs.reordered(data, np.array([i]))
        losses[i] = -log_density(model.predictive(past, row), inputs.outcome(row)).item()
        stats = model.statistics(row)
        if i == 0 and forget < 1 and isinstance(model, Conjugate):
            require_weights(model, stats)
        past, total = past.discounted(forget) + stats if forget < 1 else past + stats, total + stats
        if i in places:
            least[i] = _in_hindsight(model, total, inputs.split(data, i + 1)[0])
    return losses, least


def _in_hindsight(model: Predictive[Any], stats: object, rows: Arrays) -> float:
    """Return the log loss of rows at the maximum of their likelihood; NaN where there is none."""
    if not (isinstance(model, PointEstimates) and isinstance(model, Observable)):
        return math.nan
    try:
        law = model.likelihood(model.mle(stats), rows)
    except NumericalError:
        return math.nan
    return 0.0 - float(np.sum(log_density(law, model.inputs.outcome(rows))))
