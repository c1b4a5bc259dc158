"""Gaussian components with conjugate priors: expected statistics, posteriors, modes, densities and divergences.

Full, diagonal and spherical covariances (`distributions.structures`), one for each component, or one full matrix for
all of them, "tied". Bishop, PRML, sections 9.2 and 10.2; Murphy 2012, section 4.6.3; Fraley and Raftery 2007.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import lazy_loader
import numpy as np

from bayeszoo.distributions import frozen
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.distributions.structures import Matrices, Scalar, Structure, along
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.families.statistics.patterns import distinct

pm, priors = lazy_loader.load("pymc"), lazy_loader.load("bayeszoo.likelihoods.inverse_wishart", suppress_warning=True)
loops = lazy_loader.load("bayeszoo.likelihoods.loops.gaussian_mixture", suppress_warning=True)  # numba takes its time

STRUCTURES = {"full": Matrices, "tied": Matrices, "diagonal": Structure, "spherical": Scalar}
"""The choices of covariance."""

Values = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class ComponentMoments:
    """Expected counts (K,), means (K, D) and scatters of K components.

    The mean of an empty component is any point. A weighted scatter about the mean is written as the structure says: a
    matrix (K, D, D), its diagonal (K, D) or the trace (K,).
    """

    n: np.ndarray
    mean: np.ndarray
    scatter: np.ndarray
    structure: Structure

    def __add__(self, other: ComponentMoments) -> ComponentMoments:
        n, shift = self.n + other.n, other.mean - self.mean
        share = other.n / np.where(n > 0, n, 1.0)
        between = self.structure.outer(shift)
        scatter = self.scatter + other.scatter + along(self.n * share, between) * between
        return ComponentMoments(n, self.mean + shift * share[:, None], scatter, self.structure)


@dataclass(frozen=True, eq=False)
class Hyper:
    """Parameters of the distributions of K components: Sigma ~ InvWishart(nu, psi), mu | Sigma ~ N(m, Sigma / kappa).

    m (K, D) is the centre of each mean, kappa (K,) how many rows it is worth; nu (K,) and psi (K, D, D) are degrees of
    freedom and scale matrix. Diagonal: psi (K, D), each variance ~ InvGamma(nu / 2, psi / 2). Spherical: psi (K,),
    likewise. Tied: shapes (), (D, D).
    """

    m: np.ndarray
    kappa: np.ndarray
    nu: np.ndarray
    psi: np.ndarray


class GaussianComponents:
    """The prior of the means and covariances of K Gaussian components, and what follows from it.

    Means have shape (..., K, D). Covariances have shape (..., K, D, D) if full, (..., D, D) if tied, (..., K, D) if
    diagonal (variances), (..., K) if spherical; leading axes are draws. Each mean ~ N(m, covariance / kappa) and each
    covariance ~ InvWishart(nu, psi), nu > D - 1 of matrices; of psi (D, D) diagonal covariances use the diagonal,
    spherical ones the mean of that.
    """

    def __init__(self, kind: str, count: int, m: np.ndarray, kappa: float, nu: float, psi: np.ndarray) -> None:
        self.kind, self.count, self.columns, self.tied = kind, count, len(m), kind == "tied"
        self.structure = STRUCTURES[kind](len(m))
        self.m, self.kappa, self.nu, self.psi = m, float(kappa), float(nu), self.structure.reduced(psi)
        if self.nu <= (least := self.structure.block - 1):
            raise InputError(f"prior degrees of freedom nu0 must be > D - 1 = {least} of {len(m)} columns, got {nu:g}")

    @property
    def free(self) -> int:
        """How many numbers means and covariances are."""
        each = self.structure.blocks * self.structure.block * (self.structure.block + 1) // 2
        return self.count * self.columns + (1 if self.tied else self.count) * each

    @cached_property
    def prior(self) -> Hyper:
        """The prior of all components."""
        of_all = () if self.tied else (self.count,)
        psi = np.broadcast_to(self.psi, of_all + self.structure.shape)
        kappa = np.full(self.count, self.kappa)
        return Hyper(np.tile(self.m, (self.count, 1)), kappa, np.full(of_all, self.nu), psi)

    def declared(self, dims: Any = None) -> Any:
        """Declare ``covariances`` by their prior in PyMC; return the K matrices (K, D, D) that they stand for."""
        K, nu, psi = self.count, np.float64(self.nu), self.psi
        if self.kind == "full":
            return priors.InverseWishart("covariances", nu, psi, K, dims=dims)
        if self.tied:
            return priors.InverseWishart("covariances", nu, psi, dims=dims) + np.zeros((K, 1, 1))
        shape, scale = pm.Data("covariances_shape", nu / 2), pm.Data("covariances_scale", psi / 2)
        variances = pm.InverseGamma("covariances", alpha=shape, beta=scale, shape=(K, *psi.shape), dims=dims)
        return (variances[:, :, None] if psi.ndim else variances[:, None, None]) * np.eye(self.columns)

    def to_vector(self, weights: np.ndarray, means: np.ndarray, covariances: np.ndarray) -> np.ndarray:
        """Return free coordinates of positive weights, means and covariances."""
        return np.concatenate([np.log(weights), means.ravel(), self.structure.to_vector(covariances)])

    def from_vector(self, vector: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return weights (K,), means (K, D) and covariances that have the coordinates."""
        weights, means, rest = np.split(vector, [self.count, self.count * (1 + self.columns)])
        covariances = self.structure.from_vector(rest)
        return np.exp(weights), means.reshape(self.count, -1), covariances[0] if self.tied else covariances

    def _each(self, covariances: Any) -> np.ndarray:
        """Give covariances an axis of components, of length 1 where they are tied."""
        values = np.asarray(covariances, dtype=np.float64)
        return values[..., None, :, :] if self.tied else values

    def factors(self, covariances: Any) -> np.ndarray:
        """Return the factors of covariances, with an axis of components."""
        return self.structure.factor(self._each(covariances))

    def matrices(self, covariances: Any) -> np.ndarray:
        """Return the covariance matrices (..., K, D, D)."""
        each = self.structure.matrix(self._each(covariances))
        return np.broadcast_to(each, (*each.shape[:-3], self.count, *each.shape[-2:]))

    def variances(self, covariances: Any) -> np.ndarray:
        """Return the variance of each column (..., K, D)."""
        each = self.structure.variances(self._each(covariances))
        return np.broadcast_to(each, (*each.shape[:-2], self.count, self.columns))

    def moments(self, resp: np.ndarray, Y: np.ndarray) -> ComponentMoments:
        """Return expected statistics of rows (N, D) with responsibilities (N, K).

        Everything is measured from the centre of the rows: near 1e9 nothing of their spread is lost.
        """
        centre = Y.mean(axis=0) if len(Y) else self.m
        rows, n = Y - centre, resp.sum(axis=0)
        shift = resp.T @ rows / np.where(n > 0, n, 1.0)[:, None]
        scatters = [self.structure.scatter(r, rows - s) for r, s in zip(resp.T, shift, strict=True)]
        return ComponentMoments(n, centre + shift, np.array(scatters), self.structure)

    def growth(self, stats: ComponentMoments) -> np.ndarray:
        """Return what the rows of each component add to psi, of the shape of the scatters."""
        shift, weight = stats.mean - self.m, self.kappa * stats.n / (self.kappa + stats.n)
        return np.asarray(stats.scatter + along(weight, stats.scatter) * self.structure.outer(shift))

    def updated(self, stats: ComponentMoments) -> Hyper:
        """Return the posterior of the components given expected statistics."""
        kappa, growth, n = self.kappa + stats.n, self.growth(stats), stats.n
        m = stats.mean - (stats.mean - self.m) * (self.kappa / kappa)[:, None]
        if self.tied:
            growth, n = growth.sum(axis=0), n.sum()
        return Hyper(m, kappa, self.nu + self.structure.repeat * n, self.psi + growth)

    def target(self, stats: ComponentMoments, flat: bool) -> Hyper:
        """Return the expected log joint density given statistics, or with ``flat`` the likelihood, as a `Hyper`.

        As a function of means and covariances it is a constant less half of nu log det Sigma + tr(psi Sigma^-1) +
        kappa (mu - m)' Sigma^-1 (mu - m): here nu has everything that is added to it.
        """
        if flat:
            scatter, n = (stats.scatter.sum(axis=0), stats.n.sum()) if self.tied else (stats.scatter, stats.n)
            return Hyper(stats.mean, stats.n, self.structure.repeat * n, scatter)
        hyper = self.updated(stats)
        return replace(hyper, nu=self._power(hyper))

    def _power(self, hyper: Hyper) -> np.ndarray:
        # each mean adds 1/2 to the power of the determinant of its covariance
        return hyper.nu + self.structure.block + 1 + self.structure.repeat * (self.count if self.tied else 1)

    def mode(self, hyper: Hyper) -> dict[str, np.ndarray]:
        """Return the means and covariances at which their joint density is highest."""
        return {"means": hyper.m, "covariances": hyper.psi / along(self._power(hyper), hyper.psi)}

    def flat_mode(self, stats: ComponentMoments) -> dict[str, np.ndarray]:
        """Return the means and covariances at which the expected log likelihood is highest.

        It is unbounded, a `NumericalError`, when a component has no weight or a covariance is singular.
        """
        if np.any(stats.n <= 0):
            raise NumericalError(f"no maximum of the likelihood: component {np.argmin(stats.n) + 1} is empty")
        target = self.target(stats, True)
        covariances, whole = target.psi / along(target.nu, target.psi), self.pooled(stats)
        if not self._have_spread(covariances, whole):
            spread = self.smallest(covariances, whole)
            if not np.all(spread > 1e-12):
                which = "" if self.tied else f" of component {np.argmin(spread) + 1}"
                raise NumericalError(f"no maximum of the likelihood: the covariance{which} is singular")
        return {"means": stats.mean, "covariances": covariances}

    def pooled(self, stats: ComponentMoments) -> np.ndarray:
        """Return the covariance of all rows together, of the structure's shape."""
        n, shift = stats.n.sum(), stats.mean - stats.mean[0]
        between = self.structure.scatter(stats.n, shift - (stats.n @ shift) / n)
        return np.asarray((stats.scatter.sum(axis=0) + between) / (self.structure.repeat * n))

    def _have_spread(self, covariances: Any, whole: np.ndarray) -> bool:
        """Say whether `smallest` is surely well above 1e-12: the sum of the inverse eigenvalues is small."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            sums = self.structure.trace_ratio(whole, self._each(covariances))
        return bool(np.all((sums > 0) & (sums < 1e6)))

    def smallest(self, covariances: Any, whole: np.ndarray) -> np.ndarray:
        """Return the smallest eigenvalue of each covariance in units of that of all rows, whatever their units."""
        try:
            factor = self.structure.factor(whole)
        except NumericalError:
            raise NumericalError(f"the rows do not fill {self.columns} dimensions") from None
        return np.min(self.structure.relative(factor, self._each(covariances)), axis=-1)

    def log_density(self, Y: np.ndarray, means: Any, covariances: Any) -> np.ndarray:
        """Log density of rows (N, D) under each component, (..., N, K)."""
        factor = self.factors(covariances)
        squares = self.structure.scaled(factor, Y - np.asarray(means, dtype=np.float64)[..., None, :])
        constant = self.columns * math.log(2 * math.pi) + self.structure.repeat * self.structure.log_det(factor)
        return np.swapaxes(-(constant[..., None] + squares) / 2, -1, -2)

    def typical(self, hyper: Hyper) -> tuple[np.ndarray, np.ndarray]:
        """Return covariances, and constants (K,), by which `expected_log_density` is a log density plus a constant.

        The covariances, of the same shape as others, are the inverses of the mean precisions.
        """
        nu = self._of_each(hyper.nu)
        gap = self.structure.repeat * self.structure.expected_log_det_gap(nu)
        return hyper.psi / along(hyper.nu, hyper.psi), -(gap + self.columns / hyper.kappa) / 2

    def expected_log_density(self, hyper: Hyper, Y: np.ndarray) -> np.ndarray:
        """Return the expectation of `log_density` when the parameters are random, (N, K); PRML, equation 10.64."""
        covariances, constants = self.typical(hyper)
        return self.log_density(Y, hyper.m, covariances) + constants

    def sums(self, weights: np.ndarray, means: Any, covariances: Any, Y: np.ndarray) -> tuple[float, ComponentMoments]:
        """Return the log likelihood of rows (N, D), and their expected statistics, in one compiled pass.

        The weights (K,) need not add up to 1.
        """
        means = np.asarray(means, dtype=np.float64)
        sums = loops.gaussian_e_step(weights, means, self.matrices(covariances), Y)
        shift = sums.shifts / np.where(sums.counts > 0, sums.counts, 1.0)[:, None]
        about_mean = sums.scatters - along(sums.counts, sums.scatters) * (shift[:, :, None] * shift[:, None, :])
        scatter = self.structure.repeat * self.structure.reduced(about_mean)
        return sums.value, ComponentMoments(sums.counts, means + shift, scatter, self.structure)

    def _of_each(self, nu: np.ndarray) -> np.ndarray:
        return np.asarray(nu)[..., None] if self.tied else np.asarray(nu)

    def log_prior(self, means: Any, covariances: Any) -> np.ndarray:
        """Log density of the prior, (...,)."""
        return self.log_posterior(self.prior, means, covariances)

    def log_posterior(self, hyper: Hyper, means: Any, covariances: Any) -> np.ndarray:
        """Joint log density of all means and covariances, (...,), with every constant."""
        factor = self.factors(covariances)
        of_means = np.sum(self._log_of_means(hyper, factor, np.asarray(means, dtype=np.float64)), axis=-1)
        return np.asarray(of_means + np.sum(self._log_of_covariances(hyper, factor), axis=-1))

    def _log_of_covariances(self, hyper: Hyper, factor: np.ndarray) -> np.ndarray:
        return self.structure.log_inverse_wishart(factor, self._of_each(hyper.nu), self._each(hyper.psi))

    def _log_of_means(self, hyper: Hyper, factor: np.ndarray, means: np.ndarray) -> np.ndarray:
        squares = self.structure.scaled(factor, (means - hyper.m)[..., None, :])[..., 0]
        log_det = self.structure.repeat * self.structure.log_det(factor)
        return np.asarray((self.columns * np.log(hyper.kappa / (2 * math.pi)) - log_det - hyper.kappa * squares) / 2)

    def log_pairs(self, hyper: Hyper, means: Any, covariances: Any) -> np.ndarray:
        """Log density of the parameters in place k under the distribution of component j, (..., K, K) as [j, k].

        Summed over k at j = s(k) it is the joint log density with the distributions permuted by s. The density of a
        tied covariance, which all share, is spread evenly over k.
        """
        factor = self.factors(covariances)
        # a second axis of components, that of the distributions, goes after the first
        paired = factor[..., None, :, :, :]
        of_covariances = self._log_of_covariances(hyper, paired) / (self.count if self.tied else 1)
        of_means = self._log_of_means(hyper, paired, np.asarray(means, dtype=np.float64)[..., :, None, :])
        return np.swapaxes(of_means + of_covariances, -1, -2)

    def log_pairs_of(self, hypers: Sequence[Hyper], means: Any, covariances: Any) -> np.ndarray:
        """Return `log_pairs` of each of several distributions, (Q, draws, K, K), at draws with one leading axis.

        One product of matrices: numbers are rounded to the size of its terms, nu and distances from the common centre.
        """
        centre = np.mean([hyper.m.mean(axis=0) for hyper in hypers], axis=0)
        shifted = np.asarray(means, dtype=np.float64) - centre
        statistics = self.structure.natural(self._each(covariances), shifted)
        each = np.stack([self._natural(hyper, centre) for hyper in hypers])
        flat = each.reshape(-1, each.shape[-1]) @ statistics.reshape(-1, each.shape[-1]).T
        return np.moveaxis(flat.reshape(len(hypers), self.count, -1, self.count), 1, 2)

    def _natural(self, hyper: Hyper, centre: np.ndarray) -> np.ndarray:
        of_covariances = self.structure.natural_of_wishart(self._of_each(hyper.nu), self._each(hyper.psi))
        of_means = self.structure.natural_of_means(hyper.kappa, hyper.m - centre)
        return np.asarray(of_means + of_covariances / (self.count if self.tied else 1))

    def divergence(self, hyper: Hyper) -> float:
        """Return KL(q || prior) in nats, of all means and covariances together."""
        structure, d = self.structure, self.columns
        factor, ratio = self.factors(hyper.psi), self.kappa / hyper.kappa
        squares = self._of_each(hyper.nu) * structure.scaled(factor, (hyper.m - self.m)[:, None, :])[:, 0]
        of_means = (d * (ratio - 1 - np.log(ratio)) + self.kappa * squares) / 2
        return float(np.sum(of_means) + np.sum(structure.divergence(hyper.nu, hyper.psi, self.nu, self.psi)))

    def log_evidence(self, Y: np.ndarray, assignments: np.ndarray) -> np.ndarray:
        """Log density of rows (N, D) given their components (A, N), parameters integrated out, shape (A,).

        The statistics of each set of rows that occurs are computed once.
        """
        sets = assignments[:, None, :] == np.arange(self.count)[:, None]
        different, which = distinct(sets.reshape(math.prod(sets.shape[:2]), len(Y)))
        which, stats = which.reshape(sets.shape[:2]), self.moments(different.T.astype(np.float64), Y)
        n, growth = stats.n, self.growth(stats)
        of_means = -self.columns / 2 * (n * math.log(math.pi) + np.log1p(n / self.kappa))
        if self.tied:
            n, growth = n[which].sum(axis=-1), growth[which].sum(axis=1)
            return self.structure.log_ratio(self.nu, self.psi, n, growth) + of_means[which].sum(axis=-1)
        return np.asarray((self.structure.log_ratio(self.nu, self.psi, n, growth) + of_means)[which].sum(axis=-1))

    def posterior(self, hyper: Hyper) -> Posterior:
        """Return the distribution of means and covariances."""

        def log_density(params: Values) -> np.ndarray:
            return self.log_posterior(hyper, params["means"], params["covariances"])

        return Posterior(self.marginals(hyper), lambda size, rng: self.rvs(hyper, size, rng), log_density)

    def rvs(self, hyper: Hyper, size: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Draw means (*size, K, D) and covariances (*size, ...) jointly."""
        covariances = self.structure.draw(hyper.nu, hyper.psi, size, rng)
        if not np.all(np.isfinite(covariances)):
            raise NumericalError("covariances cannot be drawn: their distribution has too few degrees of freedom")
        z = rng.standard_normal((*size, self.count, self.columns)) / np.sqrt(hyper.kappa)[:, None]
        return {"means": hyper.m + self.structure.coloured(self.factors(covariances), z), "covariances": covariances}

    def marginals(self, hyper: Hyper) -> dict[str, Any]:
        """Return the distributions of the means, Student t, and of the covariances, entry by entry."""
        df = self._of_each(hyper.nu)[:, None] - self.structure.block + 1
        scale = self.structure.variances(self._each(hyper.psi)) / hyper.kappa[:, None] / df
        means = frozen.t(np.broadcast_to(df, hyper.m.shape), loc=hyper.m, scale=np.sqrt(scale))
        return {"means": means, "covariances": self.structure.marginals(hyper.nu, hyper.psi)}

    def degenerate(self, params: Values, stats: ComponentMoments) -> str:
        """Say by expected statistics why a fitted point is a degenerate maximum, or nothing.

        The smallest eigenvalue of a covariance, in units of the covariance of all rows, is below 1e-5; or a component
        holds less than D + 1 rows.
        """
        rows = np.atleast_1d(params["weights"]) * stats.n.sum()
        if np.any(rows < self.columns + 1):
            k = int(np.argmin(rows))
            needed = f"D + 1 = {self.columns + 1} are needed"
            return f"component {k + 1} has collapsed: it holds {rows[k]:.6g} rows, and {needed}"
        try:
            spread = self.smallest(params["covariances"], self.pooled(stats))
        except NumericalError:  # the rows do not fill all dimensions, so that none has a spread to compare with
            return ""
        if np.all(spread >= 1e-5):
            return ""
        k = int(np.argmin(spread))
        which = "the covariance has" if self.tied else f"component {k + 1} has"
        return f"{which} collapsed: in one direction its variance is {spread[k]:.1g} of that of all rows"
