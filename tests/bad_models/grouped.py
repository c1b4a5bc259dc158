"""A Gaussian mean for each of three groups, without sufficient statistics: it is sampled on its rows.

mu_g ~ N(0, width^2)        g = 1..3
y_n  ~ N(mu_g, 1)           n = 1..N, in group n mod 3
"""

from dataclasses import dataclass

import numpy as np
import pymc as pm

from bayeszoo.data.inputs import Real
from bayeszoo.model import Model, positive

GROUPS = ("km/h", "naïve group", "x1[0]")


@dataclass(frozen=True)
class Grouped(Model):
    """Names that PyMC and xarray refuse for variables are labels here; the posterior may be far from the start."""

    width: float = positive(10.0, "prior sd of a mean")

    inputs = Real("y")

    def simulate(self, rng, size=20):
        mu = rng.normal(0, self.width, 3)
        return {"mu": mu}, {"y": rng.normal(mu[np.arange(size) % 3], 1)}

    def declare(self, data):
        with pm.Model(coords={"group": GROUPS}) as model:
            mu = pm.Normal("mu", np.float64(0), self.width, dims="group")
            pm.Deterministic("largest", mu.max())
            group = np.arange(len(data["y"])) % 3
            pm.Normal("y", mu[group], np.float64(1), observed=data["y"])
        return model
