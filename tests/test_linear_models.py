"""Linear models, their statistics and solutions: against scikit-learn, SciPy, dense linear algebra and many digits."""

from dataclasses import replace

import mpmath
import numpy as np
import pytest
import scipy
from sklearn.linear_model import LinearRegression as SklearnRegression

import bayeszoo as bz
from bayeszoo.errors import InputError
from bayeszoo.families.linear.design import INTERCEPT, identified
from bayeszoo.families.linear.least_squares import fitted, identify, solve
from bayeszoo.families.statistics.factored import FactoredMoments
from tests.refusals import raises

RIDGE, REGRESSION, LASSO = (bz.find(name) for name in ("ridge", "linear_regression", "bayesian_lasso"))
LINEAR = [RIDGE, REGRESSION, LASSO]
DIABETES = bz.example(RIDGE)


def small(n=30, d=3, seed=0, offset=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 5
    return bz.read(RIDGE, (X, offset + X @ np.arange(1.0, d + 1) + rng.normal(size=n)))


@pytest.mark.parametrize("family", LINEAR)
def test_least_squares_are_scikit_learns(family):
    model = family.weak(DIABETES)
    w = model.mle(model.statistics(DIABETES))["w"]
    peer = SklearnRegression().fit(DIABETES["X"], DIABETES["y"])
    assert np.allclose(w[1:], peer.coef_, rtol=1e-9)
    assert np.isclose(w[0] - w[1:] @ model.center, peer.intercept_, rtol=1e-9)


def test_what_the_intercept_is_of_is_said_unless_features_are_measured_from_0():
    data, said = small(), "the intercept is the mean outcome at center (by default average features)"
    peer = SklearnRegression().fit(data["X"], data["y"])
    for center in (0.0, 5.0):
        model = RIDGE(center=center)
        intercept = model.mle(model.statistics(data))["w"][0]
        assert np.isclose(intercept, peer.predict([[center] * 3])[0], rtol=1e-9)
        assert (said in "".join(model.remarks(model.statistics(data), data))) == (center != 0)
    for without in ({"degree": 0}, {"features": ()}):
        model = RIDGE(center=5.0, **without)
        assert not any("center" in note for note in model.remarks(model.statistics(data), data))


def test_an_evidence_that_rounding_decides_is_withheld():
    rng = np.random.default_rng(5)
    first = rng.standard_normal(10)
    X = np.column_stack([first, first + 1e-12 * rng.standard_normal(10)])
    data = bz.read(RIDGE, (X, rng.standard_normal(10)))
    model = RIDGE(tau=1e12, intercept=False)
    assert np.isnan(model.log_evidence(model.statistics(data)))
    tree = bz.fit(model, data, "exact", seed=1)
    assert tree.attrs["status"] == "failed"


@pytest.mark.slow
@pytest.mark.parametrize("family", LINEAR)
def test_nuts_does_not_see_the_units_of_the_features(family):
    data = small(n=40)
    factors = np.array([1e12, 1.0, 1e-12])
    other = bz.read(family, (data["X"] * factors, data["y"]))
    fits = [bz.fit(family.weak(table), table, "nuts", seed=1) for table in (data, other)]
    assert [tree.attrs["status"] for tree in fits] == ["ok", "ok"]
    plain, scaled = (bz.summarize(tree)["w"] for tree in fits)
    assert np.max(np.abs(scaled["mean"] * [1.0, *factors] - plain["mean"]) / plain["mcse_mean"]) < 6
    assert np.allclose(scaled["sd"] * [1.0, *factors], plain["sd"], rtol=0.1)


def test_features_and_degree_are_of_the_same_data():
    model = replace(RIDGE.weak(DIABETES), features=("s5", "bmi"), degree=2)
    assert model.coords(DIABETES)["term"].tolist() == [INTERCEPT, "s5", "bmi", "s5^2", "bmi^2"]
    tree = bz.fit(model, DIABETES, "exact", seed=1)
    assert tree.attrs["data_digest"] == DIABETES.digest
    columns = DIABETES["X"][:, [8, 2]] - DIABETES["X"][:, [8, 2]].mean(axis=0)
    rows = np.column_stack([np.ones(442), columns, columns**2])
    reference = scipy.linalg.lstsq(rows, DIABETES["y"])[0]
    assert np.allclose(model.mle(model.statistics(DIABETES))["w"], reference, rtol=1e-8)


ANY = [
    ({"intercept": 1}, ("wrong_type", "intercept", "1")),
    ({"degree": 1.0}, ("wrong_type", "degree", "30", "1.0")),
    ({"degree": 31}, ("wrong_type", "degree", "30", "31")),
    ({"features": "bmi"}, ("wrong_type", "features", "'bmi'")),
    ({"features": ["a", "b", "a"]}, ("duplicate_name", "features", "'a'")),
    ({"features": [], "intercept": False}, ("no_features",)),
    ({"scale": [1.0, 0.0]}, ("out_of_range", "scale[1]", "0")),
    ({"center": "x"}, ("wrong_type", "center", "'x'")),
    ({"features": ["weight"]}, ("missing_column", "'weight'")),
    ({"scale": [1.0, 2.0]}, ("wrong_shape", "scale", "2", "10")),
]


@pytest.mark.parametrize(
    ("family", "fields", "message"),
    [
        *((family, *case) for family in LINEAR for case in ANY),
        (RIDGE, {"tau": 0}, ("out_of_range", "sd", "tau", "0")),
        (RIDGE, {"sigma": -1}, ("out_of_range", "sd", "sigma", "0", "-1")),
        (REGRESSION, {"V0": 0}, ("out_of_range", "V0")),
        (REGRESSION, {"V0": [[1, 2], [2, 1]]}, ("not_positive_definite", "V0", "-1")),
        (REGRESSION, {"V0": [[1, 0.5], [0, 1]]}, ("not_symmetric", "V0", "0,1", "0.5", "1,0")),
        (REGRESSION, {"V0": (2.0 * np.eye(3)).tolist()}, ("wrong_shape", "V0", "3", "x", "11")),
        (REGRESSION, {"w0": [1.0, 2.0]}, ("wrong_shape", "mean", "w0", "2", "10")),
        (LASSO, {"b": float("nan")}, ("out_of_range", "b")),
        (LASSO, {"learn_sigma": 1}, ("wrong_type", "learn_sigma", "scale_mixture")),
    ],
)
def test_wrong_fields_are_named(family, fields, message):
    with raises(bz.InputError, *message):
        bz.fit(family(**fields), DIABETES, "exact")


def test_what_a_linear_model_does_not_take():
    data = bz.read(RIDGE, {"y": [1.0, 2.0], "x": [0.0, 1.0], "x^2": [0.0, 3.0]})
    with raises(bz.InputError, "duplicate_name", "'x^2'"):
        RIDGE(degree=2).coords(data)
    with raises(bz.InputError, "not_linear"):
        identified(bz.find("normal_gamma")())
    wide = small(8, 40)  # more features than rows
    with raises(bz.NumericalError, "no_maximum", "8", "41"):
        bz.fit(RIDGE.weak(wide), wide, "mle")


def test_predictions_find_the_features_of_a_new_table_by_name():
    data = small(n=40)
    tree = bz.fit(RIDGE.weak(data), data, "exact", seed=1)
    test = data["X"][30:]
    frame = bz.predict(tree, {"X": test, "y": data["y"][30:]})
    assert list(frame.columns[:5]) == ["mean", "sd", "q025", "median", "q975"]
    alone = bz.predict(tree, {"x3": test[:, 2], "x1": test[:, 0], "more": test[:, 1] * 0, "x2": test[:, 1]})
    assert np.allclose(alone["mean"], frame["mean"])
    assert alone["observed"].isna().all()
    with raises(bz.InputError, "new_rows_unknown"):
        bz.predict(tree, 3)


# what the data identify


def table(**columns):
    rng = np.random.default_rng(0)
    n = len(next(iter(columns.values())))
    return {"y": rng.normal(size=n), **columns}


A, B, C = np.random.default_rng(1).normal(size=(3, 12))
CONSTANT = np.full(12, 3.0)


@pytest.mark.parametrize(
    ("model", "third", "sums"),
    [
        (RIDGE(), C, ["w[(intercept)]", "w[a]", "w[b]", "w[c]"]),
        (RIDGE(), A, ["w[(intercept)]", "w[a] + w[c]", "w[b]"]),
        (RIDGE(), -2.5 * A, ["w[(intercept)]", "w[a] - 2.5 w[c]", "w[b]"]),
        (RIDGE(), A + B, ["w[(intercept)]", "w[a] + w[c]", "w[b] + w[c]"]),
        (RIDGE(), CONSTANT, ["w[(intercept)] + 3 w[c]", "w[a]", "w[b]"]),
        (RIDGE(intercept=False), CONSTANT, ["w[a]", "w[b]", "w[c]"]),
    ],
)
def test_the_sums_that_are_identified(model, third, sums):
    assert list(identified(model, table(a=A, b=B, c=third)).index) == sums


def test_units_do_not_matter_to_what_is_identified():
    model = RIDGE(scale=(1e12, 1.0, 1e-12), center=(2.0, 0.0, 2e-12))
    assert identified(model, table(a=1e12 * A, b=B, c=1e-12 * A)).index[1] == "w[a] + 1e-24 w[c]"


@pytest.mark.parametrize(("rows", "columns"), [(4, 9), (9, 9), (30, 6)])
def test_the_likelihood_depends_on_the_sums_alone(rows, columns):
    rng = np.random.default_rng(2)
    design = rng.normal(size=(rows, columns)) @ np.diag(10.0 ** rng.integers(-3, 4, columns))
    design[:, -1] = design[:, 0] - 3 * design[:, 1]
    sums = identify(design, np.ones(columns))
    size = np.linalg.norm(design, axis=0)
    assert len(sums.independent) == np.linalg.matrix_rank(design / size)
    # the design is its independent columns times the coefficients: it sees w through the sums alone
    assert np.max(np.abs(design[:, sums.independent] @ sums.coefficients - design) / size) < 1e-7
    wrong = sums.coefficients * np.where(np.arange(columns) == columns - 1, 1.001, 1.0)
    assert np.max(np.abs(design[:, sums.independent] @ wrong - design) / size) > 1e-5


def test_the_note_on_what_is_identified():
    model, data = RIDGE(), bz.read(RIDGE, table(a=A, b=B, c=A))
    said = "the data identify {} of {} combinations of weights: {}; the prior alone says the rest"
    sums = identify(model.equations(model.statistics(data))[0], np.ones(4))
    assert sums.note(["(intercept)", "a", "b", "c"]) == said.format(3, 4, "of some weights only the sum w[a] + w[c]")
    assert identify(np.eye(2), np.ones(2)).note(["a", "b"]) == ""
    sums = identify(np.eye(2)[:, [0, 1, 0, 1, 0]] * [1, 1, 0, 0, 0], np.ones(5))
    assert sums.note(list("abcde")) == said.format(2, 5, "nothing about w[c], w[d], w[e]")


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
    with raises(InputError, "wrong_statistics"):
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


def solved(design, outcome, mean, root):
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
    problem = design, outcome, mean, root
    solution, (centre, covariance, evidence) = solve(*problem), solved(*problem)
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
