"""The No-U-Turn sampler by nutpie or PyMC, run again with more and smaller steps until the gate passes."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from bayeszoo.errors import InputError, Interrupted, NoAddress, NumericalError
from bayeszoo.foundation.gate import (
    Check,
    care_may_help,
    check_draws,
    check_hmc,
    recorded_log_density,
)
from bayeszoo.foundation.named import Statistics
from bayeszoo.foundation.numerics.optimize import NOT_FINITE
from bayeszoo.foundation.process import signals
from bayeszoo.foundation.process.importing import later
from bayeszoo.inference.engine.attempts import first_to_pass, with_checks
from bayeszoo.inference.engine.cost import announce_again
from bayeszoo.inference.engine.settled import Settled, unvisited
from bayeszoo.inference.labels.symmetry import label_free
from bayeszoo.inference.methods.runs import Run, Settings, require_room, shared_out, with_pymc
from bayeszoo.inference.problem import Outcome, Problem
from bayeszoo.inference.starts import Start, announce, starts, visit_checks

if TYPE_CHECKING:
    from bayeszoo.compile.native import Native

FLAT = "flat"
"""Name of nutpie's single variable: all parameters, concatenated."""
AT_LEAST = ("diverging", "energy", "logp", "maxdepth_reached")
"""Statistics kept of an interrupted run, those of the gate: all 18 would delay saving it."""
UNUSABLE = (ImportError, AttributeError, TypeError, NotImplementedError, NoAddress)
"""Errors of a library that is missing, or whose interface is not the one that bayeszoo knows."""
ATTEMPTS = ((1, 0.0), (2, 0.95), (4, 0.99))  # length factor and least target acceptance of each attempt


def run(
    problem: Problem,
    *,
    draws: int = 1000,
    tune: int = 1000,
    chains: int = 4,
    target_accept: float = 0.8,
    sampler: str = "nutpie",
    extend: bool = True,
) -> Outcome:
    """Sample the posterior of continuous variables with ``sampler`` "nutpie" or "pymc", which differ in their checks.

    With ``extend`` a run that fails the gate is repeated at 2 and 4 times the length, with target acceptance 0.95 and
    0.99.
    """
    if sampler not in SAMPLERS:
        raise InputError(f"there is no sampler {sampler!r}", "unknown_method", hint=f"use {' or '.join(SAMPLERS)}")
    if sampler == "nutpie" and tune < 1:
        raise InputError(
            f"nutpie needs at least one draw of warmup, got tune={tune}", "out_of_range", hint="leave tune out"
        )
    attempts = _attempts(problem, Settings(draws, tune, chains, target_accept), sampler)
    return first_to_pass(problem, attempts, len(ATTEMPTS) if extend else 1)


def _attempts(problem: Problem, settings: Settings, sampler: str) -> Iterator[Outcome]:
    """Run the chains; run them again from where they ended, longer and with smaller steps, while that may help."""
    runs: list[Run] = []
    for attempt, (factor, accept) in enumerate(ATTEMPTS, start=1):
        longer = settings.longer(factor, accept, _ends(problem, runs[-1]) if runs else ())
        run = _sampled(problem, longer, sampler)
        facts = {"attempts": attempt, "tune": longer.tune, "target_accept": longer.target_accept}
        outcome = with_checks(problem, _outcome(problem, run, facts), partial(_checks, problem, run, runs))
        yield outcome
        if not care_may_help({check.name: check.value for check in outcome.checks}, longer.draws * longer.chains):
            problem.reporter.say("not run again: separated chains and many divergences suggest an improper posterior")
            return
        runs, sampler = [*runs, run], run.sampler
        announce_again(problem, [length for length, _ in ATTEMPTS[: attempt + 1]])


def _sampled(problem: Problem, settings: Settings, sampler: str) -> Run:
    require_room(problem, settings)
    try:
        return SAMPLERS[sampler](problem, settings)
    except RuntimeError as error:
        if not re.search("initial(ization|.*evaluation)", str(error), re.IGNORECASE):
            raise
        raise NumericalError(f"{sampler}: {str(error).partition('\n')[0]}", "sampler_stopped") from error


def _checks(problem: Problem, latest: Run, earlier: list[Run]) -> list[Check]:
    return [*_judged(problem, latest), *_left_behind(problem, earlier, latest)]


def _judged(problem: Problem, latest: Run) -> list[Check]:
    """Check the mixing of the chains; with exchangeable labels, of quantities that do not depend on labels."""
    free = label_free(problem.model, latest.draws, problem.observed)
    mode_checks = _of_known_modes(problem, latest.draws) if free is None else []
    moving = problem.density.moving(latest.draws) if free is None else free
    return [*check_draws(moving), *check_hmc(latest.stats), *mode_checks]


def _ends(problem: Problem, latest: Run) -> tuple[Start, ...]:
    """Return the last points of the chains, where the next attempt begins: a chain that found a mode stays there."""
    points = [
        problem.density.unconstrain(dict(zip(latest.draws, ends, strict=True)))
        for ends in zip(*(values[:, -1] for values in latest.draws.values()), strict=True)
    ]
    return tuple(Start(x, spread=0.0) for x in points if np.isfinite(x).all())


def _left_behind(problem: Problem, earlier: list[Run], latest: Run) -> list[Check]:
    """Check that the chains visited every region where a chain of an earlier attempt settled."""
    settled = [_settled(problem, run) for run in earlier]
    return unvisited(_settled(problem, latest), settled, problem.density.size) if settled else []


def _settled(problem: Problem, run: Run) -> Settled:
    log_density = np.asarray(recorded_log_density(run.stats))
    return Settled.of(problem.model, run.draws, problem.observed, log_density)


def _of_known_modes(problem: Problem, draws: Mapping[str, np.ndarray]) -> list[Check]:
    """Check that enough draws are at every known mode; with one mode there is no check."""
    if len(starts(problem)) < 2:
        return []
    flat = {name: values.reshape(-1, *values.shape[2:]) for name, values in draws.items()}
    size, step = len(next(iter(flat.values()))), max(1, len(next(iter(flat.values()))) // 2000)
    points = [problem.density.unconstrain({k: v[i] for k, v in flat.items()}) for i in range(0, size, step)]
    return visit_checks(problem, np.array(points))


def _outcome(problem: Problem, run: Run, facts: Mapping[str, float]) -> Outcome:
    density = problem.density
    return Outcome(
        {name: run.draws[name] for name in density.names},
        f"{run.sampler} {version(run.sampler)}",
        [],
        facts,
        sample_stats={name: s for name, s in run.stats.items() if s.dtype.kind in "biuf" and s.ndim == 2},
        dims=density.dims,
        coords=density.coords,
        interrupted=run.interrupted,
    )


def _with_nutpie_or_pymc(problem: Problem, settings: Settings) -> Run:
    """Run nutpie, or if it cannot be used PyMC's own sampler, which has the same posterior."""
    density, _ = problem.density, starts(problem)  # errors of the model are raised here
    with problem.clock.phase("compile"):
        density.joint  # noqa: B018
    try:
        if not density.fallback:
            return _with_nutpie(problem, settings)
    except UNUSABLE as error:
        if not density.fallback:  # else the density has reported the reason
            reason = f"nutpie cannot be used ({type(error).__name__}: {error})"
            problem.reporter.say(f"{reason}: using PyMC's own sampler, which is slower")
    return with_pymc(problem, settings)


def _with_nutpie(problem: Problem, settings: Settings) -> Run:
    """Run the chains of each start in turn: nutpie's function of initial points does not know which chain asks."""
    runs: list[Run] = []
    done, shares = 0, shared_out(settings.begin or starts(problem), settings.chains)
    cores = os.cpu_count() or 1
    if not settings.begin:
        in_turn = sum(math.ceil(chains / cores) for _, chains in shares)
        announce(problem, settings.chains, settings.draws + settings.tune, in_turn)
    for start, chains in shares:
        try:
            runs.append(_from(start, problem, replace(settings, chains=chains), done))
        except (Interrupted, KeyboardInterrupt):  # before there is a draw of these chains
            if not runs:
                raise
            signals.answer()
            return _joined(runs)._replace(interrupted=True)
        done += chains
        if runs[-1].interrupted:
            break
    return _joined(runs)


def _joined(runs: list[Run]) -> Run:
    """Join runs as the chains of one run, cut to the shortest, with the statistics that all of them have."""
    if len(runs) == 1:
        return runs[0]
    length = min(run.length for run in runs)
    draws, stats = (
        {
            name: np.concatenate([arrays[name][:, :length] for arrays in parts])
            for name in parts[0]
            if all(name in arrays for arrays in parts)
        }
        for parts in ([run.draws for run in runs], [run.stats for run in runs])
    )
    return Run(draws, stats, runs[-1].interrupted)


def _from(start: Start, problem: Problem, settings: Settings, done: int) -> Run:
    """Run chains that begin near one start; ``done`` chains were run before."""
    with later("arviz"):  # nutpie imports all of its plots to make a tree of the draws
        import nutpie

    with problem.clock.phase("compile"):
        native, joint = problem.density.native, problem.density.joint
        if not np.isfinite(joint(start.near(0, joint))[0]):  # in nutpie's threads this would end the process
            raise NumericalError(f"nutpie: {NOT_FINITE}", "not_finite")
    # all chains run at once, so that an interrupted run has draws of each
    length = settings.draws + settings.tune
    before, total = done * length, (done + settings.chains) * length

    def progress(chains: list[Any]) -> None:
        problem.reporter.progress("sampling", before + sum(chain.finished_draws for chain in chains), total)

    # chains run in threads: a BLAS that threads too would fight them (3 to 5 times slower)
    with problem.clock.phase("run"), threadpool_limits(1):
        background = nutpie.sample(
            _for_nutpie(native, partial(start.near, joint=joint)),
            chains=settings.chains,
            cores=settings.chains,
            draws=settings.draws,
            tune=settings.tune,
            seed=problem.seed(),
            target_accept=settings.target_accept,
            progress_bar=False,
            progress_callback=progress,
            return_raw_trace=True,
            blocking=False,
        )
        try:
            trace, interrupted = _wait(background)
        except (RuntimeError, NumericalError):
            if native.error is None:
                raise
            raise NumericalError(f"nutpie: {native.error}", "sampler_stopped") from native.error
        return Run(*_arrays(trace, problem.density.shapes, AT_LEAST if interrupted else None), interrupted)


def _for_nutpie(native: Native, beginning: Callable[[int], np.ndarray]) -> Any:
    """Wrap a compiled density as a model of nutpie.

    ``beginning`` returns an initial point for a seed. It runs in nutpie's threads and so must not compile anything:
    PyTensor's settings are global to the process.
    """
    from nutpie.compile_pymc import CompiledPyMCModel

    return CompiledPyMCModel(
        dims={},
        compiled_logp_func=native.log_density,
        compiled_expand_func=native.expand,
        initial_point_func=beginning,
        shared_data={},
        shared_var_keys={},
        user_data=native.table,
        n_expanded=native.expanded,
        shape_info=([FLAT], [slice(native.expanded)], [(native.expanded,)]),
        logp_func=native,  # so that the sampler keeps it alive
        expand_func=None,
        _n_dim=native.size,
        _shapes={FLAT: (native.expanded,)},
        _coords={},
    )


def _arrays(
    trace: Any, shapes: Mapping[str, tuple[int, ...]], only: Collection[str] | None = None
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return parameters and statistics of the draws after warmup, all chains cut to the shortest.

    All statistics are returned, or ``only`` those named.
    """
    chains = [_columns(*batches, only=only) for batches in zip(*trace.get_arrow_trace(), strict=True)]
    if not (length := min(len(columns[FLAT]) for columns in chains)):
        raise Interrupted("stopped before every chain had a draw; nothing was kept", "no_draws")
    stats = {name: np.stack([columns[name][:length] for columns in chains]) for name in chains[0]}
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes.values()])[:-1]
    parts = zip(shapes.items(), np.split(stats.pop(FLAT), ends, axis=-1), strict=True)
    return {name: part.reshape(*part.shape[:2], *shape) for (name, shape), part in parts}, stats


def _columns(draws: Any, stats: Statistics, *, only: Collection[str] | None) -> dict[str, np.ndarray]:
    """Return one chain after its warmup: parameters (draw, N), and the statistics with one number per draw."""
    import pyarrow

    names = [name for name in stats.column_names if only is None or name in ("tuning", *only)]
    arrays = {name: pyarrow.array(stats.column(name)) for name in names}
    columns = {name: _numbers(array) for name, array in arrays.items() if pyarrow.types.is_primitive(array.type)}
    flat = pyarrow.array(draws.column(FLAT)).flatten().to_numpy().reshape(draws.num_rows, -1)
    kept = slice(np.count_nonzero(columns.pop("tuning")), None)
    return {name: values[kept] for name, values in {FLAT: flat, **columns}.items()}


def _numbers(column: Any) -> np.ndarray:
    """Return a statistic, missing integers as 0 and missing reals as NaN."""
    return np.asarray((column.fill_null(0) if "int" in str(column.type) else column).to_numpy(zero_copy_only=False))


def _wait(background: Any) -> tuple[Any, bool]:
    """Wait for nutpie's threads; return the trace, and whether Ctrl-C cut it short."""
    with signals.keeping():
        try:
            return background.wait(), False
        except KeyboardInterrupt:
            signals.answer()
            try:
                return background.abort(), True
            except ValueError:  # its threads had finished and their draws were being taken
                raise Interrupted("stopped while the draws were collected; nothing was kept", "not_collected") from None
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # raised by nutpie's Rust, and no subclass of Exception
                raise
            raise NumericalError(f"the sampler stopped: {str(error).splitlines()[0]}", "sampler_stopped") from error


SAMPLERS: dict[str, Callable[[Problem, Settings], Run]] = {"nutpie": _with_nutpie_or_pymc, "pymc": with_pymc}
