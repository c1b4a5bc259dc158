"""Relevance of the features of a Gaussian process: a length for each, which maximizes the density of the rows.

MacKay 1998; Rasmussen and Williams 2006, sections 5.1 and 5.4. Amplitude and sigma are maximized over as well. The
lengths become units of the features, so that the returned model has one length, which is then about 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from bayeszoo.comparison.evidence.climbs import Evidence, climbed
from bayeszoo.comparison.evidence.record import EmpiricalBayes
from bayeszoo.data.read import Data
from bayeszoo.errors import NumericalError
from bayeszoo.model.capabilities.function import HasLengths
from bayeszoo.model.fields import plain

REACH = np.log([1e3, 1e4, 1e3])
"""Logs of the factors by which the search goes beyond the guess of amplitude, lengths and sigma."""


@dataclass(frozen=True, repr=False, eq=False)
class EmpiricalBayesOfLengths(EmpiricalBayes):
    """A Gaussian process whose features have units in which the lengths that maximize the density of the rows are 1.

    Attributes
    ----------
    amplitude, sigma : float
        Their values at the maximum; they stay parameters of the model.
    """

    amplitude: float = math.nan
    sigma: float = math.nan

    def about_evidence(self, shown: bool = True, decimals: int = 2) -> list[str]:
        """Return lines about the highest density with one length, and with one for each feature."""
        after = f"{self.log_evidence:.{decimals}f}" if shown else "withheld"
        before = f"{self.log_evidence_before:.{decimals}f}"
        line = f"highest log density of the rows, with one length {before}, with one for each feature {after}"
        return [line, *([f"there amplitude {self.amplitude:.4g}, sigma {self.sigma:.4g}"] * shown)]


@dataclass(frozen=True)
class _Surface(Evidence):
    """The log density of the rows as a function of log amplitude, lengths and sigma; one length if ``is_shared``."""

    model: HasLengths
    data: Data
    is_shared: bool = False
    noun = "density of the rows"

    @property
    def labels(self) -> list[str]:
        """The names of the coordinates."""
        features = list(map(str, self.data["feature"]))
        return ["amplitude", *(["length"] if self.is_shared else [f"scale[{name}]" for name in features]), "sigma"]

    @property
    def ends(self) -> list[tuple[float, float]]:
        """The lowest and the highest value of each, all positive."""
        return [(0.0, math.inf)] * len(self.labels)

    def _at(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        lengths = np.exp(np.full(len(self.data["feature"]), x[1]) if self.is_shared else x[1:-1])
        return self.model.log_density_of_lengths(math.exp(x[0]), lengths, math.exp(x[-1]), self.data)

    def height(self, x: np.ndarray) -> float:
        """Return the log density."""
        return self._at(x)[0]

    def slope(self, x: np.ndarray) -> np.ndarray:
        """Return the gradient of the log density."""
        slopes = self._at(x)[1]
        return np.array([slopes[0], slopes[1:-1].sum(), slopes[-1]]) if self.is_shared else slopes


def by_lengths(model: HasLengths, data: Data, *, starts: int = 8, seed: int = 0) -> EmpiricalBayesOfLengths:
    """Choose units of the features in which lengths of 1 maximize the density of the rows.

    Climbs by L-BFGS-B with the gradient begin at the best single length and at random places around it. The length of
    an irrelevant feature goes to infinity, where the density levels off: ``limits`` names the feature.
    """
    guess = {name: value for name, (value, _) in model.outer_guess(data).items()}
    start, rng = np.log([guess["amplitude"], guess["length"], guess["sigma"]]), np.random.default_rng(seed)
    shared = climbed(_Surface(model, data, True), [start, start + 0.1], _around(start, REACH))
    count = len(data["feature"])
    kinds = np.repeat(np.arange(3), [1, count, 1])  # 0 amplitude, 1 length, 2 sigma
    begin = shared.x[kinds]
    places = [begin, *(begin + rng.normal(size=(starts - 1, count + 2)) * np.array([0.3, 1.0, 0.3])[kinds])]
    end = climbed(_Surface(model, data), places, _around(begin, REACH[kinds]))
    if not math.isfinite(end.height):
        raise NumericalError("the density of the rows is not finite where climbs begin", "not_finite")
    values = np.exp(end.x)
    scale = np.broadcast_to(np.asarray(model.scale), count) * values[1:-1]
    search = end.boundary, end.reached, starts, end.checks, end.height, shared.height, end.limits
    chosen = model.replaced(scale=plain(scale))
    return EmpiricalBayesOfLengths(chosen, model, ("scale",), *search, amplitude=values[0], sigma=values[-1])


def _around(x: np.ndarray, reach: np.ndarray) -> scipy.optimize.Bounds:
    return scipy.optimize.Bounds(x - reach, x + reach)
