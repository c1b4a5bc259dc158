"""Variational Bayes: a complete bound, below the exact evidence, and what importance weights make of it."""

import itertools

import numpy as np
import pytest
import scipy
import sklearn.mixture

import bayeszoo as bz
from bayeszoo.distributions import dirichlet
from bayeszoo.families.mixtures import base as mixture
from bayeszoo.inference.engine.ascent import AscentError
from bayeszoo.inference.methods import vb
from bayeszoo.inference.methods.enumeration import Enumeration
from bayeszoo.inference.problem import Problem
from bayeszoo.results.stored import Fit

GAUSSIAN, UNIGRAMS = bz.find("gaussian_mixture"), bz.find("multinomial_mixture")
FAITHFUL = bz.example(GAUSSIAN)
TINY = bz.read(GAUSSIAN, {"Y": [[-2.1], [-1.8], [-2.4], [1.9], [2.2], [2.6], [0.3]], "column": ["y"]})
DOCUMENTS = bz.read(UNIGRAMS, {"counts": [[3, 1, 0], [4, 0, 1], [0, 2, 5], [1, 1, 6]], "word": list("abc")})


def climbs(model, data, seed=0):
    return vb.climbs(model, data, np.random.default_rng(seed))


@pytest.mark.parametrize("covariance", ["full", "tied", "diagonal", "spherical"])
@pytest.mark.parametrize("K", [1, 2, 3])
def test_bound_is_below_the_exact_evidence(covariance, K):
    model = GAUSSIAN(K=K, covariance=covariance, kappa0=0.1)
    elbo, evidence = climbs(model, TINY).best.objective, Enumeration.of(model, TINY).log_evidence
    assert elbo <= evidence + 1e-9
    assert elbo == pytest.approx(evidence, abs=1e-9 if K == 1 else 4)


def test_bound_by_its_definition_with_scipys_densities():
    """E[log p(y, z, theta) - log q(z) - log q(theta)] over draws of q, every density SciPy's."""
    model = UNIGRAMS(K=2, alpha=1.3, eta=0.7)
    q, rng = climbs(model, DOCUMENTS).best.state, np.random.default_rng(0)
    terms = model.expected_log_terms(q, DOCUMENTS)
    of_z = scipy.special.softmax(terms, axis=1)
    entropy = -np.sum(scipy.special.xlogy(of_z, of_z))
    found = []
    for _ in range(4000):
        weights, topics = rng.dirichlet(q["weights"]), np.array([rng.dirichlet(a) for a in q["topics"]])
        joint = scipy.stats.dirichlet.logpdf(weights, [1.3] * 2) - scipy.stats.dirichlet.logpdf(weights, q["weights"])
        for topic, a in zip(topics, q["topics"], strict=True):
            joint += scipy.stats.dirichlet.logpdf(topic, [0.7] * 3) - scipy.stats.dirichlet.logpdf(topic, a)
        found.append(joint + np.sum(of_z * (np.log(weights) + DOCUMENTS["counts"] @ np.log(topics).T)))
    error = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found) + entropy - climbs(model, DOCUMENTS).best.objective) < 4.4 * error
    assert error < 0.1


def test_means_are_those_of_scikit_learn():
    model = GAUSSIAN(K=2, alpha=0.8, m0=[3.5, 70.0], kappa0=0.5, nu0=4.0, Psi0=[[1.0, 0.0], [0.0, 100.0]])
    theirs = sklearn.mixture.BayesianGaussianMixture(
        n_components=2,
        weight_concentration_prior_type="dirichlet_distribution",
        weight_concentration_prior=0.8,
        mean_prior=[3.5, 70.0],
        mean_precision_prior=0.5,
        degrees_of_freedom_prior=4.0,
        covariance_prior=np.diag([1.0, 100.0]),
        reg_covar=0.0,
        tol=1e-12,
        max_iter=2000,
        random_state=0,
    ).fit(FAITHFUL["Y"])
    q = climbs(model, FAITHFUL).best.state
    order, other = np.argsort(q["weights"]), np.argsort(theirs.weight_concentration_)
    assert q["weights"][order] == pytest.approx(theirs.weight_concentration_[other], rel=1e-5)
    assert q["components"].m[order] == pytest.approx(theirs.means_[other], rel=1e-5)


def test_k_hat_sees_what_q_does_not_cover():
    """Well separated clusters are covered; where rows lie between two, q is too narrow."""
    apart = bz.read(GAUSSIAN, {"Y": np.r_[np.linspace(-12, -4, 30), np.linspace(4, 12, 30)][:, None], "column": ["y"]})
    close = bz.read(GAUSSIAN, {"Y": np.linspace(-2, 2, 9)[:, None], "column": ["y"]})
    good, bad = (
        vb.coverage(Problem(model := GAUSSIAN(K=2), data, np.random.default_rng(0)), climbs(model, data).best.state)
        for data in (apart, close)
    )
    assert good["k_hat"] <= 0.7
    assert bad["k_hat"] > 0.7
    assert bad["k_hat_draws"] == vb.MAX_DRAWS


def test_without_the_orders_of_the_labels_the_evidence_would_be_off_by_log_k_factorial():
    model = GAUSSIAN.weak(FAITHFUL)
    q = climbs(model, FAITHFUL).best.state
    draws = model.vb_posterior(q).rvs(50, np.random.default_rng(0))
    plain = [model.vb_posterior(q).logpdf({name: values[i] for name, values in draws.items()}) for i in range(50)]
    assert model.vb_log_density(q, draws) == pytest.approx(np.array(plain) - np.log(2), abs=1e-9)


@pytest.mark.parametrize("K", [1, 2, 3, 4])
def test_log_permanent_is_the_sum_over_permutations(K):
    terms = np.random.default_rng(K).normal(size=(5, K, K)) * 20
    each = [sum(terms[:, j, order[j]] for j in range(K)) for order in itertools.permutations(range(K))]
    assert mixture.log_permanent(terms) == pytest.approx(scipy.special.logsumexp(each, axis=0), abs=1e-12)


@pytest.mark.slow
def test_superfluous_components_are_seen():
    data = bz.read(GAUSSIAN, {"Y": np.random.default_rng(0).normal(size=(200, 1)), "column": ["y"]})
    tree = bz.fit(GAUSSIAN.weak_given(data, {"K": 4, "alpha": 0.01}), data, "vb", seed=1)
    assert Fit(tree).facts["occupied_components"] == 1


def test_trace_never_falls_and_ends_at_the_bound():
    tree = bz.fit(GAUSSIAN.weak(FAITHFUL), FAITHFUL, "vb", seed=1)
    trace = tree["optimization"]["elbo"].to_numpy()
    assert (np.diff(trace) >= -1e-9 * np.abs(trace[1:])).all()
    assert trace[-1] == Fit(tree).facts["elbo"]


class CountsTwice(UNIGRAMS):
    """q(theta) counts every word twice."""

    name = "multinomial_mixture"

    def vb_m_step(self, stats):
        return super().vb_m_step({**stats, "words": 2 * stats["words"]})


def test_a_wrong_step_is_seen():
    try:
        found = vb.climbs(CountsTwice(K=2), DOCUMENTS, np.random.default_rng(0)).best.objective
    except AscentError:  # it fell
        found = -np.inf
    assert found < climbs(UNIGRAMS(K=2), DOCUMENTS).best.objective - 0.1


# Dirichlet pieces


@pytest.mark.parametrize("alpha", [[0.3, 2.0, 5.0], [50.0, 0.01, 1.0]])
def test_dirichlet_pieces_by_draws(alpha):
    alpha, prior = np.array(alpha), np.array([1.2, 0.4, 2.0])
    assert dirichlet.log_density([0.2, 0.3, 0.5], alpha) == pytest.approx(
        scipy.stats.dirichlet.logpdf([0.2, 0.3, 0.5], alpha), abs=1e-12
    )
    draws = scipy.stats.dirichlet(np.maximum(alpha, 0.3)).rvs(20_000, random_state=0)
    alpha = np.maximum(alpha, 0.3)
    found = scipy.stats.dirichlet.logpdf(draws.T, alpha) - scipy.stats.dirichlet.logpdf(draws.T, prior)
    assert abs(found.mean() - dirichlet.divergence(alpha, prior)) < 4.4 * found.std() / np.sqrt(len(found))
    logs = np.log(draws)
    assert np.all(abs(logs.mean(0) - dirichlet.expected_log(alpha)) < 4.4 * logs.std(0) / np.sqrt(len(logs)))


def test_a_second_optimum_of_the_elbo_that_matters_does_not_pass():
    rows = np.concatenate([centre + np.linspace(-0.3, 0.3, 4) for centre in (-5, 0, 5)])[:, None]
    data = bz.read(GAUSSIAN, {"Y": rows, "column": ["y"]})
    tree = bz.fit(GAUSSIAN.weak_given(data, {"alpha": 5.0, "nu0": 12.0}), data, "vb", seed=1)
    checks = Fit(tree).checks
    assert checks["k_hat"]["passed"]  # which sees one mode only
    assert not checks["weight of the next optimum beside the best, by the ELBO"]["passed"]
    assert tree.attrs["status"] == "not converged"


def test_mirror_images_are_two_optima():
    """Two far groups of equal size: E mu is 0, and q lies about one of them."""
    model = bz.find("student_t")
    rows = np.concatenate([centre + np.linspace(-2, 2, 9) for centre in (-10, 10)])
    tree = bz.fit(model(m0=0.0, kappa0=0.01, a0=0.5, b0=0.5, nu=1.0), bz.read(model, rows), "vb", seed=1)
    checks = Fit(tree).checks
    assert checks["weight of the next optimum beside the best, by the ELBO"]["value"] == pytest.approx(1, abs=1e-6)
