"""The components of the mean of a row in time: a level, its slope, the effects of seasons, and features."""

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
"""The part of each standard deviation by name: that of its steps, or of rows about their mean."""
MOST_VARIANCES = 3
"""Most standard deviations that are integrated by quadrature."""
ROUNDING = 1e-14
"""Share of a variance below which what is left of it, given other entries, is rounding."""
CODES = {"level": 0, "slope": 1, "season": 2, FEATURES: 3, SIGNAL: 4}
"""Numbers of the parts in compiled loops."""


def words(text: str, allowed: tuple[str, ...], label: str) -> tuple[str, ...]:
    """Parse ``level + slope`` as names in the order of ``allowed``; refuse unknown or repeated names."""
    names = text.replace("+", " ").split()
    for name in names:
        if name not in allowed or names.count(name) > 1:
            why = "appears twice" if name in allowed else f"is none of {', '.join(allowed)}"
            raise InputError(f"{label} = {text!r}: {name!r} {why}", "unknown_name", hint=f"as '{' + '.join(allowed)}'")
    return tuple(name for name in allowed if name in names)


@dataclass(frozen=True)
class Structure:
    """Parts by name, period of the seasons, and standard deviations of the first state.

    Parameters
    ----------
    parts : tuple of str
        The names from `PARTS` that the mean has.
    period : int
        Rows per cycle of the seasons.
    sds : tuple of float
        Prior standard deviations of the first level, slope and effect of a season.
    tau : tuple of float
        Prior standard deviations of the weights of features.
    """

    parts: tuple[str, ...]
    period: int
    sds: tuple[float, float, float]
    tau: tuple[float, ...] = ()

    @cached_property
    def sizes(self) -> np.ndarray:
        """The numbers of levels (1), slopes (0 or 1), seasons minus one, and features, (4,)."""
        seasons = self.period - 1 if "season" in self.parts else 0
        return np.array([1, int("slope" in self.parts), seasons, len(self.tau)], dtype=np.int64)

    @property
    def form(self) -> tuple[np.ndarray, ...]:
        """The entries of `bayeszoo.likelihoods.loops.structural_states.Form`."""
        return self.sizes, np.zeros(self.sizes.sum()), np.empty((0, 0)), np.empty(0), np.empty((0, 0))

    @property
    def codes(self) -> np.ndarray:
        """The numbers of the parts that are shown in compiled loops."""
        return np.array([CODES[part] for part in self.shown], dtype=np.int64)

    @property
    def of_level(self) -> np.ndarray:
        """The coefficients of the state in the level."""
        return np.eye(1, int(self.sizes.sum()))[0]

    @property
    def noises(self) -> int:
        """The number of independent noises in a step whose sd is q."""
        return 1

    @cached_property
    def factors(self) -> tuple[np.ndarray, np.ndarray]:
        """U and D of the covariance matrix of the first state and the weights: N(0, U diag(D) U')."""
        _, slope, seasons, _ = self.sizes.tolist()
        variances = np.square([self.sds[0], *[self.sds[1]] * slope, *[0.0] * seasons, *self.tau])
        U = np.eye(len(variances))
        if seasons:
            block = slice(1 + slope, 1 + slope + seasons)
            U[block, block], variances[block] = upper(effects(self.period, self.sds[2])[:-1, :-1])
        return U, variances

    @property
    def shown(self) -> tuple[str, ...]:
        """The parts, the sum of features if there are any, and the mean of rows if it has more than the level."""
        parts = (*self.parts, *[FEATURES] * bool(self.tau))
        return (*parts, SIGNAL) if len(parts) > 1 else parts

    def terms(self, data: Mapping[str, np.ndarray], seen: np.ndarray) -> dict[str, np.ndarray]:
        """Return terms of the covariance matrix of the rows seen, by the name of their sd; "" for constant parts.

        They are computed from responses to single steps in closed form, independently of the filter.
        """
        begins, size = starts(data["sequence"]), len(data["y"])
        place = np.arange(size) - np.repeat(begins, np.diff([*begins, size]))
        moved = responses(self, place)
        terms = {"": of_first(self, place, data["X"]), "r": np.eye(len(place))}
        terms |= {name: moved[part] @ moved[part].T for name, part in SDS.items() if part in moved}
        return {name: matrix[np.ix_(seen, seen)] for name, matrix in terms.items()}


def effects(period: int, sd: float) -> np.ndarray:
    """Return the covariance matrix of exchangeable effects of seasons with a sum of 0, each with the given sd."""
    return np.asarray(sd**2 * (period * np.eye(period) - 1) / (period - 1))


def upper(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a unit upper triangular U and D >= 0 of a positive semidefinite matrix U diag(D) U'."""
    rest, U, D = matrix.astype(np.float64), np.eye(len(matrix)), np.zeros(len(matrix))
    for j in range(len(matrix) - 1, -1, -1):
        if rest[j, j] > ROUNDING * matrix[j, j]:
            D[j], U[:j, j] = rest[j, j], rest[:j, j] / rest[j, j]
            rest[:j, :j] -= D[j] * np.outer(U[:j, j], U[:j, j])
    return U, D


def responses(structure: Structure, place: np.ndarray) -> dict[str, np.ndarray]:
    """Return the response of each row's mean to a step of 1 of a part at each earlier row, (T, T) by part.

    ``place`` (T,) numbers the rows within their sequence from 0, one sequence after the other.
    """
    sequence = np.cumsum(place == 0)
    lag = place[:, None] - place[None, :]
    follows = (sequence[:, None] == sequence[None, :]) & (lag >= 0) & (place[None, :] > 0)
    of_season = (lag % structure.period == 0).astype(float) - (lag % structure.period == 1)
    by_part = {"level": np.ones(lag.shape), "slope": lag.astype(float), "season": of_season}
    return {part: np.where(follows, by_part[part], 0.0) for part in structure.parts}


def constant(parts: tuple[str, ...], period: int, place: np.ndarray) -> np.ndarray:
    """Return a basis (rows, columns) of the constant parts."""
    trend = [place.astype(float)] if "slope" in parts else []
    seasons = [(place % period == k).astype(float) for k in range(1, period)] if "season" in parts else []
    return np.stack([np.ones(len(place)), *trend, *seasons], axis=1)


def of_first(structure: Structure, place: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Return the covariance matrix (T, T) of the means of rows from first states and weights, without steps."""
    sequence = np.cumsum(place == 0)
    same_sequence = sequence[:, None] == sequence[None, :]
    of_states = np.full(same_sequence.shape, structure.sds[0] ** 2)
    if "slope" in structure.parts:
        of_states = of_states + structure.sds[1] ** 2 * np.outer(place, place)
    if "season" in structure.parts:
        season = place % structure.period
        of_states = of_states + effects(structure.period, structure.sds[2])[np.ix_(season, season)]
    return np.asarray(np.where(same_sequence, of_states, 0.0) + (X * np.square(structure.tau)) @ X.T)
