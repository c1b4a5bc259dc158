r"""Neural network: a number about a sum of H hidden units, each a soft step along a direction of the features.

    weights_fh ~ N(0, tau^2),  bias_h ~ N(0, s0^2)           of standardized features f; h = 1..H
    sigma2     ~ InvGamma(a0, scale b0)
    intercept  ~ N(m0, sigma2 V0),  output_h ~ N(0, sigma2 V0 / H)
    y_n        ~ N(f(x_n), sigma2)                            n = 1..N

The function is f(x) = intercept + sum over h of output_h tanh(bias_h + weights_h' x). Given weights and biases it is a
linear regression on the units, which is integrated out: only they are sampled. With many units the prior of f is that
of a Gaussian process. MacKay 1992; Neal 1996; Williams 1998; Bishop, PRML, chapter 5.
"""

from __future__ import annotations

from dataclasses import dataclass

import lazy_loader
import numpy as np

from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.families.networks.model import NetworkModel
from bayeszoo.model import Example
from bayeszoo.model.types import Arrays, DeclaredModel, Simulated

pm = lazy_loader.load("pymc")


@dataclass(frozen=True)
class NeuralNetwork(NetworkModel):
    """Gaussian outcomes about a network with one layer of tanh units; the fields are those of `NetworkModel`."""

    examples = (
        Example(
            "ethanol.csv",
            "nitrogen oxides in the exhaust of 88 mixtures of air and ethanol, by their equivalence ratio",
            "Brinkman 1981",
            {"target": "NOx", "features": ["E"]},
        ),
    )

    @classmethod
    def weak(cls, data: Arrays) -> NeuralNetwork:
        """Standardize; outputs within ten noise sd, and a noise variance of about a tenth of the outcome's."""
        y = Moments.of(data["y"])
        return cls(a0=1.5, b0=0.15 * float(y.sd) ** 2, m0=float(y.mean), **cls.standardized(data))

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw hidden weights, output and noise from the prior, places at random, and rows about the function."""
        data = self.simulated_places(rng, size)
        outer = self.drawn_outer(rng, data)
        drawn = self.prior_of_output.rvs((), rng)
        both, variance = drawn["output"], drawn["sigma2"]
        y = rng.normal(self.units(outer, data) @ both, np.sqrt(variance))
        return {**outer, "intercept": both[0], "output": both[1:], "sigma2": variance}, {"y": y, **data}

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare every weight and the outcomes."""
        with pm.Model(coords=self.coords(data)) as model:
            hidden = self.declared_outer(data)
            sigma2 = pm.InverseGamma("sigma2", alpha=self.a0, beta=self.b0)
            spread = pm.math.sqrt(self.V0 * sigma2)
            intercept = pm.Normal("intercept", self.m0, spread)
            output = pm.Normal("output", np.float64(0), spread / np.sqrt(np.float64(self.H)), dims="unit")
            places = pm.Data("places", self.places(data), dims=("row", "feature"))
            units = pm.math.tanh(hidden["bias"] + pm.math.dot(places, hidden["weights"]))
            function = intercept + pm.math.dot(units, output)
            outcome = pm.Data("y_data", data["y"], dims="row")
            pm.Normal("y", function, pm.math.sqrt(sigma2), observed=outcome, dims="row")
        return model
