"""Models that are one conjugate block: statistics, posterior, evidence and point estimates follow from it."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np

from bayeszoo.distributions.conjugate.law import Block
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.distributions.statistics.base import Stats
from bayeszoo.model.capabilities import Conjugate, Observable, PointEstimates


class BlockModel[S: Stats](Conjugate[S], PointEstimates[S], Observable, family=True):
    """A model whose prior is a conjugate block: a subclass says which, and what fields a block stands for."""

    @abstractmethod
    def block(self, stats: S) -> Block[S]:
        """Return the prior of data with these statistics, whose sizes it needs."""

    @abstractmethod
    def from_block(self, block: Any) -> Self:
        """Return the model whose prior is a block."""

    def posterior(self, stats: S) -> Posterior:
        """Return the posterior, of the prior's family."""
        return self.block(stats).updated(stats).posterior()

    def log_evidence(self, stats: S) -> float:
        """Return the log marginal likelihood of the ordered data, with every constant."""
        return float(np.sum(self.block(stats).log_evidence(stats)))

    def updated(self, stats: S) -> Self:
        """Return the model whose prior is this model's posterior."""
        return self.from_block(self.block(stats).updated(stats))

    def free_parameters(self, stats: S) -> int:
        """Return how many numbers the likelihood is maximized over."""
        return self.block(stats).free_parameters

    def map(self, stats: S) -> dict[str, Any]:
        """Return the mode of the posterior in the constrained space, which may lie on an edge."""
        return _plain(self.block(stats).updated(stats).mode())

    def mle(self, stats: S) -> dict[str, Any]:
        """Return the maximum of the likelihood."""
        return _plain(self.block(stats).mle(stats))


def _plain(params: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return arrays of one number as numbers."""
    return {name: np.asarray(value)[()] for name, value in params.items()}
