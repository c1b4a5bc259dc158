r"""Student t: measurements with outliers, as a scale mixture of Gaussians.

    lam      ~ Gamma(a0, rate b0)
    mu | lam ~ N(m0, 1 / (kappa0 lam))
    theta_n  ~ Gamma(nu / 2, rate nu / 2)     the precision of row n over lam
    y_n      ~ N(mu, 1 / (theta_n lam))       n = 1..N

The theta_n are latent. Integrated out, y_n ~ StudentT(nu, mu, sigma) with the scale sigma = lam**(-1/2); nu is given.
W4400, mixture models; Liu and Rubin 1995; Bishop, PRML, section 2.3.7; Gelman et al., BDA3, section 17.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import lazy_loader
import numpy as np
import scipy

from bayeszoo.data.inputs import Real
from bayeszoo.distributions.conjugate.normal import Normal
from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.families.mixtures.student import Weighted, expectation, weights, within_pymc
from bayeszoo.model import EM, Example, Expectation, Latent, Observable, Posterior, Variational, positive, real
from bayeszoo.model.capabilities.latent import Additive
from bayeszoo.model.types import Arrays, DeclaredModel, Params, RowLaw, Simulated

pm, ours = lazy_loader.load("pymc"), lazy_loader.load("bayeszoo.families.linear.declaration", suppress_warning=True)


@dataclass(frozen=True)
class StudentT(EM, Variational, Additive, Latent, Observable):
    """Student-t observations, with a normal-gamma prior on their location and precision.

    Parameters
    ----------
    m0, kappa0 : float
        Mean of the prior of mu, and how many observations it is worth, > 0.
    a0, b0 : float
        Shape and rate of the Gamma prior of the precision, > 0.
    nu : float
        Degrees of freedom, > 0: few make outliers likely, many make the observations Gaussian.
    """

    m0: float = real(0.0, "prior mean m0", units=1, location=True)
    kappa0: float = positive(1.0, "prior kappa0")
    a0: float = positive(1.0, "prior shape a0")
    b0: float = positive(1.0, "prior rate b0", units=2)
    nu: float = positive(4.0, "degrees of freedom nu")

    inputs = Real("y")
    nonnegative = ("lam", "sigma")
    examples = (
        Example("newcomb.csv", "passage times of light, deviations from 24,800 ns; two outliers", "Newcomb 1882"),
        Example("cavendish.csv", "density of the Earth relative to water, in 29 measurements", "Cavendish 1798"),
    )

    @classmethod
    def weak(cls, data: Arrays) -> StudentT:
        """Centre the prior on the median: a hundredth of an observation for mu, one for the precision."""
        centre = np.median(data["y"])
        sd = 1.4826 * np.median(np.abs(data["y"] - centre)) or Moments.of(data["y"]).sd
        return cls(m0=centre, kappa0=0.01, a0=0.5, b0=0.5 * sd**2)

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw precision and mean from the prior, a precision for each of ``size`` rows, and these."""
        params = self._prior.rvs((), rng)
        precisions = params["lam"] * rng.gamma(self.nu / 2, 2 / self.nu, size)
        return params, {"y": rng.normal(params["mu"], precisions**-0.5)}

    @property
    def _prior(self) -> Normal:
        m, kappa, a, b = map(np.asarray, (self.m0, self.kappa0, self.a0, self.b0))
        return Normal(("mu", "lam"), "y", m, kappa, a, b, precision=True)

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare one Student-t observation a row; with nu above a million an `InputError` refuses."""
        with pm.Model() as model:
            m0, kappa0, a0, b0 = ours.as_data(m0=self.m0, kappa0=self.kappa0, a0=self.a0, b0=self.b0)
            (nu,) = ours.as_data(nu=within_pymc(self.nu, "normal_gamma"))
            lam = pm.Gamma("lam", alpha=a0, beta=b0)
            mu = pm.Normal("mu", mu=m0, tau=kappa0 * lam)
            pm.StudentT("y", nu=nu, mu=mu, lam=lam, observed=pm.Data("y_data", data["y"], dims="row"), dims="row")
        return model

    def likelihood(self, params: Params, data: Arrays) -> RowLaw:
        """Return each row's Student-t distribution; parameters of shape (...,) give (..., rows)."""
        mu, lam = (np.asarray(params[name])[..., None] for name in ("mu", "lam"))
        return scipy.stats.t(self.nu, mu + np.zeros(len(data["y"])), lam**-0.5)

    def derived(self, params: Params) -> dict[str, np.ndarray]:
        """Return sigma, the scale of one observation: its standard deviation is sqrt(nu / (nu - 2)) sigma."""
        return {"sigma": np.asarray(params["lam"]) ** -0.5}

    def component_probabilities(self, params: Params, data: Arrays) -> np.ndarray:
        """Return E[theta_n] given each row and the parameters, shape (..., rows): near 0 for outliers."""
        mu, lam = (np.asarray(params[name])[..., None] for name in ("mu", "lam"))
        return weights(self.nu, lam * np.square(data["y"] - mu))

    def start(self, data: Arrays, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Return a row, or the prior's mean, and the precision of a typical distance from it."""
        places = np.append(data["y"], self.m0)
        mu = rng.choice(places)
        return {"mu": mu, "lam": (self.a0 + 0.5) / (self.b0 + np.median(np.square(places - mu)) / 2)}

    def e_step(self, params: Params, data: Arrays) -> Expectation:
        """Return the statistics of the rows, each weighted by E[theta_n], and the Student-t log likelihood."""
        mu, lam = params["mu"], params["lam"]
        return expectation(self.nu, data["y"], mu, lam * np.square(data["y"] - mu), np.log(lam))

    def m_step(self, stats: Weighted, flat: bool = False) -> dict[str, Any]:
        """Return the mode of mu and lam given the weights; with ``flat`` the weighted mean and precision."""
        return stats.maximum(self._prior) if flat else stats.posterior(self._prior).mode()

    def pooled(self, stats: Weighted, other: Weighted) -> Weighted:
        """Return the expected statistics of both parts of the rows."""
        return stats + other

    def log_prior(self, params: Params, data: Arrays) -> float:
        """Log density of mu and lam a priori; leading axes are draws."""
        return self._prior.logpdf(params)

    def free_parameters(self, stats: Any) -> int:
        """Return 2: mu and lam."""
        return self._prior.free_parameters

    def vb_start(self, data: Arrays, rng: np.random.Generator) -> Normal:
        """Return q(mu, lam) given the weights at a random start."""
        return self.vb_m_step(self.e_step(self.start(data, rng), data).stats)

    def vb_e_step(self, q: Normal, data: Arrays) -> Expectation:
        """Return the statistics under q(theta_n) = Gamma((nu + 1) / 2, rate (nu + E[lam (y_n - mu)^2]) / 2)."""
        return expectation(self.nu, data["y"], float(q.m), q.expected_squares(data), float(q.expected_log_precision))

    def vb_m_step(self, stats: Weighted) -> Normal:
        """Return q(mu, lam): normal-gamma, given the expected weights."""
        return stats.posterior(self._prior)

    def divergence(self, q: Normal) -> float:
        """Return KL(q(mu, lam) || prior) in nats."""
        return q.divergence(self._prior)

    def vb_posterior(self, q: Normal) -> Posterior:
        """Return q(mu, lam)."""
        return q.posterior()

    def vb_log_density(self, q: Normal, params: Params) -> np.ndarray:
        """Log density of q(mu, lam); leading axes are draws."""
        return q.logpdf(params)
