"""The identities of models whose inner parameters have a closed form given few outer ones.

Each function takes a `Case` and returns a `Check`, as in `identities`. The declared joint density, by PyMC, is held to
the model's own formulas; what quadrature makes of these is checked as closed forms are.
"""

from __future__ import annotations

import numpy as np

from bayeszoo.contract.case import Case
from bayeszoo.contract.identities import relative
from bayeszoo.foundation.gate import Check, at_most, failures
from bayeszoo.inference.engine.density import Density
from bayeszoo.model.density import log_density
from bayeszoo.model.integration import integrate


def conditional_candidate(case: Case) -> Check:
    """L1b: log joint less log density of the inner parameters given the outer ones hangs on the outer ones alone."""
    seen = case.declared.constrain(np.array(case.flat_points))  # the points, as rounded on the way to PyMC
    outer = {name: seen[name] for name in case.model.outer}
    inner = case.model.posterior_given(outer, case.data)
    expected = case.model.log_outer_prior(outer) + case.model.log_marginal(outer, case.data)
    candidates = case.log_joint - inner.logpdf({name: seen[name] for name in inner})
    return at_most("inner parameters integrated out", relative(candidates, expected), 1e-9)


def marginalized_density(case: Case) -> Check:
    """L1a: PyMC's density with the inner parameters integrated out equals the model's own."""
    density = Density(case.model.marginalized(case.data), mode="FAST_COMPILE")
    points = [{name: point[name] for name in case.model.outer} for point in case.points]
    flat = np.array([density.unconstrain(point) for point in points])
    outer = density.constrain(flat)
    declared = np.array([density.constrained_joint(x)[0] for x in flat]) - case.log_coefficient
    expected = case.model.log_outer_prior(outer) + case.model.log_marginal(outer, case.data)
    errors = [relative(declared, expected)]
    if (law := case.model.row_marginal(outer, case.data)) is not None:
        rows = log_density(law, case.model.inputs.outcome(case.data)).sum(axis=-1) - case.log_coefficient
        errors.append(relative(rows, case.model.log_marginal(outer, case.data)))
    return at_most("marginal equals declared", max(errors), 1e-9)


def quadrature(case: Case) -> Check:
    """Count the checks of the quadrature that fail: halving the grid, and its bounds, must not matter."""
    checks = integrate(case.model, case.data).checks
    failed = [check for check in checks if not check.passed]
    return at_most(f"failed checks of the quadrature{': ' + failures(failed) if failed else ''}", len(failed), 0)
