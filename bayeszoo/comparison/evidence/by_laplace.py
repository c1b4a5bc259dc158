"""Empirical Bayes of log-concave models: the fields that maximize Laplace's approximation of the evidence.

Rasmussen and Williams 2006, section 5.5.1. The evidence is approximate; its gap at the maximum is measured by
importance sampling.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy

from bayeszoo.comparison.evidence.climbs import Evidence, climbed
from bayeszoo.comparison.evidence.record import EmpiricalBayes
from bayeszoo.data.read import Data
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.foundation.blocks import blocks
from bayeszoo.foundation.gate import at_most
from bayeszoo.inference.engine.approximation import GOOD_K_HAT, assessed, of_precision
from bayeszoo.model.capabilities import LogConcave
from bayeszoo.model.fields import hyperparameters, plain
from bayeszoo.model.outer.coordinates import OuterCoordinates
from bayeszoo.model.outer.over_fields import domain

REACH = 1e3
"""How far the search goes from the model's fields: a factor for positive fields, a distance for real ones."""


@dataclass(frozen=True, repr=False, eq=False)
class EmpiricalBayesByLaplace(EmpiricalBayes):
    """A model whose fields maximize ``log_evidence``, which is Laplace's approximation.

    Attributes
    ----------
    importance_evidence, importance_evidence_se : float
        The log evidence at the chosen fields by importance sampling about the mode, and its Monte Carlo error. If the
        weights are too unequal (``k_hat`` above 0.5), they are NaN and the status is ``"caution"``.
    k_hat : float
        Pareto shape of the importance weights.
    """

    importance_evidence: float = math.nan
    importance_evidence_se: float = math.nan
    k_hat: float = math.nan

    def about_evidence(self, shown: bool = True, decimals: int = 2) -> list[str]:
        """Return lines about the evidence and its gap."""
        before, after = f"{self.log_evidence_before:.{decimals}f}", f"{self.log_evidence:.{decimals}f}"
        measured = f"{self.importance_evidence:.{decimals}f} +- {self.importance_evidence_se:.2g}"
        by = measured if math.isfinite(self.importance_evidence) else f"not known, k-hat {self.k_hat:.2g}"
        line = f"log evidence by Laplace's method {before} -> {after if shown else 'withheld'}"
        return [line + f"; by importance sampling {by}" * shown]


@dataclass(frozen=True)
class _Surface(Evidence):
    """The log evidence as a function of the logs of positive fields, and of real fields unchanged."""

    model: LogConcave
    data: Data
    coordinates: OuterCoordinates
    noun = "evidence by Laplace's method"

    @classmethod
    def over(cls, model: LogConcave, data: Data, names: Sequence[str]) -> Self:
        """Return the surface over some fields, each with an entry for each label of its axis, or a single one."""
        shapes = {name: np.shape(getattr(model, name)) for name in names}
        scales = [domain(model, name) for name, shape in shapes.items() for _ in range(math.prod(shape))]
        labels = list[str]()
        for name, shape in shapes.items():
            axes = hyperparameters(model)[name].axes
            entries = data.get(axes[0], range(1, math.prod(shape) + 1)) if shape else ()
            labels += [f"{name}[{entry}]" for entry in entries] if shape else [name]
        origin, unit = np.zeros(len(scales)), np.ones(len(scales))
        return cls(model, data, OuterCoordinates(shapes, tuple(labels), tuple(scales), origin, unit))

    @property
    def labels(self) -> list[str]:
        """The names of the coordinates: ``amplitude``, or ``length[x]`` for a field with an entry for each label."""
        return list(self.coordinates.labels)

    @property
    def ends(self) -> list[tuple[float, float]]:
        """The lowest and the highest value of each coordinate's field."""
        return [(scale.low, scale.high) for scale in self.coordinates.scales]

    def at(self, x: np.ndarray) -> LogConcave:
        """Return the model at coordinates."""
        return self.model.replaced(**{name: plain(values) for name, values in self.coordinates.outer(x).items()})

    def height(self, x: np.ndarray) -> float:
        """Return the log evidence, -inf where it does not exist."""
        try:
            value = self.at(x).concave(self.data).laplace_evidence()
        except NumericalError:
            return -math.inf
        return value if math.isfinite(value) else -math.inf


def by_laplace(
    model: LogConcave, data: Data, over: Sequence[str], *, starts: int, seed: int
) -> EmpiricalBayesByLaplace:
    """Choose fields of a log-concave model so that Laplace's approximation of the evidence is largest.

    Climbs by L-BFGS-B begin at the model's fields and at random places around them. If the evidence does not fall
    towards an end of the search, 1e3 beyond these fields, it has no maximum. Raises `InputError` where the density has
    corners.
    """
    if model.concave(data).has_corners:
        problem = f"the density of {model.name} has corners, where a mode has no curvature"
        raise InputError(problem, "no_closed_form", hint=f"fix {', '.join(over)} by --set, and fit by nuts")
    surface = _Surface.over(model, data, over)
    start = surface.coordinates.places({name: getattr(model, name) for name in over})
    rng = np.random.default_rng(seed)
    if not math.isfinite(before := surface.height(start)):
        raise NumericalError(f"the log evidence of {model} is not finite", "not_finite")
    reach = np.array([math.log(REACH) if math.isfinite(low) else REACH for low, _ in surface.ends])
    places = (start, *(start + rng.normal(size=(starts - 1, len(start)))))
    end = climbed(surface, places, scipy.optimize.Bounds(start - reach, start + reach))
    chosen = surface.at(end.x)
    gap = _importance(chosen, data, rng)
    measured = at_most("k_hat", gap[-1], GOOD_K_HAT).or_caveat("the gap of Laplace's method is not known")
    search = end.boundary, end.reached, starts, [*end.checks, measured], end.height, before, end.limits
    return EmpiricalBayesByLaplace(chosen, model, tuple(over), *search, *gap)


def _importance(model: LogConcave, data: Data, rng: np.random.Generator) -> tuple[float, float, float]:
    """Return the log evidence by importance sampling from the Gaussian at the mode, its error, and k-hat."""
    rows = model.concave(data)
    peak = rows.highest()
    q, width = of_precision(peak.x, peak.there.curvature), max(rows.size, model.inputs.size(data))

    def weigh(draws: int) -> np.ndarray:
        z = rng.standard_normal((draws, rows.size))
        heights = [rows.joint_values(q.at(z[block])) for block in blocks(draws, width)]
        return np.asarray(np.concatenate(heights) - q.log_density_at(z))

    facts = assessed(weigh)
    evidence, error = (facts.get(name, math.nan) for name in ("importance_evidence", "importance_evidence_se"))
    return evidence, error, facts["k_hat"]
