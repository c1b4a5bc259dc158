"""EM for a moving level: the E-step computes expected squares of steps and deviations given the rows.

Shumway and Stoffer 1982.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import scipy

from bayeszoo.distributions.priors import HalfNormal, Prior
from bayeszoo.errors import NumericalError
from bayeszoo.foundation.named import Params

NEAR = 0.2
"""Share of the largest other sd below which an sd is compared with 0, which EM approaches but never reaches."""
WIDE = 30.0
"""Range of the search for a log sd about its maximum-likelihood value, under a prior without a closed form."""


class Moving(Protocol):
    """Rows of a moving series, at one point of the standard deviations."""

    def squares(self) -> tuple[Mapping[str, int], Mapping[str, float]]:
        """Return numbers of steps and rows, and expected sums of their squares, by the name of their sd."""

    def at(self, params: Params) -> Self:
        """Return the same rows at another point."""

    def log_marginal(self) -> np.ndarray:
        """Return the log density of all rows."""


class Squares(NamedTuple):
    """Numbers of steps and rows, and expected sums of their squares, by the name of their sd.

    ``moving`` has the rows at the point of the E-step.
    """

    counts: Mapping[str, int]
    totals: Mapping[str, float]
    moving: Moving


def best(stats: Squares, name: str, prior: Prior | None) -> float:
    """Return the sd that maximizes the log density -n log(sd) - S / (2 sd^2), plus that of a prior."""
    n, total = stats.counts[name], stats.totals[name]
    if prior is None:
        if not n:
            raise NumericalError(f"{name} may be anything: no row follows another", "no_maximum")
        return math.sqrt(total / n)
    if isinstance(prior, HalfNormal):
        return math.sqrt(2 * total / (n + math.sqrt(n**2 + 4 * total / float(prior.sd) ** 2))) if total else 0.0
    middle = math.log(total / max(n, 1)) / 2 if total else 0.0

    def depth(log_sd: float) -> float:
        return n * log_sd + total / 2 * math.exp(-2 * log_sd) - prior.logpdf(math.exp(log_sd))

    low, high = middle - WIDE, middle + WIDE
    if prior.scale.low > 0:
        low = max(low, math.log(prior.scale.low))
    if math.isfinite(prior.scale.high):
        high = min(high, math.log(prior.scale.high))
    optimum = scipy.optimize.minimize_scalar(depth, bounds=(low, high), method="bounded", options={"xatol": 1e-12})
    return math.exp(float(optimum.x))


def or_still(
    stats: Squares,
    sds: dict[str, float],
    log_prior: Callable[[Mapping[str, object]], Any],
    may_be_still: Sequence[str] = ("q",),
) -> dict[str, float]:
    """Return standard deviations, with a small one set to 0 if the density has a mode there that is as high.

    EM approaches a mode on the edge without reaching it, and never leaves 0 again. So 0 is taken only if the density is
    at least as high as at the small sd and at a tenth of it.
    """

    def height(sds: Mapping[str, float]) -> float:
        point = {name: np.asarray(value) for name, value in sds.items()}
        return float(stats.moving.at(point).log_marginal() + log_prior(point))

    for name in may_be_still:
        largest = max(sd for other, sd in sds.items() if other != name) if len(sds) > 1 else 0.0
        if sds[name] < NEAR * largest:
            still, nearer = {**sds, name: 0.0}, {**sds, name: sds[name] / 10}
            sds = still if height(still) >= max(height(sds), height(nearer)) else sds
    return sds
