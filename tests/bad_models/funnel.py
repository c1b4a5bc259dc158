"""Neal's funnel, centred: its neck is too narrow for any step size that suits its mouth.

v   ~ N(0, 3^2)
x_i ~ N(0, exp(v))        i = 1..9
"""

from dataclasses import dataclass

import numpy as np
import pymc as pm

from bayeszoo.data.inputs import Real
from bayeszoo.model import Model, real


@dataclass(frozen=True)
class Funnel(Model):
    """A funnel; the data say nothing."""

    centre: float = real(0.0, "mean of v")

    inputs = Real("y")

    def simulate(self, rng, size=20):
        v = rng.normal(self.centre, 3)
        return {"v": v, "x": rng.normal(0, np.exp(v / 2), 9)}, {"y": rng.normal(size=size)}

    def declare(self, data):
        with pm.Model() as model:
            v = pm.Normal("v", self.centre, np.float64(3))
            pm.Normal("x", np.float64(0), pm.math.exp(v / 2), shape=9)
        return model
