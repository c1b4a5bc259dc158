"""Gaussian components with conjugate priors: the compiled E-step, coordinates, and which have collapsed.

Full, diagonal and spherical covariances (`distributions.structures`), one for each component, or one full matrix for
all of them, "tied". Bishop, PRML, sections 9.2 and 10.2; Murphy 2012, section 4.6.3; Fraley and Raftery 2007.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import lazy_loader
import numpy as np
import numpy.typing as npt

from bayeszoo.distributions.conjugate.law import Law
from bayeszoo.distributions.conjugate.multivariate import MultivariateNormal
from bayeszoo.distributions.statistics.base import along
from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.distributions.structures import Matrices, Scalar, Structure
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.foundation.named import Arrays, Params

pm, priors = lazy_loader.load("pymc"), lazy_loader.load("bayeszoo.likelihoods.inverse_wishart", suppress_warning=True)
loops = lazy_loader.load("bayeszoo.likelihoods.loops.gaussian_mixture", suppress_warning=True)  # numba takes its time

STRUCTURES = {"full": Matrices, "tied": Matrices, "diagonal": Structure, "spherical": Scalar}
"""Covariance structures by name."""

SMALLEST = 1e-12
"""Smallest eigenvalue of a covariance, relative to that of all rows, below which the likelihood counts as unbounded."""


@dataclass(frozen=True, eq=False)
class GaussianComponents(MultivariateNormal):
    """The prior, posterior or q of the ``means`` and ``covariances`` of K Gaussian components or classes.

    Means have shape (..., K, D). Covariances have shape (..., K, D, D) if full, (..., D, D) if tied, (..., K, D) if
    diagonal (variances), (..., K) if spherical; leading axes are draws. To the block this class adds a compiled E-step,
    coordinates, and the size of a component relative to all rows.
    """

    @classmethod
    def of(
        cls,
        kind: str,
        count: int,
        m: np.ndarray,
        kappa: float | np.ndarray,
        nu: float | np.ndarray,
        psi: np.ndarray,
        column: str = "Y",
    ) -> Self:
        """Return the prior of each component of rows in ``column``: the same, or one for each of K.

        psi is (D, D) or (K, D, D); diagonal covariances use its diagonal, spherical ones the mean of the diagonal.
        Centres are (D,) or (K, D).
        """
        columns = m.shape[-1]
        structure = STRUCTURES[kind](columns)
        if (smallest := np.min(nu)) <= (least := structure.block - 1):
            raise InputError(
                f"prior degrees of freedom nu0 must be > D - 1 = {least} of {columns} columns, got {smallest:g}",
                "out_of_range",
            )
        axes = () if kind == "tied" else (count,)
        scales = np.broadcast_to(structure.reduced(psi), axes + structure.shape)
        means, kappas, freedom = m + np.zeros((count, columns)), kappa + np.zeros(count), nu + np.zeros(axes)
        return cls(("means", "covariances"), column, means, kappas, freedom, scales, structure)

    def apart(self, rows: Arrays) -> Iterator[tuple[Law[Any], Arrays]]:
        """Yield the law of each column if these are independent (diagonal), else of all together, with their rows."""
        if len(self.structure.shape) != 1:
            yield self, rows
            return
        for j in range(self.columns):
            column = replace(self, m=self.m[..., [j]], psi=self.psi[..., [j]], structure=Structure(1))
            yield column, {self.column: np.asarray(rows[self.column])[:, [j]]}

    @property
    def count(self) -> int:
        """K."""
        return self.axes[-1]

    def declared(self, dims: object = None) -> Any:
        """Declare ``covariances`` with their prior in PyMC; return them as K matrices (K, D, D)."""
        if len(self.structure.shape) == 2:
            matrices = priors.InverseWishart("covariances", self.nu, self.psi, dims=dims)
            return matrices + np.zeros((self.count, 1, 1)) if self.tied else matrices
        shape = pm.Data("covariances_shape", along(self.nu, self.psi) / 2 + np.zeros(self.psi.shape))
        scale = pm.Data("covariances_scale", self.psi / 2)
        variances = pm.InverseGamma("covariances", alpha=shape, beta=scale, shape=self.psi.shape, dims=dims)
        return (variances[:, :, None] if self.psi.ndim == 2 else variances[:, None, None]) * np.eye(self.columns)

    def to_vector(self, weights: np.ndarray, means: np.ndarray, covariances: np.ndarray) -> np.ndarray:
        """Return free coordinates of positive weights, means and covariances."""
        return np.concatenate([np.log(weights), means.ravel(), self.structure.to_vector(covariances)])

    def from_vector(self, vector: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return weights (K,), means (K, D) and covariances with the coordinates."""
        weights, means, packed = np.split(vector, [self.count, self.count * (1 + self.columns)])
        covariances = self.structure.from_vector(packed)
        return np.exp(weights), means.reshape(self.count, -1), covariances[0] if self.tied else covariances

    def matrices(self, covariances: npt.ArrayLike) -> np.ndarray:
        """Return the covariance matrices (..., K, D, D)."""
        full = self.structure.matrix(self.spread_out(covariances))
        return np.broadcast_to(full, (*full.shape[:-3], self.count, *full.shape[-2:]))

    def variances(self, covariances: npt.ArrayLike) -> np.ndarray:
        """Return the variance of each column (..., K, D)."""
        by_matrix = self.structure.variances(self.spread_out(covariances))
        return np.broadcast_to(by_matrix, (*by_matrix.shape[:-2], self.count, self.columns))

    def target(self, stats: Moments, flat: bool) -> Self:
        """Return the expected log joint density given statistics, or with ``flat`` the likelihood, as a block.

        As a function of means and covariances it is a constant minus half of nu log det Sigma + tr(psi Sigma^-1) +
        kappa (mu - m)' Sigma^-1 (mu - m), where nu includes all powers of det Sigma.
        """
        if flat:
            scatter, n = self.together(stats.scatter, stats.n)
            return replace(self, m=stats.mean, kappa=stats.n, nu=self.structure.repeat * n, psi=scatter)
        posterior = self.updated(stats)
        return replace(posterior, nu=posterior.power)

    def mle(self, stats: Moments) -> dict[str, np.ndarray]:
        """Return the parameters of maximum likelihood; raise `NumericalError` if a component has collapsed."""
        if (stats.n <= 0).any():
            raise NumericalError(
                f"no maximum of the likelihood: component {np.argmin(stats.n) + 1} is empty", "no_data"
            )
        covariances, total = self.covariance_of_rows(stats), self.covariance_of_all(stats)
        if not self._have_spread(covariances, total):
            spread = self.smallest(covariances, total)
            if not np.all(spread > SMALLEST):
                owner = "" if self.tied else f" of component {np.argmin(spread) + 1}"
                raise NumericalError(f"no maximum of the likelihood: the covariance{owner} is singular", "no_maximum")
        return {"means": stats.mean, "covariances": covariances}

    def covariance_of_all(self, stats: Moments) -> np.ndarray:
        """Return the covariance of all rows together, of the structure's shape."""
        n, shift = stats.n.sum(), stats.mean - stats.mean[0]
        of_means = self.structure.scatter(stats.n, shift - (stats.n @ shift) / n)
        return np.asarray((stats.scatter.sum(axis=0) + of_means) / (self.structure.repeat * n))

    def _have_spread(self, covariances: npt.ArrayLike, total: np.ndarray) -> bool:
        """Say whether `smallest` is surely well above 1e-12, as the sum of the inverse eigenvalues is small."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            sums = self.structure.trace_ratio(total, self.spread_out(covariances))
        return bool(np.all((sums > 0) & (sums < 1e6)))

    def smallest(self, covariances: npt.ArrayLike, total: np.ndarray) -> np.ndarray:
        """Return the smallest eigenvalue of each covariance relative to that of all rows; it has no unit."""
        try:
            factor = self.structure.factor(total)
        except NumericalError:
            line = f"the rows do not fill {self.columns} dimensions" if self.columns > 1 else "all rows are equal"
            raise NumericalError(line, "not_identified") from None
        return np.min(self.structure.relative(factor, self.spread_out(covariances)), axis=-1)

    def sums(
        self, weights: np.ndarray, means: npt.ArrayLike, covariances: npt.ArrayLike, Y: np.ndarray
    ) -> tuple[float, Moments]:
        """Return the log likelihood of rows (N, D), and their expected statistics, in one compiled pass.

        The weights (K,) need not add up to 1.
        """
        means = np.asarray(means, dtype=np.float64)
        sums = loops.gaussian_e_step(weights, means, self.matrices(covariances), Y)
        shift = sums.shifts / np.where(sums.counts > 0, sums.counts, 1.0)[:, None]
        about_mean = sums.scatters - along(sums.counts, sums.scatters) * (shift[:, :, None] * shift[:, None, :])
        scatter = self.structure.repeat * self.structure.reduced(about_mean)
        return sums.value, Moments(sums.counts, means + shift, scatter, np.zeros_like(shift))

    def degenerate(self, params: Params, stats: Moments) -> str:
        """Return the reason, by expected statistics, why a fitted point is a degenerate maximum; empty if it is not.

        The smallest eigenvalue of a covariance, relative to the covariance of all rows, is below 1e-5; or a component
        holds fewer than D + 1 rows.
        """
        rows = np.atleast_1d(params["weights"]) * stats.n.sum()
        if np.any(rows < self.columns + 1):
            k = int(np.argmin(rows))
            needed = f"D + 1 = {self.columns + 1} are needed"
            return f"component {k + 1} has collapsed: it holds {rows[k]:.6g} rows, and {needed}"
        try:
            spread = self.smallest(params["covariances"], self.covariance_of_all(stats))
        except NumericalError:  # the rows do not fill all dimensions: no spread to compare with
            return ""
        if np.all(spread >= 1e-5):
            return ""
        k = int(np.argmin(spread))
        subject = "the covariance has" if self.tied else f"component {k + 1} has"
        return f"{subject} collapsed: in one direction its variance is {spread[k]:.1g} of that of all rows"
