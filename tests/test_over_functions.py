"""Amplitude, length and spread of a function behind yes/no outcomes as parameters: dense Gaussians, quadrature."""

import numpy as np
import pytest
import scipy
from bayeszoo.models.gaussian_process_classification import GaussianProcessClassification
from bayeszoo.models.graph_process import GraphProcess
from scipy.special import expit

import bayeszoo as bz
from bayeszoo.data.read import Data
from bayeszoo.families.latent_functions.chain import Parabolas
from bayeszoo.families.latent_functions.over import FieldsPrior
from bayeszoo.families.processes.root import Root
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.numerics.slices import sliced
from bayeszoo.model.find import Reference, find_again
from bayeszoo.model.views import View
from bayeszoo.report.provenance import _prior
from tests.refusals import raises

DOSES = Data(
    {"X": np.array([[0.0], [0.7]]), "y": np.array([1, 4]), "trials": np.array([5, 5]), "feature": np.array(["x"])}
)
BASE = GaussianProcessClassification(amplitude=1.7, length=0.6, m0=0.3, kernel="matern52")
MODEL = bz.over(BASE, {"amplitude": "HalfNormal(2)", "length": "InvGamma(3, 2)"})
RNG = np.random.default_rng(3)
X = RNG.uniform(-2, 2, (12, 1))
ROWS = Data({"X": X, "y": (X[:, 0] > 0).astype(np.int64), "feature": np.array(["x"])})


@pytest.mark.parametrize("length", [0.3, 50.0])
def test_rows_given_their_latent_variables_are_a_dense_gaussian(length):
    kernel = 1.7**2 * BASE.replaced(length=length).covariance(ROWS, ROWS)
    weight, pull = RNG.uniform(0.1, 2, 12), RNG.normal(size=12)
    dense = lambda mean, own: scipy.stats.multivariate_normal(np.full(12, mean), own + np.diag(1 / weight))  # noqa: E731
    given = Parabolas(pull, weight)
    ours = given.log_density(0.4, kernel) - given.log_density(-1.0, 3 * kernel)
    theirs = dense(0.4, kernel).logpdf(pull / weight) - dense(-1.0, 3 * kernel).logpdf(pull / weight)
    assert ours == pytest.approx(theirs, rel=1e-10)
    gain = kernel @ np.linalg.inv(kernel + np.diag(1 / weight))
    mean, covariance = 0.4 + gain @ (pull / weight - 0.4), kernel - gain @ kernel
    drawn = np.array([given.drawn(0.4, kernel, RNG) for _ in range(1000)]) - mean
    values, vectors = np.linalg.eigh(covariance)
    z = drawn @ vectors[:, -2:] / np.sqrt(values[-2:])
    assert scipy.stats.kstest(np.sum(z**2, axis=1), scipy.stats.chi2(2).cdf).pvalue > 1e-4


def test_slices_have_the_density():
    def height(place):
        return 3 * place - np.exp(place)

    law, x, drawn = scipy.stats.gamma(3), 1.0, []
    for _ in range(3000):
        x, _ = sliced(height, x, height(x), RNG)
        drawn.append(np.exp(x))
    assert scipy.stats.kstest(drawn[::3], law.cdf).pvalue > 1e-4


def test_a_factor_by_size_is_one_of_the_covariance():
    kernel = BASE.replaced(length=3.0, kernel="rbf").covariance(ROWS, ROWS)
    root = Root.by_size(kernel)
    assert root.factor.shape[1] < 12
    np.testing.assert_allclose(root.factor @ root.factor.T, kernel, atol=2e-13)
    assert np.all(np.triu(root.factor[root.taken], 1) == 0)


def told():
    """Return labels of three members of the karate club, and two others."""
    data = bz.example(GraphProcess)
    more = {"place": np.array([0, 33, 5]), "y": np.array([0, 1, 0])}
    return Data({**data, **more}), Data({**data, "place": np.array([2, 8]), "y": np.zeros(2, dtype=np.int64)})


CASES = {
    "features": (
        bz.over(BASE, {"amplitude": "HalfNormal(2)", "length": "InvGamma(3, 2)", "m0": "Normal(0, 1)"}),
        (ROWS, Data({**ROWS, "X": X[:5] + 0.1, "y": ROWS["y"][:5]})),
        {"amplitude": [2.0, 0.3], "length": [0.4, 0.9], "m0": [0.2, -1.0]},
    ),
    "a length each": (
        bz.over(BASE.replaced(length=[0.5, 0.5]), {"length": "InvGamma(3, 2)"}),
        [Data({**ROWS, "X": RNG.normal(size=(12, 2)), "feature": np.array(["a", "b"])}) for _ in range(2)],
        {"length": [[0.4, 0.9], [3.0, 0.2]]},
    ),
    "a graph": (bz.over(GraphProcess(), {"spread": "HalfNormal(2)"}), told(), {"spread": [0.3, 1.4]}),
}


@pytest.mark.parametrize("name", CASES)
def test_the_function_elsewhere_is_that_of_the_model_with_the_fields_of_each_draw(name):
    model, (seen, new), draws = CASES[name]
    f, each = RNG.normal(size=(2, len(seen["y"]))), []
    for i in range(2):
        base = model.base.replaced(**{key: values[i] for key, values in draws.items()})
        root = base.root(seen)
        f[i] = base.m0 + base.amplitude * root.factor @ RNG.normal(size=root.factor.shape[1])
        z = np.linalg.solve(root.factor[root.taken], (f[i][root.taken] - base.m0) / base.amplitude)
        each.append(base.function({"z": z}, seen, new))
    law = model.function({**{key: np.array(values) for key, values in draws.items()}, "f": f}, seen, new)
    np.testing.assert_allclose(law.mean(), [own.mean() for own in each], atol=1e-7)
    np.testing.assert_allclose(law.std(), [own.std() for own in each], atol=1e-7)
    one = {key: np.array(values[:1]) for key, values in draws.items()}
    (own,) = model.function({**one, "f": f[:1]}, seen, seen).mean()
    np.testing.assert_array_equal(own, f[0])


def test_drawn_functions_have_mean_and_covariance():
    model, (seen, new), draws = CASES["features"]
    many = {key: np.full(600, values[0]) for key, values in draws.items()}
    many["f"] = np.tile(model.base.m0 + RNG.normal(size=12), (600, 1))
    law = model.function({key: values[0] for key, values in many.items()}, seen, new)
    drawn = model.drawn_function(many, seen, new, np.random.default_rng(1))
    z = (drawn - law.mean()) / law.std()
    assert scipy.stats.kstest(z[:, 0], "norm").pvalue > 1e-4
    base = model.base.replaced(**{key: values[0] for key, values in draws.items()})
    inside, cross = base.covariance(seen, seen), base.covariance(new, seen)
    left = 4 * (base.covariance(new, new) - cross @ np.linalg.solve(inside, cross.T))
    np.testing.assert_allclose(np.cov(drawn.T), left, atol=0.2 * left.max())


def test_the_chain_has_the_density_of_the_model():
    chain = MODEL.gibbs(ROWS, np.random.default_rng(1))
    chain.sweep(2)
    drawn = chain.draw()
    base = BASE.replaced(amplitude=float(drawn["amplitude"]), length=float(drawn["length"]))
    root = base.root(ROWS)
    z = np.linalg.solve(root.factor[root.taken], (drawn["f"][root.taken] - base.m0) / base.amplitude)
    prior = scipy.stats.halfnorm(scale=2).logpdf(base.amplitude) + scipy.stats.invgamma(3, scale=2).logpdf(base.length)
    jacobian = np.log(base.amplitude * base.length)
    expected = base.likelihood({"z": z}, ROWS).logpmf(ROWS["y"]).sum() + scipy.stats.norm.logpdf(z).sum()
    assert chain.log_joint == pytest.approx(expected + prior + jacobian, rel=1e-6)
    assert FieldsPrior.of(MODEL, ROWS).log_density(chain.x) == pytest.approx(prior + jacobian, rel=1e-10)


def by_quadrature():
    """Return means of log amplitude, log length and both log odds of two places, over a grid of all four numbers."""
    nodes = np.linspace(-7, 7, 61)
    u = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    density, total, sums = scipy.stats.norm.pdf(u).prod(axis=1), 0.0, np.zeros(4)
    for length in np.exp(np.linspace(-4, 6, 70)):
        g = u @ np.linalg.cholesky(BASE.replaced(length=length).covariance(DOSES, DOSES) + 1e-13 * np.eye(2)).T
        for amplitude in np.exp(np.linspace(-7, 3, 70)):
            f = BASE.m0 + amplitude * g
            own = density * np.exp((DOSES["y"] * np.log(expit(f)) + (5 - DOSES["y"]) * np.log(expit(-f))).sum(axis=1))
            prior = scipy.stats.halfnorm.pdf(amplitude, scale=2) * scipy.stats.invgamma.pdf(length, 3, scale=2)
            weight = prior * amplitude * length
            mass = weight * own.sum()
            total += mass
            sums += [np.log(amplitude) * mass, np.log(length) * mass, *(weight * own @ f)]
    return sums / total


def off(seed):
    """Return how many standard errors the draws' means are off the quadrature's."""
    chains = [MODEL.gibbs(DOSES, np.random.default_rng([seed, i])) for i in range(2)]
    kept = []
    for each in chains:
        each.sweep(100)
        own = []
        for _ in range(1000):
            each.sweep(1)
            own.append([*each.x, *each.function])
        kept.append(own)
    draws = np.array(kept)
    errors = np.array([diagnostics.mcse(draws[..., i]) for i in range(4)])
    return np.abs(draws.mean(axis=(0, 1)) - by_quadrature()) / errors


@pytest.mark.slow  # 2,200 sweeps, and a grid of four numbers
def test_draws_have_the_means_of_the_quadrature():
    assert (off(1) < 4.5).all()


@pytest.mark.slow
def test_a_chain_without_the_determinant_would_be_seen(monkeypatch):
    whole = Parabolas.log_density

    def without(self, mean, covariance):
        return whole(self, mean, covariance) + np.sum(np.log(np.diag(self._system(mean, covariance)[1])))

    monkeypatch.setattr(Parabolas, "log_density", without)
    assert off(1).max() > 10


@pytest.mark.slow  # samples
def test_a_fit_answers_as_those_of_the_model_do():
    table = {"x": X[:, 0], "y": ROWS["y"]}
    model = bz.over(GaussianProcessClassification(), {"amplitude": "HalfNormal(3)", "length": "InvGamma(3, 2)"})
    tree = bz.fit(model, table, "gibbs", seed=1)
    new = {"x": [-30.0, -1.0, 1.0]}
    p = bz.classify(tree, new)["p[1]"].to_numpy()
    np.testing.assert_allclose(p[0], 0.5, atol=0.02)
    assert p[1] < 0.2
    assert p[2] > 0.8
    assert bz.function_values(tree, new)["prior_share"].iloc[0] == pytest.approx(1, abs=0.05)


def test_a_saved_model_is_found_again():
    reference = Reference.of(MODEL)
    assert reference.name == "over_gaussian_process_classification"
    assert reference.model() == MODEL
    assert find_again(reference.name, None) is type(MODEL)
    assert _prior(MODEL, ROWS)


def test_it_shows_and_says_what_the_model_does():
    graph = bz.over(GraphProcess(), {"spread": "HalfNormal(2)"})
    assert View.FUNCTION in MODEL.views()
    assert graph.views() == {View.CLASSES, View.NODES}
    data = bz.read(GraphProcess, {"node": ["a", "a", "c"], "neighbour": ["b", "", ""], "label": ["", "1", ""]})
    assert any("c" in note for note in graph.remarks(None, data))
    assert graph.coords(data)["place"].tolist() == ["a"]


def test_what_cannot_be_is_refused():
    with raises(bz.InputError, "out_of_range", "amplitude"):
        bz.over(BASE, {"amplitude": "Normal(0, 1)"})
    with raises(bz.InputError, "unknown_field", "scales"):
        bz.over(BASE, {"scales": "HalfNormal(1)"})
    with raises(bz.InputError, "no_closed_form", "bz.over"):
        bz.full_bayes(BASE, DOSES, ["amplitude", "length"])
    with raises(bz.InputError, "no_density", "gibbs"):
        MODEL.declare(DOSES)
    with raises(bz.InputError, "too_many_rows", "2,000"):
        MODEL.gibbs(Data({**ROWS, "X": np.zeros((2001, 1)), "y": np.zeros(2001)}), RNG)
    with raises(bz.InputError, "too_large", "nuts"):
        MODEL.gibbs(Data({**DOSES, "trials": np.array([5, 2_000_000])}), RNG)
