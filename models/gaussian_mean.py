r"""Gaussian mean: the mean of measurements with a known standard deviation.

    mu  ~ N(m0, s0^2)
    y_n ~ N(mu, sigma^2)        n = 1..N

Bishop, PRML, section 2.3.6; Gelman et al., BDA3, section 2.5; CS725 lecture 11; W4400, conjugate priors.
"""

from __future__ import annotations

from dataclasses import dataclass

import lazy_loader
import numpy as np
import scipy

from bayeszoo.data.inputs import Real
from bayeszoo.distributions.conjugate.normal import Normal
from bayeszoo.distributions.statistics.moments import Moments, gaussian_peak
from bayeszoo.model import BlockModel, Example, positive, real
from bayeszoo.model.types import Arrays, DeclaredModel, Params, RowLaw, Simulated

pm = lazy_loader.load("pymc")


@dataclass(frozen=True)
class GaussianMean(BlockModel[Moments]):
    """Independent Gaussian observations of known standard deviation, with a Gaussian prior on their mean.

    Parameters
    ----------
    m0, s0 : float
        Mean and standard deviation of the prior; s0 > 0.
    sigma : float
        Standard deviation of one observation, known, > 0.
    """

    m0: float = real(0.0, "prior mean", units=1, location=True)
    s0: float = positive(10.0, "prior sd", units=1)
    sigma: float = positive(1.0, "sd of an observation", units=1)

    along_points = ("m0", "s0", "sigma")
    inputs = Real("y")
    examples = (
        Example(
            file="michelson.csv",
            about="speed of light in air, km/s above 299,000, in 100 measurements",
            source="Michelson 1879",
            options={"column": "speed"},
        ),
    )

    @classmethod
    def weak(cls, data: Arrays) -> GaussianMean:
        """Centre the prior on the data, ten of their standard deviations wide, and take sigma from them too."""
        stats = Moments.of(data["y"])
        return cls(m0=stats.mean, s0=10 * stats.sd, sigma=stats.sd)

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw mu from the prior and ``size`` observations given it."""
        mu = rng.normal(self.m0, self.s0)
        return {"mu": mu}, {"y": rng.normal(mu, self.sigma, size)}

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare one Gaussian observation a row."""
        with pm.Model() as model:
            mu = pm.Normal("mu", mu=self.m0, sigma=self.s0)
            pm.Normal("y", mu=mu, sigma=self.sigma, observed=pm.Data("y_data", data["y"], dims="row"), dims="row")
        return model

    def statistics(self, data: Arrays) -> Moments:
        """Return count, mean and scatter."""
        return Moments.of(data["y"])

    def compressed(self, stats: Moments) -> DeclaredModel:
        """Declare the density of the rows from their moments: a parabola in mu."""
        with pm.Model() as model:
            mu = pm.Normal("mu", mu=self.m0, sigma=self.s0)
            mean = pm.Data("mean", np.float64(stats.mean))
            precision = pm.Data("precision", np.float64(stats.n / self.sigma**2))
            peak = pm.Data("peak", np.float64(gaussian_peak(stats, self.sigma)))
            pm.Potential("y", peak - precision * pm.math.sqr(mu - mean) / 2)
        return model

    def block(self, stats: Moments | None = None) -> Normal:
        """Return the prior of mu, which is worth sigma^2 / s0^2 rows; the variance is known."""
        nothing, kappa = np.asarray(0.0), np.square(self.sigma / self.s0)
        return Normal(("mu",), "y", np.asarray(self.m0), kappa, nothing, nothing, variance=np.square(self.sigma))

    def from_block(self, block: Normal) -> GaussianMean:
        """Return the model with another Gaussian prior."""
        return self.replaced(m0=block.m, s0=self.sigma / np.sqrt(block.kappa))

    def predictive(self, stats: Moments, data: Arrays) -> RowLaw:
        """Return each row's predictive: N(m, s^2 + sigma^2)."""
        return self.block().updated(stats).predictive(len(data["y"]))

    def likelihood(self, params: Params, data: Arrays) -> RowLaw:
        """Return each row's Gaussian distribution; mu of shape (...,) gives (..., rows)."""
        return scipy.stats.norm(np.asarray(params["mu"])[..., None] + np.zeros(len(data["y"])), self.sigma)
