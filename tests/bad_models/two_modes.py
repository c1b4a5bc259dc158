"""Two modes twenty standard deviations apart: no chain ever crosses, and each looks perfect on its own.

x ~ 1/2 N(-10, 1) + 1/2 N(10, 1)
"""

from dataclasses import dataclass

import pymc as pm

from bayeszoo.data.inputs import Real
from bayeszoo.model import Model, positive


@dataclass(frozen=True)
class TwoModes(Model):
    """A mixture of two far modes; the data say nothing."""

    distance: float = positive(10.0, "distance of a mode from 0")

    inputs = Real("y")

    def simulate(self, rng, size=20):
        x = rng.choice([-1, 1]) * self.distance + rng.normal()
        return {"x": x}, {"y": rng.normal(size=size)}

    def declare(self, data):
        with pm.Model() as model:
            x = pm.Flat("x")
            pm.Potential("mixture", pm.math.logaddexp(*(-((x - c) ** 2) / 2 for c in (-self.distance, self.distance))))
        return model
