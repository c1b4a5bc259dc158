"""Softmax regression: against scikit-learn, SciPy, Agresti and logistic regression, and where it has no maximum."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import scipy

import bayeszoo as bz
from bayeszoo.contract import concave
from bayeszoo.contract.case import Case
from bayeszoo.distributions.discrete import LogitCategorical
from bayeszoo.foundation import diagnostics
from bayeszoo.likelihoods.ops.glm import softmax_log_likelihood
from tests.refusals import raises

SOFTMAX, LOGISTIC = bz.find("softmax_regression"), bz.find("logistic_regression")
FOODS = ["fish", "invertebrate", "reptile", "bird", "other"]


def rows(n=150, terms=3, classes=3, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, terms))
    scores = X @ rng.standard_normal((terms, classes)) + rng.gumbel(size=(n, classes))
    return X, np.array(["ant", "bee", "cat", "dog"])[scores.argmax(axis=1)]


def estimate(model, data, method="map"):
    tree = bz.fit(model, data, method, seed=1)
    assert tree.attrs["status"] == "ok", tree.attrs["gate"]
    return tree.posterior["w"].to_numpy()[0, 0]


def refused(data, **fields):
    with pytest.raises(bz.NumericalError) as error:
        bz.fit(SOFTMAX(coding="reference", **fields), data, "mle", seed=1)
    return str(error.value)


# Estimates


def test_alligators_have_the_estimates_that_agresti_published():
    data = bz.example(SOFTMAX)
    assert data.rows == 219
    np.testing.assert_array_equal(np.bincount(data["y"]), [94, 61, 19, 13, 32])
    w = estimate(SOFTMAX(coding="reference"), data, "mle")
    assert SOFTMAX(coding="reference").coords(data)["equation"][0] == "invertebrate / fish"
    of_invertebrates = dict(zip(["(intercept)", *data["feature"]], w[0], strict=True))
    published = {"(intercept)": -1.549, "size[small]": 1.458, "lake[Hancock]": -1.658}
    published |= {"lake[Oklawaha]": 0.937, "lake[Trafford]": 1.122}
    assert of_invertebrates == pytest.approx(published, abs=5e-4)


def test_mle_is_the_maximum_by_scipy():
    data = bz.example(SOFTMAX)
    design, y = np.column_stack([np.ones(219), data["X"]]), data["y"]

    def loss(w):
        logits = np.column_stack([np.zeros(219), design @ w.reshape(4, 5).T])
        return -scipy.special.log_softmax(logits, axis=1)[np.arange(219), y].sum()

    oracle = scipy.optimize.minimize(loss, np.zeros(20), options={"gtol": 1e-6})
    tree = bz.fit(SOFTMAX(coding="reference"), data, "mle", seed=1)
    w = tree.posterior["w"].to_numpy()[0, 0]
    np.testing.assert_allclose(w, oracle.x.reshape(4, 5), atol=1e-4)
    height = json.loads(tree.attrs["facts"])["log_likelihood"]
    assert height == pytest.approx(-loss(w.ravel()), abs=1e-9)
    assert height == pytest.approx(-270.0401392479303, abs=1e-9)  # MNLogit of statsmodels 0.15.0


@pytest.mark.parametrize(("tau", "classes"), [(0.3, 3), (2.0, 4)])
def test_map_of_symmetric_coding_is_scikit_learns(tau, classes):
    from sklearn.linear_model import LogisticRegression

    X, y = rows(classes=classes)
    oracle = LogisticRegression(C=tau**2, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(X, y)
    w = estimate(SOFTMAX(intercept=False, tau=tau), (X, y))
    np.testing.assert_allclose(w, oracle.coef_, atol=1e-6)
    np.testing.assert_allclose(w.sum(axis=0), 0.0, atol=1e-12)
    other = estimate(SOFTMAX(intercept=False, tau=1.01 * tau), (X, y))
    assert np.max(np.abs(other - oracle.coef_)) > 1e-4  # the comparison sees a prior a hundredth too wide


def test_flat_intercepts_are_scikit_learns_too():
    from sklearn.linear_model import LogisticRegression

    X, y = rows()
    oracle = LogisticRegression(C=1.0, tol=1e-12, max_iter=10_000).fit(X, y)
    w = estimate(SOFTMAX(tau=1.0, s0=1e4), (X, y))
    np.testing.assert_allclose(w[:, 1:], oracle.coef_, atol=1e-6)
    np.testing.assert_allclose(w[:, 0] - w[0, 0], oracle.intercept_ - oracle.intercept_[0], atol=1e-6)


def two():
    X, y = rows(60, 2, 2)
    return {"a": X[:, 0], "b": X[:, 1], "y": y}, {"a": X[:, 0], "b": X[:, 1], "y": (y == "bee").astype(int)}


def test_their_evidence_by_laplace_is_the_same_and_near_the_exact_one():
    classes, zeros = two()
    less = {name: values for name, values in zeros.items() if name != "b"}
    model, twice = SOFTMAX(tau=0.8, s0=2.0, features=("a",)), LOGISTIC(tau=0.8 * 2**0.5, s0=2.0 * 2**0.5)
    by_laplace = laplace(model, bz.read(SOFTMAX, classes))
    assert by_laplace == pytest.approx(laplace(twice, bz.read(LOGISTIC, less)), abs=1e-9)
    exact = bz.fit(twice, less, "exact", seed=1)["exact"].attrs["log_evidence"]
    assert by_laplace == pytest.approx(exact, abs=0.05)
    assert abs(laplace(replace(model, tau=0.9), bz.read(SOFTMAX, classes)) - by_laplace) > 1e-3


def laplace(model, data):
    """Return Laplace's log evidence from the library's log joint, by SciPy's optimizer and log determinant."""
    joint = model.concave(data).joint
    start = np.zeros(model.concave(data).size)
    mode = scipy.optimize.minimize(lambda u: -joint(u).value, start, jac=lambda u: -joint(u).gradient, tol=1e-12).x
    there = joint(mode)
    return there.value + len(mode) * np.log(2 * np.pi) / 2 - np.linalg.slogdet(there.curvature)[1] / 2


def test_order_of_classes_does_not_matter_to_symmetric_coding():
    X, y = rows()
    names = ["cat", "ant", "bee"]
    other = bz.read(SOFTMAX, {"X": X, "y": y}, classes=names)
    w, moved = estimate(SOFTMAX(), (X, y)), estimate(SOFTMAX(), other)
    np.testing.assert_allclose(moved, w[[2, 0, 1]], atol=1e-9)
    against = estimate(SOFTMAX(coding="reference"), other)
    assert np.max(np.abs(against - estimate(SOFTMAX(coding="reference"), (X, y)))) > 0.01


def test_contrasts_and_odds_ratios_are_of_the_weights():
    model, w = SOFTMAX(), np.random.default_rng(1).standard_normal((2, 5, 3, 4))
    derived = model.derived({"w": w})
    np.testing.assert_allclose(derived["contrast"], w[..., 1:, :] - w[..., [0], :])
    np.testing.assert_allclose(derived["odds_ratio"], np.exp(derived["contrast"][..., 1:]))
    only = SOFTMAX(coding="reference").derived({"w": w})
    assert only.keys() == {"odds_ratio"}
    np.testing.assert_allclose(only["odds_ratio"], np.exp(w[..., 1:]))


# Where there is no maximum of the likelihood


def test_iris_is_separated_and_the_line_says_by_which_combination():
    line = refused(bz.example(SOFTMAX, "iris"))
    assert "separates setosa from" in line
    assert "completely, and its weight runs to infinity; map and nuts" in line
    np.testing.assert_array_less(np.abs(estimate(SOFTMAX.weak(data := bz.example(SOFTMAX, "iris")), data)), 50)


def test_classes_that_a_feature_orders_but_for_ties():
    data = {"y": list("aabbb"), "x": [1.0, 2, 2, 3, 4]}
    assert "x separates a from b but for ties" in refused(data)
    assert "completely" in refused({**data, "x": [1.0, 1.5, 2, 3, 4]})


def test_a_pair_of_classes_that_overlaps_does_not_hide_one_that_is_apart():
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.standard_normal(40), rng.standard_normal(5) + 20])
    y = np.array([*np.where(rng.random(40) < 0.5, "ant", "bee"), *["cat"] * 5])
    assert re.search("x separates (ant|bee) from cat completely", refused({"y": y, "x": x}))
    estimate(SOFTMAX(coding="reference"), {"y": y[:40], "x": x[:40]}, "mle")


def test_linear_program_agrees_with_one_over_all_pairs():
    rng, seen = np.random.default_rng(3), set()
    for _ in range(40):
        X, y = rng.integers(-2, 3, (12, 2)).astype(float), rng.integers(0, 3, 12)
        data = bz.read(SOFTMAX, {"X": X, "y": [str(k) for k in y]}, classes=["0", "1", "2"])
        if len(np.unique(y)) < 3 or np.linalg.matrix_rank(np.column_stack([np.ones(12), X])) < 3:
            continue
        likelihood = SOFTMAX(coding="reference").concave(data)
        try:
            likelihood.refuse_unbounded()
            exists = True
        except bz.NumericalError:
            exists = False
        assert exists == (not recedes(np.column_stack([np.ones(12), X]), y))
        seen.add(exists)
    assert seen == {True, False}


def recedes(X, y):
    """Say whether weights (3, T) exist under which no row's class loses against another and some row's gains."""
    differences = []
    for x, own in zip(X, y, strict=True):
        for other in {0, 1, 2} - {own}:
            row = np.zeros((3, X.shape[1]))
            row[own], row[other] = x, -x
            differences.append(row.ravel())
    A = np.array(differences)
    result = scipy.optimize.linprog(-A.sum(axis=0), -A, np.zeros(len(A)), bounds=[(-1, 1)] * A.shape[1])
    return -result.fun > 1e-6


def test_a_class_without_rows_and_symmetric_coding_have_no_estimate():
    X, y = rows(30, 1)
    data = bz.read(SOFTMAX, {"x": X[:, 0], "y": y}, classes=["ant", "bee", "cat", "emu"])
    assert "'y': class emu never occurs" in " ".join(data.notes)
    assert "no row is of class emu" in refused(data)
    assert np.isfinite(estimate(SOFTMAX(), data)).all()
    with raises(bz.NumericalError, "no_maximum", "coding", "reference"):
        bz.fit(SOFTMAX(), (X, y), "mle", seed=1)


def test_aliased_columns_and_more_columns_than_rows():
    X, y = rows(40, 1)
    twice = {"y": y, "a": X[:, 0], "b": 2 * X[:, 0]}
    assert "identify 2 of 3 combinations of weights; bz.identified names them" in refused(twice)
    wide = np.random.default_rng(1).standard_normal((9, 30))
    w = estimate(SOFTMAX(tau=0.5), (wide, list("aaabbbccc")))
    assert w.shape == (3, 31)


# Far out, and compiled


def test_log_probabilities_and_derivatives_hold_where_exp_overflows():
    logits = np.array([[0.0, 1e4, -1e4], [800.0, 0.0, -800.0], [1.0, 2.0, 3.0]])
    law = LogitCategorical(logits)
    np.testing.assert_allclose(law.logpmf([0, 2, 1]), [-1e4, -1600.0, 2 - np.logaddexp.reduce([1, 2, 3])], rtol=1e-14)
    np.testing.assert_array_equal(law.logpmf([3, -1, 7]), -np.inf)
    model, data = SOFTMAX(intercept=False, tau=1.0), bz.read(SOFTMAX, {"X": np.eye(3) * 1e3, "y": list("aba")})
    there = model.concave(data).derivatives(np.array([-3.0, 2, 1, 3, -2, 1]))
    assert np.isfinite(there.gradient).all()
    assert there.value == pytest.approx(-6000.0 - 4000.0 - np.log(2))


def test_compiled_likelihood_is_the_sum_over_rows_and_its_gradient():
    rng = np.random.default_rng(1)
    w, X, y = 30 * rng.standard_normal((4, 3)), rng.standard_normal((50, 3)), rng.integers(0, 4, 50)
    op = softmax_log_likelihood(w, X, y).owner.op
    value, gradient = op.interpreted(w, X, y)
    logits = X @ w.T
    log_p = logits - scipy.special.logsumexp(logits, axis=1, keepdims=True)
    np.testing.assert_allclose(value, log_p[np.arange(50), y].sum(), rtol=1e-13)
    np.testing.assert_allclose(gradient, (np.eye(4)[y] - np.exp(log_p)).T @ X, atol=1e-11)


def test_draws_of_rows_have_the_probabilities():
    law = LogitCategorical(np.log([[0.1, 0.2, 0.7], [0.5, 0.5, 1e-300]]))
    drawn = law.rvs((20_000, 2, 3), np.random.default_rng(1)).mean(axis=0)
    np.testing.assert_allclose(drawn, law.mean(), atol=5 * 0.5 / 20_000**0.5)


# What identities must catch


def case(**fields):
    X, y = rows(12, 2)
    return Case(SOFTMAX(tau=1.3, s0=2.0, m0=0.4, **fields), bz.read(SOFTMAX, (X, y)))


@pytest.mark.parametrize("coding", ["symmetric", "reference"])
def test_identities_hold_and_see_a_wrong_prior(monkeypatch, coding):
    assert concave.concave_density(case(coding=coding)).passed
    assert concave.concave_derivatives(case(coding=coding)).passed
    right = SOFTMAX.concave
    wider = lambda self, data: replace(right(self, data), sd=right(self, data).sd * 1.001)  # noqa: E731
    monkeypatch.setattr(SOFTMAX, "concave", wider)
    assert not concave.concave_density(case(coding=coding)).passed


def test_identities_see_a_wrong_curvature(monkeypatch):
    from bayeszoo.families.glm.softmax import SoftmaxRows

    right = SoftmaxRows._curvature
    monkeypatch.setattr(SoftmaxRows, "_curvature", lambda self, p, others: 1.001 * right(self, p, others))
    assert not concave.concave_derivatives(case()).passed


# Rows, classes and answers


def test_new_rows_take_the_classes_of_the_fit():
    tree = bz.fit(SOFTMAX(), bz.example(SOFTMAX), "map", seed=1)
    frame = bz.predict(tree, {"lake": ["George", "Hancock"], "size": ["small", "large"]})
    np.testing.assert_allclose(frame["mean"].groupby(level="row").sum(), 1.0)
    assert frame.loc[1].index.tolist() == FOODS
    known = bz.classify(tree, {"lake": ["George"], "size": ["small"], "food": ["bird"]})
    assert known["observed"].tolist() == ["bird"]
    for row, said in (
        ({"lake": "Everglades", "size": "small"}, ("unknown_label", "'Everglades'", "4")),
        ({"lake": "George", "size": "small", "food": "mammal"}, ("unknown_label", "class", "'mammal'", "5")),
    ):
        with raises(bz.InputError, *said):
            bz.classify(tree, {name: [value] for name, value in row.items()})


def test_scores_of_several_classes_are_scikit_learns():
    from sklearn.metrics import brier_score_loss, confusion_matrix, log_loss, roc_auc_score

    data = bz.example(SOFTMAX)
    frame = bz.classify(bz.fit(SOFTMAX.weak(data), data, "map", seed=1))
    p = frame[[f"p[{food}]" for food in FOODS]].to_numpy()
    assert frame.attrs["log_score_of_one"] == pytest.approx(-log_loss(data["y"], p))
    assert frame.attrs["brier_score_of_one"] == pytest.approx(brier_score_loss(data["y"], p))
    areas = [roc_auc_score(data["y"] == k, p[:, k]) for k in range(5)]
    np.testing.assert_allclose([frame.attrs["auc"][food] for food in FOODS], areas)
    table = bz.confusion(frame)
    np.testing.assert_array_equal(table, confusion_matrix(data["y"], p.argmax(axis=1), labels=range(5)))
    calibration = bz.calibration(frame)
    assert set(calibration["class"]) == set(FOODS)
    assert (calibration.groupby("class")["trials"].sum() == 219).all()
    assert set(bz.roc(frame)["class"]) == set(FOODS)


def test_a_loss_and_a_reject_option_of_three_classes():
    X, y = rows()
    tree = bz.fit(SOFTMAX(), (X, y), "map", seed=1)
    loss = np.array([[0.0, 1, 4], [2, 0, 1], [9, 3, 0]])
    frame = bz.classify(tree, loss=loss, reject=0.6)
    risk = frame[[f"p[{name}]" for name in frame.attrs["classes"]]].to_numpy() @ loss
    expected = np.where(risk.min(axis=1) <= 0.6, np.array(frame.attrs["classes"])[risk.argmin(axis=1)], "reject")
    assert frame["decision"].tolist() == expected.tolist()
    assert "reject" in expected
    assert len({*expected}) > 1


def test_classes_are_read_as_they_are_written():
    data = bz.read(SOFTMAX, {"y": [2, 10, 2, 10, 1, 2], "x": [1.0, 2, 3, 4, 5, 6]})
    assert data["class"].tolist() == ["1", "2", "10"]
    assert any("one row is of class 1" in note for note in data.notes)
    again = bz.read(SOFTMAX, dict(data))
    assert again == data
    chosen = bz.read(SOFTMAX, {"y": ["no", "yes", "no"], "x": [1.0, 2, 3]}, classes="yes,no,unsure")
    assert chosen["y"].tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("y", "options", "said"),
    [
        ([0.1, 0.2, 0.3, 0.4], {}, ("names_of_rows", "4")),
        (["a", "a", "a", "a"], {}, ("no_data", "class")),
        (["a", "b", "a", "c"], {"classes": ["a", "b"]}, ("unknown_label", "class", "'c'", "2")),
        (["a", "", "a", "b"], {}, ("missing_values", "2")),
    ],
)
def test_outcomes_that_are_no_classes_are_refused(y, options, said):
    with raises(bz.InputError, *said):
        bz.read(SOFTMAX, {"y": y, "x": [1.0, 2, 3, 4]}, **options)


def test_a_table_of_counts_is_not_taken_for_one_of_rows():
    table = {"y": list("abab"), "x": [1.0, 1, 2, 2], "Freq": [7, 1, 3, 9]}
    with raises(bz.InputError, "unclear_counts", "'Freq'") as error:
        bz.read(SOFTMAX, table)
    assert "repeat each row" in error.value.hint
    assert bz.read(SOFTMAX, table, features=["x", "Freq"])["feature"].tolist() == ["x", "Freq"]
    whole = {name: np.repeat(table[name], table["Freq"]) for name in ("y", "x")}
    assert bz.read(SOFTMAX, whole).rows == 20


def test_other_codings_are_refused():
    with raises(bz.InputError, "wrong_type", "coding", "symmetric", "reference", "'sum'"):
        SOFTMAX(coding="sum")


def test_outcomes_of_a_category_have_no_residuals():
    tree = bz.fit(SOFTMAX(), rows(), "map", seed=1)
    with raises(bz.InputError, "not_one_number", "softmax_regression", "category"):
        bz.residuals(tree)


# By sampling


@pytest.mark.slow
def test_nuts_of_two_classes_has_the_exact_answer_of_logistic_regression():
    X, y = rows(40, 1, 2, seed=4)
    tree = bz.fit(SOFTMAX(tau=0.8, s0=2.0), (X, y), "nuts", seed=1)
    exact = bz.fit(LOGISTIC(tau=0.8 * 2**0.5, s0=2.0 * 2**0.5), (X, (y == "bee").astype(int)), "exact", seed=1)
    draws = tree["derived"]["contrast"].to_numpy()[:, :, 0]
    known, mcse = exact["exact"]["w"].sel(statistic="mean").to_numpy(), diagnostics.mcse(draws)
    assert np.max(np.abs((draws.mean(axis=(0, 1)) - known) / mcse)) < 4.5
    assert np.max(np.abs((draws.mean(axis=(0, 1)) - 1.2 * known) / mcse)) > 4.5


@pytest.mark.slow
def test_evidence_by_smc_is_the_exact_one_of_logistic_regression():
    X, y = rows(30, 1, 2, seed=4)
    tree = bz.fit(SOFTMAX(tau=0.8, s0=2.0), (X, y), "smc", seed=1)
    facts = json.loads(tree.attrs["facts"])
    twice = bz.fit(LOGISTIC(tau=0.8 * 2**0.5, s0=2.0 * 2**0.5), (X, (y == "bee").astype(int)), "exact", seed=1)
    exact = twice["exact"].attrs["log_evidence"]
    assert abs(facts["log_evidence"] - exact) < max(5 * facts["log_evidence_mcse"], 0.02)
    assert facts["log_evidence_mcse"] < 0.1
    once = bz.fit(LOGISTIC(tau=0.8, s0=2.0), (X, (y == "bee").astype(int)), "exact", seed=1)
    assert abs(once["exact"].attrs["log_evidence"] - exact) > 0.1  # which the comparison would see


@pytest.mark.quick
def test_a_matrix_in_whitened_coordinates_has_one_jacobian():
    """It is one variable: a number for each row is refused by PyMC, where a sampler is compiled."""
    model = SOFTMAX(tau=2.0)
    declared = model.declare(bz.example(SOFTMAX))
    (w,) = declared.free_RVs
    value = declared.rvs_to_values[w]
    assert declared.rvs_to_transforms[w].log_jac_det(value, *w.owner.inputs).ndim == 0
