"""How far an approximation's printed numbers are from the posterior's, for each quantity in its own units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayeszoo.distributions.posterior import QUANTILES
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.gate import SHOWN_MEAN_GAP, SHOWN_SD_RATIO
from bayeszoo.foundation.tails import LIMITS

STATISTICS = ("mean", "sd", *QUANTILES)
_WIDTH = 3.92
"""Standard deviations of a normal distribution between its quantiles .025 and .975."""
_STILL = 1e-9
"""Spread of a quantity, relative to its size, up to which it is a constant, as the weight of a single component."""


@dataclass(frozen=True, eq=False)
class Gaps:
    """Errors of an approximation of each entry of a quantity; NaN where they are not known."""

    mean: np.ndarray
    """Error of the mean, in sd of the posterior; where the posterior has no sd, of the median, as below."""
    sd: np.ndarray
    """Ratio of the sd to the posterior's; where that has none, of the widths of the 95% intervals."""
    quantile: np.ndarray
    """Largest error of a printed quantile, in sd of the posterior."""

    @property
    def are_shown(self) -> np.ndarray:
        """Which entries are near enough to be shown, at least with their gaps; unknown ones count as near."""
        far = (np.abs(self.mean) > SHOWN_MEAN_GAP) | (self.sd > SHOWN_SD_RATIO) | (self.sd < 1 / SHOWN_SD_RATIO)
        return ~far


def statistics_of(draws: np.ndarray, has_moments: bool = True) -> np.ndarray:
    """Return the printed `STATISTICS` of draws (chain, draw, ...), along the first axis.

    A mean or sd that the tails of the draws do not tell is NaN, as are both where there are none.
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
        still = spread <= _STILL * np.abs(true_quantiles[1])
        unit = np.where(still, np.inf, spread)
        centre = np.where(has_sd, approximation[0] - mean, quantiles[1] - true_quantiles[1])
        ratio = np.where(has_sd, approximation[1], width) / spread
        furthest = np.max(np.abs(quantiles - true_quantiles), axis=0)
    return Gaps(centre / unit, np.where(still, 1.0, ratio), furthest / unit)
