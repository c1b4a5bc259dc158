"""Sufficient statistics of Poisson counts, pooled without cancellation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from bayeszoo.distributions.special import deviance, log_peak
from bayeszoo.distributions.statistics.base import Stats, along, positive_or_one
from bayeszoo.errors import InputError


@dataclass(frozen=True, eq=False)
class Events(Stats):
    """Numbers of events, their exposure, and the log density of the counts at their pooled rate.

    The textbook's sum of ``log y!`` is as large as ``y log y``, and the evidence is a small difference of such terms.
    The log likelihood is ``peaks - deviance`` at the pooled rate, and elsewhere smaller by the deviance of the totals:
    terms of its own size.

    Fields are sums over rows, for one set of rows or many along leading axes: of ``events`` y and ``exposure``, of the
    log mass at y of a Poisson distribution of mean y (``peaks``), and of y log(y / m) - (y - m), where m is the row's
    mean at the pooled rate (``deviance``).
    """

    events: Any = 0.0
    exposure: Any = 0.0
    peaks: Any = 0.0
    deviance: Any = 0.0

    @classmethod
    def of(cls, y: np.ndarray, exposure: np.ndarray) -> Events:
        """Return the statistics of counts and exposures, each of shape (rows,)."""
        return cls.weighted(y, exposure, np.ones(len(y)))

    @classmethod
    def weighted(cls, y: np.ndarray, exposure: np.ndarray, weights: np.ndarray) -> Events:
        """Return the statistics of counts (n,) and exposures (n,) with weights (n, *axes)."""
        y, exposure = along(y, weights), along(exposure, weights)
        _refuse_without_exposure(y, exposure, weights)
        sums: Events = _OfRows.__new__(_OfRows)  # `__init__` would set peaks and deviance
        vars(sums).update(events=(weights * y).sum(axis=0), exposure=(weights * exposure).sum(axis=0))
        vars(sums).update(rows=(y, exposure, weights))
        return sums

    @property
    def pivot(self) -> Any:
        """The pooled rate, or 1 without events."""
        return np.where(self.events > 0, self.events / positive_or_one(self.exposure), 1.0)[()]

    @property
    def log_likelihood(self) -> float:
        """Log likelihood of the rows at the rate ``pivot``."""
        return self.peaks - self.deviance - np.where(self.events > 0, 0.0, self.exposure)[()]

    def __add__(self, other: Self) -> Self:
        return self._pooled(other, 1.0)

    def __sub__(self, other: Self) -> Self:
        return self._pooled(other, -1.0)

    def _pooled(self, other: Self, sign: float) -> Self:
        """Add or remove statistics, with the deviance of both from their common rate."""
        exposure = np.maximum(self.exposure + sign * other.exposure, 0.0)  # rounding may make it negative
        events = np.maximum(self.events + sign * other.events, 0.0)
        if sign < 0:
            events = np.where(exposure > 0, events, 0.0)[()]
        pooled = (self.events, self.exposure) if sign < 0 else (events, exposure)
        parts = ((events, exposure) if sign < 0 else (self.events, self.exposure)), (other.events, other.exposure)
        rate = pooled[0] / positive_or_one(pooled[1])
        between = sum(deviance(y, np.where(np.asarray(time) > 0, rate * time, y)) for y, time in parts)
        return type(self)(
            events,
            exposure,
            np.minimum(self.peaks + sign * other.peaks, 0.0),
            np.maximum(self.deviance + sign * (other.deviance + between), 0.0),
            log_coefficient=self.log_coefficient + sign * other.log_coefficient,
        )


class _OfRows(Events):
    """`Events` of weighted rows; peaks and deviance are computed on demand, as no M-step needs them."""

    rows: tuple[np.ndarray, np.ndarray, np.ndarray]

    @cached_property
    def peaks(self) -> Any:
        y, _, weights = self.rows
        return np.sum(weights * log_peak(y), axis=0)

    @cached_property
    def deviance(self) -> Any:
        y, exposure, weights = self.rows
        means = exposure * (self.events / positive_or_one(self.exposure))
        gaps = deviance(y, np.where((weights > 0) & (self.exposure > 0), means, y))
        return np.sum(weights * gaps, axis=0)


def _refuse_without_exposure(y: np.ndarray, exposure: np.ndarray, weights: np.ndarray) -> None:
    """Refuse events without exposure: no rate allows them, and infinities could not be subtracted."""
    if (exposure > 0).all():
        return
    rows = np.argwhere((weights > 0) & (y > 0) & ~(exposure > 0))
    if len(rows):
        raise InputError(
            f"row {rows[0, 0] + 1} has events but no exposure",
            "events_without_exposure",
            hint="give it an exposure > 0",
        )
