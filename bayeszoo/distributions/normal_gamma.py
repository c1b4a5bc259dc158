"""The normal-gamma distribution of the mean and the precision of a Gaussian."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from bayeszoo.distributions import frozen
from bayeszoo.distributions.posterior import Posterior


def normal_gamma(mean: float, kappa: float, shape: float, rate: float) -> Posterior:
    """Return the joint distribution of ``mu`` and ``lam``: lam ~ Gamma(shape, rate), mu ~ N(mean, 1 / (kappa lam)).

    Parameters
    ----------
    mean : float
        Centre of mu.
    kappa : float
        How many observations mu is known from, > 0.
    shape, rate : float
        Of the Gamma distribution of the precision, > 0.

    Returns
    -------
    Posterior
        The marginals are Student t with ``2 * shape`` degrees of freedom, and Gamma.
    """
    lam = frozen.gamma(shape, scale=1 / rate)
    mu = frozen.t(2 * shape, mean, math.sqrt(rate / (shape * kappa)))

    def draw(size: tuple[int, ...], rng: np.random.Generator) -> dict[str, Any]:
        precision = rng.gamma(shape, 1 / rate, size or None)
        return {"mu": rng.normal(mean, (kappa * precision) ** -0.5), "lam": precision}

    def log_density(params: Mapping[str, Any]) -> float:
        given = frozen.norm(mean, (kappa * params["lam"]) ** -0.5)
        return float(given.logpdf(params["mu"]) + lam.logpdf(params["lam"]))

    return Posterior({"mu": mu, "lam": lam}, draw, log_density)
