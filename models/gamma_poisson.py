r"""Gamma-Poisson: the rate of events, from counts.

    rate ~ Gamma(a, rate b)
    y_n  ~ Poisson(rate * exposure_n)        n = 1..N

Without an exposure column every row was observed for one unit. Gelman et al., BDA3, section 2.6; Murphy 2012, exercise
3.8; W4400, conjugate priors.
"""

from __future__ import annotations

from dataclasses import dataclass

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import Counts
from bayeszoo.distributions.conjugate.poisson import Poisson
from bayeszoo.distributions.discrete import NegativeBinomial
from bayeszoo.distributions.discrete import Poisson as PoissonRows
from bayeszoo.distributions.statistics.events import Events
from bayeszoo.model import BlockModel, Example, positive
from bayeszoo.model.types import Arrays, DeclaredModel, Params, RowLaw, Simulated

pm = lazy_loader.load("pymc")


@dataclass(frozen=True)
class GammaPoisson(BlockModel[Events]):
    """Independent Poisson counts with a Gamma prior on their rate.

    Parameters
    ----------
    a, b : float
        Shape and rate of the Gamma prior, > 0: like a events in an exposure of b seen before.
    """

    a: float = positive(1.0, "prior shape")
    b: float = positive(1.0, "prior rate")

    along_points = ("a", "b")
    inputs = Counts("y")
    nonnegative = ("rate",)
    examples = (
        Example(
            file="horse_kicks.csv",
            about="deaths by horse kick in 14 Prussian corps, 1875-1894; rate is deaths a corps and year",
            source="Bortkiewicz 1898",
            options={"column": "deaths"},
        ),
    )

    @classmethod
    def weak(cls, data: Arrays) -> GammaPoisson:
        """Take a prior worth one event, its mean the rate of the data (half an event where there is none)."""
        stats = cls().statistics(data)
        return cls(a=1.0, b=stats.exposure / max(stats.events, 0.5))

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw the rate from the prior and ``size`` counts given it."""
        rate = rng.gamma(self.a, 1 / self.b)
        return {"rate": rate}, {"y": rng.poisson(rate, size)}

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare one Poisson count a row."""
        with pm.Model() as model:
            rate = pm.Gamma("rate", alpha=self.a, beta=self.b)
            exposure = pm.Data("exposure", _exposure(data), dims="row")
            pm.Poisson("y", mu=rate * exposure, observed=pm.Data("y_data", data["y"], dims="row"), dims="row")
        return model

    def statistics(self, data: Arrays) -> Events:
        """Add up events and exposure."""
        return Events.of(data["y"], _exposure(data))

    def compressed(self, stats: Events) -> DeclaredModel:
        """Declare the density of the counts from their sums, around their pooled rate."""
        with pm.Model() as model:
            rate = pm.Gamma("rate", alpha=self.a, beta=self.b)
            names = ("events", "exposure", "pivot", "log_likelihood")
            events, exposure, pivot, height = (pm.Data(name, np.float64(getattr(stats, name))) for name in names)
            pm.Potential("y", height + events * pm.math.log(rate / pivot) - exposure * (rate - pivot))
        return model

    def block(self, stats: Events | None = None) -> Poisson:
        """Return the prior; the posterior is Gamma(a + events, rate b + exposure)."""
        return Poisson(("rate",), "y", np.asarray(self.a), np.asarray(self.b))

    def from_block(self, block: Poisson) -> GammaPoisson:
        """Return the model with another Gamma prior."""
        return self.replaced(a=block.a, b=block.b)

    def predictive(self, stats: Events, data: Arrays) -> NegativeBinomial:
        """Return each row's predictive: negative binomial."""
        later = self.block().updated(stats)
        return NegativeBinomial(later.a[..., None], later.b[..., None], _exposure(data))

    def likelihood(self, params: Params, data: Arrays) -> RowLaw:
        """Return each row's Poisson distribution; a rate of shape (...,) gives (..., rows)."""
        return PoissonRows(np.asarray(params["rate"])[..., None] * _exposure(data))


def _exposure(data: Arrays) -> np.ndarray:
    return np.asarray(data["exposure"]) if "exposure" in data else np.ones(len(data["y"]))
