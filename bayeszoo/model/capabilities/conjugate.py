"""Steps of EM and variational Bayes of models whose parameters are conjugate given the latent variables."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from bayeszoo.distributions.conjugate.product import Expected, Factors, Product
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.foundation.named import Arrays, Params, Statistics
from bayeszoo.model.capabilities import EM, Additive, Variational


class ConjugateSteps[P: Product](EM, Variational, Additive, family=True):
    """EM and variational Bayes of a model whose prior is a product of conjugate laws; a subclass gives the E-steps."""

    @abstractmethod
    def new_prior(self, data: Arrays) -> P:
        """Return the prior of all parameters, which depends on the sizes of the data alone."""

    def prior(self, data: Arrays) -> P:
        """Return `new_prior` from a cache: every step needs it."""
        cache: dict[Any, P] = self.__dict__.setdefault("_priors", {})  # an attribute besides the frozen fields
        sizes = tuple(self.sizes(data).values())
        if sizes not in cache:
            cache[sizes] = self.new_prior(data)
        return cache[sizes]

    @property
    @abstractmethod
    def has_few_orders(self) -> bool:
        """Whether q(theta) can be averaged over all orders of the component labels: components are few."""

    @abstractmethod
    def resampled(self, params: Params, data: Arrays, count: float, rng: np.random.Generator) -> Factors[P]:
        """Return q(theta), the posterior given assignments drawn under the parameters; rows count ``count`` times."""

    @abstractmethod
    def log_likelihoods(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the log density of all rows; leading axes of the parameters are draws."""

    def m_step(self, stats: Expected[P], flat: bool = False) -> dict[str, np.ndarray]:
        """Return the mode of the posterior given expected statistics or, with ``flat``, of the likelihood."""
        return stats.prior.mle(stats.stats) if flat else stats.posterior().mode()

    def pooled(self, stats: Expected[P], other: Expected[P]) -> Expected[P]:
        """Return the expected statistics of two parts of the data."""
        return stats.pooled(other)

    def log_prior(self, params: Params, data: Arrays) -> np.ndarray:
        """Log density of the prior; leading axes of the parameters are draws."""
        return np.asarray(self.prior(data).logpdf(params))

    def free_parameters(self, stats: Statistics) -> int:
        """Return the number of free parameters."""
        return self.prior(stats).free_parameters

    def alone(self, data: Arrays) -> Expected[P] | None:
        """Return the statistics of all rows if nothing is latent, as with one component; else None."""
        return None

    def moments_below(self, data: Arrays) -> float:
        """Return the order below which moments of a new row exist: a component without rows keeps its prior."""
        alone = self.alone(data)
        return self.prior(data).moments_below if alone is None else alone.posterior().moments_below

    def vb_m_step(self, stats: Expected[P]) -> Factors[P]:
        """Return q(theta), the posterior given expected statistics."""
        return Factors(stats.posterior(), stats.prior)

    def divergence(self, q: Factors[P]) -> float:
        """Return KL(q(theta) || prior) in nats."""
        return q.divergence

    def vb_posterior(self, q: Factors[P]) -> Posterior:
        """Return q(theta): the parameters of different laws are independent."""
        return q.q.posterior()
