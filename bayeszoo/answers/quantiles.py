"""Quantiles of rows averaged over the draws of a fit, and their Monte Carlo errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bayeszoo.distributions.averages.averaged import Averaged
from bayeszoo.distributions.posterior import QUANTILES
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.named import Params
from bayeszoo.foundation.tails import Moments, moments
from bayeszoo.model.draws import every, flat, shape_of

MOST, MOST_OF_COUNTS, LEAST_DRAWS = 2**20, 2**17, 400
"""Largest number of draws times rows, above which evenly spaced draws give the quantiles: of numbers, and of counts,
whose distribution functions are slow; and the fewest draws taken: quantiles of a mixture need few."""
_APART = 1e-3
"""Distance on both sides of a quantile over which its density is measured, relative to the 95% interval's width."""


class Quantiles(NamedTuple):
    """Named quantiles, and their Monte Carlo errors, NaN if there are none."""

    values: dict[str, np.ndarray]
    errors: dict[str, np.ndarray]

    @classmethod
    def exact(cls, law: Any) -> Quantiles:
        """Return the quantiles of a distribution with a quantile function."""
        return cls.without_error({name: np.asarray(law.ppf(level)) for name, level in QUANTILES.items()})

    @classmethod
    def without_error(cls, values: Mapping[str, np.ndarray]) -> Quantiles:
        """Return quantiles without Monte Carlo error."""
        return cls(dict(values), {name: np.full(np.shape(value), np.nan) for name, value in values.items()})

    @classmethod
    def of_draws(cls, draws: np.ndarray, *, independent: bool = False) -> Quantiles:
        """Return the quantiles of draws (chain, draw, ...), with errors that are NaN if a draw is not finite."""
        mcse = diagnostics.mcse_of_independent if independent else diagnostics.mcse
        is_finite = np.isfinite(draws).all((0, 1))
        finite_draws = np.where(is_finite, draws, 0.0)
        with np.errstate(invalid="ignore"):  # infinity less itself
            values = dict(zip(QUANTILES, np.quantile(draws, [*QUANTILES.values()], axis=(0, 1)), strict=True))
        errors = {name: mcse(finite_draws, "quantile", level) for name, level in QUANTILES.items()}
        return cls(values, {name: np.where(is_finite, error, np.nan) for name, error in errors.items()})

    @classmethod
    def joined(cls, parts: Sequence[Quantiles]) -> Quantiles:
        """Join the rows of several parts."""
        values, errors = (
            {name: np.concatenate([part[i][name] for part in parts]) for name in QUANTILES} for i in range(2)
        )
        return cls(values, errors)

    def columns(self) -> dict[str, np.ndarray]:
        """Return the errors as named columns."""
        return {f"mcse_{name}": error for name, error in self.errors.items()}


def summary_over_draws(law: Callable[[Params], Any], draws: Params, *, independent: bool) -> tuple[Moments, Quantiles]:
    """Return moments and quantiles of a law averaged over draws, of all values in one axis; see `over_draws`."""
    at_draws = law(flat(draws))
    means, variances = (np.reshape(values, (*shape_of(draws), -1)) for values in (at_draws.mean(), at_draws.var()))
    counts = hasattr(at_draws, "logpmf")
    quantiles = over_draws(law, draws, means.shape[-1], counts=counts, independent=independent)
    return moments(means, variances, independent=independent), quantiles


def over_draws(
    law: Callable[[Mapping[str, np.ndarray]], Any],
    draws: Mapping[str, np.ndarray],
    size: int,
    *,
    counts: bool,
    independent: bool,
) -> Quantiles:
    """Return the quantiles of a law averaged over draws.

    Parameters
    ----------
    law : callable
        Maps parameters (points, ...) to the distribution of the rows, (points, rows, ...).
    draws : mapping of str to ndarray
        The parameters, (chain, draw, ...).
    size : int
        The number of values at each draw, over all rows.
    counts : bool
        Whether the values are counts.
    independent : bool
        Whether the draws are independent, not from Markov chains.

    Notes
    -----
    Quantiles are of the mixture, not of draws from it: the error is that of the probability below the quantile, a mean
    over draws of parameters, divided by the density at the quantile.
    """
    chains, length = shape_of(draws)
    step = max(1, min(chains * length // LEAST_DRAWS, chains * length * size // (MOST_OF_COUNTS if counts else MOST)))
    mixture = Averaged(law(flat(every(draws, step))))
    values = {name: mixture.ppf(level) for name, level in QUANTILES.items()}
    apart = np.maximum(_APART * (values["q975"] - values["q025"]), 0.5 if counts else 0.0)
    mcse = diagnostics.mcse_of_independent if independent else diagnostics.mcse
    errors = {}
    for name, quantile in values.items():
        below = mixture.below(quantile)
        with np.errstate(divide="ignore", invalid="ignore"):
            density = (mixture.cdf(quantile + apart) - mixture.cdf(quantile - apart)) / (2 * apart)
            errors[name] = mcse(below.reshape(chains, -1, *below.shape[1:])) / density
    return Quantiles(values, errors)
