"""Data augmentation of regressions with a logit or probit link: its draws, EM, variational Bayes and Gibbs sampling."""

import inspect
import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy
from sklearn.linear_model import LogisticRegression as SklearnRegression

import bayeszoo as bz
from bayeszoo.contract import concave, latent
from bayeszoo.contract.case import Case
from bayeszoo.families.glm import augmented
from bayeszoo.families.glm.augmented import NormalNoise, Parabola, PolyaGamma
from bayeszoo.foundation.gate import SHOWN_SD_RATIO
from bayeszoo.inference.engine.ascent import AscentError
from bayeszoo.inference.methods import vb
from bayeszoo.likelihoods.loops import augmented as loops
from bayeszoo.model.outer.integration import integrate
from bayeszoo.results.stored import Fit
from bayeszoo.results.summary import errors
from tests.refusals import raises

LOGISTIC, PROBIT = bz.find("logistic_regression"), bz.find("probit_regression")
BOTH = pytest.mark.parametrize("kind", [LOGISTIC, PROBIT], ids=["logit", "probit"])
DRAWS = 20_000


# Draws of latent variables


def polya_gamma(trials, c, seed=1, draw=loops.polya_gamma, size=DRAWS):
    drawn = np.empty(size)
    draw(np.full(size, trials), np.full(size, float(c)), drawn, np.random.default_rng(seed))
    return drawn


def polya_gamma_cdf(c):
    """The distribution function of PG(1, c), by the series of its density (Polson, Scott and Windle 2013)."""
    x, n = np.geomspace(1e-4, 6, 4001), np.arange(60)[:, None]
    terms = (-1.0) ** n * (2 * n + 1) / np.sqrt(2 * np.pi * x**3) * np.exp(-((2 * n + 1) ** 2) / (8 * x))
    density = np.cosh(c / 2) * np.exp(-(c**2) * x / 2) * terms.sum(axis=0)
    return lambda at: np.interp(at, x, scipy.integrate.cumulative_simpson(density, x=x, initial=0))


def p_value(c, **how):
    return scipy.stats.kstest(polya_gamma(1, c, **how), polya_gamma_cdf(c)).pvalue


@pytest.mark.parametrize("c", [0.0, 0.7, -2.0, 3.1, 3.2, 8.0])
def test_polya_gamma_variables_have_their_distribution(c):
    assert polya_gamma_cdf(abs(c))(6.0) == pytest.approx(1, abs=1e-6)
    assert p_value(c) > 1e-4


def log_laplace(trials, c, t):
    """log E exp(-t x) = trials (log cosh(c / 2) - log cosh(sqrt((c^2 / 2 + t) / 2)))."""
    log_cosh = lambda x: np.logaddexp(x, -x) - np.log(2)  # noqa: E731
    return trials * (log_cosh(c / 2) - log_cosh(np.sqrt((c**2 / 2 + t) / 2)))


@pytest.mark.parametrize(("trials", "c"), [(1, 0.0), (5, 1.5), (40, 3.0), (1, 79.0), (1, 81.0), (2, 3000.0)])
def test_sums_of_polya_gamma_variables_have_their_moments_and_laplace_transform(trials, c):
    drawn = polya_gamma(trials, c, seed=2)
    mean = trials * (np.tanh(c / 2) / (2 * c) if c else 0.25)
    assert abs(drawn.mean() - mean) < 5 * drawn.std() / np.sqrt(DRAWS)
    t = 1.0 / mean
    seen = np.exp(-t * drawn)
    assert abs(seen.mean() - np.exp(log_laplace(trials, c, t))) < 5 * seen.std() / np.sqrt(DRAWS)


def mutant(function, *changes, within=loops.polya_gamma):
    """Return ``within`` as Python that calls ``function`` with some of its text changed."""
    scope = {name: getattr(each, "py_func", each) for name, each in vars(loops).items()}
    text = inspect.getsource(function.py_func).partition("\n")[2]
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    for source in (text, *(inspect.getsource(f.py_func).partition("\n")[2] for f in used_by(function))):
        exec(source, scope)
    exec(inspect.getsource(within.py_func).partition("\n")[2], scope)
    return scope[within.__name__]


def used_by(function):
    every = [loops._polya_gamma, loops._is_accepted, loops._left, loops._right_share, loops._normal_cdf, loops._above]
    return [each for each in every if each is not function]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "change", "c"),
    [
        (loops._is_accepted, ("-2.0 / x", "-0.5 / x"), 1.0),
        (loops._is_accepted, ("-(math.pi**2) * x / 2.0", "-x / 2.0"), 0.0),
        (loops._right_share, ("right + 2.0 * below", "right + below"), 1.0),
        (loops._left, ("z * z * x / 2.0", "z * z * x * 3.0"), 2.0),
        (loops._left, ("mean * mean / x", "mean / x"), 8.0),
        (loops._polya_gamma, ("z * z) / 2.0", "z * z) * 2.0"), 1.0),
    ],
)
def test_wrong_draws_would_be_seen(function, change, c):
    assert p_value(c, draw=mutant(function, change), size=4000) < 1e-4


def test_the_same_steps_as_python_are_right():
    assert p_value(2.0, draw=mutant(loops._polya_gamma), size=4000) > 1e-4


@pytest.mark.parametrize("eta", [-300.0, -6.0, -0.41, -0.39, 0.0, 2.0, 9.0])
def test_latent_normals_are_truncated_normals(eta):
    size, drawn, rng = DRAWS, np.empty(DRAWS), np.random.default_rng(3)
    ones = np.ones(size, dtype=np.int64)
    loops.latent_normals(ones, ones, np.full(size, eta), drawn, rng)
    law = scipy.stats.truncnorm(-eta, np.inf, loc=eta)
    assert scipy.stats.kstest(drawn, law.cdf).pvalue > 1e-4
    loops.latent_normals(0 * ones, ones, np.full(size, -eta), drawn, rng)
    assert scipy.stats.kstest(-drawn, law.cdf).pvalue > 1e-4
    loops.latent_normals(2 * ones, 3 * ones, np.full(size, eta), drawn, rng)
    expected = PROBIT.augmentation.expected(np.array([eta]), 0.0, np.array([2.0]), np.array([3.0]))[0].linear[0]
    assert abs(drawn.mean() - expected) < 5 * drawn.std() / np.sqrt(size)


# EM


def bioassay(kind, rows=False):
    if not rows:
        return bz.example(kind, "bioassay")
    dose, deaths = [-0.86, -0.30, -0.05, 0.73], [0, 1, 3, 5]
    return bz.read(kind, (np.repeat(dose, 5)[:, None], np.concatenate([[1] * k + [0] * (5 - k) for k in deaths])))


def facts(tree):
    return json.loads(tree.attrs["facts"])


def weights(tree):
    assert tree.attrs["status"] == "ok", tree.attrs["gate"]
    return tree.posterior["w"].to_numpy()[0, 0]


@BOTH
@pytest.mark.parametrize("tau", [0.3, 10.0, 300.0])
@pytest.mark.parametrize("rows", [False, True], ids=["trials", "rows"])
def test_em_reaches_the_mode_that_newton_finds(kind, tau, rows):
    data, model = bioassay(kind, rows), kind(tau=tau, s0=tau, m0=0.4)
    np.testing.assert_allclose(*(weights(bz.fit(model, data, by, seed=1)) for by in ("em", "map")), rtol=2e-6)


@BOTH
def test_em_under_a_flat_prior_reaches_the_maximum_of_the_likelihood(kind):
    data = bioassay(kind)
    tree = bz.fit(kind(), data, "em", estimate="mle", seed=1)
    X, y = np.column_stack([np.ones(4), data["X"]]), data["y"]
    law = scipy.special.log_expit if kind is LOGISTIC else scipy.special.log_ndtr
    loss = lambda w: -np.sum(y * law(X @ w) + (5 - y) * law(-X @ w))  # noqa: E731
    best = scipy.optimize.minimize(loss, [0.8, 4.0], method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(weights(tree), best.x, rtol=1e-5)
    assert facts(tree)["log_likelihood"] == pytest.approx(-best.fun, rel=1e-9)


def iris():
    table = np.genfromtxt("models/data/iris.csv", delimiter=",", skip_header=1, usecols=range(4))
    return {"y": (np.arange(150) < 50).astype(int), **dict(zip(["sl", "sw", "pl", "pw"], table.T, strict=True))}


@BOTH
def test_em_refuses_separated_outcomes_as_mle_does(kind):
    lines = []
    for how in ({"method": "mle"}, {"method": "em", "estimate": "mle"}):
        with raises(bz.NumericalError, "no_maximum") as error:
            bz.fit(kind, iris(), seed=1, **how)
        lines.append(str(error.value))
    assert lines[0] == lines[1]
    np.testing.assert_allclose(*(weights(bz.fit(kind, iris(), by, seed=1)) for by in ("em", "map")), rtol=1e-5)


def test_em_of_more_features_than_rows_is_ridge_regression():
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((15, 40)), np.arange(15) % 2
    oracle = SklearnRegression(C=1.0, tol=1e-12, max_iter=5000).fit(X, y)
    w = weights(bz.fit(LOGISTIC(tau=1.0, s0=1e5), (X, y), "em", seed=1))
    np.testing.assert_allclose(w[1:], oracle.coef_[0], atol=2e-5)


def test_a_point_that_is_level_but_not_the_mode_is_not_shown(monkeypatch):
    stuck = {"w": np.array([0.1, 2.0])}
    monkeypatch.setattr(LOGISTIC, "start", lambda self, data, rng: stuck)
    monkeypatch.setattr(LOGISTIC, "m_step", lambda self, stats, flat=False: stuck)
    tree = bz.fit(LOGISTIC(), bioassay(LOGISTIC), "em", seed=1)
    assert tree.attrs["status"] == "failed"
    assert not json.loads(tree.attrs["gate"])["checks"]["slope"]["passed"]


# Variational Bayes


def one_weight(kind, tau=3.0, steep=False):
    """Twenty rows, one weight: their q is too sure of it, and the more so the better the rows are told apart."""
    rng = np.random.default_rng(20 if steep else 3)
    x = rng.standard_normal(20) * (2.0 if steep else 1.5)
    y = rng.binomial(1, scipy.special.expit((2.0 if steep else 1.0) * x))
    return kind(intercept=False, tau=tau), bz.read(kind, (x[:, None], y)), x, y


def optimum(model, data):
    return vb.climbs(model, data, np.random.default_rng(1)).best


def test_the_bound_is_that_of_jaakkola_and_jordan():
    model, data, x, y = one_weight(LOGISTIC)

    def bound(log_xi):
        xi = np.exp(log_xi)
        rate = np.tanh(xi / 2) / (4 * xi)
        constant = np.sum(scipy.special.log_expit(xi) - xi / 2 + rate * xi**2)
        precision, pull = 1 / model.tau**2 + 2 * np.sum(rate * x**2), np.sum((y - 0.5) * x)
        return constant + pull**2 / precision / 2 - np.log(precision * model.tau**2) / 2

    best = scipy.optimize.minimize(lambda z: -bound(z), np.zeros(20), method="BFGS", options={"gtol": 1e-8})
    assert optimum(model, data).objective == pytest.approx(-best.fun, rel=1e-9)


def test_the_bound_of_probit_is_the_expectation_under_q():
    model, data, x, y = one_weight(PROBIT)
    best = optimum(model, data)
    w = model.vb_posterior(best.state)["w"]
    mean, sd = w.mean()[0], w.std()[0]
    total = -(np.log(model.tau / sd) + (sd**2 + mean**2) / (2 * model.tau**2) - 0.5)
    for row, sign in zip(x, 2 * y - 1, strict=True):
        eta, variance = row * mean, (row * sd) ** 2
        z = np.linspace(0, abs(eta) + 12, 20_001)  # of the sign of the outcome
        log_q = scipy.stats.norm.logpdf(z, sign * eta) - scipy.special.log_ndtr(sign * eta)
        log_p = scipy.stats.norm.logpdf(z, sign * eta) - variance / 2
        total += scipy.integrate.simpson(np.exp(log_q) * (log_p - log_q), x=z)
    assert best.objective == pytest.approx(total, rel=1e-7)


@BOTH
def test_trials_have_the_bound_of_their_rows(kind):
    model = kind(tau=2.0, s0=3.0)
    counted, one_by_one = (optimum(model, bioassay(kind, rows)) for rows in (False, True))
    assert counted.objective == pytest.approx(one_by_one.objective, rel=1e-9)
    assert counted.objective < integrate(model, bioassay(kind)).log_evidence - 0.1


def both_sds(model, data):
    exact = integrate(model, data).posterior["w"].std()[0]
    return exact, model.vb_posterior(optimum(model, data).state)["w"].std()[0]


def test_variational_bayes_is_shown_with_how_much_too_sure_it_is():
    model, data, _, _ = one_weight(LOGISTIC)
    exact, sd = both_sds(model, data)
    assert (exact, sd) == (pytest.approx(0.648, abs=1e-3), pytest.approx(0.355, abs=1e-3))
    with pytest.warns(bz.Caution, match=r"w\[.*\] 0\.5"):
        tree = bz.fit(model, data, "vb", seed=1)
    assert tree.attrs["status"] == "caution"
    assert errors(Fit(tree), "w", bz.summarize(tree)["w"])["sd_ratio"] == pytest.approx(sd / exact, rel=0.05)
    assert facts(tree)["elbo"] < integrate(model, data).log_evidence - 0.5


@BOTH
def test_variational_bayes_that_is_twice_too_sure_is_withheld(kind):
    model, data, _, _ = one_weight(kind, steep=True)
    exact, sd = both_sds(model, data)
    assert sd / exact < 1 / SHOWN_SD_RATIO
    tree = bz.fit(model, data, "vb", seed=1)
    assert tree.attrs["status"] == "failed"
    ratio = tree["posterior"]["w"].std() / tree["exact"]["w"].sel(statistic="sd")
    assert float(ratio[0]) == pytest.approx(sd / exact, rel=0.1)


# Gibbs sampling


def z_of(tree, posterior):
    """The largest error of a quartile as a share of draws, in its own Monte Carlo error."""
    draws, errors = tree.posterior["w"].to_numpy(), []
    for prob in (0.1, 0.5, 0.9):
        below = (draws <= posterior["w"].ppf(prob)).reshape(len(draws) * 20, -1, draws.shape[-1]).mean(axis=1)
        errors.append((below.mean(0) - prob) / (below.std(0) / np.sqrt(len(below))))
    return float(np.max(np.abs(errors)))


@BOTH
@pytest.mark.parametrize("rows", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["trials", "rows"])
def test_gibbs_draws_from_the_posterior(kind, rows):
    model, data = kind(tau=1.5, s0=2.0, m0=0.5), bioassay(kind, rows)
    tree = bz.fit(model, data, "gibbs", seed=1, draws=1000, thin=4)
    assert tree.attrs["status"] == "ok"
    assert z_of(tree, integrate(model, data).posterior) < 5
    lp = tree["sample_stats"]["lp"].to_numpy()[0, 0]
    w = tree.posterior["w"].to_numpy()[0, 0]
    eta = w[0] + w[1] * data["X"][:, 0]
    law = scipy.special.log_expit if kind is LOGISTIC else scipy.special.log_ndtr
    trials = data.get("trials", np.ones(len(eta)))
    prior = scipy.stats.norm.logpdf(w, [0.5, 0], [2.0, 1.5]).sum()
    assert lp == pytest.approx(np.sum(data["y"] * law(eta) + (trials - data["y"]) * law(-eta)) + prior)


@pytest.mark.slow
@BOTH
def test_a_wrong_draw_of_latent_variables_would_be_seen(kind, monkeypatch):
    model, data = kind(tau=1.5, s0=2.0, m0=0.5), bioassay(kind)
    right = kind.augmentation.drawn

    def moved(*given):
        weights = right(*given)
        return replace(weights, mean=weights.mean * 0.95)

    monkeypatch.setattr(kind.augmentation, "drawn", moved)
    tree = bz.fit(model, data, "gibbs", seed=1, draws=1000, thin=4)
    assert z_of(tree, integrate(model, data).posterior) > 5


@pytest.mark.slow
def test_normal_variables_that_are_moved_together_let_chains_mix(monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((30, 2))
    y = (X[:, 0] > 0).astype(int)
    y[0] = 1 - y[0]  # nearly separated

    def effective_draws():
        tree = bz.fit(PROBIT(tau=10.0), (X, y), "gibbs", seed=1, extend=False, draws=400, tune=500, thin=5)
        return json.loads(tree.attrs["gate"])["checks"]["ess_bulk"]["value"]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bz.Caution)
        moved = effective_draws()
        monkeypatch.setattr(augmented, "replace", lambda given, mean: given)
        assert effective_draws() < moved / 3


@pytest.mark.slow
def test_a_move_too_far_would_be_seen(monkeypatch):
    model, data = PROBIT(tau=1.5, s0=2.0, m0=0.5), bioassay(PROBIT)
    monkeypatch.setattr(augmented, "replace", lambda given, mean: replace(given, mean=2 * mean - given.mean))
    tree = bz.fit(model, data, "gibbs", seed=1, draws=1000, thin=4)
    assert z_of(tree, integrate(model, data).posterior) > 5


def test_more_trials_than_can_be_drawn_are_refused():
    table = {"x": [1.0, 2.0, 3.0], "successes": [4, 6, 10], "trials": [10, 10, 2_000_000]}
    with raises(bz.InputError, "no_capability", "2,000,020"):
        bz.fit(LOGISTIC(), bz.read(LOGISTIC, table), "gibbs", seed=1)


# Bugs that the identities must catch


def altered(base, linear=lambda p: p.linear, precision=lambda p: p.precision, value=lambda v, eta, var, y, n: v):
    class Altered(base):
        def expected(self, eta, variance, outcome, size):
            parabola, log_normalizer = super().expected(eta, variance, outcome, size)
            changed = value(log_normalizer, eta, variance, outcome, size)
            return Parabola(linear(parabola), precision(parabola)), changed

    return Altered()


BUGS = {
    "a constant": (PolyaGamma, {"value": lambda v, eta, var, y, n: v + 1e-6}, "bound_of_known_weights"),
    "a log 2 for each trial": (PolyaGamma, {"value": lambda v, eta, var, y, n: v + n * np.log(2)}, "em_objective"),
    "a bound too high": (PolyaGamma, {"value": lambda v, eta, var, y, n: v + 1.0}, "bound_of_augmented"),
    "a sign of the pull": (PolyaGamma, {"linear": lambda p: -p.linear}, "em_map_is_stationary"),
    "half of the precision": (PolyaGamma, {"precision": lambda p: p.precision / 2}, "em_map_is_stationary"),
    "a little of the precision": (PolyaGamma, {"precision": lambda p: p.precision * 1.001}, "em_map_is_stationary"),
    "no half of the variance": (
        NormalNoise,
        {"value": lambda v, eta, var, y, n: v - n * var / 2},
        "bound_is_stationary",
    ),
    "no variance": (NormalNoise, {"value": lambda v, eta, var, y, n: v + n * var / 2}, "bound_is_stationary"),
    "half of the pull": (NormalNoise, {"linear": lambda p: p.linear / 2}, "em_map_is_stationary"),
    "a constant of probit": (NormalNoise, {"value": lambda v, eta, var, y, n: v + 1e-6}, "em_objective"),
}


def passes(check, kind, monkeypatch, augmentation):
    monkeypatch.setattr(kind, "augmentation", augmentation)
    function = getattr(concave, check, None) or getattr(latent, check)
    try:
        return function(Case(kind(tau=3.0, s0=5.0, m0=0.5), bioassay(kind))).passed
    except AscentError:  # the climb itself shows it
        return False


@pytest.mark.parametrize("name", BUGS)
def test_bugs_of_the_augmentation_are_caught(name, monkeypatch):
    base, changes, check = BUGS[name]
    kind = LOGISTIC if base is PolyaGamma else PROBIT
    assert passes(check, kind, monkeypatch, base())
    assert not passes(check, kind, monkeypatch, altered(base, **changes))
