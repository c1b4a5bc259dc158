r"""Gaussian process: a smooth function of features, whose form is not known; kernel ridge with its uncertainty.

    amplitude ~ HalfNormal(t_amplitude),  length ~ InvGamma(a_length, b_length),  sigma ~ HalfNormal(t_sigma)
    f         ~ GP(m0, amplitude^2 k(x / length))      k by `kernel`, 1 at a distance of 0
    y_n       ~ N(f(x_n), sigma^2)                     n = 1..N

Given the three numbers all is Gaussian, and f is integrated out; its mean is the kernel ridge estimate with penalty
sigma^2 / amplitude^2. Rasmussen and Williams 2006, chapters 2, 4 and 5; Murphy 2012, chapter 15; MacKay 1998.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayeszoo.distributions.priors import HalfNormal, InvGamma, Prior
from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.families.processes.model import ProcessModel
from bayeszoo.model import Example, positive
from bayeszoo.model.types import Arrays, Simulated


@dataclass(frozen=True)
class GaussianProcess(ProcessModel):
    """Gaussian outcomes about a function that is a Gaussian process.

    Parameters
    ----------
    t_amplitude, t_sigma : float
        Scales of the half-normal priors of the amplitude, the standard deviation of the function, and of sigma, that of
        rows about it, > 0.
    a_length, b_length : float
        Shape and scale of the inverse-gamma prior of the length, in units of ``scale``: how far apart places are whose
        function values are alike, > 0.
    """

    t_amplitude: float = positive(1.0, "prior scale of the amplitude", units=1)
    a_length: float = positive(5.0, "prior shape of the length")
    b_length: float = positive(5.0, "prior scale of the length")
    t_sigma: float = positive(1.0, "prior scale of sigma", units=1)

    examples = (
        Example(
            "motorcycle.csv",
            "acceleration of the head of a dummy, in g, by milliseconds after the impact of a motorcycle",
            "Silverman 1985",
            {"target": "acceleration"},
        ),
    )

    @classmethod
    def weak(cls, data: Arrays) -> GaussianProcess:
        """Scale to the outcome's spread, and the length to a quarter of the features' extent, several in their sds."""
        y = Moments.of(data["y"])
        sd = float(y.sd)
        base = cls(t_amplitude=2 * sd, t_sigma=sd, m0=float(y.mean), **cls.standardized(data))
        return base.replaced(b_length=base.extent(data))

    @property
    def textbook_priors(self) -> dict[str, Prior]:
        """Half-normal of amplitude and sigma, inverse gamma of the length."""
        length = InvGamma(self.a_length, self.b_length)
        return {"amplitude": HalfNormal(self.t_amplitude), "length": length, "sigma": HalfNormal(self.t_sigma)}

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw the three numbers from the prior, places at random, and rows about a function at these."""
        outer = self.drawn_outer(rng)
        data = self.simulated_places(rng, size)
        function = self.simulated_function(rng, outer, data)
        return outer, {"y": rng.normal(function, outer["sigma"]), **data}
