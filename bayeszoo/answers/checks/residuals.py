"""Residuals of a fit: each outcome against its leave-one-out predictive distribution, and a normal QQ plot.

If the model is right, the probability that the predictive distribution gives to values below the outcome is uniform
(the probability integral transform, PIT: Dawid 1984), and so its normal score is standard normal. For discrete outcomes
it is drawn from the jump of the distribution function (Dunn and Smyth 1996, quantile residuals). Gelman et al., BDA3,
chapter 6; Vehtari, Gelman and Gabry 2017; CS725.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy

from bayeszoo.answers.averages import CLOSED_FORM, Average, averaging, given_the_others
from bayeszoo.answers.checks.leave_out import MAX_DISTINCT
from bayeszoo.answers.checks.normal_scores import BAND, SIMULATED, Predicted, pointwise_level, quantiles, scored
from bayeszoo.answers.checks.one_ahead import MISSING, START, autocorrelation, one_ahead
from bayeszoo.answers.checks.tails_of_rows import joined, mixture, of_law
from bayeszoo.answers.columns import with_reasons
from bayeszoo.answers.judged import FAR, answering, is_judged, limits_of, line_of, reference_of, refuse
from bayeszoo.answers.law import FAR_OUT
from bayeszoo.answers.rows import by_row
from bayeszoo.answers.series.tables import times_of, with_times
from bayeszoo.data.inputs import Binary, Counts
from bayeszoo.data.read import Data
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.foundation.blocks import AT_ONCE, blocks
from bayeszoo.foundation.named import Params
from bayeszoo.foundation.process.threads import one_thread
from bayeszoo.foundation.streams import stream_of_fit
from bayeszoo.foundation.tails import reasons
from bayeszoo.inference.engine.approximation import GOOD_K_HAT
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import Predictive
from bayeszoo.model.capabilities.linear_predictor import LinearPredictor
from bayeszoo.model.capabilities.sequential import Sequential
from bayeszoo.model.density import log_density
from bayeszoo.model.draws import flat, size_of
from bayeszoo.model.parts.others import all_but_one, equal_rows
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

WITHHELD = "withheld: k-hat"
TOO_FAR = f"withheld: {FAR}"
"""In place of the basis of rows whose prediction by an approximation disagrees with the posterior's."""
UNKNOWN = (WITHHELD, MISSING, START)
"""In place of the basis of rows without a standardized residual and a PIT."""
IN_SAMPLE, PLUG_IN = "in sample", "in sample, plug-in"
"""Bases of standardized residuals and PITs, in the column ``basis``."""


def residuals(tree: xr.DataTree, *, seed: int | np.random.Generator = 0) -> pd.DataFrame:
    """Compare every outcome with its predictive distribution.

    Parameters
    ----------
    tree : xarray.DataTree
        What `fit` returned, for a model whose outcome is one number per row.
    seed : int or numpy.random.Generator
        Seed of the uniform numbers that randomize the PITs of discrete outcomes; continuous ones need none.

    Returns
    -------
    pandas.DataFrame
        One row per data row, numbered as in the table read, in the outcome's units; of a series that has times these
        come first:

        ``observed``; ``mean`` and ``sd`` of the posterior predictive given all rows; ``residual``, observed less mean;
        ``deviance``, for counts and binary outcomes the root of the Poisson or binomial deviance of ``observed`` from
        ``mean``, with the sign of the residual (NaN for other outcomes), which ranks these rows;
        ``mean_without`` and ``sd_without``, the same moments given all other rows (NaN where ``basis`` is in sample);
        ``standardized``, the outcome less the mean in standard deviations, without the row where that is known (NaN
        where the standard deviation is infinite); ``pit``; ``normal_score``, the standard normal quantile of the PIT
        (infinite where the tail's probability is below the smallest number); ``log_tail``, the log of the probability
        of an outcome as far out or further, on its side, which is not randomized; ``theoretical``, the expected normal
        score of its rank, by Blom's plotting positions (rank - 3/8) / (n + 1/4); ``band_lower`` and ``band_upper``,
        which all normal scores lie between with probability 95%, and ``outside``; ``leverage``, of a linear model the
        derivative of the row's posterior mean by its own outcome, which is the diagonal of the hat matrix (NaN for
        other models, and for the MLE); ``k_hat`` of the importance weights; ``basis``; and for draws the Monte Carlo
        errors ``mcse_mean``, ``mcse_sd``, ``mcse_deviance``, ``mcse_standardized``, ``mcse_pit`` and
        ``mcse_normal_score`` (NaN where there are none; ``residual`` has that of the mean).

        ``basis`` says what ``standardized``, ``pit`` and ``normal_score`` rest on. An exact fit: the predictive of the
        other rows, in closed form or by quadrature. Draws: Pareto-smoothed importance weights that take the row out;
        where their k-hat is above 0.5, their variance is infinite, and these figures are withheld (NaN). An
        approximation that is off in some quantity is compared with draws of the posterior: rows where they disagree
        are withheld too, and ``attrs["judged"]`` says how far off the others are. More than `MAX_DISTINCT` distinct
        rows: in sample. A point estimate: plugged into the likelihood, in sample. In sample, residuals are too small.

        A row of a series is predicted from the rows before it in its sequence, with parameters fitted to all rows, as
        in ``decode``: its standardized residual is the innovation. Missing rows have none. The first rows of a sequence
        have none either, one row for each number of its first state: only the prior predicts them.

        ``attrs`` name the model and the fit, and hold ``basis`` (rows of each), ``randomized``,
        ``plotting_positions``, ``band``, ``band_pointwise_level``, ``band_from``, ``outside`` (how many rows) and
        ``ks_p``, the Kolmogorov-Smirnov p-value of the PITs, which is approximate, and ``mcse_ks_p``, how far their
        Monte Carlo errors move it at most. For a series also ``lag_1``, the first autocorrelation of the normal scores,
        and ``ljung_box_p``, the p-value of the first ``ljung_box_lags`` of them (Ljung and Box 1978), with fewer
        degrees of freedom for the standard deviations that were fitted (Harvey 1989, section 5.4); and ``extreme_p``,
        the p-value of the largest score.

    Notes
    -----
    The band of each normal score is an interval of a Beta distribution, that of an order statistic of uniform numbers.
    All intervals have one level (Aldor-Noiman et al. 2013), found by simulation so that the band is simultaneous. Band
    and p-value are for independent PITs. PITs of one fit share its estimates, and are slightly dependent: the fewer
    rows per parameter, the more.

    Raises
    ------
    Untrustworthy
        When the fit failed its gate.
    InputError
        When an outcome is several numbers or a category, or the model does not say how it is distributed.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> M = bz.find("gaussian_mean")
    >>> frame = bz.residuals(bz.fit(M.weak(bz.example(M)), method="exact", seed=1))
    >>> frame["basis"].iloc[0], frame.attrs["outside"]
    ('leave-one-out, closed form', 0)
    """
    fit = answering(Fit(tree), "residuals of it")
    _, _, y = one_number_outcomes(fit, "residuals")
    rows = _rows(fit, y, seed)
    agreement = _agreement(rows, _rows(reference_of(fit), y, seed), fit) if is_judged(fit) else None
    if agreement is not None and not agreement.of_all.any():
        refuse(fit, "residuals of it")
    frame = _framed(fit, y, rows, agreement)
    if isinstance(fit.model, Sequential):
        frame = with_times(frame, times_of(fit.data))
    if agreement is not None:
        _say_judged(frame, agreement, fit)
    return frame


class _Rows(NamedTuple):
    """Rows predicted given all rows, and without each row if possible; normal scores by the latter."""

    in_sample: Predicted
    without: Predicted | None
    basis: np.ndarray
    pits: np.ndarray
    scores: np.ndarray

    @property
    def used(self) -> Predicted:
        """Predictions that PITs and scores are taken from."""
        return self.without or self.in_sample


class _Agreement(NamedTuple):
    """Rows whose predictions agree with the posterior's, given all rows and given the others; gaps given all rows."""

    of_all: np.ndarray
    of_others: np.ndarray
    gaps: tuple[np.ndarray, np.ndarray]


def _rows(fit: Fit, y: np.ndarray, seed: int | np.random.Generator) -> _Rows:
    if isinstance(fit.model, Sequential):
        ahead, basis = one_ahead(fit)
        return _Rows(ahead, None, basis, *scored(ahead, stream_of_fit(fit.tree.attrs, seed, "residuals")))
    in_sample = _in_sample(fit, y)
    without, basis = _without(fit, y)
    rng = stream_of_fit(fit.tree.attrs, seed, "residuals")
    return _Rows(in_sample, without, basis, *scored(without or in_sample, rng))


def _agreement(own: _Rows, reference: _Rows, fit: Fit) -> _Agreement:
    """Compare predictions with those by draws of the posterior; a row that the draws do not determine disagrees."""
    limits = limits_of(fit)
    (mean, sd), (true_mean, true_sd) = own.in_sample[:2], reference.in_sample[:2]
    of_all = limits.moments_agree((mean, sd), (true_mean, true_sd))
    of_others = limits.moments_agree((own.used.mean, own.used.sd), (reference.used.mean, reference.used.sd))
    of_others &= limits.scores_agree(own.scores, reference.scores) & (reference.basis != WITHHELD)
    missing = own.basis == MISSING  # no figure is shown
    of_all, of_others = of_all | missing, of_others | missing
    with np.errstate(invalid="ignore", divide="ignore"):
        gaps = (mean - true_mean) / true_sd, sd / true_sd
    return _Agreement(of_all, of_others, gaps)


def _framed(fit: Fit, y: np.ndarray, rows: _Rows, agreement: _Agreement | None) -> pd.DataFrame:
    """Return the table of residuals; figures of rows that disagree with the posterior are NaN."""
    all_rows = np.ones(len(y), dtype=bool)
    of_all, of_others = (all_rows, all_rows) if agreement is None else agreement[:2]
    model, data, used, without = fit.model, fit.data, rows.used, rows.without
    mean, sd = (np.where(of_all, values, np.nan) for values in (rows.in_sample.mean, rows.in_sample.sd))
    basis = np.where(of_others | np.isin(rows.basis, UNKNOWN), rows.basis, TOO_FAR)
    shown = ~np.isin(basis, UNKNOWN) & of_others
    score = np.where(shown, rows.scores, np.nan)
    residual, left_out = (y - np.where(np.isfinite(means), means, np.nan) for means in (mean, used.mean))
    unknown = np.full(len(y), np.nan)
    with np.errstate(invalid="ignore"):  # rows without a prediction
        log_tail = np.logaddexp(np.minimum(used.below, used.above), used.at)
    columns = {
        "observed": y,
        "mean": mean,
        "sd": sd,
        "residual": residual,
        "deviance": _deviance(model, data, y, mean),
        "mean_without": np.where(shown, without.mean, np.nan) if without else unknown,
        "sd_without": np.where(shown, without.sd, np.nan) if without else unknown,
        "standardized": left_out / np.where(shown & np.isfinite(used.sd) & (used.sd > 0), used.sd, np.nan),
        "pit": np.where(shown, rows.pits, np.nan),
        "normal_score": score,
        "log_tail": np.where(shown, log_tail, np.nan),
        **quantiles(score if of_others.all() else unknown),
        "leverage": model.leverage(data) if isinstance(model, LinearPredictor) and fit.method != "mle" else unknown,
        "k_hat": used.k_hat,
        "basis": basis,
    }
    columns |= _errors(columns, rows, lambda mean: _deviance(model, data, y, mean))
    has_reason = ~of_all | (basis == MISSING)
    is_explained = {"mean": ~np.isnan(mean) | has_reason, "sd": ~np.isnan(sd) | has_reason}
    is_explained |= {"standardized": ~(shown & np.isnan(used.sd))}
    reason = FAR_OUT if fit.method == "exact" else "heavy tails of the draws"
    texts = _reasons(reasons(is_explained, lambda _: reason), of_all, of_others)
    frame = with_reasons(by_row(columns, data), texts)
    attrs = fit.tree.attrs
    frame.attrs.update({name: attrs[name] for name in ("model", "method", "kind")} | _facts(frame, used))
    if isinstance(model, Sequential):
        frame.attrs |= autocorrelation(score, data["sequence"], model)
    return frame


def _errors(
    columns: Mapping[str, np.ndarray], rows: _Rows, deviance: Callable[[np.ndarray], np.ndarray]
) -> dict[str, np.ndarray]:
    """Return the Monte Carlo errors of columns, NaN where these are; of deviances and scores to first order."""
    in_sample, used, mean = rows.in_sample, rows.used, columns["mean"]
    with np.errstate(invalid="ignore", divide="ignore"):
        of_deviance = np.abs(deviance(mean + in_sample.mean_error) - deviance(mean - in_sample.mean_error)) / 2
        of_score = used.pit_error / scipy.stats.norm.pdf(columns["normal_score"])
    errors = {"mean": in_sample.mean_error, "sd": in_sample.sd_error, "deviance": of_deviance}
    errors |= {"standardized": used.standardized_error, "pit": used.pit_error, "normal_score": of_score}
    return {f"mcse_{name}": np.where(np.isnan(columns[name]), np.nan, error) for name, error in errors.items()}


def _reasons(texts: np.ndarray, of_all: np.ndarray, of_others: np.ndarray) -> np.ndarray:
    """Add the reason of rows whose numbers are withheld as they disagree with the posterior's."""
    far = np.where(of_all, np.where(of_others, "", f"standardized, pit: {FAR}"), f"mean, sd, standardized, pit: {FAR}")
    return np.where(far == "", texts, far).astype(object)


def _say_judged(frame: pd.DataFrame, agreement: _Agreement, fit: Fit) -> None:
    """Set ``attrs["judged"]``; withhold band and tests, which need all rows, if any row disagrees."""
    frame.attrs["judged"] = line_of(agreement.of_all & agreement.of_others, *agreement.gaps, limits_of(fit))
    if not agreement.of_others.all():
        frame.attrs |= dict.fromkeys(("outside", "ks_p", "mcse_ks_p", "band_pointwise_level"), math.nan)
        frame.attrs |= dict.fromkeys({"lag_1", "ljung_box_p", "extreme_p"} & frame.attrs.keys(), math.nan)


def one_number_outcomes(fit: Fit, answer: str) -> tuple[Model, Data, np.ndarray]:
    """Return model, data and outcome, shape (rows,), of a fit; refuse outcomes of several numbers and categories."""
    model, data = fit.model, fit.data
    outcome = model.inputs.outcome(data)
    names = [name for name, values in data.items() if values is outcome]
    is_several = outcome.shape != (model.inputs.size(data),)
    if is_several or any(name in model.inputs.coded for name in names):
        kind = "several numbers" if is_several else "a category"
        raise InputError(f"{answer} need an outcome of one number; that of {model.name} is {kind}", "not_one_number")
    return model, data, outcome


# Predictive distributions


def _in_sample(fit: Fit, y: np.ndarray) -> Predicted:
    """Predict all rows given all rows."""
    model, data = fit.model, fit.data
    if fit.kind == "exact" and isinstance(model, Predictive):
        return of_law(model.predictive(model.statistics(data), data), y)
    return joined(_averaged(fit, *averaging(fit), y, np.arange(len(y)), leave_out=False))


def _without(fit: Fit, y: np.ndarray) -> tuple[Predicted | None, np.ndarray]:
    """Predict each row given the others, if possible, and return the basis of each prediction."""
    model, data = fit.model, fit.data
    if fit.kind == "point estimate":
        return None, np.full(len(y), PLUG_IN, dtype=object)
    groups = equal_rows(model, data)
    rows, place = np.array([group[0] for group in groups]), np.empty(len(y), dtype=np.int64)
    for i, group in enumerate(groups):
        place[group] = i
    if len(rows) > MAX_DISTINCT:
        return None, np.full(len(y), IN_SAMPLE, dtype=object)
    if fit.kind == "exact" and isinstance(model, Predictive):
        with suppress(NumericalError):  # the closed form does not hold without some row
            without = joined(_closed_forms(model, data, y, groups), place)
            return without, np.full(len(y), CLOSED_FORM, dtype=object)
    average, params = averaging(fit)
    without = joined(_averaged(fit, average, params, y, rows, leave_out=True), place)
    if average.mass is not None:
        return without, np.full(len(y), average.basis, dtype=object)
    # measured on rows of high leverage: PITs are off by at most 0.02 at k-hat <= 0.5, and by up to 0.25 at <= 0.7
    return without, np.where(without.k_hat <= GOOD_K_HAT, average.basis, WITHHELD).astype(object)


def _closed_forms(model: Predictive[Any], data: Data, y: np.ndarray, groups: list[np.ndarray]) -> Iterator[Predicted]:
    """Predict a row of each group given all other rows."""
    nothing, _ = model.inputs.split(data, 0)
    with one_thread():
        for i, other_stats in all_but_one(model, data, groups, model.statistics(nothing)):
            yield of_law(model.predictive(other_stats, model.inputs.reordered(data, np.array([i]))), y[[i]])


def _averaged(
    fit: Fit, average: Average, params: Params, y: np.ndarray, rows: np.ndarray, leave_out: bool
) -> Iterator[Predicted]:
    """Average over draws or points of a quadrature, given all rows or, for each row, given all others."""
    model, data = fit.model, fit.data
    points = flat(params)
    for block in (rows[part] for part in blocks(len(rows), size_of(points), AT_ONCE)):
        if not leave_out:
            yield mixture(model.law(points, data, model.inputs.reordered(data, block)), y[block], average)
            continue
        law = model.held_out(points, data, block)
        left_out = average.without(log_density(law, y[block])[None])
        predicted = mixture(law, y[block], average, left_out)
        for j in np.flatnonzero(~left_out.is_known).tolist() if average.mass is not None else []:
            for values, again in zip(predicted, _predicted_again(fit, y, block[j]), strict=True):
                values[j] = again[0]
        yield predicted


def _predicted_again(fit: Fit, y: np.ndarray, i: int) -> Predicted:
    """Predict a row by a quadrature given the others, whose posterior the grid given all rows does not cover."""
    (average, points), others = given_the_others(fit.model, fit.data, np.ones(len(y), dtype=np.int64), i)
    law = fit.model.law(flat(points), others, fit.model.inputs.reordered(fit.data, np.array([i])))
    return mixture(law, y[[i]], average)


# Scores


def _deviance(model: Model, data: Data, y: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Return the signed roots of the unit deviances of counts and binary outcomes: McCullagh and Nelder 1989, 2.4."""
    if isinstance(model.inputs, Counts):
        halves = [scipy.special.kl_div(y, mean)]
    elif isinstance(model.inputs, Binary):
        trials = data.get("trials", np.ones(len(y)))
        halves = [scipy.special.kl_div(y, mean), scipy.special.kl_div(trials - y, trials - mean)]
    else:
        return np.full(len(y), np.nan)
    return np.copysign(np.sqrt(2 * np.maximum(sum(halves), 0)), y - mean)


def _facts(frame: pd.DataFrame, used: Predicted) -> dict[str, Any]:
    is_known = frame["pit"].notna()
    pits = frame["pit"][is_known].to_numpy()
    p, p_error = _kolmogorov(pits, frame["mcse_pit"][is_known].to_numpy())
    return {
        "basis": {str(name): int(count) for name, count in frame["basis"].value_counts().items()},
        "randomized": bool(np.any(used.at > -np.inf)),
        "plotting_positions": "Blom",
        "band": BAND,
        "band_pointwise_level": pointwise_level(len(pits)) if len(pits) else math.nan,
        "band_from": f"Beta distributions of order statistics; simultaneous by {SIMULATED} simulated samples",
        "outside": int(frame["outside"].sum()),
        "ks_p": p,
        "mcse_ks_p": p_error,
    }


def _kolmogorov(pit: np.ndarray, errors: np.ndarray) -> tuple[float, float]:
    """Return the Kolmogorov-Smirnov p-value, and how far it moves if all PITs move by the largest of their errors."""
    if not len(pit):
        return math.nan, math.nan
    test = scipy.stats.kstest(pit, "uniform")
    largest_error = np.max(np.nan_to_num(errors), initial=0.0)
    p_moved = scipy.stats.kstwo.sf(np.clip(test.statistic + largest_error * np.array([-1, 1]), 0, 1), len(pit))
    return float(test.pvalue), float(np.max(np.abs(p_moved - test.pvalue))) if largest_error else 0.0
