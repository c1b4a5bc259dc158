"""Steps shared by linear models of a real outcome: Gaussian or similar noise, and least squares."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bayeszoo.data.inputs import Regression
from bayeszoo.data.read import Example
from bayeszoo.distributions import frozen
from bayeszoo.distributions.averages.averaged import RowLaw
from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.errors import NumericalError
from bayeszoo.families.linear.design import LinearTerms
from bayeszoo.families.linear.least_squares import Solution, covariance_root, fitted
from bayeszoo.families.statistics.factored import FactoredMoments
from bayeszoo.foundation.named import Arrays, Fields, Params
from bayeszoo.model.fields import real

DIABETES = Example(
    "diabetes.csv",
    "progression of diabetes in a year, and ten measurements of each of 442 patients",
    "Efron, Hastie, Johnstone and Tibshirani 2004",
    {"target": "progression"},
)
SUNSPOTS = Example(
    "sunspots.csv",
    "sunspot number a year, 1749-1924, predicted from the two years before",
    "Yule 1927; WDC-SILSO, Royal Observatory of Belgium",
    {"target": "sunspots", "lags": 2},
)


@dataclass(frozen=True)
class LinearModel(LinearTerms, family=True):
    """An outcome whose mean is the linear predictor: a weighted sum of terms, as of `LinearTerms`.

    Parameters
    ----------
    m0 : float
        Prior mean of the intercept, the mean outcome at ``center``.
    """

    m0: float = real(0.0, "prior mean of the intercept", units=1, location=True, kw_only=True)

    inputs = Regression("y")
    predicted_quantity: ClassVar[str] = "mean outcome"
    has_identity_link: ClassVar[bool] = True

    @property
    def has_origin(self) -> bool:
        """Whether the model has the same fit when the outcome is shifted: the intercept moves with it."""
        return self.intercept

    @classmethod
    def standardized(cls, data: Arrays) -> Fields:
        """Return the fields that centre features and outcome at their means and scale features by their sd."""
        return {**super().standardized(data), "m0": Moments.of(data["y"]).mean}

    @classmethod
    def mirrored(cls, data: Arrays) -> Arrays:
        """Return the rows of the data, followed by the rows with the signs of features and outcome changed."""
        return {**super().mirrored(data), "y": np.concatenate([data["y"], -data["y"]])}

    @staticmethod
    def outcome_sd(data: Arrays) -> float:
        """Return the standard deviation of the outcome; 1 if the outcome does not vary."""
        return float(Moments.of(data["y"]).sd)

    def mean(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the mean outcome of each row; weights of shape (..., T) give (..., rows)."""
        return self.predictor(params, data)

    def log_likelihood(self, stats: FactoredMoments, params: Params) -> float:
        """Return the log density of the outcomes at one point, from the statistics."""
        design, outcome = self.rows(stats)
        error = outcome - design @ (np.asarray(params["w"]) - self.origin(design.shape[1]))
        variance = float(self.variance(params))
        return -(stats.n * math.log(2 * math.pi * variance) + float(np.sum(np.square(error))) / variance) / 2

    def likelihood(self, params: Params, data: Arrays) -> RowLaw:
        """Return each row's Gaussian distribution; parameters with leading axes (...) give (..., rows)."""
        return frozen.norm(self.mean(params, data), np.sqrt(self.variance(params))[..., None])

    def variance(self, params: Params) -> np.ndarray:
        """Return the noise variance, by default the parameter ``sigma2``, one per draw."""
        return np.asarray(params["sigma2"])

    def statistics(self, data: Arrays) -> FactoredMoments:
        """Return count, means and factored scatter of the standardized terms and the outcome."""
        columns, units = self.slopes(data)
        return FactoredMoments.of(columns, data["y"], units)

    def moments(self, data: Arrays) -> FactoredMoments:
        """Return the statistics of the data."""
        return self.statistics(data)

    def standardized_weights(self, stats: FactoredMoments) -> Solution | None:
        """Return the posterior of standardized weights for rows in units of the noise; None if the noise is unknown."""
        return None

    def predicted(self, solution: Solution, data: Arrays) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of ``x' w`` for each row, (..., n), under a solution for standardized weights."""
        rows = self._with_intercept(self.slopes(data)[0])
        return self.m0 * self.intercept + (rows @ solution.mean[..., None])[..., 0], solution.spread(rows)

    def rows(self, stats: FactoredMoments) -> tuple[np.ndarray, np.ndarray]:
        """Return the fewest rows of terms in the user's units, and outcomes minus ``m0``, with the squared errors."""
        design, outcome = self.equations(stats)
        return design * self.units(stats), outcome

    def least_squares(self, stats: FactoredMoments) -> tuple[np.ndarray, float]:
        """Return the unique least-squares estimate in the user's units, and its squared error, 0 if only rounding."""
        theta, squared_error, rank = fitted(*self.equations(stats))
        if rank < len(theta):
            identified = f"the data identify {rank} of {len(theta)} combinations of weights"
            raise NumericalError(f"no unique maximum-likelihood estimate: {identified}", "no_maximum")
        noise = 1e-20 * float(np.sum(np.square(stats.root[:, -1])))
        return self.origin(len(theta)) + theta / self.units(stats), squared_error * (squared_error > noise)

    def noise_sd(self, stats: FactoredMoments) -> float:
        """Return the standard deviation of the least-squares residuals, or of the outcome if they are 0."""
        _, squared_error, rank = fitted(*self.equations(stats))
        total = float(np.sum(np.square(stats.root[:, -1])))
        if stats.n > rank and squared_error > 1e-20 * total:
            return math.sqrt(squared_error / (stats.n - rank))
        return math.sqrt(total / (stats.n - 1)) if stats.n > 1 and total > 0 else 1.0


class NormalInverseGamma(LinearModel, family=True):
    """Weights of standardized terms ~ N(mean, sigma2 V0), given a noise variance sigma2 ~ InvGamma(a0, scale b0).

    The mean is ``m0`` for the intercept and ``w0`` for other terms; a number ``V0`` multiplies the identity.
    """

    w0: float
    V0: float
    a0: float
    b0: float

    def prior_of_standardized(self, stats: FactoredMoments) -> tuple[np.ndarray, np.ndarray]:
        """Return mean (T,), about the origin, and lower triangular root of V0 (T, T), for the terms of statistics."""
        mean = np.concatenate([np.zeros(int(self.intercept)), self.entries("w0", len(stats.units))])
        return mean, covariance_root(self.V0, len(mean))

    def prior_of_weights(self, stats: FactoredMoments) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and root of the covariance, divided by sigma2, of the weights in the user's units."""
        return self.prior_in_units(stats, *self.prior_of_standardized(stats))
