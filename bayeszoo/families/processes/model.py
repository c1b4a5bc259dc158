"""Steps shared by Gaussian process models: rows at places, a kernel, and answers given amplitude, length and noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import Regression
from bayeszoo.distributions import frozen
from bayeszoo.distributions.averages.averaged import RowLaw
from bayeszoo.distributions.scale import POSITIVE
from bayeszoo.errors import InputError
from bayeszoo.families.processes import cholesky
from bayeszoo.families.processes.noise import highest
from bayeszoo.families.processes.places import OfPlaces
from bayeszoo.families.processes.slopes import AtPlaces, Slopes, Values
from bayeszoo.families.processes.spectrum import LEAST_SHARE, Rows
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.foundation.numerics.constants import TINY
from bayeszoo.model.capabilities.conditional import Conditional
from bayeszoo.model.capabilities.function import HasLengths, HasSlopes
from bayeszoo.model.fields import real
from bayeszoo.model.types import DeclaredModel

ours = lazy_loader.load("bayeszoo.families.processes.declaration", suppress_warning=True)

MOST_ROWS = 2000
"""Most rows whose kernel is decomposed: 32 MB, and seconds for each length."""


@dataclass(frozen=True)
class ProcessModel(OfPlaces, Conditional, HasLengths, HasSlopes, family=True):
    """Rows at places of features about a Gaussian process: Gaussian given amplitude, length and noise.

    Parameters
    ----------
    m0 : float
        Mean of the process.
    """

    m0: float = real(0.0, "mean of the process", units=1, location=True, kw_only=True)

    inputs = Regression("y")
    outer = {"amplitude": POSITIVE, "length": POSITIVE, "sigma": POSITIVE}  # noqa: RUF012
    nonnegative, usual_method = ("amplitude", "length", "sigma"), "exact"  # seconds, where NUTS takes a minute
    most_integrated: ClassVar[float] = 600
    _kept: ClassVar[dict[str, Any]]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "_kept", {})

    # Rows and places

    def rows(self, data: Arrays) -> Rows:
        """Return the rows, whose kernel is decomposed once per length; refuse too many rows."""
        if self._kept.get("data") is not data:
            if (n := len(data["y"])) > MOST_ROWS:
                problem = f"{n:,} rows need matrices of {8e-6 * n * n:,.0f} MB and {n:,}^3 operations for each length"
                hint = f"give a sample of at most {MOST_ROWS:,} rows, or fit linear_regression with --degree"
                raise InputError(problem, "too_many_rows", hint=hint)
            self._kept.clear()
            self._kept.update(data=data, rows=Rows(self.expression, self.places(data), data["y"], np.float64(self.m0)))
        rows: Rows = self._kept["rows"]
        return rows

    # Steps

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare the rows by PyMC's process with noise."""
        import pymc as pm

        with pm.Model() as model:
            ours.declared(self.rows(data), **self.declared_outer())
        return model

    def marginalized(self, data: Arrays) -> DeclaredModel:
        """Declare the density of the rows with its gradient."""
        import pymc as pm

        self._highest(data)
        with pm.Model() as model:
            pm.Potential("y", ours.marginal(self.rows(data), **self.declared_outer()))
        return model

    def outer_guess(self, data: Arrays) -> dict[str, tuple[float, float]]:
        """Guess the parameters by the highest point of a grid; refuse data that leave no noise."""
        return {name: (value, 1.0) for name, value in self._highest(data).items()}

    def _highest(self, data: Arrays) -> dict[str, float]:
        return highest(self.rows(data), self.outer_priors["sigma"], self.log_outer_prior)

    def log_marginal(self, outer: Params, data: Arrays) -> Any:
        """Return the log density of the rows; -inf if the covariance is singular up to rounding, as with tiny noise."""
        return self.rows(data).log_density(outer)

    def marginal_slopes(self, outer: Params, data: Arrays) -> dict[str, float]:
        """Return the derivatives of the log density of the rows at one point."""
        return self.rows(data).slopes(outer)

    def log_density_of_lengths(
        self, amplitude: float, lengths: np.ndarray, sigma: float, data: Arrays
    ) -> tuple[float, np.ndarray]:
        """Return the log density of the rows, and its derivatives in the logs of amplitude, lengths and sigma."""
        if not self.expression.is_of_distances:
            hint = "take rbf, matern12, matern32, matern52 or rational_quadratic, or sums and products of these"
            raise InputError(f"the kernel {self.kernel} has one length for all features", "wrong_shape", hint=hint)
        rows, point = self.rows(data), (amplitude, lengths, sigma)
        return cholesky.with_slopes_of_lengths(rows.kernel, rows.places, rows.y - rows.mean, point, LEAST_SHARE)

    def function(self, params: Params, seen: Arrays, new: Arrays, along: str | None = None) -> RowLaw:
        """Return the normal distribution of the function at each new row given the rows seen, or of its derivative."""
        mean, variance = self.rows(seen).function(params, self._at(new, along))
        law: RowLaw = frozen.norm(mean, np.sqrt(np.maximum(variance, TINY)))
        return law

    def _at(self, new: Arrays, along: str | None = None) -> AtPlaces:
        """Return the function at new rows, or its derivative along a feature."""
        places, names = self.places(new), list(map(str, new["feature"]))
        if along is None:
            return Values(self.expression, places)
        if along not in names:
            hint = f"the features are {', '.join(names)}"
            raise InputError(f"derivative along {along!r}, which is no feature", "missing_column", hint=hint)
        unit = float(self.entries("scale", len(names))[names.index(along)])
        return Slopes(self.expression, places, names.index(along), unit)

    def share_of_prior(self, draws: Params, seen: Arrays, new: Arrays, along: str | None = None) -> np.ndarray:
        """Return the posterior variance at new rows as a share of the prior variance, at means of the draws."""
        rows, target = self.rows(seen), self._at(new, along)
        params = {name: np.asarray(values.mean(axis=0)) for name, values in draws.items()}
        prior_variances = np.square(params["amplitude"])[..., None] * rows.prior_variances(params, target)
        return np.asarray(rows.function(params, target)[1] / np.maximum(prior_variances, TINY))

    def drawn_function(
        self, params: Params, seen: Arrays, new: Arrays, rng: np.random.Generator, along: str | None = None
    ) -> np.ndarray:
        """Draw functions at all new rows, or their derivatives."""
        return self.rows(seen).drawn(params, self._at(new, along), rng)

    def drawn_rows(self, params: Params, seen: Arrays, new: Arrays, rng: np.random.Generator) -> np.ndarray:
        """Draw functions, and new rows about them."""
        return np.asarray(rng.normal(self.drawn_function(params, seen, new, rng), params["sigma"][..., None]))

    def law(self, params: Params, seen: Arrays, new: Arrays, rng: np.random.Generator | None = None) -> RowLaw:
        """Return the normal distribution of each new row given the rows seen."""
        mean, variance = self.rows(seen).function(params, self._at(new))
        law: RowLaw = frozen.norm(mean, np.sqrt(variance + np.square(params["sigma"])[..., None]))
        return law

    def held_out(self, params: Params, seen: Arrays, places: np.ndarray) -> RowLaw:
        """Return the normal distribution of each row given all others, without another fit (5.4.2)."""
        law: RowLaw = self.rows(seen).held_out(params, places)
        return law

    # Simulation

    def simulated_function(self, rng: np.random.Generator, outer: Params, data: Arrays) -> np.ndarray:
        """Draw a function at the places of data."""
        kernel, places = self.expression, self.places(data)
        values, vectors = np.linalg.eigh(kernel.correlations(kernel.tables(places, places), outer["length"]))
        noise = rng.standard_normal(len(places))
        return np.asarray(self.m0 + outer["amplitude"] * vectors @ (np.sqrt(np.maximum(values, 0.0)) * noise))
