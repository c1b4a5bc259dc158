"""Mixture of K products of Bernoulli distributions: yes or no to D questions, and K kinds of people.

weights ~ Dirichlet(alpha, ..., alpha),  p[k, d] ~ Beta(a, b),  z_n ~ weights,  Y[n, d] ~ Bernoulli(p[z_n, d])
"""

from dataclasses import dataclass

import numpy as np
import scipy
from scipy.special import betaln, gammaln

from bayeszoo.data.inputs import Matrix
from bayeszoo.model import Enumerable, Posterior, Symmetric, positive, whole


@dataclass(frozen=True)
class ToyBernoulliMixture(Enumerable, Symmetric):
    K: int = whole(2, "number of components")
    alpha: float = positive(1.0, "prior weight")
    a: float = positive(1.0, "prior successes")
    b: float = positive(1.0, "prior failures")
    inputs = Matrix("Y")
    dims = {"weights": ("component",), "p": ("component", "column")}  # noqa: RUF012

    def coords(self, data):
        return {**super().coords(data), "component": np.arange(1, self.K + 1)}

    def simulate(self, rng, size=20, columns=2):
        weights, p = rng.dirichlet(np.full(self.K, self.alpha)), rng.beta(self.a, self.b, (self.K, columns))
        Y = (rng.random((size, columns)) < p[rng.choice(self.K, size, p=weights)]).astype(float)
        return {"weights": weights, "p": p}, {"Y": Y, "column": np.arange(columns).astype(str)}

    def declare(self, data):
        raise NotImplementedError

    def assign(self, params, data):
        p, Y = np.asarray(params["p"])[..., None, :, :], data["Y"][:, None]
        log_p = np.log(np.asarray(params["weights"]))[..., None, :]
        log_p = log_p + (scipy.special.xlogy(Y, p) + scipy.special.xlog1py(1 - Y, -p)).sum(axis=-1)
        return scipy.special.softmax(log_p, axis=-1)

    def _counts(self, assignments, data):
        one = (assignments[..., None] == np.arange(self.K)).astype(float)  # (M, rows, K)
        return one.sum(axis=1), np.einsum("mnk,nd->mkd", one, data["Y"])

    def log_joint(self, assignments, data):
        n, yes = self._counts(assignments, data)
        total = self.K * self.alpha
        log_z = gammaln(self.alpha + n).sum(axis=1) - self.K * gammaln(self.alpha)
        log_z += gammaln(total) - gammaln(total + assignments.shape[1])
        each = betaln(self.a + yes, self.b + n[..., None] - yes) - betaln(self.a, self.b)
        return log_z + each.sum(axis=(1, 2))

    def posterior_given(self, assignment, data):
        n, yes = (counts[0] for counts in self._counts(assignment[None], data))
        alpha = self.alpha + n
        marginals = {
            "weights": scipy.stats.beta(alpha, alpha.sum() - alpha),
            "p": scipy.stats.beta(self.a + yes, self.b + n[:, None] - yes),
        }

        def draw(size, rng):
            return {
                "weights": rng.dirichlet(alpha, size),
                "p": rng.beta(self.a + yes, self.b + n[:, None] - yes, (*size, *yes.shape)),
            }

        return Posterior(marginals, draw)

    def exchangeable(self):
        return "component"

    def invariants(self, params, data):
        return {"mean": np.einsum("...k,...kd->...d", params["weights"], params["p"])}
