r"""Normal means: effects of groups that are alike, each measured with a known standard error.

    tau     ~ HalfCauchy(t0),  mu ~ N(m0, s0^2)
    theta_j ~ N(mu, tau^2)          j = 1..J groups
    y_j     ~ N(theta_j, se_j^2)    the standard errors se_j are known

Given tau all else is Gaussian, so all is exact by quadrature over tau alone. Rubin 1981; Gelman et al., BDA3, sections
5.4 and 5.5; Efron and Morris 1975; W4400, hierarchical models.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import GroupMeans
from bayeszoo.distributions import frozen
from bayeszoo.distributions.priors import HalfCauchy, Normal, Prior
from bayeszoo.distributions.scale import POSITIVE, REAL
from bayeszoo.model import Conditional, Example, Observable, Posterior, Values, positive, real

pm = lazy_loader.load("pymc")


@dataclass(frozen=True)
class NormalMeans(Conditional, Observable):
    """Effects of groups, drawn from one normal distribution whose mean and standard deviation are unknown.

    Parameters
    ----------
    m0, s0 : float
        Mean and standard deviation of the normal prior of mu.
    t0 : float
        Scale, and median, of the half-Cauchy prior of tau, the standard deviation of the effects, > 0.
    centred : bool
        Whether `declare` has effects as variables, or deviations in units of tau, whose funnel NUTS samples better.
    """

    m0: float = real(0.0, "prior mean", units=1, location=True)
    s0: float = positive(1.0, "prior sd", units=1)
    t0: float = positive(1.0, "prior scale of tau", units=1)
    centred: bool = True

    inputs = GroupMeans("y")
    dims = {"theta": ("group",)}  # noqa: RUF012
    outer = {"mu": REAL, "tau": POSITIVE}  # noqa: RUF012
    quadrature = ("tau",)
    examples = (
        Example(
            file="eight_schools.csv",
            about="effects of coaching on test scores in eight schools; theta is in points of the test",
            source="Rubin 1981",
            options={"column": "effect"},
        ),
    )

    @classmethod
    def weak(cls, data: Values) -> NormalMeans:
        """Take a wide prior about the mean of the estimates, and their spread as the scale of tau."""
        mean, spread = _mean_and_spread(data)
        return cls(m0=mean, s0=10 * spread, t0=spread)

    def simulate(self, rng: np.random.Generator, size: int = 20) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Draw mu, tau and effects from the prior, and estimates whose standard errors are near t0."""
        outer = self.drawn_outer(rng)
        theta, se = rng.normal(outer["mu"], outer["tau"], size), self.t0 * rng.uniform(0.5, 2.0, size)
        data = {"y": rng.normal(theta, se), "se": se, "group": np.arange(1, size + 1).astype(str)}
        return {**outer, "theta": theta}, data

    def declare(self, data: Values) -> Any:
        """Declare the effects, and a normal estimate of each."""
        with pm.Model(coords={"group": data["group"]}) as model:
            mu, tau = self.declared_outer().values()
            if self.centred:
                theta = pm.Normal("theta", mu=mu, sigma=tau, dims="group")
            else:
                deviation = pm.Normal("deviation", mu=np.float64(0), sigma=np.float64(1), dims="group")
                theta = pm.Deterministic("theta", mu + tau * deviation, dims="group")
            pm.Normal("y", mu=theta, sigma=pm.Data("se", data["se"]), observed=pm.Data("y_data", data["y"]))
        return model

    def marginalized(self, data: Values) -> Any:
        """Declare the estimates about mu, their variances tau^2 + se^2."""
        with pm.Model() as model:
            mu, tau = self.declared_outer().values()
            sigma = pm.math.sqrt(tau**2 + pm.Data("se", data["se"]) ** 2)
            pm.Normal("y", mu=mu, sigma=sigma, observed=pm.Data("y_data", data["y"]))
        return model

    @property
    def textbook_priors(self) -> dict[str, Prior]:
        """N(m0, s0^2) of mu, and HalfCauchy(t0) of tau."""
        return {"mu": Normal(self.m0, self.s0), "tau": HalfCauchy(self.t0)}

    def outer_guess(self, data: Values) -> dict[str, tuple[float, float]]:
        """Guess mu by the mean of the estimates and tau by their spread; without any by the prior."""
        mean, spread = _mean_and_spread(data) if len(data["y"]) else (self.m0, self.s0)
        return {"mu": (mean, spread), "tau": (spread, 1.0)}

    def log_marginal(self, outer: Values, data: Values) -> Any:
        """Return the log density of the estimates, y_j ~ N(mu, tau^2 + se_j^2), given tau alone with mu integrated."""
        if "mu" in outer:
            return self._about(outer["mu"], outer, data).logpdf(data["y"]).sum(axis=-1)
        mean, sd = self._mu(*_weights(outer, data).sum(axis=-1))
        given_mu = self._about(mean, outer, data).logpdf(data["y"])
        at_mean = self.log_outer_prior({"mu": mean}) - frozen.norm(mean, sd).logpdf(mean)  # Bayes' theorem
        return given_mu.sum(axis=-1) + at_mean

    def _about(self, mu: Any, outer: Values, data: Values) -> Any:
        """Return the distribution of each estimate about mu, effects integrated out."""
        return frozen.norm(np.asarray(mu)[..., None], np.hypot(np.asarray(outer["tau"])[..., None], data["se"]))

    def _mu(self, weight: np.ndarray, weighted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and sd of mu given tau, by the sums of the estimates' weights and of the weighted estimates."""
        prior = self.outer_priors["mu"]
        assert isinstance(prior, Normal)  # else mu is among the outer parameters that are given
        precision = weight + prior.sd**-2
        return (weighted + prior.mean * prior.sd**-2) / precision, precision**-0.5

    def posterior_given(self, outer: Values, data: Values) -> Posterior:
        """Return theta_j ~ N(y_j + B_j (mu - y_j), B_j tau^2), B_j the shrinkage; without mu it adds B_j its sd."""
        tau, y, shrinkage = np.asarray(outer["tau"])[..., None], np.asarray(data["y"]), self.shrinkage(outer, data)

        def effects(mu: Any, sd: Any = 0.0) -> Any:
            own = np.maximum(np.hypot(tau * np.sqrt(shrinkage), shrinkage * sd), np.finfo(np.float64).tiny)
            return frozen.norm(y + shrinkage * (mu[..., None] - y), own)

        if "mu" in outer:
            return Posterior.of_rows("theta", effects(np.asarray(outer["mu"])))
        mean, sd = self._mu(*_weights(outer, data).sum(axis=-1))
        given_mu = lambda mu: self.posterior_given({**outer, "mu": mu}, data)  # noqa: E731
        return Posterior.chained("mu", frozen.norm(mean, sd), given_mu, {"theta": effects(mean, sd[..., None])})

    def predictive_given(self, outer: Values, data: Values, places: np.ndarray, rows: Values) -> Any:
        """Return the normal distribution of new estimates about their groups' effects, which are normal too."""
        theta = self.posterior_given(outer, data)["theta"]
        return frozen.norm(theta.mean()[..., places], np.hypot(theta.std()[..., places], rows["se"]))

    def held_out(self, params: Values, seen: Values, places: np.ndarray) -> Any:
        """Return the normal distribution of each estimate about mu, which the other estimates tell if it is unknown."""
        if "mu" in params:
            return super().held_out(params, seen, places)
        mean, sd = self._mu(*_of_others(_weights(params, seen)))
        own = np.hypot(np.asarray(params["tau"])[..., None], np.asarray(seen["se"])[places])
        return frozen.norm(mean[..., places], np.hypot(sd[..., places], own))

    def shrinkage(self, outer: Values, data: Values) -> Any:
        """Return se^2 / (se^2 + tau^2) of each group."""
        return 1 / (1 + np.square(np.asarray(outer["tau"])[..., None] / data["se"]))

    def likelihood(self, params: Values, data: Values) -> Any:
        """Return each estimate's normal distribution about its group's effect."""
        return frozen.norm(params["theta"], np.asarray(data["se"]))


def _mean_and_spread(data: Values) -> tuple[float, float]:
    return float(np.mean(data["y"])), float(np.hypot(np.std(data["y"]), np.mean(data["se"])))


def _weights(outer: Values, data: Values) -> np.ndarray:
    """Return 1 / (tau^2 + se^2) of each estimate, the weight that it has in mu, and its product with the estimate."""
    weight = 1 / (np.square(outer["tau"])[..., None] + np.square(data["se"]))
    return np.array([weight, weight * data["y"]])


def _of_others(values: np.ndarray) -> np.ndarray:
    """Return the sum of all other entries beside each, along the last axis, where a difference would lose digits."""
    none = np.zeros_like(values[..., :1])
    before = np.cumsum(np.concatenate([none, values[..., :-1]], axis=-1), axis=-1)
    after = np.cumsum(np.concatenate([none, values[..., :0:-1]], axis=-1), axis=-1)[..., ::-1]
    return before + after
