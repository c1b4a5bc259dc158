"""Overdispersed counts: their log density in the linear predictor, given the overdispersion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from bayeszoo.distributions.special import log_negative_binomial_of_odds
from bayeszoo.families.glm.links import Log, Terms


@dataclass(frozen=True)
class NegativeBinomial(Log):
    """Counts of mean mu = exposure exp(eta) and variance mu + mu^2 / phi; as phi goes to infinity they are Poisson.

    Given ``phi`` the log density is concave in eta.
    """

    phi: float

    code = -1  # not a compiled link: phi is a parameter
    apart = "tells rows whose counts are all 0"

    def terms(self, eta: np.ndarray, outcome: np.ndarray, size: np.ndarray) -> Terms:
        """Return the log density and its derivatives, y q - phi p and (y + phi) p q with p = mu / (mu + phi)."""
        share = eta + np.log(size) - np.log(self.phi)
        p, q = scipy.special.expit(share), scipy.special.expit(-share)
        return Terms(self.log_density(eta, outcome, size), outcome * q - self.phi * p, (outcome + self.phi) * p * q)

    def log_density(self, eta: np.ndarray, outcome: np.ndarray, size: np.ndarray) -> np.ndarray:
        """Return the log density of each row, every constant kept."""
        return log_negative_binomial_of_odds(outcome, self.phi, eta + np.log(size) - np.log(self.phi))
