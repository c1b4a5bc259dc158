r"""Gaussian discriminant analysis: classes whose features are Gaussian, with a covariance of each class or of all.

    shares         ~ Dirichlet(alpha)                                  of K classes
    Sigma_k        ~ InvWishart(nu0, Psi0)
    mu_k | Sigma_k ~ N(m0, Sigma_k / kappa0)                           k = 1..K
    c_n            ~ Categorical(shares)
    x_n | c_n      ~ N(mu_{c_n}, Sigma_{c_n})                          n = 1..N

Full: quadratic boundaries (QDA). Tied: one Sigma for all, linear boundaries (LDA). Diagonal: the variance of feature j
~ InvGamma(nu0 / 2, Psi0_jj / 2), Gaussian naive Bayes. Spherical: one variance for all features. Fisher 1936; CS725,
lectures 15, 16 and 24; W4400, simple classifiers; Bishop, PRML, section 4.2; Murphy 2012, section 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import lazy_loader
import numpy as np
import scipy

from bayeszoo.data.inputs import Labelled
from bayeszoo.distributions.conjugate.product import LabelledStats
from bayeszoo.errors import NumericalError
from bayeszoo.families.classes.discriminants import discriminants
from bayeszoo.families.classes.gaussian import GaussianFeatures
from bayeszoo.families.classes.model import ClassConditional
from bayeszoo.model import Axes, Example, positive
from bayeszoo.model.types import Arrays, DeclaredModel, Params, Simulated

pm = lazy_loader.load("pymc")
declared = lazy_loader.load("bayeszoo.families.statistics.declaration", suppress_warning=True)
inverse_wishart = lazy_loader.load("bayeszoo.likelihoods.inverse_wishart", suppress_warning=True)


@dataclass(frozen=True)
class GaussianDiscriminant(GaussianFeatures, ClassConditional):
    """Classes with a Dirichlet prior on their shares, and Gaussian features with conjugate priors in each.

    Parameters
    ----------
    m0, kappa0 : float or list of float
        Mean of the prior of each mean, and how many rows it is worth, > 0.
    nu0, Psi0 : float, float or list of lists of float
        Degrees of freedom of the prior of a covariance, of matrices > D - 1, and its scale matrix, symmetric and
        positive definite; a number stands for that multiple of the identity, a list of matrices for one each class.
    covariance : str
        ``"full"``, ``"tied"``, ``"diagonal"`` or ``"spherical"``.
    alpha : float or list of float
        Concentration of the prior of the shares, > 0, one for all classes or one each.
    """

    alpha: float = positive(1.0, "prior alpha", axes=("class",))

    inputs = Labelled("y", kinds=("reals",), maskable=False)
    nonnegative, probabilities = ("covariances", "distance", "variance_ratio"), ("shares", "least_error")
    examples = (
        Example("iris.csv", "150 flowers of three species, cm", "Fisher 1936", {"target": "species"}),
        Example("ripley.csv", "250 points of two classes, drawn from mixtures", "Ripley 1996", {"target": "class"}),
    )

    @property
    def dims(self) -> Axes:  # type: ignore[override]
        """The axes of the parameters, of Fisher's direction, and of the discriminant coordinates."""
        tied: Axes = {"direction": ("real",), "variance_ratio": ("coordinate",)}
        return {**super().dims, **(tied if self.covariance == "tied" else {})}

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw parameters from the prior and ``size`` rows; without known labels of three classes and two features."""
        known = {"class": "abc", "real": ("x", "z")}
        labels = {name: np.array(self.labels.get(name, tuple(own)), dtype=str) for name, own in known.items()}
        prior = self.prior(labels)
        params = prior.rvs((), rng)
        y = rng.choice(len(labels["class"]), size, p=params["shares"])
        return params, {"y": y, "reals": self.draw_features(params, y, prior.law, rng), **labels}

    def derived(self, params: Params) -> dict[str, np.ndarray]:
        """Return of two classes with one covariance Fisher's direction, Sigma^-1 (mu_1 - mu_2), and what it tells.

        That is the Mahalanobis distance of the means, and the least share of wrong decisions, at the shares. Of more
        classes, the ratio of the variances between and within classes along each discriminant coordinate.
        """
        shares, means = np.asarray(params["shares"]), np.asarray(params["means"])
        if self.covariance != "tied" or shares.shape[-1] == 1:
            return {}
        if shares.shape[-1] > 2:
            return {"variance_ratio": discriminants(shares, means, params["covariances"]).ratios}
        between = means[..., 0, :] - means[..., 1, :]
        direction = np.linalg.solve(params["covariances"], between[..., None])[..., 0]
        distance = np.sqrt(np.sum(between * direction, axis=-1))
        with np.errstate(divide="ignore"):
            shift = np.log(shares[..., 0] / shares[..., 1]) / distance
        wrong = (
            share * scipy.special.ndtr(-(distance / 2 + sign * shift))
            for share, sign in zip(np.moveaxis(shares, -1, 0), (1, -1), strict=True)
        )
        return {"direction": direction, "distance": distance, "least_error": sum(wrong)}

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare the class of each row, and its features given it."""
        law = self.features_law(data)
        with pm.Model(coords=self.coords(data)) as model:
            shares = pm.Dirichlet("shares", self.entries("alpha", len(data["class"])), dims="class")
            matrices = law.declared(self.dims["covariances"])
            means = pm.MvNormal("means", law.m, cov=matrices / law.kappa[:, None, None], dims=self.dims["means"])
            codes = pm.Data("y_data", data["y"], dims="row")
            pm.Categorical("y", shares, observed=codes, dims="row")
            rows = pm.Data("reals_data", data["reals"], dims=("row", "real"))
            pm.MvNormal("reals", means[codes], cov=matrices[codes], observed=rows, dims=("row", "real"))
        return model

    def compressed(self, stats: LabelledStats) -> DeclaredModel:
        """Declare the density of classes and features from counts, means and scatters."""
        law, (counts, moments) = self.features_law(stats.labels), stats.parts
        scatter = law.structure.matrix(moments.scatter / law.structure.repeat)
        with pm.Model(coords=self.coords(stats.labels)) as model:
            shares = pm.Dirichlet("shares", self.entries("alpha", len(counts.counts)), dims="class")
            matrices = law.declared(self.dims["covariances"])
            means = inverse_wishart.ScaledNormal("means", law.m, law.kappa, matrices, dims=self.dims["means"])
            sums = {"n": moments.n, "centre": moments.mean + moments.rest, "scatter": scatter}
            each = (pm.Data(name, np.asarray(values, dtype=np.float64)) for name, values in sums.items())
            of_rows = inverse_wishart.gaussian_log_likelihood(means, matrices, *each)
            pm.Potential("y", declared.log_likelihood(counts, shares) + pm.math.sum(of_rows))
        return model

    def mle(self, stats: LabelledStats) -> dict[str, np.ndarray]:
        """Return the maximum of the likelihood: shares, means and covariances (divided by N) of the rows."""
        law, n = self.features_law(stats.labels), stats.parts[0].counts
        least = law.columns + 1 if self.covariance == "full" else 2
        if self.covariance != "tied" and (few := np.flatnonzero(n < least)).size:
            label = stats.labels["class"][few[0]]
            line = f"class {label} has {n[few[0]]:g} row{'s' * bool(n[few[0]] != 1)}, and a covariance needs {least}"
            raise NumericalError(f"no maximum-likelihood estimate: {line}", "no_maximum")
        return super().mle(stats)
