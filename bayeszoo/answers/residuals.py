"""Residuals of a fit: each outcome against its predictive distribution without it, and what a QQ plot needs.

If the model is right, the probability that the predictive distribution gives to values below the outcome is uniform
(the probability integral transform, PIT: Dawid 1984), and so its normal score is standard normal. Of discrete outcomes
it is drawn from the jump of the distribution function (Dunn and Smyth 1996, quantile residuals). Gelman et al., BDA3,
chapter 6; Vehtari, Gelman and Gabry 2017; CS725.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy

from bayeszoo.answers.assign import by_row
from bayeszoo.answers.averages import CLOSED_FORM, Average, LeftOut, averaging, given_the_others
from bayeszoo.answers.columns import with_reasons
from bayeszoo.answers.law import FAR_OUT
from bayeszoo.answers.leave_out import MAX_DISTINCT
from bayeszoo.data.inputs import Binary, Counts
from bayeszoo.data.read import Data
from bayeszoo.distributions.averaged import Known, mixed
from bayeszoo.distributions.beta_binomial_tails import log_tails_of_each
from bayeszoo.distributions.discrete import BetaBinomial
from bayeszoo.errors import InputError, NoRowLaw, NumericalError
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.blocks import AT_ONCE
from bayeszoo.foundation.named import Params
from bayeszoo.foundation.streams import stream_of_fit
from bayeszoo.foundation.tails import LIMITS, reasons
from bayeszoo.foundation.threads import one_thread
from bayeszoo.inference.engine.approximation import GOOD_K_HAT
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import Predictive
from bayeszoo.model.density import log_density
from bayeszoo.model.others import all_but_one, equal_rows
from bayeszoo.model.sequential import Sequential
from bayeszoo.results.caveats import require_shown
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

WITHHELD = "withheld: k-hat"
IN_SAMPLE, PLUG_IN = "in sample", "in sample, plug-in"
"""What standardized residuals and PITs rest on, as the column ``basis`` says."""

BAND = 0.95
"""Probability that independent normal scores all lie within the band of a QQ plot."""
SIMULATED = 5000
"""Samples from which the level of the band is found."""
_RANKS = 600
"""Ranks at which they are compared with the band; of more rows, ranks that are dense towards both ends."""


class Predicted(NamedTuple):
    """Moments of the predictive distributions of rows, and where their outcomes lie in them; of shape (rows,).

    ``below``, ``at`` and ``above`` are logs of the probabilities of values less than, equal to and more than the
    outcome; ``k_hat`` is the Pareto shape of the importance weights, NaN where there are none.
    """

    mean: np.ndarray
    sd: np.ndarray
    below: np.ndarray
    at: np.ndarray
    above: np.ndarray
    k_hat: np.ndarray


def residuals(tree: xr.DataTree, *, seed: int | np.random.Generator = 0) -> pd.DataFrame:
    """Compare every outcome with its predictive distribution.

    Parameters
    ----------
    tree : xarray.DataTree
        What `fit` returned; of a model whose outcome is one number a row.
    seed : int or numpy.random.Generator
        Of the uniform numbers that randomize the PITs of discrete outcomes; continuous ones need none.

    Returns
    -------
    pandas.DataFrame
        One row a data row, numbered as in the table read, in the outcome's units where there are any:

        ``observed``; ``mean`` and ``sd`` of the posterior predictive given all rows; ``residual``, observed less mean;
        ``deviance``, of counts and binary outcomes the root of the deviance of ``observed`` from ``mean``, of a Poisson
        or a binomial distribution, with the sign of the residual (NaN of other outcomes), which ranks these rows;
        ``mean_without`` and ``sd_without``, the same moments given all other rows (NaN where ``basis`` is in sample);
        ``standardized``, the outcome less the mean in standard deviations, without the row where that is known (NaN
        where the standard deviation is infinite); ``pit``; ``normal_score``, the standard normal quantile of the PIT
        (infinite where the tail's probability is below the smallest number); ``log_tail``, the log of the probability
        of an outcome as far out or further, on its side, which is not randomized; ``theoretical``, the expected normal
        score of its rank, by Blom's plotting positions (rank - 3/8) / (n + 1/4); ``band_lower`` and ``band_upper``,
        which all normal scores lie between with probability 95%, and ``outside``; ``leverage``, of a linear model the
        derivative of the row's posterior mean by its own outcome, which is the diagonal of the hat matrix (NaN for
        other models, and for the MLE); ``k_hat`` of the importance weights; ``basis``.

        ``basis`` says what ``standardized``, ``pit`` and ``normal_score`` rest on. An exact fit: the predictive of the
        other rows, in closed form or by quadrature. Draws: Pareto-smoothed importance weights that take the row out;
        where their k-hat is above 0.5, their variance is infinite, and these figures are withheld (NaN). More than
        `MAX_DISTINCT` distinct rows: in sample. A point estimate: plugged into the likelihood, in sample. In sample,
        residuals are too small.

        ``attrs`` name the model and the fit, and hold ``basis`` (each with how many rows), ``randomized``,
        ``plotting_positions``, ``band``, ``band_pointwise_level``, ``band_from``, ``outside`` (how many rows) and
        ``ks_p``, the Kolmogorov-Smirnov p-value of the PITs, which is approximate.

    Notes
    -----
    Each normal score has a band of its own, from the Beta distribution of the order statistics of uniform numbers;
    all have the same level (Aldor-Noiman et al. 2013), which is found by simulation so that the band is simultaneous.
    Band and p-value are for independent PITs. Those of one fit share its estimates, and are slightly dependent, the
    more so the fewer rows there are to a parameter.

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
    model, data, y = one_number_outcomes(tree, "residuals")
    if isinstance(model, Sequential):
        problem = f"rows of {model.name} depend on those before, and residuals are of rows given the parameters"
        raise NoRowLaw(problem, "no_row_law", hint="`bayeszoo decode` shows the states behind each row")
    fit = Fit(tree)
    whole = _in_sample(fit, y)
    without, basis = _without(fit, y)
    used, shown = without or whole, basis != WITHHELD
    pits, scores = _scored(used, stream_of_fit(tree.attrs, seed, "residuals"))
    score = np.where(shown, scores, np.nan)
    residual, rest = (y - np.where(np.isfinite(each.mean), each.mean, np.nan) for each in (whole, used))
    unknown = np.full(len(y), np.nan)
    columns = {
        "observed": y,
        "mean": whole.mean,
        "sd": whole.sd,
        "residual": residual,
        "deviance": _deviance(model, data, y, whole.mean),
        "mean_without": np.where(shown, without.mean, np.nan) if without else unknown,
        "sd_without": np.where(shown, without.sd, np.nan) if without else unknown,
        "standardized": rest / np.where(shown & np.isfinite(used.sd) & (used.sd > 0), used.sd, np.nan),
        "pit": np.where(shown, pits, np.nan),
        "normal_score": score,
        "log_tail": np.where(shown, np.logaddexp(np.minimum(used.below, used.above), used.at), np.nan),
        **quantiles(score),
        "leverage": unknown if tree.attrs["method"] == "mle" else model.leverage(data),
        "k_hat": used.k_hat,
        "basis": basis,
    }
    lacking = {"mean": ~np.isnan(whole.mean), "sd": ~np.isnan(whole.sd), "standardized": ~(shown & np.isnan(used.sd))}
    why = FAR_OUT if fit.method == "exact" else "heavy tails of the draws"
    frame = with_reasons(by_row(columns, data), reasons(lacking, lambda _: why))
    frame.attrs.update({name: tree.attrs[name] for name in ("model", "method", "kind")} | _facts(frame, used))
    return frame


def one_number_outcomes(tree: xr.DataTree, answer: str) -> tuple[Model, Data, np.ndarray]:
    """Return model, data and outcome, shape (rows,), of a fit that may be trusted, or refuse."""
    fit = require_shown(tree, f"{answer} of it")
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
        return _of(model.predictive(model.statistics(data), data), y)
    return _joined(_averaged(fit, *averaging(fit), y, np.arange(len(y)), leave_out=False))


def _without(fit: Fit, y: np.ndarray) -> tuple[Predicted | None, np.ndarray]:
    """Predict each row given the others, where that can be done, and say on what each prediction rests."""
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
            without = _joined(_closed_forms(model, data, y, groups), place)
            return without, np.full(len(y), CLOSED_FORM, dtype=object)
    average, params = averaging(fit)
    without = _joined(_averaged(fit, average, params, y, rows, leave_out=True), place)
    if average.mass is not None:
        return without, np.full(len(y), average.basis, dtype=object)
    # measured on rows of high leverage: PITs are off by at most 0.02 at k-hat <= 0.5, and by up to 0.25 at <= 0.7
    return without, np.where(without.k_hat <= GOOD_K_HAT, average.basis, WITHHELD).astype(object)


def _closed_forms(model: Predictive[Any], data: Data, y: np.ndarray, groups: list[np.ndarray]) -> Iterator[Predicted]:
    """Predict a row of each group given all other rows."""
    nothing, _ = model.inputs.split(data, 0)
    with one_thread():
        for i, rest in all_but_one(model, data, groups, model.statistics(nothing)):
            yield _of(model.predictive(rest, model.inputs.reordered(data, np.array([i]))), y[[i]])


def _averaged(
    fit: Fit, average: Average, params: Params, y: np.ndarray, rows: np.ndarray, leave_out: bool
) -> Iterator[Predicted]:
    """Average over draws or points of a quadrature, given all rows or, for each row, given all others."""
    model, data = fit.model, fit.data
    flat = {name: values.reshape(-1, *values.shape[2:]) for name, values in params.items()}
    size = len(next(iter(flat.values())))
    for at in range(0, len(rows), step := max(1, AT_ONCE // size)):
        some = rows[at : at + step]
        if not leave_out:
            yield _mixture(model.law(flat, data, model.inputs.reordered(data, some)), y[some], average)
            continue
        law = model.held_out(flat, data, some)
        left = average.without(log_density(law, y[some])[None])
        predicted = _mixture(law, y[some], average, left)
        for j in np.flatnonzero(~left.is_known).tolist() if average.mass is not None else []:
            for whole, part in zip(predicted, _again(fit, y, some[j]), strict=True):
                whole[j] = part[0]
        yield predicted


def _again(fit: Fit, y: np.ndarray, i: int) -> Predicted:
    """Predict a row without which the parameters are where the quadrature given all rows does not reach."""
    (average, points), others = given_the_others(fit.model, fit.data, np.ones(len(y), dtype=np.int64), i)
    flat = {name: values[0] for name, values in points.items()}
    law = fit.model.law(flat, others, fit.model.inputs.reordered(fit.data, np.array([i])))
    return _mixture(law, y[[i]], average)


def _mixture(law: Any, y: np.ndarray, average: Average, left: LeftOut | None = None) -> Predicted:
    """Return moments and tails of distributions of shape (points, rows), mixed over draws or points of a quadrature."""
    means, variances = np.asarray(law.mean()), np.asarray(law.var())
    if left is None:
        log_weights = np.broadcast_to(average.log_weights(len(means))[:, None], means.shape)
        k_hat, halved = np.full(len(y), np.nan), None if average.halved is None else average.halved[:, None]
    else:
        known = left.is_known | (average.mass is None)  # else the row is predicted anew
        log_weights, k_hat = np.where(known, left.log_weights[0], -np.inf), left.k_hat
        halved = None if left.of_half is None else np.exp(np.where(known, left.of_half[0], -np.inf))
    moments = mixed(means, np.broadcast_to(variances, means.shape), np.exp(log_weights), halved, average.mass)
    mean, sd = np.where(moments.has_mean, moments.mean, np.nan), np.where(moments.has_sd, moments.sd, np.nan)
    if average.mass is None:
        mean, sd = _told(means, variances, moments, log_weights)
    below, at, above = (np.logaddexp.reduce(log_weights + part, axis=0) for part in tails(law, y))
    return Predicted(mean, sd, below, at, above, k_hat)


def _told(
    means: np.ndarray, variances: np.ndarray, moments: Known, log_weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Withhold the moments that draws (draws, rows) cannot tell: means over them of terms with heavy tails."""
    share, off = len(log_weights) * np.exp(log_weights), means - moments.mean
    terms = (share * off, share * (variances + np.square(off)))
    kept = [diagnostics.tail_shape(each[None]) < LIMITS["mean"] for each in terms]
    return np.where(kept[0], moments.mean, np.nan), np.where(kept[1], moments.sd, np.nan)


def _of(law: Any, y: np.ndarray) -> Predicted:
    predicted = Predicted(law.mean(), law.std(), *tails(law, y), k_hat=np.array(np.nan))
    return Predicted(*(np.broadcast_to(np.asarray(part, dtype=np.float64), y.shape) for part in predicted))


def _joined(parts: Iterator[Predicted], place: Any = slice(None)) -> Predicted:
    """Join the rows of several parts, and take those at the places."""
    return Predicted(*(np.concatenate(values)[place] for values in zip(*parts, strict=True)))


def tails(law: object, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the logs of the probabilities of values less than, equal to and more than ``y``, shape (..., rows).

    Raises `InputError` where the distribution does not have SciPy's ``logcdf`` and ``logsf``.
    """
    if isinstance(law, BetaBinomial):
        return log_tails_of_each(y, law.trials, law.a, law.b)
    with np.errstate(divide="ignore"):  # log 0
        if not (hasattr(law, "logcdf") and hasattr(law, "logsf")):
            raise InputError(f"residuals need logcdf and logsf of {type(law).__name__}", "no_distribution_function")
        if not hasattr(law, "logpmf"):
            below = law.logcdf(y)
            return below, np.full(below.shape, -np.inf), law.logsf(y)
        return law.logcdf(y - 1), law.logpmf(y), law.logsf(y)


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


def _scored(used: Predicted, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return PITs and their normal quantiles; a jump is divided at random between the two tails.

    The quantile is that of the smaller tail, which alone has the digits.
    """
    share = rng.uniform(size=len(used.at))
    with np.errstate(divide="ignore"):
        lower = np.logaddexp(used.below, np.log(share) + used.at)
        upper = np.logaddexp(used.above, np.log1p(-share) + used.at)
    quantile = scipy.special.ndtri_exp(np.minimum(lower, upper))
    return np.exp(lower), np.where(lower < upper, quantile, -quantile)


def _facts(frame: pd.DataFrame, used: Predicted) -> dict[str, Any]:
    known = frame["pit"].dropna().to_numpy()
    tested = scipy.stats.kstest(known, "uniform").pvalue if len(known) else math.nan
    return {
        "basis": {str(name): int(count) for name, count in frame["basis"].value_counts().items()},
        "randomized": bool(np.any(used.at > -np.inf)),
        "plotting_positions": "Blom",
        "band": BAND,
        "band_pointwise_level": pointwise_level(len(known)) if len(known) else math.nan,
        "band_from": f"Beta distributions of order statistics; simultaneous by {SIMULATED} simulated samples",
        "outside": int(frame["outside"].sum()),
        "ks_p": float(tested),
    }


# The band of a QQ plot: where all independent normal scores lie with probability `BAND`


def quantiles(score: np.ndarray) -> dict[str, np.ndarray]:
    """Return expected normal scores by rank, the band and which are outside; NaN where a score, (rows,), is unknown."""
    known = np.flatnonzero(~np.isnan(score))
    order = known[np.argsort(score[known], kind="stable")]
    n, unknown = len(order), np.full(len(score), np.nan)
    columns = {name: unknown.copy() for name in ("theoretical", "band_lower", "band_upper")}
    if n:
        lower = _lower_bounds(np.arange(1, n + 1), n, pointwise_level(n))
        columns["theoretical"][order] = scipy.special.ndtri((np.arange(1, n + 1) - 3 / 8) / (n + 1 / 4))
        columns["band_lower"][order], columns["band_upper"][order] = lower, -lower[::-1]
    return {**columns, "outside": (score < columns["band_lower"]) | (score > columns["band_upper"])}


def _lower_bounds(ranks: np.ndarray, n: int, level: float) -> np.ndarray:
    """Return the normal scores that the order statistics of n exceed with probability ``1 - level / 2``."""
    return np.asarray(scipy.special.ndtri(scipy.special.betaincinv(ranks, n + 1.0 - ranks, level / 2)))


@lru_cache(maxsize=64)
def pointwise_level(n: int) -> float:
    """Return the level of each order statistic's band at which all n lie within theirs with probability `BAND`.

    It is found by simulation with a fixed seed; the simultaneous probability is known to 0.003. Of more than 600 rows
    at most that many ranks are compared, dense towards both ends, so that a little more leaves the whole band.
    """
    half = np.unique(np.round(np.geomspace(1, max(n / 2, 1), _RANKS // 2))).astype(int)
    ranks = np.arange(1, n + 1) if n <= _RANKS else np.unique(np.concatenate([half, n + 1 - half]))
    gaps = np.diff(np.concatenate([[0], ranks, [n + 1]]))
    sums = np.cumsum(np.random.default_rng(0).standard_gamma(gaps, size=(SIMULATED, len(gaps))), axis=1)
    scores = scipy.special.ndtri(sums[:, :-1] / sums[:, -1:])  # order statistics of n uniform numbers, jointly
    low, high = math.log((1 - BAND) / n), math.log(1 - BAND)
    for _ in range(30):
        middle = (low + high) / 2
        bounds = _lower_bounds(ranks, n, math.exp(middle)), -_lower_bounds(n + 1 - ranks, n, math.exp(middle))
        within = np.mean(np.all((scores >= bounds[0]) & (scores <= bounds[1]), axis=1))
        low, high = (middle, high) if within >= BAND else (low, middle)
    return math.exp(low)
