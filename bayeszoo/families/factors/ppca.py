"""What probabilistic PCA has beside its declaration: EM, and the closed form of its maximum of likelihood."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from bayeszoo.families.factors import em as factor_em
from bayeszoo.families.factors import trapezoid
from bayeszoo.families.factors.base import FactorModel
from bayeszoo.families.factors.em import FactorPrior, FactorSums
from bayeszoo.families.statistics.patterns import Patterns, as_patterns
from bayeszoo.foundation.gate import Check, at_most
from bayeszoo.foundation.optimize import MAX_DISTANCE, describe
from bayeszoo.model.base import Values
from bayeszoo.model.capabilities import Coordinates, Expectation


class PpcaModel(FactorModel, family=True):
    """A `FactorModel` whose loadings are identified; a subclass gives the prior and the declaration.

    Loadings are lower trapezoidal with a positive diagonal. The steps of EM take statistics as well as rows.
    """

    @abstractmethod
    def prior(self, columns: int) -> FactorPrior:
        """Return the prior of the parameters for rows of D numbers, which must be more than the factors."""

    def start(self, data: Any, rng: np.random.Generator) -> dict[str, Any]:
        """Return parameters to climb from, at random."""
        return factor_em.start(as_patterns(data), self.q, rng)

    def e_step(self, params: Values, data: Any) -> Expectation:
        """Return expected statistics and the log likelihood at the parameters."""
        return factor_em.e_step(as_patterns(data), params)

    def m_step(self, stats: FactorSums, flat: bool = False) -> dict[str, Any]:
        """Return parameters with a higher expected log joint density or, with ``flat``, log likelihood."""
        return factor_em.m_step_flat(stats) if flat else self.prior(len(stats.mean)).m_step(stats)

    def coordinates(self) -> Coordinates:
        """Return the mean, the free loadings and the log of the variance as coordinates of the parameters."""
        return Coordinates(factor_em.to_vector, self._from_vector)

    def _from_vector(self, x: np.ndarray) -> dict[str, Any]:
        """Return the parameters at these coordinates, factors turned to a diagonal that is not negative."""
        params = factor_em.from_vector(x, self.q)
        return {**params, "loadings": trapezoid.turned(params["loadings"])}

    def log_likelihood(self, stats: Patterns, params: Values) -> float:
        """Return the log density of the rows at a point."""
        return factor_em.log_likelihood(stats, params)

    def closed_mle(self, stats: Patterns) -> dict[str, Any] | None:
        """Return the maximum of the likelihood of complete data; None where numbers are missing.

        Raises
        ------
        NumericalError
            When numbers are missing: there is no closed form then, and EM finds the maximum; or when q factors fit the
            rows exactly: the likelihood then has no maximum.
        """
        self.prior(stats.size)
        return factor_em.closed_form(stats, self.q) if stats.is_complete else None

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
