"""Posterior means over draws or by quadrature: given all rows, or for each row given the others.

A row is left out of draws by Pareto-smoothed importance weights (Vehtari, Gelman and Gabry 2017), and of a quadrature
by dividing the mass of each point by the density of the row there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from bayeszoo.data.inputs import Series
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.gate import k_hat_limit, pareto_k
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.foundation.numerics.constants import LEAST_LOG
from bayeszoo.inference.engine.approximation import GOOD_K_HAT
from bayeszoo.inference.problem import LOG_WEIGHT
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import predicts_by_points
from bayeszoo.model.draws import shape_of
from bayeszoo.model.outer.integration import posterior_points
from bayeszoo.results.stored import INDEPENDENT, Fit

PSIS, QUADRATURE = "leave-one-out, PSIS", "leave-one-out, quadrature"
CLOSED_FORM = "leave-one-out, closed form"
WEIGHED_PSIS = f"{PSIS} of draws weighed to the posterior"
APPROXIMATE_PSIS = f"{PSIS} of draws of the approximation, whose own error no figure here contains"
"""How predictions leave rows out.

Draws of an approximation are weighed to the posterior. Where these weights are unknown, as with many parameters, rows
of high leverage may be off by many Monte Carlo errors.
"""
_OUTSKIRTS, _MOST_BEYOND = 1e-17, 1e-9
"""Mass given all rows below which a point is at the edge of the grid, and the largest edge mass without a row."""
_ROUNDING = 1e-14
"""Relative differences of draws up to which they are equal."""
_WIDE, _CRUDE = 7.0, 0.3
"""Limits of the sd of draws, and of the error of their mean, both divided by the distance of the mean from a bound.

Above either, few draws carry that distance: two equal ones in a hundred have an sd of seven times their mean.
"""
_EVEN = 1.0
"""Sd of draws over their mean up to which many draws carry the mean, however heavy their tail seems.

Of 3,000 samples of 4,000 Pareto values with shapes of .6 to .9, whose means draws do not show, none is that even.
"""
_UNSEEN = 3.0
"""Ratio of the error of such a mean to the formula's: of classes whose features have Student laws with 5 degrees of
freedom, means of 4,000 draws missed exact ones by up to seven errors of the formula, once in 20 times.
"""

Bounds = tuple[float | np.ndarray, float | np.ndarray]
"""Least and largest value of a quantity."""


@dataclass(frozen=True, eq=False)
class Average:
    """How posterior means of values (chain, draw, ...) are taken: over draws, or by quadrature.

    The points of a quadrature stand for the draws of one chain; ``mass`` and ``halved`` are their probabilities on the
    grid and on half of it. ``draws`` show how far a sampler's draws depend on each other. ``log_ratio`` (chain, draw)
    is the log of posterior over approximation at the draws of an approximation, up to a constant.
    """

    kind: str
    mass: np.ndarray | None = None
    halved: np.ndarray | None = None
    draws: Params | None = None
    log_ratio: np.ndarray | None = None

    @cached_property
    def efficiency(self) -> float:
        """The effective sample size of the draws over their number."""
        return diagnostics.relative_efficiency(self.draws.values()) if self.draws else 1.0

    @property
    def basis(self) -> str:
        """How predictions leave rows out."""
        if self.mass is not None:
            return QUADRATURE
        if self.kind == "approximate":
            return APPROXIMATE_PSIS if self.log_ratio is None else WEIGHED_PSIS
        return PSIS

    def log_weights(self, size: int) -> np.ndarray:
        """Return the log probability of each of ``size`` draws or points."""
        return np.full(size, -math.log(size)) if self.mass is None else np.log(self.mass)

    def mean(self, values: np.ndarray) -> np.ndarray:
        """Return the mean."""
        return values.mean((0, 1)) if self.mass is None else np.tensordot(self.mass, values[0], 1)

    def error(self, values: np.ndarray, bounds: Bounds | None = None) -> np.ndarray:
        """Return the Monte Carlo error of the mean, or what halving the grid changes; NaN of a point estimate.

        Of values between ``bounds`` it is at least that of one draw, as `error_between` says.
        """
        if self.mass is not None and self.halved is not None:
            return np.abs(np.tensordot(self.mass - self.halved, values[0], 1))
        if self.kind == "point estimate":
            return np.full(values.shape[2:], np.nan)
        alike = np.ptp(values, axis=(0, 1)) <= _ROUNDING * np.max(np.abs(values), axis=(0, 1))
        error = np.where(alike, 0.0, diagnostics.mcse(values, independent=self.kind in INDEPENDENT))
        return error if bounds is None else error_between(bounds, values.mean((0, 1)), error, values)

    def log_means(self, log_p: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the logs of means of probabilities or densities (chain, draw, *shape), and their errors.

        Only the entries that ``seen``, of that shape, marks are computed. The others are NaN, and so are means that few
        draws carry.
        """
        value, error = np.full(seen.shape, np.nan), np.full(seen.shape, np.nan)
        if self.mass is not None and self.halved is not None:
            whole, half = (
                scipy.special.logsumexp(log_p[0][:, seen], b=m[:, None], axis=0) for m in (self.mass, self.halved)
            )
            value[seen], error[seen] = whole, np.abs(whole - half)
        else:
            value[seen], error[seen] = log_means(log_p[:, :, seen], independent=self.kind in INDEPENDENT)
        return value, error

    def without(self, log_p: np.ndarray) -> LeftOut:
        """Return how means without each row are taken, by the log densities of the rows, (chain, draw, rows)."""
        if self.mass is not None and self.halved is not None:
            log_weights, of_half = (masses_without(mass, log_p[0]) for mass in (self.mass, self.halved))
            unknown = np.full(log_p.shape[-1], np.nan)
            is_known = np.isfinite(log_weights).any(axis=0)
            return LeftOut(self.kind, log_weights[None], of_half[None], unknown, is_known, np.ones_like(unknown))
        of_rows = log_p.reshape(-1, log_p.shape[-1])
        if self.log_ratio is not None:  # weights turn draws of the approximation into draws of the posterior
            of_rows = of_rows - self.log_ratio.reshape(-1, 1)
        flat, k_hat = importance(of_rows, self.efficiency)
        is_known = k_hat <= self.k_hat_limit(len(flat))
        return LeftOut(self.kind, flat.reshape(log_p.shape), None, k_hat, is_known, self.inflation(k_hat))

    @cached_property
    def are_of_posterior(self) -> bool:
        """Whether draws are of the posterior itself; an approximation that equals it has equal weights."""
        return self.log_ratio is None or pareto_k(self.log_ratio.ravel()) == -math.inf

    def k_hat_limit(self, size: int) -> float:
        """Return the largest Pareto shape of the weights of ``size`` draws at which means and errors are reliable."""
        return k_hat_limit(size) if self.are_of_posterior else min(k_hat_limit(size), GOOD_K_HAT)

    def inflation(self, k_hat: np.ndarray) -> np.ndarray:
        """Return the ratio of true errors to their formula, by the Pareto shape of the weights.

        Few draws of an approximation carry most of the weight, and the formula does not see those that were not drawn.
        Measured on 75 fits by `laplace` against closed forms: at shapes of .3 to .5 errors are 1.4 times the formula's,
        above .5 up to twice. For draws of the posterior itself the ratio is 1.
        """
        shape = np.clip(k_hat, 0, GOOD_K_HAT)
        return np.ones_like(shape) if self.are_of_posterior else 1 / (1 - shape)

    def shares(self) -> np.ndarray:
        """Return weights (chain, draw), of mean 1, that turn draws into draws of the posterior; 1 if they are."""
        if self.log_ratio is None:
            return np.ones(())
        weights = np.exp(diagnostics.smoothed_weights(-self.log_ratio.ravel())[0])
        return np.reshape(weights * weights.size, self.log_ratio.shape)


@dataclass(frozen=True, eq=False)
class LeftOut:
    """How posterior means without each row are taken, by log weights (chain, draw, rows).

    ``of_half`` are the log weights on half the grid of a quadrature, ``k_hat`` (rows,) the Pareto shapes of the weights
    of draws, ``is_known`` marks the rows whose means are reliable, ``inflation`` (rows,) is that of `Average`.
    """

    kind: str
    log_weights: np.ndarray
    of_half: np.ndarray | None
    k_hat: np.ndarray
    is_known: np.ndarray
    inflation: np.ndarray

    def mean(self, values: np.ndarray) -> np.ndarray:
        """Return the mean of values (chain, draw, rows, ...)."""
        return np.sum(_with_axes(np.exp(self.log_weights), values) * values, axis=(0, 1))

    def error(self, values: np.ndarray, bounds: Bounds | None = None) -> np.ndarray:
        """Return the Monte Carlo error of the mean, or what halving the grid changes, as `Average.error` does."""
        if self.of_half is not None:
            of_half = np.sum(_with_axes(np.exp(self.of_half), values) * values, axis=(0, 1))
            return np.abs(self.mean(values) - of_half)
        influence = self.influence(values)
        alike = np.ptp(influence, axis=(0, 1)) <= _ROUNDING * np.max(np.abs(values), axis=(0, 1))
        error = np.where(alike, 0.0, diagnostics.mcse(influence, independent=self.kind in INDEPENDENT))
        inflated = _with_axes(self.inflation, error) * error
        if bounds is None:
            return inflated
        draws = 1 / np.sum(np.exp(2 * self.log_weights), axis=(0, 1))  # of equal weight
        return error_between(bounds, self.mean(values), inflated, influence, _with_axes(draws, error))

    def influence(self, values: np.ndarray) -> np.ndarray:
        """Return how far each draw (chain, draw, rows, ...) moves the mean, to first order, times their number."""
        size = values.shape[0] * values.shape[1]
        return np.asarray(size * _with_axes(np.exp(self.log_weights), values) * (values - self.mean(values)))

    def log_mean(self, log_p: np.ndarray) -> np.ndarray:
        """Return the logs of means of probabilities or densities (chain, draw, rows, ...)."""
        return np.asarray(scipy.special.logsumexp(_with_axes(self.log_weights, log_p) + log_p, axis=(0, 1)))

    def log_mean_of_half(self, log_p: np.ndarray) -> np.ndarray:
        """Return `log_mean` on half the grid of a quadrature."""
        assert self.of_half is not None
        return np.asarray(scipy.special.logsumexp(_with_axes(self.of_half, log_p) + log_p, axis=(0, 1)))

    def log_means(self, log_p: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the logs of means, and their errors, as `Average.log_means` does; NaN where few draws carry a mean."""
        value = self.log_mean(log_p)
        with np.errstate(invalid="ignore", over="ignore"):
            error = self.error(np.exp(log_p - value))  # relative to the mean
            sd = self.influence(np.exp(log_p - value)).std(axis=(0, 1))
        is_shown = np.array(seen)
        if self.of_half is None:
            weighed = _with_axes(self.log_weights, log_p) + log_p
            for place in np.argwhere(is_shown & ((sd > _WIDE) | (error > _CRUDE))):  # k-hat judges the weights
                is_shown[*place] = _has_mean(weighed[:, :, *place])
        return np.where(is_shown, value, np.nan), np.where(is_shown, error, np.nan)


def error_between(
    bounds: Bounds, mean: np.ndarray, error: np.ndarray, values: np.ndarray, draws: float | np.ndarray | None = None
) -> np.ndarray:
    """Return the Monte Carlo error of the mean of a quantity between bounds, by its values (chain, draw, ...).

    Where few draws carry the distance of the mean from a bound, as a mean of probabilities from 1e-30 to 1e-3, draws
    that were not seen may carry more of it: the error is `_UNSEEN` times as large, and at least that of one further
    draw at the other bound. Values may be means of batches, or how far draws of unequal weight move the mean: ``draws``
    is then their number.
    """
    low, high = bounds
    near, total = np.minimum(mean - low, high - mean), values.shape[0] * values.shape[1]
    with np.errstate(invalid="ignore", divide="ignore"):
        sd = values.std(axis=(0, 1))
        effective = np.fmin(np.square(sd / error) / total, 1.0) * (total if draws is None else draws)
        is_by_few = (sd > _WIDE * near) | (error > _CRUDE * near)
        return np.asarray(np.where(is_by_few, np.fmax(_UNSEEN * error, (high - low) / effective), error))


def errors_of_probabilities(average: Average | LeftOut, p: np.ndarray) -> np.ndarray:
    """Return the errors of mean probabilities (chain, draw, rows, K); of the largest, that of the sum of the others.

    This one has the digits that 1 - 1e-20 lacks.
    """
    top = np.argmax(average.mean(p), axis=-1)[:, None]
    others = np.sum(p, axis=-1, where=np.arange(p.shape[-1]) != top)
    of_others = average.error(others, (0.0, 1.0))[:, None]
    if p.shape[-1] == 2:  # the sum is the other one
        return np.repeat(of_others, 2, axis=-1)
    error = average.error(p, (0.0, 1.0))
    np.put_along_axis(error, top, of_others, axis=-1)
    return error


def errors_of_sums(average: Average | LeftOut, p: np.ndarray, errors: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Return the errors of sums of probabilities (chain, draw, rows, K) times factors (rows, K, sums).

    ``errors`` (rows, K) are those of the probabilities, and sums of two move as these do.
    """
    if p.shape[-1] == 2:
        return np.abs(factors[:, 1] - factors[:, 0]) * errors[:, :1]
    return average.error(np.einsum("...nk,nks->...ns", p, factors), (factors.min(axis=1), factors.max(axis=1)))


def _with_axes(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return weights with trailing axes added, so that they broadcast against the values."""
    return np.reshape(weights, (*weights.shape, *[1] * (values.ndim - weights.ndim)))


def averaging(fit: Fit) -> tuple[Average, Mapping[str, np.ndarray]]:
    """Return how posterior means of a fit are taken, and its points or draws with axes (chain, draw)."""
    if fit.method == "exact" and predicts_by_points(type(fit.model)):
        grid = fit.integrated
        return by_points(grid.points, grid.mass, grid.halved)
    draws = fit.draws()
    return Average(fit.kind, draws=draws, log_ratio=_log_ratio(fit, draws)), draws


def _log_ratio(fit: Fit, draws: Params) -> np.ndarray | None:
    """Return the log weights of the draws of an approximation; None if the fit has none for these draws."""
    log_ratio = fit.draws("sample_stats").get(LOG_WEIGHT) if fit.kind == "approximate" else None
    if log_ratio is None or log_ratio.dtype.kind != "f" or log_ratio.shape != shape_of(draws):
        return None
    return np.maximum(np.nan_to_num(log_ratio - np.nanmax(log_ratio), nan=-np.inf), LEAST_LOG)


def by_points(points: Params, mass: np.ndarray, halved: np.ndarray) -> tuple[Average, dict[str, np.ndarray]]:
    """Return how means by a quadrature are taken, and its points, with axes (1, points)."""
    return Average("exact", mass, halved), {name: values[None] for name, values in points.items()}


def given_the_others(model: Model, rows: Arrays, weights: np.ndarray, i: int) -> tuple[tuple[Average, Arrays], Arrays]:
    """Integrate over the parameters given all observations but one of the i-th; they occur ``weights`` (M,) times.

    Returns the result of `by_points`, and the other observations.
    """
    others = all_others(model, rows, weights, i)
    return by_points(*posterior_points(model, others)), others


def all_others(model: Model, rows: Arrays, weights: np.ndarray, i: int) -> Arrays:
    """Return all observations but one of the i-th; they occur ``weights`` (M,) times."""
    if isinstance(model.inputs, Series):  # the row is masked, as its neighbours are not adjacent
        return model.inputs.without(rows, i)
    indices = np.repeat(np.arange(len(weights)), weights.astype(np.int64) - (np.arange(len(weights)) == i))
    return model.inputs.reordered(rows, indices)


def masses_without(mass: np.ndarray, log_p: np.ndarray) -> np.ndarray:
    """Return the log masses of points (P,) of a quadrature without each row, shape (P, rows).

    ``log_p``, of that shape, are the log densities of the rows. The grid ends where the mass given all rows is
    negligible: where the mass without a row is not, the row is NaN, and `given_the_others` makes another grid. As the
    density is log-concave, the mass beyond the last points is about theirs, or less.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log_masses = np.log(mass)[:, None] - log_p
        log_masses = log_masses - scipy.special.logsumexp(log_masses, axis=0)
        beyond = np.sum(np.exp(log_masses[mass < _OUTSKIRTS]), axis=0)
    return np.where(beyond <= _MOST_BEYOND, log_masses, np.nan)


def importance(log_p: np.ndarray, efficiency: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Return the log weights that leave each observation out of the draws, and their k-hat (Vehtari et al. 2017).

    ``log_p``, shape (draws, rows), is the log density of each observation at each draw, and ``efficiency`` the
    effective sample size of the draws over their number. The weights have the same shape and add up to 1 over the
    draws; k-hat, shape (rows,), is inf where an observation is impossible at some draw, which has all the weight, and
    -inf where all weights are equal.
    """
    log_weights = np.full(log_p.shape, -math.log(len(log_p)))
    finite = np.isfinite(log_p).all(axis=0)
    k_hat = np.where(finite, -np.inf, np.inf)
    varies = finite & (np.ptp(np.where(finite, log_p, 0.0), axis=0) >= 1e-9)  # equal weights need no smoothing
    if varies.any():
        smoothed, k_hat[varies] = diagnostics.smoothed_weights(log_p[:, varies].T, efficiency)
        log_weights[:, varies] = smoothed.T
    return log_weights, k_hat


def log_means(log_p: np.ndarray, *, independent: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return the log of the mean over draws (chain, draw, rows), and its error; NaN where few draws carry it."""
    alike = np.ptp(np.maximum(log_p, LEAST_LOG), axis=(0, 1)) < 1e-9
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        value = scipy.special.logsumexp(log_p, axis=(0, 1)) - math.log(log_p.shape[0] * log_p.shape[1])
        ratio = np.where(alike, 1.0, np.exp(log_p - value))
        error = np.where(alike, 0.0, diagnostics.mcse(ratio, independent=independent))
    is_shown = alike | np.isfinite(value)
    for row in np.flatnonzero(is_shown & ((ratio.std(axis=(0, 1)) > _EVEN) | (error > _CRUDE))):
        is_shown[row] = _has_mean(log_p[..., row])
    return np.where(is_shown, value, np.nan), np.where(is_shown, error, np.nan)


def relative_sum(log_p: np.ndarray, log_mean: np.ndarray) -> np.ndarray:
    """Return the sum over rows of values (chain, draw, rows) over their means; NaN if the mean of a row is unknown."""
    possible = ~np.isneginf(log_mean)  # other rows are impossible at all draws
    return np.asarray(np.sum(np.exp(log_p[..., possible] - log_mean[possible]), axis=-1))


def error_of_sum(relative_sums: np.ndarray, *, independent: bool = False) -> float:
    """Return the Monte Carlo error of the sum over rows of the logs of means over draws, by `relative_sum` of all rows.

    Errors of rows are dependent, as each draw moves the means of all rows.
    """
    if np.isnan(relative_sums).any():
        return math.nan
    is_alike = np.ptp(relative_sums) <= _ROUNDING * max(np.max(relative_sums), 1.0)
    return 0.0 if is_alike else float(diagnostics.mcse(relative_sums, independent=independent))


def _has_mean(log_values: np.ndarray) -> bool:
    """Say whether the mean of values, from their logs at the draws, is carried by enough draws."""
    return bool(pareto_k(np.maximum(log_values.ravel(), LEAST_LOG)) <= k_hat_limit(log_values.size))
