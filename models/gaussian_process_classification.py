r"""Gaussian process classification: yes/no outcomes, whose log odds are a smooth function of features.

    f   ~ GP(m0, amplitude^2 k(x / length))             k by `kernel`, 1 at a distance of 0
    y_n ~ Binomial(trials_n, 1 / (1 + exp(-f(x_n))))    n = 1..N; one trial where none are given

With the factor L of the covariance at the rows f = m0 + L z, z ~ N(0, I): a logistic regression on L, whose log joint
is concave. Rasmussen and Williams 2006, chapter 3; Murphy 2012, section 15.3; Williams and Barber 1998.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayeszoo.data.inputs import BinaryRegression
from bayeszoo.errors import InputError
from bayeszoo.families.latent_functions.model import LatentFunction
from bayeszoo.families.processes.places import OfPlaces
from bayeszoo.model import Example, positive
from bayeszoo.model.types import Arrays, Simulated


@dataclass(frozen=True)
class GaussianProcessClassification(OfPlaces, LatentFunction):
    """Yes/no outcomes, or successes of trials, whose log odds are a function that is a Gaussian process.

    Parameters
    ----------
    amplitude : float
        Prior standard deviation of the function, in log odds, > 0.
    length : float, or one for each feature of the data
        How far apart places are whose function values are alike, in units of ``scale``, > 0. Chosen by the evidence,
        one for each feature tells which of them matter: those that do not have a long one (MacKay 1998).
    """

    length: float = positive(1.0, "length", axes=("feature",), kw_only=True)

    inputs = BinaryRegression("y")
    examples = (
        Example(
            "ripley.csv",
            "250 points of two classes, drawn from mixtures",
            "Ripley 1996",
            {"target": "class", "features": ["xs", "ys"]},
        ),
    )

    @classmethod
    def weak(cls, data: Arrays) -> GaussianProcessClassification:
        """Take the length as a quarter of the features' extent, several in their sds; log odds within about 5."""
        base = cls(**cls.standardized(data))
        return base.replaced(length=base.extent(data) / 4)

    def covariance(self, first: Arrays, second: Arrays) -> np.ndarray:
        """Return the kernel (n, m) of the places of two data sets."""
        tables = self.expression.tables(self._in_lengths(first), self._in_lengths(second))
        return np.asarray(self.expression.correlations(tables, self._common))

    def variances(self, data: Arrays) -> np.ndarray:
        """Return the kernel of each place with itself."""
        return self.expression.diagonal(self._in_lengths(data), self._common)

    @property
    def _common(self) -> float:
        """The length of all features, 1 where each has its own."""
        return 1.0 if np.ndim(self.length) else float(self.length)

    def _in_lengths(self, data: Arrays) -> np.ndarray:
        """Return the places (n, F), in lengths where each feature has its own."""
        if not np.ndim(self.length):
            return self.places(data)
        if "periodic" in self.kernel:
            raise InputError("the kernel periodic has one length", "wrong_shape", hint="set length to one number")
        return self.places(data) / self.entries("length", len(data["feature"]))

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw places at random, a function at these, and outcomes."""
        return self.simulated(rng, self.simulated_places(rng, size, np.shape(self.length)))
