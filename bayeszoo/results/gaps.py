"""Gaps between an approximation's printed numbers and the posterior's, in units of each quantity's spread."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayeszoo.distributions.posterior import QUANTILES
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.gate import SHOWN_MEAN_GAP, SHOWN_SD_RATIO
from bayeszoo.foundation.tails import LIMITS

STATISTICS = ("mean", "sd", *QUANTILES)
_WIDTH = 3.92
"""Distance between the quantiles .025 and .975 of a normal distribution, in standard deviations."""
_STILL = 1e-9
"""Largest spread, relative to the size, of a quantity that counts as constant, such as the weight of one component."""


@dataclass(frozen=True, eq=False)
class Gaps:
    """Errors of an approximation of each entry of a quantity; NaN where unknown."""

    mean: np.ndarray
    """Error of the mean in posterior sd; without a posterior sd, error of the median in widths, as below."""
    sd: np.ndarray
    """Ratio of the sd to the posterior sd; without one, ratio of the widths of the 95% intervals."""
    quantile: np.ndarray
    """Largest error of a printed quantile, in posterior sd."""

    @property
    def are_shown(self) -> np.ndarray:
        """Which entries are close enough to be shown, at least with their gaps; unknown gaps count as close."""
        far = (np.abs(self.mean) > SHOWN_MEAN_GAP) | (self.sd > SHOWN_SD_RATIO) | (self.sd < 1 / SHOWN_SD_RATIO)
        return ~far


def statistics_of(draws: np.ndarray, has_moments: bool = True) -> np.ndarray:
    """Return the printed `STATISTICS` of draws (chain, draw, ...), along the first axis.

    A mean or sd that heavy tails of the draws leave unknown is NaN; both are NaN for a law without moments.
    """
    flat = draws.reshape(-1, *draws.shape[2:])
    tails = diagnostics.tail_shape(draws) if has_moments else np.full(flat.shape[1:], np.inf)
    mean = np.where(tails < LIMITS["mean"], flat.mean(axis=0), np.nan)
    sd = np.where(tails < LIMITS["sd"], flat.std(axis=0, ddof=1), np.nan)
    return np.stack([mean, sd, *np.quantile(flat, list(QUANTILES.values()), axis=0)])


def gaps(draws: np.ndarray, posterior: np.ndarray) -> Gaps:
    """Measure draws (chain, draw, ...) of an approximation against the `STATISTICS` of the posterior."""
    flat = draws.reshape(-1, *draws.shape[2:])
    quantiles = np.quantile(flat, list(QUANTILES.values()), axis=0)
    return gaps_of(np.stack([flat.mean(axis=0), flat.std(axis=0, ddof=1), *quantiles]), posterior)


def gaps_of(approximation: np.ndarray, posterior: np.ndarray) -> Gaps:
    """Measure the `STATISTICS` of an approximation against those of the posterior."""
    quantiles = approximation[2:]
    mean, sd, true_quantiles = posterior[0], posterior[1], posterior[2:]
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        width, true_width = ((values[-1] - values[0]) / _WIDTH for values in (quantiles, true_quantiles))
        has_sd = np.isfinite(mean) & np.isfinite(sd)
        spread = np.where(has_sd, sd, true_width)
        is_constant = spread <= _STILL * np.abs(true_quantiles[1])
        unit = np.where(is_constant, np.inf, spread)
        centre = np.where(has_sd, approximation[0] - mean, quantiles[1] - true_quantiles[1])
        ratio = np.where(has_sd, approximation[1], width) / spread
        furthest = np.max(np.abs(quantiles - true_quantiles), axis=0)
    return Gaps(centre / unit, np.where(is_constant, 1.0, ratio), furthest / unit)
