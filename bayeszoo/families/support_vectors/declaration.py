"""Outcomes with eps-insensitive noise in PyMC."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayeszoo.families.support_vectors.noise import InsensitiveNoise


def InsensitiveOutcome(name: str, location: Any, eps: Any, rate: Any, observed: Any) -> Any:
    """Declare outcomes about their locations, one entry a row."""

    def log_density(value: Any, location: Any, eps: Any, rate: Any) -> Any:
        excess = pt.maximum(pt.abs(value - location) - eps, np.float64(0.0))
        return -rate * excess - pt.log(np.float64(2.0) * (eps + np.float64(1.0) / rate))

    def draw(location: Any, eps: Any, rate: Any, rng: np.random.Generator, size: Any = None) -> Any:
        return InsensitiveNoise(np.broadcast_to(location, size), float(eps), float(rate)).rvs(random_state=rng)

    return pm.CustomDist(name, location, eps, rate, logp=log_density, random=draw, observed=observed, dims="row")
