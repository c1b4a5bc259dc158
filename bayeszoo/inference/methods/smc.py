"""Sequential Monte Carlo (PyMC's): draws and an estimate of the log evidence, from independent runs."""

from __future__ import annotations

import logging
import math
import warnings
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from bayeszoo.errors import InputError, NumericalError
from bayeszoo.foundation.gate import arrays_in, at_most, check_draws, failures, longer_may_help, passed
from bayeszoo.foundation.process import signals
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
    outcome, coarse = None, None
    for _ in range(ATTEMPTS if extend else 1):
        try:
            outcome, fine = _attempt(problem, draws, chains, threshold, coarse)
        except KeyboardInterrupt:  # before the particles are draws of the posterior
            if outcome is None:
                raise
            signals.answer()
            return replace(outcome, interrupted=True)
        if outcome.interrupted:
            return outcome
        shift = next(check.value or 0.0 for check in outcome.checks if check.name == TEMPERING)
        if passed(outcome.checks) or not longer_may_help(outcome.checks) or shift > MAX_SHIFT:
            break
        problem.reporter.say(f"{draws} particles at {threshold:g} did not pass: {failures(outcome.checks)}")
        if all(check.passed for check in outcome.checks if check.name != TEMPERING):
            threshold, coarse = _finer(threshold), fine
        else:
            draws, coarse = 2 * draws, None
    assert outcome is not None  # there is an attempt
    return outcome


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
    posterior = {name: every[name] for name in names}
    free = label_free(problem.model, posterior, problem.observed)
    evidence, before = _log_evidence(tree), _log_evidence(coarse)
    spread = float(evidence.std(ddof=1)) if chains > 1 else math.nan
    shift = _log_mean(evidence) - _log_mean(before)
    of_draws = signals.unless_stopped(lambda: check_draws(problem.density.moving(posterior) if free is None else free))
    of_evidence = [
        at_most("evidence_spread", spread, MAX_EVIDENCE_SD),
        at_most(TEMPERING, abs(shift), MAX_EVIDENCE_SD),
    ]
    outcome = Outcome(
        posterior,
        f"PyMC SMC {version('pymc')}",
        [*(of_draws or []), *of_evidence],
        {
            "log_evidence": _log_mean(evidence),
            "log_evidence_mcse": math.hypot(spread / math.sqrt(chains), shift),
            "particles": draws,
            "threshold": _finer(threshold),
        },
        dims=problem.density.dims,
        coords=problem.density.coords,
        interrupted=of_draws is None,
    )
    return outcome, tree


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
        raise NumericalError(f"PyMC's SMC failed: {error}", "sampler_stopped") from error
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
