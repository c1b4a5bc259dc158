"""Gibbs sampling: chains over latent variables, collapsed or with parameters, that go on until they agree.

If the parameters can be integrated out, the chain is collapsed (Liu 1994, JASA 89, 958-966): they are drawn given the
latent variables only when a draw is kept. Otherwise latent variables and parameters are drawn in turn (Tanner and Wong
1987, JASA 82, 528-540).

A chain that moves one latent variable at a time seldom leaves a mode. When a model may have several modes, three times
as many short chains look for them; the best chains go on, and must visit every mode where another has settled.

From random starts most collapsed chains end in poor modes. They are therefore annealed during warmup (Kirkpatrick,
Gelatt and Vecchi 1983, Science 220, 671-680): probabilities are raised to a power that rises to 1. All chains begin
with a flattened density of one mode, and follow it as it splits. Chains that also draw parameters are not annealed.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial

import numpy as np

from bayeszoo.errors import InputError, Interrupted
from bayeszoo.foundation.gate import APART, Check, check_draws
from bayeszoo.foundation.process import signals
from bayeszoo.foundation.process.progress import Reporter
from bayeszoo.inference.engine.attempts import first_to_pass, with_checks
from bayeszoo.inference.engine.settled import Settled, unvisited
from bayeszoo.inference.labels.symmetry import label_free, some_entries
from bayeszoo.inference.problem import Outcome, Problem
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import Collapsed, Gibbs, PointMasses, is_log_concave
from bayeszoo.model.capabilities.steps import GibbsChain

ATTEMPTS = 3  # most runs, each with twice the sweeps per draw or, when annealed again, twice the warmup
LEAST_POWER = 0.3  # power at the beginning of the warmup
ANNEALED = 0.75  # share of the warmup in which the power rises to 1
MOST_BYTES = 2 * 2**30  # most memory for all draws
SCOUTS, SCOUT_DRAWS = 3, 200
"""Short chains that look for modes, per chain that goes on, and the most draws of a short chain."""
SETTLING = 0.25
"""Sweeps of an annealed short chain after its warmup, as a share of the warmup."""
LP = "log p(y, z)"
"""Name of an extra array of draws: the log joint density of data and latent variables at each draw."""


def run(
    problem: Problem, *, draws: int = 500, tune: int = 1000, chains: int = 4, thin: int = 10, extend: bool = True
) -> Outcome:
    """Sample the posterior: each chain makes ``tune`` sweeps of warmup, then keeps a draw every ``thin`` sweeps.

    A collapsed chain is annealed in three quarters of the warmup. If the model may have several modes, three times as
    many chains look for them during warmup. With ``extend``, chains that fail the gate go on with twice the sweeps per
    draw; annealed chains that are far apart are annealed again instead, with twice the warmup.
    """
    model, scouts = problem.model_as(Gibbs), not is_log_concave(problem.model)
    with problem.clock.phase("run"):
        samplers = [
            model.gibbs(problem.data, np.random.default_rng(problem.seed()))
            for _ in range(chains * (SCOUTS if scouts else 1))
        ]
        samplers, earlier = _best(problem, samplers, chains, tune) if scouts else (samplers, [])
        attempts = _attempts(problem, samplers, earlier, draws, tune, thin)
        return first_to_pass(problem, attempts, ATTEMPTS if extend else 1)


def _is_annealed(problem: Problem) -> bool:
    return isinstance(problem.model, Collapsed) and problem.model.is_annealed


def _scouting(problem: Problem, tune: int) -> tuple[int, int]:
    """Return the number of annealed sweeps of the short chains, and of the sweeps that follow."""
    return (tune, int(SETTLING * tune)) if _is_annealed(problem) else (0, tune)


def _best(problem: Problem, scouts: list[GibbsChain], count: int, tune: int) -> tuple[list[GibbsChain], list[Settled]]:
    """Run short chains; return the chains with the highest log density, and where all of them settled."""
    warmup, sweeps = _scouting(problem, tune)
    thin = max(1, -(-sweeps // SCOUT_DRAWS))
    kept = _room(scouts[0], (len(scouts), max(2, sweeps // thin)))
    length = _sample(scouts, kept, warmup, thin, problem.reporter)
    settled = _settled(problem, {name: values[:, :length] for name, values in kept.items()})
    return [scouts[c] for c in _highest(settled)[:count]], [settled]


def _highest(settled: Settled) -> np.ndarray:
    """Return the indices of the chains by mean log density, highest first."""
    return np.argsort(-settled.log_density.mean(axis=1))


def _settled(problem: Problem, kept: dict[str, np.ndarray]) -> Settled:
    draws = {name: values for name, values in kept.items() if name != LP}
    return Settled.of(problem.model, draws, problem.observed, kept[LP])


def _left_behind(problem: Problem, kept: dict[str, np.ndarray], earlier: list[Settled]) -> list[Check]:
    """Check that draws visited every region where an earlier chain settled, with a margin for its unknown mass."""
    if not earlier:
        return []
    latest = _settled(problem, kept)
    return unvisited(latest, earlier, float(latest.log_density.var()))


def _attempts(
    problem: Problem,
    samplers: list[GibbsChain],
    earlier: list[Settled],
    draws: int,
    tune: int,
    thin: int,
) -> Iterator[Outcome]:
    """Run the chains again and again, each time longer, or annealed again where they are apart.

    If ``earlier`` chains looked for modes, the chains have warmed up. Chains that are annealed again must visit every
    region where the chains before them settled.
    """
    warmup, settled = 0 if earlier else tune, list(earlier)
    warmup_sweeps = sum(_scouting(problem, tune)) if earlier else tune
    kept = _room(samplers[0], (len(samplers), draws))
    for attempt in itertools.count(1):
        length = _sample(samplers, kept, warmup, thin, problem.reporter)
        kept = {name: values[:, :length] for name, values in kept.items()}
        facts = {"attempts": attempt, "tune": warmup_sweeps, "thin": thin}
        outcome = _outcome(problem.model, kept, facts, interrupted=length < draws)
        outcome = with_checks(problem, outcome, partial(_judged, problem, kept, settled))
        yield outcome
        are_apart = _is_annealed(problem) and any(
            check.name == "r_hat" and not (check.value or np.inf) <= APART for check in outcome.checks
        )
        settled += [_settled(problem, kept)] if are_apart else []
        tune, warmup = 2 * tune, 2 * tune if are_apart else 0  # separated chains need annealing, not more draws
        warmup_sweeps, thin = warmup_sweeps + draws * thin + warmup, thin if are_apart else 2 * thin
        kept = {name: np.empty_like(values) for name, values in kept.items()}


def _outcome(model: Model, kept: dict[str, np.ndarray], facts: Mapping[str, int], interrupted: bool) -> Outcome:
    draws = {name: values for name, values in kept.items() if name != LP}
    sampler = "collapsed Gibbs" if isinstance(model, Collapsed) else "Gibbs"
    return Outcome(draws, sampler, [], facts, sample_stats={"lp": kept[LP]}, interrupted=interrupted)


def _judged(problem: Problem, kept: dict[str, np.ndarray], earlier: list[Settled]) -> list[Check]:
    """Check the mixing of the chains: of their log joint density, and of quantities that do not depend on labels.

    Entries that are the same in all draws, such as the share of the only topic, are left out.
    """
    draws = {name: values for name, values in kept.items() if name != LP}
    if isinstance(problem.model, PointMasses):
        draws = {name: _ties_broken(values, problem.rng) for name, values in draws.items()}
    free = label_free(problem.model, draws, problem.observed)
    of_labels = draws if free is None else free
    flat = {name: some_entries(values) for name, values in {**of_labels, "lp": kept[LP][..., None]}.items()}
    moving = {name: values[..., (values != values[:1, :1]).any(axis=(0, 1))] for name, values in flat.items()}
    return [*check_draws(moving), *_left_behind(problem, kept, earlier)]


def _ties_broken(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Replace zeros by random numbers next to 0: diagnostics use ranks, which a chain of zeros does not have.

    Chains that agree on how often a number is 0 still agree; they disagree if it is always 0 in only some of them.
    """
    near = 1e-9 * np.min(np.abs(values), where=values != 0, initial=1.0)
    return np.where(values == 0, near * rng.standard_normal(values.shape), values)


def _room(chain: GibbsChain, size: tuple[int, int]) -> dict[str, np.ndarray]:
    """Allocate N chains of M draws, or raise `InputError` if they need too much memory."""
    shapes = {name: np.shape(values) for name, values in chain.draw().items()}
    bytes_of_draw = 8 * sum(map(math.prod, shapes.values()))
    if (taken := size[0] * size[1] * bytes_of_draw) > MOST_BYTES:
        most = MOST_BYTES // (size[0] * bytes_of_draw)
        raise InputError(
            f"{size[0]} chains of {size[1]} draws of {' and '.join(shapes)} would take {taken / 2**30:.1f} GB, "
            f"more than {MOST_BYTES / 2**30:g} GB",
            "too_large",
            hint=f"ask for at most {most} draws" if most else "use fewer components or less data",
        )
    return {**{name: np.empty((*size, *shape)) for name, shape in shapes.items()}, LP: np.empty(size)}


def _sample(chains: list[GibbsChain], kept: dict[str, np.ndarray], tune: int, thin: int, reporter: Reporter) -> int:
    """Continue each chain in its own thread, annealed during ``tune`` sweeps, until every draw is kept or Ctrl-C.

    Return the number of draws that every chain has; raise `Interrupted` if that is 0.
    """
    total = tune + kept[LP].shape[1] * thin
    done, stop = [0] * len(chains), threading.Event()

    def sweep(c: int) -> None:
        try:
            while done[c] < total and not stop.is_set():
                chains[c].sweep(1, _power(done[c], tune))
                draw, remainder = divmod(done[c] + 1 - tune, thin)
                if draw > 0 and remainder == 0:
                    for name, values in {**chains[c].draw(), LP: chains[c].log_joint}.items():
                        kept[name][c, draw - 1] = values
                done[c] += 1
        except BaseException:
            stop.set()  # the draws of the other chains are not used
            raise

    running: list[Future[None]] = []
    with signals.keeping(), ThreadPoolExecutor(len(chains)) as pool:
        try:
            running += [pool.submit(sweep, c) for c in range(len(chains))]
            while wait(running, 0.1).not_done:  # seconds between reports
                reporter.progress("sampling", sum(done), len(chains) * total)
        except KeyboardInterrupt:
            signals.answer()
            stop.set()
    for chain in running:
        chain.result()  # raises the exception of the thread
    if not (length := max(0, min(done) - tune) // thin):
        raise Interrupted("stopped before every chain had a draw; nothing was kept", "no_draws")
    return length


def _power(done: int, tune: int) -> float:
    """Return the power of the next sweep after ``done`` sweeps: it rises linearly to 1 at three quarters of warmup."""
    annealed = int(ANNEALED * tune)
    return LEAST_POWER + (1 - LEAST_POWER) * done / annealed if done < annealed else 1.0
