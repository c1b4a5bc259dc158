"""A Gaussian approximation in unconstrained space, and how good it is: ELBO and Pareto k-hat."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from bayeszoo.errors import NumericalError
from bayeszoo.foundation.gate import MAX_K_HAT, Check, pareto_k
from bayeszoo.foundation.numerics.constants import LOG_2_PI
from bayeszoo.foundation.numerics.optimize import Gradient, Mode
from bayeszoo.inference.problem import LOG_WEIGHT, Outcome, Problem

NONE = np.empty(0)
DRAWS = 4000  # least number of draws for the ELBO and k-hat
GOOD_K_HAT = 0.5
MAX_DRAWS = 64_000
"""Number of draws at which a k-hat above its limit is believed.

At the optimum of the ELBO the weights of a *good* fit have a local maximum where q is dense. As long as the fitted tail
includes this maximum, the Pareto shape describes two populations: for 980 coin flips, weights within 10% of each other
have k-hat 3.5 with 4,000 draws and 0.2 with 64,000.
"""

_EVIDENCE = {"log_evidence", "elbo", "elbo_se", "importance_evidence", "importance_evidence_se"}


@dataclass(frozen=True)
class Gaussian:
    """q(x) = N(mean, scale scale') over unconstrained coordinates."""

    mean: np.ndarray  # shape (D,)
    scale: np.ndarray  # shape (D, D), lower triangular with a positive diagonal

    def at(self, z: np.ndarray) -> np.ndarray:
        """Map standard normal draws, shape (..., D), to points."""
        return self.mean + z @ self.scale.T

    @property
    def log_volume(self) -> float:
        """Log determinant of the scale."""
        return float(np.sum(np.log(np.diag(self.scale))))

    def log_density_at(self, z: np.ndarray) -> np.ndarray:
        """Log q at the points that ``z`` maps to."""
        return -0.5 * np.sum(z * z, axis=-1) - self.log_volume - 0.5 * len(self.mean) * LOG_2_PI

    @property
    def sd(self) -> np.ndarray:
        """Marginal standard deviations, shape (D,)."""
        return np.sqrt(np.sum(np.square(self.scale), axis=1))


def weighed(q: Gaussian, joint: Gradient, rng: np.random.Generator, draws: int = DRAWS) -> np.ndarray:
    """Return log p(y, x) / q(x) at draws of q, shape (draws,)."""
    return log_weights(q, joint, rng.standard_normal((draws, len(q.mean))))


def log_weights(q: Gaussian, joint: Gradient, z: np.ndarray) -> np.ndarray:
    """Return log p(y, x) / q(x) at the points of standard normal draws z (..., D), shape (...)."""
    log_joint = np.array([joint(x)[0] for x in q.at(z).reshape(-1, len(q.mean))])
    return log_joint.reshape(z.shape[:-1]) - q.log_density_at(z)


def assess(q: Gaussian, joint: Gradient, rng: np.random.Generator, own: np.ndarray = NONE) -> dict[str, float]:
    """Return the ELBO of the ordered data, its Monte Carlo error, k-hat, and the log evidence by importance sampling.

    The ELBO has every constant. ``own`` are the log weights of draws that were made.
    """
    return assessed(lambda draws: weighed(q, joint, rng, draws), own)


def assessed(weigh: Callable[[int], np.ndarray], own: np.ndarray = NONE) -> dict[str, float]:
    """Return the figures of `assess`; if k-hat stays too high, importance sampling gives no evidence."""
    weights, k_hat = until_believed(weigh, own)
    elbo, error = float(weights.mean()), float(weights.std() / math.sqrt(len(weights)))
    figures = {"elbo": elbo, "elbo_se": error, "k_hat": k_hat, "k_hat_draws": len(weights)}
    return {**figures, **_evidence(weights)} if k_hat <= GOOD_K_HAT else figures


def until_believed(weigh: Callable[[int], np.ndarray], own: np.ndarray = NONE) -> tuple[np.ndarray, float]:
    """Return log weights of q, to ``own`` as many added as it takes to believe their Pareto shape, and that shape.

    ``weigh(N)`` returns log p(y, x) / q(x) at N draws of q. The shape is -inf if all weights are equal.
    """
    weights = np.concatenate([own, weigh(max(DRAWS - len(own), 0))])
    k_hats = [pareto_k(weights)]
    while not _is_believed(k_hats) and len(weights) < MAX_DRAWS:
        weights = np.concatenate([weights, weigh(3 * len(weights))])
        k_hats.append(pareto_k(weights))
    return weights, k_hats[-1]


def _evidence(log_weights: np.ndarray) -> dict[str, float]:
    """Return the log of the mean weight, and its Monte Carlo error."""
    top = float(np.max(log_weights))
    weights = np.exp(log_weights - top)
    error = float(weights.std() / weights.mean() / math.sqrt(len(weights)))
    return {"importance_evidence": math.log(weights.mean()) + top, "importance_evidence_se": error}


def _is_believed(k_hats: list[float]) -> bool:
    """Believe a good k-hat at once, a passable one when four times the draws confirm it, a bad one only at the end."""
    return k_hats[-1] <= GOOD_K_HAT or (len(k_hats) > 1 and max(k_hats[-2:]) <= MAX_K_HAT)


def outcome(
    problem: Problem,
    q: Gaussian,
    sampler: str,
    checks: list[Check],
    facts: Mapping[str, Any],
    trace: Mapping[str, np.ndarray],
    shape: tuple[int, int],
) -> Outcome:
    """Draw parameters of the model from q, and add to the facts how well q covers the posterior.

    Under a flat prior, log evidence and ELBO are withheld, and the fact ``evidence_withheld`` gives the reason.
    """
    from bayeszoo.compile.density import no_evidence

    density = problem.density
    z = problem.rng.standard_normal((*shape, density.size))
    draws, weights = density.constrain(q.at(z)), log_weights(q, density.joint, z)
    facts = {**assess(q, density.joint, problem.rng, weights.ravel()), **facts}
    if undefined := no_evidence(problem.declared):
        problem.reporter.say(undefined)
        facts = {**facts, **dict.fromkeys(facts.keys() & _EVIDENCE), "evidence_withheld": undefined}
    return Outcome(draws, sampler, checks, facts, {LOG_WEIGHT: weights}, trace, density.dims, density.coords)


def gaussian(mode: Mode) -> Gaussian:
    """Return the Gaussian with the mode's curvature; raise `NumericalError` unless that is positive definite."""
    return of_precision(mode.x, mode.precision)


def of_precision(mean: np.ndarray, precision: np.ndarray) -> Gaussian:
    """Return the Gaussian with precision (D, D); raise `NumericalError` unless that is positive definite."""
    try:
        upper = np.linalg.cholesky(precision).T
    except np.linalg.LinAlgError:
        raise NumericalError(
            "the curvature at the mode is not positive definite: no Laplace approximation", "not_positive_definite"
        ) from None
    # precision = U'U gives covariance = U^-1 U^-T; its lower Cholesky factor comes from one more factorization
    inverse = scipy.linalg.solve_triangular(upper, np.eye(len(upper)))
    return Gaussian(mean, np.linalg.cholesky(inverse @ inverse.T))
