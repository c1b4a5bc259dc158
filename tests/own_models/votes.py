r"""The posterior nes_logit of posteriordb, as a user's own model: preferences of 1992 by income, under a flat prior.

y_n ~ Bernoulli(p_n)      log odds alpha + beta income_n
"""

from dataclasses import dataclass

import lazy_loader

from bayeszoo.data.inputs import BinaryRegression
from bayeszoo.model import Model

pm = lazy_loader.load("pymc")


@dataclass(frozen=True)
class Votes(Model):
    inputs = BinaryRegression("y")

    def declare(self, data):
        with pm.Model() as model:
            alpha, beta = pm.Flat("alpha"), pm.Flat("beta")
            log_odds = alpha + beta * data["X"][:, 0]
            pm.Binomial("y", n=data["trials"], logit_p=log_odds, observed=data["y"])
        return model
