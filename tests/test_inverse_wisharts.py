"""Several covariances and means as PyMC variables: densities, draws and Jacobians against SciPy and differences."""

import numpy as np
import pymc as pm
import pytest
from scipy import stats
from scipy.special import logsumexp

from bayeszoo.inference.engine.density import Density
from bayeszoo.likelihoods.inverse_wishart import Cholesky, InverseWishart, ScaledNormal
from bayeszoo.likelihoods.ops import covariances
from bayeszoo.likelihoods.ops.covariances import GaussianTerms
from bayeszoo.likelihoods.ops.gaussian_mixture import gaussian_mixture_log_likelihood

K, KAPPA = 3, 0.4
CASES = [(2, False), (1, False), (3, False), (2, True), (1, True)]


def prior(D):
    rng = np.random.default_rng(D)
    A = rng.normal(size=(D, D))
    return D + 2.5, A @ A.T + np.eye(D), rng.normal(size=D)


def declared(D, tied, named=True, size=30):
    """Return the complete mixture, its rows, and nothing observed."""
    nu, psi, centre = prior(D)
    columns, Y = [f"x{j}" for j in range(D)], np.random.default_rng(0).normal(scale=2.0, size=(size, D))
    coords = {"component": range(1, K + 1), "column": columns, "column_2": columns}
    with pm.Model(coords=coords) as model:
        dims = ("column", "column_2") if tied else ("component", "column", "column_2")
        weights = pm.Dirichlet("weights", pm.Data("alpha", np.full(K, 1.5)), dims="component")
        sigma = InverseWishart("covariances", nu, psi, None if tied else K, dims if named else None)
        own = {"dims": ("component", "column")} if named else {"count": K}
        means = ScaledNormal("means", centre, KAPPA, sigma, **own)
        each = sigma + np.zeros((K, 1, 1)) if tied else sigma
        pm.Potential("Y", gaussian_mixture_log_likelihood(weights, means, each, pm.Data("Y_data", Y)))
    return model, Y


def scipys(point, D, Y):
    """Log joint density by SciPy."""
    nu, psi, centre = prior(D)
    weights, means, sigma = (point[name] for name in ("weights", "means", "covariances"))
    value = stats.dirichlet(np.full(K, 1.5)).logpdf(weights)
    value += sum(stats.invwishart(nu, psi).logpdf(one) for one in sigma.reshape(-1, D, D))
    each = np.broadcast_to(sigma, (K, D, D))
    value += sum(stats.multivariate_normal(centre, each[k] / KAPPA).logpdf(means[k]) for k in range(K))
    rows = [np.log(weights[k]) + stats.multivariate_normal(means[k], each[k]).logpdf(Y) for k in range(K)]
    return value + logsumexp(rows, axis=0).sum()


def log_jacobian(density, D, x):
    """Log |d theta / d x| by differences: all weights but the last, the lower triangles, and the means."""

    def free(x):
        point = density.constrain(x)
        triangles = point["covariances"].reshape(-1, D, D)[:, *np.tril_indices(D)]
        return np.concatenate([point["weights"][:-1], triangles.ravel(), point["means"].ravel()])

    return np.linalg.slogdet([(free(x + step) - free(x - step)) / 2e-5 for step in 1e-5 * np.eye(len(x))])[1]


@pytest.mark.parametrize(("D", "tied"), CASES)
def test_the_complete_mixture_is_scipys(D, tied):
    model, Y = declared(D, tied)
    density = Density(model, "FAST_COMPILE")
    x = density.start + np.random.default_rng(1).normal(scale=0.3, size=density.size)
    point = density.constrain(x)
    assert density.size == K - 1 + D * (D + 1) // 2 * (1 if tied else K) + K * D
    assert density.constrained_joint(x)[0] == pytest.approx(scipys(point, D, Y), rel=1e-11)
    found = density.joint(x)[0] - density.constrained_joint(x)[0]
    assert found == pytest.approx(log_jacobian(density, D, x), abs=1e-8)
    assert np.allclose(density.unconstrain(point), x, atol=1e-10)
    gradient, h = density.joint(x)[1], 1e-5
    numeric = [(density.joint(x + s)[0] - density.joint(x - s)[0]) / (2 * h) for s in h * np.eye(len(x))]
    assert np.allclose(gradient, numeric, rtol=1e-7, atol=1e-7 * np.abs(gradient).max())


@pytest.mark.slow
def test_numba_gives_the_same_numbers():
    model, _ = declared(2, False)
    ours, plain = Density(model), Density(model, "FAST_COMPILE")
    x = ours.start + np.random.default_rng(2).normal(scale=0.5, size=ours.size)
    (value, gradient), (other, of_other) = ours.joint(x), plain.joint(x)
    assert value == pytest.approx(other, rel=1e-13)
    assert np.allclose(gradient, of_other, rtol=1e-11, atol=1e-11 * np.abs(gradient).max())


@pytest.mark.parametrize(("D", "tied"), [(2, False), (2, True), (1, False)])
def test_draws_are_scipys(D, tied):
    nu, psi, centre = prior(D)
    model, _ = declared(D, tied)
    draws = pm.draw([model["covariances"], model["means"]], 4000, random_seed=1, mode="FAST_COMPILE")
    sigma, means = draws[0].reshape(4000, -1, D, D), draws[1]
    assert sigma.shape[1] == (1 if tied else K)
    assert means.shape == (4000, K, D)
    reference = stats.invwishart(nu, psi).rvs(20_000, random_state=2).reshape(-1, D, D)
    for k in range(sigma.shape[1]):
        for i in range(D):
            assert stats.ks_2samp(sigma[:, k, i, 0], reference[:, i, 0]).pvalue > 1e-4
    factor = np.linalg.cholesky(np.broadcast_to(sigma, (4000, K, D, D)))
    z = np.linalg.solve(factor, (means - centre)[..., None])[..., 0] * np.sqrt(KAPPA)
    for k in range(K):
        assert all(stats.kstest(z[:, k, j], "norm").pvalue > 1e-4 for j in range(D))
    among = np.corrcoef(np.column_stack([z.reshape(4000, -1), np.log(sigma[:, :, 0, 0])]).T)
    assert np.abs(among - np.eye(len(among))).max() < 0.08


@pytest.mark.parametrize("mode", ["NUMBA", "FAST_COMPILE"])
def test_a_matrix_that_is_not_positive_definite_has_no_density(mode):
    psi = prior(2)[1]
    value = GaussianTerms()(np.stack([psi, -psi, psi]), np.ones((3, 2, 2)), np.ones(1))[0].eval(mode=mode)
    assert np.isnan(value[1])


# Seeded bugs: the density is then not SciPy's, or the gradient not that of differences.


class NoJacobianOfTheLast(Cholesky):
    def log_jac_det(self, value, *inputs):
        return super().log_jac_det(value, *inputs)[:-1].sum()


def wrong(owner, monkeypatch, change):
    right = owner.by_numpy
    monkeypatch.setattr(owner, "by_numpy", staticmethod(lambda *inputs: change(right(*inputs), *inputs)))


@pytest.mark.slow
def test_bugs_are_seen(monkeypatch):
    bugs = [
        (GaussianTerms, lambda found, *inputs: [found[0] + 0.5 * np.linalg.slogdet(inputs[0])[1], *found[1:]]),
        (GaussianTerms, lambda found, *inputs: [found[0], 2 * found[1], found[2]]),
        (GaussianTerms, lambda found, *inputs: [found[0], found[1], -found[2]]),
        (covariances._PullBack, lambda found, packed, given: [found[0] + 0.1 * packed]),
    ]
    for owner, change in bugs:
        with monkeypatch.context() as patch:
            wrong(owner, patch, change)
            with pytest.raises(AssertionError):
                test_the_complete_mixture_is_scipys(2, False)
    monkeypatch.setitem(InverseWishart.__globals__, "Cholesky", NoJacobianOfTheLast)
    with pytest.raises(AssertionError):
        test_the_complete_mixture_is_scipys(2, False)
