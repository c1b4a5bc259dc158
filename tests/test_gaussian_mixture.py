"""The Gaussian mixture against scikit-learn, SciPy, PyMC and sums over all assignments; its rows, fields and limits."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize, special, stats
from sklearn.datasets import load_iris
from sklearn.mixture import GaussianMixture as Peer

from bayeszoo.compile.density import Density
from bayeszoo.distributions.conjugate.categorical import Categorical
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.families.mixtures import base as mixtures
from bayeszoo.inference.methods import vb
from tests.gaussian_oracles import (
    FAITHFUL,
    GALAXIES,
    IRIS,
    KINDS,
    MIXTURE,
    climb,
    dense,
    few,
    random_params,
    scipys_log_density_of_parameters,
    weak,
)
from tests.quick import quick_where
from tests.refusals import raises


@pytest.mark.parametrize(("data", "K"), [(FAITHFUL, 2), (IRIS, 3)])
@pytest.mark.parametrize("kind", KINDS)
def test_em_is_scikit_learns(kind, data, K):
    """The same start leads to the same log likelihood and parameters."""
    model = weak(kind, data, K=K)
    start = model.start(data, np.random.default_rng(0))
    precisions = np.linalg.inv(start["covariances"]) if kind in ("full", "tied") else 1 / start["covariances"]
    weights = start["weights"] / start["weights"].sum()
    begin = {"weights_init": weights, "means_init": start["means"], "precisions_init": precisions}
    covariance = {"diagonal": "diag"}.get(kind, kind)
    peer = Peer(K, covariance_type=covariance, tol=1e-13, reg_covar=0, max_iter=5000, **begin).fit(data["Y"])
    params, heights = climb(model, data, start, flat=True)
    assert heights[-1] == pytest.approx(peer.score(data["Y"]) * len(data["Y"]), rel=1e-9)
    if (kind, K) == ("full", 2):  # as mclust finds it, and the literature has it
        assert heights[-1] == pytest.approx(-1130.264, abs=1e-3)
    assert np.allclose(params["weights"], peer.weights_, atol=1e-4)
    assert np.allclose(params["means"], peer.means_, rtol=1e-3)
    assert np.allclose(params["covariances"], peer.covariances_, rtol=1e-2, atol=1e-4)
    assert np.allclose(model.component_probabilities(params, data), peer.predict_proba(data["Y"]), atol=1e-3)


def log_joint(model, kind, data, params):
    """SciPy's log density of rows and parameters."""
    prior = model.components(data["Y"].shape[1])
    terms = zip(params["weights"], params["means"], dense(kind, params["covariances"], model.K), strict=True)
    density = sum(w * stats.multivariate_normal(mean, sigma).pdf(data["Y"]) for w, mean, sigma in terms)
    of_weights = stats.dirichlet(np.full(model.K, model.alpha)).logpdf(params["weights"])
    of_components = scipys_log_density_of_parameters(kind, prior, params["means"], params["covariances"])
    return np.log(density).sum() + of_weights + of_components


def check_the_map_is_stationary(kind):
    """At the fixed point SciPy's joint density has no slope, and is lower on all sides."""
    model, rng = replace(weak(kind), alpha=3.0), np.random.default_rng(0)
    params, heights = climb(model, FAITHFUL, model.start(FAITHFUL, rng))
    assert log_joint(model, kind, FAITHFUL, params) == pytest.approx(heights[-1], rel=1e-11)

    def height(step, direction):
        return log_joint(model, kind, FAITHFUL, {k: v + step * direction[k] for k, v in params.items()})

    for _ in range(12):
        direction = {name: 0.1 * value * rng.normal(size=value.shape) for name, value in params.items()}
        direction["weights"] -= direction["weights"].mean()
        if kind in ("full", "tied"):
            direction["covariances"] = (direction["covariances"] + direction["covariances"].mT) / 2
        up, top, down = (height(step, direction) for step in (1e-2, 0.0, -1e-2))
        assert up + down < 2 * top
        slope = (height(1e-4, direction) - height(-1e-4, direction)) / 2e-4
        assert abs(slope) < 1e-4 * abs(up + down - 2 * top) / 1e-4


PYMC = {"full": (few(IRIS, slice(0, 150, 10)), 2), "tied": (GALAXIES, 3), "diagonal": (FAITHFUL, 3)}
PYMC["spherical"] = FAITHFUL, 1


@pytest.mark.parametrize("kind", quick_where(KINDS, lambda kind: kind == "diagonal"))
def test_pymcs_density_is_that_of_the_steps(kind):
    data, K = PYMC[kind]
    model = replace(weak(kind, data, K=K), alpha=1.7, kappa0=0.3, nu0=6.5)
    declared = Density(model.declare(data), mode="FAST_COMPILE")
    compiled = Density(model.compiled(data), mode="FAST_COMPILE")
    assert declared.size == compiled.size == model.free_parameters(data)
    for seed in range(3):
        params = random_params(model, data, seed)
        x = declared.unconstrain(params)
        expected = model.e_step(params, data).value + model.log_prior(params, data)
        one, other = declared.constrained_joint(x), compiled.constrained_joint(x)
        assert one[0] == pytest.approx(expected, rel=1e-10)
        assert other[0] == pytest.approx(expected, rel=1e-10)
        assert np.allclose(other[1], one[1], rtol=1e-8, atol=1e-8 * np.abs(one[1]).max())
    assert {name: model.dims[name] for name in params} == declared.dims
    assert all(list(model.coords(data)[name]) == list(values) for name, values in declared.coords.items())


def check_density_of_q(kind):
    """With q averaged over the orders of the labels; and the ELBO is below the evidence."""
    data = few(FAITHFUL, slice(0, 7))
    model = replace(weak(kind, data, K=2), alpha=2.0, kappa0=0.5, nu0=8.0)
    evidence = special.logsumexp(model.log_joint(np.array(list(itertools.product(range(2), repeat=7))), data))
    best = vb.climbs(model, data, np.random.default_rng(0), restarts=2).best
    assert evidence - 5 < best.objective <= evidence
    q, params = best.state, model.vb_posterior(best.state).rvs((10,), np.random.default_rng(0))
    both = [params, {k: v if (k, kind) == ("covariances", "tied") else v[:, ::-1] for k, v in params.items()}]
    for i in range(10):
        orders = [model.vb_posterior(q).logpdf({k: v[i] for k, v in one.items()}) for one in both]
        assert model.vb_log_density(q, params)[i] == pytest.approx(np.logaddexp(*orders) - np.log(2), rel=1e-10)


@pytest.mark.parametrize("check", [check_the_map_is_stationary, check_density_of_q])
@pytest.mark.parametrize("kind", KINDS)
def test_steps_and_bounds(kind, check):
    check(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_the_distribution_of_rows(kind):
    model = weak(kind)
    draws = [random_params(model, FAITHFUL, seed) for seed in range(6)]
    stacked = {name: np.array([draw[name] for draw in draws]) for name in draws[0]}
    params = {name: values.reshape(2, 3, *values.shape[1:]) for name, values in stacked.items()}
    rows = model.likelihood(params, FAITHFUL)
    assert rows.mean().shape == rows.var().shape == rows.std().shape == rows.ppf(0.3).shape == (2, 3, 272, 2)
    weights, means, covariances = (params[name][1, 2] for name in ("weights", "means", "covariances"))
    terms = list(zip(weights, means, dense(kind, covariances, 2), strict=True))
    density = sum(w * stats.multivariate_normal(m, c).pdf(FAITHFUL["Y"]) for w, m, c in terms)
    assert np.allclose(rows.logpdf(FAITHFUL["Y"])[1, 2], np.log(density), rtol=1e-10)
    drawn = rows.rvs((2, 3, 272, 2), np.random.default_rng(0))
    for j in range(2):
        each = [stats.norm(m[j], np.sqrt(c[j, j])) for _, m, c in terms]

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
    one = {"weights": np.ones(1), "means": np.zeros((1, 2)), "covariances": np.array([[[1.0, 0.9], [0.9, 1.0]]])}
    drawn = MIXTURE(K=1).likelihood(one, FAITHFUL).rvs((4000, 2), np.random.default_rng(0))
    assert np.corrcoef(drawn.T)[0, 1] == pytest.approx(0.9, abs=0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_invariants_are_the_same_one_draw_at_a_time(kind, monkeypatch):
    model = weak(kind, K=3)
    draws = [random_params(model, FAITHFUL, seed) for seed in range(4)]
    params = {name: np.array([draw[name] for draw in draws])[None] for name in draws[0]}
    found = model.invariants(params, FAITHFUL)
    monkeypatch.setattr("bayeszoo.families.mixtures.gaussian._CELLS", 2000)
    for name, values in model.invariants(params, FAITHFUL).items():
        assert values.shape[:2] == (1, 4)
        assert np.allclose(values, found[name], rtol=1e-10)
    expected = [model.e_step(draw, FAITHFUL).value for draw in draws]
    assert np.allclose(found["log_likelihood"][0], expected, rtol=1e-12)


def test_the_prior_of_mclust():
    """Fraley and Raftery 2007, section 3: kappa 0.01, nu = D + 2, scale var / K^(2/D); K may be given."""
    for K in (1, 2, 5):
        model = MIXTURE.weak_with(IRIS, {"K": K})
        assert (model.K, model.kappa0, model.nu0, model.alpha) == (K, 0.01, 6.0, 1.0)
        assert np.allclose(model.m0, IRIS["Y"].mean(axis=0))
        assert np.allclose(model.Psi0, np.diag(IRIS["Y"].var(axis=0, ddof=1)) / K**0.5)
    assert MIXTURE.weak(IRIS) == MIXTURE.weak_with(IRIS, {})
    assert MIXTURE.weak_with(IRIS, {"nu0": 9.0, "Psi0": 2.0}).Psi0 == 2.0


@pytest.mark.parametrize("kind", KINDS)
def test_the_compiled_pass_is_that_of_numpy(kind):
    """Of the steps of EM and VB, against responsibilities in NumPy; also where a component is empty."""
    model = weak(kind, IRIS, K=3)
    params = random_params(model, IRIS, 0)
    params["weights"] = np.array([0.4, 0.6, 0.0])
    q = model.vb_m_step(model.e_step(params, IRIS).stats)
    steps = [(model.e_step(params, IRIS), model.log_terms(params, IRIS))]
    steps.append((model.vb_e_step(q, IRIS), q.q.expected_log_terms(IRIS)))
    for found, log_terms in steps:
        each = special.softmax(log_terms, axis=1)
        ours, expected = (of_all.stats.parts[1] for of_all in (found.stats, model.expected_statistics(each, IRIS)))
        assert found.value == pytest.approx(special.logsumexp(log_terms, axis=1).sum(), rel=1e-12)
        assert np.allclose(ours.n, expected.n, atol=1e-10)
        assert np.allclose(ours.n[:, None] * (ours.mean - expected.mean), 0, atol=1e-10)
        assert np.allclose(ours.scatter, expected.scatter, atol=1e-9)


@pytest.mark.parametrize("kind", quick_where(KINDS, lambda kind: kind == "tied"))
def test_simulated_parameters_and_rows_follow_scipys_prior(kind):
    model = MIXTURE(alpha=1.5, covariance=kind, nu0=6.0, Psi0=((2.0, 0.5), (0.5, 1.0)), m0=(1.0, -1.0))
    rng, found = np.random.default_rng(0), []
    for _ in range(400):
        params, data = model.simulate(rng, 1)
        weights, means, variances = params["weights"], params["means"][:, 0], dense(kind, params["covariances"], 2)
        rank = weights @ stats.norm.cdf(data["Y"][0, 0], means, np.sqrt([each[0, 0] for each in variances]))
        found.append((variances[0][0, 0], weights[0], means[0], rank))
    shape, scale = 2.5 if kind in ("full", "tied") else 3.0, 0.75 if kind == "spherical" else 1.0
    laws = stats.invgamma(shape, scale=scale), stats.beta(1.5, 1.5), stats.t(2 * shape, 1.0, (scale / shape) ** 0.5)
    for values, law in zip(np.transpose(found), (*laws, stats.uniform), strict=True):
        assert stats.kstest(values, law.cdf).pvalue > 1e-4


RNG, THREE = np.random.default_rng(0), few(FAITHFUL, slice(0, 3))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: MIXTURE(covariance="banded"), ("unknown_method", "full", "tied", "diagonal", "spherical")),
        (lambda: MIXTURE(K=5).start(THREE, RNG), ("too_few_rows", "K", "5", "3")),
        (lambda: MIXTURE(K=5).compiled(THREE), ("too_few_rows", "K", "5", "3")),
        (lambda: MIXTURE(nu0=2.5).start(IRIS, RNG), ("out_of_range", "nu0", "1", "3", "4", "2.5")),
        (lambda: MIXTURE(m0=(1.0, 2.0)).log_prior({}, IRIS), ("wrong_shape", "2", "4")),
        (lambda: MIXTURE(Psi0=((1.0, 0.0), (0.0, 1.0))).declare(IRIS), ("wrong_shape", "Psi0", "2", "4")),
    ],
)
def test_fields_that_do_not_suit_the_data_are_refused(call, message):
    with raises(InputError, *message):
        call()


def test_what_is_said_of_odd_fields_and_simulated_of_others():
    for model, columns in ((MIXTURE(m0=(0.0,)), 1), (MIXTURE(), 2), (MIXTURE(Psi0=np.eye(3).tolist()), 3)):
        assert model.simulate(RNG, 4)[1]["Y"].shape == (4, columns)
    assert MIXTURE().simulate(RNG, 0)[1]["Y"].shape == (0, 2)
    MIXTURE(nu0=0.5, covariance="diagonal").start(IRIS, RNG)
    assert "alpha < 1" in MIXTURE(alpha=0.5).unbounded(IRIS)
    assert MIXTURE(K=2).remarks(None, few(FAITHFUL, [0, 0, 0])) == ("K=2 components but only 1 distinct rows",)
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
    with raises(NumericalError, "no_maximum", "2"):
        climb(model, data, start, flat=True)
    assert np.isfinite(climb(model, data, start)[1][-1])


def test_the_data_are_those_of_their_sources():
    assert np.allclose(FAITHFUL["Y"].mean(axis=0), [3.48778309, 70.89705882])
    assert (len(FAITHFUL["Y"]), len(GALAXIES["Y"]), GALAXIES["Y"][77, 0]) == (272, 82, 26960)
    assert np.array_equal(IRIS["Y"], load_iris().data)


# Bugs that the checks above must see; those of the components are seen in their own tests


def of_more_rows(found):
    weights, moments = found.stats.stats.parts
    more = replace(found.stats.stats, parts=(weights, moments.discounted(1.1)))
    return replace(found, stats=found.stats._replace(stats=more))


def test_seeded_bugs_of_the_mixture_are_seen(monkeypatch):
    right = MIXTURE.e_step
    with monkeypatch.context() as patched:  # responsibilities that do not add up to one
        patched.setattr(MIXTURE, "e_step", lambda self, *given: of_more_rows(right(self, *given)))
        with pytest.raises(AssertionError):
            check_the_map_is_stationary("full")
    with monkeypatch.context() as patched:  # pseudo-counts alpha for alpha - 1
        patched.setattr(Categorical, "mode", lambda self: self.typical())
        with pytest.raises(AssertionError):
            check_the_map_is_stationary("tied")
    average = mixtures.symmetrized
    for bug in (
        lambda *given: average(*given) + np.log(2),  # the sum over the orders of the labels
        lambda weights, params, pairs: np.trace(pairs, axis1=-2, axis2=-1),  # one order, and no weights
        lambda weights, params, pairs: average(
            replace(weights, alpha=weights.alpha[::-1]), params, pairs
        ),  # the weights in another order
    ):
        with monkeypatch.context() as patched:
            patched.setattr(mixtures, "symmetrized", bug)
            with pytest.raises(AssertionError):
                check_density_of_q("spherical")
