"""The cost of a run of NUTS: a few gradients are timed before it, and a long run is announced with an estimate."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bayeszoo.foundation.numerics.optimize import Gradient
from bayeszoo.foundation.process.progress import lasting

if TYPE_CHECKING:
    from bayeszoo.inference.problem import Problem

STEPS = 7, 2**10 - 1
"""Gradients per draw: for a posterior near a Gaussian, and for a tree of the greatest depth."""
LONG = 20.0  # seconds, in the middle of the estimated range, above which a run is announced


def announce(problem: Problem, chains: int, draws: int, in_turn: int) -> float:
    """Report how long ``chains`` of N draws, warmup included, may take, if that is long; this changes no draw.

    ``in_turn`` is the number of chains that run one after the other. Returns the middle of the range in seconds.
    """
    gradient = _gradient_seconds(problem.density.joint, problem.density.start)
    least, most = (gradient * steps * draws * in_turn for steps in STEPS)
    if (middle := math.sqrt(least * most)) > LONG:
        size = f"{chains} chains of {draws:,} draws with warmup, {STEPS[0]} to {STEPS[1]:,} gradients each"
        line = f"NUTS may take {lasting(least)} to {lasting(most)}, an estimate: {size}, of {1e3 * gradient:.2g} ms"
        problem.reporter.say(line)
    return middle


def _gradient_seconds(joint: Gradient, x: np.ndarray) -> float:
    """Return the median time of ten gradients, or of as many as fit in half a second."""
    timed = list[float]()
    while len(timed) < 10 and sum(timed) < 0.5:
        start = time.perf_counter()
        joint(x)
        timed.append(time.perf_counter() - start)
    return statistics.median(timed)


def announce_again(problem: Problem, lengths: Sequence[int]) -> None:
    """Report how long a run of the last of these lengths may take, from the time of the others, if that is long."""
    seconds = problem.clock.seconds["run"] * lengths[-1] / sum(lengths[:-1])
    if seconds > LONG:
        problem.reporter.say(f"attempt {len(lengths)} may take {lasting(seconds)} or more, by what it took so far")
