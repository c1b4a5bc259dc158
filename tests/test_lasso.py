"""The lasso: its mode against enumeration and optimizers, its path and posterior against peers and quadrature."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy
from sklearn.linear_model import lasso_path as sklearn_path

import bayeszoo as bz
from bayeszoo.contract.case import Case
from bayeszoo.contract.check import applicable, run_identity
from bayeszoo.contract.sampler import MAX_Z, largest_z
from bayeszoo.errors import NumericalError
from bayeszoo.families.lasso import mode as lasso
from bayeszoo.families.lasso.mode import LIMIT, joint_modes, kkt_violation, mode
from bayeszoo.inference.engine.approximation import Gaussian
from bayeszoo.inference.methods.mode import is_on_corner
from tests.refusals import raises

LASSO = bz.find("bayesian_lasso")
DIABETES = bz.example(LASSO)
OUTCOME = DIABETES["y"]
STANDARD = (DIABETES["X"] - DIABETES["X"].mean(axis=0)) / DIABETES["X"].std(axis=0, ddof=1)
DESIGN = np.column_stack([np.ones(len(OUTCOME)), STANDARD])
WEAK = LASSO.weak(DIABETES)
TERMS = DIABETES["feature"].tolist()
SIGMA2 = 2900.0
"""Noise variance of the diabetes data, about."""


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
def test_parallel_columns(share):
    """The mode is not unique; the sum over multiples of a column is, and the objective."""
    X, y = simulated(50, 40, 0.99)
    both, b = np.hstack([X, -2 * X]), scales(X, y, share)
    weights, alone = mode(both, y, np.concatenate([b, b / 2]), 1.0), mode(X, y, b, 1.0)
    assert max(weights.violation, alone.violation) <= 1e-8
    assert np.max(np.abs(weights.theta[:40] - 2 * weights.theta[40:] - alone.theta)) < 1e-8
    wider = mode(both, y, np.concatenate([b, b]), 1.0)  # which -2 x uses for half the penalty
    assert not wider.theta[:40].any()
    assert wider.violation <= 1e-8


def test_neither_units_nor_the_order_of_columns_matter():
    X, y = DESIGN, OUTCOME
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


@pytest.mark.slow
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


def test_the_certificate_by_hand():
    """Of f = theta^2 - 3 theta + |theta|, whose minimum is at 1."""
    X, y, b = np.array([[np.sqrt(2)]]), np.array([3 / np.sqrt(2)]), np.ones(1)
    for theta, violation in ((1.0, 0.0), (1.25, 0.5), (0.0, 2.0), (-1.0, 6.0)):
        assert kkt_violation(X, y, b, 1.0, np.array([theta])) == pytest.approx(violation, abs=1e-13)
    assert kkt_violation(X, y / 6, b, 1.0, np.zeros(1)) == 0  # within the penalty


@pytest.mark.parametrize("wrong", [lambda phi: 1.01 * phi, lambda phi: -phi, lambda phi: 0 * phi])
def test_what_a_wrong_solver_returns_is_not_certified(monkeypatch, wrong):
    X, y = DESIGN, OUTCOME
    b = np.full(11, 1e5)
    solver = lasso._least_angle
    monkeypatch.setattr(lasso, "_least_angle", lambda columns, target: wrong(solver(columns, target)))
    assert mode(X, y, b, SIGMA2).violation <= 1e-9  # coordinate descent mends it
    monkeypatch.setattr(lasso, "_coordinate_descent", lambda columns, target, start: start)
    assert mode(X, y, b, SIGMA2).violation > LIMIT
    with raises(NumericalError, "not_converged"):
        joint_modes(X, y, b, 3.0, 2.0)


def test_the_path_is_scikit_learns():
    path = bz.lasso_path(WEAK, DIABETES, points=25)
    alphas = path["alpha"].to_numpy()
    _, weights, _ = sklearn_path(STANDARD, OUTCOME - OUTCOME.mean(), alphas=alphas, tol=1e-13, max_iter=10**6)
    assert np.allclose(path[TERMS].to_numpy() * WEAK.scale, weights.T, atol=1e-6)
    assert np.array_equal(path[TERMS].to_numpy() == 0, weights.T == 0)
    assert (path["violation"] <= 1e-6).all()
    assert np.allclose(path["(intercept)"], OUTCOME.mean())
    assert (path[TERMS].iloc[0] == 0).all()  # it begins where the first weight leaves zero
    beyond = bz.lasso_path(WEAK, DIABETES, b=[path.index[0] * 1.001])
    assert (beyond[TERMS].to_numpy() != 0).sum() == 1
    (axes,) = bz.plot_lasso_path(path).axes
    assert [line.get_label() for line in axes.get_lines()[:10]] == TERMS
    assert (axes.get_xscale(), axes.get_xlabel()) == ("log", "prior scale b")


FLAT = bz.read(LASSO, {"y": [1.0, 1.0, 1.0], "x": [1.0, 2.0, 4.0]})
MIXTURE, LEARNED = replace(WEAK, scale_mixture=True), replace(WEAK, learn_sigma=True)


@pytest.mark.parametrize(
    ("call", "error", "code", "names"),
    [
        (lambda: bz.lasso_path(bz.find("ridge")()), bz.InputError, "no_path", ("bayesian_lasso",)),
        (lambda: bz.lasso_path(LEARNED), bz.InputError, "no_path", ("bayesian_lasso", "sigma")),
        (lambda: bz.lasso_path(WEAK, b=[1.0, 0.0]), bz.InputError, "out_of_range", ("b",)),
        (lambda: bz.lasso_path(WEAK, points=1), bz.InputError, "wrong_type", ("points", ">= 2")),
        (lambda: bz.lasso_path(LASSO.weak(FLAT), FLAT), NumericalError, "constant_outcome", ()),
        (lambda: bz.fit(WEAK, DIABETES, "exact"), NumericalError, "no_closed_form", ("orthogonal", 0.897)),
        (lambda: bz.fit(LEARNED, DIABETES, "exact"), NumericalError, "no_closed_form", ("noise",)),
        (lambda: bz.fit(MIXTURE, DIABETES, "map"), NumericalError, "no_maximum", ("w_j", "tau2_j")),
        (lambda: bz.fit(MIXTURE, DIABETES, "mle"), NumericalError, "no_maximum", ("tau2",)),
    ],
)
def test_what_there_is_not_is_said(call, error, code, names):
    with raises(error, code, *names):
        call()


def one_predictor(n=12, slope=0.4):
    rng = np.random.default_rng(0)
    x = rng.normal(size=n)
    return bz.read(LASSO, {"x": x, "y": slope * x + rng.normal(size=n)})


def orthogonal(n=16, seed=1):
    rng = np.random.default_rng(seed)
    raw = rng.normal(size=(n, 3))
    X = np.linalg.qr(raw - raw.mean(axis=0))[0] * np.sqrt(n)
    return bz.read(LASSO, (X, X @ [1.0, 0.0, -0.3] + rng.normal(size=n)))


def test_a_wrong_mode_does_not_pass_its_certificate():
    stats = WEAK.statistics(DIABETES)
    top = WEAK.map(stats)
    assert all(check.passed for check in WEAK.certificate(stats, top))
    for wrong in ({"w": top["w"] + 1e-5 * np.eye(11)[3]}, WEAK.mle(stats)):
        assert not all(check.passed for check in WEAK.certificate(stats, wrong))


def quadrature(model, data):
    """Log evidence, mean and sd of the slope of one predictor without intercept, by adaptive quadrature."""
    x, y = data["X"][:, 0], data["y"]
    peak = float(model.map(model.statistics(data))["w"][0])

    def log_joint(w):
        likelihood = scipy.stats.norm(x * w, model.sigma).logpdf(y).sum()
        return likelihood + scipy.stats.laplace(0, model.b).logpdf(w)

    top, options = log_joint(peak), {"points": [0.0, peak], "epsabs": 1e-13, "epsrel": 1e-12}
    powers = [lambda w, k=k: w**k * np.exp(log_joint(w) - top) for k in range(3)]
    integrals = [scipy.integrate.quad(power, -20, 20, **options)[0] for power in powers]
    mean = integrals[1] / integrals[0]
    return top + np.log(integrals[0]), mean, np.sqrt(integrals[2] / integrals[0] - mean**2)


@pytest.mark.parametrize(("b", "sigma"), [(1.0, 1.0), (0.05, 1.0), (10.0, 2.0)])
def test_one_predictor_by_quadrature(b, sigma):
    data = one_predictor()
    model = LASSO(b=b, sigma=sigma, intercept=False)
    evidence, mean, sd = quadrature(model, data)
    stats = model.statistics(data)
    assert np.isclose(model.log_evidence(stats), evidence, rtol=1e-9)
    assert np.isclose(model.posterior(stats)["w"].mean()[0], mean, rtol=1e-8)
    assert np.isclose(model.posterior(stats)["w"].std()[0], sd, rtol=1e-8)


def test_orthogonal_columns_are_one_predictor_each():
    data = orthogonal()
    model = LASSO(b=0.4, intercept=False)
    parts = [bz.read(LASSO, {"y": data["y"], "x": column}) for column in data["X"].T]
    posterior = model.posterior(model.statistics(data))["w"]
    singles = [model.posterior(model.statistics(part))["w"] for part in parts]
    assert np.allclose(posterior.mean(), [single.mean()[0] for single in singles], rtol=1e-9)
    # the evidence of all is that of none times the ratio that each column makes alone
    nothing = scipy.stats.norm(0, 1).logpdf(data["y"]).sum()
    ratios = [model.log_evidence(model.statistics(part)) - nothing for part in parts]
    assert np.isclose(model.log_evidence(model.statistics(data)), nothing + sum(ratios), rtol=1e-10)


@pytest.mark.parametrize("mixture", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_nuts_on_both_declarations_is_exact(mixture):
    data = orthogonal()
    model = replace(LASSO.weak(data), b=0.5, scale_mixture=mixture)
    tree = bz.fit(model, data, "nuts", seed=1)
    exact = replace(model, scale_mixture=False)
    posterior = exact.posterior(exact.statistics(data))
    assert tree.attrs["status"] == "ok"
    assert largest_z({"w": tree["posterior"]["w"].to_numpy()}, posterior) < MAX_Z
    wrong = replace(exact, b=0.35)  # a prior a third narrower is seen
    assert largest_z({"w": tree["posterior"]["w"].to_numpy()}, wrong.posterior(wrong.statistics(data))) > MAX_Z


@pytest.mark.slow
@pytest.mark.parametrize(("mixture", "learn_sigma"), [(True, True), (False, True)])
def test_every_declaration_is_consistent(mixture, learn_sigma):
    model = LASSO(b=0.7, sigma=1.3, s0=8.0, a0=2.5, b0=1.7, scale_mixture=mixture, learn_sigma=learn_sigma)
    data = bz.read(model, model.simulate(np.random.default_rng(2), 10)[1])
    for identity in applicable(LASSO, not mixture and not learn_sigma):
        if mixture and identity.function in ("map_is_the_maximum", "mle_is_the_maximum"):
            continue  # it has none
        if identity.function != "simulator":
            check = run_identity(identity, Case(model, data))
            assert check.passed, str(check)


def test_a_mode_at_zero_stands_beside_a_posterior_that_is_not():
    data = one_predictor(slope=0.0)
    model = replace(LASSO.weak(data), b=0.1, sigma=1.0)
    slope = bz.compare(model, data, ["map", "exact"], seed=1).query("parameter == 'w[x]'").set_index("method")
    assert slope.loc["map", "mean"] == 0.0
    assert slope.loc["exact", "q025"] < 0 < slope.loc["exact", "q975"]
    above = 1 - model.posterior(model.statistics(data))["w"].cdf(0.0)[1]
    assert slope.loc["exact", "p_positive"] == pytest.approx(above, rel=1e-12)
    assert 0.02 < above < 0.98
    assert np.isnan(slope.loc["map", "p_positive"])


@pytest.mark.parametrize(
    ("slope", "is_corner"),
    [
        (lambda x: -np.sign(x), True),
        (lambda x: -np.sign(x) - x, True),
        (lambda x: -x, False),
        (lambda x: 0.5 - 1 / (1 + np.exp(-x)), False),
        (lambda x: -(x + 5) * x / (4 + x**2), False),  # of heavy tails and skewed
        (lambda x: 1 - np.exp(x), False),
    ],
)
def test_a_mode_on_a_corner_is_told_from_a_sharp_or_skewed_one(slope, is_corner):
    """The other coordinate is smooth; the mode found is a little off the corner, as a search ends."""
    off = 1e-3 if is_corner else 0.0
    q = Gaussian(np.array([off, 0.0]), np.diag([0.1, 1.0]))
    assert is_on_corner(lambda x: (0.0, np.array([slope(x[0]), -x[1]])), q) == is_corner
