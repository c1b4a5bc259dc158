"""What the states of a hidden Markov model emit, where the user knows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bayeszoo.distributions.posterior import Posterior
from bayeszoo.errors import InputError
from bayeszoo.families.hmm.emissions import Emissions
from bayeszoo.model.base import Values


def known_numbers(values: Mapping[str, Any], K: int) -> dict[str, tuple[np.float64, ...]]:
    """Check numbers that are known of each state; those of no name but ``means`` are > 0."""
    checked = {}
    for name, value in values.items():
        if value is None:
            continue
        try:
            numbers = np.array(value, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"{name} must be a list of numbers, got {value!r}") from None
        if numbers.shape != (K,):
            raise InputError(
                f"{name} is {' x '.join(map(str, numbers.shape)) or 'one number'}, but there are K={K} states"
            )
        if not np.isfinite(numbers).all() or (name != "means" and not np.all(numbers > 0)):
            raise InputError(f"{name} must be finite{' and > 0' * (name != 'means')}, got {value!r}")
        checked[name] = tuple(map(np.float64, numbers))
    return checked


class KnownEmissions(Emissions):
    """Emissions of known parameters, each of shape (K,): they have none of their own, and no prior."""

    own, free, unbounded = (), 0, ""

    def __init__(self, of: Emissions, known: Values) -> None:
        self.of, self.known = of, {name: np.asarray(values, dtype=np.float64) for name, values in known.items()}
        self.K = len(next(iter(self.known.values())))

    def seen(self, y: np.ndarray) -> np.ndarray:
        """Say which rows have an observation."""
        return self.of.seen(y)

    def log_density(self, params: Values, y: np.ndarray) -> np.ndarray:
        """Log density of each row in each state."""
        return self.of.log_density(self.known, y)

    def expected_log_density(self, hyper: Any, y: np.ndarray) -> np.ndarray:
        """Return the same: nothing is random."""
        return self.log_density({}, y)

    def moments(self, each: np.ndarray, y: np.ndarray) -> None:
        """Return nothing: there is nothing to be learnt."""

    def pooled(self, stats: None, other: None) -> None:
        """Return nothing."""

    def updated(self, stats: Any) -> None:
        """Return nothing."""

    def mode(self, stats: Any, flat: bool) -> dict[str, np.ndarray]:
        """Return no parameter."""
        return {}

    def middle(self, hyper: Any) -> dict[str, np.ndarray]:
        """Return no parameter."""
        return {}

    def log_prior(self, params: Values) -> Any:
        """Log density of nothing."""
        return 0.0

    def divergence(self, hyper: Any) -> float:
        """Return that of no parameter."""
        return 0.0

    def posterior(self, hyper: Any) -> list[Posterior]:
        """Return no distribution."""
        return []

    def log_pairs(self, hyper: Any, params: Values) -> np.ndarray:
        """Log density of nothing."""
        return np.zeros((self.K, self.K))

    def log_evidence(self, paths: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Log density of the rows given paths of states."""
        return self.log_density({}, y)[np.arange(len(y)), paths].sum(axis=1)

    def next_mean(self, params: Values, next_state: np.ndarray) -> np.ndarray:
        """Return the mean of a row."""
        return self.of.next_mean(self.known, next_state)

    def clusters(self, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return a state for each observed row."""
        return self.of.clusters(y, rng)
