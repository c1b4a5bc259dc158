r"""The posterior hmm_example of posteriordb, as a user's own model: two normal states of known variance, in order.

theta_k ~ Dirichlet(1, 1)                k = 1, 2
mu      ~ N((3, 10), 1), mu_1 < mu_2
y_t     ~ N(mu_{z_t}, 1)                 z a chain with transitions theta, whose first state may be either
"""

from dataclasses import dataclass
from typing import ClassVar

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import RealSeries, starts
from bayeszoo.model import Model

pm = lazy_loader.load("pymc")
hmm = lazy_loader.load("bayeszoo.likelihoods.ops.hmm", suppress_warning=True)


@dataclass(frozen=True)
class HMMExample(Model):
    inputs = RealSeries("y")
    dims: ClassVar = {"theta": ("state", "state_2"), "mu": ("state",)}

    def coords(self, data):
        return {"state": [1, 2], "state_2": [1, 2]}

    def simulate(self, rng, size=20):
        theta, mu, z = rng.dirichlet([1, 1], 2), np.sort(rng.normal([3, 10], 1)), [rng.integers(2)]
        for _ in range(size - 1):
            z.append(rng.choice(2, p=theta[z[-1]]))
        y = rng.normal(mu[np.array(z)], 1)
        return {"theta": theta, "mu": mu}, {"y": y, "sequence": np.zeros(size, dtype=np.int64)}

    def declare(self, data):
        with pm.Model(coords=self.coords(data)) as model:
            theta = pm.Dirichlet("theta", a=np.ones((2, 2)), dims=self.dims["theta"])
            centres, ordered = np.array([3.0, 10.0]), pm.distributions.transforms.ordered
            mu = pm.Normal("mu", centres, np.float64(1), dims="state", transform=ordered, initval=centres)
            chain = np.full(2, 0.5), theta, mu, np.ones(2)
            pm.Potential("y", hmm.hmm_gaussian_log_likelihood(*chain, data["y"], starts(data["sequence"])))
        return model
