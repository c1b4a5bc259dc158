r"""Gaussian precision: how precise an instrument is, from measurements of something known.

    lam ~ Gamma(a, rate b)
    y_n ~ N(mu, 1 / lam)        n = 1..N

lam is the precision, one over the variance. Bishop, PRML, section 2.3.6; Gelman et al., BDA3, section 2.6; CS725
lecture 10 (where the Gamma belongs to the precision, not to the variance).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import lazy_loader
import numpy as np
import scipy

from bayeszoo.data.inputs import Real
from bayeszoo.distributions import frozen
from bayeszoo.distributions.posterior import InverseRootGamma
from bayeszoo.distributions.special import log_rising
from bayeszoo.errors import NumericalError
from bayeszoo.families.statistics.moments import Moments
from bayeszoo.model import Conjugate, Example, Observable, PointEstimates, Posterior, Values, positive, real

pm = lazy_loader.load("pymc")


@dataclass(frozen=True)
class GaussianPrecision(Conjugate[Moments], PointEstimates[Moments], Observable):
    """Independent Gaussian observations of known mean, with a Gamma prior on their precision.

    Parameters
    ----------
    a, b : float
        Shape and rate of the Gamma prior, > 0: like 2a observations of mean square b / a seen before.
    mu : float
        Mean of the observations, known.
    """

    a: float = positive(1.0, "prior shape")
    b: float = positive(1.0, "prior rate", units=2)
    mu: float = real(0.0, "mean of the observations", units=1, location=True)

    inputs = Real("y")
    examples = (
        Example(
            file="michelson.csv",
            about="speed of light in air, km/s above 299,000, in 100 measurements, around their mean",
            source="Michelson 1879",
            options={"column": "speed"},
        ),
    )

    @classmethod
    def weak(cls, data: Values) -> GaussianPrecision:
        """Take mu to be the mean of the data, and a prior worth one observation of their variance."""
        stats = Moments.of(data["y"])
        return cls(a=0.5, b=0.5 * stats.sd**2, mu=stats.mean)

    def simulate(self, rng: np.random.Generator, size: int = 20) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Draw lam from the prior and ``size`` observations given it."""
        lam = rng.gamma(self.a, 1 / self.b)
        return {"lam": lam}, {"y": rng.normal(self.mu, lam**-0.5, size)}

    def declare(self, data: Values) -> Any:
        """Declare one Gaussian observation a row."""
        with pm.Model() as model:
            lam = pm.Gamma("lam", alpha=self.a, beta=self.b)
            pm.Normal("y", mu=self.mu, tau=lam, observed=pm.Data("y_data", data["y"], dims="row"), dims="row")
        return model

    def statistics(self, data: Values) -> Moments:
        """Return count, mean and scatter."""
        return Moments.of(data["y"])

    def compressed(self, stats: Moments) -> Any:
        """Declare the density of the rows from their number and the sum of their squared errors."""
        with pm.Model() as model:
            lam = pm.Gamma("lam", alpha=self.a, beta=self.b)
            n = pm.Data("n", np.float64(stats.n))
            squares = pm.Data("squares", np.float64(stats.about(self.mu)))
            pm.Potential("y", (n * pm.math.log(lam / (2 * np.pi)) - lam * squares) / 2)
        return model

    def updated(self, stats: Moments) -> GaussianPrecision:
        """Return the model whose prior is this posterior."""
        return replace(self, a=self.a + stats.n / 2, b=self.b + stats.about(self.mu) / 2)

    def posterior(self, stats: Moments) -> Posterior:
        """Return lam ~ Gamma(a + N/2, rate b + half the sum of squared errors)."""
        later = self.updated(stats)
        return Posterior({"lam": frozen.gamma(later.a, scale=1 / later.b)})

    def log_evidence(self, stats: Moments) -> float:
        """Return the log density of the rows under a multivariate Student t, of the ordered observations."""
        half, growth = stats.n / 2, stats.about(self.mu) / 2 / self.b
        powers = self.a * math.log1p(growth) + half * math.log(2 * math.pi * self.b * (1 + growth))
        return float(log_rising(self.a, half) - powers)

    def predictive(self, stats: Moments, data: Values) -> Any:
        """Return each row's predictive: Student t with twice the posterior shape degrees of freedom."""
        later = self.updated(stats)
        return scipy.stats.t(2 * later.a, np.full(len(data["y"]), self.mu), math.sqrt(later.b / later.a))

    def likelihood(self, params: Values, data: Values) -> Any:
        """Return each row's Gaussian distribution; lam of shape (...,) gives (..., rows)."""
        return scipy.stats.norm(self.mu, np.asarray(params["lam"])[..., None] ** -0.5 + np.zeros(len(data["y"])))

    def derived(self, params: Values) -> dict[str, Any]:
        """Return sigma, the standard deviation of one observation."""
        return {"sigma": np.asarray(params["lam"]) ** -0.5}

    def derived_marginals(self, stats: Moments) -> dict[str, Any]:
        """Return the distribution of sigma in closed form."""
        later = self.updated(stats)
        return {"sigma": InverseRootGamma(later.a, later.b)}

    def free_parameters(self, stats: Moments) -> int:
        """Return 1: lam."""
        return 1

    def map(self, stats: Moments) -> dict[str, Any]:
        """Return the mode (a + N/2 - 1) / rate, or the edge 0.

        Raises
        ------
        NumericalError
            When the density is unbounded at 0.
        """
        later = self.updated(stats)
        if later.a < 1:
            raise NumericalError(f"no mode: Gamma({later.a:g}, rate {later.b:g}) is unbounded at lam = 0")
        return {"lam": (later.a - 1) / later.b}

    def mle(self, stats: Moments) -> dict[str, Any]:
        """Return N over the sum of squared errors.

        Raises
        ------
        NumericalError
            When there are no observations, or all of them are exactly ``mu``.
        """
        squares = stats.about(self.mu)
        if squares == 0:
            raise NumericalError("no maximum-likelihood estimate: no observation differs from mu")
        return {"lam": stats.n / squares}
