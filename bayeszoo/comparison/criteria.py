"""What EM, variational Bayes, enumeration and importance sampling say of a candidate with latent variables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bayeszoo.comparison import dual_importance
from bayeszoo.data.read import Data
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.foundation.gate import MAX_K_HAT, at_most, failures
from bayeszoo.foundation.streams import stream
from bayeszoo.inference.engine.ascent import Search
from bayeszoo.inference.methods import em, enumeration, vb
from bayeszoo.model.base import Model, Values, fields_of
from bayeszoo.model.capabilities import EM, ClosedForm, Enumerable, Observable, Sufficient, Variational

NO_EVIDENCE = "no closed form: give a fit by smc"


def plug_in(model: Model) -> Callable[[Any, Any], Any] | None:
    """Return how held-out rows are predicted by a model without closed forms: given the maximum of the likelihood.

    None of models with closed forms, and of those whose maximum takes many climbs.
    """
    if not (isinstance(model, EM) and isinstance(model, Sufficient) and isinstance(model, Observable)):
        return None
    if type(model).closed_mle is EM.closed_mle:
        return None
    return lambda stats, rows: model.likelihood(em.mle(model, stats), rows)


@dataclass(frozen=True, eq=False)
class Criteria:
    """The criteria of a model with latent variables, each with where it is from.

    Where there is none a `NumericalError` says why. All is the same whenever ``seed`` is, whatever was asked before.
    """

    model: Model
    data: Values
    seed: int

    @classmethod
    def of(cls, model: Model, data: Values, seed: int) -> Criteria | None:
        """Return the criteria, or None of a model with closed forms, or without latent variables."""
        has = isinstance(model, EM | Variational | Enumerable) and not isinstance(model, ClosedForm)
        return cls(model, data, seed) if has else None

    @property
    def has_evidence(self) -> bool:
        """Whether an evidence may be had without a fit."""
        return isinstance(self.model, Enumerable | Variational)

    def log_likelihood(self) -> tuple[float, str]:
        """Return the maximum of the log likelihood, by EM."""
        if not isinstance(self.model, EM):
            raise NumericalError("no closed form")
        climbed = em.climbs(self.model, self._sample, self._rng("em"), flat=True)
        return climbed.best.expectation.value, _reached("EM", climbed)

    def elbo(self) -> tuple[float, str]:
        """Return the evidence lower bound of variational Bayes."""
        return self._climbed.best.objective, _reached("VB", self._climbed)

    def evidence(self) -> tuple[float, float, str]:
        """Return the log evidence and its Monte Carlo error: by enumeration, else by importance sampling."""
        if self._is_enumerable:
            return enumeration.Enumeration.of(self.model, self.data).log_evidence, 0.0, "enumeration"
        if not dual_importance.can_estimate(self.model):
            raise NumericalError(NO_EVIDENCE)
        starts = [climb.state for climb in self._climbed.distinct[: dual_importance.CHAINS // 4]]
        estimate = dual_importance.estimate(self.model, self.data, self._rng("importance"), starts)
        if wrong := failures([at_most("k-hat", estimate.k_hat, MAX_K_HAT)]):
            raise NumericalError(f"{wrong} of importance sampling: give a fit by smc")
        return estimate.log_evidence, estimate.mcse, "importance sampling"

    @property
    def _is_enumerable(self) -> bool:
        if not isinstance(self.model, Enumerable):
            return False
        try:
            enumeration.require_few(self.model, self.data)
        except InputError:
            return False
        return True

    @cached_property
    def _climbed(self) -> Search:
        if not isinstance(self.model, Variational):
            raise NumericalError("no variational Bayes")
        return vb.climbs(self.model, self._sample, self._rng("vb"))

    @cached_property
    def _sample(self) -> Any:
        """What EM and variational Bayes go by."""
        return self.model.statistics(self.data) if isinstance(self.model, Sufficient) else self.data

    def _rng(self, purpose: str) -> np.random.Generator:
        return stream(self.seed, self.model.name, fields_of(self.model), Data(self.data).digest, purpose)


def _reached(how: str, climbed: Search) -> str:
    """Say how many restarts reached the best; what a fit would withhold is withheld here."""
    if wrong := failures(climbed.checks):
        raise NumericalError(f"{how}: {wrong}")
    facts = climbed.facts
    return f"{how}, {facts['reached_the_best']} of {facts['restarts']} restarts"
