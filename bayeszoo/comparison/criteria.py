"""Criteria of candidates with latent variables, by EM, variational Bayes, enumeration and importance sampling."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeGuard, cast

import numpy as np

from bayeszoo.comparison.candidates import Candidate
from bayeszoo.comparison.evidence.by_importance import log_mean_of_weights
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.foundation.gate import MAX_K_HAT, at_most, failures, pareto_k
from bayeszoo.foundation.named import Arrays, Document
from bayeszoo.foundation.numerics.constants import TINY
from bayeszoo.foundation.streams import stream
from bayeszoo.inference.engine.maxima import Search
from bayeszoo.inference.methods import em, enumeration, vb
from bayeszoo.inference.methods.modes import concave
from bayeszoo.model.base import Model, fields_of
from bayeszoo.model.capabilities import (
    EM,
    ClosedForm,
    Enumerable,
    LogConcave,
    Observable,
    PointEstimates,
    Sufficient,
    Variational,
    is_integrated,
)
from bayeszoo.model.capabilities.conjugate import ConjugateSteps

NO_EVIDENCE = "no closed form: a fit by nuts (--nuts, or FILE.nc) or by smc gives an estimate"
CHAINS = 20
"""Gibbs samplers in a round."""
SWEEPS = 20
KEPT = 10
"""Sweeps of each Gibbs sampler, and the number of last sweeps whose assignments give proposals."""
COUNTS = (1.0, 0.5)
"""Weights of a row; samplers take them in turn."""
DRAWS = 20
"""Draws from each proposal."""
ROUNDS = 2
"""Most rounds of samplers; another round is run if k-hat is above its limit."""


def plug_in(model: Model) -> Callable[[Any, Any], Any] | None:
    """Return a function that predicts held-out rows at the maximum of the likelihood, for models without closed forms.

    None for models with closed forms, and where the maximum takes many climbs.
    """
    if not (isinstance(model, EM) and isinstance(model, Sufficient) and isinstance(model, Observable)):
        return None
    if type(model).closed_mle is EM.closed_mle:
        return None
    return lambda stats, rows: model.likelihood(em.mle(model, stats), rows)


def fit_with_draws(model: Model) -> str:
    """Name a fit whose draws give a score: by the model's usual sampler."""
    return f"a fit by {'gibbs (FILE.nc)' if model.usual_method == 'gibbs' else 'nuts (--nuts, or FILE.nc)'}"


@dataclass(frozen=True, eq=False)
class Criteria:
    """The criteria of a model with latent variables, each with its source.

    A criterion that does not exist raises `NumericalError` with the reason. Equal seeds give equal criteria, in
    whatever order they are computed.
    """

    candidate: Candidate
    seed: int

    @property
    def model(self) -> Model:
        """The model of the candidate."""
        return self.candidate.model

    @property
    def has_latents(self) -> bool:
        """Whether the model has latent variables, and no closed forms to use instead."""
        return isinstance(self.model, EM | Variational | Enumerable) and not isinstance(self.model, ClosedForm)

    @property
    def is_concave(self) -> bool:
        """Whether the likelihood is log-concave, perhaps given one parameter, and its maximum has no closed form."""
        return isinstance(self.model, LogConcave) and not isinstance(self.model, PointEstimates | EM)

    def free_parameters(self) -> int:
        """Return the number of parameters that the likelihood is maximized over, for a model with a maximum."""
        model = self.model
        if isinstance(model, PointEstimates | EM):
            return model.free_parameters(self.candidate.stats)
        assert isinstance(model, LogConcave)  # else there is no maximum
        numbers = dict.fromkeys(model.profiled, 1.0)  # the number of other parameters is the same at any value
        return model.concave(self.candidate.data, **numbers).size + len(numbers)

    @property
    def has_evidence(self) -> bool:
        """Whether the evidence may be computed without a fit: by enumeration, or by importance sampling."""
        is_known = isinstance(self.model, Enumerable) or can_estimate(self.model)
        return self.has_latents and is_known and not is_integrated(type(self.model))

    def log_likelihood(self) -> tuple[float, str]:
        """Return the maximum of the log likelihood and its source: EM, or Newton's method of a concave one."""
        if self.is_concave:
            return self._concave_maximum()
        if not isinstance(self.model, EM):
            raise NumericalError("no closed form", "no_closed_form")
        model, data = self.model, self.candidate.stats
        climbed = em.climbs(model, data, self._rng("em"), flat=True)
        best, reached = climbed.best, _reached("EM", climbed)
        if why := model.undetermined(best.state, data, best.expectation.stats, True):
            raise NumericalError(f"the maximum is not a single point: {why}", "no_maximum")
        return best.expectation.value, reached

    def _concave_maximum(self) -> tuple[float, str]:
        model, data = self.model, self.candidate.data
        mode = concave.highest(cast(LogConcave, model), data, flat=True)
        if wrong := failures(check for check in mode.checks if check.verdict == "failed"):
            raise NumericalError(f"Newton's method: {wrong}", "not_converged")
        return float(mode.rows.values(mode.peak.x[None])[0]), "Newton's method"

    def elbo(self) -> Document:
        """Return the evidence lower bound of variational Bayes, and its source."""
        return {"elbo": self._climbed.best.objective, "elbo_from": _reached("VB", self._climbed)}

    def evidence(self) -> tuple[float, float, str]:
        """Return the log evidence, its Monte Carlo error and its source: enumeration, else importance sampling."""
        data = self.candidate.data
        if isinstance(self.model, Enumerable):
            with suppress(InputError):  # more assignments than can be summed over
                enumeration.require_few(self.model, data)
                return enumeration.Enumeration.of(self.model, data).log_evidence, 0.0, "enumeration"
        if not can_estimate(self.model):
            raise NumericalError(NO_EVIDENCE, "undefined_evidence")
        starts = [climb.state for climb in self._climbed.distinct[: CHAINS // 4]]
        weighed = estimate(self.model, data, self._rng("importance"), starts)
        if wrong := failures([at_most("k-hat", weighed.k_hat, MAX_K_HAT)]):
            raise NumericalError(
                f"{wrong} of importance sampling: a fit by smc (FILE.nc) gives an estimate", "no_evidence"
            )
        return weighed.log_evidence, weighed.mcse, "importance sampling"

    @cached_property
    def _climbed(self) -> Search:
        if not (self.has_latents and isinstance(self.model, Variational)):
            raise NumericalError("no variational Bayes", "no_variational")
        return vb.climbs(self.model, self.candidate.stats, self._rng("vb"))

    def _rng(self, purpose: str) -> np.random.Generator:
        return stream(self.seed, self.model.name, fields_of(self.model), self.candidate.data.digest, purpose)


def _reached(how: str, climbed: Search) -> str:
    """Say how many restarts reached the best and which checks are in doubt; raise where a check failed."""
    if wrong := failures(check for check in climbed.checks if check.verdict == "failed"):
        raise NumericalError(f"{how}: {wrong}", "no_evidence")
    facts = climbed.facts
    ended = f", {facts['restarts'] - facts['abandoned']} climbed to the end" if facts["abandoned"] else ""
    doubts = "".join(f"; {check}" for check in climbed.checks if check.verdict == "caution")
    return f"{how}, {facts['reached_the_best']} of {facts['restarts']} restarts{ended}{doubts}"


type Clustering = ConjugateSteps[Any]


class Estimate(NamedTuple):
    """The log evidence of the ordered rows in nats, with every constant, its Monte Carlo error and Pareto k-hat."""

    log_evidence: float
    mcse: float
    k_hat: float


def estimate(model: Clustering, data: Arrays, rng: np.random.Generator, starts: Iterable[object] = ()) -> Estimate:
    """Estimate the log evidence of a mixture or hidden Markov model by dual importance sampling: see `can_estimate`.

    Given the component of each row, the posterior has a closed form. Gibbs samplers visit assignments of components;
    the posteriors given some of these, averaged over the orders of the labels, are a mixture close to the posterior
    wherever the samplers went. Draws from this mixture are weighted by joint density over proposal density (Lee and
    Robert 2016, Statistics and Computing 26). In every other sampler a row counts half: that sampler moves between
    modes more easily, and its proposals are wide. The optima of variational Bayes alone are too narrow as proposals:
    on nine rows their weights looked good (k-hat 0.56), but the estimate was 0.15 nats off, eight times its error.

    The first Gibbs samplers begin at draws of each q(theta) in ``starts``, at most `CHAINS`; the others begin at
    random.
    """
    begins, visited, weighed = [*starts], [], Estimate(math.nan, math.nan, math.nan)
    for _ in range(ROUNDS):
        begins += [model.vb_start(data, rng) for _ in range(CHAINS - len(begins))]
        pairs = zip(begins, itertools.cycle(COUNTS), strict=False)
        visited += [pair for start, count in pairs for pair in _visited(model, data, start, count, rng)]
        weighed, begins = _weighed(model, data, visited), []
        if weighed.k_hat <= MAX_K_HAT:
            break
    return weighed


def can_estimate(model: Model) -> TypeGuard[Clustering]:
    """Say whether a model has few enough components to average q(theta) over their orders."""
    return isinstance(model, ConjugateSteps) and model.has_few_orders


def _visited(
    model: Clustering, data: Arrays, q: Any, count: float, rng: np.random.Generator
) -> list[tuple[Any, dict[str, np.ndarray]]]:
    """Return posteriors given the last assignments of a Gibbs sampler in which a row counts ``count``, and their draws.

    The sampler continues from a further draw: the draws returned are then independent given all posteriors.
    """
    visited = []
    for _ in range(SWEEPS + 1):
        drawn = model.vb_posterior(q).rvs((1 + DRAWS,), rng)
        # a probability may have underflowed to 0, which has no logarithm
        drawn = {name: np.where(values == 0, TINY, values) for name, values in drawn.items()}
        visited.append((q, {name: values[1:] for name, values in drawn.items()}))
        q = model.resampled({name: values[0] for name, values in drawn.items()}, data, count, rng)
    return visited[-KEPT:]


def _weighed(model: Clustering, data: Arrays, visited: Sequence[tuple[object, dict[str, np.ndarray]]]) -> Estimate:
    """Average the weights; equal numbers of draws from each proposal make the true error at most the one returned."""
    log_likelihood = np.concatenate([model.log_likelihoods(drawn, data) for _, drawn in visited])
    sample = {name: np.concatenate([drawn[name] for _, drawn in visited]) for name in visited[0][1]}
    log_q = np.full(len(log_likelihood), -np.inf)
    for first in range(0, len(visited), KEPT):  # all at once would take much memory
        log_qs = model.vb_log_densities([q for q, _ in visited[first : first + KEPT]], sample)
        log_q = np.logaddexp(log_q, np.logaddexp.reduce(log_qs))
    log_weights = log_likelihood + model.log_prior(sample, data) - (log_q - math.log(len(visited)))
    return Estimate(*log_mean_of_weights(log_weights), pareto_k(log_weights))
