"""Models whose features have a distribution too: classes by Bayes' theorem, and scores that compare with none else."""

from dataclasses import dataclass

import numpy as np
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
