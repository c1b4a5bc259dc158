"""What factor models with noise alike in all directions share: statistics, EM, the distribution of a row."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from bayeszoo import em, factor_em, trapezoid
from bayeszoo.factor_em import FactorPrior, FactorSums
from bayeszoo.factors import FactorRows
from bayeszoo.gate import Check, at_most
from bayeszoo.latent import Expectation
from bayeszoo.model import Model, Values
from bayeszoo.optimize import MAX_DISTANCE, describe
from bayeszoo.patterns import Patterns, as_patterns


class FactorModel(Model):
    """Rows N(mean, W W' + variance I) with identified loadings; a subclass gives the prior and the declarations.

    Parameters are ``mean`` (D,), ``loadings`` (D, q), lower trapezoidal with a positive diagonal, and ``variance``.
    The steps of EM take statistics as well as rows.
    """

    q: int

    @abstractmethod
    def prior(self, columns: int) -> FactorPrior:
        """Return the prior of the parameters for rows of D numbers, which must be more than the factors."""

    def coords(self, data: Values) -> dict[str, Any]:
        """Return the names of the columns, and the numbers of the factors."""
        return {"column": data["column"], "factor": np.arange(1, self.q + 1)}

    def statistics(self, data: Values) -> Patterns:
        """Return count, mean and scatter of the rows of each pattern of missing numbers; q columns are too few."""
        self.prior(data["Y"].shape[1])
        return Patterns.of(data["Y"])

    def start(self, data: Any, rng: np.random.Generator) -> dict[str, Any]:
        """Return parameters to climb from, at random."""
        return factor_em.start(as_patterns(data), self.q, rng)

    def e_step(self, params: Values, data: Any) -> Expectation:
        """Return expected statistics and the log likelihood at the parameters."""
        return factor_em.e_step(as_patterns(data), params)

    def m_step(self, stats: FactorSums, flat: bool = False) -> dict[str, Any]:
        """Return parameters with a higher expected log joint density or, with ``flat``, log likelihood."""
        return factor_em.m_step_flat(stats) if flat else self.prior(len(stats.mean)).m_step(stats)

    def to_vector(self, params: Values) -> np.ndarray:
        """Return the mean, the free loadings and the log of the variance: coordinates of the parameters."""
        return factor_em.to_vector(params)

    def from_vector(self, x: np.ndarray) -> dict[str, Any]:
        """Return the parameters at these coordinates, factors turned to a diagonal that is not negative."""
        params = factor_em.from_vector(x, self.q)
        return {**params, "loadings": trapezoid.turned(params["loadings"])}

    def log_prior(self, params: Values, data: Any) -> np.ndarray:
        """Log density of the prior; leading axes are draws."""
        return self.prior(np.shape(params["mean"])[-1]).log_density(params)

    def log_likelihood(self, stats: Patterns, params: Values) -> float:
        """Return the log density of the rows at a point."""
        return factor_em.log_likelihood(stats, params)

    def free_parameters(self, stats: Patterns) -> int:
        """Return D means, D q - q (q - 1) / 2 loadings up to their rotation, and one variance."""
        return stats.size + trapezoid.count(stats.size, self.q) + 1

    def has_closed_mle(self, stats: Patterns) -> bool:
        """Say whether the maximum of the likelihood has a closed form: of complete data."""
        return stats.is_complete

    def mle(self, stats: Patterns) -> dict[str, Any]:
        """Return the maximum of the likelihood: in closed form, or where numbers are missing by EM.

        Raises
        ------
        NumericalError
            When q factors fit the rows exactly: the likelihood then has no maximum.
        """
        self.prior(stats.size)
        if self.has_closed_mle(stats):
            return factor_em.closed_form(stats, self.q)
        return em.climbs(self, stats, np.random.default_rng(0), flat=True).best.state

    def mle_certificate(self, stats: Patterns, params: Values) -> list[Check]:
        """Check that the likelihood is stationary there and curved downwards in all free entries.

        The gradient is of the density that samplers use, and shares no code with the closed form.
        """
        at, x = trapezoid.entries(len(params["mean"]), self.q), factor_em.to_vector(params)

        def likelihood(x: np.ndarray) -> tuple[float, np.ndarray]:
            here = factor_em.from_vector(x, self.q)
            value, of_mean, of_loadings, of_variance = factor_em.value_and_gradient(stats, here)
            return value, np.concatenate([of_mean, of_loadings[at], [here["variance"] * of_variance]])

        return [at_most("distance to a stationary point in sd", describe(likelihood, x).distance, MAX_DISTANCE)]

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
