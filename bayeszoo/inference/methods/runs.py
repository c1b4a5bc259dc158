"""One run of NUTS: its settings, its result, and PyMC's own sampler as one of the samplers."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from bayeszoo.compile.density import strict
from bayeszoo.errors import Interrupted
from bayeszoo.foundation.gate import arrays_in
from bayeszoo.foundation.process import signals
from bayeszoo.inference.engine.attempts import TooLarge
from bayeszoo.inference.problem import Problem
from bayeszoo.inference.starts import Start, announce, starts


@dataclass(frozen=True)
class Settings:
    """The settings of one run of a sampler."""

    draws: int
    tune: int
    chains: int
    target_accept: float
    begin: tuple[Start, ...] = ()  # starts of the chains; empty for the known modes

    def longer(self, factor: int, accept: float, begin: tuple[Start, ...]) -> Settings:
        """Return the settings of a run of N times the length, of at least this target acceptance."""
        draws, tune, accept = factor * self.draws, factor * self.tune, max(self.target_accept, accept)
        return Settings(draws, tune, self.chains, accept, begin)


class Run(NamedTuple):
    """The result of one run of a sampler: draws and statistics of the sampler by name, arrays (chain, draw, ...)."""

    draws: Mapping[str, np.ndarray]
    stats: Mapping[str, np.ndarray]
    interrupted: bool = False
    sampler: str = "nutpie"

    @property
    def length(self) -> int:
        """The number of draws of each chain."""
        return int(next(iter(self.draws.values())).shape[1])


NUMBERS_MORE = 18
"""Number of statistics that are kept with each draw."""


def require_room(problem: Problem, settings: Settings) -> None:
    """Raise `TooLarge` when the draws do not fit in memory: the process would be killed while the chains run."""
    numbers = NUMBERS_MORE + sum(math.prod(shape) for shape in problem.density.shapes.values())
    bytes_of_draw, memory = 8 * settings.chains * numbers, memory_of_machine()
    if (taken := bytes_of_draw * (settings.draws + settings.tune)) > memory:
        size = f"{settings.chains} chains of {settings.draws:,} draws would take {taken / 2**30:,.1f} GB"
        raise TooLarge(
            f"{size}, more than the memory of this machine, {memory / 2**30:.1f} GB",
            "too_large",
            hint=f"ask for at most {max(1, int(memory / bytes_of_draw) - settings.tune)} draws",
        )


def memory_of_machine() -> float:
    """Return the bytes of memory of this machine, or infinity if it does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return math.inf


def shared_out(starts: Sequence[Start], chains: int) -> list[tuple[Start, int]]:
    """Divide the chains evenly among the starts; the first starts get the remaining chains."""
    used = starts[:chains]
    return [(start, chains // len(used) + (i < chains % len(used))) for i, start in enumerate(used)]


def with_pymc(problem: Problem, settings: Settings) -> Run:
    """Run the chains one after the other with PyMC's sampler."""
    import pymc as pm

    declared, watch = problem.declared, _Watch(problem, settings)
    by = {"compile_kwargs": {"mode": fallback}} if (fallback := problem.density.fallback) else {}
    with problem.clock.phase("run"), threadpool_limits(1), signals.keeping(), strict():
        seed, begin = problem.seed(), _initial_points(problem, settings)
        if not settings.begin and "joint" in vars(problem.density):  # compiled already; PyMC does not need it
            announce(problem, settings.chains, settings.draws + settings.tune, settings.chains)
        try:
            tree = pm.sample(
                draws=settings.draws,
                tune=settings.tune,
                chains=settings.chains,
                cores=1,
                target_accept=settings.target_accept,
                random_seed=seed,
                nuts_sampler="pymc",
                **begin,
                **by,
                model=declared,
                progressbar=False,
                quiet=True,
                compute_convergence_checks=False,
                callback=watch,
            )
        except ValueError:
            if watch.interrupted:  # no chain has a draw
                raise Interrupted("stopped before any chain had a draw; nothing was kept", "no_draws") from None
            raise
        if watch.interrupted:
            signals.answer()
    return Run(arrays_in(tree, "posterior"), arrays_in(tree, "sample_stats"), watch.interrupted, "pymc")


def _initial_points(problem: Problem, settings: Settings) -> dict[str, Any]:
    """Return PyMC's options for chains that begin at known modes; without modes PyMC jitters its own initial point."""
    begin = settings.begin or starts(problem)
    if not settings.begin and all(start.scale is None for start in begin):
        return {}
    density, names = problem.density, [variable.name for variable in problem.declared.free_RVs]
    places = [start for start, count in shared_out(begin, settings.chains) for _ in range(count)]
    points = (density.constrain(start.near(problem.seed(), density.joint)) for start in places)
    return {"initvals": [{name: point[name] for name in names} for point in points], "init": "adapt_diag"}


class _Watch:
    """Counts the draws of PyMC's chains: on Ctrl-C PyMC silently ends the running chain and starts the next."""

    def __init__(self, problem: Problem, settings: Settings) -> None:
        self._reporter, self._length = problem.reporter, settings.draws + settings.tune
        self._done = np.zeros(settings.chains, dtype=int)

    def __call__(self, trace: Any, draw: Any) -> None:
        """Count a draw; end the chain if an earlier chain was cut short or a signal was lost."""
        if signals.received or (self._done[: draw.chain] < self._length).any():
            raise KeyboardInterrupt
        self._done[draw.chain] += 1
        if (done := int(self._done.sum())) % 100 == 0:
            self._reporter.progress("sampling", done, len(self._done) * self._length)

    @property
    def interrupted(self) -> bool:
        """Whether any chain is shorter than requested."""
        return bool((self._done < self._length).any())
