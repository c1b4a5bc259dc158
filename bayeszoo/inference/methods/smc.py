"""Sequential Monte Carlo (PyMC's): draws and an estimate of the log evidence, from independent runs."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Iterator, Mapping
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from bayeszoo.errors import InputError, NumericalError
from bayeszoo.foundation.gate import Check, arrays_in, at_most, check_draws
from bayeszoo.inference.engine.attempts import first_to_pass, with_checks
from bayeszoo.inference.labels.symmetry import label_free
from bayeszoo.inference.problem import Outcome, Problem

ATTEMPTS = 3
TEMPERING = "tempering"
MAX_SHIFT = 10.0
"""Change of the log evidence under finer tempering, in nats, above which still finer tempering does not help: with many
parameters independent proposals are rarely accepted. Random-walk proposals are accepted, but with 14 parameters their
evidence was off by four standard errors, and no check saw it."""
NOWHERE = "the likelihood is 0 at every draw of the prior: can the model give these data?"
MAX_EVIDENCE_SD = 0.1  # largest standard deviation of the log evidence between independent runs, in nats


def run(
    problem: Problem, *, draws: int = 2000, chains: int = 4, threshold: float = 0.8, extend: bool = True
) -> Outcome:
    """Sample by tempering from the prior, which must be proper, to the posterior, with ``draws`` particles in each run.

    The runs (``chains``) are made at two thresholds, the effective share of the particles that each step keeps; the
    error of the log evidence is their scatter and the change between the two thresholds. With ``extend`` a fit that
    fails the gate is repeated, up to twice: with finer tempering if only that check failed, else with twice the
    particles.
    """
    from bayeszoo.compile.density import no_evidence

    if undefined := no_evidence(problem.declared):
        raise InputError(undefined, "undefined_evidence", hint="use another method")
    return first_to_pass(problem, _attempts(problem, draws, chains, threshold), ATTEMPTS if extend else 1)


def _attempts(problem: Problem, draws: int, chains: int, threshold: float) -> Iterator[Outcome]:
    """Run the particles; run them again with finer tempering if only that check failed, else twice as many."""
    coarse = None
    while True:
        outcome, fine = _attempt(problem, draws, chains, threshold, coarse)
        yield outcome
        failed = {check.name: check.value or 0.0 for check in outcome.checks if not check.passed}
        if failed.get(TEMPERING, 0.0) > MAX_SHIFT:
            return
        if failed.keys() == {TEMPERING}:
            threshold, coarse = _finer(threshold), fine
        else:
            draws, coarse = 2 * draws, None


def _attempt(problem: Problem, draws: int, chains: int, threshold: float, coarse: object) -> tuple[Outcome, Any]:
    """Run at a finer threshold than ``threshold``, and at ``threshold`` unless ``coarse`` has its runs."""
    declared = problem.declared
    with problem.clock.phase("compile"):
        names = problem.density.names
    with problem.clock.phase("run"), threadpool_limits(1):
        if coarse is None:
            coarse = _sample(declared, draws, chains, threshold, problem.seed())
        tree = _sample(declared, draws, chains, _finer(threshold), problem.seed())
    every = arrays_in(tree, "posterior")
    evidence, before = _log_evidence(tree), _log_evidence(coarse)
    spread = float(evidence.std(ddof=1)) if chains > 1 else math.nan
    shift = _log_mean(evidence) - _log_mean(before)
    outcome = Outcome(
        {name: every[name] for name in names},
        f"PyMC SMC {version('pymc')}",
        [],
        {
            "log_evidence": _log_mean(evidence),
            "log_evidence_mcse": math.hypot(spread / math.sqrt(chains), shift),
            "particles": draws,
            "threshold": _finer(threshold),
        },
        dims=problem.density.dims,
        coords=problem.density.coords,
    )
    return with_checks(problem, outcome, partial(_checks, problem, outcome.draws, spread, shift)), tree


def _checks(problem: Problem, draws: Mapping[str, np.ndarray], spread: float, shift: float) -> list[Check]:
    """Check the draws, and the log evidence: its spread between runs, and its change under finer tempering."""
    free = label_free(problem.model, draws, problem.observed)
    return [
        *check_draws(problem.density.moving(draws) if free is None else free),
        at_most("evidence_spread", spread, MAX_EVIDENCE_SD),
        at_most(TEMPERING, abs(shift), MAX_EVIDENCE_SD),
    ]


def _finer(threshold: float) -> float:
    """Return a threshold at which each step loses a quarter as many particles.

    All runs at one threshold share a bias that their scatter does not show (0.2 nats at 1 success in a million).
    """
    return 1 - (1 - threshold) / 4


def _sample(declared: object, draws: int, chains: int, threshold: float, seed: int) -> Any:
    import pymc as pm

    from bayeszoo.compile.density import strict

    logger = logging.getLogger("pymc")
    level = logger.level
    logger.setLevel(logging.ERROR)  # sample_smc has no `quiet`, and the gate judges
    try:
        with warnings.catch_warnings(), strict():
            warnings.simplefilter("ignore")  # of chains that stand still, and of densities that numba runs as Python
            return pm.sample_smc(
                draws,
                chains=chains,
                cores=1,
                threshold=threshold,
                random_seed=seed,
                progressbar=False,
                compute_convergence_checks=False,
                model=declared,
            )
    except ValueError as error:  # the density is infinite or NaN at some particles, or at all
        if "NaN" in str(error):  # no temperature keeps half of the particles
            raise NumericalError(f"PyMC's SMC: {NOWHERE}", "impossible_data") from error
        reason = str(error).rstrip(".")  # as of particles so far apart that their covariance has no inverse
        raise NumericalError(f"PyMC's SMC failed: {reason}; use nuts", "sampler_stopped") from error
    finally:
        logger.setLevel(level)


def _log_evidence(tree: Any) -> np.ndarray:
    """Return each run's final log evidence; PyMC stores ragged object arrays padded with NaN, which cannot be saved."""
    stages = tree["sample_stats"]["log_marginal_likelihood"].to_numpy()
    runs = [[float(value) for value in np.atleast_1d(run)] for run in stages]
    return np.array([[value for value in run if not math.isnan(value)][-1] for run in runs])


def _log_mean(log_evidence: np.ndarray) -> float:
    """Average on the natural scale, where SMC is unbiased."""
    return float(np.logaddexp.reduce(log_evidence) - math.log(len(log_evidence)))
