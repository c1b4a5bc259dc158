"""Error precision: how precise an instrument is, from its errors against a known true value.

lam ~ Gamma(a, rate b),  y_n ~ N(0, 1 / lam),  n = 1..N        (Bishop, PRML, section 2.3.6)
"""

from dataclasses import dataclass

import lazy_loader
import numpy as np
import scipy

from bayeszoo.data.inputs import Real
from bayeszoo.distributions.special import log_rising
from bayeszoo.model import Conjugate, Posterior, Stats, positive

pm = lazy_loader.load("pymc")


class Deviations(Real):
    """Errors against what is known: their zero is not a matter of units."""

    def in_units(self, arrays, factor, shift=0.0):
        return super().in_units(arrays, factor)


@dataclass(frozen=True)
class Errors(Stats):
    n: int = 0
    squares: float = 0.0


@dataclass(frozen=True)
class ErrorPrecision(Conjugate):
    a: float = positive(1.0, "prior shape")
    b: float = positive(1.0, "prior rate", units=2)
    inputs = Deviations("y")

    @classmethod
    def weak(cls, data):
        return cls(0.5, 0.5 * (np.mean(np.square(data["y"])) or 1.0))

    def simulate(self, rng, size=20):
        lam = rng.gamma(self.a, 1 / self.b)
        return {"lam": lam}, {"y": rng.normal(0, lam**-0.5, size)}

    def declare(self, data):
        with pm.Model() as model:
            lam = pm.Gamma("lam", alpha=self.a, beta=self.b)
            pm.Normal("y", tau=lam, observed=pm.Data("y_data", data["y"], dims="row"), dims="row")
        return model

    def statistics(self, data):
        return Errors(len(data["y"]), np.sum(np.square(data["y"])))

    def compressed(self, stats):
        with pm.Model() as model:
            lam = pm.Gamma("lam", alpha=self.a, beta=self.b)
            pm.Potential("y", (stats.n * pm.math.log(lam / (2 * np.pi)) - lam * stats.squares) / 2)
        return model

    def updated(self, stats):
        return ErrorPrecision(self.a + stats.n / 2, self.b + stats.squares / 2)

    def posterior(self, stats):
        return Posterior({"lam": scipy.stats.gamma(self.a + stats.n / 2, scale=1 / (self.b + stats.squares / 2))})

    def log_evidence(self, stats):
        later, half = self.updated(stats), stats.n / 2
        return log_rising(self.a, half) + self.a * np.log(self.b / later.b) - half * np.log(2 * np.pi * later.b)

    def predictive(self, stats, data):
        later = self.updated(stats)
        return scipy.stats.t(2 * later.a, scale=np.full(len(data["y"]), np.sqrt(later.b / later.a)))
