r"""Beta-Bernoulli: the probability of success from yes/no observations.

    theta ~ Beta(a, b)
    y_n   ~ Bernoulli(theta)        n = 1..N

A table of counts (successes out of trials) is the same model observed through its sufficient statistics. Bayes 1763;
Gelman et al., BDA3, sections 2.1-2.4; Bishop, PRML, section 2.1.1; CS725 lecture 8; W4400, conjugate priors.
"""

from __future__ import annotations

from dataclasses import dataclass

import lazy_loader
import numpy as np
import scipy

from bayeszoo.data.inputs import Binary
from bayeszoo.distributions.conjugate.bernoulli import Bernoulli
from bayeszoo.distributions.discrete import BetaBinomial
from bayeszoo.distributions.special import log_binomial, sum_or_nan
from bayeszoo.distributions.statistics.counts import Trials
from bayeszoo.model import BlockModel, Example, positive
from bayeszoo.model.types import Arrays, DeclaredModel, Params, RowLaw, Simulated

pm = lazy_loader.load("pymc")


@dataclass(frozen=True)
class BetaBernoulli(BlockModel[Trials]):
    """Independent binary observations with a Beta prior on the probability of success.

    Parameters
    ----------
    a, b : float
        Shape parameters of the Beta prior, > 0: like a - 1 successes and b - 1 failures seen before.
    """

    a: float = positive(1.0, "prior a")
    b: float = positive(1.0, "prior b")

    along_points = ("a", "b")
    inputs = Binary("y")
    probabilities = ("theta",)
    examples = (
        Example(
            file="paris_births.csv",
            about="Paris births 1745-1770 by sex; theta is the probability of a boy",
            source="Laplace 1786; BDA3 section 2.4",
            options={"column": "sex", "positive": "boy", "count": "count"},
        ),
        Example("placenta_previa.csv", "girls among 980 births with placenta previa", "BDA3 section 2.4"),
    )

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw theta from the prior and ``size`` observations given it."""
        theta = rng.beta(self.a, self.b)
        return {"theta": theta}, {"y": rng.binomial(1, theta, size=size)}

    def declare(self, data: Arrays) -> DeclaredModel:
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

    def statistics(self, data: Arrays) -> Trials:
        """Count successes and failures."""
        if "y" in data:
            successes = int(np.sum(data["y"]))
            return Trials(successes, len(data["y"]) - successes)
        successes, trials = data["successes"], data["trials"]
        coefficient = float(np.sum(log_binomial(trials, successes)))
        return Trials(int(np.sum(successes)), int(np.sum(trials - successes)), log_coefficient=coefficient)

    def compressed(self, stats: Trials) -> DeclaredModel:
        """Declare the density of the ordered observations from the two counts."""
        with pm.Model() as model:
            theta = pm.Beta("theta", alpha=self.a, beta=self.b)
            successes = pm.Data("success_count", np.float64(stats.successes))
            failures = pm.Data("failure_count", np.float64(stats.failures))
            pm.Potential("y", successes * pm.math.log(theta) + failures * pm.math.log1p(-theta))
        return model

    def block(self, stats: Trials | None = None) -> Bernoulli:
        """Return the prior; the posterior is Beta(a + successes, b + failures)."""
        return Bernoulli(("theta",), "y", np.asarray(self.a), np.asarray(self.b))

    def from_block(self, block: Bernoulli) -> BetaBernoulli:
        """Return the model with another Beta prior."""
        return self.replaced(a=block.a, b=block.b)

    def log_evidence_counts(self, stats: Trials) -> float:
        """Return the log evidence of the counts, in whatever order; NaN where the terms cancel."""
        trials = stats.successes + stats.failures
        pooled = BetaBinomial(trials, self.a, self.b).logpmf(stats.successes)
        return sum_or_nan(float(pooled), -float(log_binomial(trials, stats.successes)), stats.log_coefficient)

    def predictive(self, stats: Trials, data: Arrays) -> BetaBinomial:
        """Return each row's beta-binomial predictive; a row of ``y`` is one trial."""
        trials = np.ones(len(data["y"]), dtype=np.int64) if "y" in data else data["trials"]
        later = self.block().updated(stats)
        return BetaBinomial(trials, later.a[..., None], later.b[..., None])

    def likelihood(self, params: Params, data: Arrays) -> RowLaw:
        """Return each row's Bernoulli or binomial distribution; theta of shape (...,) gives (..., rows)."""
        trials = np.ones(len(data["y"]), dtype=np.int64) if "y" in data else data["trials"]
        return scipy.stats.binom(trials, np.asarray(params["theta"])[..., None])
