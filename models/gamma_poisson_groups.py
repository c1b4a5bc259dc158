r"""Gamma-Poisson groups: event rates of similar groups (partial pooling), from counts and exposures.

    shape ~ Exponential(mean a0)
    rate  ~ Gamma(b1, rate b2)
    lam_j ~ Gamma(shape, rate)                 j = 1..J groups
    y_j   ~ Poisson(exposure_j * lam_j)

Gaver and O'Muircheartaigh 1987; the BUGS example "Pump" has these priors; Gelman et al., BDA3, section 2.7; W4400,
hierarchical models.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import GroupEvents
from bayeszoo.distributions import frozen
from bayeszoo.distributions.conjugate.poisson import Poisson
from bayeszoo.distributions.priors import Gamma, Prior
from bayeszoo.distributions.scale import POSITIVE
from bayeszoo.distributions.special import log_peak
from bayeszoo.distributions.statistics.events import Events
from bayeszoo.model import Conditional, Example, Observable, Posterior, positive
from bayeszoo.model.types import Arrays, DeclaredModel, Params, RowLaw, Simulated

pm = lazy_loader.load("pymc")


@dataclass(frozen=True)
class GammaPoissonGroups(Conditional, Observable):
    """Rates of groups, drawn from one Gamma distribution whose shape and rate are unknown.

    Parameters
    ----------
    a0 : float
        Mean of the exponential prior of the shape, > 0.
    b1, b2 : float
        Shape and rate of the Gamma prior of the rate, > 0.
    """

    a0: float = positive(1.0, "prior mean of the shape")
    b1: float = positive(0.1, "prior shape of the rate")
    b2: float = positive(1.0, "prior rate of the rate")

    inputs = GroupEvents("y")
    dims = {"lam": ("group",)}  # noqa: RUF012
    outer = {"shape": POSITIVE, "rate": POSITIVE}  # noqa: RUF012
    nonnegative = ("lam",)
    examples = (
        Example(
            file="pumps.csv",
            about="failures of ten pumps of a nuclear plant; lam is failures in a thousand hours",
            source="Gaver and O'Muircheartaigh 1987",
            options={"column": "failures", "exposure": "thousand_hours"},
        ),
    )

    @classmethod
    def weak(cls, data: Arrays) -> GammaPoissonGroups:
        """Take an exponential prior of the rate with the mean exposure of an event (half an event where none is)."""
        return cls(b1=1.0, b2=float(max(np.sum(data["y"]), 0.5) / np.sum(data["exposure"])))

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw shape, rate and rates of the groups from the prior, and counts of exposures around the prior's mean."""
        shape, rate = (outer := self.drawn_outer(rng)).values()
        lam = np.maximum(rng.gamma(shape, 1 / rate, size), np.finfo(np.float64).tiny)  # never 0 by rounding
        exposure = rng.uniform(0.5, 2.0, size) * self.b1 / self.b2
        data = {"y": rng.poisson(exposure * lam), "exposure": exposure, "group": np.arange(1, size + 1).astype(str)}
        return {**outer, "lam": lam}, data

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare a rate and a Poisson count for each group."""
        with pm.Model(coords={"group": data["group"]}) as model:
            shape, rate, exposure = self._population(data)
            lam = pm.Gamma("lam", alpha=shape, beta=rate, dims="group")
            pm.Poisson("y", mu=exposure * lam, observed=pm.Data("y_data", data["y"]))
        return model

    def marginalized(self, data: Arrays) -> DeclaredModel:
        """Declare the counts without the rates: negative binomial."""
        with pm.Model() as model:
            shape, rate, exposure = self._population(data)
            observed = pm.Data("y_data", data["y"])
            pm.NegativeBinomial("y", mu=exposure * shape / rate, alpha=shape, observed=observed)
        return model

    def _population(self, data: Arrays) -> tuple[Any, Any, Any]:
        shape, rate = self.declared_outer().values()
        return shape, rate, pm.Data("exposure", data["exposure"])

    @property
    def textbook_priors(self) -> dict[str, Prior]:
        """Exponential, of mean a0, which is Gamma(1, rate 1 / a0); and Gamma(b1, rate b2)."""
        return {"shape": Gamma(1.0, 1 / self.a0), "rate": Gamma(self.b1, self.b2)}

    def outer_guess(self, data: Arrays) -> dict[str, tuple[float, float]]:
        """Guess a shape of 1, and the rate that gives the pooled rate of events."""
        events, exposure = np.sum(data["y"]) + 0.5, np.sum(data["exposure"])
        return {"shape": (1.0, 1.0), "rate": (float(exposure / events) if exposure else self.b1 / self.b2, 1.0)}

    def _rates(self, outer: Params) -> Poisson:
        """Return the conjugate law of each group's count; leading axes of the outer numbers are points."""
        shape, rate = (np.asarray(outer[name])[..., None] for name in ("shape", "rate"))
        return Poisson(("lam",), "y", shape, rate)

    def log_marginal(self, outer: Params, data: Arrays) -> np.ndarray:
        """Return the log probability of the counts: negative binomial."""
        return np.sum(self._rates(outer).log_evidence(_events(data)), axis=-1)

    def posterior_given(self, outer: Params, data: Arrays) -> Posterior:
        """Return lam_j ~ Gamma(shape + y_j, rate + exposure_j)."""
        return Posterior.of_rows("lam", self._rates(outer).updated(_events(data)).marginals()["lam"])

    def predictive_given(self, outer: Params, data: Arrays, places: np.ndarray, rows: Arrays) -> frozen.Frozen:
        """Return the negative binomial distribution of new counts, whose rates have Gamma distributions."""
        shape, rate = (np.asarray(outer[name])[..., None] for name in ("shape", "rate"))
        shape, rate = shape + data["y"][places], rate + data["exposure"][places]
        return frozen.nbinom(shape, rate / (rate + rows["exposure"]))

    def shrinkage(self, outer: Params, data: Arrays) -> np.ndarray:
        """Return rate / (rate + exposure) of each group."""
        return 1 / (1 + np.asarray(data["exposure"]) / np.asarray(outer["rate"])[..., None])

    def likelihood(self, params: Params, data: Arrays) -> RowLaw:
        """Return each group's Poisson distribution."""
        return frozen.poisson(params["lam"] * np.asarray(data["exposure"]))


def _events(data: Arrays) -> Events:
    """Return the events and exposure of each group, which is one row."""
    y = np.asarray(data["y"], dtype=np.float64)
    exposure = np.asarray(data["exposure"], dtype=np.float64)
    return Events(y, exposure, log_peak(y), np.zeros(y.shape))
