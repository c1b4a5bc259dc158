"""Student-t noise as a scale mixture of Gaussians, whose mean and precision have a normal-gamma distribution.

Given mu and lam, row n has the precision theta_n lam, with theta_n ~ Gamma(nu / 2, rate nu / 2). With the squared
distance d_n = lam (y_n - mu)^2, or its expectation, the conditional distribution of theta_n is Gamma((nu + 1) / 2, rate
(nu + d_n) / 2); this module has its expectations for EM and variational Bayes. Lange, Little and Taylor 1989; Liu and
Rubin 1995.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from bayeszoo.distributions.conjugate.normal import Normal
from bayeszoo.distributions.special import log_rising
from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.foundation.numerics.constants import LOG_2_PI
from bayeszoo.model.capabilities.steps import Expectation

_LARGEST_IN_PYMC = 1e6
_COLLAPSED = 1e-30
"""Ratio of weighted to unweighted squared distances below which it is rounding: y has 16 digits."""


@dataclass(frozen=True, eq=False)
class Weighted:
    """Expected statistics of N rows with different precisions.

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
        mean = mean + np.sum(weights * (y - mean)) / total  # corrects the rounding from a distant centre
        scatter = float(np.sum(weights * np.square(y - mean)))
        return cls(float(len(y)), float(np.sum(np.square(offsets))), Moments(total, float(mean), scatter))

    def __add__(self, other: Weighted) -> Weighted:
        return Weighted(self.rows + other.rows, self.squares + other.squares, self.moments + other.moments)

    def maximum(self, block: Normal) -> dict[str, np.ndarray]:
        """Return mu and lam that maximize the expected log density of the rows.

        The density is unbounded as sigma goes to 0 if a share of more than nu / (nu + 1) of the rows are equal: the
        weights then leave no scatter.
        """
        if self.moments.scatter <= _COLLAPSED * self.squares:
            raise NumericalError(
                "no maximum-likelihood estimate: the density is unbounded at equal observations", "no_maximum"
            )
        return block.mle(replace(self.moments, n=self.rows))

    def posterior(self, block: Normal) -> Normal:
        """Return the normal-gamma distribution of mu and lam given the weights: each row adds 1/2 to its shape."""
        return replace(block.updated(self.moments), a=block.a + self.rows / 2)


def weights(nu: float, distances: np.ndarray) -> np.ndarray:
    """Return E[theta_n] given the squared distances: 1 for most rows, near 0 for outliers."""
    return np.asarray((nu + 1) / (nu + distances))


def log_normalizers(nu: float, distances: np.ndarray, log_lam: float) -> np.ndarray:
    """Return the log of the integral of exp(E[log p(y_n, theta_n | mu, lam)]) over theta_n.

    For known mu and lam it is the log density of Student t, with nu degrees of freedom and scale lam**(-1/2).
    """
    gammas = float(log_rising(nu / 2, 0.5)) - math.log(nu / 2) / 2
    return gammas + (log_lam - LOG_2_PI) / 2 - (nu + 1) / 2 * np.log1p(distances / nu)


def expectation(nu: float, y: np.ndarray, centre: float, distances: np.ndarray, log_lam: float) -> Expectation:
    """Return the expected statistics of rows (n,) about a centre, and the sum of their log normalizers."""
    value = float(np.sum(log_normalizers(nu, distances, log_lam)))
    return Expectation(Weighted.of(y, centre, weights(nu, distances)), value)


def within_pymc(nu: float, gaussian: str) -> float:
    """Return the degrees of freedom; refuse more than a million.

    PyMC's density subtracts two log gammas of size nu log nu: above a million its error exceeds 1e-9 nats per row.
    """
    if nu > _LARGEST_IN_PYMC:
        raise InputError(
            f"nu must be at most 1e6 in PyMC, got {nu:g}", "out_of_range", hint=f"use {gaussian}: the limit is Gaussian"
        )
    return nu
