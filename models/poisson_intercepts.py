r"""Random intercepts in Poisson regression: counts of rows in groups, whose log rates differ by group.

    w_j ~ N(0, tau^2)                of a feature in units of `scale`; the intercept ~ N(m0, s0^2)
    sd  ~ HalfNormal(t0)
    u_g ~ N(0, sd^2)                 g = 1..G groups
    y_n ~ Poisson(exposure_n exp(x_n' w + u_g))    g the group of row n; n = 1..N; exposure 1 where none is given

What ``y ~ x + (1 | group)`` stands for. Given w and sd each u_g is a one-dimensional integral, and the u_g are
integrated out. Breslow and Clayton 1993; Pinheiro and Bates 1995; Gelman and Hill 2007, section 15.1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import GroupedCounts
from bayeszoo.distributions.discrete import LogMeanPoisson
from bayeszoo.errors import NumericalError
from bayeszoo.families.glm.counts import LogLinearCounts
from bayeszoo.families.glm.intercepts import RandomIntercepts
from bayeszoo.families.glm.links import Log
from bayeszoo.model import Axes, Example
from bayeszoo.model.fields import positive
from bayeszoo.model.types import Arrays, DeclaredModel, Params, RowLaw, Simulated

pm, ours = lazy_loader.load("pymc"), lazy_loader.load("bayeszoo.families.glm.declaration", suppress_warning=True)

MOST = 1e15
"""The largest mean for drawing counts: above it, a float cannot tell neighbouring whole numbers apart."""


@dataclass(frozen=True)
class PoissonIntercepts(RandomIntercepts, LogLinearCounts):
    """Counts, perhaps of an exposure each, whose log rate is linear in terms, with an intercept a group.

    Parameters
    ----------
    tau : float, or one for each term but the intercept
        Prior standard deviation of the weight of a standardized term, > 0, in logs of the rate.
    s0 : float
        Prior standard deviation of the intercept, > 0, in logs of the rate.
    t0 : float
        Prior scale of sd, the standard deviation of the groups' intercepts, > 0, in logs of the rate.
    """

    tau: float = positive(0.5, "prior sd of the weights tau", axes=("slope",), kw_only=True)
    s0: float = positive(1.0, "prior sd of the intercept s0", kw_only=True)
    t0: float = positive(0.5, "prior scale of sd t0", kw_only=True)

    inputs = GroupedCounts("y")
    link = Log()
    predicted_quantity, mean_quantity, ratio_of = "log rate", "rate", "rate"
    dims: ClassVar[Axes] = {"w": ("term",), "u": ("group",), "rate_ratio": ("slope",)}
    nonnegative: ClassVar[tuple[str, ...]] = ("sd", "rate_ratio", "median_rate_ratio")
    examples = (
        Example(
            "epilepsy.csv",
            "seizures of 59 people with epilepsy, in 8 weeks before and four times 2 weeks after a treatment began",
            "Thall and Vail 1990",
            {
                "target": "seizures",
                "exposure": "weeks",
                "features": ["after", "on_drug"],
                "group": "subject",
            },
        ),
    )

    @classmethod
    def weak(cls, data: Arrays) -> Any:
        """Standardize; narrow, an sd of a feature multiplies rates by e at most: counts drawn must stay finite."""
        return replace(super().weak(data), tau=0.5, s0=1.0, t0=0.75).labelled(data)

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw parameters from the prior, standard normal features in six groups, and ``size`` counts."""
        params, data, eta = self.simulate_groups(rng, size)
        mean = self.link.mean(eta)
        if not np.max(mean, initial=0.0) < MOST:
            raise NumericalError("the prior gives counts above 1e15: make tau, s0 and t0 smaller", "too_large")
        return params, {"y": rng.poisson(mean), **data}

    def derived(self, params: Params) -> dict[str, np.ndarray]:
        """Return the rate ratios, and the median ratio of the rates of two groups, the higher over the lower."""
        return {"rate_ratio": self.ratios(params), "median_rate_ratio": self.median_ratio(params)}

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare the count of each row."""
        with pm.Model(coords=self.coords(data)) as model:
            eta = self.declared_predictor(data)
            exposure = pm.Data("exposure", self.sizes_of(data).astype(np.float64), dims="row")
            ours.PoissonByLogMean("y", exposure, eta, pm.Data("y_data", self.inputs.outcome(data), dims="row"))
        return model

    def likelihood(self, params: Params, data: Arrays) -> RowLaw:
        """Return each row's Poisson distribution given its group's intercept."""
        return LogMeanPoisson(self.sizes_of(data), self.of_rows(params, data))
