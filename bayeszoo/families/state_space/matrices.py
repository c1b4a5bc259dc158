"""Known matrices of a linear Gaussian series: how a state moves, and what a row says of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from bayeszoo.data.inputs import starts
from bayeszoo.errors import InputError
from bayeszoo.families.state_space.structure import SIGNAL, upper

NEGATIVE = 1e-10
"""Share of the largest eigenvalue of a covariance matrix within which a negative one is rounding."""


@dataclass(frozen=True, eq=False)
class Matrices:
    """Transition matrix A (d, d), coefficients C (d,) of a row, covariance Q of a step, and prior of the first state.

    The state z moves by A z + N(0, q^2 Q), and a row is C z + N(0, r^2). The first one is N(mean, covariance). Loops
    are given the state U^-1 z with Q = U diag(D) U', the noises of whose entries are independent.
    """

    A: np.ndarray
    C: np.ndarray
    Q: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray
    tau: tuple[float, ...] = ()

    @cached_property
    def _noise(self) -> tuple[np.ndarray, np.ndarray]:
        return upper(self.Q)

    def _untied(self, values: np.ndarray) -> np.ndarray:
        """Return U^-1 times a vector or matrix."""
        return np.asarray(scipy.linalg.solve_triangular(self._noise[0], values, unit_diagonal=True))

    @property
    def sizes(self) -> np.ndarray:
        """The number of entries of a state, and zeros, (4,)."""
        return np.array([len(self.C), 0, 0, 0], dtype=np.int64)

    @cached_property
    def form(self) -> tuple[np.ndarray, ...]:
        """The entries of `bayeszoo.likelihoods.loops.structural_states.Form`."""
        U, D = self._noise
        parts = np.vstack([U, self.C @ U]) if len(self.shown) > 1 else U
        arrays = self._untied(self.mean), self._untied(self.A @ U), D, parts
        return self.sizes, *map(np.ascontiguousarray, arrays)

    @cached_property
    def factors(self) -> tuple[np.ndarray, np.ndarray]:
        """U and D of the covariance matrix of the first state."""
        return upper(self._untied(self._untied(self.covariance).T))

    @property
    def shown(self) -> tuple[str, ...]:
        """The entries of the state, beginning with the level, and the mean of the row where it is another number."""
        names = ("level", *(f"state_{i}" for i in range(2, len(self.C) + 1)))
        return names if self.C.tolist() == [1.0] else (*names, SIGNAL)

    @property
    def codes(self) -> np.ndarray:
        """The numbers of the parts that are shown in compiled loops."""
        return np.arange(len(self.shown))

    @property
    def of_level(self) -> np.ndarray:
        """The coefficients of the state of the loops in the level."""
        return np.asarray(self._noise[0][0])

    @property
    def noises(self) -> int:
        """The number of independent noises in a step: the rank of Q."""
        return int(np.count_nonzero(self._noise[1]))

    @property
    def growth(self) -> float:
        """The largest absolute eigenvalue of A."""
        return float(np.max(np.abs(np.linalg.eigvals(self.A))))

    @property
    def seen(self) -> int:
        """The number of directions of the state that rows determine: the rank of C, C A, C A^2, ..."""
        return int(np.linalg.matrix_rank(self.responses(len(self.C))))

    def responses(self, rows: int) -> np.ndarray:
        """Return the responses C A^t of the mean of rows to a state t rows before, (rows, d)."""
        responses = [self.C]
        for _ in range(1, rows):
            responses.append(responses[-1] @ self.A)
        return np.array(responses[:rows]).reshape(rows, len(self.C))

    def reach(self) -> float:
        """Return the largest standard deviation of a row due to one step at most d rows before, for q = 1; or 1."""
        of_steps = self.responses(len(self.C))
        return float(np.sqrt(np.max(np.einsum("ti,ij,tj->t", of_steps, self.Q, of_steps)))) or 1.0

    def terms(self, data: Mapping[str, np.ndarray], seen: np.ndarray) -> dict[str, np.ndarray]:
        """Return terms of the covariance matrix of the rows seen, by the name of their sd; "" for the first states.

        They are sums over responses, independent of the filter.
        """
        place, sequence = places(data["sequence"]), data["sequence"]
        of_first = self.responses(int(place.max()) + 1)
        same = sequence[:, None] == sequence[None, :]
        first = np.where(same, (of_first @ self.covariance @ of_first.T)[np.ix_(place, place)], 0.0)
        steps, each = np.zeros(same.shape), of_first @ self.Q @ of_first.T
        for begin in range(1, len(of_first)):  # a step into the row at this place of a sequence
            after = np.flatnonzero(place >= begin)
            lag = place[after] - begin
            steps[np.ix_(after, after)] += each[np.ix_(lag, lag)]
        terms = {"": first, "q": np.where(same, steps, 0.0), "r": np.eye(len(place))}
        return {name: matrix[np.ix_(seen, seen)] for name, matrix in terms.items()}


def places(sequence: np.ndarray) -> np.ndarray:
    """Return the place of each row in its sequence, from 0."""
    begins = starts(sequence)
    return np.arange(len(sequence)) - np.repeat(begins, np.diff([*begins, len(sequence)]))


def table(value: object, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return a table of known numbers of a user, of a shape in which -1 stands for any length > 0; or refuse it.

    One number stands for a table of one entry.
    """
    try:
        numbers = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be lists of numbers of equal length, got {value!r}", "wrong_type") from None
    if not numbers.ndim and set(shape) <= {-1, 1}:
        numbers = numbers.reshape((1,) * len(shape))
    sizes = tuple(size if asked == -1 else asked for size, asked in zip(numbers.shape, shape, strict=False))
    if numbers.shape != sizes or len(numbers.shape) != len(shape) or not numbers.size:
        asked = " x ".join("d" if size == -1 else str(size) for size in shape) or "one number"
        line = f"{name} has the shape {' x '.join(map(str, numbers.shape)) or 'of one number'}, not {asked}"
        raise InputError(line, "wrong_shape", hint="A and Q are d x d, and C has d numbers")
    if not np.isfinite(numbers).all():
        raise InputError(f"{name} must be finite, got {value!r}", "out_of_range")
    return numbers


def covariance_table(value: Any, name: str, size: int) -> np.ndarray:
    """Return a covariance matrix, which may be singular; or refuse it."""
    matrix = table(value, name, (size, size))
    largest = float(np.max(np.abs(matrix)))
    if np.max(np.abs(matrix - matrix.T)) > NEGATIVE * largest:
        raise InputError(f"{name} is not symmetric", "not_symmetric")
    matrix = (matrix + matrix.T) / 2
    if (smallest := float(np.linalg.eigvalsh(matrix)[0])) < -NEGATIVE * largest:
        line = f"{name} is no covariance matrix: its smallest eigenvalue is {smallest:.4g}"
        raise InputError(line, "not_positive_definite")
    return matrix
