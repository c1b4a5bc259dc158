"""Student-t noise as a scale mixture of Gaussians, with a normal-gamma distribution of their mean and precision.

Given mu and lam, each row has a precision of its own, theta_n lam, with theta_n ~ Gamma(nu / 2, rate nu / 2). With the
squared distance d_n = lam (y_n - mu)^2, or its expectation, the distribution of theta_n given the rest is
Gamma((nu + 1) / 2, rate (nu + d_n) / 2): what EM and variational Bayes need of it is here. Lange, Little and Taylor
1989; Liu and Rubin 1995.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy

from bayeszoo.distributions.posterior import Posterior, normal_gamma
from bayeszoo.distributions.special import gamma_divergence, log_rising
from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.errors import InputError, NumericalError

_LARGEST_IN_PYMC = 1e6
_COLLAPSED = 1e-30
"""Share of the squared distances that weights leave, from which on it is rounding: y has 16 digits."""


@dataclass(frozen=True, eq=False)
class Weighted:
    """Expected statistics of so many rows that have precisions of their own.

    ``squares`` is the sum of the squared distances from the centre of the E-step, without weights. In ``moments`` each
    row counts E[theta_n] times.
    """

    rows: float
    squares: float
    moments: Moments

    @classmethod
    def of(cls, y: np.ndarray, centre: float, weights: np.ndarray) -> Self:
        """Return the statistics of rows, shape (n,), about a centre, so that sums of large numbers do not cancel."""
        total, offsets = float(np.sum(weights)), y - centre
        if not total > 0:
            return cls(float(len(y)), 0.0, Moments(0.0, float(centre), 0.0))
        mean = centre + np.sum(weights * offsets) / total
        mean = mean + np.sum(weights * (y - mean)) / total  # what the rounding of a far centre took
        scatter = float(np.sum(weights * np.square(y - mean)))
        return cls(float(len(y)), float(np.sum(np.square(offsets))), Moments(total, float(mean), scatter))

    def __add__(self, other: Weighted) -> Weighted:
        return Weighted(self.rows + other.rows, self.squares + other.squares, self.moments + other.moments)

    def maximum(self) -> dict[str, float]:
        """Return mu and lam that maximize the expected log density of the rows.

        It grows without bound as sigma goes to 0 where equal rows are more than nu / (nu + 1) of all: the weights then
        leave no scatter.
        """
        if self.moments.scatter <= _COLLAPSED * self.squares:
            raise NumericalError("no maximum-likelihood estimate: the density is unbounded at equal observations")
        return {"mu": self.moments.mean, "lam": self.rows / self.moments.scatter}


@dataclass(frozen=True)
class MeanPrecision:
    """A normal-gamma distribution: lam ~ Gamma(shape, rate), mu | lam ~ N(mean, 1 / (kappa lam))."""

    mean: float
    kappa: float
    shape: float
    rate: float

    def updated(self, stats: Weighted) -> MeanPrecision:
        """Return the distribution given rows whose precisions are known."""
        some = stats.moments
        kappa, shift = self.kappa + some.n, some.mean - self.mean
        growth = some.scatter + self.kappa * (some.n / kappa) * shift**2
        mean = self.mean + shift * (some.n / kappa)
        return MeanPrecision(mean, kappa, self.shape + stats.rows / 2, self.rate + growth / 2)

    def mode(self) -> dict[str, float]:
        """Return mu and lam where the joint density is largest, or raise `NumericalError` where it is not bounded."""
        if self.shape <= 0.5:
            raise NumericalError(f"no joint mode: with shape {self.shape:g} the density has no maximum in lam > 0")
        return {"mu": self.mean, "lam": (self.shape - 0.5) / self.rate}

    def logpdf(self, params: Mapping[str, Any]) -> Any:
        """Joint log density; leading axes are draws."""
        return self.posterior().logpdf(params)

    def posterior(self) -> Posterior:
        """Return it with its marginals and draws."""
        return normal_gamma(self.mean, self.kappa, self.shape, self.rate)

    @property
    def log_lam(self) -> float:
        """E[log lam]."""
        return float(scipy.special.digamma(self.shape)) - math.log(self.rate)

    def distances(self, y: np.ndarray) -> np.ndarray:
        """Return E[lam (y_n - mu)^2], shape (n,)."""
        return self.shape / self.rate * np.square(y - self.mean) + 1 / self.kappa

    def divergence(self, prior: MeanPrecision) -> float:
        """Return KL(self || prior) in nats: that of mu given lam, in expectation, and that of lam."""
        ratio, shift = prior.kappa / self.kappa, self.mean - prior.mean
        of_mu = (ratio - 1 - math.log(ratio) + prior.kappa * shift**2 * (self.shape / self.rate)) / 2
        return of_mu + float(gamma_divergence(self.shape, self.rate, prior.shape, prior.rate))


def weights(nu: float, distances: np.ndarray) -> np.ndarray:
    """Return E[theta_n] given the squared distances: 1 for most rows, near 0 for outliers."""
    return np.asarray((nu + 1) / (nu + distances))


def log_normalizers(nu: float, distances: np.ndarray, log_lam: float) -> np.ndarray:
    """Return the log of what exp(E[log p(y_n, theta_n | mu, lam)]) integrates to over theta_n.

    Where mu and lam are known it is the log density of Student t, with nu degrees of freedom and scale lam**(-1/2).
    """
    gammas = float(log_rising(nu / 2, 0.5)) - math.log(nu / 2) / 2
    return gammas + (log_lam - math.log(2 * math.pi)) / 2 - (nu + 1) / 2 * np.log1p(distances / nu)


def within_pymc(nu: float, gaussian: str) -> float:
    """Return the degrees of freedom, or refuse more than a million.

    PyMC's density subtracts two log gammas of size nu log nu: from there on it is wrong by more than 1e-9 nats a row.
    """
    if nu > _LARGEST_IN_PYMC:
        raise InputError(f"nu must be at most 1e6 in PyMC, got {nu:g}", hint=f"use {gaussian}: the limit is Gaussian")
    return nu
