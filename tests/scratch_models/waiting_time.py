r"""Waiting time: how often something happens, from the times between its occurrences.

    rate ~ Gamma(a, rate b)
    t_n  ~ Exponential(rate)        n = 1..N

Murphy 2012, exercise 3.9 (with a general shape); Gelman et al., BDA3, section 2.6.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import pymc as pm
import scipy

from bayeszoo.data.inputs import Real
from bayeszoo.distributions.special import log_rising
from bayeszoo.errors import NumericalError
from bayeszoo.model import Conjugate, Observable, PointEstimates, Posterior, Stats, positive


@dataclass(frozen=True)
class Waits(Stats):
    n: float = 0.0
    total: float = 0.0


@dataclass(frozen=True)
class WaitingTime(Conjugate, PointEstimates, Observable):
    """Independent exponential times with a Gamma prior on their rate."""

    a: float = positive(1.0, "prior shape")
    b: float = positive(1.0, "prior rate", units=1)

    inputs = Real("t", positive=True)

    @classmethod
    def weak(cls, data):
        return cls(a=1.0, b=np.mean(data["t"]))

    def simulate(self, rng, size=20):
        rate = rng.gamma(self.a, 1 / self.b)
        return {"rate": rate}, {"t": rng.exponential(1 / rate, size)}

    def declare(self, data):
        with pm.Model() as model:
            rate = pm.Gamma("rate", alpha=self.a, beta=self.b)
            pm.Exponential("t", lam=rate, observed=pm.Data("t_data", data["t"], dims="row"), dims="row")
        return model

    def statistics(self, data):
        return Waits(float(len(data["t"])), float(np.sum(data["t"])))

    def compressed(self, stats):
        with pm.Model() as model:
            rate = pm.Gamma("rate", alpha=self.a, beta=self.b)
            n, total = (pm.Data(name, np.float64(getattr(stats, name))) for name in ("n", "total"))
            pm.Potential("t", n * pm.math.log(rate) - rate * total)
        return model

    def updated(self, stats):
        return replace(self, a=self.a + stats.n, b=self.b + stats.total)

    def posterior(self, stats):
        later = self.updated(stats)
        return Posterior({"rate": scipy.stats.gamma(later.a, scale=1 / later.b)})

    def log_evidence(self, stats):
        powers = self.a * math.log1p(stats.total / self.b) + stats.n * math.log(self.b + stats.total)
        return float(log_rising(self.a, stats.n) - powers)

    def predictive(self, stats, data):
        later = self.updated(stats)
        return scipy.stats.lomax(later.a, scale=np.full(len(data["t"]), later.b))

    def likelihood(self, params, data):
        return scipy.stats.expon(scale=1 / np.asarray(params["rate"])[..., None] + np.zeros(len(data["t"])))

    def free_parameters(self, stats):
        return 1

    def map(self, stats):
        later = self.updated(stats)
        if later.a < 1:
            raise NumericalError("no mode: the density is unbounded at rate = 0")
        return {"rate": (later.a - 1) / later.b}

    def mle(self, stats):
        if stats.n == 0:
            raise NumericalError("no maximum-likelihood estimate: there are no observations")
        return {"rate": stats.n / stats.total}
