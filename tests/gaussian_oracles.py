"""What the tests of Gaussian mixtures share: SciPy's densities, chains of Student-t predictives, plain loops."""

import numpy as np
from scipy import stats

import bayeszoo as bz
from bayeszoo.data.read import example

MIXTURE = bz.find("gaussian_mixture")
KINDS = ("full", "tied", "diagonal", "spherical")
FAITHFUL, GALAXIES, IRIS = (example(MIXTURE, name) for name in ("faithful", "galaxies", "iris"))


def weak(kind, data=FAITHFUL, **given):
    return MIXTURE.weak_with(data, {"covariance": kind, **given})


def few(data, rows):
    return {**data, "Y": data["Y"][rows]}


def dense(kind, covariances, count):
    """Matrices (K, 2, 2) of one draw, by hand."""
    if kind == "full":
        return covariances
    if kind == "tied":
        return np.array([covariances] * count)
    return np.array([np.diag(np.broadcast_to(one, 2)) for one in covariances])


def scipys_log_density_of_parameters(kind, hyper, means, covariances):
    """Log density of means and covariances under normal-inverse-Wishart or -gamma distributions, by SciPy."""
    of_means = sum(
        stats.multivariate_normal(hyper.m[k], sigma / hyper.kappa[k]).logpdf(means[k])
        for k, sigma in enumerate(dense(kind, covariances, len(means)))
    )
    if kind == "tied":
        return of_means + stats.invwishart(float(hyper.nu), hyper.psi).logpdf(covariances)
    if kind == "full":
        each = zip(hyper.nu, hyper.psi, covariances, strict=True)
        return of_means + sum(stats.invwishart(nu, psi).logpdf(sigma) for nu, psi, sigma in each)
    shapes = hyper.nu[:, None] / 2 if kind == "diagonal" else hyper.nu / 2
    return of_means + stats.invgamma(shapes, scale=hyper.psi / 2).logpdf(covariances).sum()


class Chain:
    """Predicts rows one after the other by Student t, and learns from each: textbook updates, one row at a time."""

    def __init__(self, kind, m, kappa, nu, psi, K=3):
        self.kind, self.m, self.kappa = kind, [m] * K, [kappa] * K
        psi = {"diagonal": np.diag(psi), "spherical": np.trace(psi) / len(m)}.get(kind, psi)
        self.nu, self.psi = [nu] * K, [psi] * K

    def log_predictive(self, y, k):
        widen = (self.kappa[k] + 1) / self.kappa[k]
        if self.kind == "diagonal":
            return stats.t(self.nu[k], self.m[k], np.sqrt(self.psi[k] * widen / self.nu[k])).logpdf(y).sum()
        if self.kind == "spherical":
            shape = self.psi[k] * widen / self.nu[k] * np.eye(len(y))
            return stats.multivariate_t(self.m[k], shape, self.nu[k]).logpdf(y)
        df = self.nu[k] - len(y) + 1
        return stats.multivariate_t(self.m[k], self.psi[k] * widen / df, df).logpdf(y)

    def learn(self, y, k):
        shift, weight = y - self.m[k], self.kappa[k] / (self.kappa[k] + 1)
        square = {"diagonal": shift**2, "spherical": shift @ shift}.get(self.kind, np.outer(shift, shift))
        for j in range(len(self.nu)) if self.kind == "tied" else [k]:
            self.psi[j] = self.psi[j] + weight * square
            self.nu[j] += len(y) if self.kind == "spherical" else 1
        self.kappa[k] += 1
        self.m[k] = self.m[k] + shift / self.kappa[k]

    def log_evidence(self, rows, assignment):
        total = 0.0
        for y, k in zip(rows, assignment, strict=True):
            total += self.log_predictive(y, k)
            self.learn(y, k)
        return total


def climb(model, data, params, flat=False, steps=2000):
    """Alternate the steps until nothing is gained; the objective may not fall."""
    heights = []
    for _ in range(steps):
        found = model.e_step(params, data)
        heights.append(found.value + (0.0 if flat else float(model.log_prior(params, data))))
        assert len(heights) < 2 or heights[-1] >= heights[-2] - 1e-11 * abs(heights[-2])
        if len(heights) > 2 and heights[-1] - heights[-2] <= 1e-14 * abs(heights[-1]):
            break
        params = model.m_step(found.stats, flat)
    return params, heights


def random_params(model, data, seed):
    """A draw given random responsibilities: anywhere, but not so far that densities underflow."""
    rng = np.random.default_rng(seed)
    each = rng.dirichlet(np.full(model.K, 0.3), len(data["Y"]))
    q = model.vb_m_step(model.expected_statistics(each, data))
    return model.vb_posterior(q).rvs((), rng)
