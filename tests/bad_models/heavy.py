"""Tails so heavy that there is no mean, or no standard deviation.

x ~ StudentT(nu, 0, 1)
"""

from dataclasses import dataclass

import numpy as np
import pymc as pm

from bayeszoo.data.inputs import Real
from bayeszoo.model import Model, positive


@dataclass(frozen=True)
class Heavy(Model):
    """A Student t; the data say nothing. With nu <= 1 there is no mean, with nu <= 2 no standard deviation."""

    nu: float = positive(1.0, "degrees of freedom")

    inputs = Real("y")

    def simulate(self, rng, size=20):
        return {"x": rng.standard_t(self.nu)}, {"y": rng.normal(size=size)}

    def declare(self, data):
        with pm.Model() as model:
            pm.StudentT("x", nu=self.nu, mu=np.float64(0), sigma=np.float64(1))
        return model
