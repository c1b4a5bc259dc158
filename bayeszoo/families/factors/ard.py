"""What Bayesian PCA has beside its declaration: statistics, EM, variational Bayes, and what rotations leave alone."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from bayeszoo.distributions.posterior import Posterior
from bayeszoo.errors import NumericalError
from bayeszoo.families.factors import ard_posterior, steps
from bayeszoo.families.factors.base import FactorModel
from bayeszoo.families.statistics.patterns import Patterns, as_patterns
from bayeszoo.model.accumulated import Accumulated
from bayeszoo.model.base import Values
from bayeszoo.model.capabilities import Expectation, Symmetric, Variational

MOST_COPIES = 4
"""Factors up to which q(theta) is averaged over their 2^q q! orders and signs."""
ALL_ENTRIES = 6
"""Columns up to which every entry of the covariance is looked at."""


class ArdModel(FactorModel, Variational, Symmetric, family=True):
    """Rows N(mean, W W' + variance I), each column of W with a relevance precision of its own.

    Parameters are ``mean`` (D,), ``loadings`` (D, q), ``alpha`` (q,) and ``variance``. The likelihood does not see
    rotations of the loadings; the prior does, but not the order of the factors, nor their signs. The steps take
    statistics as well as rows. q(theta) is an `ard_posterior.Factored`.
    """

    signed = ("loadings",)

    @abstractmethod
    def prior(self, columns: int) -> ard_posterior.Prior:
        """Return the prior of the parameters for rows of D numbers, which must be more than the factors."""

    def start(self, data: Any, rng: np.random.Generator) -> dict[str, Any]:
        """Return parameters to climb from: loadings at random, as long as the data are wide."""
        stats = as_patterns(data)
        prior, variances = self.prior(stats.size), stats.column_variances()
        seen = np.isfinite(variances)
        scale = float(np.mean(variances[seen])) if seen.any() else prior.precision[1] / prior.precision[0]
        mean = np.where(stats.each_column()[0] > 0, stats.each_column()[1], prior.centre)
        loadings = rng.normal(0.0, np.sqrt(scale), (stats.size, self.q))
        return {"mean": mean, "loadings": loadings, "alpha": np.full(self.q, 1 / scale), "variance": scale}

    def e_step(self, params: Values, data: Any) -> Expectation:
        """Return expected statistics and the log likelihood at the parameters."""
        return steps.e_step(steps.Coefficients.known(params), as_patterns(data))

    def m_step(self, stats: steps.Complete, flat: bool = False) -> dict[str, Any]:
        """Return parameters with a higher expected log joint density."""
        if flat:
            raise NumericalError(
                "no maximum-likelihood estimate: the likelihood depends neither on alpha nor on rotations of the "
                "loadings; use ppca"
            )
        return self.prior(len(stats.centre)).mode(stats)

    def vb_start(self, data: Any, rng: np.random.Generator) -> ard_posterior.Factored:
        """Return q(theta) about parameters at random."""
        at = self.start(data, rng)
        mean = np.column_stack([at["mean"], at["loadings"]])
        spread = 0.01 * at["variance"] * np.eye(self.q + 1)
        return ard_posterior.Factored(
            mean, np.tile(spread, (len(mean), 1, 1)), (1.0, 1 / at["alpha"]), (1.0, at["variance"])
        )

    def vb_e_step(self, q: ard_posterior.Factored, data: Any) -> Expectation:
        """Return expected statistics under the best q(z), and the sum of its log normalizers."""
        return steps.e_step(q.expected, as_patterns(data))

    def vb_m_step(self, stats: steps.Complete) -> ard_posterior.Factored:
        """Return a better q(theta): each of its factors in turn."""
        return self.prior(len(stats.centre)).updated(stats)

    def divergence(self, q: ard_posterior.Factored) -> float:
        """Return KL(q(theta) || prior) in nats."""
        return self.prior(len(q.mean)).divergence(q)

    def vb_posterior(self, q: ard_posterior.Factored) -> Posterior:
        """Return q(theta): each column's coefficients Gaussian, alpha Gamma, the variance inverse gamma."""
        return ard_posterior.posterior(q)

    def vb_log_density(self, q: ard_posterior.Factored, params: Values) -> np.ndarray:
        """Log density of q(theta), of up to 4 factors averaged over their orders and signs; leading axes are draws."""
        turns = ard_posterior.signed_permutations(self.q) if self.q <= MOST_COPIES else [np.eye(self.q)]
        return ard_posterior.log_density(q, params, turns)

    def occupied(self, q: ard_posterior.Factored) -> int:
        """Return how many factors are switched on: their loadings are larger than the uncertainty of these."""
        return int(np.sum(q.switched_on))

    def exchangeable(self) -> str:
        """Return the axis whose labels mean nothing; the signs of the loadings mean nothing either."""
        return "factor"

    def invariants(self, params: Values, data: Any) -> dict[str, Any]:
        """Return quantities that depend neither on the order of the factors nor on their signs; leading axes are draws.

        The cosines are of the principal angles between the loadings and the q leading eigenvectors of the rows'
        covariance, largest first.
        """
        stats = data.stats if isinstance(data, Accumulated) else as_patterns(data)
        W, variance = np.asarray(params["loadings"]), np.asarray(params["variance"])
        covariance = W @ W.mT + variance[..., None, None] * np.eye(stats.size)
        basis = np.linalg.svd(W, full_matrices=False)[0]
        return {
            "mean": np.asarray(params["mean"]),
            "covariance": covariance[..., *_entries(stats.size)],
            "variance": variance,
            "sorted_log_alpha": np.sort(np.log(params["alpha"]), axis=-1),
            "log_likelihood": self.log_likelihood(stats, params),
            "cosines": np.linalg.svd(basis.mT @ steps.leading_axes(stats, self.q), compute_uv=False),
        }

    def remarks(self, stats: Patterns, data: Values) -> tuple[str, ...]:
        """Say so where there is one row, or a column is constant."""
        variances = stats.column_variances()
        still = [str(name) for name, one in zip(data["column"], variances, strict=True) if np.isnan(one)]
        if stats.rows == 1:
            return ("there is one row only: the prior says how rows vary",)
        return (f"column {', '.join(still)} does not vary",) if still and stats.rows else ()


def _entries(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return indices of entries of the covariance: all, or of many columns the diagonal and that beside it."""
    rows, columns = np.triu_indices(size)
    near = (columns - rows <= 1) | (size <= ALL_ENTRIES)
    return rows[near], columns[near]
