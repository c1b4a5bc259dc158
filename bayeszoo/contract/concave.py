"""The identities of log-concave models: their derivatives, the certificate of their mode, and their evidence.

Each function takes a `Case` and returns a `Check`, as in `identities`. The density is PyMC's or SciPy's, of which the
model's own derivatives and quadrature know nothing.
"""

from __future__ import annotations

import math

import numpy as np
import scipy

from bayeszoo.contract.case import Case
from bayeszoo.contract.identities import relative
from bayeszoo.foundation.gate import Check, at_most
from bayeszoo.foundation.newton import climb
from bayeszoo.foundation.optimize import MAX_DISTANCE, describe
from bayeszoo.model.density import log_density

REACH, WIDTHS = 9.0, 60.0
"""How far from the mode the evidence is integrated, in prior and in posterior standard deviations: a log joint density
falls off from its mode at least as the prior does from its mean."""


def concave_density(case: Case) -> Check:
    """L1a: the log likelihood in units of the prior, and that prior, are PyMC's log joint density."""
    rows = case.model.concave(case.data)
    u = np.array([rows.place(point) for point in case.points])
    joint = rows.joint_values(u) - rows.log_volume
    one_by_one = [rows.derivatives(x).value + float(rows.log_prior(rows.params(x))) for x in u]
    return at_most(
        "log likelihood in units of the prior", relative(np.array([joint, one_by_one]), case.log_joint), 1e-9
    )


def concave_derivatives(case: Case) -> Check:
    """L1e: gradient and curvature are the central differences of the log joint and of the gradient."""
    rows, errors, step = case.model.concave(case.data), [0.0], 1e-5
    for point in case.points[::5]:
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
    """L6: the mode that Newton's method certifies is a stationary point of PyMC's log joint, without Jacobian."""
    rows = case.model.concave(case.data)
    peak = climb(rows.joint, rows.start())
    failed = [check for check in peak.certificate() if not check.passed]
    distance = describe(case.declared.constrained_joint, case.declared.unconstrain(rows.params(peak.x))).distance
    return at_most("mode is stationary, and certified", math.inf if failed else distance, MAX_DISTANCE)


def integrated_evidence(case: Case) -> Check:
    """L1c: the evidence is that of adaptive cubature over SciPy's densities of prior and rows."""
    model, rows = case.model, case.model.concave(case.data)
    peak = climb(rows.joint, rows.start())
    reach = np.minimum(REACH, WIDTHS * np.sqrt(np.diag(np.linalg.inv(peak.there.curvature))))
    outcome = model.inputs.outcome(case.data)

    def density(u: np.ndarray) -> np.ndarray:
        law = model.likelihood(rows.params(u), case.data)
        heights = log_density(law, outcome).sum(axis=-1) - case.log_coefficient
        return np.exp(heights + scipy.stats.norm.logpdf(u).sum(axis=-1) - peak.there.value)

    result = scipy.integrate.cubature(density, peak.x - reach, peak.x + reach, rtol=1e-10, max_subdivisions=20_000)
    expected = float(np.log(result.estimate)) + peak.there.value
    return at_most("evidence by cubature of SciPy's densities", abs(case.log_evidence - expected), 1e-6)
