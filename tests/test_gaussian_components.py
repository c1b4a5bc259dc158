"""Gaussian components of four kinds against SciPy, simulation and chains of Student-t predictives."""

import itertools
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from bayeszoo.distributions.statistics.base import along
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.families.mixtures.base import clusters
from bayeszoo.families.mixtures.gaussian_components import GaussianComponents
from bayeszoo.families.statistics.assignments import log_evidence_of
from tests.gaussian_oracles import KINDS, Chain, dense, scipys_log_density_of_parameters
from tests.refusals import raises

K, D, KAPPA, NU = 3, 2, 0.7, 4.5
M = np.array([0.5, 1.0])
PSI = np.array([[2.0, 0.3], [0.3, 1.5]])
Y = np.random.default_rng(0).normal(size=(30, D)) @ [[1.0, 0.3], [0.0, 2.0]] + [1.0, 2.0]
RESP = np.random.default_rng(1).dirichlet(np.ones(K), len(Y))


ROWS = {"Y": Y}


def evidence(it, rows, assignments):
    return log_evidence_of(it, {"Y": rows}, assignments)


def components(kind, count=K):
    return GaussianComponents.of(kind, count, M, KAPPA, NU, PSI)


# Each check is a function, so that the seeded bugs below can be shown to fail it.


def check_density(kind):
    it = components(kind)
    draws = it.rvs((2, 4), np.random.default_rng(2))
    found = it.log_density(draws, ROWS)
    assert found.shape == (2, 4, len(Y), K)
    for i, k in itertools.product(range(4), range(K)):
        sigma = dense(kind, draws["covariances"][1, i], K)[k]
        expected = stats.multivariate_normal(draws["means"][1, i, k], sigma).logpdf(Y)
        assert np.allclose(found[1, i, :, k], expected, rtol=1e-11, atol=1e-11)


def check_prior_and_posterior_density(kind):
    it = components(kind)
    for hyper in (it, it.updated(it.statistics(ROWS, RESP))):
        draws = hyper.rvs((2, 3), np.random.default_rng(3))
        found = hyper.logpdf(draws)
        for i, j in itertools.product(range(2), range(3)):
            expected = scipys_log_density_of_parameters(kind, hyper, draws["means"][i, j], draws["covariances"][i, j])
            assert found[i, j] == pytest.approx(expected, rel=1e-11, abs=1e-11)
    draws = it.rvs((), np.random.default_rng(4))
    expected = scipys_log_density_of_parameters(kind, it, **draws)
    assert it.logpdf(draws) == pytest.approx(expected, rel=1e-11, abs=1e-11)


def check_evidence(kind):
    it, rows = components(kind), Y[:7]
    assignments = np.random.default_rng(5).integers(0, K, (6, 7))
    assignments[0] = 0
    expected = [Chain(kind, M, KAPPA, NU, PSI).log_evidence(rows, z) for z in assignments]
    assert np.allclose(evidence(it, rows, assignments), expected, rtol=1e-12)
    assert np.array_equal(evidence(it, rows[:0], assignments[:, :0]), np.zeros(6))
    many, z = np.tile(Y, (3, 1)), np.tile(assignments, 13)[:, : 3 * len(Y)]
    expected = [Chain(kind, M, KAPPA, NU, PSI).log_evidence(many, one) for one in z[:2]]
    assert np.allclose(evidence(it, many, z)[:2], expected, rtol=1e-11)


def check_mode(kind):
    """No step in any direction, of means or of covariances within the cone, gains to first order."""
    it = components(kind)
    hyper = it.updated(it.statistics(ROWS, RESP))
    top, rng = hyper.mode(), np.random.default_rng(7)

    def height(step, direction):
        means = top["means"] + step * direction["means"]
        covariances = top["covariances"] + step * direction["covariances"]
        return scipys_log_density_of_parameters(kind, hyper, means, covariances)

    for _ in range(10):
        direction = {name: 0.3 * value * rng.normal(size=value.shape) for name, value in top.items()}
        if kind in ("full", "tied"):
            direction["covariances"] = (direction["covariances"] + direction["covariances"].mT) / 2
        slope = (height(1e-5, direction) - height(-1e-5, direction)) / 2e-5
        curvature = (height(1e-3, direction) - 2 * height(0, direction) + height(-1e-3, direction)) / 1e-6
        assert curvature < 0
        assert abs(slope) < 1e-6 * abs(curvature)


def check_bound(kind):
    """Given the components of the rows nothing is left to factorize: the bound is the evidence."""
    it, z = components(kind), np.random.default_rng(8).integers(0, K, len(Y))
    hyper = it.updated(it.statistics(ROWS, np.eye(K)[z]))
    expected = hyper.expected_log_density(ROWS)[np.arange(len(Y)), z].sum()
    assert expected - hyper.divergence(it) == pytest.approx(evidence(it, Y, z[None])[0], rel=1e-11)
    assert it.divergence(it) == pytest.approx(0, abs=1e-12)


def check_pairs(kind):
    it = components(kind)
    hyper = it.updated(it.statistics(ROWS, RESP))
    draws = hyper.rvs((5,), np.random.default_rng(10))
    pairs = hyper.log_pairs(draws)
    assert pairs.shape == (5, K, K)
    assert np.allclose(hyper.log_pairs_of([hyper, it], draws), [pairs, it.log_pairs(draws)], rtol=1e-9)
    for order in itertools.permutations(range(K)):
        s = list(order)
        own = () if kind == "tied" else (s,)
        other = replace(hyper, m=hyper.m[s], kappa=hyper.kappa[s], nu=hyper.nu[own], psi=hyper.psi[own])
        found = sum(pairs[:, j, k] for k, j in enumerate(s))
        each = zip(draws["means"], draws["covariances"], strict=True)
        assert np.allclose(found, [scipys_log_density_of_parameters(kind, other, *one) for one in each], rtol=1e-11)


def check_moments(kind):
    it = components(kind)
    found = it.statistics(ROWS, RESP)
    for k in range(K):
        mean = np.average(Y, axis=0, weights=RESP[:, k])
        matrix = np.cov(Y.T, aweights=RESP[:, k], ddof=0) * RESP[:, k].sum()
        expected = {"diagonal": np.diag(matrix), "spherical": np.trace(matrix)}.get(kind, matrix)
        assert found.n[k] == pytest.approx(RESP[:, k].sum())
        assert np.allclose(found.mean[k], mean, rtol=1e-13)
        assert np.allclose(found.scatter[k], expected, rtol=1e-12)


@pytest.mark.parametrize("check", [value for name, value in globals().items() if name.startswith("check_")])
@pytest.mark.parametrize("kind", KINDS)
def test_it_agrees_with_the_oracle(kind, check):
    check(kind)


# What a bug makes of what the step finds; `it` has the step


def sample_divisor(it, found, *_):
    return replace(found, scatter=found.scatter * along(found.n / (found.n - 1), found.scatter))


def power_of_one_less(it, mode):
    return {**mode, "covariances": mode["covariances"] * along(it.power / (it.power - 1), it.psi)}


def constant_dropped(it, found, prior):
    return found + np.sum(np.log(prior.kappa / it.kappa)) * it.columns / 2


def without_kappa(it, found, rows):
    return found + it.columns / it.kappa / 2


def scatter_alone(it, found, stats):
    return it.together(stats.scatter, stats.n)


BUGS = {
    "the sample divisor n - 1": ("statistics", sample_divisor, check_moments),
    "kappa of the rows alone": ("updated", lambda it, found, stats: replace(found, kappa=stats.n), check_bound),
    "no shrinkage of the scatter": (
        "_growth",
        lambda it, found, stats: it.together(stats.scatter, stats.n),
        check_evidence,
    ),
    "nu + D + 1 for nu + D + 2": ("mode", power_of_one_less, check_mode),
    "a constant dropped from the divergence": ("divergence", constant_dropped, check_bound),
    "D / kappa left out": ("expected_log_density", without_kappa, check_bound),
    "pairs the other way round": ("log_pairs", lambda it, found, *_: np.swapaxes(found, -1, -2), check_pairs),
}


@pytest.mark.parametrize("bug", BUGS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_seeded_bug_is_seen(kind, bug, monkeypatch):
    name, change, check = BUGS[bug]
    right = getattr(GaussianComponents, name)
    step = lambda it, *given, **named: change(it, right(it, *given, **named), *given)  # noqa: E731
    monkeypatch.setattr(GaussianComponents, name, step)
    with pytest.raises(AssertionError):
        check(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_a_scale_matrix_for_its_inverse_is_seen(kind, monkeypatch):
    structure = type(components(kind).structure)
    right = structure.reduced
    monkeypatch.setattr(structure, "reduced", lambda self, psi: right(self, np.linalg.inv(psi)))
    with pytest.raises(AssertionError):
        check_evidence(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_draws_follow_the_marginals(kind):
    it = components(kind)
    hyper = it.updated(it.statistics(ROWS, RESP))
    draws = hyper.rvs((4000,), np.random.default_rng(11))
    marginals = hyper.marginals()
    posterior = hyper.posterior()
    for name in ("means", "covariances"):
        assert marginals[name].mean().shape == draws[name].shape[1:]
        z = (draws[name].mean(axis=0) - marginals[name].mean()) / (marginals[name].std() / np.sqrt(4000))
        assert np.all(np.abs(z) < 4.5)
        for q in (0.05, 0.5, 0.9):
            share = np.mean(draws[name] < posterior[name].ppf(q), axis=0)
            assert np.all(np.abs(share - q) < 4.5 * np.sqrt(q * (1 - q) / 4000))
            assert np.allclose(posterior[name].cdf(posterior[name].ppf(q)), q)
    if kind in ("full", "tied"):  # the entries of a matrix together, too
        at = () if kind == "tied" else (1,)
        nu, psi, ours = hyper.nu[at], hyper.psi[at], draws["covariances"][:, *at]
        theirs = stats.invwishart(nu, psi).rvs(4000, random_state=np.random.default_rng(13))
        assert stats.ks_2samp(np.linalg.det(ours), np.linalg.det(theirs)).pvalue > 1e-4
    one = {name: value[0] for name, value in draws.items()}
    assert posterior.logpdf(one) == pytest.approx(scipys_log_density_of_parameters(kind, hyper, **one), rel=1e-11)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_near_a_billion_lose_nothing(kind):
    far = GaussianComponents.of(kind, K, M + 2.0**30, KAPPA, NU, PSI)
    rows = np.round(Y * 2**10) / 2**10  # which adding 2^30 does not round
    near = components(kind)
    moments, moved = (near.statistics({"Y": values}, RESP) for values in (rows, rows + 2.0**30))
    one, other = near.updated(moments), far.updated(moved)
    assert np.allclose(other.m - 2.0**30, one.m, atol=1e-6)
    assert np.allclose(other.psi, one.psi, rtol=1e-6)
    assert np.allclose(moved.scatter, moments.scatter, rtol=1e-12)


def refused(is_refused, error, *about):
    return raises(error, *about) if is_refused else nullcontext()


@pytest.mark.parametrize("kind", KINDS)
def test_the_likelihood_has_no_maximum_without_rows_or_spread(kind):
    it = components(kind)
    empty = np.eye(K)[np.zeros(len(Y), dtype=int)]
    with raises(NumericalError, "no_data", "2"):
        it.mle(it.statistics(ROWS, empty))
    flat = np.column_stack([Y[:, 0], np.full(len(Y), 1e9)])
    with refused(kind != "spherical", NumericalError, "not_identified", "2"):
        it.mle(it.statistics({"Y": flat}, RESP))
    single = np.eye(K)[np.r_[0, 1, np.full(len(Y) - 2, 2)]]
    with refused(kind != "tied", NumericalError, "no_maximum", "component 1"):
        it.mle(it.statistics(ROWS, single))


@pytest.mark.parametrize("kind", KINDS)
def test_collapse_is_seen_in_any_units(kind):
    it = components(kind)
    top = {"weights": np.full(K, 1 / K), **it.mle(it.statistics(ROWS, RESP))}
    stats = it.statistics(ROWS, RESP)
    assert it.degenerate(top, stats) == ""
    thin = {**top, "covariances": top["covariances"].copy()}
    one = () if kind == "tied" else (1,)
    thin["covariances"][one] *= 1e-7
    expected = "the covariance has collapsed" if kind == "tied" else "component 2 has collapsed"
    assert expected in it.degenerate(thin, stats)
    assert "holds 0.3 rows" in it.degenerate({**top, "weights": np.array([0.01, 0.49, 0.5])}, stats)
    if kind == "full":
        units = np.array([[1e6, 2e5], [0.0, 1e-3]])  # not only other units: columns are mixed
        turned = it.statistics({"Y": Y @ units.T}, RESP)
        same = units @ top["covariances"] @ units.T
        assert it.degenerate({**top, "covariances": same}, turned) == ""
        same[1] = units @ thin["covariances"][1] @ units.T
        assert it.degenerate({**top, "covariances": same}, turned) == it.degenerate(thin, stats)


@pytest.mark.parametrize("kind", KINDS)
def test_bad_input_is_refused(kind):
    it, of_matrices = components(kind), kind in ("full", "tied")
    with refused(of_matrices, InputError, "out_of_range", "D - 1 = 1"):
        GaussianComponents.of(kind, K, M, KAPPA, 1.0, PSI)
    with raises(NumericalError, "not_positive_definite"):
        it.log_density({"means": it.m, "covariances": np.zeros_like(it.psi)}, ROWS)
    few = replace(it, kappa=np.ones(K), nu=it.nu * 0 + D - 1 + 1e-6)
    with refused(of_matrices, NumericalError, "cannot_be_drawn"):
        few.rvs((50,), np.random.default_rng(0))


def test_seeds_are_far_from_each_other():
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0], [1e4, 0.0], [0.0, 10.0], [1e4, 10.0]])
    rows = np.repeat(centres, 25, axis=0) + rng.normal(size=(100, 2)) * [10.0, 0.01]
    for _ in range(20):
        found = clusters(rows, 4, rng)
        assert len({tuple(found[i : i + 25]) for i in range(0, 100, 25)}) == 4
        assert all(len(set(found[i : i + 25])) == 1 for i in range(0, 100, 25))
    assert set(clusters(np.ones((5, 2)), 3, rng)) == {0, 1, 2}  # equal rows have seeds too
