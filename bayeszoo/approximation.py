"""A Gaussian approximation in unconstrained space, and how good it is: ELBO and Pareto k-hat."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np

from bayeszoo.density import Density
from bayeszoo.gate import MAX_K_HAT, Check, at_most
from bayeszoo.optimize import Gradient
from bayeszoo.problem import Outcome, Problem

SAMPLE = 4000
"""Draws for the ELBO and k-hat."""
EQUAL_WEIGHTS = 2.0
"""Below this ratio of largest to mean weight the fit is so good that k-hat describes noise.

It is blind to scale: a Gaussian fit to 980 coin flips, whose weights all lie within 10% of each other, gets k-hat 3.5.
A largest weight of 2 among 4000 draws is what a standard deviation 7% too small gives.
"""


@dataclass(frozen=True)
class Gaussian:
    """q(x) = N(mean, scale scale') over unconstrained coordinates.

    Attributes
    ----------
    mean : ndarray of shape (D,)
    scale : ndarray of shape (D, D)
        Lower triangular with a positive diagonal.
    """

    mean: np.ndarray
    scale: np.ndarray

    def at(self, z: np.ndarray) -> np.ndarray:
        """Map standard normal draws, shape (..., D), to points."""
        return self.mean + z @ self.scale.T

    @property
    def log_volume(self) -> float:
        """Log determinant of the scale."""
        return float(np.sum(np.log(np.diag(self.scale))))

    def log_density_at(self, z: np.ndarray) -> np.ndarray:
        """Log q at the points that ``z`` maps to."""
        return -0.5 * np.sum(z * z, axis=-1) - self.log_volume - 0.5 * len(self.mean) * math.log(2 * math.pi)

    @property
    def sd(self) -> np.ndarray:
        """Marginal standard deviations, shape (D,)."""
        return np.sqrt(np.sum(np.square(self.scale), axis=1))


@dataclass(frozen=True)
class Quality:
    """How well q covers the posterior.

    Attributes
    ----------
    elbo, elbo_se : float
        Evidence lower bound with every constant, of the ordered data, and its Monte Carlo standard error.
    k_hat : float
        Pareto shape of the importance weights p(y, x) / q(x); NaN when they are equal.
    largest_weight : float
        The largest of them over their mean.
    """

    elbo: float
    elbo_se: float
    k_hat: float
    largest_weight: float

    @property
    def check(self) -> Check:
        """Pass when weights are practically equal, or their tail is light enough for importance sampling."""
        if self.largest_weight <= EQUAL_WEIGHTS:
            return at_most("largest importance weight over mean", self.largest_weight, EQUAL_WEIGHTS)
        return at_most("k_hat", self.k_hat, MAX_K_HAT)


def assess(q: Gaussian, joint: Gradient, rng: np.random.Generator) -> Quality:
    """Estimate the ELBO and k-hat of q with fresh draws."""
    z = rng.standard_normal((SAMPLE, len(q.mean)))
    log_weights = np.array([joint(x)[0] for x in q.at(z)]) - q.log_density_at(z)
    largest = float(np.exp(log_weights.max() - np.logaddexp.reduce(log_weights)) * SAMPLE)
    error = float(log_weights.std() / math.sqrt(SAMPLE))
    return Quality(float(log_weights.mean()), error, pareto_k(log_weights), largest)


def pareto_k(log_weights: np.ndarray) -> float:
    """Return the Pareto shape of importance weights; NaN when they are equal or not finite.

    Notes
    -----
    ``psislw`` wants log *likelihoods* and negates its argument, so it is given the negative of the log weights;
    ``pareto_khat(log_weights=True)`` of arviz-stats 1.3.3 drops the flag and must not be used.
    """
    from arviz_stats.base import array_stats

    if not np.isfinite(log_weights).all() or np.ptp(log_weights) < 1e-9:
        return math.nan
    return float(array_stats.psislw(-log_weights)[1])


def outcome(
    problem: Problem,
    density: Density,
    q: Gaussian,
    sampler: str,
    checks: list[Check],
    facts: dict[str, object],
    trace: dict[str, np.ndarray],
    shape: tuple[int, int],
) -> Outcome:
    """Draw from q, map the draws to the model's parameters, and add the figures of its quality."""
    quality = assess(q, density.joint, problem.rng)
    draws = density.constrain(q.at(problem.rng.standard_normal((*shape, density.size))))
    found = {**asdict(quality), **facts}
    return Outcome(
        draws, sampler, [*checks, quality.check], found, optimization=trace, dims=density.dims, coords=density.coords
    )
