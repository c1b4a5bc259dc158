"""The Gaussian mixture's fields, the distribution of its rows, and what it refuses."""

import numpy as np
import pytest
from scipy import optimize, special, stats
from sklearn.datasets import load_iris

from bayeszoo.errors import InputError, NumericalError
from tests.gaussian_oracles import FAITHFUL, GALAXIES, IRIS, KINDS, MIXTURE, climb, dense, few, random_params, weak


@pytest.mark.parametrize("kind", KINDS)
def test_the_distribution_of_rows(kind):
    model = weak(kind)
    draws = [random_params(model, FAITHFUL, seed) for seed in range(6)]
    params = {
        name: np.array([draw[name] for draw in draws]).reshape(2, 3, *np.shape(draws[0][name])) for name in draws[0]
    }
    rows = model.likelihood(params, FAITHFUL)
    assert rows.mean().shape == rows.var().shape == rows.std().shape == rows.ppf(0.3).shape == (2, 3, 272, 2)
    weights, means = params["weights"][1, 2], params["means"][1, 2]
    one = params["covariances"][1, 2]
    matrices = dense(kind, one, 2)
    density = sum(
        w * stats.multivariate_normal(m, c).pdf(FAITHFUL["Y"]) for w, m, c in zip(weights, means, matrices, strict=True)
    )
    assert np.allclose(rows.logpdf(FAITHFUL["Y"])[1, 2], np.log(density), rtol=1e-10)
    drawn = rows.rvs((2, 3, 272, 2), np.random.default_rng(0))
    for j in range(2):
        each = [stats.norm(m[j], np.sqrt(c[j, j])) for m, c in zip(means, matrices, strict=True)]

        def cdf(x, each=each):
            return sum(w * e.cdf(x) for w, e in zip(weights, each, strict=True))

        for q in (0.025, 0.5, 0.99):
            exact = optimize.brentq(lambda x, q=q, cdf=cdf: cdf(x) - q, -1e4, 1e4, xtol=1e-13, rtol=1e-14)
            assert np.allclose(rows.ppf(q)[1, 2, :, j], exact, rtol=1e-10)
        mean = sum(w * e.mean() for w, e in zip(weights, each, strict=True))
        var = sum(w * (e.var() + (e.mean() - mean) ** 2) for w, e in zip(weights, each, strict=True))
        assert np.allclose(rows.mean()[1, 2, :, j], mean)
        assert np.allclose(rows.var()[1, 2, :, j], var)
        assert stats.kstest(drawn[1, 2, :, j], cdf).pvalue > 1e-4
        derived = model.derived(params)
        assert np.allclose([derived["mixture_mean"][1, 2, j], derived["mixture_sd"][1, 2, j]], [mean, var**0.5])
    assert np.allclose(derived["effective_components"], 1 / np.sum(params["weights"] ** 2, axis=-1))


def test_draws_of_rows_are_correlated_as_their_component():
    params = {"weights": np.ones(1), "means": np.zeros((1, 2)), "covariances": np.array([[[1.0, 0.9], [0.9, 1.0]]])}
    rows = MIXTURE(K=1).likelihood(params, FAITHFUL).rvs((4000, 2), np.random.default_rng(0))
    assert np.corrcoef(rows.T)[0, 1] == pytest.approx(0.9, abs=0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_invariants_do_not_depend_on_labels(kind, monkeypatch):
    model, order = weak(kind, K=3), np.array([2, 0, 1])
    draws = [random_params(model, FAITHFUL, seed) for seed in range(4)]
    params = {name: np.array([draw[name] for draw in draws])[None] for name in draws[0]}
    other = {
        name: value if name == "covariances" and kind == "tied" else value[:, :, order]
        for name, value in params.items()
    }
    found = model.invariants(params, FAITHFUL)
    monkeypatch.setattr("bayeszoo.families.mixtures.gaussian._CELLS", 2000)  # one draw at a time
    for name, values in model.invariants(other, FAITHFUL).items():
        assert values.shape[:2] == (1, 4)
        assert np.allclose(values, found[name], rtol=1e-10)
    expected = [model.e_step(draw, FAITHFUL).value for draw in draws]
    assert np.allclose(found["log_likelihood"][0], expected, rtol=1e-12)
    assert model.exchangeable() == "component"


def test_the_prior_of_mclust():
    """Fraley and Raftery 2007, section 3: kappa 0.01, nu = D + 2, scale var / K^(2/D); K may be given."""
    for K in (1, 2, 5):
        made = MIXTURE.weak_given(IRIS, {"K": K})
        assert (made.K, made.kappa0, made.nu0, made.alpha) == (K, 0.01, 6.0, 1.0)
        assert np.allclose(made.m0, IRIS["Y"].mean(axis=0))
        assert np.allclose(made.Psi0, np.diag(IRIS["Y"].var(axis=0, ddof=1)) / K**0.5)
    assert MIXTURE.weak(IRIS) == MIXTURE.weak_given(IRIS, {})
    assert MIXTURE.weak_given(IRIS, {"nu0": 9.0, "Psi0": 2.0}).Psi0 == 2.0


@pytest.mark.parametrize("kind", KINDS)
def test_the_compiled_pass_is_that_of_numpy(kind):
    """Of the steps of EM and VB, against responsibilities in NumPy; also where a component is empty."""
    model = weak(kind, IRIS, K=3)
    params = random_params(model, IRIS, 0)
    params["weights"] = np.array([0.4, 0.6, 0.0])
    q = model.vb_m_step(model.e_step(params, IRIS).stats)
    steps = [(model.e_step(params, IRIS), model.log_terms(params, IRIS))]
    steps.append((model.vb_e_step(q, IRIS), model.expected_log_terms(q, IRIS)))
    for found, log_terms in steps:
        each = special.softmax(log_terms, axis=1)
        expected = model.moments(each, IRIS)
        assert found.value == pytest.approx(special.logsumexp(log_terms, axis=1).sum(), rel=1e-12)
        assert np.allclose(found.stats.n, expected.n, atol=1e-10)
        assert np.allclose(found.stats.n[:, None] * (found.stats.mean - expected.mean), 0, atol=1e-10)
        assert np.allclose(found.stats.scatter, expected.scatter, atol=1e-9)


def test_simulate_has_as_many_columns_as_the_fields():
    rng = np.random.default_rng(0)
    assert MIXTURE(m0=(0.0,)).simulate(rng, 4)[1]["Y"].shape == (4, 1)
    assert MIXTURE(Psi0=tuple(map(tuple, np.eye(3)))).simulate(rng, 4)[1]["Y"].shape == (4, 3)
    assert MIXTURE().simulate(rng, 0)[1]["Y"].shape == (0, 2)


def test_what_is_refused():
    with pytest.raises(InputError, match="use one of full, tied, diagonal, spherical"):
        MIXTURE(covariance="banded")
    with pytest.raises(InputError, match="K=5 components but only 3 rows"):
        MIXTURE(K=5).start(few(FAITHFUL, slice(0, 3)), np.random.default_rng(0))
    with pytest.raises(InputError, match="K=5 components but only 3 rows"):
        MIXTURE(K=5).compiled(few(FAITHFUL, slice(0, 3)))
    with pytest.raises(InputError, match=r"nu0 must be > D - 1 = 3 of 4 columns, got 2.5"):
        MIXTURE(nu0=2.5).start(IRIS, np.random.default_rng(0))
    MIXTURE(nu0=0.5, covariance="diagonal").start(IRIS, np.random.default_rng(0))
    with pytest.raises(InputError, match="m0 has 2 entries, the data 4 of column"):
        MIXTURE(m0=(1.0, 2.0)).log_prior({}, IRIS)
    with pytest.raises(InputError, match="Psi0 has 2 x 2 entries, the data 4 x 4"):
        MIXTURE(Psi0=((1.0, 0.0), (0.0, 1.0))).declare(IRIS)
    assert "alpha < 1" in MIXTURE(alpha=0.5).unbounded(IRIS)
    assert MIXTURE(K=2).remarks(None, few(FAITHFUL, [0, 0, 0])) == ("K=2 components but only 1 different rows",)
    assert MIXTURE(K=2).remarks(None, FAITHFUL) == ()


def test_a_collapsing_likelihood_is_an_error():
    """Three copies of a row are a component of their own, in the end; with the prior it keeps a size."""
    data = {**FAITHFUL, "Y": np.vstack([FAITHFUL["Y"][:30], np.tile([3.0, 70.0], (3, 1))])}
    model = weak("full", data, K=2)
    start = {
        "weights": np.array([0.9, 0.1]),
        "means": np.array([[3.5, 71.0], [3.0, 70.0]]),
        "covariances": np.array([np.cov(data["Y"].T), 1e-3 * np.eye(2)]),
    }
    with pytest.raises(NumericalError, match="covariance of component 2 is singular"):
        climb(model, data, start, flat=True)
    assert np.isfinite(climb(model, data, start)[1][-1])


def test_the_data_are_those_of_their_sources():
    assert np.allclose(FAITHFUL["Y"].mean(axis=0), [3.48778309, 70.89705882])
    assert (len(FAITHFUL["Y"]), len(GALAXIES["Y"]), GALAXIES["Y"][77, 0]) == (272, 82, 26960)
    assert np.array_equal(IRIS["Y"], load_iris().data)
