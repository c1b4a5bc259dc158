"""Answers about hidden Markov states: probabilities given rows, paths, and future rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import starts
from bayeszoo.distributions import discrete, frozen
from bayeszoo.distributions.averages.averaged import RowLaw
from bayeszoo.distributions.averages.mixture_rows import CountRows, RealRows
from bayeszoo.distributions.conjugate.categorical import Categorical
from bayeszoo.distributions.conjugate.law import Law
from bayeszoo.distributions.conjugate.normal import Normal
from bayeszoo.distributions.conjugate.poisson import Poisson
from bayeszoo.distributions.information import entropy
from bayeszoo.errors import InputError
from bayeszoo.families.hmm import emissions, passes
from bayeszoo.families.hmm.entropy_rate import emissions_at, rate_bounds, simulated_rate
from bayeszoo.families.hmm.tables import HiddenChain, Pair
from bayeszoo.families.markov.stationary import stationary
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.model.capabilities.sequential import Estimates, StatesInTime

state_paths = lazy_loader.load("bayeszoo.families.hmm.paths", suppress_warning=True)


class HiddenStates(StatesInTime, family=True):
    """The states of a Markov chain of K states, whose tables and emissions are parameters or known."""

    K: int

    @abstractmethod
    def prior(self, data: Arrays) -> HiddenChain:
        """Return the prior of all parameters."""

    @abstractmethod
    def emission_law(self, data: Arrays) -> Law[Any]:
        """Return the law of a row ``y`` in each of K states, with a conjugate prior or known."""

    def log_likelihoods(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the log likelihood at each draw, (...,)."""
        begins = starts(data["sequence"])
        return self._of_draws(lambda tables, log_b: passes.log_likelihood(*tables, log_b, begins), params, data)

    def component_probabilities(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the probability of each state in each row given all rows, (..., T, K); leading axes are draws."""
        return self._smoothed(params, data)[1]

    def filtered(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the probability of each state given the rows so far, (..., T, K)."""
        begins = starts(data["sequence"])
        return self._of_draws(lambda tables, log_b: passes.forward(*tables, log_b, begins).filtered, params, data)

    def predicted(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the probability of each state given the rows before, (..., T, K)."""
        begins = starts(data["sequence"])

        def of_draw(tables: Pair, log_b: np.ndarray) -> np.ndarray:
            initial, transition = tables
            after = passes.forward(*tables, log_b, begins).filtered @ transition
            before = np.concatenate([after[:1], after[:-1]])
            before[begins] = initial
            return before

        return self._of_draws(of_draw, params, data)

    def given_others(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the probability of each state given all rows of its sequence but its own, (..., T, K)."""
        begins = starts(data["sequence"])
        return self._of_draws(lambda tables, log_b: passes.given_the_others(*tables, log_b, begins), params, data)

    def entropies(self, params: Params, data: Arrays) -> dict[str, np.ndarray]:
        """Return the entropy rate of the states, and if rows are symbols two bounds of the rows' entropy rate."""
        transition = self._transition(params, data)
        often = stationary(transition)
        of_states = {"entropy rate of the states": np.sum(often * entropy(transition), axis=-1)}
        law = self.emission_law(data)
        if not isinstance(emissions.kind_of(law), Categorical):
            return of_states
        bounds = rate_bounds(often, transition, np.asarray(law.at(params)["emission"]))
        return of_states | dict(zip(("entropy rate, at least", "entropy rate, at most"), bounds, strict=True))

    def simulated_entropies(self, params: Params, data: Arrays, rng: np.random.Generator) -> dict[str, Estimates]:
        """Return the entropy rate of rows that are counts or numbers."""
        law, transition = self.emission_law(data), self._transition(params, data)
        size = max((len(values) for name, values in params.items() if name in self.dims), default=1)
        transition = np.broadcast_to(transition, (size, self.K, self.K))
        rows = emissions_at(emissions.kind_of(law), law.at(params), (size, self.K))
        return {} if rows is None else {"entropy rate": simulated_rate(stationary(transition), transition, rows, rng)}

    def _transition(self, params: Params, data: Arrays) -> np.ndarray:
        return np.asarray(self.prior(data).tables_at(params)[1])

    def rows_in(self, params: Params, data: Arrays, states: np.ndarray) -> RowLaw:
        """Return the distribution of rows given probabilities of their states, (..., rows, K)."""
        law = self.emission_law(data)
        return rows_of(emissions.kind_of(law), law.at(params), states)

    def best_path(self, params: Params, data: Arrays) -> tuple[np.ndarray, float]:
        """Return the most probable path at one point (Viterbi), (T,), and its log joint density with the rows."""
        return state_paths.viterbi(*self._chain(params, data))

    def sampled_path(self, params: Params, data: Arrays, rng: np.random.Generator) -> np.ndarray:
        """Draw a path given all rows at one point, (T,)."""
        (path,) = state_paths.sample_paths(*self._chain(params, data), rng=rng)
        return np.asarray(path)

    def _chain(self, params: Params, data: Arrays) -> tuple[np.ndarray, ...]:
        """Return the first arguments of `passes` at one point: both tables, log densities (T, K), starts."""
        prior = self.prior(data)
        return *prior.tables_at(params), prior.emission.log_density(params, data), starts(data["sequence"])

    def ahead(self, params: Params, data: Arrays, steps: int) -> np.ndarray:
        """Return probabilities of the states after each sequence, (..., sequences * steps, K), by sequence and step."""
        last = np.append(starts(data["sequence"])[1:], len(data["y"])) - 1
        states, transition = (
            [self.component_probabilities(params, data)[..., last, :]],
            self.prior(data).tables_at(params)[1],
        )
        for _ in range(steps):
            states.append(states[-1] @ transition)
        return np.stack(states[1:], axis=-2).reshape(*states[0].shape[:-2], -1, self.K)

    def known_parameters(self, data: Arrays) -> dict[str, np.ndarray]:
        """Return both tables; raise `InputError` unless all parameters are known."""
        prior = self.prior(data)
        if unknown := prior.names:
            clause = "is a parameter" if len(unknown) == 1 else "are parameters"
            raise InputError(
                f"{', '.join(unknown)} {clause} of {self.name}",
                "unknown_field",
                hint="fit it first, or give all of them",
            )
        initial, transition = prior.tables_at({})
        return {"initial": initial, "transition": transition}

    def _smoothed(self, params: Params, data: Arrays) -> tuple[np.ndarray, np.ndarray]:
        """Return the log likelihood (...,), and probabilities of the states (..., T, K)."""
        begins = starts(data["sequence"])

        def packed(tables: Pair, log_b: np.ndarray) -> np.ndarray:
            smoothed = passes.smooth(*tables, log_b, begins)
            return np.append(smoothed.emitted, smoothed.value)

        smoothed = self._of_draws(packed, params, data)
        return smoothed[..., -1], smoothed[..., :-1].reshape(*smoothed.shape[:-1], len(data["y"]), self.K)

    def _of_draws(self, function: Callable[[Pair, np.ndarray], Any], params: Params, data: Arrays) -> np.ndarray:
        """Call a function of tables and log densities (T, K) at each draw."""
        prior = self.prior(data)
        arrays = {name: np.asarray(values, dtype=np.float64) for name, values in params.items() if name in self.dims}
        leading = next((v.shape[: v.ndim - len(self.dims[name])] for name, v in arrays.items()), ())
        parts = []
        for i in np.ndindex(leading):
            draw = {name: values[i] for name, values in arrays.items()}
            parts.append(function(prior.tables_at(draw), prior.emission.log_density(draw, data)))
        return np.reshape(parts, (*leading, *np.shape(parts[0])))


def rows_of(block: Law[Any], params: Params, states: np.ndarray) -> RowLaw:
    """Return the law of rows given probabilities of their states, (..., rows, K), at the block's parameters."""
    if isinstance(block, Categorical):
        return discrete.Categorical(states @ block.row_mean(params))
    if isinstance(block, Poisson):
        return CountRows(states, discrete.Poisson(np.asarray(block.row_mean(params))[..., None, :]))
    assert isinstance(block, Normal)
    means, variances = (np.asarray(values)[..., None, :] for values in block.means_and_variances(params))
    return RealRows(states, frozen.norm(means, np.sqrt(variances)))
