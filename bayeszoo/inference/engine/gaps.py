"""How far an approximation is from a log-concave posterior, by draws that are wider than that posterior.

Importance weights of an approximation's own draws do not see what its draws do not reach: of one that is three times
too narrow they say that it is half as wide as the posterior, with a k-hat that passes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayeszoo.distributions.posterior import Posterior
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.gate import MAX_K_HAT, MAX_SD_RATIO, Check, at_least, pareto_k
from bayeszoo.foundation.newton import climb
from bayeszoo.model.steps import ConcaveLikelihood

DRAWS, MOST_DRAWS = 8000, 512_000
DEGREES = 5.0
"""Of freedom of the Student t about the mode: its tails are heavier than those of any log-concave density."""
ENOUGH = 4000.0
"""Effective draws, by which a standard deviation is known to a few hundredths."""
LEAST_SD = 0.9
"""Ratio of an sd to the posterior's below which intervals are called too narrow."""


def gaps(rows: ConcaveLikelihood, q: Posterior, rng: np.random.Generator) -> dict[str, float]:
    """Return ``mean_gap``, ``sd_ratio_least`` and ``sd_ratio_most`` of an approximation, as `importance_gaps` does.

    NaN where so many draws as are made do not tell them.
    """
    q_mean, q_sd = (np.concatenate([np.ravel(getattr(q[name], moment)()) for name in q]) for moment in ("mean", "std"))
    mean, sd = _moments(rows, list(q), rng)
    gap, ratio = np.abs(q_mean - mean) / sd, q_sd / sd
    return {
        "mean_gap": float(np.max(gap)),
        "sd_ratio_least": float(np.min(ratio)),
        "sd_ratio_most": float(np.max(ratio)),
    }


def _moments(rows: ConcaveLikelihood, names: list[str], rng: np.random.Generator) -> tuple[Any, Any]:
    """Return mean and sd of each entry of the posterior; NaN where they take more draws than are made."""
    peak = climb(rows.joint, rows.start())
    root = np.linalg.cholesky(np.linalg.inv(peak.there.curvature))
    size = DRAWS
    while size <= MOST_DRAWS:
        noise = rng.standard_normal((size, rows.size)) * np.sqrt(DEGREES / rng.chisquare(DEGREES, (size, 1)))
        points = peak.x + noise @ root.T
        log_q = -(DEGREES + rows.size) / 2 * np.log1p(np.sum(np.square(noise), axis=1) / DEGREES)
        log_weights = rows.joint_values(points) - log_q
        weights = np.exp(diagnostics.smoothed_weights(-log_weights)[0])
        if pareto_k(log_weights) <= MAX_K_HAT and 1 / np.sum(np.square(weights)) >= ENOUGH:
            values = np.concatenate([rows.params(points)[name].reshape(size, -1) for name in names], axis=1)
            mean = weights @ values
            return mean, np.sqrt(weights @ np.square(values - mean))
        size *= 4
    return np.nan, np.nan


def sureness_checks(sd_ratio: float) -> list[Check]:
    """Check that sds are about the posterior's; a miss is a caveat, and one that the gate withholds is left to it."""
    if not sd_ratio >= 1 / MAX_SD_RATIO:
        return []
    check = at_least("least ratio of an sd to the posterior's, without a caveat", sd_ratio, LEAST_SD)
    return [check.or_caveat(f"too sure: the posterior's sd is up to {1 / sd_ratio:.3g} times as large")]
