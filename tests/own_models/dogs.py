r"""The posterior dogs of posteriordb, as a user's own model: dogs that learn to jump before a shock.

beta_j ~ N(0, 100^2)                                   j = 1..3
y_t    ~ Bernoulli(p_t), 1 a shock                     log odds beta_1 + beta_2 avoided_t + beta_3 shocked_t

The features count how many trials before t the dog avoided the shock in, and how many not. Bush and Mosteller 1955;
Gelman and Hill 2007, section 24.2.
"""

from dataclasses import dataclass
from typing import ClassVar

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import BinaryRegression
from bayeszoo.model import Model

pm = lazy_loader.load("pymc")


@dataclass(frozen=True)
class Dogs(Model):
    inputs = BinaryRegression("y")
    dims: ClassVar = {"beta": ("term",)}

    def coords(self, data):
        return {"term": ["intercept", *data["feature"]]}

    def declare(self, data):
        with pm.Model(coords=self.coords(data)) as model:
            beta = pm.Normal("beta", np.float64(0), np.float64(100), dims="term")
            log_odds = beta[0] + beta[1] * data["X"][:, 0] + beta[2] * data["X"][:, 1]
            pm.Bernoulli("y", logit_p=log_odds, observed=data["y"])
        return model
