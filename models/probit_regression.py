r"""Probit regression: yes/no outcomes, each the sign of a weighted sum of features plus normal noise.

    w_j ~ N(0, tau^2)                          of a feature in units of `scale`; the intercept ~ N(m0, s0^2)
    y_n ~ Binomial(trials_n, Phi(x_n' w))      n = 1..N; one trial where none are given

Phi is the standard normal distribution function: y_n = 1 where z_n ~ N(x_n' w, 1) is above 0. The log joint is
concave, so that it has one mode. Bliss 1934; Finney 1947; Albert and Chib 1993; Durante 2019, by whom the evidence of
single trials is the probability of an orthant; Bishop, PRML, section 4.3.5; Gelman et al., BDA3, section 16.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import lazy_loader
import numpy as np

from bayeszoo.distributions.discrete import LogitBinomial
from bayeszoo.families.glm.augmented import NormalNoise
from bayeszoo.families.glm.binomial import BIOASSAY, BinomialRegression
from bayeszoo.families.glm.probit import Probit, log_odds
from bayeszoo.model import Example
from bayeszoo.model.types import Arrays, DeclaredModel, Params, RowLaw, Simulated

pm, ours = lazy_loader.load("pymc"), lazy_loader.load("bayeszoo.families.glm.declaration", suppress_warning=True)


@dataclass(frozen=True)
class ProbitRegression(BinomialRegression):
    """Outcomes of yes and no, or successes of trials, of a probability whose quantile is linear in terms.

    Parameters
    ----------
    tau : float, or one for each term but the intercept
        Prior standard deviation of the weight of a standardized term, > 0, in standard deviations of the noise.
    s0 : float
        Prior standard deviation of the intercept, > 0, in standard deviations of the noise.
    """

    link, augmentation = Probit(), NormalNoise()
    predicted_quantity, mean_quantity = "probit", "probability"
    examples = (
        Example(
            "vasoconstriction.csv",
            "whether the vessels of a finger contracted after each of 39 breaths, and how deep and fast these were",
            "Finney 1947; Pregibon 1981",
            {"target": "constricted", "features": ["log_volume", "log_rate"]},
        ),
        BIOASSAY,
    )

    def weak_intercept(self, data: Arrays) -> dict[str, float]:
        """Return a prior of about even chances, as wide as a probability of Phi(3)."""
        return {"m0": 0.0, "s0": 3.0}

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw weights from the prior, standard normal features, and ``size`` signs of predictors with noise."""
        w, data = self.simulate_weights(rng, size)
        noisy = self.predictor({"w": w}, data) + rng.standard_normal(size)
        return {"w": w}, {"y": (noisy > 0).astype(np.int64), **data}

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare the successes of each row."""
        with pm.Model(coords=self.coords(data)) as model:
            eta, trials, outcome = self.declared_rows(data)
            ours.BinomialByLogOdds("y", trials, ours.log_odds_of_probit(eta), outcome)
        return model

    def likelihood(self, params: Params, data: Arrays) -> RowLaw:
        """Return each row's binomial distribution; parameters of shape (..., own shape) give (..., rows)."""
        return LogitBinomial(self.sizes_of(data), log_odds(self.predictor(params, data)))
