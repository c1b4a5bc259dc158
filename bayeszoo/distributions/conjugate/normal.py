"""Gaussian numbers with conjugate priors of mean and variance, or of one of them if the other is known."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy

from bayeszoo.distributions import frozen, information
from bayeszoo.distributions.conjugate.law import Block
from bayeszoo.distributions.posterior import Marginal
from bayeszoo.distributions.special import digamma_less_log, gamma_divergence, log_gamma, log_normal, log_rising
from bayeszoo.distributions.statistics.base import positive_or_one
from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.foundation.named import Arrays, Params


@dataclass(frozen=True, eq=False)
class Normal(Block[Moments]):
    """Numbers (n,), NaN: missing; variance ~ InvGamma(a, scale b), mean ~ N(m, variance / kappa), all (*axes).

    The posterior has the same form: kappa and 2 a grow by the number of rows, m moves towards their mean,
    and 2 b grows by their scatter and by the distance of their mean from m. Murphy 2007, "Conjugate Bayesian analysis
    of the Gaussian distribution", has the three cases; ``names`` are the unknown parameters.

    If kappa is infinite in all laws, means are known and equal m.
    If ``variance`` is given, variances are known and a and b are not used. With ``precision`` the second parameter
    is 1 / variance, with prior Gamma(a, rate b).
    """

    m: np.ndarray
    kappa: np.ndarray
    a: np.ndarray
    b: np.ndarray
    variance: np.ndarray | None = None
    precision: bool = False

    def __post_init__(self) -> None:
        if np.isinf(self.kappa).any() and not self.mean_known:
            problem = "kappa is infinite for some laws and not for others: means must be known in all or in none"
            raise InputError(problem, "out_of_range", hint="use two blocks, or a large kappa")

    @property
    def own(self) -> tuple[int, ...]:
        """All parameters are scalars."""
        return (0,) * len(self.names)

    @property
    def free_parameters(self) -> int:
        """One for each unknown mean and each unknown variance."""
        return len(self.names) * math.prod(self.axes)

    @cached_property
    def mean_known(self) -> bool:
        """Whether the means are known."""
        return bool(np.isinf(self.kappa).all())

    def means_and_variances(self, params: Params) -> tuple[Any, Any]:
        """Return means and variances from the parameters; known ones have no axes of draws."""
        values = [np.asarray(params[name], dtype=np.float64) for name in self.names]
        return self._means_and_variances(values)

    def _means_and_variances(self, values: list[np.ndarray]) -> tuple[Any, Any]:
        if self.variance is not None:
            return values[0], self.variance
        return (self.m if self.mean_known else values[0]), (1 / values[-1] if self.precision else values[-1])

    def _named(self, mean: Any, variance: Any) -> dict[str, np.ndarray]:
        """Return the unknown parameters from means and variances."""
        values = [] if self.mean_known else [mean]
        if self.variance is None:
            values.append(1 / variance if self.precision else variance)
        return dict(zip(self.names, values, strict=True))

    @property
    def _typical_variance(self) -> Any:
        """The inverse of the mean precision."""
        return self.b / self.a if self.variance is None else self.variance

    @property
    def moments_below(self) -> float:
        """Twice the smallest a: with unknown variance a new row is Student t with 2 a degrees of freedom."""
        return math.inf if self.variance is not None else float(2 * np.min(self.a))

    def statistics(self, rows: Arrays, weights: np.ndarray) -> Moments:
        """Return counts, means and scatters."""
        y = rows[self.column]
        missing = np.isnan(y)
        return Moments.weighted(y[~missing], weights[~missing]) if missing.any() else Moments.weighted(y, weights)

    def each(self, rows: Arrays) -> Moments:
        """Return the statistics of each row alone."""
        y = self._column(rows)
        is_observed = ~np.isnan(y)
        zeros = np.zeros(y.shape)
        return Moments(is_observed.astype(np.float64), np.where(is_observed, y, 0.0), zeros, zeros)

    def _densities(self, rows: Arrays, mean: npt.ArrayLike, variance: npt.ArrayLike, gap: object = 0.0) -> np.ndarray:
        y = self._column(rows)
        densities = log_normal(y, mean, variance) + gap
        missing = np.isnan(y)
        return np.where(missing, 0.0, densities) if missing.any() else densities

    def log_density(self, params: Params, rows: Arrays) -> np.ndarray:
        """Log normal density, (..., n, *axes)."""
        return self._densities(rows, *self._means_and_variances(self._at_rows(params)))

    def expected_log_density(self, rows: Arrays) -> np.ndarray:
        """Return the mean of `log_density` over the parameters, (n, *axes)."""
        gap = -1 / self.kappa + (digamma_less_log(self.a) if self.variance is None else 0.0)
        return self._densities(rows, self.m, self._typical_variance, gap / 2)

    def expected_squares(self, rows: Arrays) -> np.ndarray:
        """Return the expected squared distance of each row from the mean over the variance, (n, *axes)."""
        return np.asarray(np.square(self._column(rows) - self.m) / self._typical_variance + 1 / self.kappa)

    @property
    def expected_log_precision(self) -> Any:
        """The expected log precision, (*axes)."""
        return (digamma_less_log(self.a) if self.variance is None else 0.0) - np.log(self._typical_variance)

    def _growth(self, stats: Moments) -> Any:
        """Return the growth of 2 b by the rows: their squares about m, the mean integrated out."""
        return stats.scatter + stats.n / (1 + stats.n / self.kappa) * stats.less(self.m) ** 2

    def updated(self, stats: Moments) -> Self:
        """Return the posterior."""
        kappa = self.kappa + stats.n
        moved = self.m if self.mean_known else self.m + stats.less(self.m) * (stats.n / kappa)
        return replace(self, m=moved, kappa=kappa, a=self.a + stats.n / 2, b=self.b + self._growth(stats) / 2)

    def log_evidence(self, stats: Moments) -> np.ndarray:
        """Log marginal likelihood of the ordered rows, (..., *axes): multivariate Student t, or normal."""
        half, growth, of_mean = stats.n / 2, self._growth(stats), -np.log1p(stats.n / self.kappa) / 2
        if self.variance is not None:
            return np.asarray(of_mean - half * np.log(2 * math.pi * self.variance) - growth / (2 * self.variance))
        constant = log_rising(self.a, half) - half * np.log(2 * math.pi * self.b)
        return np.asarray(of_mean + constant - (self.a + half) * np.log1p(growth / (2 * self.b)))

    def row_mean(self, params: Params) -> np.ndarray:
        """Return the means."""
        return np.asarray(self.means_and_variances(params)[0])

    def entropy(self, params: Params) -> np.ndarray:
        """Return the differential entropy of a number, (..., *axes)."""
        _, variance = self.means_and_variances(params)
        shape = np.shape(params[self.names[0]])
        return np.broadcast_to(information.entropy_of_normals(np.log(variance), 1), shape)

    def entropy_moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and sd of the entropy, (*axes), from the log of an inverse gamma variable."""
        mean = information.entropy_of_normals(-np.asarray(self.expected_log_precision), 1)
        sd = np.sqrt(scipy.special.polygamma(1, self.a)) / 2 if self.variance is None else 0.0
        return mean + np.zeros(self.axes), sd + np.zeros(self.axes)

    def row_divergence(self, params: Params, other: Self, others: Params) -> np.ndarray:
        """Return KL of a number, (..., *axes)."""
        (mean, variance), (m, v) = self.means_and_variances(params), other.means_and_variances(others)
        return np.asarray((variance / v - 1 - np.log(variance / v) + np.square(mean - m) / v) / 2)

    def typical(self) -> dict[str, np.ndarray]:
        """Return means, and inverse mean precisions or mean precisions."""
        return self._named(self.m, self._typical_variance)

    def mode(self) -> dict[str, np.ndarray]:
        """Return the joint mode: means at m; a mean with a prior adds 1/2 to the power of its precision."""
        half = 0.0 if self.mean_known else 0.5
        if not self.precision:
            return self._named(self.m, self.b / (self.a + 1 + half))
        power = self.a - 1 + half
        self._refuse((power < 0) | ((power == 0) & (half > 0)), "has no maximum as the precision goes to 0")
        with np.errstate(divide="ignore"):
            return self._named(self.m, self.b / power)

    def mle(self, stats: Moments) -> dict[str, np.ndarray]:
        """Return mean and variance of the rows."""
        squares = np.asarray(stats.about(self.m) if self.mean_known else stats.scatter)
        has_no_rows = ~(np.asarray(stats.n) > 0)
        if np.any(has_no_rows | (squares <= 0 if self.variance is None else False)):
            reason = "there are no observations" if np.any(has_no_rows) else "the observations do not differ"
            raise NumericalError(f"no maximum-likelihood estimate: {reason}", "no_maximum")
        return self._named(stats.mean, squares / stats.n)

    def log_each(self, params: Params) -> np.ndarray:
        """Log density of means and variances, (..., *axes)."""
        mean, variance = self.means_and_variances(params)
        of_mean = 0.0 if self.mean_known else log_normal(mean, self.m, variance / self.kappa)
        if self.variance is not None:
            return np.asarray(of_mean)
        jacobian = 0.0 if self.precision else 2 * np.log(variance)
        return np.asarray(of_mean + log_gamma(1 / variance, self.a, self.b) - jacobian)

    def divergence(self, prior: Self) -> float:
        """Return KL(self || prior) in nats."""
        total = 0.0 if self.variance is not None else np.sum(gamma_divergence(self.a, self.b, prior.a, prior.b))
        if not self.mean_known:
            ratio, squares = prior.kappa / self.kappa, (self.m - prior.m) ** 2 / self._typical_variance
            total += np.sum(ratio - 1 - np.log(ratio) + prior.kappa * squares) / 2
        return float(total)

    def rvs(self, size: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Draw variances or precisions, and means given them."""
        shape, variance = (*size, *self.axes), self.variance
        if self.variance is None:
            with np.errstate(divide="ignore", over="ignore"):
                variance = self.b / rng.standard_gamma(self.a, shape)
            if not np.all(np.isfinite(variance)):
                raise NumericalError(
                    f"{self.names[-1]} cannot be drawn: the shape of the distribution is too small", "cannot_be_drawn"
                )
        mean = self.m if self.mean_known else self.m + np.sqrt(variance / self.kappa) * rng.standard_normal(shape)
        return self._named(mean, variance)

    def marginals(self) -> dict[str, Marginal]:
        """Return the marginals: means Student t or normal, variances inverse gamma, precisions gamma."""
        scale = np.sqrt(self._typical_variance / self.kappa)
        mean = frozen.norm(self.m, scale) if self.variance is not None else frozen.t(2 * self.a, self.m, scale)
        second = frozen.gamma(self.a, scale=1 / self.b) if self.precision else frozen.invgamma(self.a, scale=self.b)
        values = ([] if self.mean_known else [mean]) + ([] if self.variance is not None else [second])
        return dict(zip(self.names, values, strict=True))

    def predictive(self, rows: int) -> frozen.Frozen:
        """Return the distribution of new rows, (..., rows): Student t with 2 a degrees of freedom, or normal."""
        scale = np.sqrt(self._typical_variance * (1 + 1 / self.kappa))[..., None]
        loc = np.asarray(self.m)[..., None] + np.zeros(rows)
        return frozen.norm(loc, scale) if self.variance is not None else frozen.t(2 * self.a[..., None], loc, scale)


def spread(stats: Moments) -> float:
    """Return the variance of all rows, from the moments of sets of rows along one axis."""
    total = float(positive_or_one(stats.n.sum()))
    return float(stats.scatter.sum() + stats.n @ (stats.mean - stats.n @ stats.mean / total) ** 2) / total
