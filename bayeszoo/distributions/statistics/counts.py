"""Sufficient statistics of categories, and of trials that succeed or fail: how often each occurred."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayeszoo.distributions.statistics.base import Stats


@dataclass(frozen=True, eq=False)
class Counts(Stats):
    """How often each of V categories occurred, shape (..., V)."""

    counts: np.ndarray


@dataclass(frozen=True, eq=False)
class Trials(Stats):
    """How many trials succeeded, and how many failed, shape (...)."""

    successes: Any
    failures: Any


@dataclass(frozen=True, eq=False)
class Failures(Trials):
    """Failures before a known number of successes, and the sum of the logs of how many orders these may have, (...)."""

    log_orders: Any
