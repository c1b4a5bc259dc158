"""Climbs of an objective by alternating steps from many starts, as in EM and variational Bayes.

A climb raises when the objective falls at any step: a fall is a bug in the steps, and no tolerance hides it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from bayeszoo.errors import NumericalError
from bayeszoo.foundation.process.progress import Reporter
from bayeszoo.inference.engine.acceleration import Evaluate, Steps, Update
from bayeszoo.inference.engine.maxima import GAIN_LEFT, MAX_UNSEEN, Climb, Fingerprint, Search, apart
from bayeszoo.model.base import Model

MAX_FALL = 1e-9  # share of the objective's size by which rounding may make it fall
ROUNDING = 1e-15  # share of the objective's size below which a gain is rounding
NOISE = 1e-12  # share below which a gain may be rounding, if another step gained nothing
SLOW = 3e-3  # the first part of a climb ends at a step with less than this share of its total gain
SHORT = 20  # most steps of the first part
NEAR = 1e-2
"""Nats, in total and in each row, within which a climb is taken to end at a known maximum."""
RIVALS = 20.0  # nats below the best maximum within which other maxima are wanted as well
PATIENCE = 100  # steps at the present pace in which a climb must come within `RIVALS` of the best, or it is abandoned
PACE = 5  # number of latest steps over which the gain is averaged
MAX_STEPS = 20_000
RESTARTS = 20
MORE_RESTARTS = 40  # most starts while a further climb is likely to end at an unseen maximum
MOST_RESTARTS = 200
LARGE = 100_000  # cost of a step above which climbs stop early, before only rounding is left to gain
COARSE = 1e-5
"""Share of the objective's size: a climb of costly steps stops when it has less than this left to gain."""
BUDGET = 1e9
"""Cost of all steps of a search, about half a minute, after which no climb is begun if there are two."""
NO_CLIMB = "no climb from"
"""The first words of the error of a search without an answer."""
OVERHEAD = 15_000  # constant cost of every step

Begin = Callable[[np.random.Generator], Any]
Suspect = Callable[[Any, Any], str]
Until = Callable[[Any, list[float]], bool]


@dataclass(frozen=True)
class Effort:
    """Limits on the length and the number of the climbs."""

    gain_left: float = GAIN_LEFT  # share of the objective's size that a converged climb may have left to gain
    steps: int = field(default_factory=lambda: MAX_STEPS)  # most steps of one climb
    budget: float = math.inf  # total steps of all climbs after which no further climb is begun
    gives_up: bool = False  # whether climbs far below the best are abandoned

    @classmethod
    def of(cls, model: Model, data: Any) -> Effort:
        """Return the limits for the size of the data, if the model tells the cost of a step."""
        if not (cost := model.cost(data)):
            return cls()
        total = max(BUDGET / (cost + OVERHEAD), 400.0)
        return cls(budget=total) if cost < LARGE else cls(COARSE, min(MAX_STEPS, int(total / 2)), total)

    @property
    def is_coarse(self) -> bool:
        """Whether climbs stop early; it is then unknown whether two climbs reached the same maximum."""
        return self.gain_left > GAIN_LEFT

    def is_level(self, trace: list[float]) -> bool:
        """Say whether to stop: steps gain nothing but rounding, or little is left to gain."""
        if not self.is_coarse or len(trace) < 10:
            return _is_level(trace)
        size = max(1.0, abs(trace[-1]))
        return trace[-1] - trace[-2] <= self.gain_left / 10 * size and _gain_left(trace[-12:]) <= self.gain_left


def climb(
    state: object,
    evaluate: Evaluate,
    update: Update,
    effort: Effort | None = None,
    until: Until = lambda state, trace: False,
) -> Climb:
    """Alternate ``evaluate(state) -> (objective, expectation)`` and ``update(stats) -> state`` until nothing is gained.

    The climb stops early when ``until(state, trace)`` is true. Raises `NumericalError` when the objective falls, which
    is a bug in the steps, or is not finite.
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
    """Say whether the latest steps gained nothing beyond rounding; the parameters then have half of all digits.

    With many rows rounding is larger, and shows in a step that gains nothing or less.
    """
    if len(trace) < 4:
        return False
    gains, size = [after - before for before, after in pairwise(trace[-4:])], max(1.0, abs(trace[-1]))
    return max(gains) <= (NOISE if min(gains) <= 0 else ROUNDING) * size


def _gain_left(trace: Sequence[float] | np.ndarray) -> float:
    """Extrapolate the gains, which fall geometrically near a maximum (Aitken); return what is left, as a share.

    If the gains grew until rounding hid them, as at the end of a plateau or of a long step, each hidden step counts
    with the latest gain.
    """
    gains = np.diff(trace) / max(1.0, abs(trace[-1]))
    if not len(gains):
        return math.inf
    clear = np.flatnonzero(gains > 10 * NOISE)[-10:]  # ratios of smaller gains are ratios of rounding errors
    clear_gains = gains[clear]
    ratio = float((clear_gains[-1] / clear_gains[0]) ** (1 / (len(clear_gains) - 1))) if len(clear_gains) > 1 else 0.0
    if ratio < 1:
        return max(max(float(gains[-1]), ROUNDING) * ratio / (1 - ratio), ROUNDING)
    hidden = len(gains) - 1 - int(clear[-1])
    return hidden * max(float(gains[-3:].max()), ROUNDING) if hidden >= 3 else math.inf


@dataclass(frozen=True)
class Ascent:
    """An objective to climb: its starts, its steps, and what is told of the end of a climb."""

    begin: Begin
    steps: Steps
    longer: Steps | None = None  # steps that go on from the first few of each climb, if they are others
    suspect: Suspect = lambda state, stats: ""  # the reason why a maximum cannot be the answer
    fingerprint: Fingerprint = lambda state: None  # numbers by which maxima are told apart


def search(
    ascent: Ascent,
    rng: np.random.Generator,
    reporter: Reporter,
    restarts: int = RESTARTS,
    effort: Effort | None = None,
) -> Search:
    """Climb from many starts; raise `NumericalError` when no climb gave an answer.

    There are at least ``restarts`` climbs, up to `MORE_RESTARTS` while a further climb is likely to end at an unseen
    maximum, and up to `MOST_RESTARTS` until two climbs have reached the best. When steps are costly, two climbs are
    enough unless ``restarts`` exceeds 20.

    From every start a few steps are taken, as in scikit-learn and mclust. Then the climbs go on from the highest down,
    by the longer steps if there are any. A climb ends when it converges, when it is near a maximum that another climb
    has reached, or, with ``effort.gives_up``, when it gains little far below the best. All are climbed, however many
    have reached the best so far: if there are many maxima, the first steps do not show which is the highest.
    """
    climbs = _Climbs(ascent, effort or Effort())
    while climbs.starts < max(restarts, MOST_RESTARTS) and not climbs.are_enough(restarts):
        wave, begun = 1 if climbs.effort.is_coarse else max(restarts - climbs.starts, 1), list[Climb]()
        for _ in range(wave):
            reporter.progress(
                f"looking for modes{climbs.best}, starts",
                climbs.starts + len(begun),
                max(restarts, climbs.starts + wave),
            )
            begun += climbs.begin(lambda: ascent.begin(rng))
        for i, climb_ in enumerate(sorted(begun, key=lambda climb_: climb_.objective, reverse=True)):
            if len(begun) > 1:
                reporter.progress(f"looking for modes, climbs{climbs.best}", i, len(begun))
            climbs.finish(climb_)
    ended = climbs.so_far
    if not ended.sound:
        raise NumericalError(_why_none(ended.climbs, climbs.reason, climbs.starts), "not_converged")
    return ended


class _Climbs:
    """The climbs of a search so far: finished ones, and how many collapsed."""

    def __init__(self, ascent: Ascent, effort: Effort) -> None:
        self.effort, self.ends, self.collapsed, self.reason = effort, list[Climb](), 0, ""
        self._ascent = ascent
        self._maxima: list[tuple[Climb, np.ndarray]] = []  # the maxima, with their fingerprints
        self._kept: dict[int, tuple[object, np.ndarray | None]] = {}  # ends and fingerprints, by the ids of the ends

    @property
    def starts(self) -> int:
        """The number of climbs begun."""
        return len(self.ends) + self.collapsed

    @property
    def best(self) -> str:
        """The height of the best maximum so far, as text for the progress line; empty if there is none."""
        heights = [end.objective for end in self.ends if end.is_sound]
        return f" (best so far {max(heights):.2f})" if heights else ""

    @property
    def so_far(self) -> Search:
        """The search up to now."""
        ordered = sorted(self.ends, key=lambda end: (end.is_sound, end.objective), reverse=True)
        return Search(ordered, self.collapsed, self._of_end, self.effort.gain_left)

    def _of_end(self, state: object) -> np.ndarray | None:
        """Return the fingerprint of the end of a climb, computed once."""
        if id(state) not in self._kept:
            self._kept[id(state)] = state, self._ascent.fingerprint(state)
        return self._kept[id(state)][1]

    def begin(self, start: Callable[[], object]) -> list[Climb]:
        """Climb a few steps from a start, or to the end if steps are costly; return no climb if it collapses."""
        until = _is_short if self.effort.gives_up else _has_slowed
        return self._climbed(start, self._ascent.steps, _never if self.effort.is_coarse else until)

    def _climbed(self, start: Callable[[], object], steps: Steps, until: Until) -> list[Climb]:
        try:
            return [climb(start(), *steps, self.effort, until)]
        except AscentError:
            raise
        except NumericalError as error:
            self.collapsed, self.reason = self.collapsed + 1, str(error)
            return []

    def finish(self, begun: Climb) -> None:
        """Continue a climb until it ends or is abandoned, unless it has ended."""
        ends = [begun] if self.effort.is_coarse else self._finished(begun)
        self.ends += [replace(end, degenerate=self._ascent.suspect(end.state, end.expectation.stats)) for end in ends]

    def _finished(self, begun: Climb) -> list[Climb]:
        if self._is_hopeless(begun) or self._is_behind(begun.trace):
            return [replace(begun, abandoned=True)]
        reached, traces, latest = list[Climb](), [list(begun.trace)], [begun.state]

        def is_decided(state: object, trace: list[float]) -> bool:
            traces[0] = [*begun.trace[-PACE:-1], *trace]
            latest[0] = state
            reached[:] = [end for end, rows in self._maxima if self._is_near(state, trace[-1], end, rows)]
            return bool(reached) or self._is_behind(traces[0])

        ends = self._climbed(lambda: begun.state, self._ascent.longer or self._ascent.steps, is_decided)
        gives_up = not reached and self._is_behind(traces[0])
        for end in ends if not (reached or gives_up) else ():
            if (rows := self._of_end(end.state)) is not None:
                self._maxima.append((end, rows))
        trace = [np.append(begun.trace, end.trace[1:]) for end in ends]
        merged = [replace(end, merged_at=latest[0]) for end in reached[:1]]
        return [replace(end, trace=trace[0], abandoned=gives_up) for end in merged or ends]

    def _is_near(self, state: object, height: float, end: Climb, rows: np.ndarray) -> bool:
        """Say whether a state is so near a maximum that the climb is taken to end there."""
        if not 0 <= end.objective - height <= NEAR:
            return False
        fingerprint = self._ascent.fingerprint(state)
        return fingerprint is not None and apart(fingerprint, rows) <= NEAR

    def _is_hopeless(self, begun: Climb) -> bool:
        """Say whether a climb would end far below the best even with ten times its extrapolated gain."""
        gain = 10 * begun.gain_left * max(1.0, abs(begun.objective))
        return bool(self._heights) and bool(begun.objective + gain < self._heights[0] - RIVALS)

    def _is_behind(self, trace: Sequence[float] | np.ndarray) -> bool:
        """Say whether `PATIENCE` more steps at the latest pace would end far below the best."""
        heights, latest = self._heights, trace[-PACE - 1 :]
        if not heights or not self.effort.gives_up:  # other optima are wanted as well
            return False
        gain = (latest[-1] - latest[0]) / max(len(latest) - 1, 1)
        return bool(trace[-1] + PATIENCE * gain < heights[0] - RIVALS)

    @property
    def _heights(self) -> list[float]:
        """The heights of the sound climbs so far, from the highest down."""
        return sorted((end.objective for end in self.ends if end.is_sound), reverse=True)

    def are_enough(self, restarts: int) -> bool:
        """Say whether two climbs reached the best and higher maxima are unlikely, or the budget is used up."""
        if self.starts >= restarts and (self.effort.is_coarse or self._has_settled):
            return True
        least = restarts if restarts > RESTARTS else 2
        return len(self.ends) >= least and sum(len(end.trace) for end in self.ends) >= self.effort.budget

    @property
    def _has_settled(self) -> bool:
        """Whether two climbs reached the best, and a new maximum is unlikely or `MORE_RESTARTS` climbs were made."""
        ended = self.so_far
        return bool(ended.sound) and ended.reached >= 2 and (self.starts >= MORE_RESTARTS or ended.unseen <= MAX_UNSEEN)


def _never(state: object, trace: list[float]) -> bool:
    return False


def _has_slowed(state: object, trace: list[float]) -> bool:
    """Say whether the latest step gained only a small share of the total gain."""
    return len(trace) > 1 and trace[-1] - trace[-2] <= SLOW * (trace[-1] - trace[0])


def _is_short(state: object, trace: list[float]) -> bool:
    """Say whether a climb has slowed, or has taken several steps."""
    return len(trace) > SHORT or _has_slowed(state, trace)


def _why_none(climbs: list[Climb], reason: str, starts: int) -> str:
    if climbs and climbs[0].degenerate:
        reason = climbs[0].degenerate
    elif climbs:
        reason = f"no climb converged in {len(climbs[0].trace) - 1} steps"
    return f"{NO_CLIMB} {starts} starts reached a valid maximum: {reason}"
