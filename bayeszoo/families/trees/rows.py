"""The law of rows of levels whose features are a tree: sum-product messages where levels are missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bayeszoo.families.statistics.indicators import Indicators, draw_levels
from bayeszoo.families.trees.layout import Layout


class TreeRows(Indicators):
    """Levels of rows, each given that of the feature above it; moments are of an indicator of each level.

    Probabilities (..., cells) have draws as leading axes; rows are places (rows, features).
    """

    def __init__(self, theta: npt.ArrayLike, layout: Layout, rows: int) -> None:
        self._theta, self._layout, self._rows = np.asarray(theta, dtype=np.float64), layout, rows

    def _tables(self, feature: int) -> np.ndarray:
        """Return the tables of a feature, (..., levels of the parent, levels)."""
        start, shape = self._layout.starts[feature], self._layout.shapes[feature]
        return self._theta[..., start : start + shape[0] * shape[1]].reshape(*self._theta.shape[:-1], *shape)

    def mean(self) -> np.ndarray:
        """Return the probability of each level, (..., rows, L)."""
        p = np.empty((*self._theta.shape[:-1], sum(map(len, self._layout.levels))))
        for v in self._layout.order:
            tables, above = self._tables(v), self._layout.parents.get(v)
            before = None if above is None else p[..., None, list(self._layout.levels[above])]
            p[..., list(self._layout.levels[v])] = (tables if before is None else before @ tables)[..., 0, :]
        return np.repeat(p[..., None, :], self._rows, axis=-2)

    def logpmf(self, levels: npt.ArrayLike) -> np.ndarray:
        """Log probability of the levels of each row, (..., rows); missing ones, -1, are summed over."""
        places = np.asarray(levels)
        has_hole = (places < 0).any(axis=1)
        log_p = np.empty((*self._theta.shape[:-1], len(places)))
        with np.errstate(divide="ignore"):
            log_theta = np.log(self._theta)
        log_p[..., ~has_hole] = log_theta[..., self._layout.cells(places[~has_hole])].sum(axis=-1)
        if has_hole.any():
            log_p[..., has_hole] = self._summed(self._layout.codes(places[has_hole]))
        return log_p

    def _summed(self, codes: np.ndarray) -> np.ndarray:
        """Return the log probability of codes (n, V), missing ones summed over, by messages from the leaves up."""
        leading = self._theta.shape[:-1]
        beliefs = [np.zeros((*leading, len(codes), len(own))) for own in self._layout.levels]
        for v in reversed(self._layout.order):
            seen = codes[:, v] >= 0
            other = seen[:, None] & (np.arange(len(self._layout.levels[v])) != codes[:, v, None])
            with np.errstate(divide="ignore"):
                tables = np.log(self._tables(v))
            terms = np.where(other, -np.inf, beliefs[v])[..., None, :] + tables[..., None, :, :]
            message = np.logaddexp.reduce(terms, axis=-1)
            if v not in self._layout.parents:
                return np.asarray(message[..., 0])
            beliefs[self._layout.parents[v]] += message
        raise AssertionError("a tree has a root")

    def rvs(self, size: tuple[int, ...], random_state: Any = None) -> np.ndarray:
        """Draw indicators of shape ``size``, which ends in (rows, L): of each feature 1 at its level."""
        rng, drawn, codes = np.random.default_rng(random_state), np.zeros(size), dict[int, np.ndarray]()
        for v in self._layout.order:
            tables = np.broadcast_to(self._tables(v)[..., None, :, :], (*size[:-1], *self._layout.shapes[v]))
            above = codes[self._layout.parents[v]] if v in self._layout.parents else np.zeros(size[:-1], dtype=np.int64)
            p = np.take_along_axis(tables, above[..., None, None], axis=-2)[..., 0, :]
            codes[v] = draw_levels(p, rng)
            drawn[..., list(self._layout.levels[v])] = codes[v][..., None] == np.arange(p.shape[-1])
        return drawn
