"""Climbing an objective by alternating steps, from many starts: what EM and variational Bayes have in common.

The objective may not fall at any step, or the climb raises: a fall is a bug in the steps, and no tolerance hides it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayeszoo.errors import NumericalError
from bayeszoo.gate import Check, at_least, at_most
from bayeszoo.latent import Expectation
from bayeszoo.problem import Reporter

MAX_FALL = 1e-9
"""Share of the objective's size by which rounding may make it fall."""
GAIN_LEFT = 1e-9
"""A climb has converged when the gain that it has left is less than this share of the objective's size."""
SAME = 1e-5
"""Nats within which two climbs have reached the same maximum."""
ROUNDING = 1e-15
"""Share of the objective's size below which a gain is that of rounding."""
SAME_ROWS = 1e-3
"""Nats within which each row is as likely at one maximum as at another, if they are the same but for labels."""
NOISE = 1e-12
"""Share below which a gain may be that of rounding, if another step gained nothing."""
MAX_STEPS = 20_000
RESTARTS = 20
MOST_RESTARTS = 200

Begin = Callable[[np.random.Generator], Any]
Evaluate = Callable[[Any], tuple[float, Expectation]]
Update = Callable[[Any], Any]
Suspect = Callable[[Any], str]
Fingerprint = Callable[[Any], np.ndarray]


@dataclass(frozen=True, eq=False)
class Climb:
    """One climb.

    Attributes
    ----------
    state : Any
        Where it ended: the parameters of EM, q(theta) of variational Bayes.
    objective : float
        The height there.
    expectation : Expectation
        The E-step there.
    trace : ndarray of shape (steps,)
        The height at each step.
    gain_left : float
        What further steps would gain by Aitken's extrapolation, as a share of max(1, |objective|).
    degenerate : str
        Why it cannot be the answer, if it cannot.
    """

    state: Any
    objective: float
    expectation: Expectation
    trace: np.ndarray
    gain_left: float
    degenerate: str = ""

    @property
    def is_sound(self) -> bool:
        """Whether it converged, and to a point that may be the answer."""
        return not self.degenerate and self.gain_left <= GAIN_LEFT


@dataclass(frozen=True, eq=False)
class Search:
    """All climbs of one problem.

    Attributes
    ----------
    climbs : list of Climb
        The sound ones first, from the highest down.
    collapsed : int
        How many starts led to a point where the steps are not defined, as an empty component.
    fingerprint : callable, optional
        ``fingerprint(state) -> ndarray`` in nats, which does not depend on labels; it tells apart maxima that happen to
        have one height, such as mirror images.
    """

    climbs: list[Climb]
    collapsed: int
    fingerprint: Fingerprint | None = None

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

    def _are_same(self, one: Climb, other: Climb) -> bool:
        """Say whether two climbs ended at one maximum, under whatever labels."""
        if abs(one.objective - other.objective) > SAME or self.fingerprint is None:
            return abs(one.objective - other.objective) <= SAME
        difference = self.fingerprint(one.state) - self.fingerprint(other.state)
        return bool(np.max(np.abs(difference), initial=0.0) < SAME_ROWS)

    @property
    def facts(self) -> dict[str, Any]:
        """Figures of the search."""
        degenerate = [climb for climb in self.climbs if climb.degenerate]
        found = {
            "restarts": len(self.climbs) + self.collapsed,
            "reached_the_best": self.reached,
            "maxima": [climb.objective for climb in self.distinct[:5]],
            "degenerate": len(degenerate) + self.collapsed,
        }
        if not degenerate:
            return found
        highest = max(degenerate, key=lambda climb: climb.objective)
        return {**found, "highest_degenerate": highest.objective, "degenerate_because": highest.degenerate}

    @property
    def checks(self) -> list[Check]:
        """Whether the best climb converged, and whether a second one found the same maximum."""
        return [
            at_most("gain left by Aitken's extrapolation", self.best.gain_left, GAIN_LEFT),
            at_least("restarts that reached the best", self.reached, 2),
        ]


def climb(state: Any, evaluate: Evaluate, update: Update) -> Climb:
    """Alternate steps from ``state`` until nothing is left to gain.

    Parameters
    ----------
    state : Any
        The start.
    evaluate : callable
        ``evaluate(state) -> (objective, expectation)``: the E-step.
    update : callable
        ``update(expectation.stats) -> state``: the M-step.

    Raises
    ------
    NumericalError
        When the objective falls, which is a bug in the steps, or is not finite.
    """
    height, expectation = evaluate(state)
    trace = [height]
    while math.isfinite(height) and len(trace) <= MAX_STEPS and not _is_level(trace):
        state = update(expectation.stats)
        height, expectation = evaluate(state)
        _require_no_fall(trace[-1], height, len(trace))
        trace.append(height)
    if not math.isfinite(height):
        raise NumericalError(f"the objective is not finite ({height}) after {len(trace) - 1} steps")
    return Climb(state, height, expectation, np.array(trace), _gain_left(trace))


def _require_no_fall(before: float, after: float, step: int) -> None:
    if after < before - MAX_FALL * max(1.0, abs(before)):
        raise AscentError(f"the objective fell from {before:.12g} to {after:.12g} at step {step}: the steps are wrong")


class AscentError(NumericalError):
    """The objective fell: the model's steps do not climb it."""


def _is_level(trace: list[float]) -> bool:
    """Say whether the last steps gained nothing beyond rounding: the parameters are then right to half its digits.

    Of many rows rounding is larger, and shows in a step that gains nothing or less.
    """
    if len(trace) < 4:
        return False
    gains, size = np.diff(trace[-4:]), max(1.0, abs(trace[-1]))
    return bool(np.max(gains) <= (NOISE if np.min(gains) <= 0 else ROUNDING) * size)


def _gain_left(trace: list[float]) -> float:
    """Extrapolate the gains, which fall geometrically near a maximum (Aitken), as a share of the height."""
    size = max(1.0, abs(trace[-1]))
    gains = np.diff(trace)
    sure = gains[gains > 10 * NOISE * size][-10:]  # the ratio of smaller ones is that of their errors
    ratio = float((sure[-1] / sure[0]) ** (1 / (len(sure) - 1))) if len(sure) > 1 else 0.0
    last = max(float(gains[-1]), ROUNDING * size) if len(gains) else math.inf
    return max(last * ratio / (1 - ratio), ROUNDING * size) / size if ratio < 1 else math.inf


def search(
    begin: Begin,
    evaluate: Evaluate,
    update: Update,
    rng: np.random.Generator,
    reporter: Reporter,
    suspect: Suspect = lambda state: "",
    restarts: int = RESTARTS,
    fingerprint: Fingerprint | None = None,
) -> Search:
    """Climb from many starts, and from more of them until two have reached the best.

    Parameters
    ----------
    begin : callable
        ``begin(rng) -> state``.
    evaluate, update : callable
        As of `climb`.
    rng : numpy.random.Generator
        Of the starts.
    reporter : Reporter
        Takes progress.
    suspect : callable
        ``suspect(state) -> str`` says why a maximum cannot be the answer.
    restarts : int
        How many starts at first; at most ``MOST_RESTARTS``, or as many as are asked for.
    fingerprint : callable, optional
        As of `Search`.

    Raises
    ------
    NumericalError
        When no climb gave an answer.
    """
    climbs: list[Climb] = []
    collapsed, reason = 0, ""
    while len(climbs) + collapsed < max(restarts, MOST_RESTARTS):
        done = len(climbs) + collapsed
        if done >= restarts and _is_settled(climbs):
            break
        reporter.progress("restarts", done, max(restarts, done))
        try:
            found = climb(begin(rng), evaluate, update)
        except AscentError:
            raise
        except NumericalError as error:
            collapsed, reason = collapsed + 1, str(error)
            continue
        climbs.append(_marked(found, suspect(found.state)))
    ordered = sorted(climbs, key=lambda one: (one.is_sound, one.objective), reverse=True)
    if not any(one.is_sound for one in climbs):
        raise NumericalError(_why_none(ordered, reason, done + 1))
    return Search(ordered, collapsed, fingerprint)


def _is_settled(climbs: list[Climb]) -> bool:
    """Say whether two climbs have reached the best."""
    heights = sorted((one.objective for one in climbs if one.is_sound), reverse=True)
    return len(heights) > 1 and heights[0] - heights[1] <= SAME


def _marked(found: Climb, reason: str) -> Climb:
    return Climb(found.state, found.objective, found.expectation, found.trace, found.gain_left, reason)


def _why_none(climbs: list[Climb], reason: str, starts: int) -> str:
    if climbs and climbs[0].degenerate:
        reason = climbs[0].degenerate
    elif climbs:
        reason = f"no climb converged in {MAX_STEPS} steps"
    return f"none of {starts} starts led to a maximum that can be the answer: {reason}"
