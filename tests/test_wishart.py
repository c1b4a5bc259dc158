"""Inverse-Wishart distributions, one or several, in NumPy and in PyMC: against SciPy, mpmath and quadrature."""

import mpmath as mp
import numpy as np
import pymc as pm
import pytest
from scipy import special, stats
from scipy.special import logsumexp

from bayeszoo.compile.density import Density
from bayeszoo.distributions.conjugate.multivariate import MultivariateNormal
from bayeszoo.distributions.covariance import CovarianceMarginals
from bayeszoo.distributions.structures import Matrices, log_multigamma_ratio
from bayeszoo.distributions.wishart import GaussianRows, MultivariateT
from bayeszoo.errors import NumericalError
from bayeszoo.likelihoods.inverse_wishart import Cholesky, InverseWishart, ScaledNormal
from bayeszoo.likelihoods.ops.covariances import GaussianTerms
from bayeszoo.likelihoods.ops.gaussian_mixture import gaussian_mixture_log_likelihood
from tests.refusals import raises

M = np.array([1.0, -2.0, 0.5])
PSI = np.array([[2.0, 0.9, -0.4], [0.9, 1.0, 0.1], [-0.4, 0.1, 3.0]])
ONE = np.array([[1.3, 0.2, -0.1], [0.2, 0.7, 0.3], [-0.1, 0.3, 2.0]])


def joint(m, kappa, nu, psi):
    """Return the normal-inverse-Wishart block of one law."""
    values = (np.asarray(value, dtype=np.float64) for value in (m, kappa, nu, psi))
    return MultivariateNormal(("mu", "Sigma"), "Y", *values, Matrices(len(psi)))


@pytest.mark.parametrize(
    ("after", "before", "d"), [(5.5, 5.0, 3), (5e6 + 1.5, 5e6, 3), (1e12 + 50, 1e12, 2), (1.5, 1.01, 2)]
)
def test_log_multigamma_ratio(after, before, d):
    with mp.workdps(50):
        ends = mp.mpf(after), mp.mpf(before)
        exact = sum(mp.loggamma(ends[0] - mp.mpf(j) / 2) - mp.loggamma(ends[1] - mp.mpf(j) / 2) for j in range(d))
    assert log_multigamma_ratio(after, before, d) == pytest.approx(float(exact), rel=1e-13)


@pytest.mark.parametrize("nu", [2.1, 5.0, 60.0])
def test_density_is_scipys(nu):
    mu = np.array([0.7, -1.0, 0.0])
    expected = stats.invwishart(nu, PSI).logpdf(ONE) + stats.multivariate_normal(M, ONE / 0.3).logpdf(mu)
    ours = joint(M, 0.3, nu, PSI)
    assert ours.logpdf({"mu": mu, "Sigma": ONE}) == pytest.approx(expected, rel=1e-12)
    assert isinstance(ours.logpdf({"mu": mu, "Sigma": ONE}), float)
    assert ours.logpdf({"mu": mu, "Sigma": -ONE}) == -np.inf


def test_density_of_many_observations():
    """SciPy's loses seven digits at nu = 1e8."""
    nu, sigma = 1e8, np.array([[1.0, 0.5], [0.5, 2.0]])
    psi = nu * sigma * (1 + 2.0**-14)
    with mp.workdps(50):
        d, half = 2, mp.mpf(nu) / 2
        det_psi = mp.mpf(psi[0, 0]) * mp.mpf(psi[1, 1]) - mp.mpf(psi[0, 1]) ** 2
        det, trace = mp.mpf("1.75"), 2 * mp.mpf(nu) * (1 + mp.mpf(2) ** -14)
        exact = half * mp.log(det_psi) - (half + mp.mpf(3) / 2) * mp.log(det) - trace / 2 - nu * mp.log(2)
        exact -= mp.log(mp.pi) / 2 + mp.loggamma(half) + mp.loggamma(half - mp.mpf(1) / 2)
        exact += d * mp.log(mp.mpf(3) / (2 * mp.pi)) / 2 - mp.log(det) / 2
    ours = joint(np.zeros(2), 3.0, nu, psi).logpdf({"mu": np.zeros(2), "Sigma": sigma})
    assert ours == pytest.approx(float(exact), rel=1e-11)


def test_draws_are_scipys():
    """Their ranks and dependence are compared with the density by the contract's checks, `simulator` among them."""
    draws = joint(M, 0.5, 7.5, PSI).rvs((2, 4000), np.random.default_rng(0))
    assert {name: value.shape for name, value in draws.items()} == {"mu": (2, 4000, 3), "Sigma": (2, 4000, 3, 3)}
    Sigma, mu = draws["Sigma"].reshape(-1, 3, 3), draws["mu"].reshape(-1, 3)
    assert np.array_equal(Sigma, Sigma.mT)
    theirs = stats.invwishart(7.5, PSI).rvs(8000, random_state=np.random.default_rng(1))
    for function in (np.linalg.det, np.trace, lambda S: S[..., 0, 1]):
        found, expected = (np.array([function(S) for S in matrices]) for matrices in (Sigma, theirs))
        assert stats.ks_2samp(found, expected).pvalue > 1e-3
    z = np.linalg.solve(np.linalg.cholesky(Sigma), (mu - M)[..., None])[..., 0] * np.sqrt(0.5)
    assert np.all([stats.kstest(z[:, j], "norm").pvalue > 1e-3 for j in range(3)])
    with raises(NumericalError, "cannot_be_drawn", "D", "1"):  # beyond the largest float
        joint(M, 1.0, 2 + 1e-4, PSI).rvs((50,), np.random.default_rng(0))


def test_moments_of_the_covariance():
    ours = CovarianceMarginals(9.0, PSI)
    assert np.allclose(ours.mean(), stats.invwishart(9.0, PSI).mean())
    assert np.allclose(np.diag(ours.std()) ** 2, np.diag(stats.invwishart(9.0, PSI).var()))
    assert np.allclose(ours.var(), stats.invwishart(9.0, PSI).var(), rtol=1e-12)
    eye = np.eye(3, dtype=bool)
    assert np.array_equal(CovarianceMarginals(4.0, PSI).mean(), np.where(eye, np.inf, np.nan), equal_nan=True)
    assert np.array_equal(CovarianceMarginals(6.0, PSI).std(), np.where(eye, np.inf, np.nan), equal_nan=True)
    assert np.isfinite(CovarianceMarginals(4.1, PSI).mean()).all()


def test_covariances_from_the_density_of_the_whole_matrix():
    """Integrate SciPy's density over the two variances: no decomposition shared."""
    psi, nu, x = np.array([[2.0, 0.9], [0.9, 1.0]]), 6.0, 0.25

    def density(a, b):
        det = a * b - x * x
        safe = np.where(det > 0, det, 1.0)
        trace = (psi[0, 0] * b + psi[1, 1] * a - 2 * psi[0, 1] * x) / safe
        log_p = nu / 2 * np.log(np.linalg.det(psi)) - (nu + 3) / 2 * np.log(safe) - trace / 2 - nu * np.log(2)
        return np.where(det > 0, np.exp(log_p - special.multigammaln(nu / 2, 2)), 0.0)

    check = stats.invwishart(nu, psi).logpdf([[1.0, x], [x, 0.5]])
    assert np.log(density(1.0, 0.5)) == pytest.approx(check, rel=1e-12)
    mesh = np.exp(np.linspace(-6, 10, 1601))
    total = np.sum(density(mesh[:, None], mesh) * mesh[:, None] * mesh) * np.log(mesh[1] / mesh[0]) ** 2
    assert CovarianceMarginals(nu, psi).logpdf(x)[0, 1] == pytest.approx(np.log(total), abs=1e-8)


def by_quadrature(shape, r, y):
    """The distribution function at y: Gauss-Legendre over the log of the variance, SciPy's t given it."""
    variance = stats.invgamma(shape, scale=0.5)
    given = stats.t(2 * shape + 1, r, np.sqrt((1 - r * r) / (2 * shape + 1)))
    cuts = np.linspace(*np.log([variance.ppf(1e-17), variance.isf(1e-17)]), 400)
    cuts = np.sort(np.append(cuts, np.log(y / r))) if y * r > 0 else cuts
    nodes, weights = np.polynomial.legendre.leggauss(20)
    a = np.exp((cuts[1:, None] + cuts[:-1, None] + np.diff(cuts)[:, None] * nodes) / 2)
    return np.sum(np.diff(cuts)[:, None] / 2 * weights * a * variance.pdf(a) * given.cdf(y / a))


@pytest.mark.parametrize("r", [0.0, 0.3, -0.57, 0.58, 0.9, -0.999])
@pytest.mark.parametrize("shape", [0.9, 3.0, 200.0])
def test_covariances_by_quadrature_and_variances_are_scipys(shape, r):
    ours, variance = CovarianceMarginals(2 * shape + 1, [[1.0, r], [r, 1.0]]), stats.invgamma(shape, scale=0.5)
    for q in (0.025, 0.5, 0.975):
        y = ours.ppf(q)
        assert ours.cdf(y)[0, 1] == pytest.approx(by_quadrature(shape, r, y[0, 1]), abs=1e-12)
        assert np.diag(y) == pytest.approx(variance.ppf(q), rel=1e-12)
        assert np.diag(ours.logpdf(y)) == pytest.approx(variance.logpdf(variance.ppf(q)), rel=1e-9, abs=1e-9)
    assert np.diag(ours.logpdf(-1.0)).tolist() == [-np.inf] * 2


def test_a_covariance_of_many_observations_is_normal():
    """At nu = 1e7 it is normal to a few parts in 1e4, with the exact mean and standard deviation."""
    ours = CovarianceMarginals(1e7, PSI)
    for q in (0.025, 0.5, 0.975):
        assert np.all(np.abs(ours.ppf(q) - ours.mean() - ours.std() * stats.norm.ppf(q)) < 2e-3 * ours.std())


@pytest.mark.parametrize(("nu", "dim"), [(3.01, 3), (2.2, 3), (7.5, 3), (2.05, 3), (1e5, 3), (0.7, 1)])
def test_quantiles_invert_the_distribution_function(nu, dim):
    ours = CovarianceMarginals(nu, PSI[:dim, :dim])
    for q in (1e-4, 0.3, 0.975):
        assert np.allclose(ours.cdf(ours.ppf(q)), q, rtol=0, atol=1e-10)


def test_several_matrices_at_once_are_each_by_itself():
    nu, psi, x = np.array([2.001, 4.5, 2e6]), np.array([PSI, 2 * PSI, 1e6 * PSI]), np.array([PSI, -PSI])
    ours, each = CovarianceMarginals(nu, psi), [CovarianceMarginals(*one) for one in zip(nu, psi, strict=True)]
    for method in ("mean", "std"):
        assert np.array_equal(getattr(ours, method)(), [getattr(one, method)() for one in each], equal_nan=True)
    assert np.allclose(ours.ppf(0.3), [one.ppf(0.3) for one in each], rtol=1e-9, equal_nan=True)
    for method in ("cdf", "logpdf"):
        alone = np.stack([getattr(one, method)(x) for one in each], axis=1)
        assert np.allclose(getattr(ours, method)(x[:, None]), alone, rtol=1e-9, equal_nan=True)


@pytest.mark.parametrize("nu", [2.5, 7.5, 1e5])
def test_the_density_is_the_derivative(nu):
    ours = CovarianceMarginals(nu, PSI)
    for q in (0.1, 0.5, 0.9):
        x = ours.ppf(q)
        step = 1e-4 * (ours.ppf(q + 0.05) - ours.ppf(q - 0.05))
        slope = (ours.cdf(x + step) - ours.cdf(x - step)) / (2 * step)
        assert np.allclose(np.exp(ours.logpdf(x)), slope, rtol=1e-6)


def test_what_is_not_known_is_nan():
    ours = CovarianceMarginals(7.5, PSI)
    assert np.isnan(ours.cdf(np.nan)).all()
    assert np.isnan(ours.logpdf(np.full((3, 3), np.nan))).all()
    assert np.isnan(ours.ppf(np.nan)).all()
    assert np.isnan(CovarianceMarginals(1e5, PSI).logpdf(1e3)[0, 1])  # hundreds of deviations out
    tiny = CovarianceMarginals(2.001, PSI)
    assert np.isnan(tiny.cdf(1.0)[0, 1])
    assert np.isnan(tiny.ppf(0.5)[0, 1])
    assert tiny.ppf(0.9)[0, 0] == np.inf  # beyond the largest float
    far = CovarianceMarginals(1e7, [[1.0]]).cdf(0.5 / (5e6 - np.array([[[3.9]], [[6.0]], [[20.0]]]) * np.sqrt(5e6)))
    assert np.isnan(far).tolist() == [[[False]], [[True]], [[False]]]
    shape, x = 1e5, 1e5 - 5 * np.sqrt(1e5)  # SciPy's is right up to a shape of 1e6
    with mp.workdps(30):
        exact = mp.quad(lambda g: mp.e ** (shape * mp.log(g) - g - mp.loggamma(shape)) / g, [x, 1e5, 1.02e5, 1.05e5])
    assert CovarianceMarginals(2 * shape, [[1.0]]).cdf(0.5 / x)[0, 0] == pytest.approx(float(exact), abs=1e-13)
    assert np.allclose(ours.cdf(np.inf), 1.0, rtol=0, atol=1e-13)
    assert np.allclose(ours.cdf(-np.inf), 0.0, atol=1e-13)
    assert ours.ppf(0.0)[0, 1] == -np.inf
    assert ours.ppf(1.0)[0, 1] == np.inf


Y = np.array([[0.0, -2.0, 1.0], [9.0, 1.0, 0.5]])
FAR = 2.0**30


def test_multivariate_t_is_scipys():
    ours, each = MultivariateT(5.5, M, PSI, 2), stats.t(5.5, M, np.sqrt(np.diag(PSI)))
    assert np.allclose(ours.logpdf(Y), stats.multivariate_t(M, PSI, 5.5).logpdf(Y), rtol=1e-13)
    assert MultivariateT(5.5, M + FAR, PSI, 2).logpdf(Y + FAR) == pytest.approx(ours.logpdf(Y), rel=1e-13)
    for method, *args in (("mean",), ("var",), ("std",), ("ppf", 0.9), ("cdf", Y)):
        assert np.allclose(getattr(ours, method)(*args), np.broadcast_to(getattr(each, method)(*args), (2, 3)))
        assert getattr(ours, method)(*args).shape == (2, 3)


def test_gaussian_rows_are_scipys():
    means, covs = np.stack([M, M + 1, M])[:, None], np.stack([ONE, PSI, PSI])[:, None]
    ours = GaussianRows(means, covs, 2)
    assert ours.logpdf(Y).shape == (3, 1, 2)
    for i in range(3):
        exact = stats.multivariate_normal(means[i, 0], covs[i, 0]).logpdf(Y)
        assert np.allclose(ours.logpdf(Y)[i, 0], exact, rtol=1e-12)
        each = stats.norm(means[i, 0], np.sqrt(np.diag(covs[i, 0])))
        for method, *args in (("mean",), ("var",), ("std",), ("ppf", 0.9)):
            values = getattr(ours, method)(*args)
            assert values.shape == (3, 1, 2, 3)
            assert np.allclose(values[i, 0], getattr(each, method)(*args), rtol=1e-13)
    far = GaussianRows(M + FAR, ONE, 2).logpdf(Y + FAR)
    assert far == pytest.approx(GaussianRows(M, ONE, 2).logpdf(Y), rel=1e-13)


def test_rows_are_drawn_correlated_within_themselves():
    ours = GaussianRows(np.broadcast_to(M, (4, 5000, 3)), np.broadcast_to(PSI, (4, 5000, 3, 3)), 2)
    rows = ours.rvs(size=ours.mean().shape, random_state=np.random.default_rng(0))
    assert rows.shape == (4, 5000, 2, 3)
    both = np.cov(rows.reshape(-1, 6).T)
    expected = np.kron(np.eye(2), PSI)
    assert np.allclose(both, expected, atol=4 * 3 * np.sqrt(2 / 20_000))
    assert np.allclose(rows.mean((0, 1)), M, atol=4 * np.sqrt(3 / 20_000))


K, KAPPA = 3, 0.4
CASES = [(2, False), (1, False), (2, True)]
CASES += [pytest.param(*case, marks=pytest.mark.slow) for case in [(3, False), (1, True)]]


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
        each = (nu, psi) if tied else (np.full(K, nu), np.tile(psi, (K, 1, 1)))
        sigma = InverseWishart("covariances", *each, dims if named else None)
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


@pytest.mark.parametrize(("D", "tied"), [(2, False), (2, True), (1, False)])
def test_draws_of_pymc_are_scipys(D, tied):
    nu, psi, centre = prior(D)
    model, _ = declared(D, tied)
    draws = pm.draw([model["covariances"], model["means"]], 4000, random_seed=1, mode="FAST_COMPILE")
    sigma, means = draws[0].reshape(4000, -1, D, D), draws[1]
    assert (sigma.shape[1], means.shape) == (1 if tied else K, (4000, K, D))
    reference = stats.invwishart(nu, psi).rvs(20_000, random_state=2).reshape(-1, D, D)
    for k, i in np.ndindex(sigma.shape[1], D):
        assert stats.ks_2samp(sigma[:, k, i, 0], reference[:, i, 0]).pvalue > 1e-4
    factor = np.linalg.cholesky(np.broadcast_to(sigma, (4000, K, D, D)))
    z = np.linalg.solve(factor, (means - centre)[..., None])[..., 0].reshape(4000, -1) * np.sqrt(KAPPA)
    assert all(stats.kstest(column, "norm").pvalue > 1e-4 for column in z.T)
    among = np.corrcoef(np.column_stack([z, np.log(sigma[:, :, 0, 0])]).T)
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
    right = owner.loops
    monkeypatch.setattr(owner, "interpreted", lambda self, *inputs: change(right(*inputs), *inputs))


@pytest.mark.slow
def test_bugs_are_seen(monkeypatch):
    bugs = [
        (GaussianTerms, lambda found, *inputs: (found[0] + 0.5 * np.linalg.slogdet(inputs[0])[1], *found[1:])),
        (GaussianTerms, lambda found, *inputs: (found[0], 2 * found[1], found[2])),
        (GaussianTerms, lambda found, *inputs: (found[0], found[1], -found[2])),
    ]
    for owner, change in bugs:
        with monkeypatch.context() as patch:
            wrong(owner, patch, change)
            with pytest.raises(AssertionError):
                test_the_complete_mixture_is_scipys(2, False)
    monkeypatch.setitem(InverseWishart.__globals__, "Cholesky", NoJacobianOfTheLast)
    with pytest.raises(AssertionError):
        test_the_complete_mixture_is_scipys(2, False)
