"""The predictive distribution of new rows by a fit: in closed form, by its quadrature, or averaged over its draws."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from bayeszoo.answers.averages import averaging, error_of_sum, log_means
from bayeszoo.answers.quantiles import Quantiles, over_draws
from bayeszoo.data.inputs import Groups, Series, places_of
from bayeszoo.data.inputs.groups.lines import CODE
from bayeszoo.data.inputs.groups.regressions import WithGroups
from bayeszoo.data.inputs.groups.rows import GROUP
from bayeszoo.data.read import Data, read
from bayeszoo.distributions.averaged import LARGEST, NOTHING, Averaged
from bayeszoo.distributions.discrete import Categorical, ClassWithFeatures, LogMeanPoisson
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.foundation.blocks import AT_ONCE
from bayeszoo.foundation.named import Arrays, Options, Params
from bayeszoo.foundation.streams import stream_of_fit
from bayeszoo.foundation.tails import TOO_LARGE, Moments, existing, moments, reasons
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import Conditional, LogConcave, Predictive, predicts_by_points
from bayeszoo.model.conditional import PointsOfGroups
from bayeszoo.model.density import log_density
from bayeszoo.model.integration import MAX_MOVED, log_expectation
from bayeszoo.results.stored import Fit

FAR_OUT = "decided by parameters so far out that the quadrature does not reach them"
MOST_FAR = 100
"""Rows whose moments have a quadrature of their own, of some tenths of a second each."""
TOO_FEW = "too few draws carry the weight of the features of this row"
TOO_MANY = f"a quadrature of its own is needed, which {MOST_FAR} different rows have: ask for fewer rows at a time"
LOG_LARGEST = math.log(LARGEST)


@dataclass(frozen=True, eq=False)
class Predicted:
    """Moments and quantiles of new rows, log densities of their outcomes with errors, and the error of their sum."""

    moments: Moments
    quantiles: Quantiles
    log_score: np.ndarray
    mcse_log_score: np.ndarray
    mcse_of_sum: float = 0.0


def predicted(fit: Fit, data: Data, observed: np.ndarray | None, seed: int | np.random.Generator) -> Predicted:
    """Predict new rows, and where the outcome is known score it."""
    model = fit.model
    if fit.kind == "exact" and isinstance(model, Predictive):
        return _closed_form(model.predictive(fit.stats, data), observed)
    if fit.method == "exact" and predicts_by_points(type(model)):
        return _with_reasons_of_quantiles(_by_points(fit, data, observed, seed))
    if (own := points_of_groups(fit, data)) is not None:
        return _about_groups(fit, data, observed, own)
    law = _law(fit, fit.draws(), data, seed)
    if fit.kind == "point estimate":
        return _plugged_in(law, observed)
    return _with_reasons_of_quantiles(_over_draws(fit, law, data, observed, seed))


def _law(fit: Fit, params: Params, data: Data, seed: int | np.random.Generator) -> Any:
    """Return the distribution of new rows at values of the parameters, their leading axes."""
    is_point = fit.kind == "point estimate"
    rng = None if is_point else stream_of_fit(fit.tree.attrs, seed, "parameters of new rows", data.digest)
    return fit.model.law(params, fit.like, data, rng)


def _with_reasons_of_quantiles(known: Predicted) -> Predicted:
    """Add to the reasons that a quantile has no number."""
    texts = reasons({name: ~np.isnan(value) for name, value in known.quantiles.values.items()}, lambda _: TOO_LARGE)
    before = known.moments.withheld
    both = np.where((before != "") & (texts != ""), before + "; " + texts, before + texts)
    return replace(known, moments=known.moments._replace(withheld=both))


def _closed_form(law: Any, observed: np.ndarray | None) -> Predicted:
    mean = np.asarray(law.mean())
    scores = np.full(len(mean), np.nan) if observed is None else log_density(law, observed)
    return Predicted(Moments.exact(mean, np.asarray(law.std())), Quantiles.exact(law), scores, np.abs(0 * scores))


def _plugged_in(law: Any, observed: np.ndarray | None) -> Predicted:
    mean, sd = (np.asarray(moment)[0, 0] for moment in (law.mean(), law.std()))
    scores = _scored(law, len(mean), observed)
    quantiles = {name: value[0, 0] for name, value in Quantiles.exact(law).values.items()}
    return Predicted(Moments.exact(mean, sd), Quantiles.without_error(quantiles), *scores)


def points_of_groups(fit: Fit, data: Arrays) -> PointsOfGroups | None:
    """Return what groups of rows have of their own by a point estimate, whose rows are averaged over it; else None."""
    if fit.kind != "point estimate" or not isinstance(fit.model, Conditional):
        return None
    return fit.model.points_of_groups({name: values[0, 0] for name, values in fit.draws().items()}, fit.like, data)


def _about_groups(fit: Fit, data: Data, observed: np.ndarray | None, own: PointsOfGroups) -> Predicted:
    """Average over what the group of each row has of its own; rows of new groups, which are alike, together."""
    inputs, codes = fit.model.inputs, np.minimum(data[CODE], len(fit.like[GROUP]))
    places, parts = list[np.ndarray](), list[Predicted]()
    for code in np.unique(codes):
        rows = np.flatnonzero(codes == code)
        for some in np.split(rows, range(step := max(1, AT_ONCE // len(own.weights)), len(rows), step)):
            law = fit.model.law(own.params, fit.like, inputs.reordered(data, some))
            mixture = Averaged(law, own.weights[:, code], own.halved[:, code])
            known = mixture.moments
            withheld = reasons({"mean": known.has_mean, "sd": known.has_sd}, partial(_always, FAR_OUT))
            moments_of = Moments.exact(mixture.mean(), mixture.std(), withheld)
            scores = np.full(len(some), np.nan) if observed is None else mixture.logpdf(observed[some])
            parts.append(Predicted(moments_of, Quantiles.exact(mixture), scores, np.abs(0 * scores)))
            places.append(some)
    return _joined(parts, np.argsort(np.concatenate([*places, np.empty(0, dtype=int)])))


def _scored(law: Any, rows: int, observed: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, float]:
    """Return log scores averaged over draws and their errors, and the error of their sum; NaN of unknown outcomes."""
    if observed is None:
        return np.full(rows, np.nan), np.full(rows, np.nan), math.nan
    log_p = log_density(law, observed)
    scores, errors = log_means(log_p)
    return scores, errors, error_of_sum(log_p, scores)


# By draws


def _over_draws(
    fit: Fit, law: Any, data: Data, observed: np.ndarray | None, seed: int | np.random.Generator
) -> Predicted:
    """Average over draws."""
    if isinstance(law, ClassWithFeatures):
        return _by_bayes(fit, law, observed)
    means, variances = np.asarray(law.mean()), np.asarray(law.var())  # (chain, draw, row, ...)
    known = moments(means, np.broadcast_to(variances, means.shape), independent=fit.has_independent_draws)
    if isinstance(fit.observed, Data):
        known = existing(known, fit.model.moments_below(fit.observed))
    scores = _scored(law, means.shape[2], observed)
    size, is_count = means.size // math.prod(means.shape[:2]), hasattr(law, "logpmf")
    return Predicted(known, _quantiles_over_draws(fit, size, is_count, data, seed), *scores)


def _by_bayes(fit: Fit, law: ClassWithFeatures, observed: np.ndarray | None) -> Predicted:
    """Predict the classes of rows, of draws weighed by what they give each row's features."""
    average = averaging(fit)[0].without(-law.log_features)
    p, each = average.mean(law.mean()), law.mean()
    sd = np.sqrt(p * (1 - p))
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = average.error(each), np.where(sd > 0, np.abs(1 - 2 * p) / (2 * sd), 0.0) * average.error(each)
    is_known = average.is_known[:, None]
    withheld = np.where(is_known, np.full(p.shape, "", dtype=object), TOO_FEW)
    mean, sd, mcse_mean, mcse_sd = (np.where(is_known, values, np.nan) for values in (p, sd, *errors))
    known = Moments(mean, sd, mcse_mean, mcse_sd, withheld)
    values = {name: np.where(is_known, value, np.nan) for name, value in Quantiles.exact(Categorical(p)).values.items()}
    scores = _scored(law, len(p), observed)
    return Predicted(known, Quantiles.without_error(values), *scores)


def _quantiles_over_draws(
    fit: Fit, size: int, is_count: bool, data: Data, seed: int | np.random.Generator
) -> Quantiles:
    """Return the quantiles of rows of ``size`` numbers averaged over the draws of a fit."""
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
    """Name the groups of rows to be predicted that the fit does not have."""
    if isinstance(fit.model.inputs, WithGroups):
        return list(map(str, data[GROUP][len(fit.like[GROUP]) :].tolist()))
    if not isinstance(fit.model.inputs, Groups):
        return []
    is_new = places_of(data[GROUP], fit.like[GROUP]) < 0
    return list(map(str, data[GROUP][is_new].tolist()))


# By the quadrature of an exact fit


def _by_points(fit: Fit, data: Data, observed: np.ndarray | None, seed: int | np.random.Generator) -> Predicted:
    """Average over the points of the quadrature, some rows at a time."""
    known, inputs = fit.integrated, fit.model.inputs
    few = known.halved > NOTHING
    at_few, weights = {name: values[few] for name, values in known.points.items()}, known.halved[few]
    parts, size = [], inputs.size(data)
    at_once = size if isinstance(inputs, Series) else max(1, AT_ONCE // len(known.mass))  # rows in time are counted
    for at in range(0, size, at_once):
        some = np.arange(at, min(at + at_once, size))
        rows = inputs.reordered(data, some)
        law, law_of_few = (fit.model.law(points, fit.like, rows) for points in (known.points, at_few))
        mixture, halved = Averaged(law, known.mass, known.halved), Averaged(law_of_few, weights / weights.sum())
        scores = np.full(len(some), np.nan) if observed is None else mixture.logpdf(observed[some])
        parts.append(
            Predicted(_held(fit, mixture, rows), _settled(fit, mixture, halved, rows), scores, np.abs(0 * scores))
        )
    joined = _joined(parts)
    is_lost = np.isnan(list(joined.quantiles.values.values())).any()
    if isinstance(fit.model, Conditional) and is_lost:  # of too many trials to sum over
        return replace(joined, quantiles=_quantiles_over_draws(fit, joined.moments.mean.size, True, data, seed))
    return joined


def _settled(fit: Fit, mixture: Averaged, halved: Averaged, rows: Arrays) -> Quantiles:
    """Return quantiles by the halved grid, but by a finer one where the whole grid has other probabilities there."""
    quantiles, finer = Quantiles.exact(halved), fit.integrated.finer
    if finer is None:
        return quantiles
    with np.errstate(invalid="ignore"):
        moved = np.max([np.abs(mixture.cdf(each) - halved.cdf(each)) for each in quantiles.values.values()], axis=0)
    far = np.flatnonzero(~(moved <= MAX_MOVED))
    points, mass = finer() if len(far) else ({}, np.empty(0))
    kept = mass > NOTHING
    points, weights = {name: values[kept] for name, values in points.items()}, mass[kept] / mass[kept].sum()
    for some in (
        np.split(far, range(step := max(1, AT_ONCE // max(1, len(weights))), len(far), step)) if len(far) else []
    ):
        law = fit.model.law(points, fit.like, fit.model.inputs.reordered(rows, some))
        for name, part in Quantiles.exact(Averaged(law, weights)).values.items():
            quantiles.values[name][some] = part
    return quantiles


def _joined(parts: list[Predicted], order: np.ndarray | slice = slice(None)) -> Predicted:
    """Join the rows of several parts, and put them in an order."""
    known = Moments(*(np.concatenate(values)[order] for values in zip(*(part.moments for part in parts), strict=True)))
    quantiles = Quantiles.joined([part.quantiles for part in parts])
    of_rows = ({name: values[order] for name, values in each.items()} for each in (quantiles.values, quantiles.errors))
    scores, errors = (
        np.concatenate([getattr(part, name) for part in parts])[order] for name in ("log_score", "mcse_log_score")
    )
    return Predicted(known, Quantiles(*of_rows), scores, errors)


def _held(fit: Fit, mixture: Averaged, rows: Arrays) -> Moments:
    """Return the moments of rows that the points of the quadrature decide, or a quadrature of their own."""
    known = mixture.moments
    values, kept = {"mean": known.mean, "sd": known.sd}, {"mean": known.has_mean, "sd": known.has_sd}
    is_too_large, is_left = (np.zeros(known.mean.shape, dtype=bool) for _ in range(2))
    if isinstance(fit.model, LogConcave):
        far = np.flatnonzero(~(known.has_mean & known.has_sd))
        known_of = dict[tuple[bytes, ...], dict[str, float]]()  # by rows that differ: equal ones have equal moments
        for i in far.tolist():
            row = fit.model.inputs.reordered(rows, np.array([i]))
            key = tuple(np.asarray(values).tobytes() for values in row.values())
            if key not in known_of and len(known_of) == MOST_FAR:
                is_left[i] = True
                continue
            known_of[key] = known_of[key] if key in known_of else _far_out(fit, row)
            for name, log_value in known_of[key].items():
                is_too_large[i] |= log_value >= LOG_LARGEST
                kept[name][i] = log_value < LOG_LARGEST
                values[name][i] = math.exp(log_value) if kept[name][i] else math.nan
    mean, sd = (np.where(kept[name], values[name], np.nan) for name in ("mean", "sd"))
    too_large, left, far_out = (reasons(kept, partial(_always, why)) for why in (TOO_LARGE, TOO_MANY, FAR_OUT))
    return Moments.exact(mean, sd, np.where(is_too_large, too_large, np.where(is_left, left, far_out)))


def _far_out(fit: Fit, row: Arrays) -> dict[str, float]:
    """Return the logs of mean and sd of a row, each on its own grid; inf where too large."""
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

    mean, square = expected(_log_mean), expected(lambda law: 2 * _log_mean(law))
    variance = expected(lambda law: _log_mean(law) if isinstance(law, LogMeanPoisson) else np.log(law.var()))
    if math.isinf(square) or math.isinf(variance):
        return {"mean": mean, "sd": math.inf}
    if math.isnan(square) or math.isnan(variance):
        return {"mean": mean, "sd": math.nan}
    log_square = float(np.logaddexp(square, variance))
    log_variance = log_square + math.log1p(-math.exp(2 * mean - log_square)) if log_square > 2 * mean else math.nan
    return {"mean": mean, "sd": log_square if math.isinf(log_square) else log_variance / 2}


def _log_mean(law: LogMeanPoisson) -> np.ndarray:
    """Return the log of the mean of a distribution, also where the mean overflows."""
    return law.log_mean if isinstance(law, LogMeanPoisson) else np.log(law.mean())


def _always(why: str, _: list[str]) -> str:
    return why
