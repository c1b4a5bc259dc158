"""Numbers that the states of a hidden Markov model emit: normal, with a conjugate prior of each state of its own.

Means or variances may be known, which leaves a normal prior of the means, or an inverse gamma prior of the variances.
Murphy 2007, Conjugate Bayesian analysis of the Gaussian distribution, has all three.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from bayeszoo.distributions import frozen
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.distributions.special import digamma_less_log, gamma_divergence, log_rising
from bayeszoo.errors import NumericalError
from bayeszoo.families.hmm.emissions import Emissions, log_gamma
from bayeszoo.families.mixtures.base import clusters
from bayeszoo.families.statistics.patterns import distinct
from bayeszoo.model.base import Values

SMALLEST = 1e-12
"""Variance of a state, in units of that of all rows, below which the likelihood is taken to have no maximum."""


class Moments(NamedTuple):
    """Expected counts, means and sums of squares about these, of states or sets of rows; of empty ones any mean."""

    n: np.ndarray
    mean: np.ndarray
    scatter: np.ndarray


class Hyper(NamedTuple):
    """Distributions of the states, each (K,): variance ~ InvGamma(a, scale b), mean ~ N(m, variance / kappa).

    Of known means ``m`` are these, and ``kappa`` is infinite; of known variances ``a`` and ``b`` mean nothing.
    """

    m: np.ndarray
    kappa: np.ndarray
    a: np.ndarray
    b: np.ndarray


class Normals(Emissions):
    """N(means_k, variances_k), variances_k ~ InvGamma(a_k, scale b_k), means_k ~ N(m_k, variances_k / kappa_k).

    ``known`` may hold the means or the variances, (K,), which then are no parameters and have no prior.
    """

    unbounded = ""

    def __init__(self, prior: Mapping[str, np.ndarray], known: Mapping[str, np.ndarray]) -> None:
        m, kappa, a, b = (np.asarray(prior[name], dtype=np.float64) for name in ("m0", "kappa0", "a0", "b0"))
        self.K, self.known = len(m), dict(known)
        self.means, self.variances = known.get("means"), known.get("variances")
        if self.means is not None:  # as if they had been seen in any number of rows
            m, kappa = self.means, np.full(self.K, np.inf)
        self.prior = Hyper(m, kappa, a, b)
        self.own = tuple(name for name in ("means", "variances") if name not in known)
        self.free = self.K * len(self.own)

    def _at(self, params: Values) -> tuple[np.ndarray, np.ndarray]:
        """Return means and variances at one point, or at draws; known ones have no leading axes."""
        both = {**params, **self.known}
        return np.asarray(both["means"], dtype=np.float64), np.asarray(both["variances"], dtype=np.float64)

    def seen(self, y: np.ndarray) -> np.ndarray:
        """Say which numbers are not NaN."""
        return ~np.isnan(y)

    def log_density(self, params: Values, y: np.ndarray) -> np.ndarray:
        """Log normal density."""
        means, variances = (values[..., None, :] for values in self._at(params))
        return self._or_zero(log_normal(y[:, None], means, variances), y)

    def expected_log_density(self, hyper: Hyper, y: np.ndarray) -> np.ndarray:
        """Return its expectation; that of an inverse variance is a / b."""
        gap = -1 / hyper.kappa + (digamma_less_log(hyper.a) if self.variances is None else 0.0)
        return self._or_zero(log_normal(y[:, None], hyper.m, self._typical(hyper)) + gap / 2, y)

    def _or_zero(self, densities: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return densities (..., T, K), but 0 where nothing was seen."""
        return densities if (seen := self.seen(y)).all() else np.where(seen[:, None], densities, 0.0)

    def _typical(self, hyper: Hyper) -> np.ndarray:
        """Return the inverses of the mean precisions."""
        return hyper.b / hyper.a if self.variances is None else self.variances

    def moments(self, each: np.ndarray, y: np.ndarray) -> Moments:
        """Return expected counts, means and scatters."""
        if not (seen := self.seen(y)).all():  # else nothing is copied
            each, y = each[seen], y[seen]
        centre = y.mean() if len(y) else 0.0  # near 1e9 nothing of the spread about it is lost
        rows, n = y - centre, each.sum(axis=0)
        shift = each.T @ rows / np.where(n > 0, n, 1.0)
        scatter = np.array([weights @ (rows - own) ** 2 for weights, own in zip(each.T, shift, strict=True)])
        return Moments(n, centre + shift, scatter)

    def pooled(self, stats: Moments, other: Moments) -> Moments:
        """Return the counts, means and scatters of both, in the update of Chan, Golub and LeVeque (1983)."""
        n, shift = stats.n + other.n, other.mean - stats.mean
        share = other.n / np.where(n > 0, n, 1.0)
        return Moments(n, stats.mean + shift * share, stats.scatter + other.scatter + stats.n * share * shift**2)

    def _growth(self, stats: Moments) -> np.ndarray:
        """Return what rows add to the sum of squares about the mean of the prior; sets of rows are leading axes."""
        n, mean, scatter = stats
        return np.asarray(scatter + n / (1 + n / self.prior.kappa) * (mean - self.prior.m) ** 2)

    def updated(self, stats: Moments) -> Hyper:
        """Return normal-inverse-gamma distributions."""
        m, kappa, a, b = self.prior
        moved = stats.mean - (stats.mean - m) / (1 + stats.n / kappa)
        return Hyper(
            m if self.means is not None else moved, kappa + stats.n, a + stats.n / 2, b + self._growth(stats) / 2
        )

    def mode(self, stats: Moments, flat: bool) -> dict[str, np.ndarray]:
        """Return the joint mode, or with ``flat`` weighted means and variances."""
        hyper = self.updated(stats)
        # a mean with a prior adds 1/2 to the power of its variance
        mode = {"means": hyper.m, "variances": hyper.b / (hyper.a + (1.0 if self.means is not None else 1.5))}
        if flat:
            mode = self._flat_mode(stats)
        return {name: mode[name] for name in self.own}

    def _flat_mode(self, stats: Moments) -> dict[str, np.ndarray]:
        n, mean, scatter = stats
        if self.variances is not None and not np.all(n > 0):
            raise NumericalError("a state has no rows, and its mean may be anything: use a smaller K")
        pooled = _variance_of_all(stats)
        about = scatter if self.means is None else scatter + n * (mean - self.means) ** 2
        variances = about / np.where(n > 0, n, 1.0)
        if self.variances is None and not np.all((n > 0) & (variances > SMALLEST * pooled)):
            raise NumericalError(
                "a state has no rows, or only equal ones: as its variance goes to 0 the likelihood grows without bound"
            )
        return {"means": mean, "variances": variances}

    def middle(self, hyper: Hyper) -> dict[str, np.ndarray]:
        """Return means, and the inverses of the mean precisions."""
        return {name: value for name, value in self._middle(hyper).items() if name in self.own}

    def _middle(self, hyper: Hyper) -> dict[str, np.ndarray]:
        return {"means": hyper.m, "variances": self._typical(hyper)}

    def log_prior(self, params: Values) -> Any:
        """Log density of the prior."""
        return self._log_states(self.prior, *self._at(params)).sum(axis=-1)

    def _log_states(self, hyper: Hyper, means: np.ndarray, variances: np.ndarray) -> np.ndarray:
        """Log density of the parameters of each state, of what is not known."""
        of_means = 0.0 if self.means is not None else log_normal(means, hyper.m, variances / hyper.kappa)
        if self.variances is not None:
            return np.asarray(of_means)
        return np.asarray(of_means + log_gamma(1 / variances, hyper.a, hyper.b) - 2 * np.log(variances))

    def divergence(self, hyper: Hyper) -> float:
        """Return KL(q || prior) in nats."""
        prior, total = self.prior, 0.0
        if self.variances is None:
            total += float(np.sum(gamma_divergence(hyper.a, hyper.b, prior.a, prior.b)))
        if self.means is None:
            ratio, squares = prior.kappa / hyper.kappa, (hyper.m - prior.m) ** 2 / self._typical(hyper)
            total += float(np.sum(ratio - 1 - np.log(ratio) + prior.kappa * squares) / 2)
        return total

    def posterior(self, hyper: Hyper) -> list[Posterior]:
        """Return means, Student t or normal, and variances, inverse gamma, jointly."""

        def log_density(params: Values) -> np.ndarray:
            return np.asarray(self._log_states(hyper, *self._at(params)).sum(axis=-1))

        marginals = self._marginals(hyper)
        if len(self.own) == 1:
            return [Posterior(marginals, log_density=log_density)]
        return [Posterior(marginals, lambda size, rng: self._draw(hyper, size, rng), log_density)]

    def _marginals(self, hyper: Hyper) -> dict[str, Any]:
        scale = np.sqrt(self._typical(hyper) / hyper.kappa)
        of_means = frozen.norm if self.variances is not None else lambda loc, scale: frozen.t(2 * hyper.a, loc, scale)
        every = {"means": of_means(hyper.m, scale), "variances": frozen.invgamma(hyper.a, scale=hyper.b)}
        return {name: every[name] for name in self.own}

    def _draw(self, hyper: Hyper, size: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
        with np.errstate(divide="ignore", over="ignore"):
            variances = hyper.b / rng.standard_gamma(hyper.a, (*size, self.K))
        if not np.all(np.isfinite(variances)):
            raise NumericalError("variances cannot be drawn: the shape of their distribution is too small")
        z = rng.standard_normal((*size, self.K))
        return {"means": hyper.m + np.sqrt(variances / hyper.kappa) * z, "variances": variances}

    def log_pairs(self, hyper: Hyper, params: Values) -> np.ndarray:
        """Log densities of the states' parameters under the distributions of the states."""
        each = Hyper(*(values[:, None] for values in hyper))
        pairs = self._log_states(each, *(values[..., None, :] for values in self._at(params)))
        return np.asarray(pairs)

    def log_evidence(self, paths: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Log density of the numbers; the statistics of each set of rows that occurs are computed once."""
        seen = self.seen(y)
        sets = paths[:, None, seen] == np.arange(self.K)[:, None]
        different, which = distinct(sets.reshape(math.prod(sets.shape[:2]), int(seen.sum())))
        stats = self.moments(different.T.astype(np.float64), y[seen])
        of_sets = self._log_evidence(Moments(*(values[:, None] for values in stats)))
        return np.asarray(of_sets[which.reshape(sets.shape[:2]), np.arange(self.K)].sum(axis=-1))

    def _log_evidence(self, stats: Moments) -> np.ndarray:
        """Log density of sets of rows in each state, (sets, K)."""
        prior, n, growth = self.prior, stats.n, self._growth(stats)
        of_means = -np.log1p(n / prior.kappa) / 2
        if self.variances is not None:
            return np.asarray(of_means - n / 2 * np.log(2 * math.pi * self.variances) - growth / (2 * self.variances))
        constant = log_rising(prior.a, n / 2) - n / 2 * np.log(2 * math.pi * prior.b)
        return np.asarray(of_means + constant - (prior.a + n / 2) * np.log1p(growth / (2 * prior.b)))

    def next_mean(self, params: Values, next_state: np.ndarray) -> np.ndarray:
        """Return the mean."""
        return np.sum(next_state * {**params, **self.known}["means"], axis=-1)

    def clusters(self, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the nearest of K rows, chosen by k-means++."""
        return clusters(y[:, None], self.K, rng)

    def degenerate(self, params: Values, stats: Moments) -> str:
        """Say so where a variance is below 1e-5 of that of all rows."""
        if self.variances is not None or np.min(params["variances"]) >= 1e-5 * (pooled := _variance_of_all(stats)):
            return ""
        share, state = np.min(params["variances"]) / pooled, np.argmin(params["variances"]) + 1
        return f"state {state} has collapsed: its variance is {share:.1g} of that of all rows"


def _variance_of_all(stats: Moments) -> float:
    """Return the variance of all rows, from the statistics of each state."""
    n, mean, scatter = stats
    total = max(float(n.sum()), 1.0)
    return float(scatter.sum() + n @ (mean - n @ mean / total) ** 2) / total


def log_normal(x: Any, mean: Any, variance: Any) -> np.ndarray:
    """Log density of normal distributions."""
    return np.asarray(-np.log(2 * math.pi * variance) / 2 - ((x - mean) / np.sqrt(2 * variance)) ** 2)
