"""A coin whose log odds are Gaussian: no closed form, and of a table of counts PyMC's density is that of the counts.

psi ~ N(0, s^2)
y_n ~ Bernoulli(1 / (1 + exp(-psi)))        n = 1..N
"""

from dataclasses import dataclass

import numpy as np
import pymc as pm
import scipy

from bayeszoo.data.inputs import Binary
from bayeszoo.model import Observable, positive


@dataclass(frozen=True)
class LogitCoin(Observable):
    """It has no sufficient statistics, so it is fitted to its rows, whatever they are."""

    s: float = positive(1.0, "prior sd of the log odds")

    inputs = Binary("y")

    def simulate(self, rng, size=20):
        psi = rng.normal(0, self.s)
        return {"psi": psi}, {"y": rng.binomial(1, scipy.special.expit(psi), size)}

    def declare(self, data):
        with pm.Model() as model:
            psi = pm.Normal("psi", np.float64(0), self.s)
            if "y" in data:
                pm.Bernoulli("y", logit_p=psi, observed=data["y"])
            else:
                pm.Binomial("successes", n=data["trials"], logit_p=psi, observed=data["successes"])
        return model

    def likelihood(self, params, data):
        return scipy.stats.binom(
            np.ones(len(next(iter(data.values()))), dtype=int), scipy.special.expit(params["psi"])[..., None]
        )
