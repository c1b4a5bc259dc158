"""Sufficient statistics of Poisson counts, pooled without cancellation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from bayeszoo.distributions.special import deviance, log_peak
from bayeszoo.model.base import Stats


@dataclass(frozen=True)
class Events(Stats):
    """How many events in how much exposure, and what is left of the density of the counts at their pooled rate.

    The textbook's sum of ``log y!`` is as large as ``y log y``, and the evidence the difference of such numbers. Here
    the log likelihood is ``peaks - deviance`` at the pooled rate, and less by the deviance of the totals elsewhere:
    terms of its own size.

    All are sums over rows: of ``events`` y and ``exposure``, of the log mass at y of a Poisson distribution of mean y
    (``peaks``), and of y log(y / m) - (y - m), where m is the row's mean at the pooled rate (``deviance``).
    """

    events: float = 0.0
    exposure: float = 0.0
    peaks: float = 0.0
    deviance: float = 0.0

    @classmethod
    def of(cls, y: np.ndarray, exposure: np.ndarray) -> Self:
        """Return the statistics of counts and exposures, each of shape (rows,)."""
        events, total = float(np.sum(y)), float(np.sum(exposure))
        means = exposure * (events / total) if total else np.zeros(len(y))
        return cls(events, total, float(np.sum(log_peak(y))), float(np.sum(deviance(y, means))))

    @property
    def pivot(self) -> float:
        """The pooled rate, or 1 where there is no event."""
        return self.events / self.exposure if self.events else 1.0

    @property
    def log_likelihood(self) -> float:
        """Log mass of the rows at the rate ``pivot``."""
        return self.peaks - self.deviance - (0.0 if self.events else self.exposure)

    def __add__(self, other: Self) -> Self:
        return self._pooled(other, 1.0)

    def __sub__(self, other: Self) -> Self:
        return self._pooled(other, -1.0)

    def _pooled(self, other: Self, sign: float) -> Self:
        """Add or take away; the deviance between the two from their common rate comes or goes with it."""
        events, exposure = self.events + sign * other.events, self.exposure + sign * other.exposure
        whole, part = (self, other) if sign < 0 else (Events(events, exposure), other)
        rest = Events(events, exposure) if sign < 0 else self
        rate = whole.events / whole.exposure if whole.exposure else 0.0
        between = math.fsum(float(deviance(some.events, rate * some.exposure)) for some in (rest, part))
        return type(self)(
            events,
            exposure,
            self.peaks + sign * other.peaks,
            max(self.deviance + sign * (other.deviance + between), 0.0),
            log_coefficient=self.log_coefficient + sign * other.log_coefficient,
        )
