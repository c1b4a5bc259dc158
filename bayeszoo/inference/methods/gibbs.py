"""Collapsed Gibbs sampling: chains over the latent variables alone, run on until they agree.

Parameters are integrated out (Liu 1994, JASA 89, 958-966) and drawn given the latent variables whenever a draw is kept,
so that draws are of the posterior as soon as the chain is.

A chain that moves one latent variable at a time seldom leaves a mode, and from random starts chains end in different
ones. Chains are therefore annealed while they warm up (Kirkpatrick, Gelatt and Vecchi 1983, Science 220, 671-680):
probabilities are raised to a power that rises to 1, so that all begin where there is one mode, and find their way as it
parts. Chains that agree then are no proof that the posterior has no other mode; chains that do not are one.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

import numpy as np
import xarray as xr

from bayeszoo.errors import InputError, Interrupted
from bayeszoo.foundation import signals
from bayeszoo.foundation.gate import STRUCTURAL, Check, check_draws, failures, passed
from bayeszoo.foundation.progress import Reporter
from bayeszoo.inference.labels.symmetry import label_free, some_entries
from bayeszoo.inference.problem import Outcome, Problem
from bayeszoo.model.capabilities import Chain, Collapsed

ATTEMPTS = 3
"""Runs, each with twice as many sweeps for a draw, and in warmup if there is one, as the one before."""
APART = 1.3
"""R-hat above which chains are taken to be in different modes, which no longer run mends."""
LEAST_POWER = 0.3
"""At which warmup begins."""
ANNEALED = 0.75
"""Share of the warmup in which the power rises to 1."""
MOST_BYTES = 2 * 2**30
"""Of all draws."""
_SECONDS = 0.1
"""Between reports of progress."""


def run(
    problem: Problem, *, draws: int = 500, tune: int = 1000, chains: int = 4, thin: int = 10, extend: bool = True
) -> Outcome:
    """Sample the posterior.

    Parameters
    ----------
    problem : Problem
        Its model must be `Collapsed`.
    draws : int
        Kept draws of each chain. A draw holds every parameter: where all would take more than 2 GB they are refused.
    tune : int
        Sweeps of each chain before its kept draws; three quarters of them anneal it.
    chains : int
        Number of chains, each in a thread of its own.
    thin : int
        Sweeps for each kept draw.
    extend : bool
        Whether chains that fail the gate go on, with twice and then four times as many sweeps for each draw; those that
        are far apart are annealed again, as much more slowly.

    Raises
    ------
    InputError
        When the draws would take too much memory; nothing was sampled.
    Interrupted
        When the run was stopped before every chain had a draw.
    """
    model = problem.model_as(Collapsed)
    with problem.clock.phase("run"):
        made = [model.gibbs(problem.data, np.random.default_rng(problem.seed())) for _ in range(chains)]
        kept, warmup, before = Kept.like(made[0], (chains, draws)), tune, tune
        for attempt in range(1, (ATTEMPTS if extend else 1) + 1):
            sampling = Sampling(made, kept, warmup, thin)
            complete = sampling.finish(problem.reporter)
            found = kept if complete else kept.first(sampling.length)
            checks = _judged(problem, found)
            if not complete or passed(checks) or not _longer_may_help(checks) or attempt == ATTEMPTS or not extend:
                break
            problem.reporter.say(f"attempt {attempt} did not pass: {failures(checks)}")
            tune, warmup = 2 * tune, 2 * tune if _are_apart(checks) else 0
            before, thin = before + draws * thin + warmup, 2 * thin
    return Outcome(
        found.draws,
        "collapsed Gibbs",
        checks,
        {"attempts": attempt, "tune": before, "thin": thin},
        sample_stats={"lp": found.log_joint},
        interrupted=not complete,
    )


def _judged(problem: Problem, kept: Kept) -> list[Check]:
    """Check the log joint density of the chains, and where labels mean nothing what does not depend on them."""
    free = label_free(problem.model, kept.draws, problem.given)
    of_labels = kept.draws if free is None else {str(name): values.to_numpy() for name, values in free.items()}
    return check_draws(_moving({**of_labels, "lp": kept.log_joint[..., None]}))


def _moving(draws: dict[str, np.ndarray]) -> xr.Dataset:
    """Return entries, not too many, but for those that are the same in all draws, as the share of an only topic."""
    flat = {name: some_entries(values) for name, values in draws.items()}
    moving = {name: values[..., (values != values[:1, :1]).any(axis=(0, 1))] for name, values in flat.items()}
    return xr.Dataset({name: (("chain", "draw", f"{name}_dim"), values) for name, values in moving.items()})


def _are_apart(checks: list[Check]) -> bool:
    return any(check.name == "r_hat" and not (check.value or np.inf) <= APART for check in checks)


def _longer_may_help(checks: list[Check]) -> bool:
    return all(check.passed for check in checks if check.name in STRUCTURAL)


@dataclass(frozen=True, eq=False)
class Kept:
    """The draws of all chains."""

    draws: dict[str, np.ndarray]  # shape (chain, draw, *parameter shape)
    log_joint: np.ndarray  # shape (chain, draw): of the latent variables that each draw was made from

    @classmethod
    def like(cls, chain: Chain, size: tuple[int, int]) -> Kept:
        """Make room for so many chains and draws of a chain, or raise `InputError` if they need too much memory."""
        shapes = {name: np.shape(values) for name, values in chain.draw().items()}
        one = 8 * sum(map(math.prod, shapes.values()))
        if (taken := size[0] * size[1] * one) > MOST_BYTES:
            most = MOST_BYTES // (size[0] * one)
            raise InputError(
                f"{size[0]} chains of {size[1]} draws of {' and '.join(shapes)} would take {taken / 2**30:.1f} GB, "
                f"more than {MOST_BYTES / 2**30:g} GB",
                hint=f"ask for at most {most} draws" if most else "use fewer components or less data",
            )
        return cls({name: np.empty((*size, *shape)) for name, shape in shapes.items()}, np.empty(size))

    def put(self, chain: int, draw: int, what: Chain) -> None:
        """Keep where a chain is."""
        self.log_joint[chain, draw] = what.log_joint
        for name, values in what.draw().items():
            self.draws[name][chain, draw] = values

    def first(self, length: int) -> Kept:
        """Return the first draws of every chain."""
        return Kept({name: values[:, :length] for name, values in self.draws.items()}, self.log_joint[:, :length])


class Sampling:
    """Chains on their way, each in a thread of its own; in a warmup of ``tune`` sweeps they are annealed first."""

    def __init__(self, chains: list[Chain], kept: Kept, tune: int, thin: int) -> None:
        self._chains, self._kept, self._tune, self._thin = chains, kept, tune, thin
        self._done, self._stop = [0] * len(chains), threading.Event()

    def finish(self, reporter: Reporter) -> bool:
        """Sample until every draw is made, or until Ctrl-C; say which."""
        total = len(self._chains) * (self._tune + self._kept.log_joint.shape[1] * self._thin)
        running: list[Future[None]] = []
        with signals.keeping(), ThreadPoolExecutor(len(self._chains)) as pool:
            try:
                running += [pool.submit(self._sample, c) for c in range(len(self._chains))]
                while wait(running, _SECONDS).not_done:
                    reporter.progress("sampling", sum(self._done), total)
            except KeyboardInterrupt:
                self._stop.set()
        for chain in running:
            chain.result()  # or what it raised
        return not self._stop.is_set()

    @property
    def length(self) -> int:
        """How many draws every chain has."""
        length = max(0, min(self._done) - self._tune) // self._thin
        if length == 0:
            raise Interrupted("stopped before every chain had a draw; nothing was kept")
        return length

    def _sample(self, c: int) -> None:
        try:
            for done in self._swept(c):
                draw, rest = divmod(done - self._tune, self._thin)
                if draw > 0 and rest == 0:
                    self._kept.put(c, draw - 1, self._chains[c])
                self._done[c] = done
        except BaseException:
            self._stop.set()  # the other chains are of no use
            raise

    def _swept(self, c: int) -> Iterator[int]:
        """Sweep one chain, and count its sweeps."""
        for done in range(1, self._tune + self._kept.log_joint.shape[1] * self._thin + 1):
            if self._stop.is_set():
                return
            self._chains[c].sweep(1, self._power(done))
            yield done

    def _power(self, done: int) -> float:
        """Return the power of a sweep, counted from 1: it rises in a line, and is 1 in the last quarter of warmup."""
        annealed = int(ANNEALED * self._tune)
        return LEAST_POWER + (1 - LEAST_POWER) * (done - 1) / annealed if done <= annealed else 1.0
