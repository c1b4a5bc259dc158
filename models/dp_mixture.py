r"""Dirichlet process mixture: a density as a sum of as many Gaussian clusters as the rows ask for.

    v_k            ~ Beta(1, alpha)                  k = 1..K-1, and v_K = 1: K stands for infinity
    Sigma_k        ~ InvWishart(nu0, Psi0)
    mu_k | Sigma_k ~ N(m0, Sigma_k / kappa0)
    z_n            ~ Categorical(weights)            n = 1..N, summed out; weights_k = v_k (1 - v_1) ... (1 - v_{k-1})
    Y_n            ~ N(mu_{z_n}, Sigma_{z_n})

K sticks miss the process by at most 4 N (alpha / (1 + alpha))^(K - 1) in the law of N rows, and every fit says so.
Diagonal and spherical covariances are those of `gaussian_mixture`. Ferguson 1973; Escobar and West 1995; Neal 2000;
Ishwaran and James 2001; Blei and Jordan 2006; CS725, lecture 24, whose Parzen windows it is the counterpart of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import Matrix
from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.families.mixtures.dirichlet_process import DirichletProcessMixture, require_untied, sticks_for
from bayeszoo.families.mixtures.gaussian import weak_components
from bayeszoo.families.mixtures.over import kind_over
from bayeszoo.families.mixtures.sticks import Sticks
from bayeszoo.model import Example, covariance, positive, real, whole
from bayeszoo.model.base import Model
from bayeszoo.model.outer.over_fields import OverByDraws
from bayeszoo.model.types import Arrays, DeclaredModel, Simulated

pm = lazy_loader.load("pymc")
priors = lazy_loader.load("bayeszoo.likelihoods.stick_breaking", suppress_warning=True)
inverse_wishart = lazy_loader.load("bayeszoo.likelihoods.inverse_wishart", suppress_warning=True)
likelihoods = lazy_loader.load("bayeszoo.likelihoods.ops.gaussian_mixture", suppress_warning=True)


@dataclass(frozen=True)
class DpMixture(DirichletProcessMixture, OverByDraws):
    """Rows of D numbers from Gaussian clusters, how many is not said, with conjugate priors.

    Parameters
    ----------
    K : int
        How many sticks stand for infinitely many; by weak defaults enough for an error below a thousandth.
    alpha : float
        Concentration, > 0: a priori N rows are in about alpha log(1 + N / alpha) clusters. `bz.over` makes it a
        parameter with a prior of its own, which gibbs draws.
    m0, kappa0 : float (or D of them), float
        Mean of the prior of each mean, and how many rows it is worth, > 0.
    nu0, Psi0 : float, float or list of lists of float
        Degrees of freedom of the prior of a covariance, of matrices > D - 1, and its scale matrix, symmetric and
        positive definite; a number stands for that multiple of the identity.
    covariance : str
        ``"full"``, ``"diagonal"`` or ``"spherical"``.
    """

    K: int = whole(3, "the number of sticks K")
    alpha: float = positive(1.0, "prior alpha")
    m0: float = real(0.0, "prior mean m0", axes=("column",), units=1, location=True)
    kappa0: float = positive(1.0, "prior kappa0")
    nu0: float = positive(4.0, "prior degrees of freedom nu0")
    Psi0: float = covariance(1.0, "Psi0", axes=("column", "column"))
    covariance: str = "full"

    inputs = Matrix("Y")
    nonnegative = ("covariances", "mixture_sd", "effective_components")
    probabilities = ("weights",)
    examples = (
        Example("galaxies.csv", "velocities of 82 galaxies, km/s", "Postman et al. 1986; Roeder 1990"),
        Example(
            "faithful.csv", "eruptions of Old Faithful and waiting times for the next, min", "Azzalini, Bowman 1990"
        ),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require_untied(self.covariance)

    def weak_fields(self, data: Arrays) -> dict[str, Any]:
        """Centre the prior on the data; scale matrix diag(variances) / 10^(2/D); as many sticks as the rows need."""
        return weak_components(Moments.of(data["Y"]), 10) | {"K": sticks_for(self.alpha, len(data["Y"]))}

    @classmethod
    def kind_over(cls) -> type[Model]:
        """Return the class of these mixtures with alpha as a parameter."""
        return kind_over(cls)

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Break the stick, and draw clusters (of two columns where numbers stand for all) and rows given them."""
        return self.simulated(Sticks.of(self.alpha, self.K).rvs((), rng)["weights"], rng, size)

    def _weights(self, dims: str | None = None) -> Any:
        """Declare the weights; of one stick there is only one."""
        if self.K == 1:
            return np.ones(1)
        return priors.StickBreaking("weights", self.alpha, self.K, dims)

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare one row of a mixture of K Gaussians a row."""
        prior = self.component_law(data)
        with pm.Model(coords=self.coords(data)) as model:
            weights = self._weights("component")
            covariances = prior.declared(self.dims["covariances"])
            means = pm.MvNormal("means", mu=prior.m[0], cov=covariances / self.kappa0, dims=self.dims["means"])
            each = pm.MvNormal.dist(mu=means, cov=covariances)
            rows = pm.Data("Y_data", data["Y"], dims=("row", "column"))
            pm.Mixture("Y", w=weights, comp_dists=each, observed=rows, dims=("row", "column"))
        return model

    def compiled(self, data: Arrays) -> DeclaredModel:
        """Declare the same density on a compiled likelihood."""
        prior = self.component_law(data)
        with pm.Model() as model:
            weights, covariances = self._weights(), prior.declared()
            means = inverse_wishart.ScaledNormal("means", prior.m[0], self.kappa0, covariances, count=self.K)
            rows = pm.Data("Y_data", data["Y"])
            pm.Potential("Y", likelihoods.gaussian_mixture_log_likelihood(weights, means, covariances, rows))
        return model
