"""Inference in linear models with Laplace weights: the mode, and for orthogonal columns the exact posterior."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import lazy_loader
import numpy as np
import scipy

from bayeszoo.distributions import frozen
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.errors import NumericalError
from bayeszoo.families.lasso.coefficient import LaplaceGaussian
from bayeszoo.families.lasso.mode import LIMIT, joint_modes, kkt_violation, mode, noise_mode
from bayeszoo.families.linear.least_squares import above_zero, solve
from bayeszoo.families.linear.model import LinearModel
from bayeszoo.families.statistics.factored import FactoredMoments
from bayeszoo.foundation.gate import Check, at_most
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.model.capabilities import PointEstimates
from bayeszoo.model.views import View

if TYPE_CHECKING:
    from bayeszoo.families.linear.declaration import Whitened

ours = lazy_loader.load("bayeszoo.families.linear.declaration", suppress_warning=True)

MAX_CORRELATION = 1e-12
"""Largest correlation between columns that count as orthogonal."""


@dataclass(frozen=True)
class LaplaceWeights(LinearModel, PointEstimates[FactoredMoments], family=True):
    """A linear model whose weights have independent Laplace priors, in standardized terms.

    The noise ``sigma`` is known, or with ``learn_sigma`` sigma2 ~ InvGamma(a0, scale b0).
    """

    if TYPE_CHECKING:
        sigma: float = 1.0
        a0: float = 1.0
        b0: float = 1.0
        learn_sigma: bool = False
        scale_mixture: bool = False

    def views(self) -> frozenset[View]:
        """Return the views of all models, and the modes under tighter and wider priors."""
        return super().views() | {View.PATH}

    @abstractmethod
    def prior_scales(self, terms: int) -> np.ndarray:
        """Return the scales of the priors of standardized weights, shape (T,)."""

    def variance(self, params: Params) -> np.ndarray:
        """Return the noise variance, known or from the parameters."""
        return np.asarray(params["sigma2"] if self.learn_sigma else self.sigma**2)

    def laplace_prior(self, stats: FactoredMoments) -> tuple[np.ndarray, np.ndarray]:
        """Return location and scale of the priors of the weights in the user's units."""
        units = self.units(stats)
        return self.origin(len(units)), self.prior_scales(len(units)) / units

    def whitened(self, stats: FactoredMoments) -> Whitened:
        """Return coordinates in which the posterior is nearly standard normal."""
        (design, outcome), b = self.equations(stats), self.prior_scales(len(self.units(stats)))
        sigma = self.noise_sd(stats) if self.learn_sigma else self.sigma
        solution = solve(design / sigma, outcome / sigma, 0 * b, math.sqrt(2) * np.diag(b))
        return cast("Whitened", ours.Whitened(self.in_units(stats, solution)))

    def remarks(self, stats: FactoredMoments | None, data: Arrays) -> tuple[str, ...]:
        """Explain which sums of weights the data identify, and that the mode is then not unique."""
        notes = super().remarks(stats, data)
        alike = any("only the sum" in note for note in notes)
        return (*notes, *(["a mode of such weights is one of several: Laplace priors do not share a sum out"] * alike))

    def _prior(self, stats: FactoredMoments) -> Posterior:
        origin, b = self.laplace_prior(stats)
        weights = mixture_prior(origin, b) if self.scale_mixture else Posterior({"w": frozen.laplace(origin, b)})
        if not self.learn_sigma:
            return weights
        return Posterior.product(weights, Posterior({"sigma2": frozen.invgamma(self.a0, scale=self.b0)}))

    def log_prior(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the log density of the prior, with every constant, at parameters with leading axes (...): (...,)."""
        origin, b = self.laplace_prior(self.nothing(data))
        w = np.asarray(params["w"])
        terms = scipy.stats.laplace.logpdf(w, origin, b)
        if self.scale_mixture:
            tau2 = np.asarray(params["tau2"])
            of_scales = scipy.stats.expon.logpdf(tau2, scale=2 * np.square(b))
            terms = of_scales + scipy.stats.norm.logpdf(w, origin, np.sqrt(tau2))
        log_density = np.sum(terms, axis=-1)
        if self.learn_sigma:
            log_density = log_density + scipy.stats.invgamma.logpdf(params["sigma2"], self.a0, scale=self.b0)
        return np.asarray(log_density)

    def _orthogonal(self, stats: FactoredMoments) -> tuple[LaplaceGaussian, float]:
        """Return the posterior of weights and the log evidence minus the noise's constant; raise unless orthogonal.

        The noise must be known. For other columns the posterior is a mixture of 2**T truncated Gaussians.
        """
        if self.learn_sigma:
            raise NumericalError("no closed form: the noise is unknown", "no_closed_form")
        (design, outcome), sigma = self.rows(stats), self.sigma
        size = np.sqrt(np.sum(np.square(design), axis=0))
        unit = design / np.where(size > 0, size, 1.0)
        largest = float(np.max(np.abs(np.triu(unit.T @ unit, 1)), initial=0.0))
        if largest > MAX_CORRELATION:
            raise NumericalError(
                f"no closed form: the columns are not orthogonal (largest correlation {largest:.3g})", "no_closed_form"
            )
        along = unit.T @ outcome
        origin, b = self.laplace_prior(stats)
        weights = LaplaceGaussian(np.square(size / sigma), along / np.where(size > 0, size, 1.0), b, origin)
        residual = outcome - unit @ along
        residual = (residual - unit @ (unit.T @ residual)) / sigma
        # the square is completed, so that precision c^2 / 2 is not in the normalizer
        return weights, math.fsum(weights.log_normalizer - np.log(2 * b)) - float(np.sum(np.square(residual))) / 2

    def posterior(self, stats: FactoredMoments) -> Posterior:
        """Return the posterior for orthogonal columns and known noise, or the prior if there are no rows."""
        if stats.n == 0:
            return self._prior(stats)
        if self.scale_mixture:
            raise NumericalError(
                "no closed form with scale_mixture=true; the weights alone have one with scale_mixture=false",
                "no_closed_form",
            )
        return Posterior({"w": self._orthogonal(stats)[0]})

    def log_evidence(self, stats: FactoredMoments) -> float:
        """Return the log density of the outcomes, for orthogonal columns and known noise."""
        if stats.n == 0:
            return 0.0
        return self._orthogonal(stats)[1] - stats.n * math.log(math.sqrt(2 * math.pi) * self.sigma)

    def free_parameters(self, stats: FactoredMoments) -> int:
        """Return the number of weights, of their scales in a mixture, and of unknown noise variances."""
        return len(self.units(stats)) * (1 + self.scale_mixture) + self.learn_sigma

    def map(self, stats: FactoredMoments) -> dict[str, Any]:
        """Return the joint mode: some weights are exactly 0."""
        if self.scale_mixture:
            raise NumericalError(
                "no mode: the density of a scale mixture is unbounded as w_j and tau2_j -> 0", "no_maximum"
            )
        (design, outcome), units = self.equations(stats), self.units(stats)
        b = self.prior_scales(len(units))
        if not self.learn_sigma:
            return {"w": self._from(mode(design, outcome, b, self.sigma**2).theta, units)}
        best, *_ = joint_modes(design, outcome, b, self.a0 + stats.n / 2, self.b0)
        return {"w": self._from(best.theta, units), "sigma2": best.sigma2}

    def hazards(self, stats: FactoredMoments) -> list[Check]:
        """Check that weights and unknown noise have one joint mode: chains in one mode do not show another."""
        if not self.learn_sigma:
            return []
        scales = self.prior_scales(len(self.units(stats)))
        modes = joint_modes(*self.equations(stats), scales, self.a0 + stats.n / 2, self.b0)
        return [at_most("joint_modes", len(modes), 1)]

    def _from(self, theta: np.ndarray, units: np.ndarray) -> np.ndarray:
        return self.origin(len(units)) + theta / units

    def certificate(self, stats: FactoredMoments, params: Params) -> list[Check]:
        """Check that a point meets the conditions of a mode (Karush, Kuhn, Tucker), relative to the penalty."""
        (design, outcome), units = self.equations(stats), self.units(stats)
        theta, sigma2 = (np.asarray(params["w"]) - self.origin(len(units))) * units, float(self.variance(params))
        violation = kkt_violation(design, outcome, self.prior_scales(len(units)), sigma2, theta)
        checks = [at_most("kkt_violation", violation, LIMIT)]
        if not self.learn_sigma:
            return checks
        expected = noise_mode(design @ theta - outcome, self.a0 + stats.n / 2, self.b0)
        return [*checks, at_most("sigma2_distance", abs(sigma2 / expected - 1), LIMIT)]

    def mle(self, stats: FactoredMoments) -> dict[str, Any]:
        """Return the least-squares estimate; raise `NumericalError` if the columns are linearly dependent."""
        if self.scale_mixture:
            raise NumericalError("no maximum-likelihood estimate: the likelihood does not depend on tau2", "no_maximum")
        w, squared_error = self.least_squares(stats)
        return {"w": w} | ({"sigma2": above_zero(squared_error) / stats.n} if self.learn_sigma else {})


def mixture_prior(origin: np.ndarray, b: np.ndarray) -> Posterior:
    """Return weights w ~ N(origin, tau2) and their variances tau2 ~ Exponential(mean 2 b^2): each w ~ Laplace(b)."""
    variances = frozen.expon(scale=2 * np.square(b))

    def draw(size: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
        tau2 = variances.rvs(size=(*size, len(b)), random_state=rng)
        return {"w": rng.normal(origin, np.sqrt(tau2)), "tau2": tau2}

    def log_density(params: Params) -> Any:
        tau2 = np.asarray(params["tau2"])
        return np.sum(variances.logpdf(tau2) + frozen.norm(origin, np.sqrt(tau2)).logpdf(params["w"]), axis=-1)

    return Posterior({"w": frozen.laplace(origin, b), "tau2": variances}, draw, log_density)
