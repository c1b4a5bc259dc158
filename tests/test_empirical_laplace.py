"""Empirical Bayes by Laplace's method: scikit-learn's choice for a process, quadrature for a regression; no maximum."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessClassifier, kernels

import bayeszoo as bz
from bayeszoo.data.read import Data
from bayeszoo.inference.engine import approximation
from bayeszoo.model.outer.integration import integrate
from tests.refusals import raises

RNG = np.random.default_rng(3)
X = np.sort(RNG.uniform(-3, 3, (40, 1)), axis=0)
Y = (np.sin(1.5 * X[:, 0]) + 0.4 * RNG.normal(size=40) > 0).astype(np.int64)
DATA = Data({"X": X, "y": Y, "feature": np.array(["x"])})
PROCESS, LOGISTIC = bz.find("gaussian_process_classification"), bz.find("logistic_regression")


def test_amplitude_and_length_are_those_that_scikit_learn_chooses():
    chosen = bz.empirical_bayes(PROCESS(amplitude=2.0, length=1.0), DATA, over=["amplitude", "length"], starts=2)
    theirs = GaussianProcessClassifier(kernels.ConstantKernel(4.0, (1e-3, 1e4)) * kernels.RBF(1.0, (1e-2, 1e2)))
    theirs.fit(X, Y)
    assert chosen.status == "ok"
    assert chosen.log_evidence == pytest.approx(theirs.log_marginal_likelihood_value_, abs=1e-5)
    assert chosen.model.amplitude**2 == pytest.approx(theirs.kernel_.k1.constant_value, rel=1e-2)
    assert chosen.model.length == pytest.approx(theirs.kernel_.k2.length_scale, rel=1e-2)
    assert "amplitude" in repr(chosen)


@pytest.mark.filterwarnings("ignore:The optimal value found")  # which is infinite, and their search has an end
def test_a_length_for_each_feature_tells_which_matter_as_in_scikit_learn():
    places = np.column_stack([X[:, 0], RNG.normal(size=(40, 1))])
    data = Data({"X": places, "y": Y, "feature": np.array(["wave", "noise"])})
    model = PROCESS(amplitude=2.0, length=(1.0, 3.0))
    kernel = kernels.ConstantKernel(4.0, "fixed") * kernels.RBF([1.0, 3.0], (1e-1, 1e2))
    theirs = GaussianProcessClassifier(kernel, optimizer=None).fit(places, Y)
    assert model.concave(data).laplace_evidence() == pytest.approx(theirs.log_marginal_likelihood_value_, abs=1e-10)
    chosen = bz.empirical_bayes(model, data, over="length", starts=2)
    theirs = GaussianProcessClassifier(kernel).fit(places, Y)
    assert chosen.log_evidence == pytest.approx(theirs.log_marginal_likelihood_value_, abs=3e-3)
    wave, noise = chosen.model.length
    assert wave == pytest.approx(theirs.kernel_.k2.length_scale[0], rel=0.02)
    assert (chosen.status, chosen.limits) == ("in the limit", {"length[noise]": np.inf})
    assert noise > 100 * wave
    with raises(bz.InputError, "wrong_shape"):
        model.replaced(kernel="periodic").concave(data)


def test_importance_sampling_has_the_evidence_of_the_quadrature():
    data = bz.example(LOGISTIC, "challenger")
    chosen = bz.empirical_bayes(LOGISTIC.weak(data), data, over="tau", starts=2)
    exact = integrate(chosen.model, data).log_evidence
    assert abs(chosen.importance_evidence - exact) < 4 * chosen.importance_evidence_se + 1e-3
    assert 1e-3 < abs(chosen.log_evidence - exact) < 0.3  # of Laplace's method itself


def test_an_evidence_whose_gap_is_not_known_is_a_caution(monkeypatch):
    """Weights about the mode that are too unequal to average say nothing of how far Laplace's method is off."""
    data = bz.example(LOGISTIC, "challenger")
    monkeypatch.setattr(approximation, "pareto_k", lambda log_weights: 0.6)
    chosen = bz.empirical_bayes(LOGISTIC.weak(data), data, over="tau", starts=2)
    assert (chosen.status, chosen.is_shown) == ("caution", True)
    assert np.isnan(chosen.importance_evidence)
    assert [check.name for check in chosen.checks if not check.passed] == ["k_hat"]


def test_without_a_maximum_no_field_is_chosen():
    coin = bz.read(LOGISTIC, {"y": [0, 1] * 20, "x": np.tile([-1.0, -1.0, 1.0, 1.0], 10)})
    chosen = bz.empirical_bayes(LOGISTIC(tau=1.0), coin, over="tau", starts=2)
    assert chosen.status == "at the boundary"
    assert "tau" in chosen.boundary
    with raises(bz.InputError, "no_closed_form"):
        bz.empirical_bayes(bz.find("support_vector_regression")(), over="tau")
