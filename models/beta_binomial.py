r"""Beta-binomial: success rates of similar groups (partial pooling), from successes and trials.

    mean    ~ Beta(a, b)
    size    ~ Pareto(shape, 1)
    theta_j ~ Beta(mean * size, (1 - mean) * size)        j = 1..J groups
    y_j     ~ Binomial(n_j, theta_j)

Of n trials of a new group, as many as n / (n + size) of its own share count. With shape 1/2 the prior of the size is
that of Gelman et al., BDA3, section 5.3, (alpha + beta)^(-5/2), made proper. Tarone 1982; W4400, hierarchical models.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import lazy_loader
import numpy as np
import scipy

from bayeszoo.data.inputs import GroupTrials
from bayeszoo.distributions import discrete, frozen
from bayeszoo.distributions.conjugate.bernoulli import Bernoulli
from bayeszoo.distributions.priors import Beta, Pareto, Prior
from bayeszoo.distributions.scale import POSITIVE, UNIT
from bayeszoo.distributions.statistics.counts import Trials
from bayeszoo.model import Conditional, Example, Observable, Posterior, positive
from bayeszoo.model.types import Arrays, DeclaredModel, Params, RowLaw, Simulated

pm = lazy_loader.load("pymc")


@dataclass(frozen=True)
class BetaBinomial(Conditional, Observable):
    """Chances of groups, drawn from one Beta distribution whose mean and size are unknown.

    Parameters
    ----------
    a, b : float
        Parameters of the Beta prior of the mean, > 0: like a successes and b failures seen before.
    shape : float
        Of the Pareto prior of the size, which is at least 1, > 0: P(size > x) = x^-shape.
    """

    a: float = positive(1.0, "prior successes")
    b: float = positive(1.0, "prior failures")
    shape: float = positive(0.5, "prior shape of the size")

    inputs = GroupTrials("successes")
    dims = {"theta": ("group",)}  # noqa: RUF012
    outer = {"mean": UNIT, "size": POSITIVE}  # noqa: RUF012
    complements = {"mean": "mean_of_failures"}  # noqa: RUF012
    nonnegative, probabilities = ("alpha", "beta"), ("theta",)
    examples = (
        Example(
            file="rat_tumours.csv",
            about="rats with a tumour among those of 71 control groups; theta is the chance of a tumour",
            source="Tarone 1982",
            options={"successes": "tumours", "trials": "rats"},
        ),
    )

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw mean, size and chances from the prior, and successes of 5 to 49 trials of each group."""
        mean, own_size = (outer := self.drawn_outer(rng)).values()
        theta, trials = rng.beta(mean * own_size, (1 - mean) * own_size, size), rng.integers(5, 50, size)
        theta = np.clip(theta, np.finfo(np.float64).tiny, 1 - np.finfo(np.float64).epsneg)  # never 0 or 1 by rounding
        data = {"successes": rng.binomial(trials, theta), "trials": trials, "group": np.arange(1, size + 1).astype(str)}
        return {**outer, "theta": theta}, data

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare a chance and a binomial count for each group."""
        with pm.Model(coords={"group": data["group"]}) as model:
            alpha, beta, trials = self._population(data)
            theta = pm.Beta("theta", alpha=alpha, beta=beta, dims="group")
            pm.Binomial("successes", n=trials, p=theta, observed=pm.Data("successes_data", data["successes"]))
        return model

    def marginalized(self, data: Arrays) -> DeclaredModel:
        """Declare the counts without the chances: beta-binomial."""
        with pm.Model() as model:
            alpha, beta, trials = self._population(data)
            observed = pm.Data("successes_data", data["successes"])
            pm.BetaBinomial("successes", n=trials, alpha=alpha, beta=beta, observed=observed)
        return model

    def _population(self, data: Arrays) -> tuple[Any, Any, Any]:
        mean, size = self.declared_outer().values()
        return mean * size, (1 - mean) * size, pm.Data("trials", data["trials"])

    def log_coefficient(self, data: Arrays) -> float:
        """Return the log of how many orders the successes of each group may have among its trials."""
        y, n = np.asarray(data["successes"]), np.asarray(data["trials"])
        return float(np.sum(-np.log1p(n) - scipy.special.betaln(n - y + 1, y + 1)))

    @property
    def textbook_priors(self) -> dict[str, Prior]:
        """Beta(a, b) of the mean, and Pareto(shape, 1) of the size."""
        return {"mean": Beta(self.a, self.b), "size": Pareto(self.shape, 1.0)}

    def outer_guess(self, data: Arrays) -> dict[str, tuple[float, float]]:
        """Guess the mean by the share of all trials, and a size of 10."""
        share = (np.sum(data["successes"]) + self.a) / (np.sum(data["trials"]) + self.a + self.b)
        return {"mean": (float(share), 0.5), "size": (11.0, 1.0)}

    def log_marginal(self, outer: Params, data: Arrays) -> np.ndarray:
        """Return the log probability of the ordered trials of all groups."""
        return np.sum(_chances(outer).log_evidence(_trials(data)), axis=-1)

    def posterior_given(self, outer: Params, data: Arrays) -> Posterior:
        """Return theta_j ~ Beta(mean size + y_j, (1 - mean) size + n_j - y_j)."""
        return Posterior.of_rows("theta", _chances(outer).updated(_trials(data)).marginals()["theta"])

    def predictive_given(self, outer: Params, data: Arrays, places: np.ndarray, rows: Arrays) -> Any:
        """Return the beta-binomial distribution of new successes, whose chances have Beta distributions."""
        alpha, beta = _counts(outer)
        y, n = data["successes"][places], data["trials"][places]
        return discrete.BetaBinomial(rows["trials"], alpha + y, beta + (n - y))

    def shrinkage(self, outer: Params, data: Arrays) -> np.ndarray:
        """Return size / (size + n) of each group."""
        return 1 / (1 + np.asarray(data["trials"]) / np.asarray(outer["size"])[..., None])

    def likelihood(self, params: Params, data: Arrays) -> RowLaw:
        """Return each group's binomial distribution."""
        return frozen.binom(np.asarray(data["trials"]), params["theta"])

    def derived(self, params: Params) -> dict[str, np.ndarray]:
        """Return alpha and beta of the Beta distribution that the chances are drawn from."""
        alpha, beta = _counts(params)
        return {"alpha": alpha[..., 0], "beta": beta[..., 0]}


def _counts(outer: Params) -> tuple[np.ndarray, np.ndarray]:
    size = np.asarray(outer["size"])[..., None]
    return np.asarray(outer["mean"])[..., None] * size, _failures(outer)[..., None] * size


def _failures(outer: Params) -> np.ndarray:
    """Return 1 less the mean: not 0 where the mean rounds to 1, if it is known better."""
    return np.asarray(outer["mean_of_failures"] if "mean_of_failures" in outer else 1 - np.asarray(outer["mean"]))


def _chances(outer: Params) -> Bernoulli:
    """Return the conjugate law of each group's trials; leading axes of the outer numbers are points."""
    return Bernoulli(("theta",), "successes", *_counts(outer))


def _trials(data: Arrays) -> Trials:
    return Trials(np.asarray(data["successes"]), np.subtract(data["trials"], data["successes"]))
