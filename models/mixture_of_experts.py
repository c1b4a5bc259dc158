r"""Mixture of experts: linear regressions, each of which answers where the features say so.

    gate_k         ~ N(0, tau^2)              of standardized terms, s0^2 of intercepts; they sum to 0 over k = 1..K
    sigma2_k       ~ InvGamma(a0, scale b0)
    w_k | sigma2_k ~ N(mean, sigma2_k V0)     of standardized terms; mean m0 of the intercept, w0 of the others
    z_n            ~ Categorical(softmax(x_n' gate))     n = 1..N, summed out
    y_n            ~ N(x_n' w_{z_n}, sigma2_{z_n})

The gate's prior is that of differences of K independent Gaussian weights. With a gate of 0 it is a mixture of
regressions of equal weights. Jordan and Jacobs 1994; Bishop, PRML, section 14.5.3; Murphy 2012, section 11.2.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import lazy_loader
import numpy as np

from bayeszoo.families.experts.gate import GatedExperts
from bayeszoo.model import Axes, Example, covariance, positive, real, whole
from bayeszoo.model.types import Arrays, DeclaredModel, Simulated

pm, ours = lazy_loader.load("pymc"), lazy_loader.load("bayeszoo.families.experts.declaration", suppress_warning=True)


@dataclass(frozen=True)
class MixtureOfExperts(GatedExperts):
    """Gaussian outcomes, each about one of K weighted sums of terms; which one, the features make more or less likely.

    Parameters
    ----------
    K : int
        How many experts.
    tau : float, or one for each term but the intercept
        Prior standard deviation of the gate's weights of a standardized term, in log odds, > 0.
    s0 : float
        Prior standard deviation of the gate's intercepts, in log odds, > 0.
    w0 : float, or one for each term but the intercept
        Prior mean of the experts' weights of standardized terms.
    V0 : float, or T rows of T
        Their prior covariance over sigma2, the intercept's first; a number is that multiple of the identity.
    a0, b0 : float
        Shape and scale of the inverse-gamma prior of each noise variance, > 0.
    """

    K: int = whole(2, "the number of experts K")
    w0: float = real(0.0, "prior mean of the weights w0", axes=("slope",), units=1)
    V0: float = covariance(100.0, "prior covariance V0 over sigma2", axes=("term", "term"), units=0)
    a0: float = positive(1.0, "prior shape a0")
    b0: float = positive(1.0, "prior scale b0", units=2)

    dims: ClassVar[Axes] = {"gate": ("term", "component"), "w": ("component", "term"), "sigma2": ("component",)}
    examples = (
        Example(
            "ethanol.csv",
            "nitrogen oxides in the exhaust of 88 mixtures of air and ethanol, by their equivalence ratio",
            "Brinkman 1981",
            {"target": "NOx", "features": ["E"]},
        ),
    )

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw parameters from the prior, a standard normal feature unless others are known, and ``size`` outcomes."""
        data = self.simulate_design(rng, size, np.shape(self.w0) or np.shape(self.tau) or (1,), np.shape(self.V0))
        sd = self.gate_sd(data)[:, None]
        free = rng.normal(0.0, sd, (len(sd), self.K))
        params = {"gate": free - free.mean(axis=1, keepdims=True), **self.component_law(data).rvs((), rng)}
        return params, {"y": self.likelihood(params, data).rvs((size,), rng), **data}

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare one outcome of a mixture of K Gaussians a row, whose weights depend on its features."""
        mean, root = self.prior_of_weights(self.nothing(data))
        with pm.Model(coords=self.coords(data)) as model:
            sd = self.gate_sd(data)[:, None]
            units = ours.ZeroSumInUnits()
            gate = pm.ZeroSumNormal("gate", sd, dims=self.dims["gate"], default_transform=units)
            sigma2 = pm.InverseGamma("sigma2", alpha=self.a0, beta=self.b0, dims="component")
            cov, whitened = sigma2[:, None, None] * (root @ root.T), self.whitened(data)
            w = pm.MvNormal("w", mean, cov=cov, dims=self.dims["w"], transform=whitened)
            terms = pm.Data("terms", self.design(data), dims=("row", "term"))
            outcome = pm.Data("y_data", data["y"], dims="row")
            weights = pm.math.softmax(pm.math.dot(terms, gate), axis=-1)
            lines, sds = pm.math.dot(terms, w.T), pm.math.sqrt(sigma2)
            pm.NormalMixture("y", w=weights, mu=lines, sigma=sds, observed=outcome, dims="row")
        return model

    def compiled(self, data: Arrays) -> DeclaredModel:
        """Declare the same density without a decomposition of matrices, in units of the prior and of least squares."""
        mean, root = self.prior_of_weights(self.nothing(data))
        with pm.Model() as model:
            sd, terms, y = ours.as_data(gate_sd=self.gate_sd(data), terms=self.design(data), y_data=data["y"])
            shape = (len(mean), self.K)
            gate = pm.ZeroSumNormal("gate", sd[:, None], shape=shape, default_transform=ours.ZeroSumInUnits())
            sigma2 = ours.noise_variance(self.a0, self.b0, (self.K,))
            w = ours.GaussianVector("w", mean, root, sigma2, self.whitened(data))
            squares = pm.math.sqr(y[:, None] - ours.weighted_sums(w, terms)) / sigma2
            logits = ours.weighted_sums(gate.T, terms)
            each = logits - pm.math.logsumexp(logits, axis=1, keepdims=True)
            each = each - (pm.math.log(np.float64(2 * np.pi) * sigma2) + squares) / 2
            pm.Potential("y", pm.math.sum(pm.math.logsumexp(each, axis=1)))
        return model
