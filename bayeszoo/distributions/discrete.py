"""Distributions of counts and categories that SciPy lacks, or computes with few digits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy

from bayeszoo.distributions import frozen
from bayeszoo.distributions.bases import TIE, ByMarginals, ByVariance, OfIndicators, Stackable
from bayeszoo.distributions.beta_binomial_tails import log_tails_of_each
from bayeszoo.distributions.special import (
    deviance,
    log_beta_binomial,
    log_binomial,
    log_negative_binomial,
    log_negative_binomial_of_odds,
    log_peak,
    log_poisson,
    sum_of_others,
)
from bayeszoo.foundation.named import RandomState
from bayeszoo.foundation.numerics.levels import reached


def _is_count(k: np.ndarray) -> np.ndarray:
    return (k >= 0) & (k == np.floor(k)) & np.isfinite(k)


class BetaBinomial(ByMarginals, Stackable):
    """The number of successes in new trials, elementwise; the success probability ~ Beta(a, b).

    SciPy's masses and quantiles lose digits when a and b are large (with a = b = 5e14 every quantile of 10
    trials is 10). ``trials`` have shape (rows,) or (rows, 1); a and b broadcast with them.
    """

    MAX_SUMMED = 100_000
    """Most trials for which quantiles come from sums of the mass function; beyond, from the distribution function."""

    def __init__(self, trials: npt.ArrayLike, a: npt.ArrayLike, b: npt.ArrayLike) -> None:
        a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
        self.trials, self.a, self.b = np.broadcast_arrays(trials, a, b)
        self._marginals = frozen.betabinom(self.trials, self.a, self.b)

    def logpmf(self, k: npt.ArrayLike) -> np.ndarray:
        """Log mass at ``k`` successes; -inf outside 0..trials."""
        k = np.asarray(k, dtype=np.float64)
        inside = _is_count(k) & (k <= self.trials)
        return np.where(inside, log_beta_binomial(np.where(inside, k, 0.0), self.trials, self.a, self.b), -np.inf)

    def rvs(self, size: Any, random_state: RandomState = None) -> np.ndarray:
        """Draw numbers of successes of shape ``size``."""
        rng = np.random.default_rng(random_state)
        return np.asarray(rng.binomial(self.trials, rng.beta(self.a, self.b, size)))

    def beside(self, laws: Sequence[Self], axes: tuple[int, ...]) -> Self:
        """Stack distributions of this shape, this one included, to shape (*axes, *own shape)."""
        together = (np.stack([getattr(law, name) for law in laws]) for name in ("trials", "a", "b"))
        return type(self)(*(values.reshape(*axes, *values.shape[1:]) for values in together))

    def cdf(self, k: object) -> np.ndarray:
        """Return P(successes <= k)."""
        return np.exp(self.logcdf(k))

    def logcdf(self, k: object) -> np.ndarray:
        """Return log P(successes <= k)."""
        k, (below, exactly, _) = self._log_tails(k)
        return np.where(k < 0, -np.inf, np.where(k >= self.trials, 0.0, np.minimum(np.logaddexp(below, exactly), 0.0)))

    def logsf(self, k: object) -> np.ndarray:
        """Return log P(successes > k)."""
        k, (_, _, above) = self._log_tails(k)
        return np.where(k < 0, 0.0, np.where(k >= self.trials, -np.inf, above))

    def _log_tails(self, k: object) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        k = np.floor(np.asarray(k, dtype=np.float64))
        return k, log_tails_of_each(np.clip(k, 0, self.trials), self.trials, self.a, self.b)

    def ppf(self, q: float) -> np.ndarray:
        """Return the smallest count whose cumulative mass reaches ``q``."""
        laws = np.stack([np.ravel(value).astype(np.float64) for value in (self.trials, self.a, self.b)], axis=1)
        distinct, law_of_row = np.unique(laws, axis=0, return_inverse=True)  # rows are often equal
        quantiles, is_long = np.empty(len(distinct)), distinct[:, 0] > self.MAX_SUMMED
        quantiles[~is_long] = [self._summed(n, a, b, q) for n, a, b in distinct[~is_long]]
        if is_long.any():
            trials, a, b = distinct[is_long].T
            quantiles[is_long] = reached(BetaBinomial(trials, a, b).cdf, q, np.full(trials.shape, -1.0), trials, True)
        return quantiles[law_of_row.ravel()].reshape(self.trials.shape)

    @staticmethod
    def _summed(trials: float, a: float, b: float, q: float) -> float:
        mass = np.exp(BetaBinomial(trials, a, b).logpmf(np.arange(trials + 1)))
        return min(float(np.searchsorted(np.cumsum(mass), q * TIE)), trials)


class Poisson(ByMarginals):
    """Counts with means (..., rows): SciPy's, except the log mass, whose digits SciPy loses at large counts."""

    def __init__(self, mean: npt.ArrayLike) -> None:
        self._mean = np.asarray(mean, dtype=np.float64)
        self._marginals = frozen.poisson(self._mean)

    def rvs(self, size: object, random_state: object = None) -> np.ndarray:
        """Draw counts of shape ``size``."""
        return np.asarray(self._marginals.rvs(size=size, random_state=random_state))

    def logpmf(self, k: npt.ArrayLike) -> np.ndarray:
        """Log mass at the counts ``k``."""
        return log_peak(k) - deviance(k, self._mean)


class NegativeBinomial(ByVariance, Stackable):
    """New counts: y ~ Poisson(rate * exposure), rate ~ Gamma(a, rate b); ``exposure`` (rows,) broadcasts with a and b.

    SciPy takes the probability b / (b + exposure), which keeps few digits of a small exposure.
    """

    def __init__(self, a: npt.ArrayLike, b: npt.ArrayLike, exposure: npt.ArrayLike) -> None:
        self.a, self.b, self.exposure = (np.asarray(values, dtype=np.float64) for values in (a, b, exposure))
        self._share = self.exposure / (self.b + self.exposure)

    def beside(self, laws: Sequence[Self], axes: tuple[int, ...]) -> Self:
        """Stack distributions of as many rows, this one included, to shape (*axes, rows)."""
        a, b = (np.reshape([getattr(law, name) for law in laws], (*axes, 1)) for name in ("a", "b"))
        return type(self)(a, b, self.exposure)

    def mean(self) -> np.ndarray:
        """Return exposure times the mean rate."""
        return self.exposure * (self.a / self.b)

    def var(self) -> np.ndarray:
        """Return the variance."""
        return self.mean() * (1 + self.exposure / self.b)

    def logpmf(self, k: npt.ArrayLike) -> np.ndarray:
        """Log mass at the counts ``k``; -inf where they are not counts."""
        k = np.asarray(k, dtype=np.float64)
        inside = _is_count(k)
        log_mass = log_negative_binomial(np.where(inside, k, 0.0), self.a, self.b, self.exposure)
        return np.where(inside, np.minimum(log_mass, 0.0), -np.inf)

    def cdf(self, k: npt.ArrayLike) -> np.ndarray:
        """Return P(count <= k)."""
        k = np.floor(np.asarray(k, dtype=np.float64))
        return np.where(k >= 0, scipy.special.betaincc(np.maximum(k, 0.0) + 1, self.a, self._share), 0.0)

    def sf(self, k: npt.ArrayLike) -> np.ndarray:
        """Return P(count > k)."""
        k = np.floor(np.asarray(k, dtype=np.float64))
        return np.where(k >= 0, scipy.special.betainc(np.maximum(k, 0.0) + 1, self.a, self._share), 1.0)

    def logcdf(self, k: npt.ArrayLike) -> np.ndarray:
        """Return log P(count <= k)."""
        return np.asarray(np.log(self.cdf(k)))

    def logsf(self, k: npt.ArrayLike) -> np.ndarray:
        """Return log P(count > k)."""
        return np.asarray(np.log(self.sf(k)))

    def ppf(self, q: float) -> np.ndarray:
        """Return SciPy's quantiles; NaN (withheld) where SciPy loses digits or does not terminate."""
        is_safe = (self.a + self.mean() + 10 * self.std() < 2.0**50) & (self.exposure > 1e-10 * self.b)
        return scipy.stats.nbinom.ppf(q, self.a, self.b / (self.b + np.where(is_safe, self.exposure, np.nan)))


class Categorical(OfIndicators):
    """One of K categories for each row, as K indicators; probabilities ``p`` have shape (..., rows, K)."""

    def __init__(self, p: npt.ArrayLike) -> None:
        self.p = np.asarray(p, dtype=np.float64)

    def mean(self) -> np.ndarray:
        """Return the probabilities."""
        return self.p

    def logpmf(self, codes: object) -> np.ndarray:
        """Return log probabilities (..., rows) of category codes, integers (rows,)."""
        codes = np.asarray(codes)
        inside = (codes >= 0) & (codes < self.p.shape[-1])
        rows = np.arange(self.p.shape[-2])
        chosen = np.where(inside, self.p[..., rows, np.where(inside, codes, 0).astype(np.int64)], 0.0)
        return np.where(chosen > 0, np.log(np.where(chosen > 0, chosen, 1.0)), np.where(chosen == 0, -np.inf, np.nan))

    def rvs(self, size: tuple[int, ...], random_state: RandomState = None) -> np.ndarray:
        """Draw indicators of shape ``size``, which ends in (rows, K)."""
        return np.random.default_rng(random_state).multinomial(1, self.p, size=size[:-1])

    def codes(self, drawn: np.ndarray) -> np.ndarray:
        """Return the category of each row, (..., rows)."""
        return np.asarray(np.argmax(drawn, axis=-1))


class LogitCategorical(Categorical):
    """One of K categories for each row, with probabilities proportional to exp(``logits``), (..., rows, K)."""

    def __init__(self, logits: object) -> None:
        logits = np.asarray(logits, dtype=np.float64)
        terms = np.ascontiguousarray(np.moveaxis(logits, -1, 0))  # ten times as fast as along the last axis
        terms = terms - terms.max(axis=0)
        self.log_p = np.moveaxis(terms - np.log(np.exp(terms).sum(axis=0)), 0, -1)
        super().__init__(np.exp(self.log_p))

    def logpmf(self, codes: object) -> np.ndarray:
        """Return log probabilities (..., rows) of category codes, integers (rows,)."""
        return _at_codes(self.log_p, codes)


class ClassWithFeatures(LogitCategorical):
    """The class and features of each row, with their log joint density (..., rows, K).

    Moments, draws and quantiles are those of the class given the features; `logpmf` is the joint log density.
    """

    def __init__(self, log_joint: npt.ArrayLike) -> None:
        self.log_joint = np.asarray(log_joint, dtype=np.float64)
        with np.errstate(invalid="ignore"):  # NaN for a row that is impossible in every class
            super().__init__(self.log_joint)

    @property
    def log_features(self) -> np.ndarray:
        """Log density of the features of each row, summed over classes, (..., rows)."""
        return np.asarray(np.logaddexp.reduce(self.log_joint, axis=-1))

    def logpmf(self, codes: object) -> np.ndarray:
        """Return log joint densities (..., rows) of class codes (rows,) and the features."""
        return _at_codes(self.log_joint, codes)


def _at_codes(values: np.ndarray, codes: object) -> np.ndarray:
    """Return values (..., rows, K) at category codes (rows,); -inf at an invalid code."""
    codes = np.asarray(codes)
    inside = (codes >= 0) & (codes < values.shape[-1])
    return np.where(inside, values[..., np.arange(values.shape[-2]), np.where(inside, codes, 0)], -np.inf)


class Multinomial(ByMarginals):
    """Rows of counts of K categories that sum to ``trials`` (rows,).

    The probabilities ``p`` have shape (..., rows, K), or (..., 1, K) if equal for all rows.
    """

    def __init__(self, trials: npt.ArrayLike, p: npt.ArrayLike) -> None:
        self.trials, self.p = np.asarray(trials), np.asarray(p, dtype=np.float64)
        self._marginals = frozen.binom(self.trials[..., None], self.p)

    def logpmf(self, counts: npt.ArrayLike) -> np.ndarray:
        """Return log masses (..., rows) of unordered ``counts`` (rows, K).

        Multinomial counts are independent Poisson counts given their sum.
        """
        counts, inside = _rows_of_counts(counts, self.trials)
        terms = log_peak(counts) - deviance(counts, self.trials[..., None] * self.p)
        log_mass = np.sum(terms, axis=-1) - log_peak(self.trials)
        return np.where(inside, np.minimum(log_mass, 0.0), -np.inf)

    def rvs(self, size: tuple[int, ...], random_state: RandomState = None) -> np.ndarray:
        """Draw counts of shape ``size``, which ends in (rows, K)."""
        return np.random.default_rng(random_state).multinomial(self.trials, self.p, size=size[:-1])


class DirichletMultinomial(ByMarginals, Stackable):
    """New rows of counts that sum to ``trials`` (rows,), with probabilities ~ Dirichlet(alpha), (..., K)."""

    def __init__(self, alpha: npt.ArrayLike, trials: npt.ArrayLike) -> None:
        self.alpha, self.trials = np.asarray(alpha, dtype=np.float64), np.asarray(trials)
        alpha_of_rows = self.alpha[..., None, :]
        self._marginals = BetaBinomial(self.trials[:, None], alpha_of_rows, sum_of_others(alpha_of_rows, -1))

    def beside(self, laws: Sequence[Self], axes: tuple[int, ...]) -> Self:
        """Stack distributions of as many rows, this one included, to shape (*axes, rows, K)."""
        alpha = np.stack([law.alpha for law in laws])
        return type(self)(alpha.reshape(*axes, *alpha.shape[1:]), self.trials)

    def logpmf(self, counts: npt.ArrayLike) -> np.ndarray:
        """Return log masses (..., rows) of unordered ``counts`` (rows, K)."""
        counts, inside = _rows_of_counts(counts, self.trials)
        total = np.sum(self.alpha, axis=-1)[..., None]
        terms = log_negative_binomial(counts, self.alpha[..., None, :], total[..., None], self.trials[:, None])
        log_mass = np.sum(terms, axis=-1) - log_negative_binomial(self.trials, total, total, self.trials)
        return np.where(inside, np.minimum(log_mass, 0.0), -np.inf)


def _rows_of_counts(counts: npt.ArrayLike, trials: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the counts, invalid ones as 0, and whether each row has valid counts with the right sum."""
    counts = np.asarray(counts, dtype=np.float64)
    valid = _is_count(counts)
    counts = np.where(valid, counts, 0.0)
    return counts, np.all(valid, axis=-1) & (np.sum(counts, axis=-1) == trials)


class LogitBinomial(ByMarginals):
    """Successes in ``trials`` (rows,) with log odds ``logits`` (..., rows), exact also for probabilities near 1."""

    def __init__(self, trials: npt.ArrayLike, logits: object) -> None:
        self.trials, self.logits = np.asarray(trials, dtype=np.float64), np.asarray(logits, dtype=np.float64)
        self._marginals = frozen.binom(self.trials, scipy.special.expit(self.logits))
        self._failures = frozen.binom(self.trials, scipy.special.expit(-self.logits))

    def rvs(self, size: object = None, random_state: object = None) -> np.ndarray:
        """Draw numbers of successes of shape ``size``."""
        return np.asarray(self._marginals.rvs(size=size, random_state=random_state))

    def logpmf(self, k: npt.ArrayLike) -> np.ndarray:
        """Log mass at ``k`` successes; -inf outside 0..trials."""
        k = np.asarray(k, dtype=np.float64)
        inside = _is_count(k) & (k <= self.trials)
        inner = np.where(inside, k, 0.0)
        unlikely = np.where(self.logits < 0, inner, self.trials - inner)
        size = np.abs(self.logits)
        log_mass = log_binomial(self.trials, inner) - unlikely * size - self.trials * np.log1p(np.exp(-size))
        return np.where(inside, log_mass, -np.inf)

    def logcdf(self, k: npt.ArrayLike) -> np.ndarray:
        """Return log P(successes <= k)."""
        return np.asarray(np.log(self.cdf(k)))

    def cdf(self, k: npt.ArrayLike) -> np.ndarray:
        """Return P(successes <= k)."""
        by_failures = self._failures.sf(
            self.trials - np.asarray(k) - 1
        )  # P(failures >= trials - k), as p near 1 has lost digits
        return np.where(self.logits > 0, by_failures, self._marginals.cdf(k))

    def logsf(self, k: npt.ArrayLike) -> np.ndarray:
        """Return log P(successes > k) = log P(failures < trials - k)."""
        return np.asarray(self._failures.logcdf(self.trials - np.asarray(k) - 1))


class LogMeanPoisson(ByMarginals):
    """Poisson counts with mean exposure exp(log_rates), (..., rows), which may underflow; ``exposure`` is (rows,)."""

    def __init__(self, exposure: npt.ArrayLike, log_rates: object) -> None:
        self._log_mean = np.asarray(log_rates, dtype=np.float64) + np.log(exposure)
        with np.errstate(over="ignore"):
            self._marginals = frozen.poisson(np.exp(self._log_mean))

    @property
    def log_mean(self) -> np.ndarray:
        """The logs of the means, which equal the variances; they do not overflow."""
        return np.asarray(self._log_mean)

    def rvs(self, size: object = None, random_state: object = None) -> np.ndarray:
        """Draw counts of shape ``size``."""
        return np.asarray(self._marginals.rvs(size=size, random_state=random_state))

    def logpmf(self, k: npt.ArrayLike) -> np.ndarray:
        """Log mass at the counts ``k``; -inf where they are not counts."""
        k = np.asarray(k, dtype=np.float64)
        inside = _is_count(k)
        return np.where(inside, log_poisson(np.where(inside, k, 0.0), self._log_mean), -np.inf)


class LogMeanNegativeBinomial(ByMarginals):
    """Negative binomial counts with log mean (..., rows) and variance mean + mean^2 / phi, ``phi`` (...)."""

    def __init__(self, log_mean: object, phi: object) -> None:
        self.log_mean, self.phi = np.asarray(log_mean, dtype=np.float64), np.asarray(phi, dtype=np.float64)[..., None]
        self._share = self.log_mean - np.log(self.phi)
        self._marginals = frozen.nbinom(self.phi, scipy.special.expit(-self._share))

    def mean(self) -> np.ndarray:
        """Return the means; SciPy's lose digits for large phi."""
        return np.exp(self.log_mean)

    def var(self) -> np.ndarray:
        """Return the variances."""
        return self.mean() * (1 + np.exp(self._share))

    def std(self) -> np.ndarray:
        """Return the standard deviations."""
        return np.sqrt(self.var())

    def rvs(self, size: object = None, random_state: object = None) -> np.ndarray:
        """Draw counts of shape ``size``."""
        return np.asarray(self._marginals.rvs(size=size, random_state=random_state))

    def logpmf(self, k: np.ndarray) -> np.ndarray:
        """Log mass at the counts ``k``; -inf where they are not counts."""
        inside = _is_count(k)
        count = np.where(inside, k, 0.0)
        return np.where(inside, log_negative_binomial_of_odds(count, self.phi, self._share), -np.inf)
