r"""Beta-Bernoulli: the probability of success from yes/no observations.

    theta ~ Beta(a, b)
    y_n   ~ Bernoulli(theta)        n = 1..N

A table of counts (successes out of trials) is the same model observed through its sufficient statistics. Bayes 1763;
Gelman et al., BDA3, sections 2.1-2.4; Bishop, PRML, section 2.1.1; CS725 lecture 8; W4400, conjugate priors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import lazy_loader
import numpy as np
import scipy

from bayeszoo.data.inputs import Binary
from bayeszoo.distributions import frozen
from bayeszoo.distributions.discrete import BetaBinomial
from bayeszoo.distributions.special import log_beta_ratio, log_binomial, sum_or_nan
from bayeszoo.errors import NumericalError
from bayeszoo.model import Conjugate, Example, Observable, PointEstimates, Posterior, Stats, Values, positive

pm = lazy_loader.load("pymc")


@dataclass(frozen=True)
class Counts(Stats):
    """Sufficient statistics: how many successes and failures."""

    successes: int = 0
    failures: int = 0


@dataclass(frozen=True)
class BetaBernoulli(Conjugate[Counts], PointEstimates[Counts], Observable):
    """Independent binary observations with a Beta prior on the probability of success.

    Parameters
    ----------
    a, b : float
        Shape parameters of the Beta prior, > 0: like a - 1 successes and b - 1 failures seen before.
    """

    a: float = positive(1.0, "prior a")
    b: float = positive(1.0, "prior b")

    inputs = Binary("y")
    examples = (
        Example(
            file="paris_births.csv",
            about="Paris births 1745-1770 by sex; theta is the probability of a boy",
            source="Laplace 1786; BDA3 section 2.4",
            options={"column": "sex", "positive": "boy", "count": "count"},
        ),
        Example("placenta_previa.csv", "girls among 980 births with placenta previa", "BDA3 section 2.4"),
    )

    def simulate(self, rng: np.random.Generator, size: int = 20) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Draw theta from the prior and ``size`` observations given it."""
        theta = rng.beta(self.a, self.b)
        return {"theta": theta}, {"y": rng.binomial(1, theta, size=size)}

    def declare(self, data: Values) -> Any:
        """Declare Bernoulli observations ``y``, or Binomial ``successes`` out of ``trials``, one a row."""
        with pm.Model() as model:
            theta = pm.Beta("theta", alpha=self.a, beta=self.b)
            if "y" in data:
                pm.Bernoulli("y", p=theta, observed=pm.Data("y_data", data["y"], dims="row"), dims="row")
            else:
                trials = pm.Data("trials", data["trials"], dims="row")
                successes = pm.Data("successes_data", data["successes"], dims="row")
                pm.Binomial("successes", n=trials, p=theta, observed=successes, dims="row")
        return model

    def statistics(self, data: Values) -> Counts:
        """Count successes and failures."""
        if "y" in data:
            successes = int(np.sum(data["y"]))
            return Counts(successes, len(data["y"]) - successes)
        successes, trials = data["successes"], data["trials"]
        coefficient = float(np.sum(log_binomial(trials, successes)))
        return Counts(int(np.sum(successes)), int(np.sum(trials - successes)), log_coefficient=coefficient)

    def compressed(self, stats: Counts) -> Any:
        """Declare the density of the ordered observations from the two counts."""
        with pm.Model() as model:
            theta = pm.Beta("theta", alpha=self.a, beta=self.b)
            successes = pm.Data("success_count", np.float64(stats.successes))
            failures = pm.Data("failure_count", np.float64(stats.failures))
            pm.Potential("y", successes * pm.math.log(theta) + failures * pm.math.log1p(-theta))
        return model

    def posterior(self, stats: Counts) -> Posterior:
        """Return theta ~ Beta(a + successes, b + failures)."""
        return Posterior({"theta": frozen.beta(self.a + stats.successes, self.b + stats.failures)})

    def log_evidence(self, stats: Counts) -> float:
        """Return log B(a + successes, b + failures) - log B(a, b), of the ordered observations."""
        return float(log_beta_ratio(self.a, self.b, stats.successes, stats.failures))

    def log_evidence_counts(self, stats: Counts) -> float:
        """Return the log evidence of the counts, in whatever order; NaN where the terms cancel."""
        trials = stats.successes + stats.failures
        pooled = BetaBinomial(trials, self.a, self.b).logpmf(stats.successes)
        return sum_or_nan(float(pooled), -float(log_binomial(trials, stats.successes)), stats.log_coefficient)

    def predictive(self, stats: Counts, data: Values) -> Any:
        """Return each row's beta-binomial predictive; a row of ``y`` is one trial."""
        trials = np.ones(len(data["y"]), dtype=np.int64) if "y" in data else data["trials"]
        return BetaBinomial(trials, self.a + stats.successes, self.b + stats.failures)

    def updated(self, stats: Counts) -> BetaBernoulli:
        """Return the model whose prior is this posterior."""
        return replace(self, a=self.a + stats.successes, b=self.b + stats.failures)

    def likelihood(self, params: Values, data: Values) -> Any:
        """Return each row's Bernoulli or binomial distribution; theta of shape (...,) gives (..., rows)."""
        trials = np.ones(len(data["y"]), dtype=np.int64) if "y" in data else data["trials"]
        return scipy.stats.binom(trials, np.asarray(params["theta"])[..., None])

    def free_parameters(self, stats: Counts) -> int:
        """Return 1."""
        return 1

    def map(self, stats: Counts) -> dict[str, Any]:
        """Return the mode (a + successes - 1) / (a + b + N - 2), or the edge where the density is highest.

        Raises
        ------
        NumericalError
            When the posterior has no mode: flat, or unbounded at 0 or 1.
        """
        a, b = float(self.a) + stats.successes, float(self.b) + stats.failures
        if min(a, b) < 1:
            raise NumericalError(f"no mode: Beta({a:g}, {b:g}) is unbounded at theta = {0 if a < 1 else 1}")
        if a == b == 1:
            raise NumericalError("no mode: the posterior of theta is flat")
        return {"theta": (a - 1) / (a + b - 2)}

    def mle(self, stats: Counts) -> dict[str, Any]:
        """Return successes / N."""
        total = stats.successes + stats.failures
        if total == 0:
            raise NumericalError("no maximum-likelihood estimate: there are no observations")
        return {"theta": stats.successes / total}
