"""The identities of models whose inner parameters have a closed form given few outer ones.

Each function takes a `Case` and returns a `Check`, as in `identities`. The declared joint density, by PyMC, is compared
with the model's own formulas; results of quadrature are checked by the identities of closed forms.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bayeszoo.compile.density import Density
from bayeszoo.contract.case import Case
from bayeszoo.contract.identities import relative
from bayeszoo.data.inputs.sequences.times import SEQUENCE
from bayeszoo.errors import NumericalError
from bayeszoo.foundation.gate import Check, at_most, failures
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.model.capabilities import Conditional
from bayeszoo.model.capabilities.sequential import Sequential
from bayeszoo.model.density import log_density
from bayeszoo.model.outer.integration import integrate

MOST_ROWS = 3
"""Most rows that are left out one by one."""


def conditional_candidate(case: Case) -> Check:
    """L1b: log joint less log density of the inner parameters given the outer ones is the outer ones' marginal."""
    seen = case.declared.constrain(np.array(case.flat_points))  # the points, as rounded on the way to PyMC
    outer = {name: seen[name] for name in case.model.outer}
    inner = case.model.posterior_given(outer, case.data)
    expected = case.model.log_outer_prior(outer, case.data) + case.model.log_marginal(outer, case.data)
    candidates = case.log_joint - inner.logpdf({name: seen[name] for name in inner})
    return at_most("inner parameters integrated out", relative(candidates, expected), 1e-9)


def marginalized_density(case: Case) -> Check:
    """L1a: PyMC's density with the inner parameters integrated out equals the model's own."""
    density = Density(case.model.marginalized(case.data), mode="FAST_COMPILE")
    points = [{name: point[name] for name in case.model.outer} for point in case.points]
    flat = np.array([density.unconstrain(point) for point in points])
    outer = density.constrain(flat)
    declared = np.array([density.heights(x).constrained for x in flat]) - case.log_coefficient
    expected = case.model.log_outer_prior(outer, case.data) + case.model.log_marginal(outer, case.data)
    return at_most("marginal equals declared", max(relative(declared, expected), *_of_rows(case, outer)), 1e-9)


def _of_rows(case: Case, outer: Params) -> list[float]:
    """Compare the law of a row given all others, and of a new row, with ratios of the marginal with and without it.

    Both also given only those outer parameters that are integrated over; rows then depend on each other.
    """
    model, data, errors = case.model, case.data, [0.0]
    if not model.has_law_given_outer():
        return errors
    rows = np.flatnonzero(model.inputs.observations(data)[1]) if isinstance(model, Sequential) else np.arange(case.size)
    for names in (model.outer, model.integrated_over):
        points = {name: outer[name] for name in names}
        for i in rows[:: max(1, len(rows) // MOST_ROWS)][:MOST_ROWS].tolist():
            row = model.inputs.reordered(data, np.array([i]))
            for law, with_row, without_row in _laws(model, points, data, i):
                heights = log_density(law, model.inputs.outcome(row))[..., 0] - model.log_coefficient(row)
                terms = model.log_marginal(points, with_row), model.log_marginal(points, without_row)
                errors.append(relative(heights + terms[1], terms[0]))  # the terms are rounded relative to their size
    return errors


def _laws(model: Conditional, points: Params, data: Arrays, i: int) -> Iterator[tuple[Any, Arrays, Arrays]]:
    """Yield laws of the i-th row, and the data with it and without it; in time the row follows those before it."""
    without_row, inputs = model.inputs.without(data, i), model.inputs
    yield model.held_out(points, data, np.array([i])), data, without_row
    if not isinstance(model, Sequential):
        yield model.law(points, without_row, inputs.reordered(data, np.array([i]))), data, without_row
    elif i and data[SEQUENCE][i] == data[SEQUENCE][i - 1]:
        before, with_row = (inputs.split(data, end)[0] for end in (i, i + 1))
        new = inputs.without(inputs.reordered(data, np.array([i])), 0)
        ahead: Any = model.rows_ahead(points, before, 1, new)
        yield ahead.entries(np.array([-1])), with_row, before  # the entry of the last sequence


def quadrature(case: Case) -> Check:
    """Count the failed checks of the quadrature: halving the grid or its bounds must not change results."""
    try:
        checks = integrate(case.model, case.data).checks
    except NumericalError as error:
        if error.code != "too_large":  # the vector has more entries than quadrature can integrate over
            raise
        checks = []
    failed = [check for check in checks if not check.passed]
    return at_most(f"failed checks of the quadrature{': ' + failures(failed) if failed else ''}", len(failed), 0)
