"""The function of a fit: its values at any places, one by one and jointly."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayeszoo.answers.columns import moment_columns, with_reasons
from bayeszoo.answers.judged import (
    Part,
    answering,
    gaps_agree,
    has_withheld,
    is_judged,
    kept_parts,
    limits_of,
    line_of,
    moments_part,
    reference_of,
)
from bayeszoo.answers.law import new_rows
from bayeszoo.answers.quantiles import Quantiles, summary_over_draws
from bayeszoo.answers.rows import by_row
from bayeszoo.data.read import Data
from bayeszoo.distributions.averages.averaged import Averaged
from bayeszoo.distributions.posterior import QUANTILES
from bayeszoo.errors import InputError, Untrustworthy
from bayeszoo.foundation.blocks import blocks
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.foundation.streams import stream_of_fit
from bayeszoo.foundation.tails import Moments
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import Classifies
from bayeszoo.model.capabilities.function import HasSlopes, OfFunction
from bayeszoo.model.draws import every, shape_of, size_of
from bayeszoo.results.caveats import next_step
from bayeszoo.results.gaps import gaps_of
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

_ANSWER = "values of its function"
NEGLIGIBLE = 1e-9
"""Mass below which a point of a quadrature is left out; such points have about 1e-5 in all."""
FEW = 400
"""Number of draws that bands are averaged over."""
MOST_SUMMED = 2**30
"""Largest number of points of a quadrature times squared rows at which bands are sums over all points."""
NO_INTERVAL = "sd, q025, q975: a point estimate of the function has no interval; laplace, gibbs and nuts give one"
FAR = 0.9
"""Share of the prior variance left in the function's, above which a place is far from the rows."""
ALONG_ONE, ALONG_EACH, MOST_ALONG = 9, 3, 6
"""Places along a single feature, places along each of several, and the most features, in a brief table."""


def function_values(
    tree: xr.DataTree,
    new_data: object,
    *,
    draws: int = 0,
    seed: int | np.random.Generator = 0,
    derivative: str | None = None,
    **options: object,
) -> pd.DataFrame:
    """Return the values of a fit's function at places, without the noise of rows.

    Parameters
    ----------
    tree : xarray.DataTree
        What `fit` returned for a model of a function, such as ``gaussian_process``.
    new_data : Data or anything that `read` takes
        A table of the features.
    draws : int
        Number of functions to draw, each at all places jointly, for quantities of several places, such as where the
        function is largest.
    seed : int or numpy.random.Generator
        Seed of these draws.
    derivative : str, optional
        Return the derivative along this feature in place of values, in units of the outcome per unit of the feature.
    **options
        Options of `read`.

    Returns
    -------
    pandas.DataFrame
        One row per place, numbered as in the table: ``mean``, ``sd``, ``q025``, ``median``, ``q975`` of the function
        and their Monte Carlo errors (``mcse_mean``, ..., NaN if there is none), as in `predict`; ``prior_share``, the
        share of the prior's variance that is left, 1 far from the rows (for a Gaussian process at the posterior means
        of its parameters, for a point estimate of the function itself given its values at the rows); and columns
        ``draw_1``, ... of the functions drawn.

        If parameters of an approximation are off, numbers are NaN where draws of the posterior do not agree; the column
        ``withheld`` says which, ``attrs["judged"]`` how far off the others are.

    Raises
    ------
    Untrustworthy
        When the fit failed its gate, or no number of an approximation that is off agrees with the posterior's; or
        ``draws`` are asked for and parameters are withheld, as joint draws cannot be judged.
    InputError
        When the model has no function, the function has no derivative, or the new data do not suit the model.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> M = bz.find("gaussian_process")
    >>> tree = bz.fit(M.weak(bz.example(M)), method="mle", seed=1)
    >>> bz.function_values(tree, {"milliseconds": [20.0, 100.0]})["prior_share"].round(2).tolist()
    [0.02, 1.0]
    """
    fit = answering(Fit(tree), _ANSWER)
    model, (data, _) = _of_function(fit.model), new_rows(fit.model, fit.like, new_data, options)
    if isinstance(draws, bool) or not isinstance(draws, int | np.integer) or draws < 0:
        raise InputError(f"draws must be a whole number >= 0, got {draws!r}", "wrong_type")
    along = _along(model, derivative)
    drawn = {f"draw_{i + 1}": f for i, f in enumerate(drawn_functions(fit, data, int(draws), seed, **along))}
    own = _valued(fit, data, along, drawn)
    return _judged(fit, own, _valued(reference_of(fit), data, along, {})) if is_judged(fit) else own


def _valued(fit: Fit, data: Data, along: Mapping[str, str], drawn: Arrays) -> pd.DataFrame:
    columns = function_moments(fit, _of_function(fit.model), data, **along)
    withheld = columns.pop("withheld")
    return with_reasons(by_row({**columns, **drawn}, data), withheld)


def _judged(fit: Fit, own: pd.DataFrame, reference: pd.DataFrame) -> pd.DataFrame:
    """Withhold values, and shares of the prior's variance, that disagree with draws of the posterior."""
    limits = limits_of(fit)
    values, gaps = moments_part(own, reference, limits)
    share, true_share = (frame["prior_share"].to_numpy() for frame in (own, reference))
    with np.errstate(divide="ignore", invalid="ignore"):
        agree = limits.agree(np.zeros(len(share)), np.sqrt(share / true_share)) | (
            share == true_share
        )  # shares are of variances
    parts = [values, Part(("prior_share",), agree, counts=False)]
    drawn = tuple(str(name) for name in own if str(name).startswith("draw_"))
    parts += [Part(drawn, values.agree, "draws", counts=False)] if drawn else []
    return kept_parts(own, parts, fit, _ANSWER, line_of(values.agree, gaps.mean, gaps.sd, limits))


def _along(model: OfFunction, feature: str | None) -> dict[str, Any]:
    """Return the keyword for a derivative along a feature; refuse a model whose function has no derivative."""
    if feature is None:
        return {}
    if not isinstance(model, HasSlopes):
        hint = "gaussian_process has one, by any kernel but matern12 and brownian"
        raise InputError(f"the function of {model.name} has no derivative", "no_capability", hint=hint)
    return {"along": feature}


def far_rows(fit: Fit, data: Data) -> list[int]:
    """Return the indices of new rows so far from the fit's that the prior decides; none for other models."""
    if not isinstance(model := fit.model, OfFunction):
        return []
    return np.flatnonzero(model.share_of_prior(fit.pooled(), fit.like, data) > FAR).tolist()


def _of_function(model: Model) -> OfFunction:
    if not isinstance(model, OfFunction):
        raise InputError(f"{model.name} has no function to evaluate", "no_capability", hint="bz.predict predicts rows")
    return model


def function_bands(fit: Fit, places: Arrays) -> pd.DataFrame:
    """Return mean and 95% interval of the mean outcome at places, and ``row_q025`` and ``row_q975`` of new rows.

    They are averages over the points of a quadrature, or over some draws of the fit; ``mcse_mean``, ``mcse_q025`` and
    ``mcse_q975`` are their Monte Carlo errors, NaN if there is none. Classes have no interval of new rows. A point
    estimate of the function itself has no interval: its ends are NaN.
    """
    answering(fit, _ANSWER)
    _, (data, _) = _of_function(fit.model), new_rows(fit.model, fit.like, places, {})
    own = _bands(fit, data)
    return _judged_bands(fit, data, own) if is_judged(fit) else own.table(fit, data)


class _Bands(NamedTuple):
    """Moments and quantiles of the function, and of new rows, at places."""

    function: tuple[Moments, Quantiles]
    rows: tuple[Moments, Quantiles]

    def table(self, fit: Fit, data: Data) -> pd.DataFrame:
        """Return the columns of `function_bands`."""
        model, (_, band), (row_moments, of_rows) = _of_function(fit.model), self.function, self.rows
        columns = {"mean": row_moments.mean, "mcse_mean": row_moments.mcse_mean}
        for name in ("q025", "q975"):
            value = band.values[name] if has_interval(fit) else np.full_like(band.values[name], math.nan)
            error = band.errors[name]
            low, high = (model.mean_outcome(value + side * error) for side in (-1.0, 1.0))
            columns |= {name: model.mean_outcome(value), f"mcse_{name}": (high - low) / 2}
        if not isinstance(model, Classifies):
            columns |= {f"row_{name}": of_rows.values[name] for name in ("q025", "q975")}
        return by_row(columns, data)


def _bands(fit: Fit, data: Data) -> _Bands:
    model, draws = _of_function(fit.model), None if is_summed(fit) and _is_quick(fit) else few_draws(fit)
    if is_judged(fit):  # errors of a few draws would be taken for the approximation's
        draws = fit.draws()
    of_function, of_rows = (_averaged(fit, law, data, draws) for law in (model.function, model.law))
    return _Bands(of_function, of_rows)


def _judged_bands(fit: Fit, data: Data, own: _Bands) -> pd.DataFrame:
    """Withhold bands that disagree with draws of the posterior; the mean is also that of a new row."""
    limits, reference = limits_of(fit), _bands(reference_of(fit), data)
    both = [[_statistics(*summary) for summary in bands] for bands in (own, reference)]
    gaps = [gaps_of(*pair) for pair in zip(*both, strict=True)]
    function, rows = (gaps_agree(gap, true, limits) for gap, true in zip(gaps, both[1], strict=True))
    function &= limits.agree(gaps[1].mean, np.ones(function.shape))  # the printed mean is that of rows
    frame = own.table(fit, data)
    parts = [Part(("mean", "q025", "q975"), function, "mean, quantiles")]
    parts += [Part(("row_q025", "row_q975"), rows, "quantiles of rows")] if "row_q025" in frame else []
    return kept_parts(frame, parts, fit, _ANSWER, line_of(function, gaps[0].mean, gaps[0].sd, limits))


def _statistics(summary: Moments, quantiles: Quantiles) -> np.ndarray:
    return np.stack([summary.mean, summary.sd, *(quantiles.values[name] for name in QUANTILES)])


def has_interval(fit: Fit) -> bool:
    """Return whether the function has an interval: a point estimate of the function itself has none."""
    return fit.kind != "point estimate" or not _of_function(fit.model).function_is_estimated


def is_summed(fit: Fit) -> bool:
    """Return whether answers are sums over points, and not averages over draws."""
    return fit.method == "exact" or fit.kind == "point estimate"


def _is_quick(fit: Fit) -> bool:
    """Return whether a sum over the points takes a second or two: a process takes squared rows at each."""
    return len(points_of(fit)[1]) * fit.data.rows**2 <= MOST_SUMMED


def few_draws(fit: Fit) -> dict[str, np.ndarray]:
    """Return evenly spaced draws of each chain, about `FEW` in all."""
    draws = fit.draws()
    return every(draws, max(1, math.prod(shape_of(draws)) // FEW))


def function_along(fit: Fit) -> pd.DataFrame:
    """Return the function at some values of each feature, with the other features at their means.

    Parameters
    ----------
    fit : Fit
        The fit of a model of a function of features, such as ``gaussian_process``.

    Returns
    -------
    pandas.DataFrame
        ``feature``, its value ``at``, the ``mean`` of the outcome and the 95% interval ``q025``, ``q975`` of the
        function, for classes of the probability; and their Monte Carlo errors ``mcse_mean``, ``mcse_q025``,
        ``mcse_q975``.

    Raises
    ------
    Untrustworthy
        When the fit failed its gate.
    InputError
        When the model has no function.
    """
    data = fit.data
    X, names = data["X"], [str(name) for name in data["feature"]]
    count = ALONG_ONE if len(names) == 1 else ALONG_EACH
    values = [_places_along(column, count) for column in X.T[:MOST_ALONG]]
    feature = np.repeat(np.arange(len(values)), list(map(len, values)))
    places = np.tile(X.mean(axis=0), (len(feature), 1))
    places[np.arange(len(feature)), feature] = np.concatenate(values)
    frame = function_bands(fit, {"X": places, "feature": data["feature"]})
    frame.insert(0, "feature", np.array(names, dtype=object)[feature])
    frame.insert(1, "at", np.concatenate(values))
    return frame.drop(columns=["row_q025", "row_q975"], errors="ignore").reset_index(drop=True)


def _places_along(column: np.ndarray, count: int) -> np.ndarray:
    """Return evenly spaced, rounded places from the least to the greatest value; or the values, if few."""
    values = np.unique(column)
    if len(values) <= count:
        return values
    digits = 2 - int(np.floor(np.log10(np.ptp(values))))
    return np.round(np.linspace(values[0], values[-1], count), digits)


def drawn_functions(
    fit: Fit, places: Arrays, draws: int, seed: int | np.random.Generator = 0, **along: Any
) -> np.ndarray:
    """Draw functions at all places jointly, (draws, rows), each at one of evenly spaced draws of the parameters.

    Refused if parameters are withheld: answers are judged place by place, and joint draws cannot be.
    """
    answering(fit, _ANSWER)
    model, (data, _) = _of_function(fit.model), new_rows(fit.model, fit.like, places, {})
    if not draws:
        return np.empty((0, model.inputs.size(data)))
    if has_withheld(fit):
        why = "parameters are withheld, and drawn functions cannot be judged place by place"
        raise Untrustworthy(f"{why}: leave draws out, or {next_step(fit)}", "withheld")
    rng = stream_of_fit(fit.tree.attrs, seed, "function", data.digest)
    return model.drawn_function(evenly(fit.pooled(), draws), fit.like, data, rng, **along)


def evenly(draws: Params, count: int) -> dict[str, np.ndarray]:
    """Return ``count`` evenly spaced draws."""
    places = np.arange(count) * size_of(draws) // count
    return {name: values[places] for name, values in draws.items()}


def points_of(fit: Fit) -> tuple[Arrays, np.ndarray]:
    """Return draws of the parameters, or of an exact fit every other point of its grid, and their weights."""
    if fit.method != "exact":
        pooled = fit.pooled()
        return pooled, np.full(size := size_of(pooled), 1 / size)
    grid = fit.integrated
    is_heavy = grid.halved > NEGLIGIBLE
    return {name: values[is_heavy] for name, values in grid.points.items()}, grid.halved[is_heavy] / grid.halved[
        is_heavy
    ].sum()


def function_moments(fit: Fit, model: OfFunction, data: Data, **along: Any) -> dict[str, np.ndarray]:
    """Return moments, quantiles and their errors of the function at places, and the share of the prior's variance left.

    ``withheld`` says which numbers are withheld and why.
    """
    by_place, quantiles = _averaged(
        fit, partial(model.function, **along), data, None if is_summed(fit) else fit.draws()
    )
    columns = {**moment_columns(by_place, quantiles), "withheld": by_place.withheld}
    if not has_interval(fit):
        unknown = np.full(by_place.mean.shape, math.nan)
        columns |= {**dict.fromkeys(("sd", "q025", "q975"), unknown), "withheld": np.full(unknown.shape, NO_INTERVAL)}
    return {**columns, "prior_share": model.share_of_prior(fit.pooled(), fit.like, data, **along)}


def _averaged(fit: Fit, law: Callable[..., Any], data: Data, draws: Params | None) -> tuple[Moments, Quantiles]:
    """Return moments and quantiles of rows, averaged over draws (chain, draw, ...), else over points."""
    points, weights = points_of(fit) if draws is None else (draws, np.empty(0))
    size, width = fit.model.inputs.size(data), math.prod(next(iter(points.values())).shape[: 1 if draws is None else 2])
    moments_of, quantiles_of = [], []
    for block in blocks(size, width):
        law_at = partial(law, seen=fit.like, new=fit.model.inputs.reordered(data, np.arange(size)[block]))
        if draws is None:
            mixture = Averaged(law_at(points), weights)
            row_moments, quantiles = Moments.exact(mixture.mean(), mixture.std()), Quantiles.exact(mixture)
        else:
            row_moments, quantiles = summary_over_draws(law_at, draws, independent=fit.has_independent_draws)
        moments_of.append(row_moments)
        quantiles_of.append(quantiles)
    return Moments(*map(np.concatenate, zip(*moments_of, strict=True))), Quantiles.joined(quantiles_of)
