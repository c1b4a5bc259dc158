"""The log evidence of a candidate of `select`: in closed form, by sequential Monte Carlo, or by bridge sampling."""

from __future__ import annotations

import math

from bayeszoo.comparison.candidates import Candidate
from bayeszoo.comparison.criteria import NO_EVIDENCE
from bayeszoo.comparison.evidence.by_importance import by_importance
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.foundation.gate import failures
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import ClosedForm, Sufficient, is_integrated
from bayeszoo.model.outer.integration import exact_evidence
from bayeszoo.model.outer.over_draws import OverDrawn
from bayeszoo.tools.draws.bridge import bridge


def log_evidence(candidate: Candidate) -> tuple[float, float, str]:
    """Return the log evidence, its Monte Carlo error and the method; raise `NumericalError` if there is none."""
    model, method, fit = candidate.model, candidate.method, candidate.fit
    if is_integrated(type(model)) and method == "exact":
        return exact_evidence(model, candidate.data), 0.0, method
    if isinstance(model, ClosedForm):
        if method == "exact":
            return float(model.log_evidence(candidate.stats)), 0.0, method
        if method != "smc":
            raise NumericalError(f"{method} gives no evidence: give the model itself", "no_evidence")
    elif isinstance(model, OverDrawn) and candidate.kind == "sampled":
        return by_importance(model, candidate)
    elif why := _undefined(candidate):
        raise NumericalError(why, "no_evidence")
    elif candidate.kind != "sampled":
        reason = NO_EVIDENCE if fit is None else f"{method} gives no evidence: a fit by nuts or smc gives an estimate"
        raise NumericalError(reason, "no_evidence")
    elif _is_of_counts(candidate):
        raise NumericalError("the density is of the table of counts, not of the ordered observations", "no_evidence")
    elif method != "smc":
        return _by_bridge(candidate)
    assert fit is not None  # a candidate without a fit is exact
    value, error = (fit.fact(name) for name in ("log_evidence", "log_evidence_mcse"))
    return math.nan if value is None else value, math.nan if error is None else error, method


def _is_of_counts(candidate: Candidate) -> bool:
    """Say whether the density may be that of a table of counts, and so counts the orders of observations."""
    model, data = candidate.model, candidate.data
    is_of_order = isinstance(model, Sufficient) or type(model).log_coefficient is not Model.log_coefficient
    return not is_of_order and candidate.observations[0].keys() != data.keys()


def _by_bridge(candidate: Candidate) -> tuple[float, float, str]:
    """Return the log evidence by bridge sampling from the draws of a fit, and its standard error."""
    assert candidate.fit is not None  # a sampled candidate has a fit
    try:
        answer = bridge(candidate.fit.tree)
    except InputError as error:  # exchangeable labels, too few draws
        raise NumericalError(f"bridge sampling: {error}", "no_evidence") from error
    doubts = failures(answer.checks)
    if answer.status == "failed":
        raise NumericalError(f"bridge sampling: {doubts}", "no_evidence")
    return answer.log_evidence, answer.error, f"bridge sampling{'; ' * bool(doubts)}{doubts}"


def _undefined(candidate: Candidate) -> str | None:
    """Say which prior is flat, or that there is no density; None where neither holds.

    Only models without closed forms have flat priors, and only these import PyMC here.
    """
    from bayeszoo.compile.density import no_evidence

    try:
        declared = candidate.model.declare(candidate.data)
    except InputError as error:
        if error.code != "no_density":
            raise
        return error.message
    return no_evidence(declared)
