"""Moments and quantiles of rows averaged over the draws of a fit, and their Monte Carlo errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bayeszoo.answers.averages import Bounds, error_between
from bayeszoo.distributions.averages.averaged import Averaged
from bayeszoo.distributions.posterior import QUANTILES
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.named import Params
from bayeszoo.foundation.tails import Moments, moments, reasons, unjudged
from bayeszoo.model.draws import every, flat, shape_of

MOST, MOST_OF_COUNTS, LEAST_DRAWS = 2**20, 2**17, 400
"""Largest number of draws times rows, above which evenly spaced draws give the quantiles: of numbers, and of counts,
whose distribution functions are slow; and the fewest draws taken: quantiles of a mixture need few."""
CARRIED_BY_FEW = "few draws carry it"
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
        mcse = partial(diagnostics.mcse, independent=independent)
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
    mean = np.asarray(at_draws.mean())
    shape = *shape_of(draws), mean.size // math.prod(shape_of(draws))
    row_moments = moments_over_draws(at_draws, mean, shape, independent=independent)
    counts = hasattr(at_draws, "logpmf")
    return row_moments, over_draws(law, draws, shape[-1], counts=counts, independent=independent)


def moments_over_draws(law: Any, mean: np.ndarray, shape: tuple[int, ...], *, independent: bool) -> Moments:
    """Return the moments of a law averaged over draws, from its mean at each; ``shape`` begins with chain and draw."""

    def of_shape(values: Any) -> np.ndarray:
        return np.broadcast_to(np.asarray(values, dtype=np.float64), mean.shape).reshape(shape)

    means, variances = of_shape(mean), of_shape(law.var())
    low, high = map(of_shape, law.support() if hasattr(law, "support") else (-np.inf, np.inf))
    bounds = low.min(axis=(0, 1)), high.max(axis=(0, 1))
    if np.isfinite(bounds).all():
        return _of_bounded(means, variances, bounds, independent)
    return moments(means, variances, independent=independent)


def _of_bounded(means: np.ndarray, variances: np.ndarray, bounds: Bounds, independent: bool) -> Moments:
    """Return the moments of bounded values, all of which exist; an sd that few draws carry is withheld."""
    raw = unjudged(means, variances, independent)
    error = error_between(bounds, raw["mean"], raw["mcse_mean"], means)
    # a mean that is the bound itself by rounding tells nothing of its distance
    is_lost = (variances == 0).any(axis=(0, 1))
    error = np.where(is_lost, np.fmax(error, (bounds[1] - bounds[0]) / (means.shape[0] * means.shape[1])), error)
    is_kept = {name: name.endswith("mean") | (error == raw["mcse_mean"]) for name in raw}
    kept = {name: np.where(is_kept[name], values, np.nan) for name, values in (raw | {"mcse_mean": error}).items()}
    return Moments(**kept, withheld=reasons(is_kept, lambda _: CARRIED_BY_FEW))


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
    errors = {}
    for name, quantile in values.items():
        below = mixture.below(quantile)
        of_chains = below.reshape(chains, -1, *below.shape[1:])
        with np.errstate(divide="ignore", invalid="ignore"):
            density = (mixture.cdf(quantile + apart) - mixture.cdf(quantile - apart)) / (2 * apart)
            errors[name] = diagnostics.mcse(of_chains, independent=independent) / density
    return Quantiles(values, errors)
