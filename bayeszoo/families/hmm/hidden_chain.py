"""Checked tables and rows of a hidden Markov chain, and the one pass that everything about its states needs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import lazy_loader
import numpy as np

from bayeszoo.errors import InputError, NumericalError

# numba takes its time, which `bayeszoo list` need not wait for
hmm_loops = lazy_loader.load("bayeszoo.likelihoods.loops.hmm", suppress_warning=True)
vectors = lazy_loader.load("bayeszoo.likelihoods.loops.vectors", suppress_warning=True)


@dataclass(frozen=True, eq=False)
class Tables:
    """Initial (K,) and transition (K, K), whose rows sum to one or less, and the first rows of the sequences.

    Raises
    ------
    InputError
        Where they are not that.
    """

    initial: np.ndarray
    transition: np.ndarray
    starts: np.ndarray

    @classmethod
    def checked(cls, initial: Any, transition: Any, starts: Any, size: int) -> Tables:
        """Check tables, and starts of sequences in ``size`` rows; by default one."""
        start, to = (np.ascontiguousarray(table, dtype=np.float64) for table in (initial, transition))
        if start.ndim != 1 or start.size == 0 or to.shape != (start.size, start.size):
            raise InputError(f"shapes do not fit: initial {start.shape}, transition {to.shape}")
        for name, table in (("initial", start), ("transition", to)):
            if not np.all(table >= 0) or not np.all(table.sum(axis=-1) <= 1 + 1e-8):
                raise InputError(f"{name} must be probabilities, of sum one or less")
        return cls(start, to, _first_rows(starts, size))

    @property
    def states(self) -> int:
        """K."""
        return self.initial.size

    @property
    def zeros(self) -> Any:
        """What compiled passes know K from."""
        return vectors.zeros(self.states)

    @cached_property
    def logs(self) -> tuple[np.ndarray, np.ndarray]:
        """Logarithms of initial and transition."""
        with np.errstate(divide="ignore"):
            return np.log(self.initial), np.log(self.transition)


def _first_rows(starts: Any, size: int) -> np.ndarray:
    firsts = np.ascontiguousarray([0] * min(size, 1) if starts is None else starts, dtype=np.int64)
    if firsts.ndim != 1 or not np.array_equal(firsts[:1], [0] * min(size, 1)) or not np.all(np.diff(firsts) > 0):
        raise InputError("starts are the first rows of the sequences: 0, and then increasing")
    if np.any(firsts >= size):
        raise InputError(f"a sequence cannot start at row {firsts[-1] + 1} of {size}")
    return firsts


@dataclass(frozen=True, eq=False)
class Chain:
    """Tables, and log densities of the rows in each state, (T, K), which are 0 where the observation is missing."""

    tables: Tables
    log_b: np.ndarray

    @classmethod
    def checked(cls, initial: Any, transition: Any, log_b: Any, starts: Any, missing: Any) -> Chain:
        """Check what the functions of `hidden_markov` take."""
        rows = np.array(log_b, dtype=np.float64, order="C")
        tables = Tables.checked(initial, transition, starts, len(rows))
        if rows.ndim != 2 or rows.shape[1] != tables.states:
            raise InputError(f"shapes do not fit: {tables.states} states, log_b {rows.shape}")
        if missing is not None:
            if np.shape(missing) != (len(rows),):
                raise InputError(f"missing has shape {np.shape(missing)}, the data have {len(rows)} rows")
            rows[np.asarray(missing, dtype=bool)] = 0.0
        if not np.all(rows < np.inf):
            raise InputError("log_b must be log densities: neither NaN nor infinite above")
        return cls(tables, rows)

    @cached_property
    def opens(self) -> np.ndarray:
        """Marks of the first rows of the sequences, shape (T,)."""
        marks = np.zeros(len(self.log_b), dtype=bool)
        marks[self.tables.starts] = True
        return marks

    def log_predicted(self) -> tuple[np.ndarray, float]:
        """Return log p(z_t | rows before t of its sequence), shape (T, K), and the log likelihood.

        Raises
        ------
        NumericalError
            Where no path of states can give the rows; it says which row is the first.
        """
        rows, logs = np.arange(len(self.log_b)), np.full_like(self.log_b, -np.inf)
        b = np.ascontiguousarray(self.log_b.T)
        value = hmm_loops.log_forward(*self.tables.logs, b, rows, self.opens, logs)
        if value == -np.inf:
            row = int(np.argmax(np.all(logs + self.log_b == -np.inf, axis=1))) + 1
            raise NumericalError(
                f"the data are impossible: no state that can follow the rows before can give row {row}"
            )
        return logs, float(value)
