"""The prior of a hidden Markov model: two tables of probabilities, known or with Dirichlet priors, and emissions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bayeszoo.distributions.conjugate.categorical import Categorical
from bayeszoo.distributions.conjugate.law import Block, Known, Law
from bayeszoo.distributions.conjugate.product import Expected, Product, Several
from bayeszoo.distributions.statistics.counts import Counts
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Params
from bayeszoo.foundation.numerics.constants import LEAST_LOG

Pair = tuple[np.ndarray, np.ndarray]
"""Initial (K,) and transition (K, K)."""

SUM_ERROR = 1e-8
"""Largest distance from 1 of the sum of a row of a known table."""
ALIKE = 1e-9
"""Largest difference in nats between equal states, and expected number of rows that counts as 0."""


def known_table(value: object, label: str, K: int) -> Any:
    """Check a table of probabilities of K states given by a user, and return it as nested tuples; None stays None.

    The last axis must sum to 1 within 1e-8, and is normalized; ``label`` names the table in messages.
    """
    if value is None:
        return None
    try:
        table = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{label} must be lists of numbers of equal length, got {value!r}", "wrong_type") from None
    axes = 1 if label == "initial" else 2
    if table.ndim != axes or not table.size:
        raise InputError(
            f"{label} must have {axes} ax{'e' if axes > 1 else 'i'}s, got shape {table.shape}", "wrong_shape"
        )
    if not np.all(table >= 0):
        raise InputError(
            f"{label} has an entry that is not a probability: {table[~(table >= 0)][0]:g}", "not_a_probability"
        )
    totals = table.sum(axis=-1)
    if not np.all(np.abs(totals - 1) <= SUM_ERROR):
        row = int(np.argmax(~(np.abs(totals - 1) <= SUM_ERROR)))
        where = f"row {row + 1} of {label}" if axes > 1 else label
        raise InputError(f"{where} sums to {np.atleast_1d(totals)[row]:.10g}, not 1", "not_a_probability")
    if len(table) != K or (label == "transition" and table.shape[1] != K):
        shape, hint = " x ".join(map(str, table.shape)), "give K, and a row for each state"
        raise InputError(f"{label} is {shape}, but there are K={K} states", "wrong_shape", hint=hint)
    return _tuples(table / totals[..., None])


def _tuples(table: np.ndarray) -> Any:
    return tuple(_tuples(row) if row.ndim else np.float64(row) for row in table)


def known_numbers(values: Params, K: int) -> dict[str, tuple[np.float64, ...]]:
    """Check known numbers of the states, one for each state; all but ``means`` must be > 0."""
    checked = {}
    for name, value in values.items():
        if value is None:
            continue
        try:
            numbers = np.array(value, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"{name} must be a list of numbers, got {value!r}", "wrong_type") from None
        if numbers.shape != (K,):
            raise InputError(
                f"{name} is {' x '.join(map(str, numbers.shape)) or 'one number'}, but there are K={K} states",
                "wrong_shape",
            )
        if not np.isfinite(numbers).all() or (name != "means" and not np.all(numbers > 0)):
            raise InputError(f"{name} must be finite{' and > 0' * (name != 'means')}, got {value!r}", "out_of_range")
        checked[name] = tuple(map(np.float64, numbers))
    return checked


def table(name: str, alpha: np.ndarray, known: Any = None) -> Law[Any]:
    """Return the law of codes with probabilities (..., V), with a Dirichlet prior of each row, or known."""
    block = Categorical((name,), name, alpha)
    return block if known is None else Known(block, {name: np.array(known)})


def table_statistics(law: Law[Any], counts: np.ndarray) -> Counts:
    """Return the statistics of a table from counts (..., *axes, V) of the draws from its rows."""
    if isinstance(law, Block):
        return Counts(counts)
    codes = {name: np.arange(counts.shape[-1]) for name in law.at({})}
    return law.statistics(codes, np.moveaxis(counts, -1, 0))


def expected_log_table(law: Law[Any]) -> np.ndarray:
    """Return the expected logarithms of the probabilities of a table, or the logarithms of known ones."""
    if isinstance(law, Categorical):
        return law.expected_log
    (probabilities,) = law.at({}).values()
    with np.errstate(divide="ignore"):
        return np.log(probabilities)


class HiddenChain(Product):
    """The prior, or q(theta), of a hidden Markov model: laws of the first state, of the next one, and of a row."""

    @property
    def initial(self) -> Law[Any]:
        """Prior of the first state, (K,)."""
        return self.laws[0]

    @property
    def transition(self) -> Law[Any]:
        """Prior of the next state, (K, K), a row for each state."""
        return self.laws[1]

    @property
    def emission(self) -> Law[Any]:
        """Prior of the emissions, one for each of K states."""
        return self.laws[2]

    def tables_at(self, params: Params) -> Pair:
        """Return both tables at one point, or at draws; known tables have no leading axes."""
        return self.initial.at(params)["initial"], self.transition.at(params)["transition"]

    def log_evidence_of_paths(self, paths: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """Log probability of paths of states (M, rows), tables integrated out, (M,)."""
        initial, transition = path_counts(paths, starts, self.transition.axes[0])
        of_first = self.initial.log_evidence(table_statistics(self.initial, initial))
        return of_first + self.transition.log_evidence(table_statistics(self.transition, transition)).sum(axis=-1)

    def typical_tables(self) -> Pair:
        """Return the exponentials of expected logarithms, whose rows sum to less than 1."""
        return np.exp(expected_log_table(self.initial)), np.exp(expected_log_table(self.transition))


type ExpectedStates = Expected[HiddenChain]


def expected_states(prior: HiddenChain, initial: np.ndarray, transition: np.ndarray, emitted: object) -> ExpectedStates:
    """Combine counts of first states (K,), of transitions (K, K) and the statistics of the rows."""
    tables = table_statistics(prior.initial, initial), table_statistics(prior.transition, transition)
    return Expected(Several((*tables, emitted)), prior)


def times_left(stats: ExpectedStates) -> np.ndarray:
    """Return the number of transitions from each state, (K,); 0 if the transitions are known."""
    counts = stats.stats.parts[1]
    return counts.counts.sum(axis=-1) if isinstance(counts, Counts) else np.zeros(stats.prior.transition.axes)


def averaged_log_density(q: HiddenChain, params: Params, orders: np.ndarray) -> np.ndarray:
    """Log density of q(theta), averaged over orders (M, K) of the labels; leading axes of the parameters are draws."""
    initial, transition, law = q.laws
    K, total = orders.shape[1], np.float64(-np.inf)
    pairs = np.maximum(law.log_pairs(params), LEAST_LOG) if isinstance(law, Block) else np.zeros((K, K))
    for block in np.array_split(orders, math.ceil(len(orders) / 24)):  # to save memory
        logs = np.stack([pairs[..., order, np.arange(K)].sum(axis=-1) for order in block], axis=-1)
        if isinstance(initial, Categorical):
            logs = logs + initial.log_of_several(initial.alpha[block], params)
        if isinstance(transition, Categorical):
            logs = logs + transition.log_of_several(transition.alpha[block[:, :, None], block[:, None]], params)
        total = np.logaddexp(total, np.logaddexp.reduce(logs, axis=-1))
    return np.asarray(total - math.log(len(orders)))


def is_flat(law: Law[Any], flat: bool) -> bool:
    """Say whether a table is a parameter without an informative prior: with ``flat``, or if its prior is flat."""
    return isinstance(law, Categorical) and (flat or law.is_flat)


def never_left(state: int) -> str:
    """Say that the transitions from a state, counted from 0, are undetermined as it is never left."""
    return f"state {state + 1} is never left, and its row of transition may be anything: use a smaller K, or beta > 1"


def path_counts(paths: np.ndarray, starts: np.ndarray, K: int) -> tuple[np.ndarray, np.ndarray]:
    """Count first states, (M, K), and transitions, (M, K, K), of paths of states 0..K - 1, (M, rows)."""
    inside = np.setdiff1d(np.arange(1, paths.shape[1]), starts)
    moves = paths[:, inside - 1] * K + paths[:, inside]
    initial = np.stack([np.sum(paths[:, starts] == k, axis=1, dtype=np.float64) for k in range(K)], axis=1)
    pairs = np.stack([np.sum(moves == pair, axis=1, dtype=np.float64) for pair in range(K * K)], axis=1)
    return initial, pairs.reshape(-1, K, K)
