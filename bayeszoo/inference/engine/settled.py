"""Where chains settled: whether draws have been wherever other chains settled at a density as high as theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from bayeszoo.foundation.gate import Check, at_most
from bayeszoo.inference.labels.symmetry import is_symmetric
from bayeszoo.inference.starts import SHARE
from bayeszoo.model.base import Model

_SAME = 1e-9
"""Numbers no further apart than this are rounded differently, relative to max(1, |number|)."""


class Settled(NamedTuple):
    """The second half of chains: quantities that do not depend on labels, and the log density."""

    draws: np.ndarray  # (chain, draw, quantity)
    log_density: np.ndarray  # (chain, draw)

    @classmethod
    def of(cls, model: Model, draws: Mapping[str, np.ndarray], data: Any, log_density: np.ndarray) -> Self:
        """Return the second half of the draws (chain, draw, ...)."""
        half = log_density.shape[1] // 2
        some = {name: np.asarray(values)[:, half:] for name, values in draws.items()}
        free = model.invariants(some, data) if is_symmetric(model) else some
        flat = [np.reshape(values, (*np.shape(values)[:2], -1)) for values in free.values()]
        return cls(np.concatenate(flat, axis=2), log_density[:, half:])


def unvisited(latest: Settled, others: Sequence[Settled], coordinates: float) -> list[Check]:
    """Check that the latest chains have been wherever a chain of the others settled at a density as high as theirs.

    A mode with a thousandth of the mass does not count; each of N ``coordinates`` may be wider there by a factor of e.
    """
    low, high = latest.draws.min((0, 1)), latest.draws.max((0, 1))
    least = latest.log_density.mean() - SHARE - coordinates
    count = 0
    for other in others:
        middle, height = np.median(other.draws, axis=1), other.log_density.mean(axis=1)
        room = _SAME * np.maximum(1.0, np.abs(middle))
        outside = ((middle < low - room) | (middle > high + room)).any(axis=1)
        count += int((outside & (height >= least)).sum())
    return [at_most("unvisited_modes", count, 0)] if others else []
