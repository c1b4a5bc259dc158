"""Full Bayes over hyperparameters: fields of a model are integrated out, where empirical Bayes plugs in a maximum.

The fields get a prior, a posterior, and the evidence keeps every constant. Means and variances of the parameters follow
by the laws of total expectation and variance. MacKay 1992, section 2.4; Bishop, PRML, section 3.5.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayeszoo.comparison.evidence.evidence import empirical_bayes, no_closed_form
from bayeszoo.comparison.evidence.grid import Bounds, between, checked, require_fields
from bayeszoo.comparison.evidence.record import EmpiricalBayes
from bayeszoo.data.read import Data, read
from bayeszoo.distributions.posterior import QUANTILES
from bayeszoo.distributions.priors import LogUniform, Prior, Priors
from bayeszoo.errors import InputError, NumericalError, Untrustworthy
from bayeszoo.foundation.gate import Check, at_most, passed
from bayeszoo.foundation.grid import Grid, combinations, differences
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import ClosedForm
from bayeszoo.model.fields import hyperparameters
from bayeszoo.model.integration import Integrated, integrate
from bayeszoo.model.outer import OuterCoordinates
from bayeszoo.model.over import Over
from bayeszoo.model.over import over as make_over

FACTOR = 100.0
"""A positive field is integrated from its empirical-Bayes maximum divided by this to that times this."""
EDGE = 0.1
"""The share of the distance between the bounds that counts as near one of them."""
MAX_EDGE = 1e-3
"""Posterior probability that may lie near a bound."""
MAX_EDGE_VARIANCE = 1e-2
"""Share of a variance that may come from near a bound; where it is larger, the bounds decide the moments."""
MAX_ERROR = 1e-4
"""Nats by which halving the grid may change the log evidence.

It is the error of half the points; that of all of them is of fourth order at the least, and so a sixteenth.
"""
MAX_MOMENT_ERROR = 5e-3
"""Standard deviations by which halving the grid may change a mean, a quantile or a standard deviation."""

LogPrior = Callable[..., float]
"""``log_prior(tau=..., sigma=...)`` is the log density of a prior of these fields."""
Moments = tuple[np.ndarray, np.ndarray]
"""Means and standard deviations at P points, of shape (P, *own shape)."""


@dataclass(frozen=True, repr=False, eq=False)
class FullBayes:
    """Posterior of fields of a model and of its parameters, with the fields integrated out.

    Attributes
    ----------
    model, over : Model, tuple of str
        The model that was given, whose other fields stay, and the fields that were integrated out.
    bounds, prior, prior_mass : dict of str to pair of float, str, float
        Between which values, under which prior, and its probability there; 1 for the default, which is defined there.
    log_evidence, log_evidence_error : float
        Log of the evidence with the fields integrated out, and what halving the grid changes it by.
    fields : dict of str to dict
        ``mean``, ``sd``, ``q025``, ``median`` and ``q975`` of each field; moments that the bounds decide are NaN.
    parameters : dict of str to dict
        ``mean`` and ``sd`` of each parameter, of its shape, and ``plug_in_mean`` and ``plug_in_sd``: what the posterior
        at the maximum of the evidence says, None where there is no maximum.
    moment_error : float
        The most that halving the grid changes any of these by, in standard deviations.
    edges : dict of str to pair of float
        Posterior probability in the lowest and in the highest tenth of what was integrated over.
    variance_near_bounds : dict of str to float
        The share of the variance of each field and parameter, of a vector the largest, that comes from there.
    points, plug_in, checks : tuple of int, EmpiricalBayes, list of Check
        Of the grid; the maximum of the evidence; all of these must pass.
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
    moment_error: float
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
        said = "{} {median:.6g} ({q025:.3g} to {q975:.3g})"
        lines = [
            f"{self.model.name}: {', '.join(said.format(name, **figures) for name, figures in self.fields.items())}",
            f"prior: {self.prior}",
            f"log evidence {self.log_evidence:.10g}, fields integrated out; {self.log_evidence_error:.1g} by halving",
            f"status {self.status}",
        ]
        return "\n".join([*lines, *self.reasons, *self.notes])


def full_bayes(
    model: Model,
    data: Any = None,
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
        Must be `ClosedForm`. Fields that are not named stay.
    data : Data or anything that `read` takes, optional
        The model's first example by default.
    over : str or sequence of str
        The fields, each a single number; by default those that have bounds or priors.
    bounds : mapping of str to pair of float, optional
        Between which values to integrate; by default from a hundredth to a hundred times the maximum of the evidence.
        A real field, such as a mean, needs them.
    priors : mapping of str to Prior or text, optional
        The prior of each field, as ``{"tau": HalfNormal(10)}``; where there is one no bounds are needed.
    log_prior : callable, optional
        ``log_prior(tau=..., sigma=...)`` returns the log density of the fields' prior, with every constant, with
        respect to the fields themselves. By default the prior is uniform between the bounds, for a positive field in
        its logarithm, so that the evidence depends on the bounds.
    plug_in : EmpiricalBayes, optional
        The maximum of the evidence over the same fields, where it is known already.

    Returns
    -------
    FullBayes
        Its status is not ``"ok"`` when the posterior does not fall off towards the bounds, or the grid is too coarse.

    Raises
    ------
    InputError
        When the model has no closed form or no such fields, the bounds are no bounds, or the data do not suit it.
    Untrustworthy
        When the evidence has no maximum to lay bounds around, and none are given.

    Notes
    -----
    It is the exact fit of `over`, in figures. The grid is dense around the highest posterior density and grows
    exponentially coarser towards the bounds. It is refined until leaving out every other point changes little; what
    that changes is reported.

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
    known = require_fields(model, names)
    for name in [*(bounds or {}), *chosen]:
        if name not in names or (bounds and name in bounds and name in chosen):
            what = "both bounds and a prior" if name in names else "which is not among the fields to integrate out"
            raise InputError(f"bounds of {name}, {what}: {', '.join(names)}")
    pairs, data = checked(model, bounds)[1] if bounds else {}, read(model, data)
    if reason := no_closed_form(model, data):
        raise InputError(f"{model.name} has no evidence in closed form for these data: {reason}")
    best = plug_in or empirical_bayes(model, data, names)
    if set(best.over) != set(names):
        raise InputError(f"plug_in is the maximum over {', '.join(best.over)}, not over {', '.join(names)}")
    laid = [name for name in names if name not in pairs and name not in chosen]
    pairs |= {name: _around(best, name) for name in laid}
    laws = {name: chosen[name] if name in chosen else between(known, name, *pairs[name]) for name in names}
    begin = known.replaced(**{name: getattr(best.model, name) for name in names})
    outer = make_over(begin, laws)
    return _result(outer if log_prior is None else outer.under(log_prior), known, best, data, pairs, laid)


def _around(best: EmpiricalBayes, name: str) -> tuple[float, float]:
    """Return the default bounds of a field."""
    if not hyperparameters(best.model)[name].positive:
        raise InputError(f"a uniform prior of {name} needs bounds", hint=f'give bounds={{"{name}": (lowest, highest)}}')
    if best.status != "ok":
        why = "; ".join(best.reasons)
        raise Untrustworthy(f"the evidence has no maximum to lay bounds around ({why}): give bounds of {name}")
    above = float(best.model.lower_bounds.get(name, 0.0))
    excess = float(getattr(best.model, name)) - above
    return above + excess / FACTOR, above + excess * FACTOR


def _result(
    outer: Over, model: Model, best: EmpiricalBayes, data: Data, bounds: Bounds, laid: Sequence[str]
) -> FullBayes:
    try:
        fitted = integrate(outer, data)
    except NumericalError:
        raise NumericalError(f"{model.name} has no evidence between the bounds") from None
    assert fitted.grid is not None
    parts, near = _parts(outer, fitted, data), _near(fitted, {name: outer.priors[name] for name in bounds})
    figures, coarse = ({name: total(m, *part) for name, part in parts.items()} for m in (fitted.mass, fitted.halved))
    for each, grid in ((figures, fitted.grid), (coarse, fitted.grid.halved)):
        for name, quantiles in _quantiles(outer, grid).items():
            each[name] |= quantiles
    shares = {name: _share_near(fitted.mass, near, *part) for name, part in parts.items()}
    kept = {
        name: _kept(each, shares[name], float if name in outer.priors else np.asarray) for name, each in figures.items()
    }
    edges = {name: _edges(fitted.posterior[name], prior) for name, prior in outer.priors.items() if name in bounds}
    prior = _log_prior_on(outer, fitted.grid)
    prior_mass, moment_error = float(np.sum(np.exp(prior) * fitted.grid.weights)), differences(figures, coarse)
    plugged = _plugged_in(best, outer.statistics(data))
    return FullBayes(
        model=model,
        over=tuple(outer.priors),
        bounds=dict(bounds),
        prior=_described(outer, bounds, prior_mass, laid),
        prior_mass=prior_mass if outer.is_under_another else 1.0,
        log_evidence=fitted.log_evidence,
        log_evidence_error=fitted.grid.error,
        fields={name: kept[name] for name in outer.priors},
        parameters={name: {**each, **plugged[name]} for name, each in kept.items() if name not in outer.priors},
        moment_error=moment_error,
        edges=edges,
        variance_near_bounds={name: float(np.max(share, initial=0.0)) for name, share in shares.items()},
        points=fitted.grid.log_density.shape,
        plug_in=best,
        checks=_checks(fitted.grid, prior, moment_error, edges, prior_mass),
    )


def _parts(outer: Over, fitted: Integrated, data: Data) -> dict[str, Moments]:
    """Return means and sds given the fields at each point: of these, and of the parameters."""
    inner = outer.posterior_given(fitted.points, data)
    certain = {name: (values, np.zeros_like(values)) for name, values in fitted.points.items()}
    return certain | {name: (np.asarray(law.mean()), np.asarray(law.std())) for name, law in inner.items()}


def _near(fitted: Integrated, priors: Mapping[str, Any]) -> np.ndarray:
    """Say of each point whether it is in the lowest or the highest tenth of what a prior between bounds is over."""
    near = np.zeros(len(fitted.mass), dtype=bool)
    for name, prior in priors.items():
        low, high = prior.ppf([EDGE, 1 - EDGE])
        near |= (fitted.points[name] < low) | (fitted.points[name] > high)
    return near


def _edges(marginal: Any, prior: Any) -> tuple[float, float]:
    """Return the posterior probabilities near the two bounds of a field."""
    low, high = prior.ppf([EDGE, 1 - EDGE])
    return marginal.cdf(low), 1 - marginal.cdf(high)


def _quantiles(outer: Over, grid: Grid) -> dict[str, dict[str, float]]:
    """Return the quantiles of each field by a grid."""
    at = OuterCoordinates.of(outer, outer.integrated_over)
    levels = np.array([*QUANTILES.values()])
    each = {name: at.value(i, grid.distribution(i).quantile(levels)) for i, name in enumerate(at.labels)}
    return {name: dict(zip(QUANTILES, values.tolist(), strict=True)) for name, values in each.items()}


def _log_prior_on(outer: Over, grid: Grid) -> np.ndarray:
    """Return the log prior density of the coordinates at the points of a grid."""
    at, points = OuterCoordinates.of(outer, outer.integrated_over), combinations([rule.points for rule in grid.rules])
    return np.reshape(outer.log_outer_prior(at.outer(points)) + at.log_slope(points), grid.log_density.shape)


def _described(outer: Over, bounds: Bounds, mass: float, laid: Sequence[str]) -> str:
    """Say what the prior is; ``laid`` are the fields whose bounds were laid around the maximum of the evidence."""
    ranges = {name: f"{name} from {low:.6g} to {high:.6g}" for name, (low, high) in bounds.items()}
    if outer.is_under_another:
        return f"as given, with probability {mass:.6g} within {' and '.join(ranges.values())}"
    parts = [f"in {_scale(name, outer.priors[name])} for {where}" for name, where in ranges.items()]
    uniform = [f"uniform {' and '.join(parts)}"] if parts else []
    note = f"; the bounds of {' and '.join(laid)} lie around the maximum of the evidence, and so depend on the data"
    laws = [f"{name} ~ {prior}" for name, prior in outer.priors.items() if name not in bounds]
    return f"{', '.join([*uniform, *laws])}{note if laid else ''}"


def _scale(name: str, prior: Prior) -> str:
    """Name what is uniform of a field: ``log tau``, ``m0``, ``log(nu0 - 2)``."""
    if not isinstance(prior, LogUniform):
        return name
    return f"log({name} - {prior.above:g})" if prior.above else f"log {name}"


def _kept(figures: Mapping[str, Any], share: np.ndarray, kind: Any) -> dict[str, Any]:
    """Withhold (NaN) mean and standard deviation where points near a bound decide them."""
    decided = share > MAX_EDGE_VARIANCE
    return {key: kind(np.where(decided & (key in ("mean", "sd")), math.nan, value)) for key, value in figures.items()}


def _checks(
    grid: Grid, prior: np.ndarray, moment_error: float, edges: Mapping[str, tuple[float, float]], prior_mass: float
) -> list[Check]:
    missing = int(np.sum(np.isneginf(grid.log_density) & (prior > -math.inf)))
    of_edges = [
        at_most(f"posterior probability near the {side} bound of {name}", share, MAX_EDGE)
        for name, pair in edges.items()
        for side, share in zip(("lower", "upper"), pair, strict=True)
    ]
    return [
        at_most("points without an evidence", missing, 0),
        at_most("log evidence changed by halving the grid", grid.error, MAX_ERROR),
        at_most("sd that halving the grid moves estimates by", moment_error, MAX_MOMENT_ERROR),
        at_most("prior probability within the bounds", prior_mass, 1.001),
        *of_edges,
    ]


def _share_near(mass: np.ndarray, near: np.ndarray, means: np.ndarray, sds: np.ndarray) -> np.ndarray:
    """Return the share of the variance of a mixture that comes from the points near a bound."""
    moments = total(mass, means, sds)
    with np.errstate(invalid="ignore", divide="ignore"):  # what is infinite is shown as such
        parts = np.square(sds) + np.square(means - moments["mean"])
        share = np.tensordot(mass * near, parts, axes=1) / np.square(moments["sd"])
    return np.where(np.isfinite(share), share, 0.0)


def total(mass: np.ndarray, means: np.ndarray, sds: np.ndarray) -> dict[str, Any]:
    """Return mean and sd of a mixture of P parts, by the laws of total expectation and variance.

    ``mass``, of shape (P,), sums to 1; ``means`` and ``sds`` have shape (P, *own shape).
    """
    mean = np.tensordot(mass, means, axes=1)
    with np.errstate(invalid="ignore"):  # a mean that is infinite has no variance
        variance = np.tensordot(mass, np.square(sds) + np.square(means - mean), axes=1)
    return {"mean": mean, "sd": np.sqrt(variance)}


def _plugged_in(best: EmpiricalBayes, stats: Any) -> dict[str, dict[str, Any]]:
    """Return mean and sd of each parameter at the maximum of the evidence, None where it has none."""
    assert isinstance(best.model, ClosedForm)
    figures = {
        name: (np.asarray(marginal.mean()), np.asarray(marginal.std())) if best.status == "ok" else (None, None)
        for name, marginal in best.model.posterior(stats).items()
    }
    return {name: {"plug_in_mean": mean, "plug_in_sd": sd} for name, (mean, sd) in figures.items()}
