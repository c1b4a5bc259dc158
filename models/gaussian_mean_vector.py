r"""Gaussian mean vector: the means of several columns whose covariance matrix is known.

    mu  ~ N(m0, S0)
    Y_n ~ N(mu, Sigma)        n = 1..N, rows of D numbers

The posterior is N(m, V) with V^-1 = S0^-1 + N Sigma^-1 and V^-1 m = S0^-1 m0 + Sigma^-1 sum_n Y_n. It is computed
where both covariances are diagonal: in z = U' L^-1 (mu - m0), with Sigma = L L' and L^-1 S0 L^-T = U diag(d) U', the
entries of mu are independent, and each is `gaussian_mean` with noise of sd 1. Murphy 2012, section 4.6.1; Bishop, PRML,
section 2.3.6; Gelman et al., BDA3, section 3.5; CS725 10.2; W4400, the multivariate normal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import Matrix
from bayeszoo.data.read import Example
from bayeszoo.distributions.gaussian_mean import KnownCovariance
from bayeszoo.distributions.information import divergence_of_normals, entropy_of_normals
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.distributions.wishart import GaussianRows
from bayeszoo.errors import NumericalError
from bayeszoo.model import Axes, Conjugate, Observable, PointEstimates, covariance, plain, real
from bayeszoo.model.types import Arrays, DeclaredModel, Params, RowLaw, Simulated

pm = lazy_loader.load("pymc")


@dataclass(frozen=True)
class GaussianMeanVector(Conjugate[Moments], PointEstimates[Moments], Observable):
    """Independent Gaussian rows of D numbers with a known covariance, and a Gaussian prior on their mean.

    Parameters
    ----------
    m0, S0 : float (or D of them), float or list of lists of float
        Mean and covariance of the prior of mu; S0 symmetric and positive definite, a number that multiple of I.
    Sigma : float or list of lists of float
        Covariance of one row, known, likewise.
    """

    m0: float = real(0.0, "prior mean m0", axes=("column",), units=1, location=True)
    S0: float = covariance(100.0, "prior covariance S0", axes=("column", "column"))
    Sigma: float = covariance(1.0, "covariance of a row Sigma", axes=("column", "column"))

    inputs = Matrix("Y")
    dims: ClassVar[Axes] = {"mu": ("column",)}
    examples = (Example("iris_setosa.csv", "four measurements in cm of 50 flowers of Iris setosa", "Fisher 1936"),)

    @classmethod
    def weak(cls, data: Arrays) -> GaussianMeanVector:
        """Centre the prior on the data, ten sd wide; Sigma is their covariance, its correlations shrunk."""
        stats = Moments.of(data["Y"])
        own, share = np.diag(stats.sd**2), stats.n / (stats.n + len(stats.mean) + 1)
        sigma = share * stats.scatter / max(stats.n - 1, 1) + (1 - share) * own
        return cls(plain(stats.mean), plain(100 * own), plain(sigma))

    def _matrix(self, name: str, size: int) -> np.ndarray:
        values = getattr(self, name)
        return values * np.eye(size) if np.ndim(values) == 0 else self.entries(name, (size, size))

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw mu from the prior (of two columns where nothing tells how many) and ``size`` rows given it."""
        D = max((len(np.asarray(v)) for v in (self.m0, self.S0, self.Sigma) if np.ndim(v)), default=2)
        root, noise = (np.linalg.cholesky(self._matrix(name, D)) for name in ("S0", "Sigma"))
        mu = self.entries("m0", D) + root @ rng.standard_normal(D)
        Y = mu + rng.standard_normal((size, D)) @ noise.T
        return {"mu": mu}, {"Y": Y, "column": np.array([f"x{j + 1}" for j in range(D)])}

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare one Gaussian row of D numbers a row."""
        D = data["Y"].shape[1]
        with pm.Model(coords=self.coords(data)) as model:
            mu = pm.MvNormal("mu", mu=self.entries("m0", D), cov=self._matrix("S0", D), dims="column")
            rows = pm.Data("Y_data", data["Y"], dims=("row", "column"))
            pm.MvNormal("Y", mu=mu, cov=self._matrix("Sigma", D), observed=rows, dims=("row", "column"))
        return model

    def statistics(self, data: Arrays) -> Moments:
        """Return count, mean and scatter."""
        return Moments.of(data["Y"])

    def compressed(self, stats: Moments) -> DeclaredModel:
        """Declare the density of the rows from their moments: a paraboloid in mu."""
        D, known = len(stats.mean), self._known(stats)
        with pm.Model() as model:
            mu = pm.MvNormal("mu", mu=self.entries("m0", D), cov=self._matrix("S0", D))
            mean, root, peak = (
                pm.Data(k, v) for k, v in {"mean": stats.mean, "root": known.pull, "peak": known.peak}.items()
            )
            pm.Potential("Y", peak - pm.math.sum(pm.math.sqr(pm.math.dot(root, mu - mean))) / 2)
        return model

    def _known(self, stats: Moments) -> KnownCovariance:
        D = len(stats.mean)
        return KnownCovariance(stats, self.entries("m0", D), self._matrix("S0", D), self._matrix("Sigma", D))

    def posterior(self, stats: Moments) -> Posterior:
        """Return the posterior of mu, jointly Gaussian."""
        return Posterior.gaussian("mu", self._known(stats).posterior)

    def log_evidence(self, stats: Moments) -> float:
        """Return the log density of the ordered rows."""
        return self._known(stats).log_evidence

    def updated(self, stats: Moments) -> GaussianMeanVector:
        """Return the model whose prior is this posterior."""
        mu = self._known(stats).posterior
        return self.replaced(m0=plain(mu.mean), S0=plain(mu.covariance()))

    def predictive(self, stats: Moments, data: Arrays) -> RowLaw:
        """Return each row's predictive: N(m, V + Sigma)."""
        mu = self._known(stats).posterior
        return GaussianRows(mu.mean, mu.covariance() + self._matrix("Sigma", len(mu.mean)), len(data["Y"]))

    def likelihood(self, params: Params, data: Arrays) -> RowLaw:
        """Return each row's Gaussian distribution; mu of shape (..., D) gives (..., rows, D)."""
        mu, D = np.asarray(params["mu"]), np.shape(params["mu"])[-1]
        return GaussianRows(mu, np.broadcast_to(self._matrix("Sigma", D), (*mu.shape, D)), len(data["Y"]))

    def entropies(self, params: Params, data: Arrays) -> dict[str, np.ndarray]:
        """Return the differential entropy of a row, which Sigma alone decides."""
        *size, D = np.shape(params["mu"])
        return {"entropy": np.full(size, entropy_of_normals(np.linalg.slogdet(self._matrix("Sigma", D))[1], D))}

    def row_divergence(self, params: Params, other: Any, others: Params, data: Arrays) -> np.ndarray:
        """Return KL of a row by two fits."""
        mu, nu = np.asarray(params["mu"]), np.asarray(others["mu"])
        own, their = (model._matrix("Sigma", mu.shape[-1]) for model in (self, other))
        return divergence_of_normals(mu, own, nu, their)

    def free_parameters(self, stats: Moments) -> int:
        """Return D."""
        return len(stats.mean)

    def map(self, stats: Moments) -> dict[str, Any]:
        """Return the posterior mean."""
        return {"mu": self._known(stats).posterior.mean}

    def mle(self, stats: Moments) -> dict[str, Any]:
        """Return the mean of the rows."""
        if not stats.n > 0:
            raise NumericalError("without rows every mean is as likely", "no_data")
        return {"mu": np.asarray(stats.mean)}
