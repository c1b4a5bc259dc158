"""Priors of mixtures and classifiers: weights of components or classes, and the law of a row in each."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayeszoo.distributions.conjugate.categorical import Categorical
from bayeszoo.distributions.conjugate.product import Expected, Product, Several
from bayeszoo.distributions.statistics.counts import Counts
from bayeszoo.foundation.named import Arrays, Params


class MixturePrior(Product):
    """The prior, or q(theta), of a mixture: of the weights of K components or classes, and of their parameters."""

    @property
    def weights(self) -> Categorical:
        """Prior of the weights, (K,)."""
        weights = self.laws[0]
        assert isinstance(weights, Categorical)
        return weights

    @property
    def law(self) -> Any:
        """Prior of the components, with an axis of K."""
        return self.laws[1]

    def log_terms(self, params: Params, rows: Arrays) -> np.ndarray:
        """Return the log of weight times density, of shape (..., rows, K); leading axes of the parameters are draws."""
        with np.errstate(divide="ignore"):  # log of a weight of 0
            log_weights = np.log(np.asarray(params[self.weights.names[0]], dtype=np.float64))
        return np.asarray(log_weights[..., None, :] + self.law.log_density(params, rows))

    def expected_log_terms(self, rows: Arrays) -> np.ndarray:
        """Return the expectation of `log_terms` under this distribution, of shape (rows, K)."""
        return np.asarray(self.weights.expected_log + self.law.expected_log_density(rows))

    def log_predictive_terms(self, rows: Arrays) -> np.ndarray:
        """Return the log of mean weight times predictive density of each row alone, of shape (rows, K)."""
        mean = self.weights.typical()[self.weights.names[0]]
        return np.asarray(np.log(mean) + self.law.log_predictive(rows))

    def log_evidence(self, stats: Several) -> np.ndarray:
        """Log marginal likelihood of the ordered rows and their components."""
        of_weights, of_law = stats.parts
        return np.asarray(self.weights.log_evidence(of_weights) + self.law.log_evidence(of_law).sum(axis=-1))

    def moments(self, responsibilities: np.ndarray, rows: Arrays) -> Expected[MixturePrior]:
        """Return the expected statistics under ``responsibilities``, of shape (rows, K)."""
        return Expected(
            Several((Counts(responsibilities.sum(axis=0)), self.law.statistics(rows, responsibilities))), self
        )
