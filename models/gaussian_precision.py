r"""Gaussian precision: the precision of an instrument, from measurements of a known value.

    lam ~ Gamma(a, rate b)
    y_n ~ N(mu, 1 / lam)        n = 1..N

lam is the precision, one over the variance. Bishop, PRML, section 2.3.6; Gelman et al., BDA3, section 2.6; CS725
lecture 10 (where the Gamma belongs to the precision, not to the variance).
"""

from __future__ import annotations

from dataclasses import dataclass

import lazy_loader
import numpy as np
import scipy

from bayeszoo.data.inputs import Real
from bayeszoo.distributions.conjugate.normal import Normal
from bayeszoo.distributions.posterior import InverseRootGamma, Marginal
from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.model import BlockModel, Example, positive, real
from bayeszoo.model.types import Arrays, DeclaredModel, Params, RowLaw, Simulated

pm = lazy_loader.load("pymc")


@dataclass(frozen=True)
class GaussianPrecision(BlockModel[Moments]):
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

    along_points = ("a", "b", "mu")
    inputs = Real("y")
    nonnegative = ("lam", "sigma")
    examples = (
        Example(
            file="michelson.csv",
            about="speed of light in air, km/s above 299,000, in 100 measurements, around their mean",
            source="Michelson 1879",
            options={"column": "speed"},
        ),
    )

    @classmethod
    def weak(cls, data: Arrays) -> GaussianPrecision:
        """Take mu to be the mean of the data, and a prior worth one observation of their variance."""
        stats = Moments.of(data["y"])
        return cls(a=0.5, b=0.5 * stats.sd**2, mu=stats.mean)

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw lam from the prior and ``size`` observations given it."""
        lam = rng.gamma(self.a, 1 / self.b)
        return {"lam": lam}, {"y": rng.normal(self.mu, lam**-0.5, size)}

    def block(self, stats: Moments | None = None) -> Normal:
        """Return the prior of the precision; the mean is known, as if it had been seen in any number of rows."""
        m, kappa, a, b = map(np.asarray, (self.mu, np.inf, self.a, self.b))
        return Normal(("lam",), "y", m, kappa, a, b, precision=True)

    def from_block(self, block: Normal) -> GaussianPrecision:
        """Return the model with another Gamma prior."""
        return self.replaced(a=block.a, b=block.b)

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare one Gaussian observation a row."""
        with pm.Model() as model:
            lam = pm.Gamma("lam", alpha=self.a, beta=self.b)
            pm.Normal("y", mu=self.mu, tau=lam, observed=pm.Data("y_data", data["y"], dims="row"), dims="row")
        return model

    def statistics(self, data: Arrays) -> Moments:
        """Return count, mean and scatter."""
        return Moments.of(data["y"])

    def compressed(self, stats: Moments) -> DeclaredModel:
        """Declare the density of the rows from their number and the sum of their squared errors."""
        with pm.Model() as model:
            lam = pm.Gamma("lam", alpha=self.a, beta=self.b)
            n = pm.Data("n", np.float64(stats.n))
            squares = pm.Data("squares", np.float64(stats.about(self.mu)))
            pm.Potential("y", (n * pm.math.log(lam / (2 * np.pi)) - lam * squares) / 2)
        return model

    def predictive(self, stats: Moments, data: Arrays) -> RowLaw:
        """Return each row's predictive: Student t with twice the posterior shape degrees of freedom."""
        return self.block().updated(stats).predictive(len(data["y"]))

    def likelihood(self, params: Params, data: Arrays) -> RowLaw:
        """Return each row's Gaussian distribution; lam of shape (...,) gives (..., rows)."""
        return scipy.stats.norm(self.mu, np.asarray(params["lam"])[..., None] ** -0.5 + np.zeros(len(data["y"])))

    def derived(self, params: Params) -> dict[str, np.ndarray]:
        """Return sigma, the standard deviation of one observation."""
        return {"sigma": np.asarray(params["lam"]) ** -0.5}

    def derived_marginals(self, stats: Moments) -> dict[str, Marginal]:
        """Return the distribution of sigma in closed form."""
        later = self.block().updated(stats)
        return {"sigma": InverseRootGamma(float(later.a), float(later.b))}
