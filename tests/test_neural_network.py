"""A network: against SciPy's multivariate Student t, a sum over a lattice, scikit-learn's network, and its prior."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize, special, stats
from sklearn.neural_network import MLPRegressor

import bayeszoo as bz
from bayeszoo.contract.case import Case
from bayeszoo.contract.check import IDENTITIES, run_identity
from bayeszoo.contract.sampler import sampler_checks
from bayeszoo.likelihoods.loops.network import network_value_and_gradient
from bayeszoo.model.outer.integration import integrate
from bayeszoo.results.stored import Fit
from tests.refusals import raises

Network = bz.find("neural_network")
FIELDS = {"tau": 1.5, "s0": 1.0, "V0": 20.0, "a0": 1.5, "b0": 0.3, "m0": 0.2}
RNG = np.random.default_rng(0)
X = RNG.normal(size=12)
ROWS = {"y": 1.5 * np.tanh(2 * X - 0.5) + RNG.normal(scale=0.3, size=12), "x": X}
TWO = {"y": ROWS["y"], "x": X, "z": RNG.normal(size=12)}


def points(model, data, size):
    shapes, rng = model.outer_shapes(data), np.random.default_rng(1)
    return {name: rng.normal(size=(size, *shape)) for name, shape in shapes.items()}


def student_t(weights, bias, rows, H):
    """The law of all rows given the hidden weights of each, by SciPy."""
    x = np.column_stack([rows[name] for name in rows if name != "y"])
    units = np.column_stack([np.ones(len(x)), np.tanh(x @ weights + bias)])
    own = np.diag(np.r_[FIELDS["V0"], np.full(H, FIELDS["V0"] / H)])
    shape = FIELDS["b0"] / FIELDS["a0"] * (np.eye(len(x)) + units @ own @ units.T)
    return stats.multivariate_t(np.full(len(x), FIELDS["m0"]), shape, df=2 * FIELDS["a0"])


@pytest.mark.parametrize("H", [1, 3])
def test_density_with_the_output_integrated_out_is_that_of_a_student_t(H):
    model, data = Network(H=H, **FIELDS), bz.read(Network, TWO)
    outer = points(model, data, 4)
    pairs = zip(outer["weights"], outer["bias"], strict=True)
    expected = [student_t(weights, bias, TWO, H).logpdf(TWO["y"]) for weights, bias in pairs]
    np.testing.assert_allclose(model.log_marginal(outer, data), expected, rtol=1e-10)


def test_far_outcomes_and_units_lose_no_digits():
    model, data = Network(H=2, **FIELDS), bz.read(Network, TWO)
    outer = points(model, data, 3)
    moved = bz.read(Network, {**TWO, "y": TWO["y"] + 1e8, "x": TWO["x"] * 1e9})
    there = replace(model, m0=FIELDS["m0"] + 1e8, scale=(1e9, 1.0), center=(0.0, 0.0))
    near = replace(model, scale=(1.0, 1.0), center=(0.0, 0.0))
    np.testing.assert_allclose(there.log_marginal(outer, moved), near.log_marginal(outer, data), atol=1e-5)


def test_slopes_of_the_compiled_density_are_differences_of_scipy_s():
    """Compiles the loops of the density, once for a machine."""
    model, data = Network(H=2, **FIELDS), bz.read(Network, TWO)
    terms = np.column_stack([np.ones(12), data["X"]])

    def compiled(w):
        y = data["y"] - FIELDS["m0"]
        return network_value_and_gradient(w.reshape(3, 2), terms, y, model.precision, FIELDS["a0"], FIELDS["b0"])

    w = np.random.default_rng(2).normal(size=6)
    value, slopes = compiled(w)
    expected = student_t(w.reshape(3, 2)[1:], w[:2], TWO, 2).logpdf(TWO["y"])
    assert value == pytest.approx(expected, abs=1e-10)
    np.testing.assert_allclose(slopes.ravel(), optimize.approx_fprime(w, lambda w: compiled(w)[0], 1e-6), atol=1e-4)


def test_one_unit_is_exact_by_quadrature_and_its_signs_are_alike():
    """Integrates over two numbers; the sum over a lattice is of SciPy's densities."""
    model, data = Network(H=1, **FIELDS), bz.read(Network, ROWS)
    known = integrate(model, data)
    w, b = np.linspace(-14, 14, 141), np.linspace(-9, 9, 91)
    heights = np.array([[student_t(np.array([[i]]), j, ROWS, 1).logpdf(ROWS["y"]) for j in b] for i in w])
    heights += stats.norm(0, 1.5).logpdf(w)[:, None] + stats.norm(0, 1.0).logpdf(b)
    expected = special.logsumexp(heights) + np.log((w[1] - w[0]) * (b[1] - b[0]))
    assert known.log_evidence == pytest.approx(expected, abs=1e-4)
    assert all(check.passed for check in known.checks)
    assert known.posterior["weights"].cdf(np.zeros((1, 1))) == pytest.approx(0.5, abs=1e-6)


def test_output_weights_are_those_of_scikit_learn_s_network_where_penalties_agree():
    """It has no prior of biases: ours of the intercept is next to flat, and the hidden layer is taken from it."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=200)
    y = np.sin(2 * x) + rng.normal(scale=0.2, size=200)
    V0, H = 1e3, 3
    options = {"activation": "tanh", "solver": "lbfgs", "max_iter": 20_000, "tol": 1e-12, "random_state": 1}
    fitted = MLPRegressor(hidden_layer_sizes=(H,), alpha=H / V0, **options)
    fitted.fit(x[:, None], y)
    outer = {"weights": fitted.coefs_[0], "bias": fitted.intercepts_[0]}
    given = Network(H=H, V0=V0).posterior_given(outer, bz.read(Network, {"y": y, "x": x}))
    np.testing.assert_allclose(given["output"].mean(), fitted.coefs_[1][:, 0], rtol=2e-3)
    assert given["intercept"].mean() == pytest.approx(fitted.intercepts_[1][0], abs=1e-3)


def test_joint_density_is_scikit_learn_s_objective_where_penalties_agree_and_so_is_its_mode():
    """Given the noise the log joint is a constant less its loss in units of the noise: biases have next to no prior."""
    x, rng = np.linspace(-2, 2, 60), np.random.default_rng(3)
    y = np.sin(2 * x) + rng.normal(scale=0.2, size=60)
    V0, H, sigma2 = 1e3, 2, 0.04
    options = {"activation": "tanh", "solver": "lbfgs", "max_iter": 20_000, "tol": 1e-14, "random_state": 1}
    peer = MLPRegressor(hidden_layer_sizes=(H,), alpha=H / V0, **options).fit(x[:, None], y)
    model, data = Network(H=H, V0=V0, tau=np.sqrt(sigma2 * V0 / H), s0=1e4), bz.read(Network, {"y": y, "x": x})
    shapes = [own.shape for own in (*peer.coefs_, *peer.intercepts_)]
    ends = np.cumsum([np.prod(shape) for shape in shapes])[:-1]

    def parts(u):
        return [np.reshape(own, shape) for own, shape in zip(np.split(u, ends), shapes, strict=True)]

    def log_joint(u):
        weights, output, bias, intercept = parts(u)
        outer = {"weights": weights, "bias": bias}
        inner = {"output": output[:, 0], "intercept": intercept[0], "sigma2": np.array(sigma2)}
        given = model.posterior_given(outer, data).logpdf(inner)
        of_intercept = np.square(intercept[0]) / (2 * sigma2 * V0)  # which has no penalty there
        return float(model.log_outer_prior(outer, data) + model.log_marginal(outer, data) + given + of_intercept)

    def loss(u):
        peer.coefs_, peer.intercepts_ = parts(u)[:2], parts(u)[2:]
        squares = sum(np.sum(np.square(own)) for own in peer.coefs_)
        return np.mean(np.square(y - peer.predict(x[:, None]))) / 2 + peer.alpha * squares / (2 * len(y))

    theirs = np.concatenate([np.ravel(own) for own in (*peer.coefs_, *peer.intercepts_)])
    assert loss(theirs) == pytest.approx(peer.loss_, rel=1e-9)
    points = theirs + np.random.default_rng(0).normal(scale=0.5, size=(5, len(theirs))) * np.arange(5)[:, None]
    constants = [log_joint(u) + len(y) / sigma2 * loss(u) for u in points]
    np.testing.assert_allclose(constants, constants[0], atol=1e-5)
    polished = optimize.minimize(lambda u: -log_joint(u), theirs)
    assert 0 <= -polished.fun - log_joint(theirs) < 1e-3


def test_many_units_are_a_gaussian_process():
    """Covariances of the prior are those of pairs of tanh; about the arcsine kernel of erf units; tails thin as 1/H."""
    model = Network(H=1, tau=1.5, s0=1.0, V0=4.0, a0=50.0, b0=50.0)
    places = bz.read(Network, {"y": np.zeros(2), "x": np.array([-0.4, 1.1])})
    terms = np.array([[1.0, -0.4], [1.0, 1.1]])
    own = terms @ np.diag([1.0, 1.5**2]) @ terms.T
    nodes, mass = np.polynomial.hermite_e.hermegauss(60)
    z = np.stack(np.meshgrid(nodes, nodes)).reshape(2, -1)
    both = np.tanh(np.linalg.cholesky(own) @ z)
    kernel = 1 + (both * np.outer(mass, mass).ravel()) @ both.T / mass.sum() ** 2
    arcsine = 1 + 2 / np.pi * np.arcsin(
        np.pi / 2 * own / np.sqrt(np.outer(1 + np.pi / 2 * np.diag(own), 1 + np.pi / 2 * np.diag(own)))
    )
    np.testing.assert_allclose(arcsine, kernel, rtol=0.02)

    def functions(H, size=20_000):
        wide, rng = replace(model, H=H), np.random.default_rng(4)
        outer = {"weights": rng.normal(0, 1.5, (size, 1, H)), "bias": rng.normal(0, 1.0, (size, H))}
        output = rng.normal(0, np.sqrt([4.0, *[4.0 / H] * H]), (size, H + 1))
        return np.einsum("snh,sh->sn", wide.units(outer, places), output)

    np.testing.assert_allclose(np.cov(functions(5).T), 4 * kernel, rtol=0.04)
    tails = [stats.kurtosis(functions(H)[:, 1] - functions(H)[:, 0]) for H in (1, 16)]
    assert tails[1] < 0.3 * tails[0]


@pytest.mark.slow  # a million points
def test_a_steep_step_between_two_rows_is_integrated_over():
    """Against a sum over angle and length of (weight, bias): ridges lie along lines through 0, of one angle each."""
    x = np.array([0.4, 0.9, 2.3, 2.8, 3.3, 3.9, 4.0, 4.4, 5.1, 6.0, 7.1, 8.0, 9.1, 9.6])
    y = np.where(x < 5, 1.0, 3.0) + 0.4 * np.random.default_rng(1).normal(size=14)
    data = bz.read(Network, {"y": y, "x": x})
    model = Network.weak(data).replaced(H=1)
    angles, (nodes, weights) = np.arange(4000) * np.pi / 4000, special.roots_legendre(120)
    r, of_r = 9 * (nodes + 1), 9 * weights
    outer = {"weights": np.outer(np.cos(angles), r)[..., None, None], "bias": np.outer(np.sin(angles), r)[..., None]}
    of_prior = np.log(of_r * r / (2 * np.pi * 4)) - r**2 / 8  # tau = s0 = 2
    total = special.logsumexp(model.log_marginal(outer, data) + of_prior) + np.log(2 * np.pi / 4000)
    exact = integrate(model, data)
    assert exact.log_evidence == pytest.approx(total, abs=1e-6)
    assert all(check.passed for check in exact.checks)


def test_more_units_than_are_sampled_are_refused():
    with raises(bz.InputError, "out_of_range", 50):
        Network(H=51)
    rows = {"y": np.zeros(30_000), "x": np.arange(30_000.0)}
    with raises(bz.InputError, "too_large"):
        Network(H=40).marginalized(bz.read(Network, rows))
    with raises(bz.NumericalError, "too_large"):
        bz.fit(Network(H=2), ROWS, "exact", seed=1)


def bug(**methods):
    return type("NeuralNetwork", (Network,), {**methods, "name": Network.name})


def of_no_bias(self, outer, data):
    return Network.units(self, {**outer, "bias": 0 * np.asarray(outer["bias"])}, data)


BUGS = {
    "conditional_candidate": bug(units=of_no_bias),
    "marginalized_density": bug(
        marginalized=lambda self, data: Network.marginalized(replace(self, a0=2 * self.a0), data)
    ),
    "labels_mean_nothing": bug(signed=("weights", "bias")),
}


@pytest.mark.parametrize("function", BUGS)
def test_the_identity_sees_the_bug(function):
    identity = next(own for own in IDENTITIES if own.function == function)
    assert not run_identity(identity, Case(BUGS[function](H=2, **FIELDS), bz.read(Network, ROWS))).passed


@pytest.mark.slow  # samples, and integrates
def test_nuts_of_another_density_is_seen_by_quadrature():
    """The marginal density that NUTS samples has a prior of its own; the exact answer has the model's."""
    wrong = bug(marginalized=lambda self, data: Network.marginalized(replace(self, V0=self.V0 / 100), data))
    found = {check.name: check.passed for check in sampler_checks(wrong(H=1, **FIELDS), bz.read(Network, ROWS), 0)}
    assert not found["NUTS against quadrature: largest |z|"]


@pytest.mark.slow
def test_chains_have_the_exact_function_and_do_not_show_weights():
    """Samples, and integrates."""
    model, places = Network(H=1, **FIELDS), {"x": np.linspace(-3, 3, 7)}
    sampled, exact = (bz.fit(model, ROWS, method, seed=1) for method in ("nuts", "exact"))
    assert Fit(sampled).status == "ok"
    assert Fit(sampled).facts["components_withheld"]
    first, second = (bz.function_values(tree, places) for tree in (sampled, exact))
    sd = second["sd"].to_numpy()
    np.testing.assert_allclose(first["mean"], second["mean"], atol=0.1 * sd.max())
    np.testing.assert_allclose(first["sd"], sd, rtol=0.1)
    for name in ("mean", "sd", "q025", "median", "q975"):
        off, error = np.abs(first[name] - second[name]), first[f"mcse_{name}"].fillna(0.05 * sd.max())  # heavy tails
        assert (off < 5 * error + 1e-3 * sd.max()).all(), name
    tree = bz.fit(Network.weak(bz.example(Network)), bz.example(Network), "nuts", seed=1)
    assert Fit(tree).status == "ok"
