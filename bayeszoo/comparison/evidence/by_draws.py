"""Empirical Bayes by draws, where the evidence has no closed form: fields of the prior chosen by Monte Carlo EM."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from bayeszoo.comparison.evidence.chosen import EmpiricalBayes
from bayeszoo.comparison.evidence.monte_carlo_em import MAX_ERROR, NEAR, SETTLED, Climb, Search
from bayeszoo.comparison.evidence.surface import Coordinates
from bayeszoo.data.read import Data
from bayeszoo.errors import InputError
from bayeszoo.foundation.gate import at_least, at_most
from bayeszoo.foundation.progress import Reporter
from bayeszoo.foundation.streams import stream
from bayeszoo.model.base import Model, fields_of
from bayeszoo.model.capabilities import ClosedForm, Observable, Sufficient
from bayeszoo.model.density import log_density, prior
from bayeszoo.model.fields import hyperparameters, plain

SAME = 4.0
"""Two climbs ended at one maximum when they differ by no more than so many of their errors."""
WITHHELD = "the log evidence itself is withheld: it has no closed form for these data, and draws tell its changes only"


@dataclass(frozen=True, repr=False, eq=False)
class EmpiricalBayesByDraws(EmpiricalBayes):
    """A model whose fields maximize the evidence, chosen from draws; ``log_evidence`` is withheld (NaN).

    Attributes
    ----------
    error : dict of str to float
        Monte Carlo standard error of the logarithm of each chosen field, or entry of one.
    gain, gain_error : float
        Log evidence at the chosen fields less that at the fields given, and its Monte Carlo standard error.
    fits : int
        How many times NUTS ran.
    failed : tuple of str
        Which runs of NUTS did not pass their gate, and why; and climbs that ended elsewhere.
    """

    error: dict[str, float] = field(default_factory=dict)
    gain: float = math.nan
    gain_error: float = math.nan
    fits: int = 0
    failed: tuple[str, ...] = ()

    def _after(self, name: str) -> str:
        error = f" (Monte Carlo error {self.error_of(name):.2g})" if name in self.error else ""
        return super()._after(name) + error

    def _about_evidence(self) -> list[str]:
        gain = f"log evidence {self.gain:+.6g} (Monte Carlo error {self.gain_error:.2g})"
        return [gain, WITHHELD, f"{self.fits} fits with NUTS"]

    def error_of(self, name: str) -> float:
        """Return the Monte Carlo standard error of a field that is a number, in its own units."""
        return float(getattr(self.model, name)) * self.error[name]

    @property
    def reasons(self) -> list[str]:
        """Why the status is not ``"ok"``, a line each."""
        return [*self.failed, *super().reasons]


def by_draws(
    model: Model,
    data: Data,
    over: Sequence[str],
    *,
    seed: int = 0,
    why: str = "",
    reporter: Reporter | None = None,
) -> EmpiricalBayesByDraws:
    """Choose positive fields of the prior so that the evidence is largest, from draws of NUTS.

    Parameters
    ----------
    model : Model
        Must be `Observable`, and have ``posterior`` of no rows, which is the prior, and ``log_prior(params, data)``.
    data : Data
        What `read` gave.
    over : sequence of str
        The fields.
    seed : int
        Of all draws.
    why : str
        Why there is no closed form, for messages.
    reporter : Reporter, optional
        Takes progress.

    Returns
    -------
    EmpiricalBayesByDraws
        Its status is not ``"ok"`` when NUTS did not pass its gate, the draws do not tell a maximum, or the two climbs
        ended in different places.

    Raises
    ------
    InputError
        When a field is not one that the prior alone depends on; nothing was compiled.
    Interrupted
        When a run was stopped.

    Notes
    -----
    Two climbs: from the model's own fields, and from those of ``model.weak(data)``, or ten times the own where these
    are near. They must end at the same maximum, within their Monte Carlo errors. A climb that ends where the evidence
    is level is left, and one more begins further out.
    """
    require_prior_fields(model, data, over, why)
    coordinates = Coordinates.of(model, cast(Any, model).weak(data), over)
    rng = stream(seed, model.name, fields_of(model), data.digest, "empirical bayes", over)
    search = Search(coordinates, data, rng, reporter or Reporter())
    return _result(search, search.run())


# Which fields


def require_prior_fields(model: Model, data: Data, names: Sequence[str], why: str = "") -> None:
    """Refuse a field unless the prior depends on it, and neither the likelihood nor the statistics do."""
    because = f" ({why})" if why else ""
    known = [name for name in hyperparameters(model) if not _objection(model, data, name)]
    for name in names:
        if objection := _objection(model, data, name):
            hint = f"by draws {', '.join(known) or 'no field'} can be chosen"
            raise InputError(f"over {name}: the evidence has no closed form{because}, and {objection}", hint=hint)


def _objection(checked: Model, data: Data, name: str) -> str:
    """Say what keeps a field from being chosen by draws; nothing where nothing does."""
    model: Any = checked
    has_prior = isinstance(checked, ClosedForm) and type(checked).log_prior is not ClosedForm.log_prior
    if not (has_prior and isinstance(checked, Observable)):
        return f"{checked.name} has no log_prior and likelihood to choose it by draws"
    positive, matrix = hyperparameters(model)[name].positive, hyperparameters(model)[name].matrix
    moved = replace(model, **{name: plain(np.multiply(getattr(model, name), 1.5) + (not positive and not matrix))})
    some = model.inputs.reordered(data, np.arange(min(len(model.inputs.outcome(data)), 20)))
    if isinstance(checked, Sufficient) and not _equal(model.statistics(some), moved.statistics(some)):
        return f"{model.name} reads the data through {name}"
    if not positive:
        return f"by draws only positive fields are chosen, which {name} is not"
    points = prior(model, data).rvs((5,), np.random.default_rng(0))
    if not _same(*(log_density(m.likelihood(points, some), model.inputs.outcome(some)) for m in (model, moved))):
        return f"the likelihood depends on {name}, not the prior alone"
    if _same(*(m.log_prior(points, some) for m in (model, moved))):
        return f"the prior does not depend on {name}"
    return ""


def _same(first: Any, second: Any) -> bool:
    return bool(np.array_equal(first, second, equal_nan=True))


def _equal(first: Any, second: Any) -> bool:
    return all(_same(value, vars(second)[key]) for key, value in vars(first).items())


# The result


def _result(search: Search, climbs: list[Climb]) -> EmpiricalBayesByDraws:
    coordinates, first = search.coordinates, climbs[0]
    at_maximum = [climb for climb in climbs if climb.is_at_maximum]
    best = at_maximum[0] if at_maximum else first
    others = [climb for climb in at_maximum if not _agree(climb, best)]
    x, error, last = np.zeros(len(coordinates.labels)), np.full(len(coordinates.labels), math.inf), None
    if best.places:
        x, error, last = best.x, best.error, best.places[-1].z
    path = first.places if best is first else [*first.places, *search.bridge(first, best), *best.places]
    gain, gain_error = Climb(path, ended=False).gain() if path else (math.nan, math.nan)
    boundary = {} if search.failed or at_maximum else _boundary(coordinates, x, error)
    return EmpiricalBayesByDraws(
        model=coordinates.model_at(x),
        before=coordinates.model,
        log_evidence=math.nan,
        log_evidence_before=math.nan,
        over=coordinates.names,
        boundary=boundary,
        reached=len(at_maximum) - len(others),
        starts=len(climbs),
        checks=[
            at_most("runs of NUTS that did not pass their gate", len(search.failed), 0),
            at_most("fields at the boundary", len(boundary), 0),
            at_most("score at the chosen fields in Monte Carlo errors", last, SETTLED),
            at_most("Monte Carlo error of the logarithm of a field", float(np.max(error)), MAX_ERROR),
            at_least("climbs that reached the maximum", len(at_maximum) - len(others), 2),
        ],
        error=dict(zip(coordinates.labels, error.tolist(), strict=True)),
        gain=gain,
        gain_error=gain_error,
        fits=len(search.fits),
        failed=(*search.failed, *(f"another climb ended at {search.at(climb.x)}" for climb in others)),
    )


def _agree(climb: Climb, other: Climb) -> bool:
    """Say whether two climbs ended at one maximum, within their Monte Carlo errors."""
    return bool(np.all(np.abs(climb.x - other.x) <= SAME * np.hypot(climb.error, other.error)))


def _boundary(coordinates: Coordinates, x: np.ndarray, error: np.ndarray) -> dict[str, str]:
    """Say of each entry in which the evidence has no maximum what it does there."""
    low, high = coordinates.bounds()
    lines = {}
    for label, value, at_edge, is_level in zip(
        coordinates.labels, coordinates.values(x), (x <= low) | (x >= high), error > NEAR, strict=True
    ):
        if at_edge:
            lines[label] = f"the evidence still rises at {label} = {value:g}, the edge of the search"
        elif is_level:
            lines[label] = f"no maximum in {label}, as far as the draws tell: the evidence is level at {value:g}"
    return lines
