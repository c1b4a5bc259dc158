"""Steps that all hidden Markov models share: Baum and Welch, variational Bayes, sums over paths, labels.

Baum, Petrie, Soules and Weiss 1970; Rabiner 1989; Beal 2003, chapter 3, for variational Bayes; Bishop, PRML, 13.2.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np

from bayeszoo.data.inputs import starts
from bayeszoo.distributions.conjugate.law import Block, Known, Law
from bayeszoo.distributions.conjugate.product import Factors
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.families.hmm import emissions, passes
from bayeszoo.families.hmm.states import HiddenStates
from bayeszoo.families.hmm.tables import (
    ALIKE,
    ExpectedStates,
    HiddenChain,
    Pair,
    averaged_log_density,
    expected_states,
    is_flat,
    known_numbers,
    known_table,
    never_left,
    path_counts,
    table,
    times_left,
)
from bayeszoo.families.mixtures.base import spread_out
from bayeszoo.families.statistics.assignments import log_evidence_of
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.model.capabilities import Enumerable, Symmetric
from bayeszoo.model.conjugate import ConjugateSteps
from bayeszoo.model.fields import Hyperparameter, hyperparameters
from bayeszoo.model.steps import Expectation

MOST_AVERAGED = 4
"""States up to which a density is averaged over the orders of their labels."""
MOST_ORDERS = 720
"""Orders of the labels, 6!, up to which q(theta) is averaged over them."""


class HiddenMarkovModel(ConjugateSteps[HiddenChain], Enumerable, HiddenStates, Symmetric, family=True):
    """A hidden Markov chain of K states, with Dirichlet(alpha) and Dirichlet(beta) priors on its tables, or known ones.

    A subclass gives the emissions, which must be conjugate given the states, and declares the model. ``sticky``, >= 0,
    is added to the concentration beta of staying in the same state. ``initial`` and ``transition`` are nested tuples of
    float where they are known: then they are no parameters, and the labels of the states have a meaning. So they have
    where known parameters of the emissions, or a field declared with the axis ``state``, differ between states.
    """

    alpha: float
    beta: float
    sticky: float
    initial: Any
    transition: Any
    known: ClassVar[tuple[str, ...]] = ("initial", "transition")
    """The fields that hold known tables."""
    probabilities: ClassVar[tuple[str, ...]] = ("initial", "transition")
    emitted: ClassVar[tuple[str, ...]] = ()
    """The fields that hold known parameters of the emissions."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sticky < 0:
            raise InputError(f"sticky must be >= 0, got {self.sticky:g}", "out_of_range")
        for name, field in self._by_state.items():
            if np.ndim(own := getattr(self, name)) and len(own) != self.K:
                hint = "give K, and one number for each state, or one for all"
                raise InputError(
                    f"{field.label} has {len(own)} entries, but there are K={self.K} states", "wrong_shape", hint=hint
                )
        for name in self.known:
            object.__setattr__(self, name, known_table(getattr(self, name), name, self.K))
        for name, numbers in known_numbers({name: getattr(self, name) for name in self.emitted}, self.K).items():
            object.__setattr__(self, name, numbers)

    @classmethod
    def weak(cls, data: Arrays) -> Self:
        """Return weakly informative priors, scaled to the data where they have a scale."""
        return cls.weak_given(data, {})

    @classmethod
    def weak_given(cls, data: Arrays, given: Mapping[str, object]) -> Self:
        """Return a model with some fields given, and the others weakly informative for that K."""
        model = cls(**given)
        return model.replaced(**{**model.weak_fields(data), **given})

    def weak_fields(self, data: Arrays) -> dict[str, Any]:
        """Return the weakly informative fields that are not those of the textbook."""
        return {}

    @property
    def known_emitted(self) -> dict[str, np.ndarray]:
        """Known parameters of the emissions, each of shape (K,); empty where all are unknown."""
        values = {name: getattr(self, name) for name in self.emitted}
        return {name: np.array(value) for name, value in values.items() if value is not None}

    def or_known(self, block: Block[Any]) -> Law[Any]:
        """Return the prior of the emissions, or where all their parameters are known, the law without a prior."""
        known = self.known_emitted
        return Known(block, known) if known and len(known) == len(self.emitted) else block

    @property
    def _by_state(self) -> dict[str, Hyperparameter]:
        """The fields of the prior that may have an entry for each state."""
        return {name: field for name, field in hyperparameters(self).items() if "state" in field.axes}

    def sizes(self, data: Arrays) -> dict[str, int]:
        """Return the lengths of the axes that fields may have entries along."""
        return {**super().sizes(data), "state": self.K}

    @cached_property
    def tables(self) -> tuple[Law[Any], Law[Any]]:
        """The laws of the first state and of the next one: Dirichlet priors, or known tables."""
        initial = table("initial", np.full(self.K, self.alpha), self.initial)
        return initial, table("transition", self.beta + self.sticky * np.eye(self.K), self.transition)

    def new_prior(self, data: Arrays) -> HiddenChain:
        """Return the prior of all parameters."""
        return HiddenChain((*self.tables, self.emission_law(data)))

    def coords(self, data: Arrays) -> dict[str, Any]:
        """Return the numbers of the states, for both axes of transitions, and the labels of the data."""
        states = np.arange(1, self.K + 1)
        return {**super().coords(data), "state": states, "state_2": states}

    def one_component(self) -> Self:
        """Return the model with one state, the first, whose tables nobody needs to know."""
        first = {name: np.ravel(getattr(self, name))[0] for name in self._by_state}
        return self.replaced(K=1, **dict.fromkeys((*self.known, *self.emitted)), **first)

    def draw_path(self, rng: np.random.Generator, size: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Draw the tables from their priors, and a path of ``size`` states: ``(parameters, states)``."""
        tables = HiddenChain(self.tables)
        drawn = tables.rvs((), rng)
        initial, transition = tables.tables_at(drawn)
        path = np.zeros(size, dtype=np.int64)
        for t in range(size):
            path[t] = rng.choice(self.K, p=transition[path[t - 1]] if t else initial)
        return drawn, path

    def require_rows(self, data: Arrays) -> None:
        """Refuse more states than observations, and a model without parameters."""
        if not self.prior(data).blocks:
            hint = "bayeszoo.answers.decode.decode finds the states"
            raise InputError("every table is known: there is no parameter to be fitted", "nothing_to_fit", hint=hint)
        if (rows := int(emissions.seen(data["y"]).sum())) < self.K:
            hint = "use a smaller K"
            raise InputError(
                f"K={self.K} states but only {rows} observation{'s' * (rows != 1)}", "too_few_rows", hint=hint
            )

    def start(self, data: Arrays, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Return parameters to climb from, at random."""
        return self.vb_m_step(self.path_statistics(self.seeds(data, rng), data)).q.typical()

    def vb_start(self, data: Arrays, rng: np.random.Generator) -> Factors[HiddenChain]:
        """Return q(theta) to climb from, at random; every other one leaves states empty, whose q is the prior."""
        path = self.seeds(data, rng)
        for _ in range(rng.integers(0, self.K) if rng.random() < 0.5 else 0):
            emptied, filled = rng.choice(self.K, 2, replace=False)
            path = np.where(path == emptied, filled, path)
        return self.vb_m_step(self.path_statistics(path, data))

    def seeds(self, data: Arrays, rng: np.random.Generator) -> np.ndarray:
        """Return a path of states to start from: by the values of the rows, or runs of random lengths."""
        self.require_rows(data)
        law, rows = emissions.kind_of(self.emission_law(data)), len(data["y"])
        seen, path = emissions.seen(data["y"]), rng.integers(0, self.K, rows)
        if rng.random() < 0.5:
            path[seen] = emissions.states_by_value(law, data["y"][seen], rng)
            return path
        leaves = rng.random(rows) < 10 ** -rng.uniform(0, math.log10(max(rows / self.K, 1)))
        leaves[0] = True
        return path[np.maximum.accumulate(np.where(leaves, np.arange(rows), 0))]

    def path_statistics(self, path: np.ndarray, data: Arrays, count: float = 1.0) -> ExpectedStates:
        """Return the statistics of one path of states, (T,); a state and a transition count ``count`` times."""
        prior = self.prior(data)
        initial, transition = (count * each[0] for each in path_counts(path[None], starts(data["sequence"]), self.K))
        emitted = prior.emission.statistics(data, count * np.eye(self.K)[path])
        return expected_states(prior, initial, transition, emitted)

    # EM

    def e_step(self, params: Params, data: Arrays) -> Expectation:
        """Return expected statistics and the log likelihood at the parameters."""
        prior = self.prior(data)
        log_density = partial(prior.emission.log_density, params)
        return self._expectation(prior, prior.emission, prior.tables_at(params), log_density, data)

    def _expectation(
        self, prior: HiddenChain, law: Law[Any], tables: Pair, log_density: emissions.OfRows, data: Arrays
    ) -> Expectation:
        sums = emissions.smoothed(law, tables, log_density, data["y"], starts(data["sequence"]))
        return Expectation(expected_states(prior, *sums[:3]), sums.value)

    def m_step(self, stats: ExpectedStates, flat: bool = False) -> dict[str, np.ndarray]:
        """Return the mode of the posterior given expected statistics or, with ``flat``, of the likelihood."""
        alone = not 1 + times_left(stats).min() > 1  # less is lost next to the concentration 1 of a flat prior
        if self.K > 1 and alone and is_flat(stats.prior.transition, flat):
            raise NumericalError(never_left(int(np.argmin(times_left(stats)))), "known_state_left")
        if flat:
            emissions.require_spread(stats.prior.emission, stats.stats.parts[2])
        return super().m_step(stats, flat)

    def unbounded(self, data: Arrays) -> str:
        """Say why the posterior density has no maximum; nothing where it has one. Of one state nothing is hidden."""
        alone = self.alone(data)
        return self.prior(data).unbounded if alone is None else alone.posterior().unbounded

    def alone(self, data: Arrays) -> ExpectedStates | None:
        """Return the statistics of all rows where there is one state."""
        return self.path_statistics(np.zeros(len(data["y"]), dtype=np.int64), data) if self.K == 1 else None

    def degenerate(self, params: Params, stats: ExpectedStates) -> str:
        """Say by expected statistics why a fitted point is a degenerate maximum; nothing where it is not."""
        return emissions.collapsed(stats.prior.emission, params, stats.stats.parts[2])

    def undetermined(self, params: Params, data: Arrays, stats: ExpectedStates, flat: bool) -> str:
        """Say why a fitted point is one of many that are as high; nothing where it is not.

        Where the prior of a table is flat, or left out, its rows may be anything if no state can be told from another
        by what it emits, or if it is never left.
        """
        if self.K == 1 or not any(is_flat(law, flat) for law in self.tables):
            return ""
        log_b = self.emission_law(data).log_density(params, data)
        with np.errstate(invalid="ignore"):
            apart = np.abs(log_b - log_b[:, :1])
        if np.nanmax(apart, initial=0.0) < ALIKE:
            return "all states emit alike, and their probabilities may be anything: use a smaller K"
        if is_flat(stats.prior.transition, flat) and times_left(stats).min() < ALIKE:
            return never_left(int(np.argmin(times_left(stats))))
        return ""

    # Variational Bayes

    def vb_e_step(self, q: Factors[HiddenChain], data: Arrays) -> Expectation:
        """Return expected statistics under the best q(z), and its log normalizer."""
        law = q.q.emission
        return self._expectation(q.prior, law, q.q.typical_tables(), law.expected_log_density, data)

    def vb_log_density(self, q: Factors[HiddenChain], params: Params) -> np.ndarray:
        """Log density of q(theta), averaged over the orders of the labels; leading axes are draws.

        Of more than 6 states there are too many orders; then it is that of q itself, and importance weights, which
        k-hat judges, are of one copy of the posterior among K!.
        """
        every = self.exchangeable_axis() is not None and math.factorial(self.K) <= MOST_ORDERS
        orders = list(itertools.permutations(range(self.K))) if every else [tuple(range(self.K))]
        return averaged_log_density(q.q, params, np.array(orders))

    def vb_row_terms(self, q: Factors[HiddenChain], data: Arrays) -> np.ndarray:
        """Return the log normalizer of each row given those before, which tells optima of the ELBO apart."""
        log_b = q.q.emission.expected_log_density(data)
        return passes.log_rows(*q.q.typical_tables(), log_b, starts(data["sequence"]))

    def log_rows(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the log density of each row given those before, (..., T); leading axes of the parameters are draws."""
        prior = self.prior(data)
        log_b = prior.emission.log_density(params, data)
        return passes.log_rows(*prior.tables_at(params), log_b, starts(data["sequence"]))

    log_likelihoods = HiddenStates.log_likelihoods  # which the abstract step of `ConjugateSteps` would hide

    @property
    def has_few_orders(self) -> bool:
        """Whether the average is short: over all K! orders, as each pair of states has a parameter."""
        return self.K <= MOST_AVERAGED or self.exchangeable_axis() is None

    def resampled(self, params: Params, data: Arrays, count: float, rng: np.random.Generator) -> Factors[HiddenChain]:
        """Draw a path at one point; return the posterior given it; its states and transitions count ``count`` times."""
        return self.vb_m_step(self.path_statistics(self.sampled_path(params, data, rng), data, count))

    # Sums over paths

    def log_joint(self, assignments: np.ndarray, data: Arrays) -> np.ndarray:
        """Return log p(y, z), parameters integrated out, of shape (M,) for paths of states of shape (M, T)."""
        prior = self.prior(data)
        of_states = prior.log_evidence_of_paths(assignments, starts(data["sequence"]))
        return of_states + log_evidence_of(prior.emission, {"y": data["y"]}, assignments)

    def log_complete(self, params: Params, assignments: np.ndarray, data: Arrays) -> np.ndarray:
        """Return log p(y, z | theta) at one point, of shape (M,) for paths of states of shape (M, T)."""
        prior, first = self.prior(data), starts(data["sequence"])
        log_b = prior.emission.log_density(params, data)
        with np.errstate(divide="ignore"):
            log_initial, log_transition = map(np.log, prior.tables_at(params))
        terms = log_b[np.arange(len(log_b)), assignments]
        steps = log_transition[assignments[:, :-1], assignments[:, 1:]]
        inside = np.setdiff1d(np.arange(1, len(log_b)), first)
        return terms.sum(axis=1) + log_initial[assignments[:, first]].sum(axis=1) + steps[:, inside - 1].sum(axis=1)

    def posterior_given(self, assignment: np.ndarray, data: Arrays) -> Posterior:
        """Return the posterior of the parameters given the state of each row."""
        return self.vb_posterior(self.vb_m_step(self.path_statistics(assignment, data)))

    # Labels

    def exchangeable_axis(self) -> str | None:
        """Return the axis whose labels mean nothing.

        They mean something by a known table, and by known parameters or priors that differ between states.
        """
        is_known = any(getattr(self, name) is not None for name in self.known)
        by_state = [*self.known_emitted.values(), *(getattr(self, name) for name in self._by_state)]
        told_apart = is_known or any(np.any(np.ptp(values, axis=0) > 0) for values in map(np.atleast_1d, by_state))
        return None if told_apart or self.K == 1 else "state"

    def invariants(self, params: Params, data: Arrays) -> dict[str, np.ndarray]:
        """Return quantities that do not depend on the labels; leading axes are draws.

        ``together`` says of up to 20 pairs of rows how alike the probabilities of their states are; ``next`` is the
        mean of the row after the last.
        """
        prior, rows = self.prior(data), len(data["y"])
        transition = prior.tables_at(params)[1]
        first = spread_out(rows, 20)
        pairs, begins = [*first, *(first + max(1, rows // 3)) % rows], starts(data["sequence"])

        def of_draw(tables: Pair, log_b: np.ndarray) -> np.ndarray:
            smoothed = passes.smooth(*tables, log_b, begins)
            each = smoothed.emitted.reshape(rows, self.K)  # of one draw alone, as all draws' would not fit in memory
            return np.append(np.concatenate([each[pairs], each[-1:], each.mean(axis=0)[None]]), smoothed.value)

        values = self._of_draws(of_draw, params, data)
        some = values[..., :-1].reshape(*values.shape[:-1], -1, self.K)
        ahead = np.sum(some[..., -2, :, None] * transition, axis=-2)
        return {
            "log_likelihood": values[..., -1],
            "together": np.sum(some[..., : len(first), :] * some[..., len(first) : -2, :], axis=-1),
            "sorted_occupancy": np.sort(some[..., -1, :], axis=-1),
            "sorted_stay": np.sort(np.broadcast_to(np.diagonal(transition, axis1=-2, axis2=-1), ahead.shape), axis=-1),
            "next": emissions.next_mean(prior.emission, params, ahead),
            **emissions.ordered(prior.emission, params),
        }
