r"""Probabilistic PCA: probabilistic PCA with q factors and equal noise in all directions.

    mean_d  ~ N(m0_d, s0^2)                              d = 1..D
    W_dk    ~ N(0, w0^2)                                 k = 1..q
    sigma2  ~ InvGamma(a0, scale b0)
    z_n     ~ N(0, I_q)                                  n = 1..N, integrated out
    Y_n     ~ N(mean + W z_n, sigma2 I_D), or Y_n ~ N(mean, W W' + sigma2 I_D)

Y says nothing of a rotation of W, so `loadings` are its lower trapezoidal form L, W = L Q with Q orthogonal; its prior
follows: L_jj ~ w0 chi(q - j + 1) and L_ij ~ N(0, w0^2) below it. With ``missing="mask"`` numbers may be missing, at
random: they are integrated out, and none is imputed. Tipping and Bishop 1999; PRML, section 12.2; Murphy 2012, 12.2.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import Matrix
from bayeszoo.families.factors import loadings_shape
from bayeszoo.families.factors.ppca import FactorPrior, PpcaModel
from bayeszoo.families.statistics.patterns import Patterns
from bayeszoo.model import Axes, Example, plain, positive, real, whole
from bayeszoo.model.types import Arrays, DeclaredModel, Simulated

pm = lazy_loader.load("pymc")
ours = lazy_loader.load("bayeszoo.families.factors.declaration", suppress_warning=True)

_IRIS = ["sepal length", "sepal width", "petal length", "petal width"]
_AIR = ["Ozone", "Solar.R", "Wind", "Temp"]


@dataclass(frozen=True)
class Ppca(PpcaModel):
    """Gaussian rows of D numbers, whose covariance is that of q < D factors and of noise alike in all directions.

    Parameters
    ----------
    q : int
        How many factors.
    m0, s0 : float (or D of them), float
        Mean and standard deviation of the prior of the mean of each column; s0 > 0.
    w0 : float
        Standard deviation of the prior of each loading, > 0.
    a0, b0 : float
        Shape and scale of the inverse-gamma prior of the variance of the noise, > 0.
    """

    q: int = whole(2, "the number of factors q")
    m0: float = real(0.0, "prior mean m0", axes=("column",), units=1, location=True)
    s0: float = positive(10.0, "prior sd of the mean s0", units=1)
    w0: float = positive(1.0, "prior sd of the loadings w0", units=1)
    a0: float = positive(1.0, "prior shape a0")
    b0: float = positive(1.0, "prior scale b0", units=2)

    inputs = Matrix("Y", maskable=True, scalable=True)
    dims: ClassVar[Axes] = {"mean": ("column",), "loadings": ("column", "factor"), "eigenvalues": ("factor",)}
    nonnegative = ("variance", "eigenvalues")
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
    def weak(cls, data: Arrays) -> Ppca:
        """Centre the mean on the data, within ten of their sd; loadings of one sd; a hundredth of their variance."""
        stats = Patterns.of(data["Y"])
        variances = stats.column_variances()
        variance = np.mean(variances[np.isfinite(variances)]) if np.isfinite(variances).any() else 1.0
        sd = np.sqrt(variance)
        return cls(m0=plain(stats.each_column()[1]), s0=10 * sd, w0=sd, b0=0.01 * variance)

    def prior(self, columns: int) -> FactorPrior:
        """Return the prior for D columns, which must be more than the factors."""
        loadings_shape.entries(columns, self.q)
        return FactorPrior(self.entries("m0", columns), self.s0, self.w0, self.a0, self.b0)

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw W and the rest from the prior (of q + 2 columns if m0 is one number), factors, and rows given them."""
        columns = np.size(self.m0) if np.ndim(self.m0) else self.q + 2
        mean, W = rng.normal(self.prior(columns).m0, self.s0), rng.normal(0.0, self.w0, (columns, self.q))
        variance = self.b0 / rng.gamma(self.a0)
        Y = mean + rng.standard_normal((size, self.q)) @ W.T + rng.normal(0, np.sqrt(variance), (size, columns))
        params = {"mean": mean, "loadings": loadings_shape.identified(W), "variance": variance}
        return params, {"Y": Y, "column": np.array([f"x{j + 1}" for j in range(columns)])}

    def parameters(self, columns: int, dims: Axes) -> tuple[Any, Any, Any]:
        """Declare mean, loadings and variance of D columns."""
        prior = self.prior(columns)
        numbers = {name: pm.Data(name, np.asarray(getattr(prior, name))) for name in ("m0", "s0", "a0", "b0")}
        mean = pm.Normal("mean", mu=numbers["m0"], sigma=numbers["s0"], dims=dims.get("mean"))
        loadings = ours.IdentifiedLoadings("loadings", self.w0, columns, self.q, dims.get("loadings"))
        return mean, loadings, pm.InverseGamma("variance", alpha=numbers["a0"], beta=numbers["b0"])

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare a Gaussian row of D numbers a row; of rows with holes, one of the numbers that each has."""
        size = data["Y"].shape[1]
        with pm.Model(coords=self.coords(data)) as model:
            mean, loadings, variance = self.parameters(size, self.dims)
            cov = pm.math.dot(loadings, loadings.T) + variance * np.eye(size)
            ours.GaussianRows("Y", mean, cov, data["Y"])
        return model
