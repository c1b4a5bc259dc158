"""The regions where chains settled: whether the latest chains visited every region of earlier ones as high."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from bayeszoo.foundation.gate import Check, at_most
from bayeszoo.inference.labels.symmetry import is_symmetric
from bayeszoo.inference.starts import SHARE
from bayeszoo.model.base import Model

_SAME = 1e-9
"""Difference that may be rounding, relative to max(1, |number|)."""


class Settled(NamedTuple):
    """The second half of chains: quantities that do not depend on labels, and the log density."""

    draws: np.ndarray  # (chain, draw, quantity)
    log_density: np.ndarray  # (chain, draw)

    @classmethod
    def of(cls, model: Model, draws: Mapping[str, np.ndarray], data: Any, log_density: np.ndarray) -> Self:
        """Return the second half of the draws (chain, draw, ...)."""
        half = log_density.shape[1] // 2
        kept = {name: np.asarray(values)[:, half:] for name, values in draws.items()}
        free = model.invariants(kept, data) if is_symmetric(model) else kept
        flat = [np.reshape(values, (*np.shape(values)[:2], -1)) for values in free.values()]
        return cls(np.concatenate(flat, axis=2), log_density[:, half:])


def unvisited(latest: Settled, earlier: Sequence[Settled], coordinates: float) -> list[Check]:
    """Check that the latest chains visited every region where an earlier chain settled at a density as high as theirs.

    A mode with less than a thousandth of the mass does not count; it may be wider by a factor of e in each of N
    ``coordinates``.
    """
    low, high = latest.draws.min((0, 1)), latest.draws.max((0, 1))
    least = latest.log_density.mean() - SHARE - coordinates
    count = 0
    for settled in earlier:
        middle, height = np.median(settled.draws, axis=1), settled.log_density.mean(axis=1)
        room = _SAME * np.maximum(1.0, np.abs(middle))
        outside = ((middle < low - room) | (middle > high + room)).any(axis=1)
        count += int((outside & (height >= least)).sum())
    return [at_most("unvisited_modes", count, 0)] if earlier else []
