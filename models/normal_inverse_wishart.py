r"""Normal-inverse-Wishart: mean vector and covariance matrix of Gaussian measurements.

    Sigma      ~ InvWishart(nu0, Psi0)
    mu | Sigma ~ N(mu0, Sigma / kappa0)
    Y_n        ~ N(mu, Sigma)        n = 1..N

PyMC has no inverse-Wishart distribution: Sigma is declared by its density, on its Cholesky factor, with the Jacobian by
hand. Murphy 2012, section 4.6.3; Gelman et al., BDA3, section 3.6; PRML, section 2.3.6; W4400, the multivariate normal.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import Matrix
from bayeszoo.data.read import Example
from bayeszoo.distributions.conjugate.multivariate import MultivariateNormal
from bayeszoo.distributions.information import information_of_columns
from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.distributions.structures import Matrices
from bayeszoo.distributions.wishart import GaussianRows
from bayeszoo.errors import InputError
from bayeszoo.model import Axes, BlockModel, covariance, plain, positive, real
from bayeszoo.model.types import Arrays, DeclaredModel, Params, RowLaw, Simulated

pm, ours = lazy_loader.load("pymc"), lazy_loader.load("bayeszoo.likelihoods.inverse_wishart", suppress_warning=True)


@dataclass(frozen=True)
class NormalInverseWishart(BlockModel[Moments]):
    """Independent Gaussian rows of D numbers, with a normal-inverse-Wishart prior on their mean and covariance.

    Parameters
    ----------
    mu0, kappa0 : float (or D of them), float
        Mean of the prior of mu, and how many rows it is worth, > 0.
    nu0, Psi0 : float, list of lists of float
        Degrees of freedom of the prior of Sigma, > D - 1, and its scale matrix, symmetric and positive definite.
    """

    mu0: float = real(0.0, "prior mean mu0", axes=("column",), units=1, location=True)
    kappa0: float = positive(1.0, "prior kappa0")
    nu0: float = positive(4.0, "prior degrees of freedom nu0")
    Psi0: tuple[tuple[float, ...], ...] = covariance(((1.0, 0.0), (0.0, 1.0)), "Psi0", axes=("column", "column"))

    inputs = Matrix("Y")
    dims: ClassVar[Axes] = {"mu": ("column",), "Sigma": ("column", "column_2")}
    nonnegative = ("Sigma",)
    examples = (Example("iris_setosa.csv", "four measurements in cm of 50 flowers of Iris setosa", "Fisher 1936"),)

    def __post_init__(self) -> None:
        super().__post_init__()
        if np.shape(self.mu0) not in ((), (self._size,)):
            raise InputError(
                f"prior mean mu0 has {np.size(self.mu0)} entries, Psi0 is {self._size} x {self._size}", "wrong_shape"
            )
        if self.nu0 <= self._size - 1:
            raise InputError(
                f"prior degrees of freedom nu0 must be > D - 1 = {self._size - 1}, got {self.nu0:g}", "out_of_range"
            )

    _size = property(lambda self: len(self.Psi0), doc="D, the number of columns.")
    lower_bounds = property(lambda self: {"nu0": self._size - 1.0}, doc="What fields must exceed, other than 0.")

    @classmethod
    def weak(cls, data: Arrays) -> NormalInverseWishart:
        """Centre the prior on the data: mu worth a hundredth of a row, Sigma of their scales and D + 2."""
        stats = Moments.of(data["Y"])
        return cls(plain(stats.mean), kappa0=0.01, nu0=len(stats.mean) + 2.0, Psi0=plain(np.diag(stats.sd**2)))

    def coords(self, data: Arrays) -> dict[str, Any]:
        """Return the names of the columns, for both axes of Sigma."""
        return dict.fromkeys(("column", "column_2"), data["column"])

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw covariance and mean from the prior and ``size`` rows given them."""
        params = self.block().rvs((), rng)
        rows = rng.multivariate_normal(params["mu"], params["Sigma"], size, method="cholesky")
        return params, {"Y": rows, "column": np.array([f"x{j + 1}" for j in range(self._size)])}

    def information(self, params: Params, data: Arrays) -> dict[str, np.ndarray]:
        """Return the mutual information (...) of each pair of up to 50 columns, and the total correlation of all."""
        names, sigma = list(map(str, data["column"])), np.asarray(params["Sigma"])
        pairs = combinations(range(len(names)), 2) if len(names) <= 50 else ()
        sets = list(dict.fromkeys([*pairs, *[tuple(range(len(names)))] * (len(names) > 1)]))
        each = (information_of_columns(sigma[..., list(own), :][..., list(own)]) for own in sets)
        return dict(zip([", ".join(names[j] for j in own) for own in sets], each, strict=True))

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare one Gaussian row of D numbers a row."""
        with pm.Model(coords=self.coords(data)) as model:
            sigma = ours.InverseWishart("Sigma", self.nu0, np.array(self.Psi0), dims=self.dims["Sigma"])
            mu = pm.MvNormal("mu", mu=self.entries("mu0", self._size), cov=sigma / self.kappa0, dims="column")
            rows = pm.Data("Y_data", data["Y"], dims=("row", "column"))
            pm.MvNormal("Y", mu=mu, cov=sigma, observed=rows, dims=("row", "column"))
        return model

    def statistics(self, data: Arrays) -> Moments:
        """Return count, mean and scatter; the prior must be for as many columns as the data have."""
        if data["Y"].shape[1] != self._size:
            raise InputError(f"Psi0 is for {self._size} columns, the data have {data['Y'].shape[1]}", "wrong_shape")
        return Moments.of(data["Y"])

    def compressed(self, stats: Moments) -> DeclaredModel:
        """Declare the density of the rows from their moments."""
        with pm.Model() as model:
            sigma = ours.InverseWishart("Sigma", self.nu0, np.array(self.Psi0))
            mu = ours.ScaledNormal("mu", self.entries("mu0", self._size), self.kappa0, sigma)
            n, mean, scatter = (pm.Data(k, np.asarray(getattr(stats, k))) for k in ("n", "mean", "scatter"))
            pm.Potential("Y", ours.gaussian_log_likelihood(mu, sigma, n, mean, scatter))
        return model

    def block(self, stats: Moments | None = None) -> MultivariateNormal:
        """Return the prior, whose posterior is normal-inverse-Wishart as well."""
        m, (kappa, nu, psi) = self.entries("mu0", self._size), map(np.asarray, (self.kappa0, self.nu0, self.Psi0))
        return MultivariateNormal(("mu", "Sigma"), "Y", m, kappa, nu, psi, Matrices(self._size))

    def from_block(self, block: MultivariateNormal) -> NormalInverseWishart:
        """Return the model with another normal-inverse-Wishart prior."""
        return self.replaced(mu0=plain(block.m), kappa0=block.kappa, nu0=block.nu, Psi0=plain(block.psi))

    def predictive(self, stats: Moments, data: Arrays) -> Any:
        """Return each row's predictive: multivariate Student t with nu - D + 1 degrees of freedom."""
        return self.block().updated(stats).predictive(len(data["Y"]))

    def likelihood(self, params: Params, data: Arrays) -> RowLaw:
        """Return each row's Gaussian distribution; parameters of shape (..., own shape) give (..., rows)."""
        return GaussianRows(params["mu"], params["Sigma"], len(data["Y"]))
