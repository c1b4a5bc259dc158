r"""Bayesian lasso: linear regression with Laplace priors on the weights (the lasso).

    w_j ~ Laplace(0, b)          of a feature in units of `scale`; the intercept ~ Laplace(m0, s0)
    y_n ~ N(x_n' w, sigma^2)     n = 1..N; sigma known, or with `learn_sigma` sigma2 ~ InvGamma(a0, scale b0)

With `scale_mixture` the same prior is declared as w_j ~ N(0, tau2_j), tau2_j ~ Exponential(mean 2 b^2). The mode is the
lasso with penalty alpha = sigma^2 / (n b) in scikit-learn's terms; the posterior is never 0. Tibshirani 1996; Park and
Casella 2008; Hans 2009; Murphy 2012, section 13.3; CS725 lecture 11.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import lazy_loader
import numpy as np

from bayeszoo.errors import InputError
from bayeszoo.families.lasso.model import LaplaceWeights
from bayeszoo.families.linear.model import DIABETES
from bayeszoo.families.statistics.factored import FactoredMoments
from bayeszoo.model import Axes, positive
from bayeszoo.model.types import Arrays, DeclaredModel, Simulated

pm, ours = lazy_loader.load("pymc"), lazy_loader.load("bayeszoo.families.linear.declaration", suppress_warning=True)


@dataclass(frozen=True)
class BayesianLasso(LaplaceWeights):
    """Gaussian outcomes whose mean is linear in terms with Laplace weights.

    Parameters
    ----------
    b, s0 : float
        Scale of the prior of the weight of a standardized term, and of the intercept, > 0: its mean distance from 0.
    sigma : float
        Standard deviation of one observation, > 0, where it is known.
    a0, b0 : float
        Shape and scale of the prior of the noise variance, > 0, where it is not.
    learn_sigma, scale_mixture : bool
        Whether the noise is unknown; whether the prior is declared as a scale mixture.
    """

    b: float = positive(1.0, "prior scale of the weights b", units=1)
    sigma: float = positive(1.0, "noise sd sigma", units=1)
    s0: float = positive(10.0, "prior scale of the intercept s0", units=1)
    a0: float = positive(1.0, "prior shape a0")
    b0: float = positive(1.0, "prior scale b0", units=2)
    learn_sigma: bool = False
    scale_mixture: bool = False
    dims: ClassVar[Axes] = {"w": ("term",), "tau2": ("term",)}
    nonnegative = ("tau2", "sigma2")
    examples = (DIABETES,)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.learn_sigma, bool) or not isinstance(self.scale_mixture, bool):
            raise InputError("learn_sigma and scale_mixture must be true or false", "wrong_type")

    @classmethod
    def weak(cls, data: Arrays) -> BayesianLasso:
        """Standardize; weights within half a standard deviation of the outcome, and the noise of least squares."""
        base, sd = cls(**cls.standardized(data)), cls.outcome_sd(data)
        sigma = base.noise_sd(base.statistics(data))
        return replace(base, b=sd / 2, sigma=sigma, s0=10 * sd, a0=0.5, b0=0.5 * sigma**2).labelled(data)

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw weights and noise from the prior, orthogonal features, and ``size`` outcomes given them."""
        data = self.simulate_design(rng, size, orthogonal=True)
        origin, b = self.laplace_prior(self.nothing(data))
        tau2 = 2 * b**2 * rng.exponential(size=len(b))
        params = {"w": rng.normal(origin, np.sqrt(tau2)) if self.scale_mixture else rng.laplace(origin, b)}
        params |= {"tau2": tau2} if self.scale_mixture else {}
        params |= {"sigma2": self.b0 / rng.gamma(self.a0)} if self.learn_sigma else {}
        return params, {"y": rng.normal(self.mean(params, data), math.sqrt(self.variance(params))), **data}

    def prior_scales(self, terms: int) -> np.ndarray:
        """Return the scales of the priors of standardized weights, shape (T,)."""
        return self.term_scales(terms, self.s0, "b")

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare one Gaussian outcome a row."""
        stats = self.statistics(data)
        (mean, b), whitened = self.laplace_prior(stats), self.whitened(stats)
        with pm.Model(coords=self.coords(data)) as model:
            variance = pm.InverseGamma("sigma2", self.a0, self.b0) if self.learn_sigma else self.sigma**2
            if self.scale_mixture:
                tau2 = pm.Exponential("tau2", scale=2 * b**2, dims="term")
                w = pm.Normal("w", mean, pm.math.sqrt(tau2), dims="term", transform=ours.NonCentred())
            else:
                w = pm.Laplace("w", mean, b, dims="term", transform=whitened)
            terms = pm.Data("terms", self.design(data), dims=("row", "term"))
            outcome = pm.Data("y_data", data["y"], dims="row")
            pm.Normal("y", mu=pm.math.dot(terms, w), sigma=variance**0.5, observed=outcome, dims="row")
        return model

    def compressed(self, stats: FactoredMoments) -> DeclaredModel:
        """Declare the density of the rows from their factored moments."""
        (mean, b), whitened = self.laplace_prior(stats), self.whitened(stats)
        with pm.Model() as model:
            origin, scale, n = ours.as_data(origin=mean, scale=b, n=stats.n)
            (known,) = ours.as_data(variance=self.sigma**2)
            variance = ours.noise_variance(self.a0, self.b0) if self.learn_sigma else known
            if self.scale_mixture:
                tau2 = pm.Exponential("tau2", scale=2 * scale**2)
                w = pm.Normal("w", origin, pm.math.sqrt(tau2), transform=ours.NonCentred())
            else:
                w = ours.LaplaceVector("w", origin, scale, whitened)
            squares = ours.squared_error(w - origin, *self.rows(stats))
            pm.Potential("y", -(n * pm.math.log(2 * np.pi * variance) + squares / variance) / 2)
        return model
