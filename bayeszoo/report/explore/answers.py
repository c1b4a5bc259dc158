"""Exact answers for the page with sliders: in closed form, and for hierarchies by quadrature."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

import numpy as np

from bayeszoo.data.inputs.groups.kinds import GROUP, Groups
from bayeszoo.data.read import Data
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.foundation.named import Arrays
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import Conditional, PointEstimates, Predictive
from bayeszoo.model.outer.integration import integrate

MOST_GROUPS = 40
"""Most groups that the page draws."""
NEXT_ROW = ("mean", "sd", "q025", "q975")
"""Numbers of the next row."""
_UNKNOWN = [math.nan] * len(NEXT_ROW)


@dataclass(frozen=True)
class Part:
    """The first rows of a table, and their sufficient statistics if the model has any."""

    rows: Arrays
    statistics: Any = None


@dataclass(frozen=True)
class Answer:
    """The exact answer under one prior and number of rows."""

    posterior: Posterior
    log_evidence: float
    modes: Mapping[str, float] = field(default_factory=dict)
    """The MAP estimate by name; empty if there is none."""
    next_row: list[float] = field(default_factory=lambda: _UNKNOWN)
    of_groups: str = ""
    """The name of the parameter of each group, if any."""

    def mode(self, name: str) -> float:
        """Return the MAP estimate of a parameter; NaN if there is none."""
        return self.modes.get(name, math.nan)

    def groups(self, size: int) -> np.ndarray:
        """Return mean and 95% interval of the parameter of each group, (size, 3); NaN for groups without a row."""
        table = np.full((size, 3), math.nan)
        if self.of_groups:
            marginal = self.posterior[self.of_groups]
            count = len(np.atleast_1d(marginal.mean()))
            columns = [marginal.mean(), marginal.ppf(0.025), marginal.ppf(0.975)] if count else []
            table[:count] = np.stack(columns, axis=1) if columns else table[:0]
        return table


class Answers(ABC):
    """The exact answers of a model under any prior and number of rows."""

    kind: ClassVar[str]
    """``conjugate`` or ``hierarchy``."""

    @abstractmethod
    def part(self, model: Model, rows: Data, count: int) -> Part:
        """Return the first rows."""

    @abstractmethod
    def answer(self, prior: Model, part: Part) -> Answer:
        """Return the answer under a prior."""

    @abstractmethod
    def support(self, model: Model, answer: Answer, name: str) -> tuple[float, float]:
        """Return the ends of the support of a parameter."""

    def mle(self, model: Model, part: Part, names: Sequence[str]) -> list[float | None]:
        """Return the maximum-likelihood estimate of each parameter; None if there is none."""
        return [None] * len(names)

    def raw(self, model: Model, rows: Data) -> dict[str, Any] | None:
        """Return the labels and raw estimates of groups; None for a model without groups."""
        return None


class ByClosedForm(Answers):
    """Answers of conjugate models."""

    kind = "conjugate"

    def part(self, model: Model, rows: Data, count: int) -> Part:
        """Return the first rows with their statistics, which do not depend on the prior."""
        first = model.inputs.reordered(rows, np.arange(count))
        return Part(first, _closed(model).statistics(first))

    def answer(self, prior: Model, part: Part) -> Answer:
        """Return the closed forms under a prior."""
        closed, stats = _closed(prior), part.statistics
        log_evidence, modes = float(closed.log_evidence(stats)), _map(closed, stats)
        return Answer(closed.posterior(stats), log_evidence, modes, _next_row(closed, part))

    def mle(self, model: Model, part: Part, names: Sequence[str]) -> list[float | None]:
        """Return the maximum-likelihood estimate of each parameter; None if there is none."""
        with suppress(NumericalError):
            estimates = _pointed(model).mle(part.statistics)
            return [float(estimates[name]) for name in names]
        return [None] * len(names)

    def support(self, model: Model, answer: Answer, name: str) -> tuple[float, float]:
        """Return the ends of the posterior's support."""
        low, high = answer.posterior[name].ppf([0.0, 1.0])
        return float(low), float(high)

    def likelihoods(self, model: Model, parts: Sequence[Part], edges: np.ndarray) -> np.ndarray:
        """Return the likelihood of the single parameter relative to its peak, at bin centres: posterior over prior."""
        (name,) = _closed(model).posterior(parts[0].statistics)
        centres = {name: (edges[:-1] + edges[1:]) / 2}
        heights = [_closed(model).posterior(part.statistics).logpdf(centres) for part in parts]
        logs = np.array([height - heights[0] for height in heights])
        return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))


class ByQuadrature(Answers):
    """Answers of hierarchies, by quadrature over one parameter of the population."""

    kind = "hierarchy"

    def part(self, model: Model, rows: Data, count: int) -> Part:
        """Return the first groups."""
        return Part(model.inputs.reordered(rows, np.arange(count)))

    def answer(self, prior: Model, part: Part) -> Answer:
        """Integrate under a prior."""
        integrated = integrate(prior, part.rows)
        return Answer(integrated.posterior, float(integrated.log_evidence), of_groups=_group_parameter(prior))

    def support(self, model: Model, answer: Answer, name: str) -> tuple[float, float]:
        """Return the ends of the scale of a parameter of the population."""
        scale = cast(Conditional, model).outer[name]
        return scale.low, scale.high

    def raw(self, model: Model, rows: Data) -> dict[str, Any] | None:
        """Return the labels and raw estimates of groups; None for many groups."""
        if rows.rows > MOST_GROUPS:
            return None
        estimates, _ = cast(Groups, model.inputs).raw(rows)
        return {"name": _group_parameter(model), "labels": list(map(str, rows[GROUP])), "estimates": estimates.tolist()}


def answers_of(model: Model) -> Answers | None:
    """Return the exact answers of a model; None if it has none."""
    if isinstance(model, Predictive) and isinstance(model, PointEstimates):
        return ByClosedForm()
    if isinstance(model, Conditional) and isinstance(model.inputs, Groups) and _group_parameter(model):
        return ByQuadrature() if len(model.integrated_over) == 1 else None  # over two parameters it takes a second
    return None


def _closed(model: Model) -> Predictive[Any]:
    return cast(Predictive[Any], model)


def _pointed(model: Model) -> PointEstimates[Any]:
    return cast(PointEstimates[Any], model)


def _group_parameter(model: Model) -> str:
    """Return the name of the parameter of each group; empty if there is none."""
    return next((name for name, axes in model.dims.items() if tuple(axes) == (GROUP,)), "")


def _map(prior: Model, stats: Any) -> dict[str, float]:
    """Return the MAP estimate; empty if there is none."""
    with suppress(NumericalError):
        return {name: float(value) for name, value in _pointed(prior).map(stats).items() if np.ndim(value) == 0}
    return {}


def _next_row(prior: Predictive[Any], part: Part) -> list[float]:
    """Return mean, sd and 95% interval of the next row; NaN if a row needs further columns."""
    with suppress(InputError, NumericalError):
        law = prior.predictive(part.statistics, prior.inputs.unseen(part.rows, 1))
        return [float(np.ravel(value)[0]) for value in (law.mean(), law.std(), law.ppf(0.025), law.ppf(0.975))]
    return _UNKNOWN
