"""What factor models with noise alike in all directions share: statistics, and the distribution of a row."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import lazy_loader
import numpy as np

from bayeszoo.families.factors import trapezoid
from bayeszoo.families.factors.rows import FactorRows, one_axis_of_draws
from bayeszoo.families.factors.steps import value_and_gradient
from bayeszoo.families.statistics.patterns import Patterns
from bayeszoo.model.base import Axes, Values
from bayeszoo.model.capabilities import EM, Observable, Sufficient

pm, likelihoods = lazy_loader.load("pymc"), lazy_loader.load("bayeszoo.likelihoods.ops.factors", suppress_warning=True)


class FactorModel(Sufficient[Patterns], EM, Observable, family=True):
    """Rows N(mean, W W' + variance I) of D numbers, W of q < D columns; numbers may be missing.

    Parameters are at least ``mean`` (D,), ``loadings`` (D, q) and ``variance``.
    """

    q: int

    @abstractmethod
    def prior(self, columns: int) -> Any:
        """Return the prior of the parameters for rows of D numbers, which must be more than the factors."""

    @abstractmethod
    def parameters(self, columns: int, dims: Axes) -> tuple[Any, Any, Any]:
        """Declare the prior within a PyMC model, and return mean, loadings and variance."""

    def compressed(self, stats: Patterns) -> Any:
        """Declare the density of the rows from their moments by pattern of missing numbers."""
        with pm.Model() as model:
            parameters = self.parameters(stats.size, {})
            kept = {"observed": stats.observed.astype(np.float64), "n": stats.n}
            kept |= {"row_mean": stats.mean, "scatter": stats.scatter}
            given = [pm.Data(name, value) for name, value in kept.items()]
            pm.Potential("Y", likelihoods.ppca_log_likelihood(*parameters, *given))
        return model

    def coords(self, data: Values) -> dict[str, Any]:
        """Return the names of the columns, and the numbers of the factors."""
        return {"column": data["column"], "factor": np.arange(1, self.q + 1)}

    def statistics(self, data: Values) -> Patterns:
        """Return count, mean and scatter of the rows of each pattern of missing numbers; q columns are too few."""
        self.prior(data["Y"].shape[1])
        return Patterns.of(data["Y"])

    def log_prior(self, params: Values, data: Any) -> np.ndarray:
        """Log density of the prior; leading axes are draws."""
        density: np.ndarray = self.prior(np.shape(params["mean"])[-1]).log_density(params)
        return density

    def log_likelihood(self, stats: Patterns, params: Values) -> np.ndarray:
        """Return the log density of the rows; leading axes of the parameters are draws."""
        flat = one_axis_of_draws({name: params[name] for name in ("mean", "loadings", "variance")})
        draws = (dict(zip(flat, draw, strict=True)) for draw in zip(*flat.values(), strict=True))
        return np.reshape([value_and_gradient(stats, draw)[0] for draw in draws], np.shape(params["variance"]))

    def free_parameters(self, stats: Patterns) -> int:
        """Return D means, D q - q (q - 1) / 2 loadings up to their rotation, and one variance."""
        return stats.size + trapezoid.count(stats.size, self.q) + 1

    def likelihood(self, params: Values, data: Values) -> FactorRows:
        """Return each row's Gaussian distribution; parameters of shape (..., own shape) give (..., rows)."""
        return FactorRows(params["mean"], params["loadings"], params["variance"], len(data["Y"]))

    def derived(self, params: Values) -> dict[str, Any]:
        """Return the q largest eigenvalues of the covariance of a row, and the share of its variance in the factors."""
        W, variance = np.asarray(params["loadings"]), np.asarray(params["variance"])
        squares = np.linalg.svd(W, compute_uv=False) ** 2
        of_factors = squares.sum(axis=-1)
        whole = of_factors + W.shape[-2] * variance
        return {"eigenvalues": squares + variance[..., None], "explained": of_factors / whole}
