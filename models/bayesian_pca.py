r"""Bayesian PCA: probabilistic PCA that learns the number of factors (automatic relevance determination).

    mean_d   ~ N(m0_d, s0^2)                              d = 1..D
    alpha_k  ~ Gamma(a0, rate b0)                         k = 1..q
    W_dk     ~ N(0, 1 / alpha_k)
    variance ~ InvGamma(c0, scale d0)
    z_n      ~ N(0, I_q)                                  n = 1..N, integrated out
    Y_n      ~ N(mean + W z_n, variance I_D), or Y_n ~ N(mean, W W' + variance I_D)

A large relevance precision alpha_k switches factor k off: automatic relevance determination. With ``missing="mask"``
numbers may be missing, at random: they are integrated out, and none is imputed. Bishop 1999a, "Bayesian PCA", and
1999b, "Variational principal components"; PRML, section 12.2.3; MacKay 1995.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import Matrix
from bayeszoo.families.factors import loadings_shape
from bayeszoo.families.factors.ard import ArdModel, Prior
from bayeszoo.families.statistics.patterns import Patterns
from bayeszoo.model import Axes, Example, plain, positive, real, whole
from bayeszoo.model.types import Arrays, DeclaredModel, Simulated

pm = lazy_loader.load("pymc")
ours = lazy_loader.load("bayeszoo.families.factors.declaration", suppress_warning=True)

MOST = 5
_IRIS = ["sepal length", "sepal width", "petal length", "petal width"]
_AIR = ["Ozone", "Solar.R", "Wind", "Temp"]


@dataclass(frozen=True)
class BayesianPca(ArdModel):
    """Gaussian rows of D numbers, whose covariance is that of at most q < D factors and of noise alike in all columns.

    Parameters
    ----------
    q : int
        How many factors at most.
    m0, s0 : float (or D of them), float
        Mean and standard deviation of the prior of the mean of each column; s0 > 0.
    a0, b0 : float
        Shape and rate of the Gamma prior of each relevance precision alpha_k, > 0: given alpha_k the loadings of factor
        k have standard deviation alpha_k**(-1/2), and without it they are Student t with 2 a0 degrees of freedom and
        scale (b0 / a0)**(1/2).
    c0, d0 : float
        Shape and rate of the Gamma prior of 1 / variance, the precision of the noise, > 0.
    """

    q: int = whole(2, "the number of factors q")
    m0: float = real(0.0, "prior mean m0", axes=("column",), units=1, location=True)
    s0: float = positive(10.0, "prior sd of the mean s0", units=1)
    a0: float = positive(1.0, "prior shape a0 of alpha")
    b0: float = positive(1.0, "prior rate b0 of alpha", units=2)
    c0: float = positive(1.0, "prior shape c0 of the noise")
    d0: float = positive(1.0, "prior rate d0 of the noise", units=2)

    inputs = Matrix("Y", maskable=True, scalable=True)
    dims: ClassVar[Axes] = {
        "mean": ("column",),
        "loadings": ("column", "factor"),
        "alpha": ("factor",),
        "eigenvalues": ("factor",),
    }
    nonnegative = ("alpha", "variance", "eigenvalues")
    probabilities = ("explained",)
    examples = (
        Example("iris.csv", "four measurements in cm of 150 iris flowers", "Fisher 1936", {"columns": _IRIS}),
        Example(
            "airquality.csv",
            "ozone, sunshine, wind and temperature in New York on 153 days of 1973, 44 of the numbers missing",
            "Chambers, Cleveland, Kleiner and Tukey 1983",
            {"columns": _AIR, "missing": "mask"},
        ),
    )

    @classmethod
    def weak(cls, data: Arrays) -> BayesianPca:
        """All but one factor, at most 5; a mean within ten sd of the data's; loadings Cauchy, of a tenth of an sd."""
        stats = Patterns.of(data["Y"])
        variances = stats.column_variances()
        seen = np.isfinite(variances)
        variance = np.mean(variances[seen]) if seen.any() else 1.0
        sizes = {"s0": 10 * np.sqrt(variance), "b0": 0.005 * variance, "d0": 0.01 * variance}
        return cls(q=max(1, min(stats.size - 1, MOST)), m0=plain(stats.each_column()[1]), a0=0.5, **sizes)

    def prior(self, columns: int) -> Prior:
        """Return the prior for D columns, which must be more than the factors."""
        loadings_shape.entries(columns, self.q)
        return Prior(self.entries("m0", columns), self.s0, (self.a0, self.b0), (self.c0, self.d0))

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw parameters from the prior (of q + 2 columns if m0 is one number), factors, and rows given them."""
        columns = np.size(self.m0) if np.ndim(self.m0) else self.q + 2
        mean, alpha = rng.normal(self.prior(columns).centre, self.s0), rng.gamma(self.a0, 1 / self.b0, self.q)
        W, variance = rng.normal(0.0, alpha**-0.5, (columns, self.q)), self.d0 / rng.gamma(self.c0)
        Y = mean + rng.standard_normal((size, self.q)) @ W.T + rng.normal(0, np.sqrt(variance), (size, columns))
        params = {"mean": mean, "loadings": W, "alpha": alpha, "variance": variance}
        return params, {"Y": Y, "column": np.array([f"x{j + 1}" for j in range(columns)])}

    def parameters(self, columns: int, dims: Axes) -> tuple[Any, Any, Any]:
        """Declare mean, loadings and variance of D columns."""
        prior = self.prior(columns)
        numbers = {name: pm.Data(name, np.asarray(getattr(self, name))) for name in ("s0", "a0", "b0", "c0", "d0")}
        mean = pm.Normal("mean", pm.Data("m0", prior.centre), sigma=numbers["s0"], dims=dims.get("mean"))
        alpha = pm.Gamma("alpha", numbers["a0"], beta=numbers["b0"], shape=self.q, dims=dims.get("alpha"))
        sd = pm.math.sqrt(np.float64(1.0) / alpha) * np.ones((columns, self.q))
        loadings = pm.Normal("loadings", pm.Data("zero", np.zeros((columns, self.q))), sd, dims=dims.get("loadings"))
        return mean, loadings, pm.InverseGamma("variance", numbers["c0"], beta=numbers["d0"])

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare a Gaussian row of D numbers a row; of rows with holes, one of the numbers that each has."""
        size = data["Y"].shape[1]
        with pm.Model(coords=self.coords(data)) as model:
            mean, loadings, variance = self.parameters(size, self.dims)
            cov = pm.math.dot(loadings, loadings.T) + variance * np.eye(size)
            ours.GaussianRows("Y", mean, cov, data["Y"])
        return model
