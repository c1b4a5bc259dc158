"""The predictive distribution of new rows by a fit: in closed form, by its quadrature, or averaged over its draws."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from bayeszoo.answers.averages import averaging, error_of_sum, log_means, relative_sum
from bayeszoo.answers.quantiles import Quantiles, moments_over_draws, over_draws
from bayeszoo.data.inputs import Groups, Series, places_of
from bayeszoo.data.inputs.groups.lines import CODE
from bayeszoo.data.inputs.groups.regressions import WithGroups
from bayeszoo.data.inputs.groups.rows import GROUP
from bayeszoo.data.read import Data, read
from bayeszoo.distributions.averages.averaged import LARGEST, NOTHING, Averaged
from bayeszoo.distributions.discrete import Categorical, ClassWithFeatures, LogMeanPoisson
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.foundation.blocks import blocks
from bayeszoo.foundation.named import Arrays, Options, Params
from bayeszoo.foundation.streams import stream_of_fit
from bayeszoo.foundation.tails import TOO_LARGE, Moments, existing, reasons
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import Conditional, LogConcave, Predictive, predicts_by_points
from bayeszoo.model.capabilities.conditional import PointsOfGroups
from bayeszoo.model.density import log_density
from bayeszoo.model.draws import shape_of
from bayeszoo.model.outer.integration import MAX_MOVED, log_expectation
from bayeszoo.results.stored import Fit

MOST_AT_ONCE = 2**24
"""Most rows times draws that are averaged over at once: 128 MB an array."""
FAR_OUT = "determined by parameters beyond the range of the quadrature"
MOST_FAR = 100
"""Most rows whose moments get a quadrature of their own, which takes some tenths of a second."""
TOO_FEW = "too few draws carry the weight of the features of this row"
TOO_MANY = f"needs a quadrature of its own, and at most {MOST_FAR} rows get one: predict fewer rows at a time"
LOG_LARGEST = math.log(LARGEST)


@dataclass(frozen=True, eq=False)
class Predicted:
    """Moments and quantiles of new rows; log densities of their outcomes, with errors, and the error of their sum."""

    moments: Moments
    quantiles: Quantiles
    log_score: np.ndarray
    mcse_log_score: np.ndarray
    mcse_of_sum: float = 0.0


def predicted(fit: Fit, data: Data, observed: np.ndarray | None, seed: int | np.random.Generator) -> Predicted:
    """Predict new rows, and score their outcomes if known."""
    model = fit.model
    if fit.kind == "exact" and isinstance(model, Predictive):
        return _closed_form(model.predictive(fit.stats, data), observed)
    if fit.method == "exact" and predicts_by_points(type(model)):
        return _with_reasons_of_quantiles(_by_points(fit, data, observed, seed))
    if (group_points := points_of_groups(fit, data)) is not None:
        return _over_groups(fit, data, observed, group_points)
    if fit.kind == "point estimate":
        return _plugged_in(_law(fit, fit.draws(), data, seed), observed)
    return _with_reasons_of_quantiles(_over_draws(fit, data, observed, seed))


def _law(fit: Fit, params: Params, data: Data, seed: int | np.random.Generator) -> Any:
    """Return the distribution of new rows at each draw or point of the parameters, its leading axes."""
    is_point = fit.kind == "point estimate"
    rng = None if is_point else stream_of_fit(fit.tree.attrs, seed, "parameters of new rows", data.digest)
    return fit.model.law(params, fit.like, data, rng)


def _with_reasons_of_quantiles(rows: Predicted) -> Predicted:
    """Add the quantiles that are too large to the reasons for withheld numbers."""
    is_kept = {name: ~np.isnan(value) for name, value in rows.quantiles.values.items()}
    of_moments, of_quantiles = rows.moments.withheld, reasons(is_kept, lambda _: TOO_LARGE)
    separator = np.where((of_moments != "") & (of_quantiles != ""), "; ", "").astype(object)
    return replace(rows, moments=rows.moments._replace(withheld=of_moments + separator + of_quantiles))


def _closed_form(law: Any, observed: np.ndarray | None) -> Predicted:
    mean = np.asarray(law.mean())
    scores = np.full(len(mean), np.nan) if observed is None else log_density(law, observed)
    return Predicted(Moments.exact(mean, np.asarray(law.std())), Quantiles.exact(law), scores, np.abs(0 * scores))


def _plugged_in(law: Any, observed: np.ndarray | None) -> Predicted:
    mean, sd = (np.asarray(moment)[0, 0] for moment in (law.mean(), law.std()))
    scores, errors, _ = _scored(law, len(mean), observed)
    quantiles = {name: value[0, 0] for name, value in Quantiles.exact(law).values.items()}
    return Predicted(Moments.exact(mean, sd), Quantiles.without_error(quantiles), scores, errors)


def points_of_groups(fit: Fit, data: Arrays) -> PointsOfGroups | None:
    """Return points of the parameters of the groups of rows, given a point estimate; None for other fits and models."""
    if fit.kind != "point estimate" or not isinstance(fit.model, Conditional):
        return None
    return fit.model.points_of_groups({name: values[0, 0] for name, values in fit.draws().items()}, fit.like, data)


def _over_groups(fit: Fit, data: Data, observed: np.ndarray | None, group_points: PointsOfGroups) -> Predicted:
    """Average over the parameters of each row's group; all new groups have the same distribution."""
    inputs, codes = fit.model.inputs, np.minimum(data[CODE], len(fit.like[GROUP]))
    places, parts = list[np.ndarray](), list[Predicted]()
    for code in np.unique(codes):
        rows = np.flatnonzero(codes == code)
        for block in (rows[part] for part in blocks(len(rows), len(group_points.weights))):
            law = fit.model.law(group_points.params, fit.like, inputs.reordered(data, block))
            mixture = Averaged(law, group_points.weights[:, code], group_points.halved[:, code])
            is_known = {"mean": mixture.moments.has_mean, "sd": mixture.moments.has_sd}
            withheld = reasons(is_known, partial(_always, FAR_OUT))
            row_moments = Moments.exact(mixture.mean(), mixture.std(), withheld)
            scores = np.full(len(block), np.nan) if observed is None else mixture.logpdf(observed[block])
            parts.append(Predicted(row_moments, Quantiles.exact(mixture), scores, np.abs(0 * scores)))
            places.append(block)
    return _joined(parts, np.argsort(np.concatenate([*places, np.empty(0, dtype=int)])))


def _scored(
    law: Any, rows: int, observed: np.ndarray | None, *, independent: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return log scores averaged over draws, their errors, and the `relative_sum`; NaN without outcomes."""
    if observed is None:
        return np.full(rows, np.nan), np.full(rows, np.nan), np.array(math.nan)
    log_p = log_density(law, observed)
    scores, errors = log_means(log_p, independent=independent)
    return scores, errors, relative_sum(log_p, scores)


# By draws


def _over_draws(fit: Fit, data: Data, observed: np.ndarray | None, seed: int | np.random.Generator) -> Predicted:
    """Average over draws, a block of rows at a time."""
    inputs, is_independent = fit.model.inputs, fit.has_independent_draws
    size, parts, relative = inputs.size(data), list[Predicted](), np.zeros(())
    is_series = isinstance(inputs, Series)  # rows of a series stay together
    for part in [slice(None)] if is_series else blocks(size, math.prod(shape_of(fit.draws())), MOST_AT_ONCE):
        block = np.arange(size)[part]
        rows = data if len(block) == size else Data(inputs.reordered(data, block))
        law = _law(fit, fit.draws(), rows, seed)
        outcome = None if observed is None else observed[block]
        scores, errors, of_block = _scored(law, len(block), outcome, independent=is_independent)
        average = _by_bayes if isinstance(law, ClassWithFeatures) else _moments_and_quantiles
        parts.append(Predicted(*average(fit, law, rows, size / len(block), seed), scores, errors))
        relative = relative + of_block
    return replace(_joined(parts), mcse_of_sum=error_of_sum(relative, independent=is_independent))


def _moments_and_quantiles(
    fit: Fit, law: Any, rows: Data, blocks_in_all: float, seed: int | np.random.Generator
) -> tuple[Moments, Quantiles]:
    """Return the moments and quantiles of one of several blocks of rows."""
    means = np.asarray(law.mean())  # (chain, draw, row, ...)
    row_moments = moments_over_draws(law, means, means.shape, independent=fit.has_independent_draws)
    if isinstance(fit.observed, Data):
        row_moments = existing(row_moments, fit.model.moments_below(fit.observed))
    size, is_count = means.size // math.prod(means.shape[:2]), hasattr(law, "logpmf")
    return row_moments, _quantiles_over_draws(fit, round(size * blocks_in_all), is_count, rows, seed)


def _by_bayes(fit: Fit, law: ClassWithFeatures, *_: object) -> tuple[Moments, Quantiles]:
    """Predict the classes of rows; draws are weighed by the density that they give each row's features."""
    average = averaging(fit)[0].without(-law.log_features)
    p, p_at_draws = average.mean(law.mean()), law.mean()
    sd = np.sqrt(p * (1 - p))
    with np.errstate(divide="ignore", invalid="ignore"):
        error = average.error(p_at_draws)
        errors = error, np.where(sd > 0, np.abs(1 - 2 * p) / (2 * sd), 0.0) * error
    is_known = average.is_known[:, None]
    withheld = np.where(is_known, np.full(p.shape, "", dtype=object), TOO_FEW)
    mean, sd, mcse_mean, mcse_sd = (np.where(is_known, values, np.nan) for values in (p, sd, *errors))
    values = {name: np.where(is_known, value, np.nan) for name, value in Quantiles.exact(Categorical(p)).values.items()}
    return Moments(mean, sd, mcse_mean, mcse_sd, withheld), Quantiles.without_error(values)


def _quantiles_over_draws(
    fit: Fit, size: int, is_count: bool, data: Data, seed: int | np.random.Generator
) -> Quantiles:
    """Return the quantiles of rows, averaged over the draws of a fit; ``size`` is the number of values in the table."""
    law = partial(_law, fit, data=data, seed=seed)
    return over_draws(law, fit.draws(), size, counts=is_count, independent=fit.has_independent_draws)


def new_rows(model: Model, fitted_to: Data, new_data: object, options: Options) -> tuple[Data, np.ndarray | None]:
    """Return the new rows, and their outcome where it is known."""
    if new_data is None:
        raise InputError(
            "there are no rows to predict", "no_data", hint="give a table, or a number of further observations"
        )
    if isinstance(new_data, int | np.integer):
        if isinstance(new_data, bool) or new_data < 1:
            raise InputError(f"the number of further observations must be >= 1, got {new_data!r}", "out_of_range")
        return Data(model.inputs.unseen(fitted_to, int(new_data))), None
    data = read(model, new_data, new=True, like=fitted_to, **options)
    return data, model.inputs.outcome(data) if model.inputs.has_outcome(data) else None


def new_groups(fit: Fit, data: Data) -> list[str]:
    """Return the names of the groups of new rows that the fit does not have."""
    if isinstance(fit.model.inputs, WithGroups):
        return list(map(str, data[GROUP][len(fit.like[GROUP]) :].tolist()))
    if not isinstance(fit.model.inputs, Groups):
        return []
    is_new = places_of(data[GROUP], fit.like[GROUP]) < 0
    return list(map(str, data[GROUP][is_new].tolist()))


# By the quadrature of an exact fit


def _by_points(fit: Fit, data: Data, observed: np.ndarray | None, seed: int | np.random.Generator) -> Predicted:
    """Average over the points of the quadrature, a block of rows at a time."""
    grid, inputs = fit.integrated, fit.model.inputs
    in_half = grid.halved > NOTHING
    half_points, weights = {name: values[in_half] for name, values in grid.points.items()}, grid.halved[in_half]
    parts, size = [], inputs.size(data)
    is_series = isinstance(inputs, Series)  # rows of a series stay together
    for part in [slice(None)] if is_series else blocks(size, len(grid.mass)):
        block = np.arange(size)[part]
        rows = inputs.reordered(data, block)
        law, half_law = (fit.model.law(points, fit.like, rows) for points in (grid.points, half_points))
        mixture, halved = Averaged(law, grid.mass, grid.halved), Averaged(half_law, weights / weights.sum())
        scores = np.full(len(block), np.nan) if observed is None else mixture.logpdf(observed[block])
        row_moments, quantiles = _row_moments(fit, mixture, rows), _settled(fit, mixture, halved, rows)
        parts.append(Predicted(row_moments, quantiles, scores, np.abs(0 * scores)))
    joined = _joined(parts)
    is_lost = np.isnan(list(joined.quantiles.values.values())).any()
    if isinstance(fit.model, Conditional) and is_lost:  # rows have too many trials to sum over
        return replace(joined, quantiles=_quantiles_over_draws(fit, joined.moments.mean.size, True, data, seed))
    return joined


def _settled(fit: Fit, mixture: Averaged, halved: Averaged, rows: Arrays) -> Quantiles:
    """Return quantiles by the halved grid, or by a finer one where the full grid gives them other probabilities."""
    quantiles, finer = Quantiles.exact(halved), fit.integrated.finer
    if finer is None:
        return quantiles
    with np.errstate(invalid="ignore"):
        changes = [np.abs(mixture.cdf(quantile) - halved.cdf(quantile)) for quantile in quantiles.values.values()]
    unsettled = np.flatnonzero(~(np.max(changes, axis=0) <= MAX_MOVED))
    points, mass = finer() if len(unsettled) else ({}, np.empty(0))
    is_heavy = mass > NOTHING
    points, weights = {name: values[is_heavy] for name, values in points.items()}, mass[is_heavy] / mass[is_heavy].sum()
    for block in (unsettled[part] for part in blocks(len(unsettled), len(weights))):
        law = fit.model.law(points, fit.like, fit.model.inputs.reordered(rows, block))
        for name, by_finer in Quantiles.exact(Averaged(law, weights)).values.items():
            quantiles.values[name][block] = by_finer
    return quantiles


def _joined(parts: list[Predicted], order: np.ndarray | slice = slice(None)) -> Predicted:
    """Join the rows of several parts, and reorder them."""
    columns = zip(*(part.moments for part in parts), strict=True)
    row_moments = Moments(*(np.concatenate(values)[order] for values in columns))
    quantiles = Quantiles.joined([part.quantiles for part in parts])
    of_rows = ({name: values[order] for name, values in table.items()} for table in quantiles)
    scores, errors = (
        np.concatenate([getattr(part, name) for part in parts])[order] for name in ("log_score", "mcse_log_score")
    )
    return Predicted(row_moments, Quantiles(*of_rows), scores, errors)


def _row_moments(fit: Fit, mixture: Averaged, rows: Arrays) -> Moments:
    """Return the moments of rows, by a quadrature of their own where the points do not determine them."""
    by_points = mixture.moments
    values = {"mean": by_points.mean, "sd": by_points.sd}
    is_known = {"mean": by_points.has_mean, "sd": by_points.has_sd}
    is_too_large, is_skipped = (np.zeros(by_points.mean.shape, dtype=bool) for _ in range(2))
    if isinstance(fit.model, LogConcave):
        undetermined = np.flatnonzero(~(by_points.has_mean & by_points.has_sd))
        log_moments = dict[tuple[bytes, ...], dict[str, float]]()  # equal rows have equal moments
        for i in undetermined.tolist():
            row = fit.model.inputs.reordered(rows, np.array([i]))
            key = tuple(np.asarray(values).tobytes() for values in row.values())
            if key not in log_moments and len(log_moments) == MOST_FAR:
                is_skipped[i] = True
                continue
            log_moments[key] = log_moments[key] if key in log_moments else _far_out(fit, row)
            for name, log_value in log_moments[key].items():
                is_too_large[i] |= log_value >= LOG_LARGEST
                is_known[name][i] = log_value < LOG_LARGEST
                values[name][i] = math.exp(log_value) if is_known[name][i] else math.nan
    mean, sd = (np.where(is_known[name], values[name], np.nan) for name in ("mean", "sd"))
    too_large, skipped, far_out = (reasons(is_known, partial(_always, why)) for why in (TOO_LARGE, TOO_MANY, FAR_OUT))
    return Moments.exact(mean, sd, np.where(is_too_large, too_large, np.where(is_skipped, skipped, far_out)))


def _far_out(fit: Fit, row: Arrays) -> dict[str, float]:
    """Return the logs of mean and sd of a row, each on a grid of its own; inf where too large."""
    model = fit.model
    assert isinstance(model, LogConcave)

    def expected(log_moment: Callable[[Any], np.ndarray]) -> float:
        def log_values(points: Params) -> np.ndarray:
            with np.errstate(all="ignore"):
                values = np.asarray(log_moment(model.law(points, fit.like, row)))[:, 0]
            if np.isposinf(values).any():
                raise NumericalError(TOO_LARGE, "too_large")
            return values

        try:
            return log_expectation(model, fit.data, fit.integrated.log_evidence, log_values)
        except NumericalError:
            return math.inf

    log_mean, log_square = expected(_log_mean), expected(lambda law: 2 * _log_mean(law))
    log_mean_variance = expected(lambda law: _log_mean(law) if isinstance(law, LogMeanPoisson) else np.log(law.var()))
    if math.isinf(log_square) or math.isinf(log_mean_variance):
        return {"mean": log_mean, "sd": math.inf}
    if math.isnan(log_square) or math.isnan(log_mean_variance):
        return {"mean": log_mean, "sd": math.nan}
    log_total = float(np.logaddexp(log_square, log_mean_variance))
    log_variance = log_total + math.log1p(-math.exp(2 * log_mean - log_total)) if log_total > 2 * log_mean else math.nan
    return {"mean": log_mean, "sd": log_total if math.isinf(log_total) else log_variance / 2}


def _log_mean(law: LogMeanPoisson) -> np.ndarray:
    """Return the log of the mean of a distribution, also where the mean overflows."""
    return law.log_mean if isinstance(law, LogMeanPoisson) else np.log(law.mean())


def _always(why: str, _: list[str]) -> str:
    return why
