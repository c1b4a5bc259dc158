"""Component probabilities, or latent means, of rows averaged over draws, with their Monte Carlo errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bayeszoo.answers.averages import Bounds, LeftOut, error_between
from bayeszoo.foundation import diagnostics

_ALIKE = 0.01
"""Largest spread of the draws of a probability, or of a latent mean, at which it needs no weights."""
_UNIT = (0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Assignments:
    """The mean over draws of the probability of each row's component, and its Monte Carlo error, shape (rows, K).

    The errors of the expected loss, shape (rows,), and of its sum are for the chosen labels. The probability is NaN if
    the row is impossible under all components at some draw; the errors of a point estimate are NaN.
    """

    probability: np.ndarray
    mcse: np.ndarray
    mcse_expected_loss: np.ndarray
    mcse_expected_errors: float
    is_known: np.ndarray
    """Rows whose mean is not carried by few draws, shape (rows,)."""

    @property
    def label(self) -> np.ndarray:
        """The most probable component, counted from 0, shape (rows,), which has the smallest expected 0-1 loss.

        Ties go to the first; the label is meaningless if the probabilities are NaN.
        """
        return np.argmax(self.probability, axis=1)

    @classmethod
    def of_draws(cls, probabilities: np.ndarray, in_batch: int = 1) -> Assignments:
        """Average the probabilities (chain, draw, rows, K) of draws, or of batches of ``in_batch`` draws."""
        mean = probabilities.mean(axis=(0, 1))
        label = np.argmax(mean, axis=1)
        losses = np.sum(probabilities, axis=3, where=np.arange(mean.shape[1]) != label[:, None])
        possible = ~np.isnan(mean).any(axis=1)
        total = losses[..., possible].sum(axis=2, keepdims=True)
        of_loss, of_total = _error(losses, in_batch), float(_error(total, in_batch, float(possible.sum()))[0])
        errors = _error(probabilities, in_batch)
        np.put_along_axis(errors, label[:, None], of_loss[:, None], axis=1)
        return cls(mean, errors, of_loss, of_total, np.ones(len(mean), dtype=bool))

    @classmethod
    def of_weighed(cls, probabilities: np.ndarray, weights: LeftOut) -> tuple[Assignments, np.ndarray]:
        """As `of_draws`, for draws that have weights for each row; also return how far each draw moves the total."""
        mean = weights.mean(probabilities)
        losses = np.sum(probabilities, axis=3, where=np.arange(mean.shape[1]) != np.argmax(mean, axis=1)[:, None])
        possible = ~np.isnan(mean).any(axis=1)
        errors, is_known = _errors(probabilities, weights, _UNIT)
        of_loss, moved = _errors(losses, weights, _UNIT)[0], weights.influence(losses)[..., possible].sum(axis=2)
        np.put_along_axis(errors, np.argmax(mean, axis=1)[:, None], of_loss[:, None], axis=1)
        return cls(mean, errors, of_loss, math.nan, is_known | ~possible), moved

    @classmethod
    def together(cls, parts: Sequence[Assignments], mcse_expected_errors: float) -> Assignments:
        """Return the assignments of blocks of rows as those of all rows."""
        names = ("probability", "mcse", "mcse_expected_loss", "is_known")
        columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        joined = cls(**columns, mcse_expected_errors=mcse_expected_errors)
        least = np.nanmax(joined.mcse_expected_loss, initial=0.0)
        return replace(joined, mcse_expected_errors=max(mcse_expected_errors, least))

    @property
    def impossible(self) -> np.ndarray:
        """Which rows are impossible under all components, shape (rows,)."""
        return np.isnan(self.probability).any(axis=1)

    @property
    def expected_loss(self) -> np.ndarray:
        """The probability that the label is wrong, shape (rows,)."""
        others = np.arange(self.probability.shape[1]) != self.label[:, None]
        return np.sum(self.probability, axis=1, where=others)

    def only(self, shown: np.ndarray) -> Assignments:
        """Return the assignments with NaN for rows that are not ``shown``."""
        probability, mcse = (np.where(shown[:, None], values, np.nan) for values in (self.probability, self.mcse))
        of_loss = np.where(shown, self.mcse_expected_loss, np.nan)
        return replace(self, probability=probability, mcse=mcse, mcse_expected_loss=of_loss)

    @property
    def expected_errors(self) -> float:
        """The expected number of wrong labels among possible rows."""
        return float(self.expected_loss[~self.impossible].sum())


@dataclass(frozen=True, eq=False)
class Latents:
    """Posterior mean of each row's latent number and its Monte Carlo standard error, of shape (rows,).

    ``sd_of_means`` is the standard deviation over draws of its mean given the parameters, without its variance given
    the parameters. It and the error are NaN for a point estimate.
    """

    mean: np.ndarray
    sd_of_means: np.ndarray
    mcse: np.ndarray
    is_known: np.ndarray
    """Rows whose mean is not carried by few draws, shape (rows,)."""

    @classmethod
    def of_weighed(cls, values: np.ndarray, weights: LeftOut) -> tuple[Latents, np.ndarray]:
        """Average draws (chain, draw, rows) that have weights for each row; also return zeros, as there is no total."""
        errors, is_known = _errors(values, weights)
        mean = weights.mean(values)
        variance = weights.mean(np.square(values - mean))
        return cls(mean, np.sqrt(np.maximum(variance, 0.0)), errors, is_known), np.zeros(values.shape[:2])

    @classmethod
    def together(cls, parts: Sequence[Latents], _: float) -> Latents:
        """Return the means of blocks of rows as those of all rows."""
        names = ("mean", "sd_of_means", "mcse", "is_known")
        return cls(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})

    def only(self, shown: np.ndarray) -> Latents:
        """Return the means with NaN for rows that are not ``shown``."""
        mean, sd, mcse = (np.where(shown, values, np.nan) for values in (self.mean, self.sd_of_means, self.mcse))
        return Latents(mean, sd, mcse, self.is_known)


def _error(values: np.ndarray, in_batch: int, most: float = 1.0) -> np.ndarray:
    """Return the Monte Carlo error of the mean of batches of values from 0 to ``most``."""
    draws = in_batch * values.shape[0] * values.shape[1]
    return error_between((0.0, most), values.mean(axis=(0, 1)), diagnostics.mcse(values), values, draws)


def _errors(values: np.ndarray, weights: LeftOut, bounds: Bounds | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return Monte Carlo errors of weighed means of values (chain, draw, rows, ...), and which rows are reliable.

    Where few draws carry the mean it is between the least and the largest value: known if these are alike.
    """
    spread = np.ptp(values, axis=(0, 1))
    row_spread = spread.reshape(len(spread), -1).max(axis=1)
    is_few = np.reshape(~weights.is_known, (-1, *[1] * (spread.ndim - 1)))
    error = weights.error(values, bounds)
    error = np.where(is_few, np.maximum(spread, error), error)
    return error, weights.is_known | (row_spread <= _ALIKE)
