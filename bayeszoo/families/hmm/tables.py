"""Tables of probabilities, a distribution a row: known ones, or with Dirichlet priors; and the two tables of a chain.

Known tables may hold zeros. Those with a prior are parameters, and everything that EM, variational Bayes and
enumeration need of them is in closed form.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
import scipy

from bayeszoo.distributions import dirichlet
from bayeszoo.distributions.dirichlet import Dirichlet, log_dirichlet_ratio
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.model.base import Values

Pair = tuple[np.ndarray, np.ndarray]
"""Initial (K,) and transition (K, K)."""

SUM_ERROR = 1e-8
"""How far the sum of a row of a known table may be from 1."""
ALIKE = 1e-9
"""Nats between states that cannot be told apart, and expected rows below which there are none."""
LEAST_LOG = -1e300
"""Stands for the logarithm of 0 where it may be multiplied or added up."""


def known_table(value: Any, label: str, axes: int) -> Any:
    """Check a table of probabilities given by a user, and return it as nested tuples; None stays None.

    The last of its axes sums to 1 within 1e-8, and is divided by its sum; ``label`` names the table in messages.
    """
    if value is None:
        return None
    try:
        table = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{label} must be lists of numbers of equal length, got {value!r}") from None
    if table.ndim != axes or not table.size:
        raise InputError(f"{label} must have {axes} ax{'e' if axes > 1 else 'i'}s, got shape {table.shape}")
    if not np.all(table >= 0):
        raise InputError(f"{label} has an entry that is not a probability: {table[~(table >= 0)][0]:g}")
    totals = table.sum(axis=-1)
    if not np.all(np.abs(totals - 1) <= SUM_ERROR):
        row = int(np.argmax(~(np.abs(totals - 1) <= SUM_ERROR)))
        where = f"row {row + 1} of {label}" if axes > 1 else label
        raise InputError(f"{where} sums to {np.atleast_1d(totals)[row]:.10g}, not 1")
    return _tuples(table / totals[..., None])


def _tuples(table: np.ndarray) -> Any:
    return tuple(_tuples(row) if row.ndim else np.float64(row) for row in table)


class Part(ABC):
    """Parameters with a prior that is conjugate given the states: those of a table, or of what the states emit."""

    own: tuple[str, ...]
    """The parameters; none where they are known."""
    free: int
    """How many numbers they add to those that the likelihood is maximized over."""
    unbounded: str
    """Why the prior density has no maximum; nothing where it has one."""

    @abstractmethod
    def log_prior(self, params: Values) -> Any:
        """Log density of the prior, (...,)."""

    @abstractmethod
    def updated(self, stats: Any) -> Any:
        """Return the hyperparameters of the posterior given expected statistics."""

    @abstractmethod
    def mode(self, stats: Any, flat: bool) -> dict[str, np.ndarray]:
        """Return the mode of the posterior given expected statistics or, with ``flat``, of the likelihood."""

    @abstractmethod
    def middle(self, hyper: Any) -> dict[str, np.ndarray]:
        """Return a point in the middle of a distribution, never on the edge."""

    @abstractmethod
    def divergence(self, hyper: Any) -> float:
        """Return KL(q || prior) in nats."""

    @abstractmethod
    def posterior(self, hyper: Any) -> list[Posterior]:
        """Return the distribution of the parameters, if there are any."""


class ProbabilityTable(Part):
    """Rows of probabilities, of shape (n,) or (rows, n): a parameter with a Dirichlet prior of each row, or known.

    ``prior`` are the concentrations, > 0, and ``known`` the probabilities, where they are no parameter.
    """

    def __init__(self, name: str, prior: np.ndarray, known: np.ndarray | None = None) -> None:
        self.name, self.prior, self.known, self.is_free = name, prior, known, known is None
        self.own = (name,) if self.is_free else ()
        self.free = prior.size - prior.size // prior.shape[-1] if self.is_free else 0
        below = self.is_free and prior.shape[-1] > 1 and np.any(prior < 1)
        self.unbounded = f"a concentration < 1: it grows without bound as an entry of {name} goes to 0" if below else ""

    def of(self, params: Values) -> np.ndarray:
        """Return the probabilities; leading axes of a parameter are draws, a known table has none."""
        return np.asarray(params[self.name], dtype=np.float64) if self.known is None else self.known

    def log_prior(self, params: Values) -> Any:
        """Log density of the prior, (...,)."""
        if not self.is_free:
            return 0.0
        each = dirichlet.log_density(params[self.name], self.prior)
        return each.sum(axis=-1) if self.prior.ndim > 1 else each

    def log_densities(self, alphas: np.ndarray, params: Values) -> Any:
        """Log density under each of several Dirichlet distributions of the rows, (..., M) for ``alphas`` (M, *shape).

        A probability that has underflowed counts as the least number: its logarithm is finite.
        """
        if not self.is_free:
            return 0.0
        p, count = np.asarray(params[self.name], dtype=np.float64), len(alphas)
        logs = np.log(np.maximum(p, np.finfo(np.float64).tiny)).reshape(*p.shape[: p.ndim - self.prior.ndim], -1)
        of_rows = scipy.special.gammaln(alphas.sum(axis=-1)) - scipy.special.gammaln(alphas).sum(axis=-1)
        return logs @ (alphas - 1).reshape(count, -1).T + of_rows.reshape(count, -1).sum(axis=1)

    def mode(self, counts: np.ndarray, flat: bool) -> dict[str, np.ndarray]:
        """Return the mode given expected counts; of probabilities of one outcome there is only one value."""
        if not self.is_free:
            return {}
        if self.prior.shape[-1] == 1:
            return {self.name: np.ones_like(self.prior)}
        if self.name == "transition" and self.is_flat(flat) and not np.all(counts.sum(axis=-1) > 0):
            raise NumericalError(never_left(int(np.argmin(counts.sum(axis=-1)))))
        return {self.name: dirichlet.mode(counts, 1.0 if flat else self.prior, f"a row of {self.name}")}

    def is_flat(self, flat: bool) -> bool:
        """Say whether it is a parameter whose density is its likelihood, with ``flat`` or by its own prior."""
        return self.is_free and (flat or bool(np.all(self.prior == 1)))

    def updated(self, counts: np.ndarray) -> np.ndarray:
        """Return the concentrations of the posterior given expected counts; of a known table they mean nothing."""
        return self.prior + counts if self.is_free else self.prior

    def middle(self, alpha: np.ndarray) -> dict[str, np.ndarray]:
        """Return the mean under Dirichlet distributions of the rows, which is nowhere 0."""
        return {self.name: alpha / alpha.sum(axis=-1, keepdims=True)} if self.is_free else {}

    def expected_log(self, alpha: np.ndarray) -> np.ndarray:
        """Return expected logarithms under Dirichlet distributions of the rows, or the known ones."""
        if self.known is None:
            return dirichlet.expected_log(alpha)
        with np.errstate(divide="ignore"):
            return np.log(self.known)

    def divergence(self, alpha: np.ndarray) -> float:
        """Return KL(q || prior) in nats."""
        return dirichlet.divergence(alpha, self.prior) if self.is_free else 0.0

    def posterior(self, alpha: np.ndarray) -> list[Posterior]:
        """Return the distribution, of which a known table has none."""
        return [Dirichlet(alpha).posterior(self.name)] if self.is_free else []

    def rvs(self, rng: np.random.Generator) -> np.ndarray:
        """Draw from the prior, or return the known table."""
        return Dirichlet(self.prior).rvs((), rng) if self.known is None else self.known

    def log_evidence_of(self, counts: np.ndarray) -> np.ndarray:
        """Log probability of outcomes with these counts (M, *shape), in their order, probabilities integrated out."""
        if self.known is None:
            return np.reshape(log_dirichlet_ratio(self.prior, counts), (len(counts), -1)).sum(axis=1)
        return np.reshape(scipy.special.xlogy(counts, self.known), (len(counts), -1)).sum(axis=1)


class HiddenChain(NamedTuple):
    """The tables of a hidden Markov chain of K states.

    Probabilities of the first state, (K,), and of the next one, (K, K), a row for each state.
    """

    initial: ProbabilityTable
    transition: ProbabilityTable

    @classmethod
    def of(cls, K: int, alpha: float, beta: float, sticky: float, initial: Any, transition: Any) -> HiddenChain:
        """Return Dirichlet(alpha) and, of each row, Dirichlet(beta + sticky on the diagonal), or what is known."""
        known = [None if table is None else np.array(table) for table in (initial, transition)]
        first = ProbabilityTable("initial", np.full(K, alpha), known[0])
        return cls(first, ProbabilityTable("transition", beta + sticky * np.eye(K), known[1]))

    def at(self, params: Values) -> Pair:
        """Return both at one point."""
        return self.initial.of(params), self.transition.of(params)

    def typical(self, initial: np.ndarray, transition: np.ndarray) -> Pair:
        """Return the exponentials of expected logarithms, whose rows sum to less than 1, given concentrations."""
        return np.exp(self.initial.expected_log(initial)), np.exp(self.transition.expected_log(transition))


def never_left(state: int) -> str:
    """Say why nothing tells where a state, counted from 0, goes."""
    return f"state {state + 1} is never left, and its row of transition may be anything: use a smaller K, or beta > 1"


def path_counts(paths: np.ndarray, starts: np.ndarray, K: int) -> tuple[np.ndarray, np.ndarray]:
    """Count first states, (M, K), and transitions, (M, K, K), of paths of states 0..K - 1, (M, rows)."""
    inside = np.setdiff1d(np.arange(1, paths.shape[1]), starts)
    moves = paths[:, inside - 1] * K + paths[:, inside]
    first = np.stack([np.sum(paths[:, starts] == k, axis=1, dtype=np.float64) for k in range(K)], axis=1)
    pairs = np.stack([np.sum(moves == pair, axis=1, dtype=np.float64) for pair in range(K * K)], axis=1)
    return first, pairs.reshape(-1, K, K)
