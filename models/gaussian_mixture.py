r"""Gaussian mixture: rows from K clusters, each with its own mean and covariance.

    weights        ~ Dirichlet(alpha 1_K)
    Sigma_k        ~ InvWishart(nu0, Psi0)
    mu_k | Sigma_k ~ N(m0, Sigma_k / kappa0)      k = 1..K
    z_n            ~ Categorical(weights)         n = 1..N, summed out
    Y_n            ~ N(mu_{z_n}, Sigma_{z_n})

Tied: one Sigma for all. Diagonal: the variance of column j ~ InvGamma(nu0 / 2, Psi0_jj / 2). Spherical: one variance
for all columns ~ InvGamma(nu0 / 2, tr(Psi0) / 2D). Bishop, PRML, sections 9.2 and 10.2; Murphy 2012, section 11.4;
Fraley and Raftery 2007, whose prior `weak` has; W4400, mixture models and EM.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import Matrix
from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.families.mixtures.gaussian import GaussianMixtureModel, weak_components
from bayeszoo.model import Example, positive, real, whole
from bayeszoo.model import covariance as scale_matrix
from bayeszoo.model.types import Arrays, DeclaredModel, Simulated

pm = lazy_loader.load("pymc")
inverse_wishart = lazy_loader.load("bayeszoo.likelihoods.inverse_wishart", suppress_warning=True)
likelihoods = lazy_loader.load("bayeszoo.likelihoods.ops.gaussian_mixture", suppress_warning=True)

_IRIS = ["sepal length", "sepal width", "petal length", "petal width"]


@dataclass(frozen=True)
class GaussianMixture(GaussianMixtureModel):
    """Rows of D numbers from K Gaussian components, with conjugate priors.

    Parameters
    ----------
    K : int
        How many components.
    alpha : float
        Concentration of the prior of the weights, > 0, the same for all components.
    m0, kappa0 : float (or D of them), float
        Mean of the prior of each mean, and how many rows it is worth, > 0.
    nu0, Psi0 : float, float or list of lists of float
        Degrees of freedom of the prior of a covariance, of matrices > D - 1, and its scale matrix, symmetric and
        positive definite; a number stands for that multiple of the identity.
    covariance : str
        ``"full"``, ``"tied"``, ``"diagonal"`` or ``"spherical"``.
    """

    K: int = whole(2, "the number of components K")
    alpha: float = positive(1.0, "prior alpha")
    m0: float = real(0.0, "prior mean m0", axes=("column",), units=1, location=True)
    kappa0: float = positive(1.0, "prior kappa0")
    nu0: float = positive(4.0, "prior degrees of freedom nu0")
    Psi0: float = scale_matrix(1.0, "Psi0", axes=("column", "column"))
    covariance: str = "full"

    inputs = Matrix("Y")
    nonnegative = ("covariances", "mixture_sd", "effective_components")
    probabilities = ("weights",)
    examples = (
        Example(
            "faithful.csv", "eruptions of Old Faithful and waiting times for the next, min", "Azzalini, Bowman 1990"
        ),
        Example("galaxies.csv", "velocities of 82 galaxies, km/s", "Postman et al. 1986; Roeder 1990"),
        Example("iris.csv", "four measurements in cm of 150 iris flowers", "Fisher 1936", {"columns": _IRIS}),
    )

    def weak_fields(self, data: Arrays) -> dict[str, Any]:
        """Centre the prior on the data; scale matrix diag(variances) / K^(2/D), a share of their volume for each."""
        return weak_components(Moments.of(data["Y"]), self.K)

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw parameters from the prior (of two columns where numbers stand for all) and rows given them."""
        return self.simulated(rng.dirichlet(np.full(self.K, self.alpha)), rng, size)

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare one row of a mixture of K Gaussians a row."""
        prior = self.component_law(data)
        with pm.Model(coords=self.coords(data)) as model:
            weights = pm.Dirichlet("weights", a=np.full(self.K, self.alpha), dims="component")
            covariances = prior.declared(self.dims["covariances"])
            means = pm.MvNormal("means", mu=prior.m[0], cov=covariances / self.kappa0, dims=self.dims["means"])
            each = pm.MvNormal.dist(mu=means, cov=covariances)
            rows = pm.Data("Y_data", data["Y"], dims=("row", "column"))
            pm.Mixture("Y", w=weights, comp_dists=each, observed=rows, dims=("row", "column"))
        return model

    def compiled(self, data: Arrays) -> DeclaredModel:
        """Declare the same density on a compiled likelihood."""
        self.require_rows(data)
        prior = self.component_law(data)
        with pm.Model() as model:
            weights = pm.Dirichlet("weights", a=pm.Data("alpha", np.full(self.K, self.alpha)))
            covariances = prior.declared()
            means = inverse_wishart.ScaledNormal("means", prior.m[0], self.kappa0, covariances, count=self.K)
            rows = pm.Data("Y_data", data["Y"])
            pm.Potential("Y", likelihoods.gaussian_mixture_log_likelihood(weights, means, covariances, rows))
        return model
