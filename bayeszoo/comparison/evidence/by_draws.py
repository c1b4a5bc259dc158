"""Empirical Bayes by draws, where the evidence has no closed form: hyperparameters of the prior, learned with NUTS.

The fields move in steps: draw the posterior, go to the maximum of the reweighted evidence (`bayeszoo.reweighted`) or as
far towards it as the weights can be trusted, and draw again. At the maximum the expected score of the prior is zero:
for Laplace weights of scale b that is b = E[mean of |w_j|], the fixed point of Monte Carlo EM (Park and Casella 2008,
section 3.1; Casella 2001). The expected score, integrated outwards, tells whether it is a maximum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from bayeszoo.comparison.evidence.evidence import ENVELOPE, EmpiricalBayes
from bayeszoo.comparison.evidence.reweighted import SETTLED, Place, Side, Step, integrated, mcse
from bayeszoo.comparison.evidence.surface import Coordinates
from bayeszoo.data.read import Data
from bayeszoo.errors import InputError, Interrupted, NumericalError
from bayeszoo.foundation.gate import Check, at_most, failures, passed
from bayeszoo.foundation.progress import Reporter
from bayeszoo.inference.engine.approximation import GOOD_K_HAT
from bayeszoo.inference.problem import Problem
from bayeszoo.model.base import Model, Observable
from bayeszoo.model.density import log_density, prior
from bayeszoo.model.fields import hyperparameters, plain, text

MAX_FITS = 30
"""Of NUTS, before a climb is given up."""
MAX_ERROR = 0.1
"""Largest Monte Carlo error of the logarithm of a chosen field."""
MAX_CLIMBS = 3
"""One begins where the way out from the last was higher."""
OUTWARD = (0.8, 1.8, 3.0, math.log(100.0))
"""How far out the evidence is followed on either side, in the logarithm of a field: in the end a hundredfold."""
WITHHELD = "the log evidence itself is withheld: it has no closed form for these data, and draws tell its changes only"


@dataclass(frozen=True, repr=False, eq=False)
class EmpiricalBayesByDraws(EmpiricalBayes):
    """A model whose fields maximize the evidence, found from draws; ``log_evidence`` is withheld (NaN).

    Attributes
    ----------
    error : dict of str to float
        Monte Carlo standard error of the logarithm of each chosen field, or entry of one.
    gain, gain_error : float
        Log evidence at the chosen fields less that at the fields given, and its Monte Carlo standard error.
    fits : int
        How many times NUTS ran.
    failed : tuple of str
        Which runs did not pass their gate, and why; and where the evidence is higher.
    """

    error: dict[str, float] = field(default_factory=dict)
    gain: float = math.nan
    gain_error: float = math.nan
    fits: int = 0
    failed: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Say what was found and what it is worth."""
        ended = "" if self.status == "ok" else "  (where the search ended)"
        changes = [f"{name} {text(getattr(self.before, name))} -> {self._value(name)}" for name in self.over]
        lines = [
            f"{self.model.name}: {', '.join(changes)}{ended}",
            f"log evidence {self.gain:+.6g} (Monte Carlo error {self.gain_error:.2g})",
            WITHHELD,
            ENVELOPE,
            f"{self.fits} fits with NUTS",
            f"status {self.status}",
        ]
        return "\n".join([*lines, *self.reasons])

    def _value(self, name: str) -> str:
        value = text(getattr(self.model, name))
        return f"{value} (Monte Carlo error {self.error_of(name):.2g})" if name in self.error else value

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
        Its status is not ``"ok"`` when NUTS did not pass its gate, or the evidence has no maximum that the draws can
        tell.

    Raises
    ------
    InputError
        When a field is not one that the prior alone depends on; nothing was compiled.
    Interrupted
        When a run was stopped.

    Notes
    -----
    One climb, from the model's own fields. The evidence is then followed a hundredfold outwards in each field, the
    others staying, by integrating the expected score: it must be surely lower there. Where it is higher on the way the
    next climb begins, three in all. The runs of NUTS are independent; errors of the gains add in quadrature.
    """
    require_prior_fields(model, data, over, why)
    coordinates = Coordinates.of(model, cast(Any, model).weak(data), over)
    search = Search(coordinates, data, np.random.default_rng(seed), reporter or Reporter())
    return _result(search, *search.run(np.zeros(len(coordinates.labels))))


# Which fields


def require_prior_fields(model: Model, data: Data, names: Sequence[str], why: str = "") -> None:
    """Refuse a field unless the prior depends on it, and neither the likelihood nor the statistics do."""
    because = f" ({why})" if why else ""
    known = [name for name in hyperparameters(model) if not _objection(model, data, name)]
    for name in names:
        if objection := _objection(model, data, name):
            hint = f"by draws {', '.join(known) or 'no field'} can be chosen"
            raise InputError(f"over {name}: the evidence has no closed form{because}, and {objection}", hint=hint)


def _objection(given: Model, data: Data, name: str) -> str:
    """Say what keeps a field from being chosen by draws; nothing where nothing does."""
    model: Any = given
    if not (hasattr(model, "log_prior") and issubclass(type(given), Observable)):
        return f"{given.name} has no log_prior and likelihood to choose it by draws"
    positive, matrix = hyperparameters(model)[name].positive, hyperparameters(model)[name].matrix
    moved = replace(model, **{name: plain(np.multiply(getattr(model, name), 1.5) + (not positive and not matrix))})
    some = model.inputs.reordered(data, np.arange(min(len(model.inputs.outcome(data)), 20)))
    if hasattr(model, "statistics") and not _equal(model.statistics(some), moved.statistics(some)):
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


# The search


@dataclass(frozen=True, eq=False)
class Search:
    """Runs NUTS with the fields at one place after another.

    Attributes
    ----------
    coordinates : Coordinates
        Of the fields.
    data : Data
        The data.
    rng : numpy.random.Generator
        Seeds of the runs.
    reporter : Reporter
        Takes progress.
    failed : list of str
        Runs that did not pass their gate, with the reason.
    fits : list of str
        Where NUTS ran.
    """

    coordinates: Coordinates
    data: Data
    rng: np.random.Generator
    reporter: Reporter = field(default_factory=Reporter)
    failed: list[str] = field(default_factory=list)
    fits: list[str] = field(default_factory=list)

    def at(self, x: np.ndarray) -> str:
        """Name the fields at x."""
        values = zip(self.coordinates.labels, self.coordinates.values(x), strict=True)
        return ", ".join(f"{label} = {value:.6g}" for label, value in values)

    def sample(self, x: np.ndarray) -> Place | None:
        """Draw the posterior with the fields at x; None, and the reason kept, when the gate is not passed."""
        from bayeszoo.inference.methods import nuts

        model = self.coordinates.model_at(x)
        self.fits.append(self.at(x))
        seed = int(self.rng.integers(2**31 - 1))
        try:
            found = nuts.run(Problem(model, self.data, np.random.default_rng(seed), self.reporter))
        except NumericalError as error:
            self.failed.append(f"NUTS at {self.at(x)}: {error}")
            return None
        if found.interrupted:
            raise Interrupted("stopped before the fields were chosen; nothing was kept")
        if not passed(found.checks):
            self.failed.append(f"NUTS at {self.at(x)}: {failures(found.checks)}")
            return None
        rows, _ = model.inputs.split(self.data, 0)
        return Place(self.coordinates, rows, x, dict(found.draws))

    def run(self, x: np.ndarray) -> tuple[list[Step], list[Side], list[tuple[float, float]]]:
        """Climb from x, and from where the way out was higher.

        Returns
        -------
        steps : list of Step
            Of all climbs.
        sides : list of Side
            The ways out from the last.
        bridges : list of pair of float
            What the log evidence rose by from the end of a climb to the beginning of the next, and its error.
        """
        steps, bridges = self.climb(x), []
        sides = self._sides_of(steps)
        for _ in range(1, MAX_CLIMBS):
            higher = [side for side in sides if side.highest is not None]
            if not higher:
                break
            best = max(higher, key=lambda side: side.rise[0])
            bridges.append(best.rise)
            further = self.climb(self.on(best, steps[-1].x))
            steps += further
            sides = self._sides_of(further)
        return steps, sides, bridges

    def _sides_of(self, steps: list[Step]) -> list[Side]:
        return self.sides(steps[-1]) if steps and steps[-1].settled and not self.failed else []

    def on(self, side: Side, x: np.ndarray) -> np.ndarray:
        """Return the highest place on the way out from x."""
        return np.asarray(x + side.places[side.highest] * np.eye(len(x))[side.entry])

    def climb(self, x: np.ndarray) -> list[Step]:
        """Step from x until the score is zero within its Monte Carlo error."""
        steps: list[Step] = []
        while len(steps) < MAX_FITS:
            place = self.sample(x)
            if place is None:
                break
            steps.append(place.step())
            x = steps[-1].x
            if steps[-1].settled or self.edge(x):
                break
        return steps

    def edge(self, x: np.ndarray) -> list[int]:
        """Return the entries that are at the edge of the search."""
        low, high = self.coordinates.bounds()
        return [int(i) for i in np.flatnonzero((x <= low) | (x >= high))]

    def sides(self, best: Step) -> list[Side]:
        """Follow the evidence outwards from where the climb ended; nothing more once a run fails."""
        found: list[Side] = []
        for entry in range(len(best.x)):
            for sign in (-1, 1):
                side = self._side(best, entry, sign)
                if side is None:
                    return found
                found.append(side)
        return found

    def _side(self, best: Step, entry: int, sign: int) -> Side | None:
        rows = [(0.0, float(best.curvature[entry, entry]), mcse(best.influence[..., entry]))]
        for far in OUTWARD:
            place = self.sample(best.x + sign * far * np.eye(len(best.x))[entry])
            if place is None:
                return None
            score = place.score(place.x)[..., entry]
            rows.append((float(score.mean()), float(place.curvature(place.x)[entry, entry]), mcse(score)))
        slope, bend, error = np.transpose(rows)
        change, wrong = integrated(sign * np.append(0.0, OUTWARD), slope, bend, error)
        return Side(entry, sign, sign * np.array(OUTWARD), change, wrong)


# The result


def _result(
    search: Search, steps: list[Step], sides: list[Side], bridges: list[tuple[float, float]]
) -> EmpiricalBayesByDraws:
    coordinates = search.coordinates
    gains = [*((step.gain, step.gain_error) for step in steps), *bridges]
    best = steps[-1] if steps else None
    x = best.x if best else np.zeros(len(coordinates.labels))
    error = best.error if best else np.full(len(x), math.inf)
    boundary = {} if search.failed else _boundary(search, x, sides)
    return EmpiricalBayesByDraws(
        model=coordinates.model_at(x),
        before=coordinates.model,
        log_evidence=math.nan,
        log_evidence_before=math.nan,
        over=coordinates.names,
        boundary=boundary,
        reached=int(bool(best and best.settled)),
        starts=1,
        checks=_checks(search, steps, sides, boundary, error),
        error=dict(zip(coordinates.labels, error.tolist(), strict=True)),
        gain=math.fsum(gain for gain, _ in gains) if gains else math.nan,
        gain_error=math.hypot(*(error for _, error in gains)) if gains else math.nan,
        fits=len(search.fits),
        failed=(*search.failed, *_elsewhere(search, x, sides)),
    )


def _boundary(search: Search, x: np.ndarray, sides: list[Side]) -> dict[str, str]:
    """Say of each entry in which the evidence has no maximum what it does there."""
    coordinates, found = search.coordinates, {}
    for entry, label in enumerate(coordinates.labels):
        flat = [side for side in sides if side.entry == entry and not side.falls and side.highest is None]
        if any(side.highest is not None for side in sides):
            continue
        if entry in search.edge(x):
            value = coordinates.values(x)[entry]
            found[label] = f"the evidence still rises at {label} = {value:g}, the edge of the search"
        elif len(flat) == 2:
            found[label] = f"the evidence does not depend on {label}, as far as the draws tell"
        elif flat:
            found[label] = _levels_off(label, flat[0])
    return found


def _elsewhere(search: Search, x: np.ndarray, sides: list[Side]) -> list[str]:
    """Say where the evidence is higher than at the maximum that the climb found."""
    places = [search.at(search.on(side, x)) for side in sides if side.highest is not None]
    return [f"the evidence is higher at {place}: begin there" for place in places]


def _levels_off(label: str, side: Side) -> str:
    limit = "infinity" if side.sign > 0 else "0"
    change, error = side.change[-1], side.error[-1]
    tells = f"it changes by {change:.2g} nats in a hundredfold, error {error:.2g}"
    return (
        f"no maximum in {label}: the evidence does not fall as {label} -> {limit}, as far as the draws tell ({tells})"
    )


def _checks(
    search: Search, steps: list[Step], sides: list[Side], boundary: dict[str, str], error: np.ndarray
) -> list[Check]:
    last, size = steps[-1] if steps else None, len(search.coordinates.labels)
    higher = [side for side in sides if side.highest is not None]
    return [
        at_most("runs of NUTS that did not pass their gate", len(search.failed), 0),
        at_most("fields at the boundary", len(boundary), 0),
        at_most("score at the chosen fields in Monte Carlo errors", last.z if last else None, SETTLED),
        at_most("k-hat of the weights of the steps", max((s.k_hat for s in steps), default=None), GOOD_K_HAT),
        at_most("Monte Carlo error of the logarithm of a field", float(np.max(error)), MAX_ERROR),
        at_most("ways out that were not followed", 2 * size - len(sides), 0),
        at_most("ways out on which the evidence is higher", len(higher), 0),
    ]
