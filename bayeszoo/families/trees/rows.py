"""The law of rows of levels whose features are a tree; missing levels are summed out by sum-product messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bayeszoo.families.statistics.indicators import Indicators, draw_levels
from bayeszoo.families.trees.layout import Layout
from bayeszoo.foundation.named import RandomState


class TreeRows(Indicators):
    """Levels of rows, each depending on its parent feature; moments are those of the levels' indicators.

    Probabilities (..., cells) may have leading axes of draws; rows are places (rows, features).
    """

    def __init__(self, theta: npt.ArrayLike, layout: Layout, rows: int) -> None:
        self._theta, self._layout, self._rows = np.asarray(theta, dtype=np.float64), layout, rows

    @property
    def levels(self) -> Sequence[Sequence[int]]:
        """The places of the levels of each feature."""
        return self._layout.levels

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
        """Log probability of the levels of each row, (..., rows); missing levels, -1, are summed out."""
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
        """Return the log probability of codes (n, V), missing levels summed out."""
        messages = self._upward(codes, np.logaddexp.reduce)[1]
        return np.asarray(messages[self._layout.root][..., 0])

    def _upward(
        self, codes: np.ndarray, over: Callable[..., Any]
    ) -> tuple[dict[int, np.ndarray], dict[int, np.ndarray]]:
        """Pass messages from the leaves to the root, for codes (n, V), -1 if missing.

        Returns for each feature the log terms (..., n, levels of the parent, levels) of itself and all features below
        it, and their reduction ``over`` its levels, a sum or a maximum.
        """
        leading, terms, messages = self._theta.shape[:-1], dict[int, np.ndarray](), dict[int, np.ndarray]()
        below = [np.zeros((*leading, len(codes), len(levels))) for levels in self._layout.levels]
        for v in reversed(self._layout.order):
            seen = codes[:, v, None] >= 0
            excluded = seen & (np.arange(len(self._layout.levels[v])) != codes[:, v, None])
            with np.errstate(divide="ignore"):
                tables = np.log(self._tables(v))
            terms[v] = np.where(excluded, -np.inf, below[v])[..., None, :] + tables[..., None, :, :]
            messages[v] = over(terms[v], axis=-1)
            if v != self._layout.root:
                below[self._layout.parents[v]] += messages[v]
        return terms, messages

    def level_probabilities(self, levels: npt.ArrayLike) -> np.ndarray:
        """Return the probability of each level given a row's observed levels, (rows, L), by sum-product messages."""
        terms, messages = self._upward(self._layout.codes(np.asarray(levels)), np.logaddexp.reduce)
        p = np.empty((self._rows, sum(map(len, self._layout.levels))))
        for v in self._layout.order:
            with np.errstate(invalid="ignore"):  # NaN below impossible levels, whose probability of 0 cancels it
                conditional = np.nan_to_num(np.exp(terms[v] - messages[v][..., None]))
            above = self._layout.parents.get(v)
            before = np.ones((self._rows, 1)) if above is None else p[:, list(self._layout.levels[above])]
            p[:, list(self._layout.levels[v])] = np.einsum("na,nab->nb", before, conditional)
        return p

    def completed(self, levels: npt.ArrayLike) -> np.ndarray:
        """Return the most probable complete rows given their observed levels, by max-product messages."""
        terms, _ = self._upward(self._layout.codes(np.asarray(levels)), np.max)
        codes, rows = np.zeros((self._rows, len(self._layout.levels)), dtype=np.int64), np.arange(self._rows)
        places = codes.copy()
        for v in self._layout.order:
            above = codes[:, self._layout.parents[v]] if v != self._layout.root else 0
            codes[:, v] = np.argmax(terms[v][rows, above], axis=-1)
            places[:, v] = np.array(self._layout.levels[v])[codes[:, v]]
        return places

    def rvs(self, size: tuple[int, ...], random_state: RandomState = None) -> np.ndarray:
        """Draw indicators of shape ``size``, which ends in (rows, L): 1 at the level of each feature."""
        rng, drawn, codes = np.random.default_rng(random_state), np.zeros(size), dict[int, np.ndarray]()
        for v in self._layout.order:
            tables = np.broadcast_to(self._tables(v)[..., None, :, :], (*size[:-1], *self._layout.shapes[v]))
            above = codes[self._layout.parents[v]] if v in self._layout.parents else np.zeros(size[:-1], dtype=np.int64)
            p = np.take_along_axis(tables, above[..., None, None], axis=-2)[..., 0, :]
            codes[v] = draw_levels(p, rng)
            drawn[..., list(self._layout.levels[v])] = codes[v][..., None] == np.arange(p.shape[-1])
        return drawn
