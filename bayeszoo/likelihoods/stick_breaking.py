"""Stick-breaking weights in double precision; PyMC's take log B(1, alpha) from an integer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayeszoo.likelihoods.dirichlet_tables import Simplexes
from bayeszoo.likelihoods.inverse_wishart import as_data


def StickBreaking(name: str, alpha: float, count: int, dims: str | None = None) -> pt.TensorVariable:
    """Declare K weights v_k (1 - v_1) ... (1 - v_{k-1}), v_k ~ Beta(1, alpha) for k < K and v_K = 1.

    The density is that of ``pm.StickBreakingWeights(alpha, K=count - 1)``.

    Parameters
    ----------
    name : str
        The variable.
    alpha : float
        Concentration, > 0.
    count : int
        K, at least 2.
    dims : str, optional
        Name of the axis.
    """
    remaining = (alpha / (1 + alpha)) ** np.arange(count)
    start = np.append(remaining[:-1] - remaining[1:], remaining[-1])
    return pm.CustomDist(
        name,
        *as_data(name, alpha=np.full(count, alpha), later=np.tri(count, k=-1)[:, : max(count - 2, 0)]),
        logp=_log_density,
        random=_draw,
        signature="(k),(k,m)->(k)",
        class_name="StickBreaking",
        dims=dims,
        transform=Simplexes([range(count)]),
        initval=start,
    )


def _log_density(weights: pt.TensorVariable, alpha: pt.TensorVariable, later: pt.TensorVariable) -> pt.TensorVariable:
    """Log density: Beta densities alpha (1 - v_k)^(alpha - 1), where dv_k/dw_k is 1 over the remaining stick."""
    remaining = pt.dot(weights, later)  # before breaks 2..K-1
    breaks = pt.sum(pt.log(alpha[..., 1:]), axis=-1) - pt.sum(pt.log(remaining), axis=-1)
    return breaks + (alpha[..., 0] - np.float64(1)) * pt.log(weights[..., -1])


def _draw(alpha: Any, later: Any, rng: np.random.Generator, size: tuple[int, ...] | None = None) -> np.ndarray:
    alpha = alpha if size is None else np.broadcast_to(alpha, (*size, alpha.shape[-1]))
    broken = rng.beta(1.0, alpha)
    broken[..., -1] = 1.0
    remaining = np.cumprod(1 - broken[..., :-1], axis=-1)
    return broken * np.concatenate([np.ones((*remaining.shape[:-1], 1)), remaining], axis=-1)
