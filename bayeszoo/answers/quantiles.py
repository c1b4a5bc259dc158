"""Quantiles of rows averaged over the draws of a fit, and their Monte Carlo errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bayeszoo.distributions.averaged import Averaged
from bayeszoo.distributions.posterior import QUANTILES
from bayeszoo.foundation import diagnostics

MOST, MOST_OF_COUNTS, LEAST_DRAWS = 2**20, 2**17, 400
"""Numbers of a table of draws by rows, of more than which an even selection of draws gives the quantiles, those of
counts, whose distribution functions are dear; and how many draws are taken at least: those of a mixture need few."""
_APART = 1e-3
"""Distance from a quantile, relative to the width of the 95% interval, over which the density there is measured."""


class Quantiles(NamedTuple):
    """Quantiles by their names, and their Monte Carlo errors, NaN where there is none."""

    values: dict[str, np.ndarray]
    errors: dict[str, np.ndarray]

    @classmethod
    def exact(cls, law: Any) -> Quantiles:
        """Take the quantiles of a distribution that is known."""
        return cls.without_error({name: np.asarray(law.ppf(level)) for name, level in QUANTILES.items()})

    @classmethod
    def without_error(cls, values: Mapping[str, np.ndarray]) -> Quantiles:
        """Take quantiles that have no Monte Carlo error."""
        return cls(dict(values), {name: np.full(np.shape(value), np.nan) for name, value in values.items()})

    @classmethod
    def of_draws(cls, draws: np.ndarray, *, independent: bool = False) -> Quantiles:
        """Take the quantiles of numbers (chain, draw, ...), NaN where one is infinite or none."""
        mcse = diagnostics.mcse_of_independent if independent else diagnostics.mcse
        is_finite = np.isfinite(draws).all((0, 1))
        known = np.where(is_finite, draws, 0.0)
        with np.errstate(invalid="ignore"):  # infinity less itself
            values = dict(zip(QUANTILES, np.quantile(draws, [*QUANTILES.values()], axis=(0, 1)), strict=True))
        errors = {name: mcse(known, "quantile", level) for name, level in QUANTILES.items()}
        return cls(values, {name: np.where(is_finite, error, np.nan) for name, error in errors.items()})

    @classmethod
    def joined(cls, parts: Sequence[Quantiles]) -> Quantiles:
        """Join the rows of several parts."""
        values, errors = (
            {name: np.concatenate([each[i][name] for each in parts]) for name in QUANTILES} for i in range(2)
        )
        return cls(values, errors)

    def columns(self) -> dict[str, np.ndarray]:
        """Return the errors by the names of their columns."""
        return {f"mcse_{name}": error for name, error in self.errors.items()}


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
        Numbers that the rows have at each draw.
    counts : bool
        Whether they are counts.
    independent : bool
        Whether the draws are independent, not those of chains.

    Notes
    -----
    Of the mixture, not of draws from it: the error is that of the probability below the quantile, a mean over draws of
    parameters, over the density there.
    """
    chains, length = next(iter(draws.values())).shape[:2]
    step = max(1, min(chains * length // LEAST_DRAWS, chains * length * size // (MOST_OF_COUNTS if counts else MOST)))
    some = {name: values[:, ::step] for name, values in draws.items()}
    mixture = Averaged(law({name: values.reshape(-1, *values.shape[2:]) for name, values in some.items()}))
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
