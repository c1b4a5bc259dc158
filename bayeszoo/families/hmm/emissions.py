"""What the states of hidden Markov models emit: what EM, variational Bayes and enumeration need to know of it.

Each kind of emission has a conjugate prior, K states and T rows. Rows whose observation is missing say nothing: their
log density is 0 in every state. Poisson counts are in `counts`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bayeszoo.distributions import dirichlet, frozen
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.errors import NumericalError
from bayeszoo.families.hmm import passes
from bayeszoo.families.hmm.passes import Sums
from bayeszoo.families.hmm.tables import Pair, Part, ProbabilityTable
from bayeszoo.families.mixtures.base import clusters
from bayeszoo.families.mixtures.gaussian_components import ComponentMoments, GaussianComponents, Hyper
from bayeszoo.model.base import Values

OfRows = Callable[[np.ndarray], np.ndarray]
"""Rows, (T,), to the log density of each in each state, (T, K)."""


class Emissions(Part):
    """The prior of what K states emit: parameters of shape (..., K) or (..., K, V), whose leading axes are draws.

    Statistics are what `moments` returns; hyperparameters, of q(theta) and of posteriors, what `updated` does.
    """

    state_axis = -1
    """Axis of the states in the parameters."""

    @abstractmethod
    def seen(self, y: np.ndarray) -> np.ndarray:
        """Say which rows have an observation, (T,)."""

    @abstractmethod
    def log_density(self, params: Values, y: np.ndarray) -> np.ndarray:
        """Log density of each row in each state, (T, K), at one point."""

    @abstractmethod
    def expected_log_density(self, hyper: Any, y: np.ndarray) -> np.ndarray:
        """Return its expectation when the parameters are random, (T, K)."""

    def sums(self, tables: Pair, params: Values, y: np.ndarray, starts: np.ndarray) -> Sums:
        """Return expected statistics of rows in their states at one point, and the log likelihood."""
        return self.smoothed(tables, partial(self.log_density, params), y, starts)

    def expected_sums(self, tables: Pair, hyper: Any, y: np.ndarray, starts: np.ndarray) -> Sums:
        """Return the same of variational Bayes, and the log normalizer of q(z)."""
        return self.smoothed(tables, partial(self.expected_log_density, hyper), y, starts)

    def smoothed(self, tables: Pair, log_density: OfRows, y: np.ndarray, starts: np.ndarray) -> Sums:
        """Return expected statistics given the log density, and the log likelihood."""
        found = passes.smooth(*tables, log_density(y), starts)
        return Sums(found.initial, found.transition, self.moments(found.probabilities, y), found.value)

    @abstractmethod
    def moments(self, each: np.ndarray, y: np.ndarray) -> Any:
        """Return expected statistics under probabilities of the states (T, K)."""

    @abstractmethod
    def log_pairs(self, hyper: Any, params: Values) -> np.ndarray:
        """Log density of the parameters of state k under the distribution of state j, (..., K, K) as [j, k]."""

    @abstractmethod
    def log_evidence(self, paths: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Log density of the rows given paths of states (M, T), parameters integrated out, (M,)."""

    @abstractmethod
    def next_mean(self, params: Values, next_state: np.ndarray) -> np.ndarray:
        """Return the mean of a row, or the probabilities of its symbols, whose state has probabilities (..., K)."""

    def ordered(self, params: Values) -> dict[str, np.ndarray]:
        """Return each parameter in order of size, which labels of the states do not change."""
        return {f"sorted_{name}": np.sort(params[name], axis=self.state_axis) for name in self.own}

    @abstractmethod
    def clusters(self, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return a state for each observed row, (rows,), by what was observed, at random."""

    def degenerate(self, params: Values, y: np.ndarray) -> str:
        """Say why a fitted point is a degenerate maximum; nothing where it is not."""
        return ""


class OfParts(NamedTuple):
    """Expected statistics, or hyperparameters of q(theta), of each part of a model, and the prior of its emissions.

    Of `initial` (K,) and `transition` (K, K) statistics are expected counts, and hyperparameters concentrations.
    """

    initial: np.ndarray
    transition: np.ndarray
    emitted: Any
    emissions: Emissions


class Symbols(ProbabilityTable, Emissions):
    """Categorical(emission_k): a table of shape (K, V), with a Dirichlet prior or known; statistics are counts."""

    state_axis = -2

    def seen(self, y: np.ndarray) -> np.ndarray:
        """Say which codes are no masks."""
        return np.asarray(y) >= 0

    def _rows(self, log_table: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.vstack([log_table.T, np.zeros(len(log_table))])[y]  # the mask, -1, is the last row

    def log_density(self, params: Values, y: np.ndarray) -> np.ndarray:
        """Log probability of each symbol."""
        with np.errstate(divide="ignore"):
            return self._rows(np.log(self.of(params)), y)

    def expected_log_density(self, hyper: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return expected log probabilities."""
        return self._rows(self.expected_log(hyper), y)

    def smoothed(self, tables: Pair, log_density: OfRows, y: np.ndarray, starts: np.ndarray) -> Sums:
        """Count symbols in one compiled pass."""
        return passes.table_sums(*tables, log_density(np.arange(self.prior.shape[1])).T, y, starts)

    def moments(self, each: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return expected counts (K, V)."""
        size = self.prior.shape[1]
        return np.array([np.bincount(y + 1, weights, size + 1)[1:] for weights in each.T])

    def log_pairs(self, hyper: np.ndarray, params: Values) -> np.ndarray:
        """Log Dirichlet densities."""
        if not self.is_free:
            return np.zeros((len(self.prior),) * 2)
        return dirichlet.log_density(np.asarray(params[self.name])[..., None, :, :], hyper[:, None])

    def log_evidence(self, paths: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Log probability of the symbols."""
        K, V = self.prior.shape
        hot = np.eye(V + 1)[y + 1][:, 1:]
        return self.log_evidence_of(np.stack([(paths == k).astype(np.float64) @ hot for k in range(K)], axis=1))

    def next_mean(self, params: Values, next_state: np.ndarray) -> np.ndarray:
        """Return the probabilities of the symbols."""
        return np.sum(next_state[..., :, None] * self.of(params), axis=-2)

    def clusters(self, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return a state for each symbol."""
        K, V = self.prior.shape
        return np.asarray(rng.integers(0, K, V))[y]


class Normals(Emissions):
    """N(means_k, variances_k), variances_k ~ InvGamma(a, scale b), means_k ~ N(m, variances_k / kappa) given these."""

    own, unbounded = ("means", "variances"), ""

    def __init__(self, K: int, m: float, kappa: float, a: float, b: float) -> None:
        self.K, self.free = K, 2 * K
        self.components = GaussianComponents("spherical", K, np.array([m]), kappa, 2 * a, np.array([[2 * b]]))

    def seen(self, y: np.ndarray) -> np.ndarray:
        """Say which numbers are not NaN."""
        return ~np.isnan(y)

    def _filled(self, log_b: OfRows, y: np.ndarray) -> np.ndarray:
        every, seen = np.zeros((len(y), self.K)), self.seen(y)
        every[seen] = log_b(y[seen, None])
        return every

    def log_density(self, params: Values, y: np.ndarray) -> np.ndarray:
        """Log normal density."""
        means, variances = params["means"][:, None], params["variances"]
        return self._filled(lambda rows: self.components.log_density(rows, means, variances), y)

    def expected_log_density(self, hyper: Hyper, y: np.ndarray) -> np.ndarray:
        """Return its expectation under normal-inverse-gamma distributions."""
        return self._filled(lambda rows: self.components.expected_log_density(hyper, rows), y)

    def sums(self, tables: Pair, params: Values, y: np.ndarray, starts: np.ndarray) -> Sums:
        """Add up in one compiled pass, from the means, so that nothing cancels."""
        means, sigmas = np.asarray(params["means"], dtype=np.float64), np.sqrt(params["variances"])
        found = passes.normal_sums(*tables, means, sigmas, y, starts)
        counts, z, squares = found.emitted
        shift = sigmas * z / np.where(counts > 0, counts, 1.0)
        scatter = sigmas**2 * squares - counts * shift**2
        emitted = ComponentMoments(counts, (means + shift)[:, None], scatter, self.components.structure)
        return found._replace(emitted=emitted)

    def moments(self, each: np.ndarray, y: np.ndarray) -> ComponentMoments:
        """Return expected counts, means and scatters."""
        seen = self.seen(y)
        return self.components.moments(each[seen], y[seen, None])

    def updated(self, stats: ComponentMoments) -> Hyper:
        """Return normal-inverse-gamma distributions."""
        return self.components.updated(stats)

    def mode(self, stats: ComponentMoments, flat: bool) -> dict[str, np.ndarray]:
        """Return the joint mode, or with ``flat`` weighted means and variances."""
        try:
            found = self.components.flat_mode(stats) if flat else self.components.mode(self.components.updated(stats))
        except NumericalError:
            raise NumericalError(
                "a state has no rows, or only equal ones: as its variance goes to 0 the likelihood grows without bound"
            ) from None
        return {"means": found["means"][:, 0], "variances": found["covariances"]}

    def middle(self, hyper: Hyper) -> dict[str, np.ndarray]:
        """Return means, and the inverses of the mean precisions."""
        return {"means": hyper.m[:, 0], "variances": hyper.psi / hyper.nu}

    def log_prior(self, params: Values) -> Any:
        """Log normal-inverse-gamma density."""
        return self.components.log_prior(np.asarray(params["means"])[..., None], params["variances"])

    def divergence(self, hyper: Hyper) -> float:
        """Return that of normal-inverse-gamma distributions."""
        return self.components.divergence(hyper)

    def posterior(self, hyper: Hyper) -> list[Posterior]:
        """Return means, Student t, and variances, inverse gamma, jointly."""

        def draw(size: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
            drawn = self.components.rvs(hyper, size, rng)
            return {"means": drawn["means"][..., 0], "variances": drawn["covariances"]}

        def log_density(params: Values) -> float:
            means = np.asarray(params["means"])[..., None]
            return float(self.components.log_posterior(hyper, means, params["variances"]))

        means = frozen.t(hyper.nu, loc=hyper.m[:, 0], scale=np.sqrt(hyper.psi / hyper.nu / hyper.kappa))
        variances = frozen.invgamma(hyper.nu / 2, scale=hyper.psi / 2)
        return [Posterior({"means": means, "variances": variances}, draw, log_density)]

    def log_pairs(self, hyper: Hyper, params: Values) -> np.ndarray:
        """Log normal-inverse-gamma densities."""
        return self.components.log_pairs(hyper, np.asarray(params["means"])[..., None], params["variances"])

    def log_evidence(self, paths: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Log density of the numbers."""
        seen = self.seen(y)
        return self.components.log_evidence(y[seen, None], paths[:, seen])

    def next_mean(self, params: Values, next_state: np.ndarray) -> np.ndarray:
        """Return the mean."""
        return np.sum(next_state * params["means"], axis=-1)

    def clusters(self, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the nearest of K rows, chosen by k-means++."""
        return clusters(y[:, None], self.K, rng)

    def degenerate(self, params: Values, y: np.ndarray) -> str:
        """Say so where a variance is below 1e-5 of that of all rows."""
        share, state = np.min(params["variances"]) / np.nanvar(y), np.argmin(params["variances"]) + 1
        why = f"state {state} has collapsed: its variance is {share:.1g} of that of all rows"
        return "" if share >= 1e-5 else why
