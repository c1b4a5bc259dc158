"""Regressions of binary outcomes, or of successes in trials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import BinaryRegression
from bayeszoo.data.read import Example
from bayeszoo.distributions.special import log_binomial
from bayeszoo.families.glm.augmented import AugmentedLinear
from bayeszoo.families.glm.model import LinkedTerms
from bayeszoo.foundation.named import Arrays
from bayeszoo.model.capabilities.observable import Classifies

pm = lazy_loader.load("pymc")

BIOASSAY = Example(
    "bioassay.csv",
    "deaths among five animals at each of four doses of a chemical; the dose is the log of g / ml",
    "Racine, Grieve, Fluehler and Smith 1986; BDA3 section 3.7",
    {"successes": "deaths", "trials": "animals", "features": ["dose"]},
)


@dataclass(frozen=True)
class BinomialRows(LinkedTerms, Classifies, family=True):
    """Binary outcomes, or successes in trials, whose probability is a function of a linear predictor, the link."""

    def sizes_of(self, data: Arrays) -> np.ndarray:
        """Return the number of trials of each row, (rows,)."""
        return np.asarray(data.get("trials", np.ones(self.inputs.size(data))))

    def log_coefficient(self, data: Arrays) -> float:
        """Return the log of the number of orders of successes and failures, over all rows."""
        return float(np.sum(log_binomial(self.sizes_of(data), self.inputs.outcome(data))))


@dataclass(frozen=True)
class BinomialRegression(BinomialRows, AugmentedLinear, family=True):
    """Successes in trials whose probability depends on features alone.

    ``declare`` begins with ``eta, trials, outcome = self.declared_rows(data)`` inside of a ``pm.Model``.
    """

    inputs = BinaryRegression("y")

    def declared_rows(self, data: Arrays) -> tuple[Any, Any, Any]:
        """Declare the weights; return the linear predictor of each row, its trials and its outcome."""
        w = self.declared_weights(data)
        terms = pm.Data("terms", self.design(data), dims=("row", "term"))
        trials = pm.Data("trials", self.sizes_of(data).astype(np.float64), dims="row")
        return pm.math.dot(terms, w), trials, pm.Data("y_data", self.inputs.outcome(data), dims="row")
