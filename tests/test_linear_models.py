"""Ridge and linear regression against scikit-learn, SciPy and many digits; their terms, priors and messages."""

from dataclasses import replace

import numpy as np
import pytest
import scipy
from sklearn.linear_model import LinearRegression as SklearnRegression
from sklearn.linear_model import Ridge as SklearnRidge

import bayeszoo as bz
from bayeszoo.families.linear.model import INTERCEPT
from tests.quick import quick_first

RIDGE, REGRESSION, LASSO = (bz.find(name) for name in ("ridge", "linear_regression", "bayesian_lasso"))
LINEAR = [RIDGE, REGRESSION, LASSO]
DIABETES = bz.example(RIDGE)


def standardized(data):
    return (data["X"] - data["X"].mean(axis=0)) / data["X"].std(axis=0, ddof=1)


def small(n=30, d=3, seed=0, offset=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 5
    return bz.read(RIDGE, (X, offset + X @ np.arange(1.0, d + 1) + rng.normal(size=n)))


# against scikit-learn


def test_the_mode_of_ridge_is_scikit_learns():
    model = RIDGE.weak(DIABETES)
    found = model.map(model.statistics(DIABETES))["w"]
    reference = SklearnRidge(alpha=(model.sigma / model.tau) ** 2, solver="svd").fit(
        standardized(DIABETES), DIABETES["y"]
    )
    assert np.allclose(found[1:] * model.scale, reference.coef_, rtol=1e-10)
    assert np.isclose(found[0], reference.intercept_, rtol=1e-12)


def test_least_squares_are_scikit_learns():
    for family in LINEAR:
        model = family.weak(DIABETES)
        found = model.mle(model.statistics(DIABETES))["w"]
        reference = SklearnRegression().fit(DIABETES["X"], DIABETES["y"])
        assert np.allclose(found[1:], reference.coef_, rtol=1e-9)
        assert np.isclose(found[0] - found[1:] @ model.center, reference.intercept_, rtol=1e-9)


def test_polynomials_are_scikit_learns():
    rng = np.random.default_rng(1)
    x = rng.uniform(2, 4, 40)
    data = bz.read(RIDGE, {"x": x, "y": np.sin(3 * x) + rng.normal(0, 0.1, 40)})
    model = replace(RIDGE.weak(data), degree=5)
    found = model.mle(model.statistics(data))["w"]
    reference = np.polynomial.Polynomial.fit(x - model.center[0], data["y"], 5, domain=[-1, 1], window=[-1, 1])
    assert np.allclose(found, reference.coef, rtol=1e-8)
    assert model.coords(data)["term"].tolist() == [INTERCEPT, "x", "x^2", "x^3", "x^4", "x^5"]


# evidence and posterior against dense distributions


def dense(model, data):
    """Prior mean and covariance of the outcomes, from the definition, with unit noise for linear regression."""
    rows = np.column_stack([np.ones(data.rows), (data["X"] - model.entries("center", 3)) / model.entries("scale", 3)])
    if isinstance(model, RIDGE):
        return rows, np.diag([model.s0**2] + [model.tau**2] * 3), model.sigma**2
    return rows, model.V0 * np.eye(4), 1.0


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_evidence_of_ridge_is_a_multivariate_normal(offset):
    data = small(offset=offset)
    model = replace(RIDGE.weak(data), tau=1.3, sigma=0.8)
    rows, prior, noise = dense(model, data)
    reference = scipy.stats.multivariate_normal(np.zeros(30), rows @ prior @ rows.T + noise * np.eye(30))
    found = model.log_evidence(model.statistics(data))
    assert abs(found - reference.logpdf(data["y"] - model.m0)) <= 1e-9 * abs(found)


def test_evidence_of_linear_regression_is_a_multivariate_t():
    data = small()
    model = REGRESSION.weak(data)
    rows, prior, noise = dense(model, data)
    shape = model.b0 / model.a0 * (rows @ prior @ rows.T + noise * np.eye(30))
    reference = scipy.stats.multivariate_t(np.full(30, model.m0), shape, df=2 * model.a0)
    found = model.log_evidence(model.statistics(data))
    assert abs(found - reference.logpdf(data["y"])) <= 1e-9 * abs(found)


def test_an_evidence_that_rounding_decides_is_withheld():
    rng = np.random.default_rng(5)
    first = rng.standard_normal(10)
    X = np.column_stack([first, first + 1e-12 * rng.standard_normal(10)])
    data = bz.read(RIDGE, (X, rng.standard_normal(10)))
    model = RIDGE(tau=1e12, intercept=False)
    assert np.isnan(model.log_evidence(model.statistics(data)))
    tree = bz.fit(model, data, "exact", seed=1)
    assert tree.attrs["status"] == "not converged"


def test_more_features_than_rows():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(8, 40))
    data = bz.read(RIDGE, (X, X[:, 0] + rng.normal(size=8)))
    model = RIDGE.weak(data)
    rows = np.column_stack([np.ones(8), standardized(data)])
    spread = rows @ np.diag([model.s0**2] + [model.tau**2] * 40) @ rows.T + model.sigma**2 * np.eye(8)
    reference = scipy.stats.multivariate_normal(np.full(8, model.m0), spread).logpdf(data["y"])
    assert np.isclose(model.log_evidence(model.statistics(data)), reference, rtol=1e-9)
    with pytest.raises(bz.NumericalError, match="the data identify 8 of 41 combinations of weights"):
        bz.fit(model, data, "mle")


# units


@pytest.mark.parametrize("family", quick_first(LINEAR))
def test_nuts_does_not_see_the_units_of_the_features(family):
    data = small(n=40)
    factors = np.array([1e12, 1.0, 1e-12])
    other = bz.read(family, (data["X"] * factors, data["y"]))
    one, two = (bz.fit(family.weak(d), d, "nuts", seed=1) for d in (data, other))
    assert one.attrs["status"] == two.attrs["status"] == "ok"
    means, errors, scaled = bz.summarize(one)["w"]["mean"], bz.summarize(one)["w"]["mcse_mean"], bz.summarize(two)["w"]
    assert np.max(np.abs(scaled["mean"] * [1.0, *factors] - means) / errors) < 6
    assert np.allclose(scaled["sd"] * [1.0, *factors], bz.summarize(one)["w"]["sd"], rtol=0.1)


@pytest.mark.parametrize("family", [RIDGE, REGRESSION])
def test_outcomes_far_from_zero_lose_nothing(family):
    near, far = small(), small(offset=1e9)
    shifted = bz.read(family, (near["X"], far["y"] - 1e9))
    one, two = family.weak(shifted), family.weak(far)
    found = two.log_evidence(two.statistics(far))
    assert np.isclose(found, one.log_evidence(one.statistics(shifted)), rtol=1e-8)


# terms and priors


def test_features_and_degree_are_of_the_same_data():
    model = replace(RIDGE.weak(DIABETES), features=("s5", "bmi"), degree=2)
    assert model.coords(DIABETES)["term"].tolist() == [INTERCEPT, "s5", "bmi", "s5^2", "bmi^2"]
    tree = bz.fit(model, DIABETES, "exact", seed=1)
    assert tree.attrs["data_digest"] == DIABETES.digest
    columns = DIABETES["X"][:, [8, 2]] - DIABETES["X"][:, [8, 2]].mean(axis=0)
    rows = np.column_stack([np.ones(442), columns, columns**2])
    reference = scipy.linalg.lstsq(rows, DIABETES["y"])[0]
    assert np.allclose(model.mle(model.statistics(DIABETES))["w"], reference, rtol=1e-8)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"intercept": 1}, "intercept must be true or false, got 1"),
        ({"degree": 1.0}, "degree must be a whole number from 0 to 30, got 1.0"),
        ({"degree": 31}, "degree must be a whole number from 0 to 30, got 31"),
        ({"features": "bmi"}, "features must be a list of names, got 'bmi'"),
        ({"features": ["a", "b", "a"]}, "features names 'a' twice"),
        ({"features": [], "intercept": False}, "a model without intercept and without features has no parameters"),
        ({"scale": [1.0, 0.0]}, r"scale\[1\] must be > 0, got 0"),
        ({"center": "x"}, "center must be a number, got 'x'"),
    ],
)
@pytest.mark.parametrize("family", LINEAR)
def test_wrong_fields_are_named(family, fields, message):
    with pytest.raises(bz.InputError, match=message):
        family(**fields)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RIDGE(tau=0), "prior sd of the weights tau must be > 0, got 0"),
        (lambda: RIDGE(sigma=-1), "noise sd sigma must be > 0, got -1"),
        (lambda: REGRESSION(V0=0), "prior covariance V0 over sigma2 must be > 0, got 0"),
        (
            lambda: REGRESSION(V0=[[1, 2], [2, 1]]),
            r"prior covariance V0 over sigma2 is not positive definite \(smallest eigenvalue -1\)",
        ),
        (
            lambda: REGRESSION(V0=[[1, 0.5], [0, 1]]),
            r"prior covariance V0 over sigma2 is not symmetric: \[0,1\]=0.5, \[1,0\]=0",
        ),
        (lambda: LASSO(b=float("nan")), "prior scale of the weights b must be finite"),
        (lambda: LASSO(learn_sigma=1), "learn_sigma and scale_mixture must be true or false"),
    ],
)
def test_wrong_priors_are_named(make, message):
    with pytest.raises(bz.InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (RIDGE(features=("weight",)), "there is no feature 'weight'"),
        (RIDGE(scale=(1.0, 2.0)), "scale has 2 entries, the data 10 of feature"),
        (REGRESSION(V0=(2.0 * np.eye(3)).tolist()), "V0 is 3 x 3, the model has 11 terms"),
        (REGRESSION(w0=(1.0, 2.0)), "prior mean of the weights w0 has 2 entries, the data 10 of slope"),
    ],
)
def test_priors_that_do_not_suit_the_data_are_named(model, message):
    with pytest.raises(bz.InputError, match=message):
        bz.fit(model, DIABETES, "exact")


def test_a_feature_named_as_a_term_is_refused():
    data = bz.read(RIDGE, {"y": [1.0, 2.0], "x": [0.0, 1.0], "x^2": [0.0, 3.0]})
    with pytest.raises(bz.InputError, match=r"a feature is called 'x\^2', as a term of the model is; rename it"):
        RIDGE(degree=2).coords(data)


# learning in batches, prediction


def test_a_stream_of_batches_is_the_whole():
    data = small(n=60)
    model = REGRESSION.weak(data)
    batches = [(data["X"][at : at + 20], data["y"][at : at + 20]) for at in (0, 20, 40)]
    *_, last = bz.stream(model, batches)
    whole = bz.update(model, data)
    assert np.allclose(last.V0, whole.V0, rtol=1e-9)
    assert np.allclose(last.w0, whole.w0, rtol=1e-9)
    assert np.isclose(last.b0, whole.b0, rtol=1e-9)
    assert last.a0 == whole.a0
    with pytest.raises(bz.InputError, match="the data have feature"):
        bz.update(whole, {"y": [1.0, 2.0], "other": [0.0, 1.0]})


def test_ridge_cannot_be_updated():
    with pytest.raises(bz.InputError, match="ridge has no closed-form posterior to go on from"):
        bz.update(RIDGE(), DIABETES)


@pytest.mark.parametrize("family", [RIDGE, REGRESSION])
def test_predictions_of_a_new_table_and_their_scores(family):
    data = small(n=40)
    train, test = data["X"][:30], data["X"][30:]
    model = family.weak(bz.read(family, (train, data["y"][:30])))
    tree = bz.fit(model, (train, data["y"][:30]), "exact", seed=1)
    frame = bz.predict(tree, {"X": test, "y": data["y"][30:]})
    stats = model.statistics(bz.read(family, (train, data["y"][:30])))
    both = model.statistics(bz.read(family, (data["X"][:31], data["y"][:31])))
    # the first new row by the chain rule of the evidence
    assert np.isclose(frame["log_score"].iloc[0], model.log_evidence(both) - model.log_evidence(stats), rtol=1e-9)
    assert list(frame.columns[:5]) == ["mean", "sd", "q025", "median", "q975"]
    alone = bz.predict(tree, {"x3": test[:, 2], "x1": test[:, 0], "more": test[:, 1] * 0, "x2": test[:, 1]})
    assert np.allclose(alone["mean"], frame["mean"])
    assert alone["observed"].isna().all()
    with pytest.raises(bz.InputError, match="features of further rows are not known"):
        bz.predict(tree, 3)
