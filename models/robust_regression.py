r"""Robust regression: linear regression with Student-t noise, which single outliers do not move.

    sigma  ~ HalfNormal(sigma0)
    w_j    ~ N(0, tau^2)                      of a feature in units of `scale`; the intercept ~ N(m0, s0^2)
    lam_n  ~ Gamma(nu / 2, rate nu / 2)       the precision of row n over 1 / sigma^2
    y_n    ~ N(x_n' w, sigma^2 / lam_n)       n = 1..N

The lam_n are integrated out: y_n ~ StudentT(nu, x_n' w, sigma), with nu given. West 1984; Lange, Little and Taylor
1989; Murphy 2012, section 7.4; Gelman et al., BDA3, section 17.2; W4400, the Student t.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import lazy_loader
import numpy as np
import scipy

from bayeszoo.errors import NumericalError
from bayeszoo.families.linear.least_squares import solve
from bayeszoo.families.linear.model import LinearModel
from bayeszoo.families.mixtures.student import within_pymc
from bayeszoo.model import Example, positive
from bayeszoo.model.types import Arrays, DeclaredModel, Params, RowLaw, Simulated

pm, ours = lazy_loader.load("pymc"), lazy_loader.load("bayeszoo.families.linear.declaration", suppress_warning=True)


@dataclass(frozen=True)
class RobustRegression(LinearModel):
    """Student-t outcomes, whose location is linear in terms with Gaussian weights.

    Parameters
    ----------
    tau : float, or one for each term but the intercept
        Prior standard deviation of the weight of a standardized term, > 0.
    nu : float
        Degrees of freedom of the noise, > 0: few make outliers likely, many make the noise Gaussian.
    sigma0 : float
        Scale of the half-normal prior of sigma, the scale of the noise, > 0.
    s0 : float
        Prior standard deviation of the intercept, > 0.
    """

    tau: float = positive(1.0, "prior sd of the weights tau", axes=("slope",), units=1)
    nu: float = positive(4.0, "degrees of freedom nu")
    sigma0: float = positive(1.0, "prior scale of the noise sigma0", units=1)
    s0: float = positive(10.0, "prior sd of the intercept s0", units=1)

    nonnegative = ("sigma",)
    examples = (
        Example(
            "airquality.csv",
            "ozone in New York on 116 days of 1973, and the temperature and wind",
            "Chambers, Cleveland, Kleiner and Tukey 1983",
            {"target": "Ozone", "features": ["Temp", "Wind"], "missing": "drop"},
        ),
    )

    @classmethod
    def weak(cls, data: Arrays) -> RobustRegression:
        """Standardize; for each weight, and for the noise, a standard deviation of the outcome."""
        sd = cls.outcome_sd(data)
        return replace(cls(**cls.standardized(data)), tau=sd, sigma0=sd, s0=10 * sd).labelled(data)

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw weights and noise from the prior, standard normal features, and ``size`` outcomes given them."""
        data = self.simulate_design(rng, size, np.shape(self.tau))
        mean, sd = self._prior(data)
        params = {"w": rng.normal(mean, sd), "sigma": abs(rng.normal(0.0, self.sigma0))}
        precisions = rng.gamma(self.nu / 2, 2 / self.nu, size)
        return params, {"y": rng.normal(self.mean(params, data), params["sigma"] / np.sqrt(precisions)), **data}

    def _prior(self, data: Arrays) -> tuple[np.ndarray, np.ndarray]:
        """Return prior means and standard deviations of the weights in the user's units."""
        units = self.units(self.nothing(data))
        sd = self.term_scales(len(units), self.s0, "tau")
        return self.origin(len(units)), sd / units

    def _whitened(self, data: Arrays) -> Any:
        """Return coordinates in which the posterior under Gaussian noise is standard normal: near enough."""
        stats = self.statistics(data)
        (design, outcome), noise = self.equations(stats), self.noise_sd(stats)
        root = np.diag(self._prior(data)[1] * self.units(stats))
        return ours.Whitened(self.in_units(stats, solve(design / noise, outcome / noise, 0 * root[0], root)))

    def _refuse_improper(self, data: Arrays) -> None:
        """Refuse mostly equal outcomes, whose posterior has no finite integral as sigma goes to 0.

        If weights fit m of the N rows exactly, the density is sigma^(nu (N - m) - m) there, and the weights for which
        residuals are no larger than sigma have a volume of sigma to the rank of the terms of these rows.
        """
        values, place, counts = np.unique(data["y"], return_inverse=True, return_counts=True)
        if not len(values) or (equal := counts.max()) < 2:
            return
        others = len(data["y"]) - equal
        beyond = equal - np.linalg.matrix_rank(self.design(data)[place == counts.argmax()]) - 1
        if beyond < self.nu * others:
            return
        line = f"{equal} of {len(data['y'])} outcomes are {values[counts.argmax()]:g}"
        hint = (
            f"--set nu={int(beyond / others) + 1} bounds it, or leave out these rows"
            if others
            else "use linear_regression"
        )
        raise NumericalError(f"{line}: the posterior has no finite integral as sigma goes to 0; {hint}", "no_spread")

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare one Student-t outcome a row."""
        self._refuse_improper(data)
        mean, sd = self._prior(data)
        with pm.Model(coords=self.coords(data)) as model:
            sigma = pm.HalfNormal("sigma", sigma=self.sigma0)
            w = pm.Normal("w", mean, sd, dims="term", transform=self._whitened(data))
            terms = pm.Data("terms", self.design(data), dims=("row", "term"))
            outcome = pm.Data("y_data", data["y"], dims="row")
            location = ours.weighted_sums(terms, w)
            nu = within_pymc(self.nu, "linear_regression")
            pm.StudentT("y", nu=nu, mu=location, sigma=sigma, observed=outcome, dims="row")
        return model

    def likelihood(self, params: Params, data: Arrays) -> RowLaw:
        """Return each row's Student-t distribution; parameters of shape (..., own shape) give (..., rows)."""
        return scipy.stats.t(self.nu, self.mean(params, data), np.asarray(params["sigma"])[..., None])
