"""Time-series models: each row depends on earlier rows through a hidden state."""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import numpy as np

from bayeszoo.data.inputs import Series
from bayeszoo.distributions.averages.averaged import RowLaw
from bayeszoo.distributions.frozen import Frozen
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities.observable import Latent
from bayeszoo.model.views import View

LAGS_CHECKED = 10


class Estimates(NamedTuple):
    """Simulated values at each draw (...), and their standard errors (...)."""

    values: np.ndarray
    error: np.ndarray


class Sequential(Model, family=True):
    """Rows in one or several sequences: each has a hidden state that depends on the previous one.

    The state is one of K (`StatesInTime`), or a number (`LevelsInTime`). Leading axes of parameters are draws, except
    in steps that take one point.
    """

    @abstractmethod
    def log_rows(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the log density of each row given earlier rows of its sequence, (..., T); 0 for a missing row."""

    def log_likelihoods(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the log density of all rows."""
        return np.asarray(self.log_rows(params, data).sum(axis=-1))

    @abstractmethod
    def sampled_path(self, params: Params, data: Arrays, rng: np.random.Generator) -> np.ndarray:
        """Draw the states of all rows given all rows, at one point, shape (T,); discrete states count from 0."""

    @abstractmethod
    def rows_ahead(self, params: Params, data: Arrays, steps: int, new: Arrays | None = None) -> RowLaw:
        """Return the law of the rows after each sequence, (..., sequences * steps), sequence by sequence.

        ``new`` holds the features of these rows, if the model has features; their outcome is unknown.
        """

    @abstractmethod
    def rows_one_ahead(self, params: Params, data: Arrays, places: np.ndarray) -> RowLaw:
        """Return the law of the rows numbered ``places``, each given earlier rows of its sequence; none is missing."""

    def numbers_at_start(self, data: Arrays) -> int:
        """Return how many numbers of the first state are known from the prior only; 0 by default."""
        return 0

    @property
    def means_are_averages(self) -> bool:
        """Whether the mean of a row given earlier rows is a weighted average of these and of known numbers.

        It is bounded then, whatever the parameters are.
        """
        return False

    @property
    def lags_checked(self) -> int:
        """The largest lag at which the autocorrelation of residuals is checked."""
        return LAGS_CHECKED

    def sequences_share_parameters(self, data: Arrays) -> bool:
        """Say whether all sequences share inner parameters: other sequences then cannot be decoded alone."""
        return False

    @abstractmethod
    def known_parameters(self, data: Arrays) -> dict[str, np.ndarray]:
        """Return the parameters if all are known; else raise `InputError`."""

    def law(self, params: Params, seen: Arrays, new: Arrays, rng: np.random.Generator | None = None) -> RowLaw:
        """Return the distribution of the rows that follow the only sequence, each given the rows seen alone."""
        assert isinstance(self.inputs, Series)
        if not self.inputs.masked(new).all():
            hint = "give their number (--rows 3); `bayeszoo decode FIT NEW` scores other sequences"
            raise InputError(
                f"rows of {self.name} depend on earlier rows: only rows after the last can be predicted",
                "dependent_rows",
                hint=hint,
            )
        if np.any(seen["sequence"] != seen["sequence"][0]):
            hint = "`bayeszoo decode FIT --steps 3` predicts the rows after each"
            raise InputError(
                "the fit has several sequences: it is not known which one the new rows continue",
                "new_rows_unknown",
                hint=hint,
            )
        return self.rows_ahead(params, seen, self.inputs.size(new), new)


class StatesInTime(Sequential, Latent, family=True):
    """The hidden state of a row is one of K; `component_probabilities` is the probability of each given all rows."""

    def views(self) -> frozenset[View]:
        """Show the states over time."""
        return super().views() | {View.STATES}

    @abstractmethod
    def filtered(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the probability of each state given the rows so far, (..., T, K)."""

    @abstractmethod
    def log_prior(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the log density of the prior."""

    @abstractmethod
    def best_path(self, params: Params, data: Arrays) -> tuple[np.ndarray, float]:
        """Return the most probable path at one point, states counted from 0, (T,), and its log joint with the rows.

        Raises `NumericalError` where no path can give the rows.
        """

    @abstractmethod
    def ahead(self, params: Params, data: Arrays, steps: int) -> np.ndarray:
        """Return state probabilities after each sequence, (..., sequences * steps, K), sequence by sequence."""

    @abstractmethod
    def given_others(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the probability of each state given all other rows of its sequence, (..., T, K)."""

    @abstractmethod
    def rows_in(self, params: Params, data: Arrays, states: np.ndarray) -> RowLaw:
        """Return the distribution of rows whose states have these probabilities, (..., rows, K)."""

    def entropies(self, params: Params, data: Arrays) -> dict[str, np.ndarray]:
        """Return entropy rates in nats per step by name, shape (...); none by default."""
        return {}

    def simulated_entropies(self, params: Params, data: Arrays, rng: np.random.Generator) -> dict[str, Estimates]:
        """Return entropy rates that need simulation at each of n draws, shape (n,); none by default."""
        return {}

    @abstractmethod
    def predicted(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the probability of each state given the rows before, (..., T, K)."""

    def rows_one_ahead(self, params: Params, data: Arrays, places: np.ndarray) -> RowLaw:
        """Return the law of rows at ``places``, each given earlier rows, with states from `predicted`."""
        return self.rows_in(params, data, self.predicted(params, data)[..., places, :])

    def rows_ahead(self, params: Params, data: Arrays, steps: int, new: Arrays | None = None) -> RowLaw:
        """Return the law of the rows after each sequence, with states from `ahead`."""
        return self.rows_in(params, data, self.ahead(params, data, steps))

    def held_out(self, params: Params, seen: Arrays, places: np.ndarray) -> RowLaw:
        """Return the distribution of rows at ``places``, each given all other rows, earlier and later."""
        return self.rows_in(params, seen, self.given_others(params, seen)[..., places, :])


class LevelsInTime(Sequential, family=True):
    """The hidden state of a row is a number, its level, Gaussian given the parameters and any subset of rows."""

    def views(self) -> frozenset[View]:
        """Show the levels over time, and what comes next."""
        return super().views() | {View.LEVELS}

    @abstractmethod
    def smoothed(self, params: Params, data: Arrays) -> RowLaw:
        """Return the distribution of each level given all rows, (..., T)."""

    @abstractmethod
    def filtered(self, params: Params, data: Arrays) -> RowLaw:
        """Return the distribution of each level given the rows so far, (..., T)."""

    @abstractmethod
    def levels_ahead(self, params: Params, data: Arrays, steps: int) -> RowLaw:
        """Return the distribution of levels after each sequence, (..., sequences * steps), sequence by sequence."""

    def parts(self, data: Arrays) -> tuple[str, ...]:
        """Name the components of the state: the level first, and last the signal if the row's mean is not the level."""
        return ("level",)

    def smoothed_parts(self, params: Params, data: Arrays) -> RowLaw:
        """Return the distribution of each part given all rows, (..., parts * T), part by part."""
        return self.smoothed(params, data)

    def parts_ahead(self, params: Params, data: Arrays, steps: int, new: Arrays | None = None) -> RowLaw:
        """Return the distribution of each part after each sequence, (..., parts * sequences * steps)."""
        return self.levels_ahead(params, data, steps)

    def part(self, law: RowLaw, name: str, data: Arrays) -> RowLaw:
        """Return the distribution of one part of those in ``law``, (..., rows)."""
        parts = self.parts(data)
        if len(parts) == 1:
            return law
        assert isinstance(law, Frozen)
        size = np.shape(law.mean())[-1] // len(parts)
        return law.entries(size * parts.index(name) + np.arange(size))

    @abstractmethod
    def rows_about(self, params: Params, means: RowLaw) -> RowLaw:
        """Return the distribution of rows from the distribution of their means, (..., rows)."""

    def rows_ahead(self, params: Params, data: Arrays, steps: int, new: Arrays | None = None) -> RowLaw:
        """Return the law of the rows after each sequence, about their means."""
        ahead = self.parts_ahead(params, data, steps, new)
        return self.rows_about(params, self.part(ahead, self.parts(data)[-1], data))

    def known_parameters(self, data: Arrays) -> dict[str, np.ndarray]:
        """Refuse to decode without a fit: the parameters are unknown."""
        raise InputError(f"the parameters of {self.name} are unknown", "unknown_field", hint="fit it first")
