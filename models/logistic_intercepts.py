r"""Random intercepts in logistic regression: yes/no outcomes of rows in groups, whose log odds differ by group.

    w_j ~ N(0, tau^2)                of a feature in units of `scale`; the intercept ~ N(m0, s0^2)
    sd  ~ HalfNormal(t0)
    u_g ~ N(0, sd^2)                 g = 1..G groups
    y_n ~ Binomial(trials_n, p_n)    log (p_n / (1 - p_n)) = x_n' w + u_g,  g the group of row n; n = 1..N

What ``y ~ x + (1 | group)`` stands for. Given w and sd each u_g is a one-dimensional integral, and the u_g are
integrated out. Stiratelli, Laird and Ware 1984; Pinheiro and Bates 1995; Gelman and Hill 2007, section 14.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import GroupedBinary
from bayeszoo.distributions.discrete import LogitBinomial
from bayeszoo.families.glm.binomial import BinomialRows
from bayeszoo.families.glm.intercepts import RandomIntercepts
from bayeszoo.families.glm.links import Logit
from bayeszoo.model import Axes, Example
from bayeszoo.model.types import Arrays, DeclaredModel, Params, RowLaw, Simulated

pm, ours = lazy_loader.load("pymc"), lazy_loader.load("bayeszoo.families.glm.declaration", suppress_warning=True)


@dataclass(frozen=True)
class LogisticIntercepts(RandomIntercepts, BinomialRows):
    """Outcomes of yes and no, or successes of trials, whose log odds are linear in terms, with an intercept a group.

    Parameters
    ----------
    tau : float, or one for each term but the intercept
        Prior standard deviation of the weight of a standardized term, > 0, in log odds.
    s0 : float
        Prior standard deviation of the intercept, > 0, in log odds.
    t0 : float
        Prior scale of sd, the standard deviation of the groups' intercepts, > 0, in log odds.
    """

    inputs = GroupedBinary("y")
    link = Logit()
    predicted_quantity, mean_quantity, ratio_of = "log odds", "probability", "odds"
    dims: ClassVar[Axes] = {"w": ("term",), "u": ("group",), "odds_ratio": ("slope",)}
    nonnegative: ClassVar[tuple[str, ...]] = ("sd", "odds_ratio", "median_odds_ratio")
    examples = (
        Example(
            "cbpp.csv",
            "new cases of contagious bovine pleuropneumonia in 15 herds of cattle, in four periods",
            "Lesnoff et al. 2004",
            {
                "successes": "incidence",
                "trials": "size",
                "features": ["period"],
                "levels": {"period": list("1234")},
                "group": "herd",
            },
        ),
    )

    def weak_intercept(self, data: Arrays) -> dict[str, Any]:
        """Return a prior of about even odds, as wide as odds of e^5."""
        return {"m0": 0.0, "s0": 5.0, "t0": 2.5}

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw parameters from the prior, standard normal features in six groups, and ``size`` outcomes."""
        params, data, eta = self.simulate_groups(rng, size)
        return params, {"y": rng.binomial(1, self.link.mean(eta)), **data}

    def derived(self, params: Params) -> dict[str, np.ndarray]:
        """Return the odds ratios, and the median ratio of the odds of two groups, the higher over the lower."""
        return {"odds_ratio": self.ratios(params), "median_odds_ratio": self.median_ratio(params)}

    def varies_alone(self, data: Arrays) -> bool:
        """Say whether any group has several trials."""
        return bool(np.any(self.sizes_of(data) > 1))

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare the successes of each row."""
        with pm.Model(coords=self.coords(data)) as model:
            eta = self.declared_predictor(data)
            trials = pm.Data("trials", self.sizes_of(data).astype(np.float64), dims="row")
            ours.BinomialByLogOdds("y", trials, eta, pm.Data("y_data", self.inputs.outcome(data), dims="row"))
        return model

    def likelihood(self, params: Params, data: Arrays) -> RowLaw:
        """Return each row's binomial distribution given its group's intercept."""
        return LogitBinomial(self.sizes_of(data), self.of_rows(params, data))
