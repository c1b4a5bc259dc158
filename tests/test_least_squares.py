"""Factored statistics and the singular-value solution against dense linear algebra, in double and in many digits."""

import mpmath
import numpy as np
import pytest
import scipy

from bayeszoo.errors import InputError
from bayeszoo.families.linear.least_squares import fitted, solve
from bayeszoo.families.statistics.factored import FactoredMoments


def rows(n, k, seed=0, offset=0.0):
    rng = np.random.default_rng(seed)
    columns = rng.standard_normal((n, k)) @ rng.standard_normal((k, k)) + offset
    return columns, columns @ np.arange(1.0, k + 1) + rng.standard_normal(n)


def moments(columns, outcome):
    return FactoredMoments.of(columns, outcome, np.ones(columns.shape[1]))


def scatter(columns, outcome):
    both = np.column_stack([columns, outcome])
    return (both - both.mean(axis=0)).T @ (both - both.mean(axis=0))


def assert_same(first, second, tolerance=1e-12):
    size = np.sqrt(np.outer(np.diag(second.root.T @ second.root), np.diag(second.root.T @ second.root))) + 1e-300
    assert first.n == second.n
    assert np.allclose(first.mean + first.rest, second.mean + second.rest, rtol=1e-13, atol=1e-13)
    assert np.max(np.abs(first.root.T @ first.root - second.root.T @ second.root) / size) < tolerance


@pytest.mark.parametrize(("n", "k"), [(1, 1), (2, 3), (40, 3), (5, 12), (200_000, 2)])
def test_the_factor_is_one_of_the_scatter(n, k):
    columns, outcome = rows(n, k)
    root = moments(columns, outcome).root
    assert len(root) <= k + 1
    assert np.allclose(root.T @ root, scatter(columns, outcome), rtol=1e-11, atol=1e-9)


@pytest.mark.parametrize("at", [0, 1, 7, 39, 40])
def test_parts_pool_to_the_whole(at):
    columns, outcome = rows(40, 3, offset=1e9)
    parts = moments(columns[:at], outcome[:at]), moments(columns[at:], outcome[at:])
    assert_same(parts[0] + parts[1], moments(columns, outcome))
    assert_same(parts[1] + parts[0], moments(columns, outcome))
    nothing = parts[0] - parts[0]
    assert (nothing.n, len(nothing.root)) == (0, 0)
    assert_same(nothing + parts[1], parts[1])


@pytest.mark.parametrize(("n", "k"), [(40, 3), (6, 3), (12, 30)])
@pytest.mark.parametrize("removed", [1, 4])
@pytest.mark.parametrize("range_of_units", [1.0, 1e12])
def test_rows_taken_away_leave_the_others(n, k, removed, range_of_units):
    columns, outcome = rows(n, k, offset=100.0)
    columns = columns * np.geomspace(1 / range_of_units, range_of_units, k)
    left = moments(columns, outcome) - moments(columns[:removed], outcome[:removed])
    assert_same(left, moments(columns[removed:], outcome[removed:]), 1e-9)


def test_designs_in_other_units_do_not_add_up():
    columns, outcome = rows(5, 2)
    with pytest.raises(InputError, match="different units"):
        moments(columns, outcome) + FactoredMoments.of(columns, outcome, np.array([1.0, 2.0]))


def test_the_system_has_the_squared_error_of_the_rows():
    columns, outcome = rows(50, 3, offset=5.0)
    design, short = moments(columns, outcome).equations(True, 2.0)
    weights = np.array([0.3, -1.0, 2.0, 0.5])
    full = outcome - 2.0 - weights[0] - columns @ weights[1:]
    assert np.isclose(np.sum((short - design @ weights) ** 2), np.sum(full**2), rtol=1e-12)


def test_a_factor_keeps_what_the_scatter_loses():
    # columns that differ in the tenth digit: their scatter has no digit of the difference
    rng = np.random.default_rng(0)
    first, difference = rng.standard_normal(100), rng.standard_normal(100)
    columns = np.column_stack([first, first + 1e-10 * difference])
    root = moments(columns, np.zeros(100)).root[:, :2]
    smallest = scipy.linalg.svdvals(root)[-1]
    exact = scipy.linalg.svdvals(np.column_stack([first, columns[:, 1] - first])[:, 1:] / np.sqrt(2))[-1]
    assert 0.5 < smallest / exact < 1.5
    gram = np.linalg.eigvalsh(root.T @ root)[0]
    assert not 0.5 < np.sqrt(abs(gram)) / exact < 1.5


def dense(design, outcome, mean, root):
    """Posterior and log evidence (unit noise) from the normal equations and SciPy's multivariate normal."""
    covariance = np.linalg.inv(np.linalg.inv(root @ root.T) + design.T @ design)
    centre = covariance @ (design.T @ outcome + np.linalg.solve(root @ root.T, mean))
    spread = np.eye(len(outcome)) + design @ root @ root.T @ design.T
    return centre, covariance, scipy.stats.multivariate_normal(design @ mean, spread).logpdf(outcome)


@pytest.mark.parametrize(("n", "k"), [(1, 1), (30, 4), (6, 15)])
def test_the_solution_is_that_of_dense_linear_algebra(n, k):
    rng = np.random.default_rng(2)
    design, outcome = rows(n, k)
    mean, root = rng.standard_normal(k), 0.2 * np.tril(rng.standard_normal((k, k))) + 2 * np.eye(k)
    solution, (centre, covariance, evidence) = solve(design, outcome, mean, root), dense(design, outcome, mean, root)
    assert np.allclose(solution.mean, centre, rtol=1e-8, atol=1e-8)
    assert np.allclose(solution.factor @ solution.factor.T, covariance, rtol=1e-8, atol=1e-10)
    assert np.allclose(solution.inverse @ solution.factor, np.eye(k), atol=1e-8)
    theta = rng.standard_normal(k)
    squares = (theta - centre) @ np.linalg.solve(covariance, theta - centre)
    assert np.isclose(solution.distance(theta), squares, rtol=1e-7)
    assert np.isclose(solution.log_det_factor, np.linalg.slogdet(covariance)[1] / 2, rtol=1e-9)
    assert np.isclose(solution.squared_error, np.sum((outcome - design @ centre) ** 2), rtol=1e-7)
    assert np.isclose(-n / 2 * np.log(2 * np.pi) - (solution.misfit + solution.log_det) / 2, evidence, rtol=1e-10)
    assert np.isclose(np.sum(solution.gains), np.trace(design @ covariance @ design.T), rtol=1e-9)
    assert np.allclose(solution.shares, 1 - np.diag(covariance) / np.diag(root @ root.T), atol=1e-9)
    assert np.allclose(solution.spread(design), np.diag(design @ covariance @ design.T), rtol=1e-8)


def evidence_in_many_digits(design, outcome, tau):
    """Log evidence of unit noise and weights N(0, tau^2) by mpmath's LU, from the same float64 numbers."""
    with mpmath.workdps(80):
        rows = mpmath.matrix(design.tolist())
        spread = mpmath.eye(len(outcome)) + mpmath.mpf(tau) ** 2 * rows * rows.T
        y = mpmath.matrix(outcome.tolist())
        squares = (y.T * mpmath.lu_solve(spread, y))[0]
        return float(-(len(outcome) * mpmath.log(2 * mpmath.pi) + mpmath.log(mpmath.det(spread)) + squares) / 2)


@pytest.mark.parametrize("gap", [1e-4, 1e-8, 1e-12])
@pytest.mark.parametrize("tau", [1.0, 1e6])
def test_the_evidence_of_nearly_equal_columns_is_right_or_said_not_to_be(gap, tau):
    rng = np.random.default_rng(3)
    first = rng.standard_normal(8)
    design = np.column_stack([first, first + gap * rng.standard_normal(8), rng.standard_normal(8)])
    outcome = rng.standard_normal(8)
    solution = solve(design, outcome, np.zeros(3), tau * np.eye(3))
    value = -4 * np.log(2 * np.pi) - (solution.misfit + solution.log_det) / 2
    error = abs(value - evidence_in_many_digits(design, outcome, tau))
    assert error <= 1e-9 + 10 * solution.rounding
    assert solution.rounding < 1e-6 or gap * tau > 1e-7


def test_least_squares_and_rank():
    design, outcome = rows(20, 3)
    theta, squared_error, rank = fitted(design, outcome)
    reference = scipy.linalg.lstsq(design, outcome)
    assert rank == 3
    assert np.allclose(theta, reference[0], rtol=1e-10)
    assert np.isclose(squared_error, np.sum((outcome - design @ reference[0]) ** 2), rtol=1e-10)
    twice = np.column_stack([design, design[:, 0] - 2 * design[:, 2]])
    assert fitted(twice, outcome)[2] == 3
    assert np.isclose(fitted(twice, outcome)[1], squared_error, rtol=1e-10)
    assert fitted(design * [1e-100, 1.0, 1e100], outcome)[2] == 3  # whatever the units
