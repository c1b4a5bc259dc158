r"""Normal means: effects in similar groups (partial pooling), from estimates with known standard errors.

    tau     ~ HalfCauchy(t0),  mu ~ N(m0, s0^2)
    theta_j ~ N(mu, tau^2)          j = 1..J groups
    y_j     ~ N(theta_j, se_j^2)    the standard errors se_j are known

Given tau all is Gaussian: it is exact by quadrature over tau. Rubin 1981; BDA3, 5.4; W4400, hierarchical models.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import GroupMeans
from bayeszoo.distributions import frozen, special
from bayeszoo.distributions.priors import HalfCauchy, Normal, Prior
from bayeszoo.distributions.scale import POSITIVE, REAL
from bayeszoo.model import Conditional, Example, Observable, Posterior, positive, real
from bayeszoo.model.types import Arrays, DeclaredModel, Params, RowLaw, Simulated

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
    def weak(cls, data: Arrays) -> NormalMeans:
        """Take a wide prior about the mean of the estimates, and their spread as the scale of tau."""
        mean, spread = float(np.mean(data["y"])), float(np.hypot(np.std(data["y"]), np.mean(data["se"])))
        return cls(m0=mean, s0=10 * spread, t0=spread)

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw mu, tau and effects from the prior, and estimates whose standard errors are near t0."""
        outer = self.drawn_outer(rng)
        theta, se = rng.normal(outer["mu"], outer["tau"], size), self.t0 * rng.uniform(0.5, 2.0, size)
        data = {"y": rng.normal(theta, se), "se": se, "group": np.arange(1, size + 1).astype(str)}
        return {**outer, "theta": theta}, data

    def declare(self, data: Arrays) -> DeclaredModel:
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

    def marginalized(self, data: Arrays) -> DeclaredModel:
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

    def outer_guess(self, data: Arrays) -> dict[str, tuple[float, float]]:
        """Guess mu by the mean of the estimates and tau by their spread; without any by the prior."""
        rough = self.weak(data) if len(data["y"]) else self
        return {"mu": (rough.m0, rough.t0), "tau": (rough.t0, 1.0)}

    def log_marginal(self, outer: Params, data: Arrays) -> np.ndarray:
        """Return the log density of the estimates, y_j ~ N(mu, tau^2 + se_j^2), given tau alone with mu integrated."""
        mean, sd = self._mu(outer, data)
        own = np.hypot(np.asarray(outer["tau"])[..., None], data["se"])
        given_mu = frozen.norm(mean[..., None], own).logpdf(data["y"]).sum(axis=-1)
        if "mu" in outer:
            return given_mu
        return given_mu + self.log_outer_prior({"mu": mean}) - frozen.norm(mean, sd).logpdf(mean)  # Bayes' theorem

    def _mu(self, outer: Params, data: Arrays, total: Any = np.sum) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and sd of mu given tau and all estimates, or all but each where ``total`` sums all others."""
        if "mu" in outer:
            return np.asarray(outer["mu"]), np.zeros(np.shape(outer["mu"]))
        prior: Any = self.outer_priors["mu"]  # a normal one: else mu is among the outer parameters
        weight = 1 / (np.square(outer["tau"])[..., None] + np.square(data["se"]))
        return prior.posterior(total(weight, axis=-1), total(weight * data["y"], axis=-1))

    def posterior_given(self, outer: Params, data: Arrays) -> Posterior:
        """Return theta_j ~ N(y_j + B_j (mu - y_j), B_j tau^2), B_j the shrinkage; without mu it adds B_j its sd."""
        tau, y, shrinkage = np.asarray(outer["tau"])[..., None], np.asarray(data["y"]), self.shrinkage(outer, data)
        mean, sd = self._mu(outer, data)
        own = np.maximum(np.hypot(tau * np.sqrt(shrinkage), shrinkage * sd[..., None]), np.finfo(np.float64).tiny)
        theta = frozen.norm(y + shrinkage * (mean[..., None] - y), own)
        if "mu" in outer:
            return Posterior.of_rows("theta", theta)
        given_mu = lambda mu: self.posterior_given({**outer, "mu": mu}, data)  # noqa: E731
        return Posterior.chained("mu", frozen.norm(mean, sd), given_mu, {"theta": theta})

    def predictive_given(self, outer: Params, data: Arrays, places: np.ndarray, rows: Arrays) -> frozen.Frozen:
        """Return the normal distribution of new estimates about their groups' effects, which are normal too."""
        theta = self.posterior_given(outer, data)["theta"]
        return frozen.norm(theta.mean()[..., places], np.hypot(theta.std()[..., places], rows["se"]))

    def held_out(self, params: Params, seen: Arrays, places: np.ndarray) -> RowLaw:
        """Return the normal distribution of each estimate about mu, which the other estimates tell if it is unknown."""
        if "mu" in params:
            return super().held_out(params, seen, places)
        mean, sd = self._mu(params, seen, special.sum_of_others)
        own = np.hypot(np.asarray(params["tau"])[..., None], np.asarray(seen["se"])[places])
        return frozen.norm(mean[..., places], np.hypot(sd[..., places], own))

    def shrinkage(self, outer: Params, data: Arrays) -> np.ndarray:
        """Return se^2 / (se^2 + tau^2) of each group."""
        return 1 / (1 + np.square(np.asarray(outer["tau"])[..., None] / data["se"]))

    def likelihood(self, params: Params, data: Arrays) -> RowLaw:
        """Return each estimate's normal distribution about its group's effect."""
        return frozen.norm(params["theta"], np.asarray(data["se"]))
