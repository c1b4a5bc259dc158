"""A Gaussian mean and spread under flat priors: a posterior, but no evidence.

mu    ~ 1
sigma ~ 1               sigma > 0
y_n   ~ N(mu, sigma^2)  n = 1..N
"""

from dataclasses import dataclass

import numpy as np
import pymc as pm
import scipy

from bayeszoo.data.inputs import Real
from bayeszoo.model import Observable


@dataclass(frozen=True)
class FlatMean(Observable):
    """Improper priors; data cannot be drawn from them, so mu is 0 and sigma 1 in what is simulated."""

    inputs = Real("y")

    def simulate(self, rng, size=20):
        return {"mu": 0.0, "sigma": 1.0}, {"y": rng.normal(size=size)}

    def declare(self, data):
        with pm.Model() as model:
            mu, sigma = pm.Flat("mu"), pm.HalfFlat("sigma")
            pm.Normal("y", mu, sigma, observed=pm.Data("y_data", data["y"], dims="row"), dims="row")
        return model

    def likelihood(self, params, data):
        mu, sigma = (np.asarray(params[name])[..., None] for name in ("mu", "sigma"))
        return scipy.stats.norm(mu + np.zeros(len(data["y"])), sigma)
