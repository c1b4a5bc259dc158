"""Naive Bayes against scikit-learn, the models of the zoo class by class, fits without a row, and draws."""

import numpy as np
import pandas as pd
import pytest
import scipy
from sklearn import naive_bayes as sklearn_naive_bayes

import bayeszoo as bz
from bayeszoo.answers.averages import CLOSED_FORM
from bayeszoo.answers.classes.probabilities import BY_FEATURES
from bayeszoo.results.stored import Fit
from tests.refusals import raises

NAIVE_BAYES = bz.find("naive_bayes")
N, K = 60, 3
CODES = np.random.default_rng(8).integers(0, K, N)
MIXED = NAIVE_BAYES(alpha=0.8, eta=0.7, kappa0=0.01, a0=1.5, b0=2.0)


def labels(codes):
    return np.array(list("abc"))[codes]


def table(missing=0.2):
    rng = np.random.default_rng(9)
    columns = {
        "flag": np.where(rng.random(N) < np.array([0.2, 0.5, 0.8])[CODES], "yes", "no").astype(object),
        "other": np.array(["no", "yes"], dtype=object)[rng.integers(0, 2, N)],
        "grade": np.array(list("pqrs"), dtype=object)[(rng.integers(0, 4, N) + CODES) % 4],
        "visits": rng.poisson(1.0 + 2 * CODES).astype(float),
        "size": rng.normal(CODES, 1.0),
        "weight": rng.normal(50, 5, N),
    }
    for values in columns.values():
        values[rng.random(N) < missing] = None if values.dtype == object else np.nan
    return pd.DataFrame({"kind": labels(CODES), **columns})


def read(frame, **options):
    return bz.read(NAIVE_BAYES, frame, target="kind", counts=["visits"], missing="mask", **options)


@pytest.fixture(scope="module")
def exact():
    return bz.fit(MIXED, read(table()), "exact", seed=1)


@pytest.fixture(scope="module")
def drawn(exact):
    """The same posterior by its draws."""
    tree = exact.copy()
    tree.attrs = {**exact.attrs, "method": "nuts", "kind": "sampled"}
    return tree


def probabilities(frame):
    return frame[[f"p[{label}]" for label in frame.attrs["classes"]]].to_numpy()


# Against others


def test_evidence_is_that_of_the_models_of_the_zoo_class_by_class():
    frame = table(missing=0.0)
    data = read(frame)
    total = evidence("dirichlet_multinomial", {"y": CODES, "category": np.array(list("abc"))}, alpha=0.8)
    for k in range(K):
        own = frame[k == CODES]
        for name in ("flag", "other"):
            total += evidence("beta_bernoulli", {"y": (own[name] == "yes").to_numpy() * 1}, a=0.7, b=0.7)
        grades = {"y": np.searchsorted(list("pqrs"), own["grade"].to_list()), "category": np.array(list("pqrs"))}
        total += evidence("dirichlet_multinomial", grades, alpha=0.7)
        total += evidence("gamma_poisson", {"y": own["visits"].to_numpy()}, a=1.0, b=1.0)
        for name in ("size", "weight"):
            prior = {"mu0": 0.0, "kappa0": 0.01, "alpha0": 1.5, "beta0": 2.0}
            total += evidence("normal_gamma", {"y": own[name].to_numpy()}, **prior)
    assert MIXED.log_evidence(MIXED.statistics(data)) == pytest.approx(total, rel=1e-12)


def evidence(name, data, **fields):
    model = bz.find(name)(**fields)
    return model.log_evidence(model.statistics(data))


def test_yes_no_features_are_scikit_learns():
    """Beta(1, 1) and Dirichlet(1) priors: its smoothing by 1 is the exact predictive; its shares are not smoothed."""
    flags = np.random.default_rng(3).integers(0, 2, (N, 5))
    frame = pd.DataFrame({"kind": labels(CODES), **{f"f{j}": np.array(["no", "yes"])[flags[:, j]] for j in range(5)}})
    prior = (np.bincount(CODES) + 1) / (N + K)
    theirs = sklearn_naive_bayes.BernoulliNB(alpha=1.0, class_prior=prior).fit(flags, CODES)
    ours = bz.classify(bz.fit(NAIVE_BAYES(), bz.read(NAIVE_BAYES, frame, target="kind"), "exact"))
    np.testing.assert_allclose(probabilities(ours), theirs.predict_proba(flags), rtol=1e-11)


def test_levels_are_scikit_learns():
    codes = np.random.default_rng(4).integers(0, 4, (N, 3))
    columns = {f"f{j}": np.array(list("pqrs"))[codes[:, j]] for j in range(3)}
    frame = pd.DataFrame({"kind": labels(CODES), **columns})
    prior = (np.bincount(CODES) + 1) / (N + K)
    theirs = sklearn_naive_bayes.CategoricalNB(alpha=0.5, class_prior=prior, min_categories=4).fit(codes, CODES)
    ours = bz.classify(bz.fit(NAIVE_BAYES(eta=0.5), bz.read(NAIVE_BAYES, frame, target="kind"), "exact"))
    np.testing.assert_allclose(probabilities(ours), theirs.predict_proba(codes), rtol=1e-11)


def test_real_numbers_at_the_maximum_of_the_likelihood_are_scikit_learns():
    data = bz.example(NAIVE_BAYES, "iris")
    theirs = sklearn_naive_bayes.GaussianNB(var_smoothing=0.0).fit(data["reals"], data["y"])
    ours = bz.classify(bz.fit(NAIVE_BAYES(), data, "mle"))
    np.testing.assert_allclose(probabilities(ours), theirs.predict_proba(data["reals"]), rtol=1e-9, atol=1e-15)
    assert ours.attrs["rows_are"] == "fitted"


def test_the_lab_test_of_the_textbook():
    """Of a rare class a test with known error rates tells it 2 to 1: CS725, section 6.6.2."""
    params = {"shares": np.array([0.99, 0.01]), "theta": np.array([[0.995, 0.005], [0.01, 0.99]])}
    labels_of_axes = {"feature": ["test"], "level": ["test=no", "test=yes"], "class": ["well", "ill"]}
    nothing = {"count": np.array([], dtype=str), "real": np.array([], dtype=str)}
    rows = {"levels": np.array([[1]]), "counts": np.empty((1, 0)), "reals": np.empty((1, 0)), **nothing}
    rows |= {name: np.array(own) for name, own in labels_of_axes.items()}
    log_p = NAIVE_BAYES().log_class_probabilities(params, rows)
    assert np.exp(log_p[0, 1]) == pytest.approx(2 / 3, abs=1e-12)


# Rows that are left out, and draws


def test_rows_left_out_are_those_of_fits_without_them(exact):
    frame, whole = bz.classify(exact, leave_one_out=True), table()
    assert frame.attrs["basis"] == CLOSED_FORM
    for i in (0, 17, 59):
        alone = bz.fit(MIXED, read(whole.drop(index=i)), "exact")
        row = whole.iloc[[i]].drop(columns="kind")
        np.testing.assert_allclose(
            probabilities(frame)[i], probabilities(bz.classify(alone, row, missing="mask"))[0], rtol=1e-9
        )
    fitted = bz.classify(exact)
    assert frame.attrs["log_score_of_one"] < fitted.attrs["log_score_of_one"]


def test_equal_rows_are_left_out_one_at_a_time():
    data = bz.example(NAIVE_BAYES, "spam")
    tree = bz.fit(NAIVE_BAYES(), data, "exact", groups=())
    frame = bz.classify(tree, leave_one_out=True)
    assert len(frame) == 4601
    model, i = NAIVE_BAYES(), 1900
    others = model.inputs.reordered(data, np.delete(np.arange(4601), i))
    law = model.predictive(model.statistics(others), model.inputs.reordered(data, np.array([i])))
    np.testing.assert_allclose(probabilities(frame)[i], law.mean()[0], rtol=1e-10)


@pytest.mark.parametrize("leave_one_out", [False, True])
def test_draws_are_weighed_by_the_features(exact, drawn, leave_one_out):
    right, by_draws = (bz.classify(tree, leave_one_out=leave_one_out) for tree in (exact, drawn))
    kept = by_draws["decision"] != "withheld"
    assert kept.sum() > 50
    gap = np.abs(probabilities(by_draws) - probabilities(right))[kept]
    errors = by_draws[[f"mcse[{label}]" for label in by_draws.attrs["classes"]]].to_numpy()[kept]
    assert np.max(gap / (errors + 1e-12)) < 6
    if leave_one_out:
        return
    assert by_draws.attrs["basis"] == BY_FEATURES
    model = Fit(drawn).model
    plain = np.exp(model.log_class_probabilities(Fit(drawn).draws(), Fit(drawn).data)).mean(axis=(0, 1))[kept]
    assert np.max(np.abs(plain - probabilities(right)[kept]) / (errors + 1e-12)) > 6  # which the test would see


def test_predictions_are_the_same_probabilities(exact, drawn):
    new = table().drop(columns="kind").iloc[:8]
    of_classes = probabilities(bz.classify(exact, new, missing="mask")).ravel()
    closed, by_draws = (bz.predict(tree, new, missing="mask", seed=2) for tree in (exact, drawn))
    np.testing.assert_allclose(closed["mean"], of_classes, rtol=1e-10)
    assert np.max(np.abs(by_draws["mean"] - of_classes) / by_draws["mcse_mean"]) < 6
    np.testing.assert_allclose(by_draws["sd"], np.sqrt(by_draws["mean"] * (1 - by_draws["mean"])), rtol=1e-9)


def test_a_class_that_is_not_known_is_told_by_its_row_alone(exact):
    """The density of the features is that of all classes together, with their shares."""
    new = table().drop(columns="kind").iloc[:5]
    frame = bz.classify(exact, new, missing="mask", density=True)
    fit = Fit(exact)
    later = fit.model.block(fit.stats).updated(fit.stats)
    rows = bz.read(fit.model, new, new=True, like=fit.like, missing="mask")
    expected = scipy.special.logsumexp(later.log_predictive_terms(rows), axis=1)
    np.testing.assert_allclose(frame["log_density"], expected, rtol=1e-12)


def test_rows_unlike_the_training_rows_are_remarked(exact):
    new = table(missing=0.0).drop(columns="kind").iloc[:3]
    new.loc[1, "size"] = 400.0
    assert bz.classify(exact, new).attrs["unlike"] == [2]
    new.loc[1, "flag"] = None  # whose density is of fewer features
    assert bz.classify(exact, new, missing="mask").attrs["unlike"] == []


def test_log_odds_of_a_row_are_the_sum_of_those_of_its_features(exact):
    table, frame = bz.explain(exact, row=7), bz.classify(exact)
    row = frame.loc[7]
    assert table.index[0] == "(shares)"
    assert set(table.index[1:]) == {"flag", "other", "grade", "visits", "size", "weight"}
    p = row[[f"p[{label}]" for label in "abc"]].to_numpy(dtype=float)
    first, second = np.sort(p)[::-1][:2]
    assert table.attrs["decision"] == "abc"[np.argmax(p)]
    assert table["log_odds"].sum() == pytest.approx(np.log(first / second), rel=1e-10)
    missing = table["value"] == "missing"
    assert missing.any()
    assert (table.loc[missing, "log_odds"] == 0).all()


def test_explanations_are_of_exact_fits_of_features(exact):
    with raises(bz.InputError, "no_closed_form"):
        bz.explain(vetoed(), row=1)
    with raises(bz.InputError, "unknown_label"):
        bz.explain(exact, row=61)
    with raises(bz.InputError, "no_closed_form"):
        bz.explain(bz.fit(bz.find("logistic_regression")(), None, "map"), row=1)


# Point estimates


def vetoed():
    """In class a no row is s, and in no class with rows of level q is the flag yes."""
    frame = pd.DataFrame({"kind": list("aaabbb"), "grade": list("pqpsps"), "flag": ["no"] * 3 + ["yes", "no", "yes"]})
    return bz.fit(NAIVE_BAYES(), bz.read(NAIVE_BAYES, frame, target="kind"), "mle")


def test_an_estimate_vetoes_classes_and_says_so():
    frame = bz.classify(vetoed(), {"grade": ["s", "p"], "flag": ["no", "no"]})
    assert frame["p[a]"].iloc[0] == 0
    assert frame.attrs["rows_vetoed"] == 1
    assert "rows_impossible" not in frame.attrs


def test_a_row_that_no_class_can_have_is_withheld():
    frame = bz.classify(vetoed(), {"grade": ["q", "p"], "flag": ["yes", "no"]})
    assert frame["decision"].tolist()[0] == "withheld"
    assert np.isnan(frame["p[a]"].iloc[0])
    assert frame["p[a]"].iloc[1] == pytest.approx(6 / 7)  # 2 / 3 * 1 against 1 / 3 * 1 / 3
    assert frame.attrs["rows_impossible"] == 1


def test_a_class_or_column_without_spread_has_no_estimate_by_likelihood():
    rows = {"kind": ["a", "a", "b"], "size": [1.0, 2.0, 3.0]}
    with raises(bz.NumericalError, "no_maximum"):
        bz.fit(NAIVE_BAYES(), bz.read(NAIVE_BAYES, rows, target="kind"), "mle")
    with raises(bz.NumericalError, "no_data"):
        declared = bz.read(NAIVE_BAYES, rows, target="kind", classes=["a", "b", "c"])
        bz.fit(NAIVE_BAYES(), declared, "mle")
    bayes = bz.fit(NAIVE_BAYES(), bz.read(NAIVE_BAYES, rows, target="kind", classes=["a", "b", "c"]), "exact")
    assert bz.classify(bayes, {"size": [1.0]})["p[c]"].iloc[0] > 0


# In parts


def test_a_posterior_is_the_prior_of_more_rows():
    whole = table()
    data = read(whole)
    updated = bz.update(MIXED, data)
    stats, twice = MIXED.statistics(data), MIXED.statistics(read(pd.concat([whole, whole], ignore_index=True)))
    both = MIXED.log_evidence(stats) + updated.log_evidence(updated.statistics(data))
    assert both == pytest.approx(MIXED.log_evidence(twice), rel=1e-11)


def test_densities_of_features_are_asked_of_models_that_have_them():
    tree = bz.fit(bz.find("logistic_regression")(), None, "map")
    with raises(bz.InputError, "no_capability"):
        bz.classify(tree, density=True)


def test_statistics_of_a_file_in_parts_are_those_of_the_whole(tmp_path):
    path, frame = tmp_path / "rows.csv", table()
    frame.to_csv(path, index=False)
    options = {"target": "kind", "counts": ["visits"], "missing": "mask", "classes": ["a", "b", "c"]}
    options["levels"] = ["flag=no,yes", "other=no,yes", "grade=p,q,r,s"]
    parts = bz.accumulate(MIXED, path, rows=20, **options)
    tree = bz.fit(MIXED, parts, "exact", seed=1)
    bz.save(tree, tmp_path / "fit.nc")
    new = frame.drop(columns="kind").iloc[:5]
    by_parts, whole = (
        bz.classify(each, new, missing="mask")
        for each in (bz.load(tmp_path / "fit.nc"), bz.fit(MIXED, read(frame, classes=["a", "b", "c"]), "exact"))
    )
    np.testing.assert_allclose(probabilities(by_parts), probabilities(whole), rtol=1e-9)
    assert by_parts.attrs["unlike"] == []  # the rows were not kept
