r"""Ridge regression: a linear model with Gaussian weights and known noise.

    w_j ~ N(0, tau^2)            of a feature in units of `scale`; the intercept ~ N(m0, s0^2)
    y_n ~ N(x_n' w, sigma^2)     n = 1..N

The mode is the ridge estimate with penalty sigma^2 / tau^2 (Hoerl and Kennard 1970). Bishop, PRML, sections 3.1.4, 3.3
and 3.5; Murphy 2012, section 7.5; MacKay 1992; CS725 lectures 10 to 13.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import lazy_loader
import numpy as np

from bayeszoo.distributions import frozen
from bayeszoo.families.linear.least_squares import Solution, gaussian, solve
from bayeszoo.families.linear.model import DIABETES, LinearModel
from bayeszoo.families.statistics.factored import FactoredMoments
from bayeszoo.model import PointEstimates, Posterior, Predictive, positive
from bayeszoo.model.types import Arrays, DeclaredModel, Params, Simulated

pm, ours = lazy_loader.load("pymc"), lazy_loader.load("bayeszoo.families.linear.declaration", suppress_warning=True)

ROOT_2_PI = math.sqrt(2 * math.pi)


@dataclass(frozen=True)
class Ridge(LinearModel, Predictive[FactoredMoments], PointEstimates[FactoredMoments]):
    """Gaussian outcomes of known noise, whose mean is linear in terms with Gaussian weights.

    Parameters
    ----------
    tau : float, or one for each term but the intercept
        Prior standard deviation of the weight of a standardized term, > 0.
    sigma : float
        Standard deviation of one observation, > 0.
    s0 : float
        Prior standard deviation of the intercept, > 0.
    """

    tau: float = positive(1.0, "prior sd of the weights tau", axes=("slope",), units=1)
    sigma: float = positive(1.0, "noise sd sigma", units=1)
    s0: float = positive(10.0, "prior sd of the intercept s0", units=1)

    examples = (DIABETES,)
    along_points = ("tau", "sigma", "s0")

    @classmethod
    def weak(cls, data: Arrays) -> Ridge:
        """Standardize; for each weight a standard deviation of the outcome, and the noise that least squares leave."""
        base = cls(**cls.standardized(data))
        sd = cls.outcome_sd(data)
        return replace(base, tau=sd, sigma=base.noise_sd(base.statistics(data)), s0=10 * sd).labelled(data)

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw weights from the prior, standard normal features, and ``size`` outcomes given both."""
        data = self.simulate_design(rng, size, np.shape(self.tau))
        mean, sd = self._prior(self.nothing(data))
        w = rng.normal(mean, sd)
        return {"w": w}, {"y": rng.normal(self.design(data) @ w, self.sigma), **data}

    def variance(self, params: Params) -> Any:
        """Return the noise variance, which is known."""
        return np.square(self.sigma)

    def _prior(self, stats: FactoredMoments) -> tuple[np.ndarray, np.ndarray]:
        """Return prior means and standard deviations of the weights in the user's units."""
        units = self.units(stats)
        return self.origin(len(units)), self.term_scales(len(units), self.s0, "tau") / units

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare one Gaussian outcome a row."""
        stats = self.statistics(data)
        mean, sd = self._prior(stats)
        with pm.Model(coords=self.coords(data)) as model:
            w = pm.Normal("w", mean, sd, dims="term", transform=ours.Whitened(self._solution(stats)))
            terms = pm.Data("terms", self.design(data), dims=("row", "term"))
            outcome = pm.Data("y_data", data["y"], dims="row")
            pm.Normal("y", mu=pm.math.dot(terms, w), sigma=self.sigma, observed=outcome, dims="row")
        return model

    def compressed(self, stats: FactoredMoments) -> DeclaredModel:
        """Declare the density of the rows from their factored moments."""
        mean, sd = self._prior(stats)
        with pm.Model() as model:
            origin, n, sigma = ours.as_data(origin=mean, n=stats.n, sigma=self.sigma)
            w = ours.GaussianVector("w", mean, np.diag(sd), 1.0, ours.Whitened(self._solution(stats)))
            squares = ours.squared_error(w - origin, *self.rows(stats)) / pm.math.sqr(sigma)
            pm.Potential("y", -n * pm.math.log(sigma * ROOT_2_PI) - squares / 2)
        return model

    def standardized_weights(self, stats: FactoredMoments) -> Solution:
        """Return the posterior of the standardized weights about their prior mean, of rows in units of sigma."""
        (design, outcome), terms = self.equations(stats), len(self.units(stats))
        sd = self.term_scales(terms, self.s0, "tau")
        return solve(design, outcome, 0 * sd, sd[..., None] * np.eye(sd.shape[-1]), self.sigma)

    def _solution(self, stats: FactoredMoments) -> Solution:
        return self.in_units(stats, self.standardized_weights(stats))

    def posterior(self, stats: FactoredMoments) -> Posterior:
        """Return the weights, jointly Gaussian."""
        return gaussian("w", self._solution(stats))

    def log_evidence(self, stats: FactoredMoments) -> float:
        """Return the log density of the outcomes, NaN where rounding could change it."""
        weights = self.standardized_weights(stats)
        constant = -stats.n * np.log(ROOT_2_PI * self.sigma)
        return constant - (weights.misfit + weights.safe_log_det) / 2

    def figures(self, stats: FactoredMoments) -> dict[str, float]:
        """Return the effective number of parameters: the trace of the hat matrix."""
        return {"effective_parameters": self.standardized_weights(stats).effective_parameters}

    def predictive(self, stats: FactoredMoments, data: Arrays) -> frozen.Frozen:
        """Return each row's Gaussian predictive."""
        mean, spread = self.predicted(self.standardized_weights(stats), data)
        return frozen.norm(mean, np.sqrt(np.square(self.sigma)[..., None] + spread))

    def leverage(self, data: Arrays) -> np.ndarray:
        """Return the diagonal of the hat matrix, of rows in units of sigma."""
        return self.predicted(self.standardized_weights(self.statistics(data)), data)[1] / self.sigma**2

    def free_parameters(self, stats: FactoredMoments) -> int:
        """Return how many weights there are."""
        return len(self.units(stats))

    def map(self, stats: FactoredMoments) -> dict[str, np.ndarray]:
        """Return the ridge estimate, with penalty (sigma / tau)^2 on standardized weights."""
        return {"w": self._solution(stats).mean}

    def mle(self, stats: FactoredMoments) -> dict[str, np.ndarray]:
        """Return the least-squares estimate; there is none where the columns are linearly dependent."""
        return {"w": self.least_squares(stats)[0]}
