"""Where the climbs of a search ended: the maxima, how many climbs reached each, and whether others are likely."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from bayeszoo.foundation.gate import Check, at_least, at_most
from bayeszoo.model.steps import Expectation

GAIN_LEFT = 1e-9  # a climb has converged when the gain that it has left is less than this share of the objective's size
SAME = 1e-5  # nats within which two climbs have reached the same maximum
SAME_ROWS = 1e-3
"""Nats within which each row is as likely at one maximum as at another, if they are the same but for labels."""
STOPPED = "not all restarts converged; a better optimum may exist"
MAX_UNSEEN = 0.1  # chance that a further start ends at an unseen maximum, above which a higher one is not ruled out
UNSEEN = "a higher maximum may exist: fit with other seeds and keep the highest, or with fewer components"

TIED = "they may say the opposite: compare fits with other seeds, or average over them by nuts or gibbs"

Fingerprint = Callable[[Any], np.ndarray | None]


@dataclass(frozen=True, eq=False)
class Climb:
    """One climb."""

    state: Any = field(repr=False)  # where it ended: parameters, or q(theta)
    objective: float  # the height there
    expectation: Expectation = field(repr=False)  # the E-step there
    trace: np.ndarray = field(repr=False)  # the height at each step
    gain_left: float  # what further steps would gain, as a share of max(1, |objective|)
    degenerate: str = ""  # why it cannot be the answer, if it cannot
    accepted_early: bool = False  # whether it may be the answer though it was stopped early
    abandoned: bool = False  # whether it was not climbed to the end
    merged_at: Any = field(default=None, repr=False)  # where it was taken to end at the maximum of another climb

    @property
    def is_sound(self) -> bool:
        """Whether it converged, and to a point that may be the answer."""
        return not (self.degenerate or self.abandoned) and (self.accepted_early or self.gain_left <= GAIN_LEFT)


@dataclass(frozen=True, eq=False)
class Search:
    """All climbs of one problem.

    ``fingerprint(state)`` is an array in nats that does not depend on labels: it tells apart maxima that happen to have
    one height, such as mirror images. Where it is None, their heights alone tell them apart.
    """

    climbs: list[Climb]  # the sound ones first, from the highest down
    collapsed: int  # starts that led to where the steps are not defined, as an empty component
    fingerprint: Fingerprint = lambda state: None
    gain_left: float = GAIN_LEFT  # share of the objective's size that a climb may have left

    @property
    def sound(self) -> list[Climb]:
        """Those that may be the answer, from the highest down."""
        return [climb for climb in self.climbs if climb.is_sound]

    @property
    def best(self) -> Climb:
        """The highest of the sound ones."""
        return self.sound[0]

    @property
    def reached(self) -> int:
        """How many climbs reached the best."""
        sound = self.sound
        return sum(sound[0].objective - climb.objective <= SAME for climb in sound)

    @cached_property
    def by_maximum(self) -> list[list[Climb]]:
        """The sound climbs to each maximum, from the highest maximum down."""
        groups: list[list[Climb]] = []
        for climb in self.sound:
            known = next((group for group in groups if self._are_same(climb, group[0])), None)
            if known is None:
                groups.append([climb])
            else:
                known.append(climb)
        return groups

    @property
    def distinct(self) -> list[Climb]:
        """The sound climbs, one for each maximum, from the highest down."""
        return [group[0] for group in self.by_maximum]

    @property
    def ties(self) -> list[Check]:
        """Check, where other maxima are as high as the best, that there are none: no one of them is the answer."""
        others = [climb for climb in self.distinct[1:] if self.best.objective - climb.objective <= SAME]
        return [at_most("equal_maxima", len(others), 0).or_caveat(TIED)] if others else []

    @property
    def starts(self) -> int:
        """How many starts were climbed from."""
        return len(self.climbs) + self.collapsed

    @property
    def unseen(self) -> float:
        """The chance that a further climb ends at a maximum that no other has reached (Good 1953).

        It is the share of maxima reached once among all climbs, without those that tell of no maximum: degenerate ones,
        and ones that did not converge. Abandoned ones lie far below the best, and found nothing new.
        """
        told = sum(climb.is_sound or climb.abandoned for climb in self.climbs)
        return sum(len(group) == 1 for group in self.by_maximum) / told

    def _are_same(self, first: Climb, other: Climb) -> bool:
        """Say whether two climbs ended at one maximum, under whatever labels."""
        if first.state is other.state:
            return True
        if abs(first.objective - other.objective) > SAME:
            return False
        rows, others = self.fingerprint(first.state), self.fingerprint(other.state)
        return rows is None or others is None or apart(rows, others) < SAME_ROWS

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
        """Whether the best climb converged, a second one found the same maximum, and others are unlikely."""
        return [
            at_most("gain_left", self.best.gain_left, self.gain_left),
            at_least("restarts", self.reached, 2).or_caveat(STOPPED * (self.gain_left > GAIN_LEFT)),
            at_most("unseen_maxima", self.unseen, MAX_UNSEEN).or_caveat(UNSEEN),
        ]


def apart(first: np.ndarray, second: np.ndarray) -> float:
    """Return the largest distance of two fingerprints; numbers that are infinite or NaN in both alike are not apart."""
    with np.errstate(invalid="ignore"):
        return float(
            np.max(
                np.abs(first - second), where=~((first == second) | (np.isnan(first) & np.isnan(second))), initial=0.0
            )
        )
