"""The posterior predictive distribution of new rows, and scores of their outcomes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.answers.columns import moment_columns, with_reasons
from bayeszoo.answers.function import far_rows
from bayeszoo.answers.judged import has_withheld, judged
from bayeszoo.answers.latent.assign import assign
from bayeszoo.answers.latent.topics import has_proportions, proportions
from bayeszoo.answers.law import new_groups, new_rows, predicted
from bayeszoo.answers.rows import by_row
from bayeszoo.answers.series.lags import has_lags, rows_ahead
from bayeszoo.answers.series.tables import times_ahead, with_times
from bayeszoo.data.by import named_in_errors, read_new_by, together
from bayeszoo.data.inputs import Series
from bayeszoo.data.read import Data
from bayeszoo.errors import InputError
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import Latent
from bayeszoo.results.caveats import require_shown
from bayeszoo.results.stored import Fit, fits_of, is_by_group
from bayeszoo.results.summary import components_withheld

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

Columns = dict[str, np.ndarray]
"""Columns of a table, (rows,), or (rows, K) for several numbers per row."""
_PROBABILITY = ("probability", "mcse_probability")
ERROR_OF_SUM = "mcse_sum_of_log_scores"
"""Attribute of a table: the Monte Carlo error of the sum of its log scores."""
Rows = tuple[Data, np.ndarray | None]
"""New rows, and their outcome if known."""


def predict(
    tree: xr.DataTree, new_data: object = 1, *, seed: int | np.random.Generator = 0, **options: Any
) -> pd.DataFrame:
    """Predict new rows from a fit.

    Parameters
    ----------
    tree : xarray.DataTree
        What `fit` returned; or what `fit_by` returned, and then each row is predicted by the fit of its group.
    new_data : int, Data or anything that `read` takes
        A number of further observations; or a table, which for fits by group has the column of groups, or a mapping of
        groups to their rows. If it holds the outcome, the log predictive density of the outcome is the score.
    seed : int or numpy.random.Generator
        Seed of the draws of parameters of new groups, and of the topics of documents.
    **options
        Options of `read`.

    Returns
    -------
    pandas.DataFrame
        One row per new row, numbered as in the table read; for an outcome of several numbers or categories one row for
        each of them, which the index names: ``mean`` (the probability of a category), ``sd``, ``q025``, ``median``,
        ``q975`` and their Monte Carlo errors ``mcse_mean``, ``mcse_sd``, ``mcse_q025``, ``mcse_median`` and
        ``mcse_q975`` (NaN if there is none; for quantiles of counts as if counts were continuous), ``observed``,
        ``log_score`` (NaN if the outcome is unknown, or so far from the draws that their average is unreliable: Pareto
        k-hat above `k_hat_limit`) and ``mcse_log_score``. The score is that of the whole row, repeated for each of its
        numbers. ``attrs["mcse_sum_of_log_scores"]`` is the error of the sum over rows, which share their draws. A mean,
        an sd or its error is NaN if the tails of the draws are too heavy, or it depends on parameters beyond the grid
        of a quadrature: the column ``withheld`` then says which and why, and ``attrs["withheld"]`` has each reason
        once.
        For a model with components and known outcomes also ``component``, the most probable one of each row given its
        outcome, and its ``probability``, averaged over the draws, with ``mcse_probability``; NaN if single components
        are withheld. For a topic model instead the share of each topic in each document, as in `proportions`.

    Notes
    -----
    An exact fit gives the closed-form predictive where the model has one, or averages the likelihood over the points of
    its quadrature; a point estimate is plugged into the likelihood, averaged over random intercepts given the estimate;
    any other fit averages the likelihood over its draws.

    In a model with a parameter for each group, rows of a group of the fit, by its name, have the parameter of their
    group. The parameter of a new group is drawn from the population of groups; ``attrs`` of the table then names the
    ``new_groups``. For a model of a function, ``attrs`` names the ``far_rows``, so far from the rows of the fit that
    their prediction is the prior.

    Further observations of a series are those after its last row, with their times where the table has times. Further
    observations of a regression with lags are the next ones of each sequence, as in `forecast`; a table of new rows is
    another series, each row of which is predicted from the rows before it.

    Raises
    ------
    Untrustworthy
        When the fit failed its gate.
    InputError
        When the model cannot predict, or the new data do not suit it.
    """
    if is_by_group(tree):
        return _by_group(tree, new_data, seed, options)
    fit = Fit(tree)
    if has_proportions(model := fit.model):
        require_shown(fit, "predictions from it")
        if new_data is None or isinstance(new_data, int | np.integer):
            problem = f"{model.name} predicts the topics of other documents"
            raise InputError(problem, "needs_documents", hint="give a table of them")
        return proportions(tree, new_data, seed=seed, **options)

    if isinstance(new_data, int | np.integer) and has_lags(fit):
        return rows_ahead(fit, int(new_data))

    def rows(view: Fit) -> Rows:
        return new_rows(view.model, view.like, new_data, options)

    frame = judged(fit, "predictions from it", rows, partial(_predicted, seed))
    if isinstance(new_data, int | np.integer) and isinstance(model.inputs, Series):
        frame = with_times(frame, times_ahead(fit.like, int(new_data)))
    return frame


def _predicted(seed: int | np.random.Generator, fit: Fit, rows: Rows) -> pd.DataFrame:
    """Predict rows, and score their outcomes if known."""
    model, (data, observed) = fit.model, rows
    prediction = predicted(fit, data, observed, seed)
    columns = moment_columns(prediction.moments, prediction.quantiles)
    shape, axis = columns["mean"].shape, _axis(model, data)
    if observed is not None and axis is not None and observed.dtype.kind == "i" and observed.shape != shape:
        observed = model.inputs.indicators(data, observed, axis)
    columns["observed"] = np.full(shape, np.nan) if observed is None else observed.astype(np.float64)
    of_rows = {"log_score": prediction.log_score, "mcse_log_score": prediction.mcse_log_score}
    of_rows |= {} if observed is None else _components(fit, data)
    for name, values in of_rows.items():
        columns[name] = np.broadcast_to(values.reshape(-1, *[1] * (len(shape) - 1)), shape)
    frame = by_row(columns, data, axis, None if axis is None else data[axis])
    frame = with_reasons(frame, prediction.moments.withheld)
    if observed is not None:
        frame.attrs[ERROR_OF_SUM] = prediction.mcse_of_sum
    if new := new_groups(fit, data):
        frame.attrs["new_groups"] = new
    if far := far_rows(fit, data):
        frame.attrs["far_rows"] = data.numbers[far].tolist()
    return frame


def _by_group(
    tree: xr.DataTree, new_data: object, seed: int | np.random.Generator, options: Mapping[str, object]
) -> pd.DataFrame:
    """Predict each row by the fit of its group, or further observations of each group."""
    fits, by = fits_of(tree), str(tree.attrs["by"])
    model = next(iter(fits.values())).model
    if has_proportions(model):
        raise InputError("groups of fits have different topics", "one_group_only", hint="list them group by group")
    if isinstance(new_data, int | np.integer):
        parts: Mapping[str, Any] = dict.fromkeys(fits, new_data)
    elif isinstance(new_data, Mapping) and all(isinstance(part, Data) for part in new_data.values()):
        parts = new_data
    else:
        parts = read_new_by(model, new_data, by, {label: fit.like for label, fit in fits.items()}, **options)[1]
    frames = {}
    for label, part in parts.items():
        with named_in_errors(label):
            frames[label] = predict(fits[label].tree, part, seed=seed)
    frame = together(frames, by)
    errors = [group.attrs.get(ERROR_OF_SUM, math.nan) for group in frames.values()]
    frame.attrs[ERROR_OF_SUM] = math.hypot(*errors)  # draws of different fits are independent
    if any(getattr(part, "row_numbers", None) is None for part in parts.values()):  # no table numbers the rows
        return frame
    return frame.iloc[np.argsort(frame.index.get_level_values("row"), kind="stable")]


def _components(fit: Fit, data: Mapping[str, np.ndarray]) -> Columns:
    """Return the most probable component of each row and its probability; nothing for a model without components."""
    model = fit.model
    if not isinstance(model, Latent):
        return {}
    if components_withheld(fit) or has_withheld(fit):
        return dict.fromkeys(("component", *_PROBABILITY), np.full(model.inputs.size(data), np.nan))
    assigned = assign(fit.tree, data)
    if "component" not in assigned:  # the latent variable is a number
        return {}
    losses, errors = (assigned[name].to_numpy() for name in ("expected_loss", "mcse_expected_loss"))
    return {"component": assigned["component"].to_numpy(), **dict(zip(_PROBABILITY, (1 - losses, errors), strict=True))}


def _axis(model: Model, data: Mapping[str, np.ndarray]) -> str | None:
    """Return the coordinate of an outcome of several numbers, or of the labels of its codes."""
    inputs = model.inputs
    if not inputs.has_outcome(data):
        return inputs.coded.get(inputs.name)
    outcome = inputs.outcome(data)
    names = (name for name, values in data.items() if values is outcome)
    axes = (inputs.coded.get(name) or next(iter(inputs.dims.get(name, ())), None) for name in names)
    return next((axis for axis in axes if axis), None)
