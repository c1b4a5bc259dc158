"""A length for each feature of a Gaussian process: scikit-learn's anisotropic kernels, and differences."""

import math

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor, kernels

import bayeszoo as bz
from bayeszoo.comparison.evidence.record import EmpiricalBayes
from bayeszoo.foundation.gate import at_most
from bayeszoo.plots.relevance import relevance
from tests.refusals import raises

PROCESS = bz.find("gaussian_process")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * RNG.normal(size=60)
DATA = bz.read(PROCESS, {"wave": X[:, 0], "line": X[:, 1], "noise": X[:, 2], "y": Y})
MODEL = PROCESS.weak(DATA)
PASSED = [at_most("change", 0.0, 1.0)]


@pytest.mark.parametrize("kernel", ["rbf", "matern12", "matern52 + rbf * rational_quadratic"])
def test_density_and_slopes_are_those_of_one_length_and_of_differences(kernel):
    model, x = MODEL.replaced(kernel=kernel, alpha=0.6), np.log([1.2, 0.7, 2.0, 0.9, 0.4])
    one = {"amplitude": 1.2, "length": 0.8, "sigma": 0.4}
    value, slopes = model.log_density_of_lengths(1.2, np.full(3, 0.8), 0.4, DATA)
    assert value == pytest.approx(model.log_marginal(one, DATA), abs=1e-9)
    assert slopes[1:-1].sum() == pytest.approx(0.8 * model.marginal_slopes(one, DATA)["length"], rel=1e-9)

    def height(x):
        return model.log_density_of_lengths(math.exp(x[0]), np.exp(x[1:-1]), math.exp(x[-1]), DATA)[0]

    _, slopes = model.log_density_of_lengths(1.2, np.exp(x[1:-1]), 0.4, DATA)
    steps = 1e-5 * np.eye(5)
    differences = [(height(x + step) - height(x - step)) / 2e-5 for step in steps]
    np.testing.assert_allclose(slopes, differences, rtol=1e-6, atol=1e-6)


def test_lengths_are_those_that_scikit_learn_chooses_and_the_common_one_is_then_1():
    chosen = bz.empirical_bayes(MODEL, DATA, over="scale", starts=4)
    kernel = kernels.ConstantKernel(1, (1e-3, 1e6)) * kernels.RBF([1, 1, 1], (1e-2, 1e5))
    theirs = GaussianProcessRegressor(
        kernel + kernels.WhiteKernel(0.1, (1e-6, 10)), alpha=0, n_restarts_optimizer=5, random_state=0
    ).fit(X, Y - MODEL.m0)
    assert chosen.status == "ok"
    assert chosen.log_evidence == pytest.approx(theirs.log_marginal_likelihood_value_, abs=1e-6)
    np.testing.assert_allclose(chosen.model.scale, theirs.kernel_.k1.k2.length_scale, rtol=2e-3)
    assert chosen.sigma**2 == pytest.approx(theirs.kernel_.k2.noise_level, rel=1e-3)
    assert chosen.log_evidence > chosen.log_evidence_before + 10
    mode = bz.fit(chosen.model, DATA, "mle", seed=1).posterior
    for name, value in (("length", 1.0), ("amplitude", chosen.amplitude), ("sigma", chosen.sigma)):
        assert float(mode[name].to_numpy()[0, 0]) == pytest.approx(value, rel=1e-3)


def test_a_feature_that_does_not_matter_has_a_length_that_goes_to_infinity():
    y = np.sin(2 * X[:, 0]) + 0.3 * RNG.normal(size=60)
    data = bz.read(PROCESS, {"wave": X[:, 0], "noise": X[:, 2], "y": y})
    chosen = bz.empirical_bayes(PROCESS.weak(data), data, over="scale", starts=3)
    alone = bz.read(PROCESS, {"wave": X[:, 0], "y": y})
    assert (chosen.status, chosen.limits) == ("in the limit", {"scale[noise]": math.inf})
    without = bz.empirical_bayes(PROCESS.weak(alone), alone, over="scale", starts=3)
    assert chosen.log_evidence == pytest.approx(without.log_evidence, abs=1e-3)
    axes = bz.plot_relevance(chosen, data).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["noise", "wave"]
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([0, X[:, 0].std() / chosen.model.scale[0]])


def test_relevance_is_of_a_length_for_each_feature():
    points = bz.find("gaussian_process_classification")
    data = bz.read(points, {"wave": X[:, 0], "noise": X[:, 2], "y": (X[:, 0] > 0).astype(int)})
    each = points.weak(data).replaced(length=(0.5, 4.0))
    chosen = EmpiricalBayes(each, each, ("length",), {}, 1, 1, PASSED)
    sds = data["X"].std(axis=0) / np.array(each.scale)
    assert relevance(chosen, data) == pytest.approx({"wave": sds[0] / 0.5, "noise": sds[1] / 4})
    with raises(bz.InputError, "no_capability", "scale"):
        bz.plot_relevance(EmpiricalBayes(each, each, ("amplitude",), {}, 1, 1, PASSED), data)
    with raises(bz.Untrustworthy, "withheld", "flat"):
        bz.plot_relevance(EmpiricalBayes(each, each, ("length",), {"length": "it is flat"}, 1, 1, PASSED), data)


def test_what_has_no_lengths_of_features_is_refused():
    for kernel in ("linear", "rbf + periodic"):
        with raises(bz.InputError, "wrong_shape", "one length"):
            bz.empirical_bayes(MODEL.replaced(kernel=kernel), DATA, over="scale")
    with raises(bz.InputError, "unknown_field", "scale"):
        bz.empirical_bayes(MODEL, DATA, over="m0")
