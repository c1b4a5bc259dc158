"""The ends of a search's climbs: the maxima, how many climbs reached each, and whether unseen ones are likely."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from bayeszoo.foundation.gate import Check, at_least, at_most
from bayeszoo.model.capabilities.steps import Expectation

GAIN_LEFT = 1e-9  # a climb has converged when it has less than this share of the objective's size left to gain
SAME = 1e-5  # nats within which two climbs have reached the same maximum
SAME_ROWS = 1e-3
"""Nats within which each row's fingerprint agrees between two climbs to the same maximum, labels aside."""
STOPPED = "not all restarts converged; a better optimum may exist"
MAX_UNSEEN = 0.1  # largest probability that a further climb ends at an unseen maximum, for the best to be trusted
UNSEEN = "a higher maximum may exist: fit with other seeds and keep the highest, or with fewer components"

TIED = "they may say the opposite: compare fits with other seeds, or average over them by nuts or gibbs"

Fingerprint = Callable[[Any], np.ndarray | None]


@dataclass(frozen=True, eq=False)
class Climb:
    """One climb."""

    state: Any = field(repr=False)  # its end: parameters, or q(theta)
    objective: float  # the height of the end
    expectation: Expectation = field(repr=False)  # the E-step at the end
    trace: np.ndarray = field(repr=False)  # the height at each step
    gain_left: float  # extrapolated gain of further steps, as a share of max(1, |objective|)
    degenerate: str = ""  # why it cannot be the answer; empty if it can
    accepted_early: bool = False  # whether it may be the answer though it was stopped early
    abandoned: bool = False  # whether it was not climbed to the end
    merged_at: Any = field(default=None, repr=False)  # the state that was taken to lead to another climb's maximum

    @property
    def is_sound(self) -> bool:
        """Whether it converged to a point that may be the answer."""
        return not (self.degenerate or self.abandoned) and (self.accepted_early or self.gain_left <= GAIN_LEFT)


@dataclass(frozen=True, eq=False)
class Search:
    """All climbs of one problem.

    ``fingerprint(state)`` is an array in nats that does not depend on labels: it distinguishes maxima of equal height,
    such as mirror images. If it is None, maxima are distinguished by their heights alone.
    """

    climbs: list[Climb]  # the sound ones first, from the highest down
    collapsed: int  # climbs that ended where the steps are not defined, as at an empty component
    fingerprint: Fingerprint = lambda state: None
    gain_left: float = GAIN_LEFT  # share of the objective's size that a converged climb may have left to gain

    @property
    def sound(self) -> list[Climb]:
        """The climbs that may be the answer, from the highest down."""
        return [climb for climb in self.climbs if climb.is_sound]

    @property
    def best(self) -> Climb:
        """The highest sound climb."""
        return self.sound[0]

    @property
    def reached(self) -> int:
        """The number of climbs that reached the best height."""
        sound = self.sound
        return sum(sound[0].objective - climb.objective <= SAME for climb in sound)

    @cached_property
    def by_maximum(self) -> list[list[Climb]]:
        """The sound climbs grouped by maximum, from the highest maximum down."""
        groups: list[list[Climb]] = []
        for climb in self.sound:
            matching = next((group for group in groups if self._are_same(climb, group[0])), None)
            if matching is None:
                groups.append([climb])
            else:
                matching.append(climb)
        return groups

    @property
    def distinct(self) -> list[Climb]:
        """The sound climbs, one for each maximum, from the highest down."""
        return [group[0] for group in self.by_maximum]

    @property
    def ties(self) -> list[Check]:
        """A failing check when other maxima are as high as the best: none of them is the only answer."""
        rivals = [climb for climb in self.distinct[1:] if self.best.objective - climb.objective <= SAME]
        return [at_most("equal_maxima", len(rivals), 0).or_caveat(TIED)] if rivals else []

    @property
    def starts(self) -> int:
        """The number of climbs begun."""
        return len(self.climbs) + self.collapsed

    @property
    def unseen(self) -> float:
        """The probability that a further climb ends at an unseen maximum (Good 1953).

        It is the number of maxima that one climb reached, divided by the number of climbs. Climbs that are degenerate
        or did not converge are not counted; abandoned ones are, as they end far below the best.
        """
        counted = sum(climb.is_sound or climb.abandoned for climb in self.climbs)
        return sum(len(group) == 1 for group in self.by_maximum) / counted

    def _are_same(self, climb: Climb, other: Climb) -> bool:
        """Say whether two climbs ended at the same maximum, labels aside."""
        if climb.state is other.state:
            return True
        if abs(climb.objective - other.objective) > SAME:
            return False
        rows, other_rows = self.fingerprint(climb.state), self.fingerprint(other.state)
        return rows is None or other_rows is None or apart(rows, other_rows) < SAME_ROWS

    @property
    def facts(self) -> dict[str, Any]:
        """Figures of the search."""
        degenerate = [climb for climb in self.climbs if climb.degenerate]
        figures = {
            "restarts": self.starts,
            "abandoned": sum(climb.abandoned for climb in self.climbs),
            "reached_the_best": self.reached,
            "maxima": [climb.objective for climb in self.distinct[:5]],
            "degenerate": len(degenerate) + self.collapsed,
        }
        if not degenerate:
            return figures
        highest = max(degenerate, key=lambda climb: climb.objective)
        return {**figures, "highest_degenerate": highest.objective, "degenerate_because": highest.degenerate}

    @property
    def checks(self) -> list[Check]:
        """Checks that the best climb converged, a second one reached the same maximum, and others are unlikely."""
        return [
            at_most("gain_left", self.best.gain_left, self.gain_left),
            at_least("restarts", self.reached, 2).or_caveat(STOPPED * (self.gain_left > GAIN_LEFT)),
            at_most("unseen_maxima", self.unseen, MAX_UNSEEN).or_caveat(UNSEEN),
        ]


def apart(first: np.ndarray, second: np.ndarray) -> float:
    """Return the largest difference of two fingerprints; entries that are infinite or NaN in both count as equal."""
    with np.errstate(invalid="ignore"):
        return float(
            np.max(
                np.abs(first - second), where=~((first == second) | (np.isnan(first) & np.isnan(second))), initial=0.0
            )
        )
