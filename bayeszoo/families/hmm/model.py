"""Steps shared by all hidden Markov models: Baum and Welch, variational Bayes, sums over paths, labels.

Baum, Petrie, Soules and Weiss 1970; Rabiner 1989; Beal 2003, chapter 3, for variational Bayes; Bishop, PRML, 13.2.
"""

from __future__ import annotations

import itertools
import math
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
from bayeszoo.foundation.named import Arrays, Coords, Params
from bayeszoo.model.capabilities import Enumerable, Symmetric
from bayeszoo.model.capabilities.conjugate import ConjugateSteps
from bayeszoo.model.capabilities.steps import Expectation
from bayeszoo.model.fields import Hyperparameter, hyperparameters

MOST_AVERAGED = 4
"""Most states for which a density is averaged over the orders of their labels."""
MOST_ORDERS = 720
"""Most orders of the labels, 6!, for which q(theta) is averaged over them."""


class HiddenMarkovModel(ConjugateSteps[HiddenChain], Enumerable, HiddenStates, Symmetric, family=True):
    """A hidden Markov chain of K states, with Dirichlet(alpha) and Dirichlet(beta) priors on its tables, or known ones.

    A subclass gives the emissions, which must be conjugate given the states, and declares the model. ``sticky``, >= 0,
    is added to the concentration beta of staying in the same state. Known tables ``initial`` and ``transition`` are
    nested tuples of float: then they are no parameters, and the states are not exchangeable. Neither are they if known
    parameters of the emissions, or a field with the axis ``state``, differ between states.
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
            if np.ndim(value := getattr(self, name)) and len(value) != self.K:
                hint = "give K, and one number for each state, or one for all"
                raise InputError(
                    f"{field.label} has {len(value)} entries, but there are K={self.K} states", "wrong_shape", hint=hint
                )
        for name in self.known:
            object.__setattr__(self, name, known_table(getattr(self, name), name, self.K))
        for name, numbers in known_numbers({name: getattr(self, name) for name in self.emitted}, self.K).items():
            object.__setattr__(self, name, numbers)

    @property
    def known_emitted(self) -> dict[str, np.ndarray]:
        """Known parameters of the emissions, each of shape (K,); empty if all are unknown."""
        values = {name: getattr(self, name) for name in self.emitted}
        return {name: np.array(value) for name, value in values.items() if value is not None}

    def or_known(self, block: Block[Any]) -> Law[Any]:
        """Return the prior of the emissions, or if all their parameters are known, the law without a prior."""
        values = self.known_emitted
        return Known(block, values) if values and len(values) == len(self.emitted) else block

    @property
    def _by_state(self) -> dict[str, Hyperparameter]:
        """The fields of the prior that may have an entry for each state."""
        return {name: field for name, field in hyperparameters(self).items() if "state" in field.axes}

    def sizes(self, data: Arrays) -> dict[str, int]:
        """Return the lengths of the axes of fields."""
        return {**super().sizes(data), "state": self.K}

    @cached_property
    def tables(self) -> tuple[Law[Any], Law[Any]]:
        """The laws of the first state and of the next one: Dirichlet priors, or known tables."""
        initial = table("initial", np.full(self.K, self.alpha), self.initial)
        return initial, table("transition", self.beta + self.sticky * np.eye(self.K), self.transition)

    def new_prior(self, data: Arrays) -> HiddenChain:
        """Return the prior of all parameters."""
        return HiddenChain((*self.tables, self.emission_law(data)))

    def coords(self, data: Arrays) -> Coords:
        """Return the numbers of the states, for both axes of transitions, and the labels of the data."""
        states = np.arange(1, self.K + 1)
        return {**super().coords(data), "state": states, "state_2": states}

    def one_component(self) -> Self:
        """Return the model with the first state alone, whose tables need not be known."""
        fields = {name: np.ravel(getattr(self, name))[0] for name in self._by_state}
        return self.replaced(K=1, **dict.fromkeys((*self.known, *self.emitted)), **fields)

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
            hint = "bayeszoo.answers.series.decode.decode finds the states"
            raise InputError("every table is known: there is no parameter to be fitted", "nothing_to_fit", hint=hint)
        if (rows := int(emissions.seen(data["y"]).sum())) < self.K:
            hint = "use a smaller K"
            raise InputError(
                f"K={self.K} states but only {rows} observation{'s' * (rows != 1)}", "too_few_rows", hint=hint
            )

    def start(self, data: Arrays, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Return random parameters to climb from."""
        return self.vb_m_step(self.path_statistics(self.seeds(data, rng), data)).q.typical()

    def vb_start(self, data: Arrays, rng: np.random.Generator) -> Factors[HiddenChain]:
        """Return a random q(theta) to climb from; in half of the cases states are left empty, whose q is the prior."""
        path = self.seeds(data, rng)
        for _ in range(rng.integers(0, self.K) if rng.random() < 0.5 else 0):
            emptied, filled = rng.choice(self.K, 2, replace=False)
            path = np.where(path == emptied, filled, path)
        return self.vb_m_step(self.path_statistics(path, data))

    def seeds(self, data: Arrays, rng: np.random.Generator) -> np.ndarray:
        """Return a path of states to start from, by the values of the rows or in runs of random lengths, (T,)."""
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
        """Return the statistics of one path of states, (T,); each state and transition counts ``count`` times."""
        prior = self.prior(data)
        counts = path_counts(path[None], starts(data["sequence"]), self.K)
        initial, transition = (count * table[0] for table in counts)
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
        never = not 1 + times_left(stats).min() > 1  # smaller counts are lost next to the 1 of a flat prior
        if self.K > 1 and never and is_flat(stats.prior.transition, flat):
            raise NumericalError(never_left(int(np.argmin(times_left(stats)))), "known_state_left")
        if flat:
            emissions.require_spread(stats.prior.emission, stats.stats.parts[2])
        return super().m_step(stats, flat)

    def unbounded(self, data: Arrays) -> str:
        """Return the reason why the posterior density has no maximum; empty if it has one."""
        alone = self.alone(data)
        return self.prior(data).unbounded if alone is None else alone.posterior().unbounded

    def alone(self, data: Arrays) -> ExpectedStates | None:
        """Return the statistics of all rows if K is 1, when no state is hidden; else None."""
        return self.path_statistics(np.zeros(len(data["y"]), dtype=np.int64), data) if self.K == 1 else None

    def degenerate(self, params: Params, stats: ExpectedStates) -> str:
        """Return the reason, by expected statistics, why a fitted point is a degenerate maximum; empty if it is not."""
        return emissions.collapsed(stats.prior.emission, params, stats.stats.parts[2])

    def undetermined(self, params: Params, data: Arrays, stats: ExpectedStates, flat: bool) -> str:
        """Return the reason why a fitted point is one of many equal maxima; empty if it is not.

        If the prior of a table is flat, or left out, its rows are undetermined when all states have the same emissions,
        or a state is never left.
        """
        if self.K == 1 or not any(is_flat(law, flat) for law in self.tables):
            return ""
        log_b = self.emission_law(data).log_density(params, data)
        with np.errstate(invalid="ignore"):
            apart = np.abs(log_b - log_b[:, :1])
        if np.nanmax(apart, initial=0.0) < ALIKE:
            return "all states have the same emissions, and their probabilities may be anything: use a smaller K"
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

        With more than 6 states there are too many orders: the density is then that of q alone, and the importance
        weights judged by k-hat are those of one of the K! copies of the posterior.
        """
        is_averaged = self.exchangeable_axis() is not None and math.factorial(self.K) <= MOST_ORDERS
        orders = list(itertools.permutations(range(self.K))) if is_averaged else [tuple(range(self.K))]
        return averaged_log_density(q.q, params, np.array(orders))

    def vb_row_terms(self, q: Factors[HiddenChain], data: Arrays) -> np.ndarray:
        """Return the log normalizer of each row given the rows before, by which optima of the ELBO differ, (T,)."""
        log_b = q.q.emission.expected_log_density(data)
        return passes.log_rows(*q.q.typical_tables(), log_b, starts(data["sequence"]))

    def log_rows(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the log density of each row given the rows before, (..., T); leading axes of parameters are draws."""
        prior = self.prior(data)
        log_b = prior.emission.log_density(params, data)
        return passes.log_rows(*prior.tables_at(params), log_b, starts(data["sequence"]))

    log_likelihoods = HiddenStates.log_likelihoods  # otherwise hidden by the abstract step of `ConjugateSteps`

    @property
    def has_few_orders(self) -> bool:
        """Whether the average over all K! orders of the labels is short enough to compute."""
        return self.K <= MOST_AVERAGED or self.exchangeable_axis() is None

    def resampled(self, params: Params, data: Arrays, count: float, rng: np.random.Generator) -> Factors[HiddenChain]:
        """Draw a path at one point, and return the posterior given it, with its statistics times ``count``."""
        return self.vb_m_step(self.path_statistics(self.sampled_path(params, data, rng), data, count))

    # Sums over paths

    def log_joint(self, assignments: np.ndarray, data: Arrays) -> np.ndarray:
        """Return log p(y, z), parameters integrated out, of shape (M,) for paths of states of shape (M, T)."""
        prior = self.prior(data)
        of_states = prior.log_evidence_of_paths(assignments, starts(data["sequence"]))
        return of_states + log_evidence_of(prior.emission, {"y": data["y"]}, assignments)

    def log_complete(self, params: Params, assignments: np.ndarray, data: Arrays) -> np.ndarray:
        """Return log p(y, z | theta) at one point, of shape (M,) for paths of states of shape (M, T)."""
        prior, begins = self.prior(data), starts(data["sequence"])
        log_b = prior.emission.log_density(params, data)
        with np.errstate(divide="ignore"):
            log_initial, log_transition = map(np.log, prior.tables_at(params))
        terms = log_b[np.arange(len(log_b)), assignments]
        steps = log_transition[assignments[:, :-1], assignments[:, 1:]]
        inside = np.setdiff1d(np.arange(1, len(log_b)), begins)
        return terms.sum(axis=1) + log_initial[assignments[:, begins]].sum(axis=1) + steps[:, inside - 1].sum(axis=1)

    def posterior_given(self, assignment: np.ndarray, data: Arrays) -> Posterior:
        """Return the posterior of the parameters given the state of each row."""
        return self.vb_posterior(self.vb_m_step(self.path_statistics(assignment, data)))

    # Labels

    def exchangeable_axis(self) -> str | None:
        """Return the exchangeable axis, or None.

        States are not exchangeable with a known table, or if known parameters or priors differ between states.
        """
        is_known = any(getattr(self, name) is not None for name in self.known)
        by_state = [*self.known_emitted.values(), *(getattr(self, name) for name in self._by_state)]
        is_distinct = is_known or any(np.any(np.ptp(values, axis=0) > 0) for values in map(np.atleast_1d, by_state))
        return None if is_distinct or self.K == 1 else "state"

    def invariants(self, params: Params, data: Arrays) -> dict[str, np.ndarray]:
        """Return quantities that do not depend on the labels; leading axes are draws.

        ``together`` is the probability that the two rows of up to 20 pairs are in the same state, if independent;
        ``next`` is the mean of the row after the last.
        """
        prior, rows = self.prior(data), len(data["y"])
        transition = prior.tables_at(params)[1]
        left = spread_out(rows, 20)
        pairs, begins = [*left, *(left + max(1, rows // 3)) % rows], starts(data["sequence"])

        def of_draw(tables: Pair, log_b: np.ndarray) -> np.ndarray:
            smoothed = passes.smooth(*tables, log_b, begins)
            p = smoothed.emitted.reshape(rows, self.K)  # of one draw: those of all draws would not fit in memory
            return np.append(np.concatenate([p[pairs], p[-1:], p.mean(axis=0)[None]]), smoothed.value)

        values = self._of_draws(of_draw, params, data)
        states = values[..., :-1].reshape(*values.shape[:-1], -1, self.K)
        ahead = np.sum(states[..., -2, :, None] * transition, axis=-2)
        return {
            "log_likelihood": values[..., -1],
            "together": np.sum(states[..., : len(left), :] * states[..., len(left) : -2, :], axis=-1),
            "sorted_occupancy": np.sort(states[..., -1, :], axis=-1),
            "sorted_stay": np.sort(np.broadcast_to(np.diagonal(transition, axis1=-2, axis2=-1), ahead.shape), axis=-1),
            "next": emissions.next_mean(prior.emission, params, ahead),
            **emissions.ordered(prior.emission, params),
        }
