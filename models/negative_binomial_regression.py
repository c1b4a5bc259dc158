r"""Negative binomial regression: overdispersed counts, whose log mean is a weighted sum of features.

    w_j ~ N(0, tau^2)                          of a feature in units of `scale`; the intercept ~ N(m0, s0^2)
    phi ~ Gamma(a0, rate b0)                   the smaller, the more counts of one mean vary
    lam_n ~ Gamma(phi, rate phi)               what else makes row n more or less often, of mean 1
    y_n ~ Poisson(exposure_n lam_n mu_n)       log mu_n = x_n' w,  n = 1..N; exposure 1 where none is given

The lam_n are integrated out: y_n has mean m = exposure_n mu_n and variance m + m^2 / phi. Given phi the log joint is
concave in w. As phi goes to infinity the counts are Poisson's. Greenwood and Yule 1920; Aitkin 1978; Venables and
Ripley 2002 (MASS), section 7.4; Cameron and Trivedi 2013, section 3.3.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import lazy_loader
import numpy as np

from bayeszoo.data.table.table import LARGEST_COUNT
from bayeszoo.distributions.discrete import LogMeanNegativeBinomial
from bayeszoo.distributions.priors import Gamma, Prior
from bayeszoo.errors import NumericalError
from bayeszoo.families.glm.counts import LogLinearCounts
from bayeszoo.families.glm.negative_binomial import NegativeBinomial
from bayeszoo.families.glm.rows import LinkedRows
from bayeszoo.families.linear.least_squares import Solution
from bayeszoo.foundation.numerics.newton import climb
from bayeszoo.model import Example, LogConcave, positive
from bayeszoo.model.types import Arrays, DeclaredModel, Params, RowLaw, Simulated

pm, ours = lazy_loader.load("pymc"), lazy_loader.load("bayeszoo.families.glm.declaration", suppress_warning=True)


@dataclass(frozen=True)
class NegativeBinomialRegression(LogLinearCounts, LogConcave):
    """Overdispersed counts, whose log mean is linear in terms with Gaussian weights.

    Parameters
    ----------
    a0, b0 : float
        Shape and rate of the prior of phi, > 0.
    tau : float, or one for each term but the intercept
        Prior standard deviation of the weight of a standardized term, > 0, in logs of the mean.
    s0 : float
        Prior standard deviation of the intercept, > 0, in logs of the mean.
    """

    a0: float = positive(2.0, "prior shape a0 of phi")
    b0: float = positive(0.1, "prior rate b0 of phi")
    integrated = False
    predicted_quantity, mean_quantity, ratio_of = "log mean", "mean count", "mean"
    nonnegative = ("phi", "rate_ratio")
    examples = (
        Example(
            "quine.csv",
            "days that 146 children of Walgett, New South Wales, were absent from school in a year",
            "Quine 1975; Aitkin 1978; MASS section 7.4",
            {"target": "days"},
        ),
    )

    def mean(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the mean count of each row at an exposure of 1; weights of shape (..., T) give (..., rows)."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(self.predictor(params, data)))

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw the parameters from the prior, standard normal features, and ``size`` counts given both."""
        (w, data), phi = self.simulate_weights(rng, size), rng.gamma(self.a0, 1 / self.b0)
        mean = rng.gamma(phi, 1 / phi, size) * np.exp(self.predictor({"w": w}, data))
        if not np.max(mean, initial=0.0) < LARGEST_COUNT:
            raise NumericalError("the prior allows counts of 2**53 and more: make tau and s0 smaller", "too_large")
        return {"w": w, "phi": phi}, {"y": rng.poisson(mean), **data}

    @classmethod
    def weak(cls, data: Arrays) -> Any:
        """Standardize; narrower than Poisson's, as counts also vary by themselves, and those drawn must stay finite."""
        return replace(super().weak(data), tau=1.0, s0=1.5).labelled(data)

    @property
    def profiled(self) -> dict[str, Prior]:
        """Gamma(a0, rate b0) of phi, given which the log joint is concave in the weights."""
        return {"phi": Gamma(self.a0, self.b0)}

    def concave(self, data: Arrays, **profiled: float) -> LinkedRows:
        """Return the log likelihood of the rows given phi, in units of the prior."""
        return self.linked(NegativeBinomial(profiled["phi"]), data)

    def profile_runs_away(self, is_above: bool) -> str:
        """Say that there is no overdispersion, or no end of it."""
        if is_above:
            why = "the counts vary no more than Poisson's, and phi runs to infinity"
            return f"no maximum-likelihood estimate: {why}; use poisson_regression"
        return "no mode: the density rises as phi goes to 0, as where all counts but few are 0"

    def laplace_solution(self, data: Arrays) -> Solution:
        """Return the Gaussian at the mode given about the phi that the squared errors ask for."""
        rows = self.concave(data, phi=1.0)
        mean = rows.sizes * np.exp(rows.eta(climb(rows.joint, rows.start()).x))
        excess = np.sum((rows.outcome - mean) ** 2 - mean) / max(np.sum(mean**2), 1e-300)
        rows = self.concave(data, phi=float(1 / np.clip(excess, 1e-4, 1e2)))
        return rows.gaussian_about(climb(rows.joint, rows.start()).x)

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare the count of each row."""
        with pm.Model(coords=self.coords(data)) as model:
            phi, w = pm.Gamma("phi", alpha=self.a0, beta=self.b0), self.declared_weights(data)
            terms = pm.Data("terms", self.design(data), dims=("row", "term"))
            offset = pm.Data("log_exposure", np.log(self.sizes_of(data)), dims="row")
            outcome = pm.Data("y_data", data["y"], dims="row")
            ours.NegativeBinomialByLogMean("y", offset + pm.math.dot(terms, w), phi, outcome)
        return model

    def likelihood(self, params: Params, data: Arrays) -> RowLaw:
        """Return each row's negative binomial distribution; parameters of shape (..., own shape) give (..., rows)."""
        return LogMeanNegativeBinomial(self.predictor(params, data) + np.log(self.sizes_of(data)), params["phi"])
