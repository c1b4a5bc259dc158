r"""Mixture of regressions: rows from K linear regressions, and nobody has seen which row is of which.

    weights        ~ Dirichlet(alpha 1_K)
    sigma2_k       ~ InvGamma(a0, scale b0)
    w_k | sigma2_k ~ N(mean, sigma2_k V0)     of standardized terms; mean m0 of the intercept, w0 of the others
    z_n            ~ Categorical(weights)     n = 1..N, summed out
    y_n            ~ N(x_n' w_{z_n}, sigma2_{z_n})

Given z it is K regressions of the normal-inverse-gamma kind. Quandt and Ramsey 1978; Hurn, Justel and Robert 2003;
Bishop, PRML, section 14.5.1; Fruehwirth-Schnatter 2006, chapter 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import lazy_loader
import numpy as np

from bayeszoo.families.experts.model import RegressionMixture
from bayeszoo.model import Axes, Example, covariance, positive, real, whole
from bayeszoo.model.types import Arrays, DeclaredModel, Simulated

pm, ours = lazy_loader.load("pymc"), lazy_loader.load("bayeszoo.families.linear.declaration", suppress_warning=True)


@dataclass(frozen=True)
class MixtureOfRegressions(RegressionMixture):
    """Gaussian outcomes, each about one of K weighted sums of terms, with conjugate priors.

    Parameters
    ----------
    K : int
        How many regressions.
    alpha : float
        Concentration of the prior of the weights, > 0, the same for all regressions.
    w0 : float, or one for each term but the intercept
        Prior mean of the weights of standardized terms.
    V0 : float, or T rows of T
        Their prior covariance over sigma2, the intercept's first; a number is that multiple of the identity.
    a0, b0 : float
        Shape and scale of the inverse-gamma prior of each noise variance, > 0.
    """

    K: int = whole(2, "the number of regressions K")
    alpha: float = positive(1.0, "prior alpha")
    w0: float = real(0.0, "prior mean of the weights w0", axes=("slope",), units=1)
    V0: float = covariance(100.0, "prior covariance V0 over sigma2", axes=("term", "term"), units=0)
    a0: float = positive(1.0, "prior shape a0")
    b0: float = positive(1.0, "prior scale b0", units=2)

    dims: ClassVar[Axes] = {"weights": ("component",), "w": ("component", "term"), "sigma2": ("component",)}
    examples = (
        Example(
            "ethanol.csv",
            "equivalence ratio of 88 mixtures of air and ethanol, lean or rich, by the nitrogen oxides in the exhaust",
            "Brinkman 1981",
            {"target": "E", "features": ["NOx"]},
        ),
    )

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw parameters from the prior, a standard normal feature unless others are known, and ``size`` outcomes."""
        data = self.simulate_design(rng, size, np.shape(self.w0) or (1,), np.shape(self.V0))
        params = {"weights": rng.dirichlet(np.full(self.K, self.alpha)), **self.component_law(data).rvs((), rng)}
        return params, {"y": self.likelihood(params, data).rvs((size,), rng), **data}

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare one outcome of a mixture of K Gaussians a row."""
        mean, root = self.prior_of_weights(self.nothing(data))
        with pm.Model(coords=self.coords(data)) as model:
            weights = pm.Dirichlet("weights", a=np.full(self.K, self.alpha), dims="component")
            sigma2 = pm.InverseGamma("sigma2", alpha=self.a0, beta=self.b0, dims="component")
            cov, whitened = sigma2[:, None, None] * (root @ root.T), self.whitened(data)
            w = pm.MvNormal("w", mean, cov=cov, dims=self.dims["w"], transform=whitened)
            terms = pm.Data("terms", self.design(data), dims=("row", "term"))
            outcome = pm.Data("y_data", data["y"], dims="row")
            lines, sds = pm.math.dot(terms, w.T), pm.math.sqrt(sigma2)
            pm.NormalMixture("y", w=weights, mu=lines, sigma=sds, observed=outcome, dims="row")
        return model

    def compiled(self, data: Arrays) -> DeclaredModel:
        """Declare the same density without a decomposition of matrices, in whitened coordinates."""
        mean, root = self.prior_of_weights(self.nothing(data))
        with pm.Model() as model:
            weights = pm.Dirichlet("weights", a=pm.Data("alpha", np.full(self.K, self.alpha)))
            sigma2 = ours.noise_variance(self.a0, self.b0, (self.K,))
            w = ours.GaussianVector("w", mean, root, sigma2, self.whitened(data))
            terms, y = ours.as_data(terms=self.design(data), y_data=data["y"])
            squares = pm.math.sqr(y[:, None] - ours.weighted_sums(w, terms)) / sigma2
            each = pm.math.log(weights) - (pm.math.log(np.float64(2 * np.pi) * sigma2) + squares) / 2
            pm.Potential("y", pm.math.sum(pm.math.logsumexp(each, axis=1)))
        return model
