"""Empty cells drawn from a joint Gaussian of all columns, whose parameters are drawn as well (Schafer 1997)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import scipy

from bayeszoo.distributions.conjugate.multivariate import MultivariateNormal
from bayeszoo.distributions.structures import Matrices
from bayeszoo.errors import InputError
from bayeszoo.foundation.gate import Check, at_most, check_draws, passed

CHAINS = 4
SWEEPS, LONGEST = 1000, 8000
"""Sweeps of each chain that are kept, after half as many before: at first, and at most."""
MOST_CELLS = 2**24
"""Most values of drawn cells, of all completed tables together."""

MAX_Z, FEWEST_ROWS = 3.5, 8
"""Skewness or curvature, in standard errors, that a Gaussian passes once in 2000 times; complete rows to tell it."""
TRANSFORM = "slopes may be biased: transform such features, as by logs, or use --missing drop"


@dataclass(frozen=True, eq=False)
class Imputation:
    """Values of the empty cells in completed tables, (tables, cells), row by row, and the checks of their chains."""

    cells: np.ndarray
    checks: list[Check]


def impute(rows: np.ndarray, tables: int, rng: np.random.Generator) -> Imputation:
    """Draw the empty cells of rows (n, D), NaN there, in a number of completed tables.

    By Gibbs sampling under the prior density det(Sigma)^(-(D + 1) / 2) of the covariance matrix, flat in the means: the
    means and covariances given complete rows are normal-inverse-Wishart, and each cell given its row is Gaussian. Each
    quarter of the tables is of one chain, at even distances.

    Raises
    ------
    InputError
        When the complete rows are too few, or their columns depend linearly on each other.
    """
    holes = np.isnan(rows)
    if tables * np.count_nonzero(holes) > MOST_CELLS:
        problem = f"{tables} tables with {np.count_nonzero(holes)} drawn cells each are too many to keep"
        raise InputError(problem, "too_large", hint="give fewer --tables")
    spread = np.nanmax(rows, axis=0) > np.nanmin(rows, axis=0)  # a constant column tells nothing of the others
    centre, scale = np.nanmean(rows, axis=0), np.where(spread, np.nanstd(rows, axis=0), 1.0)
    standardized = ((rows - centre) / scale)[:, spread]
    _require_rank(standardized[~holes.any(axis=1)])
    sweeps = SWEEPS
    while True:
        cells, checks = _chains(standardized, sweeps, -(-tables // CHAINS), rng)
        if passed(checks) or sweeps >= LONGEST:
            break
        sweeps *= 2
    column = np.nonzero(holes)[1]
    return Imputation(centre[column] + scale[column] * cells, [*checks, _check_gaussian(standardized)])


def _require_rank(complete: np.ndarray) -> None:
    """Refuse complete rows that leave the joint distribution unknown: its posterior would have no total mass."""
    n, columns = complete.shape
    if n <= columns:
        problem = f"{n} rows are complete, and a joint Gaussian of {columns} columns needs more than {columns}"
        raise InputError(problem, "too_few_rows", hint="leave out the columns with the most empty cells: --features")
    if np.linalg.matrix_rank(complete - complete.mean(axis=0), tol=1e-8 * np.sqrt(n)) < columns:
        problem = "the columns of the complete rows depend linearly on each other: their joint Gaussian is not known"
        raise InputError(problem, "collinear", hint="leave one of these columns out: --features")


def _check_gaussian(rows: np.ndarray) -> Check:
    """Check that columns with empty cells are Gaussian given the others, and linear in them, in the complete rows.

    A feature that is skewed given the outcome is drawn from the wrong law where cells are empty by the outcome. Empty
    cells hide a part of the skewness.
    """
    complete, scores = rows[~np.isnan(rows).any(axis=1)], [0.0]
    n, columns = complete.shape
    if n < max(FEWEST_ROWS, columns + 3):
        return Check("not_gaussian", False, None, f"<= {MAX_Z:g}", "too few complete rows to tell")
    for j in np.flatnonzero(np.isnan(rows).any(axis=0)):
        others = np.column_stack([np.ones(n), np.delete(complete, j, axis=1)])
        mean = others @ np.linalg.lstsq(others, complete[:, j])[0]
        error, square = complete[:, j] - mean, np.square(mean)
        bend = square - others @ np.linalg.lstsq(others, square)[0]
        scores += [_t(bend, error, n - columns - 1)] * bool(bend @ bend > 1e-12 * (square @ square))
        scores += [abs(float(scipy.stats.skewtest(error).statistic))]
    return at_most("not_gaussian", max(scores), MAX_Z).or_caveat(TRANSFORM)


def _t(term: np.ndarray, error: np.ndarray, df: int) -> float:
    """Return |t| of a term that is added to a regression, from its part that is orthogonal to the other terms."""
    slope = term @ error / (term @ term)
    rest = error - slope * term
    return float(abs(slope) / np.sqrt(rest @ rest / df / (term @ term)))


def _chains(rows: np.ndarray, sweeps: int, tables: int, rng: np.random.Generator) -> tuple[np.ndarray, list[Check]]:
    """Return the cells of ``tables`` completed tables of each chain, (CHAINS * tables, cells), and the checks."""
    gap = max(1, sweeps // tables)
    holes = np.isnan(rows)
    mu, sigma, cells = list[np.ndarray](), list[np.ndarray](), list[np.ndarray]()
    lower = np.tril_indices(rows.shape[1])
    for sweep, (filled, mean, covariance) in enumerate(_gibbs(rows, rng)):
        if sweep < sweeps // 2:
            continue
        mu.append(mean)
        sigma.append(covariance[:, *lower])
        if len(mu) % gap == 0:
            cells.append(filled[:, holes])
        if len(cells) == tables:
            break
    draws = {"mu": np.stack(mu, axis=1), "sigma": np.stack(sigma, axis=1)}
    checks = [replace(check, name=f"imputation: {check.name}") for check in check_draws(draws)]
    return np.stack(cells, axis=1).reshape(CHAINS * tables, -1), checks


def _gibbs(rows: np.ndarray, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield completed rows (CHAINS, n, D), means and covariances after each sweep, from scattered cells on."""
    holes, (n, columns) = np.isnan(rows), rows.shape
    filled = np.where(holes, rng.standard_normal((CHAINS, *rows.shape)), rows)
    weight, freedom = np.full(CHAINS, float(n)), np.full(CHAINS, n - 1.0)
    while True:
        mean = filled.mean(axis=1)
        centred = filled - mean[:, None]
        scatter = centred.mT @ centred
        law = MultivariateNormal(("mu", "Sigma"), "Y", mean, weight, freedom, scatter, Matrices(columns))
        mu, sigma = law.rvs((), rng).values()
        precision = np.linalg.inv(sigma)
        for j in np.flatnonzero(holes.any(axis=0)):
            _draw_column(filled, holes[:, j], int(j), mu, precision, rng)
        yield filled, mu, sigma


def _draw_column(
    filled: np.ndarray, empty: np.ndarray, j: int, mu: np.ndarray, precision: np.ndarray, rng: np.random.Generator
) -> None:
    """Draw the empty cells of column j given the other cells of their rows, in place."""
    deviation = filled[:, empty] - mu[:, None]
    own = precision[:, j, j, None]
    pull = np.einsum("crd,cd->cr", deviation, precision[:, :, j]) / own
    filled[:, empty, j] += rng.standard_normal(pull.shape) / np.sqrt(own) - pull
