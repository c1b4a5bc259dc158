"""Covariances of Gaussian components, declared in PyMC."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm

from bayeszoo.families.mixtures.gaussian_components import GaussianComponents
from bayeszoo.likelihoods.inverse_wishart import InverseWishart


def covariances_of(components: GaussianComponents, dims: Any = None) -> Any:
    """Declare ``covariances`` by their prior, and return the K matrices (K, D, D) that they stand for."""
    K, nu, psi = components.count, np.float64(components.nu), components.psi
    if components.kind == "full":
        return InverseWishart("covariances", nu, psi, K, dims=dims)
    if components.kind == "tied":
        return InverseWishart("covariances", nu, psi, dims=dims) + np.zeros((K, 1, 1))
    shape, scale = (pm.Data(f"covariances_{name}", value) for name, value in (("shape", nu / 2), ("scale", psi / 2)))
    variances = pm.InverseGamma("covariances", alpha=shape, beta=scale, shape=(K, *psi.shape), dims=dims)
    return (variances[:, :, None] if psi.ndim else variances[:, None, None]) * np.eye(components.columns)
