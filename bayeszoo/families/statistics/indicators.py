"""Rows of levels of several features as indicators: of each feature one is 1."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from bayeszoo.distributions.bases import OfIndicators


class Indicators(OfIndicators):
    """A distribution of rows of levels whose moments are those of an indicator of each level, (..., rows, L)."""

    @property
    @abstractmethod
    def levels(self) -> Sequence[Sequence[int]]:
        """The places of the levels of each feature."""

    def codes(self, drawn: np.ndarray) -> np.ndarray:
        """Return the place of the level of each feature, (..., rows, features)."""
        return np.stack([np.array(each)[np.argmax(drawn[..., list(each)], axis=-1)] for each in self.levels], axis=-1)


def draw_levels(p: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw a level of each of probabilities (..., V), as its code."""
    below = np.cumsum(p, axis=-1)[..., :-1]
    return np.asarray(np.sum(rng.random(p.shape[:-1])[..., None] > below, axis=-1))
