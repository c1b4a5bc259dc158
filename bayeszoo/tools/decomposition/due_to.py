"""The change of a total, decomposed into a part due to each factor; the parts add up to the change."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import lazy_loader
import numpy as np

from bayeszoo.data.table.table import quoted, shown
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.foundation import diagnostics
from bayeszoo.results.summary import heavy_tails, moments_that_exist
from bayeszoo.tools.decomposition.factors import Array, aligned, as_mapping, factor
from bayeszoo.tools.decomposition.formula import Formula

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = lazy_loader.load("pandas")

MOST_FACTORS = 12
"""Most factors: the total is computed for every subset of factors, 4096 for twelve."""
CHANGE = "change"


@dataclass(frozen=True, eq=False)
class DueTo:
    """The change of a total between two periods or groups, and the parts due to each factor.

    Attributes
    ----------
    formula : str
        The formula of the total.
    factors : tuple of str
        The names of the factors, and so of the parts.
    parts : ndarray
        Draws of the parts, shape (chain, draw, factors), which add up to the change in each draw. Plain numbers have
        one draw.
    before, after : ndarray
        Draws of the total, shape (chain, draw).
    kind : str
        "exact" if all factors are plain numbers, else "sampled".
    names : tuple of str
        The names of the total before and after.
    """

    formula: str
    factors: tuple[str, ...]
    parts: Array
    before: Array
    after: Array
    kind: str
    names: tuple[str, str] = ("before", "after")

    def called(self, before: str, after: str) -> DueTo:
        """Return a copy with other names for the total before and after."""
        return replace(self, names=(before, after))

    @property
    def summary(self) -> pd.DataFrame:
        """A row for the total before, each part, their sum, the change, and the total after.

        Columns are ``mean``, ``sd`` and the 95% interval, and ``p_positive``, the probability that a part is greater
        than 0, each with its Monte Carlo error. Plain numbers have only a ``mean``, with error 0. Moments that heavy
        tails of the draws leave unknown are NaN, and ``withheld`` says so.
        """
        change = self.after - self.before
        parts = dict(zip(self.factors, np.moveaxis(self.parts, -1, 0), strict=True))
        draws = {self.names[0]: self.before, **parts, CHANGE: change, self.names[1]: self.after}
        is_exact = self.kind == "exact"
        rows = [_exact(v) if is_exact else _sampled(v, name not in self.names) for name, v in draws.items()]
        return pd.DataFrame(rows, index=pd.Index(list(draws), name="part"))


def _exact(values: Array) -> dict[str, float]:
    return {"mean": float(values[0, 0]), "mcse_mean": 0.0}


def _sampled(values: Array, has_sign: bool) -> dict[str, Any]:
    """Summarize the draws of a part; those of a total have no probability to be positive."""
    low, high = np.quantile(values, [0.025, 0.975])
    mean_error, sd_error = (float(diagnostics.mcse(values, method)) for method in ("mean", "sd"))
    columns = {"mean": float(values.mean()), "mcse_mean": mean_error, "sd": float(values.std(ddof=1))}
    columns |= {"mcse_sd": sd_error, "q025": float(low), "q975": float(high)}
    for name, level in (("q025", 0.025), ("q975", 0.975)):
        columns[f"mcse_{name}"] = float(diagnostics.mcse(values, "quantile", prob=level))
    positive = (values > 0).astype(np.float64)
    share, tail = float(positive.mean()), diagnostics.tail_shape(values)
    columns = {key: float(value) for key, value in moments_that_exist(columns, None, tail).items()}
    error = diagnostics.mcse(positive) if 0 < share < 1 else 1 / diagnostics.ess(values, "bulk")
    return columns | {
        "p_positive": share if has_sign else np.nan,
        "mcse_p_positive": float(error) if has_sign else np.nan,
        "withheld": heavy_tails(float(tail)),
    }


def due_to(before: Any, after: Any, formula: str) -> DueTo:
    """Decompose the change of a total: how much of it is due to the change of each factor.

    This answers an accounting question, not a causal one: how much of the change of the total goes with the change of
    one factor, the others held at their values before or after? The answer depends on the order in which the factors
    change. The part of each factor is its mean over all orders (Shapley 1953): no order is preferred, and the parts
    always add up to the change.

    Parameters
    ----------
    before, after : mapping of str to number, mapping, DataTree or DataArray; Series or DataFrame
        The factors of the formula in each period. A factor is a number; numbers by label, as a mapping or a pandas
        Series (a data frame has a column for each factor); a fit of a model with one parameter, such as
        `beta_bernoulli`, `gamma_poisson` or `dirichlet_multinomial`, or a result of `fit_by`; or draws, such as
        ``tree["posterior"]["mu"]``. Fits are taken as independent of each other; a factor that is the same object in
        both periods has not changed.
    formula : str
        Sums and products of factors, such as ``"volume * (price * rate - cost)"``; ``sum(...)`` adds up over labels,
        such as ``"sum(share * rate)"``.

    Returns
    -------
    DueTo
        Its ``summary`` is exact for plain numbers; with fits it is estimated from draws, with Monte Carlo errors.

    Raises
    ------
    InputError
        When the formula is no sum of products, a factor is missing, its labels differ between periods, or two fits have
        the same draws.
    Untrustworthy
        When a fit failed its gate.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> before = {"volume": 1000.0, "rate": 0.02, "price": 3.0}
    >>> after = {"volume": 1500.0, "rate": 0.01, "price": 4.0}
    >>> bz.due_to(before, after, "volume * rate * price").summary["mean"].round(3).to_dict()
    {'before': 60.0, 'volume': 25.833, 'rate': -44.167, 'price': 18.333, 'change': 0.0, 'after': 60.0}
    """
    total = Formula.of(formula)
    if reserved := {"before", "after", CHANGE} & {*total.names}:
        raise InputError(
            f"{shown(min(reserved))} names a factor and a row of the answer",
            "duplicate_name",
            hint="rename it",
        )
    if len(total.names) > MOST_FACTORS:
        raise InputError(f"the formula has {len(total.names)} factors, more than {MOST_FACTORS}", "too_large")
    periods = [
        _factors(total, values, when) for values, when in ((as_mapping(before), "before"), (as_mapping(after), "after"))
    ]
    first, second = aligned(*periods)
    with np.errstate(over="ignore", invalid="ignore"):
        parts, ends = shapley(total, first, second)
    if not all(np.isfinite(values).all() for values in (parts, *ends)):
        raise NumericalError(f"the total {shown(formula)} is too large to compute", "too_large")
    is_drawn = any(values.is_drawn for period in periods for values in period.values())
    return DueTo(formula, total.names, parts, *ends, "sampled" if is_drawn else "exact")


def _factors(total: Formula, values: Mapping[str, object], when: str) -> dict[str, Any]:
    """Return the factors of a period; refuse names that differ from those of the formula."""
    if missing := [name for name in total.names if name not in values]:
        raise InputError(
            f"{when} has no {shown(missing[0])}", "missing_factor", hint=f"the formula names {quoted(total.names)}"
        )
    if unknown := [name for name in values if name not in total.names]:
        raise InputError(
            f"{when} has {shown(unknown[0])}, which is not in the formula",
            "unknown_factor",
            hint=f"the formula is {shown(total.text)}",
        )
    return {name: factor(name, values[name]) for name in total.names}


def shapley(
    total: Formula, before: Mapping[str, Array], after: Mapping[str, Array]
) -> tuple[Array, tuple[Array, Array]]:
    """Return the part of each factor, shape (chain, draw, factors), and the totals before and after.

    The part of a factor is the change of the total when this factor changes, averaged over all orders of the factors:
    a sum over the sets of factors that change before it, each weighted by its share of the orders.
    """
    number = len(total.names)
    totals = []
    for chosen in range(2**number):
        periods = [after if chosen >> i & 1 else before for i in range(number)]
        totals.append(total.total({name: period[name] for name, period in zip(total.names, periods, strict=True)}))
    parts = []
    for i in range(number):
        without = [chosen for chosen in range(2**number) if not chosen >> i & 1]
        shares = [1 / (number * math.comb(number - 1, chosen.bit_count())) for chosen in without]
        steps = [share * (totals[c | 1 << i] - totals[c]) for share, c in zip(shares, without, strict=True)]
        parts.append(sum(steps[1:], start=steps[0]))
    *parts, first, last = np.broadcast_arrays(*parts, totals[0], totals[-1])
    return np.stack(parts, axis=-1), (first, last)
