"""Numbers as text, to the digits that their Monte Carlo errors support, or that tell them apart."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from bayeszoo.distributions.posterior import QUANTILES

MOST_DIGITS = 10
"""Most significant digits of an estimate, however small its error."""
_DIGITS = {"r_hat": 4, "sd_ratio": 3, "error_sd": 2, "error_mcse": 2, "evidence_gap": 3, "elbo_gap": 3}
_DIGITS |= dict.fromkeys(("evidence_se", "elbo_se", "loo_se", "loo_mcse"), 2)
_DIGITS |= dict.fromkeys(("standardized", "PIT", "normal score", "leverage", "k-hat", "p"), 3) | {"MC error": 2}
"""Significant digits of diagnostics and of residuals."""
_PLACES = ("mean", *QUANTILES)
_LOCATIONS = (*_PLACES, "observed", "filled", "level", "raw", "replicated")
"""Columns in the unit of the outcome, whose zero may be far from all numbers."""
_NATS = ("log_evidence", "elbo")
_NOTHING = 1e-10
"""Share of the sd below which an estimate without an error is 0: what is smaller is rounding of a sum."""
_NEAR_1 = 1e-3
_LARGE = (1e5, 1e11)
"""Range of large numbers whose differences five significant digits may hide."""


def number(value: object, digits: int = 5) -> str:
    """Format a number; a missing one becomes a dash."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    return f"{value + 0.0:.{digits}g}" if isinstance(value, float | np.floating) else str(value)  # of -0.0 no minus


def estimate(value: float, error: Any = None, digits: int | None = None, sd: Any = None) -> str:
    """Format an estimate so that its last digit is of the order of its Monte Carlo error.

    Without an error it has five significant digits, or as many as show two digits of its ``sd``; with ``digits`` it has
    that many, whatever the error.

    Examples
    --------
    >>> estimate(0.590168, 0.0049), estimate(1234.5678, 23.0), estimate(0.590168, 0.0049, digits=6)
    ('0.590', '1230', '0.590168')
    >>> estimate(1769.98765, sd=23.0), estimate(1769.98765, sd=0.023)
    ('1770', '1769.988')
    """
    if sd is not None and math.isfinite(sd) and abs(value) < _NOTHING * sd:
        value = 0.0
    is_measured = all(isinstance(x, float | np.floating) and math.isfinite(x) for x in (value, error)) and error > 0
    if digits is not None or not is_measured:
        return number(value, digits_for(value, sd) if digits is None else digits)
    last = math.floor(math.log10(error))
    if value == 0 and last < -5:
        return "0"
    first = max(math.floor(math.log10(abs(value))), last) if value else last
    last = max(last, first + 1 - MOST_DIGITS)
    if not -5 < first < 9:
        return f"{value:.{first - last}e}"
    return f"{round(value, -last) + 0.0:.{max(-last, 0)}f}"  # + 0.0: no minus in front of a rounded 0


def digits_for(value: float, sd: Any, least: int = 5) -> int:
    """Return how many significant digits show a value to two of its sd: ``least``, and at most as many as a double has.

    Examples
    --------
    >>> digits_for(1000000.0, 0.17), digits_for(0.5, 0.17), digits_for(0.5, 0.17, least=3)
    (9, 5, 3)
    """
    if not all(isinstance(x, float | np.floating) and math.isfinite(x) and x for x in (value, sd)):
        return least
    return min(max(least, math.floor(math.log10(abs(value))) - math.floor(math.log10(sd)) + 2), 15)


def nats(value: object, digits: int | None = None) -> str:
    """Format an evidence, a bound or a log likelihood: to two decimals, or as many as asked for."""
    is_finite = isinstance(value, int | float | np.floating) and math.isfinite(value)
    return f"{value:.{2 if digits is None else digits}f}" if is_finite else number(value)


def with_error(value: float, error: float, alone: str, digits: int | None = None) -> str:
    """Write a number with its Monte Carlo error; a number without an error is written as the text ``alone``.

    Examples
    --------
    >>> with_error(-96.1034, 0.035, "-96.10"), with_error(-96.1034, 0.0, "-96.10")
    ('-96.10 +- 0.035', '-96.10')
    """
    return f"{estimate(value, error, digits)} +- {number(float(error), 2)}" if error > 0 else alone


def seconds(spent: Mapping[str, float]) -> str:
    """Write seconds by phase, without the phases that took none."""
    return ", ".join(f"{name} {value:.2f} s" for name, value in spent.items() if value >= 0.005) or "0 s"


def statistic(key: str, value: Any, error: Any = None, digits: int | None = None, sd: Any = None) -> str:
    """Format a statistic by its name: an estimate by its error, and diagnostics to a few digits.

    A mean or a quantile without an error is written to two digits of its ``sd``, or without an sd, as of a point
    estimate, to two digits after the point if it is large.
    """
    if key in ("ess_bulk", "ess_tail") and math.isfinite(value):
        return f"{value:.0f}"
    if key == "seconds" and math.isfinite(value):
        return f"{value:.2f}"
    if key in _NATS:
        return nats(value, digits)
    fixed = 2 if key.startswith("mcse") else _DIGITS.get(key)
    if fixed is not None:
        return number(value, max(fixed, digits or 0))
    if key not in _PLACES:
        return estimate(value, error, digits)
    return estimate(value, error, digits, sd if sd == sd and sd is not None else _unit(value))  # NaN is not itself


def _unit(value: Any) -> float | None:
    """Return an sd for the digits of a number that has none; None where five digits tell it apart.

    A large number has two digits after the point, and one near 1, as the ratio of a feature in small units, two digits
    of its distance from 1.
    """
    away = abs(value - 1)
    return 0.1 if _LARGE[0] <= abs(value) < _LARGE[1] else away if 0 < away < _NEAR_1 else None


def written(row: Any, name: str, digits: int | None = None) -> str:
    """Format an entry of a row by its Monte Carlo error ``mcse_...``, where it has one, else by its `spread`."""
    error = row[f"mcse_{name}"]
    return estimate(row[name], error if error > 0 else None, digits, spread(row, name))


def with_interval(row: Any, name: str = "mean") -> str:
    """Format an entry of a row with its 95% interval, if the row has one."""
    value, low, high = (written(row, key) for key in (name, "q025", "q975"))
    return value if math.isnan(row["q025"]) else f"{value} (95% interval {low} to {high})"


def spread(row: Any, name: str) -> Any:
    """Return the sd of a column of locations, in a row or in a whole table; None for other columns."""
    base = name.removesuffix("_q025").removesuffix("_q975")
    if f"sd_{base}" in row:
        return row[f"sd_{base}"]
    if base not in _LOCATIONS:
        return None
    return row["sd"] if "sd" in row else (row["q975"] - row["q025"]) / 4 if "q025" in row else None


def interval(low: tuple[float, float], high: tuple[float, float]) -> str:
    """Write an interval by its ends and their Monte Carlo errors; without an error by the digits that tell them apart.

    Examples
    --------
    >>> interval((0.12345, 0.0), (0.23456, 0.0)), interval((1000000.12345, 0.0), (1000001.23456, 0.0))
    ('0.123 to 0.235', '1000000.1 to 1000001.2')
    """
    if math.isnan(low[0]):
        return "-"
    width = float(high[0] - low[0])
    ends = [
        estimate(value, error) if error > 0 else number(value, digits_for(value, width, 3))
        for value, error in (low, high)
    ]
    return " to ".join(ends)


def without_error(value: float, digits: int | None = None, width: float = 0.0) -> str:
    """Format a mean or an sd whose Monte Carlo error is unknown, as its tails are heavy: to two digits.

    The last digit of a mean is at least of the order of a twentieth of the ``width`` of the 95% interval, as the digits
    of a mean near 0 would be noise.

    Examples
    --------
    >>> without_error(3811.2), without_error(0.0436, width=9.3), without_error(77123.0, width=539000.0)
    ('3800', '0.0', '80000')
    """
    return estimate(value, max(abs(value), width if width == width else 0.0) / 20, digits)  # NaN is not itself
