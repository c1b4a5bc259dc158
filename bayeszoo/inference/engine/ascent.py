"""Climbing an objective by alternating steps, from many starts: what EM and variational Bayes have in common.

The objective may not fall at any step, or the climb raises: a fall is a bug in the steps, and no tolerance hides it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from bayeszoo.errors import NumericalError
from bayeszoo.foundation.gate import Check, at_least, at_most
from bayeszoo.foundation.progress import Reporter
from bayeszoo.inference.engine.acceleration import Evaluate, Steps, Update
from bayeszoo.model.base import Model
from bayeszoo.model.steps import Expectation

MAX_FALL = 1e-9  # share of the objective's size by which rounding may make it fall
GAIN_LEFT = 1e-9  # a climb has converged when the gain that it has left is less than this share of the objective's size
SAME = 1e-5  # nats within which two climbs have reached the same maximum
ROUNDING = 1e-15  # share of the objective's size below which a gain is that of rounding
SAME_ROWS = 1e-3
"""Nats within which each row is as likely at one maximum as at another, if they are the same but for labels."""
NOISE = 1e-12  # share below which a gain may be that of rounding, if another step gained nothing
SLOW = 3e-3  # share of all that a climb has gained below which a step ends its first part
SHORT = 20  # steps of that part at most
NEAR = 1e-2
"""Nats below a maximum, and by which each row is as likely there, from where a climb is taken to end at it."""
RIVALS = 20.0  # nats below the best within which the heights of other maxima are wanted as well
PATIENCE = 100  # steps as long as the last ones in which a climb that goes on must get there
PACE = 5  # number of last steps over which the gain is averaged
MAX_STEPS = 20_000
RESTARTS = 20
MOST_RESTARTS = 200
LARGE = 100_000  # cost of a step from which climbs stop before rounding
COARSE = 1e-5
"""A climb of so costly steps is stopped when the gain that it has left is less than this share of its size."""
STOPPED = "not all restarts converged; a better optimum may exist"
BUDGET = 1e9
"""Cost of all steps of a search, half a minute or so, after which no further climb is begun once there are two."""
OVERHEAD = 15_000  # cost of a step that costs nothing

Begin = Callable[[np.random.Generator], Any]
Suspect = Callable[[Any, Any], str]
Fingerprint = Callable[[Any], np.ndarray | None]
Until = Callable[[Any, list[float]], bool]


@dataclass(frozen=True)
class Effort:
    """How far to climb, and how often."""

    gain_left: float = GAIN_LEFT  # share of the objective's size that a climb may have left
    steps: int = field(default_factory=lambda: MAX_STEPS)  # of one climb, at most
    budget: float = math.inf  # steps of all climbs after which no further one is begun
    gives_up: bool = False  # whether climbs that stay far below the best are not climbed to the end

    @classmethod
    def of(cls, model: Model, data: Any) -> Effort:
        """Return what the size of the data allows, where the model says what a step costs."""
        if not (cost := model.cost(data)):
            return cls()
        total = max(BUDGET / (cost + OVERHEAD), 400.0)
        return cls(budget=total) if cost < LARGE else cls(COARSE, min(MAX_STEPS, int(total / 2)), total)

    @property
    def is_coarse(self) -> bool:
        """Whether climbs stop before rounding: whether two reached one maximum can then not be told."""
        return self.gain_left > GAIN_LEFT

    def is_level(self, trace: list[float]) -> bool:
        """Say whether to stop: where nothing but rounding is gained, or there is little left to gain."""
        if not self.is_coarse or len(trace) < 10:
            return _is_level(trace)
        size = max(1.0, abs(trace[-1]))
        return trace[-1] - trace[-2] <= self.gain_left / 10 * size and _gain_left(trace[-12:]) <= self.gain_left


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
    effort: Effort = field(default_factory=Effort)

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
        return sum(self.best.objective - climb.objective <= SAME for climb in self.sound)

    @property
    def distinct(self) -> list[Climb]:
        """The sound climbs, one for each maximum, from the highest down."""
        kept: list[Climb] = []
        for climb in self.sound:
            if not any(self._are_same(climb, other) for other in kept):
                kept.append(climb)
        return kept

    def _are_same(self, first: Climb, other: Climb) -> bool:
        """Say whether two climbs ended at one maximum, under whatever labels."""
        if abs(first.objective - other.objective) > SAME:
            return False
        rows, others = self.fingerprint(first.state), self.fingerprint(other.state)
        return rows is None or others is None or _apart(rows, others) < SAME_ROWS

    @property
    def facts(self) -> dict[str, Any]:
        """Figures of the search."""
        degenerate = [climb for climb in self.climbs if climb.degenerate]
        figures = {
            "restarts": len(self.climbs) + self.collapsed,
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
        """Whether the best climb converged, and whether a second one found the same maximum."""
        return [
            at_most("gain_left", self.best.gain_left, self.effort.gain_left),
            at_least("restarts", self.reached, 2).or_caveat(STOPPED * self.effort.is_coarse),
        ]


def climb(
    state: object,
    evaluate: Evaluate,
    update: Update,
    effort: Effort | None = None,
    until: Until = lambda state, trace: False,
) -> Climb:
    """Alternate ``evaluate(state) -> (objective, expectation)`` and ``update(stats) -> state`` until nothing is gained.

    It is cut short where ``until(state, trace)`` says so. Raises `NumericalError` when the objective falls, which is a
    bug in the steps, or is not finite.
    """
    effort = effort or Effort()
    height, expectation = evaluate(state)
    trace = [height]
    while math.isfinite(height) and len(trace) <= effort.steps and not (effort.is_level(trace) or until(state, trace)):
        state = update(expectation.stats)
        height, expectation = evaluate(state)
        if height < trace[-1] - MAX_FALL * max(1.0, abs(trace[-1])):
            fall = f"from {trace[-1]:.12g} to {height:.12g} at step {len(trace)}"
            raise AscentError(f"the objective fell {fall}: the steps are wrong", "not_converged")
        trace.append(height)
    if not math.isfinite(height):
        raise NumericalError(f"the objective is not finite ({height}) after {len(trace) - 1} steps", "not_finite")
    return Climb(state, height, expectation, np.array(trace), _gain_left(trace), accepted_early=effort.is_coarse)


class AscentError(NumericalError):
    """The objective fell: the model's steps do not climb it."""


def _is_level(trace: list[float]) -> bool:
    """Say whether the last steps gained nothing beyond rounding: the parameters are then right to half its digits.

    Of many rows rounding is larger, and shows in a step that gains nothing or less.
    """
    if len(trace) < 4:
        return False
    gains, size = [after - before for before, after in pairwise(trace[-4:])], max(1.0, abs(trace[-1]))
    return max(gains) <= (NOISE if min(gains) <= 0 else ROUNDING) * size


def _gain_left(trace: Sequence[float] | np.ndarray) -> float:
    """Extrapolate the gains, which fall geometrically near a maximum (Aitken), as a share of the height.

    Where they grew until rounding hides them, as where a plateau or a long step ends, as many steps as there were since
    then may gain as much as the last ones.
    """
    gains = np.diff(trace) / max(1.0, abs(trace[-1]))
    if not len(gains):
        return math.inf
    where = np.flatnonzero(gains > 10 * NOISE)[-10:]  # the ratio of smaller ones is that of their errors
    sure = gains[where]
    ratio = float((sure[-1] / sure[0]) ** (1 / (len(sure) - 1))) if len(sure) > 1 else 0.0
    if ratio < 1:
        return max(max(float(gains[-1]), ROUNDING) * ratio / (1 - ratio), ROUNDING)
    since = len(gains) - 1 - int(where[-1])
    return since * max(float(gains[-3:].max()), ROUNDING) if since >= 3 else math.inf


def search(
    begin: Begin,
    evaluate: Evaluate,
    update: Update,
    rng: np.random.Generator,
    reporter: Reporter,
    suspect: Suspect = lambda state, stats: "",
    restarts: int = RESTARTS,
    fingerprint: Fingerprint = lambda state: None,
    effort: Effort | None = None,
    longer: Steps | None = None,
) -> Search:
    """Climb from many starts ``begin(rng)``; raise `NumericalError` when no climb gave an answer.

    ``suspect(state, stats)`` says why a maximum cannot be the answer. There are at least ``restarts`` climbs, and up to
    `MOST_RESTARTS` until two have reached the best; of costly steps two are enough, unless more than 20 were asked for.

    From every start a few steps are taken, as in scikit-learn and mclust. Then the climbs go on from the highest down,
    by ``longer`` steps if there are any: to the end, to a maximum that another has reached, or where
    ``effort.gives_up`` until they are abandoned, as they gain little far below the best. All are climbed, however many
    have reached the best so far: where maxima are many, the first steps do not show which is the highest.
    """
    climbs = _Climbs((evaluate, update), suspect, fingerprint, effort or Effort(), longer)
    while climbs.starts < max(restarts, MOST_RESTARTS) and not climbs.are_enough(restarts):
        wave, begun = 1 if climbs.effort.is_coarse else max(restarts - climbs.starts, 1), list[Climb]()
        for _ in range(wave):
            reporter.progress(
                "looking for modes, starts", climbs.starts + len(begun), max(restarts, climbs.starts + wave)
            )
            begun += climbs.begin(lambda: begin(rng))
        for i, climb_ in enumerate(sorted(begun, key=lambda climb_: climb_.objective, reverse=True)):
            if len(begun) > 1:
                reporter.progress("looking for modes, climbs", i, len(begun))
            climbs.finish(climb_)
    ordered = sorted(climbs.ends, key=lambda climb_: (climb_.is_sound, climb_.objective), reverse=True)
    if not any(climb_.is_sound for climb_ in ordered):
        raise NumericalError(_why_none(ordered, climbs.reason, climbs.starts), "not_converged")
    return Search(ordered, climbs.collapsed, fingerprint, climbs.effort)


def _apart(first: np.ndarray, second: np.ndarray) -> float:
    """Return the largest distance of two fingerprints; numbers that are infinite or NaN in both alike are not apart."""
    with np.errstate(invalid="ignore"):
        return float(
            np.max(
                np.abs(first - second), where=~((first == second) | (np.isnan(first) & np.isnan(second))), initial=0.0
            )
        )


class _Climbs:
    """The climbs of a search so far: finished ones, and how many collapsed."""

    def __init__(
        self,
        steps: Steps,
        suspect: Suspect,
        fingerprint: Fingerprint,
        effort: Effort,
        longer: Steps | None,
    ) -> None:
        self.effort, self.ends, self.collapsed, self.reason = effort, list[Climb](), 0, ""
        self._steps, self._suspect, self._fingerprint = steps, suspect, fingerprint
        self._longer_steps = longer or steps
        self._known: list[tuple[Climb, np.ndarray]] = []  # the maxima, with their fingerprints

    @property
    def starts(self) -> int:
        """How many starts were climbed from."""
        return len(self.ends) + self.collapsed

    def begin(self, start: Callable[[], Any]) -> list[Climb]:
        """Climb a few steps from a start, or if they are costly to the end; nothing where the climb collapses."""
        until = _is_short if self.effort.gives_up else _has_slowed
        return self._climbed(start, self._steps, _never if self.effort.is_coarse else until)

    def _climbed(self, start: Callable[[], Any], steps: Steps, until: Until) -> list[Climb]:
        try:
            return [climb(start(), *steps, self.effort, until)]
        except AscentError:
            raise
        except NumericalError as error:
            self.collapsed, self.reason = self.collapsed + 1, str(error)
            return []

    def finish(self, begun: Climb) -> None:
        """Go on with a climb, unless it is at its end, until it is or falls behind."""
        ends = [begun] if self.effort.is_coarse else self._finished(begun)
        self.ends += [replace(end, degenerate=self._suspect(end.state, end.expectation.stats)) for end in ends]

    def _finished(self, begun: Climb) -> list[Climb]:
        if self._is_hopeless(begun) or self._is_behind(begun.trace):
            return [replace(begun, abandoned=True)]
        reached, traces = list[Climb](), [list(begun.trace)]

        def is_decided(state: object, trace: list[float]) -> bool:
            traces[0] = [*begun.trace[-PACE:-1], *trace]
            reached[:] = [end for end, rows in self._known if self._is_near(state, trace[-1], end, rows)]
            return bool(reached) or self._is_behind(traces[0])

        ends = self._climbed(lambda: begun.state, self._longer_steps, is_decided)
        gives_up = not reached and self._is_behind(traces[0])
        for end in ends if not (reached or gives_up) else ():
            if (rows := self._fingerprint(end.state)) is not None:
                self._known.append((end, rows))
        trace = [np.append(begun.trace, end.trace[1:]) for end in ends]
        return [replace(end, trace=trace[0], abandoned=gives_up) for end in reached[:1] or ends]

    def _is_near(self, state: object, height: float, end: Climb, rows: np.ndarray) -> bool:
        """Say whether a point is so near to a maximum that climbs from it end there."""
        if not 0 <= end.objective - height <= NEAR:
            return False
        own = self._fingerprint(state)
        return own is not None and _apart(own, rows) <= NEAR

    def _is_hopeless(self, begun: Climb) -> bool:
        """Say whether a climb would end far below the best though it gained ten times what its steps promise."""
        gain = 10 * begun.gain_left * max(1.0, abs(begun.objective))
        return bool(self._heights) and bool(begun.objective + gain < self._heights[0] - RIVALS)

    def _is_behind(self, trace: Sequence[float] | np.ndarray) -> bool:
        """Say whether many steps like the last ones would lead far below the best."""
        heights, last = self._heights, trace[-PACE - 1 :]
        if not heights or not self.effort.gives_up:  # other optima are wanted as well
            return False
        gain = (last[-1] - last[0]) / max(len(last) - 1, 1)
        return bool(trace[-1] + PATIENCE * gain < heights[0] - RIVALS)

    @property
    def _heights(self) -> list[float]:
        """The heights of the sound climbs so far, from the highest down."""
        return sorted((end.objective for end in self.ends if end.is_sound), reverse=True)

    def are_enough(self, restarts: int) -> bool:
        """Say whether two climbs have reached the best, or the budget has been used up."""
        if self.starts >= restarts and (self.effort.is_coarse or _reached(self._heights) >= 2):
            return True
        least = restarts if restarts > RESTARTS else 2
        return len(self.ends) >= least and sum(len(end.trace) for end in self.ends) >= self.effort.budget


def _never(state: object, trace: list[float]) -> bool:
    return False


def _has_slowed(state: object, trace: list[float]) -> bool:
    """Say whether a step has gained a small share of the total gain."""
    return len(trace) > 1 and trace[-1] - trace[-2] <= SLOW * (trace[-1] - trace[0])


def _is_short(state: object, trace: list[float]) -> bool:
    """Say whether a climb has slowed, or has taken several steps."""
    return len(trace) > SHORT or _has_slowed(state, trace)


def _reached(heights: list[float]) -> int:
    """Return how many climbs have reached the best; their heights are in order."""
    return sum(heights[0] - height <= SAME for height in heights)


def _why_none(climbs: list[Climb], reason: str, starts: int) -> str:
    if climbs and climbs[0].degenerate:
        reason = climbs[0].degenerate
    elif climbs:
        reason = f"no climb converged in {len(climbs[0].trace) - 1} steps"
    return f"none of {starts} starts led to a maximum that can be the answer: {reason}"
