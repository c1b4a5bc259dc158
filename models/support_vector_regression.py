r"""Support vector regression: linear regression with the eps-insensitive loss, and median regression at eps = 0.

    w_j ~ N(0, tau^2)                     of a feature in units of `scale`; the intercept ~ N(m0, s0^2)
    y_n ~ density exp(-rate max(|y_n - x_n' w| - eps, 0)) / (2 (eps + 1 / rate))      n = 1..N

With eps = 0 the noise is Laplace's and the line that of the median. The mode is the support vector machine of Vapnik
1995 with C = rate tau^2 and the penalty of a Gaussian prior on the intercept too; the log joint is concave, so that it
has one. Gao, Gunn, Harris and Brown 2002; Koenker and Bassett 1978; Smola and Schoelkopf 2004; CS725 lecture 22.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import lazy_loader
import numpy as np

from bayeszoo.errors import InputError
from bayeszoo.families.glm.model import LinkedTerms
from bayeszoo.families.linear.least_squares import Solution
from bayeszoo.families.linear.model import LinearModel
from bayeszoo.families.support_vectors.noise import Insensitive, InsensitiveNoise
from bayeszoo.families.support_vectors.rows import InsensitiveRows
from bayeszoo.model import Example, LogConcave, positive, real
from bayeszoo.model.types import Arrays, DeclaredModel, Params, Simulated

pm = lazy_loader.load("pymc")
ours = lazy_loader.load("bayeszoo.families.support_vectors.declaration", suppress_warning=True)


@dataclass(frozen=True)
class SupportVectorRegression(LinearModel, LinkedTerms, LogConcave):
    """Outcomes within eps of a line, or exponentially far beyond; the line is of terms with Gaussian weights.

    Parameters
    ----------
    tau : float, or one for each term but the intercept
        Prior standard deviation of the weight of a standardized term, > 0.
    eps : float
        Distance from the line up to which an outcome is as likely as on it, >= 0.
    rate : float
        Rate at which the density falls off beyond, > 0: the inverse of the mean distance from there.
    s0 : float
        Prior standard deviation of the intercept, > 0.
    """

    tau: float = positive(1.0, "prior sd of the weights tau", axes=("slope",), units=1)
    eps: float = real(0.1, "half width of the tube eps", units=1)
    rate: float = positive(1.0, "rate of the noise beyond eps", units=-1)
    s0: float = positive(10.0, "prior sd of the intercept s0", units=1)

    examples = (
        Example(
            "stackloss.csv",
            "ammonia lost by a plant on 21 days, and its air flow, the temperature of its water and its acid",
            "Brownlee 1965",
            {"target": "loss"},
        ),
        Example(
            "airquality.csv",
            "ozone in New York on 116 days of 1973, and the temperature",
            "Chambers, Cleveland, Kleiner and Tukey 1983",
            {"target": "Ozone", "features": ["Temp"], "missing": "drop"},
        ),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.eps < 0:
            raise InputError(
                f"eps must be >= 0, got {self.eps:g}", "out_of_range", hint="0 makes the line that of the median"
            )

    @classmethod
    def weak(cls, data: Arrays) -> SupportVectorRegression:
        """Standardize; noise as wide as what least squares leave, a tenth of that forgiven."""
        base, sd = cls(**cls.standardized(data)), cls.outcome_sd(data)
        noise = base.noise_sd(base.statistics(data))
        return replace(base, tau=sd, s0=10 * sd, eps=noise / 10, rate=math.sqrt(2) / noise).labelled(data)

    def weak_intercept(self, data: Arrays) -> dict[str, Any]:
        """Return a prior about the mean outcome, ten of its standard deviations wide."""
        return {"m0": self.standardized(data)["m0"], "s0": 10 * self.outcome_sd(data)}

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw weights from the prior, standard normal features, and ``size`` outcomes given both."""
        w, data = self.simulate_weights(rng, size)
        return {"w": w}, {"y": self.likelihood({"w": w}, data).rvs(random_state=rng), **data}

    def concave(self, data: Arrays, **profiled: float) -> InsensitiveRows:
        """Return the log likelihood of the rows in units of the prior."""
        linked = self.linked(Insensitive(self.eps, self.rate), data)
        return InsensitiveRows(**vars(linked))

    def laplace_solution(self, data: Arrays) -> Solution:
        """Return the Gaussian at the mode with the expected curvature, of weights in the user's units."""
        rows = self.concave(data)
        information = Insensitive(self.eps, self.rate).information(rows.outcome)
        return rows.gaussian_of(rows.highest().x, information)

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare one outcome a row."""
        with pm.Model(coords=self.coords(data)) as model:
            w = self.declared_weights(data)
            terms = pm.Data("terms", self.design(data), dims=("row", "term"))
            outcome = pm.Data("y_data", data["y"], dims="row")
            ours.InsensitiveOutcome("y", pm.math.dot(terms, w), self.eps, self.rate, outcome)
        return model

    def likelihood(self, params: Params, data: Arrays) -> InsensitiveNoise:
        """Return each row's distribution about the line; parameters of shape (..., own shape) give (..., rows)."""
        return InsensitiveNoise(self.mean(params, data), self.eps, self.rate)
