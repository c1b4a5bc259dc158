"""Rows of levels of several features as indicators: for each feature one indicator is 1."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from bayeszoo.distributions.bases import OfIndicators


class Indicators(OfIndicators):
    """A distribution of rows of levels; its moments are those of the levels' indicators, (..., rows, L)."""

    @property
    @abstractmethod
    def levels(self) -> Sequence[Sequence[int]]:
        """The places of the levels of each feature."""

    def codes(self, drawn: np.ndarray) -> np.ndarray:
        """Return the place of the level of each feature, (..., rows, features)."""
        features = map(list, self.levels)
        return np.stack([np.array(places)[np.argmax(drawn[..., places], axis=-1)] for places in features], axis=-1)


def draw_levels(p: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw the codes of levels, (...), with probabilities (..., V)."""
    below = np.cumsum(p, axis=-1)[..., :-1]
    return np.asarray(np.sum(rng.random(p.shape[:-1])[..., None] > below, axis=-1))
