"""The exact posterior of few rows with latent components: a sum over every assignment of the rows.

With many components, as of a Dirichlet process, the sum is over every partition of the rows into clusters. It needs no
sampler and no labels, and is the standard for the approximations of mixtures and hidden Markov models.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from bayeszoo.data.inputs import Series
from bayeszoo.data.read import read
from bayeszoo.distributions.posterior import Marginal
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.foundation.gate import Check, at_most
from bayeszoo.foundation.named import Arrays
from bayeszoo.foundation.process.progress import Reporter
from bayeszoo.inference.problem import Outcome, Problem
from bayeszoo.model.base import Model, require_instance
from bayeszoo.model.capabilities import Enumerable, Symmetric
from bayeszoo.model.suggest import models_with

MOST = 2_000_000  # most assignments in the sum
MAX_ERROR = 1e-9  # largest error of probabilities whose value is known
_CELLS = 2**18  # most rows times assignments in a block


def run(problem: Problem, *, draws: int = 1000, chains: int = 4) -> Outcome:
    """Draw independently from the posterior, summed over every assignment of few rows, and compute the evidence.

    When components are exchangeable, their order is random in each draw.
    """
    require_few(problem.model, problem.data)
    with problem.clock.phase("run"):
        enumeration = Enumeration.of(problem.model, problem.data, problem.reporter)
        sample = enumeration.draw((chains, draws), problem.rng)
    broken = sum(int((~np.isfinite(values)).sum()) for values in sample.values())
    checks = [at_most("non_finite_numbers", broken, 0), *enumeration.checks()]
    unit = "partitions" if enumeration.model.sums_partitions() else "assignments"
    facts = {"log_evidence": enumeration.log_evidence, unit: len(enumeration.log_joint)}
    return Outcome(sample, f"sum over {len(enumeration.log_joint)} {unit}", checks, facts)


def enumerate_posterior(model: Model, data: Any = None, /, **options: Any) -> Enumeration:
    """Sum over every assignment of few rows to the components of a model, its parameters integrated out.

    Parameters
    ----------
    model : Model
        Must be `Enumerable`.
    data : Data or anything that `read` takes, optional
        With K components, K ** rows must be at most 2 000 000.
    **options
        Of `read`.

    Returns
    -------
    Enumeration

    Raises
    ------
    InputError
        When the model cannot be enumerated, or has too many assignments of the rows; nothing was computed.
    NumericalError
        When the probability of an assignment is not a number, or all have probability 0.

    Notes
    -----
    p(y, z) of each assignment z is in closed form (Bishop 2006, section 10.2, with the parameters integrated out
    rather than approximated): no error but rounding is made, whatever the shape of the posterior.
    """
    require_instance(model)
    return Enumeration.of(model, read(model, data, **options))


def require_few(model: Model, data: Arrays) -> Enumerable:
    """Return the model; raise `InputError` unless it can be enumerated and has few enough assignments."""
    if not isinstance(model, Enumerable):
        problem = f"{model.name} has no latent variables to enumerate"
        raise InputError(problem, "not_enumerable", hint=models_with(Enumerable))
    rows, K, unit = model.latents(data), model.K, model.latent_unit
    if model.sums_partitions():
        if number_of_partitions(rows, K) > MOST:
            most = next(n for n in range(rows) if number_of_partitions(n + 1, K) > MOST)
            line = f"{rows} rows have more than {MOST} partitions"
            raise InputError(line, "too_large", hint=f"give at most {most} rows, or use another method")
    elif K > 1 and rows > most_rows(K):
        hint = f"give at most {most_rows(K)} {unit}{'s' * (most_rows(K) != 1)}, or use another method"
        raise InputError(
            f"{rows} {unit}s have {K}**{rows} assignments to {K} components, more than {MOST}", "too_large", hint=hint
        )
    return model


def most_rows(K: int) -> int:
    """Return the most rows that can be enumerated with K > 1 components."""
    return next(rows for rows in range(MOST) if K ** (rows + 1) > MOST)


@dataclass(frozen=True, eq=False)
class Enumeration:
    """The posterior of the assignments of few rows."""

    model: Enumerable
    data: Arrays
    log_joint: np.ndarray  # (M,): log p(y, z) of each assignment in lexical order, or of each partition

    @classmethod
    def of(cls, model: Model, data: Arrays, reporter: Reporter | None = None) -> Enumeration:
        """Enumerate every assignment of the rows of canonical arrays, which may be empty."""
        enumerable = require_few(model, data)
        log_joint = _log_joint(enumerable, data, reporter or Reporter())
        if not math.isfinite(_log_sum(log_joint)):
            raise NumericalError(
                f"{model.name} has probability 0 for every assignment of these rows", "impossible_data"
            )
        return cls(enumerable, data, log_joint)

    @property
    def rows(self) -> int:
        """The number of latent variables: one per row, or per word of the documents."""
        return self.model.latents(self.data)

    @cached_property
    def log_evidence(self) -> float:
        """The log marginal likelihood of the ordered rows, with every constant, in nats."""
        return _log_sum(self.log_joint)

    @cached_property
    def probabilities(self) -> np.ndarray:
        """p(z | y) of each assignment or partition, (M,)."""
        return np.exp(self.log_joint - self.log_evidence)

    @cached_property
    def _partitions(self) -> np.ndarray:
        return partitions(self.rows, self.model.K)

    def assignments(self, numbers: np.ndarray | None = None) -> np.ndarray:
        """Return assignments by their numbers, (M, rows), components counted from 0; by default all, in lexical order.

        The clusters of a partition are numbered by their first rows.
        """
        if self.model.sums_partitions():
            return self._partitions if numbers is None else self._partitions[numbers]
        numbers = np.arange(len(self.log_joint)) if numbers is None else numbers
        return _digits(numbers, self.model.K, self.rows)

    @cached_property
    def component_probabilities(self) -> np.ndarray:
        """P(z_n = k | y), shape (rows, K): all 1 / K when components are exchangeable; raises for partitions."""
        if self.model.sums_partitions():
            raise NumericalError("clusters of a partition have no labels: see coclustering", "exchangeable_labels")
        probabilities = np.zeros((self.rows, self.model.K))
        for p, indicators in self._indicators():
            probabilities += np.einsum("m,kmn->nk", p, indicators)
        return probabilities

    @cached_property
    def coclustering(self) -> np.ndarray:
        """The probability that two rows have the same component, shape (rows, rows); it does not depend on labels."""
        probabilities = np.zeros((self.rows, self.rows))
        for p, indicators in self._indicators():
            probabilities += sum((p[:, None] * indicator).T @ indicator for indicator in indicators)
        return probabilities

    @cached_property
    def number_of_components(self) -> np.ndarray:
        """The probability that exactly m components have a row, for m = 0..K, shape (K + 1,)."""
        probabilities = np.zeros(self.model.K + 1)
        for p, indicators in self._indicators():
            probabilities += np.bincount(indicators.any(axis=2).sum(axis=0), p, minlength=len(probabilities))
        return probabilities

    @cached_property
    def marginals(self) -> dict[str, Marginal]:
        """The exact posteriors of parameters that have no labels, with mean, std, cdf and ppf, if the model has any."""
        if not self.model.sums_partitions():
            return {}
        return self.model.marginals_over(self._partitions, self.probabilities, self.data)

    def log_predictive(self, new_data: Any, **options: Any) -> np.ndarray:
        """Return log p(y_new | y) of each new row by itself, shape (new rows,), in nats.

        Parameters
        ----------
        new_data : Data or anything that `read` takes
            Rows with their outcome. Each is appended to the data, so that the sum has K times as many assignments; in
            a series, it is the next observation of the last sequence.
        **options
            Of `read`.

        Raises
        ------
        InputError
            When the new rows do not match the data or have no outcome, or one more row gives too many assignments.
        """
        inputs = self.model.inputs
        new = read(self.model, new_data, new=True, like=self.data, **options)
        if not inputs.has_outcome(new):
            raise InputError("the new rows have no outcome, and so no predictive density", "missing_outcome")
        longer = (self._with(inputs.reordered(new, np.array([i]))) for i in range(inputs.size(new)))
        return np.array([_log_sum(_log_joint(self.model, data, Reporter())) - self.log_evidence for data in longer])

    def draw(self, size: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Draw parameters independently from their posterior, arrays of shape ``(*size, *parameter shape)``.

        An assignment is drawn first (a partition, then labels of its clusters), then parameters given the assignment.
        """
        total, model = math.prod(size), self.model
        numbers = np.sort(rng.choice(len(self.probabilities), total, p=self.probabilities))
        labelled = self.assignments(numbers)
        if model.sums_partitions():
            labelled = np.array([model.with_labels(z, self.data, rng) for z in labelled]).reshape(total, -1)
        distinct, times = np.unique(labelled, axis=0, return_counts=True)
        posteriors = (model.posterior_given(z, self.data) for z in distinct)
        parts = [posterior.rvs(int(count), rng) for posterior, count in zip(posteriors, times, strict=True)]
        order = rng.permutation(total)  # equal assignments are adjacent until here
        drawn = {name: np.concatenate([part[name] for part in parts])[order] for name in parts[0]}
        return {name: values.reshape(*size, *values.shape[1:]) for name, values in drawn.items()}

    def checks(self) -> list[Check]:
        """Check that the probabilities add up, and that no label of exchangeable components is preferred."""
        K = self.model.K
        checks = [at_most("probability_sum", abs(math.fsum(self.probabilities) - 1), MAX_ERROR)]
        by_label = not self.model.sums_partitions()
        if by_label and self.rows and isinstance(self.model, Symmetric) and self.model.exchangeable_axis() is not None:
            error = float(np.max(np.abs(self.component_probabilities - 1 / K)))
            checks.append(at_most("label_asymmetry", error, MAX_ERROR))
        return checks

    def _indicators(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield blocks of probabilities of assignments, (M,), and of indicators of z = k, (K, M, rows)."""
        components = np.arange(self.model.K)[:, None, None]
        for block in _chunks(len(self.log_joint), self.rows):
            yield self.probabilities[block], (self.assignments(block) == components).astype(np.float64)

    def _with(self, row: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Append a row to the data; the labels of the other axes stay."""
        inputs = self.model.inputs
        row = inputs.following(self.data, row) if isinstance(inputs, Series) else row
        labels, codes = [name for name in inputs.coords if name != inputs.row_names], inputs.coded
        shifts = {name: inputs.size(self.data) for name in codes if codes[name] == inputs.row_names}
        longer = {
            name: values
            if name in labels
            else np.concatenate([values, row[name] + shifts[name] if name in shifts else row[name]])
            for name, values in self.data.items()
        }
        require_few(self.model, longer)
        return longer


def _log_joint(model: Enumerable, data: Arrays, reporter: Reporter) -> np.ndarray:
    """Return log p(y, z) of every assignment or partition, (M,): -inf is allowed, NaN is not."""
    rows, by_partition = model.latents(data), model.sums_partitions()
    clusterings = partitions(rows, model.K) if by_partition else np.empty(0)
    log_joint = np.empty(len(clusterings) if by_partition else model.K**rows)
    for block in _chunks(len(log_joint), rows):
        values = model.log_partitions(clusterings[block], data) if by_partition else None
        log_joint[block] = model.log_joint(_digits(block, model.K, rows), data) if values is None else values
        reporter.progress("assignments", int(block[-1]) + 1, len(log_joint))
    if np.isnan(log_joint).any() or np.isposinf(log_joint).any():
        raise NumericalError(f"{model.name}.log_joint is not a number, or infinite", "not_finite")
    return log_joint


def _log_sum(log_joint: np.ndarray) -> float:
    return float(scipy.special.logsumexp(log_joint))


def _digits(numbers: np.ndarray, K: int, rows: int) -> np.ndarray:
    """Return the digits of numbers in base K, one digit per row: shape (M, rows)."""
    places = np.int64(K) ** np.arange(rows - 1, -1, -1)
    return numbers[:, None] // places % K


def _chunks(total: int, rows: int) -> Iterator[np.ndarray]:
    """Yield the numbers of the assignments in blocks, to save memory."""
    size = max(_CELLS // max(rows, 1), 1)
    return (np.arange(start, min(start + size, total)) for start in range(0, total, size))


def number_of_partitions(rows: int, most: int) -> int:
    """Count the partitions of N rows into at most K clusters: a sum of Stirling numbers of the second kind."""
    ways = [1] + [0] * most  # by the number of clusters
    for _ in range(rows):
        ways = [0] + [k * ways[k] + ways[k - 1] for k in range(1, most + 1)]
    return sum(ways)


def partitions(rows: int, most: int) -> np.ndarray:
    """Return all partitions of N rows into at most K clusters, (M, rows), clusters numbered by their first rows."""
    most = min(most, rows)
    assignments, used = np.zeros((1, 0), dtype=np.int8), np.zeros(1, dtype=np.int8)
    for _ in range(rows):
        choices = np.minimum(used + 1, most)
        clusters = np.arange(choices.sum()) - np.repeat(np.cumsum(choices) - choices, choices)
        assignments = np.column_stack([np.repeat(assignments, choices, axis=0), clusters.astype(np.int8)])
        used = np.maximum(np.repeat(used, choices), clusters + 1).astype(np.int8)
    return assignments
