"""What the states of hidden Markov models emit, with conjugate priors: symbols, normal numbers, Poisson counts.

Each class has the densities, posteriors, modes and divergences that EM, variational Bayes and enumeration need, for K
states and T rows. Rows whose observation is missing say nothing: their log density is 0 in every state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
import scipy
from scipy.special import digamma, gammaln

from bayeszoo import kmeans
from bayeszoo.component_moments import ComponentMoments, Hyper
from bayeszoo.errors import NumericalError
from bayeszoo.families import Posterior, log_rising
from bayeszoo.gaussian_components import GaussianComponents
from bayeszoo.hmm_tables import Table
from bayeszoo.model import Values


class Emissions(ABC):
    """The prior of what K states emit.

    Statistics are what `moments` returns; hyperparameters, of q(theta) and of posteriors, what `updated` does.

    Attributes
    ----------
    own : tuple of str
        The parameters, of shape (..., K) or (..., K, V); leading axes are draws. None where they are known.
    K : int
    """

    own: tuple[str, ...]
    K: int

    @property
    @abstractmethod
    def free(self) -> int:
        """How many numbers they add to those that the likelihood is maximized over."""

    @property
    @abstractmethod
    def unbounded(self) -> str:
        """Why the prior density has no maximum, if it has none."""

    @abstractmethod
    def log_density(self, params: Values, y: np.ndarray) -> np.ndarray:
        """Log density of each row in each state, (T, K), at one point."""

    @abstractmethod
    def expected_log_density(self, hyper: Any, y: np.ndarray) -> np.ndarray:
        """Return its expectation when the parameters are random, (T, K)."""

    @abstractmethod
    def moments(self, each: np.ndarray, y: np.ndarray) -> Any:
        """Return expected statistics under probabilities of the states (T, K)."""

    @abstractmethod
    def updated(self, stats: Any) -> Any:
        """Return the posterior given expected statistics."""

    @abstractmethod
    def mode(self, stats: Any, flat: bool) -> dict[str, np.ndarray]:
        """Return the mode of the posterior given expected statistics or, with ``flat``, of the likelihood."""

    @abstractmethod
    def middle(self, hyper: Any) -> dict[str, np.ndarray]:
        """Return a point in the middle of a distribution, never on the edge."""

    @abstractmethod
    def log_prior(self, params: Values) -> Any:
        """Log density of the prior, (...,)."""

    @abstractmethod
    def divergence(self, hyper: Any) -> float:
        """Return KL(q || prior) in nats."""

    @abstractmethod
    def posterior(self, hyper: Any) -> list[Posterior]:
        """Return the distribution of the parameters, if there are any."""

    @abstractmethod
    def log_pairs(self, hyper: Any, params: Values) -> np.ndarray:
        """Log density of the parameters of state k under the distribution of state j, (..., K, K) as [j, k]."""

    @abstractmethod
    def log_evidence(self, paths: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Log density of the rows given paths of states (M, T), parameters integrated out, (M,)."""

    @abstractmethod
    def next_mean(self, params: Values, next_state: np.ndarray) -> np.ndarray:
        """Return the mean of a row, or the probabilities of its symbols, whose state has probabilities (..., K)."""

    @abstractmethod
    def ordered(self, params: Values) -> dict[str, np.ndarray]:
        """Return parameters in order of size where they have one, which do not depend on labels."""

    @abstractmethod
    def clusters(self, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return a state for each row with an observation, chosen by its value, at random."""

    @abstractmethod
    def seen(self, y: np.ndarray) -> np.ndarray:
        """Say which rows have an observation, (T,)."""

    def degenerate(self, params: Values, y: np.ndarray) -> str:
        """Say why a fitted point is a degenerate maximum; nothing where it is not."""
        return ""


class Symbols(Emissions):
    """Categorical(emission_k).

    Parameters
    ----------
    table : Table
        ``emission``, of shape (K, V).
    """

    def __init__(self, table: Table) -> None:
        self.table, self.K = table, len(table.prior)
        self.own = (table.name,) if table.is_free else ()

    @property
    def free(self) -> int:
        """Return K (V - 1)."""
        return self.table.free

    @property
    def unbounded(self) -> str:
        """Say so where a concentration is below 1."""
        if self.own and self.table.prior.shape[1] > 1 and np.any(self.table.prior < 1):
            return "eta < 1: it grows without bound as the probability of a symbol goes to 0"
        return ""

    def seen(self, y: np.ndarray) -> np.ndarray:
        """Say which codes are no masks."""
        return np.asarray(y) >= 0

    def _rows(self, log_table: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.vstack([log_table.T, np.zeros(self.K)])[y]  # the mask, -1, is the last row

    def log_density(self, params: Values, y: np.ndarray) -> np.ndarray:
        """Log probability of each symbol."""
        with np.errstate(divide="ignore"):
            return self._rows(np.log(self.table.of(params)), y)

    def expected_log_density(self, hyper: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return expected log probabilities."""
        return self._rows(self.table.expected_log(hyper), y)

    def moments(self, each: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return expected counts (K, V)."""
        size = self.table.prior.shape[1]
        return np.array([np.bincount(y + 1, weights, size + 1)[1:] for weights in each.T])

    def updated(self, stats: np.ndarray) -> np.ndarray:
        """Return concentrations."""
        return self.table.updated(stats)

    def mode(self, stats: np.ndarray, flat: bool) -> dict[str, np.ndarray]:
        """Return shares of the counts, with pseudo-counts unless ``flat``."""
        return self.table.mode(stats, flat)

    def middle(self, hyper: np.ndarray) -> dict[str, np.ndarray]:
        """Return means."""
        return self.table.mean(hyper)

    def log_prior(self, params: Values) -> Any:
        """Log Dirichlet density."""
        return self.table.log_prior(params)

    def divergence(self, hyper: np.ndarray) -> float:
        """Return that of Dirichlet distributions."""
        return self.table.divergence(hyper)

    def posterior(self, hyper: np.ndarray) -> list[Posterior]:
        """Return Dirichlet distributions."""
        return self.table.posterior(hyper)

    def log_pairs(self, hyper: np.ndarray, params: Values) -> np.ndarray:
        """Log Dirichlet densities."""
        paired = {name: params[name][..., None, :, :] for name in self.own}
        rows = [Table(self.table.name, alpha, None) for alpha in hyper]
        if not self.own:
            return np.zeros((self.K, self.K))
        each = [row.log_density(row.prior, {self.own[0]: params[self.own[0]]}) for row in rows]
        del paired
        return np.stack(each, axis=-2)

    def log_evidence(self, paths: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Log probability of the symbols."""
        hot = np.eye(self.table.prior.shape[1] + 1)[y + 1][:, 1:]
        counts = np.stack([(paths == k).astype(np.float64) @ hot for k in range(self.K)], axis=1)
        return self.table.log_evidence(counts)

    def next_mean(self, params: Values, next_state: np.ndarray) -> np.ndarray:
        """Return the probabilities of the symbols."""
        return np.sum(next_state[..., :, None] * self.table.of(params), axis=-2)

    def ordered(self, params: Values) -> dict[str, np.ndarray]:
        """Return the probabilities of each symbol in order of size."""
        return {f"sorted_{name}": np.sort(params[name], axis=-2) for name in self.own}

    def clusters(self, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return a state for each symbol."""
        return rng.integers(0, self.K, self.table.prior.shape[1])[y]


class Normals(Emissions):
    """N(means_k, variances_k), variances_k ~ InvGamma(a, scale b), means_k | variances_k ~ N(m, variances_k / kappa).

    Parameters
    ----------
    K : int
    m, kappa : float
        Prior mean of each mean, and how many rows it is worth.
    a, b : float
        Shape and scale of the prior of a variance.
    """

    unbounded = ""
    own: ClassVar[tuple[str, ...]] = ("means", "variances")  # type: ignore[misc]

    def __init__(self, K: int, m: float, kappa: float, a: float, b: float) -> None:
        self.K = K
        self.components = GaussianComponents("spherical", K, np.array([m]), kappa, 2 * a, np.array([[2 * b]]))

    @property
    def free(self) -> int:
        """Return 2 K."""
        return self.components.free

    def seen(self, y: np.ndarray) -> np.ndarray:
        """Say which numbers are not NaN."""
        return ~np.isnan(y)

    def _filled(self, log_b: Any, y: np.ndarray) -> np.ndarray:
        made, seen = np.zeros((len(y), self.K)), self.seen(y)
        made[seen] = log_b(y[seen, None])
        return made

    def log_density(self, params: Values, y: np.ndarray) -> np.ndarray:
        """Log normal density."""
        means, variances = params["means"][:, None], params["variances"]
        return self._filled(lambda rows: self.components.log_density(rows, means, variances), y)

    def expected_log_density(self, hyper: Hyper, y: np.ndarray) -> np.ndarray:
        """Return its expectation under normal-inverse-gamma distributions."""
        return self._filled(lambda rows: self.components.expected_log_density(hyper, rows), y)

    def moments(self, each: np.ndarray, y: np.ndarray) -> ComponentMoments:
        """Return expected counts, means and scatters."""
        seen = self.seen(y)
        return self.components.moments(each[seen], y[seen, None])

    def updated(self, stats: ComponentMoments) -> Hyper:
        """Return normal-inverse-gamma distributions."""
        return self.components.updated(stats)

    def mode(self, stats: ComponentMoments, flat: bool) -> dict[str, np.ndarray]:
        """Return the joint mode, or with ``flat`` weighted means and variances."""
        found = self.components.flat_mode(stats) if flat else self.components.mode(self.components.updated(stats))
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

        scale = np.sqrt(hyper.psi / hyper.nu / hyper.kappa)
        means = scipy.stats.t(hyper.nu, loc=hyper.m[:, 0], scale=scale)
        variances = scipy.stats.invgamma(hyper.nu / 2, scale=hyper.psi / 2)
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

    def ordered(self, params: Values) -> dict[str, np.ndarray]:
        """Return means and variances in order."""
        return {f"sorted_{name}": np.sort(params[name], axis=-1) for name in self.own}

    def clusters(self, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the nearest of K rows, chosen by k-means++."""
        return kmeans.clusters(y[:, None], self.K, rng)

    def degenerate(self, params: Values, y: np.ndarray) -> str:
        """Say so where a variance is below 1e-5 of that of all rows."""
        share = np.min(params["variances"]) / np.nanvar(y)
        if share >= 1e-5:
            return ""
        return f"state {np.argmin(params['variances']) + 1} has collapsed: its variance is {share:.1g} of that of all rows"


class Counts(Emissions):
    """Poisson(rates_k), rates_k ~ Gamma(a, rate b).

    Hyperparameters are the shapes and rates of Gamma distributions, each (K,); statistics the expected sums of the
    counts and of the rows.
    """

    own: ClassVar[tuple[str, ...]] = ("rates",)  # type: ignore[misc]

    def __init__(self, K: int, a: float, b: float) -> None:
        self.K, self.a, self.b = K, float(a), float(b)

    @property
    def free(self) -> int:
        """Return K."""
        return self.K

    @property
    def unbounded(self) -> str:
        """Say so where the shape is below 1."""
        return "a < 1: it grows without bound as a rate goes to 0" if self.a < 1 and self.K > 1 else ""

    def seen(self, y: np.ndarray) -> np.ndarray:
        """Say which counts are no masks."""
        return np.asarray(y) >= 0

    def _log_mass(self, log_rates: np.ndarray, rates: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Log mass, with the expectations of the logarithm and of the rate."""
        k = np.maximum(y, 0).astype(np.float64)[:, None]
        log_power = np.where(k > 0, k * log_rates, 0.0)
        return np.where(self.seen(y)[:, None], log_power - rates - gammaln(k + 1), 0.0)

    def log_density(self, params: Values, y: np.ndarray) -> np.ndarray:
        """Log Poisson mass."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self._log_mass(np.log(params["rates"]), np.asarray(params["rates"]), y)

    def expected_log_density(self, hyper: tuple[np.ndarray, np.ndarray], y: np.ndarray) -> np.ndarray:
        """Return its expectation under Gamma distributions."""
        shape, rate = hyper
        return self._log_mass(digamma(shape) - np.log(rate), shape / rate, y)

    def moments(self, each: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return expected sums (K,) of the counts, and numbers of rows."""
        seen = self.seen(y)
        return each[seen].T @ y[seen].astype(np.float64), each[seen].sum(axis=0)

    def updated(self, stats: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return Gamma distributions."""
        return self.a + stats[0], self.b + stats[1]

    def mode(self, stats: tuple[np.ndarray, np.ndarray], flat: bool) -> dict[str, np.ndarray]:
        """Return counts over rows, with those of the prior unless ``flat``."""
        above, below = stats if flat else (stats[0] + self.a - 1, stats[1] + self.b)
        if not (np.all(above >= 0) and np.all(below > 0)):
            raise NumericalError("a state has too few expected rows for the mode of its rate")
        return {"rates": above / below}

    def middle(self, hyper: tuple[np.ndarray, np.ndarray]) -> dict[str, np.ndarray]:
        """Return means."""
        return {"rates": hyper[0] / hyper[1]}

    def log_prior(self, params: Values) -> Any:
        """Log Gamma density."""
        return scipy.stats.gamma.logpdf(params["rates"], self.a, scale=1 / self.b).sum(axis=-1)

    def divergence(self, hyper: tuple[np.ndarray, np.ndarray]) -> float:
        """Return that of Gamma distributions."""
        shape, rate = hyper
        of_shapes = (shape - self.a) * digamma(shape) - gammaln(shape) + gammaln(self.a)
        return float(np.sum(of_shapes + self.a * np.log(rate / self.b) + shape * (self.b - rate) / rate))

    def posterior(self, hyper: tuple[np.ndarray, np.ndarray]) -> list[Posterior]:
        """Return Gamma distributions."""
        return [Posterior({"rates": scipy.stats.gamma(hyper[0], scale=1 / hyper[1])})]

    def log_pairs(self, hyper: tuple[np.ndarray, np.ndarray], params: Values) -> np.ndarray:
        """Log Gamma densities."""
        rates = np.asarray(params["rates"])[..., None, :]
        return np.asarray(scipy.stats.gamma.logpdf(rates, hyper[0][:, None], scale=1 / hyper[1][:, None]))

    def log_evidence(self, paths: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Log mass of the counts: negative binomial."""
        seen = self.seen(y)
        k, each = y[seen].astype(np.float64), paths[:, seen] == np.arange(self.K)[:, None, None]
        total, rows = each @ k, each.sum(axis=-1)
        of_states = log_rising(self.a, total) - self.a * np.log1p(rows / self.b) - total * np.log(self.b + rows)
        return np.asarray(of_states.sum(axis=0) - gammaln(k + 1).sum())

    def next_mean(self, params: Values, next_state: np.ndarray) -> np.ndarray:
        """Return the mean."""
        return np.sum(next_state * params["rates"], axis=-1)

    def ordered(self, params: Values) -> dict[str, np.ndarray]:
        """Return the rates in order."""
        return {"sorted_rates": np.sort(params["rates"], axis=-1)}

    def clusters(self, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the nearest of K rows, chosen by k-means++."""
        return kmeans.clusters(y[:, None].astype(np.float64), self.K, rng)
