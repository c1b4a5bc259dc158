"""The Gaussian mixture against scikit-learn, SciPy, PyMC, sums over all assignments, and its own limits."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import special, stats
from sklearn.mixture import GaussianMixture as Peer

import bayeszoo as bz
from bayeszoo.distributions import dirichlet
from bayeszoo.families.mixtures import gaussian as gaussian_mixtures
from bayeszoo.families.mixtures.gaussian_components import GaussianComponents
from bayeszoo.inference.engine.density import Density
from tests.gaussian_oracles import (
    FAITHFUL,
    GALAXIES,
    IRIS,
    KINDS,
    MIXTURE,
    Chain,
    climb,
    climb_vb,
    dense,
    few,
    random_params,
    scipys_log_density_of_parameters,
    weak,
)
from tests.quick import quick_where


def check_em_is_scikit_learns(kind, data, K):
    """The same start leads to the same log likelihood and parameters."""
    model = weak(kind, data, K=K)
    start = model.start(data, np.random.default_rng(0))
    precisions = np.linalg.inv(start["covariances"]) if kind in ("full", "tied") else 1 / start["covariances"]
    peer = Peer(
        K,
        covariance_type={"diagonal": "diag"}.get(kind, kind),
        tol=1e-13,
        reg_covar=0,
        max_iter=5000,
        weights_init=start["weights"] / start["weights"].sum(),
        means_init=start["means"],
        precisions_init=precisions,
    ).fit(data["Y"])
    params, heights = climb(model, data, start, flat=True)
    assert heights[-1] == pytest.approx(peer.score(data["Y"]) * len(data["Y"]), rel=1e-9)
    assert np.allclose(params["weights"], peer.weights_, atol=1e-4)
    assert np.allclose(params["means"], peer.means_, rtol=1e-3)
    assert np.allclose(params["covariances"], peer.covariances_, rtol=1e-2, atol=1e-4)
    assert np.allclose(model.assign(params, data), peer.predict_proba(data["Y"]), atol=1e-3)


@pytest.mark.parametrize(("data", "K"), [(FAITHFUL, 2), (IRIS, 3)])
@pytest.mark.parametrize("kind", KINDS)
def test_em_is_scikit_learns(kind, data, K):
    check_em_is_scikit_learns(kind, data, K)


def test_the_figures_of_old_faithful():
    """The maximum of two full components that mclust and scikit-learn find; -1130.264 in the literature."""
    _, heights = climb(weak("full"), FAITHFUL, weak("full").start(FAITHFUL, np.random.default_rng(1)), flat=True)
    assert heights[-1] == pytest.approx(-1130.264, abs=1e-3)


def log_joint(model, kind, data, params):
    """SciPy's log density of rows and parameters."""
    prior = model.components(data["Y"].shape[1]).prior
    terms = zip(params["weights"], params["means"], matrices_of(kind, params), strict=True)
    density = sum(w * stats.multivariate_normal(mean, sigma).pdf(data["Y"]) for w, mean, sigma in terms)
    of_weights = stats.dirichlet(np.full(model.K, model.alpha)).logpdf(params["weights"])
    of_components = scipys_log_density_of_parameters(kind, prior, params["means"], params["covariances"])
    return np.log(density).sum() + of_weights + of_components


def matrices_of(kind, params):
    return dense(kind, params["covariances"], len(params["weights"]))


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
    assert {name: list(model.coords(data)[name]) for name in declared.coords} == {
        name: list(values) for name, values in declared.coords.items()
    }


def check_one_component_is_a_gaussian(kind):
    """K = 1: the MAP and MLE in closed form, and an ELBO that is the exact log evidence."""
    data = few(FAITHFUL, slice(0, 40))
    model = weak(kind, data, K=1)
    prior = model.components(2)
    psi0 = np.array(model.Psi0)
    params, _ = climb(model, data, model.start(data, np.random.default_rng(0)))
    flat, heights = climb(model, data, model.start(data, np.random.default_rng(0)), flat=True)
    mean, scatter = data["Y"].mean(axis=0), np.cov(data["Y"].T, ddof=0)
    shift, n = mean - model.m0, len(data["Y"])
    psi = psi0 + n * scatter + model.kappa0 * n / (model.kappa0 + n) * np.outer(shift, shift)
    expected = {
        "diagonal": (np.diag(scatter), np.diag(psi) / (model.nu0 + n + 3)),
        "spherical": (np.trace(scatter) / 2, np.trace(psi - psi0 / 2) / (model.nu0 + 2 * n + 4)),
    }.get(kind, (scatter, psi / (model.nu0 + n + 4)))
    assert np.allclose(flat["means"][0], mean)
    assert np.allclose(np.squeeze(flat["covariances"]), expected[0], rtol=1e-12)
    assert np.allclose(np.squeeze(params["covariances"]), expected[1], rtol=1e-12)
    matrix = dense(kind, flat["covariances"], 1)[0]
    assert heights[-1] == pytest.approx(stats.multivariate_normal(mean, matrix).logpdf(data["Y"]).sum(), rel=1e-12)
    _, elbo = climb_vb(model, data)
    evidence = Chain(kind, prior.m, prior.kappa, prior.nu, psi0).log_evidence(data["Y"], np.zeros(n, dtype=int))
    assert elbo[-1] == pytest.approx(evidence, rel=1e-11)
    assert model.log_joint(np.zeros((1, n), dtype=int), data)[0] == pytest.approx(evidence, rel=1e-11)


def test_one_full_component_is_the_normal_inverse_wishart_model():
    plain = bz.find("normal_inverse_wishart").weak(IRIS)
    model = MIXTURE.weak_given(IRIS, {"K": 1})
    moments = plain.statistics(IRIS)
    q, elbo = climb_vb(model, IRIS)
    assert elbo[-1] == pytest.approx(plain.log_evidence(moments), rel=1e-12)
    params = model.m_step(model.moments(np.ones((150, 1)), IRIS))
    assert np.allclose(params["covariances"][0], plain.map(moments)["Sigma"], rtol=1e-12)
    assert np.allclose(model.vb_posterior(q)["covariances"].std()[0], plain.posterior(moments)["Sigma"].std())


def check_importance_weights(kind):
    """p / q averaged over draws of q is the evidence, with q averaged over the orders of labels: |z| < 4.5.

    And the ELBO is below the evidence.
    """
    data = few(FAITHFUL, slice(0, 7))
    model = replace(weak(kind, data, K=2), alpha=2.0, kappa0=0.5, nu0=8.0)
    assignments = np.array(list(itertools.product(range(2), repeat=7)))
    log_joint = model.log_joint(assignments, data)
    evidence = special.logsumexp(log_joint)
    rng = np.random.default_rng(0)
    which = rng.choice(len(assignments), 300, p=np.exp(log_joint - evidence))
    q, elbo = climb_vb(model, data)
    assert evidence - 5 < elbo[-1] <= evidence
    ratios = []
    for z in which:  # exact draws of the posterior: E[q / p] = 1 / evidence, with bounded weights where q is narrower
        params = model.posterior_given(assignments[z], data).rvs((10,), rng)
        log_p = model.likelihood(params, data).logpdf(data["Y"]).sum(axis=-1) + model.log_prior(params, data)
        ratios.append(np.mean(np.exp(model.vb_log_density(q, params) - log_p + evidence)))
    both = [params, {k: v if (k, kind) == ("covariances", "tied") else v[:, ::-1] for k, v in params.items()}]
    for i in range(10):
        orders = [model.vb_posterior(q).logpdf({k: v[i] for k, v in one.items()}) for one in both]
        assert model.vb_log_density(q, params)[i] == pytest.approx(np.logaddexp(*orders) - np.log(2), rel=1e-10)
    error = np.std(ratios) / np.sqrt(len(ratios))
    assert error < 0.1
    assert abs(np.mean(ratios) - 1) < 4.5 * error


@pytest.mark.parametrize(
    "check", [check_the_map_is_stationary, check_one_component_is_a_gaussian, check_importance_weights]
)
@pytest.mark.parametrize("kind", KINDS)
def test_steps_and_bounds(kind, check):
    check(kind)


def n_minus_one(right):
    def sums(self, *given):
        value, found = right(self, *given)
        wider = found.scatter * (found.n / (found.n - 1)).reshape(-1, *[1] * (found.scatter.ndim - 1))
        return value, replace(found, scatter=wider)

    return sums


def test_seeded_bugs_are_seen(monkeypatch):
    """Each turns a check red that was green above."""
    right = {name: getattr(GaussianComponents, name) for name in ("sums", "mode", "divergence", "updated")}
    bugs = {
        "n - 1 for n": ("sums", n_minus_one(right["sums"]), lambda: check_em_is_scikit_learns("full", IRIS, 3)),
        "nu + D + 1 for nu + D + 2": (
            "mode",
            lambda self, hyper: right["mode"](self, replace(hyper, nu=hyper.nu - 1)),
            lambda: check_the_map_is_stationary("full"),
        ),
        "a constant of the divergence": (
            "divergence",
            lambda self, hyper: right["divergence"](self, hyper) - self.columns / 2 * self.count,
            lambda: check_one_component_is_a_gaussian("full"),
        ),
        "kappa of the prior": (
            "updated",
            lambda self, stats: replace(right["updated"](self, stats), kappa=stats.n),
            lambda: check_one_component_is_a_gaussian("spherical"),
        ),
    }
    for method, bug, check in bugs.values():
        with monkeypatch.context() as patched:
            patched.setattr(GaussianComponents, method, bug)
            with pytest.raises(AssertionError):
                check()


def of_more_rows(found):
    moments = replace(found.stats, n=1.1 * found.stats.n, scatter=1.1 * found.stats.scatter)
    return replace(found, stats=moments)


def test_seeded_bugs_of_the_mixture_are_seen(monkeypatch):
    right = MIXTURE.e_step
    with monkeypatch.context() as patched:  # responsibilities that do not add up to one
        patched.setattr(MIXTURE, "e_step", lambda self, *given: of_more_rows(right(self, *given)))
        with pytest.raises(AssertionError):
            check_the_map_is_stationary("full")
    with monkeypatch.context() as patched:  # pseudo-counts alpha for alpha - 1
        patched.setattr(dirichlet, "mode", lambda counts, prior, what: (counts + prior) / (counts + prior).sum())
        with pytest.raises(AssertionError):
            check_the_map_is_stationary("tied")
    average = gaussian_mixtures.symmetrized
    for bug in (
        lambda *given: average(*given) + np.log(2),  # the sum over the orders of the labels
        lambda alpha, weights, pairs: np.trace(pairs, axis1=-2, axis2=-1),  # one order, and no weights
        lambda alpha, weights, pairs: average(alpha[::-1], weights, pairs),  # the weights in another order
    ):
        with monkeypatch.context() as patched:
            patched.setattr(gaussian_mixtures, "symmetrized", bug)
            with pytest.raises(AssertionError):
                check_importance_weights("spherical")
