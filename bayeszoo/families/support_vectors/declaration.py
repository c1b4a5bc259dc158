"""Outcomes with eps-insensitive noise in PyMC."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayeszoo.families.support_vectors.noise import InsensitiveNoise


def InsensitiveOutcome(
    name: str, location: pt.TensorVariable, eps: np.float64, rate: np.float64, observed: pt.TensorVariable
) -> pt.TensorVariable:
    """Declare outcomes with eps-insensitive noise about their locations, one entry per row."""
    log_height = -np.log(2 * (eps + 1 / rate))

    def log_density(value: pt.TensorVariable, location: pt.TensorVariable) -> pt.TensorVariable:
        return log_height - rate * pt.maximum(pt.abs(value - location) - eps, np.float64(0.0))

    def draw(location: Any, rng: np.random.Generator, size: Any = None) -> np.ndarray:
        return InsensitiveNoise(np.broadcast_to(location, size), eps, rate).rvs(random_state=rng)

    return pm.CustomDist(name, location, logp=log_density, random=draw, observed=observed, dims="row")
