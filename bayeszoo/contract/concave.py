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
from bayeszoo.foundation.numerics.newton import Peak
from bayeszoo.foundation.numerics.optimize import MAX_DISTANCE, describe
from bayeszoo.inference.methods import vb
from bayeszoo.inference.methods.modes.concave import highest
from bayeszoo.model.capabilities.steps import ConcaveLikelihood
from bayeszoo.model.density import log_density
from bayeszoo.model.fields import hyperparameters

REACH, WIDTHS = 9.0, 60.0
"""Distance from the mode to which the evidence is integrated, in prior and in posterior standard deviations: a log
joint density falls from its mode at least as fast as the prior from its mean."""
NARROW = 1e-7
"""Prior sd at which weights count as known: the variances of rows that they cause are below rounding."""
PRIOR_SCALES = ("tau", "s0", "amplitude")
"""Fields that are prior standard deviations of weights, or of a function."""
NEARBY, STEP = 32, 1e-2
"""Number of random steps, in both directions, from a mode on a corner, and their sd in posterior sd."""


def concave_density(case: Case) -> Check:
    """L1a: the log likelihood in units of the prior plus the log prior equals PyMC's log joint density."""
    heights = np.array([_heights(case, point) for point in case.points])
    return at_most("log likelihood in units of the prior", relative(heights.T, case.log_climbed), 1e-9)


def _heights(case: Case, point: Params) -> tuple[float, float]:
    """Return the log joint density at a point from two methods: that of many points, and that with derivatives."""
    rows, log_prior = _concave_at(case, point)
    u = rows.place(point)
    with_derivatives = rows.derivatives(u).value + float(rows.log_prior(rows.params(u)))
    return float(rows.joint_values(u[None])[0]) - rows.log_volume + log_prior, with_derivatives + log_prior


def _concave_at(case: Case, point: Params) -> tuple[ConcaveLikelihood, float]:
    """Return the concave log likelihood, and the log prior density of the parameters that it is conditional on."""
    model = case.model
    fixed = {name: float(point[name]) for name in model.profiled}
    log_prior = sum(float(prior.logpdf(fixed[name])) for name, prior in model.profiled.items())
    return model.concave(case.data, **fixed), log_prior


def concave_derivatives(case: Case) -> Check:
    """L1e: gradient and curvature equal central differences of the log joint and of the gradient."""
    errors, step = [0.0], 1e-5
    for point in case.points[::5]:
        rows, _ = _concave_at(case, point)
        u = rows.place(point)
        at_point = rows.joint(u)
        for i in range(rows.size):
            h = step * (np.arange(rows.size) == i)
            after, before = rows.joint(u + h), rows.joint(u - h)
            rounding = 4 * np.finfo(np.float64).eps * abs(at_point.value) / step
            slope = (after.value - before.value) / (2 * step)
            errors.append(
                max(abs(slope - at_point.gradient[i]) - rounding, 0.0) / (1 + abs(slope) + at_point.curvature[i, i])
            )
            curvature = (before.gradient - after.gradient) / (2 * step)
            errors.append(float(np.max(np.abs(curvature - at_point.curvature[i]))) / (1 + np.max(at_point.curvature)))
    return at_most("derivatives in units of the prior", max(errors), 1e-5)


def certified_mode(case: Case) -> Check:
    """L6: the certified mode is a stationary point of PyMC's log joint, without Jacobian.

    If that has corners, small steps from the mode gain no nats.
    """
    mode = highest(case.model, case.data, flat=False)
    if mode.rows.has_corners:
        return _certified(mode.checks, _gain(case, mode.rows, mode.peak))
    if any(mode.params[name] == 0 for name in case.model.profiled):
        return _certified(mode.checks, 0.0)  # on the edge the slope need not be 0
    x = case.climbed.unconstrain(mode.params)
    return _certified(mode.checks, describe(case.climbed.constrained_joint, x).distance)


def _certified(checks: list[Check], distance: float) -> Check:
    is_certified = all(check.passed for check in checks)
    return at_most("mode is stationary, and certified", distance if is_certified else math.inf, MAX_DISTANCE)


def _gain(case: Case, rows: ConcaveLikelihood, peak: Peak) -> float:
    """Return the largest gain of PyMC's log joint, in nats, over small steps from a mode that may be on a corner."""
    noise = np.random.default_rng(0).standard_normal((NEARBY, rows.size))
    steps = STEP * noise @ np.linalg.cholesky(np.linalg.inv(peak.there.curvature)).T
    points = [rows.params(peak.x + step) for step in (0 * steps[0], *steps, *-steps)]
    heights = [case.declared.heights(case.declared.unconstrain(point)).constrained for point in points]
    return max(heights) - heights[0]


def integrated_evidence(case: Case) -> Check:
    """L1c: the evidence equals adaptive cubature of SciPy's densities of prior and rows."""
    model, rows = case.model, case.model.concave(case.data)
    peak = rows.highest()
    reach = np.minimum(REACH, WIDTHS * np.sqrt(np.diag(np.linalg.inv(peak.there.curvature))))
    outcome = model.inputs.outcome(case.data)

    def density(u: np.ndarray) -> np.ndarray:
        law = model.likelihood(rows.params(u), case.data)
        heights = log_density(law, outcome).sum(axis=-1) - case.log_coefficient
        return np.exp(heights + scipy.stats.norm.logpdf(u).sum(axis=-1) - peak.there.value)

    # cubature converges slowly across corners
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
    """L5: under a very narrow prior the ELBO equals the log likelihood at its mean, so that no constant is missing."""
    narrow = replace(case.model, **{name: NARROW for name in PRIOR_SCALES if name in hyperparameters(case.model)})
    elbo = vb.climbs(narrow, case.data, case.rng, restarts=2).best.objective
    density, rows = Density(narrow.declare(case.data), mode="FAST_COMPILE"), narrow.concave(case.data)
    at_mean = density.heights(density.unconstrain(rows.params(np.zeros(rows.size)))).likelihood - case.log_coefficient
    return at_most("ELBO under a prior of no width", relative(elbo, at_mean), 1e-9)


def bound_is_stationary(case: Case) -> Check:
    """L6: at the end of coordinate ascent the slope of the ELBO in q's coordinates is 0, by central differences."""
    model, data, step = case.model, case.data, 1e-4
    coordinates, end = model.vb_coordinates(data), vb.climbs(case.model, case.data, case.rng, restarts=2).best.state
    x = coordinates.to_vector(end)

    def elbo(vector: np.ndarray) -> float:
        q = coordinates.from_vector(vector)
        return float(model.vb_e_step(q, data).value - model.divergence(q))

    slopes = [(elbo(x + h) - elbo(x - h)) / (2 * step) for h in step * np.eye(len(x))]
    return at_most("slope of the ELBO in coordinates of q", float(np.max(np.abs(slopes))), 1e-3)
