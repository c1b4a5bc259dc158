"""Steps of EM and variational Bayes of models whose parameters are conjugate given the latent variables."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from bayeszoo.distributions.conjugate.product import Expected, Factors, Product
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.model.capabilities import EM, Additive, Variational


class ConjugateSteps[P: Product](EM, Variational, Additive, family=True):
    """EM and variational Bayes of a model whose prior is a product of conjugate laws; a subclass gives the E-steps."""

    @abstractmethod
    def new_prior(self, data: Arrays) -> P:
        """Return the prior of all parameters, which depends on the sizes of the data alone."""

    def prior(self, data: Arrays) -> P:
        """Return the same, kept: every step asks for it."""
        kept: dict[Any, P] = self.__dict__.setdefault("_priors", {})  # in addition to the fields, which are fixed
        sizes = tuple(self.sizes(data).values())
        if sizes not in kept:
            kept[sizes] = self.new_prior(data)
        return kept[sizes]

    @property
    @abstractmethod
    def has_few_orders(self) -> bool:
        """Whether components are few enough for q(theta) to be averaged over the orders of their labels."""

    @abstractmethod
    def resampled(self, params: Params, data: Arrays, count: float, rng: np.random.Generator) -> Factors[P]:
        """Return q(theta), the posterior given assignments drawn under the parameters, each row counting so much."""

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

    def free_parameters(self, stats: Any) -> int:
        """Return how many numbers the parameters are that are not known."""
        return self.prior(stats).free_parameters

    def alone(self, data: Arrays) -> Expected[P] | None:
        """Return the statistics of all rows where nothing is latent, as of one component; None where something is."""
        return None

    def moments_below(self, data: Arrays) -> float:
        """Return the order below which moments of a new row exist: what may have no row keeps its prior."""
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
