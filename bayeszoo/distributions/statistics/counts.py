"""Sufficient statistics of categories and of binary trials: counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayeszoo.distributions.statistics.base import Stats


@dataclass(frozen=True, eq=False)
class Counts(Stats):
    """Counts of V categories, shape (..., V)."""

    counts: np.ndarray


@dataclass(frozen=True, eq=False)
class Trials(Stats):
    """Numbers of successes and failures, shape (...)."""

    successes: Any
    failures: Any


@dataclass(frozen=True, eq=False)
class Failures(Trials):
    """Failures before a known number of successes, and the sum of the logs of their numbers of orders, shape (...)."""

    log_orders: Any
