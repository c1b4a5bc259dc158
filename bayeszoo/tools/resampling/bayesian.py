"""The Bayesian bootstrap: the posterior of a functional of rows, without a model of their distribution.

Also the classical bootstrap, with multinomial weights: the sampling distribution of the functional.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import Matrix, Real
from bayeszoo.data.read import Data, read
from bayeszoo.data.table.table import quoted, shown
from bayeszoo.data.without_model import TableOf
from bayeszoo.distributions.posterior import QUANTILES
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.blocks import AT_ONCE, blocks
from bayeszoo.foundation.streams import stream
from bayeszoo.foundation.tails import LIMITS, moments
from bayeszoo.tools.resampling.functionals import MOST_EXACT, Functional, Weighted, functional_of

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = lazy_loader.load("pandas")

FEWEST_DRAWS = 100
"""Fewest draws that give a quantile and its Monte Carlo error."""
WEIGHTS = ("dirichlet", "multinomial")
RESAMPLED = "sampling distribution of the functional over resampled rows, and no posterior of it"
ABOUT = "no prior and no evidence: only the rows have weight, and no draw goes beyond them"


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """The posterior of a functional by the Bayesian bootstrap.

    Attributes
    ----------
    functional : str
        The name of the functional.
    of_rows : float
        The functional of the rows, each with the same weight.
    draws : ndarray
        Independent draws from the posterior of the functional, shape (draws,).
    law : Any
        The exact posterior, with ``mean()``, ``std()``, ``cdf(x)`` and ``ppf(q)``; None without a closed form.
    seed : int
        Source of the weights.
    data : Data
        The rows.
    notes : tuple of str
        Notes about the posterior.
    """

    functional: str
    of_rows: float
    draws: np.ndarray
    law: Any
    seed: int
    data: Data
    notes: tuple[str, ...]

    @property
    def kind(self) -> str:
        """Whether the numbers are exact or sampled; a mean of many rows has exact moments and sampled quantiles."""
        if self.law is None:
            return "sampled"
        return "exact" if self._has_quantiles else "mean and sd exact, quantiles sampled"

    @property
    def _has_quantiles(self) -> bool:
        return self.functional != "mean" or self.data.rows <= MOST_EXACT

    @property
    def summary(self) -> pd.DataFrame:
        """One row: mean, sd, median and 95% interval, and their Monte Carlo errors, 0 where they are exact."""
        chain = self.draws[None]
        columns = dict[str, float](of_rows=self.of_rows)
        if self.law is None:
            of_draws = moments(chain, independent=True)  # a user's function may have heavy tails
            columns |= {name: float(getattr(of_draws, name)) for name in LIMITS}
        else:
            columns |= {"mean": self.law.mean(), "mcse_mean": 0.0, "sd": self.law.std(), "mcse_sd": 0.0}
        for name, level in QUANTILES.items():
            if self.law is not None and self._has_quantiles:
                columns |= {name: self.law.ppf(level), f"mcse_{name}": 0.0}
            else:
                error = diagnostics.mcse(chain, "quantile", prob=level)
                columns |= {name: float(np.quantile(chain, level)), f"mcse_{name}": float(error)}
        return pd.DataFrame([columns], index=pd.Index([self.functional], name="functional"))


def bootstrap(
    data: object,
    functional: str | Weighted = "mean",
    *,
    weights: str = "dirichlet",
    draws: int = 4000,
    seed: int | None = None,
    **options: object,
) -> Bootstrap:
    """Draw from the posterior of a functional of rows by the Bayesian bootstrap (Rubin 1981).

    The weights of the rows are Dirichlet(1, ..., 1): a Dirichlet process without a base measure. There is no prior
    beyond the rows, hence no evidence, and values that no row has get no probability.

    Parameters
    ----------
    data : anything that `read` takes
        One column of real numbers, two for a correlation, or any number for a callable.
    functional : str or callable
        "mean", "median", "quantile:P" with P between 0 and 1, "sd" (with divisor n), "correlation", or
        ``f(values, weights)``, which returns a number: values have shape (n,), or (n, columns) for several columns, and
        weights have shape (n,) and add up to 1.
    weights : str
        "dirichlet", or "multinomial": rows drawn with replacement, the classical bootstrap of Efron (1979), which
        gives the sampling distribution of the functional, not its posterior. Each row is then missing from
        (1 - 1/n)^n, nearly exp(-1), of the samples.
    draws : int
        Number of draws of the weights, at least 100.
    seed : int, optional
        Source of the weights; one is drawn without it.
    **options
        Options of `read`: ``column``, or ``columns`` for several, and the format of the file.

    Returns
    -------
    Bootstrap
        Its ``summary`` is exact for a mean and for quantiles, whose ``law`` has a closed form; for other functionals it
        is estimated from the draws, with Monte Carlo errors.

    Raises
    ------
    InputError
        When the functional does not exist, the table lacks its columns, or a column of a correlation is constant.
    NumericalError
        When a callable returns a non-finite number.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> answer = bz.bootstrap([1.0, 2.0, 4.0, 9.0], "mean", seed=1)
    >>> answer.kind, answer.law.mean(), round(answer.law.std(), 6)
    ('exact', 4.0, 1.378405)
    """
    checked = functional_of(functional)
    if draws < FEWEST_DRAWS:
        raise InputError(f"draws must be >= {FEWEST_DRAWS}, got {shown(draws)}", "out_of_range")
    if weights not in WEIGHTS:
        raise InputError(f"there are no weights {shown(weights)}", "unknown_name", hint=f"take {' or '.join(WEIGHTS)}")
    rows = _read(checked, data, options)
    values = _values(checked, rows)
    seed = secrets.randbelow(2**31 - 1) if seed is None else seed
    is_bayesian = weights == "dirichlet"
    rng = stream(seed, "bootstrap", *([] if is_bayesian else [weights]), checked.name, rows.digest)
    sampled = _draws(checked, values, draws, rng, _exponential if is_bayesian else _multinomial)
    if not np.isfinite(sampled).all():
        raise NumericalError(
            f"the {checked.name} has draws that are not finite: give more different rows", "not_finite"
        )
    law = checked.law(values) if checked.law is not None and is_bayesian else None
    notes = _notes(checked, values, ABOUT if is_bayesian else RESAMPLED)
    return Bootstrap(checked.name, checked.of_rows(values), sampled, law, seed, rows, tuple(notes))


def _read(functional: Functional, data: Any, options: dict[str, Any]) -> Data:
    """Read the columns that a functional takes."""
    is_one = functional.columns == 1 or (functional.columns is None and options.get("column") is not None)
    wanted, other = ("column", "columns") if is_one else ("columns", "column")
    if options.get(other) is not None:
        several = "one column" if is_one else "several columns"
        raise InputError(f"a {functional.name} takes {several}", "wrong_columns", hint=f"name it with --{wanted}")
    return read(TableOf(Real("y") if is_one else Matrix("Y")), data, **options)


def _values(functional: Functional, rows: Data) -> np.ndarray:
    """Return the values that a functional takes, shape (n,) or (n, columns)."""
    if "y" in rows:
        return rows["y"]
    values, names = rows["Y"], rows["column"].tolist()
    if functional.columns is None:
        return values[:, 0] if len(names) == 1 else values
    if len(names) != functional.columns:
        problem = f"a {functional.name} takes two columns, the table has {len(names)}: {quoted(names)}"
        raise InputError(problem, "wrong_columns", hint="name two of them with --columns" if len(names) > 2 else None)
    for name, column in zip(names, values.T, strict=True):
        if not np.ptp(column) > 0:
            problem = f"column {shown(name)} is constant" if len(column) > 1 else "there is one row"
            raise InputError(problem, "wrong_columns", column=name, hint=f"a {functional.name} needs columns that vary")
    return values


Sampler = Callable[[np.random.Generator, int, int], np.ndarray]
"""``sampler(rng, draws, rows)`` returns weights (draws, rows), which need not sum to 1."""


def _exponential(rng: np.random.Generator, draws: int, rows: int) -> np.ndarray:
    return rng.standard_exponential((draws, rows))


def _multinomial(rng: np.random.Generator, draws: int, rows: int) -> np.ndarray:
    return rng.multinomial(rows, np.full(rows, 1 / rows), draws).astype(np.float64)


def _draws(
    functional: Functional, values: np.ndarray, draws: int, rng: np.random.Generator, sampler: Sampler
) -> np.ndarray:
    """Draw weights, and return the functional under each vector of weights, shape (draws,)."""
    parts = []
    for block in blocks(draws, len(values), AT_ONCE):
        weights = sampler(rng, min(block.stop, draws) - block.start, len(values))
        parts.append(functional.of(values, weights / weights.sum(axis=1, keepdims=True)))
    return np.concatenate(parts)


def _notes(functional: Functional, values: np.ndarray, about: str) -> list[str]:
    """Return notes on the answer, and on rows that are few or tied."""
    notes = [about]
    distinct = len(np.unique(values, axis=0))
    if len(values) == 1:
        notes.append("there is one row: all draws agree, which is no certainty")
    elif distinct < len(values):
        notes.append(f"{len(values)} rows have {distinct} distinct values: each counts as often as it occurs")
    if functional.name == "correlation" and distinct == 2:
        notes.append("two distinct rows lie on a line: every correlation is 1 or -1")
    return notes
