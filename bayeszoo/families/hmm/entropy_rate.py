"""The entropy rate of rows whose hidden states are a Markov chain: it has no closed form.

Cover and Thomas 2006, theorem 4.5.1: H(Y_n | Y_1..Y_n-1, S_1) <= rate <= H(Y_n | Y_1..Y_n-1) for every n, at the
stationary distribution of the states; both bounds tend to the rate as n grows. For symbols both are sums over words.
For counts and numbers they are simulated: H(Y_n | Y_1..Y_n-1) is the mean entropy of a row in its state, which is
exact, plus the mean information of the row about its state given the rows before, KL(filtered || predicted).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy

from bayeszoo.distributions.conjugate.law import Law
from bayeszoo.distributions.conjugate.normal import Normal
from bayeszoo.distributions.conjugate.poisson import Poisson
from bayeszoo.distributions.information import divergence, entropy, entropy_of_normals, entropy_of_rates
from bayeszoo.distributions.special import log_normal
from bayeszoo.foundation.named import Params
from bayeszoo.model.capabilities.sequential import Estimates

MOST_NUMBERS, LONGEST = 2**24, 12
"""Most probabilities of words held at once, and the length of the longest words."""
CHAINS, FEWEST_CHAINS = 4000, 4
"""Sequences simulated in total, and at least at each draw; their scatter gives the error."""
FIRST_STEPS, MOST_STEPS = 250, 8000
"""Initial and largest length of a sequence, which doubles until the error is small."""
SMALL_SHARE, SMALL_ERROR = 0.01, 1e-3
"""Largest share of the variance over draws from simulation; largest error at a single point, in nats."""


def rate_bounds(often: np.ndarray, transition: np.ndarray, emission: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and the upper bound, in nats, from words as long as memory allows.

    Parameters
    ----------
    often : ndarray, shape (..., K)
        Stationary distribution of the states.
    transition : ndarray, shape (..., K, K)
        Each row the distribution of the next state.
    emission : ndarray, shape (..., K, V)
        Each row the distribution of the symbol.
    """
    leading, (K, V) = often.shape[:-1], emission.shape[-2:]
    emission = np.broadcast_to(emission, (*leading, K, V))
    known_state = np.broadcast_to(np.eye(K), (*leading, K, K))
    states = np.concatenate([often[..., None, :], known_state], axis=-2)[..., None, :]  # (..., starts, words, K)
    size, length, lower, upper = states.size, 0, np.zeros(leading), np.zeros(leading)
    before = np.zeros((*leading, K + 1))
    while length < LONGEST and size * V <= MOST_NUMBERS:
        length, size = length + 1, size * V
        shown = states[..., None] * emission[..., None, None, :, :]  # the next symbol last
        words = np.swapaxes(shown, -1, -2).reshape(*leading, K + 1, -1, K)
        total = entropy(words.sum(axis=-1))
        step, before = total - before, total
        upper, lower = step[..., 0], np.sum(often * step[..., 1:], axis=-1)
        states = words @ transition[..., None, :, :]
    return lower, upper


# Counts and numbers


class Emissions(Protocol):
    """The law of a row in each of K states, at each of n draws of the parameters."""

    def entropies(self) -> np.ndarray:
        """Return the entropy of a row in each state, (n, K)."""

    def drawn(self, draws: np.ndarray, states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw a row in each of the states (C,) at the parameter draws with indices (C,)."""

    def log_of_each(self, draws: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the log density of rows (C,) in each state, (C, K), up to a constant of each row."""


@dataclass(frozen=True, eq=False)
class Normals:
    """Numbers, with means and variances (n, K)."""

    means: np.ndarray
    variances: np.ndarray

    def entropies(self) -> np.ndarray:
        """Return the differential entropy of a number in each state."""
        return entropy_of_normals(np.log(self.variances), 1)

    def drawn(self, draws: np.ndarray, states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw numbers."""
        return np.asarray(rng.normal(self.means[draws, states], np.sqrt(self.variances[draws, states])))

    def log_of_each(self, draws: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return log normal densities."""
        return log_normal(y[:, None], self.means[draws], self.variances[draws])


@dataclass(frozen=True, eq=False)
class Poissons:
    """Counts, with rates (n, K)."""

    rates: np.ndarray

    def entropies(self) -> np.ndarray:
        """Return the entropy of a count in each state."""
        return entropy_of_rates(self.rates)

    def drawn(self, draws: np.ndarray, states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw counts."""
        return np.asarray(rng.poisson(self.rates[draws, states]))

    def log_of_each(self, draws: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return log Poisson masses without the factorials, which do not depend on the state."""
        rates = self.rates[draws]
        return np.asarray(scipy.special.xlogy(y[:, None], rates) - rates)


def emissions_at(block: Law[Any], params: Params, shape: tuple[int, int]) -> Emissions | None:
    """Return the emissions at n draws of K states, ``shape`` (n, K); None for symbols, whose words are summed."""
    if isinstance(block, Normal):
        return Normals(*(np.broadcast_to(values, shape) for values in block.means_and_variances(params)))
    if isinstance(block, Poisson):
        return Poissons(np.broadcast_to(block.row_mean(params), shape))
    return None


def simulated_rate(
    often: np.ndarray, transition: np.ndarray, emissions: Emissions, rng: np.random.Generator
) -> Estimates:
    """Return the entropy rate at each draw, in nats, and its error, from sequences simulated at these draws.

    Two filters run along each sequence. One starts from the stationary distribution: its mean is an upper bound of the
    rate. The other knows the first state: its mean is a lower bound. The estimate is halfway between the bounds, and
    half their distance is part of the error.

    Parameters
    ----------
    often : ndarray, shape (n, K)
        Stationary distribution of the states at n draws.
    transition : ndarray, shape (n, K, K)
        Each row the distribution of the next state.
    emissions : Emissions
        The law of a row in each state, at the same draws.
    """
    copies = max(FEWEST_CHAINS, CHAINS // len(often))
    walk = _Walk(often, transition, emissions, np.repeat(np.arange(len(often)), copies), rng)
    in_state, steps = np.sum(often * emissions.entropies(), axis=-1), FIRST_STEPS
    while True:
        upper, lower = (mean.reshape(-1, copies) for mean in walk.mean_information(steps))
        middle, half_gap = (upper + lower) / 2, np.abs(np.mean(upper - lower, axis=1)) / 2
        error = middle.std(axis=1, ddof=1) / np.sqrt(copies) + half_gap
        values = in_state + middle.mean(axis=1)
        if steps >= MOST_STEPS or _is_small(error, values):
            return Estimates(values, error)
        steps *= 2


def _is_small(error: np.ndarray, values: np.ndarray) -> bool:
    if len(values) == 1:
        return bool(error[0] <= SMALL_ERROR)
    return bool(np.mean(np.square(error)) <= SMALL_SHARE * values.var())


class _Walk:
    """Simulated sequences of hidden states and rows at draws, and the information of each row about its state."""

    def __init__(
        self,
        often: np.ndarray,
        transition: np.ndarray,
        emissions: Emissions,
        draws: np.ndarray,
        rng: np.random.Generator,
    ) -> None:
        self._transition, self._emissions, self._at, self._rng = transition[draws], emissions, draws, rng
        self._states = self._drawn(often[draws])
        self._predicted = np.stack([often[draws], np.eye(often.shape[1])[self._states]])  # by both filters, (2, C, K)
        self._steps, self._sums = 0, np.zeros((2, len(draws)))

    def mean_information(self, steps: int) -> np.ndarray:
        """Simulate up to N steps; return the mean information of a row about its state, (2, C)."""
        for _ in range(self._steps, steps):
            log_b = self._emissions.log_of_each(self._at, self._emissions.drawn(self._at, self._states, self._rng))
            joint = self._predicted * np.exp(log_b - log_b.max(axis=-1, keepdims=True))
            filtered = joint / joint.sum(axis=-1, keepdims=True)
            self._sums += divergence(filtered, self._predicted)
            self._predicted = np.einsum("fck,ckl->fcl", filtered, self._transition)
            self._states = self._drawn(self._transition[np.arange(len(self._at)), self._states])
        self._steps = steps
        return self._sums / steps

    def _drawn(self, p: np.ndarray) -> np.ndarray:
        """Draw one of K states by each row of probabilities (C, K)."""
        ends = np.cumsum(p, axis=-1)
        return np.sum(self._rng.random((len(p), 1)) * ends[:, -1:] >= ends, axis=-1)
