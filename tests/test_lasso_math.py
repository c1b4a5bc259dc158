"""The mode under Laplace priors: enumeration of all signs, a general optimizer, and a certificate that sees bugs."""

import itertools

import numpy as np
import pytest
from scipy import optimize
from sklearn.datasets import load_diabetes

from bayeszoo.errors import NumericalError
from bayeszoo.families.lasso import mode as lasso
from bayeszoo.families.lasso.mode import LIMIT, joint_modes, kkt_violation, mode

SIGMA2 = 2900.0
"""Noise variance of the diabetes data, about."""


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return np.column_stack([np.ones(len(y)), (X - X.mean(0)) / X.std(0)]), y


def simulated(n, D, correlation=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = np.sqrt(correlation) * rng.standard_normal((n, 1)) + np.sqrt(1 - correlation) * rng.standard_normal((n, D))
    w = np.where(np.arange(D) < 10, 3 * rng.standard_normal(D), 0.0)
    return X, X @ w + rng.standard_normal(n)


def objective(X, y, b, sigma2, theta):
    return np.sum((y - X @ theta) ** 2) / (2 * sigma2) + np.sum(np.abs(theta) / b)


def scales(X, y, share):
    """Scales at which the penalties are this share of the smallest that make all weights 0."""
    return np.full(X.shape[1], 1 / (share * np.max(np.abs(X.T @ y))))


# -- other routes to the mode


def test_a_general_optimizer(diabetes):
    """Theta as the difference of two positive vectors: a smooth problem with bounds, and priors that are all unlike."""
    X, y = diabetes
    b = 1 / np.random.default_rng(0).uniform(0.1, 3, 11)
    weights = mode(X, y, b, SIGMA2)

    def split(uv):
        theta = uv[:11] - uv[11:]
        slope = X.T @ (X @ theta - y) / SIGMA2
        return objective(X, y, b, SIGMA2, theta), np.concatenate([slope + 1 / b, 1 / b - slope])

    options = {"maxiter": 10**5, "maxfun": 10**6, "ftol": 1e-16, "gtol": 1e-10}
    theirs = optimize.minimize(split, np.zeros(22), jac=True, bounds=[(0, None)] * 22, options=options)
    assert weights.violation <= 1e-9
    assert np.max(np.abs(theirs.x[:11] - theirs.x[11:] - weights.theta)) < 1e-3
    assert objective(X, y, b, SIGMA2, weights.theta) <= theirs.fun + 1e-12 * abs(theirs.fun)


def lowest_by_enumeration(X, y, b):
    """Lowest objective over all 3^D patterns of signs: on one of them the equations of the minimum hold."""
    lowest = np.inf
    for signs in itertools.product((-1.0, 0.0, 1.0), repeat=len(b)):
        support = np.flatnonzero(signs)
        theta = np.zeros(len(b))
        if len(support):
            pull = X[:, support].T @ y - np.array(signs)[support] / b[support]
            theta[support] = np.linalg.lstsq(X[:, support].T @ X[:, support], pull, rcond=None)[0]
        lowest = min(lowest, objective(X, y, b, 1.0, theta))
    return lowest


@pytest.mark.parametrize("count", [40, pytest.param(400, marks=pytest.mark.slow)])
def test_all_signs_of_small_problems(count):
    rng = np.random.default_rng(5)
    for _ in range(count):
        X = rng.integers(-2, 3, (rng.integers(1, 8), rng.integers(1, 6))).astype(float)
        y, b = rng.integers(-5, 6, len(X)).astype(float), rng.choice([0.5, 1.0, 2.0], X.shape[1])
        weights = mode(X, y, b, 1.0)
        assert weights.violation < 1e-9
        assert not mode(X[:0], y[:0], b, 1.0).theta.any()
        assert objective(X, y, b, 1.0, weights.theta) <= lowest_by_enumeration(X, y, b) + 1e-9


# -- hard problems


@pytest.mark.parametrize("share", [0.3, 1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize(
    ("n", "D", "correlation"), [(442, 300, 0.9), (442, 300, 0.9999), (50, 200, 0.0), (50, 200, 0.9), (50, 200, 0.9999)]
)
def test_the_certificate_of_hard_problems(n, D, correlation, share):
    X, y = simulated(n, D, correlation)
    b = scales(X, y, share)
    weights = mode(X, y, b, 1.0)
    assert kkt_violation(X, y, b, 1.0, weights.theta) <= LIMIT
    assert weights.violation <= LIMIT
    assert np.sum(weights.theta != 0) <= n


@pytest.mark.parametrize("share", [0.3, 1e-2, 1e-4])
@pytest.mark.parametrize("correlation", [0.0, 0.99])
def test_parallel_columns(share, correlation):
    """The mode is not unique; the sum over multiples of a column is, and the objective."""
    X, y = simulated(50, 40, correlation)
    both, b = np.hstack([X, -2 * X, X[:, :7]]), scales(X, y, share)
    wide = np.concatenate([b, b / 2, b[:7]])
    weights, alone = mode(both, y, wide, 1.0), mode(X, y, b, 1.0)
    total = weights.theta[:40] - 2 * weights.theta[40:80] + np.append(weights.theta[80:], np.zeros(33))
    assert max(weights.violation, alone.violation) <= 1e-8
    assert np.max(np.abs(total - alone.theta)) < 1e-8
    assert objective(both, y, wide, 1.0, weights.theta) == pytest.approx(
        objective(X, y, b, 1.0, alone.theta), rel=1e-11
    )
    wider = mode(both, y, np.concatenate([b, b, b[:7]]), 1.0)  # which -2 x uses for half the penalty
    assert not wider.theta[:40].any()
    assert wider.violation <= 1e-8


def test_neither_units_nor_the_order_of_columns_matter(diabetes):
    X, y = diabetes
    b = np.full(11, 1 / 3.0)
    weights = mode(X, y, b, SIGMA2).theta
    assert 1 < np.sum(weights != 0) < 11
    for exponents in (np.linspace(-12, 12, 11), np.array([0, 12.0] + [0, -12, 12.0] * 3)):
        unit = 10.0**exponents
        moved = mode(X / unit, y, b * unit, SIGMA2)
        assert moved.violation <= 1e-9
        assert np.max(np.abs(moved.theta / unit - weights)) < 1e-9
    order = np.random.default_rng(0).permutation(11)
    assert np.max(np.abs(mode(X[:, order], y, b[order], SIGMA2).theta - weights[order])) < 1e-9


# -- weights and noise together


def test_two_joint_modes_are_both_found():
    rng = np.random.default_rng(3)
    x = rng.standard_normal(8)
    X, y, b, shape, scale = x[:, None], 6 * x + 0.05 * rng.standard_normal(8), np.array([0.15]), 4.5, 0.01

    def height(sigma2):
        theta = mode(X, y, b, sigma2).theta
        squares = scale + np.sum((y - X @ theta) ** 2) / 2
        return -np.sum(np.abs(theta) / b) - (shape + 1) * np.log(sigma2) - squares / sigma2

    grid = np.geomspace(1e-3, 1e3, 600)
    values = np.array([height(sigma2) for sigma2 in grid])
    peaks = np.flatnonzero((values[1:-1] > values[:-2]) & (values[1:-1] > values[2:])) + 1
    modes = joint_modes(X, y, b, shape, scale)
    assert len(peaks) == len(modes) == 2
    for candidate, peak in zip(modes, peaks[np.argsort(-values[peaks])], strict=True):
        assert candidate.sigma2 == pytest.approx(grid[peak], rel=0.03)
        assert candidate.height == pytest.approx(height(candidate.sigma2), rel=1e-12)
        assert candidate.height >= values[peak]


# -- the certificate


def test_the_certificate_by_hand():
    """Of f = theta^2 - 3 theta + |theta|, whose minimum is at 1."""
    X, y, b = np.array([[np.sqrt(2)]]), np.array([3 / np.sqrt(2)]), np.ones(1)
    for theta, violation in ((1.0, 0.0), (1.25, 0.5), (0.0, 2.0), (-1.0, 6.0)):
        assert kkt_violation(X, y, b, 1.0, np.array([theta])) == pytest.approx(violation, abs=1e-13)
    assert kkt_violation(X, y / 6, b, 1.0, np.zeros(1)) == 0  # within the penalty


@pytest.mark.parametrize(
    "factor", [1 / 442, SIGMA2, SIGMA2**0.5, 2.0, 1 + 1e-5, 0.0], ids=["n", "variance", "sd", "half", "close", "none"]
)
def test_the_certificate_sees_wrong_scales(diabetes, factor):
    X, y = diabetes
    b = np.full(11, SIGMA2 / (442 * 3.0))
    wrong = mode(X, y, b / factor, SIGMA2).theta if factor else np.linalg.lstsq(X, y)[0]
    assert kkt_violation(X, y, b, SIGMA2, mode(X, y, b, SIGMA2).theta) <= 1e-9
    assert kkt_violation(X, y, b, SIGMA2, wrong) > LIMIT


@pytest.mark.parametrize("wrong", [lambda phi: 1.01 * phi, lambda phi: -phi, lambda phi: 0 * phi])
def test_what_a_wrong_solver_returns_is_not_certified(diabetes, monkeypatch, wrong):
    X, y = diabetes
    b = np.full(11, 1e5)
    solver = lasso._least_angle
    monkeypatch.setattr(lasso, "_least_angle", lambda columns, target: wrong(solver(columns, target)))
    assert mode(X, y, b, SIGMA2).violation <= 1e-9  # coordinate descent mends it
    monkeypatch.setattr(lasso, "_coordinate_descent", lambda columns, target, start: start)
    assert mode(X, y, b, SIGMA2).violation > LIMIT
    with pytest.raises(NumericalError, match="no joint mode of weights and noise found"):
        joint_modes(X, y, b, 3.0, 2.0)
