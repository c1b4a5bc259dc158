"""Normal numbers as the emissions of hidden Markov models, with normal-inverse-gamma priors."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayeszoo.distributions import frozen
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.errors import NumericalError
from bayeszoo.families.hmm import passes
from bayeszoo.families.hmm.emissions import Emissions
from bayeszoo.families.hmm.passes import Sums
from bayeszoo.families.hmm.tables import Pair
from bayeszoo.families.mixtures.base import clusters
from bayeszoo.families.mixtures.gaussian_components import ComponentMoments, GaussianComponents, Hyper
from bayeszoo.model.base import Values


class Normals(Emissions):
    """N(means_k, variances_k), variances_k ~ InvGamma(a, scale b), means_k ~ N(m, variances_k / kappa) given these."""

    own, unbounded = ("means", "variances"), ""
    free = property(lambda self: self.components.free, doc="2 K.")

    def __init__(self, K: int, m: float, kappa: float, a: float, b: float) -> None:
        self.K = K
        self.components = GaussianComponents("spherical", K, np.array([m]), kappa, 2 * a, np.array([[2 * b]]))

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

    def sums(self, tables: Pair, params: Values, y: np.ndarray, starts: np.ndarray) -> Sums:
        """Add up in one compiled pass, from the means, so that nothing cancels."""
        means = np.asarray(params["means"], dtype=np.float64)
        sigmas = np.sqrt(params["variances"])
        found = passes.normal_sums(*tables, means, sigmas, y, starts)
        counts, z, squares = found.emitted
        shift = sigmas * z / np.where(counts > 0, counts, 1.0)
        scatter = sigmas**2 * squares - counts * shift**2
        return found._replace(
            emitted=ComponentMoments(counts, (means + shift)[:, None], scatter, self.components.structure)
        )

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

        scale = np.sqrt(hyper.psi / hyper.nu / hyper.kappa)
        means = frozen.t(hyper.nu, loc=hyper.m[:, 0], scale=scale)
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
        share = np.min(params["variances"]) / np.nanvar(y)
        if share >= 1e-5:
            return ""
        return (
            f"state {np.argmin(params['variances']) + 1} has collapsed: its variance is {share:.1g} of that of all rows"
        )
