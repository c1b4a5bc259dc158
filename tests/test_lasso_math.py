"""The posterior mode under Laplace priors: scikit-learn, enumeration of all signs, and a certificate that sees bugs."""

import itertools
import time

import numpy as np
import pytest
from scipy import optimize
from sklearn.datasets import load_diabetes
from sklearn.linear_model import ElasticNet, Lasso, Ridge, lars_path, lasso_path

from bayeszoo.errors import InputError, NumericalError
from bayeszoo.families.lasso import descent as lasso
from bayeszoo.families.lasso.coefficient import LaplaceGaussian
from bayeszoo.families.lasso.descent import LIMIT, coordinate_descent, kkt_violation, largest_penalty, path

SIGMA2 = 2900.0
"""Noise variance of the diabetes data, about."""

INTERCEPT = np.array([0.0] + [1.0] * 10)
"""Penalties of the diabetes data: none of the intercept."""


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return (X - X.mean(0)) / X.std(0), y


def problem(X, y, sigma2=SIGMA2, intercept=True):
    Z = np.column_stack([np.ones(len(y)), X]) if intercept else X
    return Z.T @ Z / sigma2, Z.T @ y / sigma2


def simulated(n, D, correlation=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = np.sqrt(correlation) * rng.standard_normal((n, 1)) + np.sqrt(1 - correlation) * rng.standard_normal((n, D))
    w = np.where(np.arange(D) < 10, 3 * rng.standard_normal(D), 0.0)
    return X, X @ w + rng.standard_normal(n)


def objective(G, g, l1, theta, l2=0.0, mean=0.0):
    l1 = np.broadcast_to(l1, np.shape(g))
    return theta @ G @ theta / 2 - g @ theta + l1 @ np.abs(theta) + np.sum(l2 * (theta - mean) ** 2) / 2


# -- other people's solvers


def test_scikit_learns_lasso(diabetes):
    """Its alpha is sigma^2 / (n b)."""
    X, y = diabetes
    G, g = problem(X, y)
    n, top = len(y), largest_penalty(G, g, INTERCEPT) * SIGMA2 / len(y)
    assert top == pytest.approx(np.max(np.abs(X.T @ (y - y.mean()))) / n, rel=1e-12)
    for alpha in top * np.geomspace(0.999, 1e-5, 20):
        theirs = Lasso(alpha=alpha, tol=1e-14, max_iter=10**6).fit(X, y)
        ours = coordinate_descent(G, g, n * alpha / SIGMA2 * INTERCEPT)
        assert ours.violation <= 1e-9
        assert ours.unique
        assert np.max(np.abs(ours.theta[1:] - theirs.coef_)) < 1e-9
        assert ours.theta[0] == pytest.approx(theirs.intercept_, abs=1e-9)
        assert np.array_equal(ours.active[1:], theirs.coef_ != 0)


def test_scikit_learns_elastic_net(diabetes):
    X, y = diabetes
    G, g = problem(X, y)
    for alpha, share in itertools.product((30.0, 1.0, 0.01), (0.9, 0.3)):
        theirs = ElasticNet(alpha=alpha, l1_ratio=share, tol=1e-14, max_iter=10**6).fit(X, y)
        penalty = len(y) * alpha / SIGMA2 * INTERCEPT
        ours = coordinate_descent(G, g, share * penalty, (1 - share) * penalty)
        assert ours.violation <= 1e-9
        assert np.max(np.abs(ours.theta[1:] - theirs.coef_)) < 1e-9


def test_scikit_learns_ridge(diabetes):
    X, y = diabetes
    G, g = problem(X, y)
    mean = np.array([7.0] + [2.0, -3.0] * 5)
    for alpha in (1e-3, 10.0, 1e4):
        theirs = Ridge(alpha=alpha, solver="svd").fit(X, y - X @ mean[1:])
        ours = coordinate_descent(G, g, 0.0, alpha / SIGMA2 * INTERCEPT, mean)
        assert ours.violation <= 1e-9
        assert np.max(np.abs(ours.theta[1:] - theirs.coef_ - mean[1:])) < 1e-10
        assert ours.active.all()


def test_scikit_learns_path(diabetes):
    X, y = diabetes
    y = y - y.mean()
    alphas, theirs, _ = lasso_path(X, y, alphas=30, tol=1e-14, max_iter=10**6)
    ours = path(*problem(X, y, intercept=False), multipliers=len(y) * alphas / SIGMA2)
    assert np.max(np.abs(ours.thetas - theirs.T)) < 1e-9
    assert np.max(ours.violations) <= 1e-9


def test_knots_of_the_path_by_least_angle_regression(diabetes):
    """An algorithm without iterations: at each knot a coefficient enters or leaves."""
    X, y = diabetes
    alphas, _, theirs = lars_path(X, y - y.mean(), method="lasso")
    knots = alphas[:-1] * len(y) / SIGMA2  # the last one is least squares
    ours = path(*problem(X, y), INTERCEPT, knots)
    assert np.max(np.abs(ours.thetas[:, 1:] - theirs.T[:-1])) < 1e-9
    assert np.allclose(ours.thetas[:, 0], y.mean(), rtol=1e-13)
    nearby = [path(*problem(X, y), INTERCEPT, knots * factor).thetas[:, 1:] != 0 for factor in (1 + 1e-6, 1 - 1e-6)]
    assert np.array_equal(np.sum(nearby[0] != nearby[1], axis=1), np.ones(len(knots)))


@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_scikit_learn_with_more_columns_than_rows(correlation):
    X, y = simulated(50, 200, correlation)
    G, g = problem(X, y, 1.0, intercept=False)
    for share in (0.5, 0.05, 0.01):
        l1 = share * largest_penalty(G, g)
        ours = coordinate_descent(G, g, l1)
        theirs = Lasso(alpha=l1 / 50, tol=1e-12, max_iter=10**6, fit_intercept=False).fit(X, y)
        assert ours.violation <= 1e-9
        assert np.max(np.abs(ours.theta - theirs.coef_)) < 1e-6
        assert objective(G, g, l1, ours.theta) <= objective(G, g, l1, theirs.coef_) + 1e-12


def test_a_general_optimizer(diabetes):
    """Theta as the difference of two positive vectors: a smooth problem with bounds, and priors that are all unlike."""
    X, y = diabetes
    G, g = problem(X, y)
    rng = np.random.default_rng(0)
    l1, l2, mean = INTERCEPT * rng.uniform(0.1, 3, 11), rng.uniform(0, 0.2, 11), rng.normal(0, 20, 11)
    ours = coordinate_descent(G, g, l1, l2, mean)
    H, r = G + np.diag(l2), g + l2 * mean

    def split(uv):
        slope = H @ (uv[:11] - uv[11:]) - r
        theta = uv[:11] - uv[11:]
        return theta @ H @ theta / 2 - r @ theta + l1 @ (uv[:11] + uv[11:]), np.concatenate([slope + l1, l1 - slope])

    options = {"maxiter": 10**5, "maxfun": 10**6, "ftol": 1e-16, "gtol": 1e-10}
    theirs = optimize.minimize(split, np.zeros(22), jac=True, bounds=[(0, None)] * 22, options=options)
    assert ours.violation <= 1e-9
    assert np.max(np.abs(theirs.x[:11] - theirs.x[11:] - ours.theta)) < 1e-3
    assert objective(H, r, l1, ours.theta) <= theirs.fun + 1e-12 * abs(theirs.fun)


def lowest_by_enumeration(G, g, l1):
    """Lowest objective over all 3^D patterns of signs: on one of them the equations of the minimum hold."""
    lowest = np.inf
    for signs in itertools.product((-1.0, 0.0, 1.0), repeat=len(g)):
        support = np.flatnonzero((np.array(signs) != 0) | (l1 == 0))
        theta = np.zeros(len(g))
        if len(support):
            pull = g[support] - l1[support] * np.array(signs)[support]
            theta[support] = np.linalg.lstsq(G[np.ix_(support, support)], pull, rcond=None)[0]
        lowest = min(lowest, objective(G, g, l1, theta))
    return lowest


@pytest.mark.slow
def test_all_signs_of_small_problems():
    """Of small integers, so that there are ties, dependent columns and columns of zeros everywhere."""
    rng = np.random.default_rng(5)
    for i in range(400):
        X = rng.integers(-2, 3, (rng.integers(1, 8), rng.integers(1, 6))).astype(float)
        y, D = rng.integers(-5, 6, len(X)).astype(float), X.shape[1]
        G, g, l1 = X.T @ X, X.T @ y, rng.choice([0.5, 1.0, 2.0], D)
        l1[0] *= G[0, 0] == 0 or i % 3 > 0
        ours = coordinate_descent(G, g, l1, start=rng.integers(-3, 4, D) if i % 2 else None)
        assert ours.violation < 1e-12
        assert objective(G, g, l1, ours.theta) <= lowest_by_enumeration(G, g, l1) + 1e-11


def test_orthogonal_designs_are_soft_thresholded():
    """Each coefficient by itself has the exact posterior of `LaplaceGaussian`."""
    rng = np.random.default_rng(1)
    X = np.linalg.qr(rng.standard_normal((30, 12)))[0] * rng.uniform(0.5, 20, 12)
    y, sigma2, b = X @ rng.standard_normal(12) + rng.standard_normal(30), 0.7, rng.uniform(0.01, 0.3, 12)
    precision = np.sum(X**2, axis=0) / sigma2
    exact = LaplaceGaussian(precision, X.T @ y / sigma2 / precision, b)
    ours = coordinate_descent(np.diag(precision), X.T @ y / sigma2, 1 / b)
    assert 0 < ours.active.sum() < 12
    assert np.allclose(ours.theta, exact.mode(), rtol=1e-13, atol=0)
    assert np.max(np.abs(coordinate_descent(X.T @ X / sigma2, X.T @ y / sigma2, 1 / b).theta - exact.mode())) < 1e-13


# -- hard problems


@pytest.mark.parametrize("share", [0.3, 1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize(
    ("n", "D", "correlation"), [(442, 300, 0.9), (442, 300, 0.9999), (50, 200, 0.0), (50, 200, 0.9), (50, 200, 0.9999)]
)
def test_the_certificate_of_hard_problems(n, D, correlation, share):
    G, g = problem(*simulated(n, D, correlation), 1.0, intercept=False)
    l1 = share * largest_penalty(G, g)
    ours = coordinate_descent(G, g, l1)
    assert kkt_violation(G, g, l1, 0.0, 0.0, ours.theta) == ours.violation <= LIMIT
    assert ours.sweeps <= (1000 if correlation < 0.999 else 5000)  # at most 484 and 3861
    assert ours.active.sum() <= n
    assert ours.unique


def test_many_columns_take_seconds():
    G, g = problem(*simulated(200, 2000, 0.5), 1.0, intercept=False)
    start = time.process_time()
    ours = coordinate_descent(G, g, 1e-3 * largest_penalty(G, g))
    assert time.process_time() - start < 30  # measured: 1 s
    assert ours.violation <= 1e-8


@pytest.mark.parametrize("share", [0.3, 1e-2, 1e-4])
def test_duplicate_columns(share):
    """The solution is not unique; its sum over duplicates is, and the objective."""
    X, y = simulated(50, 40)
    both = problem(np.hstack([X, X, X[:, :7]]), y, 1.0, intercept=False)
    once = problem(X, y, 1.0, intercept=False)
    l1 = share * largest_penalty(*once)
    ours, single = coordinate_descent(*both, l1), coordinate_descent(*once, l1)
    assert ours.violation <= 1e-9
    assert not ours.unique
    assert single.unique
    total = ours.theta[:40] + ours.theta[40:80] + np.append(ours.theta[80:], np.zeros(33))
    assert np.max(np.abs(total - single.theta)) < 1e-9
    assert objective(*both, l1, ours.theta) == pytest.approx(objective(*once, l1, single.theta), rel=1e-12)
    start = np.random.default_rng(0).standard_normal(87)
    other = coordinate_descent(*both, l1, start=start)
    assert other.violation <= 1e-9
    assert other.sweeps <= 500
    assert objective(*both, l1, other.theta) == pytest.approx(objective(*both, l1, ours.theta), rel=1e-12)


@pytest.mark.parametrize("correlation", [0.5, 0.99, 0.9999])
def test_duplicates_that_are_all_active(correlation):
    """The equations on a dependent support are solved too; sweeps alone would take more than ten thousand."""
    X, y = simulated(100, 30, correlation)
    G, g = problem(np.hstack([X, X]), y, 1.0, intercept=False)
    start = np.random.default_rng(0).uniform(1, 2, 60)
    ours = coordinate_descent(G, g, 1e-4 * largest_penalty(G, g), start=start)
    assert ours.violation <= 1e-8
    assert ours.sweeps <= 100


def test_duplicates_under_different_penalties_are_unique():
    ours = coordinate_descent(np.ones((2, 2)), 1.0, [0.1, 0.2])
    assert ours.unique
    assert np.allclose(ours.theta, [0.9, 0.0], rtol=1e-15)
    assert not coordinate_descent(np.ones((2, 2)), 1.0, 0.1).unique


def test_columns_of_zeros():
    X, y = simulated(30, 5)
    X[:, 2] = 0.0
    ours = coordinate_descent(*problem(X, y, 1.0), [0.0, 2, 2, 2, 2, 2], start=np.ones(6))
    assert ours.theta[3] == 0
    assert ours.unique
    others = coordinate_descent(*problem(np.delete(X, 2, axis=1), y, 1.0), [0.0, 2, 2, 2, 2])
    assert np.max(np.abs(np.delete(ours.theta, 3) - others.theta)) < 1e-13
    l2, mean = [0, 0, 0, 3.0, 0, 0], [0, 0, 0, 4.0, 0, 0]  # with a prior of its own it has that mode
    assert coordinate_descent(*problem(X, y, 1.0), [0, 2, 2, 0, 2, 2], l2, mean).theta[3] == pytest.approx(4.0)
    assert coordinate_descent(*problem(X, y, 1.0), [0, 2, 2, 1, 2, 2], l2, mean).theta[3] == pytest.approx(11 / 3)


def test_other_units_give_the_same_solution(diabetes):
    X, y = diabetes
    G, g = problem(X, y)
    l1, l2, mean = 3.0 * INTERCEPT, 0.01 * INTERCEPT, np.linspace(-9, 9, 11)
    ours = coordinate_descent(G, g, l1, l2, mean)
    assert 1 < ours.active.sum() < 11
    for exponents in (np.linspace(-12, 12, 11), np.linspace(12, -12, 11), np.array([0, 12.0] + [0, -12, 12.0] * 3)):
        unit = 10.0**exponents
        moved = coordinate_descent(G / np.outer(unit, unit), g / unit, l1 / unit, l2 / unit**2, mean * unit)
        assert moved.violation <= 1e-9
        assert np.array_equal(moved.active, ours.active)
        assert np.max(np.abs(moved.theta / unit - ours.theta)) < 1e-9
        assert moved.sweeps <= 2 * ours.sweeps
    tiny = coordinate_descent(G * 1e-24, g * 1e-24, l1 * 1e-24, l2 * 1e-24, mean)
    assert np.max(np.abs(tiny.theta - ours.theta)) < 1e-9


def test_the_order_of_the_columns_does_not_matter(diabetes):
    G, g = problem(*diabetes)
    order = np.random.default_rng(0).permutation(11)
    ours = coordinate_descent(G, g, 2 * INTERCEPT).theta
    moved = coordinate_descent(G[np.ix_(order, order)], g[order], 2 * INTERCEPT[order]).theta
    assert np.max(np.abs(moved - ours[order])) < 1e-9


def test_a_start_at_the_solution_is_left_there(diabetes):
    G, g = problem(*diabetes)
    ours = coordinate_descent(G, g, INTERCEPT)
    again = coordinate_descent(G, g, INTERCEPT, start=ours.theta)
    assert again.sweeps == 0
    assert np.allclose(again.theta, ours.theta, rtol=1e-15)
    far = coordinate_descent(G, g, INTERCEPT, start=np.full(11, -1e6))
    assert np.max(np.abs(far.theta - ours.theta)) < 1e-9


def test_what_is_given_up_is_not_certified():
    G, g = problem(*simulated(50, 200, 0.9), 1.0, intercept=False)
    l1 = 1e-4 * largest_penalty(G, g)
    assert coordinate_descent(G, g, l1, max_sweeps=20).violation > LIMIT
    assert [coordinate_descent(G, g, l1, max_sweeps=most).sweeps for most in (0, 1, 100)] == [0, 11, 110]
    assert LIMIT == 1e-6
    assert coordinate_descent(G, g, l1).violation <= 1e-9


def test_f_never_rises():
    """Each longer run is at least as good, and ends where the long one does."""
    G, g = problem(*simulated(60, 30, 0.95), 1.0, intercept=False)
    l1 = 1e-3 * largest_penalty(G, g)
    start = np.random.default_rng(0).standard_normal(30) * 10
    ends = [coordinate_descent(G, g, l1, start=start, max_sweeps=k) for k in (0, 1, 12, 23, 34, 1000)]
    values = [objective(G, g, l1, end.theta) for end in ends]
    assert np.all(np.diff(values) <= 1e-12 * np.abs(values[:-1]))
    assert ends[0].violation > 1 > LIMIT >= ends[-1].violation


def test_the_lowest_point_of_a_ray():
    """By golden sections: before, at and beyond the points where coordinates change their sign."""
    rng, kinds = np.random.default_rng(0), set()
    for _ in range(300):
        X, at, direction = rng.standard_normal((4, 5)), rng.standard_normal(5), rng.standard_normal(5)
        part = lasso._Problem(X.T @ X, rng.standard_normal(5), rng.uniform(0, 1, 5) * (rng.uniform(size=5) < 0.8))

        def f(t, part=part, at=at, way=direction):
            return objective(part.gram, part.pull, part.penalty, at + t * way)

        moved = lasso._lowest_on(part, at, direction)
        best = optimize.minimize_scalar(f, bounds=(0, 50), method="bounded", options={"xatol": 1e-10}).fun
        assert f(1, at=moved, way=0) <= min(best, f(0)) + 1e-12
        kinds.add((bool(np.any(moved == 0)), int(np.sum(moved * at < 0))))
    assert {(False, 0), (True, 0), (False, 1), (True, 1), (False, 2)} <= kinds


# -- the path


def test_largest_penalty(diabetes):
    G, g = problem(*diabetes)
    rng = np.random.default_rng(0)
    pattern, l2, mean = INTERCEPT * rng.uniform(0.1, 3, 11), rng.uniform(0, 1, 11), rng.normal(0, 20, 11)
    top = largest_penalty(G, g, pattern, l2, mean)
    at, below = (coordinate_descent(G, g, factor * top * pattern, l2, mean) for factor in (1, 1 - 1e-9))
    assert np.array_equal(at.active, [True] + [False] * 10)
    assert below.active.sum() == 2
    assert at.violation <= 1e-12
    assert largest_penalty(G, g, 0.0) == 0
    assert largest_penalty(G, g) == np.max(np.abs(g))


def test_path(diabetes):
    G, g = problem(*diabetes)
    ours = path(G, g, INTERCEPT, n=20, ratio=1e-4)
    assert ours.thetas.shape == (20, 11)
    assert ours.multipliers[0] == largest_penalty(G, g, INTERCEPT)
    assert np.allclose(ours.multipliers[1:] / ours.multipliers[:-1], 1e-4 ** (1 / 19))
    assert np.array_equal(ours.thetas[0] != 0, [True] + [False] * 10)
    for multiplier, theta, violation in zip(ours.multipliers, ours.thetas, ours.violations, strict=True):
        l1 = multiplier * INTERCEPT
        assert violation == kkt_violation(G, g, l1, 0.0, 0.0, theta) <= 1e-9
        assert np.max(np.abs(coordinate_descent(G, g, l1).theta - theta)) < 1e-9
    assert np.array_equal(path(G, g, INTERCEPT, [0.1, 3.0, 1.0]).multipliers, [3.0, 1.0, 0.1])
    assert np.allclose(path(G, g, n=3).multipliers, np.max(np.abs(g)) * np.array([1, 10**-1.5, 1e-3]), rtol=1e-12)
    moved = problem(diabetes[0] + 1, diabetes[1])  # the intercept's prior would change the rest
    assert path(*moved, INTERCEPT, n=2).multipliers[0] == largest_penalty(*moved, INTERCEPT)
    assert largest_penalty(*moved, INTERCEPT) == largest_penalty(*moved, INTERCEPT, 0.0, 0.0)
    assert len(path(G, g, INTERCEPT).multipliers) == 50
    ridge = path(G, g, INTERCEPT, n=3, l2=5.0, mean=1.0)
    assert ridge.multipliers[0] == largest_penalty(G, g, INTERCEPT, 5.0, 1.0)
    assert kkt_violation(G, g, ridge.multipliers[2] * INTERCEPT, 5.0, 1.0, ridge.thetas[2]) <= 1e-9


def test_a_path_through_more_columns_than_rows():
    ours = path(*problem(*simulated(50, 200, 0.5), 1.0, intercept=False), n=30, ratio=1e-5)
    assert np.max(ours.violations) <= 1e-8
    assert np.all(np.diff(np.sum(np.abs(ours.thetas), axis=1)) > 0)  # less penalty, larger norm


# -- the certificate


def test_the_certificate_by_hand():
    """Of f = theta^2 - 3 theta + |theta|, whose minimum is at 1, and of an unpenalized and a Gaussian coordinate."""
    for theta, violation in ((1.0, 0.0), (1.25, 0.5), (0.0, 2.0), (-1.0, 6.0)):
        assert kkt_violation([[2.0]], 3.0, 1.0, 0.0, 0.0, theta) == violation
    assert kkt_violation([[2.0]], 0.5, 1.0, 0.0, 0.0, 0.0) == 0  # within the penalty
    assert kkt_violation([[4.0]], 8.0, 0.0, 0.0, 0.0, 1.75) == 0.5  # half a standard deviation off
    assert kkt_violation([[3.0]], 8.0, 0.0, 1.0, 4.0, 3.25) == 0.5
    assert kkt_violation([[0.0]], 0.0, 1.0, 0.0, 0.0, 0.0) == 0
    assert kkt_violation([[0.0]], 1e-9, 0.0, 0.0, 0.0, 0.0) > 1e100


def test_the_certificate_is_the_slope_of_the_objective(diabetes):
    """Its largest miss, by differences of f along each axis in both directions."""
    G, g = problem(*diabetes)
    rng = np.random.default_rng(2)
    l1, l2, mean = INTERCEPT * rng.uniform(0.1, 3, 11), rng.uniform(0, 1, 11), rng.normal(0, 20, 11)
    theta = coordinate_descent(G, g, l1, l2, mean).theta
    for _ in range(20):
        at = theta + rng.normal(0, 1, 11) * (rng.uniform(size=11) < 0.4) * (theta != 0)

        def slope(j, step, at=at):
            sides = [objective(G, g, l1, at + k * step * np.eye(11)[j], l2, mean) for k in (0, 1)]
            return (sides[1] - sides[0]) / abs(step)

        # at a minimum f rises both ways; it may do so by up to two penalties in sum
        falls = [max(0.0, -slope(j, 1e-5), -slope(j, -1e-5)) for j in range(11)]
        unit = np.where(l1 > 0, l1, np.sqrt(np.diag(G) + l2))
        expected = np.max(falls / unit)
        assert kkt_violation(G, g, l1, l2, mean, at) == pytest.approx(expected, rel=1e-3, abs=1e-3)


def textbook(G, g, l1, threshold, sweeps=3000):
    """Coordinate descent in five lines, for bugs to be put in."""
    theta = np.zeros(len(g))
    for _ in range(sweeps):
        for j in range(len(g)):
            theta[j] = threshold(g[j] - G[j] @ theta + G[j, j] * theta[j], l1[j], G[j, j])
    return theta


def right(pull, l1, curvature):
    return np.sign(pull) * max(abs(pull) - l1, 0) / curvature


BUGS = {
    "sign of the threshold": lambda pull, l1, curvature: np.sign(pull) * max(abs(pull) + l1, 0) / curvature,
    "sign of the result": lambda pull, l1, curvature: -right(pull, l1, curvature),
    "penalty after the division": lambda pull, l1, curvature: right(pull / curvature, l1, 1.0),
    "no penalty": lambda pull, l1, curvature: pull / curvature,
    "twice the penalty": lambda pull, l1, curvature: right(pull, 2 * l1, curvature),
    "one sided": lambda pull, l1, curvature: max(pull - l1, 0) / curvature,
    "hard threshold": lambda pull, l1, curvature: pull / curvature * (abs(pull) > l1),
    "a millionth": lambda pull, l1, curvature: right(pull, l1 * (1 + 1e-5), curvature),
}


@pytest.mark.parametrize("name", BUGS)
def test_the_certificate_sees_a_bug_in_the_threshold(diabetes, name):
    X, y = diabetes
    G, g = problem(X[:, [1, 2, 3, 8]] * [1, 1, -1, 1], y - y.mean(), intercept=False)
    l1 = np.full(4, 2.0)
    correct = textbook(G, g, l1, right)
    assert kkt_violation(G, g, l1, 0.0, 0.0, correct) < 1e-12
    assert np.max(np.abs(correct - coordinate_descent(G, g, l1).theta)) < 1e-10
    with np.errstate(over="ignore", invalid="ignore"):
        wrong = textbook(G, g, l1, BUGS[name], sweeps=60)
    assert kkt_violation(G, g, l1, 0.0, 0.0, np.nan_to_num(wrong)) > LIMIT


@pytest.mark.parametrize("name", ["sign of the threshold", "sign of the result", "twice the penalty", "no penalty"])
def test_a_bug_in_our_own_threshold_is_not_certified(diabetes, name, monkeypatch):
    """Unless the equations on the support mend what it did."""
    G, g = problem(*diabetes)
    l1 = 2.0 * INTERCEPT
    correct = coordinate_descent(G, g, l1).theta
    monkeypatch.setattr(lasso, "_soft_threshold", lambda pull, penalty: float(BUGS[name](pull, penalty, 1.0)))
    monkeypatch.setattr(lasso, "_solve_on_support", lambda problem, phi: None)
    wrong = coordinate_descent(G, g, l1, max_sweeps=50)
    assert np.max(np.abs(wrong.theta - correct)) > 0.1
    assert not wrong.violation <= LIMIT


def test_the_certificate_sees_wrong_scales(diabetes):
    """Noise variance, n or standard deviations forgotten in the penalty."""
    X, y = diabetes
    G, g = problem(X, y)
    alpha = 3.0
    l1 = len(y) * alpha / SIGMA2 * INTERCEPT
    assert coordinate_descent(G, g, l1).violation <= 1e-9
    for factor in (1 / len(y), SIGMA2, SIGMA2**0.5, 2.0, 1 + 1e-5):
        assert kkt_violation(G, g, l1, 0.0, 0.0, coordinate_descent(G, g, factor * l1).theta) > LIMIT


# -- refusals


def test_no_unique_maximum():
    G = np.ones((2, 2))
    with pytest.raises(NumericalError, match="linearly dependent"):
        coordinate_descent(G, 1.0, 0.0)
    with pytest.raises(NumericalError, match="linearly dependent"):
        largest_penalty(G, 1.0, 0.0)
    X, y = simulated(6, 9)
    with pytest.raises(NumericalError, match="linearly dependent"):
        coordinate_descent(*problem(X * 10.0 ** np.arange(-4, 5), y, 1.0, intercept=False), 0.0)
    assert coordinate_descent(G, 1.0, [0.0, 1.0]).unique
    assert coordinate_descent(G, 1.0, 0.0, 1.0).unique  # the Gaussian prior makes it so
    with pytest.raises(NumericalError, match="column of zeros"):
        coordinate_descent(np.diag([1.0, 0.0]), [1.0, 0.0], [1.0, 0.0])
    with pytest.raises(NumericalError, match="column of zeros"):
        coordinate_descent(np.diag([1.0, 0.0]), [1.0, -3.0], [1.0, 2.0])
    with pytest.raises(NumericalError, match="no maximum"):
        coordinate_descent(G, [1.0, -1.0], 0.1)  # no data have such a pull
    with pytest.raises(NumericalError, match="0 at any penalty"):
        path(np.eye(2), 0.0)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"gram": np.ones((2, 3))}, "square"),
        ({"gram": np.array([[1.0, np.nan], [0, 1]])}, "finite"),
        ({"gram": np.array([[1.0, np.inf], [np.inf, 1]])}, "finite"),
        ({"gram": np.array([[1.0, 0.5], [0.4, 1]])}, "symmetric"),
        ({"gram": np.array([[1.0, 1.5], [1.5, 1]])}, "semidefinite"),
        ({"gram": np.array([[-1.0, 0], [0, 1]])}, "semidefinite"),
        ({"gram": np.array([[0.0, 0.1], [0.1, 1]])}, "semidefinite"),
        ({"target": [1.0, 2.0, 3.0]}, "target"),
        ({"target": [1.0, np.inf]}, "target"),
        ({"l1": [1.0, -1.0]}, ">= 0"),
        ({"l1": np.nan}, "l1"),
        ({"l2": [1.0, -1.0]}, ">= 0"),
        ({"mean": [[1.0, 2.0]]}, "mean"),
        ({"start": [1.0]}, "start"),
    ],
)
def test_refused(changed, message):
    fine = {"gram": np.eye(2), "target": [3.0, 0.5], "l1": 1.0}
    assert np.array_equal(coordinate_descent(**fine).theta, [2.0, 0.0])
    with pytest.raises(InputError, match=message):
        coordinate_descent(**(fine | changed))
