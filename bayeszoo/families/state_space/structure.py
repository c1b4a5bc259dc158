"""What the mean of a row in time is a sum of: a level, its slope, the effects of seasons, and features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bayeszoo.data.inputs import starts
from bayeszoo.errors import InputError

PARTS = ("level", "slope", "season")
FEATURES, SIGNAL = "features", "signal"
SDS = {"q": "level", "q_slope": "slope", "q_season": "season", "r": "noise"}
"""Standard deviations by name: of the steps of a part, or of rows about their mean."""
MOST_VARIANCES = 3
"""Standard deviations that are integrated over by quadrature."""
CODES = {"level": 0, "slope": 1, "season": 2, FEATURES: 3, SIGNAL: 4}
"""Numbers of the parts in compiled loops."""


def words(text: str, allowed: tuple[str, ...], label: str) -> tuple[str, ...]:
    """Read ``level + slope`` as names, in the order of those allowed; refuse another name, or none twice."""
    names = text.replace("+", " ").split()
    for name in names:
        if name not in allowed or names.count(name) > 1:
            why = "appears twice" if name in allowed else f"is none of {', '.join(allowed)}"
            raise InputError(f"{label} = {text!r}: {name!r} {why}", "unknown_name", hint=f"as '{' + '.join(allowed)}'")
    return tuple(name for name in allowed if name in names)


@dataclass(frozen=True)
class Structure:
    """Parts by name, rows until seasons come back, and standard deviations of the first state.

    Parameters
    ----------
    parts : tuple of str
        Those of `PARTS` that there are.
    period : int
        Rows after which a season comes again.
    sds : tuple of float
        Prior standard deviations of the first level, slope and effect of a season.
    tau : tuple of float
        Those of the weights of features.
    """

    parts: tuple[str, ...]
    period: int
    sds: tuple[float, float, float]
    tau: tuple[float, ...] = ()

    @cached_property
    def sizes(self) -> np.ndarray:
        """One level, whether there is a slope, seasons less one, and the number of features."""
        seasons = self.period - 1 if "season" in self.parts else 0
        return np.array([1, int("slope" in self.parts), seasons, len(self.tau)], dtype=np.int64)

    @cached_property
    def factors(self) -> tuple[np.ndarray, np.ndarray]:
        """U and D of the covariance matrix of the first state and the weights: N(0, U diag(D) U')."""
        _, slope, seasons, _ = self.sizes.tolist()
        variances = np.square([self.sds[0], *[self.sds[1]] * slope, *[0.0] * seasons, *self.tau])
        U = np.eye(len(variances))
        if seasons:
            at = slice(1 + slope, 1 + slope + seasons)
            U[at, at], variances[at] = upper(effects(self.period, self.sds[2])[:-1, :-1])
        return U, variances

    @property
    def shown(self) -> tuple[str, ...]:
        """The parts, that of features where there are any, and where there is more than the level the mean of rows."""
        parts = (*self.parts, *[FEATURES] * bool(self.tau))
        return (*parts, SIGNAL) if len(parts) > 1 else parts

    def terms(self, data: Mapping[str, np.ndarray], seen: np.ndarray) -> dict[str, np.ndarray]:
        """Return terms of the covariance matrix of the rows seen: of constant parts, and by the names of their sds.

        By responses to single steps in closed form, which share nothing with the filter.
        """
        first, size = starts(data["sequence"]), len(data["y"])
        place = np.arange(size) - np.repeat(first, np.diff([*first, size]))
        moved = responses(self, place)
        every = {"": of_first(self, place, data["X"]), "r": np.eye(len(place))}
        every |= {name: moved[part] @ moved[part].T for name, part in SDS.items() if part in moved}
        return {name: matrix[np.ix_(seen, seen)] for name, matrix in every.items()}


def effects(period: int, sd: float) -> np.ndarray:
    """Return the covariance matrix of effects of seasons with a sum of 0, each of a standard deviation, all alike."""
    return np.asarray(sd**2 * (period * np.eye(period) - 1) / (period - 1))


def upper(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a unit upper triangular U and D > 0 of a matrix U diag(D) U'."""
    root = np.linalg.cholesky(matrix[::-1, ::-1])[::-1, ::-1]
    sides = np.diag(root)
    return root / sides, np.square(sides)


def responses(structure: Structure, place: np.ndarray) -> dict[str, np.ndarray]:
    """Return by how much a step of 1 of each part at one row moves the mean of each later row, (T, T) by part.

    ``place`` (T,) are the numbers of rows in their sequence, from 0, sequences one after the other.
    """
    sequence = np.cumsum(place == 0)
    lag = place[:, None] - place[None, :]
    follows = (sequence[:, None] == sequence[None, :]) & (lag >= 0) & (place[None, :] > 0)
    of_season = (lag % structure.period == 0).astype(float) - (lag % structure.period == 1)
    every = {"level": np.ones(lag.shape), "slope": lag.astype(float), "season": of_season}
    return {part: np.where(follows, every[part], 0.0) for part in structure.parts}


def constant(parts: tuple[str, ...], period: int, place: np.ndarray) -> np.ndarray:
    """Return columns of which constant parts are sums, (rows, columns)."""
    trend = [place.astype(float)] if "slope" in parts else []
    seasons = [(place % period == k).astype(float) for k in range(1, period)] if "season" in parts else []
    return np.stack([np.ones(len(place)), *trend, *seasons], axis=1)


def of_first(structure: Structure, place: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Return the covariance matrix of the means of rows where nothing moves, (T, T): of first states and weights."""
    sequence = np.cumsum(place == 0)
    alike = sequence[:, None] == sequence[None, :]
    own = np.full(alike.shape, structure.sds[0] ** 2)
    if "slope" in structure.parts:
        own = own + structure.sds[1] ** 2 * np.outer(place, place)
    if "season" in structure.parts:
        season = place % structure.period
        own = own + effects(structure.period, structure.sds[2])[np.ix_(season, season)]
    return np.asarray(np.where(alike, own, 0.0) + (X * np.square(structure.tau)) @ X.T)
