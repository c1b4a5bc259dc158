"""Regressions of counts, with or without exposures, whose log mean is linear in the features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayeszoo.data.inputs import CountRegression
from bayeszoo.families.glm.model import LinkedTerms
from bayeszoo.foundation.named import Arrays
from bayeszoo.model.fields import positive


@dataclass(frozen=True)
class LogLinearCounts(LinkedTerms, family=True):
    """Counts whose log mean is linear in terms with Gaussian weights."""

    tau: float = positive(0.5, "prior sd of the weights tau", axes=("slope",), kw_only=True)
    s0: float = positive(1.0, "prior sd of the intercept s0", kw_only=True)

    inputs = CountRegression("y")

    def weak_intercept(self, data: Arrays) -> dict[str, float]:
        """Return a prior about the log of the pooled rate."""
        rate = (np.sum(data["y"]) + 0.5) / np.sum(self.sizes_of(data)) if self.inputs.size(data) else 1.0
        return {"m0": float(np.log(rate)), "s0": 2.5}

    def sizes_of(self, data: Arrays) -> np.ndarray:
        """Return the exposure of each row."""
        return np.asarray(data.get("exposure", np.ones(self.inputs.size(data))))
