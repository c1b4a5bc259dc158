r"""Spike and slab regression: variable selection: each feature of a linear regression may be in or out.

    pi             ~ Beta(a, b)            the share of terms that are in; or a number
    in_j           ~ Bernoulli(pi)         j = 1..F; the intercept is always in
    sigma2         ~ InvGamma(a0, scale b0)
    w | in, sigma2 ~ N(mean, sigma2 V0)    of standardized terms, given that w_j = 0 where in_j = 0; mean (m0, 0, ..)
    y_n            ~ N(x_n' w, sigma2)     n = 1..N

Mitchell and Beauchamp 1988; George and McCulloch 1997; Scott and Berger 2010; Murphy 2012, section 13.2; CS725
lecture 13.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import lazy_loader
import numpy as np

from bayeszoo.errors import InputError
from bayeszoo.families.linear.least_squares import identify
from bayeszoo.families.linear.model import DIABETES
from bayeszoo.families.selection.model import SelectionModel
from bayeszoo.families.statistics.factored import FactoredMoments
from bayeszoo.model import covariance, plain, positive
from bayeszoo.model.types import Arrays, DeclaredModel, Simulated

pm, ours = lazy_loader.load("pymc"), lazy_loader.load("bayeszoo.families.linear.declaration", suppress_warning=True)


@dataclass(frozen=True)
class SpikeSlabRegression(SelectionModel):
    """Gaussian outcomes of unknown noise, whose mean is linear in some of the terms, and it is not known in which.

    Parameters
    ----------
    V0 : float, or T rows of T
        Prior covariance over sigma2 of the weights of standardized terms, the intercept's first, given that those of
        terms that are out are 0; a number is that multiple of the identity.
    a0, b0 : float
        Shape and scale of the inverse-gamma prior of the noise variance, > 0.
    a, b : float
        Of the Beta prior of the share pi of terms that are in, > 0.
    pi : float, optional
        That share, > 0 and <= 1, where it is known: ``a`` and ``b`` then say nothing.
    """

    V0: float = covariance(1.0, "prior covariance V0 over sigma2", axes=("term", "term"), units=0)
    a0: float = positive(1.0, "prior shape a0")
    b0: float = positive(1.0, "prior scale b0", units=2)
    a: float = positive(1.0, "prior number of terms in a")
    b: float = positive(1.0, "prior number of terms out b")
    pi: float | None = field(default=None, kw_only=True)
    nonnegative = ("sigma2", "sigma")
    probabilities = ("pi", "included")
    examples = (DIABETES,)
    own = ("zellner",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pi is not None and (isinstance(self.pi, bool) or not 0 < float(self.pi) <= 1):
            raise InputError(f"pi must be above 0 and at most 1, got {self.pi!r}", "out_of_range")

    @classmethod
    def weak(cls, data: Arrays) -> SpikeSlabRegression:
        """Standardize; weights and noise variance with priors worth one observation (Kass and Wasserman 1995)."""
        return cls(V0=1.0, a0=0.5, b0=0.5 * cls.outcome_sd(data) ** 2, **cls.standardized(data)).labelled(data)

    @classmethod
    def zellner(cls, data: Arrays, g: float | None = None, **fields: Any) -> SpikeSlabRegression:
        """Return the model with Zellner's g-prior, V0 = g (X'X)^-1 of the standardized terms; g = n where not given."""
        base = cls.weak_with(data, fields)
        stats = base.statistics(data)
        design = base.equations(stats)[0]
        if note := identify(design, base.units(stats)).note(base.coords(data)["term"].tolist()):
            raise InputError(
                f"there is no g-prior: {note}", "no_g_prior", hint="leave such terms out, or give V0 as a number"
            )
        return replace(base, V0=plain((g or stats.n) * np.linalg.inv(design.T @ design))).labelled(data)

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw inclusion, noise and weights from the prior, standard normal features, and outcomes given them."""
        data = self.simulate_design(rng, size, (), np.shape(self.V0))
        units, w = self.units_and_origin(self.nothing(data))
        pi = rng.beta(self.a, self.b) if self.pi is None else self.pi
        is_in = rng.random(len(w)) < pi
        is_in[: int(self.intercept)] = True
        sigma2 = self.b0 / rng.gamma(self.a0)
        root = np.linalg.cholesky(np.linalg.inv(self.precision(units)[np.ix_(is_in, is_in)]))
        w[is_in] += math.sqrt(sigma2) * (root @ rng.standard_normal(is_in.sum()))
        outcomes = rng.normal(self.design(data) @ w, math.sqrt(sigma2))
        share = {"pi": pi} if self.pi is None else {}
        return {"w": w, "sigma2": sigma2, **share}, {"y": outcomes, **data}

    def _prior(self, stats: FactoredMoments, *dims: str) -> tuple[Any, Any]:
        """Declare noise variance, inclusion indicators and weights; return the variance and the weights."""
        pi = pm.Beta("pi", alpha=self.a, beta=self.b) if self.pi is None else np.float64(self.pi)
        sigma2 = pm.InverseGamma("sigma2", alpha=self.a0, beta=self.b0)
        units, origin = self.units_and_origin(stats)
        return sigma2, ours.spike_and_slab(pi, sigma2, self.precision(units), origin, int(self.intercept), dims)

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare one Gaussian outcome a row, and discrete indicators: PyMC samples these by a step of their own."""
        with pm.Model(coords=self.coords(data)) as model:
            sigma2, w = self._prior(self.statistics(data), "term", "slope")
            terms = pm.Data("terms", self.design(data), dims=("row", "term"))
            outcome = pm.Data("y_data", data["y"], dims="row")
            pm.Normal("y", mu=pm.math.dot(terms, w), sigma=pm.math.sqrt(sigma2), observed=outcome, dims="row")
        return model

    def compressed(self, stats: FactoredMoments) -> DeclaredModel:
        """Declare the density of the rows from their factored moments."""
        with pm.Model() as model:
            (n,) = ours.as_data(n=stats.n)
            sigma2, w = self._prior(stats)
            squares = ours.squared_error(w - self.units_and_origin(stats)[1], *self.rows(stats))
            pm.Potential("y", -(n * pm.math.log(2 * np.pi * sigma2) + squares / sigma2) / 2)
        return model
