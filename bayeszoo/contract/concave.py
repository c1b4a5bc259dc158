"""The identities of log-concave models: derivatives, the certificate of the mode, the evidence and its bounds.

Each function takes a `Case` and returns a `Check`, as in `identities`. The density is PyMC's or SciPy's, which is
independent of the model's own derivatives and quadrature.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import scipy

from bayeszoo.compile.density import Density
from bayeszoo.contract.case import Case
from bayeszoo.contract.identities import relative
from bayeszoo.foundation.gate import Check, at_most
from bayeszoo.foundation.named import Params
from bayeszoo.foundation.newton import Peak
from bayeszoo.foundation.optimize import MAX_DISTANCE, describe
from bayeszoo.inference.methods import vb
from bayeszoo.inference.methods.modes.concave import highest
from bayeszoo.model.density import log_density
from bayeszoo.model.fields import hyperparameters
from bayeszoo.model.steps import ConcaveLikelihood

REACH, WIDTHS = 9.0, 60.0
"""How far from the mode the evidence is integrated, in prior and in posterior standard deviations: a log joint density
falls off from its mode at least as the prior does from its mean."""
NARROW = 1e-7
"""Prior sd at which weights are known: variances of rows are then below rounding."""
PRIOR_SCALES = ("tau", "s0", "amplitude")
"""Fields that are prior standard deviations of weights, or of a function."""
NEARBY, STEP = 32, 1e-2
"""Steps to either side by which a mode on a corner is tried, and their standard deviation, in posterior ones."""


def concave_density(case: Case) -> Check:
    """L1a: the log likelihood in units of the prior, and that prior, are PyMC's log joint density."""
    heights = np.array([_heights(case, point) for point in case.points])
    return at_most("log likelihood in units of the prior", relative(heights.T, case.log_climbed), 1e-9)


def _heights(case: Case, point: Params) -> tuple[float, float]:
    """Return the log joint density at a point twice: as one of many points, and with its derivatives."""
    rows, log_prior = _concave_at(case, point)
    u = rows.place(point)
    with_derivatives = rows.derivatives(u).value + float(rows.log_prior(rows.params(u)))
    return float(rows.joint_values(u[None])[0]) - rows.log_volume + log_prior, with_derivatives + log_prior


def _concave_at(case: Case, point: Params) -> tuple[ConcaveLikelihood, float]:
    """Return the concave log likelihood, and the log prior density of the number that it is given, if any."""
    model = case.model
    given = {name: float(point[name]) for name in model.given}
    log_prior = sum(float(prior.logpdf(given[name])) for name, prior in model.given.items())
    return model.concave(case.data, **given), log_prior


def concave_derivatives(case: Case) -> Check:
    """L1e: gradient and curvature are the central differences of the log joint and of the gradient."""
    errors, step = [0.0], 1e-5
    for point in case.points[::5]:
        rows, _ = _concave_at(case, point)
        u = rows.place(point)
        there = rows.joint(u)
        for i in range(rows.size):
            h = step * (np.arange(rows.size) == i)
            after, before = rows.joint(u + h), rows.joint(u - h)
            rounding = 4 * np.finfo(np.float64).eps * abs(there.value) / step
            slope = (after.value - before.value) / (2 * step)
            errors.append(
                max(abs(slope - there.gradient[i]) - rounding, 0.0) / (1 + abs(slope) + there.curvature[i, i])
            )
            curvature = (before.gradient - after.gradient) / (2 * step)
            errors.append(float(np.max(np.abs(curvature - there.curvature[i]))) / (1 + np.max(there.curvature)))
    return at_most("derivatives in units of the prior", max(errors), 1e-5)


def certified_mode(case: Case) -> Check:
    """L6: the mode that is certified is a stationary point of PyMC's log joint, without Jacobian.

    Where that has corners small steps from the mode gain no nats.
    """
    mode = highest(case.model, case.data, flat=False)
    if mode.rows.has_corners:
        return _certified(mode.checks, _gain(case, mode.rows, mode.peak))
    if any(mode.params[name] == 0 for name in case.model.given):
        return _certified(mode.checks, 0.0)  # on the edge, where there is no slope of 0
    there = case.climbed.unconstrain(mode.params)
    return _certified(mode.checks, describe(case.climbed.constrained_joint, there).distance)


def _certified(checks: list[Check], distance: float) -> Check:
    is_certified = all(check.passed for check in checks)
    return at_most("mode is stationary, and certified", distance if is_certified else math.inf, MAX_DISTANCE)


def _gain(case: Case, rows: ConcaveLikelihood, peak: Peak) -> float:
    """Return what small steps from a mode that may be on a corner gain in PyMC's log joint, in nats."""
    noise = np.random.default_rng(0).standard_normal((NEARBY, rows.size))
    steps = STEP * noise @ np.linalg.cholesky(np.linalg.inv(peak.there.curvature)).T
    points = [rows.params(peak.x + step) for step in (0 * steps[0], *steps, *-steps)]
    heights = [case.declared.heights(case.declared.unconstrain(point)).constrained for point in points]
    return max(heights) - heights[0]


def integrated_evidence(case: Case) -> Check:
    """L1c: the evidence is that of adaptive cubature over SciPy's densities of prior and rows."""
    model, rows = case.model, case.model.concave(case.data)
    peak = rows.highest()
    reach = np.minimum(REACH, WIDTHS * np.sqrt(np.diag(np.linalg.inv(peak.there.curvature))))
    outcome = model.inputs.outcome(case.data)

    def density(u: np.ndarray) -> np.ndarray:
        law = model.likelihood(rows.params(u), case.data)
        heights = log_density(law, outcome).sum(axis=-1) - case.log_coefficient
        return np.exp(heights + scipy.stats.norm.logpdf(u).sum(axis=-1) - peak.there.value)

    # across corners it converges slowly
    settings = (
        {"rtol": 1e-7, "max_subdivisions": 4000} if rows.has_corners else {"rtol": 1e-10, "max_subdivisions": 20_000}
    )
    result = scipy.integrate.cubature(density, peak.x - reach, peak.x + reach, **settings)
    expected = float(np.log(result.estimate)) + peak.there.value
    return at_most("evidence by cubature of SciPy's densities", abs(case.log_evidence - expected), 1e-6)


def bound_of_augmented(case: Case) -> Check:
    """L5: the ELBO of variational Bayes is at most the log evidence by quadrature."""
    elbo = vb.climbs(case.model, case.data, case.rng, restarts=2).best.objective
    above = elbo - case.log_evidence
    return at_most("ELBO above the exact log evidence", above, 1e-9 * max(1.0, abs(case.log_evidence)))


def bound_of_known_weights(case: Case) -> Check:
    """L5: under a prior of almost no width the ELBO is the log likelihood at its mean: every constant is there."""
    known = replace(case.model, **{name: NARROW for name in PRIOR_SCALES if name in hyperparameters(case.model)})
    elbo = vb.climbs(known, case.data, case.rng, restarts=2).best.objective
    density, rows = Density(known.declare(case.data), mode="FAST_COMPILE"), known.concave(case.data)
    at_mean = density.heights(density.unconstrain(rows.params(np.zeros(rows.size)))).likelihood - case.log_coefficient
    return at_most("ELBO under a prior of no width", relative(elbo, at_mean), 1e-9)


def bound_is_stationary(case: Case) -> Check:
    """L6: where coordinate ascent ends the ELBO has no slope in any of q's coordinates, by central differences."""
    model, data, step = case.model, case.data, 1e-4
    coordinates, q = model.vb_coordinates(data), vb.climbs(case.model, case.data, case.rng, restarts=2).best.state
    x = coordinates.to_vector(q)

    def elbo(at: np.ndarray) -> float:
        there = coordinates.from_vector(at)
        return float(model.vb_e_step(there, data).value - model.divergence(there))

    slopes = [(elbo(x + h) - elbo(x - h)) / (2 * step) for h in step * np.eye(len(x))]
    return at_most("slope of the ELBO in coordinates of q", float(np.max(np.abs(slopes))), 1e-3)
