r"""Linear regression: a linear model with Gaussian weights and unknown noise, the normal-inverse-gamma model.

    sigma2     ~ InvGamma(a0, scale b0)
    w | sigma2 ~ N(mean, sigma2 V0)       of standardized terms; mean m0 of the intercept, w0 of the others
    y_n        ~ N(x_n' w, sigma2)        n = 1..N

Murphy 2012, section 7.6.3; Bishop, PRML, section 3.3; BDA3, section 14.8; CS725 lectures 10 to 13.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import lazy_loader
import numpy as np

from bayeszoo.distributions import frozen
from bayeszoo.distributions.conjugate.regressions import log_evidence_over_variance
from bayeszoo.distributions.posterior import InverseRootGamma, Marginal
from bayeszoo.families.linear.least_squares import Solution, above_zero, normal_inverse_gamma, solve
from bayeszoo.families.linear.model import DIABETES, SUNSPOTS, NormalInverseGamma
from bayeszoo.families.statistics.factored import FactoredMoments
from bayeszoo.model import Conjugate, PointEstimates, Posterior, covariance, plain, positive, real
from bayeszoo.model.types import Arrays, DeclaredModel, Params, Simulated

pm, ours = lazy_loader.load("pymc"), lazy_loader.load("bayeszoo.families.linear.declaration", suppress_warning=True)


@dataclass(frozen=True)
class LinearRegression(NormalInverseGamma, Conjugate[FactoredMoments], PointEstimates[FactoredMoments]):
    """Gaussian outcomes of unknown noise, whose mean is linear in terms.

    Parameters
    ----------
    w0 : float, or one for each term but the intercept
        Prior mean of the weights of standardized terms.
    V0 : float, or T rows of T
        Their prior covariance over sigma2, the intercept's first; a number is that multiple of the identity.
    a0, b0 : float
        Shape and scale of the inverse-gamma prior of the noise variance, > 0.
    """

    w0: float = real(0.0, "prior mean of the weights w0", axes=("slope",), units=1)
    V0: float = covariance(100.0, "prior covariance V0 over sigma2", axes=("term", "term"), units=0)
    a0: float = positive(1.0, "prior shape a0")
    b0: float = positive(1.0, "prior scale b0", units=2)
    nonnegative, along_points = ("sigma2", "sigma"), ("a0", "b0")
    examples = (DIABETES, SUNSPOTS)

    @classmethod
    def weak(cls, data: Arrays) -> LinearRegression:
        """Standardize; weights within ten noise sd, and a noise variance worth one observation of the outcome's."""
        return cls(V0=100.0, a0=0.5, b0=0.5 * cls.outcome_sd(data) ** 2, **cls.standardized(data)).labelled(data)

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw noise and weights from the prior, standard normal features, and ``size`` outcomes given them."""
        data = self.simulate_design(rng, size, np.shape(self.w0), np.shape(self.V0))
        mean, root = self.prior_of_weights(self.nothing(data))
        sigma2 = self.b0 / rng.gamma(self.a0)
        w = mean + math.sqrt(sigma2) * root @ rng.standard_normal(len(mean))
        return {"w": w, "sigma2": sigma2}, {"y": rng.normal(self.design(data) @ w, math.sqrt(sigma2)), **data}

    def _learned(self, stats: FactoredMoments) -> tuple[Solution, float, float]:
        """Return standardized weights at unit noise, and shape and scale of the posterior of the noise variance."""
        weights = solve(*self.equations(stats), *self.prior_of_standardized(stats))
        return weights, self.a0 + stats.n / 2, self.b0 + weights.misfit / 2

    def _whitened(self, stats: FactoredMoments) -> Any:
        weights, shape, scale = self._learned(stats)
        return ours.Whitened(self.in_units(stats, weights), math.sqrt(scale / shape))

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare one Gaussian outcome a row."""
        stats = self.statistics(data)
        mean, root = self.prior_of_weights(stats)
        with pm.Model(coords=self.coords(data)) as model:
            sigma2 = pm.InverseGamma("sigma2", alpha=self.a0, beta=self.b0)
            w = pm.MvNormal("w", mean, cov=sigma2 * (root @ root.T), dims="term", transform=self._whitened(stats))
            terms = pm.Data("terms", self.design(data), dims=("row", "term"))
            outcome = pm.Data("y_data", data["y"], dims="row")
            pm.Normal("y", mu=pm.math.dot(terms, w), sigma=pm.math.sqrt(sigma2), observed=outcome, dims="row")
        return model

    def compressed(self, stats: FactoredMoments) -> DeclaredModel:
        """Declare the density of the rows from their factored moments."""
        mean, root = self.prior_of_weights(stats)
        with pm.Model() as model:
            n, origin = ours.as_data(n=stats.n, origin=self.origin(len(mean)))
            sigma2 = ours.noise_variance(self.a0, self.b0)
            w = ours.GaussianVector("w", mean, root, sigma2, self._whitened(stats))
            squares = ours.squared_error(w - origin, *self.rows(stats))
            pm.Potential("y", -(n * pm.math.log(2 * np.pi * sigma2) + squares / sigma2) / 2)
        return model

    def updated(self, stats: FactoredMoments) -> LinearRegression:
        """Return the model whose prior is this posterior."""
        weights, shape, scale = self._learned(stats)
        mean = self.origin(len(weights.mean)) + weights.mean
        prior = {"m0": mean[0] if self.intercept else self.m0, "w0": plain(mean[int(self.intercept) :])}
        return replace(self, **prior, V0=plain(weights.factor @ weights.factor.T), a0=shape, b0=scale)

    def posterior(self, stats: FactoredMoments) -> Posterior:
        """Return weights and noise variance jointly; their marginals are Student t and inverse-gamma."""
        weights, shape, scale = self._learned(stats)
        return normal_inverse_gamma(self.in_units(stats, weights), shape, scale)

    def log_evidence(self, stats: FactoredMoments) -> float:
        """Return the log density of the outcomes, NaN where rounding could change it."""
        weights, _, _ = self._learned(stats)
        known = weights.misfit, weights.safe_log_det, stats.n
        return log_evidence_over_variance(*known, self.a0, self.b0)

    def predictive(self, stats: FactoredMoments, data: Arrays) -> frozen.Frozen:
        """Return each row's predictive: Student t with twice the posterior shape degrees of freedom."""
        weights, *learned = self._learned(stats)
        shape, scale = (np.asarray(each)[..., None] for each in learned)
        mean, spread = self.predicted(weights, data)
        return frozen.t(2 * shape, mean, np.sqrt(scale / shape * (1 + spread)))

    def moments_below(self, data: Arrays) -> float:
        """Return the degrees of freedom of the Student t of a row."""
        return 2 * self.a0 + len(data["y"])

    def leverage(self, data: Arrays) -> np.ndarray:
        """Return the diagonal of the hat matrix."""
        return self.predicted(self._learned(self.statistics(data))[0], data)[1]

    def derived(self, params: Params) -> dict[str, np.ndarray]:
        """Return sigma, the standard deviation of one observation."""
        return {"sigma": np.sqrt(np.asarray(params["sigma2"]))}

    def derived_marginals(self, stats: FactoredMoments) -> dict[str, Marginal]:
        """Return the distribution of sigma in closed form."""
        return {"sigma": InverseRootGamma(*self._learned(stats)[1:])}

    def free_parameters(self, stats: FactoredMoments) -> int:
        """Return the weights and sigma2."""
        return len(self.units(stats)) + 1

    def map(self, stats: FactoredMoments) -> dict[str, Any]:
        """Return the joint mode of weights and noise variance."""
        weights, shape, scale = self._learned(stats)
        return {"w": self.in_units(stats, weights).mean, "sigma2": scale / (shape + 1 + len(weights.mean) / 2)}

    def mle(self, stats: FactoredMoments) -> dict[str, Any]:
        """Return least squares, and their mean squared error; none where the fit is perfect or not unique."""
        w, squared_error = self.least_squares(stats)
        return {"w": w, "sigma2": above_zero(squared_error) / stats.n}
