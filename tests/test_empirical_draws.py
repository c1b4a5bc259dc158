"""Fields of the prior chosen from draws: against closed forms, quadrature, and Park and Casella's fixed point."""

import json
import math
import sys
from dataclasses import replace

import numpy as np
import pytest
import scipy

import bayeszoo as bz
from bayeszoo.comparison.evidence.by_draws import MonteCarloSearch, by_draws, described
from bayeszoo.distributions.priors import Flat
from bayeszoo.foundation.gate import at_most
from bayeszoo.inference.methods import nuts
from bayeszoo.inference.methods.modes.fields import SearchCoordinates
from bayeszoo.inference.problem import Outcome
from tests.refusals import raises

evidence = sys.modules["bayeszoo.comparison.evidence.empirical_bayes"]
LASSO = bz.find("bayesian_lasso")
RIDGE = bz.find("ridge")


def over_flat(model, names):
    return bz.over(model, {name: Flat(0.0) for name in names})


def orthogonal(weights=(1.0, 0.0, -0.6, 2.0), n=20, seed=1):
    rng = np.random.default_rng(seed)
    raw = rng.normal(size=(n, len(weights)))
    X = np.linalg.qr(raw - raw.mean(axis=0))[0] * np.sqrt(n)
    return bz.read(LASSO, (X, X @ np.array(weights) + rng.normal(size=n)))


def correlated(n=20, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) @ [[1.0, 0.7], [0.0, 0.7]]
    return bz.read(LASSO, (X, X @ [1.0, -0.5] + rng.normal(size=n)))


def exact_draws(self, x, size=(4, 300)):
    """Stands for NUTS where the posterior has a closed form."""
    model = self.coordinates.model_at(x)
    draws = model.posterior(model.statistics(self.data)).rvs(size, self.rng)
    return described(self.coordinates, model.inputs.split(self.data, 0)[0], x, draws)


@pytest.fixture
def exact(monkeypatch):
    monkeypatch.setattr(MonteCarloSearch, "sample", exact_draws)


def climbed(model, data, over=("b",), seed=0):
    """One climb, from the model's own fields: the log of each field over the own, and its error."""
    coordinates = SearchCoordinates.search(over_flat(model, over), data)
    place = MonteCarloSearch(coordinates, data, np.random.default_rng(seed)).climb(np.zeros(len(coordinates.labels)))
    assert place.is_at_maximum
    return place.top, place.error


def test_the_search_by_draws_has_the_seed_that_was_asked_for(monkeypatch):
    seeds = []
    monkeypatch.setattr(evidence, "by_draws", lambda *given, seed, **named: seeds.append(seed))
    for seed in (3, 5):
        bz.empirical_bayes(LASSO(learn_sigma=True), correlated(n=60), "b", seed=seed)
    assert seeds == [3, 5]


@pytest.mark.parametrize("mixture", [False, True])
@pytest.mark.parametrize("learn_sigma", [False, True])
def test_the_prior_s_density_is_that_of_the_posterior_of_nothing(mixture, learn_sigma):
    data, given = correlated(), {"scale_mixture": mixture, "learn_sigma": learn_sigma}
    model = LASSO(b=0.7, s0=3.0, a0=2.5, b0=1.7, m0=0.5, scale=(2.0, 0.3), **given)
    prior = model.posterior(model.nothing(data))
    draws = prior.rvs((2, 3), np.random.default_rng(0))
    found = model.log_prior(draws, data)
    assert found.shape == (2, 3)
    for i in np.ndindex(2, 3):
        assert found[i] == pytest.approx(prior.logpdf({name: value[i] for name, value in draws.items()}), rel=1e-12)


def test_the_prior_of_some_features_in_their_own_units():
    model = LASSO(b=0.7, features=("x2",), degree=2, scale=(2.0, 0.3), intercept=False)
    w, units = np.array([0.4, -0.2]), np.array([0.3, 0.3**2])
    expected = scipy.stats.laplace(0, 0.7 / units).logpdf(w).sum()  # density of the weights in the user's units
    assert model.log_prior({"w": w}, correlated()) == pytest.approx(expected, rel=1e-12)


@pytest.mark.slow
def test_two_correlated_predictors_by_quadrature():
    data, model = correlated(), LASSO(b=2.0, intercept=False)
    X, y = data["X"], data["y"]
    centre = np.linalg.lstsq(X, y, rcond=None)[0]
    nodes, weights = np.polynomial.legendre.leggauss(120)
    side, weight = np.concatenate([2 * nodes - 2, 2 * nodes + 2]), np.tile(2 * weights, 2)  # a kink is at 0
    w, v = np.meshgrid(side, side, indexing="ij")
    d = np.stack([w - centre[0], v - centre[1]])
    squares = np.einsum("iab,ij,jab->ab", d, X.T @ X, d)

    def log_evidence(b):  # up to a constant
        return math.log(weight @ (np.exp(-squares / 2 - (abs(w) + abs(v)) / b) / (4 * b * b)) @ weight)

    best = scipy.optimize.minimize_scalar(lambda u: -log_evidence(math.exp(u)), bracket=(-1.5, -0.5, 0.5), tol=1e-6)
    x, error = climbed(model, data, seed=2)
    assert abs(x[0] + math.log(2.0) - best.x) < 4.4 * error[0]
    assert error[0] < 0.05


# Monte Carlo errors, with exact draws in place of NUTS


def z_scores(model, data, best, runs):
    top = math.log(best.model.b / model.b)
    return np.array([(x[0] - top) / error[0] for x, error in (climbed(model, data, seed=seed) for seed in range(runs))])


@pytest.mark.slow
def test_the_monte_carlo_errors_are_those_of_repetitions(exact):
    data, model = orthogonal(), LASSO(b=3.0, intercept=False)
    z = z_scores(model, data, bz.empirical_bayes(model, data, over="b"), 40)
    # mean square of standard normal numbers: chi-squared with 40 degrees of freedom, one in 1e5 to either side
    low, high = scipy.stats.chi2(40).ppf([1e-5, 1 - 1e-5]) / 40
    assert low < np.mean(z**2) < high < np.mean((3 * z) ** 2)  # errors a third as large are seen


@pytest.mark.parametrize("exponent", [1, 0])
def test_a_wrong_power_is_seen(exact, exponent):
    """The prior of one weight of four is forgotten, or only its normalizing constant."""

    class Wrong(LASSO):
        def log_prior(self, params, data):
            density = super().log_prior(params, data) + np.log(2 * self.b)
            return density + exponent * np.abs(params["w"][..., -1]) / self.b

    data, model = orthogonal(), LASSO(b=3.0, intercept=False)
    best = bz.empirical_bayes(model, data, over="b")
    assert abs(z_scores(Wrong(**vars(model)), data, best, 1)[0]) > 4.4


def test_two_fields_at_once(exact):
    data = orthogonal()
    model = LASSO(b=3.0, s0=20.0, m0=-1.0)
    best = bz.empirical_bayes(model, data, over=("b", "s0"))
    x, error = climbed(model, data, ("b", "s0"))
    expected = np.log([best.model.b / 3.0, best.model.s0 / 20.0])
    assert best.status == "ok"
    assert np.all(np.abs(x - expected) < 4.4 * error)


# The curvature and the boundary


def test_slope_and_curvature_are_those_of_the_closed_form(exact):
    data, model = orthogonal(), LASSO(b=0.6, s0=2.0, m0=-1.0)
    coordinates = SearchCoordinates.search(over_flat(model, ("b", "s0")))
    search = MonteCarloSearch(coordinates, data, np.random.default_rng(0))
    place = exact_draws(search, np.zeros(2), size=(4, 4_000))

    def value(x):
        return coordinates.model_at(x).log_evidence(model.statistics(data))

    h = 0.01 * np.eye(2)
    slope = [(value(step) - value(-step)) / 0.02 for step in h]
    curvature = [[(value(a + b) - value(a - b) - value(b - a) + value(-a - b)) / 4e-4 for a in h] for b in h]
    assert np.all(np.abs(place.slope - slope) < 4.4 * place.noise)
    assert np.ravel(place.curvature) == pytest.approx(np.ravel(curvature), abs=0.2)


@pytest.mark.slow
def test_data_without_a_signal_have_no_maximum(exact, monkeypatch):
    data, model = orthogonal((0.0, 0.0, 0.0, 0.0), seed=1), LASSO(b=1.0, intercept=False)
    assert "b -> 0" in bz.empirical_bayes(model, data, over="b").boundary["b"]  # in closed form
    assert by_draws(model, data, ["b"]).status != "ok"

    def level(self, x):
        return replace(exact_draws(self, x), z=0.0, error=np.array([math.inf]))

    monkeypatch.setattr(MonteCarloSearch, "sample", level)
    found = by_draws(model, data, ["b"])
    assert (found.status, set(found.boundary)) == ("at the boundary", {"b"})


def test_a_start_where_the_evidence_is_level_is_left(exact):
    data, model = orthogonal(), LASSO(b=1e-3, intercept=False)
    best = bz.empirical_bayes(model, data, over="b")
    found = by_draws(model, data, ["b"])
    assert found.status == "ok", repr(found)
    assert abs(math.log(found.model.b / best.model.b)) < 4.4 * found.error["b"]


def test_climbs_that_end_in_different_places_withhold_everything(exact, monkeypatch):
    run = MonteCarloSearch.run

    def two_maxima(self):
        first, second, *_ = run(self)
        return [first, replace(second, further=second.further + 0.5)]

    monkeypatch.setattr(MonteCarloSearch, "run", two_maxima)
    found = by_draws(LASSO(b=1.0, intercept=False), orthogonal(), ["b"])
    assert found.status == "not converged"
    assert "climbs that reached the maximum 1 (must be >= 2)" in repr(found)


# What is refused and withheld


@pytest.mark.parametrize(
    ("model", "over", "message"),
    [
        (LASSO(), "sigma", ("undefined_evidence", "sigma")),
        (LASSO(), "sigma", ("undefined_evidence", "sigma", "b", "s0")),
        (LASSO(), "a0", ("undefined_evidence", "a0")),
        (LASSO(), "m0", ("undefined_evidence", "fields", "m0")),
        (LASSO(), "scale", ("undefined_evidence",)),
        (LASSO(learn_sigma=True), ("b", "sigma"), ("undefined_evidence", "b", "s0", "a0")),
        (RIDGE(), "scale", ("not_optimizable", "ridge")),
    ],
)
def test_fields_that_draws_cannot_choose(model, over, message, monkeypatch):
    monkeypatch.setattr(nuts, "run", None)
    with raises(bz.InputError, *message):
        bz.empirical_bayes(model, correlated(), over=over)


def test_an_interrupted_run_keeps_nothing(monkeypatch):
    monkeypatch.setattr(nuts, "run", lambda *_, **__: Outcome({}, "none", [], interrupted=True))
    with pytest.raises(bz.Interrupted):
        bz.empirical_bayes(LASSO(intercept=False), correlated(), over="b")


# The command


@pytest.fixture
def table(written):
    data = orthogonal((0.0, 0.0, 0.5))
    rows = [",".join(map(repr, row)) for row in np.column_stack([data["y"], data["X"]]).tolist()]
    return written("\n".join(["y,x1,x2,x3", *rows]))


LEARNED = ["--set", "learn_sigma=true", "--prior", "textbook"]


def test_the_command_prints_the_field_with_its_error(run, table, exact, monkeypatch):
    monkeypatch.setattr("bayeszoo.comparison.evidence.empirical_bayes.no_closed_form", lambda *_: "for the test")
    code, out, _ = run("empirical", "bayesian_lasso", table, "--over", "b", "--prior", "textbook")
    assert (code, "Monte Carlo error of log b 0.0" in out, "the log evidence is withheld" in out) == (0, True, True)
    code, out, _ = run("empirical", "bayesian_lasso", table, "--over", "b", "--prior", "textbook", "--json")
    found, error = json.loads(out), json.loads(out)["draws"]["log_field_error"]["b"]
    assert (code, found["status"], found["log_evidence"], found["log_evidence_before"]) == (0, "ok", None, None)
    assert found["draws"]["field_error"]["b"] == pytest.approx(found["fields"]["b"] * error)


def test_the_command_ends_where_a_run_of_nuts_failed(run, table, monkeypatch):
    monkeypatch.setattr(nuts, "run", lambda *_, **__: Outcome({}, "none", [at_most("r_hat", 1.3, 1.01)]))
    code, out, err = run("empirical", "bayesian_lasso", table, "--over", "b", *LEARNED)
    assert (code, out) == (3, "")
    assert err == "error: NUTS at b = 1: r_hat 1.3 (must be <= 1.01)\n"
    code, out, err = run("empirical", "bayesian_lasso", table, "--over", "b", "--full", *LEARNED)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "--full needs the evidence in closed form" in err


@pytest.mark.slow
def test_diabetes_is_at_the_fixed_point_of_park_and_casella():
    data = bz.example(LASSO)
    model = LASSO.weak(data)
    found = bz.empirical_bayes(model, data, over="b", seed=1)
    assert found.status == "ok", repr(found)
    tree = bz.fit(found.model, data, "nuts", seed=2)
    w = tree["posterior"]["w"].to_numpy()[..., 1:]
    size = np.abs(w * np.array(model.scale)).mean(axis=-1)  # whose posterior mean is b at the fixed point
    error = size.std() / math.sqrt(1000)  # at least a quarter of the draws count
    assert abs(size.mean() - found.model.b) < 4.4 * (error + found.error_of("b"))
    assert found.model.b == pytest.approx(10.9, rel=0.03)
