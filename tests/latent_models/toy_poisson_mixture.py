"""Mixture of K Poisson distributions.

weights ~ Dirichlet(alpha, ..., alpha),  rates[k] ~ Gamma(a, rate b),  z_n ~ weights,  y_n ~ Poisson(rates[z_n])
"""

from dataclasses import dataclass

import numpy as np
import scipy
from scipy.special import gammaln

from bayeszoo.data.inputs import Counts
from bayeszoo.model import Enumerable, Posterior, Symmetric, positive, whole


@dataclass(frozen=True)
class ToyPoissonMixture(Enumerable, Symmetric):
    K: int = whole(2, "number of components")
    alpha: float = positive(1.0, "prior weight")
    a: float = positive(1.0, "prior shape")
    b: float = positive(1.0, "prior rate")
    inputs = Counts("y")
    dims = {"weights": ("component",), "rates": ("component",)}  # noqa: RUF012

    def coords(self, data):
        return {"component": np.arange(1, self.K + 1)}

    def simulate(self, rng, size=20):
        weights, rates = rng.dirichlet(np.full(self.K, self.alpha)), rng.gamma(self.a, 1 / self.b, self.K)
        return {"weights": weights, "rates": rates}, {"y": rng.poisson(rates[rng.choice(self.K, size, p=weights)])}

    def declare(self, data):
        raise NotImplementedError

    def component_probabilities(self, params, data):
        log_p = np.log(np.asarray(params["weights"]))[..., None, :]
        log_p = log_p + scipy.stats.poisson.logpmf(data["y"][:, None], np.asarray(params["rates"])[..., None, :])
        return scipy.special.softmax(log_p, axis=-1)

    def _counts(self, assignments, data):
        one = (assignments[..., None] == np.arange(self.K)).astype(float)  # (M, rows, K)
        return one.sum(axis=1), np.einsum("mnk,n->mk", one, data["y"].astype(float))

    def log_joint(self, assignments, data):
        n, events = self._counts(assignments, data)
        total = self.K * self.alpha
        log_z = gammaln(self.alpha + n).sum(axis=1) - self.K * gammaln(self.alpha)
        log_z += gammaln(total) - gammaln(total + assignments.shape[1])
        each = gammaln(self.a + events) - gammaln(self.a) + self.a * np.log(self.b)
        each -= (self.a + events) * np.log(self.b + n)
        return log_z + each.sum(axis=1) - gammaln(data["y"] + 1.0).sum()

    def posterior_given(self, assignment, data):
        n, events = (counts[0] for counts in self._counts(assignment[None], data))
        alpha, shape, scale = self.alpha + n, self.a + events, 1 / (self.b + n)
        marginals = {
            "weights": scipy.stats.beta(alpha, alpha.sum() - alpha),
            "rates": scipy.stats.gamma(shape, scale=scale),
        }

        def draw(size, rng):
            return {"weights": rng.dirichlet(alpha, size), "rates": rng.gamma(shape, scale, (*size, self.K))}

        return Posterior(marginals, draw)

    def exchangeable_axis(self):
        return "component"

    def invariants(self, params, data):
        return {"mean": np.sum(params["weights"] * params["rates"], axis=-1)}
