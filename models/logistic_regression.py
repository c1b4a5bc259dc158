r"""Logistic regression: yes/no outcomes, whose log odds are a weighted sum of features.

    w_j ~ N(0, tau^2)                          of a feature in units of `scale`; the intercept ~ N(m0, s0^2)
    y_n ~ Binomial(trials_n, p_n)              log (p_n / (1 - p_n)) = x_n' w,  n = 1..N; one trial where none are given

The log joint is concave, so that it has one mode. Berkson 1944; Bishop, PRML, sections 4.3 to 4.5; Murphy 2012, chapter
8; Gelman et al., BDA3, section 3.7; CS725 lecture 15; W4400, the perceptron's probabilistic counterpart. Given
Polya-Gamma variables the weights are Gaussian: Polson, Scott and Windle 2013; Jaakkola and Jordan 2000.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import lazy_loader
import numpy as np

from bayeszoo.distributions.discrete import LogitBinomial
from bayeszoo.families.glm.augmented import PolyaGamma
from bayeszoo.families.glm.binomial import BIOASSAY, BinomialRegression
from bayeszoo.families.glm.links import Logit
from bayeszoo.model import Axes, Example
from bayeszoo.model.types import Arrays, DeclaredModel, Params, RowLaw, Simulated

pm, ours = lazy_loader.load("pymc"), lazy_loader.load("bayeszoo.families.glm.declaration", suppress_warning=True)


@dataclass(frozen=True)
class LogisticRegression(BinomialRegression):
    """Outcomes of yes and no, or successes of trials, whose log odds are linear in terms with Gaussian weights.

    Parameters
    ----------
    tau : float, or one for each term but the intercept
        Prior standard deviation of the weight of a standardized term, > 0, in log odds.
    s0 : float
        Prior standard deviation of the intercept, > 0, in log odds.
    """

    link, augmentation = Logit(), PolyaGamma()
    predicted_quantity, mean_quantity, ratio_of = "log odds", "probability", "odds"
    without_moments = ("even_odds",)
    dims: ClassVar[Axes] = {"w": ("term",), "odds_ratio": ("slope",)}
    nonnegative = ("odds_ratio",)
    examples = (
        BIOASSAY,
        Example(
            "challenger.csv",
            "distress of O-rings on 23 flights of the space shuttle, and the temperature at launch",
            "Report of the Presidential Commission on the Space Shuttle Challenger Accident 1986",
            {"target": "distress", "features": ["temperature"]},
        ),
    )

    def weak_intercept(self, data: Arrays) -> dict[str, float]:
        """Return a prior of about even odds, as wide as odds of e^5."""
        return {"m0": 0.0, "s0": 5.0}

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw weights from the prior, standard normal features, and ``size`` outcomes given both."""
        w, data = self.simulate_weights(rng, size)
        probability = self.link.mean(self.predictor({"w": w}, data))
        return {"w": w}, {"y": rng.binomial(1, probability), **data}

    def derived(self, params: Params) -> dict[str, np.ndarray]:
        """Return the odds ratios, and of one feature where the chance is a half, as the median lethal dose."""
        crossing = self.crossing(params)
        ratios = {"odds_ratio": self.ratios(params)}
        return ratios if crossing is None else {**ratios, "even_odds": crossing}

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare the successes of each row."""
        with pm.Model(coords=self.coords(data)) as model:
            eta, trials, outcome = self.declared_rows(data)
            ours.BinomialByLogOdds("y", trials, eta, outcome)
        return model

    def likelihood(self, params: Params, data: Arrays) -> RowLaw:
        """Return each row's binomial distribution; parameters of shape (..., own shape) give (..., rows)."""
        return LogitBinomial(self.sizes_of(data), self.predictor(params, data))
