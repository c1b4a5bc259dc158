"""Existence of a maximum of the likelihood, decided by a linear program.

A concave likelihood has no maximum if a direction of the weights lowers the density of no row and raises that of at
least one row: a combination of features then separates the outcomes, completely or except for ties, or identifies rows
whose counts are all 0. Such a direction is a feasible point of a linear program with a positive objective. Albert and
Anderson 1984; Konis 2007; Correia, Guimaraes and Zylkin 2019.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from bayeszoo.errors import NumericalError
from bayeszoo.families.statistics.factored import triangular

LEAST = 1e-6
"""Smallest change of a predictor that counts, when weights and entries of a row are at most 1 in size."""
EXACT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
NAMED = 1e-6
"""Share of a direction's largest weight above which its terms are named."""
MOST_NAMED = 5


class Recession(NamedTuple):
    """A direction of the weights (T,) along which the likelihood rises for ever, and whether every row's rises."""

    direction: np.ndarray
    is_complete: bool


def recession(design: np.ndarray, up: np.ndarray, down: np.ndarray) -> Recession | None:
    """Return a direction along which the likelihood of rows (n, T) rises for ever; None if there is none.

    ``up`` (n,) marks rows whose density does not fall as the predictor goes to infinity, ``down`` (n,) those whose
    density does not fall as it goes to minus infinity; rows with both marks do not matter. Of several directions, one
    with few nonzero weights is returned.
    """
    scale = np.max(np.abs(design), axis=0, initial=0.0)
    scale = np.where(scale > 0, scale, 1.0)
    rows = design / scale
    rising = (np.where(up, 1.0, -1.0)[:, None] * rows)[up ^ down]
    fixed = triangular(rows[~up & ~down])
    if not len(rising):
        return None
    widest = _solved(-rising.sum(axis=0), rising, fixed)
    if not np.max(rising @ widest) > LEAST:
        return None
    is_complete = not len(fixed) and _margin(rising) > LEAST
    return Recession(_sparse(rising, fixed) / scale, is_complete)


def _solved(
    costs: np.ndarray, rising: np.ndarray, fixed: np.ndarray, low: float = -1.0, **overrides: object
) -> np.ndarray:
    """Minimize costs over weights between ``low`` and 1 that lower no row of ``rising`` and do not move ``fixed``."""
    limits = {"A_ub": -rising, "b_ub": np.zeros(len(rising)), "A_eq": fixed, "b_eq": np.zeros(len(fixed)), **overrides}
    result = scipy.optimize.linprog(costs, **limits, bounds=[(low, 1.0)] * len(costs), method="highs", options=EXACT)
    if result.status != 0:
        raise NumericalError(
            f"whether a maximum of the likelihood exists could not be decided: {result.message}", "not_converged"
        )
    return np.asarray(result.x)


def _margin(rising: np.ndarray) -> float:
    """Return the largest amount by which weights between -1 and 1 can raise every row."""
    ones = np.ones((len(rising), 1))
    costs = np.append(np.zeros(rising.shape[1]), -1.0)
    return float(_solved(costs, np.hstack([rising, -ones]), np.zeros((0, len(costs))))[-1])


def _sparse(rising: np.ndarray, fixed: np.ndarray) -> np.ndarray:
    """Return the direction with the smallest sum of absolute weights for a fixed sum over rows: few are nonzero."""
    total = rising.sum(axis=0) / np.max(np.abs(rising.sum(axis=0)))
    constraints = np.vstack([fixed, total])
    positive_and_negative = np.hstack([constraints, -constraints])
    levels = np.append(np.zeros(len(fixed)), 1e-2)
    costs = np.ones(2 * rising.shape[1])
    parts = _solved(costs, np.hstack([rising, -rising]), positive_and_negative, low=0.0, b_eq=levels)
    return np.asarray(parts[: rising.shape[1]] - parts[rising.shape[1] :])


def combination(direction: np.ndarray, terms: list[str]) -> str:
    """Write a direction of weights (T,) as a sum of terms, the largest first with coefficient 1 or -1."""
    largest = float(np.max(np.abs(direction)))
    named = [j for j in np.argsort(-np.abs(direction), kind="stable") if abs(direction[j]) > NAMED * largest]
    parts = [f"{'-' if direction[j] < 0 else '+'} {_times(abs(direction[j]) / largest)}{terms[j]}" for j in named]
    omitted = f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
    return " ".join(parts[:MOST_NAMED]).removeprefix("+ ") + omitted


def _times(share: float) -> str:
    return "" if np.isclose(share, 1.0) else f"{share:.3g} "
