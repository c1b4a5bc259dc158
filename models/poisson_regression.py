r"""Poisson regression: counts of events, whose log rate is a weighted sum of features.

    w_j ~ N(0, tau^2)                          of a feature in units of `scale`; the intercept ~ N(m0, s0^2)
    y_n ~ Poisson(exposure_n exp(x_n' w))      n = 1..N; exposure 1 where none is given

The log joint is concave, so that it has one mode. Nelder and Wedderburn 1972; McCullagh and Nelder 1989, section 6.3;
Gelman et al., BDA3, section 16.2; Murphy 2012, section 9.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import lazy_loader
import numpy as np

from bayeszoo.distributions.discrete import LogMeanPoisson
from bayeszoo.errors import NumericalError
from bayeszoo.families.glm.counts import LogLinearCounts
from bayeszoo.families.glm.links import Log
from bayeszoo.families.glm.model import GeneralizedLinear
from bayeszoo.model import Axes, Example
from bayeszoo.model.types import Arrays, DeclaredModel, Params, RowLaw, Simulated

pm, ours = lazy_loader.load("pymc"), lazy_loader.load("bayeszoo.families.glm.declaration", suppress_warning=True)

MOST = 1e15
"""The largest mean for drawing counts: above it, a float cannot tell neighbouring whole numbers apart."""
VARIES, TELLING = 10.0, 0.5
"""How many times a forgotten exposure varies at least, and the correlation of its log with that of the counts."""


@dataclass(frozen=True)
class PoissonRegression(LogLinearCounts, GeneralizedLinear):
    """Counts of events, perhaps of an exposure each, whose log rate is linear in terms with Gaussian weights.

    Parameters
    ----------
    tau : float, or one for each term but the intercept
        Prior standard deviation of the weight of a standardized term, > 0, in logs of the rate.
    s0 : float
        Prior standard deviation of the intercept, > 0, in logs of the rate.
    """

    link = Log()
    predicted_quantity, mean_quantity, ratio_of = "log rate", "rate", "rate"
    dims: ClassVar[Axes] = {"w": ("term",), "rate_ratio": ("slope",)}
    nonnegative = ("rate_ratio",)
    examples = (
        Example(
            "ships.csv",
            "damage incidents of 34 groups of cargo ships by type, years built and period, of months in service",
            "McCullagh and Nelder 1989, section 6.3.2",
            {"target": "incidents", "exposure": "service"},
        ),
        Example(
            "horse_kicks.csv",
            "deaths by horse kick in 14 corps of the Prussian army, 1875 to 1894, as the years go by",
            "Bortkiewicz 1898",
            {"target": "deaths", "features": ["year"]},
        ),
    )

    def remarks(self, stats: Any, data: Arrays) -> tuple[str, ...]:
        """Say which feature may be an exposure that was forgotten."""
        lines = super().remarks(stats, data)
        if "exposure" in data or not self.inputs.size(data):
            return lines
        like = [name for name, x in zip(data["feature"], data["X"].T, strict=True) if _follows(x, data["y"])]
        asks = "counts grow with {0}, which varies tenfold: if it is how long rows were observed, use --exposure {0}"
        return (*lines, *map(asks.format, like))

    def derived(self, params: Params) -> dict[str, np.ndarray]:
        """Return the rate ratios: by how much one more of a feature multiplies the rate."""
        return {"rate_ratio": self.ratios(params)}

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw weights from the prior, standard normal features, and ``size`` counts given both."""
        w, data = self.simulate_weights(rng, size)
        mean = self.link.mean(self.predictor({"w": w}, data))
        if not np.max(mean, initial=0.0) < MOST:
            raise NumericalError("the prior gives counts above 1e15: make tau and s0 smaller", "too_large")
        return {"w": w}, {"y": rng.poisson(mean), **data}

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare the count of each row."""
        with pm.Model(coords=self.coords(data)) as model:
            w = self.declared_weights(data)
            terms = pm.Data("terms", self.design(data), dims=("row", "term"))
            exposure = pm.Data("exposure", self.sizes_of(data).astype(np.float64), dims="row")
            outcome = pm.Data("y_data", self.inputs.outcome(data), dims="row")
            ours.PoissonByLogMean("y", exposure, pm.math.dot(terms, w), outcome)
        return model

    def likelihood(self, params: Params, data: Arrays) -> RowLaw:
        """Return each row's Poisson distribution; parameters of shape (..., own shape) give (..., rows)."""
        return LogMeanPoisson(self.sizes_of(data), self.predictor(params, data))


def _follows(feature: np.ndarray, counts: np.ndarray) -> bool:
    """Say whether counts grow with a feature that is positive and varies tenfold."""
    if not np.min(feature) > 0 or np.max(feature) < VARIES * np.min(feature) or not np.ptp(counts):
        return False
    return bool(np.corrcoef(np.log(feature), np.log(counts + 0.5))[0, 1] > TELLING)
