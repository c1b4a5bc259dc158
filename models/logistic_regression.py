r"""Logistic regression: outcomes of yes and no, whose log odds are a weighted sum of features.

    w_j ~ N(0, tau^2)                          of a feature in units of `scale`; the intercept ~ N(m0, s0^2)
    y_n ~ Binomial(trials_n, p_n)              log (p_n / (1 - p_n)) = x_n' w,  n = 1..N; one trial where none are given

The log joint is concave, so that it has one mode. Berkson 1944; Bishop, PRML, sections 4.3 to 4.5; Murphy 2012, chapter
8; Gelman et al., BDA3, section 3.7; CS725 lecture 15; W4400, the perceptron's probabilistic counterpart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import BinaryRegression
from bayeszoo.distributions.discrete import LogitBinomial
from bayeszoo.distributions.special import log_binomial
from bayeszoo.families.glm.links import Logit
from bayeszoo.families.glm.model import GeneralizedLinear
from bayeszoo.model import Axes, Classifies, Example, Values

pm, ours = lazy_loader.load("pymc"), lazy_loader.load("bayeszoo.families.glm.declaration", suppress_warning=True)


@dataclass(frozen=True)
class LogisticRegression(GeneralizedLinear, Classifies):
    """Outcomes of yes and no, or successes of trials, whose log odds are linear in terms with Gaussian weights.

    Parameters
    ----------
    tau : float
        Prior standard deviation of the weight of a standardized term, > 0, in log odds.
    s0 : float
        Prior standard deviation of the intercept, > 0, in log odds.
    """

    inputs = BinaryRegression("y")
    link = Logit()
    predicted_quantity, mean_quantity, ratio_of = "log odds", "probability", "odds"
    without_moments = ("even_odds",)
    dims: ClassVar[Axes] = {"w": ("term",), "odds_ratio": ("slope",)}
    examples = (
        Example(
            "bioassay.csv",
            "deaths among five animals at each of four doses of a chemical; the dose is the log of g / ml",
            "Racine, Grieve, Fluehler and Smith 1986; BDA3 section 3.7",
            {"successes": "deaths", "trials": "animals", "features": ["dose"]},
        ),
        Example(
            "challenger.csv",
            "distress of O-rings on 23 flights of the space shuttle, and the temperature at launch",
            "Report of the Presidential Commission on the Space Shuttle Challenger Accident 1986",
            {"target": "distress", "features": ["temperature"]},
        ),
    )

    def weak_intercept(self, data: Values) -> dict[str, Any]:
        """Return a prior of about even odds, as wide as odds of e^5."""
        return {"m0": 0.0, "s0": 5.0}

    def sizes_of(self, data: Values) -> np.ndarray:
        """Return the trials of each row."""
        return np.asarray(data.get("trials", np.ones(self.inputs.size(data))))

    def log_coefficient(self, data: Values) -> float:
        """Return the log of how many orders the trials of all rows may have been made in."""
        return float(np.sum(log_binomial(self.sizes_of(data), self.inputs.outcome(data))))

    def simulate(self, rng: np.random.Generator, size: int = 20) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Draw weights from the prior, standard normal features, and ``size`` outcomes given both."""
        w, data = self.simulate_weights(rng, size)
        probability = self.link.mean(self.predictor({"w": w}, data))
        return {"w": w}, {"y": rng.binomial(1, probability), **data}

    def derived(self, params: Values) -> dict[str, Any]:
        """Return the odds ratios, and of one feature where the chance is a half, as the median lethal dose."""
        crossing = self.crossing(params)
        ratios = {"odds_ratio": self.ratios(params)}
        return ratios if crossing is None else {**ratios, "even_odds": crossing}

    def declare(self, data: Values) -> Any:
        """Declare the successes of each row."""
        with pm.Model(coords=self.coords(data)) as model:
            w = self.declared_weights(data)
            terms = pm.Data("terms", self.design(data), dims=("row", "term"))
            trials = pm.Data("trials", self.sizes_of(data).astype(np.float64), dims="row")
            outcome = pm.Data("y_data", data["y"], dims="row")
            ours.BinomialByLogOdds("y", trials, pm.math.dot(terms, w), outcome)
        return model

    def likelihood(self, params: Values, data: Values) -> Any:
        """Return each row's binomial distribution; parameters of shape (..., own shape) give (..., rows)."""
        return LogitBinomial(self.sizes_of(data), self.predictor(params, data))
