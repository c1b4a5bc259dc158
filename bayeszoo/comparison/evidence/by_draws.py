"""Empirical Bayes by Monte Carlo EM: fields of the prior chosen by draws, where the evidence has no closed form.

A field eta that only the prior depends on is moved to the value that maximizes the mean log prior density of the
posterior's draws; then the posterior is drawn again (Casella 2001; Park and Casella 2008, section 3.1). For Laplace
weights of scale b this value is b = E[mean of |w_j|]. With the score s = d log p(w | eta) / d log eta of the draws,

    d log Z / d log eta      =  E[s]
    d^2 log Z / d log eta^2  =  E[d s / d log eta] + Var[s]

(Louis 1982). These give Newton's step near the maximum, show whether it is one, and give the error of eta.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy

from bayeszoo.comparison.evidence.record import EmpiricalBayes
from bayeszoo.data.read import Data
from bayeszoo.errors import InputError, Interrupted, Untrustworthy
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.gate import at_least, at_most, failures, passed
from bayeszoo.foundation.process.progress import Reporter
from bayeszoo.foundation.streams import stream
from bayeszoo.inference.methods.modes.fields import SearchCoordinates
from bayeszoo.inference.methods.modes.surface import STEP, boundary_check, still_rises
from bayeszoo.inference.problem import Problem
from bayeszoo.model.base import fields_of
from bayeszoo.model.capabilities import ClosedForm, Observable
from bayeszoo.model.density import log_density, prior
from bayeszoo.model.fields import hyperparameters
from bayeszoo.model.outer.over import moved, over_flat

MAX_FITS = 30
"""Most runs of NUTS in a climb."""
MAX_STEP = math.log(4.0)
"""Largest change of the logarithm of a field in one step."""
TENFOLD = math.log(10.0)
"""How much further out, in the logarithm of the fields, another climb begins."""
NEAR = 1.0
"""Largest Newton step that is trusted, in the logarithm of the fields."""
SETTLED = 2.0
"""A climb ends when the score is within this many Monte Carlo errors of zero."""
MAX_ERROR = 0.1
"""Largest Monte Carlo error of the logarithm of a chosen field."""
SAME = 4.0
"""Two climbs reached the same maximum if their ends differ by at most this many Monte Carlo errors."""
WITHHELD = "the log evidence is withheld: it has no closed form for these data, and draws give only its slope"


@dataclass(frozen=True, repr=False, eq=False)
class EmpiricalBayesByDraws(EmpiricalBayes):
    """A model whose fields maximize the evidence, chosen from draws; ``log_evidence`` is withheld (NaN).

    Attributes
    ----------
    error : dict of str to float
        Monte Carlo standard error of the logarithm of each chosen field, or entry of one.
    fits : int
        Runs of NUTS.
    """

    error: dict[str, float] = field(default_factory=dict)
    fits: int = 0

    def about_evidence(self, shown: bool = True, decimals: int = 2) -> list[str]:
        """Return lines: the errors of the fields where these are shown, and why the evidence is withheld."""
        errors = [f"Monte Carlo error of log {name} {error:.2g}" for name, error in self.error.items()]
        return [*(errors if shown else []), WITHHELD, f"{self.fits} fits with NUTS"]

    @property
    def next_step(self) -> str:
        """What to try where the fields are withheld; else an empty string."""
        return "try another --seed" if self.status == "not converged" else super().next_step

    def error_of(self, name: str) -> float:
        """Return the Monte Carlo standard error of a scalar field, in the units of the field."""
        return float(getattr(self.model, name)) * self.error[name]


def by_draws(
    model: ClosedForm[Any],
    data: Data,
    over: Sequence[str],
    *,
    seed: int = 0,
    why: str = "",
    reporter: Reporter | None = None,
) -> EmpiricalBayesByDraws:
    """Choose positive fields of the prior so that the evidence is largest, from draws of NUTS.

    Two climbs begin at the fields of the model, and at those of ``model.weak(data)``, or where these are near, at ten
    times those. The climbs must end at the same maximum, within their Monte Carlo errors. If one ends where the
    evidence is level, a third begins further out. ``why`` says why there is no closed form, for messages. Raises
    `InputError`, before anything compiles, unless only the prior depends on each field; `Untrustworthy` where a run of
    NUTS does not pass its gate; and `Interrupted`.
    """
    require_prior_fields(model, data, over, why)
    rng = stream(seed, model.name, fields_of(model), data.digest, "empirical bayes", over)
    coordinates = SearchCoordinates.search(over_flat(model, over), data)
    search = MonteCarloSearch(coordinates, data, rng, reporter or Reporter())
    return _result(search, search.run())


def require_prior_fields(model: ClosedForm[Any], data: Data, names: Sequence[str], why: str) -> None:
    """Refuse fields unless the prior depends on them, and the likelihood and the statistics do not."""
    objections = {name: _objection(model, data, name) for name in hyperparameters(model)}
    free = [name for name, objection in objections.items() if not objection]
    for name in filter(objections.get, names):
        reason = f"over {name}: the evidence has no closed form ({why}), and {objections[name]}"
        raise InputError(reason, "undefined_evidence", hint=f"by draws {', '.join(free) or 'no field'} can be chosen")


def _objection(model: ClosedForm[Any], data: Data, name: str) -> str:
    """Say why a field cannot be chosen by draws; return an empty string where it can."""
    if type(model).log_prior is ClosedForm.log_prior or not isinstance(model, Observable):
        return f"{model.name} has no log_prior and likelihood to choose it by draws"
    if not hyperparameters(model)[name].positive:
        return f"by draws only positive fields can be chosen, and {name} is not positive"
    models: list[Any] = [model, moved(model, name)]
    rows = model.inputs.reordered(data, np.arange(min(len(model.inputs.outcome(data)), 20)))
    first, second = (vars(variant.statistics(rows)) for variant in models)
    if not all(_same(value, second[key]) for key, value in first.items()):
        return f"{name} changes the sufficient statistics of {model.name}"
    points = prior(model, data).rvs((5,), np.random.default_rng(0))
    if not _same(*(log_density(variant.likelihood(points, rows), model.inputs.outcome(rows)) for variant in models)):
        return f"the likelihood depends on {name}, not the prior alone"
    is_unused = _same(*(variant.log_prior(points, rows) for variant in models))
    return f"the prior does not depend on {name}" if is_unused else ""


def _same(first: Any, second: Any) -> bool:
    return bool(np.array_equal(first, second, equal_nan=True))


def mcse(values: np.ndarray) -> np.ndarray:
    """Return the Monte Carlo standard errors (D,) of means of draws (chain, draw, D); 0 where all draws are equal."""
    columns, limit = np.moveaxis(values, -1, 0), 1e-12
    return np.array([0.0 if np.ptp(c) <= limit * np.max(np.abs(c)) else float(diagnostics.mcse(c)) for c in columns])


@dataclass(frozen=True, eq=False)
class Place:
    """The log evidence at x, the logarithms of the D fields, by draws of the posterior there.

    ``slope`` (D,), with the Monte Carlo errors ``noise``, and ``curvature`` (D, D) are the gradient and the Hessian, by
    Louis's identity; ``z`` is the largest entry of the slope in its errors. ``error`` (D,) is the Monte Carlo error of
    the point where the slope is zero, by the delta method, infinite where there is no maximum. ``further`` is the next
    place: by Newton's step where it is short, else the maximum of the draws' mean log prior (EM).
    """

    x: np.ndarray
    slope: np.ndarray
    noise: np.ndarray
    curvature: np.ndarray
    z: float
    error: np.ndarray
    further: np.ndarray

    @property
    def is_settled(self) -> bool:
        """Whether the slope is zero within its Monte Carlo error."""
        return self.z <= SETTLED

    @property
    def is_at_maximum(self) -> bool:
        """Whether the place is at a maximum, located precisely enough."""
        return self.is_settled and bool(np.max(self.error) <= MAX_ERROR)

    @property
    def top(self) -> np.ndarray:
        """The estimated maximum, where the slope is zero, shape (D,)."""
        return self.further if self.is_at_maximum else self.x


def differences(function: Callable[[np.ndarray], Any], x: np.ndarray, step: float = STEP) -> np.ndarray:
    """Return central differences of a function along each of the D entries of x, as a new last axis."""
    return np.stack([(function(x + h) - function(x - h)) / (2 * step) for h in step * np.eye(len(x))], axis=-1)


def described(coordinates: SearchCoordinates, rows: Any, x: np.ndarray, draws: dict[str, np.ndarray]) -> Place:
    """Describe a place by draws of shape (chain, draw, ...); ``rows`` are data without rows, for their labels."""

    def log_prior(x: np.ndarray) -> np.ndarray:
        return np.asarray(coordinates.model_at(x).log_prior(draws, rows))

    def slope_at(x: np.ndarray) -> np.ndarray:
        return np.asarray(differences(log_prior, x).mean(axis=(0, 1)))

    scores, bend = differences(log_prior, x), differences(slope_at, x)
    slope, noise = scores.mean(axis=(0, 1)), mcse(scores)
    curvature = (bend + bend.T) / 2 + np.cov(scores.reshape(-1, len(x)).T).reshape(bend.shape)
    z = np.divide(np.abs(slope), noise, out=np.where(slope != 0, math.inf, 0.0), where=noise > 0)
    error, step = np.full((2, len(x)), math.inf)
    if np.isfinite(curvature).all() and np.all(np.linalg.eigvalsh(curvature) < 0):
        error, step = mcse(scores @ np.linalg.inv(curvature)), -np.linalg.solve(curvature, slope)
    low, high = coordinates.bounds()
    further = np.clip(x + step, low, high)
    if np.max(np.abs(step)) > NEAR:
        box = np.column_stack([np.maximum(x - MAX_STEP, low), np.minimum(x + MAX_STEP, high)])
        options: dict[str, Any] = {"jac": lambda x: -slope_at(x), "method": "L-BFGS-B", "bounds": box}
        further = scipy.optimize.minimize(lambda x: -float(log_prior(x).mean()), x, **options).x
    return Place(x, slope, noise, curvature, float(np.max(z)), error, further)


@dataclass(frozen=True, eq=False)
class MonteCarloSearch:
    """Runs of NUTS with the fields at one place after another; ``visited`` lists the places."""

    coordinates: SearchCoordinates
    data: Data
    rng: np.random.Generator
    reporter: Reporter = field(default_factory=Reporter)
    visited: list[np.ndarray] = field(default_factory=list)

    def sample(self, x: np.ndarray) -> Place:
        """Draw the posterior with the fields at x; raise `Untrustworthy` where the gate is not passed."""
        from bayeszoo.inference.methods import nuts

        model, rng = self.coordinates.model_at(x), np.random.default_rng(int(self.rng.integers(2**31 - 1)))
        outcome = nuts.run(Problem(model, self.data, rng, self.reporter))
        if outcome.interrupted:
            raise Interrupted("stopped before the fields were chosen; nothing was kept")
        if not passed(outcome.checks):
            values = zip(self.coordinates.labels, self.coordinates.entries(x), strict=True)
            where = ", ".join(f"{label} = {value:.6g}" for label, value in values)
            raise Untrustworthy(f"NUTS at {where}: {failures(outcome.checks)}", "not_converged")
        self.visited.append(x)
        return described(self.coordinates, model.inputs.split(self.data, 0)[0], x, dict(outcome.draws))

    def run(self) -> list[Place]:
        """Climb from up to three places, until two climbs have ended at a maximum or one has not settled."""
        weak, ends = self.coordinates.weak, []
        distant = weak if np.max(np.abs(weak)) > NEAR else weak + TENFOLD
        for x in (np.zeros(len(weak)), distant, distant + TENFOLD):
            ends.append(self.climb(x))
            if not ends[-1].is_settled or sum(end.is_at_maximum for end in ends) == 2:
                break
        return ends

    def climb(self, x: np.ndarray) -> Place:
        """Step from x until the score is zero within its Monte Carlo error."""
        place = self.sample(x)
        for _ in range(MAX_FITS - 1):
            x = place.x if place.is_settled else place.further
            if np.array_equal(x, place.x):  # settled, or at the edge of the search
                break
            place = self.sample(x)
        return place


def _result(search: MonteCarloSearch, ends: list[Place]) -> EmpiricalBayesByDraws:
    coordinates, at_maximum = search.coordinates, [end for end in ends if end.is_at_maximum]
    best = next(iter(at_maximum), ends[0])
    is_near = [np.abs(end.top - best.top) <= SAME * np.hypot(end.error, best.error) for end in at_maximum]
    reached = sum(bool(np.all(entries)) for entries in is_near)
    boundary = {} if at_maximum else _boundary(coordinates, best.x, best.error)
    checks = [
        boundary_check([*boundary.values()]),
        at_most("score at the chosen fields in Monte Carlo errors", best.z, SETTLED),
        at_most("Monte Carlo error of the logarithm of a field", float(np.max(best.error)), MAX_ERROR),
        at_least("climbs that reached the maximum", reached, 2),
    ]
    errors = dict(zip(coordinates.labels, best.error.tolist(), strict=True))
    models = coordinates.model_at(best.top), coordinates.model.base
    result = *models, tuple(coordinates.shapes), boundary, reached, len(ends), checks
    return EmpiricalBayesByDraws(*result, error=errors, fits=len(search.visited))


def _boundary(coordinates: SearchCoordinates, x: np.ndarray, error: np.ndarray) -> dict[str, str]:
    """Return what the evidence does along each entry in which it has no maximum."""
    low, high = coordinates.bounds()
    lines = {}
    for i, (label, value) in enumerate(zip(coordinates.labels, coordinates.entries(x), strict=True)):
        if x[i] <= low[i] or x[i] >= high[i]:
            lines[label] = still_rises("evidence", label, value)
        elif error[i] > NEAR:
            lines[label] = f"no maximum in {label}, judged by the draws: the evidence is level at {value:g}"
    return lines
