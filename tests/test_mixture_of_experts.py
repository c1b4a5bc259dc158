"""Mixtures of experts: against linear_regression, sums over labels, SciPy's optimizer, mixtures of regressions."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize, special, stats

import bayeszoo as bz
from bayeszoo.contract.case import Case
from bayeszoo.contract.check import IDENTITIES, run_identity
from bayeszoo.inference.engine.ascent import AscentError
from bayeszoo.results.stored import Fit
from tests.refusals import raises

Experts, Mixture, Linear = map(bz.find, ("mixture_of_experts", "mixture_of_regressions", "linear_regression"))
FIELDS = {"m0": 0.4, "w0": 0.2, "V0": 3.0, "a0": 1.3, "b0": 0.7, "center": (1.0,), "scale": (2.0,)}
ROWS = {"y": [1.0, 3.1, 0.8, 2.2, -1.5, 0.3], "x": [0.5, 2.0, 1.1, 3.0, 2.2, 0.1]}
POINT = {
    "gate": np.array([[0.3, -0.3], [-0.8, 0.8]]),
    "w": np.array([[1.0, 2.0], [0.5, -1.0]]),
    "sigma2": np.array([0.2, 1.5]),
}
ETHANOL = bz.example(Experts)


def soft_rows(size=120):
    """Rows whose line changes gradually with x, about lines that are far apart."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=size)
    is_second = rng.random(size) < special.expit(1.5 * x - 0.5)
    return {"y": np.where(is_second, 4 - x, -1 + 2 * x) + rng.normal(scale=0.7, size=size), "x": x}


def log_joint(p, rows, model=None):
    """The log likelihood at 8 free numbers by SciPy alone, and with a model the log density of its prior."""
    y, x = np.asarray(rows["y"]), np.asarray(rows["x"])
    gate, w, sigma2 = p[:2], p[2:6].reshape(2, 2), np.exp(p[6:])
    second = special.expit(2 * (gate[0] + gate[1] * x))
    each = [stats.norm.pdf(y, own[0] + own[1] * x, np.sqrt(v)) for own, v in zip(w, sigma2, strict=True)]
    value = np.sum(np.log((1 - second) * each[0] + second * each[1]))
    if model is not None:
        value += np.sum(stats.norm(0, np.array([model.s0, model.tau]) / np.sqrt(2)).logpdf(gate) - np.log(2) / 2)
        value += np.sum(stats.invgamma(model.a0, scale=model.b0).logpdf(sigma2))
        value += sum(
            stats.multivariate_normal([0, 0], model.V0 * v).logpdf(own) for own, v in zip(w, sigma2, strict=True)
        )
    return value


def highest(rows, model=None):
    start = np.array([-0.2, 0.8, -1, 2, 4, -1, -0.7, -0.7])
    return optimize.minimize(lambda p: -log_joint(p, rows, model), start, method="BFGS", options={"gtol": 1e-7})


def test_one_expert_is_linear_regression():
    data, line = bz.read(Experts, ROWS), Linear(**FIELDS)
    model, sums = Experts(K=1, **FIELDS), line.statistics(bz.read(Linear, ROWS))
    mode = model.m_step(model.expected_statistics(np.ones((6, 1)), data))
    expected = line.map(sums)
    assert not np.any(mode["gate"])
    np.testing.assert_allclose(mode["w"][0], expected["w"], rtol=1e-9)
    np.testing.assert_allclose(mode["sigma2"][0], expected["sigma2"], rtol=1e-9)
    joint = model.log_prior(mode, data) + model.log_rows(mode, data).sum()
    exact = line.posterior(sums).logpdf(expected) + line.log_evidence(sums)
    assert joint == pytest.approx(exact, abs=1e-9)


def test_likelihood_is_the_sum_over_all_labels():
    model, data, x = Experts(K=2, **FIELDS), bz.read(Experts, ROWS), (np.array(ROWS["x"]) - 1.0)
    log_gate = special.log_softmax(np.column_stack([np.ones(6), x]) @ POINT["gate"], axis=1)
    log_y = stats.norm.logpdf(
        np.array(ROWS["y"])[:, None], np.column_stack([np.ones(6), x]) @ POINT["w"].T, np.sqrt(POINT["sigma2"])
    )
    each = [sum((log_gate + log_y)[n, k] for n, k in enumerate(z)) for z in itertools.product(range(2), repeat=6)]
    assert model.log_likelihoods(POINT, data) == pytest.approx(special.logsumexp(each), abs=1e-12)
    first = [value for z, value in zip(itertools.product(range(2), repeat=6), each, strict=True) if z[0] == 0]
    share = np.exp(special.logsumexp(first) - special.logsumexp(each))
    assert model.component_probabilities(POINT, data)[0, 0] == pytest.approx(share, abs=1e-12)


def test_a_gate_of_0_is_a_mixture_of_regressions_of_equal_weights():
    data, of_experts = bz.read(Experts, ROWS), {**POINT, "gate": np.zeros((2, 2))}
    equal = {"weights": np.full(2, 0.5), "w": POINT["w"], "sigma2": POINT["sigma2"]}
    experts, mixture = Experts(K=2, **FIELDS), Mixture(K=2, **FIELDS)
    np.testing.assert_allclose(experts.log_rows(of_experts, data), mixture.log_rows(equal, data), rtol=1e-13)
    laws = experts.likelihood(of_experts, data), mixture.likelihood(equal, data)
    np.testing.assert_allclose(laws[0].ppf(0.2), laws[1].ppf(0.2), rtol=1e-12)
    np.testing.assert_allclose(experts.predictor(of_experts, data), mixture.predictor(equal, data), rtol=1e-13)


@pytest.mark.parametrize("method", ["mle", "map"])
def test_the_maximum_is_that_of_scipy(method):
    """Of an independent density; the fit is not told where to begin."""
    rows, model = soft_rows(), Experts(K=2, V0=9.0, a0=1.3, b0=0.7, tau=2.0, s0=1.5)
    best = highest(rows, model if method == "map" else None)
    tree = bz.fit(model, rows, method, seed=1)
    height = Fit(tree).facts["log_joint" if method == "map" else "log_likelihood"]
    assert height == pytest.approx(-best.fun, abs=1e-6)
    second = int(np.argmax(tree["posterior"]["w"].to_numpy()[0, 0, :, 0]))
    gate = tree["posterior"]["gate"].to_numpy()[0, 0, :, second]
    np.testing.assert_allclose(gate, best.x[:2], atol=1e-3)
    np.testing.assert_allclose(tree["posterior"]["gate"].to_numpy().sum(axis=-1), 0.0, atol=1e-9)


@pytest.mark.parametrize("factor", [1e9, 1e-9])
def test_features_in_other_units_have_weights_in_other_units(factor):
    model, data = Experts(K=2, **FIELDS), bz.read(Experts, ROWS)
    there = replace(model, center=(factor,), scale=(2.0 * factor,))
    far = bz.read(Experts, {**ROWS, "x": np.array(ROWS["x"]) * factor})
    each = np.random.default_rng(0).dirichlet([1, 1], 6)
    near, moved = (
        model.m_step(model.expected_statistics(each, data)),
        there.m_step(there.expected_statistics(each, far)),
    )
    np.testing.assert_allclose(moved["gate"] * [[1.0], [factor]], near["gate"], rtol=1e-8)
    volume = 3 * np.log(factor)  # a slope of the gate, and one of each expert
    assert there.log_prior(moved, far) - volume == pytest.approx(model.log_prior(near, data), abs=1e-8)


def test_a_gate_that_separates_is_refused_by_its_feature():
    with raises(bz.NumericalError, "no_maximum", "E separates"):
        bz.fit(Experts.weak(ETHANOL), ETHANOL, "mle", seed=1)
    tree = bz.fit(Experts.weak(ETHANOL), ETHANOL, "map", seed=1)
    assert Fit(tree).status == "ok"
    (row,) = bz.select([Experts.weak(ETHANOL)], ETHANOL, loo=False).to_dict("records")
    assert "E separates" in row["likelihood_from"]
    assert np.isnan([row["log_likelihood"], row["aic"], row["bic"]]).all()


def test_an_expert_on_few_rows_is_refused():
    few = {"y": [0.1, 1.9, 4.2, 5.9, 40.0], "x": [0.0, 1.0, 2.0, 3.0, 4.0]}
    with raises(bz.NumericalError, "not_converged"):
        bz.fit(Experts(K=2), few, "mle", seed=1)
    with raises(bz.InputError, "too_few_rows"):
        bz.fit(Experts(K=7), ROWS, "map", seed=1)


def bug(**methods):
    return type("MixtureOfExperts", (Experts,), {**methods, "name": Experts.name})


def of_transposed_gate(self, params, data):
    return Experts.log_row_weights(self, {**params, "gate": np.swapaxes(params["gate"], -1, -2)}, data)


BUGS = {
    "em_objective": bug(log_prior=lambda self, params, data: Experts.log_prior(self, params, data) + 1e-6),
    "em_map_is_stationary": bug(
        m_step=lambda self, stats, flat=False: Experts.m_step(replace(self, tau=2 * self.tau), stats, flat)
    ),
    "em_mle_is_stationary": bug(m_step=lambda self, stats, flat=False: Experts.m_step(self, stats, False)),
    "likelihood_of_rows": bug(log_row_weights=of_transposed_gate),
    "compiled_density": bug(compiled=lambda self, data: Experts.compiled(replace(self, s0=2 * self.s0), data)),
}


@pytest.mark.parametrize("function", BUGS)
def test_the_identity_sees_the_bug(function):
    rows, identity = soft_rows(40), next(own for own in IDENTITIES if own.function == function)
    case = Case(BUGS[function](tau=0.5), bz.read(Experts, rows))
    try:
        seen = not run_identity(identity, case).passed
    except AscentError:  # the engine saw it first
        seen = True
    assert seen


@pytest.mark.slow
def test_chains_have_the_posterior_of_importance_sampling():
    """Samples; the gate's posterior is by weights of draws of a wide Gaussian about the mode of SciPy."""
    rows, model = soft_rows(60), Experts(K=2, V0=9.0, a0=1.3, b0=0.7, tau=2.0, s0=1.5)
    tree = bz.fit(model, rows, "nuts", seed=1, draws=2000)
    w, gate = (tree["posterior"][name].to_numpy().reshape(-1, 2, 2) for name in ("w", "gate"))
    second = np.argmax(w[:, :, 0], axis=1)
    slopes = gate[np.arange(len(gate)), 1, second]
    best, rng = highest(rows, model), np.random.default_rng(0)
    law = stats.multivariate_t(best.x, 1.5 * best.hess_inv, df=8, seed=rng)
    points = law.rvs(20_000)
    heights = np.array([log_joint(p, rows, model) + p[6:].sum() for p in points]) - law.logpdf(points)
    weights = special.softmax(heights)
    assert 1 / np.sum(weights**2) > 300
    mean = weights @ points[:, 1]
    sd = np.sqrt(weights @ (points[:, 1] - mean) ** 2)
    assert abs(slopes.mean() - mean) < 0.2 * sd
    assert slopes.std() == pytest.approx(sd, rel=0.15)
