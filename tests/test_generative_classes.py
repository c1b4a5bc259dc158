"""Models whose features have a distribution too: classes by Bayes' theorem, and scores apart from others."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from bayeszoo.models.softmax_regression import SoftmaxRegression
from scipy import stats
from sklearn.naive_bayes import GaussianNB

import bayeszoo as bz
from bayeszoo.comparison.compare import require_same_density
from tests.refusals import raises

TABLE = {"y": ["a", "b", "a", "b", "c", "c", "a", "b"], "x": [0.1, 2.0, -0.3, 2.4, 5.0, 4.1, 0.7, 1.6]}
CODES = np.array([0, 1, 0, 1, 2, 2, 0, 1])


@dataclass(frozen=True)
class Discriminant(SoftmaxRegression):
    """Classes at their shares, and a normal feature in each."""

    def log_joint_classes(self, params, data):
        rows = np.asarray(TABLE["x"])[:, None]
        return np.log(params["shares"]) + stats.norm(params["mean"], params["sd"]).logpdf(rows)


@pytest.fixture(scope="module")
def data():
    return bz.read(SoftmaxRegression, TABLE, target="y", features=["x"])


def test_probabilities_of_classes_are_scikit_learns(data):
    x = np.asarray(TABLE["x"])
    groups = [x[k == CODES] for k in range(3)]
    at = {"mean": np.array([g.mean() for g in groups]), "sd": np.array([g.std() for g in groups])}
    params = {"shares": np.bincount(CODES) / len(x), **at}
    theirs = GaussianNB(var_smoothing=0.0).fit(x[:, None], CODES).predict_log_proba(x[:, None])
    assert Discriminant().log_class_probabilities(params, data) == pytest.approx(theirs, rel=1e-9, abs=1e-12)


def test_scores_of_features_and_class_are_not_those_of_the_class(data):
    generative, given = Discriminant(), SoftmaxRegression()
    assert generative.has_law_of_features()
    assert not given.has_law_of_features()
    with raises(bz.InputError, "not_comparable"):
        bz.select({"discriminant": generative, "softmax": given}, data)
    with raises(bz.InputError, "not_comparable"):
        require_same_density({"softmax": given, "discriminant": generative})
    require_same_density({"discriminant": generative, "another": Discriminant(tau=2.0)})


FEATURES = {"y": list("abbaabab"), "x": [0.1, 2.0, -0.3, 2.4, 5.0, 4.1, 0.7, 1.6], "z": [3.0, 1, 4, 1.5, 9, 2, 6, 5]}


def gaussian_pair(**counts):
    """Return both models of Gaussian features that are independent given the class, with one prior."""
    discriminant = bz.find("gaussian_discriminant")(kappa0=0.5, nu0=5.0, Psi0=1.4, covariance="diagonal")
    return discriminant, bz.find("naive_bayes")(kappa0=0.5, a0=2.5, b0=0.7, **counts)


@pytest.mark.parametrize("turned", [1, -1])
def test_discriminants_and_naive_bayes_of_the_same_numbers_are_the_same_and_compared(turned, tmp_path, run):
    pair = dict(zip(("discriminant", "bayes"), gaussian_pair(), strict=True))
    frame = bz.select(dict([*pair.items()][::turned]), FEATURES, folds=4).set_index("model")
    assert frame["log_bayes_factor"].abs().max() == pytest.approx(0.0, abs=1e-11)
    assert frame.loc["bayes", "loo"] == pytest.approx(frame.loc["discriminant", "loo"], rel=1e-12)
    assert frame.loc["bayes", "kfold"] == pytest.approx(frame.loc["discriminant", "kfold"], rel=1e-12)
    fits = [bz.fit(model, FEATURES, "exact") for model in pair.values()][::turned]
    assert len(bz.compare(fits)) > 0
    (path := tmp_path / "rows.csv").write_text(pd.DataFrame(FEATURES).to_csv(index=False))
    each = ['gaussian_discriminant covariance="diagonal"', "naive_bayes"][::turned]
    code, out, _ = run("select", "-c", each[0], "-c", each[1], path, "--folds", 2)
    assert code == 0
    assert "naive_bayes" in out


def test_data_that_one_of_two_models_reads_otherwise_are_not_compared(tmp_path, run):
    discriminant, bayes = gaussian_pair()
    counted = bz.fit(bayes, bz.read(bayes, FEATURES | {"z": [3, 1, 4, 1, 9, 2, 6, 5]}, counts=["z"]), "exact")
    with raises(bz.InputError, "not_comparable"):
        bz.select([counted, bz.fit(discriminant, FEATURES | {"z": [3, 1, 4, 1, 9, 2, 6, 5]}, "exact")])
    holes = pd.DataFrame(FEATURES | {"z": [3.0, 1, 4, None, 9, 2, 6, 5]})
    masked, dropped = bz.read(bayes, holes, missing="mask"), bz.read(discriminant, holes, missing="drop")
    with raises(bz.InputError, "not_comparable"):
        bz.select([bz.fit(bayes, masked, "exact"), bz.fit(discriminant, dropped, "exact")])
    holes.to_csv(path := tmp_path / "holes.csv", index=False)
    code, _, err = run("select", "-c", "naive_bayes", "-c", "gaussian_discriminant", path, "--missing", "mask")
    assert code == 2
    assert "different data" in err


@pytest.mark.parametrize("name", ["gaussian_discriminant", "naive_bayes"])
def test_a_pair_of_features_and_classes_is_the_table_of_both(name):
    model, frame = bz.find(name), pd.DataFrame(FEATURES)
    X, y = frame[["x", "z"]], frame["y"]
    assert bz.read(model, (X, y)) == bz.read(model, frame)
    numbered = bz.read(model, (X.to_numpy(), y.tolist()))
    np.testing.assert_array_equal(numbered["reals"], X.to_numpy())
    assert numbered["real"].tolist() == ["x1", "x2"]
    fitted = bz.fit(model, (X.to_numpy(), y), "exact")
    new = bz.classify(fitted, X.to_numpy()[:3])
    assert new["decision"].tolist() == bz.classify(fitted)["decision"].tolist()[:3]
    with raises(bz.InputError, "wrong_shape"):
        bz.read(model, (X, y[:3]))
    with raises(bz.InputError, "duplicate_name"):
        bz.read(model, (X.rename(columns={"x": "y"}), y))
