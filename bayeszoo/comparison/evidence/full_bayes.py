"""Full Bayes over hyperparameters: fields of a model are integrated out, where empirical Bayes plugs in a maximum.

The fields have a prior and a posterior, and the evidence keeps every constant. Means and variances of the parameters
follow by the laws of total expectation and variance. MacKay 1992, section 2.4; Bishop, PRML, section 3.5.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayeszoo.comparison.evidence.empirical_bayes import empirical_bayes, no_closed_form
from bayeszoo.comparison.evidence.grid import Bounds, between, require_few
from bayeszoo.comparison.evidence.record import EmpiricalBayes
from bayeszoo.data.read import Data, read
from bayeszoo.distributions.posterior import QUANTILES, Marginal
from bayeszoo.distributions.priors import Prior, Priors, Uniform
from bayeszoo.errors import InputError, Untrustworthy
from bayeszoo.foundation.gate import Check, at_most, passed
from bayeszoo.foundation.numerics.grid import Grid, combinations
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import ClosedForm
from bayeszoo.model.outer.coordinates import OuterCoordinates
from bayeszoo.model.outer.integration import Integrated, integrate
from bayeszoo.model.outer.over import Over
from bayeszoo.model.outer.over import over as make_over
from bayeszoo.model.outer.over_fields import domain

FACTOR = 100.0
"""A positive field is integrated from its empirical-Bayes maximum divided by this factor to the maximum times it."""
EDGE = 0.1
"""The share of the distance between the bounds that counts as near a bound."""
MAX_EDGE = 1e-3
"""Largest posterior probability that may lie near a bound."""
MAX_EDGE_VARIANCE = 1e-2
"""Largest share of a variance from near a bound; above it, the bounds decide the moments."""

LogPrior = Callable[..., float]
"""``log_prior(tau=..., sigma=...)`` is the log prior density of these fields."""


@dataclass(frozen=True, repr=False, eq=False)
class FullBayes:
    """Posterior of some fields of a model, and of its parameters with these fields integrated out.

    Attributes
    ----------
    model, over : Model, tuple of str
        The model, whose other fields stay, and the fields that were integrated out.
    bounds, prior, prior_mass : dict of str to pair of float, str, float
        The bounds of each field with a uniform prior; the prior, in words; and its probability within the bounds,
        which is 1 except for a ``log_prior``.
    log_evidence, log_evidence_error : float
        Log evidence with the fields integrated out, and its change when the grid is halved.
    fields : dict of str to dict
        ``mean``, ``sd``, ``q025``, ``median`` and ``q975`` of each field; moments that the bounds decide are NaN.
    parameters : dict of str to dict
        ``mean`` and ``sd`` of each parameter, of its shape; and ``plug_in_mean`` and ``plug_in_sd``, those of the
        posterior at the maximum of the evidence, None where there is no maximum.
    edges : dict of str to pair of float
        Posterior probability of each bounded field in the lowest and the highest tenth of its range.
    variance_near_bounds : dict of str to float
        The share of the variance of each field and parameter that comes from there; the largest one of a vector.
    points, plug_in, checks : tuple of int, EmpiricalBayes, list of Check
        The size of the grid; the maximum of the evidence; the checks, all of which must pass.
    """

    model: Model
    over: tuple[str, ...]
    bounds: dict[str, tuple[float, float]]
    prior: str
    prior_mass: float
    log_evidence: float
    log_evidence_error: float
    fields: dict[str, dict[str, float]]
    parameters: dict[str, dict[str, Any]]
    edges: dict[str, tuple[float, float]]
    variance_near_bounds: dict[str, float]
    points: tuple[int, ...]
    plug_in: EmpiricalBayes
    checks: list[Check]

    @property
    def status(self) -> str:
        """``"ok"``, ``"at the bounds"`` or ``"not converged"``."""
        if any(max(pair) > MAX_EDGE for pair in self.edges.values()):
            return "at the bounds"
        return "ok" if passed(self.checks) else "not converged"

    @property
    def reasons(self) -> list[str]:
        """Why the status is not ``"ok"``, a line each."""
        lines = [str(check) for check in self.checks if not check.passed]
        if self.status == "at the bounds":
            lines.append("the posterior of the fields does not fall off fast enough: the answer depends on the bounds")
        return lines

    @property
    def notes(self) -> list[str]:
        """Which moments are withheld, and why, a line each."""
        decided = {name: share for name, share in self.variance_near_bounds.items() if share > MAX_EDGE_VARIANCE}
        why = "of the variance comes from near the bounds, which decide the moments"
        return [f"mean and sd of {name} are withheld: {share:.2g} {why}" for name, share in decided.items()]

    def __repr__(self) -> str:
        """Show the fields, the prior, the log evidence and the status."""
        line = "{} {median:.6g} ({q025:.3g} to {q975:.3g})"
        lines = [
            f"{self.model.name}: {', '.join(line.format(name, **figures) for name, figures in self.fields.items())}",
            f"prior: {self.prior}",
            f"log evidence {self.log_evidence:.10g}, fields integrated out; {self.log_evidence_error:.1g} by halving",
            f"status {self.status}",
        ]
        return "\n".join([*lines, *self.reasons, *self.notes])


def full_bayes(
    model: Model,
    data: object = None,
    over: str | Sequence[str] | None = None,
    *,
    bounds: Bounds | None = None,
    priors: Mapping[str, Prior | str] | None = None,
    log_prior: LogPrior | None = None,
    plug_in: EmpiricalBayes | None = None,
) -> FullBayes:
    """Integrate one or two fields out of a model, by quadrature of its exact evidence.

    Parameters
    ----------
    model : Model
        A `ClosedForm` model; its other fields stay.
    data : Data or anything that `read` takes, optional
        The model's first example by default.
    over : str or sequence of str
        The fields, each a single number; by default all fields with bounds or priors.
    bounds : mapping of str to pair of float, optional
        The range of each field; by default from a hundredth to a hundred times the maximum of the evidence. A real
        field, such as a mean, needs bounds.
    priors : mapping of str to Prior or text, optional
        The prior of each field, such as ``{"tau": HalfNormal(10)}``; a field with a prior needs no bounds.
    log_prior : callable, optional
        ``log_prior(tau=..., sigma=...)`` returns the log prior density of the fields, with every constant, with respect
        to the fields themselves. By default the prior is uniform between the bounds, for a positive field in its
        logarithm; the evidence then depends on the bounds.
    plug_in : EmpiricalBayes, optional
        The maximum of the evidence over the same fields, if it is already computed.

    Returns
    -------
    FullBayes
        Its status is not ``"ok"`` when the posterior does not fall off towards the bounds, or the grid is too coarse.

    Raises
    ------
    InputError
        When the model has no closed form or no such fields, the bounds are invalid, or the data do not suit the model.
    Untrustworthy
        When no bounds are given and the evidence has no maximum to put them around.

    Notes
    -----
    This is the exact fit of `over`, as numbers. The grid is dense around the highest posterior density and becomes
    exponentially coarser towards the bounds. It is refined until leaving out every other point changes little; the
    change is reported.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> speeds = bz.find("gaussian_mean")(m0=850, s0=50)
    >>> averaged = bz.full_bayes(speeds, over="sigma")
    >>> round(averaged.fields["sigma"]["mean"], 1), averaged.status
    (79.6, 'ok')
    """
    chosen = Priors(priors or {})
    names = (over,) if isinstance(over, str) else tuple(over or dict.fromkeys([*(bounds or {}), *chosen]))
    closed, data = require_few(model, names), read(model, data)
    laws = _priors(closed, names, bounds or {}, chosen)
    if reason := no_closed_form(model, data):
        raise InputError(f"{model.name} has no evidence in closed form for these data: {reason}", "no_closed_form")
    best = plug_in or empirical_bayes(model, data, names)
    if set(best.over) != set(names):
        raise InputError(
            f"plug_in is the maximum over {', '.join(best.over)}, not over {', '.join(names)}", "not_comparable"
        )
    laid = [name for name in names if name not in laws]
    begin = closed.replaced(**{name: getattr(best.model, name) for name in names})
    outer = make_over(begin, {name: laws[name] if name in laws else _around(best, name) for name in names})
    return _result(outer if log_prior is None else outer.under(log_prior), closed, best, data, laid)


def _priors(model: Model, names: Sequence[str], bounds: Bounds, chosen: Priors) -> dict[str, Prior]:
    """Return the priors of fields with a prior or with bounds."""
    for name in [*bounds, *chosen]:
        if name not in names or (name in bounds and name in chosen):
            problem = "both bounds and a prior" if name in names else "which is not among the fields to integrate out"
            raise InputError(f"bounds of {name}, {problem}: {', '.join(names)}", "out_of_range")
    return {**between(model, bounds), **chosen}


def _around(best: EmpiricalBayes, name: str) -> Uniform:
    """Return the default prior of a field, around the maximum of the evidence."""
    above = domain(best.model, name).low
    if math.isinf(above):
        raise InputError(
            f"a uniform prior of {name} needs bounds",
            "out_of_range",
            hint=f'give bounds={{"{name}": (lowest, highest)}}',
        )
    if best.status != "ok":
        why = "; ".join(best.reasons)
        raise Untrustworthy(
            f"the evidence has no maximum to set bounds around ({why}): give bounds of {name}", "no_maximum"
        )
    excess = float(getattr(best.model, name)) - above
    return between(best.model, {name: (above + excess / FACTOR, above + excess * FACTOR)})[name]


def _result(outer: Over, model: Model, best: EmpiricalBayes, data: Data, laid: Sequence[str]) -> FullBayes:
    fitted = integrate(outer, data)
    assert fitted.grid is not None
    laws = {name: prior for name, prior in outer.priors.items() if isinstance(prior, Uniform)}
    edges = {name: _edges(fitted.posterior[name], law) for name, law in laws.items()}
    shares = _shares(outer, fitted, laws, data)
    moments = {name: _moments(law, shares[name]) for name, law in fitted.posterior.items()}
    plugged, prior_mass = _plugged_in(best, outer.statistics(data)), _prior_mass(outer, fitted.grid)
    return FullBayes(
        model=model,
        over=tuple(outer.priors),
        bounds={name: (float(law.low), float(law.high)) for name, law in laws.items()},
        prior=_described(outer, prior_mass, laid),
        prior_mass=prior_mass,
        log_evidence=fitted.log_evidence,
        log_evidence_error=fitted.grid.error,
        fields={name: _figures(moments[name], fitted.posterior[name]) for name in outer.priors},
        parameters={name: {**moments[name], **at_maximum} for name, at_maximum in plugged.items()},
        edges=edges,
        variance_near_bounds={name: float(np.max(share, initial=0.0)) for name, share in shares.items()},
        points=fitted.grid.log_density.shape,
        plug_in=best,
        checks=[*fitted.checks, *_checks(edges, prior_mass)],
    )


def _edges(marginal: Marginal, prior: Uniform) -> tuple[float, float]:
    """Return the posterior probabilities near the two bounds of a field."""
    low, high = prior.ppf([EDGE, 1 - EDGE])
    return marginal.cdf(low), 1 - marginal.cdf(high)


def _shares(outer: Over, fitted: Integrated, laws: Mapping[str, Uniform], data: Data) -> dict[str, np.ndarray]:
    """Return the share of the variance of each field and parameter that comes from near a bound."""
    near = np.zeros(len(fitted.mass), dtype=bool)
    for name, law in laws.items():
        low, high = law.ppf([EDGE, 1 - EDGE])
        near |= (fitted.points[name] < low) | (fitted.points[name] > high)
    parts = {name: (values, np.zeros_like(values)) for name, values in fitted.points.items()}
    for name, marginal in outer.posterior_given(fitted.points, data).items():
        parts[name] = np.asarray(marginal.mean()), np.asarray(marginal.std())
    return {name: _share_near(fitted.mass, near, *pair) for name, pair in parts.items()}


def _share_near(mass: np.ndarray, near: np.ndarray, means: np.ndarray, sds: np.ndarray) -> np.ndarray:
    """Return the share of the variance of a mixture that comes from grid points near a bound."""
    with np.errstate(invalid="ignore", divide="ignore"):  # infinite numbers are shown as infinite
        parts = np.square(sds) + np.square(means - np.tensordot(mass, means, axes=1))
        share = np.tensordot(mass * near, parts, axes=1) / np.tensordot(mass, parts, axes=1)
    return np.where(np.isfinite(share), share, 0.0)


def _moments(marginal: Marginal, share: np.ndarray) -> dict[str, np.ndarray]:
    """Return mean and sd, NaN where the bounds decide them."""
    moments = {"mean": marginal.mean(), "sd": marginal.std()}
    return {key: np.where(share > MAX_EDGE_VARIANCE, math.nan, value) for key, value in moments.items()}


def _figures(moments: Mapping[str, np.ndarray], marginal: Marginal) -> dict[str, float]:
    quantiles = {name: marginal.ppf(level) for name, level in QUANTILES.items()}
    return {name: float(value) for name, value in {**moments, **quantiles}.items()}


def _prior_mass(outer: Over, grid: Grid) -> float:
    """Return the prior probability of the region of integration."""
    if not outer.is_under_another:
        return 1.0
    coordinates = OuterCoordinates.of(outer, outer.integrated_over)
    points = combinations([rule.points for rule in grid.rules])
    log_density = outer.log_outer_prior(coordinates.outer(points)) + coordinates.log_slope(points)
    return float(np.exp(log_density) @ np.ravel(grid.weights))


def _described(outer: Over, mass: float, laid: Sequence[str]) -> str:
    """Describe the prior; ``laid`` are the fields whose bounds were put around the maximum of the evidence."""
    priors = ", ".join(f"{name} ~ {prior:.6g}" for name, prior in outer.priors.items())
    if outer.is_under_another:
        return f"as given, with probability {mass:.6g} between the bounds of {priors}"
    note = f"; the bounds of {' and '.join(laid)} lie around the maximum of the evidence, and so depend on the data"
    return f"{priors}{note if laid else ''}"


def _checks(edges: Mapping[str, tuple[float, float]], prior_mass: float) -> list[Check]:
    of_edges = [
        at_most(f"posterior probability near the {side} bound of {name}", share, MAX_EDGE)
        for name, pair in edges.items()
        for side, share in zip(("lower", "upper"), pair, strict=True)
    ]
    return [at_most("prior probability within the bounds", prior_mass, 1.001), *of_edges]


def _plugged_in(best: EmpiricalBayes, stats: Any) -> dict[str, dict[str, Any]]:
    """Return mean and sd of each parameter at the maximum of the evidence, None without a maximum."""
    assert isinstance(best.model, ClosedForm)
    figures = {
        name: (np.asarray(marginal.mean()), np.asarray(marginal.std())) if best.status == "ok" else (None, None)
        for name, marginal in best.model.posterior(stats).items()
    }
    return {name: {"plug_in_mean": mean, "plug_in_sd": sd} for name, (mean, sd) in figures.items()}
