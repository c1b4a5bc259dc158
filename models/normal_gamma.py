r"""Normal-gamma: mean and precision of Gaussian measurements, both unknown.

    lam      ~ Gamma(alpha0, rate beta0)
    mu | lam ~ N(mu0, 1 / (kappa0 lam))
    y_n      ~ N(mu, 1 / lam)        n = 1..N

lam is the precision, one over the variance. Bishop, PRML, section 2.3.6; Murphy 2012, section 4.6.3; Gelman et al.,
BDA3, section 3.3; CS725 lecture 10; W4400, natural conjugate priors.
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
class NormalGamma(BlockModel[Moments]):
    """Independent Gaussian observations, with a normal-gamma prior on their mean and precision.

    Parameters
    ----------
    mu0, kappa0 : float
        Mean of the prior of mu, and how many observations it is worth, > 0.
    alpha0, beta0 : float
        Shape and rate of the Gamma prior of the precision, > 0.
    """

    mu0: float = real(0.0, "prior mean", units=1, location=True)
    kappa0: float = positive(1.0, "prior kappa0")
    alpha0: float = positive(1.0, "prior shape alpha0")
    beta0: float = positive(1.0, "prior rate beta0", units=2)

    along_points = ("mu0", "kappa0", "alpha0", "beta0")
    inputs = Real("y")
    nonnegative = ("lam", "sigma")
    examples = (
        Example("newcomb.csv", "passage times of light, deviations from 24,800 ns; two outliers", "Newcomb 1882"),
        Example("cavendish.csv", "density of the Earth relative to water, in 29 measurements", "Cavendish 1798"),
    )

    @classmethod
    def weak(cls, data: Arrays) -> NormalGamma:
        """Centre the prior on the data: a hundredth of an observation for mu, one for the precision."""
        stats = Moments.of(data["y"])
        return cls(mu0=stats.mean, kappa0=0.01, alpha0=0.5, beta0=0.5 * stats.sd**2)

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw precision and mean from the prior and ``size`` observations given them."""
        params = self.block().rvs((), rng)
        return params, {"y": rng.normal(params["mu"], params["lam"] ** -0.5, size)}

    def block(self, stats: Moments | None = None) -> Normal:
        """Return the prior, whose posterior is normal-gamma as well."""
        m, kappa, a, b = map(np.asarray, (self.mu0, self.kappa0, self.alpha0, self.beta0))
        return Normal(("mu", "lam"), "y", m, kappa, a, b, precision=True)

    def from_block(self, block: Normal) -> NormalGamma:
        """Return the model with another normal-gamma prior."""
        return self.replaced(mu0=block.m, kappa0=block.kappa, alpha0=block.a, beta0=block.b)

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare one Gaussian observation a row."""
        with pm.Model() as model:
            lam = pm.Gamma("lam", alpha=self.alpha0, beta=self.beta0)
            mu = pm.Normal("mu", mu=self.mu0, tau=self.kappa0 * lam)
            pm.Normal("y", mu=mu, tau=lam, observed=pm.Data("y_data", data["y"], dims="row"), dims="row")
        return model

    def statistics(self, data: Arrays) -> Moments:
        """Return count, mean and scatter."""
        return Moments.of(data["y"])

    def compressed(self, stats: Moments) -> DeclaredModel:
        """Declare the density of the rows from their moments."""
        with pm.Model() as model:
            lam = pm.Gamma("lam", alpha=self.alpha0, beta=self.beta0)
            mu = pm.Normal("mu", mu=self.mu0, tau=self.kappa0 * lam)
            n, mean, scatter = (pm.Data(name, np.float64(getattr(stats, name))) for name in ("n", "mean", "scatter"))
            squares = scatter + n * pm.math.sqr(mu - mean)
            pm.Potential("y", (n * pm.math.log(lam / (2 * np.pi)) - lam * squares) / 2)
        return model

    def predictive(self, stats: Moments, data: Arrays) -> RowLaw:
        """Return each row's predictive: Student t with twice the posterior shape degrees of freedom."""
        return self.block().updated(stats).predictive(len(data["y"]))

    def likelihood(self, params: Params, data: Arrays) -> RowLaw:
        """Return each row's Gaussian distribution; parameters of shape (...,) give (..., rows)."""
        mu, lam = (np.asarray(params[name])[..., None] for name in ("mu", "lam"))
        return scipy.stats.norm(mu + np.zeros(len(data["y"])), lam**-0.5)

    def derived(self, params: Params) -> dict[str, np.ndarray]:
        """Return sigma, the standard deviation of one observation."""
        return {"sigma": np.asarray(params["lam"]) ** -0.5}

    def derived_marginals(self, stats: Moments) -> dict[str, Marginal]:
        """Return the distribution of sigma in closed form."""
        later = self.block().updated(stats)
        return {"sigma": InverseRootGamma(float(later.a), float(later.b))}
