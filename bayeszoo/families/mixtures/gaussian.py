"""Mixtures of Gaussian components, however their covariances are written, and the distribution of their rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import scipy

from bayeszoo.distributions.bases import ByVariance
from bayeszoo.distributions.conjugate.mixture import MixturePrior
from bayeszoo.distributions.conjugate.product import Expected, Factors, Several
from bayeszoo.distributions.statistics.counts import Counts
from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.errors import InputError
from bayeszoo.families.mixtures.base import MixtureModel, clusters, symmetrized
from bayeszoo.families.mixtures.gaussian_components import STRUCTURES, GaussianComponents
from bayeszoo.families.mixtures.local_coordinates import MixtureChart
from bayeszoo.foundation.named import Arrays, Coords, Fields, Params, RandomState, Simulated, Statistics
from bayeszoo.foundation.numerics.levels import reached
from bayeszoo.model.base import Axes
from bayeszoo.model.capabilities import Observable
from bayeszoo.model.capabilities.steps import Chart, Coordinates, Expectation
from bayeszoo.model.fields import plain

AXES: dict[str, tuple[str, ...]] = {
    "full": ("component", "column", "column_2"),
    "tied": ("column", "column_2"),
    "diagonal": ("component", "column"),
    "spherical": ("component",),
}
"""The axes of covariances."""

SEEDED = 2000
"""Most rows whose clusters give the start; of more rows, a random subset."""
FIRST_STEPS = 5
"""First steps on the subset, which are faster than steps on all rows."""
_CELLS = 2**20
"""Most numbers held at once."""


class GaussianMixtureModel(MixtureModel, Observable, family=True):
    """A mixture of Gaussian rows; a subclass gives the prior of its components, and the steps of EM and VB.

    Parameters are ``weights`` (K,), ``means`` (K, D) and ``covariances``.
    """

    m0: float
    kappa0: float
    nu0: float
    Psi0: float
    covariance: str

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.covariance, str) or self.covariance not in STRUCTURES:
            hint = f"use one of {', '.join(STRUCTURES)}"
            raise InputError(f"there is no covariance {self.covariance!r}", "unknown_method", hint=hint)

    @property
    def dims(self) -> Axes:  # type: ignore[override]
        """The axes of the parameters, and of quantities derived from them."""
        of_rows = dict.fromkeys(("mixture_mean", "mixture_sd"), ("column",))
        means = ("component", "column")
        return {"weights": ("component",), "means": means, "covariances": AXES[self.covariance], **of_rows}

    def coords(self, data: Arrays) -> Coords:
        """Return the names of the columns, for both axes of a matrix, and the numbers of the components."""
        names = dict.fromkeys(("column", "column_2"), data["column"])
        return {**names, "component": np.arange(1, self.K + 1)}

    def components(self, columns: int) -> GaussianComponents:
        """Return the prior of the components for D columns; raise `InputError` if a field has another shape."""
        psi = self.entries("Psi0", (columns, columns)) if np.ndim(self.Psi0) else self.Psi0 * np.eye(columns)
        m0 = self.entries("m0", columns)
        return GaussianComponents.of(self.covariance, self.K, m0, self.kappa0, self.nu0, psi)

    def simulated(self, weights: np.ndarray, rng: np.random.Generator, size: int) -> Simulated:
        """Draw components from the prior (two columns unless a field tells the number), and rows given the weights."""
        columns = next((len(np.array(value)) for value in (self.m0, self.Psi0) if np.ndim(value)), 2)
        prior = self.components(columns)
        params = {"weights": weights, **prior.rvs((), rng)}
        matrices, component = prior.matrices(params["covariances"]), rng.choice(self.K, size, p=weights)
        rows = [rng.multivariate_normal(params["means"][k], matrices[k], method="cholesky") for k in component]
        names = np.array([f"x{j + 1}" for j in range(columns)])
        return params, {"Y": np.reshape(rows, (size, columns)), "column": names}

    def component_law(self, data: Arrays) -> GaussianComponents:
        """Return the prior of the components of the data."""
        return self.components(data["Y"].shape[1])

    def seeds(self, data: Arrays, rng: np.random.Generator) -> np.ndarray:
        """Return responsibilities to start from: each row in the cluster of the nearest of K rows, by k-means++."""
        return np.eye(self.K)[clusters(data["Y"], self.K, rng)]

    def start(self, data: Arrays, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Return random parameters to climb from; with many rows, after a few steps on a subset of the rows."""
        Y = data["Y"]
        if len(Y) <= max(SEEDED, self.K):
            return super().start(data, rng)
        rows = rng.choice(len(Y), max(SEEDED, self.K), replace=False, shuffle=False)
        subset = {"Y": Y[rows], "column": data["column"]}
        params = super().start(subset, rng)
        for _ in range(FIRST_STEPS):
            params = self.m_step(self.e_step(params, subset).stats)
        return params

    def e_step(self, params: Params, data: Arrays) -> Expectation:
        """Return expected statistics and the log likelihood at the parameters."""
        prior = self.prior(data)
        value, moments = prior.law.sums(params["weights"], params["means"], params["covariances"], data["Y"])
        return Expectation(_expected(moments, prior), value)

    def vb_e_step(self, q: Factors[MixturePrior], data: Arrays) -> Expectation:
        """Return expected statistics under the best q(z), and the sum of its log normalizers."""
        law: GaussianComponents = q.q.law
        log_weights = q.q.weights.expected_log + law.expected_gap()
        means, covariances = law.typical().values()
        largest = log_weights.max()  # with few rows all weights would underflow
        value, moments = law.sums(np.exp(log_weights - largest), means, covariances, data["Y"])
        return Expectation(_expected(moments, q.prior), value + len(data["Y"]) * float(largest))

    def chart(self, params: Params, stats: Expected[MixturePrior], flat: bool) -> Chart:
        """Return coordinates about parameters, in units of their standard errors if the components were known."""
        law: GaussianComponents = stats.prior.law

        def target(stats: Expected[MixturePrior]) -> tuple[np.ndarray, GaussianComponents]:
            moments = stats.stats.parts[1]
            return moments.n + (0.0 if flat else self.alpha - 1), law.target(moments, flat)

        chart = MixtureChart(law, params, *target(stats))
        return Chart(chart.size, chart.params, lambda x, params, stats: chart.slope(x, params, *target(stats)))

    def vb_coordinates(self, data: Arrays) -> Coordinates | None:
        """Return coordinates of q(theta): logs of weights and counts, means, and factors of matrices."""
        prior, K = self.prior(data), self.K
        law: GaussianComponents = prior.law
        least = law.structure.block - 1  # degrees of freedom

        def to_vector(q: Factors[MixturePrior]) -> np.ndarray:
            q_law: GaussianComponents = q.q.law
            logs = np.log(q_law.kappa), np.log(np.atleast_1d(q_law.nu - least))
            return np.concatenate([*logs, law.to_vector(q.q.weights.alpha, q_law.m, q_law.psi)])

        def from_vector(x: np.ndarray) -> Factors[MixturePrior]:
            size = 1 if law.tied else K
            kappa, nu = np.exp(x[:K]), least + np.exp(x[K : K + size])
            alpha, m, psi = law.from_vector(x[K + size :])
            q_law = replace(law, m=m, kappa=kappa, nu=nu[0] if law.tied else nu, psi=psi)
            return Factors(MixturePrior((replace(prior.weights, alpha=alpha), q_law)), prior)

        return Coordinates(to_vector, from_vector)

    def vb_log_densities(self, qs: Sequence[Factors[MixturePrior]], params: Params) -> np.ndarray:
        """Return `vb_log_density` of each of several q(theta), (Q, draws), at draws with one leading axis."""
        size, parts = max(1, _CELLS // np.size(params["weights"]) // self.K), []
        for start in range(0, len(qs), size):
            block = [factors.q for factors in qs[start : start + size]]
            pairs = block[0].law.log_pairs_of([q.law for q in block], params)
            parts += [symmetrized(q.weights, params, of_q) for q, of_q in zip(block, pairs, strict=True)]
        return np.array(parts)

    def likelihood(self, params: Params, data: Arrays) -> MixtureRows:
        """Return each row's distribution; parameters with leading axes (...) give (..., rows)."""
        return MixtureRows(self.component_law(data), params, len(data["Y"]))

    def derived(self, params: Params) -> dict[str, np.ndarray]:
        """Return mean and standard deviation of a row, and 1 / sum(weights^2), which do not depend on labels."""
        rows = MixtureRows(self.components(np.shape(params["means"])[-1]), params, 1)
        effective = 1 / np.sum(np.square(params["weights"]), axis=-1)
        mean, sd = rows.mean()[..., 0, :], rows.std()[..., 0, :]
        return {"mixture_mean": mean, "mixture_sd": sd, **({"effective_components": effective} if self.K > 1 else {})}

    def invariants(self, params: Params, data: Arrays) -> dict[str, np.ndarray]:
        """Return quantities that do not depend on the labels; leading axes are draws."""
        of_draws = super().invariants
        invariants = piecewise(lambda draws: of_draws(draws, data), params, data["Y"].size * self.K)
        return {**invariants, **self.derived(params)}

    def degenerate(self, params: Params, stats: Expected[MixturePrior]) -> str:
        """Return the reason, by expected statistics, why a fitted point is a degenerate maximum; empty if it is not."""
        law: GaussianComponents = stats.prior.law
        return law.degenerate(params, stats.stats.parts[1])

    def remarks(self, stats: Statistics, data: Arrays) -> tuple[str, ...]:
        """Say that there are fewer distinct rows than components."""
        distinct = len(np.unique(data["Y"], axis=0))
        return (f"K={self.K} components but only {distinct} distinct rows",) if 0 < distinct < self.K else ()


def weak_components(stats: Moments, share: float) -> Fields:
    """Return weak fields from the rows; the scale matrix is diag(variances) / share^(2/D), by a share of the volume."""
    D = len(stats.mean)
    psi = np.diag(stats.sd**2) / share ** (2 / D)
    return {"m0": plain(stats.mean), "kappa0": 0.01, "nu0": D + 2.0, "Psi0": plain(psi)}


def _expected(moments: Moments, prior: MixturePrior) -> Expected[MixturePrior]:
    return Expected(Several((Counts(moments.n), moments)), prior)


def piecewise(function: Callable[[Params], Mapping[str, object]], params: Params, cells: int) -> dict[str, np.ndarray]:
    """Apply a function to blocks of draws, to save memory: one draw needs ``cells`` numbers.

    The function takes parameters with one leading axis of draws, and returns arrays with the same leading axis;
    ``params`` may have any number of leading axes.
    """
    arrays = {name: np.asarray(values, dtype=np.float64) for name, values in params.items()}
    leading = arrays["weights"].shape[:-1]
    flat = {name: values.reshape(-1, *values.shape[len(leading) :]) for name, values in arrays.items()}
    step = max(_CELLS // max(cells, 1), 1)
    starts = range(0, len(flat["weights"]), step)
    parts = [function({name: v[i : i + step] for name, v in flat.items()}) for i in starts]
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return {name: values.reshape(*leading, *values.shape[1:]) for name, values in joined.items()}


class MixtureRows(ByVariance):
    """N rows of a Gaussian mixture given its parameters, whose leading axes are draws.

    Moments and quantiles of the entries have shape (..., rows, D).
    """

    def __init__(self, components: GaussianComponents, params: Params, rows: int) -> None:
        names = ("weights", "means", "covariances")
        self._components, self._rows = components, rows
        self._params = {name: np.asarray(params[name], dtype=np.float64) for name in names}
        self._weights, self._means, covariances = self._params.values()
        variances, origin = components.variances(covariances), self._means[..., :1, :]
        # relative to the first component, so that means near 1e9 keep their digits
        self._sds, self._centre = np.sqrt(variances), origin[..., 0, :] + self._average(self._means - origin)
        self._variance = self._average(variances + (self._means - self._centre[..., None, :]) ** 2)

    def _tile(self, values: np.ndarray) -> np.ndarray:
        shape = (*values.shape[:-1], self._rows, values.shape[-1])
        return np.broadcast_to(values[..., None, :], shape)

    def _average(self, values: np.ndarray) -> np.ndarray:
        """Average values (..., K, D) over components."""
        return np.sum(self._weights[..., None] * values, axis=-2)

    def mean(self) -> np.ndarray:
        """Return the means."""
        return self._tile(self._centre)

    def var(self) -> np.ndarray:
        """Return the variances."""
        return self._tile(self._variance)

    def ppf(self, q: float) -> np.ndarray:
        """Return the quantiles, which lie between those of the components."""
        quantiles = self._means + self._sds * scipy.special.ndtri(q)
        low, high = quantiles.min(axis=-2), quantiles.max(axis=-2)
        return self._tile(reached(self._below, q, np.nextafter(low, -np.inf), np.nextafter(high, np.inf)))

    def cdf(self, y: npt.ArrayLike) -> np.ndarray:
        """Return the probabilities (..., rows, D) of at most ``y`` (rows, D)."""
        y = np.asarray(y, dtype=np.float64)
        if len(y) and (y == y[0]).all():  # as for quantiles, which are equal for all rows
            return self._tile(self._below(y[0]))
        return np.stack([self._below(row) for row in y], axis=-2)

    def _below(self, y: np.ndarray) -> np.ndarray:
        """Return the probabilities that a row's entries are at most those of ``y``, (..., D)."""
        return self._average(scipy.special.ndtr((y[..., None, :] - self._means) / self._sds))

    def logpdf(self, Y: npt.ArrayLike) -> np.ndarray:
        """Joint log density (..., rows) of the rows of ``Y`` (rows, D)."""
        rows = np.asarray(Y, dtype=np.float64)

        def log_density(params: Params) -> dict[str, np.ndarray]:
            with np.errstate(divide="ignore"):  # of a weight of 0
                log_weights = np.log(params["weights"])[..., None, :]
            terms = log_weights + self._components.log_density(params, {"Y": rows})
            return {"rows": np.logaddexp.reduce(terms, axis=-1)}

        return piecewise(log_density, self._params, self._means.shape[-2] * rows.size)["rows"]

    def rvs(self, size: tuple[int, ...], random_state: RandomState = None) -> np.ndarray:
        """Draw rows of shape ``size``, which is (..., rows, D)."""
        rng = np.random.default_rng(random_state)
        ends = np.cumsum(self._weights, axis=-1)[..., None, :-1]
        component = np.sum(rng.random(size[:-1])[..., None] > ends, axis=-1)
        z, drawn = rng.standard_normal(size), np.empty(size)
        factors = np.linalg.cholesky(self._components.matrices(self._params["covariances"]))
        for k in range(self._weights.shape[-1]):
            of_k = self._means[..., k, None, :] + z @ factors[..., k, :, :].mT
            drawn = np.where((component == k)[..., None], of_k, drawn)
        return drawn
