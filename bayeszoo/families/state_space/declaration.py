"""A level that moves in time, declared in PyMC, and the density of rows with the level integrated out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayeszoo.likelihoods.ops.kalman import level_log_likelihood


def walk(name: str, q: object, m0: float, s0: float, opens: np.ndarray, dims: str) -> Any:
    """Declare levels: N(m0, s0^2) in the first row of each sequence, then N(the one before, q^2)."""
    first = (np.float64(m0), np.float64(s0), opens.astype(np.float64))
    return pm.CustomDist(name, q, *first, logp=_log_walk, random=_walked, signature="(),(),(),(t)->(t)", dims=dims)


def _log_walk(level: Any, q: Any, m0: Any, s0: Any, opens: Any) -> Any:
    before = pt.concatenate([pt.atleast_1d(m0), level[:-1]])
    mean, sd = opens * m0 + (1 - opens) * before, opens * s0 + (1 - opens) * q
    return pt.sum(pm.logp(pm.Normal.dist(mean, sd), level))


def _walked(q: Any, m0: Any, s0: Any, opens: Any, rng: Any = None, size: Any = None) -> np.ndarray:
    moves = rng.normal(0.0, np.where(opens > 0, s0, q))
    first = np.maximum.accumulate(np.where(opens > 0, np.arange(len(opens)), 0))
    moved = np.cumsum(moves)
    return np.asarray(m0 + moved - moved[first] + moves[first])


def marginal(q: object, r: object, y: np.ndarray, m0: float, s0: float, starts: np.ndarray) -> Any:
    """Return the log density of the rows, NaN where missing, given both standard deviations."""
    missing = np.isnan(y)
    deviations = pm.Data("deviations", np.where(missing, 0.0, y - m0))  # which takes no NaN
    y = pt.switch(pm.Data("missing", missing.astype(np.float64)), np.float64(np.nan), deviations)
    return level_log_likelihood(q, r, y, pm.Data("variance_0", np.float64(s0) ** 2), pm.Data("starts", starts))
